// SPDX-License-Identifier: Apache-2.0
//! Packets that go through the containers of several users.

use super::*;
use crate::budget::SendLimits;

#[test]
fn two_users_see_a_packet_in_install_order() {
    let mut rig = both(FailureMode::Open, FailureMode::Open);
    let packet = to_alice(b"x");
    rig.send(&[&packet]);
    assert_eq!(rig.arrivals(ALICE).len(), 0, "Bob's rule is older");
    let bobs = rig.arrivals(BOB);
    assert_eq!(bobs[0].0.ingress.interface, LAN.0);
    pass(&mut rig, BOB, bobs);
    let (arrival, bytes) = rig.arrivals(ALICE).remove(0);
    assert_eq!((arrival.ingress.interface, &bytes), (LAN.0, &packet), "the second sees where it came in, too");
    pass(&mut rig, ALICE, vec![(arrival, bytes)]);
    assert_eq!(rig.outcomes(), [Outcome::Passed(packet)]);
    rig.assert_counts("received=1 shown=2 passed=1");
    rig.finish();
}

#[test]
fn the_second_sees_what_the_first_made_of_it() {
    for (answer, counts) in [
        (Answer::Pass, "received=1 shown=2 modified=1"),
        (Answer::Failed, "received=1 shown=2 modified=1 unseen.trapped=1"),
        (Answer::Drop, "received=1 shown=2 modified=0 dropped.module=1"),
    ] {
        let mut rig = both(FailureMode::Open, FailureMode::Open);
        let (packet, changed) = (to_alice(b"x"), to_alice(b"changed"));
        rig.send(&[&packet]);
        rig.modify(BOB, &changed);
        assert_eq!(rig.answer(ALICE, answer), std::slice::from_ref(&changed));
        let outcome = if answer == Answer::Drop { Outcome::Dropped(packet) } else { Outcome::Replaced(changed) };
        assert_eq!(rig.outcomes(), [outcome]);
        rig.assert_counts(&counts.replace(" modified=0", ""));
        rig.finish();
    }
}

/// Two packets in one: the source that the first user may take is no excuse for the second.
#[test]
fn each_change_is_judged_by_the_prefixes_of_who_made_it() {
    let mut rig = both(FailureMode::Open, FailureMode::Open);
    rig.send(&[&to_alice(b"x")]);
    let bobs_own = udp("172.16.0.1:1", "10.0.0.2:5060", b"x");
    rig.modify(BOB, &bobs_own);
    rig.modify(ALICE, &udp("192.0.2.1:9", "10.0.0.2:5060", b"x"));
    rig.assert_counts("received=1 shown=2 dropped.source-refused=1");
    rig.finish();
}

#[test]
fn a_first_that_cannot_say_lets_the_second_speak_if_it_fails_open() {
    for (mode, counts) in [
        (FailureMode::Open, "received=1 shown=2 dropped.module=1 unseen.trapped=1"),
        (FailureMode::Closed, "received=1 shown=1 dropped.trapped=1 unseen.trapped=1"),
    ] {
        let mut rig = both(mode, FailureMode::Open);
        let packet = to_alice(b"x");
        rig.send(&[&packet]);
        rig.answer(BOB, Answer::Failed);
        let seen = rig.answer(ALICE, Answer::Drop);
        assert_eq!(seen.len(), usize::from(mode == FailureMode::Open));
        assert!(seen.iter().all(|bytes| *bytes == packet), "whole, though the first was to see it");
        rig.assert_counts(counts);
        rig.finish();
    }
}

#[test]
fn a_container_that_goes_takes_only_its_own_packets_along() {
    let mut rig = both(FailureMode::Closed, FailureMode::Open);
    rig.send(&[&to_alice(b"1")]);
    rig.answer(BOB, Answer::Pass);
    rig.send(&[&to_alice(b"2")]);
    rig.command(PacketCommand::RemoveWorker { worker: id(BOB), reason: DropReason::ContainerGone });
    rig.turn();
    assert_eq!(rig.outcomes(), [Outcome::Dropped(to_alice(b"2"))]);
    assert_eq!(rig.answer(ALICE, Answer::Pass), [to_alice(b"1")]);
    rig.assert_counts("received=2 shown=3 passed=1 dropped.container-gone=1 unseen.container-gone=1");
    rig.finish();
}

const ALICES: &str = "udp dst 10.0.0.0/24";
const BOBS: &str = "udp dst 172.16.0.0/16";

