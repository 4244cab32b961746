// SPDX-License-Identifier: Apache-2.0
//! When a module is wanted near clients, and for how long.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use netserv_model::ModuleName;

use crate::error::RuleError;
use crate::limits::{DEPLOYMENTS_MAX, LEASE_MIN};
use crate::moves::Moves;

/// When a module is wanted near clients, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What it deploys. A node has one module of a name, so rules with the same name share it there.
    pub module: ModuleName,
    /// How many observations of one region within [`Rule::window`] make it wanted there: 1 or more.
    pub count: u32,
    /// In what time.
    pub window: Duration,
    /// Bits of the prefix that makes clients of IPv4 one region: 0 to 32.
    pub region_v4_bits: u8,
    /// The same of IPv6: 0 to 128.
    pub region_v6_bits: u8,
    /// How long each lease lasts; it is renewed at half of it while clients are seen.
    pub lease: Duration,
    /// How long nobody is seen until the module is removed.
    pub idle: Duration,
    /// Deployments at a time.
    pub deployments_max: usize,
    /// When the module goes to another node; a rule with it has one deployment at a time, on one node.
    pub moves: Option<Moves>,
}

impl Rule {
    /// Checks the bounds.
    ///
    /// # Errors
    /// Names the key that is out of them.
    pub fn check(&self) -> Result<(), RuleError> {
        let known = [
            (self.count == 0, RuleError::Count),
            (self.window.is_zero(), RuleError::NoTime("window")),
            (self.idle.is_zero(), RuleError::NoTime("idle")),
            (self.region_v4_bits > 32, RuleError::Bits("region-v4")),
            (self.region_v6_bits > 128, RuleError::Bits("region-v6")),
            (self.lease < LEASE_MIN, RuleError::Lease),
            (!(1..=DEPLOYMENTS_MAX).contains(&self.deployments_max), RuleError::Deployments),
            (self.moves.is_some() && self.deployments_max != 1, RuleError::Moves),
        ];
        known.into_iter().find(|(is_wrong, _)| *is_wrong).map_or(Ok(()), |(_, error)| Err(error))?;
        self.moves.as_ref().map_or(Ok(()), Moves::check)
    }

    /// Returns whether clients of one region here are of one region there.
    pub(crate) fn has_regions_of(&self, other: &Rule) -> bool {
        (self.region_v4_bits, self.region_v6_bits) == (other.region_v4_bits, other.region_v6_bits)
    }

    /// Returns the region that a client is in.
    pub fn region(&self, client: IpAddr) -> IpNet {
        let client = client.to_canonical();
        let bits = if client.is_ipv4() { self.region_v4_bits } else { self.region_v6_bits };
        // Checked rules have bits that fit.
        IpNet::new(client, bits).unwrap_or_else(|_| IpNet::from(client)).trunc()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::limits::{LOOK_EVERY_MAX, LOOKS_MAX, REST_MAX};

    pub(crate) fn rule() -> Rule {
        Rule {
            module: "example.org/m".parse().unwrap(),
            count: 3,
            window: Duration::from_secs(10),
            region_v4_bits: 24,
            region_v6_bits: 56,
            lease: Duration::from_secs(60),
            idle: Duration::from_secs(120),
            deployments_max: 4,
            moves: None,
        }
    }

    pub(crate) fn moves() -> Moves {
        Moves {
            load_over: Some(900),
            load_until: 500,
            follow: true,
            looks: 3,
            every: Duration::from_secs(10),
            rest: Duration::from_secs(600),
        }
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let check = |change: &dyn Fn(&mut Rule), expected: Result<(), RuleError>| {
            let mut rule = rule();
            change(&mut rule);
            assert_eq!(rule.check(), expected);
        };
        check(&|_| {}, Ok(()));
        check(&|rule| rule.count = 0, Err(RuleError::Count));
        check(&|rule| rule.window = Duration::ZERO, Err(RuleError::NoTime("window")));
        check(&|rule| rule.idle = Duration::ZERO, Err(RuleError::NoTime("idle")));
        check(&|rule| rule.region_v4_bits = 33, Err(RuleError::Bits("region-v4")));
        check(&|rule| rule.region_v6_bits = 129, Err(RuleError::Bits("region-v6")));
        check(&|rule| rule.lease = LEASE_MIN - Duration::from_millis(1), Err(RuleError::Lease));
        check(&|rule| rule.deployments_max = 0, Err(RuleError::Deployments));
        check(&|rule| rule.deployments_max = DEPLOYMENTS_MAX + 1, Err(RuleError::Deployments));
        let moves = |change: &dyn Fn(&mut Moves), expected| {
            let mut moves = moves();
            change(&mut moves);
            check(&move |rule| (rule.deployments_max, rule.moves) = (1, Some(moves.clone())), expected);
        };
        moves(&|_| {}, Ok(()));
        check(&|rule| rule.moves = Some(self::moves()), Err(RuleError::Moves));
        moves(&|moves| moves.load_until = 901, Err(RuleError::Load));
        moves(&|moves| (moves.load_over, moves.load_until) = (None, 901), Ok(()));
        for looks in [0, LOOKS_MAX + 1] {
            moves(&|moves| moves.looks = looks, Err(RuleError::Looks));
        }
        moves(&|moves| moves.every = Duration::from_millis(999), Err(RuleError::Every));
        moves(&|moves| moves.every = LOOK_EVERY_MAX + Duration::from_millis(1), Err(RuleError::Every));
        moves(&|moves| moves.rest = REST_MAX + Duration::from_millis(1), Err(RuleError::Rest));
    }

    #[test]
    fn clients_are_grouped_by_prefix() {
        let rule = rule();
        let region = |client: &str| rule.region(client.parse().unwrap()).to_string();
        assert_eq!(region("192.0.2.77"), "192.0.2.0/24");
        assert_eq!(region("::ffff:192.0.2.77"), "192.0.2.0/24");
        assert_eq!(region("2001:db8:1:2ff::1"), "2001:db8:1:200::/56");
        let all = Rule { region_v4_bits: 0, region_v6_bits: 0, ..rule };
        assert_eq!(all.region("192.0.2.77".parse().unwrap()).to_string(), "0.0.0.0/0");
    }
}
