// SPDX-License-Identifier: Apache-2.0
//! Packets that wait for a module that moves.

use std::num::NonZeroU32;

use netserv_model::limits::BUFFERING_TIME_MAX;

use super::*;
use crate::limits::{BUFFERED_BYTES_MAX, BUFFERED_PART};

in_four_lanes!(
    packets_wait_in_order_and_meet_the_rules_that_come_after,
    those_that_come_from_the_old_node_do_not_wait,
    packets_that_waited_for_too_long_have_their_failure_verdict,
    others_see_what_waited_for_a_module_of_theirs,
    what_waits_has_a_verdict_in_the_end,
);

fn buffers(not_from: Option<NonZeroU32>) -> Buffers {
    Buffers { other: "192.0.2.77".parse().unwrap(), not_from }
}

fn packets_wait(rig: &mut Rig, rule: u64, user: &str, slot: u8, filter: &str, mode: FailureMode, buffers: Buffers) {
    let (worker, slot) = (id(user), ModuleSlot(slot));
    let filter = filter.parse().unwrap();
    let filter = ModuleFilter { worker, slot, module: None, filter, on_failure: mode, buffers: Some(buffers) };
    rig.command(PacketCommand::ChangeFilters { add: vec![(FilterId(rule), filter)], remove: vec![], known: None });
}

/// Stands still from here on.
fn freeze(rig: &mut Rig, mode: FailureMode) {
    packets_wait(rig, 2, ALICE, 0, "udp", mode, buffers(None));
    rig.change_filters(vec![], vec![1]);
}

/// Goal: what comes while a module stands still is shown to it when it goes on, in order and before what comes later; where it does
/// not go on, it passes.
#[test]
fn packets_wait_in_order_and_meet_the_rules_that_come_after() {
    for goes_on in [true, false] {
        let mut rig = Rig::with_alice(FailureMode::Open);
        freeze(&mut rig, FailureMode::Open);
        let packets: Vec<Vec<u8>> = (0..40_u8).map(|number| to_alice(&[number])).collect();
        for packet in &packets[..20] {
            rig.send(&[packet]);
        }
        assert!(rig.outcomes().is_empty() && rig.arrivals(ALICE).is_empty());
        let add = if goes_on { vec![(3, ALICE, 0, "udp", FailureMode::Open)] } else { vec![] };
        rig.change_filters(add, vec![2]);
        for packet in &packets[20..] {
            assert!(rig.plane.push(LAN, packet));
        }
        rig.turn();
        if goes_on {
            assert_eq!(rig.answer(ALICE, Answer::Pass), packets);
        }
        let passed: Vec<Outcome> = packets.into_iter().map(Outcome::Passed).collect();
        assert_eq!(rig.outcomes(), passed);
        let (waited, unmatched) = (rig.totals().buffered, rig.totals().unmatched);
        assert_eq!((waited, unmatched), (20, if goes_on { 0 } else { 20 }));
        rig.finish();
    }
}

#[test]
fn those_that_come_from_the_old_node_do_not_wait() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    rig.change_filters(vec![], vec![1]);
    let from = buffers(NonZeroU32::new(LAN.0));
    packets_wait(&mut rig, 2, ALICE, 0, "udp", FailureMode::Open, from);
    rig.send(&[&to_alice(b"old")]);
    assert_eq!(rig.outcomes(), [Outcome::Passed(to_alice(b"old"))]);
    assert!(rig.plane.push(InterfaceId(LAN.0 + 1), &to_alice(b"new")));
    rig.turn();
    assert_eq!((rig.outcomes().len(), rig.totals().buffered), (0, 1));
    // What is the node's own, such as the module's state.
    let own = udp("192.0.2.77:9", "10.0.0.2:5060", b"state");
    assert!(rig.plane.push(InterfaceId(LAN.0 + 1), &own));
    rig.turn();
    assert_eq!(rig.outcomes(), [Outcome::Passed(own)]);
    rig.change_filters(vec![(3, ALICE, 0, "udp", FailureMode::Open)], vec![2]);
    rig.turn();
    assert_eq!(rig.answer(ALICE, Answer::Pass), [to_alice(b"new")]);
    rig.finish();
}

#[test]
fn packets_that_waited_for_too_long_have_their_failure_verdict() {
    for mode in [FailureMode::Open, FailureMode::Closed] {
        let mut rig = Rig::with_alice(mode);
        freeze(&mut rig, mode);
        rig.send(&[&to_alice(b"1")]);
        std::thread::sleep(BUFFERING_TIME_MAX);
        // Later ones do not wait at all.
        rig.send(&[&to_alice(b"2")]);
        let said = |packet| if mode == FailureMode::Open { Outcome::Passed(packet) } else { Outcome::Dropped(packet) };
        assert_eq!(rig.outcomes(), [said(to_alice(b"1")), said(to_alice(b"2"))]);
        assert_eq!(rig.totals().unseen(DropReason::Frozen), 2);
        rig.finish();
    }
}

