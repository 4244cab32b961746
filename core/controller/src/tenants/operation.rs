// SPDX-License-Identifier: Apache-2.0
//! A SETUP under way, and how far it is.

use std::collections::BTreeSet;

use netserv_model::effect::{EffectId, ModuleSlot};
use netserv_model::manifest::Manifest;
use netserv_model::request::Setup;
use netserv_model::{Digest, Filter, Flavour, ModuleRef, Refusal};

use crate::cx::request::{Origin, PendingAnswer};
use crate::tenants::rule::ModuleRule;

/// A SETUP under way.
#[derive(Debug)]
pub(crate) struct Operation {
    /// Nothing if nobody asked: a service is composed anew.
    pub(crate) ticket: Option<PendingAnswer>,
    pub(crate) origin: Origin,
    pub(crate) setup: Setup,
    pub(crate) stage: Stage,
}

impl Operation {
    /// Returns whether it only makes ready, and all but its worker is.
    pub(crate) fn only_waits(&self) -> bool {
        self.setup.prepare && matches!(self.stage, Stage::Waiting(_))
    }
}

/// How far a SETUP is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Its package is being fetched.
    Fetching(EffectId),
    /// It is a service, whose parts are being composed.
    Composing(EffectId, Candidate),
    /// It waits for its worker.
    Waiting(Candidate),
    /// It is being loaded.
    Loading(Candidate),
    /// It is loaded, and its rules are being put in the place of its predecessor's.
    Settling(Candidate, Settling),
    /// It is for what is installed, and its session's filters are being added.
    Joining(Joining),
}

impl Stage {
    /// Returns the module that is to become active, once its package is there.
    pub(crate) fn candidate(&self) -> Option<&Candidate> {
        match self {
            Stage::Fetching(_) | Stage::Joining(_) => None,
            Stage::Composing(_, candidate)
            | Stage::Waiting(candidate)
            | Stage::Loading(candidate)
            | Stage::Settling(candidate, _) => Some(candidate),
        }
    }
}

/// How far the filters of a session are that joins those which hold a module.
#[derive(Debug)]
pub(crate) struct Joining {
    pub(crate) change: Change,
    /// The rules that are not there yet.
    pub(crate) rules: Vec<ModuleRule>,
    /// The change by which they come.
    pub(crate) effect: Option<EffectId>,
}

/// How far the rules of a loaded module are: first those of connections, then its floating addresses, then the rules of packets
/// in one step.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    /// Rules of connections that are being installed.
    pub(crate) intercepts: BTreeSet<EffectId>,
    /// Whether its floating addresses lead to the container, or are about to.
    pub(crate) floats: bool,
    /// What has them lead there.
    pub(crate) floating: Option<EffectId>,
    /// The change by which its rules of packets come and its predecessor's go.
    pub(crate) change: Option<EffectId>,
    /// Why that change is to be taken back once it is made.
    pub(crate) failed: Option<Failed>,
}

/// Why a module that is about to be in force does not get there.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) refusal: Refusal,
    /// Whether its worker still holds it.
    pub(crate) loaded: bool,
}

/// What a service is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Composition {
    /// Its parts in order, services among them replaced by theirs.
    pub(crate) parts: Vec<ModuleRef>,
    /// Packages of those whose components are composed, the outermost first.
    pub(crate) servers: Vec<Digest>,
}

/// A module that is to become active.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) manifest: Manifest,
    /// The connections that the manifest in the package says it takes over.
    pub(crate) declared: Vec<Filter>,
    pub(crate) flavour: Flavour,
    pub(crate) rules: Vec<ModuleRule>,
    pub(crate) slot: Option<ModuleSlot>,
    /// What a service is made of.
    pub(crate) composition: Option<Composition>,
}

impl Candidate {
    /// Returns where the module has its place.
    pub(crate) fn place(&self) -> Option<(Flavour, ModuleSlot)> {
        self.slot.map(|slot| (self.flavour, slot))
    }
}

/// What a SETUP for an installed module changes there, if it is for the same package and properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The lease of its session only.
    Lease,
    /// The filters that its session asks for.
    Filters,
    /// Nothing of what there is: its session is another one.
    Joins,
    /// The module has to be loaded anew.
    Reload,
}
