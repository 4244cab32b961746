// SPDX-License-Identifier: Apache-2.0
//! Traces: packets that somebody wants to follow carry a record along, which is told when they come to their end.
//!
//! While no trace runs, packets carry nothing and cost one branch each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use netserv_dataplane::{Egress, Final, Packet};
use netserv_model::command::ModuleSlot;
use netserv_model::trace::{TraceChange, TraceEgress, TraceFlow, TraceOrigin, TracePacket, TraceStep, TraceVerdict};
use netserv_model::verdict::FailureMode;
use netserv_model::{DropReason, Filter, Flow, ModuleRef, Verdict, WorkerId};
use netserv_wire::container::ring::Answer;
use netserv_wire::ip::IpView;
use tokio::sync::mpsc;

use super::pending::Held;
use super::seats::SeatId;
use super::{PacketLoop, Rule, monotonic_nanos};
use crate::limits::{TRACE_STEPS_MAX, TRACED_PER_SECOND_MAX};

/// Names one trace while the node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceId(pub u64);

/// A trace as the packet loop is told of it.
pub struct Tap {
    /// Its name.
    pub id: TraceId,
    /// Packets that one of these matches are followed.
    pub filters: Vec<Filter>,
    /// So many bytes of each packet are kept.
    pub bytes: usize,
    /// Where the records go; one that finds no room is lost, and counted.
    pub sink: mpsc::Sender<Traced>,
    /// What is counted of it.
    pub counts: Arc<TapCounts>,
}

/// What is counted of one trace.
#[derive(Debug, Default)]
pub struct TapCounts {
    /// Records that found no room.
    pub lost: AtomicU64,
    /// Packets that matched and were not followed, because there were too many in one second.
    pub skipped: AtomicU64,
}

/// A packet that came to its end. Its bytes are still to be written as digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// What happened to it.
    pub packet: TracePacket,
    /// The first of its bytes as they came.
    pub bytes: Vec<u8>,
    /// The first of its bytes as they went, if it was changed.
    pub changed: Vec<u8>,
}

/// What a traced packet carries along.
pub(super) struct Record {
    taps: Vec<TraceId>,
    traced: Traced,
    bytes_max: usize,
    /// The modules that want it, in the order of their rules.
    wanted: Vec<(WorkerId, ModuleSlot, Option<ModuleRef>)>,
    /// The modules that it is shown to where it is, in the order of their turns.
    asked: Vec<ModuleSlot>,
    /// Whether a container holds it.
    inside: bool,
}

/// The running traces.
#[derive(Default)]
pub(super) struct Tracer {
    taps: Vec<(Tap, Second)>,
    /// The loaded modules of each worker in the order of loading, which is that of their turns.
    loaded: BTreeMap<WorkerId, Vec<ModuleSlot>>,
    /// What is in the places of each worker, or was there last.
    names: BTreeMap<WorkerId, BTreeMap<ModuleSlot, ModuleRef>>,
}

/// The packets followed in the current second.
#[derive(Default)]
pub(super) struct Second {
    begun_ns: u64,
    followed: u32,
}

