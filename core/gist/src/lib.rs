// SPDX-License-Identifier: Apache-2.0
//! A GIST engine (RFC 5971) without I/O: bytes, calls and time go in, bytes, events and a deadline come out.
//!
//! After any `handle_*`, drain [`Engine::poll_transmit`], then [`Engine::poll_event`] and [`Engine::poll_release`], then
//! arm a timer for [`Engine::poll_timeout`]. An early [`Engine::handle_timeout`] does nothing. Malformed bytes are counted and become
//! [`Event::Malformed`]; they are never an error of the call. A run is a function of the seed and of what was handed in.
//!
//! A *row* of the routing table (RFC 5971 §4.3) is keyed by MRI with direction, session and NSLP, and leads to the peer
//! in that direction. This node is the *querier* of rows that its own Queries made, and the *responder* of rows that a
//! peer's Confirm made. An *association* (MA) is one TCP connection with a peer, with TLS
//! or without, shared by rows.
#![forbid(unsafe_code)]

mod api;
mod associations;
mod connections;
mod context;
mod cookie;
mod delivery;
mod engine;
mod errors;
mod guests;
mod icmp;
pub mod limits;
mod peering;
mod peers;
mod querier;
mod responder;
mod routing;
mod sending;
#[cfg(test)]
mod tests;

pub use api::{
    ApiCall, ApiError, AssociationId, Audience, Carriage, Channel, Config, Counter, Counters, Datagram, Disposition,
    Event, FailReason, FlowRule, FlowScope, HostError, IcmpError, IcmpKind, InterfaceId, MessageHandle, Mode,
    NoPeerReason, Notification, PeerChoice, PeerRule, Peering, Prefix, Provenance, QueryDecision, QueryId,
    ResponderPolicy, RouteStatus, SendOptions, SendStatus, SiiHandle, StateCounts, StateUse, TlsPolicy,
    TransferAttributes, Transmit,
};
pub use engine::Engine;
pub use limits::RateLimit;
