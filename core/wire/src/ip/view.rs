// SPDX-License-Identifier: Apache-2.0
//! A packet taken apart once, without copying.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netserv_model::Flow;

use super::limits::EXTENSION_HEADERS_MAX;
use super::{IpError, protocol};

/// The version of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Which part of a datagram a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fragment {
    /// All of it.
    Whole,
    /// Its start, with the upper-layer header.
    First,
    /// A later part, without upper-layer header.
    Later,
}

/// A packet whose headers were found.
#[derive(Clone, Copy, Debug)]
pub struct IpView<'a> {
    /// Exactly the packet, without what padded its frame.
    bytes: &'a [u8],
    version: IpVersion,
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    payload_offset: usize,
    fragment: Fragment,
    /// Where the IPv6 routing header is.
    routing_offset: Option<usize>,
}

/// A whole UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpView<'a> {
    /// The source port.
    pub source_port: u16,
    /// The destination port.
    pub destination_port: u16,
    /// What the datagram carries.
    pub payload: &'a [u8],
}

impl<'a> IpView<'a> {
    /// Finds the headers of a packet. Bytes after its end are ignored.
    ///
    /// # Errors
    /// If the bytes are no packet, or one with too many extension headers. Says nothing about checksums.
    pub fn parse(bytes: &'a [u8]) -> Result<IpView<'a>, IpError> {
        match version(bytes)? {
            IpVersion::V4 => IpView::parse_v4(bytes),
            IpVersion::V6 => IpView::parse_v6(bytes),
        }
    }

    fn parse_v4(bytes: &'a [u8]) -> Result<IpView<'a>, IpError> {
        let header: &[u8; IPV4_HEADER_BYTES] = bytes.first_chunk().ok_or(IpError::Truncated)?;
        let header_bytes = 4 * usize::from(header[0] & 0x0F);
        if header_bytes < IPV4_HEADER_BYTES {
            return Err(IpError::HeaderLength);
        }
        let total_bytes = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if total_bytes < header_bytes {
            return Err(IpError::TotalLength);
        }
        let bytes = bytes.get(..total_bytes).ok_or(IpError::Truncated)?;
        let fragment_field = u16::from_be_bytes([header[6], header[7]]);
        let fragment = fragment_kind(fragment_field & 0x1FFF, fragment_field & 0x2000 != 0);
        let (source, destination) = addresses_v4(header);
        Ok(IpView {
            bytes,
            version: IpVersion::V4,
            source,
            destination,
            protocol: header[9],
            payload_offset: header_bytes,
            fragment,
            routing_offset: None,
        })
    }

    fn parse_v6(bytes: &'a [u8]) -> Result<IpView<'a>, IpError> {
        let header: &[u8; IPV6_HEADER_BYTES] = bytes.first_chunk().ok_or(IpError::Truncated)?;
        let payload_bytes = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let bytes = bytes.get(..IPV6_HEADER_BYTES + payload_bytes).ok_or(IpError::Truncated)?;
        let (source, destination) = addresses_v6(header);
        let mut view = IpView {
            bytes,
            version: IpVersion::V6,
            source,
            destination,
            protocol: header[6],
            payload_offset: IPV6_HEADER_BYTES,
            fragment: Fragment::Whole,
            routing_offset: None,
        };
        // One more than the bound: the step after the last header finds the upper layer.
        for _ in 0..=EXTENSION_HEADERS_MAX {
            if view.fragment == Fragment::Later || !is_extension(view.protocol) {
                return Ok(view);
            }
            view.step_over_extension()?;
        }
        Err(IpError::ExtensionHeaders)
    }

    fn step_over_extension(&mut self) -> Result<(), IpError> {
        let [next, length, offset_high, offset_low] = *self.payload().first_chunk().ok_or(IpError::Truncated)?;
        match self.protocol {
            EXTENSION_FRAGMENT => {
                let field = u16::from_be_bytes([offset_high, offset_low]);
                self.fragment = fragment_kind(field >> 3, field & 0x0001 != 0);
            }
            EXTENSION_ROUTING => self.routing_offset = Some(self.payload_offset),
            _ => {}
        }
        let header_bytes = extension_bytes(self.protocol, length);
        let payload_offset = self.payload_offset + header_bytes;
        if payload_offset > self.bytes.len() {
            return Err(IpError::Truncated);
        }
        (self.protocol, self.payload_offset) = (next, payload_offset);
        Ok(())
    }

    /// Returns the packet, without what padded its frame.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the version.
    pub fn version(&self) -> IpVersion {
        self.version
    }

    /// Returns the upper-layer protocol, after IPv6 extension headers. In a later fragment of an IPv6 packet it may be
    /// that of an extension header in the first.
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// Returns where the upper-layer header is, counted from the start of the packet.
    pub fn payload_offset(&self) -> usize {
        self.payload_offset
    }

    /// Returns the upper-layer header and all after it.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.payload_offset..]
    }

    /// Returns which part of a datagram this is.
    pub fn fragment(&self) -> Fragment {
        self.fragment
    }

    /// Returns the source address.
    pub fn source(&self) -> IpAddr {
        self.source
    }

    /// Returns the destination address.
    pub fn destination(&self) -> IpAddr {
        self.destination
    }

    /// Returns the TTL or hop limit.
    pub fn ttl(&self) -> u8 {
        match self.version {
            IpVersion::V4 => self.bytes[8],
            IpVersion::V6 => self.bytes[7],
        }
    }

    /// Returns source and destination port, if the packet shows them: later fragments do not.
    pub fn ports(&self) -> Option<(u16, u16)> {
        if self.fragment == Fragment::Later || !has_ports(self.protocol) {
            return None;
        }
        let [a, b, c, d] = *self.payload().first_chunk()?;
        Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }

    /// Returns what filters look at.
    pub fn flow(&self) -> Flow {
        let (source_port, destination_port) = self.ports().unzip();
        Flow {
            source: self.source,
            destination: self.destination,
            protocol: self.protocol,
            source_port,
            destination_port,
            opens: self.protocol == protocol::TCP && self.opens(),
        }
    }

    /// Returns whether the header of TCP is there, and opens a connection.
    fn opens(&self) -> bool {
        let flags = self.payload().get(TCP_FLAGS_OFFSET).filter(|_| self.fragment != Fragment::Later);
        flags.is_some_and(|flags| flags & (TCP_SYN | TCP_ACK | TCP_RST | TCP_FIN) == TCP_SYN)
    }

    /// Returns the UDP datagram in the packet, if it is whole and its length is possible.
    pub fn udp(&self) -> Option<UdpView<'a>> {
        if self.fragment != Fragment::Whole || self.protocol != protocol::UDP {
            return None;
        }
        let (source_port, destination_port) = self.ports()?;
        let [high, low] = *self.payload().get(4..)?.first_chunk()?;
        let datagram_bytes = usize::from(u16::from_be_bytes([high, low]));
        let payload = self.payload().get(UDP_HEADER_BYTES..datagram_bytes)?;
        Some(UdpView { source_port, destination_port, payload })
    }

    /// Returns the destination that checksums cover: the last one of a routing header that is not used up (RFC 8200
    /// §8.1), or else that of the packet.
    pub(super) fn checksum_destination(&self) -> IpAddr {
        self.routed_destination().unwrap_or(self.destination)
    }

    fn routed_destination(&self) -> Option<IpAddr> {
        let header = &self.bytes[self.routing_offset?..self.payload_offset];
        let [_next, length, kind, segments_left] = *header.first_chunk()?;
        let addresses = header.get(8..8 * (usize::from(length) + 1))?;
        let last = match kind {
            _ if segments_left == 0 => None,
            // RFC 8754 §2: segments stand in reverse order.
            ROUTING_SEGMENTS => addresses.first_chunk::<16>(),
            ROUTING_SOURCE | ROUTING_MOBILE => addresses.last_chunk::<16>(),
            _ => None,
        };
        last.map(|octets| Ipv6Addr::from(*octets).into())
    }
}

/// Returns source and destination of a packet, and looks at nothing else.
pub fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match version(packet).ok()? {
        IpVersion::V4 => packet.first_chunk().map(addresses_v4),
        IpVersion::V6 => packet.first_chunk().map(addresses_v6),
    }
}

