// SPDX-License-Identifier: Apache-2.0
//! Texts that are no messages.

use netserv_model::RefusalKind;

use super::*;

#[test]
fn truncated_texts_are_refused() {
    for text in TEXTS {
        for end in 0..text.len() {
            assert!(Payload::parse(&text.as_bytes()[..end]).is_err(), "{:?}", &text[..end]);
        }
    }
}

#[test]
fn bad_request_lines_are_refused() {
    for (line, detail) in [
        ("PROBE * NETSERV/2", "line 1: `NETSERV/2`: only NETSERV/1 is understood"),
        ("PROBE x NETSERV/1", "line 1: `x`: a PROBE is of `*`"),
        ("PROBE  * NETSERV/1", "line 1: `PROBE  * NETSERV/1` is not a request line such as `PROBE * NETSERV/1`"),
        ("PROBE *", "line 1: `PROBE *` is not a request line such as `PROBE * NETSERV/1`"),
        ("TRIGGER * NETSERV/1", "line 1: `TRIGGER * NETSERV/1` is not understood"),
        ("probe * NETSERV/1", "line 1: `probe * NETSERV/1` is not understood"),
    ] {
        check(&PROBE.replace("PROBE * NETSERV/1", line), detail);
    }
    check(&TELL.replace("net-monitor ", "net-monitor@1.0.0 "), "line 1: `example.org/net-monitor@1.0.0` is not");
    check(&REMOVE.replace("net-monitor ", "net-monitor@1.0.0 "), "line 1: `example.org/net-monitor@1.0.0` is not");
    check(&SETUP.replace("@1.2.0", ""), "line 1: `example.org/net-monitor` is not");
}

#[test]
fn bad_headers_are_refused_with_their_line() {
    for (from, to, detail) in [
        ("user: janedoe", "user janedoe", "line 2: `user janedoe` is not a header; write `name: value`"),
        ("user: janedoe", " user: janedoe", "line 2: ` user: janedoe` is not a header"),
        ("user: janedoe", "user : janedoe", "line 2: `user : janedoe` is not a header"),
        ("user: janedoe", ": janedoe", "line 2: `: janedoe` is not a header"),
        ("user: janedoe", "user: Jane", "line 2: `user`: `Jane` is not a user name"),
        ("user: janedoe\n", "", "the SETUP has no `user` header"),
        ("user: janedoe", "user: a\nuser: b", "line 3: `user` is there twice"),
        ("user: janedoe", "user: a\nchecklist: BwcH\nchecklist: BwcH", "line 4: `checklist` is there twice"),
        ("user: janedoe", "user: a\nchecklist: BwcH\nCHECKLIST: BwcI", "line 4: `checklist` is there twice"),
        ("user: janedoe", "user: a\nchecklist:", "line 3: `checklist`"),
        ("user: janedoe", "user: a\nchecklist: BwcHBwc=", "line 3: `checklist`"),
        ("user: janedoe", "user: a\nchecklist: Bwd", "line 3: `checklist`"),
        ("user: janedoe", "user: a\nchecklist: +/cH", "line 3: `checklist`"),
        ("user: janedoe", "user: a\naddress-proof: 10.2.0.9", "line 3: `address-proof`"),
        ("user: janedoe", "user: jane\u{1b}[2J", "line 2: a control character"),
        ("user: janedoe", "user: jane\tdoe", "line 2: a control character"),
        ("user: janedoe", "user: jane\rdoe", "line 2: a control character"),
        ("user: janedoe", "user: jane\u{85}", "line 2: a control character"),
        ("user: janedoe", "ask: nodes", "line 2: `ask` means nothing in a SETUP"),
        ("URL:   h", "URL:   h ", "line 3: `url` is empty or has a space in it"),
        ("sha256:9f", "sha256:9F", "line 4: `digest`: `sha256:9F"),
        ("filter: tcp", "filter: sctp", "line 6: `filter`: `sctp` is not understood here"),
        ("sample=100", "sample", "line 7: `properties`: `sample` is not a property such as key=value"),
        ("sample=100", "=100", "line 7: `properties`: `=100` has no key"),
        ("sample=100", "note=1", "line 7: `properties`: property `note` is there twice"),
        ("sample=100", "sample=%4", "line 7: `properties`: `%4` has a percent sign that is not a %XX of UTF-8"),
        ("sample=100", "sample=%FF", "line 7: `properties`: `%FF` has a percent sign that is not a %XX of UTF-8"),
        ("sample=100", "sample=%+5", "line 7: `properties`: `%+5` has a percent sign that is not a %XX of UTF-8"),
        ("kv>=1", "KV>=1", "line 8: `dependencies`: `KV>=1` is not a dependency such as kv>=1"),
        ("ttl: 3600", "ttl: +3600", "line 9: `ttl` is not a whole number of seconds"),
        ("ttl: 3600", "ttl: 99999999999999999999", "line 9: `ttl` is not a whole number of seconds"),
        ("ttl: 3600\n", "", "the SETUP has no `ttl` header"),
        ("2026-11-21T02", "2026-11-21 02", "line 11: `created`: not a UTC time"),
        ("nonce: 6f", "nonce: 6F", "line 12: `nonce`: `6F1c"),
        ("signature: ed25519:", "signature: rsa:", "line 13: `signature`: `rsa:"),
        (
            "ttl: 3600",
            "scope: middle\nttl: 3600",
            "line 9: `scope`: `middle` is not a scope (first, last, all or edge)",
        ),
        ("ttl: 3600", "scope: first\nscope: last\nttl: 3600", "line 10: `scope` is there twice"),
        (
            "ttl: 3600",
            "for: to=10.0.0.1, host\nttl: 3600",
            "line 9: `for`: `host` is not to=ADDRESS, to=PREFIX or domain=NAME",
        ),
        ("ttl: 3600", "node-id: r1, R!\nttl: 3600", "line 9: `node-id`: `R!` is not"),
        ("ttl: 3600", "require: load<0.8, disk>1\nttl: 3600", "line 9: `require`: `disk>1` is not a condition such as"),
        ("ttl: 3600", "trigger: back\nttl: 3600", "line 9: `trigger` is `return`"),
        ("ttl: 3600", "ttl: 3600\ndry-run: yes", "line 10: `dry-run` is `true` or `false`"),
        ("ttl: 3600", "ttl: 3600\nprepare: true", "`prepare` goes with `dry-run`: nothing is installed"),
        ("ttl: 3600", "ttl: 3600\nbuffer: 10.0.0.1", "`buffer` goes with `prepare`: packets wait for what is ready"),
        ("ttl: 3600", "ttl: 3600\nbuffer: 0.0.0.0", "`buffer` is the address of a node"),
        ("ttl: 3600", "ttl: 3600\nbuffer: r1", "line 10: `buffer`: "),
        ("filter: tcp port 80-90", "filter-port: 80", "line 6: `filter-port` needs `filter-proto`"),
        ("filter: tcp port 80-90", "filter-proto: icmp\nfilter-port: 80", "line 7: `filter-proto`: ports need"),
    ] {
        assert!(SETUP.contains(from), "{from}");
        check(&SETUP.replacen(from, to, 1), detail);
    }
    check(&PROBE.replace("load,policy", "load,mood"), "line 3: `ask`: `mood` is not one of nodes,");
    check(&PROBE.replace("load,policy", "load,"), "line 3: `ask`: `` is not one of nodes,");
}

