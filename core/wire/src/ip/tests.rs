// SPDX-License-Identifier: Apache-2.0
//! Packets of both versions, whole, cut and wrong.

use std::net::SocketAddr;

use netserv_model::Flow;
use proptest::collection::vec;
use proptest::prelude::*;

use super::checksum::{TransportChecksum, fill, sum, verify_header, verify_transport};
use super::*;

#[test]
fn flows_are_found() {
    check_flow(&udp4(), "10.1.0.1", "10.2.0.9", 17, Some((4000, 5060)));
    check_flow(&udp6(), "fd00:1::1", "fd00:2::9", 17, Some((4000, 5060)));
    let ports = [0x0F, 0xA0, 0x13, 0xC4];
    for protocol in [protocol::TCP, protocol::DCCP, protocol::SCTP, protocol::UDP_LITE] {
        check_flow(&packet4(protocol, &ports), "10.1.0.1", "10.2.0.9", protocol, Some((4000, 5060)));
    }
    check_flow(&packet4(protocol::ICMP, &[8, 0, 0, 0, 1, 2, 3, 4]), "10.1.0.1", "10.2.0.9", 1, None);
    check_flow(&packet4(protocol::TCP, &ports[..3]), "10.1.0.1", "10.2.0.9", 6, None);
    check_flow(&packet6(59, &[]), "fd00:1::1", "fd00:2::9", 59, None);
}

#[test]
fn segments_that_open_connections_are_told_from_others() {
    let segment = |flags: u8| {
        let mut header = [0x0F, 0xA0, 0x13, 0xC4, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0, 0x10, 0, 0, 0, 0, 0];
        header[13] = flags;
        header
    };
    let opens = |packet: &[u8]| IpView::parse(packet).unwrap().flow().opens;
    // SYN, also with ECN's bits, PSH and URG.
    for flags in [0x02, 0xC2, 0x0A, 0x22] {
        assert!(opens(&packet4(protocol::TCP, &segment(flags))) && opens(&packet6(protocol::TCP, &segment(flags))));
    }
    // SYN with ACK, ACK, none, FIN, RST, and SYN with those.
    for flags in [0x12, 0x10, 0x00, 0x01, 0x04, 0x03, 0x06] {
        assert!(!opens(&packet4(protocol::TCP, &segment(flags))), "{flags:#x}");
    }
    assert!(!opens(&packet4(protocol::UDP, &segment(0x02))) && !opens(&packet4(protocol::TCP, &segment(0x02)[..13])));
    // A later fragment has data there.
    let later = changed(packet4(protocol::TCP, &segment(0x02)), 7, 1);
    assert!(!opens(&later));
}

#[test]
fn views_know_their_headers() {
    let (v4, v6) = (udp4(), udp6());
    let (view4, view6) = (IpView::parse(&v4).unwrap(), IpView::parse(&v6).unwrap());
    assert_eq!((view4.version(), view4.ttl(), view4.payload_offset()), (IpVersion::V4, 64, 20));
    assert_eq!((view6.version(), view6.ttl(), view6.payload_offset()), (IpVersion::V6, 64, 40));
    let datagram = UdpView { source_port: 4000, destination_port: 5060, payload: b"hello" };
    assert_eq!((view4.udp(), view6.udp()), (Some(datagram), Some(datagram)));
    assert_eq!(addresses(&v4), Some((view4.source(), view4.destination())));
    assert_eq!(addresses(&v6), Some((view6.source(), view6.destination())));
    assert_eq!((addresses(&v4[..19]), addresses(&v6[..39]), addresses(&[])), (None, None, None));
}

#[test]
fn what_pads_the_frame_is_not_the_packet() {
    for packet in [udp4(), udp6()] {
        let padded = [&packet[..], &[0xAA; 18]].concat();
        let view = IpView::parse(&padded).unwrap();
        assert_eq!(view.bytes(), packet);
        assert_eq!(view.udp().unwrap().payload, b"hello");
    }
}

#[test]
fn packets_that_are_none_are_refused() {
    let check = |packet: &[u8], error: IpError| assert_eq!(IpView::parse(packet).unwrap_err(), error, "{packet:x?}");
    check(&[], IpError::Version);
    check(&[0x50; 60], IpError::Version);
    for packet in [udp4(), udp6()] {
        for length in 1..packet.len() {
            check(&packet[..length], IpError::Truncated);
        }
    }
    check(&changed(udp4(), 0, 0x44), IpError::HeaderLength);
    check(&changed(udp4(), 0, 0x4F), IpError::TotalLength);
    check(&changed(udp4(), 3, 19), IpError::TotalLength);
    check(&changed(udp4(), 3, 255), IpError::Truncated);
    check(&changed(udp6(), 5, 255), IpError::Truncated);
}

