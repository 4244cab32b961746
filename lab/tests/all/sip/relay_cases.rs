// SPDX-License-Identifier: Apache-2.0
//! What went wrong for users of other relays, and what becomes of it by media-relay and by Debian's rtpengine, on one node: docs/apps/sip.md
//! has the table.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::media_relay::Net;
use super::relay_reports::{left_by_pbx, other_codec_and_port, rejected_fax};
use super::relay_strangers::{
    changed_lines, one_packet_while_silent, rejected_while_silent, ringing, ringing_strict, ten_a_second_while_silent,
};
use crate::common::{Driver, ask_udp, eventually};
use netserv_lab::node::workspace;
use netserv_lab::patience::grown;
use netserv_skips::skipped;

over_one_driver! {
    afxdp: []
    nfqueue: [cases_of_other_relays_end_as_the_page_says]
}

/// A case: its name in the table, and what is done. Each result is a number of packets that were heard, of those that were sent. Where that
/// depends on moments, it is `some`.
type Case = (&'static str, fn(&Relay<'_>) -> Vec<String>);

const CASES: [Case; 27] = [
    ("re-INVITE to another port, then one late packet of the old one: the new port hears, the old one", late_packet),
    ("the same, the new port silent for 3.2 s, then with another SSRC: the other party hears", late_packet_and_silence),
    ("re-INVITE with the same SDP, another port of the NAT and another SSRC: the other party hears, this one", rebound),
    ("the same, with three late packets of the old port in between", rebound_with_late_packets),
    ("re-INVITE with the same SDP, then two times 5 packets of a stranger: the party hears, the stranger", stranger),
    ("re-INVITE to another port that is rejected, media as before: the party hears there", rejected),
    ("hold by `0.0.0.0` behind a NAT, and back: the party, which is silent, hears", held_and_back),
    (
        "fork, one branch deleted by `via-branch` after the answer of the other one: each party hears",
        branch_after_answer,
    ),
    ("the same before the answer of the other one", branch_before_answer),
    (
        "fork, early media of both, the newer branch deleted by `via-branch`: the caller hears the older one, that one hears",
        |relay| newer_branch_ends(relay, true),
    ),
    ("the same, and answers name no branch, but `delete` the To tag", |relay| newer_branch_ends(relay, false)),
    (
        "a second 183 with another To tag and address: that party hears from the port that it was told",
        second_early_media,
    ),
    ("a call that passes the relay twice by one Call-ID: each party hears", spiral),
    ("a party behind a NAT that sends nothing but an empty datagram: it hears", |relay| kept_open(relay, &[])),
    ("the same with four zeros", |relay| kept_open(relay, &[0; 4])),
    ("the same with an indication of STUN", |relay| kept_open(relay, &STUN_INDICATION)),
    ("the same with RTP of 12 bytes, payload type 20", |relay| {
        kept_open(relay, &[0x80, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1])
    }),
    ("the same with a report of RTCP", |relay| kept_open(relay, &[0x80, 201, 0, 1, 0, 0, 0, 1])),
    (
        "a stranger sends two packets a second to all ports of a call, from 4 s before the answer on: whichever party hears less, the stranger",
        ringing,
    ),
    ("the same with one each 2.5 s and `strict-source`", ringing_strict),
    (
        "re-INVITE with the same SDP, a silent party, one packet of a stranger: the party hears, the stranger",
        one_packet_while_silent,
    ),
    (
        "the same with ten a second for 4 s, then the party speaks again: the other party hears it, it hears, the stranger",
        ten_a_second_while_silent,
    ),
    ("re-INVITE to another port that is rejected, of a silent party: the party hears there", rejected_while_silent),
    (
        "audio and video become video and audio: late packets of the one kind that a port of the other hears; then each hears its own",
        changed_lines,
    ),
    (
        "re-INVITE to another port and codec: each party hears, which takes media from the port alone that it was told",
        other_codec_and_port,
    ),
    (
        "a PBX leaves the media of its two calls, each of which is at the relay: each party hears the other call's",
        left_by_pbx,
    ),
    ("re-INVITE to T.38 that is rejected, its branch deleted by `via-branch`: each party hears", rejected_fax),
];

/// RFC 8489 §5: a binding indication.
const STUN_INDICATION: [u8; 20] =
    [0, 0x11, 0, 0, 0x21, 0x12, 0xa4, 0x42, b't', b'r', b'a', b'n', b's', b'a', b'c', b't', b'i', b'o', b'n', b'1'];
