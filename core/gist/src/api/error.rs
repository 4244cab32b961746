// SPDX-License-Identifier: Apache-2.0
//! Why a call of an NSLP is refused at once.

use super::ids::{QueryId, SiiHandle};
use crate::limits;

/// A call that the engine does not take. No status follows for its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// The NSLP is not hosted here.
    #[error("NSLP {0} is not hosted on this node")]
    UnknownNslp(u16),
    /// The payload does not fit one NSLP-Data object.
    #[error("the payload has {bytes} bytes, more than the {max} that one GIST message carries")]
    TooLarge {
        /// Bytes given.
        bytes: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// A hop count of zero.
    #[error("a message with no hop left cannot be sent")]
    NoHops,
    /// Secure transfer was asked for, and this node has no TLS.
    #[error("secure transfer needs TLS, which this node does not have")]
    SecureUnsupported,
    /// The node's address and the flow are of two IP versions.
    #[error("the node's address and the flow are of different IP versions")]
    VersionMismatch,
    /// The node itself is where the message would go.
    #[error("this node is the destination of the message")]
    OwnDestination,
    /// The node has no address toward the flow's destination that others reach.
    #[error("this node has no address toward the flow's destination that others reach")]
    NoAddress,
    /// There is no state upstream, and none can be made from here.
    #[error("there is no peer in this direction, and no Query can be sent this way")]
    NoRoute,
    /// The handle names no known peer.
    #[error("{0:?} names no known peer")]
    UnknownPeer(SiiHandle),
    /// Too many messages wait.
    #[error("too many messages wait for this route or in all")]
    QueueFull,
    /// The routing table is full.
    #[error("the routing table is full")]
    TableFull,
    /// The message does not wait: it was sent, or has its status already.
    #[error("no such message waits to be sent")]
    NotWaiting,
    /// Nobody waits for a decision on this Query: it was made already, or its time is over.
    #[error("{0:?} waits for no decision of this NSLP")]
    UnknownQuery(QueryId),
    /// Too many rules.
    #[error("{0} rules about peers are more than the {max} that there may be", max = limits::PEER_RULES_MAX)]
    TooManyRules(usize),
}

/// An NSLP that is not hosted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Its NSLPID has somebody already.
    #[error("NSLP {0} is hosted on this node already")]
    Taken(u16),
    /// Too many came.
    #[error("the node hosts as many further NSLPs as it may")]
    Full,
}
