// SPDX-License-Identifier: Apache-2.0
//! Messages on their way to workers, and from modules to requesters.

use std::collections::BTreeMap;

use netserv_model::control::{ControlMessage, ModuleMessage};
use netserv_model::effect::{EffectId, Job, ModuleSlot, StoreJob, WorkerJob};
use netserv_model::notify::NotifyEvent;
use netserv_model::request::Outcome;
use netserv_model::{Flavour, Refusal, RefusalKind, UnixTime, WorkerId};

use crate::control::told::ToldBefore;
use crate::cx::Cx;
use crate::cx::effects::Purpose;
use crate::cx::request::{Key, Origin, PendingAnswer, not_installed};
use crate::cx::timers::Timer;
use crate::limits::TELL_ANSWER_TIME_MAX;
use crate::tenants::Tenants;
use crate::tenants::active::{Active, Run};
use crate::tenants::session::Session;

/// What a TELL asks for.
#[derive(Debug)]
pub(crate) struct Telling {
    pub(crate) key: Key,
    pub(crate) message: ControlMessage,
    pub(crate) created: UnixTime,
    pub(crate) dry_run: bool,
}

/// The messages that workers are asked to put into inboxes.
#[derive(Debug, Default)]
pub(crate) struct Tells {
    open: BTreeMap<EffectId, PendingTell>,
}

impl Tells {
    /// Has a message handed to a running module, or answers why not.
    pub(crate) fn tell(
        &mut self,
        cx: &mut Cx,
        tenants: &mut Tenants,
        told_before: &ToldBefore,
        ticket: PendingAnswer,
        Telling { key, message, created, dry_run }: Telling,
    ) {
        let place = match check_tell(cx, tenants, told_before, &key, &message, created) {
            Ok(place) => place,
            Err(refusal) => return cx.refuse(ticket, refusal),
        };
        if dry_run {
            return cx.answer(ticket, Outcome::WouldDo { action: "tell".to_owned() });
        }
        let now = cx.now.instant;
        let control = &mut tenants.active_mut(&key).expect("it was just there").control;
        control.begin(now, &message, created);
        self.begin(cx, PendingTell { key, message, place, ticket: Some(ticket), again: false });
    }

    /// A worker said whether a message is in the inbox.
    pub(crate) fn told(&mut self, cx: &mut Cx, tenants: &mut Tenants, id: EffectId, failure: Option<Refusal>) {
        cx.timers.cancel(&Timer::Tell(id));
        let Some(tell) = self.open.remove(&id) else { return };
        let seq = tell.message.seq;
        // A module that was installed anew meanwhile knows nothing of it.
        let active = tenants.active_mut(&tell.key).filter(|active| active.control.is_under_way(seq));
        let Some(place) = active.map(|active| place_of(active).filter(|_| active.run == Run::Running)) else {
            let refusal = failure.unwrap_or_else(|| not_installed(&tell.key));
            return refuse_tell(cx, tell.ticket, refusal);
        };
        let moved = place.filter(|place| *place != tell.place);
        match (failure, moved) {
            // The instance before this one has it; so has this one to.
            (None, moved) => keep_message(cx, tenants, tell, moved.is_some()),
            (Some(refusal), Some(place)) if refusal.kind == RefusalKind::NotRunning && !tell.again => {
                self.begin(cx, PendingTell { place, again: true, ..tell });
            }
            (Some(refusal), _) => {
                if let Some(active) = tenants.active_mut(&tell.key) {
                    active.control.end(seq);
                }
                refuse_tell(cx, tell.ticket, refusal);
            }
        }
    }

    /// A worker did not say in time whether a message is in the inbox.
    pub(crate) fn overdue(&mut self, cx: &mut Cx, id: EffectId) {
        let ticket = self.open.get_mut(&id).and_then(|tell| tell.ticket.take());
        let detail = format!("the module's worker did not answer within {} s", TELL_ANSWER_TIME_MAX.as_secs());
        refuse_tell(cx, ticket, Refusal::new(RefusalKind::Timeout, detail));
    }

    fn begin(&mut self, cx: &mut Cx, tell: PendingTell) {
        let (user, (flavour, slot, _)) = (tell.key.0.clone(), tell.place);
        let worker = WorkerId::new(user.clone(), flavour);
        let job = Job::Workers(WorkerJob::Tell { worker, slot, message: tell.message.clone() });
        let id = cx.start_effect(&user, job, Purpose::Tell);
        cx.timers.set(Timer::Tell(id), cx.now.instant + TELL_ANSWER_TIME_MAX);
        self.open.insert(id, tell);
    }
}

