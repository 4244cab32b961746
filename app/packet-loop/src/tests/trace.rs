// SPDX-License-Identifier: Apache-2.0
//! What a trace tells of packets, for each thing that can happen to them.

use netserv_container::DetachedWorker;
use netserv_model::trace::{TraceEgress, TraceOrigin, TraceStep, TraceVerdict};
use netserv_model::{ModuleRef, Verdict};
use tokio::sync::mpsc;

use super::*;
use crate::limits::{TRACE_STEPS_MAX, TRACED_PER_SECOND_MAX};
use crate::traces::Second;

const KERNEL: &str = "by kernel";

#[test]
fn what_a_module_says_is_told() {
    for (answer, told) in [
        (Answer::Pass, "filter m0, in alice, m0 passed; pass, by kernel"),
        (Answer::Drop, "filter m0, in alice, m0 dropped; drop module"),
        (Answer::Modified, "filter m0, in alice, m0 modified; modified, by kernel"),
        (Answer::Failed, "filter m0, in alice, m0 failed, alice trapped open; pass, by kernel"),
    ] {
        let mut rig = Rig::with_alice(FailureMode::Open);
        let mut feed = rig.follow(1, "udp port 5060", 0);
        rig.send(&[&to_alice(b"x")]);
        assert_eq!(feed.told(), [""; 0], "it is not at its end");
        rig.answer(ALICE, answer);
        assert_eq!(feed.told(), [told]);
        rig.finish();
    }
}

#[test]
fn a_packet_that_nobody_wants_is_told_and_others_are_not() {
    let mut rig = Rig::new();
    let mut feed = rig.follow(1, "udp dst 10.0.0.2/32", 2000);
    let packet = to_alice(b"hello");
    rig.send(&[&packet, &udp("192.0.2.1:9", "10.0.0.3:5060", b"x")]);
    let traced = feed.take().remove(0);
    assert_eq!(line(&traced), "no filter; pass, by kernel");
    assert_eq!(traced.bytes, packet);
    assert_eq!(traced.packet.origin, TraceOrigin::Network { interface: LAN.0, name: None });
    let flow = traced.packet.flow.unwrap();
    assert_eq!((flow.source_port, flow.destination_port, flow.protocol), (Some(9), Some(5060), 17));
    assert_eq!(feed.told(), [""; 0]);
    rig.finish();
}

/// The turns of modules are the order of loading, whatever their places and rules; the answer names one of them.
#[test]
fn modules_before_and_after_the_one_that_decides() {
    for (answer, by, told) in [
        (Answer::Pass, None, "m5 passed, m2 passed, m7 passed; pass, by kernel"),
        (Answer::Drop, Some(2), "m5 went-on, m2 dropped, m7 not-asked; drop module"),
        (Answer::Modified, Some(2), "m5 went-on, m2 modified, m7 passed; modified, by kernel"),
        (Answer::Failed, Some(2), "m5 went-on, m2 failed, m7 went-on, alice trapped open; pass, by kernel"),
        // A container that names one that was not asked is not believed.
        (Answer::Drop, Some(9), "m5 went-on, m2 went-on, m7 went-on, ? dropped; drop module"),
        (Answer::Drop, None, "m5 went-on, m2 went-on, m7 went-on, ? dropped; drop module"),
    ] {
        let mut rig = Rig::new();
        rig.container(ALICE, &["10.0.0.0/24"]);
        for (rule, slot) in [(3, 5), (1, 2), (2, 7)] {
            rig.module(rule, ALICE, slot, "udp", FailureMode::Open);
        }
        let mut feed = rig.follow(1, "udp", 0);
        rig.send(&[&to_alice(b"x")]);
        rig.say(ALICE, answer, by);
        assert_eq!(feed.told(), [format!("filter m2, filter m7, filter m5, in alice, {told}")]);
        rig.finish();
    }
}

#[test]
fn a_module_that_is_not_loaded_is_told_once() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    rig.module(2, ALICE, 1, "udp", FailureMode::Closed);
    rig.load(ALICE, 0, false);
    let mut feed = rig.follow(1, "udp", 0);
    rig.send(&[&to_alice(b"x")]);
    rig.say(ALICE, Answer::Failed, Some(1));
    let told = "filter m0, filter m1, in alice, m0 not-loaded, m1 failed, alice trapped closed; drop trapped";
    assert_eq!(feed.told(), [told]);
    rig.load(ALICE, 1, false);
    rig.send(&[&to_alice(b"x")]);
    let told = "filter m0, filter m1, m0 not-loaded, m1 not-loaded, alice trapped closed; drop trapped";
    assert_eq!(feed.told(), [told]);
    rig.finish();
}

