// SPDX-License-Identifier: Apache-2.0

mod branches;

use super::*;
use crate::limits::{STREAMS_MAX, STREAMS_OF_ALL_MAX};
use crate::table::Carries;

const SERVER: [u8; 4] = [198, 51, 100, 7];
const NOW: Now = Now { ms: 1000, s: 1_800_000_000 };

fn relay(properties: &[(&str, &str)]) -> Relay {
    let all = [&[("control", "198.51.100.7"), ("ports", "30000-30015")], properties].concat();
    let read = |name: &str| all.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let addresses = ["192.0.2.1", "192.0.2.2", "2001:db8::1"].map(|address| address.parse().unwrap());
    Relay::new(Settings::read(read).unwrap(), addresses.to_vec(), |_| 0)
}

fn sdp(address: &str, ports: &[u16]) -> String {
    let version = if address.contains(':') { 6 } else { 4 };
    let media: String = ports.iter().map(|port| format!("m=audio {port} RTP/AVP 0\r\n")).collect();
    format!("v=0\r\no=- 1 1 IN IP{version} {address}\r\ns=-\r\nc=IN IP{version} {address}\r\nt=0 0\r\n{media}")
}

fn ask(relay: &mut Relay, entries: &[(&str, &str)]) -> Value {
    let flags = |value: &str| Value::List(value.split(',').map(Value::text).collect());
    let value = |name: &str, value: &str| {
        if ["flags", "replace", "supports", "received-from"].contains(&name) {
            flags(value)
        } else {
            Value::text(value)
        }
    };
    let dict = entries.iter().map(|(name, text)| (name.as_bytes().to_vec(), value(name, text))).collect();
    relay.handle(SERVER.into(), &dict, NOW)
}

fn offer(relay: &mut Relay, id: &str, sdp: &str, more: &[(&str, &str)]) -> Value {
    let entries = [("command", "offer"), ("call-id", id), ("from-tag", "a"), ("sdp", sdp)];
    ask(relay, &[&entries[..], more].concat())
}

fn answer(relay: &mut Relay, id: &str, sdp: &str, more: &[(&str, &str)]) -> Value {
    let entries = [("command", "answer"), ("call-id", id), ("from-tag", "a"), ("to-tag", "b"), ("sdp", sdp)];
    ask(relay, &[&entries[..], more].concat())
}

/// Returns the description of an answer.
fn described(value: &Value) -> String {
    let sdp = text(value.as_dict().unwrap(), "sdp").unwrap_or_else(|| panic!("{value:?}"));
    String::from_utf8(sdp.to_vec()).unwrap()
}

fn reason(value: &Value) -> String {
    let reason = text(value.as_dict().unwrap(), "error-reason").unwrap_or_else(|| panic!("{value:?}"));
    String::from_utf8(reason.to_vec()).unwrap()
}

/// Returns the entries of the last change.
fn entries(relay: &mut Relay) -> Vec<Entry> {
    let mut last = Vec::new();
    while let Some(change) = relay.poll_change() {
        last = match change {
            Change::Put { entries, .. } => entries,
            Change::Gone { .. } => Vec::new(),
            Change::Free(_) => last,
        };
    }
    last
}

fn ways(entries: &[Entry]) -> Vec<String> {
    let way = |entry: &Entry| {
        let peer = entry.peer.map_or("?".to_owned(), |peer| peer.to_string());
        format!("{} {} {peer} -> {}", entry.local, entry.port, entry.out)
    };
    entries.iter().map(way).collect()
}

