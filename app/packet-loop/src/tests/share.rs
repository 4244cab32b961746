// SPDX-License-Identifier: Apache-2.0
//! Many containers side by side: one that is slow costs the others nothing, one that rests costs the loop nothing.

use netserv_container::thread_sleeps;
use netserv_wire::container::ring::HOST_SLOTS;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::limits::{
    HELD_PACKETS_MANY, HELD_PER_FREE_MAX, SLEEPERS_FEW, UNANSWERED_TURNS_MIN, UNWOKEN_PACKETS_EACH_MAX,
    UNWOKEN_PACKETS_MAX, UNWOKEN_TIME_EACH, UNWOKEN_TIME_FEW_MAX, UNWOKEN_TIME_MAX, VISITS_PER_TURN_MAX,
    WAKES_PER_TURN_MAX, WATCHED_PER_LOOK_MAX,
};

#[test]
fn one_that_never_answers_does_not_hold_another_up() {
    for mode in [FailureMode::Open, FailureMode::Closed] {
        let mut rig = side_by_side(&[ALICE, BOB], mode);
        let (alices, bobs) = (to(0), to(1));
        let rounds = 3 * HOST_SLOTS / 32;
        for _ in 0..rounds {
            let packets = [[alices.as_slice(), bobs.as_slice()]; 32].concat();
            rig.send(&packets);
            assert_eq!(rig.answer(BOB, Answer::Pass).len(), 32, "all that came for him");
        }
        let sent = 32 * rounds;
        let outcomes = rig.outcomes();
        assert_eq!(outcomes.iter().filter(|one| **one == Outcome::Passed(bobs.clone())).count(), sent);
        let of_alice = |outcome: Outcome| outcomes.iter().filter(|one| **one == outcome).count();
        let shown = sent + HOST_SLOTS;
        let lost = sent - HOST_SLOTS;
        match mode {
            FailureMode::Open => {
                assert_eq!(of_alice(Outcome::Passed(alices)), lost);
                let (received, passed) = (2 * sent, sent + lost);
                rig.assert_counts(&format!(
                    "received={received} shown={shown} passed={passed} unseen.ring-full={lost}"
                ));
            }
            FailureMode::Closed => {
                assert_eq!(of_alice(Outcome::Dropped(alices)), lost);
                let counts = format!("dropped.ring-full={lost} unseen.ring-full={lost}");
                rig.assert_counts(&format!("received={} shown={shown} passed={sent} {counts}", 2 * sent));
            }
        }
        rig.finish();
    }
}

/// Giving way does not give a worker in another control group the core; only sleeping does.
#[test]
fn workers_that_hold_many_packets_and_answer_none_get_the_core_for_a_moment() {
    let sleeps = |rig: &mut Rig| {
        let before = thread_sleeps();
        for _ in 0..UNANSWERED_TURNS_MIN {
            rig.packets.turn(&mut rig.batch).unwrap();
            rig.packets.pacing.hand_over(&mut rig.packets.workers);
        }
        thread_sleeps() - before
    };
    let mut rig = Rig::with_alice(FailureMode::Open);
    let packet = to_alice(b"x");
    rig.send(&vec![packet.as_slice(); HELD_PACKETS_MANY - 1]);
    assert_eq!(sleeps(&mut rig), 0, "a few packets may wait");
    rig.send(&[&packet]);
    assert_eq!(sleeps(&mut rig), 1);
    rig.answer(ALICE, Answer::Pass);
    assert_eq!(sleeps(&mut rig), 0);
    rig.finish();
}

/// A driver has memory for so many packets; those that hoard share it with those that are still to come.
#[test]
fn a_container_holds_held_per_free_max_packets_for_each_that_can_still_be_taken() {
    const ROOM: usize = 300;
    let mut rig = side_by_side(&[ALICE, BOB, "carol"], FailureMode::Open);
    rig.packets.in_flight.capacity = ROOM;
    rig.send(&vec![to(0).as_slice(); ROOM]);
    assert_eq!(rig.packets.in_flight.pending.len(), ROOM * HELD_PER_FREE_MAX / (1 + HELD_PER_FREE_MAX));
    assert_eq!(rig.outcomes().len(), ROOM - rig.packets.in_flight.pending.len(), "the others pass unseen");
    rig.send(&vec![to(1).as_slice(); ROOM]);
    assert_eq!(rig.packets.in_flight.pending.len(), 225, "the second takes half of what the first left");
    for _ in 0..10 {
        rig.send(&[to(2).as_slice(); 37]);
        assert_eq!(rig.answer("carol", Answer::Pass).len(), 37, "who answers has room whatever the others do");
    }
    rig.finish();
}

