// SPDX-License-Identifier: Apache-2.0
//! Origins that take longer than an instance may.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::super::{body, status, talk};
use super::{CACHE_BYTES, Edge, Origin, is_hit, kept};

/// How long an instance may take, and an origin that is late.
const REQUEST_MS: u32 = 1000;
const LATE: Duration = Duration::from_millis(2500);

/// Goal: what nobody keeps comes however long its origin takes. Method: requests of each route that goes by the cache.
#[test]
fn what_is_not_kept_takes_as_long_as_its_origin() {
    let origin = Origin::start(|_, stream| {
        thread::sleep(LATE);
        let _ = stream.write_all(kept("", "late").as_bytes());
    });
    let edge = Edge::start_with(origin.port, CACHE_BYTES, |spec| spec.limits.request_ms = REQUEST_MS);
    let port = edge.port();
    thread::scope(|scope| {
        for (method, lines) in [
            ("POST", "content-length: 3\r\n\r\nabc"),
            ("PUT", "content-length: 0\r\n\r\n"),
            ("DELETE", "\r\n"),
            ("HEAD", "\r\n"),
            ("GET", "range: bytes=5-\r\n\r\n"),
            ("GET", "cache-control: no-store\r\n\r\n"),
        ] {
            scope.spawn(move || {
                let head = format!("{method} /{method} HTTP/1.1\r\nhost: edge.test\r\nconnection: close\r\n{lines}");
                let answer = talk(port, head.as_bytes());
                assert_eq!(status(&answer), 200, "{method} {lines}: {answer}");
                assert!(method == "HEAD" || body(&answer) == "late", "{answer}");
            });
        }
    });
}

/// Goal: what a change made wrong is not served, although no instance saw that it came about.
#[test]
fn a_change_that_takes_long_leaves_nothing_that_is_wrong() {
    let changes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&changes);
    let origin = Origin::start(move |request, stream| {
        if request.starts_with("POST ") {
            thread::sleep(LATE);
            counted.fetch_add(1, Ordering::SeqCst);
        }
        let _ = stream.write_all(kept("", &format!("after {}", counted.load(Ordering::SeqCst))).as_bytes());
    });
    let edge = Edge::start_with(origin.port, CACHE_BYTES, |spec| spec.limits.request_ms = REQUEST_MS);
    edge.ask("/page", "");
    assert_eq!(body(&edge.ask_until_hit("/page")), "after 0");
    let port = edge.port();
    let change = thread::spawn(move || {
        talk(port, b"POST /page HTTP/1.1\r\nhost: edge.test\r\nconnection: close\r\ncontent-length: 2\r\n\r\nab")
    });
    while is_hit(&edge.ask("/page", "")) {
        assert!(!change.is_finished(), "the page is served that is wrong");
        thread::sleep(Duration::from_millis(20));
    }
    // What is asked for while the change is under way is kept by nobody.
    edge.ask("/page", "");
    let changed = change.join().unwrap();
    assert_eq!((status(&changed), body(&changed).as_str()), (200, "after 1"));
    assert_eq!(body(&edge.ask("/page", "")), "after 1");
}
