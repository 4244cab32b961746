// SPDX-License-Identifier: Apache-2.0
//! Several lanes: what they share, what they do by themselves, and what becomes of one when another stands still.

use std::time::Duration;

use netserv_container::HostRing;
use netserv_plane::dummy::lane_of;
use netserv_wire::container::ring::HOST_SLOTS;
use netserv_wire::ip::IpView;
use tokio::sync::oneshot;

use super::*;
use crate::budget::SendLimits;
use crate::limits::{INJECTED_BURST_MAX, PENDING_PACKETS_MAX, PROCESSOR_WAIT_MAX};
use crate::{LanePlace, Reply, WorkerRings};

/// How many lanes there are here.
const LANES: usize = 4;

/// Goal: packets of many flows come back each once, those of a flow in their order, by whichever lane.
#[test]
fn a_flow_keeps_its_order_and_no_packet_is_lost() {
    with_lanes(LANES, || {
        let mut rig = Rig::with_alice(FailureMode::Closed);
        let mut sent = Vec::new();
        for number in 0..20_u8 {
            let packets: Vec<Vec<u8>> = (0..50).map(|flow| of_flow(flow, &[number])).collect();
            rig.send(&packets.iter().map(Vec::as_slice).collect::<Vec<_>>());
            sent.extend(packets);
            if number % 3 == 0 {
                rig.answer(ALICE, Answer::Pass);
            }
        }
        rig.answer(ALICE, Answer::Pass);
        let mut passed: Vec<Vec<u8>> = rig.outcomes().into_iter().map(passed).collect();
        let by_flow = |packets: &mut Vec<Vec<u8>>| {
            // What is stable keeps the order within a flow.
            packets.sort_by_key(|packet| IpView::parse(packet).unwrap().flow());
            std::mem::take(packets)
        };
        assert_eq!(by_flow(&mut passed), by_flow(&mut sent));
        assert!((0..LANES).all(|lane| rig.packets_of(lane).cx.driver.counters().received > 0));
        rig.assert_counts("received=1000 shown=1000 passed=1000");
        rig.finish();
    });
}

/// A lane whose thread does not run keeps its own packets, and no others.
#[test]
fn a_lane_that_stands_still_holds_no_other_up() {
    with_lanes(LANES, || {
        let mut rig = Rig::with_alice(FailureMode::Open);
        let (still, flowing) = (flow_in(2), flow_in(1));
        for number in 0..100_u8 {
            assert!(
                rig.plane.push(LAN, &of_flow(still, &[number])) && rig.plane.push(LAN, &of_flow(flowing, &[number]))
            );
            for lane in [0, 1, 3] {
                rig.turn_lane(lane);
            }
            for lane in [0, 1, 3] {
                for (arrival, _) in arrivals(rig.worker_of(ALICE, lane)) {
                    rig.worker_of(ALICE, lane).end().answer(arrival, Answer::Pass, None).unwrap();
                }
                rig.worker_of(ALICE, lane).wake();
                rig.turn_lane(lane);
            }
        }
        let passed: Vec<Vec<u8>> = rig.outcomes().into_iter().map(passed).collect();
        assert!(passed.into_iter().eq((0..100).map(|number| of_flow(flowing, &[number]))));
        rig.turn();
        assert_eq!(rig.answer(ALICE, Answer::Pass).len(), 100);
        rig.finish();
    });
}

