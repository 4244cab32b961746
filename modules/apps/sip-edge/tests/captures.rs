// SPDX-License-Identifier: Apache-2.0
//! What the captures of the module's tests hold.
#![allow(missing_docs, reason = "a test has no users")]

use netserv_testing::{Timed, check_capture, in_turn, udp};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
const PHONE: &str = "192.0.2.9:5060";
const SERVER: &str = "198.51.100.7:5060";
const PHONE_V6: &str = "[2001:db8:9::9]:5060";
const SERVER_V6: &str = "[2001:db8:7::7]:5060";

fn message(first: &str, phone: &str, cseq: &str, more: &str) -> Vec<u8> {
    format!(
        "{first}\r\nVia: SIP/2.0/UDP {phone};branch=z9hG4bK{};rport\r\nFrom: <sip:alice@example.com>;tag=42\r\n\
         To: <sip:alice@example.com>\r\nCall-ID: 1234@phone\r\nCSeq: {cseq}\r\nMax-Forwards: 70\r\n\
         User-Agent: a phone of the tests 1.0\r\nAllow: INVITE, ACK, CANCEL, BYE, NOTIFY\r\n{more}Content-Length: 0\r\n\r\n",
        cseq.replace(' ', "")
    )
    .into_bytes()
}

fn stun() -> Vec<u8> {
    [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], b"transaction1"].concat()
}

fn register(phone: &str, number: u32, more: &str) -> Vec<u8> {
    let contact = format!("Contact: <sip:alice@{phone}>\r\nExpires: 60\r\n{more}");
    message("REGISTER sip:example.com SIP/2.0", phone, &format!("{number} REGISTER"), &contact)
}

/// One phone of each version of IP.
fn both(make: impl Fn(&'static str, &'static str) -> Vec<Vec<u8>>) -> Vec<Timed> {
    in_turn([(PHONE, SERVER), (PHONE_V6, SERVER_V6)].into_iter().flat_map(|(phone, server)| make(phone, server)))
}

#[test]
fn answered() {
    let packets = both(|phone, server| {
        let notify = message("NOTIFY sip:example.com SIP/2.0", phone, "1 NOTIFY", "Event: keep-alive\r\n");
        let options = message("OPTIONS sip:example.com SIP/2.0", phone, "2 OPTIONS", "");
        let confirmed =
            message("SIP/2.0 200 OK", phone, "3 REGISTER", &format!("Contact: <sip:alice@{phone}>;expires=60\r\n"));
        vec![
            udp(phone, server, 61, b"\r\n\r\n"),
            udp(phone, server, 61, &stun()),
            udp(phone, server, 61, &notify),
            udp(phone, server, 61, &options),
            // The first goes on, is confirmed, and is refreshed.
            udp(phone, server, 61, &register(phone, 3, "")),
            udp(server, phone, 61, &confirmed),
            udp(phone, server, 61, &register(phone, 4, "")),
        ]
    });
    check_capture(CRATE, "tests/answered.in.pcap", &packets);
}

#[test]
fn passed() {
    let packets = both(|phone, server| {
        let invite = message("INVITE sip:bob@example.com SIP/2.0", phone, "1 INVITE", "");
        let digest = "Authorization: Digest username=\"alice\"\r\n";
        vec![
            udp(server, phone, 61, b"\r\n\r\n"),
            udp(server, phone, 61, &message("OPTIONS sip:192.0.2.9 SIP/2.0", server, "1 OPTIONS", "")),
            udp(phone, server, 61, &invite),
            udp(phone, server, 61, &register(phone, 1, digest)),
            udp(phone, server, 61, &register(phone, 2, digest)),
            udp(phone, server, 61, b"OPTIONS sip:example.com SIP/2.0\r\n\r\n"),
            udp(phone, server, 61, b"\0\x01\0\x08!\x12\xa4Btransaction1\0\x06\0\x04user"),
        ]
    });
    check_capture(CRATE, "tests/pass.pcap", &packets);
}