#[test]
fn bad_tells_are_refused() {
    for (from, to, detail) in [
        ("topic: limit\n", "", "the TELL has no `topic` header"),
        ("topic: limit", "topic: two words", "line 3: `topic`: `two words` is not a topic"),
        ("topic: limit", "topic: a\ntopic: b", "line 4: `topic` is there twice"),
        ("seq: 18446744073709551615\n", "", "the TELL has no `seq` header"),
        ("seq: 1844", "seq: 91844", "line 4: `seq` is not a whole number below 2^64"),
        ("seq: 1844", "seq: +1844", "line 4: `seq` is not a whole number below 2^64"),
        ("seq: 1844", "seq: -1844", "line 4: `seq` is not a whole number below 2^64"),
        ("body: cmF0ZT0xMDAKAP8=\n", "", "the TELL has no `body` header"),
        ("AP8=", "AP8", "line 5: `body`: not base64"),
        ("AP8=", "AP9=", "line 5: `body`: not base64"),
        ("AP8=", "AP8=\nbody: AP8=", "line 6: `body` is there twice"),
        ("user: janedoe\n", "", "the TELL has no `user` header"),
        ("topic: limit", "topic: limit\nttl: 60", "line 4: `ttl` means nothing in a TELL"),
    ] {
        check(&TELL.replacen(from, to, 1), detail);
    }
    check(&SETUP.replace("user: janedoe", "seq: 1\nuser: janedoe"), "line 2: `seq` means nothing in a SETUP");
}

#[test]
fn what_follows_the_empty_line_is_refused() {
    check(&format!("{PROBE}user: jane\n\n"), "line 6: something follows the empty line that ends a message");
    check(&format!("{PROBE}\n\n\n\n"), "line 6: something follows the empty line that ends a message");
    check("\n", "line 1: an empty message");
    check("", "line 1: the message ends without an empty line");
    let mut bytes = PROBE.as_bytes().to_vec();
    bytes[8] = 0xff;
    assert_eq!(Message::parse(&bytes).unwrap_err().detail, "line 1: not UTF-8");
}