#[test]
fn ipv4_fragments_show_ports_once() {
    let first = changed(udp4(), 6, 0x20);
    let view = IpView::parse(&first).unwrap();
    assert_eq!((view.fragment(), view.ports()), (Fragment::First, Some((4000, 5060))));
    assert_eq!(view.udp(), None);
    for (byte, value) in [(6, 0x20), (6, 0x00)] {
        let later = changed(changed(udp4(), byte, value), 7, 1);
        let view = IpView::parse(&later).unwrap();
        assert_eq!((view.fragment(), view.ports()), (Fragment::Later, None));
        assert_eq!((view.udp(), verify_transport(&view)), (None, TransportChecksum::Absent));
    }
}

#[test]
fn ipv4_options_are_stepped_over() {
    let packet = with_ipv4_options(&[1, 1, 0x94, 4, 0xFF, 0xE0, 0, 0]);
    let view = IpView::parse(&packet).unwrap();
    assert_eq!((view.payload_offset(), view.ports()), (28, Some((4000, 5060))));
    assert_eq!(view.router_alert(), Some(65504));
}

#[test]
fn router_alerts_are_found() {
    let alert = |options: &[u8]| IpView::parse(&with_ipv4_options(options)).unwrap().router_alert();
    assert_eq!(alert(&[]), None);
    assert_eq!(alert(&[0x94, 4, 0, 33]), Some(33));
    assert_eq!(alert(&[0x07, 3, 4, 1, 0x94, 4, 0, 33]), Some(33));
    assert_eq!(alert(&[0, 0, 0, 0, 0x94, 4, 0, 33]), None, "after the end of the list");
    assert_eq!(alert(&[0x94, 3, 0, 33]), None, "of another length");
    assert_eq!(alert(&[0x94, 9, 0, 33]), None, "longer than the header");
    assert_eq!(alert(&[0x07, 0, 0x94, 4, 0, 33, 1, 1]), Some(33), "after an option without length");
    assert_eq!(alert(&[1, 1, 1, 0x94]), None, "cut at the end");

    let alert = |options: [u8; 6]| {
        let header = [&[protocol::UDP, 0][..], &options].concat();
        let packet = packet6(0, &[&header[..], &udp_header(), b"hello"].concat());
        let view = IpView::parse(&packet).unwrap();
        assert_eq!(view.ports(), Some((4000, 5060)));
        view.router_alert()
    };
    assert_eq!(alert([5, 2, 0, 36, 1, 0]), Some(36));
    assert_eq!(alert([0, 0, 5, 2, 0, 36]), Some(36));
    assert_eq!(alert([1, 4, 5, 2, 0, 36]), None, "inside padding");
    assert_eq!(alert([1, 0, 5, 3, 0, 36]), None, "of another length");
    assert_eq!(IpView::parse(&udp6()).unwrap().router_alert(), None);
}

#[test]
fn source_routes_and_home_addresses_are_found() {
    let check4 = |options: &[u8], expected| {
        let packet = with_ipv4_options(options);
        assert_eq!(IpView::parse(&packet).unwrap().names_other_addresses(), expected, "{options:02x?}");
    };
    check4(&[], false);
    check4(&[0x83, 7, 4, 10, 0, 0, 9], true);
    check4(&[0x89, 7, 4, 10, 0, 0, 9], true);
    check4(&[1, 0x94, 4, 0, 0, 0x89, 7, 4, 10, 0, 0, 9], true);
    check4(&[0x07, 7, 4, 0x83, 0x89, 0, 0], false);
    check4(&[0, 0x83, 7, 4, 10, 0, 0, 9], false);
    check4(&[0x83], true);
    check4(&[1, 1, 1, 0x83], false);

    let check6 = |kind: u8, headers: &[u8], expected| {
        let packet = packet6(kind, &[headers, &udp_header(), b"hello"].concat());
        assert_eq!(IpView::parse(&packet).unwrap().names_other_addresses(), expected, "{headers:02x?}");
    };
    let home = |option: u8| [&[protocol::UDP, 2, 1, 2, 0, 0, option, 16][..], &[0xFD; 16]].concat();
    check6(60, &home(0xC9), true);
    check6(60, &home(0x1E), false);
    check6(0, &[&[60, 0, 1, 4, 0, 0, 0, 0][..], &home(0xC9)].concat(), true);
    let routing = |kind: u8, left: u8| [&[protocol::UDP, 2, kind, left, 0, 0, 0, 0][..], &[0xFD; 16]].concat();
    check6(43, &routing(0, 1), true);
    check6(43, &routing(0, 0), true);
    check6(43, &routing(4, 1), false);
    check6(protocol::UDP, &[], false);
    let chain = long_chain();
    assert!(!IpView::parse(&chain).unwrap().names_other_addresses());
}

