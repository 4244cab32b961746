// SPDX-License-Identifier: Apache-2.0
//! The instructions of the packet loop over the dummy driver, counted from outside: `./dev guards`.

use std::hint::black_box;

use netserv_plane::dummy::lane_of;
use netserv_wire::ip::IpView;

use super::*;

/// Packets of a round.
const BATCH: usize = limits::BATCH_PACKETS_MAX;
/// Rounds of a case, so many that what happens every few milliseconds does not count.
const ROUNDS: usize = 16;

#[test]
#[ignore = "means something only under callgrind"]
fn packets_through_the_loop() {
    guard("matched by 1 rule", &[to_alice(b"x")], 0);
    guard("matched by the last of 1000 rules", &[to_alice(b"x")], 999);
    guard("matched by nothing", &[udp("192.0.2.1:9", "198.51.100.1:5060", b"x")], 0);
    // With as many instructions as with one lane.
    let ports = (5000..).map(|port| udp("192.0.2.1:9", &format!("10.0.0.2:{port}"), b"x"));
    let in_lane_0 = |packet: &Vec<u8>| lane_of(&IpView::parse(packet).unwrap().flow(), 4) == 0;
    let packet = ports.into_iter().find(in_lane_0).unwrap();
    with_lanes(4, || guard("matched by 1 rule, one of 4 lanes", &[packet], 0));
}

/// Takes packets in, and with the worker's answers out again; what the worker does is not counted.
fn guard(name: &str, packets: &[Vec<u8>], others: u64) {
    let mut rig = Rig::new();
    rig.container(ALICE, &["10.0.0.0/24"]);
    let others: Vec<_> = (0..others).map(|n| format!("udp dst 10.{}.{}.0/24", 1 + n / 250, n % 250)).collect();
    let others = (2..).zip(&others).map(|(id, filter)| (id, ALICE, 0, filter.as_str(), FailureMode::Open));
    let wanted = (u64::MAX, ALICE, 0, "udp dst 10.0.0.0/24", FailureMode::Open);
    rig.load(ALICE, 0, true);
    rig.change_filters(others.chain([wanted]).collect(), vec![]);
    let outcomes = rig.outcomes().len();
    for round in 0..=ROUNDS {
        for packet in packets.iter().cycle().take(BATCH) {
            assert!(rig.plane.push(LAN, packet));
        }
        turn(&mut rig, round, &format!("{name}, in"));
        let arrivals = rig.arrivals(ALICE);
        let worker = rig.workers.get_mut(ALICE).unwrap();
        arrivals.into_iter().for_each(|(arrival, _)| worker.end().answer(arrival, Answer::Pass, None).unwrap());
        worker.wake();
        turn(&mut rig, round, &format!("{name}, out"));
    }
    assert_eq!(rig.outcomes().len(), outcomes + BATCH * (ROUNDS + 1));
    rig.finish();
}

/// Turns the loop once, and counts that unless it is the first round, which has what is only done once.
fn turn(rig: &mut Rig, round: usize, name: &str) {
    let Rig { packets, batch, .. } = rig;
    let mut turn = || {
        black_box(packets.turn(batch)).unwrap();
    };
    if round == 0 {
        return turn();
    }
    // On a line of its own: the test's name stands before it.
    println!("\nguard {name} {BATCH}");
    netserv_guarded(turn);
}

/// What happens in here is counted from outside, and so are the calls.
#[inline(never)]
fn netserv_guarded(work: impl FnOnce()) {
    work();
}
