// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::limits::{
    AHEAD_BYTES_MAX, ANSWER_HEAD_BYTES_MAX, NO_FRAME_BYTES_MAX, REQUEST_HEAD_BYTES_MAX, SILENT_MS_MAX,
};
use crate::testing::{Random, mp3};

/// Goal: what is no stream is for the first client as it is, and others ask for themselves.
#[test]
fn what_is_no_stream_is_passed_on() {
    for answer in [
        &b"HTTP/1.1 302 Found\r\nLocation: http://198.51.100.7:8000/live\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nContent-Length: 5\r\n\r\nhello",
        b"no HTTP\n\n",
    ] {
        let mut bench = Bench::new();
        bench.listen(1, "");
        bench.listen(2, "DNT: 1\r\n");
        for piece in answer.chunks(7) {
            bench.server(FIRST, piece);
        }
        assert_eq!(bench.node.to_client(1), answer);
        assert_eq!(bench.node.to_server(FIRST + 1), b"GET /live HTTP/1.1\r\nHost: radio\r\nDNT: 1\r\n\r\n");
        bench.server(FIRST + 1, b"for two");
        assert_eq!(bench.node.to_client(2), b"for two");
        bench.reflector.end(&mut bench.node, 0, FIRST);
        assert!(bench.node.shut.contains(&1));
        bench.closed(2);
        assert!(bench.node.closed.contains(&(FIRST + 1)));
    }
}

/// Goal: nobody gets titles that it did not ask for: a stream that cannot be shared is asked for anew.
#[test]
fn titles_are_not_for_who_did_not_ask() {
    let mut bench = Bench::new();
    bench.listen(1, "");
    bench.server(FIRST, b"HTTP/1.0 200 OK\r\nContent-Type: audio/ogg\r\nicy-metaint: 100\r\n\r\nOggS");
    assert!(bench.node.closed.contains(&FIRST) && bench.node.to_client(1).is_empty());
    assert_eq!(bench.node.to_server(FIRST + 1), b"GET /live HTTP/1.1\r\nHost: radio\r\n\r\n");
}

#[test]
fn heads_without_end_and_streams_without_frames_are_passed_on() {
    let mut bench = Bench::new();
    bench.listen(1, "");
    bench.server(FIRST, &vec![b'a'; ANSWER_HEAD_BYTES_MAX]);
    assert_eq!(bench.node.to_client(1).len(), ANSWER_HEAD_BYTES_MAX);
    let mut bench = Bench::new();
    bench.listen(1, "Icy-MetaData: 1\r\n");
    bench.server(FIRST, HEAD);
    (0..=NO_FRAME_BYTES_MAX / 1000).for_each(|_| drop(bench.server(FIRST, &[0; 1000])));
    assert!(bench.node.to_client(1).starts_with(HEAD) && bench.node.to_client(1).len() > NO_FRAME_BYTES_MAX);
    assert!(bench.reflector.streams.is_empty());
}

/// Goal: clients whose request has no end, never comes, or is none have what their server says.
#[test]
fn requests_without_end_are_the_servers() {
    let mut bench = Bench::new();
    bench.connect(1);
    bench.client(1, b"GET / HTTP/1.1\r\n");
    bench.client(1, &vec![b'a'; REQUEST_HEAD_BYTES_MAX]);
    assert!(bench.node.to_server(FIRST).starts_with(b"GET / HTTP/1.1\r\naaa"));
    bench.connect(2);
    bench.wait(REQUEST_MS_MAX + 100);
    assert_eq!(bench.node.opened.len(), 2);
    bench.server(FIRST + 1, b"hello");
    assert_eq!(bench.node.to_client(2), b"hello");
    bench.connect(3);
    bench.reflector.end(&mut bench.node, 0, 3);
    assert!(bench.node.closed.contains(&3));
}

#[test]
fn a_server_that_cannot_be_reached_is_said() {
    let mut bench = Bench::new();
    bench.node.is_cut_off = true;
    bench.listen(1, "");
    assert!(bench.node.to_client(1).starts_with(b"HTTP/1.0 502 ") && bench.node.closed.contains(&1));
    bench.node.is_cut_off = false;
    bench.listen(2, "");
    bench.closed(FIRST);
    assert!(bench.node.to_client(2).starts_with(b"HTTP/1.0 502 "), "it refuses");
    bench.listen(3, "");
    bench.wait(SILENT_MS_MAX + 100);
    assert!(bench.node.to_client(3).starts_with(b"HTTP/1.0 502 "), "it says nothing");
    [1, 2, 3].into_iter().for_each(|id| bench.closed(id));
    assert!(bench.reflector.is_idle());
}

