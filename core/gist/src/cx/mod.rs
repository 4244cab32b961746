// SPDX-License-Identifier: Apache-2.0
//! What every part of the engine is given to work with, beside its own state.

mod bucket;
mod networks;
mod outbox;
mod path_mtu;
mod settings;
mod timer;

use netserv_model::Instant;
use rand::rngs::StdRng;

pub(crate) use bucket::TokenBucket;
pub(crate) use networks::{NetworkBuckets, site};
pub(crate) use outbox::Outbox;
#[cfg(test)]
pub(crate) use path_mtu::PathMtus;
pub(crate) use settings::{Settings, is_unicast};
pub(crate) use timer::{Deadline, Owner, Timers, earlier};

use crate::api::Config;

/// One call's surroundings, lent to whoever handles it.
pub(crate) struct Cx<'a> {
    pub(crate) now: Instant,
    pub(crate) settings: &'a Settings,
    pub(crate) random: &'a mut StdRng,
    pub(crate) timers: &'a mut Timers,
    pub(crate) out: &'a mut Outbox,
}

impl<'a> Cx<'a> {
    pub(crate) fn config(&self) -> &'a Config {
        self.settings.config()
    }
}
