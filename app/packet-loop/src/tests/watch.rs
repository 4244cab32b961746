// SPDX-License-Identifier: Apache-2.0
//! The watchdog: who hangs, for how long, and who does not.

use std::cell::Cell;

use netserv_wire::container::ring::SLOTS_KEPT;

use super::*;
use crate::limits::{GIVE_BACK_INTERVAL, GIVEN_BACK_PER_LOOK_MAX, PROCESSOR_WAIT_MAX};
use crate::watchdog::WATCH_GAP_MAX;

const CALL: Duration = Duration::from_millis(100);

#[test]
fn a_call_that_takes_too_long_is_reported_once() {
    let (mut rig, start) = busy_in(Some(3));
    check(&mut rig, start, CALL, &[]);
    check(&mut rig, start, CALL + WATCH_INTERVAL * 2, &[stalled(Some(3))]);
    check(&mut rig, start, CALL * 2, &[]);
}

#[test]
fn a_worker_outside_of_modules_has_more_time() {
    let (mut rig, start) = busy_in(None);
    check(&mut rig, start, PROCESSOR_WAIT_MAX - WATCH_INTERVAL * 3, &[]);
    check(&mut rig, start, PROCESSOR_WAIT_MAX + WATCH_INTERVAL * 2, &[stalled(None)]);
}

#[test]
fn steps_and_answers_start_the_time_anew() {
    let (mut rig, start) = busy_in(Some(3));
    check(&mut rig, start, CALL, &[]);
    rig.workers.get_mut(ALICE).unwrap().end().enter(ModuleSlot(3));
    check(&mut rig, start, CALL * 2, &[]);
    check(&mut rig, start, CALL * 3 + WATCH_INTERVAL, &[stalled(Some(3))]);
}

#[test]
fn a_worker_without_packets_and_calls_may_rest() {
    let (mut rig, start) = busy_in(None);
    rig.answer(ALICE, Answer::Pass);
    check(&mut rig, start, PROCESSOR_WAIT_MAX * 10, &[]);
}

/// A timer runs without packets, and can hang too.
#[test]
fn a_call_without_packets_is_watched() {
    let (mut rig, start) = busy_in(Some(3));
    rig.answer(ALICE, Answer::Pass);
    check(&mut rig, start, CALL + WATCH_INTERVAL * 3, &[stalled(Some(3))]);
}

/// A worker that was taken over could say that it moves and keep its packets for ever.
#[test]
fn steps_without_answers_do_not_help_for_ever() {
    let (mut rig, start) = busy_in(Some(3));
    let mut reported = Duration::ZERO;
    for tick in 1..200 {
        rig.workers.get_mut(ALICE).unwrap().end().enter(ModuleSlot(3));
        let passed = CALL / 2 * tick;
        look(&mut rig, start, passed);
        if !rig.events().is_empty() {
            reported = passed;
            break;
        }
    }
    // The worker serves its lanes in turn, and may call each module for a batch of each.
    let allowed = PROCESSOR_WAIT_MAX + CALL * rig.lanes();
    assert!((allowed..allowed + CALL).contains(&reported), "{reported:?}");
}

#[test]
fn a_report_that_was_not_taken_is_made_again() {
    let (mut rig, start) = busy_in(Some(3));
    *rig.listening.lock().unwrap() = false;
    check(&mut rig, start, CALL * 2, &[]);
    *rig.listening.lock().unwrap() = true;
    check(&mut rig, start, CALL * 3, &[stalled(Some(3))]);
}

/// When this thread itself did not run, the others most likely did not either: nobody is blamed for it.
#[test]
fn a_gap_in_the_watch_blames_nobody() {
    let (mut rig, start) = busy_in(Some(3));
    watch(&mut rig.packets, start + WATCH_GAP_MAX * 2);
    assert_eq!(rig.events(), []);
    let start = start + WATCH_GAP_MAX * 2;
    check(&mut rig, start, CALL + WATCH_INTERVAL * 2, &[stalled(Some(3))]);
}

#[test]
fn a_module_that_nobody_announced_has_a_usual_time() {
    let (mut rig, start) = busy_in(Some(9));
    check(&mut rig, start, Duration::from_millis(500), &[]);
    check(&mut rig, start, Duration::from_millis(530), &[stalled(Some(9))]);
}

/// A module that computes is found as soon as it has used up its time, however long that took.
#[test]
fn a_call_that_computes_for_too_long_is_found() {
    for share in [1, 2, 10] {
        let (mut rig, start) = busy_in(Some(3));
        compute(&mut rig, share);
        check(&mut rig, start, CALL * share, &[]);
        check(&mut rig, start, CALL * share + WATCH_INTERVAL * 3, &[stalled(Some(3))]);
    }
}

/// An innocent module that gets a hundredth of a processor is left alone, as long as it takes steps.
#[test]
fn a_call_that_waits_for_the_processor_is_not_blamed() {
    let (mut rig, start) = busy_in(Some(3));
    compute(&mut rig, 100);
    check(&mut rig, start, PROCESSOR_WAIT_MAX, &[]);
    rig.workers.get_mut(ALICE).unwrap().end().enter(ModuleSlot(3));
    answer_at(&mut rig, start + PROCESSOR_WAIT_MAX);
    check(&mut rig, start, PROCESSOR_WAIT_MAX * 2, &[]);
}