/// Goal: of too many, the first go on, in order, and not those of whom fewer wait.
#[test]
fn a_part_of_the_packets_that_can_be_taken_in_waits() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    rig.container(BOB, &[]);
    freeze(&mut rig, FailureMode::Open);
    packets_wait(&mut rig, 4, BOB, 0, "tcp", FailureMode::Open, buffers(None));
    let most = 64;
    rig.packets.in_flight.capacity = most * BUFFERED_PART;
    let other = build::ip("192.0.2.1".parse().unwrap(), "10.0.0.2".parse().unwrap(), 6, 64, &[0; 20]).unwrap();
    rig.send(&[&other]);
    let packets: Vec<Vec<u8>> = (0..100_u8).map(|number| to_alice(&[number])).collect();
    for packet in &packets {
        rig.send(&[packet]);
        assert!(rig.packets.in_flight.buffered.len() <= most);
    }
    let unseen = packets.len() + 1 - most;
    let passed: Vec<Outcome> = packets[..unseen].iter().cloned().map(Outcome::Passed).collect();
    assert_eq!(rig.outcomes(), passed);
    assert_eq!(rig.totals().unseen(DropReason::Frozen), unseen as u64);
    rig.finish();
}

#[test]
fn buffered_bytes_max_bytes_wait() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    freeze(&mut rig, FailureMode::Open);
    let packet = to_alice(&vec![7; 60_000]);
    let fit = BUFFERED_BYTES_MAX / packet.len();
    (0..fit + 3).for_each(|_| rig.send(&[&packet]));
    assert_eq!((rig.packets.in_flight.buffered.len(), rig.outcomes().len()), (fit, 3));
    rig.finish();
}

/// Goal: a module beside one that stands still in the same container sees the packet too, after it; another user's container has seen it
/// before, and not again.
#[test]
fn others_see_what_waited_for_a_module_of_theirs() {
    let mut rig = Rig::new();
    rig.container(BOB, &[]);
    rig.module(0, BOB, 0, "udp", FailureMode::Open);
    rig.container(ALICE, &["10.0.0.0/24"]);
    rig.module(1, ALICE, 0, "udp", FailureMode::Open);
    rig.module(5, ALICE, 1, "udp", FailureMode::Open);
    freeze(&mut rig, FailureMode::Open);
    rig.send(&[&to_alice(b"1")]);
    assert_eq!(rig.answer(BOB, Answer::Pass).len(), 1);
    assert!(rig.arrivals(ALICE).is_empty());
    rig.change_filters(vec![(3, ALICE, 0, "udp", FailureMode::Open)], vec![2]);
    rig.turn();
    assert!(rig.arrivals(BOB).is_empty());
    let arrivals = rig.arrivals(ALICE);
    assert_eq!(arrivals.iter().map(|(arrival, _)| arrival.modules).collect::<Vec<_>>(), [0b11]);
    let end = rig.workers.get_mut(ALICE).unwrap();
    for (arrival, _) in arrivals {
        end.end().answer(arrival, Answer::Pass, None).unwrap();
    }
    end.wake();
    rig.turn();
    // Its time is up: the other module sees what comes.
    freeze(&mut rig, FailureMode::Open);
    rig.change_filters(vec![], vec![3]);
    rig.send(&[&to_alice(b"2")]);
    rig.answer(BOB, Answer::Pass);
    std::thread::sleep(BUFFERING_TIME_MAX);
    rig.turn();
    assert_eq!(rig.arrivals(ALICE).iter().map(|(arrival, _)| arrival.modules).collect::<Vec<_>>(), [0b10]);
    rig.finish();
}

#[test]
fn what_waits_has_a_verdict_in_the_end() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    freeze(&mut rig, FailureMode::Open);
    rig.send(&[&to_alice(b"1")]);
    let worker = id(ALICE);
    rig.command(PacketCommand::RemoveWorker { worker, reason: DropReason::ContainerGone });
    rig.send(&[&to_alice(b"2")]);
    rig.change_filters(vec![(3, ALICE, 0, "udp", FailureMode::Open)], vec![2]);
    rig.turn();
    assert_eq!(rig.outcomes().len(), 2);
    let mut rig = Rig::with_alice(FailureMode::Open);
    freeze(&mut rig, FailureMode::Open);
    rig.send(&[&to_alice(b"1")]);
    rig.finish();
}

