// SPDX-License-Identifier: Apache-2.0
//! Programs beside the instances that answer requests. The module is the sample `live-page`, whose program publishes ticks.

use netserv_model::RefusalKind;
use netserv_model::effect::ModuleSlot;
use netserv_wire::container::frames::ToWorker;

use super::channel::{Viewer, live_page, say};
use super::{Spec, Worker, get, wait_until_closed};

fn ticking(slot: u8, period_ms: &str) -> Spec {
    live_page().property("tick-ms", period_ms).with(|spec| {
        spec.packet = None;
        spec.slot = slot;
    })
}

#[test]
fn a_resident_program_publishes_beside_requests() {
    let spec = ticking(0, "20");
    let mut worker = Worker::with(&spec);
    let mut viewer = Viewer::open(spec.port(), None);
    let first = tick(&mut viewer);
    say(spec.port(), "hello");
    while !viewer.next().contains("hello") {}
    let later = tick(&mut viewer);
    assert!(later > first);
    assert!(tick(&mut Viewer::open(spec.port(), None)) >= later);
    assert_eq!(get(spec.port(), "/").0, 200);
    worker.send(&ToWorker::Unload { slot: ModuleSlot(0) }, None);
    worker.send(&ToWorker::Stats, None);
    worker.answer();
    wait_until_closed(spec.port());
}

/// Goal: one program runs at a time, but for the moment in which one takes over from the other. Method: their ticks have the same
/// key and numbers of their own.
#[test]
fn a_version_ends_the_program_of_the_one_before() {
    let spec = ticking(0, "20");
    let mut worker = Worker::with(&spec);
    let mut viewer = Viewer::open(spec.port(), None);
    while tick(&mut viewer) < 10 {}
    worker.load(&ticking(1, "20").with(|newer| newer.listen.clone_from(&spec.listen)));
    let mut viewer = Viewer::open(spec.port(), None);
    // What is kept may be the old one's last.
    tick(&mut viewer);
    let ticks: Vec<u64> = (0..20).map(|_| tick(&mut viewer)).collect();
    assert!(ticks.windows(2).all(|pair| pair[1] == pair[0] + 1), "{ticks:?}");
    worker.send(&ToWorker::Unload { slot: ModuleSlot(0) }, None);
    assert!(tick(&mut viewer) > ticks[19]);
}

#[test]
fn a_program_that_panics_at_once_refuses_its_module_and_leaves_the_version_before() {
    let mut worker = Worker::start();
    let (kind, detail) = worker.refused(&ticking(0, "often"));
    assert_eq!(kind, RefusalKind::Trapped);
    assert!(detail.contains("`tick-ms` is a number"), "{detail}");
    let spec = ticking(0, "20");
    worker.load(&spec);
    let (kind, _) = worker.refused(&ticking(1, "often").with(|newer| newer.listen.clone_from(&spec.listen)));
    assert_eq!(kind, RefusalKind::Trapped);
    let mut viewer = Viewer::open(spec.port(), None);
    assert!(tick(&mut viewer) < tick(&mut viewer));
}

/// Goal: a program that comes back leaves its module as it is. Method: without a period, that of the sample does.
#[test]
fn a_program_that_ends_well_leaves_the_requests() {
    let spec = ticking(0, "");
    let mut worker = Worker::with(&spec);
    for _ in 0..3 {
        assert_eq!(get(spec.port(), "/").0, 200);
    }
    worker.load(&ticking(1, "20").with(|newer| newer.listen.clone_from(&spec.listen)));
    assert!(tick(&mut Viewer::open(spec.port(), None)) > 0);
    worker.load(&ticking(0, "").with(|newer| newer.listen.clone_from(&spec.listen)));
    let mut viewer = Viewer::open(spec.port(), None);
    tick(&mut viewer);
    say(spec.port(), "the last one");
    assert!(viewer.next().contains("the last one"), "nobody ticks any more");
}

/// Returns the number of the next tick.
fn tick(viewer: &mut Viewer) -> u64 {
    loop {
        let event = viewer.next();
        if event.contains("event: tick\n") {
            let (_, number) = event.split_once("data: ").unwrap();
            return number.trim().parse().unwrap();
        }
    }
}
