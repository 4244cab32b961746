// SPDX-License-Identifier: Apache-2.0

use super::*;

const NAMED: &str = "192.0.2.9:4000";
const OTHER: &str = "203.0.113.9:1024";
const THIRD: &str = "203.0.113.10:1024";
const ELSEWHERE: &str = "192.0.2.77:6000";

fn port(change: impl FnOnce(&mut Entry)) -> Port {
    let mut entry = Entry {
        port: 30000,
        out: 30002,
        generation: 1,
        local: "198.51.100.1".parse().unwrap(),
        peer: Some(end(NAMED)),
        is_strict: false,
        is_fixed: false,
        is_offered: false,
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
fn what_is_no_media_leads_nothing_away_from_where_media_came_from() {
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

/// A party that was heard from [`OTHER`], and what a further description names.
fn described_again(peer: Option<&str>) -> Port {
    let mut port = port(|_| {});
    for number in 0..20 {
        port.judge(end(OTHER), &rtp(1), number * 20_000, 1000).unwrap();
    }
    port.set(port.entry);
    assert_eq!(port.target(), Some(end(OTHER)), "the same once more is no other description");
    describe(&mut port, peer);
    port
}

fn describe(port: &mut Port, peer: Option<&str>) {
    port.set(Entry { generation: port.entry.generation + 1, peer: peer.map(end), ..port.entry });
}

#[test]
fn a_party_whose_nat_has_another_port_is_learned_anew_by_the_same_description() {
    let newcomers = |count: usize| vec![(THIRD, rtp(2), Ok(())); count];
    check(described_again(Some(NAMED)), &[], OTHER);
    check(described_again(Some(NAMED)), &newcomers(1), THIRD);
    // What was on its way leads nothing back, before and behind the first of the new port.
    let late = vec![(OTHER, rtp(1), Ok(())); usize::from(GOES_ON_PACKETS) - 1];
    check(described_again(Some(NAMED)), &[&late[..], &newcomers(1)].concat(), THIRD);
    check(described_again(Some(NAMED)), &[&newcomers(1), &late[..], &newcomers(1)].concat(), THIRD);
    // Long after it was described, too.
    let mut port = described_again(Some(NAMED));
    port.judge(end(OTHER), &rtp(1), 0, 1000).unwrap();
    assert_eq!(port.judge(end(THIRD), &rtp(2), 60_000_000, 1000), Ok(()));
    assert_eq!(port.target(), Some(end(THIRD)));
    let strict = Port { entry: Entry { is_strict: true, ..port.entry }, ..described_again(Some(NAMED)) };
    check(strict, &newcomers(2), THIRD);
}

#[test]
fn a_party_that_goes_on_after_a_description_is_not_led_away() {
    let goes_on = vec![(OTHER, rtp(1), Ok(())); usize::from(GOES_ON_PACKETS)];
    let stranger = |judged| vec![(THIRD, rtp(2), judged)];
    let ssrc = Err(Reason::Ssrc);
    check(described_again(Some(NAMED)), &[&goes_on[..], &stranger(ssrc)].concat(), OTHER);
    check(described_again(Some(NAMED)), &[&stranger(Ok(())), &goes_on[..], &stranger(ssrc)].concat(), OTHER);
    // One that sent nothing for long is not shut out by one packet.
    let mut port = described_again(Some(NAMED));
    for (number, source, ssrc) in [(0, OTHER, 1), (10_000, THIRD, 2)] {
        port.judge(end(source), &rtp(ssrc), number * 1000, 1000).unwrap();
    }
    (0..10).for_each(|number| port.judge(end(OTHER), &rtp(1), 20_000_000 + number * 20_000, 1000).unwrap());
    assert_eq!(port.target(), Some(end(OTHER)));
}

#[test]
fn where_a_party_was_before_a_description_of_another_place_is_heard_and_never_learned() {
    check(described_again(Some(ELSEWHERE)), &[], ELSEWHERE);
    for before in [OTHER, NAMED] {
        let many = vec![(before, rtp(1), Ok(())); 200];
        check(described_again(Some(ELSEWHERE)), &many, ELSEWHERE);
        let arrived = [(ELSEWHERE, rtp(77), Ok(())), (before, rtp(1), Ok(())), (ELSEWHERE, rtp(77), Ok(()))];
        check(described_again(Some(ELSEWHERE)), &arrived, ELSEWHERE);
        // By its source, or by what keeps a NAT open, it is not followed either.
        let same = [(THIRD, rtp(1), Ok(())), (before, rtp(1), Ok(())), (before, stun(), Ok(()))];
        check(described_again(Some(ELSEWHERE)), &same, THIRD);
        check(described_again(Some(ELSEWHERE)), &[(before, stun(), Ok(()))], ELSEWHERE);
        let mut port = described_again(Some(ELSEWHERE));
        port.judge(end(ELSEWHERE), &rtp(77), 0, 1000).unwrap();
        assert_eq!(port.judge(end(before), &rtp(1), LEARNING_MS * 1000, 1000), Err(Reason::Source));
    }
    // One that is called back is there again.
    let mut port = described_again(Some(ELSEWHERE));
    describe(&mut port, Some(NAMED));
    check(port, &[(OTHER, rtp(1), Ok(()))], OTHER);
}

/// A party that was heard from [`OTHER`], with an offer of [`ELSEWHERE`] that nobody has answered.
fn offered() -> Port {
    let mut port = described_again(Some(NAMED));
    port.judge(end(OTHER), &rtp(1), 0, 1000).unwrap();
    port.set(Entry { generation: 9, peer: Some(end(ELSEWHERE)), is_offered: true, ..port.entry });
    port
}

fn answered(mut port: Port) -> Port {
    port.set(Entry { is_offered: false, ..port.entry });
    port
}

#[test]
fn a_party_whose_offer_is_rejected_is_where_it_was() {
    let goes_on = vec![(OTHER, rtp(1), Ok(())); usize::from(GOES_ON_PACKETS)];
    check(offered(), &[], ELSEWHERE);
    check(offered(), &goes_on[1..], ELSEWHERE);
    check(offered(), &goes_on, OTHER);
    let back = || {
        let mut port = offered();
        goes_on.iter().for_each(|(source, bytes, _)| port.judge(end(source), bytes, 0, 1000).unwrap());
        port
    };
    check(back(), &[(THIRD, rtp(2), Err(Reason::Ssrc))], OTHER);
    // Its next description is the one of before, or of another place.
    for mut port in [back(), offered()] {
        describe(&mut port, Some(NAMED));
        check(port, &[(OTHER, rtp(1), Ok(()))], OTHER);
    }
    for mut port in [back(), offered()] {
        describe(&mut port, Some("192.0.2.78:6000"));
        check(answered(port), &goes_on, "192.0.2.78:6000");
    }
    // Once there is an answer, what was before is left.
    for port in [back(), offered()] {
        check(answered(port), &goes_on, ELSEWHERE);
    }
    let mut arrived = offered();
    arrived.judge(end(ELSEWHERE), &rtp(77), 0, 1000).unwrap();
    check(arrived.clone(), &goes_on, ELSEWHERE);
    check(answered(arrived), &goes_on, ELSEWHERE);
}

#[test]
fn what_is_left_is_bounded() {
    let mut port = port(|_| {});
    for number in 1..=100 {
        port.judge(end(&format!("203.0.113.1:{number}")), &rtp(number), u64::from(number) * 20_000, 1000).unwrap();
        describe(&mut port, Some(&format!("192.0.2.1:{number}")));
    }
    assert_eq!(port.left.len(), LEFT_MAX);
}

#[test]
fn a_party_on_hold_is_where_it_was_when_it_is_back() {
    let held = || described_again(None);
    assert_eq!(held().target(), None);
    let back = |mut port: Port| {
        describe(&mut port, Some(NAMED));
        port
    };
    check(back(held()), &[], OTHER);
    check(back(held()), &[(OTHER, rtp(1), Ok(())), (THIRD, rtp(2), Ok(()))], THIRD);
    // Music of one that holds comes from where it is.
    check(held(), &[(OTHER, rtp(1), Ok(()))], OTHER);
    let mut silent = port(|_| {});
    silent.judge(end(OTHER), b"", 0, 1000).unwrap();
    describe(&mut silent, None);
    assert_eq!(silent.target(), None);
    check(back(silent), &[], OTHER);
}

#[test]
fn one_that_only_keeps_its_nat_open_is_where_that_comes_from() {
    for kept in [Vec::new(), vec![0; 4], stun()] {
        check(port(|_| {}), &[(OTHER, kept.clone(), Ok(()))], OTHER);
        // Media wins, and what the description names; else the first.
        check(port(|_| {}), &[(OTHER, kept.clone(), Ok(())), (THIRD, rtp(1), Ok(())), (THIRD, rtp(1), Ok(()))], THIRD);
        let named = [(OTHER, kept.clone(), Ok(())), (NAMED, kept.clone(), Ok(())), (OTHER, kept.clone(), Ok(()))];
        check(port(|_| {}), &named, NAMED);
        check(port(|_| {}), &[(OTHER, kept.clone(), Ok(())), (THIRD, kept.clone(), Ok(()))], OTHER);
        let mut port = port(|_| {});
        for (at_ms, source) in [(0, OTHER), (15_000, THIRD)] {
            port.judge(end(source), &kept, at_ms * 1000, 1000).unwrap();
        }
        assert_eq!(port.target(), Some(end(THIRD)), "its NAT has another port");
        // One that spoke and is silent behind another port of its NAT, after a description.
        check(described_again(Some(NAMED)), &[(THIRD, kept.clone(), Ok(()))], THIRD);
        let goes_on = [(THIRD, kept.clone(), Ok(())), (OTHER, rtp(1), Ok(()))];
        check(described_again(Some(NAMED)), &goes_on, OTHER);
    }
    let fixed = |entry: &mut Entry| entry.is_fixed = true;
    check(port(fixed), &[(OTHER, stun(), Ok(()))], NAMED);
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
