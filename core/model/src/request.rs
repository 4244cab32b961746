// SPDX-License-Identifier: Apache-2.0
//! What users ask of nodes, and what nodes answer.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::control::ControlMessage;
pub use crate::dependency::Dependency;
use crate::evidence::{AddressProof, Checklist};
use crate::floating::GivenUp;
use crate::target::Condition;
use crate::text::one_line;
use crate::{
    Digest, Filter, Flavour, ModuleName, ModuleRef, NodeId, Nonce, Refusal, RefusalKind, SessionId, Signature,
    UnixTime, UserId, WantedFilter,
};

/// One request as it enters the controller, by signaling or by the HTTP API alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The signaling session that the request belongs to.
    pub session: SessionId,
    /// Who asks; `None` only in a PROBE that needs no rights.
    pub user: Option<UserId>,
    /// When the user made the request.
    pub created: UnixTime,
    /// What makes the request unique.
    pub nonce: Nonce,
    /// What is asked.
    pub body: Body,
    /// The canonical form of the request, which the signature covers.
    pub signed_bytes: Vec<u8>,
    /// The signature over `signed_bytes`.
    pub signature: Option<Signature>,
    /// Grants that say what the user may do, the issuer's first; none of users whom the node knows.
    pub grants: Vec<String>,
    /// What makes an address vouch for the user, if one does.
    pub address_proof: Option<AddressProof>,
    /// What says that the holder of the first grant's prefixes made it.
    pub checklist: Option<Checklist>,
    /// Only say what would happen.
    pub dry_run: bool,
    /// Which nodes it is for by name; empty means every name.
    pub nodes: Vec<NodeId>,
    /// It names where it is carried out, or came no further than this node, so that a copy of it is taken nowhere else.
    pub is_bound: bool,
    /// What this node must have, or it is not for it.
    pub require: Vec<Condition>,
    /// Why the request is not for this node, if its place or name is known not to be meant: it only says who asks.
    pub passed_by: Option<String>,
    /// The peer that it came from; nothing if a client of this node sent it.
    pub from: Option<IpAddr>,
}

words! {
    /// What requests ask for, by the first word of their text.
    pub enum Verb {
        /// Install, refresh or replace a module.
        Setup = "SETUP",
        /// Remove a module.
        Remove = "REMOVE",
        /// Tell a running module something.
        Tell = "TELL",
        /// Put the state of a running module where the request says.
        Export = "EXPORT",
        /// Tell about the node.
        Probe = "PROBE",
    }
}

/// What a request asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Install, refresh or replace a module.
    Setup(Box<Setup>),
    /// Remove a module.
    Remove(Remove),
    /// Tell a running module something.
    Tell(Tell),
    /// Put the state of a running module where the request says.
    Export(Export),
    /// Tell about the node.
    Probe(Probe),
}

impl From<Setup> for Body {
    fn from(setup: Setup) -> Body {
        Body::Setup(Box::new(setup))
    }
}

impl Body {
    /// Returns what is asked for.
    pub fn verb(&self) -> Verb {
        match self {
            Body::Setup(_) => Verb::Setup,
            Body::Remove(_) => Verb::Remove,
            Body::Tell(_) => Verb::Tell,
            Body::Export(_) => Verb::Export,
            Body::Probe(_) => Verb::Probe,
        }
    }

    /// Returns the module that the request is about.
    pub fn module(&self) -> Option<&ModuleName> {
        match self {
            Body::Setup(setup) => Some(&setup.module.name),
            Body::Remove(remove) => Some(&remove.module),
            Body::Tell(tell) => Some(&tell.module),
            Body::Export(export) => Some(&export.module),
            Body::Probe(_) => None,
        }
    }
}

