// SPDX-License-Identifier: Apache-2.0
//! Batches, modules in turn, and modules that fail.
use crate::support::{Bench, Setup, bad_module, for_each_packet, guest, guest_with};
use netserv_model::effect::ModuleSlot;
use netserv_model::limits::{BATCH_PACKETS_MAX, PACKET_BYTES_MAX};
use netserv_model::{RefusalKind, Verdict};
use netserv_wire::container::ring::{Answer, Ingress};
use netserv_worker_packet::chain::Outcome;

fn per_packet(each: &str) -> Vec<u8> {
    guest(&for_each_packet(each))
}

const MODIFY: &str = "(i32.store offset=12 (local.get $d) (i32.const 2))";
const DROP_ODD: &str = "(i32.store offset=12 (local.get $d) (i32.and (i32.load8_u (local.get $p)) (i32.const 1)))";

fn add_to_first_byte(amount: u32) -> Vec<u8> {
    per_packet(&format!(
        "(i32.store8 (local.get $p) (i32.add (i32.load8_u (local.get $p)) (i32.const {amount}))) {MODIFY}"
    ))
}

fn outcome(answer: Answer, module: Option<u8>) -> Outcome {
    Outcome { answer, module: module.map(ModuleSlot) }
}

#[test]
fn each_packet_of_a_batch_gets_its_own_verdict() {
    let mut chain = Setup::new().chain(&[(0, &per_packet(DROP_ODD))]);
    let packets: Vec<Vec<u8>> = (0..BATCH_PACKETS_MAX).map(|n| vec![u8::try_from(n).unwrap(); 20 + n]).collect();
    let mut bench = Bench { packets: packets.iter().map(|packet| (1, packet.clone())).collect(), ..Bench::default() };
    for (n, outcome) in bench.run(&mut chain).into_iter().enumerate() {
        let expected = if n % 2 == 1 { (Answer::Drop, Some(ModuleSlot(0))) } else { (Answer::Pass, None) };
        assert_eq!((outcome.answer, outcome.module), expected, "{n}");
    }
    assert_eq!(bench.entered.len(), 1);
    let counts = chain.remove(ModuleSlot(0)).unwrap().remove(0).counts;
    assert_eq!((counts.seen, counts.passed, counts.dropped, counts.modified), (64, 32, 32, 0));
}

#[test]
fn a_descriptor_tells_where_when_and_how_much() {
    let copy_descriptor = format!("(memory.copy (local.get $p) (local.get $d) (i32.const 32)) {MODIFY}");
    let mut chain = Setup::new().chain(&[(0, &per_packet(&copy_descriptor))]);
    let mut bench = Bench::new(&[(1, &[0; 40]), (1, &[0; 41])]);
    bench.run(&mut chain);
    let words: Vec<u32> =
        bench.packets[1].1[..32].chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
    assert_eq!(words, [2 * 65_536 + 2048 + 64, 41, 1984, 0, 101, 0, 3, 0]);
}

#[test]
fn modules_see_what_the_ones_before_left() {
    let (first, second) =
        (add_to_first_byte(10), per_packet(&format!("{DROP_ODD} (i32.store8 (local.get $p) (i32.const 99))")));
    let mut chain = Setup::new().chain(&[(9, &first), (4, &second)]);
    let both = 1 << 9 | 1 << 4;
    let mut bench = Bench::new(&[(both, &[1; 20]), (both, &[2; 20]), (1 << 4, &[3; 20]), (1 << 9, &[5; 20])]);
    let outcomes = bench.run(&mut chain);
    assert_eq!(
        outcomes,
        [
            outcome(Answer::Drop, Some(4)),
            outcome(Answer::Modified, Some(9)),
            outcome(Answer::Drop, Some(4)),
            outcome(Answer::Modified, Some(9)),
        ]
    );
    // What a module writes over a packet that it passes does not count.
    assert_eq!([bench.packets[1].1[0], bench.packets[3].1[0]], [12, 15]);
    assert_eq!(bench.entered, [9, 4]);
}

