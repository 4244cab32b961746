// SPDX-License-Identifier: Apache-2.0
//! The packet loop over the dummy driver, with the workers' ends of the rings in the test's hands.

mod buffered;
mod chain;
mod coalescing;
mod commands;
mod cost;
mod failures;
mod flavours;
mod guards;
mod lanes;
mod real_time;
mod share;
mod steps;
mod threads;
mod trace;
mod verdicts;
mod watch;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use netserv_container::{DetachedWorker, HostRing};
use netserv_model::effect::{EffectId, FilterId, ModuleSlot};
use netserv_model::verdict::FailureMode;
use netserv_model::{WorkerId, limits};
use netserv_plane::dummy::{Dummy, Outcome, Plane};
use netserv_plane::{InterfaceId, Packet, PacketId};
use netserv_wire::container::ring::{Answer, Arrival};
use netserv_wire::ip::build;
use rustix::event::{EventfdFlags, eventfd};

use super::*;
use crate::counters::PacketTotals;
use crate::limits::{EVENTFDS_INTERVAL_MAX, WATCH_INTERVAL};
use crate::pacing::WAIT_MAX;
use steps::{admit, poll_eventfds, publish, take_returned, wake_sleepers, watch};

pub(super) const LAN: InterfaceId = InterfaceId(3);
pub(super) const ALICE: &str = "alice";
pub(super) const BOB: &str = "bob";

thread_local! {
    /// How many lanes a [`Rig`] of this thread has.
    static LANES: Cell<usize> = const { Cell::new(1) };
}

/// Calls a test whose rigs have so many lanes.
pub(super) fn with_lanes(lanes: usize, test: impl FnOnce()) {
    LANES.set(lanes);
    test();
    LANES.set(1);
}

/// Has tests, which run with one lane, run with four lanes too.
macro_rules! in_four_lanes {
    ($($test:ident),* $(,)?) => {
        mod in_four_lanes {
            $(#[test]
            fn $test() {
                crate::tests::with_lanes(4, super::$test);
            })*
        }
    };
}
pub(super) use in_four_lanes;

/// Packet loops that are turned by hand.
pub(super) struct Rig {
    pub(super) plane: Plane,
    /// The loop of lane 0.
    pub(super) packets: PacketLoop,
    /// By user, the worker's end of the ring of lane 0.
    pub(super) workers: BTreeMap<&'static str, DetachedWorker>,
    /// The lanes after lane 0.
    pub(super) others: Vec<OtherLane>,
    pub(super) events: Arc<Mutex<Vec<PacketEvent>>>,
    /// Whether the control loop takes reports.
    pub(super) listening: Arc<Mutex<bool>>,
    commands: Sender<PacketCommand>,
    counters: Arc<PacketCounters>,
    batch: Batch,
}

/// What a rig has of each lane after lane 0.
pub(super) struct OtherLane {
    pub(super) packets: PacketLoop,
    pub(super) workers: BTreeMap<&'static str, DetachedWorker>,
    commands: Sender<PacketCommand>,
    counters: Arc<PacketCounters>,
}

impl Rig {
    /// Returns loops without containers, over a plane that takes every packet out.
    pub(super) fn new() -> Rig {
        let (mut lanes, plane) = Dummy::lanes(LANES.get());
        let others = lanes.drain(1..).map(|lane| Box::new(lane) as Box<dyn Driver>).collect();
        Rig::over_lanes(Box::new(lanes.remove(0)), others, plane)
    }

    pub(super) fn over(driver: Box<dyn Driver>, plane: Plane) -> Rig {
        Rig::over_lanes(driver, Vec::new(), plane)
    }

    pub(super) fn over_lanes(mut driver: Box<dyn Driver>, others: Vec<Box<dyn Driver>>, plane: Plane) -> Rig {
        for (id, filter) in [(1000, "udp"), (1001, "tcp")] {
            driver.install(FilterId(id), &filter.parse().unwrap()).unwrap();
        }
        let (commands, inbox) = channel();
        let (events, listening) = (Arc::<Mutex<Vec<PacketEvent>>>::default(), Arc::new(Mutex::new(true)));
        let report = {
            let (events, listening) = (events.clone(), listening.clone());
            Arc::new(move |event| {
                let listens = *listening.lock().unwrap();
                if listens {
                    events.lock().unwrap().push(event);
                }
                listens
            })
        };
        let counters = Arc::new(PacketCounters::default());
        let wake = || eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let mut places = LanePlace::all(1 + others.len()).into_iter();
        let place = places.next().unwrap();
        let packets = PacketLoop::new(driver, place, counters.clone(), inbox, wake(), report.clone()).unwrap();
        let other = |(driver, place)| {
            let ((commands, inbox), counters) = (channel(), Arc::<PacketCounters>::default());
            let packets = PacketLoop::new(driver, place, counters.clone(), inbox, wake(), report.clone()).unwrap();
            OtherLane { packets, workers: BTreeMap::new(), commands, counters }
        };
        let others = others.into_iter().zip(places).map(other).collect();
        let (workers, batch) = (BTreeMap::new(), Batch::new());
        Rig { plane, packets, workers, others, events, listening, commands, counters, batch }
    }

