// SPDX-License-Identifier: Apache-2.0
//! What is made ready before a module comes from another node, so that it stands still for a shorter time: its package is fetched and
//! compiled, and its worker runs. The module is not loaded, and nothing of it is installed.

use netserv_model::{Flavour, UserId, WorkerId};

use crate::Controller;
use crate::expiry::Timer;
use crate::limits::PREPARED_TIME;
use crate::state::{Key, Task};

impl Controller {
    /// All is ready: answers what would happen, and keeps the worker for a while.
    pub(crate) fn end_preparing(&mut self, key: &Key, worker: Option<&WorkerId>) {
        let Some(operation) = self.entry(key).and_then(|entry| entry.operation.take()) else { return };
        if let Some(worker) = worker {
            self.timers.set(Timer::Prepared(worker.clone()), self.now.instant + PREPARED_TIME);
        }
        if let Some(ticket) = operation.ticket {
            self.answer_dry_run(key, ticket, &Task::Setup(Box::new(operation.setup)));
        }
        self.advance(key);
    }

    /// Lets workers go that are ready for modules of a user's.
    pub(crate) fn revoke_prepared(&mut self, user: &UserId) {
        for flavour in Flavour::ALL {
            self.timers.cancel(&Timer::Prepared(WorkerId::new(user.clone(), flavour)));
        }
        self.release_unused(user);
    }

    /// Returns whether a worker stays for a module that may come.
    pub(crate) fn is_prepared(&self, worker: &WorkerId) -> bool {
        self.timers.runs(&Timer::Prepared(worker.clone()))
    }
}
