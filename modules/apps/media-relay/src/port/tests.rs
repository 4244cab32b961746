// SPDX-License-Identifier: Apache-2.0

use super::*;
use crate::limits::GOES_ON_PACKETS;

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
        is_early: false,
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
        let mut bytes = bytes.clone();
        if let [0x80, 0, high, low, _, _, _, _, ..] = &mut bytes[..] {
            [*high, *low] = u16::try_from(number).unwrap().to_be_bytes();
        }
        let judged = port.judge(end(source), &bytes, number as u64 * 20_000, 1000);
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
fn who_is_where_the_description_says_wins_whenever_it_sends() {
    check(port(|_| {}), &[(OTHER, rtp(7), Ok(())), (NAMED, rtp(1), Ok(())), (OTHER, rtp(7), Err(Reason::Ssrc))], NAMED);
    let late = vec![(OTHER, rtp(7), Ok(())); 1 + usize::try_from(LEARNING_MS / 20).unwrap()];
    for is_strict in [false, true] {
        let strict = |entry: &mut Entry| entry.is_strict = is_strict;
        check(port(strict), &[&late[..], &[(NAMED, rtp(1), Ok(()))]].concat(), NAMED);
        // A single packet each few seconds, however long, takes nothing from it.
        let mut port = port(strict);
        for number in 0..4000_u64 {
            if number % 125 == 0 {
                let _ = port.judge(end(OTHER), &rtp(7), number * 20_000, 1000);
            }
            port.judge(end(NAMED), &rtp(1), number * 20_000, 1000).unwrap();
            assert_eq!(port.target(), Some(end(NAMED)));
        }
    }
}

