// SPDX-License-Identifier: Apache-2.0
//! Named bounds of a container's network.

use std::time::Duration;

/// Addresses of one container.
pub const ADDRESSES_MAX: usize = 8;
/// Floating addresses that lead to one container at a time, of all of its modules.
pub const FLOATING_MAX: usize = 64;
/// Filters that say what a container may accept, and as many that say what it may open.
pub const PERMITS_MAX: usize = 64;
/// Remote ends that a container opened by datagrams, at a time, in each version of IP. What it sends to more is dropped. TCP
/// has no such table: the kernel's own bounds on sockets hold. Nor has what comes to the ports that a container listens at.
pub const FLOWS_MAX: u32 = 16_384;
/// Remote ends on the node itself and its link that sent datagrams, at a time, in each version of IP.
pub const FLOWS_NEAR_MAX: u32 = 1024;
/// How long such a remote end is remembered that sent a datagram and got none back.
pub const FLOW_UNANSWERED: Duration = Duration::from_secs(30);
/// How long a remote end is remembered after the last datagram to it (RFC 4787 REQ-5 asks for two minutes at least).
pub const FLOW_IDLE: Duration = Duration::from_secs(180);
/// ICMP errors that a container takes in a second, and as many that it sends.
pub const ICMP_ERRORS_PER_SECOND: u64 = 1000;
/// Addresses of the node that containers are kept from, in each version of IP; those beyond it are logged and left out.
pub const NODE_ADDRESSES_MAX: usize = 1024;
/// How long a container sends or receives faster than its rate before packets are dropped for their number.
pub const RATE_BURST_TIME: Duration = Duration::from_millis(100);
/// How many bytes a container sends or receives at once: what its rate gives in this time, but at least
/// [`RATE_BURST_BYTES_MIN`], or the kernel would take large segments apart.
pub const RATE_BURST_BYTES_TIME: Duration = Duration::from_millis(10);
/// See [`RATE_BURST_BYTES_TIME`].
pub const RATE_BURST_BYTES_MIN: u64 = 128 * 1024;
/// How long packets wait for their turn on a container's link, in each direction. What would wait longer is dropped.
pub const RATE_QUEUE_TIME: Duration = Duration::from_millis(50);
/// Bytes of packets that wait there at least, which are two of the largest segments.
pub const RATE_QUEUE_BYTES_MIN: u64 = 128 * 1024;
/// Bytes of packets that wait there at most. Of the smallest packets, they take eighteen times as much of the node's memory.
pub const RATE_QUEUE_BYTES_MAX: u64 = 512 * 1024;
/// The largest packet of a container's interface, in bytes.
pub const MTU: u32 = 1500;
/// Filters by which a container intercepts connections.
pub const INTERCEPTS_MAX: usize = 64;
/// Such filters of all containers of a node: each packet that the kernel forwards may be compared with all of them.
pub const NODE_INTERCEPTS_MAX: usize = 256;
/// Such filters that each container may have although others have many: beyond these, all together have half of the node's.
pub const INTERCEPTS_EACH: usize = 4;
/// Transparent sockets that are made at a time.
pub const TRANSPARENT_SOCKETS_MAX: usize = 64;
/// What a connection of a container may have to be read, and as much to be sent, in bytes, with what the kernel adds. Once
/// all sockets take what they may together, the kernel drops what comes for any of them, and senders wait longer and longer.
pub const TCP_BUFFER_BYTES_MAX: usize = 1024 * 1024;
/// Connections that wait for a module to take them, at each listening socket; further ones have to ask again.
pub const BACKLOG: u16 = 8192;