/// A packet that one module turns to another user's address is that user's to see. Method: Alice's module sends on to
/// Bob's address what came to hers; no rule of Bob's matches what came.
#[test]
fn a_packet_turned_to_another_user_is_shown_to_that_users_modules() {
    let mut rig = each_its_own(ALICES, BOBS);
    rig.send(&[&to_alice(b"x")]);
    let turned = udp("10.0.0.2:5060", "172.16.0.1:5060", b"turned");
    rig.modify(ALICE, &turned);
    rig.assert_counts("received=1 shown=2");
    let further = udp("172.16.0.1:1", "198.51.100.1:1", b"further");
    rig.modify(BOB, &further);
    assert_eq!(rig.outcomes(), [Outcome::Replaced(further)]);
    rig.assert_counts("received=1 shown=2 modified=1");
    rig.finish();
}

/// Ports count, too, and what the first match found is not shown what it does not want any more.
#[test]
fn the_rest_of_the_way_is_that_of_the_changed_packet() {
    for (changed, shown) in [
        (udp("192.0.2.1:9", "10.0.0.2:5061", b"x"), None),
        (udp("192.0.2.1:9", "10.0.0.2:5062", b"x"), Some(BOB)),
        (udp("192.0.2.1:9", "10.0.0.2:5060", b"other"), None),
        (udp("192.0.2.1:9", "10.0.0.2:1", b"x"), None),
    ] {
        let mut rig = each_its_own(ALICES, "udp port 5062");
        rig.send(&[&to_alice(b"x")]);
        rig.modify(ALICE, &changed);
        if let Some(user) = shown {
            assert_eq!(rig.answer(user, Answer::Pass), std::slice::from_ref(&changed));
        }
        assert_eq!(rig.outcomes(), [Outcome::Replaced(changed)]);
        rig.assert_counts(&format!("received=1 shown={} modified=1", 1 + usize::from(shown.is_some())));
        rig.finish();
    }
    // Bob would have been next.
    let mut rig = each_its_own("udp dst 10.0.0.0/24 port 5060", "udp port 5060");
    rig.send(&[&to_alice(b"x")]);
    let changed = udp("192.0.2.1:9", "10.0.0.2:1", b"x");
    rig.modify(ALICE, &changed);
    assert_eq!(rig.outcomes(), [Outcome::Replaced(changed)]);
    rig.assert_counts("received=1 shown=1 modified=1");
    rig.finish();
}

/// Modules that turn a packet to each other's users for ever see it once each.
#[test]
fn no_container_is_shown_a_packet_twice() {
    let mut rig = each_its_own(ALICES, BOBS);
    rig.container("carol", &["172.17.0.0/16"]);
    rig.module(3, "carol", 0, "udp dst 172.17.0.0/16", FailureMode::Open);
    rig.send(&[&to_alice(b"x")]);
    rig.modify(ALICE, &udp("10.0.0.2:1", "172.16.0.1:1", b"x"));
    rig.modify(BOB, &udp("172.16.0.1:1", "172.17.0.1:1", b"x"));
    let back = udp("172.17.0.1:1", "10.0.0.2:5060", b"x");
    rig.modify("carol", &back);
    assert_eq!(rig.outcomes(), [Outcome::Replaced(back)]);
    assert!(rig.arrivals(ALICE).is_empty() && rig.arrivals(BOB).is_empty());
    rig.assert_counts("received=1 shown=3 modified=1");
    rig.finish();
}

/// A module of the second match that cannot say counts as one of the first would.
#[test]
fn a_user_that_a_packet_is_turned_to_may_fail_closed() {
    let mut rig = each_its_own(ALICES, BOBS);
    rig.change_filters(vec![(4, BOB, 0, "udp dst 172.16.0.0/16", FailureMode::Closed)], vec![2]);
    rig.command(PacketCommand::RemoveWorker { worker: id(BOB), reason: DropReason::ContainerGone });
    let packet = to_alice(b"x");
    rig.send(&[&packet]);
    rig.modify(ALICE, &udp("10.0.0.2:5060", "172.16.0.1:5060", b"turned"));
    assert_eq!(rig.outcomes(), [Outcome::Dropped(packet)]);
    rig.assert_counts("received=1 shown=1 dropped.container-gone=1 unseen.container-gone=1");
    rig.finish();
}