#[test]
fn extension_headers_are_walked_up_to_the_bound() {
    let options = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
    let chain = |count: usize| {
        let mut payload = Vec::new();
        (1..count).for_each(|_| payload.extend_from_slice(&options(60)));
        payload.extend_from_slice(&options(protocol::UDP));
        payload.extend_from_slice(&udp_header());
        payload.extend_from_slice(b"hello");
        packet6(60, &payload)
    };
    for count in 1..=limits::EXTENSION_HEADERS_MAX {
        check_flow(&chain(count), "fd00:1::1", "fd00:2::9", 17, Some((4000, 5060)));
    }
    let error = IpView::parse(&chain(limits::EXTENSION_HEADERS_MAX + 1)).unwrap_err();
    assert_eq!(error, IpError::ExtensionHeaders);
}

#[test]
fn every_extension_header_has_its_length() {
    let udp = [&udp_header()[..], b"hello"].concat();
    let check = |kind: u8, header: &[u8], offset: usize| {
        let packet = packet6(kind, &[header, &udp].concat());
        let view = IpView::parse(&packet).unwrap();
        assert_eq!((view.payload_offset(), view.ports()), (offset, Some((4000, 5060))), "{kind}");
        let cut = packet6(kind, &header[..header.len() - 1]);
        assert_eq!(IpView::parse(&cut).unwrap_err(), IpError::Truncated, "{kind}");
    };
    for kind in [0, 43, 60, 135, 139, 140] {
        check(kind, &[17, 0, 0, 0, 0, 0, 0, 0], 48);
        check(kind, &[&[17, 1, 0, 0][..], &[0; 12]].concat(), 56);
    }
    check(44, &[17, 200, 0, 0, 1, 2, 3, 4], 48);
    check(51, &[&[17, 4, 0, 0][..], &[0; 20]].concat(), 64);
    // ESP hides what follows.
    check_flow(&packet6(50, &udp), "fd00:1::1", "fd00:2::9", 50, None);
}

#[test]
fn ipv6_fragments_show_ports_once() {
    let fragment = |field: u16| {
        let [high, low] = field.to_be_bytes();
        packet6(44, &[&[17, 0, high, low, 0, 0, 0, 1][..], &udp_header(), b"hello"].concat())
    };
    for (field, kind, ports) in [
        (0x0000, Fragment::Whole, Some((4000, 5060))),
        (0x0001, Fragment::First, Some((4000, 5060))),
        (0x0009, Fragment::Later, None),
        (0x0008, Fragment::Later, None),
    ] {
        let packet = fragment(field);
        let view = IpView::parse(&packet).unwrap();
        assert_eq!((view.fragment(), view.ports(), view.protocol()), (kind, ports, 17));
    }
    // A later fragment is not walked further: what follows is not a header.
    let later = packet6(44, &[60, 0, 0, 8, 0, 0, 0, 1, 0xFF, 0xFF]);
    assert_eq!(IpView::parse(&later).unwrap().protocol(), 60);
}

#[test]
fn lengths_of_udp_must_be_possible() {
    for (length, payload) in [(7, None), (8, Some(&b""[..])), (10, Some(b"he")), (13, Some(b"hello")), (14, None)] {
        let packet = changed(udp4(), 25, length);
        let view = IpView::parse(&packet).unwrap();
        assert_eq!(view.udp().map(|datagram| datagram.payload), payload, "{length}");
        assert_eq!(verify_transport(&view) == TransportChecksum::Absent, payload.is_none(), "{length}");
    }
}

/// RFC 1071 §3 gives the example.
#[test]
fn sums_are_as_the_standard_says() {
    assert_eq!(sum(&[0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7]), 0xDDF2);
    assert_eq!(sum(&[0x00, 0x01, 0xF2]), 0xF201);
    assert_eq!((sum(&[]), sum(&[0xFF; 64])), (0, 0xFFFF));
}

