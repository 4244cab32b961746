// SPDX-License-Identifier: Apache-2.0
//! How a node's signaling behaves, and what its own clients ask.

use std::net::IpAddr;
use std::time::Duration;

use netserv_model::{NodeId, SessionId};
use serde::{Deserialize, Serialize};

use crate::limits;

/// How a node's signaling behaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The node's name.
    pub node: NodeId,
    /// The NSLPID of NetServ (RFC 5971 §9: 32704–32767 are for private use).
    pub nslp_id: u16,
    /// The node sends requests and runs no modules: where its controller says `not-a-node`, it has no entry.
    pub host_only: bool,
    /// The node's own addresses: a flow that goes to one ends here.
    pub own_addresses: Vec<IpAddr>,
    /// How long a request may take that does not say.
    pub timeout_default: Duration,
    /// How long a request of others may take here, whatever its envelope says.
    pub answer_time_max: Duration,
    /// How long a finished exchange, and GIST's state for it, are kept.
    pub retention: Duration,
    /// Addresses of nodes next to this one, besides those that GIST finds.
    #[serde(default)]
    pub beside: Vec<IpAddr>,
    /// Leases that are followed.
    pub leases_max: usize,
    /// What sessions of own clients are made from that name none. Without it, each start of the node has another.
    #[serde(default)]
    pub session_secret: Option<[u8; 32]>,
}

impl Config {
    /// Returns the defaults for a node of this name.
    pub fn new(node: NodeId, nslp_id: u16) -> Config {
        Config {
            node,
            nslp_id,
            host_only: false,
            own_addresses: Vec::new(),
            timeout_default: Duration::from_secs(40),
            answer_time_max: Duration::from_secs(120),
            retention: Duration::from_secs(10),
            beside: Vec::new(),
            leases_max: limits::LEASES_MAX,
            session_secret: None,
        }
    }
}

/// The name that a local caller gives its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalId(pub u64);

/// A request of one of the node's own clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalRequest {
    /// Named in the result.
    pub id: LocalId,
    /// The signed text.
    pub message: String,
    /// The flow whose path the request takes; `None` asks this node alone.
    pub path: Option<LocalPath>,
    /// The session that it belongs to; `None` is the one of its user, module and path if it installs or removes one, and else a new
    /// one.
    pub session: Option<SessionId>,
    /// How long it may take; zero means [`Config::timeout_default`].
    pub timeout: Duration,
}

/// A flow with both ends known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalPath {
    /// Where the flow comes from, usually an address of this node.
    pub source: IpAddr,
    /// Where the flow goes.
    pub destination: IpAddr,
}
