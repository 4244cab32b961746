// SPDX-License-Identifier: Apache-2.0
//! What other parts of the daemon count, as plain data.

use std::collections::BTreeMap;

use netserv_model::effect::ModuleSlot;
use netserv_model::request::{PacketCounts, ServerCounts};
use netserv_model::{UserId, WorkerId};
use netserv_wire::container::media::MediaOutcome;

/// What one module counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Its packets.
    pub packets: PacketCounts,
    /// Counters that it keeps, by name.
    pub counters: BTreeMap<String, u64>,
    /// Its connections, if it is a server.
    pub server: Option<ServerCounts>,
}

/// A module's worker, and its place there.
pub type Place = (WorkerId, ModuleSlot);

/// How many media jobs there are, and how they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaCounts {
    /// Jobs that ended, by user and outcome.
    pub ended: BTreeMap<(UserId, MediaOutcome), u64>,
    /// Milliseconds that ended jobs took, by user.
    pub ms: BTreeMap<UserId, u64>,
    /// Jobs that run.
    pub running: usize,
    /// Jobs that wait for their turn.
    pub waiting: usize,
}