/// A message on its way to a worker.
#[derive(Debug)]
pub(crate) struct PendingTell {
    key: Key,
    message: ControlMessage,
    /// Where it went.
    place: Place,
    /// Nothing once its requester was told that there is no answer.
    ticket: Option<PendingAnswer>,
    /// It went to the instance before this one, which was gone.
    again: bool,
}

/// Names one instance of a module: its place, and how often the module was restarted there.
type Place = (Flavour, ModuleSlot, u32);

fn check_tell(
    cx: &Cx,
    tenants: &Tenants,
    told_before: &ToldBefore,
    key: &Key,
    message: &ControlMessage,
    created: UnixTime,
) -> Result<Place, Refusal> {
    let entry = tenants.entry(key);
    let active = entry.and_then(|entry| entry.active.as_ref()).ok_or_else(|| not_installed(key))?;
    active.control.check(cx.now.instant, message)?;
    told_before.check(key, message.seq, created)?;
    if active.run != Run::Running {
        let detail = format!("{} of user `{}` is installed and does not run", key.1, key.0);
        return Err(Refusal::new(RefusalKind::NotRunning, detail));
    }
    let no_code = || Refusal::new(RefusalKind::NoInbox, "the service has no code of its own");
    place_of(active).ok_or_else(no_code)
}

fn keep_message(cx: &mut Cx, tenants: &mut Tenants, tell: PendingTell, give: bool) {
    let PendingTell { key, message, ticket, .. } = tell;
    let Some(active) = tenants.active_mut(&key) else { return };
    active.control.end(message.seq);
    let (user, module) = key.clone();
    if active.control.keep(&message) {
        let job = StoreJob::PutMessage { user, module, message: message.clone() };
        let stored = cx.start_effect(&key.0, Job::Store(job), Purpose::Store(key.clone()));
        if let Some(ticket) = ticket {
            cx.answer_after(stored, ticket, Outcome::Told);
        }
    } else if let Some(ticket) = ticket {
        cx.answer(ticket, Outcome::Told);
    }
    let place = tenants.active_mut(&key).and_then(|active| active.place());
    if let Some((flavour, slot)) = place.filter(|_| give) {
        let job = WorkerJob::Tell { worker: WorkerId::new(key.0.clone(), flavour), slot, message };
        cx.start_effect(&key.0, Job::Workers(job), Purpose::Nothing);
    }
}

fn refuse_tell(cx: &mut Cx, ticket: Option<PendingAnswer>, refusal: Refusal) {
    if let Some(ticket) = ticket {
        cx.refuse(ticket, refusal);
    }
}

fn place_of(active: &Active) -> Option<Place> {
    active.place().map(|(flavour, slot)| (flavour, slot, active.restarts))
}

/// Hands the instance that has just come in force what came while it was loaded.
pub(crate) fn tell_rest(cx: &mut Cx, tenants: &mut Tenants, key: &Key) {
    let Some(active) = tenants.active_mut(key) else { return };
    let Some((flavour, slot)) = active.place() else { return };
    let rest = active.control.rest((flavour, slot));
    let worker = WorkerId::new(key.0.clone(), flavour);
    for message in rest {
        let job = WorkerJob::Tell { worker: worker.clone(), slot, message };
        cx.start_effect(&key.0, Job::Workers(job), Purpose::Nothing);
    }
}

/// A running module tells the requesters of the SETUPs that hold it something.
pub(crate) fn notified(
    cx: &mut Cx,
    tenants: &mut Tenants,
    worker: &WorkerId,
    slot: ModuleSlot,
    message: &ModuleMessage,
) {
    let now = cx.now.instant;
    let module = tenants.module_at(worker, slot).cloned();
    let key = module.map(|module| (worker.user.clone(), module));
    let place = (worker.flavour, slot);
    let Some((key, active)) = key.and_then(|key| {
        let active = tenants.active_mut(&key).filter(|active| active.place() == Some(place))?;
        Some((key, active))
    }) else {
        cx.counters.stray_events += 1;
        return;
    };
    if !active.control.take_notify(now) {
        cx.counters.module_notifies_dropped += 1;
        return;
    }
    let origins: Vec<Origin> = active.sessions.iter().map(Session::origin).collect();
    cx.counters.module_notifies += 1;
    for origin in origins {
        cx.tell_requester(&key, origin, NotifyEvent::ModuleMessage, String::new(), Some(message.clone()));
    }
}
