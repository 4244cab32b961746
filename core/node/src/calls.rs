// SPDX-License-Identifier: Apache-2.0
//! Calls and requests that wait for fresh counters.

use std::collections::VecDeque;

use netserv_model::effect::{EffectId, RequestId};
use netserv_model::request::Request;

use crate::input::CallId;
use crate::limits::FRESH_WAITING_MAX;

/// Somebody who wants to see what was counted.
#[derive(Debug)]
pub(crate) enum Waiter {
    /// A client.
    Call(CallId),
    /// A request that asks for counters.
    Request(RequestId, Box<Request>),
}

/// Who waits for which measurement. Whoever comes while one is under way waits for the next, which is fresher.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    under_way: Option<EffectId>,
    served: VecDeque<Waiter>,
    next: VecDeque<Waiter>,
}

impl Calls {
    /// Adds somebody who waits. Gives it back if too many wait.
    pub(crate) fn wait(&mut self, waiter: Waiter) -> Option<Waiter> {
        if self.waiting() >= FRESH_WAITING_MAX {
            return Some(waiter);
        }
        self.next.push_back(waiter);
        None
    }

    /// Begins a measurement of that name if somebody waits for one and none is under way; returns whether it did.
    pub(crate) fn begin(&mut self, effect: EffectId) -> bool {
        let begins = self.under_way.is_none() && !self.next.is_empty();
        if begins {
            self.under_way = Some(effect);
            self.served = std::mem::take(&mut self.next);
        }
        begins
    }

    /// Returns whether somebody waits for a measurement that has not begun.
    pub(crate) fn wants(&self) -> bool {
        !self.next.is_empty()
    }

    /// Ends a measurement; returns who waited for it, which is nobody if it is not the one under way.
    pub(crate) fn end(&mut self, effect: EffectId) -> VecDeque<Waiter> {
        let ended = self.under_way.take_if(|under_way| *under_way == effect);
        ended.map(|_| std::mem::take(&mut self.served)).unwrap_or_default()
    }

    /// Returns how many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.served.len() + self.next.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_during_a_measurement_waits_for_the_next() {
        let mut calls = Calls::default();
        assert!(!calls.begin(EffectId(0)), "nobody waits");
        calls.wait(Waiter::Call(CallId(1)));
        assert!(calls.begin(EffectId(0)) && !calls.begin(EffectId(1)));
        calls.wait(Waiter::Call(CallId(2)));
        assert!(calls.end(EffectId(7)).is_empty());
        assert_eq!(calls.end(EffectId(0)).len(), 1);
        assert!(calls.begin(EffectId(1)));
        assert_eq!(calls.end(EffectId(1)).len(), 1);
        assert!(calls.end(EffectId(1)).is_empty());
    }

    #[test]
    fn those_who_wait_are_bounded() {
        let mut calls = Calls::default();
        for n in 0..FRESH_WAITING_MAX {
            assert!(calls.wait(Waiter::Call(CallId(u64::try_from(n).unwrap()))).is_none());
        }
        assert!(calls.wait(Waiter::Call(CallId(0))).is_some());
    }
}