impl Tracer {
    /// Returns whether any trace runs.
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        !self.taps.is_empty()
    }

    pub(super) fn add(&mut self, tap: Tap) {
        self.taps.push((tap, Second::default()));
    }

    pub(super) fn remove(&mut self, id: TraceId) {
        self.taps.retain(|(tap, _)| tap.id != id);
    }

    /// Takes note that a worker is new, or gone.
    pub(super) fn forget_modules(&mut self, worker: &WorkerId) {
        self.loaded.remove(worker);
    }

    /// Takes note of whose a rule is.
    pub(super) fn note_rule(&mut self, rule: &Rule) {
        if let Some(module) = &rule.module {
            self.names.entry(rule.worker.clone()).or_default().insert(rule.slot, module.clone());
        }
    }

    /// Takes note that a module is loaded, or is no more.
    pub(super) fn note_module(&mut self, worker: &WorkerId, slot: ModuleSlot, loaded: bool) {
        let modules = self.loaded.entry(worker.clone()).or_default();
        if !loaded {
            modules.retain(|one| *one != slot);
        } else if !modules.contains(&slot) {
            // One that is loaded in the place of another keeps its turn.
            modules.push(slot);
        }
    }

    /// Returns the traces that follow a packet, and how many of its bytes they want at most.
    fn followers(&mut self, flow: Option<&Flow>, now_ns: u64) -> (Vec<TraceId>, usize) {
        let (mut ids, mut bytes) = (Vec::new(), 0);
        for (tap, second) in &mut self.taps {
            let wanted = tap.filters.iter().any(|filter| match flow {
                Some(flow) => filter.matches(flow),
                None => *filter == Filter::default(),
            });
            if !wanted {
                continue;
            }
            if second.take(now_ns) {
                ids.push(tap.id);
                bytes = bytes.max(tap.bytes);
            } else {
                tap.counts.skipped.fetch_add(1, Ordering::Relaxed);
            }
        }
        (ids, bytes)
    }

    /// Gives a record to the traces that follow it.
    fn tell(&self, taps: &[TraceId], traced: &Traced) {
        for (tap, _) in self.taps.iter().filter(|(tap, _)| taps.contains(&tap.id)) {
            let mut traced = traced.clone();
            traced.bytes.truncate(tap.bytes);
            traced.changed.truncate(tap.bytes);
            if let Err(mpsc::error::TrySendError::Full(_)) = tap.sink.try_send(traced) {
                tap.counts.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Second {
    /// Takes one of the packets that may be followed in this second; false if there is none left.
    pub(super) fn take(&mut self, now_ns: u64) -> bool {
        if self.followed == 0 || now_ns.saturating_sub(self.begun_ns) >= SECOND_NS {
            (self.begun_ns, self.followed) = (now_ns, 0);
        }
        let may = self.followed < TRACED_PER_SECOND_MAX;
        self.followed += u32::from(may);
        may
    }
}

impl PacketLoop {
    /// Returns the record that a packet is to carry along, if a trace follows it.
    #[inline]
    pub(super) fn begin_trace(&mut self, packet: &Packet<'_>, flow: &Flow) -> Option<Box<Record>> {
        if self.tracer.is_active() { self.begin_record(packet, Some(flow)) } else { None }
    }

    /// Tells of a packet that no module wants, or that is not understood.
    #[inline]
    pub(super) fn trace_unwanted(&mut self, packet: &Packet<'_>, flow: Option<&Flow>) {
        if !self.tracer.is_active() {
            return;
        }
        if let Some(mut record) = self.begin_record(packet, flow) {
            record.step(TraceStep::NoFilter);
            let egress = self.driver.explain(packet.id, Final::Pass);
            record.end(Verdict::Pass, None, Some(egress_of(egress)));
            self.tracer.tell(&record.taps, &record.traced);
        }
    }

    #[cold]
    fn begin_record(&mut self, packet: &Packet<'_>, flow: Option<&Flow>) -> Option<Box<Record>> {
        let (taps, bytes_max) = self.tracer.followers(flow, self.now_ns);
        if taps.is_empty() {
            return None;
        }
        let origin = TraceOrigin::Network { interface: packet.interface.0, name: None };
        let mut record = Record::new(taps, origin, flow.copied(), packet.bytes, bytes_max);
        if let Some(flow) = flow {
            // Not all rules are asked: there may be many, and the index has just been.
            let rules = self.found.iter().filter_map(|(id, _)| self.rules.get(id));
            record.want(rules.filter(|rule| rule.filter.matches(flow)));
        }
        Some(Box::new(record))
    }

    /// Notes the rules that a changed packet meets on the rest of its way.
    #[inline]
    pub(super) fn note_matched_again(&self, held: &mut Held) {
        let Some(mut record) = held.trace.take() else { return };
        let to_come = self.found.iter().filter(|(_, stop)| !held.was_at(stop.seat));
        record.wanted.clear();
        record.want(to_come.filter_map(|(id, _)| self.rules.get(id)).filter(|rule| rule.filter.matches(&held.flow)));
        held.trace = Some(record);
    }

    /// Notes that a packet is in the container that it is at.
    #[inline]
    pub(super) fn note_entered(&self, held: &mut Held) {
        let Some(record) = held.trace.as_deref_mut() else { return };
        let worker = self.seats.worker(held.at.seat);
        record.enter(worker, self.tracer.loaded.get(worker).map_or(&[], Vec::as_slice));
    }

    /// Notes that the container or module that a packet is at cannot say.
    #[inline]
    pub(super) fn note_failure(&self, held: &mut Held, reason: DropReason) {
        let on_failure = held.at.on_failure();
        let Some(record) = held.trace.as_deref_mut() else { return };
        let worker = self.seats.worker(held.at.seat);
        record.fail(worker, self.tracer.loaded.get(worker).map_or(&[], Vec::as_slice), reason, on_failure);
    }

    /// Notes what a container answered for a packet.
    #[inline]
    pub(super) fn note_answer(&self, held: &mut Held, answer: Answer, module: Option<ModuleSlot>) {
        let Some(record) = held.trace.as_deref_mut() else { return };
        record.answer(self.seats.worker(held.at.seat), answer, module);
    }

    /// Tells of a packet that is about to get its verdict.
    #[inline]
    pub(super) fn tell_trace(&mut self, held: &Held, verdict: Final<'_>, reason: Option<DropReason>) {
        let Some(record) = held.trace.as_deref() else { return };
        let mut traced = record.traced.clone();
        let egress = match verdict {
            Final::Drop => None,
            Final::Pass | Final::Replace(_) => Some(egress_of(self.driver.explain(held.packet, verdict))),
        };
        if let Final::Replace(bytes) = verdict {
            traced.change(bytes, record.bytes_max);
        }
        let verdict = match verdict {
            Final::Pass => Verdict::Pass,
            Final::Drop => Verdict::Drop,
            Final::Replace(_) => Verdict::Modified,
        };
        (traced.packet.verdict, traced.packet.reason, traced.packet.egress) = (verdict, reason, egress);
        self.tracer.tell(&record.taps, &traced);
    }

    /// Tells of a packet that a module made.
    #[inline]
    pub(super) fn trace_made(
        &mut self,
        seat: SeatId,
        slot: Option<ModuleSlot>,
        bytes: &[u8],
        sent: Result<(), DropReason>,
    ) {
        if self.tracer.is_active() {
            self.tell_made(seat, slot, bytes, sent);
        }
    }

    #[cold]
    fn tell_made(&mut self, seat: SeatId, slot: Option<ModuleSlot>, bytes: &[u8], sent: Result<(), DropReason>) {
        let flow = IpView::parse(bytes).ok().map(|view| view.flow());
        let (taps, bytes_max) = self.tracer.followers(flow.as_ref(), monotonic_nanos());
        if taps.is_empty() {
            return;
        }
        let worker = self.seats.worker(seat);
        let module = slot.and_then(|slot| self.tracer.names.get(worker)?.get(&slot).cloned());
        let user = worker.user.clone();
        let mut record = Record::new(taps, TraceOrigin::Module { user, module }, flow, bytes, bytes_max);
        match sent {
            Ok(()) => record.end(Verdict::Pass, None, Some(TraceEgress::Destination)),
            Err(reason) => record.end(Verdict::Drop, Some(reason), None),
        }
        self.tracer.tell(&record.taps, &record.traced);
    }
}

impl Record {
    fn new(taps: Vec<TraceId>, origin: TraceOrigin, flow: Option<Flow>, bytes: &[u8], bytes_max: usize) -> Record {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let time_us = u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX);
        let packet = TracePacket::new(time_us, origin, flow.map(TraceFlow::from), bytes.len());
        let bytes = bytes[..bytes.len().min(bytes_max)].to_vec();
        let traced = Traced { packet, bytes, changed: Vec::new() };
        Record { taps, traced, bytes_max, wanted: Vec::new(), asked: Vec::new(), inside: false }
    }

    fn step(&mut self, step: TraceStep) {
        if self.traced.packet.steps.len() < TRACE_STEPS_MAX {
            self.traced.packet.steps.push(step);
        } else {
            self.traced.packet.steps_left_out += 1;
        }
    }

    /// Notes the rules that match.
    fn want<'a>(&mut self, rules: impl Iterator<Item = &'a Rule>) {
        for rule in rules {
            let (user, module) = (rule.worker.user.clone(), rule.module.clone());
            if !self.wants(&rule.worker, rule.slot) {
                self.wanted.push((rule.worker.clone(), rule.slot, module.clone()));
            }
            self.step(TraceStep::Filter { user, module, filter: rule.filter.clone(), on_failure: rule.on_failure });
        }
    }

    /// Notes the worker that shows the packet to those of its modules that are loaded.
    fn enter(&mut self, worker: &WorkerId, loaded: &[ModuleSlot]) {
        self.step(TraceStep::Container { user: worker.user.clone(), flavour: worker.flavour });
        self.note_missing(worker, loaded);
        self.inside = true;
        self.asked = loaded.iter().copied().filter(|slot| self.wants(worker, *slot)).collect();
    }

    /// Notes that the packet gets its failure verdict.
    fn fail(&mut self, worker: &WorkerId, loaded: &[ModuleSlot], reason: DropReason, on_failure: FailureMode) {
        if !std::mem::take(&mut self.inside) && reason != DropReason::ContainerGone {
            self.note_missing(worker, loaded);
        }
        for slot in std::mem::take(&mut self.asked) {
            self.module(worker, slot, TraceVerdict::Unanswered);
        }
        self.step(TraceStep::Failure { user: worker.user.clone(), reason, on_failure });
    }

    fn note_missing(&mut self, worker: &WorkerId, loaded: &[ModuleSlot]) {
        let missing = |(owner, slot, _): &&(WorkerId, ModuleSlot, _)| owner == worker && !loaded.contains(slot);
        let missing: Vec<ModuleSlot> = self.wanted.iter().filter(missing).map(|(_, slot, _)| *slot).collect();
        for slot in missing {
            self.module(worker, slot, TraceVerdict::NotLoaded);
        }
    }

    /// Notes what the modules did. The container names only the last that dropped or changed the packet, or the first
    /// that failed on it.
    fn answer(&mut self, worker: &WorkerId, answer: Answer, decided: Option<ModuleSlot>) {
        // One that failed is still to get its failure verdict.
        self.inside = answer == Answer::Failed;
        let asked = std::mem::take(&mut self.asked);
        let turn = decided.and_then(|decided| asked.iter().position(|slot| *slot == decided));
        for (at, slot) in asked.iter().enumerate() {
            let verdict = match (answer, turn) {
                (Answer::Pass, _) => TraceVerdict::Passed,
                (Answer::Drop, Some(turn)) if turn == at => TraceVerdict::Dropped,
                (Answer::Drop, Some(turn)) if turn < at => TraceVerdict::NotAsked,
                (Answer::Modified, Some(turn)) if turn == at => TraceVerdict::Modified,
                (Answer::Modified, Some(turn)) if turn < at => TraceVerdict::Passed,
                (Answer::Failed, Some(turn)) if turn == at => TraceVerdict::Failed,
                (Answer::Drop | Answer::Modified | Answer::Failed, Some(_) | None) => TraceVerdict::WentOn,
            };
            self.module(worker, *slot, verdict);
        }
        if turn.is_none() {
            self.decided_by_unknown(worker, answer);
        }
    }

    /// A container that names no module, or one that was not asked, is believed in nothing but what it answered.
    fn decided_by_unknown(&mut self, worker: &WorkerId, answer: Answer) {
        let verdict = match answer {
            Answer::Pass => return,
            Answer::Drop => TraceVerdict::Dropped,
            Answer::Modified => TraceVerdict::Modified,
            Answer::Failed => TraceVerdict::Failed,
        };
        self.step(TraceStep::Module { user: worker.user.clone(), module: None, verdict });
    }

    fn module(&mut self, worker: &WorkerId, slot: ModuleSlot, verdict: TraceVerdict) {
        let known = self.wanted.iter().find(|(owner, at, _)| owner == worker && *at == slot);
        let module = known.and_then(|(_, _, module)| module.clone());
        self.step(TraceStep::Module { user: worker.user.clone(), module, verdict });
    }

    fn wants(&self, worker: &WorkerId, slot: ModuleSlot) -> bool {
        self.wanted.iter().any(|(owner, at, _)| owner == worker && *at == slot)
    }

    fn end(&mut self, verdict: Verdict, reason: Option<DropReason>, egress: Option<TraceEgress>) {
        let packet = &mut self.traced.packet;
        (packet.verdict, packet.reason, packet.egress) = (verdict, reason, egress);
    }
}

impl Traced {
    fn change(&mut self, bytes: &[u8], bytes_max: usize) {
        let flow = IpView::parse(bytes).ok().map(|view| TraceFlow::from(view.flow()));
        self.packet.changed = Some(TraceChange { flow, length: bytes.len(), bytes: String::new() });
        self.changed = bytes[..bytes.len().min(bytes_max)].to_vec();
    }
}

fn egress_of(egress: Egress) -> TraceEgress {
    match egress {
        Egress::Out { name, next_hop, station, vlan, mtu, .. } => {
            let station = station.map(|byte| format!("{byte:02x}")).join(":");
            TraceEgress::Device { interface: name, next_hop, station, vlan, mtu }
        }
        Egress::Kernel { why } => TraceEgress::Kernel { why: why.to_owned() },
        Egress::Refused { why } => TraceEgress::Refused { why: why.to_owned() },
    }
}

const SECOND_NS: u64 = 1_000_000_000;
