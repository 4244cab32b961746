// SPDX-License-Identifier: Apache-2.0

use netserv_sdk::fake;
use netserv_testing::udp;

use super::*;
use crate::table::Carries;

const CALLER: &str = "10.0.0.9:4000";
const CALLEE: &str = "10.0.0.8:6000";
const TO_CALLER: &str = "192.0.2.1:30000";
const TO_CALLEE: &str = "192.0.2.1:30002";

fn started(more: &[(&str, &str)]) -> MediaRelay {
    fake::reset(&[&[("control", "198.51.100.7")], more].concat());
    MediaRelay::start().unwrap()
}

fn entry(local: &str, out: &str, peer: &str) -> Entry {
    let (local, out): (SocketAddr, SocketAddr) = (local.parse().unwrap(), out.parse().unwrap());
    Entry {
        port: local.port(),
        out: out.port(),
        generation: 1,
        local: local.ip(),
        peer: Some(peer.parse().unwrap()),
        is_strict: false,
        is_fixed: false,
        is_offered: false,
        is_early: false,
        carries: Carries::Rtp,
    }
}

fn call(caller: &str, to_caller: &str, to_callee: &str, callee: &str) -> Vec<Entry> {
    vec![entry(to_caller, to_callee, caller), entry(to_callee, to_caller, callee)]
}

fn set(relay: &mut MediaRelay, entries: Vec<Entry>) {
    fake::message(relay, &Order::Set(entries).emit());
}

fn rtp(ssrc: u8) -> Vec<u8> {
    [&[0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, ssrc][..], &[0xff; 160]].concat()
}

/// Has a packet come, and compares it as it goes on.
fn check(relay: &mut MediaRelay, (from, to): (&str, &str), expected: Option<(&str, &str)>) {
    let (verdict, left) = fake::process(relay, &udp(from, to, 61, &rtp(1)));
    let (as_verdict, as_packet) = match expected {
        Some((from, to)) => (Verdict::Modified, udp(from, to, 61, &rtp(1))),
        None => (Verdict::Drop, Vec::new()),
    };
    assert!((verdict, &left) == (as_verdict, &as_packet), "{from} {to}: {verdict:?}, {:?}", parse_udp(&left));
}

#[test]
fn media_goes_both_ways() {
    let v6 = ["[2001:db8:9::9]:4000", "[2001:db8::1]:30000", "[2001:db8::1]:30002", "[2001:db8:8::8]:6000"];
    let v4 = [CALLER, TO_CALLER, TO_CALLEE, CALLEE];
    for [caller, to_caller, to_callee, callee] in [v4, v6, [v4[0], v4[1], v6[2], v6[3]]] {
        let mut relay = started(&[]);
        set(&mut relay, call(caller, to_caller, to_callee, callee));
        check(&mut relay, (caller, to_caller), Some((to_callee, callee)));
        check(&mut relay, (callee, to_callee), Some((to_caller, caller)));
        fake::advance(&mut relay, NEWS_EACH);
        fake::with(|node| assert_eq!((node.counter("packets"), node.counter("octets")), (2, 344)));
    }
}

#[test]
fn what_a_party_sends_says_where_it_is() {
    let mut relay = started(&[]);
    set(&mut relay, call("192.168.1.2:4000", TO_CALLER, TO_CALLEE, CALLEE));
    check(&mut relay, ("203.0.113.9:1024", TO_CALLER), Some((TO_CALLEE, CALLEE)));
    check(&mut relay, (CALLEE, TO_CALLEE), Some((TO_CALLER, "203.0.113.9:1024")));
}

#[test]
fn ports_of_no_call_are_closed() {
    let mut relay = started(&[]);
    check(&mut relay, (CALLER, TO_CALLER), None);
    set(&mut relay, call(CALLER, TO_CALLER, TO_CALLEE, CALLEE));
    // A port belongs to an address.
    check(&mut relay, (CALLER, "192.0.2.2:30000"), None);
    let (verdict, _) = fake::process(&mut relay, &udp(CALLER, "192.0.2.1:31000", 61, &rtp(1)));
    assert_eq!(verdict, Verdict::Pass);
    fake::message(&mut relay, &Order::Free(vec![30000, 30002, 65535, 0]).emit());
    check(&mut relay, (CALLER, TO_CALLER), None);
    fake::message(&mut relay, b"what?");
    set(&mut relay, vec![entry("192.0.2.1:9", "192.0.2.1:30000", CALLER), entry(TO_CALLER, "192.0.2.1:9", CALLER)]);
    check(&mut relay, (CALLER, TO_CALLER), None);
    let nowhere = Entry { peer: None, ..entry(TO_CALLEE, TO_CALLER, CALLEE) };
    set(&mut relay, vec![entry(TO_CALLER, TO_CALLEE, CALLER), nowhere]);
    check(&mut relay, (CALLER, TO_CALLER), None);
    fake::advance(&mut relay, NEWS_EACH);
    fake::with(|node| {
        assert_eq!((node.counter("dropped-no-call"), node.counter("dropped-no-peer")), (4, 1));
    });
}

