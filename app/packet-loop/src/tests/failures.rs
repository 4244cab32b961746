// SPDX-License-Identifier: Apache-2.0
//! Packets that no module judged: each for its reason, open and closed.

use netserv_plane::wrap::{Fault, FaultPlan};
use netserv_wire::container::ring::HOST_SLOTS;
use netserv_wire::ip::IpView;

use super::*;
use crate::in_flight::{Held, Stop};
use crate::limits::PENDING_PACKETS_MAX;

#[test]
fn a_full_ring() {
    for mode in [FailureMode::Open, FailureMode::Closed] {
        let mut rig = Rig::with_alice(mode);
        let packet = to_alice(b"x");
        rig.send(&vec![packet.as_slice(); HOST_SLOTS]);
        rig.assert_counts(&format!("received={HOST_SLOTS} shown={HOST_SLOTS}"));
        rig.send(&[&packet]);
        assert_eq!(rig.outcomes(), [given(mode, &packet)]);
        check(&rig, mode, DropReason::RingFull, HOST_SLOTS + 1, HOST_SLOTS);
        rig.finish();
    }
}

#[test]
fn pending_packets_max_packets_are_in_containers() {
    for mode in [FailureMode::Open, FailureMode::Closed] {
        let mut rig = Rig::with_alice(mode);
        let packet = to_alice(b"x");
        let flow = IpView::parse(&packet).unwrap().flow();
        let stop = Stop { worker: rig.packets.workers.slot_of(&id(ALICE)), modules: 1, closed: 0, wait: None };
        for number in 0..PENDING_PACKETS_MAX {
            let held = PacketId(1_000_000 + number as u64);
            let held = Held { packet: held, length: 0, flow, interface: 0, at: stop, journey: None, trace: None };
            rig.packets.in_flight.pending.insert(held);
        }
        assert_eq!(rig.packets.in_flight.pending.len(), PENDING_PACKETS_MAX);
        rig.send(&[&packet]);
        assert_eq!(rig.outcomes(), [given(mode, &packet)]);
        check(&rig, mode, DropReason::RingFull, 1, 0);
        assert!(rig.packets.in_flight.pending.remove(17).is_some());
        rig.send(&[&packet]);
        assert_eq!(rig.arrivals(ALICE).len(), 1, "one place is free again");
    }
}

#[test]
fn no_container() {
    for mode in [FailureMode::Open, FailureMode::Closed] {
        let mut rig = Rig::new();
        rig.module(1, ALICE, 0, "udp", mode);
        let packet = to_alice(b"x");
        rig.send(&[&packet]);
        assert_eq!(rig.outcomes(), [given(mode, &packet)]);
        check(&rig, mode, DropReason::ContainerGone, 1, 0);
        rig.finish();
    }
}

#[test]
fn a_container_that_ends() {
    for mode in [FailureMode::Open, FailureMode::Closed] {
        for reason in [DropReason::ContainerGone, DropReason::Stalled] {
            let mut rig = Rig::with_alice(mode);
            let packet = to_alice(b"x");
            rig.send(&[&packet]);
            rig.command(PacketCommand::RemoveWorker { worker: id(ALICE), reason });
            rig.turn();
            assert_eq!(rig.outcomes(), [given(mode, &packet)]);
            check(&rig, mode, reason, 1, 1);
            rig.finish();
        }
    }
}

/// What a worker said before its end counts, though the node had not read it yet.
#[test]
fn a_container_that_ends_with_its_answers_unread() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    rig.send(&[&to_alice(b"1"), &to_alice(b"2")]);
    let (arrival, _) = rig.arrivals(ALICE).remove(0);
    let worker = rig.workers.get_mut(ALICE).unwrap();
    worker.end().answer(arrival, Answer::Drop, Some(ModuleSlot(0))).unwrap();
    let last = udp("10.0.0.2:1", "192.0.2.1:2", b"last words");
    worker.end().inject(&last, ModuleSlot(0)).unwrap();
    worker.wake();
    rig.command(PacketCommand::RemoveWorker { worker: id(ALICE), reason: DropReason::ContainerGone });
    rig.turn();
    let expected = [Outcome::Dropped(to_alice(b"1")), Outcome::Injected(last), Outcome::Passed(to_alice(b"2"))];
    assert_eq!(rig.outcomes(), expected);
    rig.assert_counts("received=2 shown=2 passed=1 injected=1 dropped.module=1 unseen.container-gone=1");
    rig.finish();
}

