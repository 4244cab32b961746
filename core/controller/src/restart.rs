// SPDX-License-Identifier: Apache-2.0
//! Installed modules that failed, or that a restart of the node took down.

use std::collections::BTreeMap;
use std::time::Duration;

use netserv_model::control::ControlMessage;
use netserv_model::effect::{EffectId, InstalledRecord, StoredMessage};
use netserv_model::manifest::Manifest;
use netserv_model::notify::NotifyEvent;
use netserv_model::request::Setup;
use netserv_model::{Digest, Flavour, Refusal, RefusalKind, Topic, WorkerId};

use crate::Controller;
use crate::admission::{Asked, check_manifest};
use crate::control::Control;
use crate::expiry::Timer;
use crate::filters;
use crate::limits::{BACKOFF_MIN, MODULES_PER_USER_MAX, QUARANTINE_TIME};
use crate::state::{Active, Backoff, Key, Leave, ModuleRule, RuleKind, Run, Session};

impl Controller {
    /// An installed module trapped or could not be loaded: it is started again after a while, or kept out.
    pub(crate) fn fail_active(&mut self, key: &Key, refusal: Refusal) {
        let now = self.now.instant;
        self.suspend_intercepts(key);
        let Some(active) = self.active(key).filter(|active| active.run.in_worker()) else {
            self.counters.stray_events += 1;
            return;
        };
        active.last_failure = Some(refusal);
        self.counters.module_failures += 1;
        self.back_off(key, now);
    }

    /// A module is to blame for the end of its worker, which starts without it.
    pub(crate) fn fail_culprit(&mut self, key: &Key, refusal: Refusal) {
        self.fail_active(key, refusal);
        let later = self.now.instant + BACKOFF_MIN;
        let backing_off = self.active(key).is_some_and(|active| active.run == Run::BackingOff);
        if backing_off {
            self.timers.set_not_before(Timer::Restart(key.clone()), later);
        }
    }

    /// A running module lost a filter through no fault of its own: it starts afresh after a while.
    pub(crate) fn fail_filter(&mut self, key: &Key, refusal: Refusal) {
        let now = self.now.instant;
        self.suspend_intercepts(key);
        let Some(active) = self.active(key).filter(|active| active.run == Run::Running) else {
            return;
        };
        active.last_failure = Some(refusal);
        active.run = Run::BackingOff;
        let (place, wait) = (active.place(), active.backoff.retry(now).max(BACKOFF_MIN));
        self.counters.module_failures += 1;
        if let Some((flavour, slot)) = place {
            self.unload(&WorkerId::new(key.0.clone(), flavour), slot);
        }
        self.timers.set(Timer::Restart(key.clone()), now + wait);
    }

    /// The node could not load a module through no fault of the module: its package is had again after a while.
    pub(crate) fn fail_load(&mut self, key: &Key, refusal: Refusal) {
        let now = self.now.instant;
        let Some(active) = self.active(key).filter(|active| active.run == Run::Loading) else {
            self.counters.stray_events += 1;
            return;
        };
        active.last_failure = Some(refusal);
        active.manifest = None;
        active.run = Run::BackingOff;
        let wait = active.backoff.retry(now).max(BACKOFF_MIN);
        self.counters.module_failures += 1;
        self.timers.set(Timer::Restart(key.clone()), now + wait);
    }

    /// A module's wait is over.
    pub(crate) fn restart(&mut self, key: &Key) {
        let Some(active) = self.active(key) else { return };
        match active.run {
            Run::BackingOff => {}
            Run::Quarantined => active.backoff = Backoff::default(),
            Run::Waiting => return self.pump(&key.0),
            Run::Fetching(_) | Run::Loading | Run::Running => return,
        }
        active.restarts = active.restarts.saturating_add(1);
        active.run = Run::Waiting;
        if active.manifest.as_ref().is_some_and(|manifest| manifest.service.is_some()) {
            return self.compose_active(key);
        }
        if active.manifest.is_none() {
            let (url, digest) = (active.record.url.clone(), active.record.digest);
            let job = self.fetch(key, url, digest, None);
            self.set_run(key, Run::Fetching(job));
        }
        self.pump(&key.0);
    }

