// SPDX-License-Identifier: Apache-2.0
//! Modules that are parallel, in a worker that serves several lanes of its node.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use netserv_model::RefusalKind;
use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_wire::container::frames::{FromWorker, ToWorker};
use netserv_wire::container::ring::{Answer, HOST_SLOTS, PACKET_OFFSET, SLOTS_OFFSET, activity};

use crate::lanes::{in_lane, start};
use crate::node::Lane;
use crate::serve::Node;
use crate::support::{for_each_packet, guest_with, roomy};

const LANES: usize = 4;
const SEEN: &str = r#"(global $seen (mut i32) (i32.const 0)) (data (i32.const 16) "seen")"#;
/// Puts over the first bytes of a packet how many its instance saw before.
const NUMBER: &str = "(i32.store (local.get $p) (global.get $seen))
    (global.set $seen (i32.add (global.get $seen) (i32.const 1)))
    (i32.store offset=12 (local.get $d) (i32.const 2))";
const COUNT: &str = "(drop (call $counter_add (call $counter_open (i32.const 16) (i32.const 4)) (i64.const 1)))";

/// Goal: each lane has an instance of its own that sees its packets in their order, and the threads for that are there,
/// whether packets lie in the modules' memories or are copied.
#[test]
fn each_lane_has_an_instance_and_a_thread() {
    for module in [roomy(&for_each_packet(NUMBER), SEEN), guest_with(&for_each_packet(NUMBER), SEEN)] {
        let (mut node, mut lanes) = start();
        load(&mut node, 0, "numbers", &module);
        for rounds in 0..3 {
            all_lanes(&mut node, &mut lanes, |node| node.push(1, &vec![&[9; 64][..]; HOST_SLOTS]));
            all_lanes(&mut node, &mut lanes, |node| {
                let first = rounds * HOST_SLOTS;
                assert_eq!(numbers(node, HOST_SLOTS), (first..first + HOST_SLOTS).collect::<Vec<_>>());
                let lies = node.words[(SLOTS_OFFSET + PACKET_OFFSET) / 8].load(Ordering::Relaxed);
                assert_ne!(lies.to_le_bytes()[..2], [9; 2]);
            });
        }
        assert_eq!(lane_threads(&node), ["packets-1", "packets-2", "packets-3"]);
    }
}

#[test]
fn a_plain_module_has_one_instance_for_all_lanes_and_no_thread() {
    let (mut node, mut lanes) = start();
    node.load(0, "numbers", &guest_with(&for_each_packet(NUMBER), SEEN));
    let mut next = 0;
    all_lanes(&mut node, &mut lanes, |node| {
        assert_eq!(one(node, 1), next);
        next += 1;
    });
    assert!(lane_threads(&node).is_empty());
}