/// RFC 1624 §4 gives the example: a field of a header goes from 0x5555 to 0x3285 and the checksum becomes zero.
#[test]
fn updates_are_as_the_standard_says() {
    let before = 0xDD2F_u16;
    assert_eq!(edit::updated(before, 0x5555, 0x3285), 0x0000);
}

#[test]
fn damage_is_noticed() {
    let tcp: Vec<u8> = (0..40).collect();
    for (protocol, payload) in [(protocol::TCP, &tcp[..]), (protocol::ICMP, &[8, 0, 0, 0, 1, 2, 3, 4, 5])] {
        check_damage(&packet4(protocol, payload));
    }
    for (protocol, payload) in [(protocol::TCP, &tcp[..]), (protocol::ICMPV6, &[128, 0, 0, 0, 1, 2, 3, 4, 5])] {
        check_damage(&packet6(protocol, payload));
    }
    check_damage(&udp4());
    check_damage(&udp6());
}

#[test]
fn udp_may_go_without_checksum_over_ipv4_only() {
    let without = changed(changed(udp4(), 26, 0), 27, 0);
    assert_eq!(verify_transport(&IpView::parse(&without).unwrap()), TransportChecksum::Absent);
    let mut filled = without.clone();
    fill(&mut filled).unwrap();
    assert_eq!(filled, without);

    let without = changed(changed(udp6(), 46, 0), 47, 0);
    assert_eq!(verify_transport(&IpView::parse(&without).unwrap()), TransportChecksum::Bad);
    let mut filled = without;
    fill(&mut filled).unwrap();
    assert_eq!(filled, udp6());
}

#[test]
fn a_udp_checksum_is_never_written_as_zero() {
    let zero = (0..=u16::MAX).find_map(|number| {
        let packet = udp(&number.to_be_bytes());
        (packet[26..28] == [0xFF, 0xFF]).then_some(packet)
    });
    let packet = zero.expect("one payload of two bytes sums up to that");
    assert_eq!(verify_transport(&IpView::parse(&packet).unwrap()), TransportChecksum::Good);

    fn udp(payload: &[u8]) -> Vec<u8> {
        build::udp(address("10.1.0.1:4000"), address("10.2.0.9:5060"), 64, payload).unwrap()
    }
}

#[test]
fn an_icmp_message_of_zeros_has_a_checksum() {
    let packet = packet4(protocol::ICMP, &[0; 8]);
    assert_eq!(packet[22..24], [0xFF, 0xFF]);
    assert_eq!(verify_transport(&IpView::parse(&packet).unwrap()), TransportChecksum::Good);
}

/// RFC 8200 §8.1: the checksum covers the last destination of a route that is not done.
#[test]
fn routing_headers_change_the_covered_destination() {
    let last: std::net::Ipv6Addr = "fd00:3::3".parse().unwrap();
    let other: std::net::Ipv6Addr = "fd00:4::4".parse().unwrap();
    let direct = build::udp(address("[fd00:1::1]:4000"), SocketAddr::new(last.into(), 5060), 64, b"hello").unwrap();
    let check = |kind: u8, segments_left: u8, segments: [std::net::Ipv6Addr; 2], good: bool| {
        let header = [17, 4, kind, segments_left, 0, 0, 0, 0];
        let segments = segments.map(|segment| segment.octets()).concat();
        let mut packet = packet6_as_is(43, &[&header[..], &segments, &direct[40..]].concat());
        let verdict = if good { TransportChecksum::Good } else { TransportChecksum::Bad };
        assert_eq!(verify_transport(&IpView::parse(&packet).unwrap()), verdict, "{kind} {segments_left}");
        fill(&mut packet).unwrap();
        assert_eq!(verify_transport(&IpView::parse(&packet).unwrap()), TransportChecksum::Good);
    };
    check(0, 1, [other, last], true);
    check(2, 1, [other, last], true);
    check(4, 1, [last, other], true);
    check(4, 1, [other, last], false);
    check(0, 0, [other, last], false);
}

#[test]
fn ttl_changes_keep_the_header_checksum() {
    for ttl in 0..=255 {
        let (mut v4, mut v6) = (udp4(), udp6());
        set_ttl(&mut v4, ttl).unwrap();
        set_ttl(&mut v6, ttl).unwrap();
        for packet in [&v4, &v6] {
            let view = IpView::parse(packet).unwrap();
            assert!(verify_header(&view));
            assert_eq!((view.ttl(), verify_transport(&view)), (ttl, TransportChecksum::Good));
        }
    }
    assert_eq!(set_ttl(&mut udp4()[..19], 9), Err(IpError::Truncated));
    assert_eq!(set_ttl(&mut [], 9), Err(IpError::Version));
    // A wrong checksum stays wrong, so that damage is not hidden.
    let mut damaged = changed(udp4(), 10, 0);
    set_ttl(&mut damaged, 9).unwrap();
    assert!(!verify_header(&IpView::parse(&damaged).unwrap()));
}