/// Asks for a module to be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The module and its version.
    pub module: ModuleRef,
    /// Where its package is.
    pub url: String,
    /// The package's digest.
    pub digest: Digest,
    /// Which packets it sees; if empty, the manifest's filters. Those that name ends only narrow the manifest's.
    pub filters: Vec<WantedFilter>,
    /// Which connections between others it takes over; if empty, the manifest's, narrowed likewise.
    pub intercept: Vec<Filter>,
    /// What the module can read at run time.
    pub properties: BTreeMap<String, String>,
    /// The building blocks it needs.
    pub dependencies: Vec<Dependency>,
    /// How long the lease lasts.
    pub ttl: Duration,
    /// Which of its owners in turn the node is to be, as the requester counts them; 0 if it does not.
    pub epoch: u64,
    /// The state that it begins with, if the epoch is above the one that the node knows.
    pub state: Option<StateSource>,
    /// Addresses of the user's that lead to it wherever it is, each once; they take an epoch.
    pub floating: Vec<IpAddr>,
    /// Whether all is made ready for it that takes time, its package, its code and its container; only in a dry run.
    pub prepare: bool,
    /// The node that has it, if packets wait for it from now on that do not come from there; only in one that prepares.
    pub buffer: Option<IpAddr>,
}

/// Where the state of a module is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateSource {
    /// Its URL, of the kinds that packages have.
    pub url: String,
    /// Its digest.
    pub digest: Digest,
}

/// Asks for a module to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remove {
    /// The module, whatever its version.
    pub module: ModuleName,
    /// Whether its intercepted connections are ended, whatever its manifest says of them.
    pub force: bool,
    /// Whether it goes whoever holds it; else only the request's session ends, and it goes with the last one.
    pub all: bool,
    /// From which epoch on another node has it, if the requester counts them.
    pub epoch: Option<u64>,
}

/// Asks for the state of a running module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The module, whatever its version.
    pub module: ModuleName,
    /// Where its state is put, by an HTTP PUT.
    pub url: String,
    /// For how long it stands still from just before then, so that another node can go on with the state; otherwise it goes on.
    pub freeze: Option<Duration>,
    /// The node that is to have it, if packets wait meanwhile; only with `freeze`.
    pub buffer: Option<IpAddr>,
}

/// Asks for a message to be handed to a running module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tell {
    /// The module, whatever its version.
    pub module: ModuleName,
    /// The message.
    pub message: ControlMessage,
}

/// Asks nodes about themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// What to tell; empty means `nodes`.
    pub ask: Vec<Ask>,
}

words! {
    serde
    /// One thing that a PROBE asks for.
    pub enum Ask {
        /// Which nodes are there.
        Nodes = "nodes",
        /// Which of the user's modules run.
        Modules = "modules",
        /// Which building blocks and flavours there are.
        Blocks = "blocks",
        /// How busy the node is.
        Load = "load",
        /// What the node grants the user.
        Policy = "policy",
    }
}

/// A session that holds a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldBy {
    /// Its name.
    pub session: SessionId,
    /// Seconds until its lease ends.
    pub lease_s: u64,
    /// The filters that it asked for; none if it asked for the manifest's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<WantedFilter>,
}

/// What one node says in answer; the response stack has one per node, nearest to the requester first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeReport {
    /// The node's name.
    pub node: NodeId,
    /// The address by which the previous hop knows the node.
    pub address: IpAddr,
    /// What the node did.
    pub outcome: Outcome,
    /// How long the node took from request to outcome, in microseconds.
    pub took_us: u64,
    /// The way to it from the node before it; nothing on the requester's own entry, or if nobody saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop: Option<Hop>,
    /// How busy the node is, if asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<NodeLoad>,
    /// The user's modules, if asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<ModuleStatus>,
    /// Building blocks and flavours as `name>=version`, if asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Dependency>,
    /// What runs modules, the preferred one first, if blocks were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<Environment>,
    /// What the user may do here, if asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyReport>,
}

/// The way to a node from the node before it, as that one saw it.
///
/// The node itself has no say in it, but for the count of IP hops.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hop {
    /// How long GIST's last Query to it and the Response took, in microseconds; the node's work on it is included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<u64>,
    /// IP hops, as the node counted on the way of the Query: 1 if no router lies between, 2 across one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_hops: Option<u8>,
    /// By what the node before knows that its answer is that of a node at its address, on the path of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_proof")]
    pub proof: Option<HopProof>,
    /// The name in its certificate, which TLS has shown to be its own; with the proof `tls` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_name: Option<String>,
}

