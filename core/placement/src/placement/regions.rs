// SPDX-License-Identifier: Apache-2.0
//! The regions that are known, and those whose paths are to be asked for. Networks share the room for the former, and take turns for
//! the latter.

use std::net::IpAddr;

use ipnet::IpNet;

use super::wanted::network;
use super::{Asked, Placement};
use crate::RuleId;
use crate::limits::{ASKED_MAX, GIVING_WAY_LOOKED_MAX, PROBES_MAX, REGIONS_MAX};
use crate::region::{Region, Stage};
use crate::wish::Wish;

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
        let Some((most, network)) = self.crowd.most() else { return false };
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

    /// Has a region's way asked for when its network has its turn. If there is no room, the next client brings it up again.
    pub(super) fn ask(&mut self, key: (RuleId, IpNet), client: IpAddr) {
        if !self.wanted.push(key.0, key.1, client) {
            return;
        }
        if let Some(region) = self.regions.get_mut(&key) {
            region.stage = Stage::Asking;
        }
        self.ask_next();
    }

    /// Has the next ways asked for, as far as there is room.
    pub(super) fn ask_next(&mut self) {
        let probes = self.asked.values().filter(|asked| matches!(asked, Asked::Probe(..))).count();
        let room = PROBES_MAX.saturating_sub(probes).min(ASKED_MAX.saturating_sub(self.asked.len()));
        let mut left = room;
        while left > 0
            && let Some((rule, region, client)) = self.wanted.pop()
        {
            // It may be gone meanwhile, or not be wanted any more.
            let Some(known) = self.regions.get_mut(&(rule, region)).filter(|one| one.stage == Stage::Asking) else {
                continue;
            };
            if self.shut.contains(&rule) {
                known.stage = Stage::Counting;
                continue;
            }
            let ticket = self.ticket(Asked::Probe(rule, region, client));
            self.wishes.push_back(Wish::Probe { ticket, rule, client });
            left -= 1;
        }
    }
}