/// A module that sleeps for ever computes nothing; it is found by the time that passes.
#[test]
fn a_call_that_sleeps_is_found_after_processor_wait_max() {
    let (mut rig, start) = busy_in(Some(3));
    compute(&mut rig, u32::MAX);
    answer_at(&mut rig, start + PROCESSOR_WAIT_MAX);
    check(&mut rig, start, PROCESSOR_WAIT_MAX + CALL, &[]);
    check(&mut rig, start, PROCESSOR_WAIT_MAX + CALL + WATCH_INTERVAL * 2, &[stalled(Some(3))]);
}

#[test]
fn each_call_has_its_own_time() {
    let (mut rig, start) = busy_in(Some(3));
    compute(&mut rig, 1);
    for calls in 1..20 {
        check(&mut rig, start, CALL * calls, &[]);
        rig.workers.get_mut(ALICE).unwrap().end().enter(ModuleSlot(3));
    }
}

/// Each takes a moment, in which packets wait.
#[test]
fn after_a_burst_to_many_containers_a_few_rings_a_look_give_their_memory_back() {
    let users = ["a", "b", "c", "d", "e", "f"];
    assert!(users.len() > GIVEN_BACK_PER_LOOK_MAX);
    let mut rig = Rig::new();
    for user in users {
        rig.container(user, &[]);
        let end = rig.packets.workers.end_of(&id(user)).unwrap();
        (0..=SLOTS_KEPT).for_each(|cookie| end.ring.push(&[0x45; 20], 1, cookie.try_into().unwrap()).unwrap());
        end.ring.publish();
        rig.answer(user, Answer::Pass);
    }
    let start = Instant::now() + GIVE_BACK_INTERVAL;
    watch(&mut rig.packets, start);
    assert_eq!(rig.packets.watchdog.may_give_back, GIVEN_BACK_PER_LOOK_MAX, "the slots were used just now");
    let mut given_back = Vec::new();
    for look in 0..3 {
        watch(&mut rig.packets, start + GIVE_BACK_INTERVAL + WATCH_INTERVAL * look);
        given_back.push(GIVEN_BACK_PER_LOOK_MAX - rig.packets.watchdog.may_give_back);
    }
    assert_eq!(given_back, [GIVEN_BACK_PER_LOOK_MAX, users.len() - GIVEN_BACK_PER_LOOK_MAX, 0]);
}

thread_local! {
    /// How much of the time that the watchdog looks at has passed.
    static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Gives the worker's thread the processor for one of so many parts of the time.
fn compute(rig: &mut Rig, parts: u32) {
    let end = rig.packets.workers.end_of(&id(ALICE)).unwrap();
    end.processor_time = Box::new(move |_| Some(PASSED.get() / parts));
}

/// Lets the worker give something back, for which there is a bound of its own.
fn answer_at(rig: &mut Rig, at: Instant) {
    rig.packets.workers.end_of(&id(ALICE)).unwrap().answered(at);
}

/// Returns a loop whose one worker holds a packet and says that it is in a module, and the time from which on.
fn busy_in(module: Option<u8>) -> (Rig, Instant) {
    let mut rig = Rig::with_alice(FailureMode::Open);
    rig.command(PacketCommand::SetCallTime { worker: id(ALICE), slot: ModuleSlot(3), call: CALL });
    rig.send(&[&to_alice(b"x")]);
    if let Some(slot) = module {
        rig.workers.get_mut(ALICE).unwrap().end().enter(ModuleSlot(slot));
    }
    let start = Instant::now() + WATCH_INTERVAL;
    watch(&mut rig.packets, start);
    assert_eq!(rig.events(), []);
    (rig, start)
}

/// Lets the watchdog look as often as it does, until so much time has passed; asserts what it reported on the way.
fn check(rig: &mut Rig, start: Instant, passed: Duration, expected: &[PacketEvent]) {
    look(rig, start, passed);
    assert_eq!(rig.events(), expected, "after {passed:?}");
}

fn look(rig: &mut Rig, start: Instant, passed: Duration) {
    while rig.packets.watchdog.looked_at + WATCH_INTERVAL <= start + passed {
        let at = rig.packets.watchdog.looked_at + WATCH_INTERVAL;
        PASSED.set(at - start);
        watch(&mut rig.packets, at);
    }
}

fn stalled(slot: Option<u8>) -> PacketEvent {
    PacketEvent::Stalled { worker: id(ALICE), generation: 7, slot: slot.map(ModuleSlot) }
}

in_four_lanes!(
    a_call_that_takes_too_long_is_reported_once,
    a_worker_outside_of_modules_has_more_time,
    steps_and_answers_start_the_time_anew,
    a_worker_without_packets_and_calls_may_rest,
    a_call_without_packets_is_watched,
    steps_without_answers_do_not_help_for_ever,
    a_report_that_was_not_taken_is_made_again,
    a_gap_in_the_watch_blames_nobody,
    a_module_that_nobody_announced_has_a_usual_time,
    a_call_that_computes_for_too_long_is_found,
    a_call_that_waits_for_the_processor_is_not_blamed,
    a_call_that_sleeps_is_found_after_processor_wait_max,
    each_call_has_its_own_time
);