#[test]
fn a_dropped_packet_is_shown_to_nobody_else() {
    let mut chain = Setup::new().chain(&[(0, &per_packet(DROP_ODD)), (1, &add_to_first_byte(1))]);
    let mut bench = Bench::new(&[(3, &[1; 20]), (3, &[3; 20])]);
    assert_eq!(bench.run(&mut chain), [outcome(Answer::Drop, Some(0)); 2]);
    assert_eq!(bench.entered, [0]);
}

#[test]
fn a_packet_may_grow_to_the_capacity() {
    let resize =
        |length: usize| per_packet(&format!("(i32.store offset=4 (local.get $d) (i32.const {length})) {MODIFY}"));
    for (length, fits) in [(20, true), (PACKET_BYTES_MAX, true), (19, false), (PACKET_BYTES_MAX + 1, false)] {
        let mut chain = Setup::new().chain(&[(0, &resize(length))]);
        let mut bench = Bench::new(&[(1, &[7; 30])]);
        let outcomes = bench.run(&mut chain);
        if fits {
            assert_eq!((outcomes[0].answer, bench.packets[0].1.len()), (Answer::Modified, length));
        } else {
            assert_eq!((outcomes[0].answer, bench.failed[0].1.kind), (Answer::Failed, RefusalKind::Trapped));
        }
    }
}

#[test]
fn a_trap_ends_one_module_and_fails_its_packets() {
    let (first, last) = (add_to_first_byte(1), add_to_first_byte(10));
    let trap = bad_module("trap-on-packet.wat");
    let mut chain = Setup::new().chain(&[(0, &first), (1, &trap), (2, &last)]);
    let packets: [(u64, &[u8]); 3] = [(0b111, &[1; 20]), (0b101, &[2; 20]), (0b010, &[3; 20])];
    let mut bench = Bench::new(&packets);
    let failed = outcome(Answer::Failed, Some(1));
    assert_eq!(bench.run(&mut chain), [failed, outcome(Answer::Modified, Some(2)), failed]);
    assert_eq!(bench.packets[1].1[0], 13);
    let (slot, refusal) = &bench.failed[0];
    assert_eq!((*slot, refusal.kind), (1, RefusalKind::Trapped));
    assert_eq!(refusal.detail, "wasm trap: wasm `unreachable` instruction executed in on_packet");

    // From here on the module is not there, and its packets fail at once.
    let mut bench = Bench::new(&packets);
    assert_eq!(bench.run(&mut chain), [failed, outcome(Answer::Modified, Some(2)), failed]);
    assert_eq!((bench.entered, bench.failed.len()), (vec![0, 2], 0));
}

#[test]
fn a_failure_names_the_modules_own_function_and_its_last_error() {
    let fields = r#"(data (i32.const 1024) "no key\n\1b[2J")
        (func $_ZN5guard5rules5parse17h0123456789abcdefE
            (drop (call $log (i32.const 0) (i32.const 1024) (i32.const 11)))
            (drop (call $log (i32.const 1) (i32.const 1024) (i32.const 2)))
            (call $_ZN4core9panicking9panic_fmt17h0123456789abcdefE))
        (func $_ZN4core9panicking9panic_fmt17h0123456789abcdefE (call $rust_begin_unwind))
        (func $rust_begin_unwind unreachable)"#;
    let guest = guest_with("(call $_ZN5guard5rules5parse17h0123456789abcdefE)", fields);
    let mut chain = Setup::new().chain(&[(0, &guest)]);
    let mut bench = Bench::new(&[(1, &[0; 20])]);
    bench.run(&mut chain);
    let refusal = &bench.failed[0].1;
    let words = "no key  [2J (wasm trap: wasm `unreachable` instruction executed in guard::rules::parse)";
    assert_eq!((refusal.kind, refusal.detail.as_str()), (RefusalKind::Trapped, words));
    assert_eq!(refusal.context[0], "in guard::rules::parse");
    assert!(refusal.context[1].starts_with("in function ") && refusal.context.len() == 2, "{:?}", refusal.context);
}

