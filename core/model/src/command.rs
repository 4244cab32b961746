// SPDX-License-Identifier: Apache-2.0
//! What the controller wants done, and what it is told of the result.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::manifest::{Manifest, ModuleLimits, ServerPart};
use crate::policy::ContainerLimits;
use crate::request::NodeReport;
use crate::verdict::FailureMode;
use crate::{
    Digest, Filter, Flavour, ModuleName, ModuleRef, PublicKey, Refusal, SessionId, UnixTime, UserId, WorkerId,
};

/// Names one request inside the node, from its arrival to its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Names one job that the controller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// A module's place in its worker, 0–63: its bit in packet descriptors. Modules see packets in install order, which
/// the worker keeps as the order of loading, whatever the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModuleSlot(pub u8);

/// Names one filter rule of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilterId(pub u64);

/// One thing that the controller wants done. Commands are carried out in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Fetch a package, check its digest and that one of `keys` signed it, choose its flavour and make that ready to
    /// run; answered by [`Event::Fetched`] or [`Event::FetchFailed`].
    Fetch {
        /// The job.
        job: JobId,
        /// Where the package is.
        url: String,
        /// Its digest.
        digest: Digest,
        /// Keys of its owner.
        keys: Vec<PublicKey>,
    },
    /// Compose the components of fetched packages, of which each hands HTTP requests on to the next, and make that ready
    /// to run; answered by [`Event::Composed`] or [`Event::FetchFailed`].
    Compose {
        /// The job.
        job: JobId,
        /// The packages, the outermost component first.
        parts: Vec<Digest>,
        /// What the packages are, for people.
        names: Vec<ModuleRef>,
    },
    /// Start a worker, in the container that the user's other worker is in if there is one; answered by
    /// [`Event::WorkerReady`] or [`Event::WorkerDied`].
    StartWorker {
        /// The worker.
        worker: WorkerId,
        /// What the user's container may use as a whole.
        limits: ContainerLimits,
    },
    /// Stop a worker and forget it; not answered.
    StopWorker {
        /// The worker.
        worker: WorkerId,
    },
    /// Load a fetched module; answered by [`Event::Loaded`] or [`Event::ModuleFailed`].
    Load(Load),
    /// Unload a module; not answered. Packets under way are answered first.
    Unload {
        /// The module's worker.
        worker: WorkerId,
        /// The module's place.
        slot: ModuleSlot,
    },
    /// Have packets go through modules in this order, which are loaded; others come after them. Not answered.
    Order {
        /// Their worker.
        worker: WorkerId,
        /// Their places.
        slots: Vec<ModuleSlot>,
    },
    /// Show matching packets to a module.
    InstallFilter {
        /// The rule.
        id: FilterId,
        /// The module's worker.
        worker: WorkerId,
        /// The module's place.
        slot: ModuleSlot,
        /// Which packets.
        filter: Filter,
        /// What happens to them while the module cannot say.
        on_failure: FailureMode,
    },
    /// Take a rule away.
    RemoveFilter {
        /// The rule.
        id: FilterId,
    },
    /// Hand the TCP connections that match to a module, which takes connections by now: both directions go through its
    /// container. It also ends a [`Command::SuspendIntercept`] of the same rule.
    Intercept {
        /// The rule.
        id: FilterId,
        /// The module's worker.
        worker: WorkerId,
        /// The module's place.
        slot: ModuleSlot,
        /// Which connections, seen from the client.
        filter: Filter,
        /// What happens to new ones while the module cannot take them.
        on_failure: FailureMode,
    },
    /// Treat new connections of a rule as its failure mode says, until the next [`Command::Intercept`] of it.
    SuspendIntercept {
        /// The rule.
        id: FilterId,
    },
    /// Take a rule of [`Command::Intercept`] away; connections under way end.
    EndIntercept {
        /// The rule.
        id: FilterId,
    },
    /// Remember an installed module across restarts, in place of an earlier record of the same user and name.
    Store(InstalledRecord),
    /// Forget an installed module.
    Forget {
        /// The module's owner.
        user: UserId,
        /// The module's name.
        module: ModuleName,
    },
    /// Tell people that a service is removed since its parts are not what it needs any more.
    Dissolved {
        /// The service's owner.
        user: UserId,
        /// The service.
        module: ModuleRef,
        /// Why.
        refusal: Refusal,
    },
    /// Answer a request.
    Answer {
        /// The request.
        request: RequestId,
        /// The node's entry for the response stack, with `address` still to be filled in by the signaling.
        report: Box<NodeReport>,
    },
}

/// Everything that a worker needs to run a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// The worker.
    pub worker: WorkerId,
    /// The module's place.
    pub slot: ModuleSlot,
    /// Its name and version.
    pub module: ModuleRef,
    /// The package's digest, by which the code is found.
    pub digest: Digest,
    /// What the module can read.
    pub properties: BTreeMap<String, String>,
    /// What the module may use.
    pub limits: ModuleLimits,
    /// The version of its kv state.
    pub state_schema: u32,
    /// Whether it has a part that sees packets.
    pub packet: bool,
    /// The part that takes connections, if it has one.
    pub server: Option<ServerPart>,
    /// The packages whose components are composed to its server part, the outermost first; empty if it is its own.
    pub chain: Vec<Digest>,
}

/// A module as it is remembered across restarts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledRecord {
    /// Its owner.
    pub user: UserId,
    /// Its name and version.
    pub module: ModuleRef,
    /// Where its package came from.
    pub url: String,
    /// Its package's digest.
    pub digest: Digest,
    /// The session that installed it.
    pub session: SessionId,
    /// Its filters.
    pub filters: Vec<Filter>,
    /// Its properties.
    pub properties: BTreeMap<String, String>,
    /// When its lease ends.
    pub lease_until: UnixTime,
    /// Its place in the install order of its container.
    pub order: u64,
    /// The flavour that ran last. What runs after a restart is found out when the package is had again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flavour: Option<Flavour>,
}

/// What the controller is told by those who carry out commands and watch containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A package is in the store, checked and ready to be loaded.
    Fetched {
        /// The job.
        job: JobId,
        /// What the package says of itself.
        manifest: Box<Manifest>,
        /// Which of its flavours this node takes.
        flavour: Flavour,
    },
    /// A composition is ready to be loaded.
    Composed {
        /// The job.
        job: JobId,
    },
    /// A package could not be had, or a composition not be made.
    FetchFailed {
        /// The job.
        job: JobId,
        /// Why.
        refusal: Refusal,
    },
    /// A worker takes modules.
    WorkerReady {
        /// The worker.
        worker: WorkerId,
    },
    /// A worker could not be started, or ended without being told to.
    WorkerDied {
        /// The worker.
        worker: WorkerId,
        /// Why.
        refusal: Refusal,
        /// The module that is to blame, if one is.
        culprit: Option<ModuleSlot>,
    },
    /// A module runs.
    Loaded {
        /// The module's worker.
        worker: WorkerId,
        /// The module's place.
        slot: ModuleSlot,
    },
    /// A module could not be loaded, or trapped and was unloaded; its worker goes on.
    ModuleFailed {
        /// The module's worker.
        worker: WorkerId,
        /// The module's place.
        slot: ModuleSlot,
        /// Why.
        refusal: Refusal,
    },
    /// A filter rule or a rule of an interception could not be installed.
    FilterFailed {
        /// The rule.
        id: FilterId,
        /// Why.
        refusal: Refusal,
    },
}
