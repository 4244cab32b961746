// SPDX-License-Identifier: Apache-2.0
//! The packet loop over the dummy driver, with the workers' ends of the rings in the test's hands.

mod chain;
mod commands;
mod cost;
mod failures;
mod flavours;
mod guards;
mod real_time;
mod share;
mod trace;
mod verdicts;
mod watch;

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use netserv_container::{DetachedWorker, HostRing};
use netserv_dataplane::dummy::{Dummy, Outcome, Plane};
use netserv_dataplane::{InterfaceId, PacketId};
use netserv_model::limits;
use netserv_wire::container::ring::{Answer, Arrival};
use netserv_wire::ip::build;
use rustix::event::{EventfdFlags, eventfd};

use super::*;
use crate::counters::PacketTotals;

pub(super) const LAN: InterfaceId = InterfaceId(3);
pub(super) const ALICE: &str = "alice";
pub(super) const BOB: &str = "bob";

/// A packet loop that is turned by hand.
pub(super) struct Rig {
    pub(super) plane: Plane,
    pub(super) packets: PacketLoop,
    pub(super) workers: BTreeMap<&'static str, DetachedWorker>,
    pub(super) events: Arc<Mutex<Vec<PacketEvent>>>,
    /// Whether the control loop takes reports.
    pub(super) listening: Arc<Mutex<bool>>,
    commands: Sender<PacketCommand>,
    counters: Arc<PacketCounters>,
    batch: Batch,
}

impl Rig {
    /// Returns a loop without containers, over a plane that takes every packet out.
    pub(super) fn new() -> Rig {
        let (dummy, plane) = Dummy::new();
        Rig::over(Box::new(dummy), plane)
    }

    pub(super) fn over(mut driver: Box<dyn Driver>, plane: Plane) -> Rig {
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
        let wake = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let packets = PacketLoop::new(driver, counters.clone(), inbox, wake, report).unwrap();
        let (workers, batch) = (BTreeMap::new(), Batch::new());
        Rig { plane, packets, workers, events, listening, commands, counters, batch }
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
        let (ring, worker) = HostRing::detached().unwrap();
        self.workers.insert(user, worker);
        let prefixes = prefixes.iter().map(|prefix| prefix.parse().unwrap()).collect();
        self.command(PacketCommand::AddWorker { worker: id(user), generation: 7, ring: Box::new(ring), prefixes });
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
            (FilterId(rule), ModuleFilter { worker, slot, module, filter: filter.parse().unwrap(), on_failure })
        });
        let (add, remove) = (add.collect(), remove.into_iter().map(FilterId).collect());
        self.command(PacketCommand::ChangeFilters { add, remove });
    }

    pub(super) fn command(&mut self, command: PacketCommand) {
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
        while self.packets.turn(&mut self.batch).unwrap() || self.packets.hear_bells(Duration::ZERO) {}
    }

    /// Takes what a worker was sent, with the bytes.
    pub(super) fn arrivals(&mut self, user: &str) -> Vec<(Arrival, Vec<u8>)> {
        let end = self.workers.get_mut(user).unwrap().end();
        let mut arrivals = Vec::new();
        while let Some(arrival) = end.pop().unwrap() {
            let mut bytes = vec![0; arrival.length()];
            end.read(&arrival, &mut bytes);
            arrivals.push((arrival, bytes));
        }
        arrivals
    }

    /// Lets a worker give the same answer to everything that it was sent; returns what that was.
    pub(super) fn answer(&mut self, user: &str, answer: Answer) -> Vec<Vec<u8>> {
        let arrivals = self.arrivals(user);
        let worker = self.workers.get_mut(user).unwrap();
        let mut seen = Vec::new();
        for (arrival, bytes) in arrivals {
            worker.end().answer(arrival, answer, Some(ModuleSlot(0))).unwrap();
            seen.push(bytes);
        }
        worker.wake();
        self.turn();
        seen
    }

    /// Lets a worker put other bytes in the place of everything that it was sent.
    pub(super) fn modify(&mut self, user: &str, changed: &[u8]) {
        let arrivals = self.arrivals(user);
        let worker = self.workers.get_mut(user).unwrap();
        for (mut arrival, _) in arrivals {
            worker.end().write(&mut arrival, changed).unwrap();
            worker.end().answer(arrival, Answer::Modified, Some(ModuleSlot(0))).unwrap();
        }
        worker.wake();
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
        assert_eq!(counts(&self.counters.totals()), expected);
    }

    /// Ends the loop; asserts that every packet got exactly one verdict.
    #[track_caller]
    pub(super) fn finish(mut self) {
        self.packets.release_everything();
        assert!(self.packets.pending.is_empty());
        let totals = self.counters.totals();
        let dropped: u64 = totals.dropped.iter().map(|(_, count)| count).sum();
        let finished = totals.unparsed + totals.unmatched + totals.passed + totals.modified + dropped;
        assert_eq!(totals.received, finished, "{}", counts(&totals));
        let driver = totals.driver;
        let went = driver.passed + driver.dropped + driver.replaced + driver.refused;
        assert_eq!(driver.received, went, "{driver:?}");
        assert_eq!((driver.unknown, driver.bad_verdict), (0, 0));
    }
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