/// Goal: a source that sends faster than its stream sounds is read no faster than that, and no frame is lost.
#[test]
fn a_source_faster_than_real_time_is_held_up() {
    let mut bench = Bench::new();
    bench.listen(1, "");
    bench.server(FIRST, HEAD);
    let (mut sent, mut at) = (0, 0);
    for _ in 0..30 * 20 {
        while !bench.node.paused.contains(&FIRST) {
            bench.play(FIRST, sent..sent + 100, &mut at);
            sent += 100;
        }
        bench.wait(50);
    }
    let got = bench.node.body(1).len();
    // Half a minute, what it gets at once, and a little more.
    assert!((30 * 38..38 * 38).contains(&(got / MP3_BYTES)), "{} s", got / MP3_BYTES / 38);
    assert!(sent * MP3_BYTES - got < usize::try_from(AHEAD_BYTES_MAX).unwrap() + 101 * MP3_BYTES);
    assert!(mp3s(0..sent).starts_with(bench.node.body(1)));
}

/// Goal: whatever is wrong with a stream, all its listeners get is whole frames.
#[test]
fn broken_frames_come_to_nobody() {
    for seed in 1..15 {
        let mut random = Random(seed);
        let mut bench = Bench::new();
        bench.listen(1, "");
        bench.server(FIRST, b"HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n");
        let mut all = mp3s(0..300);
        for _ in 0..10 {
            let at = random.size(all.len() - 500);
            match random.below(3) {
                0 => drop(all.drain(at..at + random.size(400))),
                1 => {
                    let garbage = random.bytes(300);
                    all.splice(at..at, garbage).for_each(drop);
                }
                _ => {
                    let length = random.size(64);
                    all[at..at + length].fill(0xff);
                }
            }
        }
        for piece in all.chunks(1 + random.size(5000)) {
            bench.server(FIRST, piece);
        }
        bench.wait(10_000);
        let body = bench.node.body(1);
        assert_eq!(body.len() % MP3_BYTES, 0, "seed {seed}");
        assert!(body.chunks(MP3_BYTES).all(|frame| frame.starts_with(&mp3(0)[..3])), "seed {seed}");
        assert!(body.len() > 200 * MP3_BYTES && bench.node.count(Counter::DroppedBytes) > 0);
    }
}

/// Goal: no order of events, and no bytes, make it panic, or keep anything once all have gone.
#[test]
fn any_order_of_events_is_borne() {
    for seed in 1..40 {
        let mut random = Random(seed);
        let mut bench = Bench::new();
        for _ in 0..300 {
            let (client, server) = (random.below(8), FIRST + random.below(bench.node.opened.len() as u64 + 1));
            match random.below(12) {
                0 => {
                    // No number comes twice, but here.
                    bench.closed(client);
                    bench.node.closed.remove(&client);
                    bench.connect(client);
                }
                1 => drop(bench.client(client, b"GET /live HTTP/1.0\r\nIcy-MetaData: 1\r\n\r\n")),
                2 => drop(bench.client(client, b"GET /other HTTP/1.0\r\n\r\n")),
                3 => {
                    let bytes = random.bytes(50);
                    drop(bench.client(client, &bytes));
                }
                4 => drop(bench.server(server, HEAD)),
                5 => drop(bench.server(server, &mp3s(0..1 + random.size(200)))),
                6 => {
                    let bytes = random.bytes(3000);
                    drop(bench.server(server, &bytes));
                }
                7 => bench.closed(server),
                8 => bench.closed(client),
                9 => bench.reflector.end(&mut bench.node, bench.now_ms, if seed % 2 == 0 { client } else { server }),
                10 => bench.reflector.room(&mut bench.node, client),
                _ => bench.wait(random.below(3000)),
            }
            if random.below(20) == 0 {
                bench.node.stuck = (0..8).filter(|_| random.below(2) == 0).collect();
                bench.node.closed.retain(|_| random.below(2) == 0);
            }
        }
        (0..8).for_each(|id| bench.closed(id));
        let opened: Vec<Connection> = bench.node.opened.iter().map(|(id, _)| *id).collect();
        opened.into_iter().for_each(|id| bench.closed(id));
        assert!(bench.reflector.is_idle() && bench.reflector.passing.is_empty(), "seed {seed}");
    }
}
