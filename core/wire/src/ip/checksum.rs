// SPDX-License-Identifier: Apache-2.0
//! The Internet checksum (RFC 1071) of IPv4 headers, UDP, TCP, ICMP and ICMPv6.

use std::net::IpAddr;

use super::view::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};
use super::{Fragment, IpError, IpVersion, IpView, protocol};

/// What the upper-layer checksum of a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransportChecksum {
    /// It is right.
    Good,
    /// It is wrong.
    Bad,
    /// There is none to look at: a fragment, UDP over IPv4 without one, another protocol, or an impossible length.
    Absent,
}

/// Returns whether the IPv4 header checksum is right; IPv6 has none, which is right too.
pub fn verify_header(view: &IpView<'_>) -> bool {
    match view.version() {
        IpVersion::V4 => sum(ipv4_header(view.bytes())) == 0xFFFF,
        IpVersion::V6 => true,
    }
}

/// Returns what the upper-layer checksum says.
pub fn verify_transport(view: &IpView<'_>) -> TransportChecksum {
    match Covered::find(view) {
        None => TransportChecksum::Absent,
        Some(covered) if covered.is_unused(view) => TransportChecksum::Absent,
        Some(covered) if fold(covered.sum(view)) == 0xFFFF => TransportChecksum::Good,
        Some(_) => TransportChecksum::Bad,
    }
}

/// Computes the checksums of a packet afresh: the IPv4 header's and the upper layer's.
///
/// UDP over IPv4 that has no checksum gets none, and the upper-layer checksum of a fragment stays, since it covers what
/// the fragment does not hold.
///
/// # Errors
/// If the bytes are no packet.
pub fn fill(packet: &mut [u8]) -> Result<(), IpError> {
    let view = IpView::parse(packet)?;
    let transport = Covered::find(&view).filter(|covered| !covered.is_unused(&view));
    let transport = transport.map(|covered| (covered.field, covered.checksum(&view)));
    let version = view.version();
    let header_bytes = ipv4_header_bytes(packet);
    if let Some((field, checksum)) = transport {
        packet[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
    }
    if version == IpVersion::V4 {
        packet[10..12].fill(0);
        let checksum = !sum(&packet[..header_bytes]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    Ok(())
}

/// Returns the folded one's complement sum of bytes; an odd last byte counts as the high half of a word.
pub fn sum(bytes: &[u8]) -> u16 {
    fold(add(0, bytes))
}

/// What an upper-layer checksum covers.
struct Covered {
    /// Where the checksum is, from the start of the packet.
    field: usize,
    /// The covered bytes, from the start of the upper-layer header.
    bytes: usize,
    /// The pseudo header counts.
    pseudo_header: bool,
    /// UDP: zero means that there is no checksum.
    zero_is_none: bool,
}

impl Covered {
    fn find(view: &IpView<'_>) -> Option<Covered> {
        if view.fragment() != Fragment::Whole {
            return None;
        }
        let payload = view.payload();
        let (field, header_bytes, bytes, pseudo_header) = match (view.protocol(), view.version()) {
            (protocol::TCP, _) => (16, 20, payload.len(), true),
            (protocol::UDP, _) => {
                let [high, low] = *payload.get(4..)?.first_chunk()?;
                (6, UDP_HEADER_BYTES, usize::from(u16::from_be_bytes([high, low])), true)
            }
            (protocol::ICMP, IpVersion::V4) => (2, 4, payload.len(), false),
            (protocol::ICMPV6, IpVersion::V6) => (2, 4, payload.len(), true),
            (_, IpVersion::V4 | IpVersion::V6) => return None,
        };
        let possible = (header_bytes..=payload.len()).contains(&bytes);
        let zero_is_none = view.protocol() == protocol::UDP;
        possible.then_some(Covered { field: view.payload_offset() + field, bytes, pseudo_header, zero_is_none })
    }

    /// Returns whether the sender left the checksum out, which only UDP over IPv4 may.
    fn is_unused(&self, view: &IpView<'_>) -> bool {
        self.zero_is_none && view.version() == IpVersion::V4 && view.bytes()[self.field..self.field + 2] == [0, 0]
    }

    /// Returns the sum of all that is covered, the checksum included.
    fn sum(&self, view: &IpView<'_>) -> u64 {
        let sum = add(0, &view.bytes()[view.payload_offset()..view.payload_offset() + self.bytes]);
        self.add_pseudo_header(sum, view)
    }

    /// Returns the checksum as it should be.
    fn checksum(&self, view: &IpView<'_>) -> u16 {
        let end = view.payload_offset() + self.bytes;
        let sum = add(0, &view.bytes()[view.payload_offset()..self.field]);
        let sum = add(sum, &view.bytes()[self.field + 2..end]);
        let checksum = !fold(self.add_pseudo_header(sum, view));
        // RFC 768 and RFC 8200 §8.1: zero would stand for "no checksum".
        if self.zero_is_none && checksum == 0 { 0xFFFF } else { checksum }
    }

    fn add_pseudo_header(&self, sum: u64, view: &IpView<'_>) -> u64 {
        if !self.pseudo_header {
            return sum;
        }
        let sum = add_address(add_address(sum, view.source()), view.checksum_destination());
        sum + u64::from(view.protocol()) + u64::try_from(self.bytes).expect("a packet's length fits 64 bits")
    }
}

/// Adds bytes that start at an even offset. Cannot overflow: 2^32 words of 2^32 would be needed.
fn add(mut sum: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        sum += u64::from(u32::from_be_bytes(*word));
    }
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    sum + u64::from(u32::from_be_bytes(last))
}

fn add_address(sum: u64, address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => add(sum, &address.octets()),
        IpAddr::V6(address) => add(sum, &address.octets()),
    }
}

/// Folds the carries of a sum back in.
pub(super) fn fold(mut sum: u64) -> u16 {
    while let carries @ 1.. = sum >> 16 {
        sum = (sum & 0xFFFF) + carries;
    }
    u16::try_from(sum).expect("the loop ends when the upper bits are zero")
}

fn ipv4_header(packet: &[u8]) -> &[u8] {
    &packet[..ipv4_header_bytes(packet)]
}

/// Returns the length of an IPv4 header that was found good by [`IpView::parse`].
fn ipv4_header_bytes(packet: &[u8]) -> usize {
    (4 * usize::from(packet[0] & 0x0F)).max(IPV4_HEADER_BYTES)
}
