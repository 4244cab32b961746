// SPDX-License-Identifier: Apache-2.0
//! Jobs that several parts start.

use netserv_model::effect::{EffectId, InstalledRecord, Job, ModuleSlot, PackageJob, StoreJob, WorkerJob};
use netserv_model::request::StateSource;
use netserv_model::{Digest, WorkerId};

use crate::cx::Cx;
use crate::cx::effects::Purpose;
use crate::cx::request::Key;
use crate::cx::timers::Timer;
use crate::limits::FETCH_ANSWER_TIME_MAX;

/// Asks for a package, and for the state that its module is to begin with.
pub(crate) fn fetch(cx: &mut Cx, key: &Key, url: String, digest: Digest, state: Option<StateSource>) -> EffectId {
    let keys = cx.may(&key.0).map(|user| user.keys.clone()).unwrap_or_default();
    start_package(cx, key, PackageJob::Fetch { url, digest, keys, state })
}

/// Starts a job about a module's package, which is to end in time.
pub(crate) fn start_package(cx: &mut Cx, key: &Key, job: PackageJob) -> EffectId {
    let purpose = match &job {
        PackageJob::Fetch { .. } => Purpose::Fetch(key.clone()),
        PackageJob::Compose { .. } => Purpose::Compose(key.clone()),
    };
    let id = cx.start_effect(&key.0, Job::Packages(job), purpose);
    cx.timers.set(Timer::Fetch(id), cx.now.instant + FETCH_ANSWER_TIME_MAX);
    id
}

/// Waits for a job about a package no longer.
pub(crate) fn drop_job(cx: &mut Cx, id: EffectId) {
    cx.timers.cancel(&Timer::Fetch(id));
    cx.abandon_effect(id);
}

/// Has a module remembered across restarts.
pub(crate) fn store_record(cx: &mut Cx, key: &Key, record: &InstalledRecord) {
    let evidence = cx.authority.evidence(&key.0).cloned();
    let job = StoreJob::Put(Box::new(InstalledRecord { evidence, ..record.clone() }));
    cx.start_effect(&key.0, Job::Store(job), Purpose::Store(key.clone()));
}

/// Has a module forgotten.
pub(crate) fn forget_record(cx: &mut Cx, key: &Key) {
    let job = StoreJob::Forget { user: key.0.clone(), module: key.1.clone() };
    cx.start_effect(&key.0, Job::Store(job), Purpose::Store(key.clone()));
}

/// Has a worker unload a module.
pub(crate) fn unload(cx: &mut Cx, worker: &WorkerId, slot: ModuleSlot) {
    let job = WorkerJob::Unload { worker: worker.clone(), slot };
    cx.start_effect(&worker.user, Job::Workers(job), Purpose::Stop);
}

/// Stops a worker.
pub(crate) fn stop_worker(cx: &mut Cx, id: &WorkerId) {
    let job = Job::Workers(WorkerJob::Stop { worker: id.clone() });
    cx.start_effect(&id.user, job, Purpose::Stop);
}