#[test]
fn a_call_gets_ports_that_lead_to_each_other() {
    let mut relay = relay(&[]);
    let offered = described(&offer(&mut relay, "1", &sdp("10.0.0.9", &[4000]), &[]));
    assert_eq!(offered, sdp("192.0.2.1", &[30002]).replace("o=- 1 1 IN IP4 192.0.2.1", "o=- 1 1 IN IP4 10.0.0.9"));
    assert_eq!(entries(&mut relay).len(), 4);
    let answered =
        described(&answer(&mut relay, "1", &sdp("10.0.0.8", &[6000]), &[("replace", "origin,session connection")]));
    assert_eq!(answered, sdp("192.0.2.1", &[30000]));
    let expected = [
        "192.0.2.1 30000 10.0.0.9:4000 -> 30002",
        "192.0.2.1 30001 10.0.0.9:4001 -> 30003",
        "192.0.2.1 30002 10.0.0.8:6000 -> 30000",
        "192.0.2.1 30003 10.0.0.8:6001 -> 30001",
    ];
    assert_eq!(ways(&entries(&mut relay)), expected);
    // The callee may offer as well.
    let again = [("command", "offer"), ("call-id", "1"), ("from-tag", "b"), ("to-tag", "a")];
    let hold = sdp("10.0.0.7", &[6000]);
    let offered = described(&ask(&mut relay, &[&again[..], &[("sdp", &hold)]].concat()));
    assert!(offered.contains("m=audio 30000 "), "{offered}");
    let changed = entries(&mut relay);
    assert_eq!(changed[2].peer, Some("10.0.0.7:6000".parse().unwrap()));
    assert_eq!(changed.iter().map(|entry| entry.generation).collect::<Vec<_>>(), [2, 2, 2, 2]);
    // Each description has its party learned anew, also if it says the same, and so has an answer who offered.
    offer(&mut relay, "1", &sdp("10.0.0.9", &[4000]), &[]);
    assert_eq!(entries(&mut relay).iter().map(|entry| entry.generation).collect::<Vec<_>>(), [3, 3, 2, 2]);
    answer(&mut relay, "1", &sdp("10.0.0.8", &[6000]), &[]);
    assert_eq!(entries(&mut relay).iter().map(|entry| entry.generation).collect::<Vec<_>>(), [4, 4, 3, 3]);
}

#[test]
fn an_offer_in_a_call_counts_for_good_once_it_is_answered() {
    let mut relay = relay(&[]);
    let flags = |relay: &mut Relay| entries(relay).iter().map(|entry| entry.is_offered).collect::<Vec<_>>();
    let good = sdp("10.0.0.9", &[4000]);
    offer(&mut relay, "1", &good, &[]);
    let early = |relay: &mut Relay| entries(relay).iter().map(|entry| entry.is_early).collect::<Vec<_>>();
    assert_eq!(early(&mut relay), [true, true, false, false], "who offers is not told of its port");
    offer(&mut relay, "1", &good, &[]);
    assert_eq!(flags(&mut relay), [false; 4]);
    answer(&mut relay, "1", &sdp("10.0.0.8", &[6000]), &[]);
    assert_eq!(early(&mut relay), [false; 4]);
    answer(&mut relay, "1", &sdp("10.0.0.8", &[6000]), &[]);
    offer(&mut relay, "1", &sdp("10.0.0.9", &[4002]), &[("to-tag", "b")]);
    assert_eq!(flags(&mut relay), [true, true, false, false]);
    answer(&mut relay, "1", &sdp("10.0.0.8", &[6000]), &[]);
    assert_eq!(flags(&mut relay), [false; 4]);
}

#[test]
fn versions_of_ip_meet() {
    let mut relay = relay(&[]);
    let offered = described(&offer(&mut relay, "1", &sdp("10.0.0.9", &[4000]), &[("address-family", "IP6")]));
    assert!(offered.contains("c=IN IP6 2001:db8::1\r\n") && offered.contains("audio 30002 "), "{offered}");
    let answered = described(&answer(&mut relay, "1", &sdp("2001:db8::8", &[6000]), &[]));
    assert!(answered.contains("c=IN IP4 192.0.2.1\r\n") && answered.contains("audio 30000 "), "{answered}");
    let known = entries(&mut relay);
    assert_eq!([known[0].local.is_ipv6(), known[2].local.is_ipv6()], [false, true]);
    assert_eq!(known[2].peer, Some("[2001:db8::8]:6000".parse().unwrap()));
    // Who cannot be reached from the port that it was told is waited for.
    answer(&mut relay, "1", &sdp("10.0.0.8", &[6000]), &[]);
    assert_eq!(entries(&mut relay)[2].peer, None);
    let named = described(&offer(&mut relay, "2", &sdp("10.0.0.9", &[4000]), &[("media-address", "192.0.2.2")]));
    assert!(named.contains("c=IN IP4 192.0.2.2\r\n"), "{named}");
    let strange = offer(&mut relay, "3", &sdp("10.0.0.9", &[4000]), &[("address-family", "X25")]);
    assert_eq!(reason(&strange), "Unknown address family");
}

