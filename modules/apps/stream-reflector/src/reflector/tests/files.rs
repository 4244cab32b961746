// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::limits::{FILE_MS_MAX, FILES_MAX, JOIN_BYTES_MAX, SAME_AGAIN_MAX};

const FILE_HEAD: &[u8] = b"HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n";

/// A server sends a file whenever it is asked, and closes the connection; for so long.
fn serve(bench: &mut Bench, frames: usize, ms: u64) {
    let mut served = 0;
    for _ in 0..ms / 50 {
        let id = bench.node.opened.last().unwrap().0;
        if id >= FIRST + served && !bench.node.closed.contains(&id) {
            served = id - FIRST + 1;
            bench.server(id, FILE_HEAD);
            for first in (0..frames).step_by(40) {
                bench.server(id, &mp3s(first..frames.min(first + 40)));
            }
            bench.closed(id);
        }
        bench.wait(50);
    }
}

/// Goal: a file without a length, however long, comes once to each of its listeners, to its end; who asks for it later gets it from its
/// server.
#[test]
fn a_file_comes_once() {
    for frames in [20, 600, 1000] {
        assert!(frames == 20 || frames * MP3_BYTES > 2 * JOIN_BYTES_MAX);
        let mut bench = Bench::new();
        bench.listen(1, "");
        serve(&mut bench, frames, 5000);
        if frames > 20 {
            bench.listen(2, "");
            assert_eq!(bench.node.count(Counter::Passed), 1, "it has its own connection");
            assert!(!bench.node.closed.contains(&1), "it has the rest to hear");
        }
        serve(&mut bench, frames, 30_000);
        assert!(bench.node.body(1) == mp3s(0..frames - 1), "{} frames", bench.node.body(1).len() / MP3_BYTES);
        assert!(bench.node.closed.contains(&1) && bench.reflector.streams.is_empty());
        let opened = bench.node.opened.len();
        assert!(opened <= 3 + usize::try_from(SAME_AGAIN_MAX).unwrap(), "{opened}");
        bench.listen(3, "");
        let id = bench.node.opened.last().unwrap().0;
        assert_eq!(
            (bench.node.to_server(id), bench.reflector.streams.len()),
            (&b"GET /live HTTP/1.1\r\nHost: radio\r\n\r\n"[..], 0)
        );
        bench.now_ms += FILE_MS_MAX + 1;
        bench.listen(4, "");
        assert_eq!(bench.reflector.streams.len(), 1, "it may be a stream by now");
    }
}

/// Goal: a radio that plays something to each new listener first goes on after an outage.
#[test]
fn a_radio_that_begins_the_same_each_time_is_no_file() {
    let mut bench = Bench::new();
    bench.listen(1, "");
    bench.server(FIRST, b"ICY 200 OK\r\n\r\n");
    bench.server(FIRST, &mp3s(0..5));
    bench.server(FIRST, &mp3s(5..400));
    bench.wait(5000);
    bench.closed(FIRST);
    bench.wait(500);
    bench.server(FIRST + 1, b"ICY 200 OK\r\n\r\n");
    bench.server(FIRST + 1, &mp3s(0..300));
    bench.server(FIRST + 1, &mp3s(1000..1010));
    bench.wait(20_000);
    assert!(bench.node.body(1) == [mp3s(0..399), mp3s(0..300), mp3s(1000..1009)].concat());
    assert!(!bench.node.closed.contains(&1));
}

#[test]
fn only_so_many_files_are_known() {
    let mut bench = Bench::new();
    for file in 0..FILES_MAX as u64 + 2 {
        bench.connect(file);
        bench.client(file, format!("GET /{file} HTTP/1.0\r\n\r\n").as_bytes());
        serve(&mut bench, 20, 10_000);
        assert!(bench.node.closed.contains(&file));
    }
    assert_eq!(bench.reflector.files.len(), FILES_MAX);
}

/// Goal: an answer that ends before it is known what it is comes as it is, and others ask for themselves.
#[test]
fn an_odd_short_answer_comes_as_it_is() {
    let short = [FILE_HEAD, &mp3s(0..1)].concat();
    for answer in
        [&b"goodbye\n"[..], b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n", &short]
    {
        let mut bench = Bench::new();
        bench.listen(1, "");
        bench.listen(2, "DNT: 1\r\n");
        bench.server(FIRST, answer);
        bench.reflector.end(&mut bench.node, 0, FIRST);
        assert_eq!(bench.node.to_client(1), answer);
        assert!(bench.node.closed.contains(&1));
        assert_eq!(bench.node.to_server(FIRST + 1), b"GET /live HTTP/1.1\r\nHost: radio\r\nDNT: 1\r\n\r\n");
        bench.closed(FIRST);
        bench.closed(1);
        bench.closed(2);
        assert!(bench.reflector.is_idle() && bench.reflector.passing.is_empty());
    }
}

/// Goal: a server that is slow to say what it has is waited for as without the module.
#[test]
fn a_slow_answer_is_waited_for() {
    let mut bench = Bench::new();
    bench.listen(1, "");
    bench.server(FIRST, b"HTTP/1.0 200 OK\r\n");
    bench.wait(11_000);
    assert_eq!(bench.node.to_client(1), b"HTTP/1.0 200 OK\r\n");
    bench.server(FIRST, b"\r\nlate");
    assert!(bench.node.to_client(1).ends_with(b"\r\nlate") && !bench.node.closed.contains(&1));
}
