// SPDX-License-Identifier: Apache-2.0
//! Messages of RFC 3261 and RFC 4475, and what may be wrong with one.

use proptest::prelude::*;

use super::limits::{HEADERS_MAX, MESSAGE_BYTES_MAX, METHOD_BYTES_MAX};
use super::*;

/// RFC 4475 §3.1.1.1, without its Warning and Contact headers.
const TORTUOUS: &str = "INVITE sip:vivekg@chair-dnrc.example.com;unknownparam SIP/2.0\r\n\
TO :\r\n sip:vivekg@chair-dnrc.example.com ;   tag    = 1918181833n\r\n\
from   : \"J Rosenberg \\\\\\\"\"       <sip:jdrosen@example.com>\r\n  ;\r\n  tag = 98asjd8\r\n\
MaX-fOrWaRdS: 0068\r\n\
Call-ID: 0ha0isndaksdjweiafasdk3\r\n\
cseq: 0009\r\n  INVITE\r\n\
Via  : SIP  /   2.0\r\n /UDP\r\n    192.0.2.2;branch=390skdjuw\r\n\
s :\r\n\
NewFangledHeader:   newfangled value\r\n continued newfangled value\r\n\
v:  SIP  / 2.0  / TCP     spindle.example.com   ;\r\n  branch  =   z9hG4bK9ikj8  ,\r\n SIP  /    2.0   / UDP  a\r\n\
l: 5\r\n\r\nv=0\r\nafter the body";

const OK: &str = "\r\n\r\nSIP/2.0 200 OK all is well\r\n\
Via: SIP/2.0/UDP server10.biloxi.com:5061;x=\"a,;b\\\"\";branch=z9hG4bK4b43c2ff8.1, SIP/2.0/UDP b\r\n\
To: Bob <sip:bob@biloxi.com>;tag=a6c85cf\r\n\
From: Alice <sip:alice@atlanta.com;tag=no>;x=1\r\n\
i: a84b4c76e66710@pc33.atlanta.com\r\n\
CSeq: 314159 INVITE\r\n\
\r\nbody";

const PING: &str =
    "OPTIONS sip:a SIP/2.0\r\nv: SIP/2.0/UDP h\r\nf: <sip:f>\r\nt: <sip:t>\r\ni: 1\r\nCSeq: 1 OPTIONS\r\n\r\n";

fn read(text: &str) -> Result<(Message, Vec<Header>), SipError> {
    let mut headers = Vec::new();
    parse(text.as_bytes(), &mut headers).map(|message| (message, headers))
}

fn check(text: &str, expected: SipError) {
    assert_eq!(read(text).map(|(message, _)| message), Err(expected), "{text}");
}

fn replaced(from: &str, to: &str) -> String {
    assert!(PING.contains(from), "{from}");
    PING.replacen(from, to, 1)
}

#[test]
fn a_tortuous_request_is_taken_apart() {
    let (message, headers) = read(TORTUOUS).unwrap();
    let text = |span: Span| std::str::from_utf8(span.of(TORTUOUS.as_bytes())).unwrap();
    let Start::Request { uri } = message.start else { panic!("a request") };
    assert_eq!(text(uri), "sip:vivekg@chair-dnrc.example.com;unknownparam");
    assert_eq!((message.method, text(message.method_name), message.cseq), (Method::Invite, "INVITE", 9));
    assert_eq!(text(message.call_id), "0ha0isndaksdjweiafasdk3");
    assert_eq!((text(message.from_uri), message.from_tag.map(text)), ("sip:jdrosen@example.com", Some("98asjd8")));
    let to = (text(message.to_uri), message.to_tag.map(text));
    assert_eq!(to, ("sip:vivekg@chair-dnrc.example.com", Some("1918181833n")));
    assert_eq!((text(message.via_sent_by), message.via_branch.map(text)), ("192.0.2.2", Some("390skdjuw")));
    assert_eq!((message.content_length, text(message.body)), (Some(5), "v=0\r\n"));
    let names: Vec<_> = headers.iter().map(|header| (header.name.number(), text(header.name_text))).collect();
    let expected = [
        (3, "TO"),
        (2, "from"),
        (7, "MaX-fOrWaRdS"),
        (4, "Call-ID"),
        (5, "cseq"),
        (1, "Via"),
        (25, "s"),
        (0, "NewFangledHeader"),
        (1, "v"),
        (10, "l"),
    ];
    assert_eq!(names, expected);
    assert_eq!(text(headers[6].value), "");
    assert_eq!(text(headers[7].value), "newfangled value\r\n continued newfangled value");
}

