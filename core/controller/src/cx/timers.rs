// SPDX-License-Identifier: Apache-2.0
//! What is due when: leases, restarts, and answers that are waited for.

use std::collections::{BTreeMap, BTreeSet};

use netserv_model::effect::{EffectId, ModuleSlot};
use netserv_model::{Instant, WorkerId};

use crate::cx::request::Key;

/// What a timer is for; there is at most one of each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// Proofs of users' rights may have ended: before leases that end with them, so that requesters are told why.
    Proofs,
    /// Who is behind checklists may be another, likewise.
    Checklists,
    /// A lease ends.
    Lease(Key),
    /// A module is to be started again, or leaves quarantine.
    Restart(Key),
    /// A worker is to be started again.
    RestartWorker(WorkerId),
    /// A fetch should have been answered.
    Fetch(EffectId),
    /// The start of a worker should have been answered.
    Start(WorkerId),
    /// The load of a module should have been answered.
    Load(WorkerId, ModuleSlot),
    /// A worker has had no modules for a while.
    StopIdle(WorkerId),
    /// A worker was made ready for a module that may come.
    Prepared(WorkerId),
    /// Connections of a module that is gone have had their time.
    Drain(WorkerId, ModuleSlot),
    /// A worker should have said what became of a control message.
    Tell(EffectId),
    /// An address should have been asked.
    Prove(EffectId),
    /// An issuer's revocation list is to be asked for.
    List(String),
    /// The state of a module should have been written.
    Export(EffectId),
    /// A module has been paused for long enough.
    Thaw(Key),
    /// Packets have waited for long enough for one that moves.
    Buffered(Key),
    /// Meters are to be read.
    ReadMeters,
}

impl Timer {
    fn reason(&self) -> &'static str {
        match self {
            Timer::Checklists => "checklists",
            Timer::Lease(_) => "lease",
            Timer::Restart(_) => "module restart",
            Timer::RestartWorker(_) => "worker restart",
            Timer::Fetch(_) => "fetch answer",
            Timer::Start(_) => "worker answer",
            Timer::Load(..) => "load answer",
            Timer::StopIdle(_) => "idle worker",
            Timer::Prepared(_) => "worker without the module that it was made ready for",
            Timer::Drain(..) => "connections of a module that is gone",
            Timer::Tell(_) => "tell answer",
            Timer::Prove(_) => "answer of an address",
            Timer::List(_) => "revocation list",
            Timer::Export(_) => "export answer",
            Timer::Thaw(_) => "module that stands still",
            Timer::Buffered(_) => "packets that wait for a module",
            Timer::Proofs => "end of a user's proof",
            Timer::ReadMeters => "reading of meters",
        }
    }
}

/// All timers, in order of time.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    at: BTreeMap<Timer, Instant>,
    order: BTreeSet<(Instant, Timer)>,
}

impl Timers {
    /// Sets a timer, in place of an earlier setting.
    pub(crate) fn set(&mut self, timer: Timer, at: Instant) {
        if let Some(old) = self.at.insert(timer.clone(), at) {
            self.order.remove(&(old, timer.clone()));
        }
        self.order.insert((at, timer));
    }

    /// Puts a timer that runs off, unless it is late enough already.
    pub(crate) fn set_not_before(&mut self, timer: Timer, at: Instant) {
        if self.at.get(&timer).is_some_and(|set| *set < at) {
            self.set(timer, at);
        }
    }

    /// Sets a timer, unless it runs and is early enough already.
    pub(crate) fn set_not_after(&mut self, timer: Timer, at: Instant) {
        if self.at.get(&timer).is_none_or(|set| *set > at) {
            self.set(timer, at);
        }
    }

    /// Returns whether a timer runs.
    pub(crate) fn runs(&self, timer: &Timer) -> bool {
        self.at.contains_key(timer)
    }

    /// Stops a timer if it runs.
    pub(crate) fn cancel(&mut self, timer: &Timer) {
        if let Some(at) = self.at.remove(timer) {
            self.order.remove(&(at, timer.clone()));
        }
    }

    /// Takes the first timer that is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Timer> {
        let (_, timer) = self.order.first().filter(|(at, _)| *at <= now)?.clone();
        self.cancel(&timer);
        Some(timer)
    }

    /// Returns when the first timer is due, and why.
    pub(crate) fn next(&self) -> Option<(Instant, &'static str)> {
        self.order.first().map(|(at, timer)| (*at, timer.reason()))
    }

    /// Returns how many timers run.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        assert_eq!(self.at.len(), self.order.len());
        self.at.len()
    }
}