#[test]
fn failures_of_containers_are_told_with_their_reason() {
    for (mode, word, end) in [(FailureMode::Open, "open", "pass, by kernel"), (FailureMode::Closed, "closed", "drop")] {
        let end = |reason: &str| if mode == FailureMode::Open { end.to_owned() } else { format!("{end} {reason}") };
        let mut rig = Rig::new();
        rig.module(1, ALICE, 0, "udp", mode);
        let mut feed = rig.follow(1, "udp", 0);
        rig.send(&[&to_alice(b"x")]);
        let reason = "container-gone";
        assert_eq!(feed.told(), [format!("filter m0, alice {reason} {word}; {}", end(reason))]);

        rig.container(ALICE, &["10.0.0.0/24"]);
        rig.load(ALICE, 0, true);
        rig.send(&[&to_alice(&[0; limits::PACKET_BYTES_MAX])]);
        let reason = "too-long";
        assert_eq!(feed.told(), [format!("filter m0, alice {reason} {word}; {}", end(reason))]);

        rig.send(&[&to_alice(b"x")]);
        rig.command(PacketCommand::RemoveWorker { worker: id(ALICE), reason: DropReason::Stalled });
        rig.turn();
        let reason = "stalled";
        let told = format!("filter m0, in alice, m0 unanswered, alice {reason} {word}; {}", end(reason));
        assert_eq!(feed.told(), [told]);
        rig.finish();
    }
}

#[test]
fn a_full_ring_is_told() {
    let mut rig = Rig::with_alice(FailureMode::Closed);
    let packet = to_alice(b"x");
    rig.send(&vec![packet.as_slice(); netserv_wire::container::ring::HOST_SLOTS]);
    let mut feed = rig.follow(1, "udp", 0);
    rig.send(&[&packet]);
    assert_eq!(feed.told(), ["filter m0, alice ring-full closed; drop ring-full"]);
    rig.finish();
}

#[test]
fn what_the_node_refuses_of_a_changed_packet_is_told() {
    for (changed, told) in [
        (udp("10.0.0.9:1", "192.0.2.1:2", b"four"), "modified, by kernel"),
        (udp("192.0.2.7:1", "192.0.2.1:2", b"x"), "drop source-refused"),
        (b"rubbish".to_vec(), "drop bad-verdict"),
    ] {
        let mut rig = Rig::with_alice(FailureMode::Open);
        let mut feed = rig.follow(1, "udp", 2000);
        rig.send(&[&to_alice(b"x")]);
        rig.modify(ALICE, &changed);
        let traced = feed.take().remove(0);
        assert_eq!(line(&traced), format!("filter m0, in alice, m0 modified; {told}"));
        let change = traced.packet.changed.map(|change| (change.length, change.flow.unwrap().source.to_string()));
        let sent = told.starts_with("modified");
        assert_eq!(change, sent.then(|| (changed.len(), "10.0.0.9".to_owned())));
        assert_eq!(traced.changed, if sent { changed } else { Vec::new() });
        rig.finish();
    }
}

#[test]
fn the_way_through_two_containers_is_told_in_order() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    rig.container(BOB, &["192.0.2.0/24"]);
    rig.module(2, BOB, 0, "udp", FailureMode::Closed);
    let mut feed = rig.follow(1, "udp", 0);
    rig.send(&[&to_alice(b"x")]);
    rig.answer(ALICE, Answer::Pass);
    assert_eq!(feed.told(), [""; 0], "it is in the second container");
    rig.answer(BOB, Answer::Drop);
    assert_eq!(feed.told(), ["filter m0, filter m0, in alice, m0 passed, in bob, m0 dropped; drop module"]);
    rig.finish();
}

/// A packet that a module turns elsewhere meets other rules on the rest of its way.
#[test]
fn the_rules_that_a_changed_packet_meets_are_told() {
    let mut rig = Rig::new();
    rig.container(ALICE, &["10.0.0.0/24"]);
    rig.container(BOB, &["172.16.0.0/16"]);
    rig.module(1, ALICE, 0, "udp dst 10.0.0.0/24", FailureMode::Open);
    rig.module(2, BOB, 4, "udp dst 10.0.0.0/24", FailureMode::Open);
    rig.module(3, BOB, 5, "udp dst 172.16.0.0/16", FailureMode::Open);
    let mut feed = rig.follow(1, "udp", 0);
    rig.send(&[&to_alice(b"x")]);
    rig.modify(ALICE, &udp("10.0.0.2:1", "172.16.0.1:2", b"x"));
    rig.say(BOB, Answer::Drop, Some(5));
    let told = "filter m0, filter m4, in alice, m0 modified, filter m5, in bob, m5 dropped; drop module";
    assert_eq!(feed.told(), [told]);
    rig.finish();
}

