// SPDX-License-Identifier: Apache-2.0
//! Which addresses users' containers have: those that the operator gave, or free ones of the operator's prefixes.
//!
//! A user keeps an address for as long as the configuration knows the user and the address lies in a prefix, also while
//! it has no module. One that a user lets go of is the last to be chosen again, so that late packets do not reach another user.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use ipnet::IpNet;
use netserv_model::policy::AddressPlan;
use netserv_model::{Refusal, RefusalKind, UserId};

use crate::limits::ADDRESSES_RESTING_MAX;

/// The addresses of all users.
#[derive(Debug, Default)]
pub struct Addresses {
    prefixes: Vec<IpNet>,
    /// Given by the operator; none for a user who gets some of `prefixes`.
    fixed: BTreeMap<UserId, Vec<IpAddr>>,
    /// Chosen by the node.
    chosen: BTreeMap<UserId, Vec<IpAddr>>,
    /// Those that users let go of, the last one at the end.
    resting: VecDeque<IpAddr>,
}

impl Addresses {
    /// Returns what was chosen when the node last ran. A plan is to be taken over next.
    pub fn new(chosen: BTreeMap<UserId, Vec<IpAddr>>) -> Addresses {
        Addresses { chosen, ..Addresses::default() }
    }

    /// Takes a plan over, and lets go of addresses that are nobody's by it. Returns whose were let go of.
    pub fn set_plan(&mut self, plan: AddressPlan) -> Vec<UserId> {
        self.prefixes = plan.prefixes.iter().map(IpNet::trunc).collect();
        self.fixed = plan.users;
        let given: BTreeSet<IpAddr> = self.fixed.values().flatten().copied().collect();
        let (prefixes, users) = (&self.prefixes, &self.fixed);
        let kept = |address: &IpAddr| is_usable(prefixes, *address) && !given.contains(address);
        let good = |user: &UserId, addresses: &[IpAddr]| {
            users.get(user).is_some_and(Vec::is_empty) && addresses.iter().all(kept)
        };
        let gone = self.chosen.iter().filter(|(user, addresses)| !good(user, addresses));
        let gone: Vec<UserId> = gone.map(|(user, _)| user.clone()).collect();
        for address in gone.iter().filter_map(|user| self.chosen.remove(user)).flatten() {
            self.resting.retain(|other| *other != address);
            self.resting.push_back(address);
        }
        self.resting.drain(..self.resting.len().saturating_sub(ADDRESSES_RESTING_MAX));
        gone
    }

    /// Returns a user's addresses as they are, none if there are none yet.
    pub fn of(&self, user: &UserId) -> &[IpAddr] {
        let fixed = self.fixed.get(user).filter(|given| !given.is_empty());
        fixed.or_else(|| self.chosen.get(user)).map_or(&[], Vec::as_slice)
    }

    /// Returns whether an address is some user's.
    pub fn has(&self, address: IpAddr) -> bool {
        self.fixed.values().chain(self.chosen.values()).any(|addresses| addresses.contains(&address))
    }