#[test]
fn an_error_of_an_earlier_call_has_nothing_to_do_with_a_failure() {
    let process = "(if (i32.eqz (i32.load8_u (i32.const 131136)))
        (then (drop (call $log (i32.const 0) (i32.const 1024) (i32.const 2)))) (else unreachable))";
    let mut chain = Setup::new().chain(&[(0, &guest(process))]);
    let mut bench = Bench::new(&[(1, &[0; 20])]);
    assert_eq!(bench.run(&mut chain)[0].answer, Answer::Pass);
    let mut bench = Bench::new(&[(1, &[1; 20])]);
    bench.run(&mut chain);
    assert!(bench.failed[0].1.detail.starts_with("wasm trap: "), "{:?}", bench.failed);
}

#[test]
fn a_recursion_without_end_leaves_a_bounded_context() {
    let fields = "(func $deep (call $deep))";
    let mut chain = Setup::new().chain(&[(0, &guest_with("(call $deep)", fields))]);
    let mut bench = Bench::new(&[(1, &[0; 20])]);
    bench.run(&mut chain);
    let refusal = &bench.failed[0].1;
    assert_eq!((refusal.context.len(), refusal.context[15].as_str()), (16, "in deep"));
}

#[test]
fn a_module_that_fails_is_no_way_around_the_ones_behind_it() {
    let trap = bad_module("trap-on-packet.wat");
    let mut chain = Setup::new().chain(&[(0, &trap), (1, &per_packet(DROP_ODD))]);
    for _ in 0..2 {
        let mut bench = Bench::new(&[(3, &[1; 20]), (3, &[2; 20])]);
        assert_eq!(bench.run(&mut chain), [outcome(Answer::Drop, Some(1)), outcome(Answer::Failed, Some(0))]);
    }
}

#[test]
fn a_verdict_that_means_nothing_counts_as_a_trap() {
    let mut chain = Setup::new().chain(&[(0, &bad_module("bad-verdict.wat"))]);
    let mut bench = Bench::new(&[(1, &[0; 20]), (1, &[0; 20])]);
    assert_eq!(bench.run(&mut chain), [outcome(Answer::Failed, Some(0)); 2]);
    assert_eq!(bench.failed[0].1.kind, RefusalKind::Trapped);
}

#[test]
fn memory_is_capped_while_a_module_runs() {
    let mut setup = Setup::new();
    setup.limits.memory_bytes = 40 * 65_536;
    let mut chain = setup.chain(&[(0, &bad_module("memory-hog.wat"))]);
    let mut bench = Bench::new(&[(1, &[0; 20])]);
    assert_eq!(bench.run(&mut chain)[0].answer, Answer::Pass);
    assert_eq!(bench.run(&mut chain)[0].answer, Answer::Pass);
    assert_eq!(bench.run(&mut chain)[0].answer, Answer::Failed);
    assert_eq!(bench.failed[0].1.kind, RefusalKind::MemoryLimit);
    assert_eq!(bench.failed[0].1.detail, "the module wants 3473408 bytes of memory and may have 2621440");
}

#[test]
fn a_log_flood_is_cut() {
    let mut chain = Setup::new().chain(&[(0, &bad_module("log-flood.wat"))]);
    assert_eq!(Bench::new(&[(1, &[0; 20])]).run(&mut chain)[0].answer, Answer::Pass);
    let mut instance = chain.remove(ModuleSlot(0)).unwrap().remove(0);
    let log = &mut instance.host_mut().log;
    log.note_left_out();
    let lines = log.take();
    assert_eq!(lines.len(), 257);
    assert_eq!(lines[256].text, "744 lines left out: the module writes too many");
}