#[test]
fn hold_rejection_and_new_streams_are_followed() {
    let mut relay = relay(&[]);
    offer(&mut relay, "1", &sdp("10.0.0.9", &[4000, 4002]), &[]);
    let answered = described(&answer(&mut relay, "1", &sdp("10.0.0.8", &[6000, 0]), &[]));
    assert!(answered.contains("m=audio 30000 ") && answered.contains("m=audio 0 "), "{answered}");
    let known = entries(&mut relay);
    assert_eq!((known.len(), known[6].peer, known[4].peer.is_some()), (8, None, true));
    let held = described(&offer(&mut relay, "1", &sdp("0.0.0.0", &[4000, 0]), &[]));
    assert!(held.contains("c=IN IP4 0.0.0.0\r\n") && held.contains("m=audio 30002 "), "{held}");
    assert_eq!(entries(&mut relay)[0].peer, None);
    assert!(relay.calls[&b"1"[..]].is_still());
    let back = described(&offer(&mut relay, "1", &sdp("10.0.0.9", &[4000, 0, 4004]), &[]));
    assert!(back.contains("m=audio 30010 "), "{back}");
    assert_eq!(entries(&mut relay).len(), 12);
    let rest = described(&offer(&mut relay, "2", &sdp("10.0.0.9", &[0]), &[]));
    assert!(rest.contains("m=audio 0 ") && entries(&mut relay).is_empty(), "{rest}");
}

#[test]
fn parties_say_how_they_send() {
    let mut relay = relay(&[]);
    offer(&mut relay, "1", &sdp("10.0.0.9", &[4000]), &[("flags", "trust address,strict source")]);
    answer(&mut relay, "1", &sdp("10.0.0.8", &[6000]), &[("flags", "asymmetric,unheard-of")]);
    let known = entries(&mut relay);
    assert_eq!([known[0].is_strict, known[0].is_fixed], [true, false]);
    assert_eq!([known[2].is_strict, known[2].is_fixed], [false, true]);
    assert_eq!([known[0].carries, known[1].carries], [Carries::Rtp, Carries::Rtcp]);
}

#[test]
fn rtcp_in_the_port_of_rtp_stays_there() {
    let mut relay = relay(&[]);
    let muxed = format!("{}a=rtcp:4000\r\na=rtcp-mux\r\n", sdp("10.0.0.9", &[4000]));
    let offered = described(&offer(&mut relay, "1", &muxed, &[]));
    assert!(offered.contains("a=rtcp:30002\r\na=rtcp-mux\r\n"), "{offered}");
    let apart = format!("{}a=rtcp:4001\r\na=rtcp-mux\r\n", sdp("10.0.0.9", &[4000]));
    let offered = described(&offer(&mut relay, "2", &apart, &[]));
    assert!(offered.contains("a=rtcp:30007\r\na=rtcp-mux\r\n"), "{offered}");
}

