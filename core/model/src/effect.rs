// SPDX-License-Identifier: Apache-2.0
//! Changes of the machine that the controller wants, each with exactly one outcome, and news of workers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::audit::{Asked, Proven};
use crate::control::{ControlMessage, ModuleMessage};
use crate::evidence::{Checklist, Evidence, Holder};
use crate::floating::GivenUp;
use crate::manifest::{Manifest, ModuleLimits, ServerPart};
use crate::notify::{Notify, NotifyEvent};
use crate::policy::{AddressPlan, AddressTls, ContainerLimits, Permits};
use crate::request::{self, NodeReport, PacketCounts, ServerCounts, StateSource};
use crate::usage::{Meters, UsageChange, UsageKey, Used};
use crate::verdict::FailureMode;
use crate::{
    Digest, Filter, Flavour, ModuleName, ModuleRef, Nonce, PublicKey, Refusal, SessionId, UnixTime, UserId,
    WantedFilter, WorkerId,
};

pub use crate::ids::EffectId;

/// Names one request inside the node, from its arrival to its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A module's place in its worker, 0–63: its bit in packet descriptors. Modules see packets in install order, which
/// the worker keeps as the order of loading, whatever the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModuleSlot(pub u8);

/// Names one filter rule of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilterId(pub u64);

/// One thing that the controller says, in the order in which it is to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Do something to the machine; answered by exactly one [`EffectOutcome`], also when it is abandoned.
    Do(Effect),
    /// Nobody waits for an effect any more: [`Job::is_ordered`] is false for it, and its outcome changes nothing.
    Abandon(EffectId),
    /// A request is of the user whom it names; its answer comes later.
    Proven(RequestId),
    /// Answer a request.
    Answer {
        /// The request.
        request: RequestId,
        /// The node's entry for the response stack, with `address` still to be filled in by the signaling.
        report: Box<NodeReport>,
        /// By what it is proven to be of the user whom it names; nothing if it is not.
        proven: Option<Proven>,
    },
    /// Tell people.
    Notify(Notice),
    /// Tell those whose SETUPs installed a module.
    TellRequesters(Box<ModuleNews>),
    /// A policy is in force, also in containers that run, but for what it says.
    InForce(PolicyChange, Vec<Late>),
    /// What was used until the node was told to stop is stored, or cannot be.
    Settled,
}

/// What happened to an installed module on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleNews {
    /// The module's owner.
    pub user: UserId,
    /// The module.
    pub module: ModuleName,
    /// The session that installed it.
    pub session: SessionId,
    /// The nonce of the request that its lease is from, if that is known.
    pub nonce: Option<Nonce>,
    /// Whether it is only for the requester of that SETUP: others hold the module, too.
    pub is_for_one: bool,
    /// What happened; after [`NotifyEvent::LeaseEnded`] it is not installed any more, or not for this one.
    pub event: NotifyEvent,
    /// Why, for people.
    pub detail: String,
    /// What the module says, if it says something.
    pub message: Option<ModuleMessage>,
}

/// Names one change of the policy, until it is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyChange(pub u64);

/// A part of the policy that running containers are held to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// A user's [`Permits`].
    Permits(UserId),
    /// A user's [`ContainerLimits`].
    Limits(UserId),
    /// All users' addresses.
    Addresses,
}

/// What of a changed policy a running container is not held to before its next start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// Which part.
    pub hold: Hold,
    /// Why.
    pub refusal: Refusal,
}

/// A change of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Its name, by which it is answered.
    pub id: EffectId,
    /// The user whose effects it must not overtake; nothing for the node's own.
    pub user: Option<UserId>,
    /// What to do.
    pub job: Job,
}