/// A worker that takes and never answers, in every lane: it holds half of the room of each at most, another user's packets
/// pass through all of them, and its own have their failure verdict.
#[test]
fn one_that_hoards_in_every_lane_does_not_hold_another_up() {
    with_lanes(LANES, || {
        let mut rig = Rig::with_alice(FailureMode::Closed);
        rig.change_filters(vec![], vec![1]);
        rig.change_filters(vec![(1, ALICE, 0, "udp dst 10.0.0.0/24", FailureMode::Closed)], vec![]);
        rig.container(BOB, &["10.1.0.0/24"]);
        rig.module(2, BOB, 0, "udp dst 10.1.0.0/24", FailureMode::Closed);
        let count = HOST_SLOTS + 10;
        for lane in 0..LANES {
            let flow = flow_in(lane);
            let packets = vec![of_flow(flow, b"x"); count];
            for packets in packets.chunks(limits::BATCH_PACKETS_MAX) {
                rig.send(&packets.iter().map(Vec::as_slice).collect::<Vec<_>>());
                // It looks at them and keeps them.
                arrivals(rig.worker_of(ALICE, lane));
            }
        }
        let (held, lost) = (LANES * HOST_SLOTS, LANES * 10);
        rig.assert_counts(&format!(
            "received={} shown={held} dropped.ring-full={lost} unseen.ring-full={lost}",
            LANES * count
        ));
        rig.outcomes();
        for flow in 0..64_u16 {
            rig.send(&[&udp("192.0.2.1:9", &format!("10.1.0.2:{}", 1000 + flow), b"x")]);
            assert_eq!(rig.answer(BOB, Answer::Pass).len(), 1);
        }
        assert_eq!(rig.outcomes().len(), 64);
        // Its time is up in every lane, and it is reported once.
        rig.watch_all(PROCESSOR_WAIT_MAX * 3);
        assert!(matches!(&rig.events()[..], [PacketEvent::Stalled { generation: 7, slot: None, .. }]));
        rig.command(PacketCommand::RemoveWorker { worker: id(ALICE), reason: DropReason::Stalled });
        rig.turn();
        assert_eq!(rig.outcomes().len(), held);
        rig.finish();
    });
}

/// A module that hangs with a packet of one lane: each lane's watchdog sees the module, and one tells.
#[test]
fn a_module_that_hangs_in_one_lane_is_reported_once() {
    for lane in 0..LANES {
        with_lanes(LANES, || {
            let mut rig = Rig::with_alice(FailureMode::Open);
            let call = Duration::from_millis(100);
            rig.command(PacketCommand::SetCallTime { worker: id(ALICE), slot: ModuleSlot(3), call });
            let packet = of_flow(flow_in(lane), b"x");
            rig.send(&[&packet]);
            let [(arrival, _)] = &arrivals(rig.worker_of(ALICE, lane))[..] else { panic!("one packet") };
            assert_eq!(arrival.modules, 1);
            // Another lane holds packets as well, and they are not what it hangs in.
            rig.send(&[&of_flow(flow_in((lane + 1) % LANES), b"x")]);
            rig.workers.get_mut(ALICE).unwrap().end().enter(ModuleSlot(3));
            rig.watch_all(Duration::from_secs(30));
            let events = rig.events();
            let [PacketEvent::Stalled { worker, generation: 7, slot: Some(ModuleSlot(3)) }] = &events[..] else {
                panic!("once, and by its name: {events:?}")
            };
            assert_eq!(*worker, id(ALICE));
            rig.command(PacketCommand::RemoveWorker { worker: id(ALICE), reason: DropReason::Stalled });
            rig.turn();
            assert_eq!(rig.outcomes().len(), 2);
            // The next worker of that name is another one.
            rig.container(ALICE, &[]);
            rig.load(ALICE, 0, true);
            rig.workers.get_mut(ALICE).unwrap().end().enter(ModuleSlot(3));
            rig.watch_all(Duration::from_secs(60));
            assert_eq!(rig.events().len(), 1);
            rig.finish();
        });
    }
}

/// An instance that hangs on the thread of its lane, while the worker's first thread goes on: the lane's watchdog finds it. The
/// time of one that takes steps there does not run, whatever the first thread does.
#[test]
fn a_thread_of_a_lane_is_watched_by_itself() {
    for (steps, first_hangs) in [(false, false), (true, false), (true, true)] {
        with_lanes(LANES, || {
            let mut rig = Rig::with_alice(FailureMode::Open);
            let call = Duration::from_millis(100);
            rig.command(PacketCommand::SetCallTime { worker: id(ALICE), slot: ModuleSlot(3), call });
            rig.worker_of(ALICE, 2).end().enter(ModuleSlot(3));
            rig.worker_of(ALICE, 0).end().enter(ModuleSlot(1));
            for _ in 0..100 {
                if steps {
                    rig.worker_of(ALICE, 2).end().enter(ModuleSlot(3));
                }
                if !first_hangs {
                    rig.worker_of(ALICE, 0).end().leave();
                }
                rig.watch_all(WATCH_INTERVAL);
            }
            let expected = match (steps, first_hangs) {
                (false, _) => Some(3),
                (true, true) => Some(1),
                (true, false) => None,
            };
            let expected = expected.map(|slot| PacketEvent::Stalled {
                worker: id(ALICE),
                generation: 7,
                slot: Some(ModuleSlot(slot)),
            });
            assert_eq!(rig.events(), Vec::from_iter(expected));
        });
    }
}

