// SPDX-License-Identifier: Apache-2.0
//! Regions whose ways are to be asked for: networks take turns, however many regions each of them has.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use ipnet::IpNet;

use crate::RuleId;
use crate::limits::{NETWORKS_MAX, WANTED_PER_NETWORK_MAX};

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
    pub(super) fn push(&mut self, rule: RuleId, region: IpNet, client: IpAddr) -> bool {
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

    pub(super) fn pop(&mut self) -> Option<(RuleId, IpNet, IpAddr)> {
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