#[test]
fn a_parallel_module_in_one_lane_is_as_any_other() {
    let mut node = Node::start();
    load(&mut node, 0, "numbers", &roomy(&for_each_packet(NUMBER), SEEN));
    assert_eq!((0..3).map(|_| one(&mut node, 1)).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(lane_threads(&node).is_empty());
}

/// Goal: while a module that is not parallel is there, one thread serves all lanes; the other's instances stay what they are,
/// with the packets of their lanes.
#[test]
fn flows_stay_with_their_instance_while_another_module_comes_and_goes() {
    let (mut node, mut lanes) = start();
    load(&mut node, 0, "numbers", &roomy(&for_each_packet(NUMBER), SEEN));
    for round in 0..6 {
        match round {
            2 => node.load(1, "plain", &guest_with("", "")),
            4 => node.send(&ToWorker::Unload { slot: ModuleSlot(1) }, None),
            _ => {}
        }
        all_lanes(&mut node, &mut lanes, |node| assert_eq!(one(node, 0b1), round));
    }
}

#[test]
fn what_instances_count_is_summed() {
    let (mut node, mut lanes) = start();
    load(&mut node, 3, "counts", &guest_with(&for_each_packet(COUNT), SEEN));
    for round in 1..=2 {
        all_lanes(&mut node, &mut lanes, |node| {
            node.push(1 << 3, &[&[1; 40][..]; 10]);
            assert!(node.answers(10, &mut Vec::new()).iter().all(|one| one.answer == Answer::Pass));
        });
        node.send(&ToWorker::Stats, None);
        let FromWorker::Stats { slot, packets, counters, .. } = node.frame() else { panic!("no stats") };
        assert_eq!((slot, packets.seen, packets.passed), (ModuleSlot(3), 40 * round, 40 * round));
        assert_eq!(counters["seen"], 40 * round);
        assert!(matches!(node.frame(), FromWorker::StatsDone { .. }));
    }
}

/// Goal: kv state is one for all instances.
#[test]
fn instances_share_kv_state() {
    let (mut node, mut lanes) = start();
    let add = "(drop (call $kv_increment (i32.const 16) (i32.const 4) (i64.const 1) (local.get $p)))
        (i32.store offset=12 (local.get $d) (i32.const 2))";
    load(&mut node, 0, "shares", &guest_with(&for_each_packet(add), SEEN));
    let mut next = 0;
    for _ in 0..3 {
        all_lanes(&mut node, &mut lanes, |node| {
            next += 1;
            assert_eq!(one(node, 1), next);
        });
    }
}

/// Goal: a trap in one instance ends the module in all lanes, is told once, and leaves other modules and lanes at work.
#[test]
fn a_trap_in_one_lane_ends_the_module_in_all() {
    for beside in [false, true] {
        let (mut node, mut lanes) = start();
        let trap = "(if (i32.eq (i32.load8_u (local.get $p)) (i32.const 7)) (then unreachable))";
        load(&mut node, 0, "traps", &guest_with(&for_each_packet(trap), ""));
        if beside {
            load(&mut node, 1, "numbers", &guest_with(&for_each_packet(NUMBER), SEEN));
        }
        all_lanes(&mut node, &mut lanes, |node| assert_eq!(node.round(1, &[1; 40]).answer, Answer::Pass));
        in_lane(&mut node, &mut lanes, 2, |node| {
            let answer = node.round(1, &[7; 40]);
            assert_eq!((answer.answer, answer.module), (Answer::Failed, Some(0)));
        });
        let FromWorker::Failed { slot, refusal } = node.frame() else { panic!("it is not told") };
        assert_eq!((slot, refusal.kind), (ModuleSlot(0), RefusalKind::Trapped));
        all_lanes(&mut node, &mut lanes, |node| {
            assert_eq!(node.round(1, &[1; 40]).answer, Answer::Failed);
            if beside {
                assert_eq!(one(node, 0b10), 0);
            }
        });
        assert_eq!(lane_threads(&node).len(), LANES - 1);
        load(&mut node, 0, "numbers2", &guest_with(&for_each_packet(NUMBER), SEEN));
        all_lanes(&mut node, &mut lanes, |node| assert_eq!(one(node, 1), 0));
    }
}

#[test]
fn every_instance_is_stopped_when_its_module_is_unloaded() {
    let (mut node, mut lanes) = start();
    let stop = r#"(func (export "netserv_stop") (drop (call $log (i32.const 2) (i32.const 16) (i32.const 4))))"#;
    load(&mut node, 0, "stops", &guest_with("", &format!("{SEEN} {stop}")));
    all_lanes(&mut node, &mut lanes, |node| assert_eq!(node.round(1, &[1; 40]).answer, Answer::Pass));
    node.send(&ToWorker::Unload { slot: ModuleSlot(0) }, None);
    for _ in 0..LANES {
        assert!(matches!(node.frame(), FromWorker::Log { text, .. } if text == "seen"));
    }
    all_lanes(&mut node, &mut lanes, |node| assert_eq!(node.round(1, &[1; 40]).answer, Answer::Failed));
    node.send(&ToWorker::Shutdown, None);
    assert!(node.worker.wait().unwrap().success());
}

/// Goal: a version replaces another in all lanes at once, and every packet under way is answered, in order, by one of them.
#[test]
fn a_version_replaces_another_in_all_lanes() {
    let (mut node, mut lanes) = start();
    let mark = |number: u8| {
        let mark = format!(
            "(i32.store8 (local.get $p) (i32.const {number})) (i32.store offset=12 (local.get $d) (i32.const 2))"
        );
        roomy(&for_each_packet(&mark), "")
    };
    load(&mut node, 0, "marks", &mark(1));
    for version in 2..6 {
        let code = node.compile(&mark(version));
        all_lanes(&mut node, &mut lanes, |node| node.push(1, &vec![&[0; 64][..]; HOST_SLOTS]));
        node.send_load(0, "marks", Some(&code), ModuleLimits::default(), true);
        all_lanes(&mut node, &mut lanes, |node| {
            let answers = node.answers(HOST_SLOTS, &mut Vec::new());
            let marks: Vec<_> = answers.iter().map(|one| one.bytes[0]).collect();
            assert!(marks.is_sorted() && marks.iter().all(|mark| [version - 1, version].contains(mark)));
            assert!(answers.iter().map(|one| one.cookie).eq(0..HOST_SLOTS as u64));
        });
        assert_eq!(node.frame(), FromWorker::Loaded { slot: ModuleSlot(0) });
        all_lanes(&mut node, &mut lanes, |node| assert_eq!(node.round(1, &[0; 40]).bytes[0], version));
    }
}

#[test]
fn instances_for_which_the_container_has_no_memory_are_refused() {
    let module = guest_with(&for_each_packet(NUMBER), SEEN);
    let limits = ModuleLimits { memory_bytes: 8 << 20, ..ModuleLimits::default() };
    let mut node = Node::start_with(&["--memory-bytes", "33554431"]);
    let mut lanes: Vec<Lane> = (1..LANES).map(|_| node.add_lane()).collect();
    let FromWorker::Failed { refusal, .. } = node.load_parallel(0, "large", &module, limits) else {
        panic!("it is loaded")
    };
    assert_eq!(refusal.kind, RefusalKind::MemoryLimit);
    assert!(refusal.detail.contains("4 instances of a parallel module"), "{refusal}");
    assert_eq!(node.load_with(0, "large", &module, limits), FromWorker::Loaded { slot: ModuleSlot(0) });
    let limits = ModuleLimits { memory_bytes: (8 << 20) - 1, ..limits };
    assert_eq!(node.load_parallel(0, "large", &module, limits), FromWorker::Loaded { slot: ModuleSlot(0) });
    // A version that replaces another is loaded in a place of its own at first.
    assert_eq!(node.load_parallel(1, "large", &module, limits), FromWorker::Loaded { slot: ModuleSlot(1) });
    node.send(&ToWorker::Unload { slot: ModuleSlot(1) }, None);
    all_lanes(&mut node, &mut lanes, |node| assert_eq!(one(node, 1), 0));
}

/// Goal: the watchdog of a lane is told of an instance that hangs there, while the other lanes go on.
#[test]
fn an_instance_that_hangs_is_named_in_its_lane() {
    let (mut node, mut lanes) = start();
    let hang = "(if (i32.eq (i32.load8_u (local.get $p)) (i32.const 7)) (then (loop $ever (br $ever))))";
    load(&mut node, 5, "hangs", &guest_with(&for_each_packet(hang), ""));
    in_lane(&mut node, &mut lanes, 2, |node| node.push(1 << 5, &[&[7; 40]]));
    let until = Instant::now() + Duration::from_secs(60);
    while activity(lanes[1].words).module != Some(ModuleSlot(5)) {
        assert!(Instant::now() < until, "nobody hangs");
        std::thread::sleep(Duration::from_millis(1));
    }
    let before = activity(lanes[1].words);
    for lane in [0, 1, 3] {
        in_lane(&mut node, &mut lanes, lane, |node| {
            assert_eq!(node.round(1 << 5, &[1; 40]).answer, Answer::Pass);
            assert_eq!(node.ring.activity().module, None);
        });
    }
    assert_eq!(activity(lanes[1].words), before);
}

#[test]
fn timers_and_what_they_inject_are_of_a_lane() {
    let (mut node, mut lanes) = start();
    let set = "(drop (call $timer_set (i32.const 1) (i64.const 1000000) (i64.const 0)))";
    let timer = r#"(func (export "netserv_timer") (param i32)
        (drop (call $inject (i32.const 131136) (i32.const 40))) (drop (call $log (i32.const 2) (i32.const 16) (i32.const 4))))"#;
    load(&mut node, 0, "timers", &guest_with(set, &format!("{SEEN} {timer}")));
    for lane in [2, 0] {
        in_lane(&mut node, &mut lanes, lane, |node| {
            let mut injected = Vec::new();
            node.push(1, &[&[5; 64]]);
            node.answers(1, &mut injected);
            let frame = node.frame();
            assert!(matches!(&frame, FromWorker::Log { text, .. } if text == "seen"), "{frame:?}");
            node.push(1, &[]);
            // The log line leaves after the packet, or with it.
            let until = Instant::now() + Duration::from_secs(60);
            while injected.is_empty() {
                assert!(Instant::now() < until, "nothing is injected");
                node.push(1 << 9, &[&[5; 64]]);
                node.answers(1, &mut injected);
            }
            assert_eq!(injected, [[5; 40]]);
        });
    }
}

