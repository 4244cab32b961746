// SPDX-License-Identifier: Apache-2.0
//! The ring's slots in the memory of a module.

use std::sync::atomic::Ordering;

use netserv_model::RefusalKind;
use netserv_model::effect::ModuleSlot;
use netserv_model::limits::BATCH_PACKETS_MAX;
use netserv_wire::container::frames::{FromWorker, ToWorker};
use netserv_wire::container::ring::{Answer, HOST_SLOTS, HostEnd, Ingress, PACKET_OFFSET, SLOT_BYTES, SLOTS_OFFSET};
use netserv_worker_base::link::ring_memory::RingMemory;

use crate::node::sys;
use crate::serve::Node;
use crate::support::{Setup, for_each_packet, roomy};

/// Where the area's slots are in the memory of [`roomy`] guests.
const SLOTS: usize = 2 * 65_536;
/// Writes over every slot of the ring.
const SCRIBBLE: &str = "(memory.fill (i32.const 131072) (i32.const 0xAB) (i32.const 2621440))";
const ADD_ONE: &str = "(i32.store8 (local.get $p) (i32.add (i32.load8_u (local.get $p)) (i32.const 1)))
    (i32.store offset=12 (local.get $d) (i32.const 2))";

/// Modifies every packet: adds one to its first byte.
fn adder() -> Vec<u8> {
    roomy(&for_each_packet(ADD_ONE), "")
}

/// Passes every packet, and writes over every slot.
fn scribbler() -> Vec<u8> {
    roomy(SCRIBBLE, "")
}

#[test]
fn packets_are_touched_where_they_lie() {
    for (arguments, in_place) in [(&[][..], true), (&["--copy"][..], false)] {
        let mut node = Node::start_with(arguments);
        let over = for_each_packet("(i32.store8 (local.get $p) (i32.const 99))");
        node.load(0, "over", &roomy(&over, ""));
        let answer = node.round(1, &[5; 64]);
        assert_eq!((answer.answer, answer.bytes), (Answer::Pass, vec![]));
        assert_eq!(first_byte(&node) == 99, in_place, "{arguments:?}");
        node.load(0, "adder", &adder());
        let answer = node.round(1, &[7; 1984]);
        assert_eq!(
            (answer.answer, answer.bytes.len(), answer.bytes[0], answer.bytes[1]),
            (Answer::Modified, 1984, 8, 7)
        );
    }
}

#[test]
fn a_descriptor_tells_of_a_packet_in_any_slot() {
    let mut node = Node::start();
    let copy_descriptor = "(memory.copy (local.get $p) (local.get $d) (i32.const 32))
        (i32.store offset=4 (local.get $d) (i32.const 40)) (i32.store offset=12 (local.get $d) (i32.const 2))";
    node.load(0, "descriptors", &roomy(&for_each_packet(copy_descriptor), ""));
    let count = 3 * BATCH_PACKETS_MAX;
    for cookie in 0..count as u64 {
        node.ring.push(&[7; 100], Ingress { interface: 9, timestamp_ns: cookie }, 1, cookie).unwrap();
    }
    node.publish();
    for (slot, answer) in node.answers(count, &mut Vec::new()).into_iter().enumerate() {
        let words: Vec<u32> = answer.bytes.chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
        let address = u32::try_from(SLOTS + slot * SLOT_BYTES + PACKET_OFFSET).unwrap();
        let time = u32::try_from(answer.cookie).unwrap();
        assert_eq!(words, [address, 100, 1984, 0, time, 0, 9, 0, 0x0707_0707, 0x0707_0707]);
    }
}

#[test]
fn who_writes_over_all_slots_gets_each_packet_and_answers_it() {
    let mut node = Node::start();
    // It says "modified" of the packets of its first batch only.
    let first = format!("(global.set $n (i32.const 1)) {}", for_all("(i32.const 2)"));
    let process = format!("{SCRIBBLE} (if (i32.eqz (global.get $n)) (then {first}))");
    let fields = "(global $n (mut i32) (i32.const 0))";
    node.load(0, "scribbler", &roomy(&process, fields));
    node.push(1, &vec![&[5_u8; 100][..]; HOST_SLOTS]);
    let answers = node.answers(HOST_SLOTS, &mut Vec::new());
    assert!(answers.iter().enumerate().all(|(n, one)| one.cookie == n as u64));
    let modified = answers.iter().filter(|one| one.answer == Answer::Modified);
    assert!(modified.clone().all(|one| one.bytes == [0xAB; 100]));
    assert!((1..=BATCH_PACKETS_MAX).contains(&modified.count()));
    assert!(answers.iter().all(|one| matches!(one.answer, Answer::Modified | Answer::Pass)));
    assert_eq!(node.ring.outstanding(), 0);
    // And it harms nobody for longer than it is there.
    node.load(0, "adder", &adder());
    assert_eq!(node.round(1, &[5; 64]).bytes, [&[6][..], &[5; 63]].concat());
}

