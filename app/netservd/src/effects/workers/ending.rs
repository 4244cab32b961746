// SPDX-License-Identifier: Apache-2.0
//! Workers that were told to end. Until one has, its user keeps the network, and no other has its files.

use std::time::Instant;

use netserv_container::Process;
use netserv_model::{DropReason, UserId, WorkerId};
use netserv_wire::container::frames::{FromWorker, ToWorker};

use super::log_budget::{LogBudget, LogEntry};
use super::outbox::Outbox;
use super::watch::remind;
use super::{Running, Workers};
use crate::event::ContainerEvent;
use crate::limits::{END_WAIT, FRAMES_BATCH, FRAMES_LAST, NETWORK_REST, SERVER_END_WAIT};

/// A worker that was told to end.
pub(super) struct Ending {
    worker: WorkerId,
    process: Process,
    /// Kept open: a worker whose node hangs up ends at once. Its modules' last words come there.
    control: Outbox,
    log: LogBudget,
    serves: bool,
    until: Instant,
    /// It ended, and only its network is still there.
    rests: bool,
}

impl Ending {
    /// Tells a worker to end; gives it back if it does not hear that.
    fn tell(worker: WorkerId, running: Running) -> Result<Ending, Process> {
        let Running { mut control, process, serves, log, .. } = running;
        if control.send(&ToWorker::Shutdown, &[]).is_err() {
            return Err(process);
        }
        let until = Instant::now() + if serves { SERVER_END_WAIT } else { END_WAIT };
        Ok(Ending { worker, process, control, log, serves, until, rests: false })
    }

    /// Returns the lines for the log that have come, at most so many as are read at a time.
    fn last_words(&mut self) -> Vec<LogEntry> {
        let mut words = Vec::new();
        let most = if self.process.exit().is_some() { FRAMES_LAST } else { FRAMES_BATCH };
        for _ in 0..most {
            // What it says otherwise, or that it says nothing any more, is of no concern.
            let Ok(Some(frame)) = self.control.receive() else { break };
            if let FromWorker::Log { slot, level, text } = frame {
                let entry = LogEntry { worker: self.worker.clone(), slot, level, text };
                words.extend(self.log.spend(Instant::now(), entry));
            }
        }
        words
    }

    /// Returns the worker, its generation and its process.
    pub(super) fn run(&mut self, generation: u64) -> (&WorkerId, u64, &mut Process) {
        (&self.worker, generation, &mut self.process)
    }
}

impl Workers {
    /// Has a worker end by itself, in a while that nobody waits for, and forgets all else of it.
    pub(super) fn let_worker_end(&mut self, worker: &WorkerId) {
        let Some(running) = self.take_worker(worker, DropReason::ContainerGone) else { return };
        let generation = running.generation;
        match Ending::tell(worker.clone(), running) {
            Ok(ending) => {
                self.look_again(worker, generation, ending.until);
                self.ending.insert(generation, ending);
            }
            Err(process) => self.metered.bury(worker, generation, process),
        }
    }

    /// Looks at a worker that was told to end, and kills it if it had its time. Returns whether the event was of one.
    pub(super) fn see_off(&mut self, event: &ContainerEvent) -> bool {
        let Some(ending) = self.ending.get_mut(&event.generation) else { return false };
        let has_ended = ending.process.exit().is_some();
        let words = ending.last_words();
        words.iter().for_each(|entry| self.log(entry));
        let Some(ending) = self.ending.get_mut(&event.generation) else { return false };
        if !event.overdue && (ending.rests || !has_ended) {
            return true;
        }
        if ending.serves && !event.overdue {
            ending.rests = true;
            self.look_again(&event.worker, event.generation, Instant::now() + NETWORK_REST);
        } else if let Some(ending) = self.ending.remove(&event.generation) {
            self.metered.bury(&event.worker, event.generation, ending.process);
        }
        self.ask_for_waiting(&event.worker.user);
        self.leave_network(&event.worker.user);
        true
    }

    /// Returns whether a worker's last process may still write its files.
    pub(super) fn is_ending(&self, worker: &WorkerId) -> bool {
        self.ending.values().any(|ending| ending.worker == *worker && !ending.rests)
    }

    /// Returns whether something of a user's goes on in the network that was told to end.
    pub(super) fn has_ending(&self, user: &UserId) -> bool {
        self.ending.values().any(|ending| ending.worker.user == *user)
    }

    /// Has all workers end by themselves, and waits for that. Those that do not are killed.
    pub(super) fn let_workers_end(&mut self) {
        let running = std::mem::take(&mut self.workers);
        let told = running.into_iter().filter_map(|(worker, running)| {
            let generation = running.generation;
            Some((generation, Ending::tell(worker, running).ok()?))
        });
        self.ending.extend(told);
        for ending in self.ending.values_mut() {
            ending.process.wait(ending.until.saturating_duration_since(Instant::now()));
        }
        let words: Vec<LogEntry> = self.ending.values_mut().flat_map(Ending::last_words).collect();
        words.iter().for_each(|entry| self.log(entry));
        self.ending.clear();
    }

    fn look_again(&self, worker: &WorkerId, generation: u64, at: Instant) {
        let event = ContainerEvent { worker: worker.clone(), generation, overdue: true };
        tokio::spawn(remind(at, event, self.parts.events.clone()));
    }
}