#[test]
fn ttl_counts_down_to_zero_once() {
    for packet in [udp4(), udp6()] {
        let mut packet = packet;
        set_ttl(&mut packet, 3).unwrap();
        assert_eq!((decrement_ttl(&mut packet), decrement_ttl(&mut packet)), (Ok(2), Ok(1)));
        let before = packet.clone();
        assert_eq!((decrement_ttl(&mut packet), packet), (Ok(0), before));
    }
}

#[test]
fn payloads_are_replaced() {
    let options = with_ipv4_options(&[0x94, 4, 0, 33]);
    for packet in [udp4(), udp6(), options] {
        for payload in [&b""[..], b"a longer payload than before"] {
            let replaced = build::replace_udp_payload(&packet, payload).unwrap();
            let (old, new) = (IpView::parse(&packet).unwrap(), IpView::parse(&replaced).unwrap());
            assert_eq!((new.udp().unwrap().payload, new.flow()), (payload, old.flow()));
            assert_eq!((new.payload_offset(), new.router_alert()), (old.payload_offset(), old.router_alert()));
            assert_eq!((verify_header(&new), verify_transport(&new)), (true, TransportChecksum::Good));
            assert_eq!(replaced.len(), new.bytes().len());
        }
    }
    let fragment = changed(udp4(), 6, 0x20);
    assert_eq!(build::replace_udp_payload(&fragment, b""), Err(IpError::NotUdp));
    assert_eq!(build::replace_udp_payload(&udp4(), &[0; limits::IPV4_BYTES_MAX - 27]), Err(IpError::Impossible));
    assert!(build::replace_udp_payload(&udp4(), &[0; limits::IPV4_BYTES_MAX - 28]).is_ok());
    assert!(build::replace_udp_payload(&udp6(), &[0; limits::IPV6_PAYLOAD_BYTES_MAX - 8]).is_ok());
}

#[test]
fn impossible_packets_are_not_built() {
    let mixed = build::udp(address("10.1.0.1:1"), address("[fd00::1]:1"), 64, b"");
    assert_eq!(mixed, Err(IpError::Impossible));
    let (source, destination) = ("10.1.0.1".parse().unwrap(), "10.2.0.9".parse().unwrap());
    let build = |bytes: usize| build::ip(source, destination, 200, 64, &vec![0; bytes]);
    assert!(build(limits::IPV4_BYTES_MAX - 20).is_ok());
    assert_eq!(build(limits::IPV4_BYTES_MAX - 19), Err(IpError::Impossible));
}

proptest! {
    #[test]
    fn no_bytes_do_harm(bytes in vec(any::<u8>(), 0..200), version in prop::sample::select(vec![4_u8, 6, 0])) {
        let mut bytes = bytes;
        if let (Some(first), 4 | 6) = (bytes.first_mut(), version) {
            *first = version << 4 | (*first & 0x0F);
        }
        check_any(&bytes)?;
    }

    #[test]
    fn damaged_packets_do_no_harm(
        packet in prop::sample::select(vec![udp4(), udp6(), with_ipv4_options(&[0x94, 4, 0, 33]), long_chain()]),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
        length in any::<prop::sample::Index>(),
    ) {
        let mut packet = packet;
        for (index, value) in damage {
            let index = index.index(packet.len());
            packet[index] = value;
        }
        check_any(&packet)?;
        check_any(&packet[..length.index(packet.len())])?;
    }

    #[test]
    fn filled_checksums_are_right(payload in vec(any::<u8>(), 0..100), protocol in any::<u8>()) {
        let options = [protocol, 0, 1, 4, 0, 0, 0, 0];
        for packet in [packet4(protocol, &payload), packet6(60, &[&options[..], &payload].concat())] {
            // Random bytes may form extension headers that are cut short, which no checksum is filled into.
            let Ok(view) = IpView::parse(&packet) else { continue };
            prop_assert!(verify_header(&view));
            prop_assert_ne!(verify_transport(&view), TransportChecksum::Bad);
        }
    }
}

