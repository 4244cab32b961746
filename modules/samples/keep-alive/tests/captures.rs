// SPDX-License-Identifier: Apache-2.0
//! What the captures of the module's tests hold.
#![allow(missing_docs, reason = "a test has no users")]

use netserv_sip::Request;
use netserv_testing::{Timed, check_capture, in_turn, ip, udp};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
/// The first random number that `netserv module test` gives a module.
const SECRET: u64 = 0x910a_2dec_8902_5cc1;

const PHONE: &str = "192.0.2.9:40000";
const SERVER: &str = "198.51.100.7:5060";
const PHONE_V6: &str = "[2001:db8:9::9]:5060";
const SERVER_V6: &str = "[2001:db8:7::7]:5060";

fn request(method: &str, uri: &str, via: &str, more: &str) -> String {
    format!(
        "{method} {uri} SIP/2.0\r\n\
         Via: SIP/2.0/UDP {via}\r\n\
         From: <sip:alice@example.com>;tag=42\r\n\
         To: <sip:example.com>\r\n\
         Call-ID: 1234@phone\r\n\
         CSeq: 7 {method}\r\n\
         {more}Content-Length: 0\r\n\r\n"
    )
}

fn response(request: &str, method: &str, via: &str) -> String {
    let tag = Request::parse(request.as_bytes()).expect("a request").to_tag(SECRET);
    let tag = str::from_utf8(&tag).expect("digits");
    format!(
        "SIP/2.0 200 OK\r\n\
         Via: SIP/2.0/UDP {via}\r\n\
         From: <sip:alice@example.com>;tag=42\r\n\
         To: <sip:example.com>;tag={tag}\r\n\
         Call-ID: 1234@phone\r\n\
         CSeq: 7 {method}\r\n\
         Content-Length: 0\r\n\r\n"
    )
}

#[test]
fn keep_alives_are_answered() {
    let event = "Event: keep-alive\r\n";
    let notify = request("NOTIFY", "sip:example.com", "10.0.0.5:5060;rport;branch=z9hG4bK1", event);
    let notify_v6 = request("NOTIFY", "sip:example.com", "[2001:db8:9::9]:5060;branch=z9hG4bK2", event);
    let options = request("OPTIONS", "sip:example.com", "phone.example:5062;branch=z9hG4bK3", "");
    let there = [
        udp(PHONE, SERVER, 61, notify.as_bytes()),
        udp(PHONE_V6, SERVER_V6, 61, notify_v6.as_bytes()),
        udp(PHONE, SERVER, 61, options.as_bytes()),
        udp(PHONE, SERVER, 61, b"\r\n\r\n"),
        udp(PHONE, SERVER, 61, b"\r\n"),
        udp(PHONE_V6, SERVER_V6, 61, b"\r\n\r\n"),
    ];
    let via = "10.0.0.5:5060;branch=z9hG4bK1;received=192.0.2.9;rport=40000";
    let notified = response(&notify, "NOTIFY", via);
    let notified_v6 = response(&notify_v6, "NOTIFY", "[2001:db8:9::9]:5060;branch=z9hG4bK2");
    let pinged = response(&options, "OPTIONS", "phone.example:5062;branch=z9hG4bK3;received=192.0.2.9");
    let back = [
        udp(SERVER, PHONE, 64, notified.as_bytes()),
        udp(SERVER_V6, PHONE_V6, 64, notified_v6.as_bytes()),
        udp(SERVER, "192.0.2.9:5062", 64, pinged.as_bytes()),
        udp(SERVER, PHONE, 64, b"\r\n"),
        udp(SERVER_V6, PHONE_V6, 64, b"\r\n"),
    ];
    check_capture(CRATE, "tests/answered.in.pcap", &in_turn(there));
    check_capture(CRATE, "tests/answered.out.pcap", &in_turn(back));
}

#[test]
fn everything_else_passes() {
    let via = "10.0.0.5:5060;branch=z9hG4bK1";
    let mut fragment = udp(PHONE, SERVER, 61, b"\r\n\r\n");
    fragment[6] = 0x20;
    let texts = [
        request("REGISTER", "sip:example.com", via, ""),
        request("OPTIONS", "sip:bob@example.com", via, ""),
        request("NOTIFY", "sip:example.com", via, "Event: presence\r\n"),
        request("INVITE", "sip:bob@example.com", via, "Event: keep-alive\r\n"),
        "OPTIONS sip:example.com SIP/2.0\r\n\r\n".to_owned(),
        "NOTIFY \u{fffd}".to_owned(),
        "SIP/2.0 200 OK\r\n\r\n".to_owned(),
        String::new(),
    ];
    let packets = texts.iter().map(|text| udp(PHONE, SERVER, 61, text.as_bytes())).chain([fragment]);
    check_capture(CRATE, "tests/pass.pcap", &in_turn(packets));
}

