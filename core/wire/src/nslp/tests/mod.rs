// SPDX-License-Identifier: Apache-2.0
//! Golden texts, texts that must be refused, bounds, and round trips.

mod limits;
mod refused;
mod round_trip;

use std::net::IpAddr;
use std::time::Duration;

use netserv_model::limits::STACK_ENTRIES_MAX;
use netserv_model::notify::{Notify, NotifyEvent};
use netserv_model::request::{Ask, Body, Hop, HopProof, Outcome, PathEnd, Remove, Request, Setup, StateSource};
use netserv_model::target::{Scope, Target};
use netserv_model::{Digest, NodeId, Refusal, RefusalKind, SessionId};

use super::*;

const SETUP: &str = include_str!("../../../../../vectors/nslp/setup.txt");
const SETUP_CANONICAL: &str = include_str!("../../../../../vectors/nslp/setup.canonical.txt");
const SETUP_PAPER: &str = include_str!("../../../../../vectors/nslp/setup-paper.txt");
const REMOVE: &str = include_str!("../../../../../vectors/nslp/remove.txt");
const TELL: &str = include_str!("../../../../../vectors/nslp/tell.txt");
const EXPORT: &str = include_str!("../../../../../vectors/nslp/export.txt");
const NOTIFY_MESSAGE: &str = include_str!("../../../../../vectors/nslp/notify-message.txt");
const PROBE: &str = include_str!("../../../../../vectors/nslp/probe.txt");
const RESPONSE: &str = include_str!("../../../../../vectors/nslp/response.txt");
const NOTIFY: &str = include_str!("../../../../../vectors/nslp/notify.txt");
const TEAR: &str = include_str!("../../../../../vectors/nslp/tear.txt");
const HOP: &str = include_str!("../../../../../vectors/nslp/hop.txt");
const PROBE_EDGE: &str = include_str!("../../../../../vectors/nslp/probe-edge.txt");
/// One of each kind of text.
const TEXTS: [&str; 12] =
    [SETUP, SETUP_PAPER, REMOVE, TELL, EXPORT, PROBE, PROBE_EDGE, RESPONSE, NOTIFY, NOTIFY_MESSAGE, TEAR, HOP];

#[test]
fn a_setup_says_all_that_a_module_needs() {
    let message = Message::parse(SETUP.as_bytes()).unwrap();
    assert_eq!(message.as_str(), SETUP);
    assert_eq!(message.canonical(), SETUP_CANONICAL);
    assert_eq!(message.unknown(), [("x-campaign".to_owned(), "Spring sale".to_owned())]);
    let request = message.request(SessionId([7; 16]));
    assert_eq!(request.session, SessionId([7; 16]));
    assert_eq!(request.user.as_ref().unwrap().as_str(), "janedoe");
    assert_eq!(request.created.to_string(), "2026-11-21T02:00:00Z");
    assert_eq!(request.nonce.to_string(), "6f1c0000000000000000000000000001");
    assert_eq!(request.signed_bytes, SETUP_CANONICAL.as_bytes());
    assert_eq!(request.signature.unwrap().0, [0xab; 64]);
    assert!(!request.dry_run);
    let setup = setup(request);
    assert_eq!(setup.module.to_string(), "example.org/net-monitor@1.2.0");
    assert_eq!(setup.url, "https://cp.example/modules/net-monitor.nsm");
    assert_eq!(setup.digest.0, [0x9f; 32]);
    let filters: Vec<String> = setup.filters.iter().map(ToString::to_string).collect();
    assert_eq!(filters, ["udp dst 10.2.0.0/24 port 5060", "tcp port 80-90"]);
    let properties: Vec<(&str, &str)> = setup.properties.iter().map(|(k, v)| (&k[..], &v[..])).collect();
    assert_eq!(properties, [("note", "a,b%c\nd"), ("sample", "100"), ("visualizer", "10.1.0.1:5678")]);
    let dependencies: Vec<String> = setup.dependencies.iter().map(ToString::to_string).collect();
    assert_eq!(dependencies, ["kv>=1", "packet>=1"]);
    assert_eq!(setup.ttl, Duration::from_secs(3600));
}

