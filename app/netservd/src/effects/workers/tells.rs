// SPDX-License-Identifier: Apache-2.0
//! Control messages on their way to modules: a worker says of each whether it is in the module's inbox.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use netserv_model::control::{ControlMessage, ModuleMessage};
use netserv_model::effect::{ModuleSlot, WorkerNews};
use netserv_model::{Refusal, RefusalKind, WorkerId};
use netserv_wire::container::frames::{TellVerdict, ToWorker};

use super::Workers;
use crate::effects::ticket::Ticket;
use crate::limits::{NOTIFIES_PER_WORKER_MAX, TELLS_UNANSWERED_MAX};

/// How many messages of a worker's modules may still go to the controller, which bounds them for each module.
#[derive(Debug)]
pub(super) struct NotifyBudget {
    since: Instant,
    taken: u32,
}

impl Default for NotifyBudget {
    fn default() -> NotifyBudget {
        NotifyBudget { since: Instant::now(), taken: 0 }
    }
}

impl NotifyBudget {
    fn take(&mut self, now: Instant) -> bool {
        if now.duration_since(self.since) >= Duration::from_secs(1) {
            *self = NotifyBudget { since: now, taken: 0 };
        }
        self.taken = self.taken.saturating_add(1);
        self.taken <= NOTIFIES_PER_WORKER_MAX
    }
}

/// The messages to one worker of which it has not said anything, in the order in which they went.
#[derive(Debug, Default)]
pub(super) struct Tells {
    unanswered: VecDeque<(ModuleSlot, u64, Ticket)>,
}

impl Tells {
    /// Refuses those to one module, or to all.
    pub(super) fn end(&mut self, slot: Option<ModuleSlot>) {
        let (ended, rest) = std::mem::take(&mut self.unanswered)
            .into_iter()
            .partition(|(place, ..)| slot.is_none_or(|slot| *place == slot));
        self.unanswered = rest;
        let ended: VecDeque<_> = ended;
        ended.into_iter().for_each(|(.., ticket)| ticket.refuse(not_running()));
    }

    fn take(&mut self, slot: ModuleSlot, seq: u64) -> Option<Ticket> {
        let at = self.unanswered.iter().position(|(place, number, _)| (*place, *number) == (slot, seq))?;
        self.unanswered.remove(at).map(|(.., ticket)| ticket)
    }
}

impl Workers {
    /// Has a message put into the inbox of a module.
    pub(super) fn tell_module(&mut self, worker: &WorkerId, slot: ModuleSlot, message: ControlMessage, ticket: Ticket) {
        let running = self.workers.get_mut(worker).filter(|running| running.dying.is_none());
        let Some(running) = running.filter(|running| running.pinned.contains_key(&slot)) else {
            return ticket.refuse(not_running());
        };
        let seq = message.seq;
        let is_full = running.tells.unanswered.len() >= TELLS_UNANSWERED_MAX;
        // A worker that is gone is seen when reading.
        if is_full || running.control.send(&ToWorker::Tell { slot, message }, &[]).is_err() {
            let detail = "the worker of the user's modules is behind with its messages";
            return ticket.refuse(Refusal::new(RefusalKind::InboxFull, detail));
        }
        running.tells.unanswered.push_back((slot, seq, ticket));
    }

    /// Takes what a module tells the requester of its SETUP. A worker that tells more than all its modules may is not heard.
    pub(super) fn notified(&mut self, worker: &WorkerId, slot: ModuleSlot, message: ModuleMessage) {
        let Some(running) = self.workers.get_mut(worker) else { return };
        let generation = running.generation;
        if running.notifies.take(Instant::now()) {
            self.tell_news(worker, generation, WorkerNews::Notified { slot, message });
        }
    }

    /// Takes what a worker says of a message; of one that nobody asked about it may say anything.
    pub(super) fn told(&mut self, worker: &WorkerId, slot: ModuleSlot, seq: u64, verdict: TellVerdict) {
        let ticket = self.workers.get_mut(worker).and_then(|running| running.tells.take(slot, seq));
        let Some(ticket) = ticket else { return };
        ticket.end(match verdict {
            TellVerdict::Taken => Ok(()),
            TellVerdict::Full => {
                let detail = "the module has not taken the messages that came before";
                Err(Refusal::new(RefusalKind::InboxFull, detail))
            }
            TellVerdict::NoInbox => {
                let detail = "the module has no inbox for control messages";
                Err(Refusal::new(RefusalKind::NoInbox, detail))
            }
            TellVerdict::NotLoaded => Err(not_running()),
        });
    }
}

fn not_running() -> Refusal {
    Refusal::new(RefusalKind::NotRunning, "the module does not run at the moment")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_notifies_is_bounded_within_each_second() {
        let mut budget = NotifyBudget::default();
        let start = budget.since;
        for _ in 0..NOTIFIES_PER_WORKER_MAX {
            assert!(budget.take(start));
        }
        assert!(!budget.take(start + Duration::from_millis(999)));
        assert!(budget.take(start + Duration::from_secs(1)));
    }
}
