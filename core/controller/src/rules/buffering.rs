// SPDX-License-Identifier: Apache-2.0
//! Packets that wait for a module which moves: where it is paused, and before then where it is to be.
//!
//! Rules for them take the place of those that show packets, and the other way round, in one change: a packet is shown or waits.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netserv_model::effect::{Buffering, EffectId, FilterId, FilterRule, ModuleSlot};
use netserv_model::limits::BUFFERING_TIME_MAX;
use netserv_model::verdict::FailureMode;
use netserv_model::{Filter, UserId, WorkerId};

use crate::cx::Cx;
use crate::cx::request::Key;
use crate::cx::timers::Timer;
use crate::limits::{BUFFERED_MODULES_MAX, BUFFERED_MODULES_OF_USER_MAX};
use crate::rules::names::change_filters;
use crate::tenants::Tenants;
use crate::tenants::operation::Candidate;
use crate::tenants::rule::ModuleRule;

/// The rules by which packets wait for a module.
#[derive(Debug, Default)]
pub(crate) struct Buffered {
    ids: Vec<FilterId>,
    /// Those that are about to go, by the change by which they do.
    ending: BTreeMap<EffectId, Vec<FilterId>>,
}

/// The modules for which packets wait.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    buffered: BTreeMap<Key, Buffered>,
}

impl Buffers {
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.buffered.len()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.buffered.is_empty()
    }

    /// Names rules by which packets that filters match wait for a module.
    fn rules_for(
        &mut self,
        cx: &mut Cx,
        key: &Key,
        filters: Vec<Filter>,
        rule: impl Fn(FilterId, Filter) -> FilterRule,
    ) -> Vec<FilterRule> {
        let theirs = self.buffered.keys().filter(|(user, _)| *user == key.0).count();
        if self.buffered.len() >= BUFFERED_MODULES_MAX || theirs >= BUFFERED_MODULES_OF_USER_MAX {
            return Vec::new();
        }
        let rules: Vec<FilterRule> = filters.into_iter().map(|filter| rule(cx.names.take(), filter)).collect();
        if !rules.is_empty() {
            let ids = rules.iter().map(|rule| rule.id);
            self.buffered.entry(key.clone()).or_default().ids.extend(ids);
        }
        rules
    }

    /// Returns the rules by which packets wait for a module, which go by a change that is about to begin.
    pub(crate) fn ids(&self, key: &Key) -> Vec<FilterId> {
        self.buffered.get(key).map(|buffered| buffered.ids.clone()).unwrap_or_default()
    }

    /// Takes note of the change by which packets for a module wait no longer, if one is begun.
    pub(crate) fn ends_by(&mut self, cx: &mut Cx, key: &Key, change: Option<EffectId>) {
        if let (Some(change), Some(buffered)) = (change, self.buffered.get_mut(key)) {
            let ids = std::mem::take(&mut buffered.ids);
            buffered.ending.insert(change, ids);
            cx.timers.cancel(&Timer::Buffered(key.clone()));
        }
    }

    /// A change of rules was made or refused.
    pub(crate) fn changed(&mut self, cx: &mut Cx, key: &Key, change: EffectId, is_made: bool) {
        let ended = self.buffered.get_mut(key).and_then(|buffered| buffered.ending.remove(&change));
        if !is_made {
            change_filters(cx, key, Vec::new(), ended.unwrap_or_default());
        }
        self.forget(cx, key, &[]);
    }

    /// Has packets wait no longer for a module.
    pub(crate) fn end(&mut self, cx: &mut Cx, key: &Key) {
        let ids = self.ids(key);
        self.forget(cx, key, &ids);
        change_filters(cx, key, Vec::new(), ids);
    }

    /// Has them do so for a little while yet.
    pub(crate) fn end_soon(&mut self, cx: &mut Cx, key: &Key) {
        if !self.ids(key).is_empty() {
            cx.timers.set(Timer::Buffered(key.clone()), cx.now.instant + BUFFERING_TIME_MAX);
        }
    }

    /// Has packets wait no longer for a user's modules that are not there.
    pub(crate) fn end_of(&mut self, cx: &mut Cx, tenants: &Tenants, user: &UserId) {
        let theirs = self.buffered.keys().filter(|key| key.0 == *user && tenants.active(key).is_none());
        for key in theirs.cloned().collect::<Vec<Key>>() {
            self.end(cx, &key);
        }
    }

    /// Forgets rules, which are not there or about to go.
    pub(crate) fn forget(&mut self, cx: &mut Cx, key: &Key, gone: &[FilterId]) {
        let Some(buffered) = self.buffered.get_mut(key) else { return };
        buffered.ids.retain(|id| !gone.contains(id));
        if buffered.ids.is_empty() {
            cx.timers.cancel(&Timer::Buffered(key.clone()));
            if buffered.ending.is_empty() {
                self.buffered.remove(key);
            }
        }
    }
}

/// Returns rules by which packets wait for a paused module while it goes to another node; none if too many have packets
/// wait.
pub(crate) fn buffer_here(
    cx: &mut Cx,
    tenants: &Tenants,
    buffers: &mut Buffers,
    key: &Key,
    other: IpAddr,
) -> Vec<FilterRule> {
    let Some(tenant) = tenants.get(&key.0) else { return Vec::new() };
    let active = tenant.modules.get(&key.1).and_then(|entry| entry.active.as_ref());
    let Some((active, place)) = active.and_then(|active| active.place().map(|place| (active, place))) else {
        return Vec::new();
    };
    let Some(manifest) = &active.manifest else { return Vec::new() };
    let filters = on_addresses(&active.rules, &active.addresses(&tenant.addresses));
    let worker = WorkerId::new(key.0.clone(), place.0);
    buffers.rules_for(cx, key, filters, |id, filter| FilterRule {
        id,
        worker: worker.clone(),
        slot: place.1,
        module: manifest.module(),
        filter,
        on_failure: manifest.on_failure(),
        buffering: Some(Buffering { other, is_seen_there: false }),
    })
}

/// Has packets that the other node does not see wait for a module that is made ready and is not here.
pub(crate) fn buffer_for(
    cx: &mut Cx,
    tenants: &Tenants,
    buffers: &mut Buffers,
    key: &Key,
    candidate: &Candidate,
    other: IpAddr,
) {
    if tenants.active(key).is_some() {
        return;
    }
    let addresses = tenants.get(&key.0).map(|tenant| tenant.addresses.clone()).unwrap_or_default();
    let worker = WorkerId::new(key.0.clone(), candidate.flavour);
    let filters = on_addresses(&candidate.rules, &addresses);
    buffers.end(cx, key);
    let rules = buffers.rules_for(cx, key, filters, |id, filter| FilterRule {
        id,
        worker: worker.clone(),
        slot: ModuleSlot(0),
        module: candidate.manifest.module(),
        filter,
        // It is not in force here: what cannot wait passes.
        on_failure: FailureMode::Open,
        buffering: Some(Buffering { other, is_seen_there: true }),
    });
    change_filters(cx, key, rules, Vec::new());
    buffers.end_soon(cx, key);
}

/// Returns the filters of packets among some rules, for a container with these addresses.
fn on_addresses(rules: &[ModuleRule], addresses: &[IpAddr]) -> Vec<Filter> {
    ModuleRule::shown(rules).iter().flat_map(|filter| filter.on(addresses)).collect()
}
