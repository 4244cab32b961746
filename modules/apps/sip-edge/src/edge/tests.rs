// SPDX-License-Identifier: Apache-2.0

use super::*;
use crate::limits::{PINGS_EACH_MS, PINGS_MAX, UNHEARD_MS};
use crate::oc::Limit;

const SERVER_ANSWERS: &str = "SIP/2.0 200 OK";

fn phone() -> SocketAddr {
    "192.0.2.9:40000".parse().unwrap()
}

fn request(method: &str, uri: &str, cseq: u32, more: &str) -> String {
    format!(
        "{method} {uri} SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.5:5060;branch=z9hG4bK{cseq};rport\r\n\
         From: <sip:alice@example.com>;tag=42\r\nTo: <sip:bob@example.com>\r\nCall-ID: 1234@10.0.0.5\r\n\
         CSeq: {cseq} {method}\r\nMax-Forwards: 70\r\nContact: <sip:alice@10.0.0.5:5060>\r\n{more}Content-Length: 0\r\n\r\n"
    )
}

fn edge() -> Edge {
    Edge::new(Settings::default(), [7; 32])
}

fn decided(edge: &mut Edge, message: &str, now_ms: u64) -> (Decision, String) {
    let mut room = [0; 2000];
    let mut response = Writer::new(&mut room);
    let decision = edge.request(message.as_bytes(), (phone(), Transport::Udp), now_ms, &mut response);
    let text = String::from_utf8(response.finish().unwrap().to_vec()).unwrap();
    (decision, text)
}

fn overloaded() -> Edge {
    let mut edge = edge();
    assert!(edge.told(OVERLOAD, b"loss=100 validity-ms=60000", 0));
    edge
}

fn invite(cseq: u32) -> String {
    request("INVITE", "sip:bob@example.com", cseq, "")
}

#[test]
fn keep_alives_are_answered() {
    let mut edge = edge();
    let ping = request("OPTIONS", "sip:example.com", 1, "");
    assert_eq!(decided(&mut edge, &ping, 0).0, Decision::Answer(Kind::Options, 40000));
    let notify = request("NOTIFY", "sip:example.com", 2, "Event: keep-alive\r\n");
    let (decision, text) = decided(&mut edge, &notify, 0);
    assert_eq!(decision, Decision::Answer(Kind::Notify, 40000));
    assert!(text.starts_with(
        "SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 10.0.0.5:5060;branch=z9hG4bK2;received=192.0.2.9;rport=40000\r\n"
    ));
    for more in [
        "Authorization: Digest username=\"alice\"\r\n",
        "proxy-authorization: Digest username=\"alice\"\r\n",
        "Route: <sip:192.0.2.7;lr>, <sip:198.51.100.9;lr>\r\n",
        "route: <sip:192.0.2.7;lr>\r\n",
    ] {
        let ping = request("OPTIONS", "sip:example.com", 4, more);
        let notify = request("NOTIFY", "sip:example.com", 5, &format!("Event: keep-alive\r\n{more}"));
        assert_eq!(
            (decided(&mut edge, &ping, 0).0, decided(&mut edge, &notify, 0).0),
            (Decision::Pass, Decision::Pass)
        );
    }
    let off = Settings { options: false, notify: false, ..Settings::default() };
    let mut off = Edge::new(off, [7; 32]);
    assert_eq!((decided(&mut off, &ping, 0).0, decided(&mut off, &notify, 0).0), (Decision::Pass, Decision::Pass));
    assert_eq!(decided(&mut edge, &request("OPTIONS", "sip:bob@example.com", 3, ""), 0).0, Decision::Pass);
}

#[test]
fn damaged_pings_are_the_servers() {
    let mut edge = edge();
    let ping = request("OPTIONS", "sip:example.com", 1, "");
    let notify = request("NOTIFY", "sip:example.com", 1, "Event: keep-alive\r\n");
    for (from, to) in [("CSeq: 1 ", "CSeq: 3000000000 "), ("Max-Forwards: 70", "Max-Forwards: x"), (";tag=42", "")] {
        for message in [&ping, &notify] {
            assert_eq!(decided(&mut edge, &message.replace(from, to), 0).0, Decision::Pass, "{to}");
        }
    }
}

