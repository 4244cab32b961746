// SPDX-License-Identifier: Apache-2.0
//! Regions whose ways are to be asked for: networks take turns, however many regions each of them has.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use ipnet::IpNet;

use super::{Asked, Placement};
use crate::RuleId;
use crate::limits::{ASKED_MAX, NETWORKS_MAX, PROBES_MAX, WANTED_PER_NETWORK_MAX};
use crate::region::Stage;
use crate::wish::Wish;

/// Bits of the prefix that makes regions of IPv4 one network.
const NETWORK_V4_BITS: u8 = 16;
/// The same of IPv6.
const NETWORK_V6_BITS: u8 = 40;

/// Regions that wait to be asked for, with the client toward whom.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    waiting: BTreeMap<IpNet, VecDeque<(RuleId, IpNet, IpAddr)>>,
    /// The networks of those; the first has the next turn.
    turns: VecDeque<IpNet>,
}

impl Wanted {
    /// Takes a region; returns false if it finds no room.
    fn push(&mut self, rule: RuleId, region: IpNet, client: IpAddr) -> bool {
        let network = network(region);
        let is_new = !self.waiting.contains_key(&network);
        if is_new && self.turns.len() >= NETWORKS_MAX {
            return false;
        }
        let waiting = self.waiting.entry(network).or_default();
        if waiting.len() >= WANTED_PER_NETWORK_MAX {
            return false;
        }
        waiting.push_back((rule, region, client));
        if is_new {
            self.turns.push_back(network);
        }
        true
    }

    fn pop(&mut self) -> Option<(RuleId, IpNet, IpAddr)> {
        let network = self.turns.pop_front()?;
        let waiting = self.waiting.get_mut(&network)?;
        let next = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&network);
        } else {
            self.turns.push_back(network);
        }
        next
    }
}

impl Placement {
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

/// Returns the network that a region is in.
pub(super) fn network(region: IpNet) -> IpNet {
    let bits = if region.addr().is_ipv4() { NETWORK_V4_BITS } else { NETWORK_V6_BITS };
    IpNet::new(region.addr(), bits.min(region.prefix_len())).map_or(region, |network| network.trunc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_take_turns_and_have_bounds() {
        let mut wanted = Wanted::default();
        let mut push = |region: &str| wanted.push(RuleId(0), region.parse().unwrap(), [192, 0, 2, 1].into());
        for n in 0..WANTED_PER_NETWORK_MAX {
            assert!(push(&format!("10.1.{n}.0/24")));
        }
        assert!(!push("10.1.200.0/24") && push("10.2.0.0/24") && push("2001:db8::/56") && push("2001:db8:100::/56"));
        assert!(push("10.0.0.0/8"), "a region may be wider than a network");
        let next: Vec<String> = (0..6).map(|_| wanted.pop().unwrap().1.to_string()).collect();
        assert_eq!(
            next,
            ["10.1.0.0/24", "10.2.0.0/24", "2001:db8::/56", "2001:db8:100::/56", "10.0.0.0/8", "10.1.1.0/24"]
        );
        assert_eq!(std::iter::from_fn(|| wanted.pop()).count(), WANTED_PER_NETWORK_MAX - 2);
        for n in 0..NETWORKS_MAX + 1 {
            let [.., a, b] = n.to_be_bytes();
            let pushed = wanted.push(RuleId(0), IpNet::new([a, b, 0, 0].into(), 24).unwrap(), [192, 0, 2, 1].into());
            assert_eq!(pushed, n < NETWORKS_MAX);
        }
    }
}