#[test]
fn a_call_through_this_node_twice_is_relayed_once() {
    let mut relay = started(&[]);
    set(&mut relay, call(CALLER, TO_CALLER, TO_CALLEE, "192.0.2.1:30004"));
    set(&mut relay, call(TO_CALLEE, "192.0.2.1:30004", "192.0.2.1:30006", CALLEE));
    check(&mut relay, (CALLER, TO_CALLER), Some(("192.0.2.1:30006", CALLEE)));
    check(&mut relay, (CALLEE, "192.0.2.1:30006"), Some((TO_CALLER, CALLER)));
    // Two that lead to each other end.
    let mut round = started(&[]);
    set(&mut round, call(TO_CALLEE, TO_CALLER, TO_CALLEE, TO_CALLER));
    check(&mut round, (CALLER, TO_CALLER), None);
}

#[test]
fn a_flood_takes_no_more_than_the_rate() {
    let mut relay = started(&[("packets-per-second", "100")]);
    set(&mut relay, call(CALLER, TO_CALLER, TO_CALLEE, CALLEE));
    let went_on = (0..1000).filter(|_| {
        let (verdict, _) = fake::process(&mut relay, &udp(CALLER, TO_CALLER, 61, &rtp(1)));
        verdict == Verdict::Modified
    });
    assert_eq!(went_on.count(), 50);
    fake::advance(&mut relay, NEWS_EACH);
    fake::with(|node| assert_eq!(node.counter("dropped-rate"), 950));
}

#[test]
fn the_server_part_is_told_what_came() {
    let mut relay = started(&[]);
    set(&mut relay, call(CALLER, TO_CALLER, TO_CALLEE, CALLEE));
    fake::message(&mut relay, &Order::Confirm(7).emit());
    check(&mut relay, (CALLER, TO_CALLER), Some((TO_CALLEE, CALLEE)));
    check(&mut relay, (CALLER, TO_CALLER), Some((TO_CALLEE, CALLEE)));
    fake::advance(&mut relay, 3 * NEWS_EACH);
    let news: Vec<News> = fake::with(|node| node.sent.iter().filter_map(|bytes| News::parse(bytes)).collect());
    let counts = Counts { packets: 2, octets: 344, dropped: 0, peer: Some(CALLER.parse().unwrap()) };
    assert_eq!(news, [News::Begins, News::Confirmed(7), News::Counted(vec![(30000, counts)])]);
}

#[test]
fn calls_in_kv_are_there_at_once_and_what_was_learned_goes_along() {
    let mut before = started(&[]);
    set(&mut before, call("192.168.1.2:4000", TO_CALLER, TO_CALLEE, CALLEE));
    check(&mut before, ("203.0.113.9:1024", TO_CALLER), Some((TO_CALLEE, CALLEE)));
    let state = before.export_state().unwrap();

    let mut after = started(&[]);
    let saved = crate::value::Value::dict([(
        "entries",
        crate::value::Value::Text(crate::table::emit_entries(&call("192.168.1.2:4000", TO_CALLER, TO_CALLEE, CALLEE))),
    )]);
    let mut bytes = Vec::new();
    crate::bencode::emit(&saved, &mut bytes);
    fake::with(|node| node.kv.extend([(b"call/00000000".to_vec(), bytes), (b"other".to_vec(), Vec::new())]));
    after.import_state(&state).unwrap();
    check(&mut after, (CALLEE, TO_CALLEE), Some((TO_CALLER, "203.0.113.9:1024")));
    // What it is not told of any more, and what is no state.
    assert!(started(&[]).import_state(&state).is_ok());
    for length in 0..state.len() {
        assert!(
            length == 1 || started(&[]).import_state(&state[..length]).is_err() || is_at_port(&state, length),
            "{length}"
        );
    }
    assert!(started(&[]).import_state(&[3]).is_err());
}

/// Returns whether a state that ends there has whole ports.
fn is_at_port(state: &[u8], length: usize) -> bool {
    let mut rest = &state[1..length];
    while !rest.is_empty() {
        if Saved::take(&mut rest, state[0]).is_none() {
            return false;
        }
    }
    true
}

#[test]
fn what_is_said_wrongly_is_said_so() {
    fake::reset(&[]);
    assert!(MediaRelay::start().is_err());
    fake::reset(&[("control", "198.51.100.7"), ("ports", "x")]);
    assert!(MediaRelay::start().is_err());
}
