// SPDX-License-Identifier: Apache-2.0
//! What a module says, and what becomes of the packet.

use netserv_wire::ip::checksum;

use super::*;
use crate::budget::SendLimits;
use crate::cx::monotonic_nanos;
use crate::limits::{INJECTED_BURST_MAX, INJECTED_PER_SECOND_MAX, UNWOKEN_PACKETS_MAX};

#[test]
fn what_a_module_says_is_done() {
    for (answer, counts) in [
        (Answer::Pass, "received=1 shown=1 passed=1"),
        (Answer::Drop, "received=1 shown=1 dropped.module=1"),
        (Answer::Modified, "received=1 shown=1 modified=1"),
        (Answer::Failed, "received=1 shown=1 passed=1 unseen.trapped=1"),
    ] {
        let mut rig = Rig::with_alice(FailureMode::Open);
        let packet = to_alice(b"hello");
        rig.send(&[&packet]);
        assert_eq!(rig.answer(ALICE, answer), std::slice::from_ref(&packet));
        let outcome = match answer {
            Answer::Pass | Answer::Failed => Outcome::Passed(packet),
            Answer::Drop => Outcome::Dropped(packet),
            Answer::Modified => Outcome::Replaced(packet),
        };
        assert_eq!(rig.outcomes(), [outcome]);
        rig.assert_counts(counts);
        rig.finish();
    }
}

#[test]
fn packets_of_no_module_pass_unseen() {
    let mut rig = Rig::with_alice(FailureMode::Closed);
    rig.change_filters(vec![(1, ALICE, 0, "udp dst 10.0.0.2/32 port 5060", FailureMode::Closed)], vec![]);
    let other = udp("192.0.2.1:9", "10.0.0.3:5060", b"x");
    rig.send(&[&other, &to_alice(b"x")]);
    assert_eq!(rig.arrivals(ALICE).len(), 1);
    assert_eq!(rig.outcomes(), [Outcome::Passed(other)]);
    rig.assert_counts("received=2 unmatched=1 shown=1");
    rig.finish();
}

#[test]
fn a_worker_sees_bytes_interface_time_and_the_modules_that_want_the_packet() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    rig.module(2, ALICE, 5, "udp port 5060", FailureMode::Open);
    rig.module(3, ALICE, 6, "udp port 5061", FailureMode::Open);
    let before = monotonic_nanos();
    let packet = udp("[2001:db8:9::1]:9", "[2001:db8::2]:5060", b"six");
    rig.send(&[&packet]);
    let (arrival, bytes) = rig.arrivals(ALICE).remove(0);
    assert_eq!((bytes, arrival.modules, arrival.ingress.interface), (packet, 0b10_0001, LAN.0));
    assert!((before..=monotonic_nanos()).contains(&arrival.ingress.timestamp_ns));
    rig.finish();
}

/// A changed packet may have a source that its user owns, which is how a module answers. It may keep another source, but
/// then only its user gets it: sent on to anybody else, it would be forged.
#[test]
fn a_changed_packet_has_an_honest_source() {
    let (before, own) = ("192.0.2.1:9", "10.0.0.2:5060");
    let (before6, own6) = ("[2001:db8:9::1]:9", "[2001:db8::2]:5060");
    for (arrived, changed, honest) in [
        ((before, own), udp(before, "10.0.0.9:1", b"x"), true),
        ((before, own), udp(before, "198.51.100.1:53", b"x"), false),
        ((before, own), udp(own, before, b"x"), true),
        ((own, before), udp(own, "198.51.100.1:53", b"x"), true),
        ((before, own), udp("192.0.2.2:9", own, b"x"), false),
        ((before, own), udp(before6, own6, b"x"), false),
        ((before6, own6), udp(own6, before6, b"x"), true),
        ((before6, own6), udp("[2001:db8:9::2]:9", own6, b"x"), false),
        ((before6, own6), udp(before6, "[2001:db8:7::1]:9", b"x"), false),
    ] {
        let mut rig = Rig::with_alice(FailureMode::Open);
        let packet = udp(arrived.0, arrived.1, b"x");
        rig.send(&[&packet]);
        rig.modify(ALICE, &changed);
        if honest {
            assert_eq!(rig.outcomes(), [Outcome::Replaced(changed)]);
            rig.assert_counts("received=1 shown=1 modified=1");
        } else {
            assert_eq!(rig.outcomes(), [Outcome::Dropped(packet)]);
            rig.assert_counts("received=1 shown=1 dropped.source-refused=1");
        }
        rig.finish();
    }
}

#[test]
fn what_is_no_whole_packet_is_a_bad_verdict_in_any_mode() {
    for mode in [FailureMode::Open, FailureMode::Closed] {
        let whole = to_alice(b"hello");
        let (cut, padded) = (whole[..whole.len() - 1].to_vec(), [whole.as_slice(), b"more"].concat());
        for bad in [b"rubbish".to_vec(), cut, padded] {
            let mut rig = Rig::with_alice(mode);
            rig.send(&[&whole]);
            rig.modify(ALICE, &bad);
            assert_eq!(rig.outcomes(), [Outcome::Dropped(whole.clone())]);
            rig.assert_counts("received=1 shown=1 dropped.bad-verdict=1");
            rig.finish();
        }
    }
}

