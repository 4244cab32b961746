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
            assert_eq!(rig.packets.workers.active_len(), 1, "it does not ring, so it is visited");
            rig.packets.sleep();
            assert!(!rig.spins(ALICE));
            rig.turn();
            assert_eq!(rig.packets.workers.active_len(), 0);
        }
        rig.wake_all(&[ALICE]);
        rig.command(PacketCommand::RemoveWorker { worker: id(ALICE), reason: DropReason::ContainerGone });
        assert_eq!(rig.packets.workers.spinners(), 0);
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
        assert_eq!(rig.packets.workers.spinners(), SPINNERS_MAX);
    });
}

/// Workers share the cores, whichever lanes they were woken by.
#[test]
fn spinners_max_workers_spin_over_all_lanes() {
    const NAMES: [&str; SPINNERS_MAX + 1] = ["one", "two", "three", "four", "five"];
    with_lanes(4, || {
        in_the_class(|rig| {
            rig.change_filters(vec![], vec![1]);
            for (number, name) in (0..).zip(NAMES) {
                rig.container(name, &[]);
                rig.module(100 + number, name, 0, &format!("udp dst 10.1.{number}.0/24"), FailureMode::Open);
                rig.permit(name);
                for worker in rig.worker_in_lanes(name) {
                    assert!(worker.end().prepare_sleep());
                }
            }
            rig.turn();
            let of_flow =
                |flow: usize| udp("192.0.2.1:9", &format!("10.1.{}.2:{}", flow % NAMES.len(), 1000 + flow), b"x");
            let packets: Vec<_> = (0..16 * NAMES.len()).map(of_flow).collect();
            rig.send(&packets.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let mut spins = |name: &&str| rig.worker_in_lanes(name).any(|worker| worker.end().may_spin());
            assert_eq!(NAMES.iter().filter(|name| spins(name)).count(), SPINNERS_MAX);
            let of_lanes = rig.others.iter().map(|lane| lane.packets.workers.spinners()).sum::<usize>();
            assert!(rig.packets.workers.spinners() + of_lanes > SPINNERS_MAX, "some are let by several lanes");
        });
    });
}

#[test]
fn one_that_is_not_in_the_class_does_not_spin() {
    in_the_class(|rig| {
        rig.packets.workers.end_of(&id(ALICE)).unwrap().standing = None;
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
    let lanes = LANES.get();
    let run = || {
        LANES.set(lanes);
        let mut rig = Rig::with_alice(FailureMode::Open);
        rig.packets.set_busy_poll(Duration::from_millis(1));
        if let Err(error) = rig.packets.begin_real_time() {
            return netserv_skips::not_run("a loop in the real-time class", &format!("{error:#}"));
        }
        let club = rig.packets.real_time_club().unwrap();
        for OtherLane { packets, .. } in &mut rig.others {
            packets.set_busy_poll(Duration::from_millis(1));
            packets.join_real_time(&club).unwrap();
        }
        rig.permit(ALICE);
        rig.turn();
        let until = Instant::now() + Duration::from_secs(60);
        while !rig.packets.pacing.class_may_spin() {
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
        let loops = std::iter::once(&mut self.packets).chain(self.others.iter_mut().map(|lane| &mut lane.packets));
        for packets in loops {
            packets.workers.end_of(&id(name)).unwrap().standing = Some(Standing(Arc::new(AtomicBool::new(true))));
        }
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
