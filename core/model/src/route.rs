// SPDX-License-Identifier: Apache-2.0
//! What changed in a node's routing table.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::limits::ROUTE_PREFIXES_MAX;

/// Where routes changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteChange {
    /// Anywhere: links or addresses changed, or too much did to tell where.
    All,
    /// Toward destinations under these prefixes, at most [`ROUTE_PREFIXES_MAX`].
    Toward(Vec<IpNet>),
}

impl RouteChange {
    /// Adds another change.
    pub fn add(&mut self, other: RouteChange) {
        match (&mut *self, other) {
            (RouteChange::All, _) => {}
            (RouteChange::Toward(_), RouteChange::All) => *self = RouteChange::All,
            (RouteChange::Toward(prefixes), RouteChange::Toward(others)) => {
                for prefix in others {
                    if !prefixes.iter().any(|known| known.contains(&prefix)) {
                        prefixes.retain(|known| !prefix.contains(known));
                        prefixes.push(prefix);
                    }
                }
                if prefixes.len() > ROUTE_PREFIXES_MAX {
                    *self = RouteChange::All;
                }
            }
        }
    }

    /// Returns whether packets to a destination may take another way.
    #[must_use]
    pub fn concerns(&self, destination: IpAddr) -> bool {
        match self {
            RouteChange::All => true,
            RouteChange::Toward(prefixes) => prefixes.iter().any(|prefix| prefix.contains(&destination)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toward(prefixes: &[&str]) -> RouteChange {
        RouteChange::Toward(prefixes.iter().map(|prefix| prefix.parse().unwrap()).collect())
    }

    #[test]
    fn changes_add_up() {
        let mut change = toward(&["10.1.0.0/16"]);
        change.add(toward(&["10.1.2.0/24", "fd00::/16"]));
        assert_eq!(change, toward(&["10.1.0.0/16", "fd00::/16"]));
        change.add(toward(&["10.0.0.0/8"]));
        assert_eq!(change, toward(&["fd00::/16", "10.0.0.0/8"]));
        assert!(change.concerns("10.9.9.9".parse().unwrap()) && change.concerns("fd00::9".parse().unwrap()));
        assert!(!change.concerns("11.0.0.1".parse().unwrap()) && !change.concerns("fe80::1".parse().unwrap()));
        change.add(RouteChange::All);
        assert!(change.concerns("11.0.0.1".parse().unwrap()));
    }

    #[test]
    fn a_default_route_concerns_its_version_of_ip() {
        let change = toward(&["0.0.0.0/0"]);
        assert!(change.concerns("192.0.2.1".parse().unwrap()) && !change.concerns("fd00::1".parse().unwrap()));
    }

    #[test]
    fn more_than_route_prefixes_max_prefixes_are_everything() {
        let mut change = RouteChange::Toward(Vec::new());
        let prefix = |n: usize| toward(&[&format!("10.0.{n}.0/24")]);
        (0..ROUTE_PREFIXES_MAX).for_each(|n| change.add(prefix(n)));
        assert_ne!(change, RouteChange::All);
        change.add(prefix(ROUTE_PREFIXES_MAX));
        assert_eq!(change, RouteChange::All);
    }
}
