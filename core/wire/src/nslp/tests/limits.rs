// SPDX-License-Identifier: Apache-2.0
//! Each bound, hit and exceeded by one.

use netserv_model::control::{CONTROL_BYTES_MAX, MODULE_NOTIFY_BYTES_MAX, encode_body};
use netserv_model::limits::*;
use netserv_model::request::{NodeReport, PathEnd, Withheld};
use netserv_model::target::{CONDITIONS_MAX, DESTINATIONS_MAX, TARGET_DOMAINS_MAX, TARGET_NODES_MAX};
use netserv_model::{Nonce, Refusal};

use super::*;

#[test]
fn a_line_has_a_bound() {
    let line = |bytes: usize| PROBE.replace("ask: nodes", &format!("x: {}\nask: nodes", "a".repeat(bytes - 3)));
    assert!(Message::parse(line(HEADER_LINE_BYTES_MAX).as_bytes()).is_ok());
    assert!(Message::parse(line(HEADER_LINE_BYTES_MAX).replace('\n', "\r\n").as_bytes()).is_ok());
    for bytes in [1, 2, 3].map(|more| HEADER_LINE_BYTES_MAX + more) {
        refused(&line(bytes), "line 2: the line is longer than 8 KiB");
    }
}

#[test]
fn a_message_has_a_bound() {
    let text = |bytes: usize| {
        let mut text =
            PROBE.replace("ask: nodes", &format!("{}ask: nodes", format!("x: {}\n", "a".repeat(8000)).repeat(7)));
        let room = bytes - text.len() - "x: \n".len();
        text.insert_str(text.len() - 1, &format!("x: {}\n", "a".repeat(room)));
        assert_eq!(text.len(), bytes);
        text
    };
    assert!(Message::parse(text(MESSAGE_BYTES_MAX).as_bytes()).is_ok());
    assert!(Message::parse(format!("{}\n\n\n", text(MESSAGE_BYTES_MAX)).as_bytes()).is_ok());
    for more in [1, 3, 4] {
        refused(&text(MESSAGE_BYTES_MAX + more), "the message is longer than 61440 bytes");
    }
}

#[test]
fn headers_have_a_bound() {
    let text = |headers: usize| PROBE.replace("ask: nodes", &format!("{}ask: nodes", "x: y\n".repeat(headers - 4)));
    assert!(Message::parse(text(HEADERS_MAX).as_bytes()).is_ok());
    refused(&text(HEADERS_MAX + 1), "line 258: more than 256 headers");
}

#[test]
fn targets_have_bounds() {
    let text = |name: &str, items: usize, item: &str| {
        PROBE.replace("ask: nodes", &format!("{name}: {}\nask: nodes", vec![item; items].join(",")))
    };
    for (name, most, item, detail) in [
        ("node-id", TARGET_NODES_MAX, "r1", "`node-id` names more than 32 nodes"),
        ("for", DESTINATIONS_MAX, "to=10.0.0.1", "`for` names more than 8 destinations"),
        ("for", TARGET_DOMAINS_MAX, "domain=isp.example", "`for` names more than 8 domains"),
        ("require", CONDITIONS_MAX, "load<1", "`require` has more than 16 conditions"),
    ] {
        assert!(Message::parse(text(name, most, item).as_bytes()).is_ok());
        refused(&text(name, most + 1, item), detail);
    }
}

#[test]
fn a_control_message_has_a_bound() {
    let text = |bytes: usize| TELL.replace("cmF0ZT0xMDAKAP8=", &encode_body(&vec![b'x'; bytes]));
    assert!(Message::parse(text(CONTROL_BYTES_MAX).as_bytes()).is_ok());
    refused(&text(CONTROL_BYTES_MAX + 1), "line 5: `body`: longer than 4096 bytes");
    let text = |bytes: usize| NOTIFY_MESSAGE.replace("AP8=", &encode_body(&vec![b'x'; bytes]));
    assert!(Payload::parse(text(MODULE_NOTIFY_BYTES_MAX).as_bytes()).is_ok());
    let refusal = Payload::parse(text(MODULE_NOTIFY_BYTES_MAX + 1).as_bytes()).unwrap_err();
    assert_eq!(refusal.detail, "line 9: `body`: longer than 1024 bytes");
}

