// SPDX-License-Identifier: Apache-2.0
//! Sends a packet on between other addresses, of another version of IP perhaps.

use std::net::{IpAddr, SocketAddr};

use netserv_sdk::Packet;
use netserv_sdk::ip::{UDP, Udp, checksum};

/// Makes a packet of UDP one between other addresses. What routers look at stays: class of traffic and time to live, over IPv4 also the
/// identifier and whether it may be fragmented. Returns false, and changes nothing, if it does not fit.
///
/// The checksum is worked out anew, since packets of this machine may come without one.
#[must_use]
pub fn redirect(packet: &mut Packet<'_>, udp: &Udp, from: SocketAddr, to: SocketAddr) -> bool {
    let head = if to.is_ipv4() { IPV4_HEADER_BYTES } else { IPV6_HEADER_BYTES };
    let start = head + UDP_HEADER_BYTES;
    let end = start + udp.payload.len();
    if from.is_ipv4() != to.is_ipv4() || udp.payload.end > packet.len() || end > packet.capacity() {
        return false;
    }
    let kept = Kept::of(packet.bytes());
    let grown = packet.resize(packet.len().max(end));
    debug_assert!(grown, "checked above");
    if udp.payload.start != start {
        packet.bytes_mut().copy_within(udp.payload.clone(), start);
    }
    let cut = packet.resize(end);
    debug_assert!(cut, "checked above");
    let bytes = packet.bytes_mut();
    let addresses = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            bytes[..2].copy_from_slice(&[0x45, kept.class]);
            put16(bytes, 2, end);
            bytes[4..6].copy_from_slice(&kept.identifier);
            bytes[6..12].copy_from_slice(&[kept.may_not_be_fragmented, 0, kept.ttl, UDP, 0, 0]);
            bytes[12..16].copy_from_slice(&from.octets());
            bytes[16..20].copy_from_slice(&to.octets());
            let sum = checksum(0, &bytes[..head]);
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
            12..20
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            bytes[..4].copy_from_slice(&[0x60 | kept.class >> 4, kept.class << 4, 0, 0]);
            put16(bytes, 4, end - head);
            bytes[6..8].copy_from_slice(&[UDP, kept.ttl]);
            bytes[8..24].copy_from_slice(&from.octets());
            bytes[24..40].copy_from_slice(&to.octets());
            8..40
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
    };
    bytes[head..head + 2].copy_from_slice(&from.port().to_be_bytes());
    bytes[head + 2..head + 4].copy_from_slice(&to.port().to_be_bytes());
    put16(bytes, head + 4, end - head);
    put16(bytes, head + 6, 0);
    let pseudo = !checksum(0, &bytes[addresses]);
    let length = u32::try_from(end - head).unwrap_or(0);
    let sum = match checksum(u32::from(pseudo) + u32::from(UDP) + length, &bytes[head..]) {
        // RFC 768: 0 would mean that there is none.
        0 => 0xffff,
        sum => sum,
    };
    bytes[head + 6..head + 8].copy_from_slice(&sum.to_be_bytes());
    true
}

/// What stays of a header.
struct Kept {
    class: u8,
    ttl: u8,
    identifier: [u8; 2],
    may_not_be_fragmented: u8,
}

impl Kept {
    /// Reads a header that was parsed.
    fn of(packet: &[u8]) -> Kept {
        if packet[0] >> 4 == 4 {
            let identifier = [packet[4], packet[5]];
            Kept { class: packet[1], ttl: packet[8], identifier, may_not_be_fragmented: packet[6] & DONT_FRAGMENT }
        } else {
            let class = packet[0] << 4 | packet[1] >> 4;
            // RFC 6864 §4.1: an identifier of 0 will do for a packet that must not be fragmented.
            Kept { class, ttl: packet[7], identifier: [0, 0], may_not_be_fragmented: DONT_FRAGMENT }
        }
    }
}

fn put16(bytes: &mut [u8], at: usize, value: usize) {
    let value = u16::try_from(value).expect("a packet in a slot is shorter than 65,536 bytes");
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

const UDP_HEADER_BYTES: usize = 8;
const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
const DONT_FRAGMENT: u8 = 0x40;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use netserv_sdk::PACKET_BYTES_MAX;
    use netserv_sdk::ip::parse_udp;
    use netserv_testing::udp;

    use super::*;

    const V4: [&str; 4] = ["192.0.2.9:4000", "198.51.100.1:30000", "198.51.100.2:30002", "203.0.113.9:6000"];
    const V6: [&str; 4] =
        ["[2001:db8::9]:4000", "[2001:db8:1::1]:30000", "[2001:db8:1::2]:30002", "[2001:db8:9::9]:6000"];

    fn redirected(packet: &[u8], from: &str, to: &str) -> Option<Vec<u8>> {
        let mut slot = [0xaa; PACKET_BYTES_MAX];
        slot[..packet.len()].copy_from_slice(packet);
        let mut packet = Packet::new(&mut slot, packet.len(), Duration::ZERO, 1);
        let udp = parse_udp(packet.bytes()).unwrap();
        redirect(&mut packet, &udp, from.parse().unwrap(), to.parse().unwrap()).then(|| packet.bytes().to_vec())
    }

    #[test]
    fn packets_go_between_all_versions_of_ip() {
        for before in [V4, V6] {
            for after in [V4, V6] {
                for length in [0, 1, 12, 171, 172, 1400] {
                    let payload: Vec<u8> = (0..=250).cycle().take(length).collect();
                    let packet = udp(before[0], before[1], 61, &payload);
                    let expected = udp(after[2], after[3], 61, &payload);
                    assert_eq!(
                        redirected(&packet, after[2], after[3]),
                        Some(expected),
                        "{before:?} {after:?} {length}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_class_of_traffic_stays() {
        let (mut v4, mut v6) = (udp(V4[0], V4[1], 61, b"x"), udp(V6[0], V6[1], 61, b"x"));
        (v4[1], v4[4], v4[5], v4[6]) = (0xb8, 1, 2, 0);
        (v6[0], v6[1]) = (0x6b, 0x80);
        let to_v4 = [redirected(&v4, V4[2], V4[3]).unwrap(), redirected(&v6, V4[2], V4[3]).unwrap()];
        assert_eq!(to_v4.map(|packet| packet[1]), [0xb8, 0xb8]);
        assert_eq!(redirected(&v4, V4[2], V4[3]).unwrap()[4..7], [1, 2, 0]);
        for packet in [v4, v6] {
            assert_eq!(redirected(&packet, V6[2], V6[3]).unwrap()[..2], [0x6b, 0x80]);
        }
    }

    #[test]
    fn options_and_padding_are_left_out() {
        let plain = udp(V4[0], V4[1], 61, b"payload");
        let mut with_options = [&[0x46][..], &plain[1..20], &[1, 1, 1, 0], &plain[20..], b"pad"].concat();
        put16(&mut with_options, 2, plain.len() + 4);
        assert_eq!(redirected(&with_options, V4[2], V4[3]), Some(udp(V4[2], V4[3], 61, b"payload")));
    }

    #[test]
    fn what_does_not_fit_stays_as_it_is() {
        let payload = vec![1; PACKET_BYTES_MAX - 28];
        assert!(redirected(&udp(V4[0], V4[1], 61, &payload), V4[2], V4[3]).is_some());
        assert_eq!(redirected(&udp(V4[0], V4[1], 61, &payload), V6[2], V6[3]), None);
        assert_eq!(redirected(&udp(V4[0], V4[1], 61, b""), V4[2], V6[3]), None);
    }
}