/// Goal: what a module makes is other users' to see as what comes from elsewhere is, a guard of theirs among it.
#[test]
fn a_packet_that_a_module_makes_is_shown_to_the_users_who_want_it() {
    let (made, changed) =
        (udp("10.0.0.2:1", "172.16.0.1:5060", b"made"), udp("10.0.0.2:1", "172.16.0.1:5060", b"changed"));
    for (answer, outcomes, counts) in [
        (Answer::Pass, vec![made.clone()], "shown=1 injected=1"),
        (Answer::Failed, vec![made.clone()], "shown=1 injected=1 unseen.trapped=1"),
        (Answer::Drop, vec![], "shown=1 refused.module=1"),
        (Answer::Modified, vec![changed.clone()], "shown=1 injected=1"),
    ] {
        let mut rig = each_its_own("udp", BOBS);
        rig.make(ALICE, &made);
        assert!(rig.arrivals(ALICE).is_empty(), "not by her own modules");
        match answer {
            Answer::Modified => rig.modify(BOB, &changed),
            Answer::Pass | Answer::Failed | Answer::Drop => {
                assert_eq!(rig.answer(BOB, answer), std::slice::from_ref(&made));
            }
        }
        assert_eq!(rig.outcomes(), outcomes.into_iter().map(Outcome::Injected).collect::<Vec<_>>());
        rig.assert_counts(counts);
        rig.finish();
    }
    // A guard that is down.
    let mut rig = each_its_own("udp", BOBS);
    rig.change_filters(vec![(4, BOB, 0, BOBS, FailureMode::Closed)], vec![2]);
    rig.command(PacketCommand::RemoveWorker { worker: id(BOB), reason: DropReason::ContainerGone });
    rig.make(ALICE, &made);
    assert_eq!(rig.outcomes(), []);
    rig.assert_counts("unseen.container-gone=1 refused.container-gone=1");
    // One that leads to no other machine in the end.
    let mut rig = each_its_own("udp", BOBS);
    rig.make(ALICE, &made);
    rig.modify(BOB, &udp("172.16.0.1:1", "127.0.0.1:1", b"x"));
    rig.assert_counts("shown=1 refused.destination-refused=1");
    rig.finish();
}

/// Two users' modules that answer each other's packets with packets of their own end when their users' budgets do, and one
/// packet is shown to nobody twice, however it is turned.
#[test]
fn packets_that_modules_make_of_each_others_end_with_their_users_limits() {
    let mut rig = each_its_own(ALICES, BOBS);
    for user in [ALICE, BOB] {
        let limits = SendLimits { packets_per_second: 3, ..SendLimits::default() };
        rig.command(PacketCommand::SetSendLimits { user: id(user).user, limits });
    }
    let (to_bob, to_alice) = (udp("10.0.0.2:1", "172.16.0.1:1", b"x"), udp("172.16.0.1:1", "10.0.0.2:1", b"x"));
    rig.make(ALICE, &to_bob);
    let mut rounds = 0;
    while rounds < 100 && rig.answer(BOB, Answer::Drop).len() == 1 {
        rounds += 1;
        rig.make(BOB, &to_alice);
        if rig.answer(ALICE, Answer::Drop).len() == 1 {
            rig.make(ALICE, &to_bob);
        }
    }
    assert!((3..100).contains(&rounds), "{rounds}");
    let mut rig = each_its_own(ALICES, BOBS);
    rig.make(ALICE, &to_bob);
    rig.modify(BOB, &to_alice);
    assert_eq!(rig.outcomes(), [Outcome::Injected(to_alice)]);
    assert!(rig.arrivals(ALICE).is_empty() && rig.arrivals(BOB).is_empty());
    rig.finish();
}

/// Returns a loop with Alice's and Bob's containers, each of which has one module with a filter.
fn each_its_own(alice: &str, bob: &str) -> Rig {
    let mut rig = Rig::new();
    rig.container(ALICE, &["10.0.0.0/24"]);
    rig.container(BOB, &["172.16.0.0/16"]);
    rig.module(1, ALICE, 0, alice, FailureMode::Open);
    rig.module(2, BOB, 0, bob, FailureMode::Open);
    rig
}

/// Returns a loop with two containers, both of which want every UDP packet, Bob's first.
fn both(bob: FailureMode, alice: FailureMode) -> Rig {
    let mut rig = Rig::new();
    rig.container(ALICE, &["10.0.0.0/24"]);
    rig.container(BOB, &["172.16.0.0/16"]);
    rig.module(1, BOB, 3, "udp", bob);
    rig.module(2, ALICE, 0, "udp", alice);
    rig
}

fn pass(rig: &mut Rig, user: &str, arrivals: Vec<(Arrival, Vec<u8>)>) {
    let worker = rig.workers.get_mut(user).unwrap();
    for (arrival, _) in arrivals {
        worker.end().answer(arrival, Answer::Pass, None).unwrap();
    }
    worker.wake();
    rig.turn();
}

in_four_lanes!(
    two_users_see_a_packet_in_install_order,
    the_second_sees_what_the_first_made_of_it,
    each_change_is_judged_by_the_prefixes_of_who_made_it,
    a_first_that_cannot_say_lets_the_second_speak_if_it_fails_open,
    a_container_that_goes_takes_only_its_own_packets_along,
    a_packet_turned_to_another_user_is_shown_to_that_users_modules,
    the_rest_of_the_way_is_that_of_the_changed_packet,
    no_container_is_shown_a_packet_twice,
    a_user_that_a_packet_is_turned_to_may_fail_closed,
    a_packet_that_a_module_makes_is_shown_to_the_users_who_want_it,
    packets_that_modules_make_of_each_others_end_with_their_users_limits
);