#[test]
fn the_papers_short_filter_is_understood() {
    let request = Message::parse(SETUP_PAPER.as_bytes()).unwrap().request(SessionId([0; 16]));
    assert!(request.dry_run);
    assert_eq!(request.signature, None);
    assert_eq!(setup(request).filters, ["udp port 5060".parse().unwrap()]);
}

#[test]
fn removes_and_probes_are_understood() {
    let message = Message::parse(REMOVE.as_bytes()).unwrap();
    let Body::Remove(remove) = message.body().clone() else { panic!() };
    assert_eq!((remove.module.as_str(), remove.force), ("example.org/net-monitor", false));
    let builder = RequestBuilder::remove(&remove.module).force().user(message.user().unwrap());
    let written = builder.build(message.created(), message.nonce()).unwrap().into_message();
    assert_eq!(written.body(), &Body::Remove(Remove { force: true, ..remove }));
    let message = Message::parse(PROBE.as_bytes()).unwrap();
    let Body::Probe(probe) = message.body() else { panic!() };
    assert_eq!(probe.ask, [Ask::Nodes, Ask::Modules, Ask::Blocks, Ask::Load, Ask::Policy]);
    assert_eq!(message.user(), None);
}

#[test]
fn a_tell_is_read_and_written() {
    let message = Message::parse(TELL.as_bytes()).unwrap();
    let Body::Tell(tell) = message.body() else { panic!() };
    assert_eq!((tell.module.as_str(), tell.message.topic.as_str()), ("example.org/net-monitor", "limit"));
    assert_eq!((tell.message.seq, &tell.message.body[..]), (u64::MAX, &b"rate=100\n\x00\xff"[..]));
    let target = Target { nodes: vec!["r2".parse().unwrap()], ..Target::default() };
    let builder = RequestBuilder::tell(&tell.module, &tell.message).user(message.user().unwrap()).target(&target);
    let written = builder.build(message.created(), message.nonce()).unwrap().into_message();
    let Body::Tell(again) = written.body() else { panic!() };
    assert_eq!((again, written.target()), (tell, message.target()));
}

#[test]
fn an_export_is_read_and_written() {
    let message = Message::parse(EXPORT.as_bytes()).unwrap();
    let Body::Export(export) = message.body() else { panic!() };
    assert_eq!(export.module.as_str(), "example.org/net-monitor");
    assert_eq!(export.url, "https://repository.example/states/net-monitor");
    let builder = RequestBuilder::export(&export.module, &export.url).user(message.user().unwrap());
    let written = builder.target(message.target()).build(message.created(), message.nonce()).unwrap().into_message();
    assert_eq!((written.body(), &export.freeze), (message.body(), &None));
    let frozen = RequestBuilder::export(&export.module, &export.url).freeze(60).user(message.user().unwrap());
    let frozen = frozen.build(message.created(), message.nonce()).unwrap().into_message();
    let Body::Export(export) = frozen.body() else { panic!() };
    assert_eq!(export.freeze, Some(Duration::from_secs(60)));
    for wrong in ["0", "61", "-1", "1.5", "x", ""] {
        let text = EXPORT.replace("url:", &format!("freeze: {wrong}\nurl:"));
        let refused = Message::parse(text.as_bytes()).unwrap_err();
        assert!(refused.to_string().contains("`freeze` is not a whole number of seconds from 1 to 60"), "{refused}");
    }
}

