// SPDX-License-Identifier: Apache-2.0
//! Modules that are gone while connections that they had taken over go on: the worker hands on what comes from either
//! end, or the module goes on with them. New connections pass.
//!
//! Such a module keeps its place in the worker, and the worker stays, until it says that no connection is left, they have
//! had their time, or somebody ends them.

use netserv_authority::scope;
use netserv_model::WorkerId;
use netserv_model::control::{ControlMessage, DRAINING_TOPIC};
use netserv_model::effect::{InterceptJob, Job, ModuleSlot, WorkerJob};
use netserv_model::limits::MODULES_PER_CONTAINER_MAX;
use netserv_model::manifest::Drain;
use netserv_model::policy::UserPolicy;

use crate::cx::Cx;
use crate::cx::effects::Purpose;
use crate::cx::jobs::unload;
use crate::cx::request::Key;
use crate::cx::timers::Timer;
use crate::limits::{DRAIN_TIME_MAX, DRAINING_MAX, FINISHING_MEMORY_PART};
use crate::rules::names::remove_rules;
use crate::tenants::Tenants;
use crate::tenants::active::Active;
use crate::tenants::rule::RuleKind;
use crate::tenants::worker::{Draining, Role};
use crate::workers::release::{drop_draining, release_unused};

/// Has the connections of a module go on when it goes.
pub(crate) fn drain_module(cx: &mut Cx, tenants: &mut Tenants, key: &Key, active: &mut Active) {
    let Some((flavour, slot)) = active.place() else { return };
    cx.timers.cancel(&Timer::Lease(key.clone()));
    cx.timers.cancel(&Timer::Restart(key.clone()));
    let rules = std::mem::take(&mut active.rules);
    let (connections, packets): (Vec<_>, Vec<_>) = rules.into_iter().partition(|rule| rule.kind == RuleKind::Intercept);
    remove_rules(cx, key, &packets);
    let worker = WorkerId::new(key.0.clone(), flavour);
    let until = cx.now.instant + DRAIN_TIME_MAX;
    let (module, digest) = (active.record.module.clone(), active.record.digest);
    let manifest = active.manifest.as_ref().filter(|manifest| manifest.drain() == Drain::Finish);
    let finish = manifest.map(|manifest| manifest.limits.memory_bytes);
    let draining = Draining { module, digest, rules: connections, until, finish };
    for id in draining.rules.iter().flat_map(|rule| &rule.ids) {
        cx.start_effect(&key.0, Job::Intercepts(InterceptJob::Drain(*id)), Purpose::Nothing);
    }
    if finish.is_some()
        && let Ok(topic) = DRAINING_TOPIC.parse()
    {
        let message = ControlMessage { topic, seq: active.control.next(), body: Vec::new() };
        let job = WorkerJob::Tell { worker: worker.clone(), slot, message };
        cx.start_effect(&key.0, Job::Workers(job), Purpose::Nothing);
    }
    let job = WorkerJob::Drain { worker: worker.clone(), slot, finish: finish.is_some() };
    cx.start_effect(&key.0, Job::Workers(job), Purpose::Stop);
    cx.timers.set(Timer::Drain(worker.clone(), slot), until);
    let Some(known) = tenants.worker_mut(&worker) else { return };
    if let Some(place) = known.places.get_mut(&slot) {
        place.role = Role::Draining;
    }
    known.draining.insert(slot, draining);
    if known.draining.len() > DRAINING_MAX {
        end_first_draining(cx, tenants, &worker);
    }
    bound_finishing(cx, tenants, &worker);
}

/// Ends those that go on with their connections themselves, the first ones first, while they may have too much memory.
fn bound_finishing(cx: &mut Cx, tenants: &mut Tenants, worker: &WorkerId) {
    let container = cx.may(&worker.user).map_or(0, |user| user.container.memory_bytes);
    while let Some(known) = tenants.worker_mut(worker) {
        let finishing = || known.draining.iter().filter_map(|(slot, one)| Some((one.until, *slot, one.finish?)));
        let first = finishing().min().map(|(_, slot, _)| slot);
        let bytes: u64 = finishing().map(|(.., bytes)| bytes).sum();
        let Some(first) = first.filter(|_| bytes > container / FINISHING_MEMORY_PART) else { return };
        end_draining(cx, tenants, worker, first);
    }
}

/// Has the next version of a module, which is in force, take over the connections of those that go on with theirs.
pub(crate) fn end_finishing(cx: &mut Cx, tenants: &mut Tenants, key: &Key) {
    let finishing = tenants.find_draining(|worker, draining| {
        worker.user == key.0 && draining.module.name == key.1 && draining.finish.is_some()
    });
    finishing.iter().for_each(|(worker, slot)| end_draining(cx, tenants, worker, *slot));
}

/// A worker has no connections of such a module any more.
pub(crate) fn drained(cx: &mut Cx, tenants: &mut Tenants, worker: &WorkerId, slot: ModuleSlot) {
    match tenants.worker(worker).is_some_and(|worker| worker.draining.contains_key(&slot)) {
        true => end_draining(cx, tenants, worker, slot),
        false => cx.counters.stray_events += 1,
    }
}

/// Ends what is left of the connections of such a module.
pub(crate) fn end_draining(cx: &mut Cx, tenants: &mut Tenants, worker: &WorkerId, slot: ModuleSlot) {
    let Some(draining) = tenants.worker_mut(worker).and_then(|worker| worker.draining.remove(&slot)) else { return };
    drop_draining(cx, tenants, worker, slot, draining);
    unload(cx, worker, slot);
    release_unused(cx, tenants, &worker.user);
}

fn end_first_draining(cx: &mut Cx, tenants: &mut Tenants, worker: &WorkerId) {
    if let Some(first) = tenants.worker_mut(worker).and_then(|known| known.first_draining()) {
        end_draining(cx, tenants, worker, first);
    }
}

/// Has the connections of the module that went first end if a worker has no place for another one.
pub(crate) fn make_room(cx: &mut Cx, tenants: &mut Tenants, worker: &WorkerId) {
    if tenants.worker(worker).is_some_and(|known| known.places.len() >= MODULES_PER_CONTAINER_MAX) {
        end_first_draining(cx, tenants, worker);
    }
}

/// Ends what is left of the connections of all modules of this name that are gone. Returns whether there were any.
pub(crate) fn end_all_draining(cx: &mut Cx, tenants: &mut Tenants, key: &Key) -> bool {
    let own = tenants.draining_of(key);
    own.iter().for_each(|(worker, slot)| end_draining(cx, tenants, worker, *slot));
    !own.is_empty()
}

/// Ends what the policy does not allow any more.
pub(crate) fn revoke_draining(cx: &mut Cx, tenants: &mut Tenants) {
    let policy = &cx.policy;
    let gone = tenants.find_draining(|worker, draining| {
        let wanted: Vec<_> = draining.rules.iter().map(|rule| rule.filter.clone()).collect();
        let user = cx.may(&worker.user);
        let may = |user: &UserPolicy| user.needs_network() && scope::check(policy, user, &wanted).is_ok();
        policy.host_only || !policy.has_network() || !user.is_some_and(may)
    });
    gone.iter().for_each(|(worker, slot)| end_draining(cx, tenants, worker, *slot));
}