#[test]
fn a_module_sends_packets_of_its_users_addresses_only() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    let own = [udp("10.0.0.2:1", "192.0.2.1:2", b"four"), udp("[2001:db8::2]:1", "[2001:db8:9::1]:2", b"six")];
    let foreign = udp("192.0.2.7:1", "192.0.2.1:2", b"x");
    let unspecified = udp("0.0.0.0:1", "192.0.2.1:2", b"x");
    let worker = rig.workers.get_mut(ALICE).unwrap();
    for packet in [&own[0], &own[1], &foreign, &unspecified, &own[0][..20].to_vec()] {
        worker.end().inject(packet, ModuleSlot(0)).unwrap();
    }
    worker.wake();
    rig.turn();
    assert_eq!(rig.outcomes(), own.map(Outcome::Injected));
    rig.assert_counts("injected=2 refused.bad-verdict=1 refused.source-refused=2");
    rig.command(PacketCommand::SetPrefixes { user: id(ALICE).user, prefixes: vec!["192.0.2.0/24".parse().unwrap()] });
    rig.workers.get_mut(ALICE).unwrap().end().inject(&foreign, ModuleSlot(0)).unwrap();
    rig.workers.get_mut(ALICE).unwrap().wake();
    rig.turn();
    assert_eq!(rig.outcomes(), [Outcome::Injected(foreign)]);
    rig.finish();
}

#[test]
fn what_names_further_addresses_is_neither_sent_nor_sent_on() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    // A loose source route over 192.0.2.9.
    let plain = udp("10.0.0.2:1", "192.0.2.1:2", b"x");
    let mut routed = [&plain[..20], &[0x83, 7, 4, 192, 0, 2, 9, 0], &plain[20..]].concat();
    (routed[0], routed[3]) = (0x47, plain[3] + 8);
    checksum::fill(&mut routed).unwrap();
    let packet = to_alice(b"x");
    rig.send(&[&packet]);
    rig.modify(ALICE, &routed);
    assert_eq!(rig.outcomes(), [Outcome::Dropped(packet)]);
    rig.make(ALICE, &routed);
    assert_eq!(rig.outcomes(), []);
    rig.assert_counts("received=1 shown=1 dropped.route-refused=1 refused.route-refused=1");
    rig.finish();
}

#[test]
fn a_packet_for_no_other_machine_is_refused_for_that() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    rig.make(ALICE, &udp("10.0.0.2:1", "127.0.0.1:2", b"x"));
    rig.assert_counts("refused.destination-refused=1");
    rig.finish();
}

#[test]
fn a_users_limits_hold_for_its_own_modules() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    rig.container(BOB, &["172.16.0.0/16"]);
    rig.change_filters(vec![(2, ALICE, 0, "udp dst 10.0.0.0/24", FailureMode::Open)], vec![1]);
    let limits = SendLimits { packets_per_second: 3, ..SendLimits::default() };
    rig.command(PacketCommand::SetSendLimits { user: id(ALICE).user, limits });
    let small = udp("10.0.0.2:1", "192.0.2.1:2", b"x");
    (0..5).for_each(|_| rig.make(ALICE, &small));
    (0..5).for_each(|_| rig.make(BOB, &udp("172.16.0.1:1", "192.0.2.1:2", b"x")));
    rig.assert_counts("injected=8 refused.too-many=2");
    // Two packets of 1,000 bytes, since the second goes over.
    let limits = SendLimits { bits_per_second: 12_000, ..SendLimits::default() };
    rig.command(PacketCommand::SetSendLimits { user: id(ALICE).user, limits });
    (0..5).for_each(|_| rig.make(ALICE, &udp("10.0.0.2:1", "192.0.2.1:2", &[0; 972])));
    rig.assert_counts("injected=10 refused.too-many=5");
    rig.finish();
}

/// A module sends no more than came in and what its user may send besides, whether it makes packets or makes them longer.
#[test]
fn what_a_module_adds_to_packets_is_of_its_users_limits() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    // One packet that is longer, which goes over.
    let limits = SendLimits { bits_per_second: 8, ..SendLimits::default() };
    rig.command(PacketCommand::SetSendLimits { user: id(ALICE).user, limits });
    let (short, long) = (to_alice(&[0; 100]), to_alice(&[0; 1100]));
    for _ in 0..5 {
        rig.send(&[&short]);
        rig.modify(ALICE, &long);
    }
    rig.make(ALICE, &udp("10.0.0.2:1", "192.0.2.1:2", b"x"));
    rig.assert_counts("received=5 shown=5 modified=1 dropped.too-many=4 refused.too-many=1");
    // What becomes no longer costs nothing.
    for (received, changed) in [(&short, &short), (&long, &short)] {
        rig.send(&[received]);
        rig.modify(ALICE, changed);
    }
    rig.assert_counts("received=7 shown=7 modified=3 dropped.too-many=4 refused.too-many=1");
    rig.finish();
}

