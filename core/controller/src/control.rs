// SPDX-License-Identifier: Apache-2.0
//! Control messages: to running modules, and what modules tell the requesters of their SETUPs.
//!
//! A message is taken once it is in the inbox of the running instance. Its number is above those of all messages that the
//! module took before, so none is taken twice. The last one of each topic is kept for as long as the module is installed:
//! each instance that is loaded later gets it before others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use netserv_model::control::{CONTROL_TOPICS_MAX, ControlMessage, ModuleMessage, NotifyBucket};
use netserv_model::effect::{EffectId, Job, ModuleSlot, StoreJob, WorkerJob};
use netserv_model::notify::NotifyEvent;
use netserv_model::request::Outcome;
use netserv_model::{Flavour, Instant, Refusal, RefusalKind, Topic, UnixTime, WorkerId};

use crate::cx::Cx;
use crate::effects::Purpose;
use crate::expiry::Timer;
use crate::limits::{TELL_ANSWER_TIME_MAX, TELLS_PER_SECOND_MAX, TOLD_REMEMBERED_MAX};
use crate::report::not_installed;
use crate::state::{Active, Key, Origin, PendingAnswer, Run, Session};
use crate::tenants::Tenants;

/// What is known of the messages to and from one module, whatever version of it runs.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// The last message of each topic.
    kept: BTreeMap<Topic, ControlMessage>,
    /// Messages that are on their way to the worker, by number.
    under_way: BTreeMap<u64, Topic>,
    /// When the last messages came, [`TELLS_PER_SECOND_MAX`] of them at most.
    recent: VecDeque<Instant>,
    /// When the newest message was made, by its user's clock.
    created: UnixTime,
    /// The highest number that was given with the last load into each place: of what is in force, and of what is to be.
    given: BTreeMap<(Flavour, ModuleSlot), u64>,
    notifies: NotifyBucket,
}

impl Control {
    /// Returns what is known of a module that had these messages.
    pub(crate) fn with(kept: BTreeMap<Topic, ControlMessage>) -> Control {
        Control { kept, ..Control::default() }
    }

    /// Returns the last message of each topic, in order of their numbers.
    fn kept(&self) -> Vec<ControlMessage> {
        let mut kept: Vec<ControlMessage> = self.kept.values().cloned().collect();
        kept.sort_by_key(|message| message.seq);
        kept
    }

    /// Returns what an instance is given that is about to be loaded into a place.
    pub(crate) fn give_kept(&mut self, place: (Flavour, ModuleSlot)) -> Vec<ControlMessage> {
        let kept = self.kept();
        self.given.remove(&place);
        self.given.extend(kept.last().map(|message| (place, message.seq)));
        kept
    }

    /// Returns the highest number that was taken or may be, if there is one.
    pub(crate) fn newest(&self) -> Option<u64> {
        let kept = self.kept.values().map(|message| message.seq);
        kept.chain(self.under_way.keys().last().copied()).max()
    }

    /// Returns the place behind all messages.
    pub(crate) fn next(&self) -> u64 {
        self.newest().map_or(0, |newest| newest.saturating_add(1))
    }

    /// Returns when the newest message was made, by its user's clock.
    pub(crate) fn created(&self) -> UnixTime {
        self.created
    }

    /// Checks that a message may come next.
    pub(crate) fn check(&self, now: Instant, message: &ControlMessage) -> Result<(), Refusal> {
        if let Some(newest) = self.newest().filter(|newest| message.seq <= *newest) {
            let detail = format!("seq {} is not above {newest}, which came before", message.seq);
            return Err(Refusal::new(RefusalKind::OldSequence, detail));
        }
        let full = self.recent.len() >= TELLS_PER_SECOND_MAX;
        if full && self.recent.front().is_some_and(|first| now.since(*first) < Duration::from_secs(1)) {
            let detail = format!("{TELLS_PER_SECOND_MAX} messages to the module within a second");
            return Err(Refusal::new(RefusalKind::RateLimited, detail));
        }
        let topics: BTreeSet<&Topic> = self.kept.keys().chain(self.under_way.values()).collect();
        if topics.len() >= CONTROL_TOPICS_MAX && !topics.contains(&message.topic) {
            let detail = format!("the module has messages of {CONTROL_TOPICS_MAX} topics, use one of them");
            return Err(Refusal::new(RefusalKind::QuotaExceeded, detail));
        }
        Ok(())
    }

    /// Takes note of a message that is on its way to the worker.
    pub(crate) fn begin(&mut self, now: Instant, message: &ControlMessage, created: UnixTime) {
        self.created = self.created.max(created);
        if self.recent.len() >= TELLS_PER_SECOND_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        self.under_way.insert(message.seq, message.topic.clone());
    }

    /// Returns whether a message is on its way to the worker.
    pub(crate) fn is_under_way(&self, seq: u64) -> bool {
        self.under_way.contains_key(&seq)
    }

    /// Takes note that a message is no longer on its way.
    pub(crate) fn end(&mut self, seq: u64) {
        self.under_way.remove(&seq);
    }

