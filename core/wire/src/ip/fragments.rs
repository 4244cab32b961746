// SPDX-License-Identifier: Apache-2.0
//! Cutting packets that are longer than their way allows.

use super::limits::FRAGMENTS_MAX;
use super::view::{EXTENSION_FRAGMENT, IPV4_HEADER_BYTES, IPV6_HEADER_BYTES};
use super::{IpError, IpVersion, IpView, checksum};

/// Returns the fragments of a packet, in order, none longer than `mtu` bytes (RFC 791 §3.2, RFC 8200 §4.5).
///
/// They may be cut again: the bit that forbids it (DF) is not in them. `identification` must be another one for each
/// packet; IPv4 takes its lower half. A packet of IPv4 that is a fragment already keeps its own.
///
/// # Errors
/// If the bytes are no packet, or one with options or extension headers, or if it would take more than
/// [`FRAGMENTS_MAX`].
pub fn cut(packet: &[u8], mtu: usize, identification: u32) -> Result<Vec<Vec<u8>>, IpError> {
    let view = IpView::parse(packet)?;
    let (header, payload) = view.bytes().split_at(view.payload_offset());
    match view.version() {
        IpVersion::V4 if header.len() == IPV4_HEADER_BYTES => cut_v4(header, payload, mtu, identification),
        IpVersion::V6 if header.len() == IPV6_HEADER_BYTES => cut_v6(header, payload, mtu, identification),
        IpVersion::V4 | IpVersion::V6 => Err(IpError::Indivisible),
    }
}

fn cut_v4(header: &[u8], payload: &[u8], mtu: usize, identification: u32) -> Result<Vec<Vec<u8>>, IpError> {
    let field = u16::from_be_bytes([header[6], header[7]]);
    let (start, more) = (field & V4_OFFSET, field & V4_MORE);
    let [_, _, high, low] = identification.to_be_bytes();
    let identification = if start == 0 && more == 0 { [high, low] } else { [header[4], header[5]] };
    let parts = parts(payload, mtu, IPV4_HEADER_BYTES)?;
    parts
        .map(|(units, part, last)| {
            let offset = start.checked_add(units).filter(|offset| *offset <= V4_OFFSET).ok_or(IpError::Indivisible)?;
            let mut fragment = [header, part].concat();
            let total = u16::try_from(fragment.len()).expect("it is no longer than the packet");
            fragment[2..4].copy_from_slice(&total.to_be_bytes());
            fragment[4..6].copy_from_slice(&identification);
            let field = offset | if last { more } else { V4_MORE };
            fragment[6..8].copy_from_slice(&field.to_be_bytes());
            fragment[10..12].fill(0);
            let checksum = !checksum::sum(&fragment[..IPV4_HEADER_BYTES]);
            fragment[10..12].copy_from_slice(&checksum.to_be_bytes());
            Ok(fragment)
        })
        .collect()
}

fn cut_v6(header: &[u8], payload: &[u8], mtu: usize, identification: u32) -> Result<Vec<Vec<u8>>, IpError> {
    let parts = parts(payload, mtu, IPV6_HEADER_BYTES + FRAGMENT_HEADER_BYTES)?;
    parts
        .map(|(units, part, last)| {
            let offset = units.checked_mul(8).ok_or(IpError::Indivisible)?;
            let [high, low] = (offset | u16::from(!last)).to_be_bytes();
            let between = [header[6], 0, high, low];
            let mut fragment = [header, &between, &identification.to_be_bytes(), part].concat();
            let length = u16::try_from(FRAGMENT_HEADER_BYTES + part.len()).map_err(|_| IpError::Indivisible)?;
            fragment[4..6].copy_from_slice(&length.to_be_bytes());
            fragment[6] = EXTENSION_FRAGMENT;
            Ok(fragment)
        })
        .collect()
}

/// Returns the parts of a payload, with where they start, in units of eight bytes, and whether each is the last.
fn parts(payload: &[u8], mtu: usize, header_bytes: usize) -> Result<impl Iterator<Item = (u16, &[u8], bool)>, IpError> {
    let part_bytes = mtu.saturating_sub(header_bytes) / 8 * 8;
    if part_bytes == 0 || payload.is_empty() || payload.len().div_ceil(part_bytes) > FRAGMENTS_MAX {
        return Err(IpError::Indivisible);
    }
    let part = move |(number, part): (usize, _)| {
        let start = number * part_bytes;
        (
            u16::try_from(start / 8).expect("a payload has at most 65,535 bytes"),
            part,
            start + part_bytes >= payload.len(),
        )
    };
    Ok(payload.chunks(part_bytes).enumerate().map(part))
}

