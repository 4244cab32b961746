// SPDX-License-Identifier: Apache-2.0
//! Instances that wait for what others do. A part of them may do so for long, so that a server that stands still does not take all of
//! them from what can be answered without it.

use std::pin::pin;

use netserv_model::manifest::ModuleLimits;
use netserv_worker_base::compute::Budget;
use tokio::time::timeout;

use crate::limits;

/// Waits as an instance that answers a request. Nothing comes of it once it is long and as many others as may wait for long.
pub async fn bounded<T>(long_waits: &Budget, wait: impl Future<Output = T>) -> Option<T> {
    let mut wait = pin!(wait);
    if let Ok(done) = timeout(limits::LONG_WAIT_TIME, wait.as_mut()).await {
        return Some(done);
    }
    let _place = long_waits.reserve(1).ok()?;
    Some(wait.await)
}

/// Returns how many instances of a module may wait for long.
pub fn most(limits: &ModuleLimits) -> usize {
    (limits.requests as usize * limits::LONG_WAITS_QUARTERS / 4).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_may_wait_in_any_case() {
        for (requests, expected) in [(1, 1), (2, 1), (8, 6), (512, 384)] {
            assert_eq!(most(&ModuleLimits { requests, ..ModuleLimits::default() }), expected, "{requests}");
        }
    }
}