words! {
    serde
    /// What proves to a node that the next one is at its address, and on the path of the flow.
    pub enum HopProof {
        /// It brought back the cookie of a Query along the flow.
        ResponseCookie = "response-cookie",
        /// The same, and its answer came over a messaging association with it.
        Association = "association",
        /// The same, and it showed there, by TLS, a certificate that the node before it believes.
        Tls = "tls",
    }
}

/// Reads a proof; one that this version does not know is none.
fn known_proof<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<HopProof>, D::Error> {
    let word = Option::<String>::deserialize(deserializer)?;
    Ok(word.and_then(|word| HopProof::from_word(&word)))
}

/// The stack of a request that the last node of a path sent back to its requester, by a flow of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReturnStack {
    /// One entry per node, nearest to the node that turned it around first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeReport>,
    /// Why the stack ends before the requester, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<Refusal>,
    /// What proves that it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<PathEnd>,
}

/// What runs modules of one flavour on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// The flavour.
    pub flavour: Flavour,
    /// What runs it, for people: `Felix 7.0.5 (OSGi Core 8) on OpenJDK 17.0.15`.
    pub engine: String,
}

/// Nodes that a response stack has no entries of, since the operators of their domains do not show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Withheld {
    /// How many there are.
    pub nodes: u32,
    /// How many of them refused.
    #[serde(default)]
    pub refused: u32,
    /// Seconds until the longest of their leases ends; 0 if they have none.
    #[serde(default)]
    pub lease_s: u64,
}

impl Withheld {
    /// Returns whether each node has its entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Withheld::default()
    }

    /// Takes in one node more.
    pub fn add(&mut self, outcome: &Outcome) {
        self.nodes = self.nodes.saturating_add(1);
        self.refused = self.refused.saturating_add(u32::from(!outcome.is_ok()));
        self.lease_s = self.lease_s.max(outcome.lease_s().unwrap_or(0));
    }
}

words! {
    serde
    /// What proves that no node is missing at the far end of a response stack.
    pub enum PathEnd {
        /// The last node is the flow's destination.
        Destination = "destination" => "is the last node",
        /// The flow's destination refused the last node's Query with an ICMP error that brings it back, or another Query which
        /// that node sent along the same path meanwhile.
        Unreachable = "unreachable" => "refused the last Query with an ICMP error",
        /// The flow's destination speaks GIST, and said "Endpoint Found" of the last node's session (RFC 5971 A.4.4.7). That is
        /// weaker: everybody on the path knows the session.
        EndpointFound = "endpoint-found" => "answered the last Query with Endpoint Found",
        /// A TELL names the last node and no other, and goes no further.
        Named = "named" => "is not asked: the request is for the last node alone",
    }
    /// Returns it as a clause for people.
    fn text
}

/// What a node did with a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum Outcome {
    /// The module runs; its lease ends after so many seconds.
    Installed {
        /// Seconds until the lease ends.
        lease_s: u64,
    },
    /// The module ran before; only its lease is new.
    Refreshed {
        /// Seconds until the lease ends.
        lease_s: u64,
    },
    /// The module runs in place of another version or digest of it.
    Replaced {
        /// Seconds until the lease ends.
        lease_s: u64,
    },
    /// The module is gone.
    Removed,
    /// The message is in the inbox of the running module.
    Told,
    /// The module's state is where the request said.
    Exported {
        /// Its digest.
        digest: Digest,
        /// Its bytes.
        bytes: u64,
    },
    /// The answer is in the other fields.
    Probed,
    /// A dry run that would have succeeded.
    WouldDo {
        /// What would have been done, as a word: `install`, `refresh`, `replace`, `remove`, `tell`, `export`.
        action: String,
    },
    /// The request is for other nodes; this one passed it on.
    NotTargeted {
        /// Which of its conditions is not true here.
        reason: String,
    },
    /// The node did nothing.
    Refused(Refusal),
}