    /// Takes over the modules of an earlier run, in install order, with the last messages to them.
    pub(crate) fn restore_records(&mut self, mut records: Vec<InstalledRecord>, messages: Vec<StoredMessage>) {
        records.sort_by_key(|record| record.order);
        let mut kept: BTreeMap<Key, BTreeMap<Topic, ControlMessage>> = BTreeMap::new();
        for StoredMessage { user, module, message } in messages {
            kept.entry((user, module)).or_default().insert(message.topic.clone(), message);
        }
        for mut record in records {
            self.next_order = self.next_order.max(record.order.saturating_add(1));
            let key = (record.user.clone(), record.module.name.clone());
            let known = self.tenants.get(&key.0).is_some_and(|tenant| tenant.modules.contains_key(&key.1));
            if known {
                continue;
            }
            if record.lease_until <= self.now.wall {
                self.counters.leases_expired += 1;
                self.forget(&key);
                continue;
            }
            let sessions = self.allowed_sessions(&key, &mut record);
            if self.may_stay(&key, &record) && !sessions.is_empty() {
                let control = Control::with(kept.remove(&key).unwrap_or_default());
                self.restore_record(&key, record, sessions, control);
            } else {
                self.counters.revoked += 1;
                self.forget(&key);
            }
        }
    }

    /// The package of an installed module is there again.
    pub(crate) fn active_fetched(&mut self, key: &Key, job: EffectId, manifest: Manifest, flavour: Flavour) {
        if self.record_fetching(key, job).is_none() {
            return;
        }
        self.end_forbidden(key, Some(&manifest));
        let Some(record) = self.record_fetching(key, job) else { return };
        let (session, setup) = (record.session, as_setup(record));
        let (others, declared) = (self.others_than(key, session), manifest.intercept().to_vec());
        let others: Vec<Asked<'_>> = others.iter().map(Asked::of_record).collect();
        let user = self.user_policy(&key.0);
        let checked = user.and_then(|user| check_manifest(&self.policy, user, &setup, &others, manifest, flavour));
        let manifest = match checked {
            Ok((manifest, _)) => manifest,
            Err(refusal) => return self.give_up(key, &refusal),
        };
        let service = manifest.service.is_some();
        self.change_flavour(key, if service { Flavour::Wasm } else { flavour });
        if let Some(active) = self.active(key) {
            // Connections are taken over as the manifest says, which a restarted node has only from here on.
            if manifest.packet.is_none() {
                active.rules.retain(|rule| rule.kind == RuleKind::Intercept);
            }
            if !active.rules.iter().any(|rule| rule.kind == RuleKind::Intercept) {
                active.rules.extend(ModuleRule::all_of(&[], Some(&manifest)));
            }
            (active.manifest, active.declared) = (Some(manifest), declared);
            active.run = Run::Waiting;
        }
        // Those of sessions that ended while it was not there.
        self.fit_rules(key);
        if service {
            return self.compose_active(key);
        }
        self.pump(&key.0);
        self.check_services(&key.0);
        // The worker of the flavour that it had may have nothing left.
        self.release_unused(&key.0);
    }

    /// The package of an installed module could not be had again.
    pub(crate) fn active_not_fetched(&mut self, key: &Key, job: EffectId, refusal: &Refusal) {
        if self.record_fetching(key, job).is_none() {
            return;
        }
        if !may_come_back(refusal.kind) {
            return self.give_up(key, refusal);
        }
        let now = self.now.instant;
        let Some(active) = self.active(key) else { return };
        active.last_failure = Some(refusal.clone());
        active.run = Run::BackingOff;
        let wait = active.backoff.retry(now).max(BACKOFF_MIN);
        self.timers.set(Timer::Restart(key.clone()), now + wait);
    }

    /// Sets what an installed module is doing.
    pub(crate) fn set_run(&mut self, key: &Key, run: Run) {
        if let Some(active) = self.active(key) {
            active.run = run;
        }
    }

    fn back_off(&mut self, key: &Key, now: netserv_model::Instant) {
        let Some(active) = self.active(key) else { return };
        if let Some(wait) = active.backoff.fail(now) {
            active.run = Run::BackingOff;
            self.timers.set(Timer::Restart(key.clone()), now + wait);
            return;
        }
        active.run = Run::Quarantined;
        let digest = active.record.digest;
        let why = active.last_failure.as_ref().map(|refusal| format!(": {refusal}")).unwrap_or_default();
        let detail = format!("failed too often, kept out for {} s{why}", QUARANTINE_TIME.as_secs());
        self.tell_requesters(key, NotifyEvent::ModuleFailed, detail);
        self.keep_out(key, digest);
        self.timers.set(Timer::Restart(key.clone()), now + QUARANTINE_TIME);
    }

