// SPDX-License-Identifier: Apache-2.0
//! What the packet loop tells the control loop.

use std::sync::Arc;

use netserv_model::WorkerId;
use netserv_model::effect::ModuleSlot;

/// What the packet loop tells the control loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    /// A worker has not answered for longer than its module may take.
    Stalled {
        /// The worker.
        worker: WorkerId,
        /// The worker generation.
        generation: u64,
        /// The module that it was in.
        slot: Option<ModuleSlot>,
    },
    /// A worker broke the rules of the ring.
    RingBroken {
        /// The worker.
        worker: WorkerId,
        /// The worker generation.
        generation: u64,
        /// How.
        detail: String,
    },
    /// The driver failed for good.
    DriverFailed {
        /// Why.
        detail: String,
    },
}

/// Tells the control loop; false if that was not possible and the loop is to try again.
pub type Report = Arc<dyn Fn(PacketEvent) -> bool + Send + Sync>;
