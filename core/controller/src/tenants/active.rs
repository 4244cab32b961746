// SPDX-License-Identifier: Apache-2.0
//! An installed module.

use std::net::IpAddr;

use netserv_model::effect::{EffectId, InstalledRecord, ModuleSlot};
use netserv_model::manifest::{Drain, Manifest};
use netserv_model::request::ModuleState;
use netserv_model::{Filter, Flavour, Instant, Refusal};

use crate::cx::request::Origin;
use crate::tenants::backoff::Backoff;
use crate::tenants::inbox::Control;
use crate::tenants::operation::Composition;
use crate::tenants::rule::{ModuleRule, RuleKind};
use crate::tenants::session::Session;

/// An installed module.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) record: InstalledRecord,
    /// The sessions that hold it, the one of the last SETUP last; the record has them, too.
    pub(crate) sessions: Vec<Session>,
    /// When the last of their leases ends.
    pub(crate) lease_end: Instant,
    /// Nothing until the package was had again after a restart of the node.
    pub(crate) manifest: Option<Manifest>,
    /// The connections that the manifest in the package says it takes over; those of `manifest` are what sessions made of them.
    pub(crate) declared: Vec<Filter>,
    pub(crate) rules: Vec<ModuleRule>,
    /// Kept while the module is down, so that its filters keep their meaning.
    pub(crate) slot: Option<ModuleSlot>,
    /// What a service is made of, once that is known.
    pub(crate) composition: Option<Composition>,
    pub(crate) run: Run,
    /// Whether it sees nothing, since its state is on its way to another node.
    pub(crate) is_frozen: bool,
    pub(crate) backoff: Backoff,
    pub(crate) restarts: u32,
    /// Whether its floating addresses lead to the container: from the first time that it runs.
    pub(crate) holds_floating: bool,
    /// Its control messages.
    pub(crate) control: Control,
    pub(crate) last_failure: Option<Refusal>,
}

impl Active {
    /// Returns where the module has its place.
    pub(crate) fn place(&self) -> Option<(Flavour, ModuleSlot)> {
        self.record.flavour.zip(self.slot)
    }

    /// Returns what is said of it.
    pub(crate) fn state(&self) -> ModuleState {
        if self.run == Run::Running && self.is_frozen { ModuleState::Frozen } else { self.run.state() }
    }

    /// Returns the request that the module's lease is from.
    pub(crate) fn origin(&self) -> Origin {
        Origin { session: self.record.session, nonce: self.record.nonce, wish: self.record.wish }
    }

    /// Returns what `self` means to the module in a container with these addresses.
    pub(crate) fn addresses(&self, own: &[IpAddr]) -> Vec<IpAddr> {
        [own, &self.record.floating].concat()
    }

    /// Returns the least epoch in which the node takes the module once it is gone: none in which another one has an address of
    /// it.
    pub(crate) fn epoch_min(&self) -> u64 {
        let lost = self.record.given_up.iter().map(|lost| lost.epoch.saturating_add(1)).max();
        self.record.epoch.max(lost.unwrap_or(0))
    }
}

/// What an installed module is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// Its package is being had again.
    Fetching(EffectId),
    /// It waits for its worker.
    Waiting,
    /// It is being loaded.
    Loading,
    /// It sees packets.
    Running,
    /// It failed and waits.
    BackingOff,
    /// It failed too often and waits long.
    Quarantined,
}

impl Run {
    /// Returns whether the worker holds the module, or is about to.
    pub(crate) fn in_worker(self) -> bool {
        matches!(self, Run::Loading | Run::Running)
    }

    /// Returns what is said of it.
    pub(crate) fn state(self) -> ModuleState {
        match self {
            Run::Fetching(_) => ModuleState::Fetching,
            Run::Waiting | Run::Loading => ModuleState::Starting,
            Run::Running => ModuleState::Running,
            Run::BackingOff => ModuleState::BackingOff,
            Run::Quarantined => ModuleState::Quarantined,
        }
    }
}

/// Returns whether connections of a module go on when it goes.
pub(crate) fn can_drain(active: &Active) -> bool {
    let goes_on = active.manifest.as_ref().is_some_and(|manifest| manifest.drain() != Drain::Close);
    let takes = active.rules.iter().any(|rule| rule.kind == RuleKind::Intercept && !rule.ids.is_empty());
    goes_on && takes && active.run == Run::Running && active.place().is_some()
}