pub(super) fn version(bytes: &[u8]) -> Result<IpVersion, IpError> {
    match bytes.first().map(|byte| byte >> 4) {
        Some(4) => Ok(IpVersion::V4),
        Some(6) => Ok(IpVersion::V6),
        Some(_) | None => Err(IpError::Version),
    }
}

fn addresses_v4(header: &[u8; IPV4_HEADER_BYTES]) -> (IpAddr, IpAddr) {
    let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]).into();
    (address(12), address(16))
}

fn addresses_v6(header: &[u8; IPV6_HEADER_BYTES]) -> (IpAddr, IpAddr) {
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&header[at..at + 16]);
        Ipv6Addr::from(octets).into()
    };
    (address(8), address(24))
}

fn fragment_kind(offset: u16, more: bool) -> Fragment {
    match (offset, more) {
        (0, false) => Fragment::Whole,
        (0, true) => Fragment::First,
        (_, _) => Fragment::Later,
    }
}

fn has_ports(protocol: u8) -> bool {
    matches!(protocol, protocol::TCP | protocol::UDP | protocol::DCCP | protocol::SCTP | protocol::UDP_LITE)
}

/// Returns the length of an IPv6 extension header, of which `length` is the second byte.
pub(super) fn extension_bytes(kind: u8, length: u8) -> usize {
    match kind {
        EXTENSION_FRAGMENT => 8,
        // RFC 4302 §2.2: this one counts words, less two.
        EXTENSION_AUTHENTICATION => 4 * (usize::from(length) + 2),
        _ => 8 * (usize::from(length) + 1),
    }
}