#[test]
fn a_setup_says_which_owner_the_node_is_and_with_which_state() {
    let with = |headers: &str| Message::parse(SETUP.replace("ttl:", &format!("{headers}ttl:")).as_bytes());
    let digest = "0a".repeat(32);
    let message = with(&format!("epoch: 7\nstate: https://r.example/s\nstate-digest: sha256:{digest}\n")).unwrap();
    let asked = setup(message.request(SessionId([0; 16])));
    let state = StateSource { url: "https://r.example/s".to_owned(), digest: Digest([10; 32]) };
    assert_eq!((asked.epoch, asked.state), (7, Some(state)));
    assert_eq!(setup(with("").unwrap().request(SessionId([0; 16]))).epoch, 0);
    let remove = REMOVE.replace("user:", "epoch: 18446744073709551615\nuser:");
    let message = Message::parse(remove.as_bytes()).unwrap();
    assert!(matches!(message.body(), Body::Remove(remove) if remove.epoch == Some(u64::MAX)));
    for (headers, why) in [
        ("epoch: 0\n".to_owned(), "`epoch` is a whole number from 1 on"),
        ("epoch: -1\n".to_owned(), "`epoch` is not a whole number from 1 on"),
        ("epoch: 18446744073709551616\n".to_owned(), "`epoch` is not"),
        ("epoch: 1\nepoch: 1\n".to_owned(), "`epoch` is there twice"),
        ("epoch: 1\nstate: https://r/s\n".to_owned(), "`state` and `state-digest` need each other"),
        (format!("epoch: 1\nstate-digest: sha256:{digest}\n"), "`state` and `state-digest` need each other"),
        (format!("state: https://r/s\nstate-digest: sha256:{digest}\n"), "`state` needs `epoch`"),
        (format!("epoch: 1\nstate: a b\nstate-digest: sha256:{digest}\n"), "`state` is empty or has a space"),
        ("epoch: 1\nstate: x\nstate-digest: sha256:0\n".to_owned(), "`state-digest`"),
    ] {
        let refusal = with(&headers).unwrap_err();
        assert!(refusal.detail.contains(why), "{refusal}");
    }
    let refusal = Message::parse(TELL.replace("topic:", "epoch: 1\ntopic:").as_bytes()).unwrap_err();
    assert!(refusal.detail.contains("`epoch` means nothing in a TELL"), "{refusal}");
}

#[test]
fn a_setup_names_floating_addresses_for_one_node() {
    let with = |headers: &str| Message::parse(SETUP.replace("ttl:", &format!("{headers}ttl:")).as_bytes());
    let message = with("epoch: 7\nfloating: 192.0.2.9, 2001:db8::9\nnode-id: r2\n").unwrap();
    let floating = setup(message.request(SessionId([0; 16]))).floating;
    assert_eq!(floating, ["192.0.2.9", "2001:db8::9"].map(|text| text.parse::<IpAddr>().unwrap()));
    let five = "10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4, 10.0.0.5";
    for (headers, why) in [
        ("floating: 192.0.2.9\nnode-id: r2\n".to_owned(), "`floating` needs `epoch`"),
        ("epoch: 1\nfloating: 192.0.2.9\n".to_owned(), "`floating` needs `node-id` with the one node"),
        ("epoch: 1\nfloating: 192.0.2.9\nscope: first\n".to_owned(), "`floating` needs `node-id`"),
        ("epoch: 1\nfloating: 192.0.2.9\nnode-id: r1, r2\n".to_owned(), "`floating` needs `node-id`"),
        ("epoch: 1\nfloating: 192.0.2.9, 192.0.2.9\nnode-id: r2\n".to_owned(), "names an address twice"),
        ("epoch: 1\nfloating: 192.0.2.0/24\nnode-id: r2\n".to_owned(), "`192.0.2.0/24` is no address that"),
        ("epoch: 1\nfloating: 224.0.0.1\nnode-id: r2\n".to_owned(), "`224.0.0.1` is no address that"),
        ("epoch: 1\nfloating: ::ffff:10.0.0.1\nnode-id: r2\n".to_owned(), "is no address that a module can have"),
        ("epoch: 1\nfloating:\nnode-id: r2\n".to_owned(), "`` is no address"),
        (format!("epoch: 1\nfloating: {five}\nnode-id: r2\n"), "`floating` names more than 4 addresses"),
    ] {
        let refusal = with(&headers).unwrap_err();
        assert!(refusal.detail.contains(why), "{headers}: {refusal}");
    }
    let four = five.strip_suffix(", 10.0.0.5").unwrap();
    assert!(with(&format!("epoch: 1\nfloating: {four}\nnode-id: r2\n")).is_ok());
    let refusal = Message::parse(REMOVE.replace("user:", "floating: 10.0.0.1\nuser:").as_bytes()).unwrap_err();
    assert!(refusal.detail.contains("`floating` means nothing in a REMOVE"), "{refusal}");
}

