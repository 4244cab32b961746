// SPDX-License-Identifier: Apache-2.0
//! The `nfqueue` driver in four lanes: what is said of one lane, and what only several have.
#![allow(clippy::unwrap_used, reason = "a test program")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../nfqueue/packets.rs"]
mod packets;
mod queues;
#[path = "../nfqueue/support.rs"]
mod support;

pub(crate) use support::*;

/// Lanes of each driver, and queues of each veth.
pub(crate) const LANES: usize = 4;
