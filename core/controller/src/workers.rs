// SPDX-License-Identifier: Apache-2.0
//! One worker per user and flavour: started when a module wants in, started again when it died, stopped when it is
//! empty.

use std::mem;
use std::net::IpAddr;

use netserv_model::effect::{EffectId, Job, ModuleSlot, WorkerJob};
use netserv_model::{Flavour, ModuleName, Refusal, RefusalKind, UserId, WorkerId};

use crate::cx::Cx;
use crate::draining::{forget_draining, make_room};
use crate::effects::Purpose;
use crate::expiry::Timer;
use crate::lifecycle::{LoadWhat, fail_operation, load_into, lose_candidate};
use crate::limits::{IDLE_WORKER_TIME, LOAD_ANSWER_TIME_MAX, START_ANSWER_TIME_MAX};
use crate::metering::Metering;
use crate::modules::Modules;
use crate::preparing::is_prepared;
use crate::restart::fail_culprit;
use crate::rules::{readdress, suspend_intercepts};
use crate::state::{Active, Candidate, Entry, Key, Phase, Role, Run, SlotHolder, Stage, Tenant};
use crate::tenants::Tenants;

/// Brings a user's waiting modules on: into their worker if it takes them, else by starting it.
pub(crate) fn pump_user(cx: &mut Cx, m: &mut Modules, user: &UserId) {
    for flavour in Flavour::ALL {
        pump_worker(cx, m, &WorkerId::new(user.clone(), flavour));
    }
}

fn pump_worker(cx: &mut Cx, m: &mut Modules, worker: &WorkerId) {
    let Some(tenant) = m.tenants.get(&worker.user) else { return };
    let asked_for = tenant.modules.values().any(|entry| operation_waits(entry, worker.flavour));
    if !asked_for && !tenant.modules.values().any(|entry| active_waits(entry, worker.flavour)) {
        return;
    }
    match tenant.workers.get(&worker.flavour).map(|worker| worker.phase).unwrap_or_default() {
        Phase::Starting => {}
        Phase::Ready => load_waiting(cx, m, worker),
        Phase::Absent => start_worker(cx, &mut m.tenants, worker),
        // A request is worth an attempt at once; modules that only come back wait for the back-off.
        Phase::Down if asked_for => start_worker(cx, &mut m.tenants, worker),
        Phase::Down => {}
    }
}

/// A worker takes modules.
pub(crate) fn worker_ready(
    cx: &mut Cx,
    m: &mut Modules,
    metering: &mut Metering,
    worker: &WorkerId,
    addresses: Vec<IpAddr>,
) {
    let phase = m.tenants.worker(worker).map(|worker| worker.phase).unwrap_or_default();
    match phase {
        Phase::Starting => {
            m.tenants.set_phase(worker, Phase::Ready);
            metering.read_soon(cx);
            cx.timers.cancel(&Timer::Start(worker.clone()));
            readdress(cx, &mut m.tenants, &mut m.buffers, &worker.user, addresses);
            load_waiting(cx, m, worker);
            release_unused(cx, &mut m.tenants, &worker.user);
        }
        Phase::Ready | Phase::Absent | Phase::Down => cx.counters.stray_events += 1,
    }
}

/// A worker could not be started, or ended by itself.
pub(crate) fn worker_died(
    cx: &mut Cx,
    m: &mut Modules,
    metering: &mut Metering,
    id: &WorkerId,
    refusal: &Refusal,
    culprit: Option<ModuleSlot>,
) {
    let now = cx.now.instant;
    let phase = m.tenants.worker(id).map(|worker| worker.phase).unwrap_or_default();
    let (Phase::Starting | Phase::Ready) = phase else {
        cx.counters.stray_events += 1;
        return;
    };
    cx.counters.container_deaths += 1;
    metering.read_soon(cx);
    let blamed = m.tenants.get(&id.user).and_then(|tenant| whom_to_blame(tenant, id.flavour, culprit));
    let Some(worker) = m.tenants.worker(id) else { return };
    let wait = match blamed {
        Some(_) => std::time::Duration::ZERO,
        None => worker.backoff.retry(now),
    };
    worker.phase = Phase::Down;
    worker.generation = None;
    let slots: Vec<ModuleSlot> = worker.places.keys().copied().collect();
    worker.places.retain(|_, place| place.role != Role::Leaving);
    forget_draining(cx, &mut m.tenants, id);
    cx.timers.cancel(&Timer::Start(id.clone()));
    cx.timers.cancel(&Timer::StopIdle(id.clone()));
    cx.timers.cancel(&Timer::Prepared(id.clone()));
    for slot in slots {
        cx.timers.cancel(&Timer::Load(id.clone(), slot));
    }
    cx.timers.set(Timer::RestartWorker(id.clone()), now + wait);
    let modules = m.tenants.get(&id.user).map(|tenant| tenant.modules.keys().cloned().collect());
    let modules: Vec<ModuleName> = modules.unwrap_or_default();
    for name in modules {
        let key = (id.user.clone(), name);
        outlive_worker(cx, m, &key, id.flavour, refusal, (blamed.as_ref(), phase == Phase::Starting));
    }
    release_unused(cx, &mut m.tenants, &id.user);
}

