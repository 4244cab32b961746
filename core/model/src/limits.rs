// SPDX-License-Identifier: Apache-2.0
//! Named bounds. Each has a test that hits it, in the crate that enforces it.

use std::time::Duration;

/// Nodes beside a path whose entries an answer has; more are counted.
pub const BESIDE_MAX: usize = 64;
/// Characters of a user's name.
pub const USER_NAME_CHARS_MAX: usize = 32;
/// Characters of a node's name.
pub const NODE_NAME_CHARS_MAX: usize = 64;
/// Characters of a domain's name.
pub const DOMAIN_NAME_CHARS_MAX: usize = 128;
/// Characters of a module's name.
pub const MODULE_NAME_CHARS_MAX: usize = 128;

/// Characters of the topic of a control message.
pub const TOPIC_CHARS_MAX: usize = 64;
/// Lines of a refusal's context.
pub const CONTEXT_LINES_MAX: usize = 16;
/// Bytes of one such line.
pub const CONTEXT_LINE_BYTES_MAX: usize = 256;
/// Bytes of all lines of a refusal's context together.
pub const CONTEXT_BYTES_MAX: usize = 1024;

/// Bytes of one header line of a signaling message (design §6).
pub const HEADER_LINE_BYTES_MAX: usize = 8 * 1024;
/// Bytes of a whole signaling message (design §6).
pub const MESSAGE_BYTES_MAX: usize = 60 * 1024;
/// Bytes of a checklist in DER: in base64, a line has room for it.
pub const CHECKLIST_BYTES_MAX: usize = 6 * 1000;
/// Headers in one signaling message.
pub const HEADERS_MAX: usize = 256;
/// Entries of a response stack; a longer path loses the entries furthest from the requester.
pub const STACK_ENTRIES_MAX: usize = 64;

/// Parts of one service.
pub const CHAIN_PARTS_MAX: usize = 16;
/// Names that a module serves by TLS in the place of their servers.
pub const TLS_NAMES_MAX: usize = 64;
/// Parts that make a chain.
pub const CHAIN_PARTS_MIN: usize = 2;
/// Filters of one module.
pub const FILTERS_PER_MODULE_MAX: usize = 16;
/// Sessions that a module's state says of, and those of all modules of a user in a response; others are counted.
pub const SESSIONS_SHOWN_MAX: usize = 16;
/// Combinations of masks that a [`FilterIndex`](crate::FilterIndex) looks up for each packet; filters that need more are
/// filed under coarser masks.
pub const FILTER_TUPLES_MAX: usize = 64;
/// Floating addresses of one module.
pub const FLOATING_PER_MODULE_MAX: usize = 4;
/// Properties of one module.
pub const PROPERTIES_PER_MODULE_MAX: usize = 64;
/// Bytes of one property's key and value together.
pub const PROPERTY_BYTES_MAX: usize = 4 * 1024;
/// Modules in one service container: one bit each in a packet descriptor.
pub const MODULES_PER_CONTAINER_MAX: usize = 64;
/// Containers on one node.
pub const CONTAINERS_MAX: usize = 1024;
/// Nonces remembered per user inside the replay window; a user over it is refused until some leave it.
pub const NONCES_PER_USER_MAX: usize = 4096;
/// Requests that one node works on at a time.
pub const REQUESTS_PENDING_MAX: usize = 256;

/// Bytes of the state of a module that moves from one node to another.
pub const STATE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How long a module may stand still whose state goes to another node.
pub const FREEZE_TIME_MAX: Duration = Duration::from_secs(60);
/// How long packets wait for a module that moves; they would be late for those who sent them, and go on unseen after that.
pub const BUFFERING_TIME_MAX: Duration = Duration::from_millis(500);
/// Bytes of a module package.
pub const PACKAGE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Bytes of one blob's unpacked form inside a package.
pub const BLOB_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Entries in a package's tar file.
pub const PACKAGE_ENTRIES_MAX: usize = 64;
/// Packets in a second that one user sends or receives by a network, unless the operator says otherwise, and at most.
pub const NETWORK_PACKETS_PER_SECOND: u64 = 200_000;
/// See [`NETWORK_PACKETS_PER_SECOND`].
pub const NETWORK_PACKETS_PER_SECOND_MAX: u64 = 10_000_000;
/// Bits in a second that one user sends or receives by a network, unless the operator says otherwise.
pub const NETWORK_BITS_PER_SECOND: u64 = 1_000_000_000;
/// The fewest bits in a second: a packet of full size takes a fifth of a second.
pub const NETWORK_BITS_PER_SECOND_MIN: u64 = 64_000;
/// The most bits in a second.
pub const NETWORK_BITS_PER_SECOND_MAX: u64 = 100_000_000_000;
/// Bytes of a DNS name, as of a node's certificate (RFC 1035 §2.3.4).
pub const DNS_NAME_BYTES_MAX: usize = 253;
/// Bytes of the file with the operator's own certificate authorities: as many as hold a system's whole list.
pub const AUTHORITIES_BYTES_MAX: u64 = 512 * 1024;
/// How long requests under way have to end when their server module is stopped or replaced.
pub const SERVER_STOP_TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes of the file of a cache.
pub const CACHE_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024;
/// Bytes of the file of a cache for each byte of its container's memory: of every 16 KiB, 20 bytes are known there, which
/// then take less than a sixth of it.
pub const CACHE_BYTES_PER_MEMORY_BYTE_MAX: u64 = 128;
/// How long a download may take in all.
pub const FETCH_TIME_MAX: Duration = Duration::from_secs(30);

/// Bytes of what a line of the audit log says of causes and of evidence, each.
pub const AUDIT_DETAIL_BYTES_MAX: usize = 512;

/// How far a request's `created` may lie from the node's clock.
pub const CLOCK_SKEW_MAX: Duration = Duration::from_secs(300);
/// The shortest lease.
pub const TTL_MIN: Duration = Duration::from_secs(1);
/// The longest lease that a node grants unless its operator says otherwise.
pub const TTL_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Bytes of a packet that fit a ring slot; longer packets are never shown to modules.
pub const PACKET_BYTES_MAX: usize = 2048 - 64;
/// Packets in one batch given to a module.
pub const BATCH_PACKETS_MAX: usize = 64;
/// Lanes of a node: packet threads, each with receive queues of its own.
pub const LANES_MAX: usize = 16;
/// Prefixes of which a change of routes tells; beyond them it tells nothing but that there was one.
pub const ROUTE_PREFIXES_MAX: usize = 64;
