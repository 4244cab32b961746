// SPDX-License-Identifier: Apache-2.0
//! Modules that stand still while their state goes to another node, so that no packet is seen by both.
//!
//! Its rules go first. When the driver has none for it any more, it is asked for its state. It goes on where it was if its
//! requester sends its SETUP again, if the state was not written, or when its time is up; it does not, if a SETUP of a later
//! epoch passes by for another node.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use netserv_model::effect::{EffectId, FilterId, FilterRule, Job, ModuleExport, WorkerJob};
use netserv_model::request::{Outcome, Setup};
use netserv_model::{Refusal, RefusalKind, UserId};

use crate::buffering::{Buffers, buffer_here};
use crate::cx::Cx;
use crate::effects::Purpose;
use crate::expiry::Timer;
use crate::lifecycle::store_record;
use crate::limits::EXPORT_ANSWER_TIME_MAX;
use crate::rules::{change_filters, hide_module, install_rules};
use crate::state::{Active, Key, PendingAnswer};
use crate::tenants::Tenants;

/// An EXPORT that is answered later.
#[derive(Debug)]
pub(crate) struct Exporting {
    ticket: PendingAnswer,
    key: Key,
    /// Whether the module stands still for it.
    frozen: bool,
}

impl Exporting {
    /// Returns whose module it is.
    pub(crate) fn user(&self) -> &UserId {
        &self.key.0
    }
}

/// An EXPORT that waits for the module to see nothing any more.
#[derive(Debug)]
pub(crate) struct Freezing {
    ticket: PendingAnswer,
    job: ModuleExport,
    /// The rules that go.
    shown: Vec<FilterId>,
    /// Those that come.
    waiting: Vec<FilterId>,
}

impl Freezing {
    /// Returns whose module it is.
    pub(crate) fn user(&self) -> &UserId {
        &self.job.worker.user
    }
}

/// The requests that wait for a state to be written.
#[derive(Debug, Default)]
pub(crate) struct Exports {
    pub(crate) open: BTreeMap<EffectId, Exporting>,
    pub(crate) freezing: BTreeMap<EffectId, Freezing>,
}

impl Exports {
    /// Has a running module see nothing for a while, and then be asked for its state.
    ///
    /// Packets wait meanwhile if it goes to another node, which is known.
    pub(crate) fn freeze(
        &mut self,
        cx: &mut Cx,
        tenants: &mut Tenants,
        buffers: &mut Buffers,
        ticket: PendingAnswer,
        job: ModuleExport,
        (time, other): (Duration, Option<IpAddr>),
    ) {
        let key = &(job.worker.user.clone(), job.module.clone());
        let Some(active) = tenants.active(key) else { return };
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

    /// A change of rules is made, or refused; returns whether it was of a module that is to stand still.
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
    pub(crate) fn ask_for_state(&mut self, cx: &mut Cx, ticket: PendingAnswer, job: ModuleExport, frozen: bool) {
        let key = (job.worker.user.clone(), job.module.clone());
        let id = cx.start_effect(&key.0, Job::Workers(WorkerJob::Export(Box::new(job))), Purpose::Export);
        cx.timers.set(Timer::Export(id), cx.now.instant + EXPORT_ANSWER_TIME_MAX);
        self.open.insert(id, Exporting { ticket, key, frozen });
    }
}

/// Answers an EXPORT. The module goes on if its state did not get anywhere.
pub(crate) fn end_export(
    cx: &mut Cx,
    tenants: &mut Tenants,
    buffers: &mut Buffers,
    exporting: Exporting,
    outcome: Outcome,
) {
    let Exporting { ticket, key, frozen } = exporting;
    if frozen && !outcome.is_ok() {
        thaw(cx, tenants, buffers, &key);
    }
    cx.answer(ticket, outcome);
}

/// Has a module that stands still go on.
pub(crate) fn thaw(cx: &mut Cx, tenants: &mut Tenants, buffers: &mut Buffers, key: &Key) {
    cx.timers.cancel(&Timer::Thaw(key.clone()));
    let stands = |active: &&mut Active| active.is_frozen && active.record.moved_in.is_none();
    let Some(active) = tenants.active(key).filter(stands) else { return };
    active.is_frozen = false;
    install_rules(cx, tenants, buffers, key);
    // Nothing takes their place while the module is down, or its successor comes.
    buffers.end(cx, key);
}

/// Sees a SETUP that is for another node: of a later epoch, it is that of the next owner.
///
/// Returns what there is to say of it.
pub(crate) fn see_owner(
    cx: &mut Cx,
    tenants: &mut Tenants,
    buffers: &mut Buffers,
    key: &Key,
    setup: &Setup,
) -> Option<String> {
    let active = tenants.active(key).filter(|active| active.is_frozen && active.record.epoch < setup.epoch)?;
    let epoch = active.record.epoch;
    active.record.moved_in = Some(setup.epoch);
    let record = active.record.clone();
    store_record(cx, key, &record);
    cx.timers.cancel(&Timer::Thaw(key.clone()));
    buffers.end_soon(cx, key);
    Some(format!("{} of epoch {epoch} stands still here until it is removed", key.1))
}
