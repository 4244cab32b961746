// SPDX-License-Identifier: Apache-2.0
//! Ethernet around packets, and what forwarding asks of them.

use std::net::IpAddr;

use netserv_wire::ip::{Fragment, IpVersion, IpView, checksum, protocol};

use super::kernel::Station;

/// An Ethernet header with or without a VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EthernetRepr {
    pub destination: Station,
    pub source: Station,
    pub vlan: Option<u16>,
    pub version: IpVersion,
}

impl EthernetRepr {
    /// Returns the length of the header of a frame with an IP packet, and its VLAN.
    pub fn parse(frame: &[u8]) -> Option<(usize, Option<u16>)> {
        let kind = |at: usize| frame.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
        let (length, vlan, kind) = match kind(12)? {
            TYPE_VLAN => (TAGGED_BYTES, Some(kind(14)? & 0x0fff), kind(16)?),
            kind => (UNTAGGED_BYTES, None, kind),
        };
        // VLAN 0 is a priority without a VLAN.
        matches!(kind, TYPE_IPV4 | TYPE_IPV6).then_some((length, vlan.filter(|vlan| *vlan != 0)))
    }

    /// Returns how long the header is.
    pub fn bytes(&self) -> usize {
        if self.vlan.is_some() { TAGGED_BYTES } else { UNTAGGED_BYTES }
    }

    /// Writes the header to the front of a buffer that is as long as [`EthernetRepr::bytes`].
    pub fn emit(&self, to: &mut [u8]) {
        to[..6].copy_from_slice(&self.destination);
        to[6..12].copy_from_slice(&self.source);
        let kind = match self.version {
            IpVersion::V4 => TYPE_IPV4,
            IpVersion::V6 => TYPE_IPV6,
        };
        let end = to.len();
        if let Some(vlan) = self.vlan {
            to[12..14].copy_from_slice(&TYPE_VLAN.to_be_bytes());
            to[14..16].copy_from_slice(&vlan.to_be_bytes());
        }
        to[end - 2..].copy_from_slice(&kind.to_be_bytes());
    }
}

/// Bytes of a header without a tag.
pub(super) const UNTAGGED_BYTES: usize = 14;
/// Bytes of a header with a tag.
pub(super) const TAGGED_BYTES: usize = 18;
const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const TYPE_VLAN: u16 = 0x8100;

