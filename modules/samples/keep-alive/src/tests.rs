// SPDX-License-Identifier: Apache-2.0

use netserv_sdk::fake;
use netserv_testing::udp;

use super::*;

const PHONE: &str = "192.0.2.9:40000";
const SERVER: &str = "198.51.100.7:5060";

const NOTIFY: &str = "NOTIFY sip:example.com SIP/2.0\r\n\
    Via: SIP/2.0/UDP 10.0.0.5:5060;branch=z9hG4bK77ef;rport\r\n\
    From: \"Alice\" <sip:alice@example.com>;tag=42\r\n\
    To: <sip:example.com>\r\n\
    Call-ID: 1234@10.0.0.5\r\n\
    CSeq: 7 NOTIFY\r\n\
    Max-Forwards: 70\r\n\
    Event: keep-alive\r\n\
    Content-Length: 0\r\n\r\n";

/// Runs the module on one datagram from the phone. Returns where the answer goes and its text, if there is one.
fn answer_to(payload: &[u8]) -> Option<(String, String)> {
    let mut module = KeepAlive::start().unwrap();
    let (verdict, left) = fake::process(&mut module, &udp(PHONE, SERVER, 61, payload));
    if verdict != Verdict::Modified {
        return None;
    }
    let udp = parse_udp(&left).unwrap();
    assert_eq!(udp.source, SERVER.parse().unwrap());
    Some((udp.destination.to_string(), String::from_utf8(left[udp.payload].to_vec()).unwrap()))
}

fn passes(text: &str) -> bool {
    answer_to(text.as_bytes()).is_none()
}

#[test]
fn a_notify_is_answered() {
    fake::reset(&[]);
    let (to, text) = answer_to(NOTIFY.as_bytes()).unwrap();
    assert_eq!(to, PHONE);
    let tag = text.split("To: <sip:example.com>;tag=").nth(1).unwrap()[..16].to_owned();
    let expected = format!(
        "SIP/2.0 200 OK\r\n\
         Via: SIP/2.0/UDP 10.0.0.5:5060;branch=z9hG4bK77ef;received=192.0.2.9;rport=40000\r\n\
         From: \"Alice\" <sip:alice@example.com>;tag=42\r\n\
         To: <sip:example.com>;tag={tag}\r\n\
         Call-ID: 1234@10.0.0.5\r\n\
         CSeq: 7 NOTIFY\r\n\
         Content-Length: 0\r\n\r\n"
    );
    assert_eq!(text, expected);
    fake::with(|node| assert_eq!(node.counter("notify"), 1));
}

#[test]
fn without_rport_the_answer_goes_to_the_port_of_the_via() {
    fake::reset(&[]);
    let plain = NOTIFY.replace(";rport", "").replace("10.0.0.5:5060", "10.0.0.5:5062");
    assert_eq!(answer_to(plain.as_bytes()).unwrap().0, "192.0.2.9:5062");
    fake::reset(&[("force-rport", "on")]);
    assert_eq!(answer_to(plain.as_bytes()).unwrap().0, PHONE);
}

#[test]
fn all_vias_are_copied() {
    fake::reset(&[]);
    let proxied = NOTIFY.replace(";rport\r\n", ";rport , SIP/2.0/TCP b\r\nv: SIP/2.0/UDP c\r\n  ;branch=2\r\n");
    let text = answer_to(proxied.as_bytes()).unwrap().1;
    let vias: Vec<_> = text.lines().filter(|line| line.starts_with("Via: ")).collect();
    assert_eq!(
        vias,
        [
            "Via: SIP/2.0/UDP 10.0.0.5:5060;branch=z9hG4bK77ef;received=192.0.2.9;rport=40000",
            "Via: SIP/2.0/TCP b",
            "Via: SIP/2.0/UDP c    ;branch=2",
        ]
    );
}

#[test]
fn a_request_that_comes_again_gets_the_same_tag() {
    fake::reset(&[]);
    let mut module = KeepAlive::start().unwrap();
    let packet = udp(PHONE, SERVER, 61, NOTIFY.as_bytes());
    let first = fake::process(&mut module, &packet).1;
    assert_eq!(fake::process(&mut module, &packet).1, first);
    let next = udp(PHONE, SERVER, 61, NOTIFY.replace("CSeq: 7", "CSeq: 8").as_bytes());
    assert_ne!(fake::process(&mut module, &next).1, first);
}

