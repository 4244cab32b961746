// SPDX-License-Identifier: Apache-2.0
//! What a trace is told to follow, what it is told, and what is counted of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use netserv_model::Filter;
use netserv_model::trace::{TraceChange, TraceFlow, TracePacket};
use netserv_wire::ip::IpView;
use tokio::sync::mpsc;

use crate::limits::TRACED_PER_SECOND_MAX;

/// Names one trace while the node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceId(pub u64);

/// A trace as the packet loop is told of it.
#[derive(Clone)]
pub struct Tap {
    /// Its name.
    pub id: TraceId,
    /// Packets that one of these matches are followed.
    pub filters: Vec<Filter>,
    /// So many bytes of each packet are kept.
    pub bytes: usize,
    /// Where the records go; one that finds no room is lost, and counted.
    pub sink: mpsc::Sender<Traced>,
    /// What is counted of it.
    pub counts: Arc<TapCounts>,
}

/// What is counted of one trace.
#[derive(Debug, Default)]
pub struct TapCounts {
    /// Records that found no room.
    pub lost: AtomicU64,
    /// Packets that matched and were not followed, because there were too many in one second.
    pub skipped: AtomicU64,
    /// What is followed in the current second.
    pub(crate) second: Second,
}

/// The packets followed in the current second, by all lanes.
#[derive(Debug, Default)]
pub(crate) struct Second {
    begun_ns: AtomicU64,
    followed: AtomicU32,
}

impl Second {
    /// Takes one of the packets that may be followed in this second; false if there is none left.
    pub(crate) fn take(&self, now_ns: u64) -> bool {
        let begun = self.begun_ns.load(Ordering::Relaxed);
        let is_new = self.followed.load(Ordering::Relaxed) == 0 || now_ns.saturating_sub(begun) >= SECOND_NS;
        // Of several lanes, one begins the next second.
        if is_new && self.begun_ns.compare_exchange(begun, now_ns, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.followed.store(0, Ordering::Relaxed);
        }
        let next = |followed| (followed < TRACED_PER_SECOND_MAX).then_some(followed + 1);
        self.followed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

const SECOND_NS: u64 = 1_000_000_000;

/// A followed packet that has left the loop. Its bytes are not yet written as digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// What happened to it.
    pub packet: TracePacket,
    /// The first of its bytes as they came.
    pub bytes: Vec<u8>,
    /// The first of its bytes as they went, if it was changed.
    pub changed: Vec<u8>,
}

impl Traced {
    /// Notes what the packet was changed to.
    pub(crate) fn change(&mut self, bytes: &[u8], bytes_max: usize) {
        let flow = IpView::parse(bytes).ok().map(|view| TraceFlow::from(view.flow()));
        self.packet.changed = Some(TraceChange { flow, length: bytes.len(), bytes: String::new() });
        self.changed = bytes[..bytes.len().min(bytes_max)].to_vec();
    }
}