#[test]
fn the_next_module_sees_what_came_and_not_what_the_first_wrote_over_it() {
    let mut node = Node::start();
    node.load(0, "scribbler", &scribbler());
    let packets = vec![&[5_u8; 100][..]; 400];
    // Some of these are in the ring, and written over, while the second is being loaded.
    node.push(0b11, &packets);
    node.load(1, "adder", &adder());
    node.push(0b11, &packets);
    let answers = node.answers(800, &mut Vec::new());
    let modified: Vec<_> = answers.iter().filter(|one| one.answer == Answer::Modified).collect();
    assert!(modified.len() >= 400);
    assert!(modified.iter().all(|one| one.bytes == [&[6][..], &[5; 99]].concat()));
    // Before the second was there, they failed on it.
    assert!(answers.iter().all(|one| matches!(one.answer, Answer::Modified | Answer::Failed)));
    // Alone again, it has the slots again.
    node.send(&ToWorker::Unload { slot: ModuleSlot(1) }, None);
    node.send(&ToWorker::Stats, None);
    while !matches!(node.frame(), FromWorker::StatsDone { .. }) {}
    assert_eq!(node.round(1, &[5; 64]).answer, Answer::Pass);
    assert_eq!(first_byte(&node), 0xAB);
}

#[test]
fn a_trap_leaves_nothing_of_what_the_module_wrote() {
    let mut node = Node::start();
    node.load(0, "trap", &roomy(&format!("{SCRIBBLE} unreachable"), ""));
    node.push(0b01, &vec![&[5_u8; 100][..]; 500]);
    let answers = node.answers(500, &mut Vec::new());
    assert!(answers.iter().all(|one| (one.answer, one.module) == (Answer::Failed, Some(0)) && one.bytes.is_empty()));
    let FromWorker::Failed { refusal, .. } = node.frame() else { panic!("a failure") };
    assert_eq!(refusal.kind, RefusalKind::Trapped);
    node.load(0, "adder", &adder());
    assert_eq!(node.round(1, &[5; 64]).bytes[0], 6);
}

#[test]
fn a_trap_beside_a_module_gives_that_one_the_slots() {
    let mut node = Node::start();
    node.load(0, "trap", &roomy("unreachable", ""));
    node.load(1, "scribbler", &scribbler());
    assert_eq!(node.round(0b10, &[5; 64]).answer, Answer::Pass);
    assert_eq!(first_byte(&node), 5);
    assert_eq!(node.round(0b11, &[5; 64]).answer, Answer::Failed);
    assert_eq!(node.round(0b10, &[5; 64]).answer, Answer::Pass);
    assert_eq!(first_byte(&node), 0xAB);
}

#[test]
fn host_calls_take_addresses_in_slots() {
    let mut node = Node::start();
    // The packet is the name of a counter, a line of the log, a key and a value, and goes out as a packet.
    let process = "(drop (call $counter_open (i32.const 131136) (i32.const 20)))
        (drop (call $log (i32.const 1) (i32.const 131136) (i32.const 20)))
        (drop (call $kv_set (i32.const 131136) (i32.const 4) (i32.const 131140) (i32.const 4)))
        (drop (call $inject (i32.const 131136) (i32.const 20)))
        (drop (call $kv_get (i32.const 131136) (i32.const 4) (i32.const 131137) (i32.const 9)))
        (i32.store (i32.const 65548) (i32.const 2))";
    node.load(0, "caller", &roomy(process, ""));
    node.push(1, &[b"abcdefghijklmnopqrst"]);
    let mut injected = Vec::new();
    let answers = node.answers(1, &mut injected);
    assert_eq!(answers[0].bytes, b"aefghfghijklmnopqrst");
    assert_eq!(injected, [b"abcdefghijklmnopqrst"]);
    assert!(matches!(node.frame(), FromWorker::Log { text, .. } if text == "abcdefghijklmnopqrst"));
    node.send(&ToWorker::Stats, None);
    let FromWorker::Stats { counters, .. } = node.frame() else { panic!("counters") };
    assert_eq!(counters.into_keys().collect::<Vec<_>>(), ["abcdefghijklmnopqrst"]);
}

#[test]
fn memory_grows_beside_mapped_slots() {
    let mut node = Node::start();
    let fields = "(global $pages (mut i32) (i32.const 0))
        (func $grow (if (i32.eqz (global.get $pages)) (then
            (global.set $pages (memory.grow (i32.const 1)))
            (i32.store8 (i32.const 2752512) (global.get $pages)))))";
    let process = "(call $grow) (i32.store8 (local.get $p) (i32.load8_u (i32.const 2752512)))";
    node.load(0, "grows", &roomy(&for_each_packet(process), fields));
    for _ in 0..2 {
        assert_eq!(node.round(1, &[5; 64]).answer, Answer::Pass);
        assert_eq!(first_byte(&node), 42);
    }
}