#[test]
fn a_request_says_which_nodes_it_is_for() {
    let message = Message::parse(PROBE_EDGE.as_bytes()).unwrap();
    let target = message.target();
    assert_eq!(target.scope, Scope::Edge);
    assert_eq!(target.nodes.iter().map(NodeId::as_str).collect::<Vec<_>>(), ["r1", "r2.example.net", "r3"]);
    let conditions: Vec<String> = target.require.iter().map(ToString::to_string).collect();
    assert_eq!(conditions, ["flavour=wasm", "block=kv>=1", "memory>=64M", "load<0.8"]);
    assert!(message.canonical().contains("scope: edge\n"), "it is signed");
    assert_eq!(Message::parse(PROBE.as_bytes()).unwrap().target(), &Target::default());
}

#[test]
fn the_canonical_form_does_not_depend_on_spelling() {
    let canonical = Message::parse(PROBE.as_bytes()).unwrap().canonical().to_owned();
    for same in [
        PROBE.replace('\n', "\r\n"),
        PROBE.replace("ask: nodes", "ASK:nodes"),
        PROBE.replace("ask: load,policy", "Ask:    load,policy   "),
        format!("{PROBE}\n\n"),
        format!("{PROBE}\0\0\0"),
    ] {
        assert_eq!(Message::parse(same.as_bytes()).unwrap().canonical(), canonical, "{same:?}");
    }
    for other in [PROBE.replace("nodes, ", "nodes,"), PROBE.replace("PROBE *", "PROBE * ")] {
        let parsed = Message::parse(other.as_bytes());
        assert!(parsed.is_err() || parsed.unwrap().canonical() != canonical, "{other:?}");
    }
}

#[test]
fn a_signature_changes_nothing_that_is_signed() {
    let unsigned = RequestBuilder::remove(&"example.org/x".parse().unwrap())
        .user(&"jane".parse().unwrap())
        .header("X-Note", "kept")
        .build("2026-11-21T02:00:00Z".parse().unwrap(), "00".repeat(16).parse().unwrap())
        .unwrap();
    let canonical = unsigned.canonical_bytes().to_vec();
    let expected = "REMOVE example.org/x NETSERV/1\nuser: jane\nx-note: kept\ncreated: 2026-11-21T02:00:00Z\nnonce: ";
    assert_eq!(String::from_utf8(canonical.clone()).unwrap(), format!("{expected}{}\n", "00".repeat(16)));
    let signed = unsigned.with_signature(netserv_model::Signature([3; 64])).unwrap();
    assert_eq!(signed.canonical().as_bytes(), canonical);
    assert_eq!(signed.signature(), Some(netserv_model::Signature([3; 64])));
}

#[test]
fn a_response_is_read_and_written_byte_by_byte() {
    let response = Response::parse(RESPONSE.as_bytes()).unwrap();
    assert_eq!(response.entries.len(), 2);
    assert_eq!(response.entries[0].outcome, Outcome::Installed { lease_s: 3600 });
    assert_eq!(response.incomplete.as_ref().unwrap().kind, RefusalKind::Timeout);
    assert_eq!(response.emit(), RESPONSE);
}

#[test]
fn a_response_says_how_the_end_is_known() {
    let text = RESPONSE.lines().filter(|line| !line.starts_with("incomplete")).collect::<Vec<_>>().join("\n");
    let of = |header: &str| Response::parse(format!("{}\n{header}\n\n", text.trim_end()).as_bytes());
    for end in PathEnd::ALL {
        let response = of(&format!("end: {}", end.as_str())).unwrap();
        assert_eq!((response.end, response.incomplete.clone()), (Some(end), None));
        assert!(response.emit().ends_with(&format!("\nend: {}\n\n", end.as_str())));
    }
    assert_eq!(of("end: a-later-proof").unwrap().end, None);
    let both = of("end: destination\nincomplete: {\"kind\":\"timeout\",\"detail\":\"\"}").unwrap();
    assert!(!both.emit().contains("end: "), "what is incomplete proves nothing");
    assert!(of("end: destination\nend: destination").is_err());
}

