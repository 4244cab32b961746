// SPDX-License-Identifier: Apache-2.0
//! Packets that wait for a module which moves: where it stands still, and before then where it is to be.
//!
//! Rules for them take the place of those that show packets, and the other way round, in one change: a packet is shown or waits.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netserv_model::effect::{Buffering, EffectId, FilterId, FilterRule, ModuleSlot};
use netserv_model::limits::BUFFERING_TIME_MAX;
use netserv_model::manifest::Manifest;
use netserv_model::verdict::FailureMode;
use netserv_model::{UserId, WantedFilter, WorkerId};

use crate::Controller;
use crate::expiry::Timer;
use crate::limits::{BUFFERED_MODULES_MAX, BUFFERED_MODULES_OF_USER_MAX};
use crate::rules::new_name;
use crate::state::{Candidate, Key, ModuleRule};

/// The rules by which packets wait for a module.
#[derive(Debug, Default)]
pub(crate) struct Buffered {
    ids: Vec<FilterId>,
    /// Those that are about to go, by the change by which they do.
    ending: BTreeMap<EffectId, Vec<FilterId>>,
}

impl Controller {
    /// Returns rules by which packets wait for a module that stands still, while it goes to another node; none if too many have packets
    /// wait.
    pub(crate) fn buffer_here(&mut self, key: &Key, other: IpAddr) -> Vec<FilterRule> {
        let Some(tenant) = self.tenants.get(&key.0) else { return Vec::new() };
        let active = tenant.modules.get(&key.1).and_then(|entry| entry.active.as_ref());
        let Some((active, place)) = active.and_then(|active| active.place().map(|place| (active, place))) else {
            return Vec::new();
        };
        let Some(manifest) = active.manifest.clone() else { return Vec::new() };
        let (filters, addresses) = (ModuleRule::shown(&active.rules), active.addresses(&tenant.addresses));
        let worker = WorkerId::new(key.0.clone(), place.0);
        let what = (Buffering { other, is_seen_there: false }, manifest.on_failure());
        self.buffering_rules(key, (worker, place.1), &manifest, &filters, &addresses, what)
    }

    /// Has packets that the other node does not see wait for a module that is made ready and is not here.
    pub(crate) fn buffer_for(&mut self, key: &Key, candidate: &Candidate, other: IpAddr) {
        if self.active(key).is_some() {
            return;
        }
        let addresses = self.tenants.get(&key.0).map(|tenant| tenant.addresses.clone()).unwrap_or_default();
        let worker = WorkerId::new(key.0.clone(), candidate.flavour);
        // It is not in force here: what cannot wait passes.
        let what = (Buffering { other, is_seen_there: true }, FailureMode::Open);
        let (manifest, filters) = (&candidate.manifest, ModuleRule::shown(&candidate.rules));
        self.end_buffering(key);
        let rules = self.buffering_rules(key, (worker, ModuleSlot(0)), manifest, &filters, &addresses, what);
        self.change_filters(key, rules, Vec::new());
        self.end_buffering_soon(key);
    }

    fn buffering_rules(
        &mut self,
        key: &Key,
        (worker, slot): (WorkerId, ModuleSlot),
        manifest: &Manifest,
        filters: &[WantedFilter],
        addresses: &[IpAddr],
        (buffering, on_failure): (Buffering, FailureMode),
    ) -> Vec<FilterRule> {
        let theirs = self.buffered.keys().filter(|(user, _)| *user == key.0).count();
        if self.buffered.len() >= BUFFERED_MODULES_MAX || theirs >= BUFFERED_MODULES_OF_USER_MAX {
            return Vec::new();
        }
        let mut rules = Vec::new();
        for filter in filters.iter().flat_map(|filter| filter.on(addresses)) {
            let (id, worker, module) = (new_name(&mut self.next_rule), worker.clone(), manifest.module());
            rules.push(FilterRule { id, worker, slot, module, filter, on_failure, buffering: Some(buffering) });
        }
        if !rules.is_empty() {
            let ids = rules.iter().map(|rule| rule.id);
            self.buffered.entry(key.clone()).or_default().ids.extend(ids);
        }
        rules
    }

    /// Returns the rules by which packets wait for a module, which go by a change that is about to begin.
    pub(crate) fn buffering(&self, key: &Key) -> Vec<FilterId> {
        self.buffered.get(key).map(|buffered| buffered.ids.clone()).unwrap_or_default()
    }

    /// Takes note of the change by which packets for a module wait no longer, if one is begun.
    pub(crate) fn buffering_ends_by(&mut self, key: &Key, change: Option<EffectId>) {
        if let (Some(change), Some(buffered)) = (change, self.buffered.get_mut(key)) {
            let ids = std::mem::take(&mut buffered.ids);
            buffered.ending.insert(change, ids);
            self.timers.cancel(&Timer::Buffered(key.clone()));
        }
    }

    /// A change of rules was made or refused.
    pub(crate) fn buffering_changed(&mut self, key: &Key, change: EffectId, is_made: bool) {
        let ended = self.buffered.get_mut(key).and_then(|buffered| buffered.ending.remove(&change));
        if !is_made {
            self.change_filters(key, Vec::new(), ended.unwrap_or_default());
        }
        self.forget_buffering(key, &[]);
    }

    /// Has packets wait no longer for a module.
    pub(crate) fn end_buffering(&mut self, key: &Key) {
        let ids = self.buffering(key);
        self.forget_buffering(key, &ids);
        self.change_filters(key, Vec::new(), ids);
    }

    /// Has them do so for a little while yet.
    pub(crate) fn end_buffering_soon(&mut self, key: &Key) {
        if !self.buffering(key).is_empty() {
            self.timers.set(Timer::Buffered(key.clone()), self.now.instant + BUFFERING_TIME_MAX);
        }
    }

    /// Has packets wait no longer for a user's modules that are not there.
    pub(crate) fn end_buffering_of(&mut self, user: &UserId) {
        let theirs = self.buffered.keys().filter(|key| key.0 == *user && self.active_of(key).is_none());
        for key in theirs.cloned().collect::<Vec<Key>>() {
            self.end_buffering(&key);
        }
    }

    /// Forgets rules, which are not there or about to go.
    pub(crate) fn forget_buffering(&mut self, key: &Key, gone: &[FilterId]) {
        let Some(buffered) = self.buffered.get_mut(key) else { return };
        buffered.ids.retain(|id| !gone.contains(id));
        if buffered.ids.is_empty() {
            self.timers.cancel(&Timer::Buffered(key.clone()));
            if buffered.ending.is_empty() {
                self.buffered.remove(key);
            }
        }
    }
}
