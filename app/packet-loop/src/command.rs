// SPDX-License-Identifier: Apache-2.0
//! What the control loop wants of the packet loop.

use std::time::Duration;

use ipnet::IpNet;
use netserv_model::api::DeviceInfo;
use netserv_model::effect::{EffectId, FilterId, ModuleSlot};
use netserv_model::{DropReason, UserId, WorkerId};

use crate::budget::SendLimits;
use crate::lanes::Reply;
use crate::meters::ModuleCounts;
use crate::module_filter::ModuleFilter;
use crate::traces::{Tap, TraceId};
use crate::workers::WorkerRings;

/// What the control loop wants of the packet loop; with several lanes, of each of them.
#[derive(Clone)]
pub enum PacketCommand {
    /// Packets may go to this worker.
    AddWorker {
        /// The worker.
        worker: WorkerId,
        /// The worker generation: tells workers of one name apart.
        generation: u64,
        /// The host's side of its rings.
        rings: WorkerRings,
        /// Source addresses that its packets may have beside their own.
        prefixes: Vec<IpNet>,
    },
    /// The worker is gone; packets that it holds get their failure verdict.
    RemoveWorker {
        /// The worker.
        worker: WorkerId,
        /// Why its packets are lost to it.
        reason: DropReason,
    },
    /// Source addresses that a user's packets may have beside their own.
    SetPrefixes {
        /// The user.
        user: UserId,
        /// Its prefixes.
        prefixes: Vec<IpNet>,
    },
    /// How much a user's modules may send of their own, whether it has a worker or not. Without it the limits are
    /// [`SendLimits::default`].
    SetSendLimits {
        /// The user.
        user: UserId,
        /// Its limits.
        limits: SendLimits,
    },
    /// Filters that come and go together.
    ChangeFilters {
        /// Filters to add.
        add: Vec<(FilterId, ModuleFilter)>,
        /// Filters to take away.
        remove: Vec<FilterId>,
        /// Dropped by each lane once packets meet them so, if somebody waits for that.
        known: Option<std::sync::mpsc::Sender<()>>,
    },
    /// A module's longest call, for the watchdog. Give it before the module is loaded.
    SetCallTime {
        /// The module's worker.
        worker: WorkerId,
        /// The module's place.
        slot: ModuleSlot,
        /// How long a call may take.
        call: Duration,
    },
    /// Count what a module in a place is shown and makes, for this load of it.
    Meter {
        /// The module's worker.
        worker: WorkerId,
        /// The module's place.
        slot: ModuleSlot,
        /// The load.
        load: EffectId,
    },
    /// Tell what all loads of modules counted.
    ReadMeters {
        /// The loads, in order, that count no more, and are forgotten once they are told.
        ended: Vec<EffectId>,
        /// Where to tell.
        reply: Reply<ModuleCounts>,
    },
    /// A module is loaded, or is no more; while it is not, it cannot answer for its packets.
    SetLoaded {
        /// The module's worker.
        worker: WorkerId,
        /// The module's place.
        slot: ModuleSlot,
        /// Whether it is loaded.
        loaded: bool,
    },
    /// Tell which devices are served at this moment, and how.
    Devices(Reply<Vec<DeviceInfo>>),
    /// Follow packets.
    Trace(Tap),
    /// Follow them no longer.
    EndTrace(TraceId),
    /// End the loop; the driver takes its rules away.
    Stop,
}
