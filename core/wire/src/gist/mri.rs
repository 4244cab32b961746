// SPDX-License-Identifier: Apache-2.0
//! Message routing information (object 0, RFC 5971 A.3.1): which flow a message is about.

use std::net::IpAddr;

use super::ErrorCode;
use super::error::ValueError;
use super::reader::{IpVersion, Reader, put_address};

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
        match self {
            Mri::PathCoupled(flow) => Mri::PathCoupled(flow.clone().with_direction(flow.direction.inverted())),
            Mri::LooseEnd(flow) => Mri::LooseEnd(LooseEnd { direction: flow.direction.inverted(), ..flow.clone() }),
            Mri::Other(other) => Mri::Other(other.clone()),
        }
    }

    /// Returns the direction, if the method is known.
    pub fn direction(&self) -> Option<Direction> {
        match self {
            Mri::PathCoupled(flow) => Some(flow.direction),
            Mri::LooseEnd(flow) => Some(flow.direction),
            Mri::Other(_) => None,
        }
    }

    /// Returns the flow's source and destination, if the method is known.
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        match self {
            Mri::PathCoupled(flow) => Some((flow.source, flow.destination)),
            Mri::LooseEnd(flow) => Some((flow.source, flow.destination)),
            Mri::Other(_) => None,
        }
    }

    /// Appends the object's value; hashing an MRI into a cookie uses these bytes too.
    pub fn emit_value(&self, out: &mut Vec<u8>) {
        match self {
            Mri::PathCoupled(flow) => flow.emit(out),
            Mri::LooseEnd(flow) => flow.emit(out),
            Mri::Other(other) => out.extend_from_slice(&other.raw),
        }
    }

    /// Reads what [`Mri::emit_value`] wrote; `None` if it is no MRI.
    pub fn from_value(value: &[u8]) -> Option<Mri> {
        Mri::parse(value).ok()
    }

    pub(super) fn parse(value: &[u8]) -> Result<Mri, ValueError> {
        let mut reader = Reader::new(value);
        let method = reader.u8()?;
        let _nat_flag = reader.u8()?;
        let mri = match method {
            METHOD_PATH_COUPLED => Mri::PathCoupled(PathCoupled::parse(&mut reader)?),
            METHOD_LOOSE_END => Mri::LooseEnd(LooseEnd::parse(&mut reader)?),
            _ => return Ok(Mri::Other(OtherMri { raw: value.to_vec() })),
        };
        reader.finish()?;
        Ok(mri)
    }

    /// Reads an MRI that is only quoted: what cannot be understood is kept as bytes.
    pub(super) fn parse_quoted(value: &[u8]) -> Mri {
        Mri::parse(value).unwrap_or_else(|_| Mri::Other(OtherMri { raw: value.to_vec() }))
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
        let prefix = address_bits(source);
        (prefix == address_bits(destination)).then_some(PathCoupled {
            source,
            destination,
            source_prefix: prefix,
            destination_prefix: prefix,
            protocol: None,
            dscp: None,
            flow_label: None,
            spi: None,
            source_port: None,
            destination_port: None,
            direction: Direction::Downstream,
        })
    }

    /// Returns the flow in a direction.
    pub fn with_direction(self, direction: Direction) -> PathCoupled {
        PathCoupled { direction, ..self }
    }

    /// Returns the flow between other hosts, or `None` if they are of another IP version.
    pub fn with_addresses(self, source: IpAddr, destination: IpAddr) -> Option<PathCoupled> {
        let same = source.is_ipv4() == self.source.is_ipv4() && destination.is_ipv4() == self.source.is_ipv4();
        same.then_some(PathCoupled { source, destination, ..self })
    }

    /// Returns the flow with wildcard addresses: prefix lengths in bits, each cut to the address length.
    pub fn with_prefixes(self, source_prefix: u8, destination_prefix: u8) -> PathCoupled {
        let bits_max = address_bits(self.source);
        PathCoupled {
            source_prefix: source_prefix.min(bits_max),
            destination_prefix: destination_prefix.min(bits_max),
            ..self
        }
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
        PathCoupled { flow_label: self.source.is_ipv6().then_some(flow_label & 0x000F_FFFF), ..self }
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

    fn parse(reader: &mut Reader<'_>) -> Result<PathCoupled, ValueError> {
        let flags = reader.u16()?;
        let version = IpVersion::parse(flags, 2)?;
        let has = |flag: u16| flags & flag != 0;
        check_flags(flags, version)?;
        let (source, destination) = (reader.address(version)?, reader.address(version)?);
        let prefixes_at = reader.position();
        let [source_prefix, destination_prefix, protocol, traffic_class] = reader.array()?;
        if source_prefix.max(destination_prefix) > address_bits(source) {
            return Err(ValueError::unsupported(prefixes_at, "a prefix that is longer than an address"));
        }
        let flow_label = has(FLAG_FLOW_LABEL).then(|| reader.u32()).transpose()?.map(|word| word & 0x000F_FFFF);
        let spi = has(FLAG_SPI).then(|| reader.u32()).transpose()?;
        let ports = has(FLAG_SOURCE_PORT | FLAG_DESTINATION_PORT).then(|| reader.u32()).transpose()?.unwrap_or(0);
        let [source_port, destination_port] = halves(ports);
        Ok(PathCoupled {
            source,
            destination,
            source_prefix,
            destination_prefix,
            protocol: has(FLAG_PROTOCOL).then_some(protocol),
            dscp: has(FLAG_DSCP).then_some(traffic_class >> 2),
            flow_label,
            spi,
            source_port: has(FLAG_SOURCE_PORT).then_some(source_port),
            destination_port: has(FLAG_DESTINATION_PORT).then_some(destination_port),
            direction: if has(FLAG_UPSTREAM) { Direction::Upstream } else { Direction::Downstream },
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[METHOD_PATH_COUPLED, 0x00]);
        out.extend_from_slice(&self.flags().to_be_bytes());
        put_address(out, self.source);
        put_address(out, self.destination);
        out.extend_from_slice(&[self.source_prefix, self.destination_prefix]);
        out.extend_from_slice(&[self.protocol.unwrap_or(0), self.dscp.unwrap_or(0) << 2]);
        for word in [self.flow_label, self.spi].into_iter().flatten() {
            out.extend_from_slice(&word.to_be_bytes());
        }
        if self.source_port.is_some() || self.destination_port.is_some() {
            out.extend_from_slice(&self.source_port.unwrap_or(0).to_be_bytes());
            out.extend_from_slice(&self.destination_port.unwrap_or(0).to_be_bytes());
        }
    }

    fn flags(&self) -> u16 {
        let set = [
            (FLAG_PROTOCOL, self.protocol.is_some()),
            (FLAG_DSCP, self.dscp.is_some()),
            (FLAG_FLOW_LABEL, self.flow_label.is_some()),
            (FLAG_SPI, self.spi.is_some()),
            (FLAG_SOURCE_PORT, self.source_port.is_some()),
            (FLAG_DESTINATION_PORT, self.destination_port.is_some()),
            (FLAG_UPSTREAM, self.direction == Direction::Upstream),
        ];
        let flags = set.into_iter().filter(|(_, on)| *on).map(|(flag, _)| flag);
        flags.fold(IpVersion::field(self.source), |field, flag| field | flag)
    }
}

/// RFC 5971 A.3.1.1: a flow label is of IPv6 only; ports and SPI mean nothing without the protocol.
fn check_flags(flags: u16, version: IpVersion) -> Result<(), ValueError> {
    let has = |flag: u16| flags & flag != 0;
    let needs_protocol = has(FLAG_SPI | FLAG_SOURCE_PORT | FLAG_DESTINATION_PORT);
    if (has(FLAG_FLOW_LABEL) && version == IpVersion::V4) || (needs_protocol && !has(FLAG_PROTOCOL)) {
        return Err(ValueError::new(ErrorCode::InvalidFlagCombination, 2, "flags of an MRI contradict each other"));
    }
    Ok(())
}

fn halves(word: u32) -> [u16; 2] {
    let [a, b, c, d] = word.to_be_bytes();
    [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
}

fn address_bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
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

    fn parse(reader: &mut Reader<'_>) -> Result<LooseEnd, ValueError> {
        let flags = reader.u16()?;
        let version = IpVersion::parse(flags, 2)?;
        let upstream = flags & FLAG_LOOSE_END_UPSTREAM != 0;
        let direction = if upstream { Direction::Upstream } else { Direction::Downstream };
        Ok(LooseEnd { source: reader.address(version)?, destination: reader.address(version)?, direction })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let upstream = if self.direction == Direction::Upstream { FLAG_LOOSE_END_UPSTREAM } else { 0 };
        out.extend_from_slice(&[METHOD_LOOSE_END, 0x00]);
        out.extend_from_slice(&(IpVersion::field(self.source) | upstream).to_be_bytes());
        put_address(out, self.source);
        put_address(out, self.destination);
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

/// RFC 5971 §9: MRM-ID of the path-coupled method.
const METHOD_PATH_COUPLED: u8 = 0x00;
/// RFC 5971 §9: MRM-ID of the loose-end method.
const METHOD_LOOSE_END: u8 = 0x01;

// RFC 5971 A.3.1.1: flags of the path-coupled method, in the low half of the first word.
const FLAG_PROTOCOL: u16 = 0x0800;
const FLAG_DSCP: u16 = 0x0400;
const FLAG_FLOW_LABEL: u16 = 0x0200;
const FLAG_SPI: u16 = 0x0100;
const FLAG_SOURCE_PORT: u16 = 0x0080;
const FLAG_DESTINATION_PORT: u16 = 0x0040;
const FLAG_UPSTREAM: u16 = 0x0020;
/// RFC 5971 A.3.1.2: the D flag of the loose-end method stands elsewhere.
const FLAG_LOOSE_END_UPSTREAM: u16 = 0x0800;