#[test]
fn options_pass_if_they_are_to() {
    let options = request("OPTIONS", "sip:example.com", "10.0.0.5:5060;branch=z9hG4bK1", "");
    let packets: Vec<Timed> = in_turn([udp(PHONE, SERVER, 61, options.as_bytes())]);
    check_capture(CRATE, "tests/options-off.pcap", &packets);
}

/// Requests as other phones write them: folded, with short names, several Vias, all forms of hosts.
#[test]
fn all_forms_of_requests_are_answered() {
    let head = "Max-Forwards: 70\r\nf: \"A;tag=1\" <sip:a@b>;tag=9\r\nt: sip:b\r\ni: 2\r\nCSeq: 1 OPTIONS\r\n\r\n";
    let lines = "From: \"A;tag=1\" <sip:a@b>;tag=9\r\nTo: sip:b;tag=#\r\nCall-ID: 2\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n";
    let received = ";received=192.0.2.9";
    let forms = [
        ("v: SIP/2.0/UDP 192.0.2.9", "Via: SIP/2.0/UDP 192.0.2.9".to_owned(), 5060),
        ("Via: SIP/2.0/UDP\r\n\t[192.0.2.9]:5061", "Via: SIP/2.0/UDP  \t[192.0.2.9]:5061".to_owned(), 5061),
        ("VIA : sip/2.0/udp 192.0.2.09;ttl=1", format!("Via: sip/2.0/udp 192.0.2.09;ttl=1{received}"), 5060),
        ("Via: SIP/2.0/UDP a.b-c : 5062 ; x ", format!("Via: SIP/2.0/UDP a.b-c : 5062;x{received}"), 5062),
        ("Via: SIP/2.0/UDP a;RPORT=7", format!("Via: SIP/2.0/UDP a{received};rport=40000"), 40_000),
        (
            "Via: SIP/2.0/UDP a;received=1.1.1.1;y=\"\\\",;\"",
            format!("Via: SIP/2.0/UDP a;y=\"\\\",;\"{received}"),
            5060,
        ),
        (
            "Via: SIP/2.0/UDP a , SIP/2.0/TCP b\r\nv: SIP/2.0/TLS c",
            format!("Via: SIP/2.0/UDP a{received}\r\nVia: SIP/2.0/TCP b\r\nVia: SIP/2.0/TLS c"),
            5060,
        ),
        ("Via: SIP/2.0/UDP [::ffff:192.0.2.9]", format!("Via: SIP/2.0/UDP [::ffff:192.0.2.9]{received}"), 5060),
    ];
    let (mut there, mut back) = (Vec::new(), Vec::new());
    for (via, answered, port) in forms {
        let request = format!("OPTIONS sips:b SIP/2.0\r\n{via}\r\n{head}");
        let tag = Request::parse(request.as_bytes()).expect("a request").to_tag(SECRET);
        let lines = lines.replace('#', str::from_utf8(&tag).expect("digits"));
        there.push(udp(PHONE, SERVER, 61, request.as_bytes()));
        let response = format!("SIP/2.0 200 OK\r\n{answered}\r\n{lines}");
        back.push(udp(SERVER, &format!("192.0.2.9:{port}"), 64, response.as_bytes()));
    }
    check_capture(CRATE, "tests/forms.in.pcap", &in_turn(there));
    check_capture(CRATE, "tests/forms.out.pcap", &in_turn(back));
}