/// Goal: packets that wait behind others for a container which is too slow for all of them wait no longer than these: the wait ends.
#[test]
fn a_container_that_is_too_slow_afterwards_has_none_wait_for_long() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    freeze(&mut rig, FailureMode::Open);
    let packet = to_alice(b"x");
    let many = netserv_wire::container::ring::RING_ENTRIES + 100;
    (0..many).for_each(|_| rig.send(&[&packet]));
    rig.change_filters(vec![(3, ALICE, 0, "udp", FailureMode::Open)], vec![2]);
    // It takes none, and packets go on coming.
    let begun = Instant::now();
    while begun.elapsed() < BUFFERING_TIME_MAX * 5 / 2 {
        rig.send(&[&packet]);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(rig.packets.in_flight.buffered.len(), 0);
    rig.finish();
}

/// Goal: a packet that is with another user's container while a module begins to stand still, or goes on, meets what is so when it gets
/// there.
#[test]
fn packets_under_way_meet_what_is_so_when_they_come() {
    let under_way = |waits: bool| {
        let mut rig = Rig::new();
        rig.container(BOB, &[]);
        rig.module(0, BOB, 0, "udp", FailureMode::Open);
        rig.container(ALICE, &["10.0.0.0/24"]);
        rig.module(1, ALICE, 0, "udp", FailureMode::Closed);
        if waits {
            freeze(&mut rig, FailureMode::Closed);
        }
        rig.send(&[&to_alice(b"1")]);
        rig
    };
    let mut rig = under_way(true);
    rig.change_filters(vec![(3, ALICE, 0, "udp", FailureMode::Closed)], vec![2]);
    rig.answer(BOB, Answer::Pass);
    assert_eq!(rig.answer(ALICE, Answer::Pass), [to_alice(b"1")], "it goes on");
    assert_eq!(rig.outcomes(), [Outcome::Passed(to_alice(b"1"))]);
    rig.finish();
    let mut rig = under_way(true);
    rig.change_filters(vec![], vec![2]);
    rig.answer(BOB, Answer::Pass);
    assert_eq!(rig.outcomes(), [Outcome::Passed(to_alice(b"1"))], "it is not there any more");
    rig.finish();
    let mut rig = under_way(false);
    freeze(&mut rig, FailureMode::Closed);
    rig.answer(BOB, Answer::Pass);
    assert!(rig.arrivals(ALICE).is_empty(), "it stands still");
    assert_eq!(rig.packets.in_flight.buffered.len(), 1);
    rig.finish();
    // The loop ends while the packet is with the first of them.
    under_way(true).finish();
}

/// Goal: one user's many queues do not take the place of another's few.
#[test]
fn the_container_with_most_gives_way() {
    let mut rig = Rig::new();
    for user in [ALICE, BOB] {
        rig.container(user, &[]);
    }
    packets_wait(&mut rig, 1, BOB, 0, "udp port 5060", FailureMode::Open, buffers(None));
    for queue in 0..10 {
        let filter = format!("udp port {}", 6000 + queue);
        packets_wait(&mut rig, 10 + queue, ALICE, 0, &filter, FailureMode::Open, buffers(None));
    }
    rig.packets.in_flight.capacity = 64 * BUFFERED_PART;
    (0..30).for_each(|_| rig.send(&[&to_alice(b"bob's")]));
    for number in 0..200 {
        rig.send(&[&udp("192.0.2.1:9", &format!("10.0.0.2:{}", 6000 + number % 10), b"x")]);
    }
    assert!(rig.outcomes().iter().all(|outcome| *outcome != Outcome::Passed(to_alice(b"bob's"))));
    assert_eq!(rig.packets.in_flight.buffered.len(), 64);
    rig.finish();
}

/// Goal: rules that come in turn do not have a packet wait for ever.
#[test]
fn a_packet_waits_by_one_rule_after_the_other_for_its_time_at_most() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    freeze(&mut rig, FailureMode::Open);
    rig.send(&[&to_alice(b"1")]);
    for rule in 3..6 {
        std::thread::sleep(BUFFERING_TIME_MAX / 2);
        packets_wait(&mut rig, rule, ALICE, 0, "udp", FailureMode::Open, buffers(None));
        rig.change_filters(vec![], vec![rule - 1]);
        rig.turn();
    }
    assert_eq!(rig.outcomes(), [Outcome::Passed(to_alice(b"1"))]);
    rig.finish();
}