#[test]
fn bad_responses_are_refused() {
    for (from, to, detail) in [
        ("NETSERV/1 RESPONSE", "NETSERV/1 RESPONSES", "line 1: not `NETSERV/1 RESPONSE`"),
        ("session: 00", "session: 0", "line 2: `00102030"),
        ("nonce: 6f1c0000000000000000000000000001\n", "", "the response has no `nonce` header"),
        ("nonce: 6f1c", "session: 6f1c", "line 3: `session` is there twice"),
        ("entry: {\"node\":\"r1\"", "entry-more: {\"node\":\"r1\"", "line 4: it goes on with no entry"),
        ("entry: {\"node\":\"r1\"", "return-more: {\"node\":\"r1\"", "line 4: it goes on with no entry"),
        ("entry: {\"node\":\"r1\"", "return: {\"node\":\"r1\"", "line 4: the way back has entries and no `returned`"),
        ("entry: {\"node\":\"r1\"", "returned: 7\nentry: {\"node\":\"r1\"", "line 4: the JSON is not understood"),
        ("\"node\":\"r1\"", "\"node\":\"r 1\"", "line 4: the JSON is not understood"),
        ("\"took_us\":90", "\"took_us\":-1", "line 5: the JSON is not understood"),
        ("\"timeout\"", "\"boredom\"", "line 6: the JSON is not understood"),
    ] {
        let text = RESPONSE.replacen(from, to, 1);
        assert_ne!(text, RESPONSE, "{from}");
        let refusal = Response::parse(text.as_bytes()).unwrap_err();
        assert!(refusal.detail.starts_with(detail), "{refusal}");
    }
}

#[test]
fn what_nodes_say_cannot_drive_a_terminal() {
    let text =
        RESPONSE.replace("no user janedoe", "\\u001b[2Jgone\\u202e\\u0085").replace("after r2", "\\u0007after r2");
    let response = Response::parse(text.as_bytes()).unwrap();
    let Outcome::Refused(refusal) = &response.entries[1].outcome else { panic!() };
    assert_eq!(refusal.detail, r"\u{1b}[2Jgone\u{202e} ");
    assert_eq!(response.incomplete.unwrap().detail, r"the node \u{7}after r2 did not answer within 3000 ms");
}

#[test]
fn bad_news_are_refused() {
    for (from, to, detail) in [
        ("event: route-moved", "event: moved", "line 7: `event` is none that this version knows"),
        ("event: route-moved\n", "", "the message has no `event` header"),
        ("node: r1", "node: r1\nnode: r2", "line 7: `node` is there twice"),
        ("nodes: r3", "nodes: R!", "line 8: `nodes`: "),
        ("NETSERV/1 NOTIFY", "NETSERV/1 NOTIFYING", "line 1: not `NETSERV/1 NOTIFY`"),
    ] {
        let refusal = Payload::parse(NOTIFY.replacen(from, to, 1).as_bytes()).expect_err(detail);
        assert!(refusal.detail.starts_with(detail), "{refusal}");
    }
    let refusal = Payload::parse(TEAR.replace("user: janedoe\n", "").as_bytes()).unwrap_err();
    assert_eq!(refusal.detail, "the message has no `user` header");
}

#[test]
fn bad_envelopes_are_refused() {
    let number = "line 2: `budget-ms` is not a whole number of milliseconds";
    for (from, to, detail) in [
        ("NETSERV/1 HOP", "NETSERV/1 HOPS", "line 1: not `NETSERV/1 HOP`"),
        ("12000", "-1", number),
        ("12000", "+1", number),
        ("12000", "", number),
        ("12000", "1 s", number),
        ("12000", "4294967296", number),
        ("nodes-passed: 1", "may-return: 1", "line 3: `may-return` is `true`"),
        ("nodes-passed: 1", "may-return: true\nmay-return: true", "line 4: `may-return` is there twice"),
        ("nodes-passed: 1", "nodes-passed: many", "line 3: `nodes-passed` is not a whole number of nodes"),
        ("nodes-passed", "budget-ms", "line 3: `budget-ms` is there twice"),
        ("x-later: ", "x later: ", "line 4: `x later: kept for this node` is not a header"),
        ("\nPROBE", "PROBE", "line 5: `PROBE * NETSERV/1` is not a header"),
        ("\nPROBE", "\nNETSERV/1 HOP\n\nPROBE", "line 2: something follows the empty line that ends a message"),
        ("PROBE * NETSERV/1", "NETSERV/1 RESPONSE", "line 1: `NETSERV/1 RESPONSE` is not a request line"),
        ("ask: load,policy", "ask: mood", "line 3: `ask`: `mood` is not one of nodes,"),
    ] {
        let text = HOP.replacen(from, to, 1);
        assert_ne!(text, HOP, "{from}");
        let refusal = Payload::parse(text.as_bytes()).expect_err(detail);
        assert!(refusal.detail.starts_with(detail), "{refusal}");
    }
}

fn check(text: &str, detail: &str) {
    let refusal = Message::parse(text.as_bytes()).expect_err(detail);
    assert_eq!(refusal.kind, RefusalKind::BadRequest);
    assert!(refusal.detail.starts_with(detail), "{:?} does not start with {detail:?}", refusal.detail);
}
