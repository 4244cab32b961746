// SPDX-License-Identifier: Apache-2.0
//! What every part of the engine is given to work with, beside its own state.

mod bucket;
mod networks;
mod outbox;
mod path_mtu;
mod settings;
mod timer;

pub(crate) use bucket::TokenBucket;
pub(crate) use networks::{NetworkBuckets, site};
pub(crate) use outbox::Outbox;
#[cfg(test)]
pub(crate) use path_mtu::PathMtus;
pub(crate) use settings::{Settings, is_unicast};
pub(crate) use timer::{Deadline, Owner, Timers, earlier};
