// SPDX-License-Identifier: Apache-2.0
//! One container as the packet loop sees it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use netserv_container::HostRing;
use netserv_model::command::ModuleSlot;

/// One container as the loop sees it.
pub(super) struct Port {
    pub(super) ring: HostRing,
    pub(super) prefixes: Vec<IpNet>,
    pub(super) call_times: BTreeMap<ModuleSlot, Duration>,
    pub(super) steps: u64,
    pub(super) moved_at: Instant,
    pub(super) reported: bool,
}

impl Port {
    pub(super) fn new(ring: HostRing, prefixes: Vec<IpNet>) -> Port {
        let steps = ring.activity().steps;
        Port { ring, prefixes, call_times: BTreeMap::new(), steps, moved_at: Instant::now(), reported: false }
    }
}
