// SPDX-License-Identifier: Apache-2.0
//! Deadlines, one per owner.

use std::collections::BTreeSet;

use netserv_model::Instant;

use crate::api::{AssociationId, RouteId};

/// When something is due, and why.
pub(crate) type Deadline = (Instant, &'static str);

/// What a deadline belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Route(RouteId),
    Association(AssociationId),
    HeldQueries,
}

/// When the timer of each owner fires; the owner knows it, too, and why.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeSet<(Instant, Owner)>);

impl Timers {
    /// Sets an owner's timer, which was to fire `before`.
    pub(crate) fn set(&mut self, owner: Owner, before: Option<Instant>, at: Option<Instant>) {
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.0.remove(&(before, owner));
        }
        if let Some(at) = at {
            self.0.insert((at, owner));
        }
    }

    pub(crate) fn next(&self) -> Option<(Instant, Owner)> {
        self.0.first().copied()
    }

    /// Takes one owner that is due; its timer is not set any more.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Owner> {
        let (_, owner) = self.next().filter(|(at, _)| *at <= now)?;
        self.0.pop_first();
        Some(owner)
    }
}

/// Returns the earlier of two deadlines.
pub(crate) fn earlier(a: Option<Deadline>, b: Option<Deadline>) -> Option<Deadline> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.0 < a.0 { b } else { a }),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_owner_comes_first_and_once() {
        let mut timers = Timers::default();
        let at = |ms| Some(Instant::from_millis(ms));
        let (a, b) = (Owner::Association(AssociationId(1)), Owner::Association(AssociationId(2)));
        timers.set(a, None, at(20));
        timers.set(b, None, at(10));
        assert_eq!(timers.next(), Some((Instant::from_millis(10), b)));
        timers.set(b, at(10), at(30));
        assert_eq!(timers.next(), Some((Instant::from_millis(20), a)));
        assert_eq!(timers.pop(Instant::from_millis(19)), None);
        assert_eq!(timers.pop(Instant::from_millis(20)), Some(a));
        timers.set(b, at(30), None);
        assert_eq!((timers.next(), timers.pop(Instant::from_millis(90))), (None, None));
    }
}
