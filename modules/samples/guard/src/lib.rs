// SPDX-License-Identifier: Apache-2.0
//! Counts who sends packets, and lets people block senders on a page: a module of both roles.
//!
//! The packet part counts packets by source and drops those of blocked sources. The server part shows the counts and takes
//! wishes. They share kv state (`seen/ADDRESS`, `blocked/ADDRESS`), and the server tells the packet part of changes by
//! messages (`block ADDRESS`, `allow ADDRESS`), so that the next packet already meets them.

#[cfg(not(target_os = "wasi"))]
pub mod packets;
#[cfg(target_os = "wasi")]
mod page;
