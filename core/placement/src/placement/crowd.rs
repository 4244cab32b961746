// SPDX-License-Identifier: Apache-2.0
//! Networks share the room for regions: when there is no more, one of the network with the most gives way.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

use super::Placement;
use super::wanted::network;
use crate::RuleId;
use crate::limits::{GIVING_WAY_LOOKED_MAX, REGIONS_MAX};
use crate::region::{Region, Stage};

/// How many regions each network has, over all rules.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    counts: BTreeMap<IpNet, u32>,
    /// The same, the fewest first.
    by_count: BTreeSet<(u32, IpNet)>,
}

impl Crowd {
    fn of(&self, network: IpNet) -> u32 {
        self.counts.get(&network).copied().unwrap_or(0)
    }

    fn set(&mut self, network: IpNet, count: u32) {
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

impl Placement {
    /// Takes a region that is not known yet; returns false if there is no room for it.
    pub(super) fn add_region(&mut self, key: (RuleId, IpNet), region: Region) -> bool {
        let network = network(key.1);
        if self.regions.len() >= REGIONS_MAX && !self.make_room_for(network) {
            return false;
        }
        self.crowd.set(network, self.crowd.of(network) + 1);
        self.regions.insert(key, region);
        true
    }

    pub(super) fn remove_region(&mut self, key: (RuleId, IpNet)) {
        if self.regions.remove(&key).is_some() {
            let network = network(key.1);
            self.crowd.set(network, self.crowd.of(network).saturating_sub(1));
        }
    }

    /// Forgets a region of which nothing came yet, of the network with the most, if that has more than this one would.
    fn make_room_for(&mut self, own: IpNet) -> bool {
        let Some((most, network)) = self.crowd.by_count.last().copied() else { return false };
        if self.crowd.of(own) + 1 >= most {
            return false;
        }
        // The first that there could be.
        let from = IpNet::new(network.addr(), 0).unwrap_or(network);
        let inside = self.rules.keys().flat_map(|rule| {
            let of_rule = self.regions.range((*rule, from)..);
            of_rule.take_while(move |((of, region), _)| of == rule && network.contains(&region.addr()))
        });
        let mut looked = inside.take(GIVING_WAY_LOOKED_MAX);
        let Some(key) = looked.find(|(_, region)| region.stage == Stage::Counting).map(|(key, _)| *key) else {
            return false;
        };
        self.remove_region(key);
        true
    }
}
