// SPDX-License-Identifier: Apache-2.0
//! What the Wireshark dissector (`dist/wireshark/netserv.lua`) shows of messages is what our own parser reads in them.
//!
//! Goal: no message, however damaged, is shown otherwise than a node takes it, and none makes an error in the script.
//! Method: captures are written and given to tshark; its fields are compared with those of [`Message::parse`].

mod capture;
mod fields;
mod samples;
mod tshark;

use std::collections::BTreeSet;

use netserv_model::request::Outcome;
use netserv_model::{Nonce, Refusal, RefusalKind};
use netserv_wire::gist::{DecodeError, ErrorCode, MAGIC, Message, MessageStream, MessageType, UDP_PORT, strip_magic};
use netserv_wire::ip::{build, protocol};
use netserv_wire::nslp::{self, Payload, Response};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use capture::{Capture, Stream, packet};
use fields::{Fields, fields_of, hex, lines_of};
use samples::{damage, damaged, full, samples};
use tshark::{Shown, is_here, root, tshark};

/// How many damaged messages are looked at, in datagrams and over connections each.
const DAMAGED: usize = 1000;
/// Files with a text of each kind.
const TEXTS: [&str; 9] = ["setup", "setup-paper", "remove", "probe", "probe-edge", "response", "notify", "tear", "hop"];
/// The NSLP-ID that nodes use unless they are told otherwise.
const NSLP_ID: u16 = 32704;
/// The TCP port of nodes unless they are told otherwise.
const TCP_PORT: u16 = 27001;
/// The TCP port that [`full`] Responses name.
const NAMED_PORT: u16 = 30000;

/// Goal: a handshake and data of another implementation, by datagram and over a connection whose port the Response named.
#[test]
fn captures_of_another_implementation_are_shown_as_they_are_read() {
    if !is_here("captures_of_another_implementation_are_shown_as_they_are_read") {
        return;
    }
    for name in ["gist-dmode-v4", "gist-dmode-v6", "gist-tcp-v4"] {
        let listing = std::fs::read_to_string(root().join(format!("vectors/gist/{name}.txt"))).unwrap();
        let hex = listing.lines().filter_map(|line| line.trim().strip_prefix("hex="));
        let messages = hex.map(|digits| {
            let bytes = unhex(digits);
            Message::parse(strip_magic(&bytes).unwrap_or(&bytes)).unwrap()
        });
        let shown: Vec<Shown> =
            tshark(&root().join(format!("vectors/gist/{name}.pcap"))).into_iter().flatten().collect();
        let expected: Vec<Fields> = messages.map(|message| fields_of(&message)).collect();
        assert_eq!(expected.len(), shown.len(), "{name}");
        for (expected, shown) in expected.iter().zip(&shown) {
            assert_eq!((expected, &shown.faults), (&shown.fields, &BTreeSet::new()), "{name}");
        }
    }
}

#[test]
fn messages_of_every_type_are_shown_as_they_are_read() {
    if !is_here("messages_of_every_type_are_shown_as_they_are_read") {
        return;
    }
    let messages = samples();
    let mut capture = Capture::default();
    for message in &messages {
        capture.datagram(UDP_PORT, &message.emit_datagram());
        // Without the magic number at GIST's port, and with it at another.
        capture.datagram(UDP_PORT, &message.emit());
        capture.datagram(4000, &message.emit_datagram());
    }
    let shown = tshark(&capture.write());
    for (message, shown) in messages.iter().zip(shown.chunks(3)) {
        for (at, shown) in shown.iter().enumerate() {
            if at == 1 && message.kind == MessageType::MaHello {
                continue;
            }
            let [shown] = &shown[..] else { panic!("{message:?}: {shown:?}") };
            assert_eq!((&shown.fields, &shown.faults), (&fields_of(message), &BTreeSet::new()), "{message:?}");
        }
    }
}

