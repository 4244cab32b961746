// SPDX-License-Identifier: Apache-2.0
//! Named bounds of a container's network.

use std::time::Duration;

/// Addresses of one container.
pub const ADDRESSES_MAX: usize = 8;
/// Filters that say what a container may accept, and as many that say what it may open.
pub const PERMITS_MAX: usize = 64;
/// Remote ends with which a container exchanges datagrams at a time, in each version of IP. What more of them send or
/// are sent is dropped. TCP has no such table: the kernel's own bounds on sockets hold.
pub const FLOWS_MAX: u32 = 16_384;
/// How long a remote end is remembered that sent a datagram and got none back.
pub const FLOW_UNANSWERED: Duration = Duration::from_secs(30);
/// How long a remote end is remembered after the last datagram to it (RFC 4787 REQ-5 asks for two minutes at least).
pub const FLOW_IDLE: Duration = Duration::from_secs(180);
/// ICMP errors that a container takes in a second, and as many that it sends.
pub const ICMP_ERRORS_PER_SECOND: u64 = 1000;
/// Addresses of the node that containers are kept from, in each version of IP; those beyond it are logged and left out.
pub const NODE_ADDRESSES_MAX: usize = 1024;
/// The largest packet of a container's interface, in bytes.
pub const MTU: u32 = 1500;
/// How long the kernel may take to answer over netlink.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
