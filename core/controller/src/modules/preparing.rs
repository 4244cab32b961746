// SPDX-License-Identifier: Apache-2.0
//! What is made ready before a module comes from another node, so that its pause is shorter: its package is fetched and compiled,
//! and its worker runs. The module is not loaded, and nothing of it is installed.

use netserv_model::WorkerId;

use crate::cx::Cx;
use crate::cx::request::Key;
use crate::cx::timers::Timer;
use crate::limits::PREPARED_TIME;
use crate::modules::Modules;
use crate::modules::dry_run::would_do;
use crate::modules::lifecycle::advance;
use crate::rules::buffering::buffer_for;
use crate::tenants::operation::{Operation, Stage};
use crate::tenants::tenant::Task;

/// All is ready: answers what would happen, and keeps the worker for a while.
pub(crate) fn end_preparing(cx: &mut Cx, modules: &mut Modules, key: &Key, worker: Option<&WorkerId>) {
    let operation =
        modules.tenants.entry_mut(key).and_then(|entry| entry.operation.take_if(|operation| operation.only_waits()));
    let Some(Operation { ticket, origin, setup, stage: Stage::Waiting(candidate) }) = operation else { return };
    if let Some(worker) = worker {
        cx.timers.set(Timer::Prepared(worker.clone()), cx.now.instant + PREPARED_TIME);
        if let Some(other) = setup.buffer {
            buffer_for(cx, &modules.tenants, &mut modules.buffers, key, &candidate, other);
        }
    }
    if let Some(ticket) = ticket {
        let outcome = would_do(&modules.tenants, &modules.epochs, key, origin, &Task::Setup(Box::new(setup)));
        cx.answer_when_done(&key.0, ticket, outcome);
    }
    advance(cx, modules, key);
}