#[test]
fn envelopes_have_bounds() {
    let text = |headers: &str| format!("NETSERV/1 HOP\n{headers}\n{PROBE}");
    let long = |bytes: usize| format!("x: {}\n", "a".repeat(bytes - "NETSERV/1 HOP\nx: \n\n".len()));
    for headers in [long(ENVELOPE_BYTES_MAX), "x: y\n".repeat(ENVELOPE_HEADERS_MAX)] {
        let Ok(Payload::Request(envelope, message)) = Payload::parse(text(&headers).as_bytes()) else { panic!() };
        assert_eq!(envelope.emit(&message), text(&headers));
    }
    let refused = |headers: &str, detail: &str| {
        assert_eq!(Payload::parse(text(headers).as_bytes()).unwrap_err().detail, detail);
    };
    refused(&long(ENVELOPE_BYTES_MAX + 1), "the envelope is longer than 1024 bytes");
    refused(&"x: y\n".repeat(ENVELOPE_HEADERS_MAX + 1), "line 18: more than 16 headers");
    let message = Message::parse(PROBE.as_bytes()).unwrap();
    let unknown = vec![("x".to_owned(), "a".repeat(500)); 3];
    let Ok((read, _)) = Envelope::take(Envelope { unknown, ..Envelope::default() }.emit(&message).as_bytes())
        .map(|(e, r)| (e, r.len()))
    else {
        panic!()
    };
    assert_eq!(read.unknown.len(), 2, "the third does not fit");
}

#[test]
fn filters_have_a_bound() {
    let text = |filters: usize| {
        SETUP_PAPER.replace("filter-proto", &format!("{}filter-proto", "filter: ip\n".repeat(filters - 1)))
    };
    assert!(Message::parse(text(FILTERS_PER_MODULE_MAX).as_bytes()).is_ok());
    refused(&text(FILTERS_PER_MODULE_MAX + 1), "line 22: more than 16 filters");
}

#[test]
fn properties_have_bounds() {
    let many = |count: usize| (0..count).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join(",");
    assert_eq!(decode_properties(&many(PROPERTIES_PER_MODULE_MAX)).unwrap().len(), PROPERTIES_PER_MODULE_MAX);
    assert_eq!(decode_properties(&many(PROPERTIES_PER_MODULE_MAX + 1)).unwrap_err(), "more than 64 properties");
    let long = |bytes: usize| format!("k={}", "v".repeat(bytes - 1));
    assert!(decode_properties(&long(PROPERTY_BYTES_MAX)).is_ok());
    assert_eq!(decode_properties(&long(PROPERTY_BYTES_MAX + 1)).unwrap_err(), "property `k` is longer than 4096 bytes");
}

#[test]
fn properties_fill_as_many_lines_as_they_need() {
    let value = "v".repeat(4000);
    let mut builder = RequestBuilder::setup(
        &"example.org/x@1.0.0".parse().unwrap(),
        "file:///x",
        Digest([0; 32]),
        Duration::from_secs(9),
    )
    .user(&"jane".parse().unwrap());
    for n in 0..5 {
        builder = builder.property(&format!("k{n}"), &value);
    }
    let message = builder.build("2026-11-21T02:00:00Z".parse().unwrap(), Nonce([1; 16])).unwrap().into_message();
    assert_eq!(message.as_str().matches("properties: ").count(), 3);
    assert_eq!(setup(message.request(SessionId([0; 16]))).properties.len(), 5);
}

