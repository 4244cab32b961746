// SPDX-License-Identifier: Apache-2.0
//! News of workers: what became of loads, and of the workers themselves.

use std::net::IpAddr;

use netserv_model::effect::{EffectId, ModuleSlot};
use netserv_model::{Flavour, ModuleName, Refusal, RefusalKind, WorkerId};

use crate::control::tells::tell_rest;
use crate::cx::Cx;
use crate::cx::jobs::{stop_worker, unload};
use crate::cx::request::Key;
use crate::cx::timers::Timer;
use crate::limits::{LOAD_ANSWER_TIME_MAX, START_ANSWER_TIME_MAX};
use crate::modules::Modules;
use crate::modules::ending::fail_swap;
use crate::modules::failing::{fail_active, fail_culprit, fail_load};
use crate::modules::lifecycle::{fail_operation, load_or_start, load_waiting};
use crate::modules::settling::settle_module;
use crate::moves::floating::resume_floating;
use crate::rules::buffering::Buffers;
use crate::rules::install::{install_rules, readdress, suspend_intercepts};
use crate::services::order::order_packets;
use crate::tenants::Tenants;
use crate::tenants::active::{Active, Run};
use crate::tenants::operation::Stage;
use crate::tenants::tenant::Tenant;
use crate::tenants::worker::{Phase, Role, SlotHolder};
use crate::usage::metering::Metering;
use crate::workers::draining::end_draining;
use crate::workers::release::{forget_draining, release_unused};
use crate::workers::start::end_load;

/// A module runs.
pub(crate) fn loaded(cx: &mut Cx, modules: &mut Modules, worker: &WorkerId, slot: ModuleSlot) {
    let Some(place) = end_load(cx, &mut modules.tenants, worker, slot) else { return };
    let key = (worker.user.clone(), place.module);
    match place.role {
        Role::Leaving => modules.tenants.free_place(worker, slot),
        Role::Draining => cx.counters.stray_events += 1,
        Role::Candidate => settle_module(cx, modules, &key),
        Role::Active => set_running(cx, &mut modules.tenants, &mut modules.buffers, &key, worker, slot),
    }
}

/// Takes note that an installed module runs again, and installs the filters that it has not yet.
fn set_running(
    cx: &mut Cx,
    tenants: &mut Tenants,
    buffers: &mut Buffers,
    key: &Key,
    worker: &WorkerId,
    slot: ModuleSlot,
) {
    let Some(active) = tenants.active_mut(key) else { return };
    if active.run != Run::Loading {
        // It failed before this answer was given, so the worker must not keep it.
        let down = active.run != Run::Running;
        cx.counters.stray_events += 1;
        if down {
            unload(cx, worker, slot);
        }
        return;
    }
    active.run = Run::Running;
    tell_rest(cx, tenants, key);
    order_packets(cx, tenants, &key.0);
    resume_floating(cx, tenants, key);
    install_rules(cx, tenants, buffers, key);
}

/// A module could not be loaded, or trapped.
pub(crate) fn module_failed(cx: &mut Cx, modules: &mut Modules, worker: &WorkerId, slot: ModuleSlot, refusal: Refusal) {
    let Some(place) = end_load(cx, &mut modules.tenants, worker, slot) else { return };
    let key = (worker.user.clone(), place.module);
    match place.role {
        Role::Leaving => modules.tenants.free_place(worker, slot),
        Role::Draining => end_draining(cx, &mut modules.tenants, worker, slot),
        Role::Candidate => lose_candidate(cx, modules, &key, refusal),
        Role::Active if refusal.kind == RefusalKind::NodeFailed => fail_load(cx, &mut modules.tenants, &key, refusal),
        Role::Active => fail_active(cx, &mut modules.tenants, &mut modules.quarantine, &key, refusal),
    }
}

/// A worker could not be told to load a module.
pub(crate) fn load_refused(
    cx: &mut Cx,
    modules: &mut Modules,
    worker: &WorkerId,
    generation: Option<EffectId>,
    slot: ModuleSlot,
    refusal: Refusal,
) {
    // Of a worker that died, its modules' loads are settled.
    if modules.tenants.worker(worker).is_some_and(|worker| worker.generation == generation) {
        module_failed(cx, modules, worker, slot, refusal);
    }
}

