// SPDX-License-Identifier: Apache-2.0
//! Modules that move between nodes: which of them has a module in which epoch, and where states go.
//!
//! Epochs are the requester's count of a module's owners in turn, and only grow. A node takes no SETUP of an earlier epoch than
//! one that it took before, and none of the epoch of a REMOVE, or of an earlier one: from that on, another node has the module.

use std::collections::BTreeMap;

use netserv_model::effect::{EffectId, EffectOutcome, Job, ModuleExport, WorkerJob};
use netserv_model::request::{Export, Outcome, Setup};
use netserv_model::{Refusal, RefusalKind, WorkerId};

use crate::Controller;
use crate::effects::Purpose;
use crate::expiry::Timer;
use crate::limits::{EPOCHS_REMEMBERED_MAX, EXPORT_ANSWER_TIME_MAX, EXPORTS_MAX};
use crate::report::not_installed;
use crate::state::{Active, Key, PendingAnswer, Run};

/// The least epochs that are taken of modules that are not installed; over the bound, the one that was
/// noted first is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    least: BTreeMap<Key, Least>,
    noted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Least {
    epoch: u64,
    noted: u64,
}

impl Epochs {
    /// Takes note that no earlier epoch of a module is taken.
    pub(crate) fn note(&mut self, key: &Key, epoch: u64) {
        let epoch = epoch.max(self.of(key));
        if epoch == 0 {
            return;
        }
        if self.least.len() >= EPOCHS_REMEMBERED_MAX && !self.least.contains_key(key) {
            let first = self.least.iter().min_by_key(|(_, least)| least.noted).map(|(key, _)| key.clone());
            self.least.remove(&first.expect("a full table has a first entry"));
        }
        self.noted += 1;
        self.least.insert(key.clone(), Least { epoch, noted: self.noted });
    }

    fn of(&self, key: &Key) -> u64 {
        self.least.get(key).map_or(0, |least| least.epoch)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.least.len()
    }
}

impl Controller {
    /// Checks that no later epoch of a module was taken.
    pub(crate) fn check_epoch(&self, key: &Key, epoch: u64) -> Result<(), Refusal> {
        let least = self.epochs.of(key).max(self.epoch_of(key));
        if epoch >= least {
            return Ok(());
        }
        let detail = format!("epoch {epoch} of {}, {least} is the first that this node takes", key.1);
        Err(Refusal::new(RefusalKind::OldEpoch, detail))
    }

    /// Checks that a module is of an earlier epoch than the one in which another node has it.
    pub(crate) fn check_handed_over(&self, key: &Key, epoch: Option<u64>) -> Result<(), Refusal> {
        match epoch {
            Some(epoch) if self.epoch_of(key) >= epoch => {
                let detail =
                    format!("this node has {} in epoch {}, which is not before {epoch}", key.1, self.epoch_of(key));
                Err(Refusal::new(RefusalKind::OldEpoch, detail))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns whether a SETUP brings a state that the module is still to be given.
    pub(crate) fn brings_state(&self, key: &Key, setup: &Setup) -> bool {
        setup.state.is_some() && setup.epoch > self.epoch_of(key)
    }

    /// Has a running module's state put where the request says, or answers why not.
    pub(crate) fn export(&mut self, key: &Key, ticket: PendingAnswer, export: Export, dry_run: bool) {
        let job = match self.check_export(key, export) {
            Ok(job) => job,
            Err(refusal) => return self.refuse(ticket, refusal),
        };
        if dry_run {
            return self.answer(ticket, Outcome::WouldDo { action: "export".to_owned() });
        }
        let id = self.start_effect(&key.0, Job::Workers(WorkerJob::Export(Box::new(job))), Purpose::Export);
        self.timers.set(Timer::Export(id), self.now.instant + EXPORT_ANSWER_TIME_MAX);
        self.exports.insert(id, ticket);
    }

    /// A module's state is where it was to go, or not.
    pub(crate) fn exported(&mut self, id: EffectId, outcome: EffectOutcome) {
        self.timers.cancel(&Timer::Export(id));
        let Some(ticket) = self.exports.remove(&id) else { return };
        match outcome {
            EffectOutcome::Exported { digest, bytes } => self.answer(ticket, Outcome::Exported { digest, bytes }),
            EffectOutcome::Refused(refusal) => self.refuse(ticket, refusal),
            EffectOutcome::Done
            | EffectOutcome::Fetched { .. }
            | EffectOutcome::Measured(_)
            | EffectOutcome::Metered(_)
            | EffectOutcome::Routed(_) => {
                self.counters.stray_events += 1;
                let detail = "the node answered itself as if asked for another job";
                self.refuse(ticket, Refusal::new(RefusalKind::NodeFailed, detail));
            }
        }
    }

    /// A module's state was not put where it was to go in time.
    pub(crate) fn export_overdue(&mut self, id: EffectId) {
        let Some(ticket) = self.exports.remove(&id) else { return };
        let detail = format!("the state was not written within {} s", EXPORT_ANSWER_TIME_MAX.as_secs());
        self.refuse(ticket, Refusal::new(RefusalKind::Timeout, detail));
    }

    fn check_export(&self, key: &Key, Export { url, .. }: Export) -> Result<ModuleExport, Refusal> {
        let active = self.active_of(key).ok_or_else(|| not_installed(key))?;
        let running = active.place().zip(active.manifest.as_ref()).filter(|_| active.run == Run::Running);
        let Some(((flavour, slot), manifest)) = running else {
            let detail = format!("{} of user `{}` is installed and does not run", key.1, key.0);
            return Err(Refusal::new(RefusalKind::NotRunning, detail));
        };
        if self.exports.len() >= EXPORTS_MAX {
            let detail = format!("the node writes {EXPORTS_MAX} states already");
            return Err(Refusal::new(RefusalKind::QuotaExceeded, detail));
        }
        let worker = WorkerId::new(key.0.clone(), flavour);
        Ok(ModuleExport { worker, slot, module: key.1.clone(), state_schema: manifest.state_schema, url })
    }

    /// Returns the epoch in which this node has a module; 0 if it has not.
    fn epoch_of(&self, key: &Key) -> u64 {
        self.active_of(key).map_or(0, |active| active.record.epoch)
    }

    /// Returns a module that this node has.
    pub(crate) fn active_of(&self, key: &Key) -> Option<&Active> {
        self.tenants.get(&key.0)?.modules.get(&key.1)?.active.as_ref()
    }
}
