// SPDX-License-Identifier: Apache-2.0

use netserv_sdk::fake;
use netserv_testing::udp;

use super::*;

const PHONE: &str = "192.0.2.9:5060";
const SERVER: &str = "198.51.100.7:5060";

fn started(more: &[(&str, &str)]) -> Result<SipEdge, StartError> {
    fake::reset(&[&[("server", "198.51.100.7 2001:db8::7")], more].concat());
    SipEdge::start()
}

fn sent(
    module: &mut SipEdge,
    from: &str,
    to: &str,
    payload: &[u8],
) -> (Verdict, Option<(SocketAddr, SocketAddr, Vec<u8>)>) {
    let (verdict, left) = fake::process(module, &udp(from, to, 61, payload));
    let udp = parse_udp(&left).filter(|_| verdict == Verdict::Modified);
    (verdict, udp.map(|udp| (udp.source, udp.destination, left[udp.payload].to_vec())))
}

fn invite(cseq: u32) -> String {
    format!(
        "INVITE sip:bob@example.com SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.9:5060;branch=z9hG4bK{cseq};rport\r\n\
         From: <sip:alice@example.com>;tag=42\r\nTo: <sip:bob@example.com>\r\nCall-ID: 1\r\nCSeq: {cseq} INVITE\r\n\
         Max-Forwards: 70\r\nContact: <sip:alice@192.0.2.9>\r\nContent-Length: 0\r\n\r\n"
    )
}

#[test]
fn all_forms_of_keep_alive_are_answered_in_the_servers_name() {
    for (phone, server) in [(PHONE, SERVER), ("[2001:db8::9]:5060", "[2001:db8::7]:5060")] {
        let mut module = started(&[]).unwrap();
        let (_, answer) = sent(&mut module, phone, server, b"\r\n\r\n");
        assert_eq!(answer, Some((server.parse().unwrap(), phone.parse().unwrap(), b"\r\n".to_vec())));
        assert_eq!(sent(&mut module, phone, server, b"\r\n").0, Verdict::Drop);
        let binding = [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], b"transaction1"].concat();
        let (_, answer) = sent(&mut module, phone, server, &binding);
        assert_eq!(answer.map(|answer| answer.2[..2].to_vec()), Some(vec![1, 1]));
        fake::with(|node| assert_eq!((node.counter("crlf"), node.counter("stun")), (2, 1)));
    }
    let mut off = started(&[("crlf", "off"), ("stun", "off")]).unwrap();
    assert_eq!(sent(&mut off, PHONE, SERVER, b"\r\n\r\n").0, Verdict::Pass);
}

#[test]
fn what_the_server_sends_passes_though_the_ports_are_the_same() {
    let mut module = started(&[]).unwrap();
    module.control(&control::Message { topic: "overload", seq: 1, body: b"loss=100" });
    assert_eq!(sent(&mut module, SERVER, PHONE, b"\r\n\r\n").0, Verdict::Pass);
    assert_eq!(sent(&mut module, SERVER, PHONE, invite(1).as_bytes()).0, Verdict::Pass);
    assert_eq!(sent(&mut module, PHONE, "198.51.100.8:5060", b"\r\n\r\n").0, Verdict::Pass);
    let (verdict, answer) = sent(&mut module, PHONE, SERVER, invite(1).as_bytes());
    assert_eq!((verdict, answer.unwrap().2[..11].to_vec()), (Verdict::Modified, b"SIP/2.0 503".to_vec()));
}

#[test]
fn answers_to_an_address_are_bounded() {
    let mut module = started(&[("answers-per-second", "5")]).unwrap();
    let verdicts: Vec<Verdict> = (0..8).map(|_| sent(&mut module, PHONE, SERVER, b"\r\n\r\n").0).collect();
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == Verdict::Modified).count(), 5);
    assert_eq!(verdicts[7], Verdict::Drop);
    fake::with(|node| assert_eq!(node.counter("limited"), 3));
}

#[test]
fn what_is_said_wrongly_is_said_so() {
    for server in ["", "example.com", "192.0.2.1,192.0.2.2"] {
        fake::reset(&[("server", server)]);
        assert!(SipEdge::start().is_err(), "{server}");
    }
    assert!(started(&[("stun", "yes")]).is_err() && started(&[("port", "0x1")]).is_err());
    let mut module = started(&[]).unwrap();
    for (topic, body) in [("overload", &b"rate"[..]), ("other", b"rate=1")] {
        module.control(&control::Message { topic, seq: 1, body });
    }
    fake::with(|node| assert_eq!(node.log.len(), 2));
    assert_eq!(sent(&mut module, PHONE, SERVER, invite(1).as_bytes()).0, Verdict::Pass);
}

#[test]
fn the_other_part_is_told_how_much_comes() {
    let mut module = started(&[]).unwrap();
    for cseq in 0..100 {
        sent(&mut module, PHONE, SERVER, invite(cseq).as_bytes());
    }
    fake::advance(&mut module, Duration::from_secs(1));
    let told = fake::with(|node| node.sent.clone());
    assert!(told.iter().any(|message| u32::from_le_bytes(message[..].try_into().unwrap()) > 100), "{told:?}");
    module.message(&[1, 2, 3]);
    module.message(&500_u32.to_le_bytes());
}
