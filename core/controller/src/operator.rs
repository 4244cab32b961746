// SPDX-License-Identifier: Apache-2.0
//! What happens without a request: timers fire, leases end, the operator changes the policy.

use netserv_model::effect::{Command, Notice};
use netserv_model::manifest::Manifest;
use netserv_model::policy::UserPolicy;
use netserv_model::{Filter, Refusal, RefusalKind};

use crate::Controller;
use crate::admission::check_server;
use crate::expiry::Timer;
use crate::filters;
use crate::limits::FETCH_ANSWER_TIME_MAX;
use crate::state::{Key, Rule};

impl Controller {
    /// Does what a timer was set for.
    pub(crate) fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::Lease(key) => self.advance(&key),
            Timer::Restart(key) => self.restart(&key),
            Timer::RestartWorker(worker) => self.restart_worker(&worker),
            Timer::Fetch(job) => {
                let detail = format!("no answer within {} s", FETCH_ANSWER_TIME_MAX.as_secs());
                self.fetch_overdue(job, &Refusal::new(RefusalKind::FetchFailed, detail));
            }
            Timer::Start(worker) => self.start_overdue(&worker),
            Timer::Load(worker, slot) => self.load_overdue(&worker, slot),
            Timer::StopIdle(worker) => self.stop_idle(&worker),
        }
    }

    /// Removes a module whose lease has ended, unless a request for it is under way, which may renew it.
    pub(crate) fn expire_if_due(&mut self, key: &Key) {
        let now = self.now.instant;
        let Some(entry) = self.tenants.get(&key.0).and_then(|tenant| tenant.modules.get(&key.1)) else { return };
        let over = entry.active.as_ref().is_some_and(|active| active.lease_end <= now);
        if over && entry.operation.is_none() && entry.waiting.is_empty() {
            self.counters.leases_expired += 1;
            self.uninstall(key);
        }
    }

    /// Removes and refuses what the policy does not allow.
    pub(crate) fn apply_policy(&mut self) {
        let keys: Vec<Key> = self
            .tenants
            .iter()
            .flat_map(|(user, tenant)| tenant.modules.keys().map(|name| (user.clone(), name.clone())))
            .collect();
        for key in keys {
            self.apply_policy_to(&key);
        }
        let policy = &self.policy;
        self.nonces.retain(|user| policy.users.contains_key(user));
    }

    fn apply_policy_to(&mut self, key: &Key) {
        let gone = self.why_gone(key);
        if let Some(refusal) = &gone {
            let waiting = self.entry(key).map(|entry| std::mem::take(&mut entry.waiting));
            for waiter in waiting.into_iter().flatten() {
                self.refuse(waiter.ticket, refusal.clone());
            }
        }
        if let Some(refusal) = gone.clone().or_else(|| self.why_not_installed(key)) {
            self.fail_operation(key, refusal);
        }
        if let Some(refusal) = gone.or_else(|| self.why_not_kept(key)) {
            let module = self.active(key).map(|active| active.record.module.clone());
            if self.uninstall(key) {
                self.counters.revoked += 1;
                let (user, module) = (key.0.clone(), module.expect("it was there"));
                self.commands.push_back(Command::Notify(Notice::Revoked { user, module, refusal }));
            }
            self.advance(key);
        }
    }

    fn why_gone(&self, key: &Key) -> Option<Refusal> {
        if self.policy.host_only {
            return Some(Refusal::new(RefusalKind::NotANode, "the node has become a host"));
        }
        self.user_policy(&key.0).err()
    }

    fn why_not_installed(&self, key: &Key) -> Option<Refusal> {
        let operation = self.tenants.get(&key.0)?.modules.get(&key.1)?.operation.as_ref()?;
        let user = self.policy.users.get(&key.0)?;
        let own = operation.stage.candidate().map(|candidate| Rule::shown(&candidate.rules));
        let filters = own.unwrap_or_else(|| operation.setup.filters.clone());
        let manifest = operation.stage.candidate().map(|candidate| &candidate.manifest);
        self.why_not_allowed(user, &filters, manifest)
    }

    fn why_not_kept(&self, key: &Key) -> Option<Refusal> {
        let active = self.tenants.get(&key.0)?.modules.get(&key.1)?.active.as_ref()?;
        self.why_not_allowed(self.policy.users.get(&key.0)?, &active.record.filters, active.manifest.as_ref())
    }

    fn why_not_allowed(&self, user: &UserPolicy, filters: &[Filter], manifest: Option<&Manifest>) -> Option<Refusal> {
        let server = || manifest.map_or(Ok(()), |manifest| check_server(&self.policy, user, manifest));
        filters::check(user, filters).and_then(|()| server()).err()
    }
}
