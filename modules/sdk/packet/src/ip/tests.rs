// SPDX-License-Identifier: Apache-2.0

use std::time::Duration;

use super::*;
use crate::PACKET_BYTES_MAX;

fn written(source: &str, destination: &str, payload: &[u8]) -> Vec<u8> {
    let mut slot = [0xaa; PACKET_BYTES_MAX];
    let mut packet = Packet::new(&mut slot, 1, Duration::ZERO, 0);
    assert!(write_udp(&mut packet, source.parse().unwrap(), destination.parse().unwrap(), payload));
    packet.bytes().to_vec()
}

/// An IPv6 packet with hop-by-hop options and a fragment header in front of UDP.
fn with_extensions(fragment_field: u16) -> Vec<u8> {
    let plain = written("[2001:db8::1]:7", "[2001:db8::2]:9", b"data");
    let mut packet = plain[..40].to_vec();
    packet[6] = 0;
    packet[5] += 16;
    packet.extend([44, 0, 1, 4, 0, 0, 0, 0]);
    packet.extend([17, 0]);
    packet.extend(fragment_field.to_be_bytes());
    packet.extend([0, 0, 0, 1]);
    packet.extend(&plain[40..]);
    packet
}

#[test]
fn what_is_written_is_read() {
    for (source, destination) in [("10.0.0.1:5060", "10.0.0.2:40000"), ("[2001:db8::1]:5060", "[2001:db8::2]:1")] {
        for payload in [&b""[..], b"x", b"odd", b"even"] {
            let packet = written(source, destination, payload);
            let udp = parse_udp(&packet).unwrap();
            assert_eq!((udp.source, udp.destination), (source.parse().unwrap(), destination.parse().unwrap()));
            assert_eq!(&packet[udp.payload], payload);
        }
    }
}

#[test]
fn checksums_are_right() {
    let packet = written("10.0.0.1:1000", "10.0.0.2:2000", b"abc");
    assert_eq!(checksum(0, &packet[..20]), 0);
    let pseudo = [&packet[12..20], &[0, 17, 0, 11], &packet[20..]].concat();
    assert_eq!(checksum(0, &pseudo), 0);
    let packet = written("[2001:db8::1]:1000", "[2001:db8::2]:2000", b"abc");
    let pseudo = [&packet[8..40], &[0, 0, 0, 11, 0, 0, 0, 17], &packet[40..]].concat();
    assert_eq!(checksum(0, &pseudo), 0);
}

#[test]
fn a_checksum_is_never_zero() {
    // The sum of everything else is 0xffff - payload, so one payload gives 0.
    let packet = (0..=u16::MAX).map(|word| written("0.0.0.1:1", "0.0.0.2:1", &word.to_be_bytes()));
    assert!(packet.map(|packet| [packet[26], packet[27]]).all(|sum| sum != [0, 0]));
}

#[test]
fn a_redirected_packet_keeps_its_payload() {
    let mut bytes = with_extensions(0);
    let udp = parse_udp(&bytes).unwrap();
    bytes.resize(PACKET_BYTES_MAX, 0);
    let mut packet = Packet::new(&mut bytes, 40 + 16 + 12, Duration::ZERO, 0);
    assert!(redirect_udp(&mut packet, &udp, udp.destination, udp.source));
    assert_eq!(packet.bytes(), written("[2001:db8::2]:9", "[2001:db8::1]:7", b"data"));
}

#[test]
fn a_replaced_payload_keeps_how_far_the_packet_may_go() {
    for (mut bytes, at) in [(written("10.0.0.1:1", "10.0.0.2:2", b"abc"), [1, 8]), (with_extensions(0), [1, 7])] {
        let [class, hops] = at;
        (bytes[class], bytes[hops]) = (bytes[class] | 0x0c, 3);
        let udp = parse_udp(&bytes).unwrap();
        let length = bytes.len();
        bytes.resize(PACKET_BYTES_MAX, 0);
        let mut packet = Packet::new(&mut bytes, length, Duration::ZERO, 0);
        assert!(!replace_udp(&mut packet, &udp, &[0; PACKET_BYTES_MAX]));
        assert!(replace_udp(&mut packet, &udp, b"another one"));
        let packet = packet.bytes();
        let now = parse_udp(packet).unwrap();
        assert_eq!(
            (now.source, now.destination, &packet[now.payload.clone()]),
            (udp.source, udp.destination, &b"another one"[..])
        );
        assert_eq!((packet[class] & 0x0c, packet[hops]), (0x0c, 3));
        let (pseudo, payload) = if udp.source.is_ipv4() { (12..20, 20) } else { (8..40, 40) };
        assert!(udp.source.is_ipv6() || checksum(0, &packet[..20]) == 0);
        assert_eq!(checksum(0, &[&packet[pseudo], &[0, 17, 0, 19], &packet[payload..]].concat()), 0);
    }
}

#[test]
fn too_long_packets_are_not_written() {
    let mut slot = [0; PACKET_BYTES_MAX];
    let mut packet = Packet::new(&mut slot, 1, Duration::ZERO, 0);
    let (source, destination) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap());
    assert!(write_udp(&mut packet, source, destination, &[0; PACKET_BYTES_MAX - 28]));
    assert!(!write_udp(&mut packet, source, destination, &[0; PACKET_BYTES_MAX - 27]));
    assert!(!write_udp(&mut packet, source, "[::1]:1".parse().unwrap(), b""));
    assert_eq!(packet.len(), PACKET_BYTES_MAX);
}

#[test]
fn fragments_are_seen_and_are_no_udp() {
    let mut packet = written("10.0.0.1:1", "10.0.0.2:1", b"x");
    for (high, is_fragment) in [(0x40, false), (0x20, true), (0x01, true)] {
        packet[6] = high;
        assert_eq!(parse(&packet).unwrap().is_fragment, is_fragment);
        assert_eq!(parse_udp(&packet).is_none(), is_fragment);
    }
    // RFC 6946: an atomic fragment is a whole packet.
    assert!(parse_udp(&with_extensions(0)).is_some());
    assert!(parse_udp(&with_extensions(1)).is_none());
    assert!(parse_udp(&with_extensions(8)).is_none());
}

#[test]
fn damaged_packets_are_nothing() {
    for packet in [written("10.0.0.1:1", "10.0.0.2:1", b"payload"), with_extensions(0)] {
        for length in 0..packet.len() {
            assert_eq!(parse_udp(&packet[..length]), None);
            let mut damaged = packet.clone();
            for value in [0, 1, 0x7f, 0xff] {
                damaged[length] = value;
                // Whatever it is taken for, its parts lie inside it.
                if let Some(udp) = parse_udp(&damaged) {
                    assert!(damaged.get(udp.payload).is_some());
                }
            }
        }
    }
}

#[test]
fn the_checksum_is_the_one_of_the_rfc() {
    // RFC 1071 §3: the sum of these bytes is 0xddf2.
    assert_eq!(checksum(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    assert_eq!(checksum(0xddf2, &[]), !0xddf2);
    assert_eq!(checksum(0, &[0xff; 1983]), checksum(0, &[0xff; 1985]));
    assert_eq!(checksum(0x1_0000, &[0, 0, 0x12]), !0x1201);
}
