// SPDX-License-Identifier: Apache-2.0
//! What the captures of the module's tests hold.
#![allow(missing_docs, reason = "a test has no users")]

use keep_alive::sip::Request;
use netserv_testing::{Timed, check_capture, in_turn, udp};

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
