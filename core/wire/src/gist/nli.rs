// SPDX-License-Identifier: Apache-2.0
//! Network layer information (object 2, RFC 5971 A.3.3): who sent a message and where answers go.

use std::net::IpAddr;
use std::time::Duration;

/// Who sent a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nli {
    /// Opaque and the same on all interfaces of a node until it restarts; at most 255 bytes.
    pub peer_identity: Vec<u8>,
    /// The TTL that the packet left with, or a hop distance; 0 is unknown.
    pub ip_ttl: u8,
    /// How long the routing state lives, in whole milliseconds, at least one.
    pub validity: Duration,
    /// The sender's address on the interface that it sent from.
    pub address: IpAddr,
}
