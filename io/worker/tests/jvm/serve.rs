// SPDX-License-Identifier: Apache-2.0
//! Packets and frames through a JVM.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd as _;
use std::process::Stdio;

use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_model::{Refusal, RefusalKind};
use netserv_wire::container::frames::{FromWorker, LogLevel, PartKind, ToWorker};
use netserv_wire::container::ring::{Answer, Returned};

use crate::node::wait_for;
use crate::support::{Worker, java_homes};

#[test]
fn packets_go_through_java_and_back() {
    for java_home in java_homes() {
        let mut worker = Worker::start_on(&java_home, Stdio::inherit());
        worker.load(3, "adder");
        worker.load(1, "adder");
        worker.load(0, "drop");
        worker.load(2, "cut");
        let answer = worker.node.round(1 << 3 | 1 << 1, &[5; 64]);
        assert_eq!((answer.answer, answer.module, answer.bytes[0], answer.bytes[1]), (Answer::Modified, Some(3), 7, 5));
        assert_eq!(answer.bytes.len(), 64);
        let answer = worker.node.round(1 << 3, &[5; 1984]);
        assert_eq!((answer.answer, answer.module, answer.bytes[0]), (Answer::Modified, Some(3), 6));
        let answer = worker.node.round(1, &[5; 64]);
        assert_eq!((answer.answer, answer.module), (Answer::Drop, Some(0)));
        assert_eq!(worker.node.round(1 << 2, &[5; 64]).bytes, [5; 20]);
        assert_eq!(worker.node.round(1 << 7, &[5; 64]).answer, Answer::Failed);

        let packets = vec![&[9_u8; 100][..]; 1000];
        worker.node.push(1 << 1, &packets);
        let answers = worker.node.answers(1000, &mut Vec::new());
        assert!(answers.iter().enumerate().all(|(n, one)| one.cookie == n as u64));
        assert!(answers.iter().all(|one| one.answer == Answer::Modified && one.bytes[0] == 10));
    }
}

#[test]
fn a_module_gets_what_its_frame_says() {
    let mut worker = Worker::start();
    let properties = BTreeMap::from([("größe".to_owned(), "1".to_owned()), ("z".to_owned(), "\u{1f980}".to_owned())]);
    let load = ToWorker::Load {
        slot: ModuleSlot(63),
        module: "example.org/told@1.2.3-beta.1".parse().unwrap(),
        properties,
        limits: ModuleLimits {
            memory_bytes: u64::MAX,
            kv_entries: 2,
            kv_bytes: 3,
            timers: 4,
            counters: 5,
            call_ms: 6,
            ..ModuleLimits::default()
        },
        state_schema: u32::MAX,
        parts: vec![PartKind::Packet],
        server: None,
        blocks: BTreeSet::new(),
        parallel: false,
    };
    worker.node.send(&load, Some(tempfile::tempfile().unwrap().as_fd()));
    let (slot, level, text) = worker.line();
    assert_eq!((slot, level), (Some(63), LogLevel::Info));
    let jar = worker.data.path().join("bundles/0.jar");
    let expected =
        format!("1.2.3-beta.1 {} [größe, 1, z, \u{1f980}] [{}, 2, 3, 4, 5, 6] {}", jar.display(), i64::MAX, i32::MAX);
    assert_eq!(text, expected);
    assert_eq!(worker.node.frame(), FromWorker::Loaded { slot: ModuleSlot(63) });
    assert!(jar.is_file());
}

#[test]
fn refusals_are_told() {
    let mut worker = Worker::start();
    let refusal = Refusal::new(RefusalKind::BadCode, "no bundle").with_context(["in a.B.c:1"]);
    assert_eq!(worker.load_with(4, "refused", b""), FromWorker::Failed { slot: ModuleSlot(4), refusal });
    let answer = worker.node.load_file(5, "null", None, ModuleLimits::default());
    let FromWorker::Failed { slot, refusal } = answer else { panic!("a refusal") };
    assert_eq!((slot.0, refusal.kind), (5, RefusalKind::NodeFailed));
    let too_long = tempfile::tempfile().unwrap();
    too_long.set_len(netserv_worker_jvm::limits::BUNDLE_BYTES_MAX + 1).unwrap();
    let answer = worker.node.load_file(6, "null", Some(&too_long), ModuleLimits::default());
    let FromWorker::Failed { slot, refusal } = answer else { panic!("a refusal") };
    assert_eq!((slot.0, refusal.kind), (6, RefusalKind::PackageTooLarge));
    worker.load(6, "adder");
    assert_eq!(worker.node.round(1 << 6, &[5; 64]).bytes[0], 6);
}