#[test]
fn a_call_is_deleted_by_its_names() {
    let mut relay = relay(&[]);
    let delete = |relay: &mut Relay, more: &[(&str, &str)]| {
        ask(relay, &[&[("command", "delete"), ("call-id", "1")], more].concat())
    };
    let nothing = Value::dict([
        ("result", Value::text("ok")),
        ("warning", Value::text("Call-ID not found or tags didn't match")),
    ]);
    assert_eq!(delete(&mut relay, &[("from-tag", "a")]), nothing);
    assert_eq!(reason(&delete(&mut relay, &[("flags", "fatal")])), "Call-ID not found or tags didn't match");
    offer(&mut relay, "1", &sdp("10.0.0.9", &[4000]), &[]);
    answer(&mut relay, "1", &sdp("10.0.0.8", &[6000]), &[]);
    assert_eq!(delete(&mut relay, &[("from-tag", "x")]), nothing);
    assert_eq!(delete(&mut relay, &[("from-tag", "a"), ("to-tag", "x")]), nothing);
    let counts = Counts { packets: 5, octets: 860, dropped: 1, peer: Some("10.0.0.9:4000".parse().unwrap()) };
    relay.counted(30000, counts, NOW);
    relay.counted(30003, Counts { packets: 2, ..counts }, NOW);
    relay.counted(30014, counts, NOW);
    while relay.poll_change().is_some() {}
    let query = ask(&mut relay, &[("command", "query"), ("call-id", "1")]);
    let ended = delete(&mut relay, &[("from-tag", "b"), ("to-tag", "a")]);
    assert_eq!(query, ended);
    let mut json = String::new();
    crate::json::emit(&ended, &mut json);
    for part in [
        "\"created\":1800000000",
        "\"in dialogue with\":\"b\"",
        "\"local port\":30003",
        "\"endpoint\":{\"address\":\"10.0.0.9\",\"family\":\"IPv4\",\"port\":4000}",
        "\"totals\":{\"RTCP\":{\"bytes\":860,\"errors\":1,\"packets\":2},\"RTP\":{\"bytes\":860,\"errors\":1,\"packets\":5}}",
    ] {
        assert!(json.contains(part), "{part} in {json}");
    }
    let gone = relay.poll_change();
    assert_eq!(gone, Some(Change::Gone { number: 0, ports: vec![30000, 30001, 30002, 30003] }));
    assert!(relay.is_empty() && relay.owners.is_empty());
    assert_eq!((relay.free.len(), relay.free.back()), (8, Some(&30002)));
    let statistics = ask(&mut relay, &[("command", "statistics")]);
    crate::json::emit(&statistics, &mut json);
    assert!(json.contains("\"relayedpackets\":7"), "{json}");
}

#[test]
fn what_is_asked_wrongly_is_said_so() {
    let mut relay = relay(&[]);
    let good = sdp("10.0.0.9", &[4000]);
    offer(&mut relay, "1", &good, &[]);
    let check = |relay: &mut Relay, entries: &[(&str, &str)], expected: &str| {
        assert_eq!(reason(&ask(relay, entries)), expected, "{entries:?}");
    };
    check(&mut relay, &[], "Dictionary contains no key \"command\"");
    check(&mut relay, &[("command", "dance")], "Unrecognized command");
    check(&mut relay, &[("command", "query"), ("call-id", "9")], "Unknown call-id");
    for command in ["offer", "answer"] {
        check(&mut relay, &[("command", command)], "No call-id in message");
        check(&mut relay, &[("command", command), ("call-id", "1")], "No from-tag in message");
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        check(&mut relay, &[("command", command), ("call-id", &long)], "A call-id or tag is too long");
    }
    check(&mut relay, &[("command", "answer"), ("call-id", "1"), ("from-tag", "a")], "No to-tag in message");
    let offer = [("command", "offer"), ("call-id", "1"), ("from-tag", "a")];
    check(&mut relay, &offer, "No SDP body in message");
    check(&mut relay, &[&offer[..], &[("sdp", "hello")]].concat(), "Failed to parse SDP");
    let incomplete = "v=0\r\nm=audio 1 RTP/AVP 0\r\n";
    check(&mut relay, &[&offer[..], &[("sdp", incomplete)]].concat(), "Incomplete SDP specification");
    let many = sdp("10.0.0.9", &[4000; STREAMS_MAX + 1]);
    check(&mut relay, &[&offer[..], &[("sdp", &many)]].concat(), "Too many media streams in SDP");
    let stranger = [("command", "offer"), ("call-id", "1"), ("from-tag", "x"), ("sdp", &good)];
    check(&mut relay, &stranger, "The from-tag is of no party of this call");
    let unknown = [("command", "answer"), ("call-id", "2"), ("from-tag", "a"), ("to-tag", "b"), ("sdp", &good)];
    check(&mut relay, &unknown, "Unknown call-id");
    let same = [("command", "answer"), ("call-id", "1"), ("from-tag", "a"), ("to-tag", "a"), ("sdp", &good)];
    check(&mut relay, &same, "The tags are of one party");
    assert_eq!(relay.len(), 1);
}

