// SPDX-License-Identifier: Apache-2.0
//! Traces: followed packets carry a record along, which goes to the trace when they leave the loop.
//!
//! While no trace runs, packets carry nothing and cost one branch each.

use netserv_dataplane::{Egress, Final, Packet};
use netserv_model::effect::ModuleSlot;
use netserv_model::trace::{TraceEgress, TraceOrigin, TraceStep};
use netserv_model::{DropReason, Flow, Verdict};
use netserv_wire::container::ring::Answer;
use netserv_wire::ip::IpView;

use crate::in_flight::Held;
use crate::traces::Record;
use crate::workers::WorkerSlot;
use crate::{PacketLoop, monotonic_nanos};

impl PacketLoop {
    /// Returns the record that a packet is to carry along, if a trace follows it.
    #[inline]
    pub(crate) fn begin_trace(&mut self, packet: &Packet<'_>, flow: &Flow) -> Option<Box<Record>> {
        if self.tracer.is_active() { self.begin_record(packet, Some(flow)) } else { None }
    }

    /// Tells of a packet that no module wants, or that is not understood.
    #[inline]
    pub(crate) fn trace_unwanted(&mut self, packet: &Packet<'_>, flow: Option<&Flow>) {
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
            self.note_wanted(&mut record, flow);
        }
        Some(Box::new(record))
    }

    fn note_wanted(&self, record: &mut Record, flow: &Flow) {
        // The index has just found candidates; there may be too many filters to ask them all.
        let module_filters = self.found.iter().filter_map(|(id, _)| self.module_filters.get(id));
        record.want(module_filters.filter(|module_filter| module_filter.filter.matches(flow)));
    }

    /// Notes the filters that a changed packet meets on the rest of its way.
    #[inline]
    pub(crate) fn note_matched_again(&self, held: &mut Held) {
        let Some(mut record) = held.trace.take() else { return };
        let to_come = self.found.iter().filter(|(_, stop)| !held.was_at(stop.worker));
        record.want_instead(
            to_come
                .filter_map(|(id, _)| self.module_filters.get(id))
                .filter(|module_filter| module_filter.filter.matches(&held.flow)),
        );
        held.trace = Some(record);
    }

    /// Notes that a packet is in the container that it is at.
    #[inline]
    pub(crate) fn note_entered(&self, held: &mut Held) {
        let Some(record) = held.trace.as_deref_mut() else { return };
        let worker = self.workers.id(held.at.worker);
        record.enter(worker, self.tracer.loaded(worker));
    }

    /// Notes that the container or module that a packet is at cannot say.
    #[inline]
    pub(crate) fn note_failure(&self, held: &mut Held, reason: DropReason) {
        let on_failure = held.at.on_failure();
        let Some(record) = held.trace.as_deref_mut() else { return };
        let worker = self.workers.id(held.at.worker);
        record.fail(worker, self.tracer.loaded(worker), reason, on_failure);
    }

    /// Notes what a container answered for a packet.
    #[inline]
    pub(crate) fn note_answer(&self, held: &mut Held, answer: Answer, module: Option<ModuleSlot>) {
        let Some(record) = held.trace.as_deref_mut() else { return };
        record.answer(self.workers.id(held.at.worker), answer, module);
    }

    /// Tells of a packet that is about to get its verdict.
    #[inline]
    pub(crate) fn tell_trace(&mut self, held: &Held, verdict: Final<'_>, reason: Option<DropReason>) {
        let Some(record) = held.trace.as_deref() else { return };
        let mut traced = record.traced.clone();
        let egress = match verdict {
            Final::Drop => None,
            Final::Pass | Final::Replace(_) => Some(match held.maker() {
                None => egress_of(self.driver.explain(held.packet, verdict)),
                Some(_) => TraceEgress::Destination,
            }),
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

    /// Returns the record that a packet of a module is to carry along to other users' modules, if a trace follows it.
    #[inline]
    pub(crate) fn begin_made(
        &mut self,
        worker: WorkerSlot,
        slot: Option<ModuleSlot>,
        flow: &Flow,
        bytes: &[u8],
    ) -> Option<Box<Record>> {
        if !self.tracer.is_active() {
            return None;
        }
        let mut record = self.record_made(worker, slot, bytes)?;
        self.note_wanted(&mut record, flow);
        Some(record)
    }

    /// Tells of a packet of a module that no other user's module wants.
    #[inline]
    pub(crate) fn trace_made(
        &mut self,
        worker: WorkerSlot,
        slot: Option<ModuleSlot>,
        bytes: &[u8],
        sent: Result<(), DropReason>,
    ) {
        if self.tracer.is_active()
            && let Some(mut record) = self.record_made(worker, slot, bytes)
        {
            match sent {
                Ok(()) => record.end(Verdict::Pass, None, Some(TraceEgress::Destination)),
                Err(reason) => record.end(Verdict::Drop, Some(reason), None),
            }
            self.tracer.tell(&record.taps, &record.traced);
        }
    }

    #[cold]
    fn record_made(&mut self, worker: WorkerSlot, slot: Option<ModuleSlot>, bytes: &[u8]) -> Option<Box<Record>> {
        let flow = IpView::parse(bytes).ok().map(|view| view.flow());
        let (taps, bytes_max) = self.tracer.followers(flow.as_ref(), monotonic_nanos());
        if taps.is_empty() {
            return None;
        }
        let worker = self.workers.id(worker);
        let module = slot.and_then(|slot| self.tracer.name(worker, slot));
        let user = worker.user.clone();
        Some(Box::new(Record::new(taps, TraceOrigin::Module { user, module }, flow, bytes, bytes_max)))
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
