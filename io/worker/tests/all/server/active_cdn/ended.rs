// SPDX-License-Identifier: Apache-2.0
//! Workers that are killed in the middle, disks that are full, and what is larger than the cache.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use netserv_skips::skipped;

use super::super::{connect, node};
use super::{CACHE_BYTES, Edge, LONG, Origin, body, is_hit, is_whole, kept, path_of, text};

/// Goal: after a worker was killed in the middle of fills, at any place, none of what was half there is served, and what was whole is.
#[test]
fn a_killed_worker_leaves_whole_bodies_only() {
    let good = text(2_000_000);
    let sent = good.clone();
    let is_slow = Arc::new(AtomicBool::new(true));
    let slow = Arc::clone(&is_slow);
    let (told, at) = mpsc::channel();
    let origin = Origin::start(move |request, stream| {
        let answer = kept("etag: \"1\"\r\n", &sent);
        let place = path_of(request).trim_start_matches('/').parse::<usize>().ok();
        match place.filter(|_| slow.load(Ordering::SeqCst)) {
            Some(place) => {
                let _ = stream.write_all(&answer.as_bytes()[..answer.len() - sent.len() + place]);
                let _ = told.send(());
                let _ = stream.read(&mut [0]);
            }
            None => drop(stream.write_all(answer.as_bytes())),
        }
    });
    let mut edge = Edge::start(origin.port);
    edge.ask_until_hit("/whole");
    let places = [0, 1, 10_000, 20_000, 500_000, 1_999_999, 2_000_000];
    let port = edge.port();
    let mut readers: Vec<_> = Vec::new();
    for place in places {
        let mut stream = connect(port);
        let request = format!("GET /{place} HTTP/1.1\r\nhost: edge.test\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        readers.push((place, stream));
        at.recv().unwrap();
    }
    // What has come is on its way to the disk.
    thread::sleep(Duration::from_millis(300));
    edge = edge.restart();
    for (place, mut stream) in readers {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(!is_whole(&answer) || place == 2_000_000, "{place}");
    }
    is_slow.store(false, Ordering::SeqCst);
    assert!(body(&edge.ask("/whole", "")) == good, "it outlives the worker");
    assert_eq!(origin.count(), 1 + places.len());
    for place in places {
        let answer = edge.ask(&format!("/{place}"), "");
        assert!(is_whole(&answer) && body(&answer) == good, "{place}");
        assert!(!is_hit(&answer) || place == 2_000_000, "{place}");
    }
}

/// Goal: what does not fit into the cache gets to its clients all the same; who was there when that was noticed sees that it broke off.
#[test]
fn what_is_larger_than_the_cache_passes() {
    let good = text(3_000_000);
    let sent = good.clone();
    let origin = Origin::start(move |request, stream| {
        let answer = match path_of(request) {
            "/chunks" => {
                let head = "HTTP/1.1 200 OK\r\ncache-control: max-age=600\r\ntransfer-encoding: chunked\r\n\r\n";
                format!("{head}{:x}\r\n{sent}\r\n0\r\n\r\n", sent.len())
            }
            "/small" => kept("", "small"),
            _ => kept("", &sent),
        };
        let _ = stream.write_all(answer.as_bytes());
    });
    let edge = Edge::start_with(origin.port, 1 << 20, |_| {});
    for _ in 0..2 {
        let answer = edge.ask("/known", "");
        assert!(is_whole(&answer) && body(&answer) == good && !is_hit(&answer));
    }
    let first = edge.ask("/chunks", "");
    assert!(good.starts_with(&body(&first)), "what came is of it");
    // Who comes before that is noticed has the same.
    let begun = Instant::now();
    while !is_whole(&edge.ask("/chunks", "")) {
        assert!(begun.elapsed() < LONG, "it never passes");
    }
    for _ in 0..2 {
        let answer = edge.ask("/chunks", "");
        assert!(is_whole(&answer) && body(&answer) == good, "{} bytes", answer.len());
    }
    assert!(is_hit(&edge.ask_until_hit("/small")));
}

/// Goal: with a full disk, nothing damaged is served, what is stored stays, and the rest gets to its clients by passing.
/// Method: the file is longer than the file system that it is on, which only the worker sees.
#[test]
fn a_full_disk_costs_what_it_does_not_hold() {
    let test = "a_full_disk_costs_what_it_does_not_hold";
    if !rustix::process::geteuid().is_root() {
        return skipped(test, "not root, so no file system of its own");
    }
    let good = text(1_000_000);
    let sent = good.clone();
    let origin = Origin::start(move |request, stream| {
        let answer = if path_of(request) == "/small" { kept("", "small") } else { kept("", &sent) };
        let _ = stream.write_all(answer.as_bytes());
    });
    let mut edge = Edge::start_with(origin.port, CACHE_BYTES, |_| {});
    edge.worker.worker.kill().unwrap();
    edge.worker.worker.wait().unwrap();
    edge.worker = small_disk(edge.store.path(), &edge.spec);
    edge.ask_until_hit("/small");
    let mut whole = 0;
    for number in 0..20 {
        let path = format!("/{number}");
        for _ in 0..2 {
            let answer = edge.ask(&path, "");
            let got = body(&answer);
            assert!(good.starts_with(&got), "{path}: {} bytes", got.len());
            if is_whole(&answer) && got == good {
                whole += 1;
            } else {
                assert!(!is_hit(&answer), "{path} is damaged and served");
            }
        }
    }
    // Each gets there the second time at least, but for who meets the end of the room.
    assert!(whole >= 30, "{whole} of 40 came whole");
    assert!(is_hit(&edge.ask("/small", "")));
}

/// Starts a worker whose store is on a file system of 4 MiB.
fn small_disk(store: &Path, spec: &super::Spec) -> super::Worker {
    let mut command = Command::new("unshare");
    let file = store.join(super::CACHE_FILE).display().to_string();
    let script = format!(
        "mount -t tmpfs -o size=4m none {} && truncate -s {CACHE_BYTES} {file} && exec \"$@\"",
        store.display()
    );
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"]);
    command.arg(env!("CARGO_BIN_EXE_netserv-worker")).args(["serve", "--store"]).arg(OsStr::new(store));
    let mut worker = super::Worker::of(node::Node::start(command));
    worker.load(spec);
    worker
}