#[test]
fn calls_and_ports_are_bounded() {
    let mut few = relay(&[("calls", "3"), ("calls-per-source", "2")]);
    let good = sdp("10.0.0.9", &[4000]);
    for id in ["1", "2"] {
        described(&offer(&mut few, id, &good, &[]));
    }
    let full = Value::dict([
        ("result", Value::text("load limit")),
        ("message", Value::text("Parallel session limit reached")),
    ]);
    let knows = [("supports", "load limit")];
    assert_eq!(offer(&mut few, "3", &good, &knows), full);
    // Older clients know that one by its words.
    assert_eq!(reason(&offer(&mut few, "3", &good, &[])), "Parallel session limit reached");
    let dict = Value::dict([
        ("command", Value::text("offer")),
        ("call-id", Value::text("3")),
        ("from-tag", Value::text("a")),
        ("sdp", Value::text(&good)),
    ]);
    let other = |relay: &mut Relay| relay.handle([198, 51, 100, 8].into(), dict.as_dict().unwrap(), NOW);
    described(&other(&mut few));
    // Those that are there go on.
    described(&offer(&mut few, "1", &good, &[]));

    let mut rejected = relay(&[("calls", "2000")]);
    let none = sdp("10.0.0.9", &[0; STREAMS_MAX]);
    for number in 0..STREAMS_OF_ALL_MAX / STREAMS_MAX {
        described(&offer(&mut rejected, &number.to_string(), &none, &[]));
    }
    assert_eq!(offer(&mut rejected, "one more", &none, &knows), full);
    described(&offer(&mut rejected, "0", &none, &[]));

    let mut many = relay(&[]);
    let wide = sdp("10.0.0.9", &[4000, 4002, 4004]);
    described(&offer(&mut many, "1", &wide, &[]));
    // The client asks another relay for a call that is new.
    let without = [("result", Value::text("load limit")), ("message", Value::text("Ran out of ports"))];
    assert_eq!(offer(&mut many, "2", &wide, &knows), Value::dict(without));
    assert_eq!(reason(&offer(&mut many, "2", &wide, &[])), "Ran out of ports");
    let wider = sdp("10.0.0.9", &[4000, 4002, 4004, 4006, 4008]);
    assert_eq!(reason(&offer(&mut many, "1", &wider, &[])), "Ran out of ports for a further stream");
    assert_eq!((many.len(), many.free.len(), many.owners.len()), (1, 2, 6));
    described(&offer(&mut many, "2", &good, &[]));
    let list = ask(&mut many, &[("command", "list"), ("limit", "1")]);
    assert_eq!(list.as_dict().unwrap()[&b"calls"[..]].as_list().unwrap().len(), 1);
}

#[test]
fn the_source_of_a_request_is_taken_for_the_partys_if_that_is_asked() {
    let mut relay = relay(&[]);
    let asked = [("flags", "SIP source address"), ("received-from", "IP4,203.0.113.9")];
    let text = format!("{}a=rtcp:4001 IN IP4 10.0.0.9\r\n", sdp("10.0.0.9", &[4000]));
    let offered = described(&offer(&mut relay, "1", &text, &asked));
    let known = entries(&mut relay);
    assert_eq!([known[0].peer, known[1].peer], ["203.0.113.9:4000", "203.0.113.9:4001"].map(|end| end.parse().ok()));
    // One that holds is nowhere, and a call that passed the relay is where it was.
    described(&offer(&mut relay, "1", &offered, &asked));
    assert_eq!(entries(&mut relay)[0].peer, "203.0.113.9:4000".parse().ok());
    described(&offer(&mut relay, "1", &sdp("0.0.0.0", &[4000]), &asked));
    assert_eq!(entries(&mut relay)[0].peer, None);
    let without = offer(&mut relay, "2", &text, &[("flags", "SIP-source-address")]);
    assert_eq!(reason(&without), "Not supported: SIP-source-address without received-from");
    assert_eq!(relay.len(), 1);
}

#[test]
fn what_is_not_done_is_named_and_bounded() {
    let mut relay = relay(&[]);
    let many = (0..100).map(|number| format!("x{number}")).collect::<Vec<_>>().join(",");
    let told = offer(&mut relay, "1", &sdp("10.0.0.9", &[4000]), &[("flags", &many)]);
    let warning = String::from_utf8(text(told.as_dict().unwrap(), "warning").unwrap().to_vec()).unwrap();
    assert!(warning.starts_with("Ignored: flags=x0, flags=x1, ") && warning.ends_with(" and 84 more"), "{warning}");
    // What ends a call is not refused for it.
    let ended = ask(&mut relay, &[("command", "delete"), ("call-id", "1"), ("from-tag", "a"), ("ICE", "force")]);
    assert_eq!((text(ended.as_dict().unwrap(), "warning"), relay.len()), (Some(&b"Ignored: ice=force"[..]), 0));
}