/// Goal: of two phones behind one NAT without `rport` each gets its own answer, as by RFC 3581; who is behind none has it at its Via's port, which
/// RFC 3261 §18.2.2 says.
#[test]
fn an_answer_goes_where_its_phone_is() {
    let port = |force_rport, via: &str| {
        let mut edge = Edge::new(Settings { force_rport, ..Settings::default() }, [7; 32]);
        let ping = request("OPTIONS", "sip:example.com", 1, "").replace("10.0.0.5:5060;branch=z9hG4bK1;rport", via);
        let (decision, text) = decided(&mut edge, &ping, 0);
        assert!(via.contains("rport") || !text.contains("rport"), "{text}");
        match decision {
            Decision::Answer(_, port) => port,
            other @ (Decision::Pass | Decision::Drop(_)) => panic!("{other:?}"),
        }
    };
    let (behind, open, named) =
        ("10.0.0.5:5060;branch=1", "192.0.2.9:5060;branch=1", "phone.example.com:5060;branch=1");
    assert_eq!([behind, open, named].map(|via| port(Forced::BehindNat, via)), [40_000, 5060, 5060]);
    assert_eq!([behind, open, named].map(|via| port(Forced::Always, via)), [40_000; 3]);
    assert_eq!([behind, open, named].map(|via| port(Forced::Never, via)), [5060; 3]);
    assert_eq!(port(Forced::Never, "10.0.0.5:5060;rport;branch=1"), 40_000);
}

/// Goal: a phone on a connection reads the same port from the edge as from the server, which sees another one than the edge.
#[test]
fn the_port_on_a_connection_is_the_one_that_the_server_says() {
    let mut edge = edge();
    let ping = request("OPTIONS", "sip:example.com", 1, "").replace("/UDP", "/TCP");
    let bare = ping.replace(";rport", "");
    let mut decided = |message: &str, rport| {
        let mut room = [0; 2000];
        let mut response = Writer::new(&mut room);
        let decision = edge.request(message.as_bytes(), (phone(), Transport::Tcp(rport)), 0, &mut response);
        (decision != Decision::Pass).then(|| String::from_utf8(response.finish().unwrap().to_vec()).unwrap())
    };
    assert!(decided(&ping, Rport::Unknown).unwrap().contains(";received=192.0.2.9;rport\r\n"));
    assert!(!decided(&bare, Rport::Unknown).unwrap().contains("rport"));
    let said =
        rport_said(b"SIP/2.0 200 OK\r\nVia: SIP/2.0/TCP 10.0.0.5;rport=51234;branch=1, SIP/2.0/TCP x;rport=1\r\n\r\n");
    assert_eq!(said, Some(Rport::Port(51_234)));
    assert!(decided(&ping, said.unwrap()).unwrap().contains(";received=192.0.2.9;rport=51234\r\n"));
    let said = rport_said(b"SIP/2.0 200 OK\r\nVia: SIP/2.0/TCP 10.0.0.5;rport;branch=1\r\n\r\n");
    assert_eq!(said, Some(Rport::Bare));
    assert!(decided(&ping, Rport::Bare).unwrap().contains(";received=192.0.2.9;rport\r\n"));
    // A phone takes where it is from the answer to its REGISTER.
    let mut edge = self::edge();
    let register = |cseq| {
        request("REGISTER", "sip:example.com", cseq, "Expires: 60\r\nUser-Agent: phone\r\n").replace("/UDP", "/TCP")
    };
    let decided = |edge: &mut Edge, cseq, rport| {
        let mut room = [0; 2000];
        let mut response = Writer::new(&mut room);
        edge.request(register(cseq).as_bytes(), (phone(), Transport::Tcp(rport)), 0, &mut response)
    };
    assert_eq!(decided(&mut edge, 1, Rport::Unknown), Decision::Pass);
    edge.response(register(1).replace("REGISTER sip:example.com SIP/2.0", SERVER_ANSWERS).as_bytes(), phone(), 0);
    assert!(matches!(decided(&mut edge, 2, Rport::Port(51_234)), Decision::Answer(Kind::Register, _)));
    assert_eq!(decided(&mut edge, 3, Rport::Unknown), Decision::Pass, "the server says it first");
    for none in
        [&b"SIP/2.0 200 OK\r\nVia: SIP/2.0/TCP 10.0.0.5;branch=1\r\n\r\n"[..], ping.as_bytes(), b"", b"SIP/2.0 "]
    {
        assert_eq!(rport_said(none), None);
    }
}