const V4_OFFSET: u16 = 0x1FFF;
const V4_MORE: u16 = 0x2000;
const FRAGMENT_HEADER_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use proptest::prelude::*;

    use super::*;
    use crate::ip::checksum::{TransportChecksum, verify_header, verify_transport};
    use crate::ip::{Fragment, build, protocol};

    proptest! {
        #[test]
        fn fragments_come_together_again(
            v6 in any::<bool>(),
            forbidden in any::<bool>(),
            payload_bytes in 1_u16..40_000,
            mtu in 68_usize..9_000,
            again in 576_usize..9_000,
            identification in any::<u32>(),
        ) {
            let mut packet = udp(v6, usize::from(payload_bytes));
            if !v6 && !forbidden {
                packet[6] = 0;
                checksum::fill(&mut packet).unwrap();
            }
            let header_bytes = if v6 { 48 } else { 20 };
            let count = (packet.len() - if v6 { 40 } else { 20 }).div_ceil((mtu - header_bytes) / 8 * 8);
            let Ok(fragments) = cut(&packet, mtu, identification) else {
                prop_assert!(count > FRAGMENTS_MAX);
                return Ok(());
            };
            prop_assert_eq!(fragments.len(), count);
            let together = if v6 { together_v6(&fragments, mtu) } else { together_v4(&fragments, mtu) };
            // What a router on the way may do, but only with IPv4.
            if !v6 && count > 1 {
                let smaller: Result<Vec<_>, _> = fragments.iter().map(|one| cut(one, again, 7)).collect();
                prop_assert!(smaller.is_ok_and(|smaller| together_v4(&smaller.concat(), again) == together));
            }
            let view = IpView::parse(&together).unwrap();
            prop_assert!(verify_header(&view));
            prop_assert_eq!(verify_transport(&view), TransportChecksum::Good);
            if !v6 {
                // Identification, DF and the checksum over them are others.
                packet[4..8].copy_from_slice(&together[4..8]);
                packet[10..12].copy_from_slice(&together[10..12]);
            }
            prop_assert_eq!(together, packet);
        }
    }

    #[test]
    fn identifications_are_the_callers_or_that_of_the_datagram() {
        let fragments = cut(&udp(false, 100), 68, 0x1234_5678).unwrap();
        assert!(fragments.iter().all(|one| one[4..6] == [0x56, 0x78]));
        let again = cut(&fragments[1], 44, 0x1111_1111).unwrap();
        assert!(again.len() == 2 && again.iter().all(|one| one[4..6] == [0x56, 0x78]));
        let fragments = cut(&udp(true, 100), 68, 0x1234_5678).unwrap();
        assert!(fragments.iter().all(|one| one[44..48] == [0x12, 0x34, 0x56, 0x78]));
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        let check = |packet: &[u8], mtu: usize| assert_eq!(cut(packet, mtu, 1), Err(IpError::Indivisible), "{mtu}");
        for (v6, header_bytes) in [(false, 20), (true, 48)] {
            check(&udp(v6, 100), header_bytes + 7);
            check(&udp(v6, 8 * FRAGMENTS_MAX), header_bytes + 8);
            let most = cut(&udp(v6, 8 * FRAGMENTS_MAX - 8), header_bytes + 8, 1).unwrap();
            assert_eq!(most.len(), FRAGMENTS_MAX);
        }
        let addresses = ["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        check(&build::ip(addresses[0], addresses[1], protocol::UDP, 9, &[]).unwrap(), 1400);
        // An option that does nothing.
        let mut packet = udp(false, 100);
        packet.splice(20..20, [1; 4]);
        (packet[0], packet[3]) = (0x46, packet[3] + 4);
        check(&packet, 68);
        // Options for each hop, and a fragment.
        for kind in [0, EXTENSION_FRAGMENT] {
            let mut packet = udp(true, 100);
            packet.splice(40..40, [protocol::UDP, 0, 0, 0, 0, 0, 0, 1]);
            (packet[5], packet[6]) = (packet[5] + 8, kind);
            check(&packet, 68);
        }
        // An end beyond the longest datagram.
        let mut late = udp(false, 100);
        (late[6], late[7]) = (0x1F, 0xFE);
        check(&late, 68);
    }

    fn udp(v6: bool, payload_bytes: usize) -> Vec<u8> {
        let address = |end: u8| -> SocketAddr {
            let text = if v6 { format!("[fd00::{end}]:{end}") } else { format!("10.0.0.{end}:{end}") };
            text.parse().unwrap()
        };
        let payload: Vec<u8> = (0..=250).cycle().take(payload_bytes).collect();
        build::udp(address(1), address(2), 64, &payload).unwrap()
    }

    fn together_v4(fragments: &[Vec<u8>], mtu: usize) -> Vec<u8> {
        let mut packet = fragments[0][..20].to_vec();
        for (number, fragment) in fragments.iter().enumerate() {
            let view = IpView::parse(fragment).unwrap();
            assert!(fragment.len() <= mtu && view.bytes().len() == fragment.len() && verify_header(&view));
            let field = u16::from_be_bytes([fragment[6], fragment[7]]);
            assert_eq!(usize::from(field & 0x1FFF) * 8, packet.len() - 20, "parts without gaps");
            assert_eq!(field & 0xE000, if number + 1 == fragments.len() { 0 } else { V4_MORE });
            packet.extend_from_slice(&fragment[20..]);
        }
        let total = u16::try_from(packet.len()).unwrap();
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        packet[6..8].fill(0);
        packet[10..12].fill(0);
        let checksum = !checksum::sum(&packet[..20]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    fn together_v6(fragments: &[Vec<u8>], mtu: usize) -> Vec<u8> {
        let mut packet = fragments[0][..40].to_vec();
        packet[6] = fragments[0][40];
        for (number, fragment) in fragments.iter().enumerate() {
            let view = IpView::parse(fragment).unwrap();
            assert!(fragment.len() <= mtu && view.bytes().len() == fragment.len() && view.payload_offset() == 48);
            let field = u16::from_be_bytes([fragment[42], fragment[43]]);
            assert_eq!(usize::from(field & 0xFFF8), packet.len() - 40, "parts without gaps");
            assert_eq!(field & 7, u16::from(number + 1 < fragments.len()));
            assert!(number == 0 || view.fragment() == Fragment::Later);
            packet.extend_from_slice(&fragment[48..]);
        }
        let length = u16::try_from(packet.len() - 40).unwrap();
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        packet
    }
}