#[test]
fn no_page_of_the_ring_outlives_its_instance() {
    let setup = Setup::new();
    let (memory, words) = sys::ring();
    let inode = rustix::fs::fstat(&memory).unwrap().st_ino;
    let ring = RingMemory::open(memory).unwrap();
    let mut host = HostEnd::new(words).unwrap();
    host.push(&[0xCD; 100], Ingress::default(), 1, 0).unwrap();
    let before = mappings(inode);
    for _ in 0..20 {
        let mut mapped = setup.start(&adder()).unwrap();
        assert!(mapped.map(ring.slots()).unwrap());
        assert_eq!((mapped.memory_bytes()[SLOTS + PACKET_OFFSET], mappings(inode)), (0xCD, before + 1));
        // Taken out and put in again, and left in at the end.
        mapped.unmap().unwrap();
        assert!(mapped.memory_bytes().iter().all(|byte| *byte == 0));
        assert_eq!(mappings(inode), before);
        assert!(mapped.map(ring.slots()).unwrap());
        drop(mapped);
        assert_eq!(mappings(inode), before);
        let fresh = setup.start(&adder()).unwrap();
        assert!(fresh.memory_bytes().iter().all(|byte| *byte == 0));
    }
    assert_eq!(words[SLOTS_OFFSET / 8 + PACKET_OFFSET / 8].load(Ordering::Relaxed), 0xCDCD_CDCD_CDCD_CDCD);
}

#[test]
fn slots_do_not_count_against_a_modules_memory() {
    // Takes the area from the node when it is asked for, as the SDK does.
    let asks = |memory: &str| {
        wat::parse_str(format!(
            r#"(module (memory (export "memory") {memory})
            (func (export "netserv_abi") (result i32) (i32.const 1))
            (func (export "netserv_area") (param i32 i32) (result i32)
                (local $pages i32)
                (local.set $pages (memory.grow (i32.add (i32.const 1)
                    (i32.div_u (i32.mul (local.get 0) (local.get 1)) (i32.const 65536)))))
                (if (result i32) (i32.eq (local.get $pages) (i32.const -1))
                    (then (i32.const 0)) (else (i32.mul (local.get $pages) (i32.const 65536)))))
            (func (export "netserv_start") (result i32) (i32.const 0))
            (func (export "netserv_process") (param i32)))"#
        ))
        .unwrap()
    };
    let (memory, words) = sys::ring();
    let ring = RingMemory::open(memory).unwrap();
    let _host = HostEnd::new(words).unwrap();
    let mut setup = Setup::new();
    for (memory, pages_allowed, mapped) in [
        ("1", Some(4), Some(true)),      // Its own page, the table, and two pages for 64 slots.
        ("1", Some(3), None),            // Not even that.
        ("1 41", Some(64), Some(false)), // It does not want to grow that far, and asks for less.
        ("1 42", Some(64), Some(true)),
    ] {
        setup.limits.memory_bytes = pages_allowed.unwrap_or(64) * 65_536;
        match (setup.start(&asks(memory)), mapped) {
            (Ok(mut instance), Some(mapped)) => assert_eq!(instance.map(ring.slots()).unwrap(), mapped, "{memory}"),
            (Err(refusal), None) => assert_eq!(refusal.kind, RefusalKind::AbiMismatch),
            (result, _) => panic!("{memory}: {:?}", result.err()),
        }
    }
}

#[test]
fn what_is_injected_is_what_the_module_had_when_it_said_so() {
    let mut node = Node::start();
    let process = format!("(drop (call $inject (i32.const 131136) (i32.const 40))) {SCRIBBLE}");
    node.load(0, "injector", &roomy(&process, ""));
    // More often than the worker has slots for such packets, so that each was written over before.
    for _ in 0..300 {
        let mut injected = Vec::new();
        node.push(1, &[&[5; 64]]);
        node.answers(1, &mut injected);
        assert_eq!(injected, [[5; 40]]);
    }
}

/// Stores a value as the verdict of every packet.
fn for_all(verdict: &str) -> String {
    (0..BATCH_PACKETS_MAX).map(|n| format!("(i32.store (i32.const {}) {verdict})", 65_536 + n * 32 + 12)).collect()
}

/// Returns the first byte of what lies in the first slot of the ring.
fn first_byte(node: &Node) -> u8 {
    node.words[(SLOTS_OFFSET + PACKET_OFFSET) / 8].load(Ordering::Relaxed).to_le_bytes()[0]
}

/// Returns how often a file is mapped into this process.
fn mappings(inode: u64) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.split_whitespace().nth(4) == Some(&inode.to_string())).count()
}