/// What an effect does, by who carries it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// Packages and the code in them.
    Packages(PackageJob),
    /// Workers and what is loaded into them.
    Workers(WorkerJob),
    /// Rules of the forwarding plane and of the packet threads.
    Filters(FilterChange),
    /// Connections between others that modules take over.
    Intercepts(InterceptJob),
    /// Hold the user's containers to this from here on, those that run and those that start.
    Permit(Box<Permits>),
    /// Hold the user's running container to this.
    Limit(ContainerLimits),
    /// Lead these floating addresses to the user's container, and no others. Refused, those from before lead there.
    Floating(BTreeSet<IpAddr>),
    /// Give containers that get a network from here on addresses of this plan.
    Addresses(Box<AddressPlan>),
    /// What outlives the node's process.
    Store(StoreJob),
    /// Find out what modules counted and how busy the machine is; done by [`EffectOutcome::Measured`].
    Measure,
    /// Read all meters; done by [`EffectOutcome::Metered`].
    ReadMeters,
    /// Find out the node's own address toward a destination; done by [`EffectOutcome::Routed`].
    Route(IpAddr),
    /// Ask an address for what it says of a user; done by [`EffectOutcome::Vouched`].
    AskAddress {
        /// The address.
        address: IpAddr,
        /// The user.
        user: UserId,
        /// Whether it has to show that it is that address.
        tls: AddressTls,
    },
    /// Find out who is behind a checklist, by the RPKI as it is now; done by [`EffectOutcome::Held`].
    FindHolder {
        /// The checklist.
        checklist: Checklist,
        /// The digest of the grant that it has to name.
        grant: Digest,
        /// Whether rights depend on it already. Such a check waits for none of requests.
        is_again: bool,
    },
    /// Ask for the revocation list at a URL, unless it is still this version; done by [`EffectOutcome::Listed`].
    AskList {
        /// The URL.
        url: String,
        /// What the server called the version that is here (RFC 9110 §8.8.3).
        etag: Option<String>,
    },
}

impl Job {
    /// Returns whether the user's effects before it must be done first, and those after it wait for it.
    pub fn is_ordered(&self) -> bool {
        match self {
            Job::Packages(_)
            | Job::Addresses(_)
            | Job::Measure
            | Job::ReadMeters
            | Job::Route(_)
            | Job::AskAddress { .. }
            | Job::FindHolder { .. }
            | Job::AskList { .. } => false,
            // The module that it is for runs, so what came before is done as far as it matters.
            Job::Workers(WorkerJob::Tell { .. } | WorkerJob::Export(_)) | Job::Store(StoreJob::PutMessage { .. }) => {
                false
            }
            Job::Workers(_)
            | Job::Filters(_)
            | Job::Intercepts(_)
            | Job::Permit(_)
            | Job::Limit(_)
            | Job::Floating(_)
            | Job::Store(_) => true,
        }
    }
}

/// A job about packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackageJob {
    /// Fetch a package, check its digest and that one of `keys` signed it, choose its flavour and make that ready to
    /// run; done by [`EffectOutcome::Fetched`].
    Fetch {
        /// Where the package is.
        url: String,
        /// Its digest.
        digest: Digest,
        /// Keys of its owner.
        keys: Vec<PublicKey>,
        /// The state that the module is to begin with, fetched beside it.
        state: Option<StateSource>,
    },
    /// Compose the components of fetched packages, of which each hands HTTP requests on to the next, and make that ready
    /// to run.
    Compose {
        /// The packages, the outermost component first.
        parts: Vec<Digest>,
        /// What the packages are, for people.
        names: Vec<ModuleRef>,
    },
}

