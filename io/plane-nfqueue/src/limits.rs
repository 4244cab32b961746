// SPDX-License-Identifier: Apache-2.0
//! Named bounds of the driver. Each has a test that hits it.

pub use netserv_plane::limits::{BATCH_PACKETS_MAX, LANES_MAX, SLOT_BYTES};

/// Filters that nf_tables takes in one change where there are more: it tells the place of each rule in one buffer.
pub const CHANGES_AT_A_TIME: usize = 64;
/// Packets of a netfilter queue, from the oldest undecided one to the youngest; a packet that waits longer is decided
/// by the driver.
pub const WINDOW_PACKETS_MAX: usize = 65_536;
/// Netfilter queue numbers that are tried, from the configured one on.
pub const QUEUE_NUMBERS_TRIED: u16 = 64;