#[test]
fn a_worker_that_ends_gives_its_packets_back_in_every_lane() {
    for mode in [FailureMode::Open, FailureMode::Closed] {
        with_lanes(LANES, || {
            let mut rig = Rig::with_alice(mode);
            let packets: Vec<Vec<u8>> = (0..400).map(|flow| of_flow(flow, b"x")).collect();
            rig.send(&packets.iter().map(Vec::as_slice).collect::<Vec<_>>());
            assert!(rig.outcomes().is_empty());
            rig.command(PacketCommand::RemoveWorker { worker: id(ALICE), reason: DropReason::ContainerGone });
            rig.turn();
            assert_eq!(rig.outcomes().len(), 400);
            for lane in 0..LANES {
                assert!(rig.packets_of(lane).in_flight.pending.is_empty());
            }
            rig.container(ALICE, &[]);
            rig.load(ALICE, 0, true);
            rig.send(&packets.iter().map(Vec::as_slice).collect::<Vec<_>>());
            assert_eq!(rig.answer(ALICE, Answer::Drop).len(), 400);
            rig.finish();
        });
    }
}

/// A lane without a ring of a worker knows no such worker; its packets have their failure verdict.
#[test]
fn a_lane_without_a_ring_shows_a_worker_nothing() {
    with_lanes(2, || {
        let mut rig = Rig::with_alice(FailureMode::Open);
        let (ring, worker) = HostRing::detached().unwrap();
        rig.workers.insert(ALICE, worker);
        let rings = WorkerRings::from(ring);
        rig.command(PacketCommand::AddWorker { worker: id(ALICE), generation: 8, rings, prefixes: vec![] });
        rig.load(ALICE, 0, true);
        let in_lane = |lane| (0..).find(|flow| lane_of_flow(*flow, 2) == lane).unwrap();
        rig.send(&[&of_flow(in_lane(1), b"x")]);
        rig.assert_counts("received=1 passed=1 unseen.container-gone=1");
        rig.send(&[&of_flow(in_lane(0), b"x")]);
        assert_eq!(rig.arrivals(ALICE).len(), 1);
        rig.finish();
    });
}

#[test]
fn what_a_user_may_make_is_shared_by_the_lanes() {
    with_lanes(LANES, || {
        let mut rig = Rig::with_alice(FailureMode::Open);
        let limits = SendLimits { packets_per_second: 1, ..SendLimits::default() };
        let packet = udp("10.0.0.2:1", "192.0.2.1:2", b"x");
        let make = |rig: &mut Rig, each: u32| {
            for lane in 0..LANES {
                // Takes back the slots of those before.
                assert!(arrivals(rig.worker_of(ALICE, lane)).is_empty());
                for _ in 0..each {
                    rig.worker_of(ALICE, lane).end().inject(&packet, ModuleSlot(0)).unwrap();
                }
                rig.worker_of(ALICE, lane).wake();
            }
            rig.turn();
            rig.outcomes().len()
        };
        let burst = usize::try_from(INJECTED_BURST_MAX).unwrap();
        let mut made = 0;
        for _ in 0..4 {
            made += make(&mut rig, 200);
        }
        // What came anew meanwhile is little, as long as the machine does not stand still.
        assert!((burst..burst + 1000).contains(&made), "{made}");
        rig.command(PacketCommand::SetSendLimits { user: ALICE.parse().unwrap(), limits });
        assert_eq!(make(&mut rig, 3), 1);
        rig.finish();
    });
}

/// A limit holds in each lane from when that lane is told of it, whatever lane 0 does; what was sent since is not forgotten when
/// the others are told.
#[test]
fn a_limit_holds_from_the_first_lane_that_is_told_of_it() {
    with_lanes(LANES, || {
        let mut rig = Rig::with_alice(FailureMode::Open);
        let packet = udp("10.0.0.2:1", "192.0.2.1:2", b"x");
        for (change, packets_per_second) in [(1, 1), (2, 3)] {
            let limits = SendLimits { packets_per_second, ..SendLimits::default() };
            let limits = PacketCommand::SetSendLimits { user: ALICE.parse().unwrap(), limits };
            let mut made = 0;
            // Lane 0 is told last.
            for lane in (0..LANES).rev() {
                match lane.checked_sub(1) {
                    None => rig.packets.carry_out(limits.clone()),
                    Some(other) => rig.others[other].packets.carry_out(limits.clone()),
                }
                assert!(arrivals(rig.worker_of(ALICE, lane)).is_empty());
                for _ in 0..20 {
                    rig.worker_of(ALICE, lane).end().inject(&packet, ModuleSlot(0)).unwrap();
                }
                rig.worker_of(ALICE, lane).wake();
                rig.turn_lane(lane);
                made += rig.outcomes().len();
            }
            // Some come anew where the machine stands still.
            assert!((1..=6).contains(&made), "{made} after change {change}");
        }
        rig.finish();
    });
}

