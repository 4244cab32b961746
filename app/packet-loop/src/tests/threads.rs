// SPDX-License-Identifier: Apache-2.0
//! Packet threads of several lanes at work, over the dummy plane, with a worker on a thread of the test's.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use netserv_container::{DetachedWorker, HostRing};
use netserv_model::Flow;
use netserv_plane::Change;
use netserv_plane::wrap::{Fault, FaultPlan};
use netserv_wire::ip::IpView;

use super::*;
use crate::limits::GATHER_TIME_MAX;
use crate::thread::{PacketSender, PacketThread, PacketThreadConfig};

/// How many lanes there are here.
const LANES: usize = 4;
/// How long a test waits for what has to come.
const LONG: Duration = Duration::from_secs(60);

/// Goal: packets of many flows come back once each, those of a flow in their order, while the worker serves all lanes.
#[test]
fn many_flows_keep_their_order() {
    keep_their_order(&PacketThreadConfig::default(), 512);
}

/// The same where they gather, few enough for that.
#[test]
fn many_flows_that_gather_keep_their_order() {
    keep_their_order(&gathering(), 32);
}

fn gathering() -> PacketThreadConfig {
    PacketThreadConfig { gather: GATHER_TIME_MAX, ..PacketThreadConfig::default() }
}

/// Sends packets of which so many are under way at a time.
fn keep_their_order(config: &PacketThreadConfig, under_way: u64) {
    let world = World::start(config);
    let worker = Worker::start(&world.sender, 1);
    world.sender.send(PacketCommand::ChangeFilters {
        add: vec![(FilterId(1), module_filter("udp"))],
        remove: vec![],
        known: None,
    });
    let (sent, outcomes) = world.flow(Duration::from_secs(1), under_way);
    let mut last = BTreeMap::new();
    for (flow, number) in outcomes.iter().map(numbered) {
        assert!(last.insert(flow, number).is_none_or(|before| before < number), "out of order or twice");
    }
    let totals = world.end(vec![worker]);
    // A lane may take the first ones before it is told of the filter.
    assert_eq!((totals.received, totals.passed + totals.unmatched), (sent, sent), "{}", counts(&totals));
    assert!(totals.passed > sent / 2, "{}", counts(&totals));
}

/// Goal: filters come and go a thousand times a second while packets flow in all lanes; each packet has one verdict, and in
/// the end nothing is pending. A packet that is no longer wanted overtakes one of its flow that a module still has.
#[test]
fn filters_change_a_thousand_times_a_second_under_load() {
    let world = World::start(&PacketThreadConfig::default());
    let worker = Worker::start(&world.sender, 1);
    let done = Arc::new(AtomicBool::new(false));
    let changes = {
        let (sender, done) = (world.sender.clone(), done.clone());
        std::thread::spawn(move || {
            let (begun, mut changes) = (Instant::now(), 0);
            while !done.load(Ordering::Relaxed) {
                let id = FilterId(10 + changes % 500);
                let filter = format!("udp dst 10.0.0.0/24 port {}", 2000 + changes % 500);
                let add = if changes / 500 % 2 == 0 { vec![(id, module_filter(&filter))] } else { vec![] };
                let remove = if add.is_empty() { vec![id] } else { vec![] };
                assert!(sender.send(PacketCommand::ChangeFilters { add, remove, known: None }));
                changes += 1;
                std::thread::sleep(
                    (begun + Duration::from_millis(1) * u32::try_from(changes).unwrap())
                        .saturating_duration_since(Instant::now()),
                );
            }
            changes
        })
    };
    let (sent, outcomes) = world.flow(Duration::from_secs(2), 512);
    done.store(true, Ordering::Relaxed);
    let changed = changes.join().unwrap();
    assert!(changed >= 1000, "{changed} changes in two seconds");
    let numbers: BTreeSet<u64> = outcomes.iter().map(|outcome| numbered(outcome).1).collect();
    assert_eq!((numbers.len(), outcomes.len()), (usize::try_from(sent).unwrap(), numbers.len()));
    let totals = world.end(vec![worker]);
    assert_eq!((totals.received, totals.passed + totals.unmatched), (sent, sent));
    assert!(totals.shown > 0 && totals.unmatched > 0, "{}", counts(&totals));
}

/// A worker that dies with packets of all lanes, again and again: they have their failure verdict, and the next one takes more.
#[test]
fn a_worker_dies_again_and_again_under_load() {
    let world = World::start(&PacketThreadConfig::default());
    world.sender.send(PacketCommand::ChangeFilters {
        add: vec![(FilterId(1), module_filter("udp"))],
        remove: vec![],
        known: None,
    });
    let ended = Arc::new(AtomicBool::new(false));
    let deaths = {
        let (worker, ended) = (Worker::start(&world.sender, 1), ended.clone());
        let sender = world.sender.clone();
        std::thread::spawn(move || {
            let mut worker = worker;
            let mut generation = 1;
            while !ended.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(40));
                // Its rings stay as they are, with what it held.
                worker.stop();
                sender.send(PacketCommand::RemoveWorker { worker: id(ALICE), reason: DropReason::ContainerGone });
                generation += 1;
                worker = Worker::start(&sender, generation);
            }
            (worker, generation)
        })
    };
    let (sent, outcomes) = world.flow(Duration::from_secs(2), 512);
    ended.store(true, Ordering::Relaxed);
    let (worker, generation) = deaths.join().unwrap();
    assert!(generation > 10, "{generation}");
    assert_eq!(outcomes.len(), usize::try_from(sent).unwrap(), "each has one outcome");
    let totals = world.end(vec![worker]);
    assert_eq!((totals.received, totals.passed), (sent, sent), "{}", counts(&totals));
}

