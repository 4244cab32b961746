// SPDX-License-Identifier: Apache-2.0
//! IP and UDP for modules: what a packet says, and how to answer it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use crate::Packet;
use crate::text::little_endian;

/// The protocol number of UDP.
pub const UDP: u8 = 17;

/// What the IP header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ip {
    /// Source.
    pub source: IpAddr,
    /// Destination.
    pub destination: IpAddr,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// The upper-layer protocol, after IPv6 extension headers.
    pub protocol: u8,
    /// Whether this is only a part of a packet.
    pub is_fragment: bool,
    /// Where the upper layer's bytes are.
    pub payload: Range<usize>,
}

/// What the IP and UDP headers say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Udp {
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port.
    pub destination: SocketAddr,
    /// Where the payload is.
    pub payload: Range<usize>,
}

/// Returns what the IP header says; nothing if it is damaged.
pub fn parse(packet: &[u8]) -> Option<Ip> {
    match packet.first()? >> 4 {
        4 => parse_v4(packet),
        6 => parse_v6(packet),
        _ => None,
    }
}

/// Returns what the headers of a whole UDP packet say; nothing for a fragment, another protocol or a damaged packet.
///
/// Checksums are not checked: packets that this machine sends may still lack theirs.
pub fn parse_udp(packet: &[u8]) -> Option<Udp> {
    let ip = parse(packet)?;
    if ip.protocol != UDP || ip.is_fragment {
        return None;
    }
    let header = packet.get(ip.payload.clone())?.get(..UDP_HEADER_BYTES)?;
    let length = usize::from(be16(header, 4));
    if length < UDP_HEADER_BYTES || length > ip.payload.len() {
        return None;
    }
    Some(Udp {
        source: SocketAddr::new(ip.source, be16(header, 0)),
        destination: SocketAddr::new(ip.destination, be16(header, 2)),
        payload: ip.payload.start + UDP_HEADER_BYTES..ip.payload.start + length,
    })
}

/// Makes the packet a UDP packet with that payload, with fresh headers and right checksums. Returns false, and does
/// nothing, if it would be too long or the addresses are of two IP versions.
#[must_use]
pub fn write_udp(packet: &mut Packet<'_>, source: SocketAddr, destination: SocketAddr, payload: &[u8]) -> bool {
    let start = payload_start(source.ip());
    let fits = source.is_ipv4() == destination.is_ipv4() && packet.resize(start + payload.len());
    if fits {
        packet.bytes_mut()[start..].copy_from_slice(payload);
        write_headers(packet.bytes_mut(), source, destination);
    }
    fits
}

/// Puts another payload into a UDP packet, whose addresses, time to live and traffic class stay. Returns false, and does nothing, if it
/// would be too long. Options and extension headers are left out.
#[must_use]
pub fn replace_udp(packet: &mut Packet<'_>, udp: &Udp, payload: &[u8]) -> bool {
    let first: [u8; 9] = packet.bytes()[..9].try_into().expect("a UDP packet is longer");
    let is_written = write_udp(packet, udp.source, udp.destination, payload);
    if is_written {
        let header = packet.bytes_mut();
        if udp.source.is_ipv4() {
            (header[1], header[8]) = (first[1], first[8]);
            put16(header, 10, 0);
            let sum = checksum(0, &header[..IPV4_HEADER_BYTES]);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            header[..4].copy_from_slice(&first[..4]);
            header[7] = first[7];
        }
    }
    is_written
}

/// Makes the packet a UDP packet with the payload that it has, between other addresses, with fresh headers and right
/// checksums. Returns false, and does nothing, as [`write_udp`] does.
#[must_use]
pub fn redirect_udp(packet: &mut Packet<'_>, udp: &Udp, source: SocketAddr, destination: SocketAddr) -> bool {
    let start = payload_start(source.ip());
    let end = start + udp.payload.len();
    if source.is_ipv4() != destination.is_ipv4() || udp.payload.end > packet.len() || end > packet.capacity() {
        return false;
    }
    let before = packet.len();
    let grown = packet.resize(before.max(end));
    debug_assert!(grown, "checked above");
    packet.bytes_mut().copy_within(udp.payload.clone(), start);
    let cut = packet.resize(end);
    debug_assert!(cut, "checked above");
    write_headers(packet.bytes_mut(), source, destination);
    true
}

/// Returns the Internet checksum (RFC 1071) of `bytes` on top of a partial sum.
pub fn checksum(sum: u32, bytes: &[u8]) -> u16 {
    // RFC 1071 §2 (B): in the other byte order the sum is the same but for the order of its bytes, and WebAssembly has
    // little-endian loads only.
    let (words, rest) = bytes.as_chunks::<8>();
    let halves = |word: u64| (word & 0xffff_ffff) + (word >> 32);
    let whole: u64 = words.iter().map(|word| halves(u64::from_le_bytes(*word))).sum();
    let total = u64::from(fold(u64::from(sum)).swap_bytes()) + whole + halves(little_endian(rest));
    !fold(total).swap_bytes()
}

