// SPDX-License-Identifier: Apache-2.0
//! What is made ready before a module comes from another node, so that it stands still for a shorter time: its package is fetched and
//! compiled, and its worker runs. The module is not loaded, and nothing of it is installed.

use netserv_model::{Flavour, UserId, WorkerId};

use crate::buffering::{Buffers, buffer_for};
use crate::cx::Cx;
use crate::expiry::Timer;
use crate::lifecycle::advance;
use crate::limits::PREPARED_TIME;
use crate::modules::Modules;
use crate::report::would_do;
use crate::state::{Key, Operation, Stage, Task};
use crate::tenants::Tenants;
use crate::workers::release_unused;

/// All is ready: answers what would happen, and keeps the worker for a while.
pub(crate) fn end_preparing(cx: &mut Cx, m: &mut Modules, key: &Key, worker: Option<&WorkerId>) {
    let operation = m.tenants.entry(key).and_then(|entry| entry.operation.take_if(|operation| operation.only_waits()));
    let Some(Operation { ticket, origin, setup, stage: Stage::Waiting(candidate) }) = operation else { return };
    if let Some(worker) = worker {
        cx.timers.set(Timer::Prepared(worker.clone()), cx.now.instant + PREPARED_TIME);
        if let Some(other) = setup.buffer {
            buffer_for(cx, &m.tenants, &mut m.buffers, key, &candidate, other);
        }
    }
    if let Some(ticket) = ticket {
        let outcome = would_do(&m.tenants, &m.epochs, key, origin, &Task::Setup(Box::new(setup)));
        cx.answer_when_done(&key.0, ticket, outcome);
    }
    advance(cx, m, key);
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
pub(crate) fn is_prepared(cx: &Cx, worker: &WorkerId) -> bool {
    cx.timers.runs(&Timer::Prepared(worker.clone()))
}
