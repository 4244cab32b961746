// SPDX-License-Identifier: Apache-2.0
//! What people reported of other caches, tried with active-cdn as they would. Each test names the report.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::super::{connect, talk};
use super::{Edge, LONG, Origin, body, header, is_hit, path_of, status};

/// Has an origin say `first` to the first request for each path, and `later` to all others.
fn twice(first: &'static str, later: &'static str) -> Origin {
    Origin::start(move |request, stream| {
        let is_first = !request.contains("if-none-match:");
        let _ = stream.write_all(if is_first { first } else { later }.as_bytes());
    })
}

/// `github.com/squid-cache/squid/pull/2401`, `github.com/varnishcache/varnish-cache/issues/3169`: a 304 whose head speaks of another body than the
/// stored one had viewers get an empty one, or one that they were to decompress.
#[test]
fn a_304_changes_nothing_of_the_body() {
    let origin = twice(
        "HTTP/1.1 200 OK\r\netag: \"foo\"\r\ncache-control: no-cache\r\ncontent-length: 4\r\n\r\npage",
        "HTTP/1.1 304 Not Modified\r\netag: W/\"foo\"\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\nx-new: yes\r\n\r\n",
    );
    let edge = Edge::start(origin.port);
    let mut validated = 0;
    // An answer is stored a moment after its last byte has left; until then the origin is asked again.
    while validated < 2 {
        let answer = edge.ask("/a", "accept-encoding: gzip\r\n");
        validated += usize::from(header(&answer, "x-new").is_some());
        assert!(origin.count() < 100, "{answer}");
        assert_eq!(
            (status(&answer), body(&answer).as_str(), header(&answer, "content-length")),
            (200, "page", Some("4"))
        );
        assert!(header(&answer, "content-encoding").is_none(), "{answer}");
    }
}

/// `github.com/apache/trafficserver/pull/9877`: a 204 from the cache had a `content-length`.
#[test]
fn a_204_has_no_length() {
    let origin = Origin::saying("HTTP/1.1 204 No Content\r\ncache-control: max-age=600\r\n\r\n");
    let edge = Edge::start(origin.port);
    for _ in 0..3 {
        let answer = edge.ask("/a", "");
        assert!(status(&answer) == 204 && header(&answer, "content-length").is_none(), "{answer}");
        assert!(answer.ends_with("\r\n\r\n") && header(&answer, "transfer-encoding").is_none(), "{answer}");
    }
    assert_eq!(origin.count(), 1);
}

/// `github.com/varnishcache/varnish-cache/issues/4089`: a part of something whose length the origin does not know became 503, or 416.
#[test]
fn a_part_of_something_without_a_length_is_passed() {
    let origin = Origin::start(|request, stream| {
        assert!(request.to_ascii_lowercase().contains("range: bytes=5-7"));
        let head = "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes 5-7/*\r\ncontent-length: 3\r\n\r\n567";
        let _ = stream.write_all(head.as_bytes());
    });
    let edge = Edge::start(origin.port);
    for _ in 0..3 {
        let answer = edge.ask("/a", "range: bytes=5-7\r\ncache-control: no-cache\r\n");
        assert_eq!((status(&answer), body(&answer).as_str()), (206, "567"));
        assert_eq!(header(&answer, "content-range"), Some("bytes 5-7/*"));
    }
}

/// `github.com/varnishcache/varnish-cache/issues/4081`: who asks for all by `bytes=0-` while nothing is stored has 200, and some players end there.
#[test]
fn all_by_a_range_is_a_part() {
    let origin = Origin::saying("HTTP/1.1 200 OK\r\ncache-control: max-age=600\r\ncontent-length: 4\r\n\r\npage");
    let edge = Edge::start(origin.port);
    for _ in 0..2 {
        let answer = edge.ask("/a", "range: bytes=0-\r\n");
        assert_eq!(
            (status(&answer), header(&answer, "content-range"), body(&answer).as_str()),
            (206, Some("bytes 0-3/4"), "page")
        );
    }
}