    /// Returns a user's addresses; without any, chooses one of each version of IP that there are prefixes of. Nobody gets
    /// those that are `taken`, the node's own among them.
    ///
    /// # Errors
    /// There are no prefixes (`no-network`), or no free address is left (`quota-exceeded`).
    pub fn choose(&mut self, user: &UserId, taken: &BTreeSet<IpAddr>) -> Result<Vec<IpAddr>, Refusal> {
        let has = self.of(user);
        if !has.is_empty() {
            return Ok(has.to_vec());
        }
        if self.prefixes.is_empty() {
            let detail = "this node has no addresses for containers (`network.prefixes`)";
            return Err(Refusal::new(RefusalKind::NoNetwork, detail));
        }
        let taken: BTreeSet<IpAddr> =
            self.fixed.values().chain(self.chosen.values()).flatten().chain(taken).copied().collect();
        let not_fresh: BTreeSet<IpAddr> = taken.iter().chain(&self.resting).copied().collect();
        let mut chosen = Vec::new();
        for is_v4 in [true, false] {
            let prefixes = self.prefixes.iter().filter(|prefix| prefix.addr().is_ipv4() == is_v4);
            let of_version: Vec<IpNet> = prefixes.copied().collect();
            if of_version.is_empty() {
                continue;
            }
            let is_free = |address: &&IpAddr| is_usable(&of_version, **address) && !taken.contains(*address);
            let fresh = of_version.iter().find_map(|prefix| free_in(*prefix, &not_fresh));
            let Some(address) = fresh.or_else(|| self.resting.iter().find(is_free).copied()) else {
                let version = if is_v4 { 4 } else { 6 };
                let detail = format!("no IPv{version} address for another container is left in `network.prefixes`");
                return Err(Refusal::new(RefusalKind::QuotaExceeded, detail));
            };
            chosen.push(address);
        }
        self.resting.retain(|address| !chosen.contains(address));
        self.chosen.insert(user.clone(), chosen.clone());
        Ok(chosen)
    }
}

/// Returns the lowest address of a prefix that is not taken. It looks at no more addresses than are taken, and two.
fn free_in(prefix: IpNet, taken: &BTreeSet<IpAddr>) -> Option<IpAddr> {
    prefix.hosts().find(|address| is_usable(&[prefix], *address) && !taken.contains(address))
}