#[test]
fn what_the_server_is_to_hear_goes_on_however_much_it_has_to_do() {
    let mut edge = edge();
    let heard = |edge: &mut Edge, message: &str, now_ms: u64| {
        let mut room = [0; 2000];
        let mut response = Writer::new(&mut room);
        edge.request_to_be_heard(message.as_bytes(), (phone(), Transport::Udp), now_ms, &mut response)
    };
    let register = |cseq| {
        request("REGISTER", "sip:example.com", cseq, "Expires: 60\r\nUser-Agent: phone 1.0\r\n")
            .replace("sip:bob", "sip:alice")
    };
    let confirm = |edge: &mut Edge, cseq, now_ms| {
        let ok = register(cseq).replace("REGISTER sip:example.com SIP/2.0", SERVER_ANSWERS);
        edge.response(ok.as_bytes(), phone(), now_ms);
    };
    assert_eq!(decided(&mut edge, &register(1), 0).0, Decision::Pass);
    confirm(&mut edge, 1, 0);
    assert!(edge.told(OVERLOAD, b"loss=100 validity-ms=60000", 0));
    assert_eq!(decided(&mut edge, &register(2), 1000).0, Decision::Answer(Kind::Register, 40000));
    let ping = request("OPTIONS", "sip:example.com", 7, "");
    let notify = request("NOTIFY", "sip:example.com", 8, "Event: keep-alive\r\n");
    for message in [&ping, &notify, &register(3)] {
        assert_eq!(heard(&mut edge, message, 20_000), Decision::Pass, "{message}");
    }
    // As long as the server says nothing, what it confirmed counts; then what it says.
    assert_eq!(decided(&mut edge, &register(4), 20_000).0, Decision::Answer(Kind::Register, 40000));
    confirm(&mut edge, 3, 20_000);
    let (decision, text) = decided(&mut edge, &register(5), 40_000);
    assert_eq!(decision, Decision::Answer(Kind::Register, 40000));
    assert!(text.contains(";expires=40\r\n"), "{text}");
    assert_eq!(
        heard(&mut edge, &invite(9), 40_000),
        Decision::Answer(Kind::Rejected, 40000),
        "calls are no keep-alives"
    );
}

/// Goal: of two edges in a row, the one at the phones takes only the server's word for a registration, not that of the other one, which may
/// hear later that the server has lost it.
#[test]
fn what_another_edge_confirms_is_not_the_servers_word() {
    let (mut near, mut far) = (edge(), edge());
    let register = |cseq| {
        request("REGISTER", "sip:example.com", cseq, "Expires: 60\r\nUser-Agent: phone 1.0\r\n")
            .replace("sip:bob", "sip:alice")
    };
    let confirm = |near: &mut Edge, far: &mut Edge, cseq| {
        for edge in [near, far] {
            assert_eq!(decided(edge, &register(cseq), 0).0, Decision::Pass);
            let ok = register(cseq).replace("REGISTER sip:example.com SIP/2.0", SERVER_ANSWERS);
            edge.response(ok.as_bytes(), phone(), 0);
        }
    };
    confirm(&mut near, &mut far, 1);
    assert!(near.told(SERVER, b"restarted", 1000));
    for cseq in 2..4 {
        assert_eq!(decided(&mut near, &register(cseq), 1000).0, Decision::Pass);
        let (decision, answer) = decided(&mut far, &register(cseq), 1000);
        assert_eq!(decision, Decision::Answer(Kind::Register, 40000));
        near.response(answer.as_bytes(), phone(), 1000);
    }
    assert!(far.told(SERVER, b"restarted", 2000));
    confirm(&mut near, &mut far, 4);
    assert_eq!(decided(&mut near, &register(5), 3000).0, Decision::Answer(Kind::Register, 40000));
}

#[test]
fn a_registration_that_goes_on_is_confirmed_here() {
    let mut edge = edge();
    let register = |cseq, more: &str| {
        request("REGISTER", "sip:example.com", cseq, &format!("Expires: 60\r\nUser-Agent: phone 1.0\r\n{more}"))
            .replace("sip:bob", "sip:alice")
    };
    assert_eq!(decided(&mut edge, &register(1, ""), 0).0, Decision::Pass);
    let ok = register(1, "").replace("REGISTER sip:example.com SIP/2.0", SERVER_ANSWERS);
    edge.response(ok.as_bytes(), phone(), 0);
    let (decision, text) = decided(&mut edge, &register(2, ""), 20_000);
    assert_eq!(decision, Decision::Answer(Kind::Register, 40000));
    assert!(text.contains("\r\nCSeq: 2 REGISTER\r\nContact: <sip:alice@10.0.0.5:5060>;expires=40\r\n"), "{text}");
    assert_eq!(decided(&mut edge, &register(3, "Authorization: Digest a=b\r\n"), 20_000).0, Decision::Pass);
    // That one ended what was known: the next is the server's, too.
    assert_eq!(decided(&mut edge, &register(4, ""), 20_000).0, Decision::Pass);
}

