// SPDX-License-Identifier: Apache-2.0
//! The wait of packets at a container for a module that moves: until their rule goes, and then in order, as the container takes them.
//!
//! They meet the rules that are there when theirs goes. Those that come while its container takes them wait behind them.

use netserv_model::DropReason;
use netserv_model::limits::BUFFERING_TIME_MAX;

use super::answers::fail;
use super::entering::{enter, offer};
use super::leaving;
use crate::cx::Cx;
use crate::filters::Filters;
use crate::in_flight::{InFlight, Waiting};
use crate::workers::Workers;

/// While too many packets wait, resumes the first of the longest queue.
pub(crate) fn trim_buffered(cx: &mut Cx, filters: &mut Filters, workers: &mut Workers, in_flight: &mut InFlight) {
    while let Some(mut first) = in_flight.pop_surplus() {
        match offer(cx, workers, in_flight, &mut first.held, &first.received) {
            Ok(()) => in_flight.pending.insert(first.held),
            Err(reason) => fail(cx, filters, workers, in_flight, first.held, reason),
        }
    }
}

/// Resumes packets that wait for nothing any more, as far as their containers take them.
pub(crate) fn resume_buffered(cx: &mut Cx, filters: &mut Filters, workers: &mut Workers, in_flight: &mut InFlight) {
    if in_flight.buffered.is_empty() {
        return;
    }
    for queue in in_flight.buffered.over(cx.now) {
        while let Some(mut first) = in_flight.buffered.pop(&queue) {
            match offer(cx, workers, in_flight, &mut first.held, &first.received) {
                Ok(()) => in_flight.pending.insert(first.held),
                Err(DropReason::RingFull) if cx.now.duration_since(first.since) < BUFFERING_TIME_MAX * 2 => {
                    in_flight.buffered.push_front(first);
                    break;
                }
                Err(reason) => fail(cx, filters, workers, in_flight, first.held, reason),
            }
        }
    }
}

/// Has packets meet the rules that are there now, since rules came or went that packets wait for. One that has had its time does
/// not wait by another one.
pub(super) fn match_buffered(cx: &mut Cx, filters: &mut Filters, workers: &mut Workers, in_flight: &mut InFlight) {
    for mut waiting in in_flight.buffered.take_released() {
        let Waiting { held, received, since } = &mut waiting;
        filters.find_stops(workers, &in_flight.buffered, &held.flow, held.interface, held.maker());
        filters.leave_out(|worker| held.has_left(worker));
        let (before, had_its_time) = (held.at.worker, cx.now.duration_since(*since) >= BUFFERING_TIME_MAX);
        if !held.return_to(filters.stops(), received, in_flight.buffered.changes()) {
            leaving::pass(cx, &waiting.held, waiting.held.changed());
        } else if waiting.held.at.wait.is_some() && had_its_time {
            fail(cx, filters, workers, in_flight, waiting.held, DropReason::Frozen);
        } else if waiting.held.at.worker == before {
            in_flight.buffered.push(waiting);
        } else {
            enter(cx, workers, in_flight, waiting.held, &waiting.received);
        }
    }
}

/// Gives all packets that wait their failure verdict.
pub(crate) fn release_buffered(
    cx: &mut Cx,
    filters: &mut Filters,
    workers: &mut Workers,
    in_flight: &mut InFlight,
    reason: DropReason,
) {
    for mut waiting in in_flight.buffered.take_all() {
        waiting.held.end_journey();
        fail(cx, filters, workers, in_flight, waiting.held, reason);
    }
}