/// Returns whether a container may have the address: it lies in a prefix, and is not that of the prefix itself, which is
/// its network's in IPv4 and every router's in IPv6 (RFC 4291 §2.6.1), nor the broadcast's.
fn is_usable(prefixes: &[IpNet], address: IpAddr) -> bool {
    prefixes.iter().any(|prefix| {
        let whole = prefix.max_prefix_len() - prefix.prefix_len() <= 1;
        let special = address == prefix.network() || (address.is_ipv4() && address == prefix.broadcast());
        prefix.contains(&address) && (whole || !special)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_gets_one_address_of_each_version_and_keeps_them() {
        let mut addresses = with(plan(&["192.0.2.0/29", "2001:db8::/64"], &["a", "b"]));
        let node = set(&["192.0.2.1", "2001:db8::1"]);
        assert_eq!(texts(&addresses.choose(&user("a"), &node).unwrap()), ["192.0.2.2", "2001:db8::2"]);
        assert_eq!(texts(&addresses.choose(&user("b"), &node).unwrap()), ["192.0.2.3", "2001:db8::3"]);
        assert_eq!(texts(&addresses.choose(&user("a"), &node).unwrap()), ["192.0.2.2", "2001:db8::2"]);
        assert_eq!(texts(addresses.of(&user("b"))), ["192.0.2.3", "2001:db8::3"]);
    }

    #[test]
    fn one_version_alone_and_the_smallest_prefixes_are_enough() {
        for (prefixes, expected) in [
            (&["192.0.2.8/31"][..], ["192.0.2.8", "192.0.2.9"]),
            (&["192.0.2.8/32", "192.0.2.5/32"][..], ["192.0.2.8", "192.0.2.5"]),
            (&["2001:db8::/126"][..], ["2001:db8::1", "2001:db8::2"]),
        ] {
            let mut addresses = with(plan(prefixes, &["a", "b"]));
            let found = ["a", "b"].map(|name| addresses.choose(&user(name), &BTreeSet::new()).unwrap());
            assert_eq!(found.map(|list| texts(&list).join(" ")), expected, "{prefixes:?}");
        }
    }

    #[test]
    fn when_no_address_is_left_the_reason_is_told() {
        let users = ["a", "b", "c"];
        let mut addresses = with(plan(&["192.0.2.0/30", "2001:db8::/64"], &users));
        for name in ["a", "b"] {
            addresses.choose(&user(name), &BTreeSet::new()).unwrap();
        }
        let refusal = addresses.choose(&user("c"), &BTreeSet::new()).unwrap_err();
        assert!(refusal.kind == RefusalKind::QuotaExceeded && refusal.detail.contains("IPv4"), "{refusal}");
        assert!(addresses.of(&user("c")).is_empty());
        addresses.set_plan(plan(&["192.0.2.0/30", "2001:db8::/64"], &["b", "c"]));
        assert_eq!(texts(&addresses.choose(&user("c"), &BTreeSet::new()).unwrap()), ["192.0.2.1", "2001:db8::3"]);
        let mut none = with(plan(&[], &users));
        assert_eq!(none.choose(&user("a"), &BTreeSet::new()).unwrap_err().kind, RefusalKind::NoNetwork);
    }

    /// Goal: a late packet for a user who is gone does not reach another one, as long as there are other addresses. Method: users come and
    /// go; no address comes again before each other one did, and none is ever refused.
    #[test]
    fn an_address_that_was_let_go_of_is_the_last_to_be_chosen_again() {
        let mut addresses = Addresses::default();
        let mut next = |n: usize| {
            let name = format!("u{n}");
            addresses.set_plan(plan(&["192.0.2.0/29"], &[&name]));
            texts(&addresses.choose(&user(&name), &BTreeSet::new()).unwrap()).concat()
        };
        let all = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5", "192.0.2.6"];
        assert_eq!((0..18).map(&mut next).collect::<Vec<_>>(), all.repeat(3));
        let mut addresses = Addresses::default();
        for n in 0..=ADDRESSES_RESTING_MAX {
            addresses.set_plan(plan(&["2001:db8::/64"], &[&format!("u{n}")]));
            addresses.choose(&user(&format!("u{n}")), &BTreeSet::new()).unwrap();
        }
        addresses.set_plan(plan(&["2001:db8::/64"], &["last"]));
        assert_eq!(addresses.resting.len(), ADDRESSES_RESTING_MAX, "one more, so the first is fresh again");
        assert_eq!(texts(&addresses.choose(&user("last"), &BTreeSet::new()).unwrap()), ["2001:db8::1"]);
    }

    #[test]
    fn what_the_operator_gave_comes_first() {
        let mut given_later = plan(&["192.0.2.0/29"], &["a", "b"]);
        let remembered = BTreeMap::from([
            (user("a"), vec!["192.0.2.2".parse().unwrap()]),
            (user("b"), vec!["192.0.2.1".parse().unwrap()]),
            (user("gone"), vec!["192.0.2.3".parse().unwrap()]),
        ]);
        let mut addresses = Addresses::new(remembered);
        assert_eq!(addresses.set_plan(given_later.clone()), [user("gone")]);
        assert_eq!(texts(addresses.of(&user("b"))), ["192.0.2.1"]);
        assert!(addresses.of(&user("gone")).is_empty());
        let given = ["192.0.2.1", "198.51.100.7"].map(|text| text.parse().unwrap());
        given_later.users.insert(user("a"), given.to_vec());
        assert_eq!(addresses.set_plan(given_later.clone()), [user("a"), user("b")]);
        assert_eq!(texts(addresses.of(&user("a"))), ["192.0.2.1", "198.51.100.7"]);
        assert_eq!(texts(&addresses.choose(&user("b"), &BTreeSet::new()).unwrap()), ["192.0.2.4"]);
    }

    fn with(plan: AddressPlan) -> Addresses {
        let mut addresses = Addresses::default();
        addresses.set_plan(plan);
        addresses
    }

    fn plan(prefixes: &[&str], users: &[&str]) -> AddressPlan {
        let prefixes = prefixes.iter().map(|text| text.parse().unwrap()).collect();
        AddressPlan { prefixes, users: users.iter().map(|name| (user(name), Vec::new())).collect() }
    }

    fn user(name: &str) -> UserId {
        name.parse().unwrap()
    }

    fn set(texts: &[&str]) -> BTreeSet<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn texts(addresses: &[IpAddr]) -> Vec<String> {
        addresses.iter().map(ToString::to_string).collect()
    }
}