#[test]
fn entries_have_a_bound() {
    let mut response = response(STACK_ENTRIES_MAX, "short");
    assert_eq!(Response::parse(response.emit().as_bytes()), Ok(response.clone()));
    let more = response.entries[0].clone();
    response.entries.push(more);
    let cut = Response::parse(response.emit().as_bytes()).unwrap();
    assert_eq!(cut.entries, response.entries[..STACK_ENTRIES_MAX]);
    let incomplete = cut.incomplete.unwrap();
    assert_eq!(incomplete.kind, RefusalKind::QuotaExceeded);
    assert_eq!(incomplete.detail, "the 1 entries furthest away did not fit the response");
    let line = RESPONSE.lines().nth(3).unwrap();
    let text = RESPONSE.replace(line, &[line].repeat(STACK_ENTRIES_MAX).join("\n"));
    assert_eq!(Response::parse(text.as_bytes()).unwrap_err().detail, "more than 64 entries");
}

#[test]
fn a_long_stack_loses_its_far_end() {
    let mut response = response(30, "x");
    for entry in &mut response.entries {
        let block = |n: usize| format!("block-{n}>=1").parse().unwrap();
        entry.blocks = (0..200).map(block).collect();
    }
    let text = response.emit();
    assert!(text.len() <= MESSAGE_BYTES_MAX);
    let cut = Response::parse(text.as_bytes()).unwrap();
    assert!((10..30).contains(&cut.entries.len()), "{}", cut.entries.len());
    assert_eq!(cut.entries, response.entries[..cut.entries.len()]);
    assert_eq!(cut.incomplete.unwrap().kind, RefusalKind::QuotaExceeded);
}

#[test]
fn a_long_entry_takes_several_lines() {
    let mut response = response(1, "x");
    response.entries[0].blocks = (0..2000).map(|n| format!("block-{n}>=1").parse().unwrap()).collect();
    let text = response.emit();
    assert!(text.matches("\nentry-more: ").count() >= 3);
    assert!(text.lines().all(|line| line.len() <= HEADER_LINE_BYTES_MAX));
    assert_eq!(Response::parse(text.as_bytes()), Ok(response));
}

#[test]
fn parts_have_bounds() {
    let nonce = Nonce([9; 16]);
    assert_eq!(parts(&"a".repeat(PART_BYTES_MAX), nonce).len(), 1);
    assert_eq!(parts(&"a".repeat(PART_BYTES_MAX + 1), nonce).len(), 2);
    let most = parts(&"a".repeat(MESSAGE_BYTES_MAX), nonce);
    assert_eq!(most.len(), PARTS_MAX);
    assert!(most.iter().all(|part| part.len() <= PART_BYTES_MAX && part.len() % 4 == 0));
    for place in ["1/1", "0/2", "3/2", "1/5", "1/", "/2", "1", "+1/2", "01/2", "x/2"] {
        assert_eq!(Part::parse(format!("NETSERV/1 PART {place} {nonce}\nabc").as_bytes()), None, "{place}");
    }
    assert_eq!(Part::parse(format!("NETSERV/1 PART 1/2 {nonce}").as_bytes()), None);
    assert_eq!(Part::parse(b"NETSERV/1 PART 1/2 12\n"), None);
}

fn refused(text: &str, detail: &str) {
    assert_eq!(Message::parse(text.as_bytes()).unwrap_err().detail, detail);
}

fn response(entries: usize, detail: &str) -> Response {
    let entry = |n: usize| NodeReport {
        node: format!("r{n}").parse().unwrap(),
        address: "10.0.0.1".parse().unwrap(),
        outcome: Outcome::Refused(Refusal::new(RefusalKind::UnknownUser, detail)),
        took_us: 5,
        hop: None,
        load: None,
        modules: Vec::new(),
        blocks: Vec::new(),
        environments: Vec::new(),
        policy: None,
    };
    Response {
        session: SessionId([1; 16]),
        nonce: Nonce([2; 16]),
        entries: (0..entries).map(entry).collect(),
        incomplete: None,
        end: Some(PathEnd::Destination),
        withheld: Withheld::default(),
        foreign: 0,
        returned: None,
        beside: Default::default(),
        unknown: Vec::new(),
    }
}
