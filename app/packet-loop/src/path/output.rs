// SPDX-License-Identifier: Apache-2.0
//! What a container gives back.

use ipnet::IpNet;
use netserv_model::effect::ModuleSlot;
use netserv_wire::container::ring::Answer;

use crate::workers::WorkerSlot;

/// What a container answered for a packet.
pub(super) struct Answered<'a> {
    pub(super) cookie: u64,
    pub(super) answer: Answer,
    /// The module that decided.
    pub(super) module: Option<ModuleSlot>,
    /// What the packet was changed to.
    pub(super) bytes: &'a [u8],
    /// The prefixes of the container's user.
    pub(super) prefixes: &'a [IpNet],
}

/// A packet that a module made.
pub(super) struct Injected<'a> {
    /// The worker that the module is in.
    pub(super) maker: WorkerSlot,
    pub(super) module: Option<ModuleSlot>,
    pub(super) bytes: &'a [u8],
    /// The prefixes of the module's user.
    pub(super) prefixes: &'a [IpNet],
}