/// Two nodes whose modules answer each other's packets would fill the line between them.
#[test]
fn injected_burst_max_packets_are_made_at_once_and_then_injected_per_second_max() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    let packet = udp("10.0.0.2:1", "192.0.2.1:2", b"x");
    let more = 1000;
    let begun = Instant::now();
    for _ in 0..INJECTED_BURST_MAX + more {
        rig.workers.get_mut(ALICE).unwrap().end().inject(&packet, ModuleSlot(0)).unwrap();
        rig.workers.get_mut(ALICE).unwrap().wake();
        rig.turn();
        assert!(rig.arrivals(ALICE).is_empty(), "only the place of the packet comes back");
    }
    let sent = u32::try_from(rig.outcomes().len()).unwrap();
    let granted = (begun.elapsed().as_secs_f64() * f64::from(INJECTED_PER_SECOND_MAX)).ceil();
    assert!(sent >= INJECTED_BURST_MAX, "{sent}");
    assert!(f64::from(sent - INJECTED_BURST_MAX) <= granted, "{sent} sent, {granted} granted");
    let refused = INJECTED_BURST_MAX + more - sent;
    let refused = if refused > 0 { format!(" refused.too-many={refused}") } else { String::new() };
    rig.assert_counts(&format!("injected={sent}{refused}"));
    rig.finish();
}

#[test]
fn rules_come_and_go_together() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    rig.load(ALICE, 1, true);
    rig.send(&[&to_alice(b"1")]);
    rig.change_filters(vec![(2, ALICE, 1, "udp", FailureMode::Open)], vec![1]);
    rig.send(&[&to_alice(b"2")]);
    let modules: Vec<u64> = rig.arrivals(ALICE).iter().map(|(arrival, _)| arrival.modules).collect();
    assert_eq!(modules, [0b01, 0b10], "no packet may see both, or none");
    rig.change_filters(vec![], vec![2]);
    rig.send(&[&to_alice(b"3")]);
    rig.assert_counts("received=3 unmatched=1 shown=2");
    rig.finish();
}

/// A batch is what one container may give back before the others have their turn.
#[test]
fn no_container_holds_the_others_up() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    let count = limits::BATCH_PACKETS_MAX + 1;
    let packet = to_alice(b"x");
    rig.send(&vec![packet.as_slice(); count]);
    for (arrival, _) in rig.arrivals(ALICE) {
        rig.workers.get_mut(ALICE).unwrap().end().answer(arrival, Answer::Pass, None).unwrap();
    }
    rig.workers.get_mut(ALICE).unwrap().wake();
    assert_eq!(take_returned(&mut rig.packets), limits::BATCH_PACKETS_MAX);
    assert_eq!(take_returned(&mut rig.packets), 1);
    rig.finish();
}

/// Under load the node lets a sleeping container lie for some batches, but neither for long nor when nothing more comes.
#[test]
fn a_sleeping_container_is_woken_at_the_latest_by_unwoken_packets_max() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    let packet = to_alice(b"x");
    let batch = limits::BATCH_PACKETS_MAX;
    for (packets, turns) in [(1, 1), (batch, 2), (2 * UNWOKEN_PACKETS_MAX, UNWOKEN_PACKETS_MAX / batch)] {
        assert!(rig.workers.get_mut(ALICE).unwrap().end().prepare_sleep());
        (0..packets).for_each(|_| assert!(rig.plane.push(LAN, &packet)));
        for _ in 0..turns {
            rig.packets.turn(&mut rig.batch).unwrap();
        }
        assert!(rig.workers[ALICE].was_woken(), "after {turns} turns with {packets} packets");
        rig.turn();
        assert_eq!(rig.answer(ALICE, Answer::Pass).len(), packets);
        rig.turn();
        // Whoever is awake is not woken again.
        assert!(!rig.workers[ALICE].was_woken());
    }
    rig.finish();
}

in_four_lanes!(
    what_a_module_says_is_done,
    packets_of_no_module_pass_unseen,
    a_changed_packet_has_an_honest_source,
    what_is_no_whole_packet_is_a_bad_verdict_in_any_mode,
    a_module_sends_packets_of_its_users_addresses_only,
    what_names_further_addresses_is_neither_sent_nor_sent_on,
    a_packet_for_no_other_machine_is_refused_for_that,
    a_users_limits_hold_for_its_own_modules,
    what_a_module_adds_to_packets_is_of_its_users_limits,
    injected_burst_max_packets_are_made_at_once_and_then_injected_per_second_max,
    rules_come_and_go_together,
    no_container_holds_the_others_up,
    a_sleeping_container_is_woken_at_the_latest_by_unwoken_packets_max
);