/// A module that is not in force yet left its worker.
fn lose_candidate(cx: &mut Cx, modules: &mut Modules, key: &Key, refusal: Refusal) {
    if !fail_swap(&mut modules.tenants, key, &refusal, false) {
        modules.tenants.candidate_gone(key);
        fail_operation(cx, modules, key, refusal);
    }
}

/// A worker takes modules.
pub(crate) fn worker_ready(
    cx: &mut Cx,
    modules: &mut Modules,
    metering: &mut Metering,
    worker: &WorkerId,
    addresses: Vec<IpAddr>,
) {
    let phase = modules.tenants.worker_mut(worker).map(|worker| worker.phase).unwrap_or_default();
    match phase {
        Phase::Starting => {
            modules.tenants.set_phase(worker, Phase::Ready);
            metering.read_soon(cx);
            cx.timers.cancel(&Timer::Start(worker.clone()));
            readdress(cx, &mut modules.tenants, &mut modules.buffers, &worker.user, addresses);
            load_waiting(cx, modules, worker);
            release_unused(cx, &mut modules.tenants, &worker.user);
        }
        Phase::Ready | Phase::Absent | Phase::Down => cx.counters.stray_events += 1,
    }
}

/// A worker could not be started, or ended by itself.
pub(crate) fn worker_died(
    cx: &mut Cx,
    modules: &mut Modules,
    metering: &mut Metering,
    id: &WorkerId,
    refusal: &Refusal,
    culprit: Option<ModuleSlot>,
) {
    let now = cx.now.instant;
    let phase = modules.tenants.worker_mut(id).map(|worker| worker.phase).unwrap_or_default();
    let (Phase::Starting | Phase::Ready) = phase else {
        cx.counters.stray_events += 1;
        return;
    };
    cx.counters.container_deaths += 1;
    metering.read_soon(cx);
    let blamed = modules.tenants.get(&id.user).and_then(|tenant| whom_to_blame(tenant, id.flavour, culprit));
    let Some(worker) = modules.tenants.worker_mut(id) else { return };
    let wait = match blamed {
        Some(_) => std::time::Duration::ZERO,
        None => worker.backoff.retry(now),
    };
    worker.phase = Phase::Down;
    worker.generation = None;
    let slots: Vec<ModuleSlot> = worker.places.keys().copied().collect();
    worker.places.retain(|_, place| place.role != Role::Leaving);
    forget_draining(cx, &mut modules.tenants, id);
    cx.timers.cancel(&Timer::Start(id.clone()));
    cx.timers.cancel(&Timer::StopIdle(id.clone()));
    cx.timers.cancel(&Timer::Prepared(id.clone()));
    for slot in slots {
        cx.timers.cancel(&Timer::Load(id.clone(), slot));
    }
    cx.timers.set(Timer::RestartWorker(id.clone()), now + wait);
    let names = modules.tenants.get(&id.user).map(|tenant| tenant.modules.keys().cloned().collect());
    let names: Vec<ModuleName> = names.unwrap_or_default();
    for name in names {
        let key = (id.user.clone(), name);
        outlive_worker(cx, modules, &key, id.flavour, refusal, (blamed.as_ref(), phase == Phase::Starting));
    }
    release_unused(cx, &mut modules.tenants, &id.user);
}

/// A worker's wait is over.
pub(crate) fn restart_worker(cx: &mut Cx, modules: &mut Modules, id: &WorkerId) {
    if let Some(worker) = modules.tenants.worker_mut(id)
        && worker.phase == Phase::Down
    {
        worker.phase = Phase::Absent;
        load_or_start(cx, modules, id);
    }
}

/// A worker could not be asked for.
pub(crate) fn start_refused(
    cx: &mut Cx,
    modules: &mut Modules,
    metering: &mut Metering,
    id: &WorkerId,
    generation: EffectId,
    refusal: &Refusal,
) {
    if modules.tenants.worker(id).is_some_and(|worker| worker.generation == Some(generation)) {
        worker_died(cx, modules, metering, id, refusal, None);
    }
}

/// A worker did not answer in time that it started.
pub(crate) fn start_overdue(cx: &mut Cx, modules: &mut Modules, metering: &mut Metering, worker: &WorkerId) {
    let detail = format!("the worker did not start within {} s", START_ANSWER_TIME_MAX.as_secs());
    stop_worker(cx, worker);
    worker_died(cx, modules, metering, worker, &Refusal::new(RefusalKind::NodeFailed, detail), None);
}