/// The lane whose driver fails ends the others, and the control loop is told once.
#[test]
fn a_lane_whose_driver_fails_ends_all_lanes() {
    let (mut lanes, _plane) = Dummy::lanes(LANES);
    let failing = lanes.remove(2);
    let plan = FaultPlan { failing_call: Some(50), ..FaultPlan::default() };
    let mut drivers: Vec<Box<dyn Driver>> = lanes.into_iter().map(|lane| Box::new(lane) as Box<dyn Driver>).collect();
    drivers.insert(2, Box::new(Fault::new(failing, plan)));
    let events = Arc::<Mutex<Vec<PacketEvent>>>::default();
    let told = events.clone();
    let report: Report = Arc::new(move |event| {
        told.lock().unwrap().push(event);
        true
    });
    let mut threads = PacketThread::start(drivers, &PacketThreadConfig::default(), report).unwrap();
    let until = Instant::now() + LONG;
    while threads.sender().send(PacketCommand::EndTrace(TraceId(0))) {
        assert!(Instant::now() < until, "it does not fail");
        std::thread::sleep(Duration::from_millis(1));
    }
    threads.stop();
    assert!(matches!(&events.lock().unwrap()[..], [PacketEvent::DriverFailed { .. }]));
}

/// Packet threads over the dummy plane.
struct World {
    plane: Plane,
    sender: PacketSender,
    threads: PacketThread,
}

impl World {
    fn start(config: &PacketThreadConfig) -> World {
        let (lanes, plane) = Dummy::lanes(LANES);
        lanes[0].filters().change(&[Change::Install(FilterId(1000), &"udp".parse().unwrap())]).unwrap();
        let drivers = lanes.into_iter().map(|lane| Box::new(lane) as Box<dyn Driver>).collect();
        let threads = PacketThread::start(drivers, config, Arc::new(|_| true)).unwrap();
        World { plane, sender: threads.sender(), threads }
    }

    /// Sends packets of many flows for so long, as fast as they come back, with some under way; returns how many, and what became of them.
    fn flow(&self, time: Duration, under_way: u64) -> (u64, Vec<Outcome>) {
        const FLOWS: u64 = 500;
        let (begun, mut sent, mut outcomes) = (Instant::now(), 0, Vec::new());
        while begun.elapsed() < time {
            for _ in 0..under_way.min(64) {
                let destination = format!("10.0.0.2:{}", 2000 + sent % FLOWS);
                assert!(self.plane.push(LAN, &udp("192.0.2.1:9", &destination, &sent.to_be_bytes())));
                sent += 1;
            }
            let until = Instant::now() + LONG;
            while sent - outcomes.len() as u64 > under_way {
                assert!(Instant::now() < until, "{} of {sent} came back", outcomes.len());
                outcomes.extend(self.plane.wait_outcomes(1, Duration::from_millis(10)));
            }
        }
        let until = Instant::now() + LONG;
        while (outcomes.len() as u64) < sent {
            assert!(Instant::now() < until, "{} of {sent} came back", outcomes.len());
            outcomes.extend(self.plane.wait_outcomes(1, Duration::from_millis(10)));
        }
        (sent, outcomes)
    }

    /// Ends everything; returns what was counted.
    fn end(mut self, workers: Vec<Worker>) -> PacketTotals {
        self.threads.stop();
        workers.into_iter().for_each(|mut worker| worker.stop());
        assert!(self.plane.outcomes().is_empty(), "nothing comes twice");
        let totals = self.sender.totals();
        assert_eq!(totals.driver.received, totals.driver.passed, "all have a verdict");
        totals
    }
}

/// A worker of Alice's that passes what it sees, in all lanes, as a worker's packet thread does.
struct Worker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start(sender: &PacketSender, generation: u64) -> Worker {
        let (rings, mut lanes) = HostRing::detached_lanes(LANES).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let serve = move || {
            while !stopped.load(Ordering::Relaxed) {
                let mut busy = false;
                for lane in &mut lanes {
                    for _ in 0..limits::BATCH_PACKETS_MAX {
                        let Some(arrival) = lane.end().pop().unwrap() else { break };
                        lane.end().answer(arrival, Answer::Pass, None).unwrap();
                        busy = true;
                    }
                    lane.wake();
                }
                if !busy && lanes.iter_mut().all(|lane| lane.end().prepare_sleep()) {
                    while !stopped.load(Ordering::Relaxed) && !lanes.iter().any(DetachedWorker::was_woken) {
                        std::thread::sleep(Duration::from_micros(50));
                    }
                }
                lanes.iter_mut().for_each(|lane| lane.end().cancel_sleep());
            }
        };
        let thread = Some(std::thread::spawn(serve));
        let (worker, rings) = (id(ALICE), rings.into());
        sender.send(PacketCommand::AddWorker { worker: worker.clone(), generation, rings, prefixes: vec![] });
        sender.send(PacketCommand::SetLoaded { worker, slot: ModuleSlot(0), loaded: true });
        Worker { stop, thread }
    }

    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn module_filter(filter: &str) -> ModuleFilter {
    let (worker, slot) = (id(ALICE), ModuleSlot(0));
    ModuleFilter {
        worker,
        slot,
        module: None,
        filter: filter.parse().unwrap(),
        on_failure: FailureMode::Open,
        buffers: None,
    }
}

/// Returns the flow of a packet that passed, and its number.
fn numbered(outcome: &Outcome) -> (Flow, u64) {
    let Outcome::Passed(packet) = outcome else { panic!("{outcome:?}") };
    (IpView::parse(packet).unwrap().flow(), u64::from_be_bytes(packet[28..36].try_into().unwrap()))
}
