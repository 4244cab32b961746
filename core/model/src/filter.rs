// SPDX-License-Identifier: Apache-2.0
//! Filters: which packets a module sees.

mod parts;
mod wanted;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use parts::{CONTAINER, End, Parts};
pub use wanted::WantedFilter;

/// The upper-layer protocol that a filter asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// Every protocol.
    #[default]
    Any,
    /// TCP, 6.
    Tcp,
    /// UDP, 17.
    Udp,
    /// ICMP (1) over IPv4, ICMPv6 (58) over IPv6.
    Icmp,
}

impl Protocol {
    /// Returns whether an IP protocol number is meant by this protocol.
    pub fn matches(self, number: u8) -> bool {
        match self {
            Protocol::Any => true,
            Protocol::Tcp => number == 6,
            Protocol::Udp => number == 17,
            Protocol::Icmp => number == 1 || number == 58,
        }
    }

    /// Returns whether packets of this protocol have ports.
    pub fn has_ports(self) -> bool {
        matches!(self, Protocol::Tcp | Protocol::Udp)
    }

    /// Returns the name used in filter text.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Any => "ip",
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Icmp => "icmp",
        }
    }
}

/// An inclusive range of ports; `first` is never above `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Every port.
    pub const ALL: PortRange = PortRange { first: 0, last: u16::MAX };

    /// Returns the range, or `None` if it is upside down.
    pub fn new(first: u16, last: u16) -> Option<PortRange> {
        (first <= last).then_some(PortRange { first, last })
    }

    /// Returns the range that holds one port.
    pub fn single(port: u16) -> PortRange {
        PortRange { first: port, last: port }
    }

    /// Returns the lowest port.
    pub fn first(self) -> u16 {
        self.first
    }

    /// Returns the highest port.
    pub fn last(self) -> u16 {
        self.last
    }

    /// Returns whether a port is in the range.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }

    /// Returns whether every port of `other` is in this range.
    pub fn covers(self, other: PortRange) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { write!(f, "{}", self.first) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}

impl FromStr for PortRange {
    type Err = ParseFilterError;

    fn from_str(text: &str) -> Result<PortRange, ParseFilterError> {
        let bad = || ParseFilterError::Port(text.chars().take(40).collect());
        let port =
            |digits: &str| -> Option<u16> { digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())? };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let range = port(first).zip(port(last)).and_then(|(first, last)| PortRange::new(first, last));
        range.ok_or_else(bad)
    }
}

/// Which packets a module sees.
///
/// Written `[PROTO] [src PREFIX] [dst PREFIX] [sport PORTS] [port PORTS]`, where PROTO is `ip`, `tcp`, `udp` or `icmp`,
/// PREFIX is an address or `address/length`, PORTS is `5060` or `16384-32767`; `port` is the destination port.
/// `udp dst 10.2.0.0/24 port 5060`. A prefix left out matches every address of both versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Filter {
    protocol: Protocol,
    source: Option<IpNet>,
    destination: Option<IpNet>,
    source_ports: Option<PortRange>,
    destination_ports: Option<PortRange>,
}

impl Filter {
    /// Builds a filter from its parts.
    ///
    /// # Errors
    /// Ports without TCP or UDP, and prefixes of two IP versions, match nothing and are refused.
    pub fn new(
        protocol: Protocol,
        source: Option<IpNet>,
        destination: Option<IpNet>,
        source_ports: Option<PortRange>,
        destination_ports: Option<PortRange>,
    ) -> Result<Filter, ParseFilterError> {
        if (source_ports.is_some() || destination_ports.is_some()) && !protocol.has_ports() {
            return Err(ParseFilterError::PortsWithoutProtocol);
        }
        if let (Some(source), Some(destination)) = (source, destination)
            && source.addr().is_ipv4() != destination.addr().is_ipv4()
        {
            return Err(ParseFilterError::MixedVersions);
        }
        let (source, destination) = (source.map(|net| net.trunc()), destination.map(|net| net.trunc()));
        Ok(Filter { protocol, source, destination, source_ports, destination_ports })
    }

    /// Returns the protocol.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns the source prefix.
    pub fn source(&self) -> Option<IpNet> {
        self.source
    }

    /// Returns the destination prefix.
    pub fn destination(&self) -> Option<IpNet> {
        self.destination
    }

    /// Returns the source ports.
    pub fn source_ports(&self) -> Option<PortRange> {
        self.source_ports
    }

    /// Returns the destination ports.
    pub fn destination_ports(&self) -> Option<PortRange> {
        self.destination_ports
    }

    /// Returns the IP version (4 or 6) that the prefixes fix, or `None` for both.
    pub fn version(&self) -> Option<u8> {
        self.source.or(self.destination).map(|net| if net.addr().is_ipv4() { 4 } else { 6 })
    }

