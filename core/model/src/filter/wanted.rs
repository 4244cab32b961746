// SPDX-License-Identifier: Apache-2.0
//! Filters as manifests and requests name them, for whichever node it will be.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Filter;
use super::parts::{End, Parts};
use super::words::{ParseFilterError, Protocol};

/// Which packets a module is to see, on whichever node.
///
/// Written as a [`Filter`], where one PREFIX may be the word `self`: the addresses that the module's container has on the
/// node. `udp dst self port 5060`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct WantedFilter {
    /// What is wanted beside the container's end, which is open here.
    rest: Filter,
    container: Option<ContainerEnd>,
}

/// At which end the container is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum ContainerEnd {
    Source,
    Destination,
}

impl WantedFilter {
    /// Returns whether one end is the module's container.
    pub fn names_container(&self) -> bool {
        self.container.is_some()
    }

    /// Returns the filter, with the container's end open: it says more than is wanted if [`WantedFilter::names_container`].
    pub fn open(&self) -> &Filter {
        &self.rest
    }

    /// Returns the filter if it means the same on every node.
    pub fn everywhere(&self) -> Option<&Filter> {
        match self.container {
            None => Some(&self.rest),
            Some(ContainerEnd::Source | ContainerEnd::Destination) => None,
        }
    }

    /// Returns the filters that it stands for on a node where the container has these addresses: one, or one for each
    /// address of the IP version that the other end is of.
    pub fn on(&self, addresses: &[IpAddr]) -> Vec<Filter> {
        let Some(end) = self.container else { return vec![self.rest.clone()] };
        let at = |address: &IpAddr| {
            let (own, rest) = (Some(IpNet::from(*address)), &self.rest);
            let (source, destination) = match end {
                ContainerEnd::Source => (own, rest.destination),
                ContainerEnd::Destination => (rest.source, own),
            };
            let found = Filter::new(rest.protocol, source, destination, rest.source_ports, rest.destination_ports);
            found.and_then(|found| found.opening(rest.opens_only)).ok()
        };
        addresses.iter().filter_map(at).collect()
    }

    /// Returns whether only ends are named, as in `src 10.2.0.0/16` or `dst self`.
    pub fn is_ends_only(&self) -> bool {
        let rest = &self.rest;
        let ports = rest.source_ports.is_some() || rest.destination_ports.is_some();
        rest.protocol == Protocol::Any && !ports && self.has_ends()
    }

    /// Returns whether an end is named.
    pub fn has_ends(&self) -> bool {
        self.rest.source.is_some() || self.rest.destination.is_some() || self.names_container()
    }

    /// Returns the filter with the ends of another in place of its own.
    #[must_use]
    pub fn with_ends_of(&self, other: &WantedFilter) -> WantedFilter {
        let (source, destination) = (other.rest.source, other.rest.destination);
        WantedFilter { rest: Filter { source, destination, ..self.rest.clone() }, container: other.container }
    }
}

impl From<Filter> for WantedFilter {
    fn from(rest: Filter) -> WantedFilter {
        WantedFilter { rest, container: None }
    }
}

impl FromStr for WantedFilter {
    type Err = ParseFilterError;

    fn from_str(text: &str) -> Result<WantedFilter, ParseFilterError> {
        let Parts { protocol, opens_only, source, destination, source_ports, destination_ports } = text.parse()?;
        let net = |end: Option<End>| match end {
            Some(End::Net(net)) => Some(net),
            Some(End::Container) | None => None,
        };
        let rest = Filter::new(protocol, net(source), net(destination), source_ports, destination_ports)?;
        let rest = rest.opening(opens_only)?;
        let container = match (source, destination) {
            (Some(End::Container), Some(End::Container)) => return Err(ParseFilterError::TwoContainers),
            (Some(End::Container), _) => Some(ContainerEnd::Source),
            (_, Some(End::Container)) => Some(ContainerEnd::Destination),
            (Some(End::Net(_)) | None, Some(End::Net(_)) | None) => None,
        };
        Ok(WantedFilter { rest, container })
    }
}

impl fmt::Display for WantedFilter {
    /// Writes the canonical form, which parses back to the same filter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.rest.parts();
        match self.container {
            Some(ContainerEnd::Source) => parts.source = Some(End::Container),
            Some(ContainerEnd::Destination) => parts.destination = Some(End::Container),
            None => {}
        }
        parts.fmt(f)
    }
}

impl TryFrom<String> for WantedFilter {
    type Error = ParseFilterError;

    fn try_from(text: String) -> Result<WantedFilter, ParseFilterError> {
        text.parse()
    }
}

impl From<WantedFilter> for String {
    fn from(filter: WantedFilter) -> String {
        filter.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(text: &str) -> WantedFilter {
        text.parse().unwrap()
    }

    fn check(text: &str, addresses: &[&str], expected: &[&str]) {
        let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let found: Vec<String> = wanted(text).on(&addresses).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{text}");
        assert_eq!(wanted(&wanted(text).to_string()), wanted(text));
    }

    #[test]
    fn the_container_has_other_addresses_on_each_node() {
        let both = ["192.0.2.2", "2001:db8::2"];
        check(
            "udp dst self port 5060",
            &both,
            &["udp dst 192.0.2.2/32 port 5060", "udp dst 2001:db8::2/128 port 5060"],
        );
        check("tcp syn dst self port 80", &["192.0.2.9"], &["tcp syn dst 192.0.2.9/32 port 80"]);
        check("udp dst self port 5060", &["192.0.2.9"], &["udp dst 192.0.2.9/32 port 5060"]);
        check("src self dst 10.0.0.0/8", &both, &["ip src 192.0.2.2/32 dst 10.0.0.0/8"]);
        check("tcp src 2001:db8:1::/48 dst self", &both, &["tcp src 2001:db8:1::/48 dst 2001:db8::2/128"]);
        check("tcp src 2001:db8:1::/48 dst self", &["192.0.2.2"], &[]);
        check("dst self", &[], &[]);
        check("udp dst 10.2.0.1 port 53", &both, &["udp dst 10.2.0.1/32 port 53"]);
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for text in ["src self dst self", "src self/32", "udp port self", "self", "icmp dst self port 1"] {
            assert!(text.parse::<WantedFilter>().is_err(), "{text}");
        }
    }

    #[test]
    fn ends_are_told_from_the_rest() {
        for (text, only, has) in [
            ("src 10.2.0.0/16", true, true),
            ("dst self", true, true),
            ("udp dst self", false, true),
            ("tcp port 80", false, false),
            ("ip", false, false),
        ] {
            assert_eq!((wanted(text).is_ends_only(), wanted(text).has_ends()), (only, has), "{text}");
        }
        let both = wanted("udp port 5060").with_ends_of(&wanted("src 10.2.0.0/16 dst self"));
        assert_eq!(both.to_string(), "udp src 10.2.0.0/16 dst self port 5060");
    }
}