/// Everything that can be asked of a packet is asked.
fn check_any(bytes: &[u8]) -> Result<(), TestCaseError> {
    let mut changed = bytes.to_vec();
    let _ = set_ttl(&mut changed, 7);
    let _ = decrement_ttl(&mut changed);
    let _ = build::replace_udp_payload(bytes, b"other");
    let Ok(view) = IpView::parse(bytes) else {
        prop_assert!(fill(&mut bytes.to_vec()).is_err());
        return Ok(());
    };
    prop_assert_eq!(addresses(bytes), Some((view.source(), view.destination())));
    prop_assert_eq!(view.bytes(), &bytes[..view.bytes().len()]);
    prop_assert!(view.payload_offset() <= view.bytes().len());
    let _ = (view.flow(), view.udp(), view.router_alert(), view.names_other_addresses(), verify_header(&view));
    let before = verify_transport(&view);
    let mut filled = bytes.to_vec();
    prop_assert_eq!(fill(&mut filled), Ok(()));
    let view = IpView::parse(&filled).expect("checksums change no length");
    let expected = if before == TransportChecksum::Absent { before } else { TransportChecksum::Good };
    prop_assert_eq!((verify_header(&view), verify_transport(&view)), (true, expected));
    Ok(())
}

fn check_flow(packet: &[u8], source: &str, destination: &str, protocol: u8, ports: Option<(u16, u16)>) {
    let (source_port, destination_port) = ports.unzip();
    let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
    let flow = Flow { source, destination, protocol, source_port, destination_port, opens: false };
    assert_eq!(IpView::parse(packet).unwrap().flow(), flow);
}

/// Every byte of a packet but its TTL and what routers change is covered by a checksum.
fn check_damage(packet: &[u8]) {
    let view = IpView::parse(packet).unwrap();
    assert_eq!((verify_header(&view), verify_transport(&view)), (true, TransportChecksum::Good));
    for byte in view.payload_offset()..packet.len() {
        let damaged = changed(packet.to_vec(), byte, packet[byte] ^ 0x10);
        let verdict = verify_transport(&IpView::parse(&damaged).unwrap());
        // A UDP length that is longer than the packet leaves nothing to verify.
        assert_ne!(verdict, TransportChecksum::Good, "byte {byte}");
    }
}

fn udp4() -> Vec<u8> {
    build::udp(address("10.1.0.1:4000"), address("10.2.0.9:5060"), 64, b"hello").unwrap()
}

fn udp6() -> Vec<u8> {
    build::udp(address("[fd00:1::1]:4000"), address("[fd00:2::9]:5060"), 64, b"hello").unwrap()
}

fn packet4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    build::ip("10.1.0.1".parse().unwrap(), "10.2.0.9".parse().unwrap(), protocol, 64, payload).unwrap()
}

/// Returns an IPv6 packet, with its checksum if its extension headers lead to one.
fn packet6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = packet6_as_is(protocol, payload);
    let _ = fill(&mut packet);
    packet
}

fn packet6_as_is(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = udp6()[..40].to_vec();
    packet[4..6].copy_from_slice(&u16::try_from(payload.len()).unwrap().to_be_bytes());
    packet[6] = protocol;
    packet.extend_from_slice(payload);
    packet
}

fn long_chain() -> Vec<u8> {
    let headers = [60, 0, 5, 2, 0, 36, 1, 0, 43, 0, 1, 4, 0, 0, 0, 0, 44, 2, 4, 1, 0, 0, 0, 0];
    let segment = [&[0xFD][..], &[7; 15]].concat();
    let rest = [51, 0, 0, 0, 0, 0, 0, 9, 17, 4, 0, 0];
    packet6(0, &[&headers[..], &segment, &rest, &[0; 20], &udp_header(), b"hello"].concat())
}

fn with_ipv4_options(options: &[u8]) -> Vec<u8> {
    let plain = udp4();
    let padding = vec![0; options.len().next_multiple_of(4) - options.len()];
    let mut packet = [&plain[..20], options, &padding, &plain[20..]].concat();
    packet[0] = 0x40 | u8::try_from((20 + options.len()).div_ceil(4)).unwrap();
    let total = u16::try_from(packet.len()).unwrap();
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    fill(&mut packet).unwrap();
    packet
}

/// A UDP header for the payload `hello`; [`packet6`] fills in its checksum.
fn udp_header() -> [u8; 8] {
    [0x0F, 0xA0, 0x13, 0xC4, 0, 13, 0, 0]
}

fn changed(mut packet: Vec<u8>, byte: usize, value: u8) -> Vec<u8> {
    packet[byte] = value;
    packet
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}
