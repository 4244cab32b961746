// SPDX-License-Identifier: Apache-2.0
//! Routing state (RFC 5971 §4.3): rows, what they are looked up by, and the peers that they lead to.

mod attach;
mod key;
mod lifetimes;
mod peers;
mod querier;
mod row;
mod table;

pub(crate) use attach::{attach, note_waiting, remove};
pub(crate) use key::{RouteKey, q_mode_ttl, query_target};
pub(crate) use lifetimes::set_lifetimes;
pub(crate) use querier::{Due, Echo, Phase, Querier, query_cookie};
pub(crate) use row::{NatSide, Pending, Route};
pub(crate) use table::{NewPeer, Routes};
