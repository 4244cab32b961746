// SPDX-License-Identifier: Apache-2.0
//! Counts packets by source, destination and time to live, and shows them on a page as they pass: a module of both roles.
//!
//! The packet part is that of `net-monitor`. It keeps what it counts in kv state, and tells the server part each second that it did.
//! A program in the server part makes events of that, for all who have the page open; each request reads the same state.

#[cfg(target_os = "wasi")]
mod feed;
pub mod json;
pub mod limits;
#[cfg(target_os = "wasi")]
mod page;
pub mod table;

/// The packet part.
#[cfg(not(target_os = "wasi"))]
pub use net_monitor::NetMonitor;
