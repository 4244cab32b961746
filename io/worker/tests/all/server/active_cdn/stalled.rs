// SPDX-License-Identifier: Apache-2.0
//! Origins that take requests and say nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use netserv_patience::grown;

use super::super::connect;
use super::{CACHE_BYTES, Edge, LONG, Origin, body, header, is_hit, is_whole, kept, path_of, status};

/// Requests of the module at a time; three quarters of them may wait for long.
const REQUESTS: u32 = 8;
const WAITS: usize = 6;
/// After so long a wait is long.
const LONG_WAIT: Duration = Duration::from_secs(2);

/// Goal: an origin that stands still does not keep what can be answered without it, whether many things are wanted of it or one: those
/// over the share are turned away after a while, later ones at once or with what is stale, and it is asked again once it is back.
#[test]
fn an_origin_that_stands_still_takes_a_share() {
    for is_same in [false, true] {
        let is_still = Arc::new(AtomicBool::new(false));
        let still = Arc::clone(&is_still);
        let origin = Origin::start(move |request, stream| {
            if still.load(Ordering::SeqCst) {
                // Until the other side gives up.
                let _ = stream.read(&mut [0]);
                return;
            }
            let answer = match path_of(request) {
                "/stale" => kept("", "stale").replace("max-age=600", "max-age=0, stale-if-error=600"),
                path => kept("", path),
            };
            let _ = stream.write_all(answer.as_bytes());
        });
        let mut edge = Edge::start_with(origin.port, CACHE_BYTES, |spec| spec.limits.requests = REQUESTS);
        edge.ask_until_hit("/page");
        edge.ask("/stale", "");
        is_still.store(true, Ordering::SeqCst);
        let (begun, before) = (Instant::now(), edge.worker.counts().requests);
        let waiting: Vec<TcpStream> = (0..REQUESTS)
            .map(|number| {
                let path = if is_same { "/same".to_owned() } else { format!("/{number}") };
                let mut stream = connect(edge.port());
                let request = format!("GET {path} HTTP/1.1\r\nhost: edge.test\r\nconnection: close\r\n\r\n");
                stream.write_all(request.as_bytes()).unwrap();
                stream
            })
            .collect();
        edge.worker.wait_for_requests(before + u64::from(REQUESTS));
        // It needs an instance, of which there is none until those over the share have been turned away.
        let part = edge.ask("/page", "range: bytes=1-2\r\n");
        assert!(is_hit(&part) && body(&part) == "pa", "{part}");
        assert!(begun.elapsed() < grown(2 * LONG_WAIT), "{:?}", begun.elapsed());

        let mut times: Vec<Duration> = Vec::new();
        for number in 0..4 {
            for path in [&format!("/other-{number}"), "/stale"] {
                let begun = Instant::now();
                let answer = edge.ask(path, "");
                times.push(begun.elapsed());
                match path {
                    "/stale" => assert!(is_hit(&answer) && body(&answer) == "stale", "{answer}"),
                    _ => assert_eq!((status(&answer), header(&answer, "retry-after")), (503, Some("2")), "{answer}"),
                }
            }
        }
        // One request may test whether the origin is back, and other tests use the cores, too. So most do not wait.
        times.sort();
        assert!(times[times.len() / 2] < LONG_WAIT / 2, "they do not wait: {times:?}");

        let left = || waiting.iter().filter(|stream| !is_over(stream)).count();
        let begun = Instant::now();
        while left() > WAITS {
            assert!(begun.elapsed() < LONG, "{} wait on", left());
            thread::sleep(Duration::from_millis(5));
        }
        assert!(left() > 0, "a share may wait");
        is_still.store(false, Ordering::SeqCst);
        drop(waiting);
        let begun = Instant::now();
        while !is_whole(&edge.ask("/back", "")) || status(&edge.ask("/back-too", "")) != 200 {
            assert!(begun.elapsed() < LONG, "it is not asked again");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Returns whether something came on a connection.
fn is_over(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    stream.peek(&mut [0]).is_ok()
}
