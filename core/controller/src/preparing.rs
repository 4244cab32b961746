// SPDX-License-Identifier: Apache-2.0
//! What is made ready before a module comes from another node, so that it stands still for a shorter time: its package is fetched and
//! compiled, and its worker runs. The module is not loaded, and nothing of it is installed.

use netserv_model::{Flavour, UserId, WorkerId};

use crate::Controller;
use crate::expiry::Timer;
use crate::limits::PREPARED_TIME;
use crate::state::{Key, Operation, Stage, Task};

impl Controller {
    /// All is ready: answers what would happen, and keeps the worker for a while.
    pub(crate) fn end_preparing(&mut self, key: &Key, worker: Option<&WorkerId>) {
        let operation = self.entry(key).and_then(|entry| entry.operation.take_if(|operation| operation.only_waits()));
        let Some(Operation { ticket, origin, setup, stage: Stage::Waiting(candidate) }) = operation else { return };
        if let Some(worker) = worker {
            self.timers.set(Timer::Prepared(worker.clone()), self.now.instant + PREPARED_TIME);
            if let Some(other) = setup.buffer {
                self.buffer_for(key, &candidate, other);
            }
        }
        if let Some(ticket) = ticket {
            let outcome = self.would_do(key, origin, &Task::Setup(Box::new(setup)));
            self.answer_when_done(&key.0, ticket, outcome);
        }
        self.advance(key);
    }

    /// Lets workers go that are ready for modules of a user's.
    pub(crate) fn revoke_prepared(&mut self, user: &UserId) {
        self.end_buffering_of(user);
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