#[test]
fn what_is_too_much_is_rejected_alike_each_time_and_its_ack_with_it() {
    let mut edge = overloaded();
    let (decision, text) = decided(&mut edge, &invite(1), 10);
    assert_eq!(decision, Decision::Answer(Kind::Rejected, 40000));
    assert!(text.starts_with("SIP/2.0 503 Service Unavailable\r\n") && !text.contains("Retry-After"), "{text}");
    let (again, same) = decided(&mut edge, &invite(1), 600);
    assert_eq!((again, &same), (decision, &text), "the same tag");

    let tag = text.split("To: <sip:bob@example.com>;tag=").nth(1).unwrap().split("\r\n").next().unwrap();
    let ack = |tag: &str, cseq| {
        let plain = request("ACK", "sip:bob@example.com", cseq, "");
        plain.replace("To: <sip:bob@example.com>", &format!("To: <sip:bob@example.com>;tag={tag}"))
    };
    assert_eq!(decided(&mut edge, &ack(tag, 1), 700).0, Decision::Drop(Kind::Ack));
    assert_eq!(decided(&mut edge, &ack(tag, 2), 700).0, Decision::Pass, "of another request");
    assert_eq!(decided(&mut edge, &ack("0123456789abcdef", 1), 700).0, Decision::Pass, "to the server's answer");
    // Whoever has another secret has other tags.
    let mut other = Edge::new(Settings { retry_after_s: 5, ..Settings::default() }, [8; 32]);
    other.told(OVERLOAD, b"loss=100", 0);
    let (_, text) = decided(&mut other, &invite(1), 10);
    assert!(!text.contains(tag) && text.contains("\r\nRetry-After: 5\r\n"), "{text}");
}

#[test]
fn what_the_server_needs_to_go_on_is_never_rejected() {
    let mut edge = overloaded();
    let in_dialog = |text: String| text.replace("To: <sip:bob@example.com>", "To: <sip:bob@example.com>;tag=9");
    for text in [
        in_dialog(invite(1)),
        in_dialog(request("BYE", "sip:bob@example.com", 2, "")),
        request("ACK", "sip:bob@example.com", 3, ""),
        request("CANCEL", "sip:bob@example.com", 4, ""),
        request("PRACK", "sip:bob@example.com", 5, ""),
        request("INVITE", "urn:service:sos", 6, ""),
        request("INVITE", "URN:service:SOS.fire", 7, ""),
        invite(8).replace("To: <sip:bob@example.com>", "To: <urn:service:sos.police>"),
    ] {
        assert_eq!(decided(&mut edge, &text, 10).0, Decision::Pass, "{text}");
    }
    for text in [
        request("INVITE", "urn:service:sosnot", 9, ""),
        request("INVITE", "sip:urn:service:sos@x", 10, ""),
        request("MESSAGE", "sip:bob@example.com", 11, ""),
        request("REGISTER", "sip:example.com", 12, "Expires: 60\r\n"),
        request("SUBSCRIBE", "sip:bob@example.com", 13, ""),
    ] {
        assert_eq!(decided(&mut edge, &text, 10).0, Decision::Answer(Kind::Rejected, 40000), "{text}");
    }
    let mut off = Edge::new(Settings { overload: false, ..Settings::default() }, [7; 32]);
    off.told(OVERLOAD, b"loss=100", 0);
    assert_eq!(decided(&mut off, &invite(1), 10).0, Decision::Pass);
}