/// Goal: messages come out of streams however these are cut, at a port of ours, at one that a Response named, and at any.
#[test]
fn messages_of_connections_are_shown_however_they_are_cut() {
    if !is_here("messages_of_connections_are_shown_however_they_are_cut") {
        return;
    }
    let messages: Vec<Message> = samples().into_iter().filter(|message| message.kind != MessageType::Query).collect();
    let bytes: Vec<u8> = messages.iter().flat_map(Message::emit).collect();
    let expected: Vec<Fields> = messages.iter().map(fields_of).collect();
    let mut random = StdRng::seed_from_u64(1);
    let cases = [
        (false, TCP_PORT, 1, 20),
        (false, NAMED_PORT, 3, 300),
        (true, NAMED_PORT, 1, 300),
        (true, 5555, 12, 700),
        (true, TCP_PORT, 7, 60_000),
    ];
    for (six, port, first, segment_bytes_max) in cases {
        let mut capture = Capture::default();
        if port == NAMED_PORT {
            capture.datagram(UDP_PORT, &full(MessageType::Response, six).emit_datagram());
        }
        let mut rest = &bytes[..];
        let mut segment_bytes = first;
        let mut stream = Stream::new(1, six, port);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(segment_bytes.min(rest.len()));
            capture.segment(&mut stream, now);
            (rest, segment_bytes) = (later, random.random_range(1..=segment_bytes_max));
        }
        let shown: Vec<Shown> = tshark(&capture.write()).into_iter().flatten().collect();
        let shown = &shown[usize::from(port == NAMED_PORT)..];
        assert_eq!(shown.len(), expected.len(), "port {port}");
        for (expected, shown) in expected.iter().zip(shown) {
            assert_eq!((&shown.fields, &shown.faults), (expected, &BTreeSet::new()), "port {port}");
        }
    }
}

/// Goal: of each damaged message, what our parser refuses is shown as a fault with the same code, and what it reads is shown
/// without one.
#[test]
fn damaged_messages_are_shown_with_the_error_that_they_deserve() {
    if !is_here("damaged_messages_are_shown_with_the_error_that_they_deserve") {
        return;
    }
    let damaged = damaged(2);
    let mut capture = Capture::default();
    for bytes in &damaged {
        capture.datagram(UDP_PORT, &[&MAGIC.to_be_bytes()[..], bytes].concat());
    }
    let mut codes = BTreeSet::new();
    for (bytes, shown) in damaged.iter().zip(tshark(&capture.write())) {
        let [shown] = &shown[..] else { panic!("{}: {shown:?}", hex(bytes)) };
        codes.insert(check_damaged(bytes, &Message::parse(bytes), shown));
    }
    assert!(codes.len() > 12, "only these came out: {codes:?}");
}

#[test]
fn damaged_messages_of_connections_are_shown_with_the_error_that_they_deserve() {
    if !is_here("damaged_messages_of_connections_are_shown_with_the_error_that_they_deserve") {
        return;
    }
    let damaged = damaged(3);
    let mut capture = Capture::default();
    let mut segments = Vec::new();
    for (number, bytes) in damaged.iter().enumerate() {
        let mut stream = Stream::new(u16::try_from(1000 + number).unwrap(), number % 2 == 0, TCP_PORT);
        let pieces: Vec<&[u8]> = bytes.chunks(bytes.len().div_ceil(1 + number % 4).max(1)).collect();
        segments.push(pieces.len());
        pieces.into_iter().for_each(|piece| capture.segment(&mut stream, piece));
    }
    let mut shown = tshark(&capture.write()).into_iter();
    for (bytes, segments) in damaged.iter().zip(segments) {
        let shown: Vec<Shown> = shown.by_ref().take(segments).flatten().collect();
        let mut stream = MessageStream::new();
        let read = stream.handle_bytes(bytes);
        if bytes.first() != Some(&1) {
            continue;
        }
        assert!(stream.is_broken() || read.len() == shown.len(), "{}: {shown:?}", hex(bytes));
        assert!(read.len() <= shown.len(), "{}: {shown:?}", hex(bytes));
        for (read, shown) in read.iter().zip(&shown) {
            check_damaged(bytes, &read.clone().map(|read| read.message), shown);
        }
    }
}