/// A job about a worker. Done means that the worker was told; what comes of that is [`News`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerJob {
    /// Start a worker, in the container that the user's other worker is in if there is one. Then comes
    /// [`WorkerNews::Ready`] or [`WorkerNews::Died`]. The effect's id is the worker's generation.
    Start {
        /// The worker.
        worker: WorkerId,
        /// What the user's container may use as a whole.
        limits: ContainerLimits,
        /// What the user's containers are held to, until the next [`Job::Permit`].
        permits: Box<Permits>,
    },
    /// Stop a worker and forget it; no news of it come any more.
    Stop {
        /// The worker.
        worker: WorkerId,
    },
    /// Load a fetched module. Then comes [`WorkerNews::Loaded`] or [`WorkerNews::Failed`].
    Load(Box<ModuleLoad>),
    /// Unload a module. Packets under way are answered first.
    Unload {
        /// The module's worker.
        worker: WorkerId,
        /// The module's place.
        slot: ModuleSlot,
    },
    /// Have the connections that a module has taken over go on, and no others come. Then comes [`WorkerNews::Drained`], and the module is
    /// to be unloaded.
    Drain {
        /// The module's worker.
        worker: WorkerId,
        /// The module's place.
        slot: ModuleSlot,
        /// Whether the module has them until they end; else it is called no more, and what comes on them is handed on.
        finish: bool,
    },
    /// A module that was loaded with a state is in force: what its user's module kept before is not put back if it is unloaded.
    Confirm {
        /// The module's worker.
        worker: WorkerId,
        /// The module's place.
        slot: ModuleSlot,
    },
    /// Have packets go through modules in this order, which are loaded; others come after them.
    Order {
        /// Their worker.
        worker: WorkerId,
        /// Their places.
        slots: Vec<ModuleSlot>,
    },
    /// Put a message into the inbox of a running module. Done means that it is there.
    Tell {
        /// The module's worker.
        worker: WorkerId,
        /// The module's place.
        slot: ModuleSlot,
        /// The message.
        message: ControlMessage,
    },
    /// Ask a running module for its state, and put that somewhere; done by [`EffectOutcome::Exported`].
    Export(Box<ModuleExport>),
}

/// A module that is asked for its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleExport {
    /// Its worker.
    pub worker: WorkerId,
    /// Its place.
    pub slot: ModuleSlot,
    /// Its name.
    pub module: ModuleName,
    /// The version of its state.
    pub state_schema: u32,
    /// Where the state is put.
    pub url: String,
}

impl WorkerJob {
    /// Returns the worker that it is about.
    pub fn worker(&self) -> &WorkerId {
        match self {
            WorkerJob::Start { worker, .. }
            | WorkerJob::Stop { worker }
            | WorkerJob::Unload { worker, .. }
            | WorkerJob::Drain { worker, .. }
            | WorkerJob::Confirm { worker, .. }
            | WorkerJob::Order { worker, .. }
            | WorkerJob::Tell { worker, .. } => worker,
            WorkerJob::Load(load) => &load.worker,
            WorkerJob::Export(export) => &export.worker,
        }
    }
}

/// Rules that come and rules that go in one step: no packet is shown by both or by none. Refused, nothing changed; one
/// that only takes rules away is never refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterChange {
    /// Rules to add.
    pub add: Vec<FilterRule>,
    /// Rules to take away; one that is not there is no fault.
    pub remove: Vec<FilterId>,
}

/// Shows matching packets to a module, or has them wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterRule {
    /// The rule.
    pub id: FilterId,
    /// The module's worker.
    pub worker: WorkerId,
    /// The module's place.
    pub slot: ModuleSlot,
    /// The module, for people.
    pub module: ModuleRef,
    /// Which packets.
    pub filter: Filter,
    /// What happens to them while the module cannot say.
    pub on_failure: FailureMode,
    /// Which of them wait for another rule in place of this one, if the module is not to see them.
    pub buffering: Option<Buffering>,
}

/// Which packets of a rule wait until it goes, since its module moves. They meet the rules that are there then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffering {
    /// The address of the other node. What is from or to it does not wait: the module's state may be.
    pub other: IpAddr,
    /// Whether what comes by the interface that leads there does not wait either, since the module sees it there.
    pub is_seen_there: bool,
}

