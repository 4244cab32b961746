// SPDX-License-Identifier: Apache-2.0
//! What happens without a request: timers fire, leases end, the operator changes the policy.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use netserv_model::control::ModuleMessage;
use netserv_model::effect::{Command, EffectId, Hold, Job, Late, ModuleNews, Notice, PolicyChange};
use netserv_model::manifest::Manifest;
use netserv_model::notify::NotifyEvent;
use netserv_model::policy::{NodePolicy, UserPolicy};
use netserv_model::{Refusal, RefusalKind, UserId, WantedFilter};

use crate::Controller;
use crate::admission::{check_needs, check_server};
use crate::effects::Purpose;
use crate::expiry::Timer;
use crate::filters;
use crate::limits::FETCH_ANSWER_TIME_MAX;
use crate::state::{Key, Leave, ModuleRule, Origin, Session, Task, Tenant, Worker};

/// Changes of the policy that are not in force everywhere, by name: a few, since an operator waits for each.
pub(crate) type Changes = BTreeMap<PolicyChange, Change>;

/// A change of the policy on its way to running containers.
#[derive(Debug)]
pub(crate) struct Change {
    /// What is being done for it.
    open: BTreeSet<EffectId>,
    late: Vec<Late>,
}

impl Controller {
    /// Does what a timer was set for.
    pub(crate) fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::Lease(key) => self.advance(&key),
            Timer::Restart(key) => self.restart(&key),
            Timer::RestartWorker(worker) => self.restart_worker(&worker),
            Timer::Fetch(job) => {
                let detail = format!(
                    "accepted; fetching and compiling its package take longer than {} s, and go on",
                    FETCH_ANSWER_TIME_MAX.as_secs()
                );
                self.fetch_overdue(job, &Refusal::new(RefusalKind::InProgress, detail));
            }
            Timer::Start(worker) => self.start_overdue(&worker),
            Timer::Load(worker, slot) => self.load_overdue(&worker, slot),
            Timer::StopIdle(worker) => self.stop_idle(&worker),
            Timer::Prepared(worker) => self.release_unused(&worker.user),
            Timer::Drain(worker, slot) => self.end_draining(&worker, slot),
            Timer::Tell(id) => self.tell_overdue(id),
            Timer::Export(id) => self.export_overdue(id),
            Timer::Thaw(key) => self.thaw(&key),
            Timer::Buffered(key) => self.end_buffering(&key),
            Timer::ReadMeters => self.meter_due(),
        }
    }

    /// Ends the sessions of a module whose leases have ended, and the module with the last of them, unless a request for it is under
    /// way, which may renew one.
    pub(crate) fn expire_if_due(&mut self, key: &Key) {
        let now = self.now.instant;
        let Some(entry) = self.tenants.get(&key.0).and_then(|tenant| tenant.modules.get(&key.1)) else { return };
        let is_over = |session: &Session| session.lease_end <= now;
        let over =
            entry.active.as_ref().map_or(0, |active| active.sessions.iter().filter(|session| is_over(session)).count());
        let renews = |task: &Task| !matches!(task, Task::Setup(setup) if setup.prepare);
        let is_renewed = entry.operation.as_ref().is_some_and(|operation| !operation.setup.prepare)
            || entry.waiting.iter().any(|waiter| renews(&waiter.task));
        if over > 0 && !is_renewed {
            self.counters.leases_expired += u64::try_from(over).unwrap_or(u64::MAX);
            if !self.leave(key, is_over) {
                self.uninstall(key, Leave::Drain);
            }
        }
    }

    /// Removes and refuses what the policy does not allow, and has running containers held to the rest.
    pub(crate) fn apply_policy(&mut self, change: PolicyChange, before: &NodePolicy) {
        self.hold_containers(change, before);
        if self.policy.maintenance && !before.maintenance {
            self.say_maintenance();
        }
        let keys: Vec<Key> = self
            .tenants
            .iter()
            .flat_map(|(user, tenant)| tenant.modules.keys().map(|name| (user.clone(), name.clone())))
            .collect();
        for key in keys {
            self.apply_policy_to(&key);
        }
        self.revoke_draining();
        let gone: Vec<UserId> =
            self.tenants.keys().filter(|user| !self.policy.users.contains_key(user)).cloned().collect();
        for user in gone {
            self.revoke_prepared(&user);
        }
        let (policy, wall) = (&self.policy, self.now.wall);
        let known = |user: &UserId| policy.users.contains_key(user);
        self.nonces.retain(wall, known);
        self.newest.retain(wall, known);
        self.seen.retain(wall, known);
    }

    /// Has running containers held to what the policy says otherwise than the one before, also those that are about to
    /// end.
    fn hold_containers(&mut self, change: PolicyChange, before: &NodePolicy) {
        let mut open = BTreeSet::new();
        let plan = self.policy.address_plan();
        if plan != before.address_plan() {
            let job = Job::Addresses(Box::new(plan));
            open.insert(self.start_node_effect(job, Purpose::Policy(change, Hold::Addresses)));
        }
        let running = |tenant: &Tenant| tenant.workers.values().any(Worker::has_process);
        let running: Vec<UserId> =
            self.tenants.iter().filter(|(_, tenant)| running(tenant)).map(|(user, _)| user.clone()).collect();
        for user in running {
            let of = |policy: &NodePolicy| {
                let user = policy.users.get(&user);
                user.map(|user| (user.permits(), user.container)).unwrap_or_default()
            };
            let ((permits, limits), (permits_before, limits_before)) = (of(&self.policy), of(before));
            if permits != permits_before {
                open.insert(self.start_effect(
                    &user,
                    Job::Permit(Box::new(permits)),
                    Purpose::Policy(change, Hold::Permits(user.clone())),
                ));
            }
            if limits != limits_before && self.policy.users.contains_key(&user) {
                open.insert(self.start_effect(
                    &user,
                    Job::Limit(limits),
                    Purpose::Policy(change, Hold::Limits(user.clone())),
                ));
            }
        }
        if open.is_empty() {
            return self.commands.push_back(Command::InForce(change, Vec::new()));
        }
        self.changes.insert(change, Change { open, late: Vec::new() });
    }

    /// Takes note that containers are held to a part of a changed policy, or why not.
    pub(crate) fn policy_applied(&mut self, change: PolicyChange, hold: Hold, id: EffectId, failed: Option<Refusal>) {
        let Some(waiting) = self.changes.get_mut(&change) else { return };
        waiting.open.remove(&id);
        waiting.late.extend(failed.map(|refusal| Late { hold, refusal }));
        if waiting.open.is_empty() {
            let late = self.changes.remove(&change).map(|change| change.late).unwrap_or_default();
            self.commands.push_back(Command::InForce(change, late));
        }
    }

    fn apply_policy_to(&mut self, key: &Key) {
        let gone = self.why_gone(key);
        if let Some(refusal) = &gone {
            let waiting = self.entry(key).map(|entry| std::mem::take(&mut entry.waiting));
            for waiter in waiting.into_iter().flatten() {
                self.refuse(waiter.ticket, refusal.clone());
            }
        }
        if gone.is_none() {
            self.end_forbidden(key, None);
        }
        if let Some(refusal) = gone.clone().or_else(|| self.why_not_installed(key)) {
            self.fail_operation(key, refusal);
        }
        if let Some(refusal) = gone.or_else(|| self.why_not_kept(key)) {
            let module = self.active(key).map(|active| active.record.module.clone());
            self.tell_requesters(key, NotifyEvent::LeaseEnded, refusal.to_string());
            if self.uninstall(key, Leave::AtOnce) {
                self.counters.revoked += 1;
                let (user, module) = (key.0.clone(), module.expect("it was there"));
                self.commands.push_back(Command::Notify(Notice::Revoked { user, module, refusal }));
            }
            self.advance(key);
        }
    }

    /// Has those told whose SETUPs installed a module what happened to it, if it is installed.
    pub(crate) fn tell_requesters(&mut self, key: &Key, event: NotifyEvent, detail: String) {
        let Some(origin) = self.active(key).map(|active| active.origin()) else { return };
        let news = ModuleNews { is_for_one: false, ..news_for(key, origin, event, detail) };
        self.commands.push_back(Command::TellRequesters(Box::new(news)));
    }

    /// Has the requester of one SETUP told what happened to a module, or what the module itself says.
    pub(crate) fn tell_requester(
        &mut self,
        key: &Key,
        origin: Origin,
        event: NotifyEvent,
        detail: String,
        message: Option<ModuleMessage>,
    ) {
        let news = ModuleNews { message, ..news_for(key, origin, event, detail) };
        self.commands.push_back(Command::TellRequesters(Box::new(news)));
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
        let own = operation.stage.candidate().map(|candidate| ModuleRule::shown(&candidate.rules));
        let filters = own.unwrap_or_else(|| operation.setup.filters.clone());
        let manifest = operation.stage.candidate().map(|candidate| &candidate.manifest);
        if let Err(refusal) = self.check_maintenance(key, operation.setup.epoch) {
            return Some(refusal);
        }
        let floating = &operation.setup.floating;
        self.why_not_allowed(user, &filters, floating, manifest)
    }

    fn why_not_kept(&self, key: &Key) -> Option<Refusal> {
        let active = self.tenants.get(&key.0)?.modules.get(&key.1)?.active.as_ref()?;
        let (record, user) = (&active.record, self.policy.users.get(&key.0)?);
        self.why_not_allowed(user, &record.filters, &record.floating, active.manifest.as_ref())
    }

    fn why_not_allowed(
        &self,
        user: &UserPolicy,
        filters: &[WantedFilter],
        floating: &[IpAddr],
        manifest: Option<&Manifest>,
    ) -> Option<Refusal> {
        let server = || manifest.map_or(Ok(()), |manifest| check_server(&self.policy, user, manifest));
        let needs = || manifest.map_or(Ok(()), |manifest| check_needs(&self.policy, user, manifest));
        let checked = filters::check_of_sessions(&self.policy, user, filters);
        checked
            .and_then(|()| filters::check_floating(&self.policy, user, floating))
            .and_then(|()| server())
            .and_then(|()| needs())
            .err()
    }
}

/// Returns what the requester of one SETUP is told.
fn news_for(
    (user, module): &Key,
    Origin { session, nonce, .. }: Origin,
    event: NotifyEvent,
    detail: String,
) -> ModuleNews {
    let (user, module) = (user.clone(), module.clone());
    ModuleNews { user, module, session, nonce, is_for_one: true, event, detail, message: None }
}