#[test]
fn the_server_says_it_in_its_vias_if_the_edge_asked() {
    let mut edge = Edge::new(Settings { oc: true, ..Settings::default() }, [7; 32]);
    let response = |cseq: u32, oc: &str| {
        format!(
            "SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP a;branch=1;{oc}, SIP/2.0/UDP b;oc=100;oc-algo=\"loss\";oc-edge=x\r\nTo: x\r\n\
             Call-ID:  1234@10.0.0.5\r\nCSeq: {cseq}  INVITE\r\n\r\n"
        )
    };
    let udp = (phone(), Transport::Udp);
    let rejects = |edge: &mut Edge, cseq, now| decided(edge, &invite(cseq), now).0 != Decision::Pass;
    let asked = |edge: &mut Edge, cseq: u32, now_ms| {
        let asking = String::from_utf8(edge.asking(invite(cseq).as_bytes(), udp, now_ms).unwrap()).unwrap();
        let begin = format!(";branch=z9hG4bK{cseq};rport;oc;oc-algo=\"loss,rate\";oc-edge=");
        let (_, mark) = asking.split_once(&begin).unwrap();
        mark.split_once("\r\n").unwrap().0.to_owned()
    };
    let mark = asked(&mut edge, 4, 0);
    edge.response(response(4, "oc=100;oc-algo=\"loss\"").as_bytes(), phone(), 0);
    assert!(!rejects(&mut edge, 1, 10), "to one that asked by itself");
    let all = |mark: &str| format!("oc=100;oc-algo=\"loss\";oc-validity=1000;oc-seq=1.1;oc-edge={mark}");
    // What is read of one request counts neither for another one, nor for another client.
    edge.response(response(5, &all(&mark)).as_bytes(), phone(), 0);
    let other = response(4, &all(&mark)).replace("1234@", "1235@");
    edge.response(other.as_bytes(), phone(), 0);
    edge.response(response(4, &all(&mark)).as_bytes(), "192.0.2.10:40000".parse().unwrap(), 0);
    for wrong in [&mark[2..], "", "é", &format!("{mark}00"), &mark.replace(|digit: char| digit.is_ascii_digit(), "a")]
    {
        edge.response(response(4, &all(wrong)).as_bytes(), phone(), 0);
    }
    assert!(!rejects(&mut edge, 2, 10));
    // It goes to another port of the client's if there is no `rport`.
    edge.response(response(4, &all(&mark)).as_bytes(), SocketAddr::new(phone().ip(), 5060), 0);
    assert!(rejects(&mut edge, 3, 10) && !rejects(&mut edge, 6, 1001));
    // Its client can read it there, and send the same with it again. What the edge asks then has another mark.
    edge.response(response(4, &all(&mark)).as_bytes(), phone(), 2000);
    let again = asked(&mut edge, 4, 2000);
    assert_ne!(again, mark);
    edge.response(response(4, &all(&mark)).as_bytes(), phone(), 2000);
    assert!(!rejects(&mut edge, 7, 2010));
    // An answer that says nothing shows it, too.
    edge.response(response(4, &format!("oc;oc-algo=\"loss,rate\";oc-edge={again}")).as_bytes(), phone(), 2000);
    edge.response(response(4, &all(&again)).as_bytes(), phone(), 2000);
    assert!(!rejects(&mut edge, 8, 2010));
    assert_eq!(edge.asking(response(4, "x").as_bytes(), udp, 0), None);
    let mut plain = self::edge();
    plain.response(response(4, &all(&mark)).as_bytes(), phone(), 3000);
    assert!(!rejects(&mut plain, 5, 3010));
    assert_eq!(plain.asking(invite(6).as_bytes(), udp, 0), None);
    // Connections have room, datagrams have none.
    let long = invite(7).replace("Max-Forwards", &format!("Subject: {}\r\nMax-Forwards", "x".repeat(1200)));
    let asks = [Transport::Udp, Transport::Tcp(Rport::Unknown)]
        .map(|one| edge.asking(long.as_bytes(), (phone(), one), 0).is_some());
    assert_eq!(asks, [false, true]);
}