/// A worker's wait is over.
pub(crate) fn restart_worker(cx: &mut Cx, m: &mut Modules, id: &WorkerId) {
    if let Some(worker) = m.tenants.worker(id)
        && worker.phase == Phase::Down
    {
        worker.phase = Phase::Absent;
        pump_worker(cx, m, id);
    }
}

/// A worker could not be asked for.
pub(crate) fn start_refused(
    cx: &mut Cx,
    m: &mut Modules,
    metering: &mut Metering,
    id: &WorkerId,
    generation: EffectId,
    refusal: &Refusal,
) {
    if m.tenants.worker(id).is_some_and(|worker| worker.generation == Some(generation)) {
        worker_died(cx, m, metering, id, refusal, None);
    }
}

/// A worker did not answer in time that it started.
pub(crate) fn start_overdue(cx: &mut Cx, m: &mut Modules, metering: &mut Metering, worker: &WorkerId) {
    let detail = format!("the worker did not start within {} s", START_ANSWER_TIME_MAX.as_secs());
    stop_worker(cx, worker);
    worker_died(cx, m, metering, worker, &Refusal::new(RefusalKind::NodeFailed, detail), None);
}

/// A worker did not answer in time that a module is loaded: it hangs, and starts afresh.
pub(crate) fn load_overdue(cx: &mut Cx, m: &mut Modules, metering: &mut Metering, worker: &WorkerId, slot: ModuleSlot) {
    let detail = format!("the module did not load within {} s", LOAD_ANSWER_TIME_MAX.as_secs());
    stop_worker(cx, worker);
    worker_died(cx, m, metering, worker, &Refusal::new(RefusalKind::Stalled, detail), Some(slot));
}

/// Lets workers go that nobody needs, and at last all that is known of their user.
///
/// A user's last worker is stopped at once. Beside others it stays for a little while: its last module may just
/// have been replaced by one of another flavour, and still has packets to answer.
pub(crate) fn release_unused(cx: &mut Cx, tenants: &mut Tenants, user: &UserId) {
    let Some(tenant) = tenants.get(user) else { return };
    let last = tenant.is_empty();
    let unused: Vec<(Flavour, Phase)> = tenant
        .workers
        .iter()
        .filter(|(flavour, _)| last || !tenant.needs(**flavour))
        .filter(|(flavour, _)| !is_prepared(cx, &WorkerId::new(user.clone(), **flavour)))
        .map(|(flavour, worker)| (*flavour, worker.phase))
        .collect();
    let needed = tenant.workers.keys().filter(|flavour| !unused.iter().any(|(unused, _)| unused == *flavour));
    for flavour in needed {
        cx.timers.cancel(&Timer::StopIdle(WorkerId::new(user.clone(), *flavour)));
    }
    for (flavour, phase) in unused {
        let worker = WorkerId::new(user.clone(), flavour);
        match phase {
            // It is stopped once it answers, so that its answer is not taken for that of a later one.
            Phase::Starting => {}
            Phase::Ready if !last => {
                let timer = Timer::StopIdle(worker);
                if !cx.timers.runs(&timer) {
                    cx.timers.set(timer, cx.now.instant + IDLE_WORKER_TIME);
                }
            }
            Phase::Ready | Phase::Absent | Phase::Down => forget_worker(cx, tenants, &worker),
        }
    }
    if last && tenants.get(user).is_some_and(|tenant| tenant.workers.is_empty()) {
        tenants.remove(user);
    }
}