#[test]
fn calls_on_hold_are_kept_for_long() {
    let at = |seconds: u64| Now { ms: NOW.ms + seconds * 1000, ..NOW };
    let good = sdp("10.0.0.9", &[4000]);
    for direction in ["sendonly", "recvonly", "inactive"] {
        let mut relay = relay(&[]);
        let line = format!("a={direction}\r\n");
        let of_session = good.replace("t=0 0\r\n", &format!("t=0 0\r\n{line}"));
        for (id, sdp) in [("stream", &format!("{good}{line}")), ("session", &of_session)] {
            offer(&mut relay, id, &good, &[]);
            answer(&mut relay, id, &good, &[]);
            offer(&mut relay, id, sdp, &[("to-tag", "b")]);
        }
        offer(&mut relay, "back", &of_session, &[]);
        answer(&mut relay, "back", &format!("{good}a=sendrecv\r\n"), &[]);
        offer(&mut relay, "back", &format!("{of_session}a=sendrecv\r\n"), &[]);
        relay.expire(at(60));
        assert_eq!(relay.calls.keys().collect::<Vec<_>>(), [&b"session"[..], b"stream"], "{direction}");
        relay.expire(at(3599));
        assert_eq!(relay.len(), 2, "{direction}");
        relay.expire(at(3600));
        assert_eq!(relay.len(), 0, "{direction}");
    }
}

fn lines(address: &str, lines: &[(&str, u16)]) -> String {
    let media: String = lines
        .iter()
        .map(|(kind, port)| {
            let protocol = if *kind == "image" { "udptl t38" } else { "RTP/AVP 0" };
            format!("m={kind} {port} {protocol}\r\n")
        })
        .collect();
    format!("{}{media}", sdp(address, &[]))
}

fn told_ports(value: &Value) -> Vec<u16> {
    let lines = described(value);
    let ports = lines.lines().filter_map(|line| line.strip_prefix("m=")?.split(' ').nth(1)?.parse().ok());
    ports.collect()
}

fn freed(relay: &mut Relay) -> Vec<u16> {
    let mut freed = Vec::new();
    while let Some(change) = relay.poll_change() {
        if let Change::Free(ports) = change {
            freed.extend(ports);
        }
    }
    freed
}