/// Goal: who is called, a registrar elsewhere, or a client that is both ends of a call have the edge reject nothing of others, and get
/// nothing more through themselves than the server lets them.
#[test]
fn what_others_write_in_the_servers_place_counts_for_their_caller_and_against_it() {
    let udp = (phone(), Transport::Udp);
    let other: SocketAddr = "192.0.2.200:5060".parse().unwrap();
    let all = "oc=100;oc-algo=loss;oc-validity=60000";
    let mark = |edge: &mut Edge, text: &str| {
        let asking = String::from_utf8(edge.asking(text.as_bytes(), udp, 0).unwrap()).unwrap();
        asking.split("oc-edge=").nth(1).unwrap()[..32].to_owned()
    };
    let says = |edge: &mut Edge, status: &str, cseq: &str, oc: &str, mark: &str| {
        let message = format!(
            "SIP/2.0 {status}\r\nVia: SIP/2.0/UDP a;{oc};oc-edge={mark}\r\nCall-ID: 1234@10.0.0.5\r\nCSeq: {cseq}\r\n\r\n"
        );
        edge.response(message.as_bytes(), phone(), 10);
    };
    let rejects = |edge: &mut Edge, from: SocketAddr, call: &str| {
        let mut room = [0; 2000];
        let mut response = Writer::new(&mut room);
        let text = invite(77).replace("1234@10", call);
        edge.request(text.as_bytes(), (from, Transport::Udp), 20, &mut response) != Decision::Pass
    };
    let asks = || Edge::new(Settings { oc: true, ..Settings::default() }, [7; 32]);
    for (method, status) in [("REGISTER", "200 OK"), ("MESSAGE", "100 Trying"), ("INVITE", "486 Busy Here")] {
        let mut edge = asks();
        let mark = mark(&mut edge, &request(method, "sip:mallory@example.com", 1, ""));
        says(&mut edge, status, &format!("1 {method}"), all, &mark);
        assert!(!rejects(&mut edge, other, "other") && rejects(&mut edge, phone(), "own"), "{method}");
    }
    let mut edge = asks();
    let marks = [1, 2].map(|cseq| mark(&mut edge, &request("INVITE", "sip:mallory@example.com", cseq, "")));
    says(&mut edge, "200 OK", "1 INVITE", "oc=0;oc-algo=loss;oc-validity=60000;oc-seq=999999999999.9", &marks[0]);
    says(&mut edge, "100 Trying", "2 INVITE", &format!("{all};oc-seq=1.1"), &marks[1]);
    assert!(rejects(&mut edge, other, "other") && rejects(&mut edge, phone(), "own"), "the server itself said so");
    let third = mark(&mut edge, &request("INVITE", "sip:mallory@example.com", 3, ""));
    says(&mut edge, "200 OK", "3 INVITE", "oc=0;oc-algo=loss;oc-validity=60000;oc-seq=999999999999.9", &third);
    assert!(rejects(&mut edge, phone(), "later"));
    // To one to whom the server says nothing itself, what it said to others applies all the same.
    let mut edge = asks();
    let fourth = mark(&mut edge, &request("MESSAGE", "sip:mallory@example.com", 4, ""));
    says(&mut edge, "200 OK", "4 MESSAGE", "oc=0;oc-algo=loss;oc-validity=60000", &fourth);
    let said = Said { limit: Some(Limit::Loss(1.0)), validity_ms: 60_000, sequence: None, is_servers_own: true };
    edge.control.said(other.ip(), &said, 10);
    assert!(rejects(&mut edge, phone(), "own"));
}

#[test]
fn questions_of_two_clients_differ() {
    let asked = |number: u32, method: &str, client: &str| {
        let text = format!("X a SIP/2.0\r\nCall-ID: c\r\nCSeq: {number} {method}\r\n\r\n");
        question(&Head::parse(text.as_bytes()).unwrap(), client.parse().unwrap())
    };
    assert_ne!(asked(0x3041_4243, "FMESSAGE", "192.0.2.1"), asked(0x4142_4346, "MESSAGE", "192.0.2.10"));
}

#[test]
fn answers_are_no_longer_than_requests_and_bounded_for_each_address() {
    let mut edge = overloaded();
    let short = "INVITE sip:b SIP/2.0\r\nv:SIP/2.0/UDP a;rport\r\nf:a\r\nt:b\r\ni:c\r\nCSeq:1 INVITE\r\n\r\n";
    assert_eq!(decided(&mut edge, short, 10).0, Decision::Drop(Kind::Rejected));
    let ping = short.replace("INVITE", "OPTIONS");
    assert_eq!(decided(&mut edge, &ping, 10).0, Decision::Pass);
    let few = Settings { answers_per_second: 3, ..Settings::default() };
    let mut edge = Edge::new(few, [7; 32]);
    let [v4, v6]: [IpAddr; 2] = ["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
    for to in [v4, v6] {
        let given = (0..10).filter(|_| edge.may_answer(to, 500)).count();
        assert_eq!(given, 3);
        assert!(edge.may_answer(to, 1000));
    }
    assert!(
        !(0..9).all(|number| edge.may_answer(IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, number]), 1000)),
        "a network"
    );
}

