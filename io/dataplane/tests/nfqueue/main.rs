// SPDX-License-Identifier: Apache-2.0
//! The `nfqueue` driver on real packets: a sender, a router with the driver, a receiver.
#![allow(clippy::unwrap_used, reason = "a test program")]

#[path = "../common/mod.rs"]
mod common;
mod packets;
mod rights;
mod support;

pub(crate) use support::*;

/// Lanes of each driver, and queues of each veth.
pub(crate) const LANES: usize = 1;