/// Goal: what is under way to the port of a stream is for none of another kind, which gets ports of its own; those of before are there until there
/// is an answer, and for good if there is none.
#[test]
fn a_line_of_another_kind_gets_other_ports() {
    let (audio, fax) = ([("audio", 4000)], [("image", 4000)]);
    let in_call = [("to-tag", "b")];
    let called = || {
        let mut relay = relay(&[]);
        offer(&mut relay, "1", &lines("10.0.0.9", &audio), &[]);
        answer(&mut relay, "1", &lines("10.0.0.8", &audio), &[]);
        assert_eq!(freed(&mut relay), []);
        relay
    };
    let ports = |entries: &[Entry]| entries.iter().step_by(2).map(|entry| entry.port).collect::<Vec<_>>();
    let mut relay = called();
    assert_eq!(told_ports(&offer(&mut relay, "1", &lines("10.0.0.9", &fax), &in_call)), [30006]);
    let known = entries(&mut relay);
    assert_eq!(ports(&known), [30004, 30006, 30000, 30002], "both go on");
    assert_eq!((known[0].carries, known[0].is_early, known[4].carries), (Carries::Other, true, Carries::Rtp));
    let mut kept = called();
    offer(&mut kept, "1", &lines("10.0.0.9", &fax), &in_call);
    let mut saved = Vec::new();
    while let Some(change) = kept.poll_change() {
        if let Change::Put { saved: bytes, .. } = change {
            saved = bytes;
        }
    }
    let mut after = self::relay(&[]);
    after.restore(0, &saved, NOW);
    assert_eq!(after.calls, kept.calls);
    assert_eq!(after.owners, kept.owners);
    // By media of before, a call is not over.
    relay.counted(30000, Counts { packets: 5, octets: 9, ..Counts::default() }, NOW);
    assert_eq!(told_ports(&answer(&mut relay, "1", &lines("10.0.0.8", &fax), &[])), [30004]);
    assert_eq!(freed(&mut relay), [30000, 30001, 30002, 30003]);
    assert_eq!((relay.totals.packets, relay.owners.len(), relay.free.len()), (5, 2, 6));
    // Rejected: the next offer is of the stream that was there all the time.
    for next in [&audio, &fax] {
        let mut relay = called();
        offer(&mut relay, "1", &lines("10.0.0.9", &fax), &in_call);
        let (expected, free) =
            if next == &audio { (30002, &[30004, 30005, 30006, 30007][..]) } else { (30006, &[][..]) };
        assert_eq!(told_ports(&offer(&mut relay, "1", &lines("10.0.0.9", next), &in_call)), [expected]);
        assert_eq!(freed(&mut relay), free);
        ask(&mut relay, &[("command", "delete"), ("call-id", "1")]);
        assert_eq!((relay.owners.len(), relay.free.len()), (0, 8));
    }
    // A third kind, and one that is only rejected.
    let mut relay = called();
    offer(&mut relay, "1", &lines("10.0.0.9", &fax), &in_call);
    assert_eq!(told_ports(&offer(&mut relay, "1", &lines("10.0.0.9", &[("video", 4000)]), &in_call)), [30010]);
    assert_eq!(freed(&mut relay), [30004, 30005, 30006, 30007]);
    offer(&mut relay, "1", &lines("10.0.0.9", &[("image", 0)]), &in_call);
    assert_eq!(freed(&mut relay), []);

    let mut both = self::relay(&[]);
    let told = told_ports(&offer(&mut both, "1", &lines("10.0.0.9", &[("audio", 4000), ("video", 4002)]), &[]));
    answer(&mut both, "1", &lines("10.0.0.8", &[("audio", 6000), ("video", 6002)]), &[]);
    let changed = [("video", 4002), ("audio", 4000)];
    let other = told_ports(&offer(&mut both, "1", &lines("10.0.0.9", &changed), &in_call));
    assert!(other.iter().all(|port| !told.contains(port)), "{told:?} {other:?}");
    // Without room for these, the call stays as it is.
    let mut full = self::relay(&[("ports", "30000-30007")]);
    offer(&mut full, "1", &lines("10.0.0.9", &[("audio", 4000), ("video", 4002)]), &[]);
    let refused = offer(&mut full, "1", &lines("10.0.0.9", &changed), &[]);
    assert_eq!(reason(&refused), "Ran out of ports for a further stream");
    assert_eq!(full.calls[&b"1"[..]].former, []);
}

/// Goal: a port says nothing of others. Method: another number each time, of those that are asked for.
#[test]
fn ports_are_drawn_from_all_but_those_that_were_used_last() {
    let mut relay = relay(&[]);
    relay.draw = |below| below - 1;
    let told = offer(&mut relay, "1", &sdp("10.0.0.9", &[4000]), &[]);
    assert_eq!(
        told_ports(&told),
        [30000],
        "of seven pairs the fifth: the first was put in the place of the one before"
    );
    assert_eq!(entries(&mut relay)[0].port, 30010, "of eight pairs the sixth");
    ask(&mut relay, &[("command", "delete"), ("call-id", "1")]);
    offer(&mut relay, "2", &sdp("10.0.0.9", &[4000]), &[]);
    assert!(entries(&mut relay).iter().all(|entry| ![30010, 30000].contains(&entry.port)));
}

