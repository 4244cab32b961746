// SPDX-License-Identifier: Apache-2.0
//! Many readers of one fill, through the sample `edge-cache`, beside nginx with the same file.

use std::ffi::OsStr;
use std::fs::File;

use netserv_worker_base::storage::CACHE_FILE;

use super::crowd::{Crowd, Origin};
use super::peer::{Nginx, median, on_core, wrk};
use super::{Spec, Worker, compiled};

/// Readers of the long form, and bytes that each of them gets.
const READERS: usize = 5000;
const BYTES: usize = 1 << 20;
/// Bytes of what is asked for again and again.
const SMALL_BYTES: usize = 10_000;
/// Rounds of each of both, in turn.
const ROUNDS: usize = 3;
/// What all readers get in a second, against nginx.
const RATIO_MIN: f64 = 0.5;

/// Goal: 200 readers that want the same content through `edge-cache` at a time cause one request to its server.
#[test]
fn two_hundred_readers_are_one_fetch() {
    let origin = Origin::start(256 << 10);
    let (spec, mut worker, _store) = start(&origin);
    let told = Crowd::connect(spec.port(), 200).get(&origin, "/short");
    assert_eq!((told.whole, origin.fetches()), (200, 1), "{told:?}");
    assert_eq!(worker.counts().failed, 0);
}

/// Goal: many who want the same at a time get it from one fetch, and half as fast at least as nginx gives it to them. In release:
/// `./dev joined`.
#[test]
#[ignore = "a measurement"]
fn five_thousand_readers_are_one_fetch() {
    let origin = Origin::start(BYTES);
    let (spec, mut worker, _store) = start(&origin);
    let nginx = Nginx::start(origin.port);
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let path = format!("/long-{round}");
        for (who, port, rates) in [("edge-cache", spec.port(), &mut own), ("nginx", nginx.port, &mut theirs)] {
            let before = origin.fetches();
            let told = Crowd::connect(port, READERS).get(&origin, &path);
            let rate = (told.whole * BYTES) as f64 / told.took.as_secs_f64() / 1e6;
            let fetches = origin.fetches() - before;
            eprintln!("{who}: {} of {} whole, {fetches} fetches, {rate:.0} MB/s; {told:?}", told.whole, READERS);
            assert_eq!(told.whole, READERS, "{who}");
            assert!(fetches == 1 || who == "nginx", "{fetches} fetches");
            rates.push(rate);
        }
        eprintln!("edge-cache has {} KiB of its own", worker.memory_kib("RssAnon:"));
    }
    assert_eq!(worker.counts().failed, 0);
    let ratio = median(&mut own) / median(&mut theirs);
    eprintln!("edge-cache / nginx: {ratio:.2}");
    assert!(ratio >= RATIO_MIN, "{ratio:.2} of nginx, {RATIO_MIN} is the goal");
}

/// Goal: what is small and in the cache is answered half as fast at least as nginx does. Method: `wrk` with 16 connections on one
/// core, each server alone on the other one. In release: `./dev joined`.
#[test]
#[ignore = "a measurement"]
fn small_hits_beside_nginx() {
    let origin = Origin::start(SMALL_BYTES);
    let ((spec, mut worker, _store), nginx) = on_core(|| (start(&origin), Nginx::start(origin.port)));
    let host = format!("127.0.0.1:{}", origin.port);
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        own.push(wrk(spec.port(), &host, "/small").per_second);
        theirs.push(wrk(nginx.port, &host, "/small").per_second);
        eprintln!("edge-cache {:.0}, nginx {:.0} requests/s", own[own.len() - 1], theirs[theirs.len() - 1]);
    }
    assert_eq!((worker.counts().failed, origin.fetches()), (0, 2));
    let ratio = median(&mut own) / median(&mut theirs);
    eprintln!("edge-cache / nginx: {ratio:.2}");
    assert!(ratio >= RATIO_MIN, "{ratio:.2} of nginx, {RATIO_MIN} is the goal");
}

/// Starts a worker with edge-cache before an origin. Its cache is there as long as the folder.
fn start(origin: &Origin) -> (Spec, Worker, tempfile::TempDir) {
    let store = tempfile::tempdir().unwrap();
    File::create(store.path().join(CACHE_FILE)).unwrap().set_len(256 << 20).unwrap();
    let spec = Spec::of(compiled("edge_cache")).with(|spec| {
        spec.connect = vec![format!("tcp dst 127.0.0.1/32 port {}", origin.port)];
        // As its manifest has them.
        spec.limits.request_ms = 60_000;
        spec.limits.requests = 512;
    });
    let mut worker = Worker::start_with(&[OsStr::new("--store"), store.path().as_os_str()]);
    worker.load(&spec);
    (spec, worker, store)
}