#[test]
fn a_fresh_instance_never_sees_the_pages_of_another() {
    // The first writes all over its memory, in the packet area and beyond; the second says how much it finds.
    let writer = guest(
        "(memory.fill (i32.const 16) (i32.const 0xAB) (i32.const 65000))
        (memory.fill (i32.const 131200) (i32.const 0xAB) (i32.const 196480))",
    );
    let reader = guest(
        "(local $at i32) (local $found i32) (local.set $at (i32.const 16))
        (loop $next
            (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 0xAB))
                (then (local.set $found (i32.add (local.get $found) (i32.const 1)))))
            (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (i32.const 327680))))
        (i32.store (i32.const 131136) (local.get $found))
        (i32.store (i32.const 65548) (i32.const 2))",
    );
    let setup = Setup::new();
    for _ in 0..20 {
        let mut chain = setup.chain(&[(0, &writer)]);
        Bench::new(&[(1, &[0xAB; 1900])]).run(&mut chain);
        let written = chain.remove(ModuleSlot(0)).unwrap().remove(0);
        assert!(written.memory_bytes().iter().filter(|byte| **byte == 0xAB).count() > 200_000);
        drop(written);
        let mut chain = setup.chain(&[(0, &reader)]);
        let mut bench = Bench::new(&[(1, &[0; 20])]);
        bench.run(&mut chain);
        assert_eq!(bench.packets[0].1[..4], [0; 4]);
    }
}

#[test]
fn a_packet_does_not_show_what_lay_in_its_slot_before() {
    // A module may see bytes of its own earlier packets behind a shorter one, but only its own: slots are not shared.
    let setup = Setup::new();
    let keep = guest("");
    let mut chain = setup.chain(&[(0, &keep), (1, &keep)]);
    Bench::new(&[(1, &[0xCD; 500])]).run(&mut chain);
    Bench::new(&[(2, &[1; 20])]).run(&mut chain);
    let other = chain.remove(ModuleSlot(1)).unwrap().remove(0);
    assert!(!other.memory_bytes().contains(&0xCD));
}

#[test]
fn a_module_in_the_same_slot_keeps_the_place() {
    let setup = Setup::new();
    let mut chain = setup.chain(&[(0, &add_to_first_byte(1)), (1, &per_packet(DROP_ODD))]);
    let old = chain.insert(ModuleSlot(0), vec![setup.start(&add_to_first_byte(2)).unwrap()]);
    assert!(old.is_some());
    let mut bench = Bench::new(&[(3, &[1; 20])]);
    assert_eq!(bench.run(&mut chain), [outcome(Answer::Drop, Some(1))]);
    assert_eq!(bench.entered, [0, 1]);
}

#[test]
fn stop_is_called_and_may_be_missing() {
    let setup = Setup::new();
    let stops = guest_with(
        "",
        r#"(data (i32.const 0) "bye")
        (func (export "netserv_stop") (drop (call $log (i32.const 2) (i32.const 0) (i32.const 3))))"#,
    );
    let mut instance = setup.start(&stops).unwrap();
    assert_eq!(instance.stop(), Ok(()));
    assert_eq!(instance.into_host().log.take()[0].text, "bye");
    assert_eq!(setup.start(&guest("")).unwrap().stop(), Ok(()));
}

#[test]
fn an_instance_can_be_used_without_a_chain() {
    let mut instance = Setup::new().start(&per_packet(DROP_ODD)).unwrap();
    instance.place(0, 20, Ingress::default()).fill(1);
    instance.place(1, 20, Ingress::default()).fill(2);
    let mut left = Vec::new();
    instance.process(2, &mut left).unwrap();
    assert_eq!([left[0].verdict, left[1].verdict], [Verdict::Drop, Verdict::Pass]);
    assert_eq!(instance.packet(1, 20), [2; 20]);
}

/// The order of packets may be another than that of loading; who is not in it comes last.
#[test]
fn modules_can_be_put_into_another_order() {
    let add = add_to_first_byte(1);
    let mut chain = Setup::new().chain(&[(0, &add), (1, &add), (2, &add), (3, &add)]);
    chain.sort(&[ModuleSlot(2), ModuleSlot(9), ModuleSlot(0)]);
    let mut bench = Bench::new(&[(0b1111, &[0; 20])]);
    bench.run(&mut chain);
    assert_eq!((bench.entered, bench.packets[0].1[0]), (vec![2, 0, 1, 3], 4));
}