const UDP_HEADER_BYTES: usize = 8;
const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
const FRESH_TTL: u8 = 64;
/// RFC 8200 sets no bound; more than this nobody sends.
const EXTENSION_HEADERS_MAX: usize = 8;

fn parse_v4(packet: &[u8]) -> Option<Ip> {
    let header_bytes = usize::from(packet.first()? & 0xf) * 4;
    let header = packet.get(..header_bytes.max(IPV4_HEADER_BYTES))?;
    let total = usize::from(be16(header, 2));
    if header_bytes < IPV4_HEADER_BYTES || total < header_bytes || total > packet.len() {
        return None;
    }
    Some(Ip {
        source: IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(&header[12..16]).ok()?)),
        destination: IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(&header[16..20]).ok()?)),
        ttl: header[8],
        protocol: header[9],
        // RFC 791: more fragments, or an offset.
        is_fragment: be16(header, 6) & 0x3fff != 0,
        payload: header_bytes..total,
    })
}

fn parse_v6(packet: &[u8]) -> Option<Ip> {
    let header = packet.get(..IPV6_HEADER_BYTES)?;
    let end = IPV6_HEADER_BYTES + usize::from(be16(header, 4));
    let (mut protocol, mut at, mut is_fragment) = (header[6], IPV6_HEADER_BYTES, false);
    for _ in 0..EXTENSION_HEADERS_MAX {
        let Some(length) = extension_length(protocol, packet.get(at..)?) else { break };
        if protocol == 44 {
            is_fragment |= be16(packet.get(at..at + 4)?, 2) & 0xfff9 != 0;
        }
        protocol = *packet.get(at)?;
        at += length;
    }
    if end > packet.len() || at > end {
        return None;
    }
    Some(Ip {
        source: IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&header[8..24]).ok()?)),
        destination: IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&header[24..40]).ok()?)),
        ttl: header[7],
        protocol,
        is_fragment,
        payload: at..end,
    })
}

/// Returns the length of the extension header of that number; nothing if it is the number of an upper layer.
fn extension_length(number: u8, bytes: &[u8]) -> Option<usize> {
    let length = usize::from(*bytes.get(1)?);
    match number {
        0 | 43 | 60 => Some((length + 1) * 8),
        44 => Some(8),
        51 => Some((length + 2) * 4),
        _ => None,
    }
}

fn payload_start(address: IpAddr) -> usize {
    UDP_HEADER_BYTES + if address.is_ipv4() { IPV4_HEADER_BYTES } else { IPV6_HEADER_BYTES }
}

/// Writes both headers in front of a payload that is in its place.
fn write_headers(packet: &mut [u8], source: SocketAddr, destination: SocketAddr) {
    let total = packet.len();
    let udp_at = payload_start(source.ip()) - UDP_HEADER_BYTES;
    let udp_bytes = total - udp_at;
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            // RFC 6864 §4.1: an identifier of 0 will do for a packet that must not be fragmented.
            packet[..12].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, FRESH_TTL, UDP, 0, 0]);
            put16(packet, 2, total);
            packet[12..16].copy_from_slice(&source.octets());
            packet[16..20].copy_from_slice(&destination.octets());
            let sum = checksum(0, &packet[..IPV4_HEADER_BYTES]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            packet[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, 0, UDP, FRESH_TTL]);
            put16(packet, 4, udp_bytes);
            packet[8..24].copy_from_slice(&source.octets());
            packet[24..40].copy_from_slice(&destination.octets());
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => unreachable!("callers compare the versions"),
    }
    packet[udp_at..udp_at + 2].copy_from_slice(&source.port().to_be_bytes());
    packet[udp_at + 2..udp_at + 4].copy_from_slice(&destination.port().to_be_bytes());
    put16(packet, udp_at + 4, udp_bytes);
    put16(packet, udp_at + 6, 0);
    let addresses = if source.is_ipv4() { 12..20 } else { 8..40 };
    let pseudo = add_words(u32::from(UDP) + u32::try_from(udp_bytes).unwrap_or(0), &packet[addresses]);
    let sum = match checksum(pseudo, &packet[udp_at..]) {
        // RFC 768: 0 would mean that there is none.
        0 => 0xffff,
        sum => sum,
    };
    packet[udp_at + 6..udp_at + 8].copy_from_slice(&sum.to_be_bytes());
}

fn add_words(mut sum: u32, bytes: &[u8]) -> u32 {
    let (pairs, last) = bytes.as_chunks::<2>();
    for pair in pairs {
        sum += u32::from(u16::from_be_bytes(*pair));
    }
    sum + last.first().map_or(0, |byte| u32::from(*byte) << 8)
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).expect("16 bits are left")
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put16(bytes: &mut [u8], at: usize, value: usize) {
    let value = u16::try_from(value).expect("a packet in a slot is shorter than 65,536 bytes");
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests;