/// An address that nobody has here, as of a phone behind a NAT.
pub(super) const BEHIND_NAT: &str = "192.168.7.7:4444";
pub(super) const PACKET_EACH: Duration = Duration::from_millis(20);
/// How long what was sent last is waited for, on a machine that is not busy.
pub(super) const LAST_WAIT: Duration = Duration::from_millis(200);
const TABLE: &str = "| case | media-relay | rtpengine 10.5 |\n";

/// Goal: in each case the parties hear by media-relay what the page says, which is all that is right; what rtpengine does in the same script
/// is what the page says, too. Method: requests of the ng protocol and RTP by hand, the same for both relays.
fn cases_of_other_relays_end_as_the_page_says(driver: Driver) {
    let test = "cases_of_other_relays_end_as_the_page_says";
    let Some(mut net) = Net::up(test, driver) else { return };
    let mut relays = vec![("media-relay", SocketAddr::new(net.relay(false), 2223))];
    if Path::new("/usr/bin/rtpengine").exists() {
        let node = IpAddr::from(net.lab.topology().interfaces(0).1.v4);
        net.lab.start_rtpengine("node", node, 2224, 40_000..=40_999).unwrap();
        eventually("rtpengine answers", || ask_udp(&net.lab, "sender", node, 2224, "1 d7:command4:pinge").is_some());
        relays.push(("rtpengine", SocketAddr::new(node, 2224)));
    } else {
        skipped(test, "needs rtpengine to compare");
    }
    let page = std::fs::read_to_string(workspace().join("docs/apps/sip.md")).unwrap();
    let table = page.split_once(TABLE).map_or("", |(_, rest)| rest.split("\n\n").next().unwrap());
    let rows: Vec<Vec<&str>> =
        table.lines().skip(1).map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect();
    let (net, relays) = (&net, &relays);
    let mut wrong = Vec::new();
    // They take half a minute one after the other, mostly to wait.
    std::thread::scope(|scope| {
        let run = |case: fn(&Relay<'_>) -> Vec<String>, place, end| {
            scope.spawn(move || case(&Relay::of(net, end, place)).join("; "))
        };
        let cases = CASES.iter().enumerate();
        let running: Vec<_> = cases
            .map(|(place, (name, case))| {
                (name, relays.iter().map(|(_, end)| run(*case, place, *end)).collect::<Vec<_>>())
            })
            .collect();
        for (name, results) in running {
            let found: Vec<String> = results.into_iter().map(|result| result.join().unwrap()).collect();
            eprintln!("| {name} | {} |", found.join(" | "));
            let said = rows.iter().find(|row| row[0] == *name).map_or(&[][..], |row| &row[1..=relays.len()]);
            // What rtpengine does may depend on which of two packets is first.
            let holds = |(said, found): (&&str, &String)| said.split(" or ").any(|one| one == found);
            if said.len() != found.len() || !said.iter().zip(&found).all(holds) {
                wrong.push(format!("{name}: {found:?}, and the page says {said:?}"));
            }
        }
    });
    if let Some((_, end)) = relays.get(1) {
        send_keys(&Relay::of(net, *end, CASES.len()));
        let log = net.lab.log("node", "rtpengine");
        let unknown: Vec<&str> =
            log.lines().filter(|line| line.contains("Unknown") && line.contains("encountered")).collect();
        assert!(unknown.is_empty(), "docs/apps/ng.md has what rtpengine does not know: {unknown:#?}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(rows.len(), CASES.len(), "the page has other cases");
}

/// Sends each row of docs/apps/ng.md that is of an offer of that version.
fn send_keys(relay: &Relay<'_>) {
    let page = std::fs::read_to_string(workspace().join("docs/apps/ng.md")).unwrap();
    let mut sent = 0;
    for row in page.lines().filter(|row| ["| key ", "| flag ", "| replace "].iter().any(|start| row.starts_with(start)))
    {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [kind, names, value, _, why] = cells[..] else { panic!("{row}") };
        if ["of later versions", "of `delete", "in no row"].iter().any(|other| why.contains(other)) {
            continue;
        }
        for name in names.split(", ").map(|name| name.trim_matches('`')) {
            let (key, value) = match kind {
                "key" if name.eq_ignore_ascii_case("sdp") => continue,
                "key" => (name, serde_json::from_str(value).ok().filter(|value: &Value| !value.is_number())),
                "flag" => ("flags", Some(json!([name]))),
                _ => ("replace", Some(json!([name]))),
            };
            let value = value.unwrap_or_else(|| json!(cells[2]));
            let mut request = relay.request("offer", Some("10.0.0.9:4000".parse().unwrap()));
            request.extend([
                ("from-tag".to_owned(), json!("a")),
                ("received-from".to_owned(), json!(["IP4", "10.0.0.9"])),
            ]);
            request.insert("call-id".to_owned(), json!(format!("key-{sent}")));
            request.insert(key.to_owned(), value);
            relay.send_request(&Value::Object(request));
            sent += 1;
        }
    }
    assert!(sent > 100, "{sent} keys and flags");
}

fn late_packet(relay: &Relay<'_>) -> Vec<String> {
    let call = Call::moved(relay);
    relay.send(&call.b, 1, 2, call.b_to);
    let heard = relay.talk(&call.a, 10, 1, call.a_to, &[&call.elsewhere, &call.b]);
    heard.into_iter().map(|heard| of(heard, 10)).collect()
}

fn late_packet_and_silence(relay: &Relay<'_>) -> Vec<String> {
    let call = Call::moved(relay);
    relay.send(&call.b, 1, 2, call.b_to);
    relay.talk(&call.a, 10, 1, call.a_to, &[]);
    std::thread::sleep(Duration::from_millis(3200));
    vec![of(relay.talk(&call.elsewhere, 50, 77, call.b_to, &[&call.a])[0], 50)]
}

fn rebound(relay: &Relay<'_>) -> Vec<String> {
    let call = Call::behind_nat(relay);
    call.described_again(relay);
    let there = relay.talk(&call.elsewhere, 40, 77, call.a_to, &[&call.b])[0];
    let back = relay.talk(&call.b, 40, 2, call.b_to, &[&call.elsewhere])[0];
    vec![of(there, 40), of(back, 40)]
}

fn rebound_with_late_packets(relay: &Relay<'_>) -> Vec<String> {
    let call = Call::behind_nat(relay);
    call.described_again(relay);
    relay.talk(&call.elsewhere, 5, 77, call.a_to, &[]);
    relay.talk(&call.a, 3, 1, call.a_to, &[]);
    let there = relay.talk(&call.elsewhere, 35, 77, call.a_to, &[&call.b])[0];
    let back = relay.talk(&call.b, 40, 2, call.b_to, &[&call.elsewhere])[0];
    vec![of(there, 35), of(back, 40)]
}

fn stranger(relay: &Relay<'_>) -> Vec<String> {
    let call = Call::behind_nat(relay);
    call.described_again(relay);
    relay.talk(&call.elsewhere, 5, 99, call.a_to, &[]);
    // Longer than rtpengine learns.
    relay.talk(&call.a, 25, 1, call.a_to, &[]);
    std::thread::sleep(Duration::from_millis(3200));
    relay.talk(&call.elsewhere, 5, 99, call.a_to, &[]);
    let heard = relay.talk(&call.b, 40, 2, call.b_to, &[&call.a, &call.elsewhere]);
    heard.into_iter().map(|heard| of(heard, 40)).collect()
}

fn rejected(relay: &Relay<'_>) -> Vec<String> {
    let call = Call::begin(relay, None, "sender");
    relay.offer("b", "a", call.elsewhere.local_addr().unwrap());
    relay.talk(&call.b, 25, 2, call.b_to, &[]);
    vec![of(relay.talk(&call.a, 40, 1, call.a_to, &[&call.b])[0], 40)]
}

fn held_and_back(relay: &Relay<'_>) -> Vec<String> {
    let call = Call::behind_nat(relay);
    for address in ["0.0.0.0:4444", BEHIND_NAT] {
        relay.offer("a", "b", address.parse().unwrap());
        relay.answer(("a", "b"), call.b.local_addr().unwrap(), &[]);
    }
    vec![of(relay.talk(&call.b, 40, 2, call.b_to, &[&call.a])[0], 40)]
}

fn branch_after_answer(relay: &Relay<'_>) -> Vec<String> {
    branches(relay, |answer| {
        let b_to = answer();
        relay.ask("delete", &[("from-tag", "a"), ("via-branch", ".1")], None);
        b_to
    })
}

fn branch_before_answer(relay: &Relay<'_>) -> Vec<String> {
    branches(relay, |answer| {
        relay.ask("delete", &[("from-tag", "a"), ("to-tag", "b1"), ("via-branch", ".1")], None);
        answer()
    })
}

fn branches(relay: &Relay<'_>, act: impl FnOnce(&dyn Fn() -> Value) -> Value) -> Vec<String> {
    let (a, b) = (relay.phone("receiver"), relay.phone("sender"));
    let offered = [".0", ".1"].map(|branch| {
        let names = [("from-tag", "a"), ("via-branch", branch)];
        relay.ask("offer", &names, Some(a.local_addr().unwrap()))
    });
    let answer = || {
        let names = [("from-tag", "a"), ("to-tag", "b0"), ("via-branch", ".0")];
        relay.ask("answer", &names, Some(b.local_addr().unwrap()))
    };
    let Some(a_to) = destination(&act(&answer)) else { return vec!["its answer is refused".to_owned()] };
    let b_to = destination(&offered[0]).unwrap();
    let there = relay.talk(&a, 5, 1, a_to, &[&b])[0];
    vec![of(there, 5), of(relay.talk(&b, 5, 2, b_to, &[&a])[0], 5)]
}

fn newer_branch_ends(relay: &Relay<'_>, names_branch: bool) -> Vec<String> {
    let (a, older, newer) = (relay.phone("receiver"), relay.phone("sender"), relay.phone("sender"));
    let mut ends = Vec::new();
    for (tag, branch, b) in [("b0", ".0", &older), ("b1", ".1", &newer)] {
        let names = [("from-tag", "a"), ("via-branch", branch)];
        let b_to = destination(&relay.ask("offer", &names, Some(a.local_addr().unwrap()))).unwrap();
        let named = [("via-branch", branch)];
        let a_to = relay.answer(("a", tag), b.local_addr().unwrap(), if names_branch { &named } else { &[] });
        relay.talk(b, 5, 2, b_to, &[]);
        ends.push((a_to, b_to));
    }
    let (a_to, b_to) = ends[0];
    relay.ask("delete", &[("from-tag", "a"), ("to-tag", "b1"), ("via-branch", ".1")], None);
    // Longer than late packets are heard.
    std::thread::sleep(Duration::from_millis(3200));
    let there = relay.talk(&older, 5, 2, b_to, &[&a])[0];
    vec![of(there, 5), of(relay.talk(&a, 5, 1, a_to, &[&older])[0], 5)]
}

fn second_early_media(relay: &Relay<'_>) -> Vec<String> {
    let (a, first, second) = (relay.phone("receiver"), relay.phone("sender"), relay.phone("sender"));
    let b_to = relay.offer("a", "", a.local_addr().unwrap());
    relay.answer(("a", "b1"), first.local_addr().unwrap(), &[]);
    relay.talk(&first, 5, 2, b_to, &[]);
    let a_to = relay.answer(("a", "b2"), second.local_addr().unwrap(), &[]);
    relay.talk(&second, 5, 3, b_to, &[]);
    // As a party that takes media from nowhere else.
    second.connect(b_to).unwrap();
    vec![of(relay.talk(&a, 5, 1, a_to, &[&second])[0], 5)]
}

fn spiral(relay: &Relay<'_>) -> Vec<String> {
    let (a, b) = (relay.phone("receiver"), relay.phone("sender"));
    let b_to = relay.offer("a", "", relay.offer("a", "", a.local_addr().unwrap()));
    let first = relay.answer(("a", "b"), b.local_addr().unwrap(), &[]);
    let a_to = relay.answer(("a", "b"), first, &[]);
    let there = relay.talk(&a, 5, 1, a_to, &[&b])[0];
    vec![of(there, 5), of(relay.talk(&b, 5, 2, b_to, &[&a])[0], 5)]
}

fn kept_open(relay: &Relay<'_>, bytes: &[u8]) -> Vec<String> {
    let (a, b) = (relay.phone("receiver"), relay.phone("sender"));
    let b_to = relay.offer("a", "", BEHIND_NAT.parse().unwrap());
    let a_to = relay.answer(("a", "b"), b.local_addr().unwrap(), &[]);
    a.send_to(bytes, a_to).unwrap();
    std::thread::sleep(PACKET_EACH);
    vec![of(relay.talk(&b, 5, 2, b_to, &[&a])[0], 5)]
}

pub(super) fn of(heard: usize, sent: usize) -> String {
    format!("{heard} of {sent}")
}

/// A call under way: `a` at the receiver, `b` at the sender, and a further port of the one that is another one later.
pub(super) struct Call {
    pub a: UdpSocket,
    pub b: UdpSocket,
    pub elsewhere: UdpSocket,
    pub a_to: SocketAddr,
    pub b_to: SocketAddr,
}

impl Call {
    pub fn begin(relay: &Relay<'_>, a_named: Option<&str>, elsewhere: &str) -> Call {
        let (a, b, elsewhere) = (relay.phone("receiver"), relay.phone("sender"), relay.phone(elsewhere));
        let named = a_named.map_or(a.local_addr().unwrap(), |named| named.parse().unwrap());
        let b_to = relay.offer("a", "", named);
        let a_to = relay.answer(("a", "b"), b.local_addr().unwrap(), &[]);
        let both = |numbers: Range<u16>| {
            for number in numbers {
                for (phone, ssrc, to) in [(&a, 1, a_to), (&b, 2, b_to)] {
                    send_one(phone, number, ssrc, to);
                    std::thread::sleep(PACKET_EACH);
                }
            }
        };
        both(0..20);
        // Longer than rtpengine learns.
        std::thread::sleep(Duration::from_millis(4200));
        both(20..25);
        [&a, &b].iter().for_each(|phone| _ = hear(phone, grown(LAST_WAIT)));
        Call { a, b, elsewhere, a_to, b_to }
    }

    /// `b` is elsewhere by a re-INVITE of its own.
    fn moved(relay: &Relay<'_>) -> Call {
        let call = Call::begin(relay, None, "sender");
        relay.offer("b", "a", call.elsewhere.local_addr().unwrap());
        relay.answer(("b", "a"), call.a.local_addr().unwrap(), &[]);
        call
    }

    /// What `a` says of itself nobody can reach.
    fn behind_nat(relay: &Relay<'_>) -> Call {
        Call::begin(relay, Some(BEHIND_NAT), "receiver")
    }

    /// A re-INVITE of `a` that changes nothing.
    pub fn described_again(&self, relay: &Relay<'_>) {
        relay.offer("a", "b", BEHIND_NAT.parse().unwrap());
        relay.answer(("a", "b"), self.b.local_addr().unwrap(), &[]);
    }
}

/// A relay, and the Call-ID of one case.
pub(super) struct Relay<'a> {
    net: &'a Net,
    ng: UdpSocket,
    call_id: String,
}

impl<'a> Relay<'a> {
    fn of(net: &'a Net, end: SocketAddr, place: usize) -> Relay<'a> {
        let ng = net.lab.within("sender", || UdpSocket::bind((net.lab.v4("sender"), 0)).unwrap()).unwrap();
        ng.connect(end).unwrap();
        ng.set_read_timeout(Some(grown(Duration::from_millis(500)))).unwrap();
        Relay { net, ng, call_id: format!("case-{place}") }
    }

    pub fn phone(&self, machine: &str) -> UdpSocket {
        let address = self.net.lab.v4(machine);
        self.net.lab.within(machine, || UdpSocket::bind((address, 0)).unwrap()).unwrap()
    }

    /// Returns the same relay for another call.
    pub fn other_call(&self) -> Relay<'a> {
        let ng = self.ng.try_clone().unwrap();
        Relay { net: self.net, ng, call_id: format!("{}-other", self.call_id) }
    }

    pub fn offer(&self, from: &str, to: &str, end: SocketAddr) -> SocketAddr {
        let told = self.ask("offer", &[("from-tag", from), ("to-tag", to)], Some(end));
        destination(&told).unwrap_or_else(|| panic!("{told}"))
    }

    pub fn answer(&self, (from, to): (&str, &str), end: SocketAddr, more: &[(&str, &str)]) -> SocketAddr {
        let told = self.ask("answer", &[&[("from-tag", from), ("to-tag", to)], more].concat(), Some(end));
        destination(&told).unwrap_or_else(|| panic!("{told}"))
    }

    pub fn ask(&self, command: &str, names: &[(&str, &str)], end: Option<SocketAddr>) -> Value {
        let mut request = self.request(command, end);
        let given = names.iter().filter(|(_, value)| !value.is_empty());
        request.extend(given.map(|(name, value)| ((*name).to_owned(), json!(value))));
        if command == "delete" {
            // Else rtpengine does it half a minute later.
            request.insert("delete-delay".to_owned(), json!(0));
        }
        self.send_request(&Value::Object(request))
    }

    pub fn request(&self, command: &str, end: Option<SocketAddr>) -> Map<String, Value> {
        let names = [("command", json!(command)), ("call-id", json!(self.call_id))];
        let sdp = end.map(|end| ("sdp", json!(sdp(end))));
        names.into_iter().chain(sdp).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    pub fn send_request(&self, request: &Value) -> Value {
        static COOKIE: AtomicU64 = AtomicU64::new(0);
        let cookie = format!("{}_{} ", self.call_id, COOKIE.fetch_add(1, Ordering::Relaxed));
        let mut bytes = vec![0; 65_536];
        for _ in 0..5 {
            self.ng.send(format!("{cookie}{request}").as_bytes()).unwrap();
            while let Ok(length) = self.ng.recv(&mut bytes) {
                if let Some(told) = bytes[..length].strip_prefix(cookie.as_bytes()) {
                    return serde_json::from_slice(told).unwrap();
                }
            }
        }
        panic!("no answer to {request}")
    }

    fn send(&self, from: &UdpSocket, count: u16, ssrc: u8, to: SocketAddr) {
        for number in 0..count {
            send_one(from, number, ssrc, to);
            std::thread::sleep(PACKET_EACH);
        }
    }

    /// Sends, and returns how many of these each of some phones got.
    pub fn talk(&self, from: &UdpSocket, count: u16, ssrc: u8, to: SocketAddr, phones: &[&UdpSocket]) -> Vec<usize> {
        phones.iter().for_each(|phone| _ = hear(phone, grown(LAST_WAIT)));
        self.send(from, count, ssrc, to);
        phones.iter().map(|phone| hear(phone, grown(LAST_WAIT))).collect()
    }
}

/// Sends RTP.
pub(super) fn send_one(from: &UdpSocket, number: u16, ssrc: u8, to: SocketAddr) {
    let [high, low] = number.to_be_bytes();
    let packet = [&[0x80, 0, high, low, 0, 0, 0, 0, 0, 0, 0, ssrc][..], &[0xff; 160]].concat();
    from.send_to(&packet, to).unwrap();
}

/// Returns how many packets a phone gets until nothing comes for so long.
fn hear(phone: &UdpSocket, quiet: Duration) -> usize {
    hear_sources(phone, quiet).len()
}

/// Returns the synchronization sources of the packets that a phone gets until nothing comes for so long.
pub(super) fn hear_sources(phone: &UdpSocket, quiet: Duration) -> Vec<u8> {
    phone.set_read_timeout(Some(quiet)).unwrap();
    let begun = Instant::now();
    let mut bytes = [0; 2048];
    let heard = std::iter::from_fn(|| phone.recv(&mut bytes).ok().map(|_| bytes[11]));
    heard.take_while(|_| begun.elapsed() < Duration::from_secs(10)).collect()
}

fn sdp(end: SocketAddr) -> String {
    sdp_of(end.ip(), &[("audio", end.port())])
}

pub(super) fn sdp_of(address: IpAddr, lines: &[(&str, u16)]) -> String {
    let lines: String = lines.iter().map(|(kind, port)| format!("m={kind} {port} RTP/AVP 0\r\n")).collect();
    format!("v=0\r\no=- 1 1 IN IP4 {address}\r\ns=-\r\nc=IN IP4 {address}\r\nt=0 0\r\n{lines}")
}

/// Returns where the description in an answer has RTP go to.
pub(super) fn destination(told: &Value) -> Option<SocketAddr> {
    destination_of(told, "audio")
}

pub(super) fn destination_of(told: &Value, kind: &str) -> Option<SocketAddr> {
    let sdp = told["sdp"].as_str()?;
    let behind = |start: &str| sdp.split_once(start)?.1.split([' ', '\r', '\n']).next();
    Some(SocketAddr::new(behind("c=IN IP4 ")?.parse().ok()?, behind(&format!("m={kind} "))?.parse().ok()?))
}
