// SPDX-License-Identifier: Apache-2.0
//! Traces: followed packets carry a record along, which goes to the trace when they leave the loop.
//!
//! While no trace runs, packets carry nothing and cost one branch each.

use netserv_model::effect::ModuleSlot;
use netserv_model::trace::{TraceEgress, TraceOrigin, TraceStep};
use netserv_model::{DropReason, Flow, Verdict};
use netserv_plane::{Egress, Final, Packet};
use netserv_wire::container::ring::Answer;
use netserv_wire::ip::IpView;

use super::output::Injected;
use crate::cx::{Cx, monotonic_nanos};
use crate::filters::Filters;
use crate::in_flight::Held;
use crate::traces::Record;
use crate::workers::Workers;

/// Returns the record that a packet is to carry along, if a trace follows it.
#[inline]
pub(super) fn begin(cx: &Cx, filters: &Filters, packet: &Packet<'_>, flow: &Flow) -> Option<Box<Record>> {
    if cx.tracer.is_active() { record(cx, filters, packet, Some(flow)) } else { None }
}

/// Tells of a packet that no module wants, or that is not understood.
#[inline]
pub(super) fn tell_unwanted(cx: &mut Cx, filters: &Filters, packet: &Packet<'_>, flow: Option<&Flow>) {
    if !cx.tracer.is_active() {
        return;
    }
    if let Some(mut record) = record(cx, filters, packet, flow) {
        record.step(TraceStep::NoFilter);
        let egress = cx.driver.explain(packet.id, Final::Pass);
        record.end(Verdict::Pass, None, Some(egress_of(egress)));
        cx.tracer.tell(&record.taps, &record.traced);
    }
}

#[cold]
fn record(cx: &Cx, filters: &Filters, packet: &Packet<'_>, flow: Option<&Flow>) -> Option<Box<Record>> {
    let (taps, bytes_max) = cx.tracer.followers(flow, cx.now_ns);
    if taps.is_empty() {
        return None;
    }
    let origin = TraceOrigin::Network { interface: packet.interface.0, name: None };
    let mut record = Record::new(taps, origin, flow.copied(), packet.bytes, bytes_max);
    if let Some(flow) = flow {
        record.want(filters.matching(flow, |_| true));
    }
    Some(Box::new(record))
}

/// Notes the filters that a changed packet meets on the rest of its path.
#[inline]
pub(super) fn note_matched_again(filters: &Filters, held: &mut Held) {
    let Some(mut record) = held.trace.take() else { return };
    record.want_instead(filters.matching(&held.flow, |worker| !held.was_at(worker)));
    held.trace = Some(record);
}

/// Notes that a packet is in the container that it is at.
#[inline]
pub(super) fn note_entered(cx: &Cx, workers: &Workers, held: &mut Held) {
    let Some(record) = held.trace.as_deref_mut() else { return };
    let worker = workers.id(held.at.worker);
    record.enter(worker, cx.tracer.loaded(worker));
}

/// Notes that the container or module that a packet is at cannot say.
#[inline]
pub(super) fn note_failure(cx: &Cx, workers: &Workers, held: &mut Held, reason: DropReason) {
    let on_failure = held.at.on_failure();
    let Some(record) = held.trace.as_deref_mut() else { return };
    let worker = workers.id(held.at.worker);
    record.fail(worker, cx.tracer.loaded(worker), reason, on_failure);
}

/// Notes what a container answered for a packet.
#[inline]
pub(super) fn note_answer(workers: &Workers, held: &mut Held, answer: Answer, module: Option<ModuleSlot>) {
    let Some(record) = held.trace.as_deref_mut() else { return };
    record.answer(workers.id(held.at.worker), answer, module);
}

/// Tells of a packet that is about to get its verdict.
#[inline]
pub(super) fn tell(cx: &mut Cx, held: &Held, verdict: Final<'_>, reason: Option<DropReason>) {
    let Some(record) = held.trace.as_deref() else { return };
    let mut traced = record.traced.clone();
    let egress = match verdict {
        Final::Drop => None,
        Final::Pass | Final::Replace(_) => Some(match held.maker() {
            None => egress_of(cx.driver.explain(held.packet, verdict)),
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
    cx.tracer.tell(&record.taps, &traced);
}

/// Returns the record that a packet of a module is to carry along to other users' modules, if a trace follows it.
#[inline]
pub(super) fn begin_made(
    cx: &Cx,
    filters: &Filters,
    workers: &Workers,
    injected: &Injected<'_>,
    flow: &Flow,
) -> Option<Box<Record>> {
    if !cx.tracer.is_active() {
        return None;
    }
    let mut record = record_made(cx, workers, injected)?;
    record.want(filters.matching(flow, |_| true));
    Some(record)
}

/// Tells of a packet of a module that no other user's module wants.
#[inline]
pub(super) fn tell_made(cx: &Cx, workers: &Workers, injected: &Injected<'_>, sent: Result<(), DropReason>) {
    if cx.tracer.is_active()
        && let Some(mut record) = record_made(cx, workers, injected)
    {
        match sent {
            Ok(()) => record.end(Verdict::Pass, None, Some(TraceEgress::Destination)),
            Err(reason) => record.end(Verdict::Drop, Some(reason), None),
        }
        cx.tracer.tell(&record.taps, &record.traced);
    }
}

#[cold]
fn record_made(cx: &Cx, workers: &Workers, injected: &Injected<'_>) -> Option<Box<Record>> {
    let Injected { maker, module, bytes, .. } = *injected;
    let flow = IpView::parse(bytes).ok().map(|view| view.flow());
    let (taps, bytes_max) = cx.tracer.followers(flow.as_ref(), monotonic_nanos());
    if taps.is_empty() {
        return None;
    }
    let worker = workers.id(maker);
    let module = module.and_then(|slot| cx.tracer.name(worker, slot));
    let user = worker.user.clone();
    Some(Box::new(Record::new(taps, TraceOrigin::Module { user, module }, flow, bytes, bytes_max)))
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