/// A worker has had no modules for a while.
pub(crate) fn stop_idle(cx: &mut Cx, tenants: &mut Tenants, worker: &WorkerId) {
    if tenants.get(&worker.user).is_some_and(|tenant| !tenant.needs(worker.flavour)) {
        forget_worker(cx, tenants, worker);
    }
}

fn forget_worker(cx: &mut Cx, tenants: &mut Tenants, id: &WorkerId) {
    forget_draining(cx, tenants, id);
    let Some(tenant) = tenants.get_mut(&id.user) else { return };
    let Some(worker) = tenant.workers.remove(&id.flavour) else { return };
    if worker.phase == Phase::Ready {
        stop_worker(cx, id);
    }
    for slot in worker.places.keys() {
        cx.timers.cancel(&Timer::Load(id.clone(), *slot));
    }
    cx.timers.cancel(&Timer::RestartWorker(id.clone()));
    cx.timers.cancel(&Timer::StopIdle(id.clone()));
    cx.timers.cancel(&Timer::Prepared(id.clone()));
}

fn start_worker(cx: &mut Cx, tenants: &mut Tenants, id: &WorkerId) {
    let Some(tenant) = tenants.get_mut(&id.user) else { return };
    let worker = tenant.workers.entry(id.flavour).or_default();
    worker.phase = Phase::Starting;
    worker.order.clear();
    let user = cx.policy.users.get(&id.user);
    let (limits, permits) = user.map(|user| (user.container, user.permits())).unwrap_or_default();
    cx.timers.cancel(&Timer::RestartWorker(id.clone()));
    cx.timers.set(Timer::Start(id.clone()), cx.now.instant + START_ANSWER_TIME_MAX);
    let job = Job::Workers(WorkerJob::Start { worker: id.clone(), limits, permits: Box::new(permits) });
    let generation = cx.start_effect(&id.user, job, Purpose::Start(id.clone()));
    if let Some(worker) = tenants.worker(id) {
        worker.generation = Some(generation);
    }
}

fn stop_worker(cx: &mut Cx, id: &WorkerId) {
    let job = Job::Workers(WorkerJob::Stop { worker: id.clone() });
    cx.start_effect(&id.user, job, Purpose::Stop);
}

/// Loads what waits: installed modules in install order, then those being installed in order of their requests.
fn load_waiting(cx: &mut Cx, m: &mut Modules, worker: &WorkerId) {
    let (user, flavour) = (&worker.user, worker.flavour);
    let Some(tenant) = m.tenants.get(user) else { return };
    let mut waiting: Vec<(u64, ModuleName)> = Vec::new();
    let actives = tenant.modules.iter().filter(|(_, entry)| active_waits(entry, flavour));
    let order = |entry: &Entry| entry.active.as_ref().map_or(0, |active| active.record.order);
    waiting.extend(actives.map(|(name, entry)| (order(entry), name.clone())));
    waiting.sort_unstable();
    for (_, name) in waiting.drain(..) {
        load_active(cx, &mut m.tenants, &(user.clone(), name), worker);
    }
    let Some(tenant) = m.tenants.get(user) else { return };
    let operations = tenant.modules.iter().filter(|(_, entry)| operation_waits(entry, flavour));
    let request = |entry: &Entry| {
        let ticket = entry.operation.as_ref().and_then(|operation| operation.ticket.as_ref());
        ticket.map_or(u64::MAX, |ticket| ticket.request.0)
    };
    waiting.extend(operations.map(|(name, entry)| (request(entry), name.clone())));
    waiting.sort_unstable();
    for (_, name) in waiting {
        load_candidate(cx, m, &(user.clone(), name), worker);
    }
}

fn load_active(cx: &mut Cx, tenants: &mut Tenants, key: &Key, id: &WorkerId) {
    let Some(Tenant { workers, modules, .. }) = tenants.get_mut(&key.0) else { return };
    let Some(worker) = workers.get_mut(&id.flavour) else { return };
    let Some(active) = modules.get_mut(&key.1).and_then(|entry| entry.active.as_mut()) else { return };
    let place = SlotHolder { module: key.1.clone(), role: Role::Active };
    let Some(slot) = active.slot.or_else(|| worker.take_place(place)) else {
        // A place is free again at the latest when a load that is under way is answered.
        cx.timers.set(Timer::Restart(key.clone()), cx.now.instant + crate::limits::BACKOFF_MIN);
        return;
    };
    active.slot = Some(slot);
    active.run = Run::Loading;
    let Some(manifest) = active.manifest.clone() else { return };
    let (digest, properties) = (active.record.digest, active.record.properties.clone());
    let chain = active.composition.as_ref().map(|composition| composition.servers.clone()).unwrap_or_default();
    let what = LoadWhat { digest, manifest: &manifest, properties: &properties, chain: &chain, state: None };
    load_into(cx, tenants, id, slot, &what);
}

