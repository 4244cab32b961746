// SPDX-License-Identifier: Apache-2.0
//! Responses that the node sends by itself. The module is the sample `live-page`, which hands over its events.

use std::io::Read as _;
use std::time::{Duration, Instant};

use netserv_patience::grown;

use super::channel::{Viewer, live_page, say};
use super::{LONG, Spec, Worker, get};

fn page() -> Spec {
    live_page().with(|spec| spec.packet = None)
}

#[test]
fn viewers_are_no_requests_under_way() {
    let spec = page().with(|spec| {
        spec.limits.request_ms = 300;
        spec.limits.requests = 1;
    });
    let _worker = Worker::with(&spec);
    let mut viewers: Vec<Viewer> = (0..8).map(|_| Viewer::open(spec.port(), None)).collect();
    std::thread::sleep(Duration::from_millis(1000));
    for text in ["one", "two"] {
        say(spec.port(), text);
        assert!(viewers.iter_mut().all(|viewer| viewer.next().ends_with(&format!("data: {text}\n\n"))));
    }
}

#[test]
fn viewers_stay_over_an_upgrade_and_go_with_the_module() {
    let spec = page();
    let mut worker = Worker::with(&spec);
    let mut viewer = Viewer::open(spec.port(), None);
    worker.load(&spec.clone().with(|newer| newer.slot = 1));
    worker
        .send(&netserv_wire::container::frames::ToWorker::Unload { slot: netserv_model::effect::ModuleSlot(0) }, None);
    // As long as requests under way have to end.
    std::thread::sleep(netserv_worker_server::limits::STOP_TIME_MAX + Duration::from_secs(1));
    say(spec.port(), "still there");
    assert!(viewer.next().contains("still there"));
    worker
        .send(&netserv_wire::container::frames::ToWorker::Unload { slot: netserv_model::effect::ModuleSlot(1) }, None);
    let begun = Instant::now();
    let ended = viewer.stream.read_to_end(&mut Vec::new());
    assert!(ended.is_ok() || begun.elapsed() < LONG, "{ended:?}");
}

/// Goal: one that takes nothing is cut, and the others notice nothing. Method: more is said than fits what lies between.
#[test]
fn a_viewer_that_takes_nothing_is_cut_alone() {
    let spec = page().property("client-patience-s", "5");
    let mut worker = Worker::with(&spec);
    let lazy = Viewer::open(spec.port(), None);
    rustix::net::sockopt::set_socket_recv_buffer_size(&lazy.stream, 4096).unwrap();
    let mut viewer = Viewer::open(spec.port(), None);
    let text = "x".repeat(16 * 1024);
    let begun = Instant::now();
    let mut said = 0;
    while worker.counts().failed == 0 {
        assert!(begun.elapsed() < LONG, "it is not cut after {said} lines");
        for _ in 0..100 {
            let number = say(spec.port(), &text);
            assert!(viewer.next().starts_with(&format!("id: {number}\n")));
            said += 1;
        }
    }
    assert_eq!(get(spec.port(), "/").0, 200);
}

/// Goal: viewers cost little, and hear at once. The whole of it, in release:
/// `cargo test --release -p netserv-worker --test all -- --ignored --nocapture a_thousand_viewers`.
#[test]
fn two_hundred_viewers_cost_little_and_hear_at_once() {
    let (kib, slowest) = measure(200);
    // Not optimised, beside other tests.
    assert!(kib <= 60 * 200, "{kib} KiB");
    assert!(slowest <= grown(Duration::from_secs(1)), "{slowest:?}");
}

#[test]
#[ignore = "a measurement"]
fn a_thousand_viewers() {
    let (kib, slowest) = measure(1000);
    assert!(kib <= 40 * 1024, "{kib} KiB");
    assert!(slowest <= Duration::from_millis(20), "{slowest:?}");
}

/// Returns how much more memory of its own a worker has with so many viewers, in KiB, and how long it took at best until all of
/// them had a message, from before it was said.
fn measure(count: usize) -> (u64, Duration) {
    let spec = page();
    let worker = Worker::with(&spec);
    say(spec.port(), "warm");
    drop((0..32).map(|_| Viewer::open(spec.port(), None)).collect::<Vec<_>>());
    let before = worker.memory_kib("RssAnon:");
    let mut viewers: Vec<Viewer> = (0..count).map(|_| Viewer::open(spec.port(), None)).collect();
    viewers.iter_mut().for_each(|viewer| drop(viewer.next()));
    let kib = worker.memory_kib("RssAnon:").saturating_sub(before);
    let took: Vec<Duration> = (0..5)
        .map(|round| {
            let begun = Instant::now();
            say(spec.port(), &format!("round {round}"));
            viewers.iter_mut().for_each(|viewer| assert!(viewer.next().contains("round")));
            begun.elapsed()
        })
        .collect();
    eprintln!("{count} viewers: {kib} KiB more, a message to all in {took:?}");
    (kib, took.into_iter().min().unwrap())
}