impl Outcome {
    /// Returns whether the node did what was asked of it.
    pub fn is_ok(&self) -> bool {
        !matches!(self, Outcome::Refused(_))
    }

    /// Returns whether it is a refusal of a kind.
    pub fn is_refused_for(&self, kind: RefusalKind) -> bool {
        matches!(self, Outcome::Refused(refusal) if refusal.kind == kind)
    }

    /// Returns the seconds that are left of the lease that it tells of.
    pub fn lease_s(&self) -> Option<u64> {
        match self {
            Outcome::Installed { lease_s } | Outcome::Refreshed { lease_s } | Outcome::Replaced { lease_s } => {
                Some(*lease_s)
            }
            Outcome::Removed
            | Outcome::Told
            | Outcome::Exported { .. }
            | Outcome::Probed
            | Outcome::WouldDo { .. }
            | Outcome::NotTargeted { .. }
            | Outcome::Refused(_) => None,
        }
    }

    /// Returns the outcome as its word in JSON and in metrics.
    pub fn word(&self) -> &'static str {
        match self {
            Outcome::Installed { .. } => "installed",
            Outcome::Refreshed { .. } => "refreshed",
            Outcome::Replaced { .. } => "replaced",
            Outcome::Removed => "removed",
            Outcome::Told => "told",
            Outcome::Exported { .. } => "exported",
            Outcome::Probed => "probed",
            Outcome::WouldDo { .. } => "would-do",
            Outcome::NotTargeted { .. } => "not-targeted",
            Outcome::Refused(_) => "refused",
        }
    }

    /// Returns the outcome with every text in one line and inside its bounds, for one that came from outside.
    #[must_use]
    pub fn clean(self) -> Outcome {
        match self {
            Outcome::Refused(refusal) => Outcome::Refused(refusal.clean()),
            Outcome::WouldDo { action } => Outcome::WouldDo { action: one_line(&action) },
            Outcome::NotTargeted { reason } => Outcome::NotTargeted { reason: one_line(&reason) },
            plain @ (Outcome::Installed { .. }
            | Outcome::Refreshed { .. }
            | Outcome::Replaced { .. }
            | Outcome::Removed
            | Outcome::Told
            | Outcome::Exported { .. }
            | Outcome::Probed) => plain,
        }
    }

    /// Returns whether the request was for other nodes.
    pub fn is_not_targeted(&self) -> bool {
        matches!(self, Outcome::NotTargeted { .. })
    }
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Outcome {
        Outcome::Refused(refusal)
    }
}

impl std::fmt::Display for Outcome {
    /// Writes what happened as people would say it, in one line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Installed { lease_s } | Outcome::Refreshed { lease_s } | Outcome::Replaced { lease_s } => {
                write!(f, "{} for {lease_s} s", self.word())
            }
            Outcome::Removed | Outcome::Told | Outcome::Probed => f.write_str(self.word()),
            Outcome::Exported { digest, bytes } => write!(f, "exported {bytes} bytes, {digest}"),
            Outcome::WouldDo { action } => write!(f, "would {action}"),
            Outcome::NotTargeted { reason } => write!(f, "not targeted: {reason}"),
            Outcome::Refused(refusal) => write!(f, "refused: {refusal}"),
        }
    }
}

/// How busy a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeLoad {
    /// Service containers.
    pub containers: u32,
    /// Modules in them.
    pub modules: u32,
    /// Packets shown to modules since the node started.
    pub packets: u64,
    /// The machine's load average over the last minute, in thousandths: processes that ran or wanted to.
    pub load_permille: u32,
    /// Memory left on the machine, in KiB.
    pub memory_free_kib: u64,
    /// Processors that the node may use, by which the load average is to be read; 0 if it does not say.
    #[serde(default, skip_serializing_if = "is_untold")]
    pub processors: u32,
    /// Whether the operator drains the node, so that it takes nothing new.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub maintenance: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_untold(count: &u32) -> bool {
    *count == 0
}

