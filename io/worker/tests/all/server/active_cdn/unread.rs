// SPDX-License-Identifier: Apache-2.0
//! Viewers that leave: what their origin sends for nobody, and what is counted of it.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::super::connect;
use super::told::{counters, wait_for};
use super::{Edge, LONG, Origin, body, kept, path_of, text};

/// Bytes of what is large: more than buffers hold on its way.
const LARGE: usize = 64 << 20;

/// Goal: what nobody reads any more is not fetched to its end, unless little of it is left, and who asks for it then has it whole.
#[test]
fn a_fill_that_nobody_reads_ends() {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let origin = Origin::start(move |request, stream| {
        let bytes = if path_of(request) == "/large" { LARGE } else { 1 << 20 };
        let answer = kept("", &text(bytes));
        for piece in answer.as_bytes().chunks(1 << 16) {
            if stream.write_all(piece).is_err() {
                return;
            }
            count.fetch_add(piece.len(), Ordering::SeqCst);
            if path_of(request) == "/little" {
                thread::sleep(Duration::from_millis(10));
            }
        }
    });
    let mut edge = Edge::start(origin.port);
    for (path, is_whole) in [("/little", true), ("/large", false)] {
        sent.store(0, Ordering::SeqCst);
        let mut viewer = connect(edge.port());
        viewer.write_all(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).unwrap();
        viewer.read_exact(&mut [0; 10_000]).unwrap();
        drop(viewer);
        if is_whole {
            edge.ask_until_hit(path);
            continue;
        }
        let (begun, mut before) = (Instant::now(), 0);
        loop {
            let counted = counters(&mut edge.worker).get("origin-bytes").copied().unwrap_or(0);
            let is_over = counted == before && sent.load(Ordering::SeqCst) > 0;
            if is_over && origin.count() == 2 && begun.elapsed() > Duration::from_secs(1) {
                break;
            }
            assert!(begun.elapsed() < LONG);
            before = counted;
            thread::sleep(Duration::from_millis(100));
        }
        assert!(sent.load(Ordering::SeqCst) < LARGE * 3 / 4, "{} bytes for nobody", sent.load(Ordering::SeqCst));
        assert!(body(&edge.ask(path, "")) == text(LARGE), "it is fetched anew");
    }
}

/// Goal: what is not stored counts as what came of it: not as what its head promises.
#[test]
fn bytes_of_the_origin_are_those_that_came() {
    let origin = Origin::start(|request, stream| {
        let head = "HTTP/1.1 200 OK\r\ncache-control: no-store\r\n";
        let _ = match path_of(request) {
            "/chunks" => write!(stream, "{head}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
            "/head" => write!(stream, "{head}content-length: 1000000\r\n\r\n"),
            _ => write!(stream, "{head}content-length: 1000000\r\n\r\n{}", text(10_000)),
        };
        // Until the other side has enough of it.
        let _ = stream.read(&mut [0]);
    });
    let mut edge = Edge::start(origin.port);
    assert_eq!(body(&edge.ask("/chunks", "")), "hello");
    assert_eq!(wait_for(&mut edge.worker, "origin-bytes", 5), 5);
    let mut viewer = connect(edge.port());
    viewer.write_all(b"HEAD /head HTTP/1.1\r\nhost: a\r\n\r\nGET /part HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    let mut got = Vec::new();
    while !got.ends_with(&text(10_000).into_bytes()[9000..]) {
        let mut piece = [0; 4096];
        let length = viewer.read(&mut piece).unwrap();
        got.extend_from_slice(&piece[..length]);
    }
    assert_eq!(wait_for(&mut edge.worker, "origin-bytes", 10_005), 10_005);
}