#[test]
fn an_entry_says_how_the_node_before_saw_it_and_no_more_than_is_understood() {
    let of = |hop: &str| {
        let text = RESPONSE.replacen("\"took_us\":1200", &format!("\"took_us\":1200,{hop}"), 1);
        assert_ne!(text, RESPONSE);
        let response = Response::parse(text.as_bytes())?;
        assert_eq!(Response::parse(response.emit().as_bytes()), Ok(response.clone()), "{hop}");
        Ok::<_, Refusal>(response.entries[0].hop.clone())
    };
    let tls = Hop {
        rtt_us: Some(850),
        ip_hops: Some(2),
        proof: Some(HopProof::Tls),
        tls_name: Some("r1.example.net".to_owned()),
    };
    let whole = r#""hop":{"rtt_us":850,"ip_hops":2,"proof":"tls","tls_name":"r1.example.net"}"#;
    assert_eq!(of(whole), Ok(Some(tls.clone())));
    for proof in HopProof::ALL {
        let hop = of(&format!(r#""hop":{{"proof":"{}"}}"#, proof.as_str()));
        assert_eq!(hop, Ok(Some(Hop { proof: Some(proof), ..Hop::default() })));
    }
    assert_eq!(Response::parse(RESPONSE.as_bytes()).unwrap().entries[0].hop, None, "as earlier versions write it");
    assert_eq!(of(r#""hop":null"#), Ok(None));
    assert_eq!(of(r#""hop":{"proof":"a-later-proof","later":[1]}"#), Ok(Some(Hop::default())));
    let unnamed = Hop { tls_name: None, ..tls.clone() };
    assert_eq!(
        of(&whole.replace("r1.example.net", &"a".repeat(254))),
        Ok(Some(unnamed.clone())),
        "no DNS name is as long"
    );
    let plain = Hop { proof: Some(HopProof::Association), ..unnamed };
    assert_eq!(of(&whole.replace("\"tls\"", "\"association\"")), Ok(Some(plain)), "without TLS nobody has a name");
    let odd = of(&whole.replace("r1", r"\u001b[2J")).unwrap().unwrap();
    assert_eq!(odd.tls_name.as_deref(), Some(r"\u{1b}[2J.example.net"));
    for bad in [r#""hop":7"#, r#""hop":{"ip_hops":256}"#, r#""hop":{"rtt_us":-1}"#, r#""hop":{"proof":{"is":"tls"}}"#] {
        assert_eq!(of(bad).unwrap_err().kind, RefusalKind::BadRequest, "{bad}");
    }
}

#[test]
fn unknown_headers_of_a_response_are_forwarded() {
    let text = RESPONSE.replace("entry: {\"node\":\"r1\"", "X-Trace: abc\nentry: {\"node\":\"r1\"");
    let response = Response::parse(text.as_bytes()).unwrap();
    assert_eq!(response.unknown, [("x-trace".to_owned(), "abc".to_owned())]);
    assert_eq!(Response::parse(response.emit().as_bytes()), Ok(response));
}

#[test]
fn payloads_are_told_apart() {
    assert!(matches!(Payload::parse(SETUP.as_bytes()), Ok(Payload::Request(..))));
    assert!(matches!(Payload::parse(RESPONSE.as_bytes()), Ok(Payload::Response(_))));
    let part = Part { index: 2, count: 3, nonce: netserv_model::Nonce([5; 16]), bytes: b"abc".to_vec() };
    assert_eq!(Payload::parse(&part.emit()), Ok(Payload::Part(part)));
    assert_eq!(Payload::parse(b"").unwrap_err().kind, RefusalKind::BadRequest);
}

#[test]
fn an_envelope_says_where_a_request_is() {
    let take = |headers: &str| Envelope::take(format!("NETSERV/1 HOP\n{headers}\n").as_bytes()).map(|(read, _)| read);
    let message = Message::parse(PROBE.as_bytes()).unwrap();
    let copy = Some(Spread { radius: 3, copies: 17 });
    let all = Envelope { is_outside: true, copy, ..Envelope::default() };
    let text = all.emit(&message);
    assert!(text.starts_with("NETSERV/1 HOP\norigin: outside\nbeside: 3 17\n\n"), "{text}");
    assert_eq!(Envelope::take(text.as_bytes()).unwrap().0, all);
    for bad in [
        "beside: 4 1\n",
        "beside: 1\n",
        "beside: 1 70000\n",
        "beside: -1 1\n",
        "beside: +1 1\n",
        "beside: 1 +1\n",
        "beside: 0 1\nbeside: 0 1\n",
    ] {
        assert_eq!(take(bad).unwrap_err().kind, RefusalKind::BadRequest, "{bad}");
    }
    assert!(!take("origin: elsewhere\n").unwrap().is_outside, "a later version may say more");
}

#[test]
fn an_envelope_is_of_one_hop_and_leaves_what_is_signed_alone() {
    let Ok(Payload::Request(envelope, message)) = Payload::parse(HOP.as_bytes()) else { panic!() };
    assert_eq!((envelope.budget, envelope.passed), (Some(Duration::from_secs(12)), Some(1)));
    assert_eq!(envelope.unknown, [("x-later".to_owned(), "kept for this node".to_owned())]);
    assert_eq!(message.as_str(), PROBE);
    assert_eq!(envelope.emit(&message), HOP);
    let bare = Payload::parse(PROBE.as_bytes());
    assert_eq!(bare, Ok(Payload::Request(Envelope::default(), message.clone())));
    let empty = Envelope::default().emit(&message);
    assert_eq!((&empty[..], Payload::parse(empty.as_bytes())), (&*format!("NETSERV/1 HOP\n\n{PROBE}"), bare));
    let long = Envelope {
        budget: Some(Duration::MAX),
        unknown: vec![("x".to_owned(), "y\n".to_owned())],
        ..Envelope::default()
    };
    assert_eq!(long.emit(&message), format!("NETSERV/1 HOP\nbudget-ms: {}\n\n{PROBE}", u32::MAX));
}

#[test]
fn a_nonce_is_found_in_what_is_no_request() {
    let broken = SETUP.replace("SETUP", "TRIGGER");
    assert!(Message::parse(broken.as_bytes()).is_err());
    assert_eq!(peek_nonce(broken.as_bytes()).unwrap().to_string(), "6f1c0000000000000000000000000001");
    for none in [&b""[..], b"nonce: 12\n", b"\xff\xfe\nnonce", b"nonce"] {
        assert_eq!(peek_nonce(none), None);
    }
}

fn setup(request: Request) -> Setup {
    let Body::Setup(setup) = request.body else { panic!("not a SETUP") };
    *setup
}

#[test]
fn news_are_read_and_written() {
    let Ok(Payload::Notify(notify)) = Payload::parse(NOTIFY.as_bytes()) else { panic!("a NOTIFY") };
    assert_eq!(notify.event, NotifyEvent::RouteMoved);
    assert_eq!(notify.nodes.iter().map(NodeId::as_str).collect::<Vec<_>>(), ["r3.example.net", "r4.example.net"]);
    assert_eq!(emit_notify(&notify), NOTIFY);
    let Ok(Payload::Tear(tear)) = Payload::parse(TEAR.as_bytes()) else { panic!("a TEAR") };
    assert_eq!((tear.user.as_str(), tear.nonce.to_string()), ("janedoe", notify.nonce.to_string()));
    assert_eq!((tear.token, tear.emit().as_str()), (None, TEAR));
    let asked = Tear { token: Some(tear.nonce), ..(*tear).clone() };
    assert_eq!(Tear::parse(asked.emit().as_bytes()), Ok(asked.clone()));
    assert!(Tear::parse(asked.emit().replace("token: 6f", "token: xx").as_bytes()).is_err());
    // The longest there may be.
    let nodes = vec!["n".repeat(63).parse().unwrap(); STACK_ENTRIES_MAX];
    let long = Notify { nodes, detail: "ä\n".repeat(5000), ..*notify };
    let Ok(Payload::Notify(read)) = Payload::parse(emit_notify(&long).as_bytes()) else { panic!("a long NOTIFY") };
    assert_eq!((read.nodes.len(), read.detail.chars().count()), (STACK_ENTRIES_MAX, 1000));
    for event in NotifyEvent::ALL {
        assert_eq!(NotifyEvent::from_word(event.as_str()), Some(event));
    }
}
