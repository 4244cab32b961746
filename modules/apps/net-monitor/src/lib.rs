// SPDX-License-Identifier: Apache-2.0
//! Counts packets by source address, destination address and time to live, as the NetMonitor of the 2011 paper does.
//!
//! The counts are kept in kv state ([`kept`]), so that they outlive an upgrade of the module, and are shown as counters
//! such as `10.1.0.2 10.2.0.1 61` as far as there are enough. Property `sample=100` looks at one packet in a hundred and counts it
//! as a hundred; `netserv tell … --topic sample 100` changes that while it runs, and 0 switches
//! it off until another number comes. Topic `where` has it say on which node it runs. Its counts and its number go along when it
//! moves to another node. `modules/apps/net-monitor-live` has the same packet part, and a page beside it.

pub mod kept;
#[cfg(not(target_os = "wasi"))]
mod packets;

#[cfg(not(target_os = "wasi"))]
pub use packets::NetMonitor;
