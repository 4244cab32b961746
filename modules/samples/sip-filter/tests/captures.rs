// SPDX-License-Identifier: Apache-2.0
//! What the captures of the module's tests hold.
#![allow(missing_docs, reason = "a test has no users")]

use netserv_testing::{check_capture, in_turn, udp};

const PHONE: &str = "192.0.2.1:5060";
const SERVER: &str = "198.51.100.1:5060";

fn request(method: &str, more: &str) -> String {
    format!(
        "{method} sip:100@198.51.100.1 SIP/2.0\r\nv: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1\r\n\
         f: \"100\" <sip:100@example.org>;tag=1\r\nt: <sip:100@example.org>\r\ni: 1@192.0.2.1\r\n\
         CSeq: 1 {method}\r\n{more}Max-Forwards: 70\r\nl: 0\r\n\r\n"
    )
}

fn packet(text: &str) -> Vec<u8> {
    udp(PHONE, SERVER, 64, text.as_bytes())
}

fn packet_v6(text: &str) -> Vec<u8> {
    udp("[2001:db8::1]:5060", "[2001:db8::2]:5060", 64, text.as_bytes())
}

fn check(name: &str, packets: impl IntoIterator<Item = Vec<u8>>) {
    check_capture(env!("CARGO_MANIFEST_DIR"), name, &in_turn(packets));
}

#[test]
fn what_scanners_send() {
    let phone = packet(&request("REGISTER", "User-Agent: a phone\r\n"));
    // The text may stand elsewhere.
    let other = packet(&request("INVITE", "Subject: sipvicious\r\n"));
    let scanners = [
        packet(&request("OPTIONS", "User-Agent: friendly-scanner\r\n")),
        packet(&request("REGISTER", "user-agent : my SIPVicious 0.3\r\n")),
        packet_v6(&request("INVITE", "User-Agent:\r\n VaxSIPUserAgent/3.1\r\n")),
    ];
    let [first, second, third] = scanners;
    check("tests/scanners.in.pcap", [first, phone.clone(), second, other.clone(), third]);
    check("tests/scanners.out.pcap", [phone, other]);
}

#[test]
fn methods() {
    let wanted = packet(&request("REGISTER", ""));
    let response = packet(&request("OPTIONS", "").replace("OPTIONS sip:100@198.51.100.1 SIP/2.0", "SIP/2.0 200 OK"));
    let unwanted = [packet(&request("OPTIONS", "")), packet_v6(&request("SUBSCRIBE", ""))];
    check("tests/methods.in.pcap", unwanted.into_iter().chain([wanted.clone(), response.clone()]));
    check("tests/methods.out.pcap", [wanted, response]);
}

#[test]
fn damaged_messages() {
    let whole = request("INVITE", "");
    let damaged = [
        packet(&whole.replace("i: 1@192.0.2.1\r\n", "")),
        packet(&whole.replace("CSeq: 1 INVITE", "CSeq: 1 BYE")),
        packet(&whole.replace("\r\n", "\n")),
    ];
    let others = [packet(&whole), packet("\r\n\r\n"), packet("\u{1}\0\0\0")];
    check("tests/damaged.in.pcap", damaged.into_iter().chain(others.clone()));
    check("tests/damaged.out.pcap", others);
}
