// SPDX-License-Identifier: Apache-2.0
//! Requests on this node, each from its arrival until it is forgotten, and what is sent for them.

mod answer;
mod arrival;
mod copies;
mod datagrams;
mod exchange;
mod paths;
mod reply;
mod retransmissions;
mod sending;
mod shares;
mod table;
mod targeting;

pub(crate) use answer::{refused, result};
pub(crate) use arrival::{Arrival, Requester};
pub(crate) use datagrams::{due_copy, turn_to_datagrams};
pub(crate) use exchange::{Beyond, Exchange, Own, Returning, budget_of, longest_lease};
pub(crate) use reply::{anonymous, answer_exchange, answer_seen, refuse};
pub(crate) use sending::send_request;
pub(crate) use shares::{Room, room_for};
pub(crate) use table::Exchanges;
pub(crate) use targeting::{Place, misdirected, not_last};