fn load_candidate(cx: &mut Cx, m: &mut Modules, key: &Key, id: &WorkerId) {
    // Another one of its module may have come in its place, which waits for something else.
    if m.tenants.operation(key).is_some_and(|operation| operation.only_waits()) {
        return m.later.prepared.push_back((key.clone(), Some(id.clone())));
    }
    make_room(cx, &mut m.tenants, id);
    let Some(Tenant { workers, modules, .. }) = m.tenants.get_mut(&key.0) else { return };
    let Some(worker) = workers.get_mut(&id.flavour) else { return };
    let entry = modules.get_mut(&key.1);
    let Some(operation) = entry.and_then(|entry| entry.operation.as_mut()) else { return };
    let Stage::Waiting(candidate) = &mut operation.stage else { return };
    let Some(slot) = worker.take_place(SlotHolder { module: key.1.clone(), role: Role::Candidate }) else {
        let detail = "every place of the worker is taken";
        return fail_operation(cx, m, key, Refusal::new(RefusalKind::QuotaExceeded, detail));
    };
    let (flavour, rules) = (candidate.flavour, mem::take(&mut candidate.rules));
    let (manifest, composition) = (candidate.manifest.clone(), candidate.composition.take());
    let declared = mem::take(&mut candidate.declared);
    let chain = composition.as_ref().map(|composition| composition.servers.clone()).unwrap_or_default();
    let loading = Candidate { manifest: manifest.clone(), declared, flavour, rules, slot: Some(slot), composition };
    operation.stage = Stage::Loading(loading);
    let (digest, properties) = (operation.setup.digest, operation.setup.properties.clone());
    let state = operation.setup.state.as_ref().map(|state| state.digest);
    let what = LoadWhat { digest, manifest: &manifest, properties: &properties, chain: &chain, state };
    load_into(cx, &mut m.tenants, id, slot, &what);
}

/// Settles what the end of a worker means for one module: whom `blamed` names, if anybody, and whether it was still
/// `starting`.
fn outlive_worker(
    cx: &mut Cx,
    m: &mut Modules,
    key: &Key,
    flavour: Flavour,
    refusal: &Refusal,
    (blamed, starting): (Option<&(ModuleName, Role)>, bool),
) {
    let blame = |role: Role| blamed.is_some_and(|(name, blamed)| *name == key.1 && *blamed == role);
    let inside = |active: &&mut Active| active.place().is_some_and(|(own, _)| own == flavour) && active.run.in_worker();
    if m.tenants.active(key).filter(inside).is_some() {
        if blame(Role::Active) {
            fail_culprit(cx, &mut m.tenants, &mut m.quarantine, key, refusal.clone());
        } else {
            suspend_intercepts(cx, &mut m.tenants, key);
            let Some(active) = m.tenants.active(key) else { return };
            active.last_failure = Some(refusal.clone());
            active.restarts = active.restarts.saturating_add(1);
            active.run = Run::Waiting;
        }
    }
    let Some(operation) = m.tenants.operation(key) else { return };
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
        wait_again(&mut m.tenants, key);
    } else if lost {
        lose_candidate(cx, m, key, refusal.clone());
    }
}

/// Puts a module whose load was cut off by another's fault back in line.
fn wait_again(tenants: &mut Tenants, key: &Key) {
    tenants.candidate_gone(key);
    let Some(entry) = tenants.entry(key) else { return };
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

fn active_waits(entry: &Entry, flavour: Flavour) -> bool {
    let waits = |active: &Active| active.run == Run::Waiting && active.record.flavour == Some(flavour);
    entry.active.as_ref().is_some_and(waits)
}

fn operation_waits(entry: &Entry, flavour: Flavour) -> bool {
    entry
        .operation
        .as_ref()
        .is_some_and(|operation| matches!(&operation.stage, Stage::Waiting(candidate) if candidate.flavour == flavour))
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