/// Meters are sums over lanes, of which each loses what it no longer needs.
#[test]
fn meters_are_put_together() {
    with_lanes(LANES, || {
        let mut rig = Rig::with_alice(FailureMode::Open);
        rig.command(PacketCommand::Meter { worker: id(ALICE), slot: ModuleSlot(0), load: EffectId(5) });
        for flow in 0..40 {
            rig.send(&[&of_flow(flow, b"x")]);
        }
        rig.answer(ALICE, Answer::Pass);
        let mut read = |ended: Vec<EffectId>| {
            let (reply, mut asked) = oneshot::channel();
            rig.command(PacketCommand::ReadMeters { ended, reply: Reply::from(reply) });
            asked.try_recv().unwrap()
        };
        assert_eq!(read(vec![EffectId(5)])[&EffectId(5)].packets.packets_in, 40);
        assert!(read(vec![]).is_empty());
        let (reply, mut asked) = oneshot::channel();
        rig.command(PacketCommand::Devices(reply.into()));
        assert_eq!(asked.try_recv(), Ok(vec![]), "lane 0 is asked");
        rig.finish();
    });
}

#[test]
fn the_room_for_pending_packets_is_shared_out() {
    let places = LanePlace::all(LANES);
    assert!(places.iter().all(|place| place.pending_max() == PENDING_PACKETS_MAX / LANES));
    with_lanes(LANES, || {
        let rig = Rig::new();
        assert!((0..LANES).all(|lane| rig.packets_of(lane).in_flight.capacity == PENDING_PACKETS_MAX / LANES));
    });
}

impl Rig {
    fn packets_of(&self, lane: usize) -> &PacketLoop {
        lane.checked_sub(1).map_or(&self.packets, |other| &self.others[other].packets)
    }

    fn worker_of(&mut self, user: &str, lane: usize) -> &mut DetachedWorker {
        let workers = match lane.checked_sub(1) {
            None => &mut self.workers,
            Some(other) => &mut self.others[other].workers,
        };
        workers.get_mut(user).unwrap()
    }

    fn turn_lane(&mut self, lane: usize) {
        let packets = match lane.checked_sub(1) {
            None => &mut self.packets,
            Some(other) => &mut self.others[other].packets,
        };
        while packets.turn(&mut self.batch).unwrap() || poll_eventfds(packets) {}
    }

    /// Has the watchdogs of all lanes look for so long, one lane after the other, without a gap.
    fn watch_all(&mut self, passed: Duration) {
        let lanes = std::iter::once(&mut self.packets).chain(self.others.iter_mut().map(|lane| &mut lane.packets));
        for packets in lanes {
            let until = packets.watchdog.looked_at + passed;
            // There is no process whose time could be told.
            while packets.watchdog.looked_at < until {
                watch(packets, packets.watchdog.looked_at + WATCH_INTERVAL);
            }
        }
    }
}

/// Returns a packet of one of Alice's flows.
fn of_flow(flow: u16, payload: &[u8]) -> Vec<u8> {
    udp("192.0.2.1:9", &format!("10.0.0.2:{}", 2000 + flow), payload)
}

/// Returns a flow that is in a lane.
fn flow_in(lane: usize) -> u16 {
    (0..).find(|flow| lane_of_flow(*flow, LANES) == lane).unwrap()
}

fn lane_of_flow(flow: u16, lanes: usize) -> usize {
    lane_of(&IpView::parse(&of_flow(flow, b"x")).unwrap().flow(), lanes)
}

fn passed(outcome: Outcome) -> Vec<u8> {
    let Outcome::Passed(packet) = outcome else { panic!("{outcome:?}") };
    packet
}
