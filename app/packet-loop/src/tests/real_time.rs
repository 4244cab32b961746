// SPDX-License-Identifier: Apache-2.0
//! The loop in the real-time class: who may look for packets again and again, and until when.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::limits::SPINNERS_MAX;
use crate::real_time::Standing;

#[test]
fn a_worker_spins_from_its_waking_until_the_loop_sleeps() {
    in_the_class(|rig| {
        for _ in 0..3 {
            rig.wake_all(&[ALICE]);
            assert!(rig.spins(ALICE));
            rig.answer(ALICE, Answer::Pass);
            assert_eq!(rig.packets.seats.active_len(), 1, "it does not ring, so it is visited");
            rig.packets.sleep();
            assert!(!rig.spins(ALICE));
            rig.turn();
            assert_eq!(rig.packets.seats.active_len(), 0);
        }
        rig.wake_all(&[ALICE]);
        rig.command(PacketCommand::RemoveWorker { worker: id(ALICE), reason: DropReason::ContainerGone });
        assert_eq!(rig.packets.spinners, 0);
    });
}

#[test]
fn spinners_max_workers_spin_at_a_time() {
    const NAMES: [&str; SPINNERS_MAX + 1] = ["one", "two", "three", "four", "five"];
    in_the_class(|rig| {
        rig.change_filters(vec![], vec![1]);
        for (number, name) in (0..).zip(NAMES) {
            rig.container(name, &[]);
            rig.module(100 + number, name, 0, &format!("udp dst 10.1.{number}.0/24"), FailureMode::Open);
            rig.permit(name);
        }
        rig.turn();
        rig.wake_all(&NAMES);
        assert_eq!(NAMES.iter().filter(|name| rig.spins(name)).count(), SPINNERS_MAX);
        assert_eq!(rig.packets.spinners, SPINNERS_MAX);
    });
}

#[test]
fn one_that_is_not_in_the_class_does_not_spin() {
    in_the_class(|rig| {
        rig.packets.seats.end_of(&id(ALICE)).unwrap().standing = None;
        rig.wake_all(&[ALICE]);
        assert!(!rig.spins(ALICE));
    });
}

#[test]
fn nobody_spins_without_busy_polling() {
    in_the_class(|rig| {
        rig.packets.set_busy_poll(Duration::ZERO);
        rig.wake_all(&[ALICE]);
        assert!(!rig.spins(ALICE));
    });
}

/// Calls with a loop in the class, on a thread of its own, where the machine has one.
fn in_the_class(test: impl FnOnce(&mut Rig) + Send) {
    let run = || {
        let mut rig = Rig::with_alice(FailureMode::Open);
        rig.packets.set_busy_poll(Duration::from_millis(1));
        if let Err(error) = rig.packets.begin_real_time() {
            return netserv_skips::not_run("a loop in the real-time class", &format!("{error:#}"));
        }
        rig.permit(ALICE);
        rig.turn();
        let until = Instant::now() + Duration::from_secs(20);
        while !rig.packets.real_time.as_ref().is_some_and(RealTime::may_spin) {
            assert!(Instant::now() < until, "the guard does not look");
            std::thread::sleep(Duration::from_millis(1));
        }
        test(&mut rig);
        rig.finish();
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap());
}

impl Rig {
    /// Has a container's worker count as one in the class.
    fn permit(&mut self, name: &str) {
        self.packets.seats.end_of(&id(name)).unwrap().standing = Some(Standing(Arc::new(AtomicBool::new(true))));
    }

    /// Lets workers fall asleep, and gives each a packet.
    fn wake_all(&mut self, names: &[&str]) {
        for name in names {
            drop(self.arrivals(name));
            assert!(self.workers.get_mut(*name).unwrap().end().prepare_sleep());
        }
        let to = |number: usize| udp("192.0.2.1:9", &format!("10.1.{number}.2:5060"), b"x");
        let packets: Vec<_> = match names {
            [_] => vec![to_alice(b"x")],
            _ => (0..names.len()).map(to).collect(),
        };
        self.send(&packets.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }

    fn spins(&mut self, name: &str) -> bool {
        self.workers.get_mut(name).unwrap().end().may_spin()
    }
}
