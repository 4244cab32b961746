// SPDX-License-Identifier: Apache-2.0
//! Filters: which packets a module sees.

mod parts;
mod wanted;
mod words;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use parts::{CONTAINER, End, Parts};
pub use wanted::WantedFilter;
pub use words::{ParseFilterError, PortRange, Protocol};

/// Which packets a module sees.
///
/// Written `[PROTO] [src PREFIX] [dst PREFIX] [sport PORTS] [port PORTS]`, where PROTO is `ip`, `tcp`, `tcp syn` (segments
/// that open a connection), `udp` or `icmp`, PREFIX is an address or `address/length`, PORTS is `5060` or `16384-32767`; `port` is the destination port.
/// `udp dst 10.2.0.0/24 port 5060`. A prefix left out matches every address of both versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Filter {
    protocol: Protocol,
    opens_only: bool,
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
        Ok(Filter { protocol, opens_only: false, source, destination, source_ports, destination_ports })
    }

    /// Returns the filter that asks only for segments that open TCP connections, or for all packets.
    ///
    /// # Errors
    /// Other protocols have no such segments.
    pub fn opening(self, opens_only: bool) -> Result<Filter, ParseFilterError> {
        match opens_only && self.protocol != Protocol::Tcp {
            true => Err(ParseFilterError::SynWithoutTcp),
            false => Ok(Filter { opens_only, ..self }),
        }
    }

    /// Returns the protocol.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns whether only segments are meant that open TCP connections: SYN without ACK, RST and FIN.
    pub fn opens_only(&self) -> bool {
        self.opens_only
    }

    /// Returns whether the filter says which TCP connections to servers are meant, and not which of their packets.
    pub fn is_of_connections(&self) -> bool {
        self.protocol == Protocol::Tcp && !self.opens_only && self.destination_ports.is_some()
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

    fn parts(&self) -> Parts {
        let Filter { protocol, opens_only, source, destination, source_ports, destination_ports } = *self;
        let (source, destination) = (source.map(End::Net), destination.map(End::Net));
        Parts { protocol, opens_only, source, destination, source_ports, destination_ports }
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
            && (!self.opens_only || flow.opens)
    }
}

impl fmt::Display for Filter {
    /// Writes the canonical form, which parses back to the same filter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().fmt(f)
    }
}

impl FromStr for Filter {
    type Err = ParseFilterError;

    fn from_str(text: &str) -> Result<Filter, ParseFilterError> {
        let Parts { protocol, opens_only, source, destination, source_ports, destination_ports } = text.parse()?;
        let net = |end: Option<End>| match end {
            Some(End::Net(net)) => Ok(Some(net)),
            Some(End::Container) => Err(ParseFilterError::Net(CONTAINER.to_owned())),
            None => Ok(None),
        };
        Filter::new(protocol, net(source)?, net(destination)?, source_ports, destination_ports)?.opening(opens_only)
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
    /// Whether the packet opens a TCP connection: it has SYN, and neither ACK nor RST nor FIN.
    pub opens: bool,
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
        check("tcp syn dst 10.2.0.7 port 80", "tcp syn dst 10.2.0.7/32 port 80");
        check("tcp syn", "tcp syn");
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
            "syn",
            "udp syn",
            "tcp syn syn",
            "tcp port 80 syn",
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
            opens: false,
        };
        assert!(filter.matches(&flow));
        flow.destination_port = None;
        assert!(!filter.matches(&flow));
    }

    #[test]
    fn segments_that_open_connections_are_told_from_others() {
        let filter = |text: &str| text.parse::<Filter>().unwrap();
        let flow = |opens| Flow {
            source: "10.0.0.1".parse().unwrap(),
            destination: "10.0.0.2".parse().unwrap(),
            protocol: 6,
            source_port: Some(1),
            destination_port: Some(80),
            opens,
        };
        assert!(filter("tcp syn port 80").matches(&flow(true)) && !filter("tcp syn port 80").matches(&flow(false)));
        assert!(filter("tcp port 80").matches(&flow(true)) && filter("tcp port 80").matches(&flow(false)));
    }
}
