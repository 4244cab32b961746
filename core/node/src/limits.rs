// SPDX-License-Identifier: Apache-2.0
//! Bounds of the node's own; those of the engines are in their crates.

/// Steps of one drain. What is left is done at once after the next look at other inputs, so that the engines cannot
/// keep the shell to themselves.
pub const DRAIN_STEPS_MAX: usize = 10_000;
/// How long a node that is to stop waits for what it began, and for what was used to be stored.
pub const STOP_WAIT: std::time::Duration = std::time::Duration::from_secs(3);
/// Calls and requests that wait for fresh counters at a time; further calls get the counters as they are.
pub const FRESH_WAITING_MAX: usize = 1024;
/// Destinations whose own address is known; over it, all are forgotten and asked for again.
pub const ROUTES_KNOWN_MAX: usize = 4096;
/// Calls of all programs that wait for the node's own address toward a destination; further ones are refused. They are among
/// [`ROUTE_WAITING_MAX`], so that NetServ's own signaling always finds room.
pub const APPLICATION_ROUTE_WAITING_MAX: usize = 1024;
/// Messages of one program without a status; further ones are refused.
pub const APPLICATION_MESSAGES_MAX: usize = 256;
/// Bytes of those: of as many programs as there may be, half of what may wait in GIST.
pub const APPLICATION_BYTES_MAX: usize =
    netserv_gist::limits::PENDING_BYTES_MAX / (2 * netserv_gist::limits::GUESTS_MAX);
/// Peers that one program has a name for; one more, and the one unused for longest loses it.
pub const APPLICATION_PEERS_MAX: usize = 1024;
/// How long a message of a program may wait for a handshake or a connection.
pub const APPLICATION_TIMEOUT_MAX: std::time::Duration = std::time::Duration::from_secs(3600);
/// Characters of a program's name for itself.
pub const APPLICATION_NAME_CHARS_MAX: usize = 32;
/// Messages and requests that wait for the node's own address toward a destination; further ones have no route.
pub const ROUTE_WAITING_MAX: usize = 4096;

/// Clients that wait for the answer to a request: those of as many exchanges as there may be.
pub const POSTS_MAX: usize = netserv_nslp::limits::PENDING_MAX * netserv_nslp::limits::WAITERS_MAX;
