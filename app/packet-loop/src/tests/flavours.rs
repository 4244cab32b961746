// SPDX-License-Identifier: Apache-2.0
//! Two workers of one user: each has its own slot, ring and modules, and a packet visits them in the order of flavours.

use super::*;
use crate::limits::{INJECTED_BURST_MAX, INJECTED_PER_SECOND_MAX};

const WASM: &str = "alice";
const OSGI: &str = "alice/osgi";

/// Whichever was installed first, and whoever else wants the packet.
#[test]
fn wasm_sees_a_packet_before_osgi() {
    for (rules, way) in [
        (&[WASM, OSGI][..], &[WASM, OSGI][..]),
        (&[OSGI, WASM], &[WASM, OSGI]),
        (&[OSGI, BOB, WASM], &[WASM, OSGI, BOB]),
        (&[BOB, OSGI, WASM], &[BOB, WASM, OSGI]),
        (&[WASM, BOB, OSGI], &[WASM, BOB, OSGI]),
        (&[OSGI, WASM, OSGI, WASM], &[WASM, OSGI]),
    ] {
        let mut rig = rig();
        for (rule, worker) in (1..).zip(rules) {
            rig.module(rule, worker, 0, "udp", FailureMode::Open);
        }
        let packet = to_alice(b"x");
        rig.send(&[&packet]);
        for stop in way {
            for other in [WASM, OSGI, BOB].into_iter().filter(|other| other != stop) {
                assert_eq!(rig.arrivals(other).len(), 0, "{other} has it when {stop} should, {rules:?}");
            }
            assert_eq!(rig.answer(stop, Answer::Pass), std::slice::from_ref(&packet), "{stop} of {rules:?}");
        }
        assert_eq!(rig.outcomes(), [Outcome::Passed(packet)]);
        rig.finish();
    }
}

/// The slots were taken in the other order: that changes nothing.
#[test]
fn the_order_does_not_depend_on_which_worker_came_first() {
    let mut rig = Rig::new();
    rig.container(OSGI, &["10.0.0.0/24"]);
    rig.module(1, OSGI, 0, "udp", FailureMode::Open);
    rig.container(WASM, &["10.0.0.0/24"]);
    rig.module(2, WASM, 0, "udp", FailureMode::Open);
    rig.send(&[&to_alice(b"x")]);
    assert_eq!(rig.arrivals(OSGI).len(), 0);
    assert_eq!(rig.answer(WASM, Answer::Drop).len(), 1);
    rig.assert_counts("received=1 shown=1 dropped.module=1");
    rig.finish();
}

#[test]
fn osgi_sees_what_wasm_made_of_a_packet() {
    let mut rig = rig();
    rig.module(1, OSGI, 0, "udp", FailureMode::Open);
    rig.module(2, WASM, 0, "udp", FailureMode::Open);
    let (packet, changed) = (to_alice(b"x"), to_alice(b"changed"));
    rig.send(&[&packet]);
    rig.modify(WASM, &changed);
    assert_eq!(rig.answer(OSGI, Answer::Pass), std::slice::from_ref(&changed));
    assert_eq!(rig.outcomes(), [Outcome::Replaced(changed)]);
    rig.assert_counts("received=1 shown=2 modified=1");
    rig.finish();
}

/// Slot 0 of the one is not slot 0 of the other.
#[test]
fn a_worker_that_goes_leaves_the_other_alone() {
    let mut rig = rig();
    rig.module(1, WASM, 0, "udp", FailureMode::Open);
    rig.module(2, OSGI, 0, "udp", FailureMode::Open);
    rig.load(WASM, 0, false);
    rig.send(&[&to_alice(b"1")]);
    assert_eq!(rig.answer(OSGI, Answer::Pass), [to_alice(b"1")], "the other is loaded");
    rig.load(WASM, 0, true);
    rig.command(PacketCommand::RemoveWorker { worker: id(OSGI), reason: DropReason::ContainerGone });
    rig.send(&[&to_alice(b"2")]);
    assert_eq!(rig.answer(WASM, Answer::Pass), [to_alice(b"2")]);
    assert_eq!(rig.outcomes(), [Outcome::Passed(to_alice(b"1")), Outcome::Passed(to_alice(b"2"))]);
    rig.assert_counts("received=2 shown=2 passed=2 unseen.container-gone=1 unseen.trapped=1");
    rig.finish();
}