/// A job about connections between others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterceptJob {
    /// Hand the TCP connections that match to a module, which takes connections by now: both directions go through its
    /// container. It also ends a [`InterceptJob::Suspend`] of the same rule.
    Begin(Interception),
    /// Treat new connections of a rule as its failure mode says, until the next [`InterceptJob::Begin`] of it.
    Suspend(FilterId),
    /// Let new connections of a rule pass, and those under way go on through the container, until [`InterceptJob::End`].
    Drain(FilterId),
    /// Take a rule away; connections under way end.
    End(FilterId),
}

/// Which connections go through a module's container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interception {
    /// The rule.
    pub id: FilterId,
    /// The module's worker.
    pub worker: WorkerId,
    /// The module's place.
    pub slot: ModuleSlot,
    /// Which connections, seen from the client.
    pub filter: Filter,
    /// What happens to new ones while the module cannot take them.
    pub on_failure: FailureMode,
}

/// A job about what outlives the node's process; done once it is on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreJob {
    /// Remember an installed module, in place of an earlier record of the same user and name.
    Put(Box<InstalledRecord>),
    /// Remember a control message, in place of an earlier one of the same module and topic.
    PutMessage {
        /// The module's owner.
        user: UserId,
        /// The module's name.
        module: ModuleName,
        /// The message.
        message: ControlMessage,
    },
    /// Forget a user who has nothing on the node, with what its modules kept.
    ForgetUser {
        /// The user.
        user: UserId,
    },
    /// Forget an installed module, and the messages to it.
    Forget {
        /// The module's owner.
        user: UserId,
        /// The module's name.
        module: ModuleName,
    },
    /// Remember the newest revocation list of an issuer, in place of an earlier one.
    PutList(Box<StoredList>),
    /// Remember what was used, all of it or nothing.
    PutUsage(Box<UsageChange>),
}

/// What people are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A request arrived.
    Requested {
        /// The request.
        request: RequestId,
        /// `SETUP`, `REMOVE`, `TELL` or `PROBE`.
        method: &'static str,
        /// Who asks, as the request says.
        user: Option<UserId>,
        /// Its session.
        session: SessionId,
    },
    /// A request was answered.
    Answered {
        /// The request.
        request: RequestId,
        /// With what.
        outcome: request::Outcome,
        /// How long that took on this node, in microseconds.
        took_us: u64,
        /// What was asked.
        asked: Box<Asked>,
        /// By what it is proven to be of the user whom it names; nothing if it is not.
        proven: Option<Proven>,
    },
    /// Something happened to what a client of this node installed along a path.
    Notified(Box<Notify>),
    /// A service is removed since its parts are not what it needs any more.
    Dissolved {
        /// The service's owner.
        user: UserId,
        /// The service.
        module: ModuleRef,
        /// Why.
        refusal: Refusal,
    },
    /// A module is removed since the policy does not allow it any more.
    Revoked {
        /// The module's owner.
        user: UserId,
        /// The module.
        module: ModuleRef,
        /// Why.
        refusal: Refusal,
        /// What the owner's rights came from, in words, unless the policy does not name it any more.
        evidence: Option<String>,
        /// Whether these came from a proof.
        is_stranger: bool,
    },
    /// A module is removed since its last lease ended.
    Expired {
        /// The module's owner.
        user: UserId,
        /// The module.
        module: ModuleRef,
        /// What the owner's rights come from, in words, if it has some.
        evidence: Option<String>,
        /// Whether the configuration does not name the owner.
        is_stranger: bool,
    },
    /// A module is back, since its user has rights again.
    Resumed {
        /// The module's owner.
        user: UserId,
        /// The module.
        module: ModuleRef,
        /// What the rights come from, in words.
        evidence: Option<String>,
    },
    /// A user whom the configuration does not name is forgotten, with what its modules kept.
    Forgotten {
        /// The user.
        user: UserId,
        /// Why it has no rights.
        refusal: Refusal,
        /// What they came from, in words.
        evidence: String,
    },
    /// Another revocation list of an issuer is in force.
    Listed {
        /// The operator's name for the issuer.
        issuer: String,
        /// The list's number.
        number: u64,
        /// When it was made.
        made: UnixTime,
    },
    /// An issuer's revocation list cannot be had, or not kept.
    NotListed {
        /// The operator's name for the issuer.
        issuer: String,
        /// Why.
        refusal: Refusal,
    },
    /// A module no longer has floating addresses, since another one has them in a later epoch.
    GaveUp {
        /// The module's owner.
        user: UserId,
        /// The module.
        module: ModuleName,
        /// The addresses.
        addresses: Vec<IpAddr>,
        /// That epoch.
        epoch: u64,
    },
    /// A module that is installed will not survive a restart of the node, or one that is gone will come back.
    NotStored {
        /// The module's owner.
        user: UserId,
        /// The module.
        module: ModuleName,
        /// Why.
        refusal: Refusal,
    },
}

