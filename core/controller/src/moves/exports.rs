// SPDX-License-Identifier: Apache-2.0
//! States that are written for other nodes.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use netserv_model::effect::{EffectId, EffectOutcome, FilterId, FilterRule, Job, ModuleExport, WorkerJob};
use netserv_model::request::{Export, Outcome};
use netserv_model::{Refusal, RefusalKind, UserId, WorkerId};

use crate::cx::Cx;
use crate::cx::effects::Purpose;
use crate::cx::request::{Key, PendingAnswer, not_installed};
use crate::cx::timers::Timer;
use crate::limits::{EXPORT_ANSWER_TIME_MAX, EXPORTS_MAX, EXPORTS_OF_USER_MAX};
use crate::moves::freezing::thaw;
use crate::rules::buffering::{Buffers, buffer_here};
use crate::rules::install::hide_module;
use crate::rules::names::change_filters;
use crate::tenants::Tenants;
use crate::tenants::active::Run;

/// The requests that wait for a state to be written.
#[derive(Debug, Default)]
pub(crate) struct Exports {
    open: BTreeMap<EffectId, Exporting>,
    freezing: BTreeMap<EffectId, Freezing>,
}

impl Exports {
    /// Has a running module's state put where the request says, or answers why not.
    pub(crate) fn export(
        &mut self,
        cx: &mut Cx,
        tenants: &mut Tenants,
        buffers: &mut Buffers,
        ticket: PendingAnswer,
        (key, export): (&Key, Export),
        dry_run: bool,
    ) {
        let (freeze, other) = (export.freeze, export.buffer);
        let job = match self.check_export(tenants, key, export) {
            Ok(job) => job,
            Err(refusal) => return cx.refuse(ticket, refusal),
        };
        if dry_run {
            return cx.answer(ticket, Outcome::WouldDo { action: "export".to_owned() });
        }
        match freeze {
            Some(time) => self.freeze(cx, tenants, buffers, ticket, job, (time, other)),
            None => self.ask_for_state(cx, ticket, job, false),
        }
    }

    /// A module's state is where it was to go, or not.
    pub(crate) fn exported(
        &mut self,
        cx: &mut Cx,
        tenants: &mut Tenants,
        buffers: &mut Buffers,
        id: EffectId,
        outcome: EffectOutcome,
    ) {
        cx.timers.cancel(&Timer::Export(id));
        let Some(exporting) = self.open.remove(&id) else { return };
        let outcome = match outcome {
            EffectOutcome::Exported { digest, bytes } => Outcome::Exported { digest, bytes },
            EffectOutcome::Refused(refusal) => Outcome::Refused(refusal),
            EffectOutcome::Done
            | EffectOutcome::Fetched { .. }
            | EffectOutcome::Measured(_)
            | EffectOutcome::Metered(_)
            | EffectOutcome::Routed(_)
            | EffectOutcome::Vouched(_)
            | EffectOutcome::Held(_)
            | EffectOutcome::Listed(_) => {
                cx.counters.stray_events += 1;
                let detail = "the node answered itself as if asked for another job";
                Outcome::Refused(Refusal::new(RefusalKind::NodeFailed, detail))
            }
        };
        end_export(cx, tenants, buffers, exporting, outcome);
    }

    /// A module's state was not put where it was to go in time.
    pub(crate) fn overdue(&mut self, cx: &mut Cx, tenants: &mut Tenants, buffers: &mut Buffers, id: EffectId) {
        let Some(exporting) = self.open.remove(&id) else { return };
        let detail = format!("the state was not written within {} s", EXPORT_ANSWER_TIME_MAX.as_secs());
        end_export(cx, tenants, buffers, exporting, Outcome::Refused(Refusal::new(RefusalKind::Timeout, detail)));
    }

    fn check_export(&self, tenants: &Tenants, key: &Key, Export { url, .. }: Export) -> Result<ModuleExport, Refusal> {
        let active = tenants.active(key).ok_or_else(|| not_installed(key))?;
        let running = active.place().zip(active.manifest.as_ref()).filter(|_| active.run == Run::Running);
        let Some(((flavour, slot), manifest)) = running else {
            let detail = format!("{} of user `{}` is installed and does not run", key.1, key.0);
            return Err(Refusal::new(RefusalKind::NotRunning, detail));
        };
        if active.is_frozen {
            let detail = format!("{} of user `{}` stands still, and its state was asked for", key.1, key.0);
            return Err(Refusal::new(RefusalKind::NotRunning, detail));
        }
        if self.open.len() + self.freezing.len() >= EXPORTS_MAX {
            let detail = format!("the node writes {EXPORTS_MAX} states already");
            return Err(Refusal::new(RefusalKind::QuotaExceeded, detail));
        }
        let theirs = self.freezing.values().map(Freezing::user).chain(self.open.values().map(Exporting::user));
        if theirs.filter(|user| **user == key.0).count() >= EXPORTS_OF_USER_MAX {
            let detail = format!("the node writes {EXPORTS_OF_USER_MAX} states of the user's already");
            return Err(Refusal::new(RefusalKind::QuotaExceeded, detail));
        }
        let worker = WorkerId::new(key.0.clone(), flavour);
        Ok(ModuleExport { worker, slot, module: key.1.clone(), state_schema: manifest.state_schema, url })
    }

