// SPDX-License-Identifier: Apache-2.0
//! A packet on its way into the containers that are to see it.

use netserv_model::DropReason;
use netserv_model::verdict::FailureMode;
use netserv_plane::{Final, Packet};
use netserv_wire::container::ring::Ingress;
use netserv_wire::ip::IpView;

use super::{leaving, traced};
use crate::cx::Cx;
use crate::filters::Filters;
use crate::in_flight::{Held, InFlight, Journey, Waiting, length_of};
use crate::limits::HELD_PER_FREE_MAX;
use crate::workers::Workers;

/// Takes a packet from the driver and sends it to the first container on its path.
pub(crate) fn admit(
    cx: &mut Cx,
    filters: &mut Filters,
    workers: &mut Workers,
    in_flight: &mut InFlight,
    packet: &Packet<'_>,
) {
    cx.tally.received();
    let Ok(view) = IpView::parse(packet.bytes) else {
        return refuse_or_pass(cx, filters, packet);
    };
    let flow = view.flow();
    let interface = packet.interface.0;
    filters.find_stops(workers, &in_flight.buffered, &flow, interface, None);
    let Some(at) = filters.stops().first().copied() else {
        cx.tally.unmatched();
        traced::tell_unwanted(cx, filters, packet, Some(&flow));
        return cx.driver.finish(packet.id, Final::Pass);
    };
    let stops = filters.stops();
    let journey =
        (stops.len() > 1).then(|| Box::new(Journey::new(stops.to_vec(), in_flight.buffered.changes(), packet.bytes)));
    let trace = traced::begin(cx, filters, packet, &flow);
    let length = length_of(packet.bytes);
    let held = Held { packet: packet.id, length, flow, interface, at, journey, trace };
    enter(cx, workers, in_flight, held, packet.bytes);
}

/// Ends the path of a packet that cannot be read: dropped if a module that fails closed may want it.
#[cold]
fn refuse_or_pass(cx: &mut Cx, filters: &Filters, packet: &Packet<'_>) {
    if filters.close_on(packet.bytes) {
        cx.tally.unseen(DropReason::Unreadable);
        cx.tally.dropped(DropReason::Unreadable);
        return cx.driver.finish(packet.id, Final::Drop);
    }
    cx.tally.unparsed();
    traced::tell_unwanted(cx, filters, packet, None);
    cx.driver.finish(packet.id, Final::Pass);
}

/// Puts a packet into the ring of the container that it is at, or of the next one that takes it, or ends its path.
/// `received` are the bytes of a packet without a [`Journey`].
pub(super) fn enter(cx: &mut Cx, workers: &mut Workers, in_flight: &mut InFlight, mut held: Held, received: &[u8]) {
    loop {
        if in_flight.buffered.holds_up(&held.at, cx.now) {
            cx.tally.buffered();
            return in_flight.buffered.push(Waiting::new(held, received, cx.now));
        }
        let Err(reason) = offer(cx, workers, in_flight, &mut held, received) else {
            return in_flight.pending.insert(held);
        };
        cx.tally.unseen(reason);
        traced::note_failure(cx, workers, &mut held, reason);
        if held.at.on_failure() == FailureMode::Closed {
            return leaving::drop(cx, &held, reason);
        }
        if !held.step() {
            return leaving::pass(cx, &held, held.changed());
        }
    }
}

/// Puts a packet into the ring of the container that it is at; it is pending then.
pub(super) fn offer(
    cx: &mut Cx,
    workers: &mut Workers,
    in_flight: &InFlight,
    held: &mut Held,
    received: &[u8],
) -> Result<(), DropReason> {
    let at = &mut held.at;
    // The module that it waited for has no bit.
    if at.wait.is_some() && (at.modules == 0 || at.closed & !at.modules != 0) {
        return Err(DropReason::Frozen);
    }
    let end = workers.end(at.worker).filter(|end| !end.broken).ok_or(DropReason::ContainerGone)?;
    let missing = at.modules & !end.loaded;
    // A module that is down and fails open must not keep the others from seeing the packet.
    if missing & at.closed != 0 || missing == at.modules {
        return Err(DropReason::Trapped);
    }
    at.modules &= end.loaded;
    if end.ring.outstanding() >= in_flight.free() * HELD_PER_FREE_MAX {
        return Err(DropReason::RingFull);
    }
    let bytes = held.journey.as_deref().map_or(received, |journey| &journey.bytes);
    let ingress = Ingress { interface: held.interface, timestamp_ns: cx.now_ns };
    end.offer(cx.now, bytes, ingress, at.modules, in_flight.pending.next_cookie())?;
    end.meters.shown(at.modules, bytes.len());
    if !end.staged {
        end.staged = true;
        workers.stage(at.worker);
    }
    cx.tally.shown();
    traced::note_entered(cx, workers, held);
    Ok(())
}