    /// Returns whether a packet of this flow is meant.
    ///
    /// A flow without ports (a later fragment, or a protocol that has none) never matches a filter with ports.
    pub fn matches(&self, flow: &Flow) -> bool {
        let port_ok = |wanted: Option<PortRange>, port: Option<u16>| match (wanted, port) {
            (None, _) => true,
            (Some(range), Some(port)) => range.contains(port),
            (Some(_), None) => false,
        };
        self.protocol.matches(flow.protocol)
            && self.source.is_none_or(|net| net.contains(&flow.source))
            && self.destination.is_none_or(|net| net.contains(&flow.destination))
            && port_ok(self.source_ports, flow.source_port)
            && port_ok(self.destination_ports, flow.destination_port)
    }
}

impl fmt::Display for Filter {
    /// Writes the canonical form, which parses back to the same filter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.protocol.as_str())?;
        if let Some(net) = self.source {
            write!(f, " src {net}")?;
        }
        if let Some(net) = self.destination {
            write!(f, " dst {net}")?;
        }
        if let Some(ports) = self.source_ports {
            write!(f, " sport {ports}")?;
        }
        if let Some(ports) = self.destination_ports {
            write!(f, " port {ports}")?;
        }
        Ok(())
    }
}

impl FromStr for Filter {
    type Err = ParseFilterError;

    fn from_str(text: &str) -> Result<Filter, ParseFilterError> {
        let Parts { protocol, source, destination, source_ports, destination_ports } = text.parse()?;
        let net = |end: Option<End>| match end {
            Some(End::Net(net)) => Ok(Some(net)),
            Some(End::Container) => Err(ParseFilterError::Net(CONTAINER.to_owned())),
            None => Ok(None),
        };
        Filter::new(protocol, net(source)?, net(destination)?, source_ports, destination_ports)
    }
}

impl TryFrom<String> for PortRange {
    type Error = ParseFilterError;

    fn try_from(text: String) -> Result<PortRange, ParseFilterError> {
        text.parse()
    }
}

impl From<PortRange> for String {
    fn from(range: PortRange) -> String {
        range.to_string()
    }
}

impl TryFrom<String> for Filter {
    type Error = ParseFilterError;

    fn try_from(text: String) -> Result<Filter, ParseFilterError> {
        text.parse()
    }
}

impl From<Filter> for String {
    fn from(filter: Filter) -> String {
        filter.to_string()
    }
}

/// What a filter looks at in one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// IP source.
    pub source: IpAddr,
    /// IP destination.
    pub destination: IpAddr,
    /// Upper-layer protocol number, after IPv6 extension headers.
    pub protocol: u8,
    /// Source port, if the packet shows one.
    pub source_port: Option<u16>,
    /// Destination port, if the packet shows one.
    pub destination_port: Option<u16>,
}

/// Why text is not a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseFilterError {
    /// Nothing was written.
    #[error("an empty filter; write for instance `udp dst 10.2.0.0/24 port 5060`")]
    Empty,
    /// A word that means nothing here, is repeated, or lacks its value.
    #[error(
        "`{0}` is not understood here, repeated or lacks its value; a filter is `[ip|tcp|udp|icmp] [src NET] [dst NET] [sport PORTS] [port PORTS]`"
    )]
    Word(String),
    /// Not a prefix.
    #[error("`{0}` is not an address or a prefix such as 10.2.0.0/24")]
    Net(String),
    /// Not a port or a range of ports.
    #[error("`{0}` is not a port or a range such as 16384-32767")]
    Port(String),
    /// Ports need TCP or UDP.
    #[error("ports need `tcp` or `udp` in front")]
    PortsWithoutProtocol,
    /// The word `self` for both ends.
    #[error("`self` is one end only: what a container sends to itself passes no filter")]
    TwoContainers,
    /// An IPv4 and an IPv6 prefix in one filter.
    #[error("source and destination are of different IP versions, so no packet would match")]
    MixedVersions,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, canonical: &str) {
        let filter: Filter = text.parse().unwrap();
        assert_eq!(filter.to_string(), canonical);
        assert_eq!(canonical.parse::<Filter>().unwrap(), filter);
    }

    #[test]
    fn filters_have_a_canonical_form() {
        check("udp dst 10.2.0.7/24 port 5060", "udp dst 10.2.0.0/24 port 5060");
        check("dst 10.2.0.1", "ip dst 10.2.0.1/32");
        check("tcp  port 80-90 src 2001:db8::/32", "tcp src 2001:db8::/32 port 80-90");
        check("ip", "ip");
    }

    #[test]
    fn impossible_filters_are_refused() {
        for text in [
            "",
            "udp dst",
            "udp dst nowhere",
            "port 5060",
            "icmp port 1",
            "udp port 70000",
            "udp port 9-1",
            "udp port 1 port 2",
            "src 10.0.0.0/8 dst 2001:db8::/32",
            "udp port +5",
            "udp port -",
            "udp dst self",
        ] {
            assert!(text.parse::<Filter>().is_err(), "{text}");
        }
    }

    #[test]
    fn ports_never_match_a_later_fragment() {
        let filter: Filter = "udp port 5060".parse().unwrap();
        let mut flow = Flow {
            source: "10.0.0.1".parse().unwrap(),
            destination: "10.0.0.2".parse().unwrap(),
            protocol: 17,
            source_port: Some(1),
            destination_port: Some(5060),
        };
        assert!(filter.matches(&flow));
        flow.destination_port = None;
        assert!(!filter.matches(&flow));
    }
}
