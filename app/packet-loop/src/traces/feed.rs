// SPDX-License-Identifier: Apache-2.0
//! What a trace finds, in the hands of whoever asked for it, or why there is no trace.

use std::fmt;
use std::sync::Arc;

use netserv_model::Filter;
use tokio::sync::mpsc;

use super::tap::{TapCounts, Traced};
use crate::limits::{TRACE_FILTERS_MAX, TRACES_MAX};

/// What a trace finds. The trace ends when this is dropped.
pub struct Feed {
    /// The packets that came to their end; it closes when the packet loop ends.
    pub packets: mpsc::Receiver<Traced>,
    /// What was left out.
    pub counts: Arc<TapCounts>,
    /// The filters in force.
    pub filters: Vec<Filter>,
    end: Box<dyn Fn() + Send>,
}

impl Feed {
    /// Returns a feed that calls `end` when it is dropped.
    pub fn new(
        packets: mpsc::Receiver<Traced>,
        counts: Arc<TapCounts>,
        filters: Vec<Filter>,
        end: impl Fn() + Send + 'static,
    ) -> Feed {
        Feed { packets, counts, filters, end: Box::new(end) }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        (self.end)();
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("filters", &self.filters).finish_non_exhaustive()
    }
}

/// Why a trace was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceRefusal {
    /// There are [`TRACES_MAX`].
    TooMany,
    /// There are more than [`TRACE_FILTERS_MAX`] filters.
    TooManyFilters,
    /// The node is a host.
    Host,
    /// The driver did not take the filters.
    Driver(String),
    /// The packet loop has ended.
    Ended,
}

impl fmt::Display for TraceRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceRefusal::TooMany => write!(f, "{TRACES_MAX} traces run already"),
            TraceRefusal::TooManyFilters => write!(f, "a trace has at most {TRACE_FILTERS_MAX} filters"),
            TraceRefusal::Host => f.write_str("this machine is a host: it forwards no packets through modules"),
            TraceRefusal::Driver(why) => write!(f, "the forwarding plane did not take the filter: {why}"),
            TraceRefusal::Ended => f.write_str("the forwarding plane has failed"),
        }
    }
}

impl TraceRefusal {
    /// Returns what to do about it, in one line.
    pub fn fix(&self) -> &'static str {
        match self {
            TraceRefusal::TooMany => "end one of them; each ends when its client goes away",
            TraceRefusal::TooManyFilters => "write a filter that covers more, or run two traces",
            TraceRefusal::Host => "ask a node on the path: `netserv path DEST` shows them",
            TraceRefusal::Driver(_) | TraceRefusal::Ended => "see `netserv node logs` and `netserv node doctor`",
        }
    }
}
