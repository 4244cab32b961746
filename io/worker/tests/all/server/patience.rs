// SPDX-License-Identifier: Apache-2.0
//! Clients that take nothing for a while, or little at a time, of what the node pumps by itself.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use netserv_worker_server::limits::{HELD_CROWDED_SHARE, HELD_PATIENCE_CROWDED};

use super::handed_over::{Server, ask, body_of, with_cache};
use super::{LONG, Spec, Worker, compiled};

/// Bytes of a film: more than both ends of a connection hold.
const FILM: usize = 48_000_000;

/// Goal: a viewer who takes nothing for a while, in the middle or before the end, has all of it.
#[test]
fn a_viewer_who_pauses_has_all_of_it() {
    let (spec, mut worker, _store) = start(|_| {});
    let pauses = [FILM / 20, FILM - 10_000_000, FILM - 1_000_000, FILM - 300_000].map(|at| {
        let mut stream = ask(spec.port(), "/pass?/");
        thread::spawn(move || {
            let mut begun = vec![0; at];
            stream.read_exact(&mut begun).unwrap();
            thread::sleep(HELD_PATIENCE_CROWDED + Duration::from_secs(2));
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).unwrap();
            at + rest.len()
        })
    });
    for read in pauses {
        assert!(read.join().unwrap() > FILM);
    }
    assert_eq!(worker.counts().failed, 0);
}

/// Goal: a viewer who reads steadily, however slowly, is never taken for one who takes nothing. Method: buffers as the kernel makes them,
/// which hold what such a viewer reads in half a minute, and a patience of a few seconds.
#[test]
fn a_slow_steady_viewer_is_not_cut() {
    let (spec, mut worker, _store) = start(|spec| {
        spec.properties.insert("client-patience-s".to_owned(), "3".to_owned());
    });
    let mut stream = ask(spec.port(), "/pass?/");
    let (begun, mut piece) = (Instant::now(), vec![0; 10_000]);
    let mut taken = 0;
    while begun.elapsed() < Duration::from_secs(20) {
        stream.read_exact(&mut piece).unwrap();
        taken += piece.len();
        thread::sleep(Duration::from_millis(100));
    }
    taken += stream.read_to_end(&mut Vec::new()).unwrap();
    assert!(taken > FILM);
    assert_eq!(worker.counts().failed, 0);
}

/// Goal: while there is little room for others, who has taken nothing for the longest gives way, and nobody else. Method: a module with few
/// connections, of which all but one are of viewers that take nothing.
#[test]
fn the_slowest_give_way_to_others_once_there_is_little_room() {
    let connections = HELD_CROWDED_SHARE;
    let (spec, mut worker, _store) = start(|spec| spec.limits.connections = u32::try_from(connections).unwrap());
    let lazy: Vec<TcpStream> = (1..connections)
        .map(|_| {
            let stream = ask(spec.port(), "/pass?/");
            thread::sleep(Duration::from_millis(300));
            stream
        })
        .collect();
    thread::sleep(HELD_PATIENCE_CROWDED);
    assert_eq!(worker.counts().failed, 0, "none is cut while there is room");
    assert_eq!(body_of(&mut ask(spec.port(), "/pass?/")).unwrap().len(), FILM);
    let begun = Instant::now();
    while worker.counts().failed == 0 {
        assert!(begun.elapsed() < LONG, "nobody gives way");
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(worker.counts().failed, 1);
    let whole: Vec<bool> = lazy.into_iter().map(|mut stream| body_of(&mut stream).is_ok()).collect();
    assert!(!whole[0] && whole[1..].iter().all(|whole| *whole), "{whole:?}");
}

fn start(change: impl FnOnce(&mut Spec)) -> (Spec, Worker, tempfile::TempDir) {
    let film = Server::start(|stream| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {FILM}\r\n\r\n");
        (0..FILM / 1_000_000).all(|_| stream.write_all(&[7; 1_000_000]).is_ok());
    });
    let connect = vec![format!("tcp dst 127.0.0.1/32 port {}", film.port)];
    let mut spec = Spec::of(compiled("cache_tests")).property("upstream", &format!("127.0.0.1:{}", film.port));
    spec.connect = connect;
    change(&mut spec);
    let (worker, store) = with_cache(&spec);
    (spec, worker, store)
}