#[test]
fn a_container_that_is_replaced_gives_its_packets_back_and_the_new_one_takes_more() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    rig.send(&[&to_alice(b"1")]);
    rig.container(ALICE, &["10.0.0.0/24"]);
    rig.load(ALICE, 0, true);
    rig.turn();
    assert_eq!(rig.outcomes(), [Outcome::Passed(to_alice(b"1"))]);
    rig.send(&[&to_alice(b"2")]);
    assert_eq!(rig.answer(ALICE, Answer::Pass), [to_alice(b"2")]);
    rig.finish();
}

#[test]
fn a_module_that_trapped() {
    for mode in [FailureMode::Open, FailureMode::Closed] {
        let mut rig = Rig::with_alice(mode);
        let packet = to_alice(b"x");
        rig.send(&[&packet]);
        rig.answer(ALICE, Answer::Failed);
        assert_eq!(rig.outcomes(), [given(mode, &packet)]);
        check(&rig, mode, DropReason::Trapped, 1, 1);
        rig.finish();
    }
}

#[test]
fn a_module_that_is_down() {
    for mode in [FailureMode::Open, FailureMode::Closed] {
        let mut rig = Rig::with_alice(mode);
        rig.load(ALICE, 0, false);
        let packet = to_alice(b"x");
        rig.send(&[&packet]);
        assert_eq!(rig.outcomes(), [given(mode, &packet)]);
        check(&rig, mode, DropReason::Trapped, 1, 0);
        rig.finish();
    }
}

/// A trap costs one module: while it is down, what it does not see is shown to its neighbour, whose own mode holds.
#[test]
fn a_module_that_is_down_and_fails_open_does_not_close_its_neighbour() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    rig.module(2, ALICE, 1, "udp", FailureMode::Closed);
    rig.load(ALICE, 0, false);
    rig.send(&[&to_alice(b"1")]);
    assert_eq!(rig.answer(ALICE, Answer::Pass), [to_alice(b"1")]);
    assert_eq!(rig.outcomes(), [Outcome::Passed(to_alice(b"1"))]);
    rig.load(ALICE, 0, true);
    rig.load(ALICE, 1, false);
    rig.send(&[&to_alice(b"2")]);
    assert_eq!(rig.outcomes(), [Outcome::Dropped(to_alice(b"2"))], "the neighbour fails closed");
    rig.assert_counts("received=2 shown=1 passed=1 dropped.trapped=1 unseen.trapped=1");
    rig.finish();
}

#[test]
fn a_packet_that_is_too_long_for_a_slot() {
    for mode in [FailureMode::Open, FailureMode::Closed] {
        let mut rig = Rig::with_alice(mode);
        let longest = to_alice(&vec![0; limits::PACKET_BYTES_MAX - 28]);
        assert_eq!(longest.len(), limits::PACKET_BYTES_MAX);
        rig.send(&[&longest]);
        rig.assert_counts("received=1 shown=1");
        let packet = to_alice(&vec![0; limits::PACKET_BYTES_MAX - 27]);
        rig.send(&[&packet]);
        assert_eq!(rig.outcomes(), [given(mode, &packet)]);
        check(&rig, mode, DropReason::TooLong, 2, 1);
        rig.finish();
    }
}

/// Goal: what hides its ports behind more extension headers than the node reads does not go past a module that fails closed.
#[test]
fn a_packet_that_cannot_be_read() {
    for mode in [FailureMode::Open, FailureMode::Closed] {
        let mut rig = Rig::with_alice(mode);
        let [to_alice, to_another] = ["[2001:db8::2]:5060", "[2001:db8:1::2]:5060"].map(behind_a_dozen_headers);
        for packet in [&to_alice, &to_another] {
            rig.plane.push_unread(LAN, packet);
        }
        rig.turn();
        assert_eq!(rig.outcomes(), [given(mode, &to_alice), given(mode, &to_another)], "the filter is `udp`");
        rig.assert_counts(match mode {
            FailureMode::Open => "received=2 unparsed=2",
            FailureMode::Closed => "received=2 dropped.unreadable=2 unseen.unreadable=2",
        });
        rig.finish();
    }
    let mut rig = Rig::with_alice(FailureMode::Open);
    rig.module(2, ALICE, 1, "udp dst 2001:db8::/48", FailureMode::Closed);
    let to_another = behind_a_dozen_headers("[2001:db8:1::2]:5060");
    rig.plane.push_unread(LAN, &to_another);
    rig.turn();
    assert_eq!(rig.outcomes(), [given(FailureMode::Open, &to_another)]);
    rig.finish();
}