/// Goal: of all messages of RFC 4475, the edge answers none in the server's place while all goes on, and while too much comes it rejects
/// requests alone that a server could be asked again, with no more than they are long. Damaged in each byte, they make nothing fail.
#[test]
fn torture_and_damage_are_decided() {
    let mut rejected = Vec::new();
    for (name, message) in torture() {
        let decide = |edge: &mut Edge, message: &[u8]| {
            let mut room = [0; 8192];
            let mut response = Writer::new(&mut room);
            let decision = edge.request(message, (phone(), Transport::Udp), 10, &mut response);
            let length = response.finish().map_or(0, <[u8]>::len);
            assert!(!matches!(decision, Decision::Answer(..)) || length <= message.len(), "{name}: {length}");
            decision
        };
        assert_eq!(decide(&mut edge(), &message), Decision::Pass, "{name}");
        let mut edge = overloaded();
        if decide(&mut edge, &message) != Decision::Pass {
            rejected.push(name.clone());
        }
        edge.response(&message, phone(), 10);
        let mut damaged = message.clone();
        for at in (0..message.len()).step_by(message.len().div_ceil(150)) {
            decide(&mut edge, &message[..at]);
            for byte in *b"\0\r\n :;,<\"\\[" {
                damaged[at] = byte;
                decide(&mut edge, &damaged);
                edge.response(&damaged, phone(), 10);
                edge.response(&[b"SIP/2.0 200 ", &damaged[..]].concat(), phone(), 10);
            }
            damaged[at] = message[at];
        }
    }
    let kept = [
        // In a dialog, as its To has a tag.
        "wsinv",
        // Responses.
        "bcast",
        "bigcode",
        "noreason",
        "scalarlg",
        "unreason",
        // Nothing that could be answered as it is: the server says what is wrong, or nothing.
        "badvers",
        "insuf",
        "lwsruri",
        "lwsstart",
        "mismatch01",
        "mismatch02",
        "multi01",
        "trws",
    ];
    let others: Vec<String> =
        torture().into_iter().map(|(name, _)| name).filter(|name| !kept.contains(&&name[..])).collect();
    assert_eq!(rejected, others);
}

/// Returns the messages of vectors/torture, by name.
fn torture() -> Vec<(String, Vec<u8>)> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../vectors/torture");
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    let messages = files.filter(|file| file.extension().is_some_and(|end| end == "sip"));
    let name = |file: &std::path::Path| file.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut all: Vec<_> = messages.map(|file| (name(&file), std::fs::read(&file).unwrap())).collect();
    all.sort();
    assert_eq!(all.len(), 49, "RFC 4475 has so many");
    all
}

/// Goal: a phone that takes another Call-ID for each REGISTER, as some do (Kamailio 280), is the server's each time: nothing of its earlier ones is
/// confirmed.
#[test]
fn a_register_with_another_call_id_is_the_servers() {
    let mut edge = edge();
    let register = |number: u32, cseq| {
        request("REGISTER", "sip:example.com", cseq, "Expires: 600\r\nUser-Agent: a phone\r\n")
            .replace("Call-ID: 1234", &format!("Call-ID: {number}"))
    };
    let mut passes = |number, cseq, is_answered: bool| {
        let message = register(number, cseq);
        let passes = decided(&mut edge, &message, 0).0 == Decision::Pass;
        if passes && is_answered {
            let (_, rest) = message.split_once("\r\n").unwrap();
            edge.response(format!("{SERVER_ANSWERS}\r\n{rest}").as_bytes(), phone(), 0);
        }
        passes
    };
    for number in 1..5 {
        assert!(passes(number, 1, true), "a new Call-ID");
        assert!(!passes(number, 2, true), "its refresh");
    }
    assert!(passes(1, 3, true), "an earlier one");
}