/// Returns whether a protocol number is an IPv6 extension header that can be stepped over (RFC 7045 §1.1).
fn is_extension(protocol: u8) -> bool {
    matches!(
        protocol,
        EXTENSION_HOP_BY_HOP
            | EXTENSION_ROUTING
            | EXTENSION_FRAGMENT
            | EXTENSION_AUTHENTICATION
            | EXTENSION_DESTINATION
            | EXTENSION_MOBILITY
            | EXTENSION_HIP
            | EXTENSION_SHIM6
    )
}

pub(super) const IPV4_HEADER_BYTES: usize = 20;
pub(super) const IPV6_HEADER_BYTES: usize = 40;
pub(super) const UDP_HEADER_BYTES: usize = 8;
/// Where the control bits of a TCP header are (RFC 9293 §3.1).
const TCP_FLAGS_OFFSET: usize = 13;
const TCP_FIN: u8 = 0x01;
const TCP_SYN: u8 = 0x02;
const TCP_RST: u8 = 0x04;
const TCP_ACK: u8 = 0x10;

pub(super) const EXTENSION_HOP_BY_HOP: u8 = 0x00;
pub(super) const EXTENSION_ROUTING: u8 = 0x2B;
pub(super) const EXTENSION_FRAGMENT: u8 = 0x2C;
const EXTENSION_AUTHENTICATION: u8 = 0x33;
pub(super) const EXTENSION_DESTINATION: u8 = 0x3C;
const EXTENSION_MOBILITY: u8 = 0x87;
const EXTENSION_HIP: u8 = 0x8B;
const EXTENSION_SHIM6: u8 = 0x8C;

pub(super) const ROUTING_SOURCE: u8 = 0x00;
const ROUTING_MOBILE: u8 = 0x02;
const ROUTING_SEGMENTS: u8 = 0x04;