/// Goal: what was cut off when it was captured, or is quoted by an ICMP error, is shown as far as it goes, and is no fault.
#[test]
fn what_a_capture_has_only_the_beginning_of_is_no_fault() {
    if !is_here("what_a_capture_has_only_the_beginning_of_is_no_fault") {
        return;
    }
    let query = full(MessageType::Query, false);
    let mut capture = Capture::default();
    let packet = packet(false, UDP_PORT, &query.emit_datagram());
    for kept in 28..packet.len() {
        capture.packet(&packet, kept);
    }
    let quoted = [&[3, 3, 0, 0, 0, 0, 0, 0][..], &packet[..28 + 120]].concat();
    let error =
        build::ip("10.9.0.1".parse().unwrap(), "10.1.0.1".parse().unwrap(), protocol::ICMP, 64, &quoted).unwrap();
    capture.packet(&error, error.len());
    let shown = tshark(&capture.write());
    assert!(shown.iter().flatten().all(|shown| shown.faults.is_empty()));
    let of_quoted = &shown.last().unwrap()[0];
    assert_eq!(of_quoted.fields["gist.session_id"], fields_of(&query)["gist.session_id"]);
}

/// Goal: what nodes put on the wire has no fault, and request and answer are found in it.
#[test]
fn signaling_of_running_nodes_is_shown() {
    let test = "signaling_of_running_nodes_is_shown";
    if !is_here(test) {
        return;
    }
    let Some(mut net) = crate::common::net(test, crate::common::Driver::Nfqueue) else { return };
    let file = net.lab.dir().join("signaling.pcap");
    let mut command = net.lab.command("r", "tcpdump");
    command.args(["-U", "-i", "to-n1", "-w"]).arg(&file);
    net.lab.start("r", "tcpdump", &mut command).unwrap();
    let packets = || std::fs::metadata(&file).map_or(0, |metadata| metadata.len());
    crate::common::eventually("tcpdump listens", || packets() > 0);
    let [v4, v6] = [net.lab.v4("receiver").to_string(), net.lab.v6("receiver").to_string()];
    for receiver in [v4, v6] {
        net.lab.try_netserv("sender", &["path", &receiver]).unwrap();
    }
    let answers = || std::fs::read(&file).unwrap().windows(18).filter(|bytes| *bytes == b"NETSERV/1 RESPONSE").count();
    crate::common::eventually("answers are captured", || answers() == 2);
    net.lab.stop("r", "tcpdump").unwrap();
    let shown: Vec<Shown> = tshark(&file).into_iter().flatten().collect();
    assert!(shown.iter().all(|one| one.faults.is_empty() && !one.text_is_malformed), "{shown:?}");
    for name in ["netserv.method", "netserv.response"] {
        assert_eq!(shown.iter().filter(|one| one.netserv.contains_key(name)).count(), 2, "{name} in {shown:?}");
    }
}

#[test]
fn texts_of_netserv_are_shown_line_by_line() {
    if !is_here("texts_of_netserv_are_shown_line_by_line") {
        return;
    }
    let read = |name: &str| std::fs::read_to_string(root().join(format!("vectors/nslp/{name}.txt"))).unwrap();
    let text = |nslp_id: u16, text: &[u8]| Message {
        nslp_id,
        nslp_data: Some(text.to_vec()),
        ..full(MessageType::Data, true)
    };
    let mut capture = Capture::default();
    for name in TEXTS {
        let part = nslp::parts(&read(name), Nonce([9; 16])).remove(0);
        // Known by its NSLP-ID, and by its first line.
        capture.datagram(UDP_PORT, &text(NSLP_ID, &part).emit_datagram());
        capture.datagram(UDP_PORT, &text(32705, &part).emit_datagram());
    }
    let shown: Vec<Fields> = tshark(&capture.write()).into_iter().map(|mut shown| shown.remove(0).netserv).collect();
    for (name, shown) in TEXTS.into_iter().zip(shown.chunks(2)) {
        assert_eq!(shown[0], shown[1], "{name}");
        assert_eq!(shown[0], lines_of(&read(name)), "{name}");
    }
}