/// Returns a UDP packet with more extension headers than the node reads.
fn behind_a_dozen_headers(destination: &str) -> Vec<u8> {
    let mut packet = udp("[2001:db8:9::1]:9", destination, b"x");
    let (header, count) = ([60, 0, 1, 4, 0, 0, 0, 0], 12);
    packet.splice(40..40, std::iter::repeat_n(header, count).flatten());
    (packet[40 + 8 * (count - 1)], packet[6]) = (packet[6], 60);
    let length = u16::try_from(packet.len() - 40).unwrap();
    packet[4..6].copy_from_slice(&length.to_be_bytes());
    packet
}

#[test]
fn a_broken_ring() {
    for mode in [FailureMode::Open, FailureMode::Closed] {
        let mut rig = Rig::with_alice(mode);
        *rig.listening.lock().unwrap() = false;
        let packet = to_alice(b"x");
        rig.send(&[&packet]);
        // The word behind the magic one in the third pair of cache lines is the worker's head; see the ring's layout.
        for word in &rig.workers[ALICE].memory()[16..512] {
            word.store(u64::MAX, std::sync::atomic::Ordering::SeqCst);
        }
        rig.turn();
        assert_eq!(rig.events(), []);
        *rig.listening.lock().unwrap() = true;
        rig.turn();
        rig.turn();
        let events = rig.events();
        assert!(matches!(&events[..], [PacketEvent::RingBroken { generation: 7, .. }]), "once: {events:?}");
        // Until the control loop has done something about it, packets get their verdict here.
        rig.send(&[&packet]);
        assert_eq!(rig.outcomes(), [given(mode, &packet)]);
        check(&rig, mode, DropReason::ContainerGone, 2, 1);
        rig.command(PacketCommand::RemoveWorker { worker: id(ALICE), reason: DropReason::ContainerGone });
        rig.finish();
    }
}

#[test]
fn a_driver_that_does_not_send_an_injected_packet() {
    let (dummy, plane) = Dummy::new();
    // The calls before: two filters. What workers made goes before more comes in.
    let plan = FaultPlan { failing_call: Some(3), ..FaultPlan::default() };
    let mut rig = Rig::over(Box::new(Fault::new(dummy, plan)), plane);
    rig.container(ALICE, &["10.0.0.0/24"]);
    let packet = udp("10.0.0.2:1", "192.0.2.1:2", b"x");
    let worker = rig.workers.get_mut(ALICE).unwrap();
    worker.end().inject(&packet, ModuleSlot(0)).unwrap();
    worker.wake();
    rig.turn();
    rig.assert_counts("refused.send-failed=1");
    rig.finish();
}

#[test]
fn a_driver_that_fails_for_good_ends_the_loop() {
    let (dummy, plane) = Dummy::new();
    let plan = FaultPlan { failing_call: Some(3), ..FaultPlan::default() };
    let rig = Rig::over(Box::new(Fault::new(dummy, plan)), plane);
    assert!(rig.packets.run().is_err());
}

fn given(mode: FailureMode, packet: &[u8]) -> Outcome {
    match mode {
        FailureMode::Open => Outcome::Passed(packet.to_vec()),
        FailureMode::Closed => Outcome::Dropped(packet.to_vec()),
    }
}

/// Asserts that one packet was not seen for a reason, and passed or was dropped.
#[track_caller]
fn check(rig: &Rig, mode: FailureMode, reason: DropReason, received: usize, shown: usize) {
    let (reason, shown) = (reason.as_str(), if shown > 0 { format!(" shown={shown}") } else { String::new() });
    rig.assert_counts(&match mode {
        FailureMode::Open => format!("received={received}{shown} passed=1 unseen.{reason}=1"),
        FailureMode::Closed => format!("received={received}{shown} dropped.{reason}=1 unseen.{reason}=1"),
    });
}

in_four_lanes!(
    a_full_ring,
    no_container,
    a_container_that_ends,
    a_container_that_ends_with_its_answers_unread,
    a_container_that_is_replaced_gives_its_packets_back_and_the_new_one_takes_more,
    a_module_that_trapped,
    a_module_that_is_down,
    a_module_that_is_down_and_fails_open_does_not_close_its_neighbour,
    a_packet_that_is_too_long_for_a_slot,
    a_packet_that_cannot_be_read,
    a_broken_ring,
    a_driver_that_does_not_send_an_injected_packet,
    a_driver_that_fails_for_good_ends_the_loop
);
