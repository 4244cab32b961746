// SPDX-License-Identifier: Apache-2.0
//! Workers start, and load modules.

use netserv_model::effect::{Job, ModuleLoad, ModuleSlot, WorkerJob};
use netserv_model::manifest::Manifest;
use netserv_model::{Digest, WorkerId};

use crate::cx::Cx;
use crate::cx::effects::Purpose;
use crate::cx::request::Key;
use crate::cx::timers::Timer;
use crate::limits::{LOAD_ANSWER_TIME_MAX, START_ANSWER_TIME_MAX};
use crate::policy::package::merged_properties;
use crate::tenants::Tenants;
use crate::tenants::active::Run;
use crate::tenants::tenant::Tenant;
use crate::tenants::worker::{Phase, Role, SlotHolder};

/// Starts a worker.
pub(crate) fn start_worker(cx: &mut Cx, tenants: &mut Tenants, id: &WorkerId) {
    let Some(tenant) = tenants.get_mut(&id.user) else { return };
    let worker = tenant.workers.entry(id.flavour).or_default();
    worker.phase = Phase::Starting;
    worker.order.clear();
    let user = cx.may(&id.user);
    let (limits, permits) = user.map(|user| (user.container, user.permits())).unwrap_or_default();
    cx.timers.cancel(&Timer::RestartWorker(id.clone()));
    cx.timers.set(Timer::Start(id.clone()), cx.now.instant + START_ANSWER_TIME_MAX);
    let job = Job::Workers(WorkerJob::Start { worker: id.clone(), limits, permits: Box::new(permits) });
    let generation = cx.start_effect(&id.user, job, Purpose::Start(id.clone()));
    if let Some(worker) = tenants.worker_mut(id) {
        worker.generation = Some(generation);
    }
}

/// Has an installed module loaded that waits for its worker.
pub(crate) fn load_active(cx: &mut Cx, tenants: &mut Tenants, key: &Key, id: &WorkerId) {
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

/// What to load, apart from where.
pub(crate) struct LoadWhat<'a> {
    pub(crate) digest: Digest,
    pub(crate) manifest: &'a Manifest,
    pub(crate) properties: &'a std::collections::BTreeMap<String, String>,
    /// The packages that a service's component is composed of.
    pub(crate) chain: &'a [Digest],
    /// The state that it begins with.
    pub(crate) state: Option<Digest>,
}

/// Asks a worker to load a module.
pub(crate) fn load_into(cx: &mut Cx, tenants: &mut Tenants, worker: &WorkerId, slot: ModuleSlot, what: &LoadWhat<'_>) {
    let key = (worker.user.clone(), what.manifest.module().name);
    let messages =
        tenants.active_mut(&key).map(|active| active.control.give_kept((worker.flavour, slot))).unwrap_or_default();
    let user = cx.may(&worker.user);
    let (granted, container) = user.map(|user| (user.module_limits, user.container)).unwrap_or_default();
    let load = ModuleLoad {
        worker: worker.clone(),
        slot,
        module: what.manifest.module(),
        digest: what.digest,
        properties: merged_properties(what.manifest, what.properties),
        limits: what.manifest.limits.lowered_to(&granted),
        state_schema: what.manifest.state_schema,
        packet: what.manifest.packet.is_some(),
        parallel: what.manifest.is_parallel(),
        processors: container.cpu_permille / 1000,
        server: what.manifest.server.clone(),
        chain: what.chain.to_vec(),
        blocks: cx.policy.blocks.keys().cloned().collect(),
        messages,
        state: what.state,
    };
    cx.timers.set(Timer::Load(worker.clone(), slot), cx.now.instant + LOAD_ANSWER_TIME_MAX);
    let generation = tenants.worker_mut(worker).and_then(|worker| worker.generation);
    let purpose = Purpose::Load(worker.clone(), generation, slot);
    cx.start_effect(&worker.user, Job::Workers(WorkerJob::Load(Box::new(load))), purpose);
}

/// Takes note of the answer to a load, or of later news of it; returns who has the place.
pub(crate) fn end_load(cx: &mut Cx, tenants: &mut Tenants, worker: &WorkerId, slot: ModuleSlot) -> Option<SlotHolder> {
    cx.timers.cancel(&Timer::Load(worker.clone(), slot));
    let place = tenants.worker_mut(worker).and_then(|worker| worker.places.get(&slot)).cloned();
    if place.is_none() {
        cx.counters.stray_events += 1;
    }
    place
}
