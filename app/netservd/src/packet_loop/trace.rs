// SPDX-License-Identifier: Apache-2.0
//! Traces: followed packets carry a record along, which goes to the trace when they leave the loop.
//!
//! While no trace runs, packets carry nothing and cost one branch each.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use netserv_dataplane::{Egress, Final, Packet};
use netserv_model::effect::ModuleSlot;
use netserv_model::trace::{TraceEgress, TraceOrigin, TraceStep};
use netserv_model::{DropReason, Filter, Flow, ModuleRef, Verdict, WorkerId};
use netserv_wire::container::ring::Answer;
use netserv_wire::ip::IpView;
use tokio::sync::mpsc;

use super::module_filter::ModuleFilter;
use super::pending::Held;
use super::seats::SeatId;
use super::traced::{Record, Tap, TraceId, Traced};
use super::{PacketLoop, monotonic_nanos};
use crate::limits::TRACED_PER_SECOND_MAX;

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

    /// Notes that a worker is new, or gone.
    pub(super) fn forget_modules(&mut self, worker: &WorkerId) {
        self.loaded.remove(worker);
    }

    /// Notes whose a filter is.
    pub(super) fn note_filter(&mut self, module_filter: &ModuleFilter) {
        if let Some(module) = &module_filter.module {
            self.names.entry(module_filter.worker.clone()).or_default().insert(module_filter.slot, module.clone());
        }
    }

    /// Notes that a module is loaded, or is no more.
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
            // The index has just found candidates; there may be too many filters to ask them all.
            let module_filters = self.found.iter().filter_map(|(id, _)| self.module_filters.get(id));
            record.want(module_filters.filter(|module_filter| module_filter.filter.matches(flow)));
        }
        Some(Box::new(record))
    }

    /// Notes the filters that a changed packet meets on the rest of its way.
    #[inline]
    pub(super) fn note_matched_again(&self, held: &mut Held) {
        let Some(mut record) = held.trace.take() else { return };
        let to_come = self.found.iter().filter(|(_, stop)| !held.was_at(stop.seat));
        record.want_instead(
            to_come
                .filter_map(|(id, _)| self.module_filters.get(id))
                .filter(|module_filter| module_filter.filter.matches(&held.flow)),
        );
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
