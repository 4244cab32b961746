// SPDX-License-Identifier: Apache-2.0
//! Clients that want others to get something else, or more than there is.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use super::{CACHE_BYTES, Edge, Origin, body, header, is_hit, is_whole, kept, path_of, status, talk, text};

/// Variants of one response that are kept, as `modules/apps/active-cdn` bounds them.
const VARIANTS_MAX: usize = 64;

/// Goal: a body that is none, which nobody knew from its head, is the client's fault, and not the origin's.
#[test]
fn whose_fault_a_body_is_is_said() {
    let origin = Origin::start(|_, stream| while stream.read(&mut [0; 4096]).is_ok_and(|length| length > 0) {});
    let edge = Edge::start(origin.port);
    let request = "POST /a HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n\r\n0\r\n\r\n";
    let answer = talk(edge.port(), request.as_bytes());
    assert_eq!(status(&answer), 400, "{answer}");
}

/// Goal: what a client hides in a request is no request for the origin, and no answer for anybody.
/// Method: the origin notes all that comes on each connection, and says for what an answer is.
#[test]
fn nothing_is_smuggled_to_the_origin() {
    let origin = Origin::start(|request, stream| {
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let (mut rest, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(length @ 1..) = stream.read(&mut piece) {
            rest.extend_from_slice(&piece[..length]);
        }
        let all = format!("{request}{}", String::from_utf8_lossy(&rest));
        let requests = all.matches(" HTTP/1.1\r\n").count();
        let _ = stream.write_all(kept("", &format!("{requests} at {}", path_of(&all))).as_bytes());
    });
    let edge = Edge::start(origin.port);
    let smuggled = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";
    let request = |first: &str, lines: &str, body: &str| format!("{first} HTTP/1.1\r\nhost: a\r\n{lines}\r\n{body}");
    for (first, lines, body) in [
        ("POST /a", "content-length: 6\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n"),
        ("POST /a", "transfer-encoding: chunked\r\ncontent-length: 100\r\n", "0\r\n\r\n"),
        ("GET /a", "content-length: 6\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n"),
        ("POST /a", "content-length: 0\r\ncontent-length: 44\r\n", ""),
        ("GET /a", "transfer-encoding: xchunked\r\n", ""),
        ("GET /a", "transfer-encoding : chunked\r\n", "0\r\n\r\n"),
        ("GET /a", "x: 1\r\n folded\r\n", ""),
        ("GET /a", "x: a\rb: c\r\n", ""),
        ("GET /a", "x: \0\r\n", ""),
        ("GET /a", "upgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\nconnection: upgrade, http2-settings\r\n", ""),
        ("GET /a", "connection: content-length, host, transfer-encoding\r\ncontent-length: 0\r\n", ""),
        ("GET /a b", "", ""),
    ] {
        let answer = talk(edge.port(), format!("{}{smuggled}", request(first, lines, body)).as_bytes());
        for answer in answer.split("HTTP/1.1 ").skip(1).filter(|answer| answer.starts_with("200")) {
            let said = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
            assert!(said == "1 at /a" || said == "1 at /smuggled", "{lines:?}: {answer}");
        }
        assert!([200, 400, 501, 502].contains(&status(&answer)), "{lines:?}: {answer}");
    }
    // What looks like the end of a line is part of a name.
    let split = edge.ask("/%0d%0aset-cookie:%20a=b%0d%0a%0d%0a", "");
    assert!(body(&split).starts_with("1 at /%0d%0aset-cookie"), "{split}");
    assert!(!edge.ask("/a", "").contains("smuggled"));
}

/// Goal: whatever range is wanted, the answer is a part of the body as its head says, all of it, or 416.
#[test]
fn absurd_ranges_get_what_there_is() {
    let whole = text(100_000);
    let origin = Origin::saying(&kept("etag: \"1\"\r\n", &whole));
    let edge = Edge::start(origin.port);
    edge.ask_until_hit("/a");
    let many = |part: &str, count: usize| format!("bytes={}", vec![part; count].join(","));
    let absurd = [
        "bytes=0-18446744073709551615".to_owned(),
        "bytes=0-18446744073709551616".to_owned(),
        "bytes=18446744073709551615-".to_owned(),
        "bytes=99999999999999999999999-".to_owned(),
        "bytes=-0".to_owned(),
        "bytes=-18446744073709551616".to_owned(),
        "bytes=5-2".to_owned(),
        "bytes=--1".to_owned(),
        "bytes=+1-2".to_owned(),
        "bytes=0x1-0x2".to_owned(),
        "bytes=-".to_owned(),
        "bytes=".to_owned(),
        "bytes".to_owned(),
        "lines=0-1".to_owned(),
        "bytes=100000-".to_owned(),
        "bytes=99999-100000".to_owned(),
        "bytes=0-0, 99999-".to_owned(),
        many("0-", 1300),
        many("0-0", 1300),
        many("-100000", 1000),
    ];
    for range in &absurd {
        for more in ["", "if-range: \"1\"\r\n", "if-range: \"2\"\r\n"] {
            let answer = edge.ask("/a", &format!("range: {range}\r\n{more}"));
            let short = &range[..range.len().min(40)];
            assert!(is_whole(&answer), "{short}");
            match status(&answer) {
                200 => assert_eq!(body(&answer), whole, "{short}"),
                206 => {
                    let said = header(&answer, "content-range").unwrap();
                    let (first, last) = said.trim_start_matches("bytes ").split_once('-').unwrap();
                    let (first, last): (usize, usize) =
                        (first.parse().unwrap(), last.split('/').next().unwrap().parse().unwrap());
                    assert_eq!(body(&answer), whole[first..=last], "{short}");
                }
                416 => assert_eq!(body(&answer), "", "{short}"),
                other => panic!("{short}: {other}"),
            }
        }
    }
    assert_eq!(origin.count(), 1, "none goes to the origin");
    // Of what is not stored, too, the origin gets no more than what was asked.
    let answer = edge.ask("/b", &format!("range: {}\r\n", many("0-0", 1300)));
    assert!([200, 206, 416].contains(&status(&answer)));
}

/// Goal: a client that makes up variants takes only the room of one response's, and gets no other variant's body.
#[test]
fn variants_that_a_client_makes_up_are_bounded() {
    let origin = Origin::start(|request, stream| {
        let line = |name: &str| header(request, name).unwrap_or("none").to_owned();
        let names = path_of(request).split('?').nth(1).unwrap_or("x-kind").to_owned();
        let said: Vec<String> = names.split('&').take(12).map(line).collect();
        let vary = names.replace('&', ", ");
        let _ = stream.write_all(kept(&format!("vary: {vary}\r\n"), &said.join(" ")).as_bytes());
    });
    let mut edge = Edge::start(origin.port);
    let ask = |edge: &Edge, kind: usize| {
        let answer = edge.ask("/a", &format!("x-kind: {kind}\r\n"));
        assert_eq!(body(&answer), kind.to_string(), "{answer}");
        is_hit(&answer)
    };
    for kind in 0..3 * VARIANTS_MAX {
        ask(&edge, kind);
    }
    let hits = (0..3 * VARIANTS_MAX).filter(|kind| ask(&edge, *kind)).count();
    assert!((1..=VARIANTS_MAX).contains(&hits), "{hits} are kept");
    // Names that select differ from answer to answer: each gets what it asks for all the same.
    for number in 0..50 {
        let names: Vec<String> = (0..=number % 10).map(|at| format!("x-{}", at + number)).collect();
        let mut lines = String::new();
        names.iter().for_each(|name| write!(lines, "{name}: {name}-value\r\n").unwrap());
        let path = format!("/b?{}", names.join("&"));
        let expected: Vec<String> = names.iter().map(|name| format!("{name}-value")).collect();
        for _ in 0..2 {
            assert_eq!(body(&edge.ask(&path, &lines)), expected.join(" "), "{path}");
            assert_eq!(body(&edge.ask(&path, "")), vec!["none"; names.len()].join(" "), "{path}");
        }
    }
    assert_eq!(edge.worker.counts().failed, 0);
}

/// Goal: no line of one client's request that is not in the key changes what others get.
/// Method: the origin says in the body what it read of the request.
#[test]
fn what_one_client_sends_does_not_become_what_others_get() {
    let origin = Origin::start(|request, stream| {
        let said = request.to_ascii_lowercase().contains("evil");
        let body = if said { format!("poisoned by {request}") } else { "clean".to_owned() };
        let _ = stream.write_all(kept("", &body).as_bytes());
    });
    let edge = Edge::start(origin.port);
    let evil = [
        "x-forwarded-host: evil.test\r\n",
        "x-forwarded-scheme: evil\r\n",
        "x-forwarded-port: 1\r\nx-forwarded-prefix: /evil\r\n",
        "x-host: evil.test\r\n",
        "x-forwarded-proto: evil\r\n",
        "x-forwarded-protocol: evil\r\nx-forwarded-ssl: evil\r\n",
        "x-url-scheme: evil\r\nx-scheme: evil\r\nfront-end-https: evil\r\n",
        "x-forwarded-for: evil\r\nx-real-ip: evil\r\nx-forwarded-by: evil\r\n",
        "x-forwarded-path: /evil\r\nx-forwarded-uri: /evil\r\nx-original-uri: /evil\r\nx-original-proto: evil\r\n",
        "x-original-url: /evil\r\n",
        "x-rewrite-url: /evil\r\n",
        "x-http-method-override: EVIL\r\n",
        "forwarded: host=evil.test\r\n",
        "x-forwarded-server: evil.test\r\n",
        "x-http-host-override: evil.test\r\n",
        "x-original-host: evil.test\r\n",
        "x-method-override: EVIL\r\n",
        "x-http-method: EVIL\r\n",
        "base-url: http://evil.test/\r\n",
        "proxy: http://evil.test/\r\n",
        "range: bytes=0-evil\r\n",
        "if-range: \"evil\"\r\n",
        "connection: x-evil\r\nx-evil: evil\r\n",
        "te: evil\r\ntrailer: evil\r\n",
    ];
    for (number, lines) in evil.iter().enumerate() {
        let path = format!("/{number}");
        edge.ask(&path, lines);
        assert_eq!(body(&edge.ask_until_hit(&path)), "clean", "{lines}");
    }
    for (number, head) in [
        "GET {} HTTP/1.1\r\nhost: evil.test\r\n",
        "GET http://evil.test{} HTTP/1.1\r\nhost: edge.test\r\n",
        "GET {} HTTP/1.0\r\nhost: evil.test\r\n",
        "GET {} HTTP/1.0\r\n",
    ]
    .iter()
    .enumerate()
    {
        let path = format!("/host-{number}");
        let answer = talk(edge.port(), format!("{}connection: close\r\n\r\n", head.replace("{}", &path)).as_bytes());
        assert!(!answer.contains("poisoned"), "{answer}");
        assert_eq!(body(&edge.ask(&path, "")), "clean");
        assert!(origin.last().contains(&format!("host: 127.0.0.1:{}\r\n", origin.port)), "{}", origin.last());
    }
}

/// Goal: nobody but the user takes something out of the cache; HTTP alone decides what a client's request makes stale.
#[test]
fn clients_do_not_purge() {
    let origin = Origin::start(|request, stream| {
        let answer = if request.starts_with("GET ") {
            kept("surrogate-key: news\r\n", "the page")
        } else {
            "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_owned()
        };
        let _ = stream.write_all(answer.as_bytes());
    });
    let edge = Edge::start(origin.port);
    edge.ask_until_hit("/a");
    for request in [
        "PURGE /a HTTP/1.1\r\nhost: edge.test\r\n",
        "BAN /a HTTP/1.1\r\nhost: edge.test\r\n",
        "PURGE /* HTTP/1.1\r\nhost: edge.test\r\nsurrogate-key: news\r\n",
        "REFRESH /a HTTP/1.1\r\nhost: edge.test\r\n",
        "DELETE /a HTTP/1.1\r\nhost: edge.test\r\n",
        "POST /a HTTP/1.1\r\nhost: edge.test\r\ncontent-length: 0\r\n",
        "TELL /a HTTP/1.1\r\nhost: edge.test\r\ntopic: purge\r\n",
    ] {
        let answer = talk(edge.port(), format!("{request}connection: close\r\n\r\n").as_bytes());
        assert_eq!(status(&answer), 405, "{request}: {answer}");
        assert!(is_hit(&edge.ask("/a", "")), "{request}");
    }
}

/// Goal: a few bytes of what is not stored cost the origin a few bytes, whatever the query. Method: ranges as players probe with.
#[test]
fn a_few_bytes_with_a_query_of_their_own_cost_a_few_bytes() {
    let origin = Origin::start(|request, stream| {
        let _ = match header(request, "range") {
            Some("bytes=0-0") => stream.write_all(
                b"HTTP/1.1 206 Partial Content\r\ncache-control: max-age=600\r\ncontent-range: bytes 0-0/9000000\r\ncontent-length: 1\r\n\r\na",
            ),
            _ => stream.write_all(kept("", &text(9_000_000)).as_bytes()),
        };
    });
    let edge = Edge::start(origin.port);
    for number in 0..5 {
        let answer = edge.ask(&format!("/film.mp4?{number}"), "range: bytes=0-0\r\n");
        assert_eq!((status(&answer), &*body(&answer)), (206, "a"), "{answer}");
        assert_eq!(header(&origin.last(), "range"), Some("bytes=0-0"));
    }
    // What is stored has its parts.
    edge.ask("/film.mp4", "");
    edge.ask_until_hit("/film.mp4");
    let part = edge.ask("/film.mp4", "range: bytes=0-0\r\n");
    assert!(status(&part) == 206 && is_hit(&part), "{part}");
}

/// Goal: what an answer shows to be for one kind of client only is for that kind, although its origin does not say `Vary`.
#[test]
fn what_is_made_of_a_request_is_for_requests_like_it() {
    let origin = Origin::start(|request, stream| {
        let by_origin = header(request, "origin").map(|origin| format!("access-control-allow-origin: {origin}\r\n"));
        let by_coding = header(request, "accept-encoding").map(|_| "content-encoding: gzip\r\n".to_owned());
        let lines = by_origin.or(by_coding).unwrap_or_default();
        let _ = stream.write_all(kept(&lines, "hello").as_bytes());
    });
    let edge = Edge::start(origin.port);
    for _ in 0..2 {
        for site in ["https://a.example", "https://b.example"] {
            let answer = edge.ask("/font", &format!("origin: {site}\r\n"));
            assert_eq!(header(&answer, "access-control-allow-origin"), Some(site), "{answer}");
        }
        assert_eq!(status(&edge.ask("/page", "accept-encoding: gzip\r\n")), 200);
        let plain = edge.ask("/page", "");
        assert_eq!(header(&plain, "content-encoding"), None, "{plain}");
    }
}

/// Goal: browsers share a coded answer, however each of them lists the codings that it takes, and none gets one that it does not take.
#[test]
fn browsers_share_what_is_coded() {
    let origin = Origin::start(|request, stream| {
        let takes = header(request, "accept-encoding").unwrap_or_default();
        let coding = ["deflate", "br", "gzip"].into_iter().find(|coding| takes.contains(coding)).unwrap_or("identity");
        let lines = format!("vary: accept-encoding\r\ncontent-encoding: {coding}\r\n");
        let _ = stream.write_all(kept(&lines, "hello").as_bytes());
    });
    let edge = Edge::start(origin.port);
    for _ in 0..2 {
        for (line, expected) in [
            ("gzip, deflate, br, zstd", "br"),
            ("deflate, gzip, br, zstd", "br"),
            ("zstd, br;q=1.0, gzip;q=0.8, deflate;q=0.6", "br"),
            ("gzip, deflate", "gzip"),
            ("gzip", "gzip"),
            ("gzip;q=1.0, deflate;q=0.6, identity;q=0.3", "gzip"),
            ("identity", "identity"),
            ("deflate", "identity"),
            ("x-made-up", "identity"),
        ] {
            let answer = edge.ask("/page", &format!("accept-encoding: {line}\r\n"));
            assert_eq!(header(&answer, "content-encoding"), Some(expected), "{line}: {answer}");
        }
    }
    assert_eq!(origin.count(), 3, "one for each way of coding");
    // A list that cannot be said in another way is the origin's to read.
    edge.ask("/other", "accept-encoding: *;q=0.5\r\n");
    assert_eq!(header(&origin.last(), "accept-encoding"), Some("*;q=0.5"));
}

/// Goal: one place is stored once, however clients spell it.
#[test]
fn a_place_is_stored_once_however_it_is_spelled() {
    let origin = Origin::saying(&kept("", "hello"));
    let edge = Edge::start(origin.port);
    edge.ask("/~a/x%2Fy", "");
    edge.ask_until_hit("/~a/x%2Fy");
    let before = origin.count();
    for path in ["/%7Ea/x%2fy", "/%7e%61/%78%2Fy"] {
        assert!(is_hit(&edge.ask(path, "")), "{path}");
    }
    assert_eq!(origin.count(), before);
}

/// Goal: the origin is told who asks, and not what a viewer forged, of what is stored as of what is not; and what the provider adds.
#[test]
fn the_origin_is_told_who_asks() {
    let origin = Origin::saying(&kept("", "hello"));
    let edge = Edge::start_with(origin.port, CACHE_BYTES, |spec| {
        spec.properties.insert("origin-headers".to_owned(), "x-key: secret".to_owned());
    });
    let forged = "x-forwarded-for: 6.6.6.6\r\nforwarded: for=6.6.6.6\r\nx-real-ip: 6.6.6.6\r\nx-key: 6.6.6.6\r\n";
    for (path, lines) in [("/stored", ""), ("/not", "cache-control: no-store\r\n"), ("/part", "range: bytes=5-\r\n")] {
        edge.ask(path, &format!("{forged}{lines}"));
        let seen = origin.last();
        assert_eq!(path_of(&seen), path);
        assert_eq!(header(&seen, "x-forwarded-for"), Some("127.0.0.1"), "{seen}");
        assert_eq!(header(&seen, "forwarded"), Some("for=127.0.0.1;proto=http"), "{seen}");
        assert!(header(&seen, "x-key") == Some("secret") && !seen.contains("6.6.6.6"), "{seen}");
    }
}
