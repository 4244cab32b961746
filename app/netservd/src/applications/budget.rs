// SPDX-License-Identifier: Apache-2.0
//! How often a program may call.

use std::time::Duration;

use netserv_model::application::ApplicationCall;
use tokio::time::{Instant, sleep_until};

use crate::limits::{APPLICATION_CALLS_BURST, APPLICATION_CALLS_PER_SECOND, APPLICATION_WIDE_CALL};

/// Time that calls take up, at the speed that a program may have.
pub struct Budget {
    /// When all calls so far are paid for.
    paid: Instant,
}

impl Budget {
    /// Returns one that has saved up as much as it may.
    pub fn new(now: Instant) -> Budget {
        Budget { paid: now }
    }

    /// Takes calls out, and waits if they were not saved up; returns whether it had to.
    pub async fn take(&mut self, calls: u32) -> bool {
        let now = Instant::now();
        let Some(at) = self.due(now, calls) else { return false };
        sleep_until(at).await;
        true
    }

    /// Takes calls out; returns when they may be made, if that is later.
    fn due(&mut self, now: Instant, calls: u32) -> Option<Instant> {
        self.paid = self.paid.max(now) + CALL_TIME * calls;
        self.paid.checked_sub(CALL_TIME * APPLICATION_CALLS_BURST).filter(|at| *at > now)
    }
}

/// Returns how many calls a call counts for.
pub fn cost(call: &ApplicationCall) -> u32 {
    match call {
        ApplicationCall::Register(_) | ApplicationCall::SendMessage(_) | ApplicationCall::AbortMessage(_) => 1,
        ApplicationCall::SetStateLifetime(lifetime) if lifetime.session.is_some() && lifetime.flow.is_some() => 1,
        ApplicationCall::SetStateLifetime(_)
        | ApplicationCall::AbortSession(_)
        | ApplicationCall::InvalidateRoutingState(_) => APPLICATION_WIDE_CALL,
    }
}

const CALL_TIME: Duration = Duration::from_nanos(1_000_000_000 / APPLICATION_CALLS_PER_SECOND as u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn application_calls_burst_calls_go_at_once_and_then_as_many_in_a_second_as_may() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        let at_once = (0..1000).take_while(|_| budget.due(start, 1).is_none()).count();
        assert_eq!(at_once, usize::try_from(APPLICATION_CALLS_BURST).unwrap());
        let after = |budget: &mut Budget, calls| budget.due(start, calls).unwrap() - start;
        let before = after(&mut budget, 1);
        assert_eq!(after(&mut budget, APPLICATION_CALLS_PER_SECOND) - before, Duration::from_secs(1));
        let later = start + Duration::from_secs(60);
        assert!(budget.due(later, APPLICATION_CALLS_BURST).is_none() && budget.due(later, 1).is_some());
    }

    #[test]
    fn application_wide_call_is_what_looks_at_all_routes() {
        let flow = r#"{"source":"10.0.0.1","destination":"10.0.0.2","direction":"upstream"}"#;
        let session = "00".repeat(16);
        for (call, calls) in [
            (r#""set-state-lifetime","lifetime_ms":1"#.to_owned(), APPLICATION_WIDE_CALL),
            (format!(r#""set-state-lifetime","lifetime_ms":1,"flow":{flow}"#), APPLICATION_WIDE_CALL),
            (format!(r#""set-state-lifetime","lifetime_ms":1,"flow":{flow},"session":"{session}""#), 1),
            (r#""abort-message","handle":1"#.to_owned(), 1),
            (format!(r#""abort-session","session":"{session}""#), APPLICATION_WIDE_CALL),
            (format!(r#""invalidate-routing-state","flow":{flow}"#), APPLICATION_WIDE_CALL),
        ] {
            assert_eq!(cost(&serde_json::from_str(&format!("{{\"call\":{call}}}")).unwrap()), calls, "{call}");
        }
    }
}
