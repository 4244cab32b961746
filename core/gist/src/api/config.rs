// SPDX-License-Identifier: Apache-2.0
//! The configuration of an engine.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::peering::Peering;
use crate::limits::{self, RateLimit};

/// How an engine behaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The node's identity toward its peers: opaque, the same on all interfaces, new at each start.
    /// 1 to [`limits::PEER_IDENTITY_BYTES_MAX`] bytes.
    pub peer_identity: Vec<u8>,
    /// The NSLPs on this node, each with its value of the Router Alert Option.
    pub hosted: BTreeMap<u16, u16>,
    /// Which Queries the node becomes the peer of, for NSLPs that do not want all of theirs.
    #[serde(default)]
    pub peering: BTreeMap<u16, Peering>,
    /// The TCP port where the node accepts connections of peers.
    pub tcp_port: u16,
    /// Whether associations are protected. Fixed, so that the echo in a Confirm can be checked without keeping anything.
    pub tls: TlsPolicy,
    /// The TCP port where the node accepts connections of peers that speak TLS; of use unless `tls` is off.
    pub tls_port: u16,
    /// What becomes of a Query.
    pub policy: ResponderPolicy,
    /// The GIST hop count of messages whose NSLP gives none.
    pub hops: u8,
    /// Time to the first retransmission of a Query, T1; it doubles with each.
    pub retry_initial: Duration,
    /// How long a Query that never had an answer is retransmitted until the node counts as the last one.
    pub query_budget: Duration,
    /// How long a Query is retransmitted toward a peer that has answered before.
    pub refresh_budget: Duration,
    /// How long routing state toward this node is valid without a refresh at least, RS-validity-time.
    pub validity: Duration,
    /// Queries a second that refresh all of it: the validity grows with the rows, so that there are not more
    /// (RFC 5971 §4.4.4).
    pub refreshes_per_second: u32,
    /// How long this node keeps a connection on which it hears nothing, MA-Hold-Time.
    pub hold_time: Duration,
    /// How long the querying side keeps state without NSLP messages.
    pub inactivity: Duration,
    /// How long a connection may take to open, and an accepted one to show a valid first message.
    pub connect_timeout: Duration,
    /// How long the answer to a requested MA-Hello may take.
    pub hello_timeout: Duration,
    /// How long one secret of the responder cookie is used; it is accepted for as long again.
    pub secret_lifetime: Duration,
    /// The longest GIST message in D-mode.
    pub datagram_bytes_max: usize,
    /// Bounds datagrams that this node makes.
    pub send_rate: RateLimit,
    /// Bounds Queries that this node answers.
    pub query_rate: RateLimit,
    /// Bounds datagrams to addresses in one network (24 bits of IPv4, 64 of IPv6) that nobody has proven: those without a
    /// host keep the kernel waiting for neighbours, of which it has a bounded number.
    pub unproven_rate: RateLimit,
    /// Bounds Errors that this node sends by datagram, to addresses that anybody may have made up.
    pub error_rate: RateLimit,
    /// Whether peers are told of their errors.
    pub send_errors: bool,
    /// Rows in the routing table.
    pub routes_max: usize,
    /// Rows in the routing table that the Confirms of one site's peers can make: 24 bits of IPv4, 56 of IPv6.
    pub routes_per_site_max: usize,
    /// Messaging associations.
    pub associations_max: usize,
    /// Messaging associations that one peer can open.
    pub associations_per_peer_max: usize,
}

impl Config {
    /// Returns the defaults for a node of this identity: no NSLP, no TCP port of use.
    pub fn new(peer_identity: Vec<u8>) -> Config {
        Config {
            peer_identity,
            hosted: BTreeMap::new(),
            peering: BTreeMap::new(),
            tcp_port: limits::TCP_PORT_DEFAULT,
            tls: TlsPolicy::Off,
            tls_port: limits::TLS_PORT_DEFAULT,
            policy: ResponderPolicy::Delayed,
            hops: 32,
            retry_initial: Duration::from_millis(500),
            query_budget: Duration::from_secs(2),
            refresh_budget: Duration::from_millis(7500),
            validity: Duration::from_secs(30),
            refreshes_per_second: limits::REFRESHES_PER_SECOND,
            hold_time: Duration::from_secs(30),
            inactivity: Duration::from_secs(120),
            connect_timeout: Duration::from_secs(5),
            hello_timeout: Duration::from_secs(5),
            secret_lifetime: Duration::from_secs(300),
            datagram_bytes_max: 512,
            send_rate: RateLimit { per_second: 100_000, burst: 20_000 },
            query_rate: RateLimit { per_second: 50_000, burst: 10_000 },
            unproven_rate: RateLimit { per_second: 100, burst: 200 },
            error_rate: RateLimit { per_second: 100, burst: 100 },
            send_errors: true,
            routes_max: limits::ROUTES_MAX,
            routes_per_site_max: limits::ROUTES_MAX / 2,
            associations_max: limits::ASSOCIATIONS_MAX,
            associations_per_peer_max: limits::ASSOCIATIONS_PER_PEER_MAX,
        }
    }
}

/// Whether associations are protected by TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TlsPolicy {
    /// Never; what asks for protection is refused.
    #[default]
    Off,
    /// With peers that offer it, and with no others where a message asks for it.
    Offered,
    /// Always: no message goes another way, and none that came another way counts as validated.
    Required,
}

/// What a responding node does with a Query (RFC 5971 §6.4; `gist-digest` §15).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ResponderPolicy {
    /// Keeps nothing until a Confirm brings a valid responder cookie.
    #[default]
    Delayed,
    /// Keeps state for a Query that wants no connection, without any Confirm. Only for walled gardens: a forged Query
    /// then makes state.
    Immediate,
}
