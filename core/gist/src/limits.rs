// SPDX-License-Identifier: Apache-2.0
//! Named bounds of the engine, each with a test in `tests/limits.rs` that hits it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A token bucket's size and speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// Tokens per second.
    pub per_second: u32,
    /// Tokens that can be saved up.
    pub burst: u32,
}

/// Bytes of one NSLP payload: an object's length field has 12 bits and counts words (RFC 5971 appendix A.2).
pub const DATA_BYTES_MAX: usize = netserv_wire::gist::limits::NSLP_DATA_BYTES_MAX;
/// Bytes of an NSLP payload that go in a datagram over both IP versions, from a node whose identity has 16 bytes, with the
/// default of [`Config::datagram_bytes_max`](crate::Config::datagram_bytes_max).
pub const DATAGRAM_DATA_BYTES_MAX: usize = 372;
/// Bytes of what an NSLP says in a handshake of this node: whoever gets it has not proven itself, and gets little.
pub const HANDSHAKE_DATA_BYTES_MAX: usize = 128;
/// Bytes of a peer identity: its length field has 8 bits.
pub const PEER_IDENTITY_BYTES_MAX: usize = 255;
/// Bytes of a peer's responder cookie that are given back to it.
pub const COOKIE_BYTES_MAX: usize = 256;
/// Profiles of a peer's stack proposal that are looked at and given back to it.
pub const STACK_PROFILES_MAX: usize = 16;
/// Bytes of a NAT traversal object that a Query brings and its Response gives back.
pub const NAT_TRAVERSAL_BYTES_MAX: usize = 256;
/// NATs that a Query may have passed.
pub const NATS_MAX: usize = 8;
/// Addresses whose paths are known to take shorter packets than usual; one more pushes out the oldest.
pub const PATH_MTUS_MAX: usize = 1024;
/// How long that is remembered (RFC 8201 §4).
pub const PATH_MTU_TIME: Duration = Duration::from_secs(600);
/// The shortest length that is believed over IPv4 (RFC 791).
pub const PATH_MTU_V4_MIN: u16 = 68;
/// The shortest length that is believed over IPv6 (RFC 8200 §5).
pub const PATH_MTU_V6_MIN: u16 = 1280;
/// Rows of the routing table, unless configured.
pub const ROUTES_MAX: usize = 65_536;
/// NSLPs that come and go while the node runs.
pub const GUESTS_MAX: usize = 8;
/// One of them has at most this part of the routing table, one row in so many: all together have half.
pub const GUEST_ROUTES_PART: usize = 2 * GUESTS_MAX;
/// Rows of one of them, however large the table is: calls about all of them look at each.
pub const GUEST_ROUTES_MAX: usize = 4096;
/// Queries a second by which peers refresh the rows toward a node, unless configured.
pub const REFRESHES_PER_SECOND: u32 = 5_000;
/// Messaging associations, unless configured.
pub const ASSOCIATIONS_MAX: usize = 1024;
/// Messaging associations that one IPv4 address or IPv6 network (64 bits) can open, unless configured.
pub const ASSOCIATIONS_PER_PEER_MAX: usize = 16;
/// Accepted connections that no valid Confirm has proven yet; one more ends the oldest stranger's.
pub const ASSOCIATIONS_UNPROVEN_MAX: usize = 128;
/// How long a stranger's may stay so at least, however many there are.
pub const HALF_OPEN_TIME_MIN: Duration = Duration::from_millis(500);
/// Responses with a cookie that are remembered, so that who got them is no stranger; one more pushes out the oldest.
pub const INVITATIONS_MAX: usize = 1024;
/// How long they are remembered.
pub const INVITATION_TIME: Duration = Duration::from_secs(5);
/// Bytes of one connection that are handed over and not written; NSLP messages wait from there on, and other messages, which
/// are short, are lost over twice as many.
pub const STREAM_BYTES_MAX: usize = 128 * 1024;
/// Bytes that are written at most before it is said that they are.
pub const STREAM_REPORT_BYTES: usize = 32 * 1024;
/// Bytes of NSLP messages that wait for one connection that is full; more are refused.
pub const STREAM_WAITING_BYTES_MAX: usize = PENDING_BYTES_MAX / 8;
/// Peers that keep a handle although no route leads to them.
pub const PEERS_KEPT_MAX: usize = 1024;
/// Messages that wait for one route's handshake or connection.
pub const PENDING_PER_ROUTE_MAX: usize = 16;
/// Bytes of all messages that wait.
pub const PENDING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Token buckets for datagrams to unproven addresses; networks share them.
pub const NETWORK_BUCKETS: usize = 4096;
/// Data in Q-mode that comes from one network (24 bits of IPv4, 64 of IPv6); more is dropped. No handshake has proven its source.
pub const ALONE_RATE_PER_NETWORK: RateLimit = RateLimit { per_second: 100, burst: 200 };
/// Datagrams with Data that no routing state vouches for, of all networks; more are dropped.
pub const ALONE_RATE: RateLimit = RateLimit { per_second: 10_000, burst: 10_000 };
/// Copies of one Query, so cookies that one handshake can be answered with.
pub const QUERY_COPIES_MAX: usize = 8;
/// The longest time between two copies of a Query, T2 (RFC 5971 §5.3.3).
pub const RETRY_MAX: Duration = Duration::from_secs(32);
/// The shortest time that is granted where a peer gives a validity or a hold time.
pub const PEER_TIME_MIN: Duration = Duration::from_secs(1);
/// The longest time that is granted where a peer gives a validity or a hold time.
pub const PEER_TIME_MAX: Duration = Duration::from_secs(24 * 3600);
/// Connections in a row that break before a route is given up.
pub const ASSOCIATION_ATTEMPTS_MAX: u8 = 3;
/// The shortest time between two new handshakes of one route that errors or broken connections ask for.
pub const REHANDSHAKE_INTERVAL: Duration = Duration::from_secs(1);
/// Rows that look for their peer at once when their connection breaks; if there are more, all are spread over the time that
/// [`REHANDSHAKES_PER_SECOND`] of them would take.
pub const REHANDSHAKES_AT_ONCE_MAX: usize = 100;
/// See [`REHANDSHAKES_AT_ONCE_MAX`].
pub const REHANDSHAKES_PER_SECOND: u32 = 5_000;
/// Transmits that wait to be polled; datagrams over it are dropped, a connection over it is closed.
pub const TRANSMITS_MAX: usize = 16_384;
/// Events that wait to be polled; those over it are dropped.
pub const EVENTS_MAX: usize = 16_384;
/// Timers that one `handle_timeout` serves; the rest wait for the next call.
pub const TIMERS_PER_CALL_MAX: usize = 1024;
/// The TCP port of connections, unless configured.
pub const TCP_PORT_DEFAULT: u16 = 30_000;
/// The TCP port of connections with TLS, unless configured.
pub const TLS_PORT_DEFAULT: u16 = 30_001;
/// Rules of one NSLP about which Queries the node becomes the peer of.
pub const PEER_RULES_MAX: usize = 1024;
/// Queries that wait for their NSLP's decision; one more, and the oldest is decided as if the NSLP said nothing, those of
/// strangers before those of peers.
pub const HELD_QUERIES_MAX: usize = 256;
/// Of those, Queries that one peer has as a peer; more are a stranger's.
pub const HELD_QUERIES_PER_PEER_MAX: usize = 64;
/// How long they wait: less than the first retransmission takes.
pub const DECISION_TIME: Duration = Duration::from_millis(200);
