// SPDX-License-Identifier: Apache-2.0
//! What runs a user's modules of one flavour, and who has which place in it.

use std::collections::BTreeMap;

use netserv_model::effect::{EffectId, ModuleSlot};
use netserv_model::limits::MODULES_PER_CONTAINER_MAX;
use netserv_model::{Digest, Instant, ModuleName, ModuleRef};

use crate::tenants::backoff::Backoff;
use crate::tenants::rule::ModuleRule;

/// What runs a user's modules of one flavour.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    pub(crate) phase: Phase,
    /// The effect that started it last.
    pub(crate) generation: Option<EffectId>,
    pub(crate) places: BTreeMap<ModuleSlot, SlotHolder>,
    next_place: u8,
    /// The order of packets through modules that was last asked for; empty if none was.
    pub(crate) order: Vec<ModuleSlot>,
    pub(crate) backoff: Backoff,
    /// Modules that are gone while connections that they had taken over go on, by their places.
    pub(crate) draining: BTreeMap<ModuleSlot, Draining>,
}

impl Worker {
    /// Returns the place of the module that drains for longest.
    pub(crate) fn first_draining(&self) -> Option<ModuleSlot> {
        self.draining.iter().min_by_key(|(_, draining)| draining.until).map(|(slot, _)| *slot)
    }

    /// Returns whether it runs or is being started.
    pub(crate) fn has_process(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Ready)
    }

    /// Takes a free place.
    ///
    /// Places are given in rotation, so that news of a module that left does not meet its successor.
    pub(crate) fn take_place(&mut self, place: SlotHolder) -> Option<ModuleSlot> {
        let places = u8::try_from(MODULES_PER_CONTAINER_MAX).expect("one bit each in 64");
        let free = (0..places).map(|n| ModuleSlot((self.next_place + n) % places));
        let slot = free.into_iter().find(|slot| !self.places.contains_key(slot))?;
        self.next_place = (slot.0 + 1) % places;
        self.places.insert(slot, place);
        Some(slot)
    }
}

/// What a worker is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// There is none, and none was wanted.
    #[default]
    Absent,
    /// It is being started.
    Starting,
    /// It takes modules.
    Ready,
    /// It died and waits to be started again.
    Down,
}

/// Who has a place in a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotHolder {
    pub(crate) module: ModuleName,
    pub(crate) role: Role,
}

/// In what role a module has its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is installed.
    Active,
    /// It is being installed.
    Candidate,
    /// It was unloaded before its load was answered; the place is free once the answer is there.
    Leaving,
    /// It is gone, and connections that it had taken over go on.
    Draining,
}

/// A module that is gone while connections that it had taken over go on.
#[derive(Debug)]
pub(crate) struct Draining {
    pub(crate) module: ModuleRef,
    pub(crate) digest: Digest,
    /// Its rules of connections.
    pub(crate) rules: Vec<ModuleRule>,
    pub(crate) until: Instant,
    /// How many bytes of memory it may have, if it goes on with them itself.
    pub(crate) finish: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_rotate_and_run_out() {
        let mut worker = Worker::default();
        let place = || SlotHolder { module: "example.org/m".parse().unwrap(), role: Role::Active };
        for n in 0..MODULES_PER_CONTAINER_MAX {
            assert_eq!(worker.take_place(place()), Some(ModuleSlot(u8::try_from(n).unwrap())));
        }
        assert_eq!(worker.take_place(place()), None);
        worker.places.remove(&ModuleSlot(7));
        worker.places.remove(&ModuleSlot(3));
        assert_eq!(worker.take_place(place()), Some(ModuleSlot(3)));
        worker.places.remove(&ModuleSlot(3));
        assert_eq!(worker.take_place(place()), Some(ModuleSlot(7)));
    }
}