#[test]
fn prefixes_are_the_users_in_whichever_worker() {
    let mut rig = rig();
    rig.module(1, WASM, 0, "udp port 1", FailureMode::Open);
    rig.module(2, OSGI, 0, "udp port 2", FailureMode::Open);
    rig.command(PacketCommand::SetPrefixes { user: id(WASM).user, prefixes: vec!["172.16.0.0/12".parse().unwrap()] });
    for (worker, port) in [(WASM, 1), (OSGI, 2)] {
        let to = format!("10.0.0.2:{port}");
        rig.send(&[&udp("192.0.2.1:9", &to, b"x")]);
        let answer = udp("172.16.0.1:9", "192.0.2.1:9", b"y");
        rig.modify(worker, &answer);
        assert_eq!(rig.outcomes().last(), Some(&Outcome::Replaced(answer)), "{worker}");
    }
    rig.finish();
}

/// Two workers make no more packets than one, and a third that takes the place of one makes none the more.
#[test]
fn what_a_user_may_make_is_shared_by_the_workers() {
    // Before the budget is there, which grows from then on.
    let begun = Instant::now();
    let mut rig = rig();
    let packet = udp("10.0.0.2:5060", "192.0.2.1:9", b"x");
    for n in 0..2 * INJECTED_BURST_MAX {
        if n == INJECTED_BURST_MAX / 2 {
            rig.container(OSGI, &["10.0.0.0/24"]);
        }
        let name = if n % 2 == 0 { WASM } else { OSGI };
        let worker = rig.workers.get_mut(name).unwrap();
        worker.end().inject(&packet, ModuleSlot(0)).unwrap();
        worker.wake();
        rig.turn();
        assert!(rig.arrivals(name).is_empty(), "only the place of the packet comes back");
    }
    let granted = (begun.elapsed().as_secs_f64() * f64::from(INJECTED_PER_SECOND_MAX)).ceil();
    let sent = u32::try_from(rig.outcomes().len()).unwrap();
    assert!(sent >= INJECTED_BURST_MAX, "{sent}");
    assert!(f64::from(sent - INJECTED_BURST_MAX) <= granted, "{sent} sent, {granted} granted");
}

#[test]
fn a_worker_that_hangs_is_reported_as_itself() {
    let mut rig = rig();
    rig.module(1, OSGI, 3, "udp", FailureMode::Open);
    rig.send(&[&to_alice(b"x")]);
    rig.workers.get_mut(OSGI).unwrap().end().enter(ModuleSlot(3));
    let mut now = rig.packets.cx.now;
    while rig.events.lock().unwrap().is_empty() {
        now += WATCH_INTERVAL;
        watch(&mut rig.packets, now);
    }
    assert_eq!(rig.events(), [PacketEvent::Stalled { worker: id(OSGI), generation: 7, slot: Some(ModuleSlot(3)) }]);
}

/// Returns a loop with both of Alice's workers, and Bob's.
fn rig() -> Rig {
    let mut rig = Rig::new();
    rig.container(WASM, &["10.0.0.0/24"]);
    rig.container(OSGI, &["10.0.0.0/24"]);
    rig.container(BOB, &["172.16.0.0/16"]);
    rig
}

in_four_lanes!(
    wasm_sees_a_packet_before_osgi,
    the_order_does_not_depend_on_which_worker_came_first,
    osgi_sees_what_wasm_made_of_a_packet,
    a_worker_that_goes_leaves_the_other_alone,
    prefixes_are_the_users_in_whichever_worker,
    what_a_user_may_make_is_shared_by_the_workers,
    a_worker_that_hangs_is_reported_as_itself
);