/// Goal: a response too long for one message is put together, and each of its nodes is shown.
#[test]
fn texts_in_parts_are_put_together() {
    if !is_here("texts_in_parts_are_put_together") {
        return;
    }
    let text = std::fs::read_to_string(root().join("vectors/nslp/response.txt")).unwrap();
    let mut response = Response::parse(text.as_bytes()).unwrap();
    let mut entry = response.entries[0].clone();
    entry.outcome = Outcome::Refused(Refusal::new(RefusalKind::Timeout, "for a long time ".repeat(30)));
    response.entries = vec![entry; 60];
    let text = response.emit();
    let parts = nslp::parts(&text, response.nonce);
    assert!(parts.len() >= 2, "{} bytes", text.len());
    let messages = parts.iter().map(|part| Message {
        nslp_id: NSLP_ID,
        nslp_data: Some(part.clone()),
        ..full(MessageType::Data, false)
    });
    let (mut capture, mut stream) = (Capture::default(), Stream::new(1, false, TCP_PORT));
    let bytes: Vec<u8> = messages.flat_map(|message| message.emit()).collect();
    bytes.chunks(1400).for_each(|piece| capture.segment(&mut stream, piece));
    let shown: Vec<Shown> = tshark(&capture.write()).into_iter().flatten().collect();
    assert_eq!(shown.len(), parts.len());
    for (at, shown) in shown.iter().enumerate() {
        assert_eq!(shown.netserv["netserv.part.index"], [(at + 1).to_string()]);
        assert_eq!(shown.netserv["netserv.part.count"], [parts.len().to_string()]);
        assert_eq!(shown.netserv["netserv.part.nonce"], [response.nonce.to_string()]);
    }
    let emitted = Response::parse(text.as_bytes()).unwrap();
    let nodes: Vec<String> = emitted.entries.iter().map(|entry| entry.node.to_string()).collect();
    assert_eq!(shown.last().unwrap().netserv["netserv.entry.node"], nodes);
}

/// Goal: what the dissector calls malformed in a text, nodes refuse; damaged texts make no error in the script.
#[test]
fn what_is_called_malformed_in_a_text_is_refused_by_nodes() {
    if !is_here("what_is_called_malformed_in_a_text_is_refused_by_nodes") {
        return;
    }
    let mut random = StdRng::seed_from_u64(4);
    let texts = TEXTS
        .map(|name| std::fs::read_to_string(root().join(format!("vectors/nslp/{name}.txt"))).unwrap().into_bytes());
    let (mut capture, mut damaged) = (Capture::default(), Vec::new());
    for number in 0..DAMAGED {
        let mut text = texts[number % texts.len()].clone();
        damage(&mut text, &mut random);
        text.resize(text.len().next_multiple_of(4), 0);
        let message = Message { nslp_id: NSLP_ID, nslp_data: Some(text.clone()), ..full(MessageType::Data, false) };
        capture.datagram(UDP_PORT, &message.emit_datagram());
        damaged.push(text);
    }
    let mut malformed = 0;
    for (text, shown) in damaged.iter().zip(tshark(&capture.write())) {
        if shown[0].text_is_malformed {
            malformed += 1;
            let read = Payload::parse(text);
            assert!(read.is_err(), "{}\n{read:?}", String::from_utf8_lossy(text));
        }
    }
    assert!(malformed > DAMAGED / 10, "only {malformed}");
}

/// Compares what is shown of a message with what was read, and returns the code of the error.
fn check_damaged(bytes: &[u8], read: &Result<Message, DecodeError>, shown: &Shown) -> Option<ErrorCode> {
    match read {
        Err(error) => {
            let code = format!("{}/{}", error.code.code(), error.code.subcode());
            assert!(shown.faults.contains(&code), "{}: {error}, and {:?} is shown", hex(bytes), shown.faults);
            Some(error.code)
        }
        Ok(message) => {
            assert_eq!(shown.faults, BTreeSet::new(), "{}", hex(bytes));
            let (mut shown, mut expected) = (shown.fields.clone(), fields_of(message));
            // What may be skipped is shown, and not read.
            let [all, kept] = [&mut shown, &mut expected].map(|fields| fields.remove("gist.object.value"));
            let all = all.unwrap_or_default();
            assert!(kept.iter().flatten().all(|value| all.contains(value)), "{}", hex(bytes));
            // Of an Error that cannot be read to its end, both show what they can.
            if message.error.is_none() {
                assert_eq!(shown, expected, "{}", hex(bytes));
            }
            None
        }
    }
}

fn unhex(digits: &str) -> Vec<u8> {
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
