// SPDX-License-Identifier: Apache-2.0
//! Packets that gather with the driver: none is lost, and answers do not wait for them.

use super::*;
use crate::limits::GATHER_WINDOW;

#[test]
fn what_comes_while_packets_gather_is_taken_after_that() {
    let mut rig = gathering(Duration::from_millis(50));
    let until = rig.packets.cx.now + Duration::from_millis(50);
    rig.send(&[&to_alice(b"1"), &to_alice(b"2")]);
    let before = rig.arrivals(ALICE).len();
    assert!(before == 1 || Instant::now() >= until, "{before}");
    rig.packets.sleep();
    assert!(Instant::now() >= until, "packets do not end the sleep");
    rig.turn();
    let came: Vec<Vec<u8>> = rig.arrivals(ALICE).into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(came, [to_alice(b"1"), to_alice(b"2")]);
    rig.finish();
}

/// A millisecond, as epoll counts, would be many times as long.
#[test]
fn packets_gather_for_as_many_microseconds_as_are_asked_for() {
    let time = Duration::from_micros(100);
    let mut shortest = Duration::MAX;
    for _ in 0..200 {
        let PacketLoop { mut eventfds, mut workers, .. } = Rig::new().packets;
        let begun = Instant::now();
        eventfds.poll_without_driver(time, &mut workers);
        shortest = shortest.min(begun.elapsed());
    }
    assert!((time..time * 8).contains(&shortest), "{shortest:?}");
}

#[test]
fn an_answer_goes_out_while_packets_gather() {
    let mut rig = gathering(Duration::from_secs(60));
    assert!(rig.plane.push(LAN, &to_alice(b"next")));
    let mut worker = rig.workers.remove(ALICE).unwrap();
    let arrival = arrivals(&mut worker).remove(0).0;
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let answers = || {
            std::thread::sleep(Duration::from_millis(20));
            worker.end().answer(arrival, Answer::Pass, None).unwrap();
            worker.wake();
        };
        scope.spawn(answers);
        rig.packets.sleep();
    });
    assert!(begun.elapsed() < Duration::from_secs(60));
    rig.packets.turn(&mut rig.batch).unwrap();
    assert_eq!(rig.outcomes(), [Outcome::Passed(to_alice(b"last"))]);
    rig.finish();
}

#[test]
fn a_command_ends_the_sleep_of_a_loop_while_packets_gather() {
    let mut rig = gathering(Duration::from_secs(60));
    let wake = rustix::io::fcntl_dupfd_cloexec(&rig.packets.eventfds._commands, 0).unwrap();
    rustix::io::write(&wake, &1_u64.to_ne_bytes()).unwrap();
    let begun = Instant::now();
    rig.packets.sleep();
    assert!(begun.elapsed() < Duration::from_secs(60));
    rig.finish();
}

/// However closely two follow each other.
#[test]
fn packets_that_are_rare_are_taken_at_once() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    rig.packets.set_coalescing(Duration::from_secs(60));
    for _ in 0..20 {
        for packet in [to_alice(b"1"), to_alice(b"2")] {
            rig.send(&[&packet]);
            assert_eq!(rig.answer(ALICE, Answer::Pass), std::slice::from_ref(&packet));
            assert_eq!(rig.outcomes(), [Outcome::Passed(packet)]);
        }
        std::thread::sleep(GATHER_WINDOW);
    }
    rig.finish();
}

/// Returns a loop that has just taken one of many packets, which Alice's container has not answered; the next ones gather for so long.
fn gathering(time: Duration) -> Rig {
    let mut rig = Rig::with_alice(FailureMode::Open);
    rig.packets.set_coalescing(time);
    // A machine that stands still for long makes them rare. None gathers after full batches.
    for _ in 0..50 {
        rig.send(&vec![to_alice(b"x").as_slice(); 10 * limits::BATCH_PACKETS_MAX]);
        std::thread::sleep(GATHER_WINDOW);
        rig.turn();
        rig.answer(ALICE, Answer::Pass);
        rig.outcomes();
        assert!(rig.plane.push(LAN, &to_alice(b"last")));
        rig.packets.turn(&mut rig.batch).unwrap();
        if rig.packets.pacing.coalesces(rig.packets.cx.now) {
            return rig;
        }
        rig.answer(ALICE, Answer::Pass);
    }
    panic!("packets are never frequent");
}