#[test]
fn packets_that_modules_make_are_told() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    let mut feed = rig.follow(1, "udp", 0);
    let worker = rig.workers.get_mut(ALICE).unwrap();
    for source in ["10.0.0.2:1", "192.0.2.7:1"] {
        worker.end().inject(&udp(source, "192.0.2.1:2", b"x"), ModuleSlot(0)).unwrap();
    }
    worker.wake();
    rig.turn();
    let traced = feed.take();
    let module = Some("example.org/m0@1.0.0".parse().unwrap());
    assert!(
        traced
            .iter()
            .all(|one| one.packet.origin == TraceOrigin::Module { user: id(ALICE).user, module: module.clone() })
    );
    assert_eq!(traced.iter().map(line).collect::<Vec<_>>(), ["; pass, by destination", "; drop source-refused"]);
    rig.finish();
}

#[test]
fn each_trace_gets_what_it_asked_for_until_it_ends() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    let mut long = rig.follow(1, "udp", 2000);
    let mut short = rig.follow(2, "udp port 5060", 3);
    rig.send(&[&to_alice(b"x"), &udp("192.0.2.1:9", "10.0.0.2:1", b"x")]);
    rig.command(PacketCommand::EndTrace(TraceId(2)));
    rig.answer(ALICE, Answer::Pass);
    assert_eq!(long.take().iter().map(|one| one.bytes.len()).collect::<Vec<_>>(), [29, 29]);
    assert_eq!(short.told(), [""; 0], "it ended before the packet did");
    let mut short = rig.follow(3, "udp port 5060", 3);
    rig.send(&[&to_alice(b"x")]);
    rig.answer(ALICE, Answer::Pass);
    assert_eq!((short.take()[0].bytes.len(), long.take()[0].bytes.len()), (3, 29));
    rig.command(PacketCommand::EndTrace(TraceId(1)));
    rig.command(PacketCommand::EndTrace(TraceId(3)));
    assert!(!rig.packets.cx.tracer.is_active());
    rig.send(&[&to_alice(b"x")]);
    rig.answer(ALICE, Answer::Pass);
    rig.finish();
}

/// A reader that went away without a word costs nothing but its records.
#[test]
fn a_reader_that_is_gone_stops_nothing() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    drop(rig.follow(1, "udp", 0));
    rig.send(&[&to_alice(b"x")]);
    rig.answer(ALICE, Answer::Pass);
    assert_eq!(rig.outcomes(), [Outcome::Passed(to_alice(b"x"))]);
    rig.finish();
}

#[test]
fn traced_per_second_max_packets_are_followed_in_a_second() {
    let second = Second::default();
    let begun = 5_000_000_000;
    assert!((0..TRACED_PER_SECOND_MAX).all(|_| second.take(begun)));
    assert!(!second.take(begun));
    assert!(!second.take(begun + 999_999_999));
    assert!((0..TRACED_PER_SECOND_MAX).all(|_| second.take(begun + 1_000_000_000)));
    assert!(!second.take(begun + 1_000_000_000));
}

#[test]
fn packets_that_are_not_followed_are_counted_and_go_on() {
    let mut rig = Rig::new();
    let mut feed = rig.follow(1, "udp", 0);
    let (count, packet) = (2 * TRACED_PER_SECOND_MAX as usize, to_alice(b"x"));
    rig.send(&vec![packet.as_slice(); count]);
    assert_eq!(rig.outcomes().len(), count);
    let skipped = usize::try_from(feed.counts.skipped.load(std::sync::atomic::Ordering::Relaxed)).unwrap();
    assert_eq!(feed.take().len() + skipped, count);
    rig.finish();
}

#[test]
fn trace_steps_max_steps_are_told() {
    let mut rig = Rig::with_alice(FailureMode::Open);
    let more = u64::try_from(TRACE_STEPS_MAX).unwrap() + 5;
    rig.change_filters((2..2 + more).map(|rule| (rule, ALICE, 0, "udp", FailureMode::Open)).collect(), vec![]);
    let mut feed = rig.follow(1, "udp", 0);
    rig.send(&[&to_alice(b"x")]);
    rig.answer(ALICE, Answer::Pass);
    let packet = feed.take().remove(0).packet;
    // One rule more, the container, the module.
    assert_eq!((packet.steps.len(), packet.steps_left_out), (TRACE_STEPS_MAX, 5 + 3));
    rig.finish();
}

