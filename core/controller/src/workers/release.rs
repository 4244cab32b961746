// SPDX-License-Identifier: Apache-2.0
//! Workers that nobody needs any more, and what is made ready for modules that may come.

use netserv_model::effect::ModuleSlot;
use netserv_model::{Flavour, UserId, WorkerId};

use crate::cx::Cx;
use crate::cx::jobs::stop_worker;
use crate::cx::timers::Timer;
use crate::limits::IDLE_WORKER_TIME;
use crate::rules::buffering::Buffers;
use crate::rules::names::remove_rules;
use crate::tenants::Tenants;
use crate::tenants::worker::{Draining, Phase};

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

/// Takes note that the connections of all such modules went with their worker.
pub(crate) fn forget_draining(cx: &mut Cx, tenants: &mut Tenants, worker: &WorkerId) {
    let Some(known) = tenants.worker_mut(worker) else { return };
    for (slot, draining) in std::mem::take(&mut known.draining) {
        drop_draining(cx, tenants, worker, slot, draining);
    }
}

/// Ends the rules and frees the place of a module that drains.
pub(crate) fn drop_draining(
    cx: &mut Cx,
    tenants: &mut Tenants,
    worker: &WorkerId,
    slot: ModuleSlot,
    draining: Draining,
) {
    cx.timers.cancel(&Timer::Drain(worker.clone(), slot));
    remove_rules(cx, &(worker.user.clone(), draining.module.name), &draining.rules);
    tenants.free_place(worker, slot);
}

/// Lets workers go that are ready for modules of a user's.
pub(crate) fn revoke_prepared(cx: &mut Cx, tenants: &mut Tenants, buffers: &mut Buffers, user: &UserId) {
    buffers.end_of(cx, tenants, user);
    for flavour in Flavour::ALL {
        cx.timers.cancel(&Timer::Prepared(WorkerId::new(user.clone(), flavour)));
    }
    release_unused(cx, tenants, user);
}

/// Returns whether a worker stays for a module that may come.
fn is_prepared(cx: &Cx, worker: &WorkerId) -> bool {
    cx.timers.runs(&Timer::Prepared(worker.clone()))
}