    /// Keeps a message that was taken, unless a later one of its topic was. Returns whether it is kept.
    pub(crate) fn keep(&mut self, message: &ControlMessage) -> bool {
        // Answers may come in another order than the messages went.
        let is_last = self.kept.get(&message.topic).is_none_or(|kept| kept.seq < message.seq);
        if is_last {
            self.kept.insert(message.topic.clone(), message.clone());
        }
        is_last
    }

    /// Returns what the instance in a place, which has just come in force, was not given with its load.
    pub(crate) fn rest(&mut self, place: (Flavour, ModuleSlot)) -> Vec<ControlMessage> {
        // All others are gone.
        self.given.retain(|given, _| *given == place);
        let given = self.given.get(&place).copied();
        self.kept().into_iter().filter(|message| Some(message.seq) > given).collect()
    }

    /// Returns whether the module may tell its requesters something.
    pub(crate) fn take_notify(&mut self, now: Instant) -> bool {
        self.notifies.take(now)
    }
}

/// Names one instance of a module: its place, and how often the module was restarted there.
type Place = (Flavour, ModuleSlot, u32);

/// What a TELL asks for.
#[derive(Debug)]
pub(crate) struct Telling {
    pub(crate) key: Key,
    pub(crate) message: ControlMessage,
    pub(crate) created: UnixTime,
    pub(crate) dry_run: bool,
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

/// The last messages of modules that are not installed any more: none of them is taken again by one of the same name.
#[derive(Debug, Default)]
pub(crate) struct ToldBefore {
    newest: BTreeMap<Key, Told>,
}

#[derive(Clone, Copy, Debug)]
struct Told {
    seq: u64,
    created: UnixTime,
    /// Until when it could come once more.
    until: UnixTime,
}

impl ToldBefore {
    fn remember(&mut self, key: &Key, told: Told, wall: UnixTime) {
        self.newest.retain(|_, told| told.until >= wall);
        if self.newest.len() >= TOLD_REMEMBERED_MAX && !self.newest.contains_key(key) {
            let first = self.newest.iter().min_by_key(|(_, told)| told.until).map(|(key, _)| key.clone());
            self.newest.remove(&first.expect("a full table has a first entry"));
        }
        self.newest.insert(key.clone(), told);
    }

    #[cfg(test)]
    pub(crate) fn remember_for_tests(&mut self, key: &Key, seq: u64, wall: UnixTime) {
        self.remember(key, Told { seq, created: wall, until: wall + Duration::from_secs(seq) }, wall);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.newest.len()
    }

    fn check(&self, key: &Key, seq: u64, created: UnixTime) -> Result<(), Refusal> {
        let is_old = |told: &&Told| seq <= told.seq && created <= told.created;
        let Some(told) = self.newest.get(key).filter(is_old) else { return Ok(()) };
        let detail = format!("seq {seq} is not above {}, which came before the module was installed anew", told.seq);
        Err(Refusal::new(RefusalKind::OldSequence, detail))
    }
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
        let control = &mut tenants.active(&key).expect("it was just there").control;
        control.begin(now, &message, created);
        self.begin(cx, PendingTell { key, message, place, ticket: Some(ticket), again: false });
    }

    /// A worker said whether a message is in the inbox.
    pub(crate) fn told(&mut self, cx: &mut Cx, tenants: &mut Tenants, id: EffectId, failure: Option<Refusal>) {
        cx.timers.cancel(&Timer::Tell(id));
        let Some(tell) = self.open.remove(&id) else { return };
        let seq = tell.message.seq;
        // A module that was installed anew meanwhile knows nothing of it.
        let active = tenants.active(&tell.key).filter(|active| active.control.is_under_way(seq));
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
                if let Some(active) = tenants.active(&tell.key) {
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

/// Hands the instance that has just come in force what came while it was loaded.
pub(crate) fn tell_rest(cx: &mut Cx, tenants: &mut Tenants, key: &Key) {
    let Some(active) = tenants.active(key) else { return };
    let Some((flavour, slot)) = active.place() else { return };
    let rest = active.control.rest((flavour, slot));
    let worker = WorkerId::new(key.0.clone(), flavour);
    for message in rest {
        let job = WorkerJob::Tell { worker: worker.clone(), slot, message };
        cx.start_effect(&key.0, Job::Workers(job), Purpose::Nothing);
    }
}

/// Remembers which messages a module had that goes, so that none of them is taken again.
pub(crate) fn remember_told(cx: &Cx, told_before: &mut ToldBefore, key: &Key, control: &Control) {
    let Some(seq) = control.newest() else { return };
    let until = cx.now.wall + 2 * cx.policy.clock_skew_max;
    told_before.remember(key, Told { seq, created: control.created(), until }, cx.now.wall);
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
        let active = tenants.active(&key).filter(|active| active.place() == Some(place))?;
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

fn check_tell(
    cx: &Cx,
    tenants: &Tenants,
    told_before: &ToldBefore,
    key: &Key,
    message: &ControlMessage,
    created: UnixTime,
) -> Result<Place, Refusal> {
    let entry = tenants.get(&key.0).and_then(|tenant| tenant.modules.get(&key.1));
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
    let Some(active) = tenants.active(&key) else { return };
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
    let place = tenants.active(&key).and_then(|active| active.place());
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