/// `github.com/freeunitorg/freeunit/issues/106`, `github.com/xroche/httrack/issues/855`: a body in chunks with a trailer section was cut off.
#[test]
fn chunks_with_trailers_come_whole() {
    let origin = Origin::start(|request, stream| {
        let control = if path_of(request) == "/kept" { "max-age=600" } else { "no-store" };
        let chunks = "5\r\nhello\r\n6\r\n world\r\n0\r\nx-sum: 1\r\nx-more: 2\r\n\r\n";
        let _ = write!(
            stream,
            "HTTP/1.1 200 OK\r\ncache-control: {control}\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n{chunks}"
        );
        // The connection stays, by which the next request may come.
        let _ = stream.read(&mut [0]);
    });
    let edge = Edge::start(origin.port);
    for path in ["/kept", "/passed", "/kept", "/passed"] {
        assert_eq!(body(&edge.ask(path, "")), "hello world", "{path}");
    }
    assert!(is_hit(&edge.ask("/kept", "")));
}

/// `github.com/caddyserver/cache-handler/issues/59` and `issues/112`, `github.com/tempesta-tech/tempesta/issues/416`: `HEAD` said that nothing was
/// there, said its length twice, or left an empty page for `GET`.
#[test]
fn a_head_says_the_length_once_and_leaves_no_empty_page() {
    let origin = Origin::start(|request, stream| {
        let head = "HTTP/1.1 200 OK\r\ncache-control: max-age=600\r\ncontent-length: 4\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        if request.starts_with("GET ") {
            let _ = stream.write_all(b"page");
        }
    });
    let edge = Edge::start(origin.port);
    let head = || talk(edge.port(), b"HEAD /a HTTP/1.1\r\nhost: edge.test\r\nconnection: close\r\n\r\n");
    let lengths = |answer: &str| answer.to_ascii_lowercase().matches("content-length: 4\r\n").count();
    let before = head();
    assert!(lengths(&before) == 1 && body(&before).is_empty(), "{before}");
    assert_eq!(body(&edge.ask_until_hit("/a")), "page");
    let after = head();
    assert!(lengths(&after) == 1 && body(&after).is_empty() && is_hit(&after), "{after}");
}

/// `github.com/fabiolb/fabio/pull/739`, `github.com/mattrobinsonsre/terrapod/pull/71`: events waited in a proxy until more of them came. Method: the
/// origin sends each once its viewer has the one before, the first one once that has the head.
#[test]
fn events_wait_for_no_other_ones() {
    let had = Arc::<AtomicUsize>::default();
    let seen = Arc::clone(&had);
    let origin = Origin::start(move |request, stream| {
        let control = path_of(request).split_once('?').map_or("", |(_, control)| control);
        let _ = write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{control}\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        for number in 1..=3 {
            let begun = Instant::now();
            while seen.load(Ordering::SeqCst) < number && begun.elapsed() < LONG {
                thread::sleep(Duration::from_millis(5));
            }
            let _ = stream.write_all(format!("9\r\ndata: {number}\n\n\r\n").as_bytes());
        }
        let _ = stream.write_all(b"0\r\n\r\n");
    });
    let edge = Edge::start(origin.port);
    for control in ["x-control:none", "cache-control:no-cache", "cache-control:max-age=60"] {
        had.store(0, Ordering::SeqCst);
        let mut viewer = connect(edge.port());
        write!(viewer, "GET /events?{control} HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip\r\n\r\n").unwrap();
        let (mut all, mut piece) = (String::new(), [0; 4096]);
        for awaited in ["\r\n\r\n", "data: 1\n\n", "data: 2\n\n", "data: 3\n\n"] {
            while !all.contains(awaited) {
                let length = viewer.read(&mut piece).unwrap();
                assert!(length > 0, "{control}: {all}");
                all.push_str(&String::from_utf8_lossy(&piece[..length]));
            }
            had.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// `github.com/caddyserver/caddy/issues/5074`: lines of an early hint (103) became lines of the answer.
#[test]
fn an_early_hint_is_no_part_of_the_answer() {
    let origin = Origin::saying(
        "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\nx-hint: 1\r\n\r\n\
         HTTP/1.1 200 OK\r\ncache-control: max-age=600\r\ncontent-length: 4\r\n\r\npage",
    );
    let edge = Edge::start(origin.port);
    for _ in 0..2 {
        let answer = edge.ask("/a", "");
        let last = answer.rfind("HTTP/1.1 ").map_or("", |at| &answer[at..]);
        assert!(status(last) == 200 && header(last, "x-hint").is_none() && body(last) == "page", "{answer}");
    }
    // On a connection that goes on, the next answer is the next request's.
    let mut viewer: TcpStream = connect(edge.port());
    viewer
        .write_all(b"GET /b HTTP/1.1\r\nhost: a\r\n\r\nGET /a HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut all = String::new();
    viewer.read_to_string(&mut all).unwrap();
    assert_eq!(all.matches("page").count(), 2, "{all}");
}
