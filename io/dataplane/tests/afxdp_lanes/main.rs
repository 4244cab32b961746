// SPDX-License-Identifier: Apache-2.0
//! The `afxdp` driver in four lanes over veth with four queues: what is said of one lane, and what only several have.
#![allow(clippy::unwrap_used, reason = "a test program")]

#[path = "../afxdp/auto.rs"]
mod auto;
#[path = "../afxdp/classify.rs"]
mod classify;
#[path = "../common/mod.rs"]
mod common;
#[path = "../afxdp/filters.rs"]
mod filters;
#[path = "../afxdp/forward.rs"]
mod forward;
#[path = "../afxdp/hang.rs"]
mod hang;
#[path = "../afxdp/hotplug.rs"]
mod hotplug;
#[path = "../afxdp/life.rs"]
mod life;
#[path = "../afxdp/paths.rs"]
mod paths;
#[path = "../afxdp/seen.rs"]
mod seen;
#[path = "../afxdp/signaling.rs"]
mod signaling;
#[path = "../afxdp/support.rs"]
mod support;

pub(crate) use support::*;

/// Lanes of each driver, and queues of each veth.
pub(crate) const LANES: usize = 4;
