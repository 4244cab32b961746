// SPDX-License-Identifier: Apache-2.0
//! Everything that a node wants.

use netserv_gist::{AssociationId, Disposition, Transmit};
use netserv_model::Refusal;
use netserv_model::api::RequestResult;
use netserv_model::application::ApplicationEvent;
use netserv_model::effect::{Effect, EffectId, Late, Notice};

use crate::applications::ClientId;
use crate::input::{CallId, Token};

/// One output of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Send something to a signaling peer, or open or close a connection.
    Send(Transmit),
    /// A connection that was accepted belongs to an association.
    Attach(Token, AssociationId),
    /// What becomes of an intercepted datagram.
    Release(Token, Disposition),
    /// Change the machine, or look at it.
    Do(Effect),
    /// Nobody waits for an effect any more.
    Abandon(EffectId),
    /// The answer to a client's request.
    Reply(CallId, Box<Result<RequestResult, Refusal>>),
    /// The counters are as fresh as they get: the call can be answered from [`Node::view`](crate::Node::view).
    Fresh(CallId),
    /// A program that is an NSLP is to be told something.
    Application(ClientId, ApplicationEvent),
    /// A policy is in force, but for what running containers are held to only from their next start.
    Applied(CallId, Vec<Late>),
    /// People are to be told.
    Notice(Notice),
    /// What the node has to keep is stored, and nothing that it began is under way, or that took too long: it wants
    /// nothing more.
    Stopped,
}