struct Followed {
    records: mpsc::Receiver<Traced>,
    counts: Arc<TapCounts>,
}

impl Rig {
    fn follow(&mut self, id: u64, filter: &str, bytes: usize) -> Followed {
        let (sink, records) = mpsc::channel(4096);
        let (filters, counts) = (vec![filter.parse().unwrap()], Arc::<TapCounts>::default());
        self.command(PacketCommand::Trace(Tap { id: TraceId(id), filters, bytes, sink, counts: counts.clone() }));
        Followed { records, counts }
    }

    /// Lets a worker answer what it was sent, and name a module.
    fn say(&mut self, user: &str, answer: Answer, module: Option<u8>) {
        let arrivals = self.arrivals(user);
        let worker: &mut DetachedWorker = self.workers.get_mut(user).unwrap();
        for (arrival, _) in arrivals {
            worker.end().answer(arrival, answer, module.map(ModuleSlot)).unwrap();
        }
        worker.wake();
        self.turn();
    }
}

impl Followed {
    fn take(&mut self) -> Vec<Traced> {
        std::iter::from_fn(|| self.records.try_recv().ok()).collect()
    }

    fn told(&mut self) -> Vec<String> {
        self.take().iter().map(line).collect()
    }
}

/// Returns the way of a packet in one line: steps, then what became of it.
fn line(traced: &Traced) -> String {
    let packet = &traced.packet;
    let name = |module: &Option<ModuleRef>| {
        let name = module.as_ref().map(|module| module.name.to_string());
        name.map_or_else(|| "?".to_owned(), |name| name.trim_start_matches("example.org/").to_owned())
    };
    let step = |step: &TraceStep| match step {
        TraceStep::Filter { module, .. } => format!("filter {}", name(module)),
        TraceStep::NoFilter => "no filter".to_owned(),
        TraceStep::Container { user, .. } => format!("in {user}"),
        TraceStep::Module { module, verdict, .. } => format!("{} {}", name(module), said(*verdict)),
        TraceStep::Failure { user, reason, on_failure } => {
            let mode = if *on_failure == FailureMode::Open { "open" } else { "closed" };
            format!("{user} {} {mode}", reason.as_str())
        }
    };
    let steps: Vec<String> = packet.steps.iter().map(step).collect();
    let verdict = match packet.verdict {
        Verdict::Pass => "pass".to_owned(),
        Verdict::Modified => "modified".to_owned(),
        Verdict::Drop => format!("drop {}", packet.reason.unwrap().as_str()),
    };
    let egress = match &packet.egress {
        None => String::new(),
        Some(TraceEgress::Kernel { .. }) => format!(", {KERNEL}"),
        Some(TraceEgress::Destination) => ", by destination".to_owned(),
        Some(other) => format!(", {other:?}"),
    };
    format!("{}; {verdict}{egress}", steps.join(", "))
}

fn said(verdict: TraceVerdict) -> &'static str {
    match verdict {
        TraceVerdict::Passed => "passed",
        TraceVerdict::Dropped => "dropped",
        TraceVerdict::Modified => "modified",
        TraceVerdict::Failed => "failed",
        TraceVerdict::WentOn => "went-on",
        TraceVerdict::NotAsked => "not-asked",
        TraceVerdict::NotLoaded => "not-loaded",
        TraceVerdict::Unanswered => "unanswered",
    }
}

in_four_lanes!(
    what_a_module_says_is_told,
    a_packet_that_nobody_wants_is_told_and_others_are_not,
    modules_before_and_after_the_one_that_decides,
    a_module_that_is_not_loaded_is_told_once,
    failures_of_containers_are_told_with_their_reason,
    a_full_ring_is_told,
    what_the_node_refuses_of_a_changed_packet_is_told,
    the_way_through_two_containers_is_told_in_order,
    the_rules_that_a_changed_packet_meets_are_told,
    packets_that_modules_make_are_told,
    each_trace_gets_what_it_asked_for_until_it_ends,
    a_reader_that_is_gone_stops_nothing,
    traced_per_second_max_packets_are_followed_in_a_second,
    packets_that_are_not_followed_are_counted_and_go_on,
    trace_steps_max_steps_are_told
);