/// A worker did not answer in time that a module is loaded: it hangs, and starts afresh.
pub(crate) fn load_overdue(
    cx: &mut Cx,
    modules: &mut Modules,
    metering: &mut Metering,
    worker: &WorkerId,
    slot: ModuleSlot,
) {
    let detail = format!("the module did not load within {} s", LOAD_ANSWER_TIME_MAX.as_secs());
    stop_worker(cx, worker);
    worker_died(cx, modules, metering, worker, &Refusal::new(RefusalKind::Stalled, detail), Some(slot));
}

/// Settles what the end of a worker means for one module: whom `blamed` names, if anybody, and whether it was still
/// `starting`.
fn outlive_worker(
    cx: &mut Cx,
    modules: &mut Modules,
    key: &Key,
    flavour: Flavour,
    refusal: &Refusal,
    (blamed, starting): (Option<&(ModuleName, Role)>, bool),
) {
    let blame = |role: Role| blamed.is_some_and(|(name, blamed)| *name == key.1 && *blamed == role);
    let inside = |active: &&mut Active| active.place().is_some_and(|(own, _)| own == flavour) && active.run.in_worker();
    if modules.tenants.active_mut(key).filter(inside).is_some() {
        if blame(Role::Active) {
            fail_culprit(cx, &mut modules.tenants, &mut modules.quarantine, key, refusal.clone());
        } else {
            suspend_intercepts(cx, &modules.tenants, key);
            let Some(active) = modules.tenants.active_mut(key) else { return };
            active.last_failure = Some(refusal.clone());
            active.restarts = active.restarts.saturating_add(1);
            active.run = Run::Waiting;
        }
    }
    let Some(operation) = modules.tenants.operation_mut(key) else { return };
    if operation.stage.candidate().is_none_or(|candidate| candidate.flavour != flavour) {
        return;
    }
    let lost = match &operation.stage {
        Stage::Fetching(_) | Stage::Composing(_, _) | Stage::Joining(_) => false,
        Stage::Waiting(_) => starting,
        Stage::Loading(_) | Stage::Settling(..) => true,
    };
    let innocent = matches!(operation.stage, Stage::Loading(_)) && blamed.is_some() && !blame(Role::Candidate);
    if innocent {
        wait_again(&mut modules.tenants, key);
    } else if lost {
        lose_candidate(cx, modules, key, refusal.clone());
    }
}

/// Puts a module whose load was cut off by another's fault back in line.
fn wait_again(tenants: &mut Tenants, key: &Key) {
    tenants.candidate_gone(key);
    let Some(entry) = tenants.entry_mut(key) else { return };
    let Some(mut operation) = entry.operation.take() else { return };
    operation.stage = match operation.stage {
        Stage::Loading(candidate) => Stage::Waiting(candidate),
        other @ (Stage::Fetching(_)
        | Stage::Composing(..)
        | Stage::Waiting(_)
        | Stage::Settling(..)
        | Stage::Joining(_)) => other,
    };
    entry.operation = Some(operation);
}

/// Returns the module to blame: the one that is named, or else the only one that was in the worker.
fn whom_to_blame(tenant: &Tenant, flavour: Flavour, culprit: Option<ModuleSlot>) -> Option<(ModuleName, Role)> {
    let worker = tenant.workers.get(&flavour)?;
    let in_worker = |slot: ModuleSlot, place: &SlotHolder| {
        let entry = tenant.modules.get(&place.module);
        match place.role {
            Role::Leaving | Role::Candidate => entry.is_some(),
            Role::Active => entry.and_then(|entry| entry.active.as_ref()).is_some_and(|active| active.run.in_worker()),
            Role::Draining => worker.draining.get(&slot).is_some_and(|draining| draining.finish.is_some()),
        }
    };
    let place = match culprit {
        Some(slot) => worker.places.get(&slot),
        None => {
            let mut inside =
                worker.places.iter().filter(|(slot, place)| in_worker(**slot, place)).map(|(_, place)| place);
            inside.next().filter(|_| inside.next().is_none())
        }
    };
    place.map(|place| (place.module.clone(), place.role))
}
