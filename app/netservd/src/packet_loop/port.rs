// SPDX-License-Identifier: Apache-2.0
//! One container as the packet loop sees it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use netserv_container::HostRing;
use netserv_model::command::ModuleSlot;
use netserv_model::{DropReason, limits};
use netserv_wire::container::ring::Ingress;

use crate::limits::OUTSIDE_TIME_MAX;

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

/// How long a call may take in a module that nobody announced.
const CALL_TIME_UNKNOWN: Duration = Duration::from_millis(500);