#[test]
fn only_keep_alive_notifies_are_answered() {
    fake::reset(&[]);
    assert!(!passes(&NOTIFY.replace("Event: keep-alive", "o: Keep-Alive;x=1")));
    assert!(!passes(&NOTIFY.replace("sip:example.com SIP", "sip:alice@example.com SIP")));
    assert!(passes(&NOTIFY.replace("Event: keep-alive", "Event: presence")));
    assert!(passes(&NOTIFY.replace("Event: keep-alive\r\n", "")));
    assert!(passes(&NOTIFY.replace("Event:", "Require: 100rel\r\nEvent:")));
    assert!(passes(&NOTIFY.replace("NOTIFY", "SUBSCRIBE")));
}

#[test]
fn only_pings_to_the_server_are_answered() {
    let ping = NOTIFY.replace("NOTIFY", "OPTIONS").replace("Event: keep-alive\r\n", "");
    fake::reset(&[]);
    assert!(answer_to(ping.as_bytes()).unwrap().1.contains("\r\nCSeq: 7 OPTIONS\r\n"));
    assert!(passes(&ping.replace("sip:example.com SIP", "sip:bob@example.com SIP")));
    assert!(passes(&ping.replace("To: <sip:example.com>", "To: <sip:example.com>;tag=1")));
    fake::reset(&[("options", "off")]);
    assert!(passes(&ping));
    fake::reset(&[("options", "maybe")]);
    assert!(KeepAlive::start().is_err());
}

#[test]
fn crlf_pings_get_a_pong() {
    fake::reset(&[]);
    assert_eq!(answer_to(b"\r\n\r\n"), Some((PHONE.to_owned(), "\r\n".to_owned())));
    let mut module = KeepAlive::start().unwrap();
    assert_eq!(fake::process(&mut module, &udp(PHONE, SERVER, 61, b"\r\n")).0, Verdict::Drop);
    assert_eq!(fake::process(&mut module, &udp(PHONE, SERVER, 61, b"\r\n\r\n\r\n")).0, Verdict::Pass);
    assert_eq!(fake::process(&mut module, &udp(PHONE, SERVER, 61, b"")).0, Verdict::Pass);
}

#[test]
fn damaged_requests_pass() {
    fake::reset(&[]);
    for name in ["Via", "From", "To", "Call-ID", "CSeq"] {
        assert!(passes(&NOTIFY.replace(&format!("\r\n{name}: "), "\r\nX: ")), "{name}");
    }
    for (from, to) in [
        ("\r\n\r\n", "\r\n"),
        ("SIP/2.0\r\n", "SIP/3.0\r\n"),
        ("CSeq: 7 NOTIFY", "CSeq: 7 OPTIONS"),
        ("CSeq: 7 NOTIFY", "CSeq: x NOTIFY"),
        ("Event: keep-alive\r\n", "Event: keep-alive\r\nEvent: keep-alive\r\n"),
        ("Max-Forwards: 70\r\n", "Max-Forwards: 70\n"),
        ("Max-Forwards", "Max Forwards"),
        ("Max-Forwards:", "Max-Forwards"),
        ("10.0.0.5:5060;", "10.0.0.5:0x1;"),
        ("SIP/2.0/UDP", "SIP/2.0/TLS"),
        ("sip:example.com SIP", "sip:example.com  SIP"),
    ] {
        assert!(passes(&NOTIFY.replace(from, to)), "{from:?} -> {to:?}");
    }
    assert!(passes(&NOTIFY.replace("Max-Forwards: 70\r\n", &"X: y\r\n".repeat(64))));
    assert!(!passes(&NOTIFY.replace("Max-Forwards: 70\r\n", &"X: y\r\n".repeat(56))));
}

#[test]
fn no_damage_makes_it_trap() {
    fake::reset(&[]);
    let mut module = KeepAlive::start().unwrap();
    for at in 0..NOTIFY.len() {
        fake::process(&mut module, &udp(PHONE, SERVER, 61, &NOTIFY.as_bytes()[..at]));
        for byte in *b"\0\r\n :;,<\"\\[\xff" {
            let mut damaged = NOTIFY.as_bytes().to_vec();
            damaged[at] = byte;
            fake::process(&mut module, &udp(PHONE, SERVER, 61, &damaged));
        }
    }
}

#[test]
fn an_answer_that_does_not_fit_is_not_given() {
    fake::reset(&[]);
    // What the answer adds is longer than what it leaves out, so it does not fit where the request just does.
    let short = NOTIFY.replace("Max-Forwards: 70\r\n", "").replace(";rport", ";rport;x=");
    let filler = "y".repeat(PACKET_BYTES_MAX - 28 - short.len());
    let long = short.replace(";x=", &format!(";x={filler}"));
    assert!(passes(&long));
    assert!(!passes(&long.replace(&filler, &filler[40..])));
}
