// SPDX-License-Identifier: Apache-2.0
//! Filters that come and go while packets are on their paths.

use std::time::Instant;

use netserv_model::effect::FilterId;

use super::buffering::match_buffered;
use crate::cx::Cx;
use crate::filters::Filters;
use crate::in_flight::{InFlight, Stop};
use crate::module_filter::ModuleFilter;
use crate::workers::Workers;

/// Adds and removes filters; packets that wait meet those that are there then.
pub(crate) fn change_filters(
    cx: &mut Cx,
    filters: &mut Filters,
    workers: &mut Workers,
    in_flight: &mut InFlight,
    add: Vec<(FilterId, ModuleFilter)>,
    remove: Vec<FilterId>,
) {
    let mut waits_change = add.iter().any(|(_, filter)| filter.buffers.is_some());
    for (id, filter) in add {
        let stop = Stop::new(workers.slot_of(&filter.worker), id, &filter);
        match filter.buffers {
            Some(buffers) => in_flight.buffered.wait_by(id, buffers, Instant::now()),
            None => cx.tracer.note_filter(&filter),
        }
        filters.add(id, filter, stop);
    }
    for id in remove {
        filters.remove(id);
        waits_change |= in_flight.buffered.wait_no_longer_by(id);
    }
    if waits_change {
        match_buffered(cx, filters, workers, in_flight);
    }
}
