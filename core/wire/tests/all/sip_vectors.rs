// SPDX-License-Identifier: Apache-2.0
//! `vectors/sip`: what messages mean, for this parser and for that of bundles.

#![allow(clippy::disallowed_methods, reason = "a test reads its vectors")]

use std::fs;
use std::path::Path;

use netserv_wire::sip::{Span, Start, parse};

#[test]
fn every_message_means_what_its_text_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/sip");
    let mut seen = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "sip") {
            let expected = fs::read_to_string(path.with_extension("txt")).unwrap();
            assert_eq!(described(&fs::read(&path).unwrap()), expected, "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 50, "{seen} messages");
}

fn described(bytes: &[u8]) -> String {
    let mut headers = Vec::new();
    let message = match parse(bytes, &mut headers) {
        Ok(message) => message,
        Err(error) => return format!("error {error}\n"),
    };
    let text = |span: Span| String::from_utf8_lossy(span.of(bytes)).into_owned();
    let tag = |span: Option<Span>| span.map(text).unwrap_or_default();
    let mut lines = match message.start {
        Start::Request { uri } => format!("request {} {}\n", text(message.method_name), text(uri)),
        Start::Response { status, reason } => line(&format!("response {status}"), &text(reason)),
    };
    for header in headers {
        lines += &line(&format!("header {}", header.long_name(bytes)), &header.text(bytes));
    }
    lines += &line("call-id", &text(message.call_id));
    lines += &line(&format!("cseq {}", message.cseq), &text(message.method_name));
    lines += &line("from-tag", &tag(message.from_tag));
    lines += &line("to-tag", &tag(message.to_tag));
    lines += &line("branch", &tag(message.via_branch));
    lines + &format!("body {} {}\n", message.body.start, message.body.length)
}

fn line(name: &str, value: &str) -> String {
    if value.is_empty() { format!("{name}\n") } else { format!("{name} {value}\n") }
}
