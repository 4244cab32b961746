// SPDX-License-Identifier: Apache-2.0
//! What is to be done, what came of it, and what is to be kept.

use std::net::IpAddr;
use std::time::Duration;

use netserv_model::{NodeId, SessionId};

use crate::RuleId;
use crate::candidates::Candidate;
use crate::deployment::{Deployment, DeploymentId, Node};
use crate::moves::{MoveEnd, Moving};

/// Names a wish, by which it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A request that is to be sent, and answered by [`Placement::answered`] whatever comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Ask which nodes are on the way to a client; answered by [`Answer::Way`].
    Probe {
        /// Its name.
        ticket: Ticket,
        /// Whose clients.
        rule: RuleId,
        /// The client.
        client: IpAddr,
    },
    /// Ask the nodes on the way to a client how they are, for a rule whose module moves; answered by [`Answer::Around`].
    Look {
        /// Its name.
        ticket: Ticket,
        /// Whose clients.
        rule: RuleId,
        /// The client.
        client: IpAddr,
    },
    /// Move the module of a rule, or go on with that; answered by [`Answer::Move`].
    Move {
        /// Its name.
        ticket: Ticket,
        /// The deployment.
        deployment: DeploymentId,
        /// Whose module.
        rule: RuleId,
        /// The client for which the old node has it.
        client: IpAddr,
        /// The old node,
        from: NodeId,
        /// and its address, if that is known.
        from_address: Option<IpAddr>,
        /// Where it goes.
        moving: Moving,
    },
    /// Install the rule's module on the way to a client, or renew its lease; answered by [`Answer::Done`].
    Setup {
        /// Its name.
        ticket: Ticket,
        /// The deployment.
        deployment: DeploymentId,
        /// Whose module.
        rule: RuleId,
        /// The client.
        client: IpAddr,
        /// The address of the only node that it is for, if that is known: the way there is to be taken, in no session.
        address: Option<IpAddr>,
        /// The session to go on with.
        session: Option<SessionId>,
        /// The last node of the path, to which floating addresses lead,
        edge: NodeId,
        /// in this epoch.
        epoch: u64,
    },
    /// Remove the rule's module from there; answered by [`Answer::Removed`].
    Remove {
        /// Its name.
        ticket: Ticket,
        /// The deployment.
        deployment: DeploymentId,
        /// Whose module.
        rule: RuleId,
        /// The client.
        client: IpAddr,
        /// Addresses of nodes that may have it, and be beside the way to the client.
        addresses: Vec<IpAddr>,
        /// The session to go on with.
        session: Option<SessionId>,
    },
}

/// What came of a wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The nodes on the way, nearest to the provider first.
    Way(Vec<NodeId>),
    /// The module runs there.
    Done {
        /// The session that it belongs to.
        session: SessionId,
        /// The nodes that have it, nearest to the provider first.
        nodes: Vec<Node>,
        /// The last node on the way, whether it has it or not.
        edge: Option<NodeId>,
        /// The address of the last of them, as the node before it knows it.
        address: Option<IpAddr>,
        /// The least lease that one of them granted: a node that is drained grants what is left of the last one.
        lease: Duration,
    },
    /// How nodes on a way are, the best for the module first.
    Around(Vec<Candidate>),
    /// What came of a move.
    Move(MoveEnd),
    /// It is gone.
    Removed,
    /// It failed, or was not answered.
    Failed,
}

/// What is to be kept for the time after a restart, before the wishes that come after it are carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A deployment is new or another.
    Put(DeploymentId, Box<Deployment>),
    /// There is none any more.
    Forget(DeploymentId),
}
