// SPDX-License-Identifier: Apache-2.0
//! Messages on their way in and out: where they came, what is wrong with them, what they have for NSLPs.

mod arrival;
mod data;
mod delivery;
mod errors;
mod flush;
mod passing;
mod sending;

pub(crate) use arrival::{Arrival, UPSTREAM_TTL_MIN, Via, source_fits};
pub(crate) use data::{Strangers, on_data};
pub(crate) use delivery::{Delivery, Stateless, deliver_on_route, deliver_stateless};
pub(crate) use errors::{Fault, MRI, STACK_CONFIGURATION, STACK_PROPOSAL, on_malformed, send_error};
pub(crate) use flush::{expire_pending, flush, send_to_peer, written};
pub(crate) use passing::{AS_IT_CAME, pass_by};
pub(crate) use sending::{Needs, Outgoing, abort, is_reached, send};