    /// Puts code of a user's into quarantine.
    pub(crate) fn keep_out(&mut self, key: &Key, digest: Digest) {
        let now = self.now.instant;
        self.counters.quarantines += 1;
        self.quarantine.insert(now, key.0.clone(), digest, now + QUARANTINE_TIME);
    }

    fn may_stay(&self, key: &Key, record: &InstalledRecord) -> bool {
        let installed = self.tenants.get(&key.0).map_or(0, |tenant| tenant.modules.len());
        let user = self.policy.users.get(&key.0).filter(|_| !self.policy.host_only);
        installed < MODULES_PER_USER_MAX
            && user.is_some_and(|user| filters::check_floating(&self.policy, user, &record.floating).is_ok())
    }

    fn restore_record(&mut self, key: &Key, mut record: InstalledRecord, sessions: Vec<Session>, control: Control) {
        let have_some_ended = sessions.len() < record.sessions.len();
        let job = self.fetch(key, record.url.clone(), record.digest, None);
        self.leave_to_owners(key, &mut record);
        let (floating, epoch) = (record.floating.clone(), record.epoch);
        let rules = ModuleRule::all_of(&record.filters, None);
        let is_frozen = record.moved_in.is_some();
        let mut active = Active {
            record,
            sessions: Vec::new(),
            lease_end: self.now.instant,
            manifest: None,
            declared: Vec::new(),
            rules,
            slot: None,
            composition: None,
            run: Run::Fetching(job),
            backoff: Backoff::default(),
            restarts: 0,
            is_frozen,
            holds_floating: false,
            control,
            last_failure: None,
        };
        active.restore_sessions(sessions);
        self.entry_or_new(key).active = Some(active);
        if have_some_ended {
            self.store_active(key);
        }
        self.arm_lease(key);
        self.take_floating(key, &floating, epoch);
        self.counters.restored += 1;
    }

    pub(crate) fn record_fetching(&self, key: &Key, job: EffectId) -> Option<&InstalledRecord> {
        let active = self.tenants.get(&key.0)?.modules.get(&key.1)?.active.as_ref()?;
        (active.run == Run::Fetching(job)).then_some(&active.record)
    }

    /// Takes note of the flavour that an installed module has from here on; what it had of another one goes.
    fn change_flavour(&mut self, key: &Key, flavour: Flavour) {
        let Some(active) = self.active(key).filter(|active| active.record.flavour != Some(flavour)) else { return };
        let place = active.place();
        active.slot = None;
        active.record.flavour = Some(flavour);
        let record = active.record.clone();
        let unnamed: Vec<ModuleRule> = active
            .rules
            .iter()
            .map(|rule| ModuleRule { kind: rule.kind, filter: rule.filter.clone(), ids: Vec::new() })
            .collect();
        let rules = std::mem::replace(&mut active.rules, unnamed);
        self.remove_rules(key, &rules);
        if let Some((before, slot)) = place {
            self.free_place(&WorkerId::new(key.0.clone(), before), slot);
        }
        self.store(key, &record);
    }

    fn give_up(&mut self, key: &Key, refusal: &Refusal) {
        self.counters.revoked += 1;
        self.tell_requesters(key, NotifyEvent::LeaseEnded, refusal.to_string());
        self.uninstall(key, Leave::AtOnce);
        self.advance(key);
    }
}

/// Returns whether a fetch that failed so may succeed later.
fn may_come_back(kind: RefusalKind) -> bool {
    matches!(
        kind,
        RefusalKind::FetchFailed
            | RefusalKind::NodeFailed
            | RefusalKind::Timeout
            | RefusalKind::QuotaExceeded
            | RefusalKind::NoFlavour
    )
}

/// Returns the SETUP of the session that a module is from.
pub(crate) fn as_setup(record: &InstalledRecord) -> Setup {
    let own = record.sessions.iter().find(|session| session.session == record.session);
    let (filters, intercept) = own.map_or((&record.filters, &record.intercept), |own| (&own.filters, &own.intercept));
    Setup {
        prepare: false,
        buffer: None,
        module: record.module.clone(),
        url: record.url.clone(),
        digest: record.digest,
        filters: filters.clone(),
        intercept: intercept.clone(),
        properties: record.properties.clone(),
        dependencies: Vec::new(),
        ttl: Duration::ZERO,
        epoch: record.epoch,
        state: None,
        floating: record.floating.clone(),
    }
}