/// Keep-alives behind IPv6 extension headers and IPv4 options are answered, fragments are not.
#[test]
fn headers_in_front_of_udp_are_skipped() {
    let ping = |to: &str| udp(PHONE_V6, to, 61, b"\r\n\r\n")[40..].to_vec();
    let (phone, server) = ("2001:db8:9::9", "2001:db8:7::7");
    let behind = |number: u8, headers: &[u8]| {
        let payload = [headers, &ping(SERVER_V6)].concat();
        ip(phone.parse().expect("one"), server.parse().expect("one"), number, 61, &payload)
    };
    let hop = [1, 4, 0, 0, 0, 0];
    let fragment = |next: u8, field: u16| [&[next, 0][..], &field.to_be_bytes(), &[0, 0, 0, 1]].concat();
    let mut with_options = udp(PHONE, SERVER, 61, b"\r\n\r\n");
    with_options.splice(20..20, [1; 8]);
    (with_options[0], with_options[3]) = (0x47, with_options[3] + 8);
    let answered = [
        behind(0, &[&[17, 0][..], &hop].concat()),
        behind(60, &[&[44, 0][..], &hop, &fragment(43, 0), &[17, 0], &hop].concat()),
        behind(51, &[&[17, 4][..], &[0; 22]].concat()),
        behind(60, &[&[60, 0][..], &hop].concat().repeat(7).into_iter().chain([17, 0]).chain(hop).collect::<Vec<_>>()),
        with_options,
    ];
    let passed = [
        behind(44, &fragment(17, 1)),
        behind(44, &fragment(17, 0x0b8)),
        behind(60, &[&[60, 0][..], &hop].concat().repeat(8).into_iter().chain([17, 0]).chain(hop).collect::<Vec<_>>()),
        behind(50, &[&[17, 0][..], &hop].concat()),
        behind(0, &[&[17, 9][..], &hop].concat()),
        behind(0, &[&[17, 2][..], &hop].concat()),
    ];
    let pong = udp(SERVER_V6, PHONE_V6, 64, b"\r\n");
    let back = [vec![pong; 4], vec![udp(SERVER, PHONE, 64, b"\r\n")], passed.to_vec()].concat();
    check_capture(CRATE, "tests/headers.in.pcap", &in_turn(answered.into_iter().chain(passed)));
    check_capture(CRATE, "tests/headers.out.pcap", &in_turn(back));
}

/// Requests that are damaged in one place each.
#[test]
fn damaged_requests_pass() {
    let via = "10.0.0.5:5060;rport;branch=z9hG4bK1";
    let whole = request("NOTIFY", "sip:example.com", via, "Event: keep-alive\r\n");
    let changes = [
        ("\r\n\r\n", "\r\n"),
        (" SIP/2.0\r\n", " SIP/3.0\r\n"),
        ("NOTIFY sip:", "NOTIFY  sip:"),
        ("7 NOTIFY", "7 OPTIONS"),
        ("7 NOTIFY", "7NOTIFY"),
        ("7 NOTIFY", "-7 NOTIFY"),
        ("Event: keep-alive", "Event: keep-alive\r\no: keep-alive"),
        ("Call-ID: ", "Call ID: "),
        ("Call-ID: 1234@phone", "Call-ID:"),
        ("To: <", "To <"),
        ("From: ", ": "),
        ("From: ", "Fr\0m: "),
        ("alice@", "al\rice@"),
        ("\r\nTo:", "\nTo:"),
        ("Content-Length: 0\r\n", "Content-Length: 0\r\n \r"),
    ];
    let unanswerable = [
        ("SIP/2.0/UDP ", "SIP/2.0/UDP"),
        ("SIP/2.0/UDP", "SIP/2.0/TCP"),
        (":5060;", ":65536;"),
        (":5060;", ":50x60;"),
        (":5060;", ": ;"),
        ("10.0.0.5:5060;rport", "10.0.0.5:0"),
        ("rport", "maddr=1.1.1.1"),
        ("10.0.0.5", "[10.0.0.5"),
        ("10.0.0.5", ""),
        ("Event: ", "Require: x\r\nEvent: "),
        ("Event: ", "Proxy-Require: x\r\nEvent: "),
        ("keep-alive\r\n", "keep-alives\r\n"),
    ];
    let text = |(from, to): &(&str, &str)| {
        assert!(whole.contains(from), "{from:?}");
        whole.replacen(from, to, 1)
    };
    let packets = changes.iter().chain(&unanswerable).map(|change| udp(PHONE, SERVER, 61, text(change).as_bytes()));
    // One whose UDP length goes beyond the packet, and one that is no longer than its header.
    let mut beyond = udp(PHONE, SERVER, 61, whole.as_bytes());
    beyond[24] = 0xff;
    let mut none = udp(PHONE, SERVER, 61, whole.as_bytes());
    none[24..26].copy_from_slice(&[0, 8]);
    check_capture(CRATE, "tests/damaged.pcap", &in_turn(packets.chain([beyond, none])));
}
