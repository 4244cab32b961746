// SPDX-License-Identifier: Apache-2.0
//! One worker that serves several lanes of its node.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_wire::container::frames::FromWorker;
use netserv_wire::container::ring::{Answer, HOST_SLOTS, Ingress, PACKET_OFFSET, SLOTS_OFFSET, activity};

use crate::node::Lane;
use crate::serve::Node;
use crate::support::{for_each_packet, guest, roomy_for_four};

const ADD_ONE: &str = "(i32.store8 (local.get $p) (i32.add (i32.load8_u (local.get $p)) (i32.const 1)))
    (i32.store offset=12 (local.get $d) (i32.const 2))";

/// Goal: packets come back by the lane that they came by, in order, whether they lie in the module's memory or are copied,
/// while the worker sleeps between them and while all lanes are full.
#[test]
fn each_lane_has_its_own_packets_back() {
    for module in [roomy_for_four(&for_each_packet(ADD_ONE), ""), guest(&for_each_packet(ADD_ONE))] {
        let (mut node, mut lanes) = start();
        load(&mut node, 0, &module);
        for number in 0..12 {
            in_lane(&mut node, &mut lanes, number % 4, |node| {
                let first = u8::try_from(number).unwrap();
                let answer = node.round(1, &[first; 64]);
                assert_eq!((answer.answer, answer.bytes[0], answer.bytes[1]), (Answer::Modified, first + 1, first));
                let lies = node.words[(SLOTS_OFFSET + PACKET_OFFSET) / 8].load(Ordering::Relaxed).to_le_bytes()[0];
                assert_eq!(lies, first + 1);
            });
        }
        let packets = vec![&[7_u8; 100][..]; HOST_SLOTS];
        for number in 0..4 {
            in_lane(&mut node, &mut lanes, number, |node| node.push(1, &packets));
        }
        for number in 0..4 {
            in_lane(&mut node, &mut lanes, number, |node| {
                let answers = node.answers(HOST_SLOTS, &mut Vec::new());
                assert!(answers.iter().enumerate().all(|(n, one)| one.cookie == n as u64 && one.bytes[0] == 8));
                assert_eq!(node.ring.outstanding(), 0);
            });
        }
    }
}

#[test]
fn a_module_among_others_is_copied_to_in_every_lane() {
    let (mut node, mut lanes) = start();
    load(&mut node, 0, &roomy_for_four(&for_each_packet(ADD_ONE), ""));
    load(&mut node, 1, &roomy_for_four(&for_each_packet(ADD_ONE), ""));
    for number in 0..4 {
        in_lane(&mut node, &mut lanes, number, |node| {
            assert_eq!(node.round(0b11, &[1; 64]).bytes, [&[3][..], &[1; 63]].concat());
        });
    }
}

#[test]
fn what_a_module_makes_of_a_packet_leaves_by_its_lane() {
    let (mut node, mut lanes) = start();
    node.load(0, "injector", &guest("(drop (call $inject (i32.const 131136) (i32.const 40)))"));
    let mut injected = Vec::new();
    in_lane(&mut node, &mut lanes, 2, |node| {
        node.push(1, &[&[5; 64]]);
        node.answers(1, &mut injected);
    });
    assert_eq!(injected, [[5; 40]]);
    for number in [0, 1, 3] {
        in_lane(&mut node, &mut lanes, number, |node| assert_eq!(node.ring.pop(), Ok(None)));
    }
}

/// All watchdogs look at the ring of lane 0.
#[test]
fn a_module_that_hangs_in_any_lane_is_named_in_lane_0() {
    let (mut node, mut lanes) = start();
    node.load(3, "hangs", &guest("(loop $ever (br $ever))"));
    in_lane(&mut node, &mut lanes, 1, |node| node.push(1 << 3, &[&[5; 64]]));
    let until = Instant::now() + Duration::from_secs(60);
    while node.ring.activity().module != Some(ModuleSlot(3)) {
        assert!(Instant::now() < until, "nobody hangs");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(lanes.iter().all(|lane| activity(lane.words).module.is_none()));
}

#[test]
fn a_worker_sleeps_only_while_no_lane_lets_it_spin() {
    let (mut node, mut lanes) = start();
    node.load(0, "adder", &guest(&for_each_packet(ADD_ONE)));
    lanes[2].ring.let_spin(true);
    in_lane(&mut node, &mut lanes, 1, |node| assert_eq!(node.round(1, &[1; 40]).answer, Answer::Modified));
    for _ in 0..100 {
        in_lane(&mut node, &mut lanes, 0, |node| {
            node.ring.push(&[1; 40], Ingress::default(), 1, 7).unwrap();
            assert!(!node.ring.publish(), "it looks again and again");
            assert_eq!(node.answers(1, &mut Vec::new()).len(), 1);
        });
    }
    lanes[2].ring.let_spin(false);
    let until = Instant::now() + Duration::from_secs(60);
    let mut slept = false;
    while !slept {
        assert!(Instant::now() < until, "it does not sleep");
        std::thread::sleep(Duration::from_millis(1));
        lanes[0].ring.push(&[1; 40], Ingress::default(), 1, 7).unwrap();
        slept = lanes[0].ring.publish();
        rustix::io::write(&node.wake_worker, &1_u64.to_ne_bytes()).unwrap();
        in_lane(&mut node, &mut lanes, 1, |node| drop(node.answers(1, &mut Vec::new())));
    }
}

/// Starts a worker of four lanes.
pub fn start() -> (Node, Vec<Lane>) {
    let node = Node::start();
    let lanes = (1..4).map(|_| node.add_lane()).collect();
    (node, lanes)
}

/// Loads a module whose memory is there from the beginning.
fn load(node: &mut Node, slot: u8, wasm: &[u8]) {
    let limits = ModuleLimits { memory_bytes: 16 << 20, ..ModuleLimits::default() };
    let answer = node.load_with(slot, &format!("adder{slot}"), wasm, limits);
    assert_eq!(answer, FromWorker::Loaded { slot: ModuleSlot(slot) });
}

/// Has the node be about a lane while `run` runs.
pub fn in_lane(node: &mut Node, lanes: &mut [Lane], number: usize, run: impl FnOnce(&mut Node)) {
    if let Some(lane) = number.checked_sub(1) {
        node.exchange(&mut lanes[lane]);
        run(node);
        node.exchange(&mut lanes[lane]);
    } else {
        run(node);
    }
}