    /// Returns a loop with Alice's container, in which the module in place 0 sees all UDP packets.
    pub(super) fn with_alice(mode: FailureMode) -> Rig {
        let mut rig = Rig::new();
        rig.container(ALICE, &["10.0.0.0/24", "2001:db8::/48"]);
        rig.module(1, ALICE, 0, "udp", mode);
        rig
    }

    /// Adds a container, or puts it in the place of the one before it.
    pub(super) fn container(&mut self, user: &'static str, prefixes: &[&str]) {
        let (rings, workers) = HostRing::detached_lanes(1 + self.others.len()).unwrap();
        let mut workers = workers.into_iter();
        self.workers.insert(user, workers.next().unwrap());
        for (lane, worker) in self.others.iter_mut().zip(workers) {
            lane.workers.insert(user, worker);
        }
        let prefixes = prefixes.iter().map(|prefix| prefix.parse().unwrap()).collect();
        self.command(PacketCommand::AddWorker { worker: id(user), generation: 7, rings: rings.into(), prefixes });
    }

    /// Adds a loaded module with one filter.
    pub(super) fn module(&mut self, rule: u64, user: &str, slot: u8, filter: &str, on_failure: FailureMode) {
        self.load(user, slot, true);
        self.change_filters(vec![(rule, user, slot, filter, on_failure)], vec![]);
    }

    pub(super) fn load(&mut self, user: &str, slot: u8, loaded: bool) {
        self.command(PacketCommand::SetLoaded { worker: id(user), slot: ModuleSlot(slot), loaded });
    }

    pub(super) fn change_filters(&mut self, add: Vec<(u64, &str, u8, &str, FailureMode)>, remove: Vec<u64>) {
        let add = add.into_iter().map(|(rule, user, slot, filter, on_failure)| {
            let (worker, slot) = (id(user), ModuleSlot(slot));
            let module = Some(format!("example.org/m{}@1.0.0", slot.0).parse().unwrap());
            let filter = filter.parse().unwrap();
            (FilterId(rule), ModuleFilter { worker, slot, module, filter, on_failure, buffers: None })
        });
        let (add, remove) = (add.collect(), remove.into_iter().map(FilterId).collect());
        self.command(PacketCommand::ChangeFilters { add, remove, known: None });
    }

    pub(super) fn command(&mut self, command: PacketCommand) {
        for lane in &mut self.others {
            lane.commands.send(command.clone()).unwrap();
            assert!(!lane.packets.take_commands());
        }
        self.commands.send(command).unwrap();
        assert!(!self.packets.take_commands());
    }

    /// Lets packets arrive, and moves them on.
    pub(super) fn send(&mut self, packets: &[&[u8]]) {
        for packet in packets {
            assert!(self.plane.push(LAN, packet));
        }
        self.turn();
    }

    pub(super) fn turn(&mut self) {
        while self.packets.turn(&mut self.batch).unwrap() || poll_eventfds(&mut self.packets) {}
        for OtherLane { packets, .. } in &mut self.others {
            while packets.turn(&mut self.batch).unwrap() || poll_eventfds(packets) {}
        }
    }

    /// Returns how many lanes there are.
    pub(super) fn lanes(&self) -> u32 {
        u32::try_from(1 + self.others.len()).unwrap()
    }

    /// Returns a user's worker in each lane.
    fn worker_in_lanes(&mut self, user: &str) -> impl Iterator<Item = &mut DetachedWorker> {
        let first = self.workers.get_mut(user).unwrap();
        std::iter::once(first).chain(self.others.iter_mut().map(|lane| lane.workers.get_mut(user).unwrap()))
    }

    /// Takes what a worker was sent, with the bytes.
    pub(super) fn arrivals(&mut self, user: &str) -> Vec<(Arrival, Vec<u8>)> {
        arrivals(self.workers.get_mut(user).unwrap())
    }

    /// Lets a worker give the same answer to everything that it was sent; returns what that was.
    pub(super) fn answer(&mut self, user: &str, answer: Answer) -> Vec<Vec<u8>> {
        let mut seen = Vec::new();
        for worker in self.worker_in_lanes(user) {
            for (arrival, bytes) in arrivals(worker) {
                worker.end().answer(arrival, answer, Some(ModuleSlot(0))).unwrap();
                seen.push(bytes);
            }
            worker.wake();
        }
        self.turn();
        seen
    }