/// One installed module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModuleStatus {
    /// Its owner.
    pub user: UserId,
    /// Its name and version.
    pub module: ModuleRef,
    /// The digest of its package.
    pub digest: Digest,
    /// Which of its flavours runs; nothing while its package is fetched for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flavour: Option<Flavour>,
    /// What it is doing.
    pub state: ModuleState,
    /// The epoch of its last SETUP, if its requester counts them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub epoch: u64,
    /// Seconds until its lease ends, which is the longest one of its sessions.
    pub lease_s: u64,
    /// How many sessions hold it.
    #[serde(default, skip_serializing_if = "is_none")]
    pub held_by: u64,
    /// Those of them whose leases last longest, [`crate::limits::SESSIONS_SHOWN_MAX`] at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<HeldBy>,
    /// Which packets it sees: those that any of its sessions asked for.
    pub filters: Vec<WantedFilter>,
    /// Where it takes connections, at its container's addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listen: Vec<Filter>,
    /// Which connections between others it takes over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intercept: Vec<Filter>,
    /// The parts of the service that it is, the first one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<ModuleRef>,
    /// The addresses of its container; none where containers have no network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
    /// The floating addresses that the node leads to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub floating: Vec<IpAddr>,
    /// Floating addresses that another module has since a later epoch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<GivenUp>,
    /// Times that it was restarted after a failure.
    pub restarts: u32,
    /// Why it last failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Refusal>,
    /// Packets it saw, passed, dropped, modified and injected.
    #[serde(default)]
    pub packets: PacketCounts,
    /// Connections that it took; nothing if it has no part that takes any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerCounts>,
    /// Counters that the module keeps, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(epoch: &u64) -> bool {
    *epoch == 0
}

counts! {
    /// What became of the connections that one module took, since it was loaded.
    #[derive(Copy, Serialize, Deserialize, JsonSchema)]
    #[serde(default)]
    pub struct ServerCounts {
        /// Connections it took, at ports of its own and intercepted.
        connections = "connections",
        /// HTTP requests on them.
        requests = "requests",
        /// Connections and requests that were turned away because of a bound.
        refused = "refused",
        /// Requests and connections that ended with a trap, a time-out or an error of the module's.
        failed = "failed",
        /// HTTP responses with a status of 500 or above, whether the module, the node or the module's own server said so.
        errors = "errors",
        /// Bytes that came from clients and servers.
        bytes_in,
        /// Bytes that went to them.
        bytes_out,
    }
}

counts! {
    sum
    /// What became of the packets that one module saw.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct PacketCounts {
        /// Packets it saw.
        seen = "seen",
        /// Packets it passed.
        passed = "passed",
        /// Packets it dropped.
        dropped = "dropped",
        /// Packets it changed.
        modified = "modified",
        /// Packets it made.
        injected = "injected",
    }
}

/// What a module is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModuleState {
    /// Its package is being fetched.
    Fetching,
    /// It is being loaded.
    Starting,
    /// It sees packets.
    Running,
    /// Its state is on its way to another node, and it sees nothing meanwhile.
    Frozen,
    /// It failed and waits to be started again.
    BackingOff,
    /// It failed too often and is kept out.
    Quarantined,
    /// It is removed, and the node hands on what comes on the connections that it had taken over.
    Draining,
}

/// What a user may do on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyReport {
    /// Prefixes that its filters may name, as text.
    pub prefixes: Vec<String>,
    /// Ports that its filters may name, as text; empty means every port.
    pub ports: Vec<String>,
    /// The longest lease in seconds.
    pub ttl_s_max: u64,
    /// Modules at most.
    pub modules_max: u32,
    /// Memory of one module at most, in bytes.
    pub memory_bytes_max: u64,
    /// The most that a module is granted of each resource, by the names that a manifest's `needs` has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ceilings: BTreeMap<String, u64>,
    /// Connections that its container may take, as text; empty means none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listen: Vec<String>,
    /// Connections that its container may open, as text; empty means none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connect: Vec<String>,
    /// What each hour costs in which one of its modules is installed, in a unit that user and operator agreed on; nothing if the operator
    /// does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<u64>,
}