/// Everything that a worker needs to run a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleLoad {
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
    /// Whether that part may run as several instances.
    pub parallel: bool,
    /// How many whole processors its container may use at a time.
    pub processors: u32,
    /// The part that takes connections, if it has one.
    pub server: Option<ServerPart>,
    /// The packages whose components are composed to its server part, the outermost first; empty if it is its own.
    pub chain: Vec<Digest>,
    /// The building blocks that it may use.
    pub blocks: BTreeSet<String>,
    /// The last message of each topic, in order of their numbers: it gets them before others.
    pub messages: Vec<ControlMessage>,
    /// The digest of the fetched state that it begins with.
    pub state: Option<Digest>,
}

/// What outlived the node's last process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// The modules that were installed.
    pub installed: Vec<InstalledRecord>,
    /// What was used.
    pub usage: Vec<(UsageKey, Used)>,
    /// The last message of each topic to each module.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<StoredMessage>,
    /// The newest revocation list of each issuer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<StoredList>,
}

/// An issuer's revocation list as it is remembered across restarts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredList {
    /// The operator's name for the issuer.
    pub issuer: String,
    /// The list.
    pub text: String,
}

impl From<Vec<InstalledRecord>> for Stored {
    fn from(installed: Vec<InstalledRecord>) -> Stored {
        Stored { installed, ..Stored::default() }
    }
}

/// A control message as it is remembered across restarts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredMessage {
    /// The module's owner.
    pub user: UserId,
    /// The module's name.
    pub module: ModuleName,
    /// The message.
    pub message: ControlMessage,
}

/// A session that holds an installed module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Its name.
    pub session: SessionId,
    /// Whether it is of a version before sessions were kept: their names do not tell who asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_anyones: bool,
    /// The nonce of its last SETUP; none in records of versions before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Nonce>,
    /// The filters that it asked for; none if it asked for the manifest's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<WantedFilter>,
    /// The connections that it asked to have taken over; likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intercept: Vec<Filter>,
    /// When its lease ends.
    pub lease_until: UnixTime,
    /// What it wants the module to be; unknown in records of versions before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wish: Option<Wish>,
}