/// Goal: whoever sends while it rings is not the party once there is an answer, however often; the party, behind a NAT or not, is.
#[test]
fn who_sends_before_the_answer_is_nobody() {
    let silent = |change: fn(&mut Entry)| {
        let mut port = port(change);
        for number in 0..50 {
            let judged = port.judge(end(OTHER), &rtp(7), number * 100_000, 1000);
            assert_eq!(judged.is_err(), port.entry.is_early);
        }
        port
    };
    // The caller, which is told of its port by the answer, and the callee, which has its own before it says where it is.
    let caller = || {
        let mut port = silent(|entry| entry.is_early = true);
        port.set(Entry { is_early: false, generation: 2, ..port.entry });
        port
    };
    let callee = || {
        let mut port = silent(|entry| entry.peer = None);
        describe(&mut port, Some(NAMED));
        port
    };
    for told in [&caller as &dyn Fn() -> Port, &callee] {
        assert_eq!(told().target(), Some(end(NAMED)));
        check(told(), &[(OTHER, rtp(7), Ok(())), (NAMED, rtp(1), Ok(())), (OTHER, rtp(7), Err(Reason::Ssrc))], NAMED);
        let behind_nat = vec![(THIRD, rtp(1), Ok(())); 9];
        check(told(), &[&behind_nat[..], &[(OTHER, rtp(7), Err(Reason::Ssrc))]].concat(), THIRD);
        // The stranger was faster: the party is whoever goes on.
        let mut port = told();
        port.judge(end(OTHER), &rtp(7), 0, 1000).unwrap();
        let heard = (1..=10).filter(|number| {
            let packet = [&[0x80, 0, 0, *number][..], &rtp(1)[4..]].concat();
            port.judge(end(THIRD), &packet, u64::from(*number) * 20_000, 1000).is_ok()
        });
        assert_eq!(heard.count(), 11 - usize::from(LEADS_PACKETS));
        assert_eq!(port.target(), Some(end(THIRD)));
    }
    // A phone that does not speak keeps its NAT open before the answer is through.
    let mut port = port(|entry| entry.peer = None);
    port.judge(end(OTHER), b"", 0, 1000).unwrap();
    describe(&mut port, Some(NAMED));
    check(port, &[], OTHER);
    // Before it is told of a port, a party may send from where it says.
    let early = |entry: &mut Entry| entry.is_early = true;
    check(self::port(early), &[(NAMED, rtp(1), Ok(())), (OTHER, stun(), Err(Reason::Source))], NAMED);
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

fn packets(source: &'static str, ssrc: u8, count: u8) -> Vec<(&'static str, Vec<u8>, Result<(), Reason>)> {
    vec![(source, rtp(ssrc), Ok(())); usize::from(count)]
}

#[test]
fn a_party_whose_nat_has_another_port_is_learned_anew_by_the_same_description() {
    let newcomer = packets(THIRD, 2, LEADS_PACKETS);
    check(described_again(Some(NAMED)), &[], OTHER);
    check(described_again(Some(NAMED)), &newcomer[1..], OTHER);
    check(described_again(Some(NAMED)), &newcomer, THIRD);
    // What was on its way leads nothing back, before and behind the first of the new port.
    let late = packets(OTHER, 1, GOES_ON_PACKETS - 1);
    check(described_again(Some(NAMED)), &[&late[..], &newcomer].concat(), THIRD);
    check(described_again(Some(NAMED)), &[&newcomer[..], &late, &newcomer].concat(), THIRD);
    // Long after it was described, too.
    let mut port = described_again(Some(NAMED));
    port.judge(end(OTHER), &rtp(1), 0, 1000).unwrap();
    for number in 1..=LEADS_PACKETS {
        let packet = [&[0x80, 0, 0, number][..], &rtp(2)[4..]].concat();
        assert_eq!(port.judge(end(THIRD), &packet, 60_000_000, 1000), Ok(()));
    }
    assert_eq!(port.target(), Some(end(THIRD)));
    let strict = Port { entry: Entry { is_strict: true, ..port.entry }, ..described_again(Some(NAMED)) };
    check(strict, &newcomer, THIRD);
}

/// Goal: no single packets lead a silent party's media away after a description that says the same: neither few of one source, nor those
/// of several sources or numbers that do not rise, nor what is no media.
#[test]
fn only_packets_that_follow_each_other_are_a_party_elsewhere() {
    let stranger = packets(THIRD, 2, LEADS_PACKETS - 1);
    check(described_again(Some(NAMED)), &stranger, OTHER);
    let own = packets(OTHER, 1, 1);
    check(described_again(Some(NAMED)), &[&stranger[..], &own, &stranger].concat(), OTHER);
    let other = packets(THIRD, 3, LEADS_PACKETS - 1);
    check(described_again(Some(NAMED)), &[&stranger[..], &other].concat(), OTHER);
    for kept in [Vec::new(), stun()] {
        let kept = vec![(THIRD, kept, Ok(())); usize::from(LEADS_PACKETS)];
        check(described_again(Some(NAMED)), &kept[1..], OTHER);
        check(described_again(Some(NAMED)), &kept, THIRD);
    }
    let mut port = described_again(Some(NAMED));
    (0..100).for_each(|_| port.judge(end(THIRD), &rtp(2), 0, 1000).unwrap());
    assert_eq!(port.target(), Some(end(OTHER)), "the same number each time");
}

/// Goal: a stranger that got a silent party's media loses it as soon as the party sends, wherever that was by this description, and after further ones.
#[test]
fn a_party_that_sends_again_has_its_media_back() {
    for times in 1..8_u8 {
        let mut port = described_again(Some(NAMED));
        for time in 0..times {
            for number in 0..100 {
                let packet = [&[0x80, 0, 0, number][..], &rtp(100 + time)[4..]].concat();
                let from = format!("203.0.113.{}:6000", 100 + time);
                port.judge(end(&from), &packet, u64::from(time) * 10_000_000 + u64::from(number) * 100_000, 1000)
                    .unwrap();
            }
            assert_ne!(port.target(), Some(end(OTHER)));
            describe(&mut port, Some(NAMED));
        }
        let stranger = (format!("203.0.113.{}:6000", 99 + times), rtp(99 + times));
        for number in 0..20 {
            let now_us = 100_000_000 + number * 20_000;
            assert_eq!(port.judge(end(OTHER), &rtp(1), now_us, 1000), Ok(()));
            let _ = port.judge(end(&stranger.0), &stranger.1, now_us, 1000);
            assert_eq!(port.target(), Some(end(OTHER)), "{times} strangers");
        }
        assert_eq!(port.judge(end(&stranger.0), &stranger.1, 101_000_000, 1000), Err(Reason::Ssrc));
        assert!(port.places.len() <= PLACES_MAX);
        port.judge(end(NAMED), &rtp(1), 101_000_000, 1000).unwrap();
        assert_eq!(port.target(), Some(end(NAMED)));
    }
}

#[test]
fn a_party_that_goes_on_after_a_description_is_not_led_away() {
    let goes_on = packets(OTHER, 1, GOES_ON_PACKETS);
    let stranger = |judged| vec![(THIRD, rtp(2), judged)];
    let ssrc = Err(Reason::Ssrc);
    check(described_again(Some(NAMED)), &[&goes_on[..], &stranger(ssrc)].concat(), OTHER);
    check(described_again(Some(NAMED)), &[&stranger(Ok(())), &goes_on[..], &stranger(ssrc)].concat(), OTHER);
    // A single one is enough once none can be under way.
    let mut port = described_again(Some(NAMED));
    for (at_ms, source, ssrc, judged) in [(0, OTHER, 1, Ok(())), (3000, OTHER, 1, Ok(())), (3020, THIRD, 2, ssrc)] {
        assert_eq!(port.judge(end(source), &rtp(ssrc), at_ms * 1000, 1000), judged);
    }
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
    port.set(Entry { is_offered: false, generation: port.entry.generation + 1, ..port.entry });
    port
}

/// Goal: an offer that is rejected leads no media away, whether its party sends meanwhile, from where it was or from where it would be, or not.
#[test]
fn a_party_whose_offer_is_rejected_is_where_it_was() {
    let goes_on = packets(OTHER, 1, GOES_ON_PACKETS);
    let back = packets(OTHER, 1, LEADS_PACKETS);
    let new = packets(ELSEWHERE, 77, GOES_ON_PACKETS);
    check(offered(), &[], OTHER);
    check(offered(), &goes_on, OTHER);
    check(offered(), &new[..1], ELSEWHERE);
    check(offered(), &[&new[..], &back].concat(), OTHER);
    check(offered(), &[&new[..], &packets(NAMED, 1, LEADS_PACKETS)].concat(), NAMED);
    let sent = |packets: &[(&str, Vec<u8>, Result<(), Reason>)]| {
        let mut port = offered();
        packets.iter().for_each(|(source, bytes, _)| port.judge(end(source), bytes, 0, 1000).unwrap());
        port
    };
    check(sent(&goes_on), &[(THIRD, rtp(2), Err(Reason::Ssrc))], OTHER);
    // Its next description is the one of before, or of another place.
    for mut port in [sent(&goes_on), sent(&new), offered()] {
        describe(&mut port, Some(NAMED));
        check(port, &goes_on[..1], OTHER);
    }
    for mut port in [sent(&goes_on), sent(&new), offered()] {
        describe(&mut port, Some("192.0.2.78:6000"));
        check(answered(port), &goes_on, "192.0.2.78:6000");
    }
    // Once there is an answer, what was before is left.
    for port in [sent(&goes_on), sent(&new), offered()] {
        check(answered(port), &goes_on, ELSEWHERE);
    }
    // To hold it, likewise.
    let mut held = offered();
    held.set(Entry { generation: 10, peer: None, ..held.entry });
    check(held.clone(), &[], OTHER);
    assert_eq!(answered(held).target(), None);
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
    check(back(held()), &[packets(OTHER, 1, 1), packets(THIRD, 2, LEADS_PACKETS)].concat(), THIRD);
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
    let moved = |port: &Port| {
        let mut bytes = Vec::new();
        port.save(&mut bytes);
        let mut there = Port::new(port.entry);
        there.restore(Saved::take(&mut &bytes[..], VERSION).unwrap());
        (there, bytes)
    };
    let (there, bytes) = moved(&port);
    assert_eq!((there.target(), there.counts), (Some(end(OTHER)), port.counts));
    for length in 0..bytes.len() {
        assert_eq!(Saved::take(&mut &bytes[..length], VERSION), None);
    }
    // All of it: who was where, what was offered, what was left, and who only keeps its NAT open.
    let mut elsewhere = described_again(Some(NAMED));
    elsewhere.lead(end(THIRD), Payload::Dtls, 0, true);
    let mut kept = self::port(|_| {});
    kept.judge(end(OTHER), b"", 0, 1000).unwrap();
    for port in [elsewhere, described_again(Some(ELSEWHERE)), described_again(None), offered(), kept] {
        let (there, _) = moved(&port);
        let learned = |port: &Port| (port.target(), port.places.clone(), port.left.clone(), port.agreed, port.named);
        assert_eq!(learned(&there), learned(&port));
    }
    // The version before had the source alone: up to the numbers of packets.
    let first = &bytes[..bytes.len() - more_bytes(&port)];
    let mut there = Port::new(port.entry);
    there.restore(Saved::take(&mut &first[..], VERSION_SOURCE).unwrap());
    assert_eq!((there.target(), there.counts), (Some(end(OTHER)), port.counts));
    assert_eq!(there.judge(end(THIRD), &rtp(2), 0, 1000), Err(Reason::Ssrc));
    // What was learned of another description is not of use.
    let mut other = Port::new(Entry { generation: 9, ..port.entry });
    other.restore(Saved::take(&mut &bytes[..], VERSION).unwrap());
    assert_eq!(other.target(), Some(end(NAMED)));
}

/// Returns how many bytes are behind what the first version has: two numbers, three addresses of IPv4 at most, and two empty lists.
fn more_bytes(port: &Port) -> usize {
    let bytes = |end: Option<SocketAddr>| end.map_or(1, |_| 7);
    2 + bytes(port.kept_open.map(|(end, _)| end)) + bytes(port.agreed) + bytes(port.named) + 2
}