    /// Lets a worker put other bytes in the place of everything that it was sent.
    pub(super) fn modify(&mut self, user: &str, changed: &[u8]) {
        for worker in self.worker_in_lanes(user) {
            for (mut arrival, _) in arrivals(worker) {
                worker.end().write(&mut arrival, changed).unwrap();
                worker.end().answer(arrival, Answer::Modified, Some(ModuleSlot(0))).unwrap();
            }
            worker.wake();
        }
        self.turn();
    }

    /// Lets a worker make a packet.
    pub(super) fn make(&mut self, user: &str, packet: &[u8]) {
        let worker = self.workers.get_mut(user).unwrap();
        worker.end().inject(packet, ModuleSlot(0)).unwrap();
        worker.wake();
        self.turn();
    }

    pub(super) fn outcomes(&self) -> Vec<Outcome> {
        self.plane.outcomes()
    }

    pub(super) fn events(&self) -> Vec<PacketEvent> {
        std::mem::take(&mut self.events.lock().unwrap())
    }

    /// Asserts every counter of the loop: `name=value`, those that are not named are zero.
    #[track_caller]
    pub(super) fn assert_counts(&self, expected: &str) {
        assert_eq!(counts(&self.totals()), expected);
    }

    /// Returns what all lanes counted.
    pub(super) fn totals(&self) -> PacketTotals {
        self.others.iter().map(|lane| lane.counters.totals()).fold(self.counters.totals(), PacketTotals::with)
    }

    /// Ends the loop; asserts that every packet got exactly one verdict.
    #[track_caller]
    pub(super) fn finish(mut self) {
        for packets in self.others.iter_mut().map(|lane| &mut lane.packets).chain([&mut self.packets]) {
            packets.release_everything();
            assert!(packets.in_flight.pending.is_empty() && packets.in_flight.buffered.is_empty());
        }
        let totals = self.totals();
        let dropped: u64 = totals.dropped.iter().map(|(_, count)| count).sum();
        let finished = totals.unparsed + totals.unmatched + totals.passed + totals.modified + dropped;
        assert_eq!(totals.received, finished, "{}", counts(&totals));
        let driver = totals.driver;
        let went = driver.passed + driver.dropped + driver.replaced + driver.refused;
        assert_eq!(driver.received, went, "{driver:?}");
        assert_eq!((driver.unknown, driver.bad_verdict), (0, 0));
    }
}

/// Takes what a worker was sent by a lane, with the bytes.
pub(super) fn arrivals(worker: &mut DetachedWorker) -> Vec<(Arrival, Vec<u8>)> {
    let end = worker.end();
    let mut arrivals = Vec::new();
    while let Some(arrival) = end.pop().unwrap() {
        let mut bytes = vec![0; arrival.length()];
        end.read(&arrival, &mut bytes);
        arrivals.push((arrival, bytes));
    }
    arrivals
}

/// Returns the counters that are not zero, in words.
fn counts(totals: &PacketTotals) -> String {
    let mut named: Vec<(String, u64)> = [
        ("received", totals.received),
        ("unparsed", totals.unparsed),
        ("unmatched", totals.unmatched),
        ("shown", totals.shown),
        ("passed", totals.passed),
        ("modified", totals.modified),
        ("injected", totals.injected),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .to_vec();
    for (name, reasons) in [("dropped", &totals.dropped), ("unseen", &totals.unseen), ("refused", &totals.refused)] {
        named.extend(reasons.iter().map(|(reason, count)| (format!("{name}.{}", reason.as_str()), *count)));
    }
    let named = named.iter().filter(|(_, count)| *count > 0);
    named.map(|(name, count)| format!("{name}={count}")).collect::<Vec<_>>().join(" ")
}

/// Returns the user's worker: the Wasm worker of `alice`, the OSGi worker of `alice/osgi`.
pub(super) fn id(name: &str) -> WorkerId {
    let (user, flavour) = name.split_once('/').unwrap_or((name, "wasm"));
    WorkerId::new(user.parse().unwrap(), flavour.parse().unwrap())
}

/// Returns a UDP packet with a payload.
pub(super) fn udp(source: &str, destination: &str, payload: &[u8]) -> Vec<u8> {
    build::udp(source.parse().unwrap(), destination.parse().unwrap(), 64, payload).unwrap()
}

/// Returns a packet from outside to Alice.
pub(super) fn to_alice(payload: &[u8]) -> Vec<u8> {
    udp("192.0.2.1:9", "10.0.0.2:5060", payload)
}
