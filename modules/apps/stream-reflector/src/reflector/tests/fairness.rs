// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::limits::{
    ASKED_BYTES_MAX, PASSED_QUEUED_AGAIN, PASSED_QUEUED_MAX, PIECE_BYTES_MIN, REQUEST_HEAD_BYTES_MAX,
    UNANSWERED_BYTES_MAX, WAITING_BYTES_MAX,
};

/// Goal: requests that never end take no more memory than they may; the longest of them are their servers', and others go on to share.
#[test]
fn slow_requests_leave_others_their_stream() {
    let mut bench = Bench::new();
    let piece = [b"GET / HTTP/1.1\r\n", &vec![b'a'; REQUEST_HEAD_BYTES_MAX - 100][..]].concat();
    bench.connect(500);
    bench.client(500, b"GET /live HTTP/1.1\r\nHost: ra");
    let most = (ASKED_BYTES_MAX / piece.len()) as u64;
    for id in 0..most + 10 {
        bench.connect(id);
        bench.client(id, &piece);
    }
    assert_eq!(bench.node.opened.len(), 10);
    let opened = bench.node.opened.len();
    bench.listen(501, "");
    bench.client(500, b"dio\r\n\r\n");
    assert_eq!(bench.reflector.streams.values().map(|stream| stream.waiting.len()).collect::<Vec<_>>(), [2]);
    assert_eq!(bench.node.opened.len(), opened + 1, "both have one connection");
}

/// Goal: those who wait for a server that does not answer take no more memory than they may, and leave other streams alone.
#[test]
fn who_waits_for_an_answer_leaves_others_their_stream() {
    let mut bench = Bench::new();
    let long = format!("User-Agent: {}\r\n", "a".repeat(4000));
    let most = UNANSWERED_BYTES_MAX / long.len() + 1;
    (0..most as u64 + 5).for_each(|id| drop(bench.listen(id, &long)));
    assert!((5..=7).contains(&bench.node.count(Counter::Passed)), "{}", bench.node.count(Counter::Passed));
    let passed = bench.node.count(Counter::Passed);
    bench.connect(500);
    bench.client(500, b"GET /other HTTP/1.0\r\n\r\n");
    assert_eq!((bench.reflector.streams.len(), bench.node.count(Counter::Passed)), (2, passed));
    let source = bench.node.opened.last().unwrap().0;
    bench.server(source, HEAD);
    bench.server(source, &mp3s(0..19));
    assert!(bench.node.body(500).len() > 1000);
}

/// Goal: clients that are passed on and take nothing take no more memory than they may: the first of them are cut, and not those that come
/// later and take what they get.
#[test]
fn who_takes_nothing_of_what_is_passed_on_is_cut_first() {
    let mut bench = Bench::new();
    let pass = |bench: &mut Bench, id: Connection| {
        bench.connect(id);
        bench.client(id, b"POST / HTTP/1.1\r\n\r\n");
    };
    for id in 0..100 {
        pass(&mut bench, id);
        bench.node.stuck.insert(id);
        bench.server(FIRST + id, &vec![0; 256 << 10]);
    }
    let left = (WAITING_BYTES_MAX >> 18) as u64;
    assert_eq!(bench.node.count(Counter::Cut), 100 - left);
    assert!((0..100).all(|id| bench.node.closed.contains(&id) == (id < 100 - left)));
    // One that has no room for a moment, while all that may wait waits.
    pass(&mut bench, 200);
    bench.server(FIRST + 100, b"a");
    bench.node.stuck.insert(200);
    bench.server(FIRST + 100, b"b");
    assert!(!bench.node.closed.contains(&200) && bench.node.paused.contains(&(FIRST + 100)));
    bench.node.stuck.remove(&200);
    bench.reflector.room(&mut bench.node, 200);
    assert_eq!(bench.node.to_client(200), b"ab");
    assert!(!bench.node.paused.contains(&(FIRST + 100)));
}

/// Goal: who takes nothing holds up its own server before much of the memory is taken that all connections share.
#[test]
fn a_server_is_read_no_faster_than_its_client_reads() {
    let mut bench = Bench::new();
    bench.connect(1);
    bench.client(1, b"POST / HTTP/1.1\r\n\r\n");
    bench.node.queued.insert(1, PASSED_QUEUED_MAX + 1);
    bench.server(FIRST, b"a");
    assert!(bench.node.paused.contains(&FIRST) && !bench.reflector.is_idle());
    bench.node.queued.insert(1, PASSED_QUEUED_AGAIN + 1);
    bench.wait(100);
    assert!(bench.node.paused.contains(&FIRST));
    bench.node.queued.insert(1, PASSED_QUEUED_AGAIN);
    bench.wait(100);
    assert!(!bench.node.paused.contains(&FIRST) && bench.reflector.is_idle());
}

/// Goal: with little memory left for what waits, all that is sent goes in pieces.
#[test]
fn a_small_share_of_memory_is_enough() {
    let mut bench = Bench::new();
    bench.node.share = Some(PIECE_BYTES_MIN);
    let request = format!("GET /live HTTP/1.1\r\nUser-Agent: {}\r\n\r\n", "a".repeat(6000));
    bench.connect(1);
    bench.client(1, request.as_bytes());
    assert!(bench.node.to_server(FIRST).ends_with(b"Connection: close\r\n\r\n"));
    let head = format!("ICY 200 OK\r\nicy-name: {}\r\n\r\n", "a".repeat(3900));
    bench.server(FIRST, head.as_bytes());
    let mut all = mp3s(0..300);
    bench.server(FIRST, &all);
    bench.wait(9000);
    all.truncate(299 * MP3_BYTES);
    assert!(bench.node.body(1) == all);
    bench.connect(2);
    bench.client(2, &[b"POST / HTTP/1.1\r\n\r\n", &vec![0; 100_000][..]].concat());
    assert_eq!(bench.node.to_server(FIRST + 1).len(), 100_019);
    // A server that cannot be told all of it at once is told the rest later.
    bench.connect(3);
    bench.node.stuck.insert(FIRST + 2);
    bench.client(3, b"GET /other HTTP/1.1\r\n\r\n");
    assert!(bench.node.to_server(FIRST + 2).is_empty());
    bench.node.stuck.clear();
    bench.wait(100);
    assert!(bench.node.to_server(FIRST + 2).ends_with(b"Connection: close\r\n\r\n"));
}