#[test]
fn only_containers_that_hold_packets_are_visited() {
    let mut rig = side_by_side(&names(20), FailureMode::Open);
    rig.turn();
    assert_eq!(rig.packets.workers.active_len(), 0);
    rig.send(&[&to(3), &to(3), &to(7)]);
    assert_eq!(rig.packets.workers.active_len(), 2);
    rig.answer(names(20)[3], Answer::Pass);
    assert_eq!(rig.packets.workers.active_len(), 1);
    rig.answer(names(20)[7], Answer::Drop);
    assert_eq!(rig.packets.workers.active_len(), 0);
    rig.finish();
}

#[test]
fn visits_per_turn_max_containers_are_visited_in_a_turn() {
    let count = VISITS_PER_TURN_MAX + 6;
    let names = names(count);
    let mut rig = side_by_side(&names, FailureMode::Open);
    rig.turn();
    let packets: Vec<_> = (0..count).map(to).collect();
    rig.send(&packets.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for name in &names {
        let (arrival, _) = rig.arrivals(name).remove(0);
        let worker = rig.workers.get_mut(name).unwrap();
        worker.end().answer(arrival, Answer::Pass, None).unwrap();
        worker.wake();
    }
    assert_eq!(take_returned(&mut rig.packets), VISITS_PER_TURN_MAX);
    assert_eq!(take_returned(&mut rig.packets), 6, "the others come first in the next turn");
    rig.finish();
}

/// A timer of a module in a container without packets, while others keep the loop busy.
#[test]
fn one_that_rests_is_heard_every_eventfds_interval_max() {
    let mut rig = side_by_side(&[ALICE, BOB], FailureMode::Open);
    rig.turn();
    assert!(rig.inject(BOB));
    let never = Instant::now() + Duration::from_secs(3600);
    rig.packets.eventfds.polled_at = never;
    for _ in 0..3 {
        assert!(rig.busy_turn(&to(0)));
    }
    assert_eq!(rig.outcomes(), []);
    rig.packets.eventfds.polled_at = Instant::now().checked_sub(EVENTFDS_INTERVAL_MAX).unwrap();
    assert!(rig.busy_turn(&to(0)));
    assert!(rig.packets.eventfds.polled_at > Instant::now().checked_sub(Duration::from_secs(60)).unwrap());
    rig.packets.eventfds.polled_at = never;
    assert!(rig.busy_turn(&to(0)));
    assert_eq!(rig.outcomes().len(), 1, "heard in one turn, sent in the next");
    rig.finish();
}

#[test]
fn one_that_rests_ends_the_sleep() {
    let mut rig = side_by_side(&[ALICE, BOB], FailureMode::Open);
    rig.turn();
    assert!(rig.inject(BOB));
    rig.packets.sleep();
    assert_eq!(rig.packets.workers.active_len(), 1);
    rig.turn();
    assert_eq!(rig.outcomes().len(), 1);
    rig.finish();
}

#[test]
fn unwoken_packets_max_packets_wait_for_a_sleeper_while_full_batches_come() {
    let mut rig = side_by_side(&[ALICE], FailureMode::Open);
    rig.turn();
    for _ in 0..2 {
        rig.answer(ALICE, Answer::Pass);
        rig.fall_asleep(ALICE);
        for before in (0..UNWOKEN_PACKETS_MAX).step_by(limits::BATCH_PACKETS_MAX) {
            (0..limits::BATCH_PACKETS_MAX).for_each(|_| rig.offer(&to(0)));
            publish(&mut rig.packets);
            wake_sleepers(&mut rig.packets, limits::BATCH_PACKETS_MAX);
            let after = before + limits::BATCH_PACKETS_MAX;
            assert_eq!(rig.is_unwoken(ALICE), after < UNWOKEN_PACKETS_MAX, "{after}");
        }
        assert!(rig.workers[ALICE].was_woken());
    }
    rig.finish();
}

#[test]
fn one_of_few_sleepers_is_left_asleep_for_unwoken_time_few_max() {
    let mut rig = side_by_side(&[ALICE, BOB], FailureMode::Open);
    rig.turn();
    rig.fall_asleep(ALICE);
    rig.full_turn();
    let since = rig.packets.cx.now;
    rig.packets.cx.now = since + UNWOKEN_TIME_FEW_MAX - Duration::from_micros(1);
    wake_sleepers(&mut rig.packets, limits::BATCH_PACKETS_MAX);
    assert!(rig.is_unwoken(ALICE) && !rig.workers[ALICE].was_woken());
    rig.packets.cx.now = since + UNWOKEN_TIME_FEW_MAX;
    wake_sleepers(&mut rig.packets, limits::BATCH_PACKETS_MAX);
    assert!(!rig.is_unwoken(ALICE) && rig.workers[ALICE].was_woken());
    assert!(rig.packets.wakeups.is_empty());
    rig.finish();
}

#[test]
fn one_of_few_sleepers_is_woken_at_once_when_no_more_packets_come() {
    let mut rig = side_by_side(&[ALICE], FailureMode::Open);
    rig.turn();
    rig.fall_asleep(ALICE);
    rig.full_turn();
    assert!(rig.is_unwoken(ALICE));
    assert!(rig.busy_turn(&to(0)));
    assert!(!rig.is_unwoken(ALICE));
    rig.finish();
}

/// Of more than sleepers_few, each waits unwoken_time_each for all of them, and unwoken_time_max at most.
#[test]
fn many_sleepers_are_woken_one_in_unwoken_time_each() {
    for count in [SLEEPERS_FEW + 1, 20] {
        let mut rig = asleep(count);
        let patience = UNWOKEN_TIME_EACH * u32::try_from(count).unwrap();
        let since = rig.packets.cx.now;
        rig.packets.cx.now = since + patience - Duration::from_micros(1);
        wake_sleepers(&mut rig.packets, 1);
        assert_eq!(rig.packets.wakeups.len(), count);
        rig.packets.cx.now = since + patience;
        wake_sleepers(&mut rig.packets, 1);
        assert_eq!(rig.packets.wakeups.len(), 0);
        rig.finish();
    }
    assert_eq!(wakeups::patience(100_000, 1), UNWOKEN_TIME_MAX);
    assert_eq!(wakeups::patience(100_000, 0), Duration::ZERO);
}

#[test]
fn wakes_per_turn_max_sleepers_are_woken_in_a_turn() {
    let mut rig = asleep(WAKES_PER_TURN_MAX + 5);
    wake_sleepers(&mut rig.packets, 0);
    assert_eq!(rig.packets.wakeups.len(), 5);
    assert_eq!(rig.packets.workers.active_len(), WAKES_PER_TURN_MAX, "only those that are awake are visited");
    rig.turn();
    assert!(rig.packets.wakeups.is_empty());
    rig.finish();
}

#[test]
fn unwoken_packets_each_max_packets_wait_for_one_of_many_sleepers() {
    let mut rig = asleep(SLEEPERS_FEW + 2);
    let last = names(SLEEPERS_FEW + 2)[SLEEPERS_FEW + 1];
    for count in 2..=UNWOKEN_PACKETS_EACH_MAX {
        assert!(rig.is_unwoken(last), "{count}");
        rig.offer(&to(SLEEPERS_FEW + 1));
        publish(&mut rig.packets);
        wake_sleepers(&mut rig.packets, 1);
    }
    assert!(!rig.is_unwoken(last));
    assert_eq!(rig.packets.wakeups.len(), SLEEPERS_FEW + 1 + 1, "it is skipped where it stood");
    rig.finish();
}

#[test]
fn the_loop_stays_awake_for_as_long_as_it_is_told() {
    let mut rig = side_by_side(&[ALICE], FailureMode::Open);
    assert!(rig.busy_turn(&to(0)));
    assert!(rig.packets.pacing.may_sleep(rig.packets.cx.now));
    rig.packets.set_busy_poll(Duration::from_millis(20));
    assert!(rig.busy_turn(&to(0)));
    let busy_at = rig.packets.cx.now;
    assert!(!rig.packets.pacing.may_sleep(busy_at + Duration::from_millis(19)));
    assert!(rig.packets.pacing.may_sleep(busy_at + Duration::from_millis(20)));
    rig.finish();
}

/// Modules of idle containers hang in their timers.
#[test]
fn watched_per_look_max_idle_containers_are_watched_in_a_look() {
    let count = WATCHED_PER_LOOK_MAX + 3;
    let names = names(count);
    let mut rig = side_by_side(&names, FailureMode::Open);
    rig.turn();
    for name in &names {
        rig.workers.get_mut(name).unwrap().end().enter(ModuleSlot(0));
    }
    let mut now = rig.packets.watchdog.looked_at;
    let mut reported = Vec::new();
    while reported.iter().sum::<usize>() < count && reported.len() < 1000 {
        now += WATCH_INTERVAL;
        watch(&mut rig.packets, now);
        reported.push(rig.events().len());
    }
    let looks: Vec<usize> = reported.into_iter().filter(|count| *count > 0).collect();
    assert_eq!((looks.len(), looks.iter().sum()), (2, count), "{looks:?}");
    assert!(looks.iter().all(|count| *count <= WATCHED_PER_LOOK_MAX));
    // After a sleep, all of them have their turn at once.
    for name in &names {
        rig.command(PacketCommand::RemoveWorker { worker: id(name), reason: DropReason::Stalled });
        rig.container(name, &[]);
        rig.workers.get_mut(name).unwrap().end().enter(ModuleSlot(0));
    }
    watch(&mut rig.packets, now + WAIT_MAX);
    watch(&mut rig.packets, now + WAIT_MAX * 4);
    assert_eq!(rig.events().len(), count);
    rig.finish();
}

/// Whatever happens in whatever order, each packet gets one verdict, and none stays anywhere.
#[test]
fn every_packet_has_one_verdict_whatever_containers_do() {
    let seed =
        std::env::var("NETSERV_SEED").map_or_else(|_| SysRng.try_next_u64().unwrap(), |seed| seed.parse().unwrap());
    println!("NETSERV_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let names = names(9);
    let mut rig = side_by_side(&names, FailureMode::Open);
    // Packets for the last one go through all.
    let everybody =
        names.iter().zip(100..).map(|(name, rule)| (rule, *name, 0, "udp dst 10.0.8.0/24", FailureMode::Open));
    rig.change_filters(everybody.collect(), vec![]);
    let mut made = 0;
    for _ in 0..4000 {
        let name = names[random.random_range(0..names.len())];
        match random.random_range(0..12) {
            0..4 => assert!(rig.plane.push(LAN, &to(random.random_range(0..names.len())))),
            4..8 => rig.answer_some(name, &mut random),
            8 => made += u64::from(rig.inject(name)),
            9 => {
                rig.packets.turn(&mut rig.batch).unwrap();
            }
            10 => rig.packets.sleep(),
            _ if random.random_bool(0.9) => rig.load(name, 0, random.random_bool(0.8)),
            _ => {
                rig.container(name, &["10.0.0.0/8"]);
                rig.load(name, 0, true);
            }
        }
    }
    for _ in 0..1000 {
        names.iter().for_each(|name| rig.answer_some(name, &mut random));
        // Sleeps where the loop would: what no eventfd tells of would stay behind.
        while rig.packets.turn(&mut rig.batch).unwrap() {}
        rig.packets.sleep();
        if rig.packets.in_flight.pending.is_empty() {
            break;
        }
    }
    assert!(rig.packets.in_flight.pending.is_empty());
    rig.turn();
    assert_eq!(
        (rig.packets.workers.active_len(), rig.packets.workers.staged_len(), rig.packets.wakeups.len()),
        (0, 0, 0)
    );
    let totals = rig.counters.totals();
    assert_eq!(totals.injected + totals.refused.iter().map(|(_, count)| count).sum::<u64>(), made);
    rig.finish();
}

impl Rig {
    /// Lets a packet arrive, and turns the loop once; returns whether it had something to do.
    fn busy_turn(&mut self, packet: &[u8]) -> bool {
        assert!(self.plane.push(LAN, packet));
        self.packets.turn(&mut self.batch).unwrap()
    }

    /// Lets a batch of packets for the first container arrive, and turns the loop once.
    fn full_turn(&mut self) {
        (0..limits::BATCH_PACKETS_MAX).for_each(|_| assert!(self.plane.push(LAN, &to(0))));
        assert!(self.packets.turn(&mut self.batch).unwrap());
    }

    /// Lets a worker take what came for it, answer none of it, and fall asleep.
    fn fall_asleep(&mut self, name: &str) {
        drop(self.arrivals(name));
        assert!(self.workers.get_mut(name).unwrap().end().prepare_sleep());
    }

    /// Puts a packet into its container's ring, without a turn of the loop.
    fn offer(&mut self, packet: &[u8]) {
        assert!(self.plane.push(LAN, packet));
        self.packets.cx.driver.receive(&mut self.batch, Some(Duration::ZERO)).unwrap();
        for packet in self.batch.iter() {
            admit(&mut self.packets, &packet);
        }
    }

    fn is_unwoken(&mut self, name: &str) -> bool {
        self.packets.workers.end_of(&id(name)).unwrap().unwoken_since.is_some()
    }

    /// Lets a module send a packet of its own; returns whether it had a slot for it.
    fn inject(&mut self, name: &str) -> bool {
        let worker = self.workers.get_mut(name).unwrap();
        let made = worker.end().inject(&udp("10.0.0.2:1", "192.0.2.1:2", b"made"), ModuleSlot(0)).is_ok();
        worker.wake();
        made
    }

    /// Lets a worker answer what it was sent in any way, or say nothing yet.
    fn answer_some(&mut self, name: &str, random: &mut StdRng) {
        let arrivals = self.arrivals(name);
        let worker = self.workers.get_mut(name).unwrap();
        for (arrival, _) in arrivals {
            let answer = [Answer::Pass, Answer::Drop, Answer::Modified, Answer::Failed][random.random_range(0..4)];
            worker.end().answer(arrival, answer, Some(ModuleSlot(0))).unwrap();
        }
        worker.wake();
    }
}

/// Returns a loop with one container for each name, each with a module that wants the packets of a net of its own.
fn side_by_side(names: &[&'static str], mode: FailureMode) -> Rig {
    let mut rig = Rig::new();
    for (number, name) in names.iter().enumerate() {
        rig.container(name, &["10.0.0.0/8"]);
        rig.load(name, 0, true);
        let rule = u64::try_from(number).unwrap();
        rig.change_filters(vec![(rule, name, 0, &format!("udp dst 10.0.{number}.0/24"), mode)], vec![]);
    }
    rig
}

/// Returns a loop with so many containers that sleep, each with a packet that it was not woken for.
fn asleep(count: usize) -> Rig {
    let names = names(count);
    let mut rig = side_by_side(&names, FailureMode::Open);
    rig.turn();
    names.iter().for_each(|name| rig.fall_asleep(name));
    rig.packets.cx.now = Instant::now();
    for number in 0..count {
        rig.offer(&to(number));
    }
    publish(&mut rig.packets);
    assert_eq!(rig.packets.wakeups.len(), count);
    rig
}

/// Returns a packet for the container of this number.
fn to(number: usize) -> Vec<u8> {
    udp("192.0.2.1:9", &format!("10.0.{number}.2:5060"), b"x")
}

fn names(count: usize) -> Vec<&'static str> {
    (0..count).map(|number| &*format!("user{number}").leak()).collect()
}

in_four_lanes!(
    one_that_never_answers_does_not_hold_another_up,
    one_that_rests_is_heard_every_eventfds_interval_max,
    one_that_rests_ends_the_sleep,
    unwoken_packets_max_packets_wait_for_a_sleeper_while_full_batches_come,
    one_of_few_sleepers_is_left_asleep_for_unwoken_time_few_max,
    one_of_few_sleepers_is_woken_at_once_when_no_more_packets_come,
    the_loop_stays_awake_for_as_long_as_it_is_told,
    watched_per_look_max_idle_containers_are_watched_in_a_look,
    every_packet_has_one_verdict_whatever_containers_do
);
