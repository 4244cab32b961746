// SPDX-License-Identifier: Apache-2.0
//! The `afxdp` driver on real packets: a sender, a router with the driver, a receiver, over veth.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod auto;
mod beside;
mod classify;
#[path = "../common/mod.rs"]
mod common;
mod cost;
mod differential;
mod filters;
mod forward;
mod hang;
mod hotplug;
mod life;
mod paths;
mod random;
mod reference;
mod seen;
mod signaling;
mod support;
mod taken;
mod tunnels;

pub(crate) use support::*;

/// Lanes of each driver, and queues of each veth.
pub(crate) const LANES: usize = 1;
