// SPDX-License-Identifier: Apache-2.0
//! The rounds over containers, which take what they gave back.
//!
//! A turn costs by what is done in it, not by how many containers there are: it visits active ones only, and not more than
//! [`VISITS_PER_TURN_MAX`] of them.

use netserv_model::{DropReason, limits};
use netserv_wire::container::ring::{RING_ENTRIES, Returned};

use super::answers::{fail, settle};
use super::injected::inject;
use super::output::{Answered, Injected};
use crate::cx::Cx;
use crate::filters::Filters;
use crate::in_flight::InFlight;
use crate::limits::VISITS_PER_TURN_MAX;
use crate::workers::{RingEnd, WorkerSlot, Workers};

/// Visits active containers, and takes at most one batch from each, so that none holds the others up.
pub(crate) fn take_returned(
    cx: &mut Cx,
    filters: &mut Filters,
    workers: &mut Workers,
    in_flight: &mut InFlight,
) -> usize {
    let (mut taken, mut place) = (0, workers.round());
    for _ in 0..workers.active_len().min(VISITS_PER_TURN_MAX) {
        if place >= workers.active_len() {
            place = 0;
        }
        let Some(slot) = workers.active(place) else { break };
        let mut rests = true;
        // Out of its slot while it is worked on, so that the packet can go on to another container.
        if let Some(mut end) = workers.take(slot) {
            taken += take_from(cx, filters, workers, in_flight, (slot, &mut end), limits::BATCH_PACKETS_MAX);
            rests = end.rest();
            workers.put(slot, end);
        }
        if rests {
            workers.deactivate(place);
        } else {
            place += 1;
        }
    }
    workers.set_round(place);
    taken
}

/// Takes at most so many answers and injected packets from a container; returns how many there were.
fn take_from(
    cx: &mut Cx,
    filters: &mut Filters,
    workers: &mut Workers,
    in_flight: &mut InFlight,
    (slot, end): (WorkerSlot, &mut RingEnd),
    at_most: usize,
) -> usize {
    let mut taken = 0;
    while taken < at_most {
        match end.ring.pop() {
            Ok(Some(Returned::Answer { cookie, answer, bytes, module, .. })) => {
                let answered = Answered { cookie, answer, module, bytes, prefixes: &end.prefixes };
                settle(cx, filters, workers, in_flight, &answered);
            }
            Ok(Some(Returned::Injected { bytes, module })) => {
                let injected = Injected { maker: slot, module, bytes, prefixes: &end.prefixes };
                if inject(cx, filters, workers, in_flight, &injected).is_ok() {
                    end.meters.made(module, bytes.len());
                }
                // The slot goes back to the container.
                if !end.staged {
                    end.staged = true;
                    workers.stage(slot);
                }
            }
            Ok(None) => break,
            Err(error) => {
                end.report_broken(workers.id(slot), error.to_string(), &cx.report);
                return taken;
            }
        }
        taken += 1;
    }
    if taken > 0 {
        end.answered(cx.now);
    }
    taken
}

/// Takes the last from a worker that is gone; the other packets that it holds get their failure verdict.
pub(crate) fn end_worker(
    cx: &mut Cx,
    filters: &mut Filters,
    workers: &mut Workers,
    in_flight: &mut InFlight,
    (slot, mut end): (WorkerSlot, Box<RingEnd>),
    reason: DropReason,
) {
    // What it answered before its end counts. It may still run, so there must be an end to that.
    end.seen.is_going();
    take_from(cx, filters, workers, in_flight, (slot, &mut end), RING_ENTRIES);
    workers.keep_counts(&end);
    for outstanding in end.ring.take_outstanding() {
        if let Some(held) = in_flight.pending.remove(outstanding.cookie) {
            fail(cx, filters, workers, in_flight, held, reason);
        }
    }
}
