// SPDX-License-Identifier: Apache-2.0
//! How many regions each network has.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

/// How many regions each network has, over all rules.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    counts: BTreeMap<IpNet, u32>,
    /// The same, the fewest first.
    by_count: BTreeSet<(u32, IpNet)>,
}

impl Crowd {
    pub(super) fn of(&self, network: IpNet) -> u32 {
        self.counts.get(&network).copied().unwrap_or(0)
    }

    /// Returns the most that a network has, and which does.
    pub(super) fn most(&self) -> Option<(u32, IpNet)> {
        self.by_count.last().copied()
    }

    pub(super) fn set(&mut self, network: IpNet, count: u32) {
        self.by_count.remove(&(self.of(network), network));
        match count {
            0 => drop(self.counts.remove(&network)),
            _ => {
                self.counts.insert(network, count);
                self.by_count.insert((count, network));
            }
        }
    }
}