/// Returns why a packet is not one that can be forwarded by looking at its addresses alone, if so. Such are for the
/// kernel: with options to be acted on, with a TTL that runs out, from sources that cannot be, with a wrong checksum.
pub(super) fn why_not_plain(view: &IpView<'_>) -> Option<&'static str> {
    match view.version() {
        IpVersion::V4 if view.bytes()[0] != 0x45 => return Some("it has options"),
        IpVersion::V4 if !checksum::verify_header(view) => return Some("its header checksum is wrong"),
        IpVersion::V6 if view.bytes()[6] == HOP_BY_HOP => return Some("it has hop-by-hop options"),
        IpVersion::V4 | IpVersion::V6 => {}
    }
    if view.ttl() <= 1 {
        return Some("its TTL runs out here");
    }
    (!is_possible_source(view.source())).then_some("its source is no address of a machine")
}

/// Returns whether a packet's sender left the checksum to the card, which on a link made of software is nobody.
///
/// Such a packet has the sum of the pseudo header where its checksum belongs. A damaged packet has the same there once
/// in 65,536 times, and a good one may have it by chance.
pub(super) fn lacks_checksum(view: &IpView<'_>) -> bool {
    let field = match view.protocol() {
        protocol::UDP => 6,
        protocol::TCP => 16,
        _ => return false,
    };
    let Some([high, low]) = view.payload().get(field..).and_then(|bytes| bytes.first_chunk::<2>()).copied() else {
        return false;
    };
    view.fragment() == Fragment::Whole
        && u16::from_be_bytes([high, low]) == pseudo_header_sum(view)
        // A damaged header would be mended together with the checksum.
        && checksum::verify_header(view)
}

/// Fills in the checksum of a packet that [lacks](lacks_checksum) it. A good one stays as it is.
pub(super) fn complete_checksum(packet: &mut [u8]) {
    if !IpView::parse(packet).is_ok_and(|view| lacks_checksum(&view)) {
        return;
    }
    if let Err(error) = checksum::fill(packet) {
        tracing::trace!(%error, "a checksum cannot be completed");
    }
}

const HOP_BY_HOP: u8 = 0;

fn pseudo_header_sum(view: &IpView<'_>) -> u16 {
    let addresses = match view.version() {
        IpVersion::V4 => &view.bytes()[12..20],
        IpVersion::V6 => &view.bytes()[8..40],
    };
    let length = u32::try_from(view.payload().len()).expect("a packet is short");
    let rest = (length + u32::from(view.protocol())).to_be_bytes();
    let parts = u32::from(checksum::sum(addresses)) + u32::from(checksum::sum(&rest));
    checksum::sum(&parts.to_be_bytes())
}

fn is_possible_source(source: IpAddr) -> bool {
    match source {
        IpAddr::V4(v4) => {
            !(v4.is_unspecified() || v4.is_loopback() || v4.is_multicast() || v4.is_broadcast() || v4.octets()[0] == 0)
        }
        IpAddr::V6(v6) => {
            !(v6.is_unspecified() || v6.is_loopback() || v6.is_multicast() || v6.to_ipv4_mapped().is_some())
        }
    }
}

#[cfg(test)]
mod tests {
    use netserv_wire::ip::build;

    use super::*;

    #[test]
    fn a_checksum_left_to_the_card_is_completed() {
        for packet in [udp("10.0.0.1:1", "10.0.0.2:2", b"abc"), udp("[2001:db8::1]:1", "[2001:db8::2]:2", b"abc")] {
            let view = IpView::parse(&packet).unwrap();
            let at = view.payload_offset() + 6;
            let mut left = packet.clone();
            left[at..at + 2].copy_from_slice(&pseudo_header_sum(&view).to_be_bytes());
            complete_checksum(&mut left);
            assert_eq!(left, packet);
            let mut damaged = packet.clone();
            damaged[at] ^= 1;
            let before = damaged.clone();
            complete_checksum(&mut damaged);
            assert_eq!(damaged, before);
        }
    }

    #[test]
    fn a_damaged_header_is_not_mended() {
        let mut packet = udp("10.0.0.1:1", "10.0.0.2:2", b"abc");
        let left = pseudo_header_sum(&IpView::parse(&packet).unwrap());
        packet[26..28].copy_from_slice(&left.to_be_bytes());
        packet[8] ^= 1;
        let before = packet.clone();
        complete_checksum(&mut packet);
        assert_eq!(packet, before);
    }

    #[test]
    fn headers_are_read_as_they_were_written() {
        for vlan in [None, Some(7)] {
            let header = EthernetRepr { destination: [1; 6], source: [2; 6], vlan, version: IpVersion::V6 };
            let mut bytes = vec![0; header.bytes()];
            header.emit(&mut bytes);
            assert_eq!(EthernetRepr::parse(&bytes), Some((header.bytes(), vlan)));
            assert!((0..bytes.len()).all(|length| EthernetRepr::parse(&bytes[..length]).is_none()));
        }
    }

    #[test]
    fn what_only_the_kernel_can_forward_is_not_plain() {
        let check = |packet: &[u8], expected: bool| {
            assert_eq!(why_not_plain(&IpView::parse(packet).unwrap()).is_none(), expected);
        };
        let mut packet = udp("10.0.0.1:1", "10.0.0.2:2", b"abc");
        check(&packet, true);
        packet[8] = 1;
        checksum::fill(&mut packet).unwrap();
        check(&packet, false);
        for source in ["127.0.0.1:1", "0.1.2.3:1", "224.0.0.1:1"] {
            check(&udp(source, "10.0.0.2:2", b"abc"), false);
        }
        check(&udp("[2001:db8::1]:1", "[2001:db8::2]:2", b"abc"), true);
        for source in ["[::]:1", "[::1]:1", "[ff02::1]:1", "[::ffff:1.2.3.4]:1"] {
            check(&udp(source, "[2001:db8::2]:2", b"abc"), false);
        }
        let mut packet = udp("10.0.0.1:1", "10.0.0.2:2", b"abc");
        packet[10] ^= 1;
        check(&packet, false);
    }

    fn udp(source: &str, destination: &str, payload: &[u8]) -> Vec<u8> {
        build::udp(source.parse().unwrap(), destination.parse().unwrap(), 64, payload).unwrap()
    }
}
