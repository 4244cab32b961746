// SPDX-License-Identifier: Apache-2.0
//! NetServ signaling on GIST's service interface, without I/O.
//!
//! A request travels downstream, node by node, while each node's controller works on it; the response comes back with
//! one entry per node. After any `handle_*`, drain [`Nslp::poll_api_call`], [`Nslp::poll_request`] and
//! [`Nslp::poll_result`], [`Nslp::poll_withdrawal`] and [`Nslp::poll_notify`], then arm a timer for [`Nslp::poll_timeout`]. An early [`Nslp::handle_timeout`] does nothing.
//!
//! An *exchange* is one request on this node, named by session and nonce: it is *pending* until this node has answered,
//! then *finished* and kept for [`Config::retention`], so that a duplicate gets the same answer and never reaches the
//! controller twice.
//!
//! # How long a node waits
//! The signed text must not change on the way, so what is left of the time travels in an unsigned envelope in front of it.
//! A node answers within the time that the envelope says, or [`Config::timeout_default`] if there is none, and at the
//! latest after [`Config::answer_time_max`]. It sends the request on with [`limits::HOP_TIME`] less than it has left, or
//! with half of it if that is more, so each node gives up before the one upstream of it, who still hears what is known.
//! Where less than [`limits::BUDGET_MIN`] would be left, a node answers for itself and says that the stack is incomplete.
//! If a handshake takes longer than `HOP_TIME` and a node further on is silent, the stack ends a node too early, but says
//! that it is incomplete.
//!
//! The GIST hop count goes on as it came: it bounds loops. A node that gets a request with no hop left does not send it on.
//!
//! # What is asked of GIST
//! Requests and responses travel reliably. When the last exchange and the last lease of a session and flow are gone, the state
//! downstream is given up (`SetStateLifetime` 0); until then the next request of the session needs no handshake.
//! State upstream is the querying peer's, and ends when that peer refreshes it no more.
//!
//! # How a path is followed
//! What a SETUP installed here or further on is a *lease* of this node until it ends, is removed, or its path leads
//! elsewhere. GIST keeps and refreshes the state downstream for as long. When GIST says that the next node is another one,
//! or that there is none any more, the node sends the SETUP on again, as it came; who has it answers with what is left of
//! its lease. Once all nodes up to the end of the path have answered, a TEAR goes to the node that was the next before,
//! which ends the lease there and passes it on. A node after which there is none looks for one every
//! [`limits::LOOK_INTERVAL`]. What changed goes upstream as a NOTIFY, to whoever sent the SETUP.
//!
//! # For whom a request is
//! A request may be for some places, names or capabilities only. The envelope says how many nodes it has passed, so a node
//! knows whether it is the first one. Whether it is the last one is known when those further on have answered: until then
//! its controller is not asked. A node after which nobody answered is the last one, whether its stack is proven to be whole or
//! not. Where a request is for others, the controller only says whether its user is known; then the node follows the path of
//! a SETUP all the same. A module leaves a node that is not the last one any more once a node further on has it, and one that is
//! not the first one any more once the requester's host has left it by TEAR.
//!
//! # The way back
//! A request may ask the last node to send it back (`trigger: return`): as its user signed it, in the session whose bits are
//! all the other way round, on a flow from that node to the source of the first flow. What the nodes there say comes with the
//! answer. It is sent only where the first node saw that the flow's source is the requester's own host, which the envelope
//! says (`may-return`), and a peer outside of the domain is believed only about itself; once for a session and nonce, and
//! [`limits::RETURNS_BURST_MAX`] times a second for each source. The way back of a way
//! back is the first session again, so nothing goes to and fro. A node on both ways says on the second what it did on the
//! first. The last node follows the way back of a SETUP until the lease ends there.
//!
//! # Nodes beside the path
//! A request with `off-path` goes, once the path's own nodes have answered, from the first of them, the last one or each to its
//! neighbours: peers that GIST found within [`limits::NEIGHBOUR_TIME`], and configured ones. Each gets it on a flow from this node's
//! address to its own, in an envelope that says how many hops and messages are left; it answers for itself and for those that it
//! sent the request to. Who has it already says so. All take part in the lease as long as it runs, and nothing follows them.
//!
//! A request whose connection broke is sent again, at most [`limits::RESENDS_MAX`] times: the next node takes the
//! second for a duplicate.
#![forbid(unsafe_code)]

mod assembly;
mod burst;
mod config;
mod counters;
mod exchange;
mod leases;
pub mod limits;
mod neighbourhood;
mod nslp;
mod targeting;

pub use config::{Config, LocalId, LocalPath, LocalRequest};
pub use counters::{Counters, StateCounts};
pub use nslp::{Nslp, Withdrawal};

#[cfg(test)]
mod tests;
