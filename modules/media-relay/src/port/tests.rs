// SPDX-License-Identifier: Apache-2.0

use super::*;

const NAMED: &str = "192.0.2.9:4000";
const OTHER: &str = "203.0.113.9:1024";
const THIRD: &str = "203.0.113.10:1024";

fn port(change: impl FnOnce(&mut Entry)) -> Port {
    let mut entry = Entry {
        port: 30000,
        out: 30002,
        generation: 1,
        local: "198.51.100.1".parse().unwrap(),
        peer: Some(end(NAMED)),
        is_strict: false,
        is_fixed: false,
        carries: Carries::Rtp,
    };
    change(&mut entry);
    Port::new(entry)
}

fn end(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn rtp(ssrc: u8) -> Vec<u8> {
    [&[0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, ssrc][..], &[0xff; 160]].concat()
}

fn dtls() -> Vec<u8> {
    vec![22, 254, 253, 0, 0]
}

fn stun() -> Vec<u8> {
    [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], b"transaction1"].concat()
}

/// Has packets come, 20 ms apart, and compares what becomes of each, and where the party is taken to be after all.
fn check(mut port: Port, packets: &[(&str, Vec<u8>, Result<(), Reason>)], target: &str) {
    for (number, (source, bytes, expected)) in packets.iter().enumerate() {
        let judged = port.judge(end(source), bytes, number as u64 * 20_000, 1000);
        assert_eq!(judged, *expected, "packet {number} from {source}");
    }
    assert_eq!(port.target(), Some(end(target)));
}

#[test]
fn the_first_source_is_the_partys() {
    check(port(|_| {}), &[], NAMED);
    check(port(|_| {}), &[(NAMED, rtp(1), Ok(())), (OTHER, rtp(2), Err(Reason::Ssrc))], NAMED);
    check(port(|_| {}), &[(OTHER, rtp(1), Ok(())), (THIRD, rtp(2), Err(Reason::Ssrc)), (OTHER, rtp(9), Ok(()))], OTHER);
    check(port(|entry| entry.peer = None), &[(OTHER, dtls(), Ok(())), (THIRD, dtls(), Err(Reason::Source))], OTHER);
}

#[test]
fn a_party_that_moves_is_known_by_what_it_sends() {
    check(port(|_| {}), &[(OTHER, rtp(1), Ok(())), (THIRD, rtp(1), Ok(())), (OTHER, rtp(2), Err(Reason::Ssrc))], THIRD);
    let strict = |entry: &mut Entry| entry.is_strict = true;
    check(port(strict), &[(OTHER, rtp(1), Ok(())), (THIRD, rtp(1), Err(Reason::Source))], OTHER);
}

#[test]
fn who_is_where_the_description_says_wins_for_a_while() {
    check(port(|_| {}), &[(OTHER, rtp(7), Ok(())), (NAMED, rtp(1), Ok(())), (OTHER, rtp(7), Err(Reason::Ssrc))], NAMED);
    let mut late = vec![(OTHER, rtp(7), Ok(())); 1 + usize::try_from(LEARNING_MS / 20).unwrap()];
    late.push((NAMED, rtp(1), Err(Reason::Ssrc)));
    check(port(|_| {}), &late, OTHER);
}

#[test]
fn one_that_sends_from_elsewhere_gets_what_is_its_where_it_is() {
    let fixed = |entry: &mut Entry| entry.is_fixed = true;
    check(port(fixed), &[(OTHER, rtp(1), Ok(())), (THIRD, rtp(2), Err(Reason::Ssrc))], NAMED);
    let both = |entry: &mut Entry| (entry.is_fixed, entry.is_strict) = (true, true);
    check(port(both), &[(OTHER, rtp(1), Err(Reason::Source)), (NAMED, rtp(1), Ok(()))], NAMED);
}

#[test]
fn what_is_no_media_leads_nothing_to_anybody() {
    let junk = vec![0x80, 0];
    check(port(|_| {}), &[(OTHER, stun(), Ok(())), (OTHER, junk.clone(), Ok(())), (NAMED, rtp(1), Ok(()))], NAMED);
    check(
        port(|_| {}),
        &[(NAMED, rtp(1), Ok(())), (OTHER, stun(), Err(Reason::Source)), (NAMED, stun(), Ok(()))],
        NAMED,
    );
    let udptl = |entry: &mut Entry| entry.carries = Carries::Other;
    check(port(udptl), &[(OTHER, junk.clone(), Ok(())), (THIRD, junk, Err(Reason::Source))], OTHER);
}

#[test]
fn sources_that_are_no_machine_are_none() {
    for source in ["127.0.0.1:1", "224.0.0.1:1", "0.0.0.0:1", "192.0.2.9:0", "[::1]:1", "255.255.255.255:9"] {
        check(port(|_| {}), &[(source, rtp(1), Err(Reason::Source))], NAMED);
    }
}

#[test]
fn rtcp_tells_its_source_too() {
    let report = [&[0x80, 200, 0, 1][..], &[0, 0, 0, 1]].concat();
    let rtcp = |entry: &mut Entry| entry.carries = Carries::Rtcp;
    check(port(rtcp), &[(OTHER, report.clone(), Ok(())), (THIRD, report.clone(), Ok(()))], THIRD);
    // In the port of RTP, it is of the same source.
    check(port(|_| {}), &[(OTHER, rtp(1), Ok(())), (THIRD, report, Ok(()))], THIRD);
}

#[test]
fn another_description_has_the_party_learned_anew() {
    let mut port = port(|_| {});
    port.judge(end(OTHER), &rtp(1), 0, 1000).unwrap();
    port.set(port.entry);
    assert_eq!(port.target(), Some(end(OTHER)));
    port.set(Entry { generation: 2, ..port.entry });
    assert_eq!(port.target(), Some(end(NAMED)));
    assert_eq!(port.judge(end(THIRD), &rtp(2), 0, 1000), Ok(()));
}

#[test]
fn a_port_relays_no_more_than_its_rate() {
    let mut port = port(|_| {});
    let mut relayed = |from_us: u64, packets: u64, each_us: u64| {
        let at = |number| from_us + number * each_us;
        (0..packets).filter(|number| port.judge(end(NAMED), &rtp(1), at(*number), 1000).is_ok()).count()
    };
    assert_eq!(relayed(0, 2000, 0), 500);
    assert_eq!(relayed(10_000_000, 10_000, 100), 500 + 999);
    assert_eq!(relayed(60_000_000, 3000, 1000), 3000);
}

#[test]
fn what_was_learned_goes_to_another_node() {
    let mut port = port(|_| {});
    port.judge(end(OTHER), &rtp(1), 0, 1000).unwrap();
    port.count(172);
    let mut bytes = Vec::new();
    port.save(&mut bytes);
    let mut there = Port::new(port.entry);
    there.restore(Saved::take(&mut &bytes[..]).unwrap());
    assert_eq!((there.target(), there.counts), (Some(end(OTHER)), port.counts));
    assert_eq!(there.judge(end(THIRD), &rtp(2), 0, 1000), Err(Reason::Ssrc));
    for length in 0..bytes.len() {
        assert_eq!(Saved::take(&mut &bytes[..length]), None);
    }
    // What was learned of another description is not of use.
    let mut other = Port::new(Entry { generation: 9, ..port.entry });
    other.restore(Saved::take(&mut &bytes[..]).unwrap());
    assert_eq!(other.target(), Some(end(NAMED)));
}
