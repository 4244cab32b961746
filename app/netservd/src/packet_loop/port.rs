// SPDX-License-Identifier: Apache-2.0
//! One container as the packet loop sees it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use netserv_container::HostRing;
use netserv_model::command::ModuleSlot;
use netserv_model::{DropReason, limits};
use netserv_wire::container::ring::Ingress;

use crate::limits::{INJECTED_BURST_MAX, INJECTED_PER_SECOND_MAX, OUTSIDE_TIME_MAX};

/// One container as the loop sees it.
pub(super) struct Port {
    /// Tells the user's containers apart, which follow each other.
    pub(super) generation: u64,
    pub(super) ring: HostRing,
    pub(super) prefixes: Vec<IpNet>,
    pub(super) call_times: BTreeMap<ModuleSlot, Duration>,
    /// The bits of the modules that are loaded.
    pub(super) loaded: u64,
    /// The control loop knows that the container must go.
    pub(super) reported: bool,
    /// The container broke the rules of the ring.
    pub(super) broken: bool,
    pub(super) injections: Injections,
    steps: u64,
    moved_at: Instant,
    answered_at: Instant,
}

impl Port {
    pub(super) fn new(generation: u64, ring: HostRing, prefixes: Vec<IpNet>) -> Port {
        let (steps, now) = (ring.activity().steps, Instant::now());
        Port {
            generation,
            ring,
            prefixes,
            call_times: BTreeMap::new(),
            loaded: 0,
            reported: false,
            broken: false,
            injections: Injections::new(now),
            steps,
            moved_at: now,
            answered_at: now,
        }
    }

    /// Puts a packet into the ring.
    pub(super) fn offer(
        &mut self,
        bytes: &[u8],
        ingress: Ingress,
        modules: u64,
        cookie: u64,
    ) -> Result<(), DropReason> {
        if bytes.len() > limits::PACKET_BYTES_MAX {
            return Err(DropReason::TooLong);
        }
        if self.ring.outstanding() == 0 {
            // The watchdog's time runs from the first packet that the container holds.
            self.give_time(Instant::now());
        }
        self.ring.push_from(bytes, ingress, modules, cookie).map_err(|error| match error.is_fatal() {
            true => DropReason::ContainerGone,
            false => DropReason::RingFull,
        })
    }

    /// Takes note that the container gave something back.
    pub(super) fn answered(&mut self, now: Instant) {
        self.answered_at = now;
    }

    /// Starts the watchdog's time anew.
    pub(super) fn give_time(&mut self, now: Instant) {
        (self.moved_at, self.answered_at) = (now, now);
    }

    /// Returns whether the container hangs, and in which module.
    ///
    /// What it says of its steps is not enough: one that was taken over could count them up and keep its packets. So
    /// its answers have a time of their own, in which every module could have taken as long as it may.
    ///
    /// A module can also hang outside of packets, while it starts or in a timer: then it is in a call and nothing moves.
    pub(super) fn stalled(&mut self, now: Instant) -> Option<Option<ModuleSlot>> {
        let activity = self.ring.activity();
        let holds = self.ring.outstanding() > 0;
        if activity.steps != self.steps || (activity.module.is_none() && !holds) {
            (self.steps, self.moved_at) = (activity.steps, now);
        }
        let allowed = match activity.module {
            Some(slot) => self.call_times.get(&slot).copied().unwrap_or(CALL_TIME_UNKNOWN),
            None => OUTSIDE_TIME_MAX,
        };
        let answers = OUTSIDE_TIME_MAX + self.call_times.values().sum::<Duration>();
        let hangs = now.duration_since(self.moved_at) > allowed;
        let hoards = holds && now.duration_since(self.answered_at) > answers;
        (hangs || hoards).then_some(activity.module)
    }
}

/// The packets that a container may still make: two nodes whose modules answer each other's packets must not fill the
/// line between them.
pub(super) struct Injections {
    left: u32,
    refilled_at: Instant,
}

impl Injections {
    fn new(now: Instant) -> Injections {
        Injections { left: INJECTED_BURST_MAX, refilled_at: now }
    }

    /// Takes one; false if there is none left at this time.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        if self.left == 0 {
            let step = Duration::from_secs(1) / INJECTED_PER_SECOND_MAX;
            let steps = now.duration_since(self.refilled_at).as_nanos() / step.as_nanos();
            let steps = u32::try_from(steps).unwrap_or(u32::MAX);
            self.left = steps.min(INJECTED_BURST_MAX);
            self.refilled_at = if self.left < steps { now } else { self.refilled_at + step * steps };
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

/// How long a call may take in a module that nobody announced.
const CALL_TIME_UNKNOWN: Duration = Duration::from_millis(500);
