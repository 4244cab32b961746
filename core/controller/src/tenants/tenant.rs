// SPDX-License-Identifier: Apache-2.0
//! One user with a container, and one module of the user.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use netserv_model::request::Setup;
use netserv_model::{Flavour, ModuleName, Nonce, SessionId};

use crate::cx::request::{Origin, PendingAnswer};
use crate::tenants::active::Active;
use crate::tenants::operation::{Operation, Stage};
use crate::tenants::worker::Worker;

/// One user with a container or on the way to one.
#[derive(Debug, Default)]
pub(crate) struct Tenant {
    /// Those that are there or on the way, by what they run.
    pub(crate) workers: BTreeMap<Flavour, Worker>,
    pub(crate) modules: BTreeMap<ModuleName, Entry>,
    /// The addresses that the container had when its last worker was ready.
    pub(crate) addresses: Vec<IpAddr>,
    /// The floating addresses that were last asked to lead to the container.
    pub(crate) floating: BTreeSet<IpAddr>,
    /// Whether that was refused, so that others may lead there.
    pub(crate) floating_unknown: bool,
}

impl Tenant {
    /// Returns whether modules of a flavour are installed or being installed, may turn out to be of it, or are gone while
    /// connections of theirs go on.
    pub(crate) fn needs(&self, flavour: Flavour) -> bool {
        self.modules.values().any(|entry| {
            let installed = entry.active.as_ref().is_some_and(|active| active.record.flavour == Some(flavour));
            let asked = entry.operation.as_ref().is_some_and(|operation| match &operation.stage {
                Stage::Fetching(_) => true,
                Stage::Joining(_) => false,
                Stage::Composing(_, candidate)
                | Stage::Waiting(candidate)
                | Stage::Loading(candidate)
                | Stage::Settling(candidate, _) => candidate.flavour == flavour,
            });
            installed || asked
        }) || self.workers.get(&flavour).is_some_and(|worker| !worker.draining.is_empty())
    }

    /// Returns whether there are modules of any flavour, or connections of some that are gone.
    pub(crate) fn is_empty(&self) -> bool {
        self.modules.is_empty() && self.workers.values().all(|worker| worker.draining.is_empty())
    }
}

/// One module name of one user: what is installed, what is under way, what comes after that.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    pub(crate) active: Option<Active>,
    pub(crate) operation: Option<Operation>,
    pub(crate) waiting: VecDeque<Waiter>,
}

impl Entry {
    /// Returns whether nothing is installed, under way or waiting.
    pub(crate) fn is_empty(&self) -> bool {
        self.active.is_none() && self.operation.is_none() && self.waiting.is_empty()
    }

    /// Returns how many requests are not answered.
    pub(crate) fn requests(&self) -> usize {
        self.waiting.len() + usize::from(self.operation.as_ref().is_some_and(|operation| operation.ticket.is_some()))
    }
}

/// A request that waits for the one before it.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) ticket: PendingAnswer,
    pub(crate) origin: Origin,
    pub(crate) task: Task,
}

/// What a request that may have to wait asks for.
#[derive(Debug)]
pub(crate) enum Task {
    /// Install, refresh or replace.
    Setup(Box<Setup>),
    /// Nothing, if what is installed is from this very request.
    Repeat,
    /// Remove.
    Remove(Removal),
    /// Nothing: the REMOVE of this nonce came before.
    RemoveAgain(Nonce),
}

/// What a REMOVE takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Removal {
    pub(crate) leave: Leave,
    /// Only if the module is of an earlier epoch than this.
    pub(crate) epoch: Option<u64>,
    /// The session that lets go of it; nothing if it goes whoever holds it.
    pub(crate) session: Option<SessionId>,
}

/// How a module goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Its connections go on without it if its manifest says so.
    Drain,
    /// With its connections.
    AtOnce,
}