#[test]
fn a_response_is_taken_apart() {
    let (message, headers) = read(OK).unwrap();
    let text = |span: Span| std::str::from_utf8(span.of(OK.as_bytes())).unwrap();
    let Start::Response { status, reason } = message.start else { panic!("a response") };
    assert_eq!((status, text(reason)), (200, "OK all is well"));
    assert_eq!((message.method, message.cseq), (Method::Invite, 314_159));
    assert_eq!(text(message.via), "SIP/2.0/UDP server10.biloxi.com:5061;x=\"a,;b\\\"\";branch=z9hG4bK4b43c2ff8.1");
    let via = (text(message.via_sent_by), message.via_branch.map(text));
    assert_eq!(via, ("server10.biloxi.com:5061", Some("z9hG4bK4b43c2ff8.1")));
    assert_eq!((text(message.from_uri), message.from_tag), ("sip:alice@atlanta.com;tag=no", None));
    assert_eq!(message.to_tag.map(text), Some("a6c85cf"));
    assert_eq!((message.content_length, text(message.body), headers.len()), (None, "body", 5));
}

#[test]
fn first_lines_are_held_to_the_letter() {
    for (line, reason) in [("SIP/2.0 100 ", ""), ("sip/2.0 699", "")] {
        let (message, _) = read(&replaced("OPTIONS sip:a SIP/2.0", line)).unwrap();
        let Start::Response { reason: found, .. } = message.start else { panic!("a response") };
        assert_eq!(found.of(line.as_bytes()), reason.as_bytes());
    }
    for line in ["SIP/2.0 99 OK", "SIP/2.0 700 OK", "SIP/2.0 +20 OK", "SIP/2.0 2000 OK", "SIP/2.0 ", "OPTIONS  SIP/2.0"]
    {
        check(&replaced("OPTIONS sip:a SIP/2.0", line), SipError::Malformed("start line"));
    }
    for line in
        ["GET / HTTP/1.1", "OPTIONS sip:a SIP/3.0", "OPTIONS sip:a  SIP/2.0", "OPTIONS", " OPTIONS sip:a SIP/2.0"]
    {
        check(&replaced("OPTIONS sip:a SIP/2.0", line), SipError::NotSip);
    }
    check("\0\u{1}\0\0", SipError::NotSip);
    check("\u{1}\r\n", SipError::NotSip);
    check("G\0\r\n", SipError::NotSip);
}

#[test]
fn what_a_message_must_have_is_missed() {
    for (header, name) in [
        ("v: SIP/2.0/UDP h\r\n", "Via"),
        ("f: <sip:f>\r\n", "From"),
        ("t: <sip:t>\r\n", "To"),
        ("i: 1\r\n", "Call-ID"),
        ("CSeq: 1 OPTIONS\r\n", "CSeq"),
    ] {
        check(&replaced(header, ""), SipError::Malformed(name));
        let twice = read(&replaced(header, &header.repeat(2))).map(|_| ());
        assert_eq!(twice, if name == "Via" { Ok(()) } else { Err(SipError::Malformed(name)) });
    }
    let length = "l: 0\r\ncontent-LENGTH: 0\r\ni: 1";
    check(&replaced("i: 1", length), SipError::Malformed("Content-Length"));
}

