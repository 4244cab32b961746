// SPDX-License-Identifier: Apache-2.0
//! Modules that go to another node by rule.

use std::net::IpAddr;
use std::time::Duration;

use netserv_model::{Instant, NodeId};
use serde::{Deserialize, Serialize};

use crate::RuleId;
use crate::error::RuleError;
use crate::limits::{LOOK_EVERY_MAX, LOOKS_MAX, REST_MAX};

/// When the module of a rule goes to another node. It always does when the operator of its node drains that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moves {
    /// The load average for each processor, in thousandths, over which a node has too much to do; nothing to not go by it.
    pub load_over: Option<u32>,
    /// A node takes the module for that reason only if its own is at this or below; a node that came down to it has not too much to do.
    pub load_until: u32,
    /// Whether it goes along when the way to its clients leads by other nodes.
    pub follow: bool,
    /// Looks in a row by which a node has too much to do, or is not on the way any more: 1 to [`LOOKS_MAX`].
    pub looks: u32,
    /// How often nodes are asked: from 1 s to [`LOOK_EVERY_MAX`].
    pub every: Duration,
    /// How long a module that moved stays where it is, unless that node is drained: [`REST_MAX`] at most.
    pub rest: Duration,
}

impl Moves {
    /// Checks the bounds.
    ///
    /// # Errors
    /// Names the key that is out of them.
    pub fn check(&self) -> Result<(), RuleError> {
        let known = [
            (self.load_over.is_some_and(|over| self.load_until > over), RuleError::Load),
            (!(1..=LOOKS_MAX).contains(&self.looks), RuleError::Looks),
            (self.every < Duration::from_secs(1) || self.every > LOOK_EVERY_MAX, RuleError::Every),
            (self.rest > REST_MAX, RuleError::Rest),
        ];
        known.into_iter().find(|(is_wrong, _)| *is_wrong).map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// Why a module moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The operator drains its node.
    Drain,
    /// Its node has too much to do.
    Load,
    /// The way to its clients leads by other nodes.
    Clients,
}

impl Why {
    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Why::Drain => "drain",
            Why::Load => "load",
            Why::Clients => "clients",
        }
    }
}

/// A move that began, and may have come to anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moving {
    /// The node that is to have the module,
    pub to: NodeId,
    /// and its address.
    pub address: IpAddr,
    /// The client on whose way it is.
    pub client: IpAddr,
    /// Why.
    pub why: Why,
    /// Whether it was tried: what a try came to is not known after a restart.
    pub tried: bool,
}

/// What came of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveEnd {
    /// The new node alone has the module.
    Moved {
        /// In this epoch.
        epoch: u64,
    },
    /// The module is where it was.
    Stays,
    /// Neither node has it.
    Gone,
    /// It is not known which of them has it: the same move finds out.
    Unknown {
        /// Whether one of them may have a new lease by this try.
        renewed: bool,
    },
}

/// A move that was, or is under way, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveRecord {
    /// Whose module.
    pub rule: RuleId,
    /// The node that had it.
    pub from: NodeId,
    /// The node that was to have it.
    pub to: NodeId,
    /// Why.
    pub why: Why,
    /// When it began, or went on after a restart.
    pub begun: Instant,
    /// What came of it; nothing while that is not known.
    pub ended: Option<Ended>,
}

/// How a move ended, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The module is on the other node.
    Moved,
    /// It is where it was.
    Stayed,
    /// It is not known to be anywhere: it went, or was removed.
    Lost,
}

impl Ended {
    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Ended::Moved => "moved",
            Ended::Stayed => "stayed",
            Ended::Lost => "lost",
        }
    }
}
