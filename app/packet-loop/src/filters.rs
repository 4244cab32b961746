// SPDX-License-Identifier: Apache-2.0
//! The filters of modules, and the stops that they give a packet's path.

use std::collections::BTreeMap;

use netserv_model::effect::FilterId;
use netserv_model::filter::Protocol;
use netserv_model::verdict::FailureMode;
use netserv_model::{Filter, FilterIndex, Flow};
use netserv_wire::ip::addresses;

use crate::in_flight::{Buffered, Stop};
use crate::module_filter::ModuleFilter;
use crate::workers::{WorkerSlot, Workers};

/// The filters in force, and what they found last.
pub(crate) struct Filters {
    by_id: BTreeMap<FilterId, ModuleFilter>,
    /// The same, as packets meet them.
    index: FilterIndex<Stop>,
    /// Those of modules that fail closed by their addresses alone, as packets that cannot be read meet them.
    closed: FilterIndex<()>,
    /// Scratch space: the filters that match a packet, and the stops that they lead to.
    found: Vec<(FilterId, Stop)>,
    stops: Vec<Stop>,
}

impl Filters {
    /// Returns none. Nobody may guess the `seed`.
    pub(crate) fn new(seed: u64) -> Filters {
        Filters {
            by_id: BTreeMap::new(),
            index: FilterIndex::new(seed),
            closed: FilterIndex::new(seed),
            found: Vec::new(),
            stops: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, id: FilterId, filter: ModuleFilter, stop: Stop) {
        self.index.insert(id, filter.filter.clone(), stop);
        if filter.on_failure == FailureMode::Closed {
            let (source, destination) = (filter.filter.source(), filter.filter.destination());
            let by_addresses = Filter::new(Protocol::Any, source, destination, None, None);
            self.closed.insert(id, by_addresses.expect("the filter's own addresses are of one version"), ());
        }
        self.by_id.insert(id, filter);
    }

    pub(crate) fn remove(&mut self, id: FilterId) {
        self.index.remove(id);
        self.closed.remove(id);
        self.by_id.remove(&id);
    }

    /// Finds the workers that want to see packets of a flow, in the order in which they were first wanted. A user's
    /// workers keep the order of their flavours, though, and none of a user sees what that user's modules made (`maker`).
    #[inline]
    pub(crate) fn find_stops(
        &mut self,
        workers: &Workers,
        buffered: &Buffered,
        flow: &Flow,
        interface: u32,
        maker: Option<WorkerSlot>,
    ) {
        self.index.matching(flow, &mut self.found);
        if let Some(maker) = maker {
            self.found.retain(|(_, stop)| !workers.are_of_one_user(stop.worker, maker));
        }
        self.stops.clear();
        for (_, stop) in &self.found {
            if stop.wait.is_some_and(|wait| buffered.lets_by(wait, flow, interface)) {
                continue;
            }
            match self.stops.iter_mut().find(|known| known.worker == stop.worker) {
                Some(known) => {
                    known.modules |= stop.modules;
                    known.closed |= stop.closed;
                    known.wait = buffered.longer(known.wait, stop.wait);
                }
                None => join(workers, &mut self.stops, *stop),
            }
        }
    }

    /// Returns whether a module that fails closed may want a packet of which only the addresses can be read.
    #[cold]
    pub(crate) fn close_on(&self, packet: &[u8]) -> bool {
        let Some((source, destination)) = addresses(packet).filter(|_| !self.closed.is_empty()) else { return false };
        let (source_port, destination_port) = (None, None);
        let flow = Flow { source, destination, protocol: UNKNOWN, source_port, destination_port, opens: false };
        let mut found = Vec::new();
        self.closed.matching(&flow, &mut found);
        !found.is_empty()
    }

    /// Returns the stops that were found last.
    #[inline]
    pub(crate) fn stops(&self) -> &[Stop] {
        &self.stops
    }

    /// Leaves out stops at some workers.
    pub(crate) fn leave_out(&mut self, is_out: impl Fn(WorkerSlot) -> bool) {
        self.stops.retain(|stop| !is_out(stop.worker));
    }

    /// Returns the filters that match a flow, which was looked for last, and lead to certain workers.
    pub(crate) fn matching(
        &self,
        flow: &Flow,
        is_wanted: impl Fn(WorkerSlot) -> bool,
    ) -> impl Iterator<Item = &ModuleFilter> {
        // The index has just found candidates; there may be too many filters to ask them all.
        let found = self.found.iter().filter(move |(_, stop)| is_wanted(stop.worker));
        found.filter_map(|(id, _)| self.by_id.get(id)).filter(|filter| filter.filter.matches(flow))
    }
}

/// RFC 8200 §4.7: no next header, which no filter names.
const UNKNOWN: u8 = 59;

/// Adds a stop to others: at their end, or right before the stop of the same user's next flavour.
fn join(workers: &Workers, stops: &mut Vec<Stop>, stop: Stop) {
    let next = workers.next_of_user(stop.worker);
    let at = next.and_then(|next| stops.iter().position(|one| one.worker == next));
    stops.insert(at.unwrap_or(stops.len()), stop);
}
