// SPDX-License-Identifier: Apache-2.0
//! docs/apps/ng.md, row by row.
#![allow(missing_docs, clippy::unwrap_used, reason = "a test has no users, and fails where something is wrong")]

use std::net::SocketAddr;

use media_relay::calls::Now;
use media_relay::desk::{Desk, Output};
use media_relay::limits::APPLIED_MS;
use media_relay::settings::Settings;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/apps/ng.md");
const SDP: &str = r"v=0\r\no=- 1 1 IN IP4 10.0.0.9\r\ns=-\r\nc=IN IP4 10.0.0.9\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n";
/// Fewer are no whole table.
const ROWS_MIN: usize = 120;

/// Goal: nothing that a client may ask is left out in silence: each row of the page's table is answered as it says, and names what is not done.
/// Method: an offer with that key or flag alone.
#[test]
fn each_key_and_flag_is_answered_as_the_page_says() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let rows =
        page.lines().filter(|line| ["| key ", "| flag ", "| replace "].iter().any(|start| line.starts_with(start)));
    let mut sent = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [kind, names, value, expected, _] = cells[..] else { panic!("{row}") };
        for name in names.split(", ").map(|name| name.trim_matches('`')) {
            let value = value.trim_matches('`');
            let told = offer(&asked(kind, name, value));
            let (is_ok, warns) = (told.contains("\"result\":\"ok\""), told.contains("\"warning\":\"Ignored: "));
            let found = match (is_ok, warns) {
                (true, false) => "honoured",
                (true, true) => "warning",
                (false, _) if told.contains("\"error-reason\":\"Not supported: ") => "refused",
                (false, _) => "another error",
            };
            assert_eq!(found, expected, "{row}\n{name}: {told}");
            let small = name.to_lowercase().replace(' ', "-");
            assert!(found == "honoured" || told.to_lowercase().contains(&small), "{name} is not named: {told}");
            sent += 1;
        }
    }
    assert!(sent >= ROWS_MIN, "{sent} keys and flags");
}

#[test]
fn commands_that_the_relay_has_not_are_refused() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let commands = page.split_once("| command |\n").unwrap().1.lines().skip(1);
    let mut sent = 0;
    for command in commands.map(|row| row.trim_matches(['|', ' ', '`'])) {
        let told = ask(&format!("{{\"command\":\"{command}\",\"call-id\":\"c\",\"from-tag\":\"a\"}}"));
        assert!(told.contains("\"error-reason\":\"Unrecognized command\""), "{command}: {told}");
        sent += 1;
    }
    assert_eq!(sent, 17);
}

/// Goal: encryption that a description has is not taken for absent. Method: what is honoured without it.
#[test]
fn encryption_is_not_taken_away_in_silence() {
    for (attribute, asked) in [
        ("crypto:1 AES_CM_128_HMAC_SHA1_80 inline:x", "\"SDES\":[\"off\"]"),
        ("crypto:1 AES_CM_128_HMAC_SHA1_80 inline:x", "\"flags\":[\"SDES-off\"]"),
        ("fingerprint:sha-256 AA", "\"DTLS\":\"off\""),
    ] {
        let sdp = format!(r"{}a={attribute}\r\n", SDP.replace("RTP/AVP", "RTP/SAVP"));
        let told =
            ask(&format!("{{\"command\":\"offer\",\"call-id\":\"c\",\"from-tag\":\"a\",\"sdp\":\"{sdp}\",{asked}}}"));
        assert!(told.contains("\"error-reason\":\"Not supported: "), "{asked}: {told}");
    }
}

fn asked(kind: &str, name: &str, value: &str) -> String {
    match kind {
        "key" if value.starts_with(['[', '{']) => format!("\"{name}\":{value}"),
        "key" if name.eq_ignore_ascii_case("sdp") => format!("\"{name}\":\"{SDP}\""),
        "key" => format!("\"{name}\":\"{value}\""),
        "flag" => format!("\"flags\":[\"{name}\"],\"received-from\":[\"IP4\",\"198.51.100.9\"]"),
        "replace" => format!("\"replace\":[\"{name}\"]"),
        other => panic!("{other}"),
    }
}

/// Offers with something, in place of what an offer has of the same name.
fn offer(asked: &str) -> String {
    let has = |name: &str| asked.to_lowercase().replace(' ', "-").starts_with(&format!("\"{name}\":"));
    let parts = [("command", "offer"), ("call-id", "c"), ("from-tag", "a"), ("sdp", SDP)];
    let parts = parts.iter().filter(|(name, _)| !has(name)).map(|(name, value)| format!("\"{name}\":\"{value}\""));
    ask(&format!("{{{}}}", parts.chain([asked.to_owned()]).collect::<Vec<_>>().join(",")))
}

fn ask(request: &str) -> String {
    let settings = Settings::read(|name| (name == "control").then(|| "198.51.100.7".to_owned())).unwrap();
    let mut desk = Desk::new(settings, vec!["192.0.2.1".parse().unwrap()], |_| 0);
    let server: SocketAddr = "198.51.100.7:40000".parse().unwrap();
    desk.handle_datagram(0, server, format!("1 {request}").as_bytes(), Now::default());
    desk.handle_timeout(Now { ms: APPLIED_MS, s: 0 });
    let outputs = std::iter::from_fn(|| desk.poll_output());
    let reply = outputs.filter_map(|output| match output {
        Output::Reply(reply) => Some(reply),
        Output::Tell(_) | Output::Keep(..) => None,
    });
    String::from_utf8(reply.last().expect("it is answered").bytes).unwrap()
}