/// Goal: nothing is answered for a server that answers nothing itself, and no ping for one that says by 503 that it does not serve: load
/// balancers and trunks go elsewhere by that. It is answered for again as soon as it serves. A callee's 503 says nothing of it.
#[test]
fn nothing_is_answered_for_a_server_that_does_not_serve() {
    const SILENCE_MS: u64 = 45_000;
    let ping = |cseq| request("OPTIONS", "sip:example.com", cseq, "");
    let notify = request("NOTIFY", "sip:example.com", 1, "Event: keep-alive\r\n");
    let register = |cseq| request("REGISTER", "sip:example.com", cseq, "Expires: 600\r\nUser-Agent: a phone\r\n");
    let says = |edge: &mut Edge, message: &str, status: &str, now_ms| {
        let (_, rest) = message.split_once("\r\n").unwrap();
        edge.response(format!("SIP/2.0 {status}\r\n{rest}").as_bytes(), phone(), now_ms);
    };
    let is_answered =
        |edge: &mut Edge, message: &str, now_ms| matches!(decided(edge, message, now_ms).0, Decision::Answer(..));

    let mut edge = edge();
    assert!(!is_answered(&mut edge, &register(1), 0));
    says(&mut edge, &register(1), "200 OK", 0);
    assert!(is_answered(&mut edge, &ping(1), 0) && is_answered(&mut edge, &notify, 0) && edge.is_heard(0));
    assert!(is_answered(&mut edge, &register(2), SILENCE_MS - 1) && is_answered(&mut edge, &ping(2), SILENCE_MS - 1));
    // It is silent, and asked by one keep-alive of a second.
    let at = SILENCE_MS;
    assert!(!is_answered(&mut edge, &ping(3), at) && !is_answered(&mut edge, &notify, at));
    assert!(
        is_answered(&mut edge, &ping(4), at + 1) && is_answered(&mut edge, &notify, at + 1) && edge.is_heard(at + 1)
    );
    let at = at + UNHEARD_MS;
    for _ in 0..2 {
        assert!(!is_answered(&mut edge, &ping(5), at) && !is_answered(&mut edge, &notify, at) && !edge.is_heard(at));
    }
    assert!(!is_answered(&mut edge, &register(3), at));
    // It is heard, by whatever it answers; an answer to a ping says that pings are answered.
    says(&mut edge, &request("INVITE", "sip:bob@example.com", 4, ""), "100 Trying", at + 1);
    assert!(is_answered(&mut edge, &notify, at + 1) && edge.is_heard(at + 1));
    assert!(!is_answered(&mut edge, &ping(6), at + 1));
    assert!(is_answered(&mut edge, &register(4), at + 1), "the earlier confirmation stays");
    says(&mut edge, &ping(3), "200 OK", at + 9000);
    assert!(is_answered(&mut edge, &ping(6), at + 9000));
    // It is drained.
    let at = at + 9000 + SILENCE_MS;
    assert!(!is_answered(&mut edge, &ping(7), at));
    says(&mut edge, &ping(7), "503 Service Unavailable", at);
    assert!(!is_answered(&mut edge, &ping(8), at) && !is_answered(&mut edge, &ping(9), at + 2000));
    assert!(is_answered(&mut edge, &notify, at + 2000));
    says(&mut edge, &ping(9), "200 OK", at + 2000);
    assert!(is_answered(&mut edge, &ping(10), at + 2000));
    says(&mut edge, &request("OPTIONS", "sip:bob@example.com", 11, ""), "503 Service Unavailable", at + 2000);
    assert!(is_answered(&mut edge, &ping(12), at + 2000), "a callee's word");
    // It answers STUN alone.
    let at = at + 2000 + SILENCE_MS + UNHEARD_MS;
    assert!(!edge.is_heard(at));
    edge.response(&[1, 1, 0, 0], phone(), at);
    assert!(edge.is_heard(at));

    // A server that is not asked.
    let settings = Settings { server_silence_s: 0, ..Settings::default() };
    let mut edge = Edge::new(settings, [7; 32]);
    assert!(is_answered(&mut edge, &ping(1), 0) && is_answered(&mut edge, &ping(2), 100 * SILENCE_MS));
}

/// Goal: a slow server's answer to a ping counts, and pings that it never answers take no more room than is bounded.
#[test]
fn pings_max_pings_are_waited_for() {
    let ping = |cseq: usize| request("OPTIONS", "sip:example.com", u32::try_from(cseq).unwrap(), "");
    let mut edge = edge();
    assert_ne!(decided(&mut edge, &ping(0), 0).0, Decision::Pass);
    for number in 1..=2 * PINGS_MAX {
        let now_ms = 50_000 + number as u64 * PINGS_EACH_MS;
        assert_eq!(decided(&mut edge, &ping(number), now_ms).0, Decision::Pass);
    }
    let now_ms = 50_000 + 2 * PINGS_MAX as u64 * PINGS_EACH_MS;
    let answers = |edge: &mut Edge, number| {
        let (_, rest) =
            ping(number).split_once("\r\n").map(|(first, rest)| (first.to_owned(), rest.to_owned())).unwrap();
        edge.response(format!("SIP/2.0 200 OK\r\n{rest}").as_bytes(), phone(), now_ms);
        matches!(decided(edge, &ping(1000), now_ms).0, Decision::Answer(..))
    };
    assert!(!answers(&mut edge, PINGS_MAX));
    assert!(answers(&mut edge, PINGS_MAX + 1));
}
