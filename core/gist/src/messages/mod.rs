// SPDX-License-Identifier: Apache-2.0
//! Messages on their way in and out: where they came, what is wrong with them, what they have for NSLPs.

mod arrival;
mod bypass;
mod data;
mod delivery;
mod errors;
mod flush;
mod sending;

pub(crate) use arrival::{Arrival, UPSTREAM_TTL_MIN, Via, source_fits};
pub(crate) use bypass::{UNCHANGED, bypass};
pub(crate) use data::{StatelessLimiter, on_data};
pub(crate) use delivery::{Delivery, Stateless, deliver_on_route, deliver_stateless};
pub(crate) use errors::{Fault, MRI, STACK_CONFIGURATION, STACK_PROPOSAL, on_malformed, send_error};
pub(crate) use flush::{expire_pending, flush, send_to_peer, written};
pub(crate) use sending::{Needs, Outgoing, abort, is_reached, send};