#[test]
fn packets_under_way_are_answered_before_an_unload() {
    let mut worker = Worker::start();
    worker.load(0, "adder");
    for cookie in 0..200 {
        worker.node.ring.push(&[5; 64], Default::default(), 1, cookie).unwrap();
    }
    let must_wake = worker.node.ring.publish();
    worker.node.send(&ToWorker::Unload { slot: ModuleSlot(0) }, None);
    if must_wake {
        rustix::io::write(&worker.node.wake_worker, &1_u64.to_ne_bytes()).unwrap();
    }
    let answers = worker.node.answers(200, &mut Vec::new());
    assert!(answers.iter().all(|one| one.answer == Answer::Modified));
    worker.node.send(&ToWorker::Stats, None);
    assert!(matches!(worker.node.frame(), FromWorker::StatsDone { .. }));
    assert_eq!(worker.node.round(1, &[5; 64]).answer, Answer::Failed);
}

#[test]
fn made_packets_arrive_from_each_kind_of_call() {
    let mut worker = Worker::start();
    worker.load(2, "inject");
    let mut injected = Vec::new();
    let packets = vec![&[8_u8; 64][..]; 64];
    worker.node.push(1 << 2, &packets);
    worker.node.answers(64, &mut injected);
    assert_eq!(injected.len(), 64);
    assert!(injected.iter().all(|packet| packet.len() == 20 && packet[0] == 8));

    // By a timer, while nothing else happens.
    worker.load(0, "timer");
    worker.node.round(1, &[5; 64]);
    assert_eq!(next_injected(&mut worker), (7, 40, 0));
    // By another thread.
    worker.load(5, "thread");
    assert_eq!(next_injected(&mut worker), (9, 30, 5));
}

/// Waits for a packet that a module made. Returns its first byte, its length and the module's slot.
fn next_injected(worker: &mut Worker) -> (u8, usize, u8) {
    for _ in 0..100 {
        if let Some(Returned::Injected { bytes, module }) = worker.node.ring.pop().unwrap() {
            return (bytes[0], bytes.len(), module.unwrap().0);
        }
        worker.node.publish();
        if worker.node.ring.prepare_sleep() {
            assert!(wait_for(worker.node.wake_host.as_fd()), "the worker keeps the packet");
            rustix::io::read(&worker.node.wake_host, &mut [0; 8]).unwrap();
        }
    }
    panic!("woken without a reason");
}

#[test]
fn a_flood_of_lines_is_cut_and_a_deaf_node_does_not_stop_packets() {
    let mut worker = Worker::start();
    worker.load(1, "flood");
    for _ in 0..200 {
        assert_eq!(worker.node.round(1 << 1, &[5; 64]).answer, Answer::Pass);
    }
    assert_eq!(worker.line(), (Some(1), LogLevel::Info, "line 0".to_owned()));
    worker.node.send(&ToWorker::Stats, None);
    let (mut lines, mut told) = (0, false);
    while let FromWorker::Log { text, .. } = worker.node.frame() {
        lines += 1;
        told |= text.contains("lines left out");
    }
    assert!(told && lines < 2_000, "{lines}");
}

#[test]
fn a_crossing_allocates_nothing() {
    let mut worker = Worker::start();
    worker.load(0, "null");
    let packets = vec![&[5_u8; 64][..]; 1000];
    let mut allocated = |rounds: usize| {
        for _ in 0..rounds {
            worker.node.push(1, &packets);
            worker.node.answers(1000, &mut Vec::new());
        }
        worker.node.send(&ToWorker::Stats, None);
        let FromWorker::Stats { counters, .. } = worker.node.frame() else { panic!("stats") };
        assert!(matches!(worker.node.frame(), FromWorker::StatsDone { .. }));
        counters["allocated"]
    };
    // The question itself costs something, about the same each time.
    allocated(10);
    let none = allocated(0);
    let many = allocated(1000);
    assert!(many <= none + 4096, "{many} bytes for a million packets, {none} for none");
}

#[test]
fn shutdown_stops_modules_and_ends_well() {
    let mut worker = Worker::start();
    worker.load(0, "null");
    worker.node.send(&ToWorker::Shutdown, None);
    assert_eq!(worker.line(), (Some(0), LogLevel::Info, "bye".to_owned()));
    assert!(worker.node.worker.wait().unwrap().success());
}

#[test]
fn a_worker_ends_with_its_node() {
    let mut worker = Worker::start();
    let (unused, _) = rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    drop(std::mem::replace(&mut worker.node.control, unused));
    assert!(worker.node.worker.wait().unwrap().success());
}