#[test]
fn damaged_values_are_refused() {
    let damaged = [
        (
            "SIP/2.0/UDP h",
            "Via",
            &["SIP/2.0 h", "SIP/2.0/UDP", "SIP/2.0/UDP ;a", "SIP/2.0/UDP h;\"", "/2.0/UDP h", ""][..],
        ),
        (
            "SIP/2.0/UDP h",
            "Via",
            &["SIP/2.0/UDP h;branch=1;Branch=2", "SIP/2.0/UDP h;branch", "SIP/2.0/UDP h;branch= "],
        ),
        (
            "<sip:f>",
            "From",
            &["", "<sip:f", "<>", "\"f <sip:f>", "a b", "<sip:f> x", "<sip:f>;tag", "<sip:f>;tag=a;tag=b"],
        ),
        ("<sip:t>", "To", &["\"\\\"<sip:t>", ";tag=1", "<sip:t>;tag=\"\""]),
        ("i: 1", "Call-ID", &["i:", "i: 1 2"]),
        (
            "1 OPTIONS",
            "CSeq",
            &["1", "OPTIONS", "1OPTIONS", "1 INVITE", "2147483648 OPTIONS", "11111111111 OPTIONS", "-1 OPTIONS"],
        ),
        ("i: 1", "Content-Length", &["i: 1\r\nl: -1", "i: 1\r\nl:", "i: 1\r\nl: 4294967296", "i: 1\r\nl: 1 1"]),
    ];
    for (from, name, values) in damaged {
        for value in values {
            check(&replaced(from, value), SipError::Malformed(name));
        }
    }
    for header in [": 1", "no colon", "na me: 1", "i\u{e9}: 1"] {
        check(&replaced("i: 1", header), SipError::Malformed("header"));
    }
    for end in ["i: 1\n", "i: 1\r", "i: \0", "i: 1\r\r\n"] {
        check(&replaced("i: 1", end), SipError::Malformed("line end"));
    }
}

#[test]
fn every_message_that_is_cut_short_goes_on() {
    for text in [PING, TORTUOUS.trim_end_matches("after the body")] {
        for length in 0..text.len() {
            check(&text[..length], SipError::Incomplete);
        }
        assert!(read(text).is_ok());
    }
}

#[test]
fn messages_are_bounded() {
    let filled = |headers: usize| replaced("i: 1\r\n", &format!("i: 1\r\n{}", "X: y\r\n".repeat(headers)));
    assert_eq!(read(&filled(HEADERS_MAX - 5)).unwrap().1.len(), HEADERS_MAX);
    check(&filled(HEADERS_MAX - 4), SipError::TooManyHeaders);

    let longest = PING.to_owned() + &"b".repeat(MESSAGE_BYTES_MAX - PING.len());
    assert_eq!(read(&longest).unwrap().0.body.end(), MESSAGE_BYTES_MAX);
    check(&(longest + "b"), SipError::TooLarge);

    let method = "M".repeat(METHOD_BYTES_MAX);
    let with = |method: &str| PING.replace("OPTIONS", method);
    assert_eq!(read(&with(&method)).unwrap().0.method, Method::Other);
    check(&with(&(method + "M")), SipError::Malformed("start line"));
}

proptest! {
    #[test]
    fn any_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = parse(&bytes, &mut Vec::new());
    }

    #[test]
    fn damaged_messages_stay_in_their_bytes(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), 0_usize..24), 1..6),
        whole in proptest::sample::select(vec![TORTUOUS, OK, PING]),
    ) {
        const CHARS: &[u8; 24] = b"\r\n \t\":;,<>=\\/a1\0\xffSIP.20@";
        let mut bytes = whole.as_bytes().to_vec();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = CHARS[byte];
        }
        let mut headers = Vec::new();
        if let Ok(message) = parse(&bytes, &mut headers) {
            prop_assert!(message.body.end() <= bytes.len());
            prop_assert!(headers.len() <= HEADERS_MAX);
            for header in headers {
                prop_assert_eq!(HeaderName::of(header.name_text.of(&bytes)), header.name);
                prop_assert!(header.value.end() + 2 <= usize::from(message.body.start));
            }
        }
    }
}
