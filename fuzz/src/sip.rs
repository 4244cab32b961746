// SPDX-License-Identifier: Apache-2.0
//! SIP messages.

use netserv_wire::sip::{Header, HeaderName, Message, SipError, Span, Start, limits, parse};

/// Reads a SIP message.
///
/// # Panics
/// If a part is not in the message or not what it should be, if a message that is cut off is taken for a whole one, or if
/// the message that its parts make is another.
pub fn sip_text(data: &[u8]) {
    let mut headers = Vec::new();
    let Ok(message) = parse(data, &mut headers) else { return };
    check_places(data, &message, &headers);
    check_cuts(data, &message);
    let again = written(data, &message, &headers);
    let mut others = Vec::new();
    // What folded lines lose may only make the message shorter.
    let other = parse(&again, &mut others).expect("what the parts make is a message");
    let text = |bytes: &[u8], span: Span| span.of(bytes).to_vec();
    assert_eq!(text(data, message.call_id), text(&again, other.call_id));
    assert_eq!((message.cseq, message.method), (other.cseq, other.method));
    assert_eq!(message.from_tag.map(|tag| text(data, tag)), other.from_tag.map(|tag| text(&again, tag)));
    assert_eq!(message.to_tag.map(|tag| text(data, tag)), other.to_tag.map(|tag| text(&again, tag)));
    assert_eq!(message.via_branch.map(|tag| text(data, tag)), other.via_branch.map(|tag| text(&again, tag)));
    assert_eq!(text(data, message.body), text(&again, other.body));
    assert_eq!(headers.len(), others.len());
}

fn check_places(data: &[u8], message: &Message, headers: &[Header]) {
    assert!(headers.len() <= limits::HEADERS_MAX);
    assert!(message.body.end() <= data.len());
    let head = usize::from(message.body.start);
    let subject = match message.start {
        Start::Request { uri } => uri,
        Start::Response { reason, .. } => reason,
    };
    let parts = [message.call_id, message.from_uri, message.to_uri, message.via, message.via_sent_by, subject];
    let tags = [message.from_tag, message.to_tag, message.via_branch];
    for part in parts.into_iter().chain(tags.into_iter().flatten()) {
        assert!(part.end() <= head);
    }
    for header in headers {
        assert!(header.value.end() + 2 <= head && header.name_text.end() < head);
        assert_eq!(HeaderName::of(header.name_text.of(data)), header.name);
        assert!(!header.text(data).contains(['\r', '\n']));
    }
}

/// Every start of a message is one that goes on: none is a whole message or damaged.
fn check_cuts(data: &[u8], message: &Message) {
    let needed = if message.content_length.is_some() { message.body.end() } else { usize::from(message.body.start) };
    let mut headers = Vec::new();
    for cut in (0..needed).step_by(1 + needed / 64) {
        assert_eq!(parse(&data[..cut], &mut headers), Err(SipError::Incomplete), "cut at {cut}");
    }
}

/// Writes a message of the parts of another, each header as one line.
fn written(data: &[u8], message: &Message, headers: &[Header]) -> Vec<u8> {
    let mut first = data;
    while let Some(rest) = first.strip_prefix(b"\r\n") {
        first = rest;
    }
    let end = first.windows(2).position(|pair| pair == b"\r\n").expect("a message has a first line");
    let mut text = first[..end].to_vec();
    for header in headers {
        let lines = header.value.of(data).split(|byte| matches!(byte, b'\r' | b'\n'));
        let lines: Vec<_> = lines.map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()).collect();
        text.extend([b"\r\n", header.name_text.of(data), b": ", &lines.join(&b' ')].concat());
    }
    text.extend(b"\r\n\r\n");
    text.extend(message.body.of(data));
    text
}
