// SPDX-License-Identifier: Apache-2.0
//! Message routing information (object 0, RFC 5971 A.3.1): which flow a message is about.

use std::net::IpAddr;

/// Which way along the flow a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// With the flow.
    Downstream,
    /// Against the flow.
    Upstream,
}

impl Direction {
    /// Returns the other direction.
    pub fn inverted(self) -> Direction {
        match self {
            Direction::Downstream => Direction::Upstream,
            Direction::Upstream => Direction::Downstream,
        }
    }
}

/// A flow as one of the message routing methods describes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mri {
    /// Method 0: along the path of the flow.
    PathCoupled(PathCoupled),
    /// Method 1: towards the edge of the network.
    LooseEnd(LooseEnd),
    /// A method that this node does not know.
    Other(OtherMri),
}

impl Mri {
    /// Returns the same flow in the other direction; an unknown method is given back as it is.
    pub fn inverted(&self) -> Mri {
        todo!()
    }

    /// Returns the direction, if the method is known.
    pub fn direction(&self) -> Option<Direction> {
        todo!()
    }

    /// Returns the flow's source and destination, if the method is known.
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        todo!()
    }
}

/// A flow of the path-coupled method (RFC 5971 A.3.1.1). Fields left out match everything.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathCoupled {
    source: IpAddr,
    destination: IpAddr,
    source_prefix: u8,
    destination_prefix: u8,
    protocol: Option<u8>,
    dscp: Option<u8>,
    flow_label: Option<u32>,
    spi: Option<u32>,
    source_port: Option<u16>,
    destination_port: Option<u16>,
    direction: Direction,
}

impl PathCoupled {
    /// Returns the flow between two hosts, downstream, or `None` if the addresses are of two IP versions.
    pub fn new(source: IpAddr, destination: IpAddr) -> Option<PathCoupled> {
        todo!("{source}{destination}")
    }

    /// Returns the flow in a direction.
    pub fn with_direction(self, direction: Direction) -> PathCoupled {
        PathCoupled { direction, ..self }
    }

    /// Returns the flow with wildcard addresses: prefix lengths in bits, each cut to the address length.
    pub fn with_prefixes(self, source_prefix: u8, destination_prefix: u8) -> PathCoupled {
        todo!("{source_prefix}{destination_prefix}")
    }

    /// Returns the flow of one upper-layer protocol.
    pub fn with_protocol(self, protocol: u8) -> PathCoupled {
        PathCoupled { protocol: Some(protocol), ..self }
    }

    /// Returns the flow of one protocol and ports; port 0 is a port that is not yet known.
    pub fn with_ports(self, protocol: u8, source: Option<u16>, destination: Option<u16>) -> PathCoupled {
        PathCoupled { protocol: Some(protocol), source_port: source, destination_port: destination, ..self }
    }

    /// Returns the flow of one protocol and security parameter index.
    pub fn with_spi(self, protocol: u8, spi: u32) -> PathCoupled {
        PathCoupled { protocol: Some(protocol), spi: Some(spi), ..self }
    }

    /// Returns the flow of one differentiated services code point (6 bits).
    pub fn with_dscp(self, dscp: u8) -> PathCoupled {
        PathCoupled { dscp: Some(dscp & 0x3F), ..self }
    }

    /// Returns the flow of one flow label (20 bits); IPv4 has none, and stays as it is.
    pub fn with_flow_label(self, flow_label: u32) -> PathCoupled {
        todo!("{flow_label}")
    }

    /// Returns the flow's source.
    pub fn source(&self) -> IpAddr {
        self.source
    }

    /// Returns the flow's destination.
    pub fn destination(&self) -> IpAddr {
        self.destination
    }

    /// Returns the significant bits of the source.
    pub fn source_prefix(&self) -> u8 {
        self.source_prefix
    }

    /// Returns the significant bits of the destination.
    pub fn destination_prefix(&self) -> u8 {
        self.destination_prefix
    }

    /// Returns the upper-layer protocol.
    pub fn protocol(&self) -> Option<u8> {
        self.protocol
    }

    /// Returns the differentiated services code point.
    pub fn dscp(&self) -> Option<u8> {
        self.dscp
    }

    /// Returns the IPv6 flow label.
    pub fn flow_label(&self) -> Option<u32> {
        self.flow_label
    }

    /// Returns the security parameter index.
    pub fn spi(&self) -> Option<u32> {
        self.spi
    }

    /// Returns the source port; 0 is one that is not yet known.
    pub fn source_port(&self) -> Option<u16> {
        self.source_port
    }

    /// Returns the destination port; 0 is one that is not yet known.
    pub fn destination_port(&self) -> Option<u16> {
        self.destination_port
    }

    /// Returns the direction.
    pub fn direction(&self) -> Direction {
        self.direction
    }
}

/// A flow of the loose-end method (RFC 5971 A.3.1.2). Downstream is towards the edge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LooseEnd {
    source: IpAddr,
    destination: IpAddr,
    direction: Direction,
}

impl LooseEnd {
    /// Returns the flow, or `None` if the addresses are of two IP versions.
    pub fn new(source: IpAddr, destination: IpAddr, direction: Direction) -> Option<LooseEnd> {
        (source.is_ipv4() == destination.is_ipv4()).then_some(LooseEnd { source, destination, direction })
    }

    /// Returns the discovering node.
    pub fn source(&self) -> IpAddr {
        self.source
    }

    /// Returns the address beyond what is to be discovered.
    pub fn destination(&self) -> IpAddr {
        self.destination
    }

    /// Returns the direction.
    pub fn direction(&self) -> Direction {
        self.direction
    }
}

/// An MRI that is kept as bytes: of an unknown method, or as an Error quoted it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OtherMri {
    raw: Vec<u8>,
}

impl OtherMri {
    /// Returns the routing method, MRM-ID.
    pub fn method(&self) -> u8 {
        self.raw.first().copied().unwrap_or(0)
    }

    /// Returns the object's value.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }
}
