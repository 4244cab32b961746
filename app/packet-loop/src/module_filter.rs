// SPDX-License-Identifier: Apache-2.0
//! The filters of modules, as the packet loop has them.

use std::net::IpAddr;
use std::num::NonZeroU32;

use netserv_model::effect::ModuleSlot;
use netserv_model::verdict::FailureMode;
use netserv_model::{Filter, Flow, ModuleRef, WorkerId};

/// An installed filter, and the module that it shows packets to.
#[derive(Clone, Debug)]
pub struct ModuleFilter {
    /// The module's worker.
    pub worker: WorkerId,
    /// The module's place.
    pub slot: ModuleSlot,
    /// The module, for people who trace packets.
    pub module: Option<ModuleRef>,
    /// Which packets.
    pub filter: Filter,
    /// What happens to them while the module cannot say.
    pub on_failure: FailureMode,
    /// Which of them wait, if they do in place of being shown.
    pub buffers: Option<Buffers>,
}

/// Which packets wait: those that neither are from or to this address, nor come by this interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// The address of the node that the module moves to, or from.
    pub other: IpAddr,
    /// The interface behind which the module sees packets.
    pub not_from: Option<NonZeroU32>,
}

impl Buffers {
    pub(crate) fn lets_by(&self, flow: &Flow, interface: u32) -> bool {
        flow.source == self.other
            || flow.destination == self.other
            || self.not_from.is_some_and(|not_from| not_from.get() == interface)
    }
}

/// Returns the bit of a module in packet descriptors.
pub(crate) fn bit(slot: ModuleSlot) -> u64 {
    1 << (slot.0 & 63)
}
