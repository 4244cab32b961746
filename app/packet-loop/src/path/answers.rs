// SPDX-License-Identifier: Apache-2.0
//! A packet that its container has judged, or cannot judge.

use netserv_model::verdict::FailureMode;
use netserv_model::{DropReason, Flow};
use netserv_wire::container::ring::Answer;

use super::judge::judge;
use super::output::Answered;
use super::{entering, leaving, traced};
use crate::cx::Cx;
use crate::filters::Filters;
use crate::in_flight::{Held, InFlight, length_of};
use crate::workers::Workers;

/// Carries out a container's answer for a packet.
#[inline]
pub(super) fn settle(
    cx: &mut Cx,
    filters: &mut Filters,
    workers: &mut Workers,
    in_flight: &mut InFlight,
    answered: &Answered<'_>,
) {
    let Answered { cookie, answer, module, bytes, prefixes } = *answered;
    let Some(mut held) = in_flight.pending.remove(cookie) else { return };
    traced::note_answer(workers, &mut held, answer, module);
    match answer {
        Answer::Pass => advance(cx, filters, workers, in_flight, held),
        Answer::Drop => leaving::drop(cx, &held, DropReason::Module),
        Answer::Failed => fail(cx, filters, workers, in_flight, held, DropReason::Trapped),
        Answer::Modified => match judge(bytes, Some(&held.flow), prefixes) {
            Err(reason) => leaving::drop(cx, &held, reason),
            Ok(_) if !may_lengthen(cx, workers, &held, bytes) => leaving::drop(cx, &held, DropReason::TooMany),
            Ok(flow) => advance_changed(cx, filters, workers, in_flight, (held, flow), bytes),
        },
    }
}

/// Takes what a container added to a packet's length from what its user's modules may send.
fn may_lengthen(cx: &Cx, workers: &Workers, held: &Held, bytes: &[u8]) -> bool {
    workers.may_add(held.at.worker, length_of(bytes).saturating_sub(held.length), cx.now)
}

/// Moves a packet on to its next stop; past the last one, it passes.
#[inline]
fn advance(cx: &mut Cx, filters: &mut Filters, workers: &mut Workers, in_flight: &mut InFlight, mut held: Held) {
    if held.is_outdated(in_flight.buffered.changes()) {
        match_again(filters, workers, in_flight, &mut held);
    }
    if held.step() {
        entering::enter(cx, workers, in_flight, held, &[]);
    } else {
        leaving::pass(cx, &held, held.changed());
    }
}

/// Does the same with a packet that its container changed.
fn advance_changed(
    cx: &mut Cx,
    filters: &mut Filters,
    workers: &mut Workers,
    in_flight: &mut InFlight,
    (mut held, flow): (Held, Flow),
    bytes: &[u8],
) {
    if flow != held.flow {
        held.flow = flow;
        match_again(filters, workers, in_flight, &mut held);
    }
    if held.change(bytes) {
        advance(cx, filters, workers, in_flight, held);
    } else {
        leaving::pass(cx, &held, Some(bytes));
    }
}

/// Finds the rest of the path of a packet whose addresses or ports have changed. No worker sees a packet twice, so it is
/// matched at most once for each worker that wants it.
fn match_again(filters: &mut Filters, workers: &Workers, in_flight: &InFlight, held: &mut Held) {
    filters.find_stops(workers, &in_flight.buffered, &held.flow, held.interface, held.maker());
    filters.leave_out(|worker| held.was_at(worker));
    held.divert(filters.stops(), in_flight.buffered.changes());
    traced::note_matched_again(filters, held);
}

/// Gives a packet that its container did not judge its failure verdict.
pub(super) fn fail(
    cx: &mut Cx,
    filters: &mut Filters,
    workers: &mut Workers,
    in_flight: &mut InFlight,
    mut held: Held,
    reason: DropReason,
) {
    cx.tally.unseen(reason);
    traced::note_failure(cx, workers, &mut held, reason);
    match held.at.on_failure() {
        FailureMode::Open => advance(cx, filters, workers, in_flight, held),
        FailureMode::Closed => leaving::drop(cx, &held, reason),
    }
}