/// What a session wants a module to be: its version, package, properties and floating addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// A digest of these.
    pub what: Digest,
    /// When the request was made that asked for it first: those that repeat it wish nothing new.
    pub made: UnixTime,
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
    /// What its owner's rights come from, if the configuration does not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Since when it is gone, since the node does not know who is behind its owner's checklist; it may come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<UnixTime>,
    /// The session of its last SETUP.
    pub session: SessionId,
    /// The nonce of that SETUP; none in records of versions before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Nonce>,
    /// Its filters: those that any of its sessions asked for.
    pub filters: Vec<WantedFilter>,
    /// The connections that it takes over, if a request named them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intercept: Vec<Filter>,
    /// Its properties.
    pub properties: BTreeMap<String, String>,
    /// When its lease ends, which is the longest one of its sessions.
    pub lease_until: UnixTime,
    /// All sessions that hold it; none in records of versions before they were kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionRecord>,
    /// Of what wish it is, which the sessions share that say so; unknown in records of versions before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wish: Option<Wish>,
    /// Its place in the install order of its container.
    pub order: u64,
    /// The flavour that ran last. What runs after a restart is found out when the package is had again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flavour: Option<Flavour>,
    /// The epoch of its last SETUP.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epoch: u64,
    /// Its floating addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub floating: Vec<IpAddr>,
    /// Those that another module has since a later epoch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<GivenUp>,
    /// The state that it began its epoch with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Digest>,
    /// The later epoch in which another node has it, for which it stands still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_in: Option<u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(epoch: &u64) -> bool {
    *epoch == 0
}

/// What came of an effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EffectOutcome {
    /// It is done.
    Done,
    /// A package is in the store, checked and ready to be loaded.
    Fetched {
        /// What the package says of itself.
        manifest: Box<Manifest>,
        /// Which of its flavours this node takes.
        flavour: Flavour,
    },
    /// A module's state was put where it was to go.
    Exported {
        /// Its digest.
        digest: Digest,
        /// Its bytes.
        bytes: u64,
    },
    /// What was counted.
    Measured(Box<Measured>),
    /// What meters say.
    Metered(Box<Meters>),
    /// The node's own address toward a destination, if there is a route.
    Routed(Option<IpAddr>),
    /// What an address says of a user.
    Vouched(Digest),
    /// Who is behind a checklist.
    Held(Holder),
    /// What lies at a URL; nothing if it is the version that was named.
    Listed(Option<ListAnswer>),
    /// It was not done, and nothing of it is left.
    Refused(Refusal),
}

/// What a server gives as an issuer's revocation list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListAnswer {
    /// The text, which may be anything.
    pub text: String,
    /// What the server calls this version, if it does.
    pub etag: Option<String>,
}

/// What modules counted, and how busy the machine is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Packets shown, load and free memory of the machine.
    pub load: request::NodeLoad,
    /// What each module counted; those whose worker did not say in time are missing, or as they were last.
    pub modules: Vec<ModuleCounts>,
    /// The addresses of each user's container.
    pub addresses: BTreeMap<UserId, Vec<IpAddr>>,
}

/// What one module counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleCounts {
    /// Its worker.
    pub worker: WorkerId,
    /// Its place there.
    pub slot: ModuleSlot,
    /// Its packets.
    pub packets: PacketCounts,
    /// Counters that it keeps, by name.
    pub counters: BTreeMap<String, u64>,
    /// Its connections, if it is a server.
    pub server: Option<ServerCounts>,
}

/// What a worker did by itself, or what came of what it was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct News {
    /// The worker.
    pub worker: WorkerId,
    /// The effect that started it, which tells it from earlier ones of the same name.
    pub generation: EffectId,
    /// What happened.
    pub what: WorkerNews,
}

/// What happened to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerNews {
    /// It takes modules.
    Ready {
        /// The addresses of its container; none without a network.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        addresses: Vec<IpAddr>,
    },
    /// It could not be started, or ended without being told to.
    Died {
        /// Why.
        refusal: Refusal,
        /// The module that is to blame, if one is.
        culprit: Option<ModuleSlot>,
    },
    /// A module runs.
    Loaded(ModuleSlot),
    /// A module tells the requester of its SETUP something.
    Notified {
        /// The module's place.
        slot: ModuleSlot,
        /// What.
        message: ModuleMessage,
    },
    /// Nothing is left of the connections of a module after [`WorkerJob::Drain`].
    Drained(ModuleSlot),
    /// A module could not be loaded, or trapped and was unloaded; the worker goes on.
    Failed {
        /// The module's place.
        slot: ModuleSlot,
        /// Why.
        refusal: Refusal,
    },
}