#[test]
fn a_call_that_passes_the_relay_twice_by_one_call_id_is_relayed_once() {
    let mut relay = relay(&[]);
    let from_caller = described(&offer(&mut relay, "1", &sdp("10.0.0.9", &[4000]), &[]));
    let before = ways(&entries(&mut relay));
    let again = described(&offer(&mut relay, "1", &from_caller, &[]));
    assert_eq!(again, from_caller);
    assert_eq!(ways(&entries(&mut relay)), before);
    let from_callee = described(&answer(&mut relay, "1", &sdp("10.0.0.8", &[6000]), &[]));
    let between = ways(&entries(&mut relay));
    assert_eq!(described(&answer(&mut relay, "1", &from_callee, &[])), from_callee);
    assert_eq!(ways(&entries(&mut relay)), between);
    assert_eq!(between[2], "192.0.2.1 30002 10.0.0.8:6000 -> 30000");
    // The other version of IP behind the second pass.
    let wide = described(&offer(&mut relay, "1", &from_caller, &[("address-family", "IP6")]));
    assert!(wide.contains("c=IN IP6 2001:db8::1\r\n"), "{wide}");
    let known = entries(&mut relay);
    assert_eq!([known[0].local.is_ipv6(), known[2].local.is_ipv6()], [false, true]);
    // Ports of another call are those of another party.
    let other = described(&offer(&mut relay, "2", &from_caller, &[]));
    assert!(other.contains("m=audio 30006 "), "{other}");
    assert_eq!(entries(&mut relay)[0].peer, Some("192.0.2.1:30002".parse().unwrap()));
}

#[test]
fn calls_end_when_nobody_is_heard() {
    let mut relay = relay(&[]);
    let at = |seconds: u64| Now { ms: NOW.ms + seconds * 1000, ..NOW };
    let good = sdp("10.0.0.9", &[4000]);
    for id in ["offered", "answered", "held"] {
        offer(&mut relay, id, &good, &[]);
    }
    answer(&mut relay, "answered", &sdp("10.0.0.8", &[6000]), &[]);
    answer(&mut relay, "held", &sdp("0.0.0.0", &[6000]), &[]);
    let left = |relay: &mut Relay, seconds| {
        relay.expire(at(seconds));
        relay.len()
    };
    assert_eq!(left(&mut relay, 59), 3);
    relay.counted(30004, Counts { packets: 1, ..Counts::default() }, at(59));
    assert_eq!(left(&mut relay, 118), 3);
    // The same count is no sign of life.
    relay.counted(30004, Counts { packets: 1, ..Counts::default() }, at(118));
    assert_eq!(left(&mut relay, 119), 2);
    assert_eq!((left(&mut relay, 179), left(&mut relay, 180)), (2, 1));
    assert_eq!((left(&mut relay, 3599), left(&mut relay, 3600), relay.totals.expired), (1, 0, 3));
}

#[test]
fn calls_outlive_the_module() {
    let mut before = relay(&[]);
    let text = format!("{}m=message 9 TCP/MSRP *\r\nm=audio 4004 RTP/AVP 0\r\n", sdp("10.0.0.9", &[4000]));
    offer(&mut before, "1", &text, &[("flags", "asymmetric"), ("via-branch", ".0")]);
    answer(&mut before, "1", &sdp("10.0.0.8", &[6000, 0, 6004]), &[]);
    let mut saved = None;
    while let Some(change) = before.poll_change() {
        saved = Some(change);
    }
    let Some(Change::Put { number, saved, entries }) = saved else { panic!("no change") };
    let mut after = relay(&[]);
    after.restore(number, &saved, NOW);
    assert_eq!(after.calls, before.calls);
    after.tell_all();
    assert_eq!(after.poll_change(), Some(Change::Put { number, saved: saved.clone(), entries: entries.clone() }));
    assert_eq!(Call::saved_entries(&saved), Some(entries));
    assert!(described(&offer(&mut after, "2", &sdp("10.0.0.9", &[4000]), &[])).contains("audio 30010 "));

    // What is damaged, there already, or of other ports is forgotten.
    let mut other = relay(&[("ports", "40000-40015")]);
    for (relay, number, bytes) in [(&mut other, 7, &saved[..]), (&mut after, 8, &saved[..]), (&mut before, 9, b"d")] {
        let (calls, free) = (relay.len(), relay.free.len());
        relay.restore(number, bytes, NOW);
        assert_eq!((relay.len(), relay.free.len(), relay.next), (calls, free, number + 1));
        let mut last = None;
        while let Some(change) = relay.poll_change() {
            last = Some(change);
        }
        assert_eq!(last, Some(Change::Gone { number, ports: Vec::new() }));
    }
    for at in 0..saved.len() {
        let mut changed = saved.clone();
        changed[at] = b'9';
        for bytes in [&changed[..], &changed[..at]] {
            relay(&[]).restore(0, bytes, NOW);
        }
    }
}