    /// Has a running module see nothing for a while, and then be asked for its state.
    ///
    /// Packets wait meanwhile if it goes to another node, which is known.
    fn freeze(
        &mut self,
        cx: &mut Cx,
        tenants: &mut Tenants,
        buffers: &mut Buffers,
        ticket: PendingAnswer,
        job: ModuleExport,
        (time, other): (Duration, Option<IpAddr>),
    ) {
        let key = &(job.worker.user.clone(), job.module.clone());
        let Some(active) = tenants.active_mut(key) else { return };
        active.is_frozen = true;
        cx.timers.set(Timer::Thaw(key.clone()), cx.now.instant + time);
        let shown = hide_module(cx, tenants, key);
        let waiting = other.map(|other| buffer_here(cx, tenants, buffers, key, other)).unwrap_or_default();
        let ids = waiting.iter().map(|rule| rule.id).collect();
        let freezing = Freezing { ticket, job, shown, waiting: ids };
        self.wait_for_change(cx, key, waiting, freezing);
    }

    /// Has the rules that show a module packets go, and others come by which these wait.
    fn wait_for_change(&mut self, cx: &mut Cx, key: &Key, waiting: Vec<FilterRule>, freezing: Freezing) {
        match change_filters(cx, key, waiting, freezing.shown.clone()) {
            Some(change) => drop(self.freezing.insert(change, freezing)),
            None => self.ask_for_state(cx, freezing.ticket, freezing.job, true),
        }
    }

    /// A change of rules is made, or refused; returns whether it was of a module that is to be paused.
    pub(crate) fn hidden(
        &mut self,
        cx: &mut Cx,
        tenants: &mut Tenants,
        buffers: &mut Buffers,
        key: &Key,
        change: EffectId,
        is_made: bool,
    ) -> bool {
        let Some(freezing) = self.freezing.remove(&change) else { return false };
        if !is_made {
            // There is no room for the rules by which packets wait.
            buffers.forget(cx, key, &freezing.waiting);
            self.wait_for_change(cx, key, Vec::new(), freezing);
            return true;
        }
        let Freezing { ticket, job, .. } = freezing;
        let is_there = tenants.active(key).is_some_and(|active| active.is_frozen && active.slot == Some(job.slot));
        if is_there {
            self.ask_for_state(cx, ticket, job, true);
        } else {
            let detail = format!("{} of user `{}` does not stand still any more", key.1, key.0);
            cx.refuse(ticket, Refusal::new(RefusalKind::NotRunning, detail));
        }
        true
    }

    /// Asks a worker for the state of a module.
    fn ask_for_state(&mut self, cx: &mut Cx, ticket: PendingAnswer, job: ModuleExport, frozen: bool) {
        let key = (job.worker.user.clone(), job.module.clone());
        let id = cx.start_effect(&key.0, Job::Workers(WorkerJob::Export(Box::new(job))), Purpose::Export);
        cx.timers.set(Timer::Export(id), cx.now.instant + EXPORT_ANSWER_TIME_MAX);
        self.open.insert(id, Exporting { ticket, key, frozen });
    }
}

/// An EXPORT that is answered later.
#[derive(Debug)]
struct Exporting {
    ticket: PendingAnswer,
    key: Key,
    /// Whether the module is paused for it.
    frozen: bool,
}

impl Exporting {
    /// Returns whose module it is.
    fn user(&self) -> &UserId {
        &self.key.0
    }
}

/// An EXPORT that waits for the module to see nothing any more.
#[derive(Debug)]
struct Freezing {
    ticket: PendingAnswer,
    job: ModuleExport,
    /// The rules that go.
    shown: Vec<FilterId>,
    /// Those that come.
    waiting: Vec<FilterId>,
}

impl Freezing {
    /// Returns whose module it is.
    fn user(&self) -> &UserId {
        &self.job.worker.user
    }
}

/// Answers an EXPORT. The module resumes if its state was not written.
fn end_export(cx: &mut Cx, tenants: &mut Tenants, buffers: &mut Buffers, exporting: Exporting, outcome: Outcome) {
    let Exporting { ticket, key, frozen } = exporting;
    if frozen && !outcome.is_ok() {
        thaw(cx, tenants, buffers, &key);
    }
    cx.answer(ticket, outcome);
}