/// Goal: modules come and go, and counts are asked for, while all lanes are busy: nothing is lost and nothing comes twice.
#[test]
fn changes_under_traffic_lose_nothing() {
    let (mut node, mut lanes) = start();
    load(&mut node, 0, "numbers", &roomy(&for_each_packet(NUMBER), SEEN));
    let mut counted = 0;
    for round in 0..40 {
        all_lanes(&mut node, &mut lanes, |node| node.push(1, &vec![&[9; 64][..]; HOST_SLOTS]));
        match round % 4 {
            0 => {
                let code = node.compile(&guest_with("", ""));
                node.send_load(1, "other", Some(&code), ModuleLimits::default(), round % 8 == 0);
            }
            2 => node.send(&ToWorker::Unload { slot: ModuleSlot(1) }, None),
            _ => node.send(&ToWorker::Stats, None),
        }
        all_lanes(&mut node, &mut lanes, |node| {
            assert_eq!(numbers(node, HOST_SLOTS), (round * HOST_SLOTS..(round + 1) * HOST_SLOTS).collect::<Vec<_>>());
        });
        if round % 4 == 2 {
            continue;
        }
        loop {
            let frame = node.frame();
            if let FromWorker::Stats { slot: ModuleSlot(0), packets, .. } = frame {
                assert!(packets.seen >= counted);
                counted = packets.seen;
            }
            if matches!(frame, FromWorker::StatsDone { .. } | FromWorker::Loaded { .. }) {
                break;
            }
        }
    }
    assert!(counted > 0);
}

fn load(node: &mut Node, slot: u8, name: &str, wasm: &[u8]) {
    let answer = node.load_parallel(slot, name, wasm, ModuleLimits::default());
    assert_eq!(answer, FromWorker::Loaded { slot: ModuleSlot(slot) });
}

fn all_lanes(node: &mut Node, lanes: &mut [Lane], mut run: impl FnMut(&mut Node)) {
    for lane in 0..=lanes.len() {
        in_lane(node, lanes, lane, &mut run);
    }
}

/// Returns the number that a module puts over one packet.
fn one(node: &mut Node, modules: u64) -> usize {
    node.push(modules, &[&[0; 40]]);
    numbers(node, 1)[0]
}

fn numbers(node: &mut Node, count: usize) -> Vec<usize> {
    let answers = node.answers(count, &mut Vec::new());
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    answers.iter().map(|one| number(&one.bytes)).collect()
}

/// Returns the names of the threads that the worker has for lanes.
fn lane_threads(node: &Node) -> Vec<String> {
    node.switches().into_keys().filter(|name| name.starts_with("packets-")).collect()
}
