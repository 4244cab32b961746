// SPDX-License-Identifier: Apache-2.0
//! A worker's rings, one for each lane.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use netserv_container::HostRing;

use super::seen::{SeenByAll, WorkerSeen};

/// The rings of a worker on their way to the lanes, each of which takes its own.
#[derive(Clone)]
pub struct WorkerRings {
    rings: Arc<Mutex<Vec<Option<HostRing>>>>,
    shared: Arc<SeenByAll>,
}

impl From<Vec<HostRing>> for WorkerRings {
    /// `rings` are by lane. A lane that has none knows no such worker.
    fn from(rings: Vec<HostRing>) -> WorkerRings {
        WorkerRings { rings: Arc::new(Mutex::new(rings.into_iter().map(Some).collect())), shared: Arc::default() }
    }
}

impl From<HostRing> for WorkerRings {
    fn from(ring: HostRing) -> WorkerRings {
        WorkerRings::from(vec![ring])
    }
}

impl WorkerRings {
    /// Takes the ring of a lane.
    pub(crate) fn take(&self, lane: usize) -> Option<HostRing> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner).get_mut(lane)?.take()
    }

    /// Returns what the lanes, of which there are so many since `begun`, know of the worker.
    pub(crate) fn seen(&self, spinners: Arc<Mutex<usize>>, begun: Instant, lanes: usize) -> WorkerSeen {
        WorkerSeen::new(self.shared.clone(), spinners, begun, lanes)
    }
}
