// SPDX-License-Identifier: Apache-2.0
//! What the controller knows of users, workers and modules.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use netserv_model::effect::{EffectId, FilterId, InstalledRecord, ModuleSlot, RequestId, SessionRecord, Wish};
use netserv_model::limits::MODULES_PER_CONTAINER_MAX;
use netserv_model::manifest::Manifest;
use netserv_model::request::{ModuleState, Setup};
use netserv_model::{
    Digest, Filter, Flavour, Instant, ModuleName, ModuleRef, Nonce, Now, Refusal, SessionId, UserId, WantedFilter,
};

use crate::control::Control;
use crate::filters;
use crate::limits::{BACKOFF_MAX, BACKOFF_MIN, FAILURE_WINDOW, FAILURES_MAX};

/// Names a module on the node.
pub(crate) type Key = (UserId, ModuleName);

/// A request that must be answered; using it up is answering.
#[derive(Debug)]
pub(crate) struct PendingAnswer {
    pub(crate) request: RequestId,
    pub(crate) method: &'static str,
    pub(crate) received: Instant,
}

/// One user with a container or on the way to one.
#[derive(Debug, Default)]
pub(crate) struct Tenant {
    /// Those that are there or on the way, by what they run.
    pub(crate) workers: BTreeMap<Flavour, Worker>,
    pub(crate) modules: BTreeMap<ModuleName, Entry>,
    /// The addresses that the container had when its last worker was ready.
    pub(crate) addresses: Vec<IpAddr>,
    /// The floating addresses that were last asked to lead to the container.
    pub(crate) floating: BTreeSet<IpAddr>,
    /// Whether that was refused, so that others may lead there.
    pub(crate) floating_unknown: bool,
}

impl Tenant {
    /// Returns whether modules of a flavour are installed or being installed, may turn out to be of it, or are gone while
    /// connections of theirs go on.
    pub(crate) fn needs(&self, flavour: Flavour) -> bool {
        self.modules.values().any(|entry| {
            let installed = entry.active.as_ref().is_some_and(|active| active.record.flavour == Some(flavour));
            let asked = entry.operation.as_ref().is_some_and(|operation| match &operation.stage {
                Stage::Fetching(_) => true,
                Stage::Joining(_) => false,
                Stage::Composing(_, candidate)
                | Stage::Waiting(candidate)
                | Stage::Loading(candidate)
                | Stage::Settling(candidate, _) => candidate.flavour == flavour,
            });
            installed || asked
        }) || self.workers.get(&flavour).is_some_and(|worker| !worker.draining.is_empty())
    }

    /// Returns whether there are modules of any flavour, or connections of some that are gone.
    pub(crate) fn is_empty(&self) -> bool {
        self.modules.is_empty() && self.workers.values().all(|worker| worker.draining.is_empty())
    }
}

/// One module name of one user: what is installed, what is under way, what comes after that.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    pub(crate) active: Option<Active>,
    pub(crate) operation: Option<Operation>,
    pub(crate) waiting: VecDeque<Waiter>,
}

impl Entry {
    pub(crate) fn is_empty(&self) -> bool {
        self.active.is_none() && self.operation.is_none() && self.waiting.is_empty()
    }

    /// Returns how many requests are not answered.
    pub(crate) fn requests(&self) -> usize {
        self.waiting.len() + usize::from(self.operation.as_ref().is_some_and(|operation| operation.ticket.is_some()))
    }
}

/// A request that waits for the one before it.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) ticket: PendingAnswer,
    pub(crate) origin: Origin,
    pub(crate) task: Task,
}

/// Where a request is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) session: SessionId,
    /// Unknown only of what an earlier version stored.
    pub(crate) nonce: Option<Nonce>,
    /// What it wants the module to be, if it is a SETUP; likewise.
    pub(crate) wish: Option<Wish>,
}

/// What a request that may have to wait asks for.
#[derive(Debug)]
pub(crate) enum Task {
    /// Install, refresh or replace.
    Setup(Box<Setup>),
    /// Nothing, if what is installed is from this very request.
    Repeat,
    /// Remove.
    Remove(Removal),
    /// Nothing: the REMOVE of this nonce came before.
    RemoveAgain(Nonce),
}

/// What a REMOVE takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Removal {
    pub(crate) leave: Leave,
    /// Only if the module is of an earlier epoch than this.
    pub(crate) epoch: Option<u64>,
    /// The session that lets go of it; nothing if it goes whoever holds it.
    pub(crate) session: Option<SessionId>,
}

/// How a module goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Its connections go on without it if its manifest says so.
    Drain,
    /// With its connections.
    AtOnce,
}

/// An installed module.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) record: InstalledRecord,
    /// The sessions that hold it, the one of the last SETUP last; the record has them, too.
    pub(crate) sessions: Vec<Session>,
    /// When the last of their leases ends.
    pub(crate) lease_end: Instant,
    /// Nothing until the package was had again after a restart of the node.
    pub(crate) manifest: Option<Manifest>,
    /// The connections that the manifest in the package says it takes over; those of `manifest` are what sessions made of them.
    pub(crate) declared: Vec<Filter>,
    pub(crate) rules: Vec<ModuleRule>,
    /// Kept while the module is down, so that its filters keep their meaning.
    pub(crate) slot: Option<ModuleSlot>,
    /// What a service is made of, once that is known.
    pub(crate) composition: Option<Composition>,
    pub(crate) run: Run,
    /// Whether it sees nothing, since its state is on its way to another node.
    pub(crate) is_frozen: bool,
    pub(crate) backoff: Backoff,
    pub(crate) restarts: u32,
    /// Whether its floating addresses lead to the container: from the first time that it runs.
    pub(crate) holds_floating: bool,
    /// Its control messages.
    pub(crate) control: Control,
    pub(crate) last_failure: Option<Refusal>,
}

impl Active {
    /// Returns where the module has its place.
    pub(crate) fn place(&self) -> Option<(Flavour, ModuleSlot)> {
        self.record.flavour.zip(self.slot)
    }

    /// Returns what is said of it.
    pub(crate) fn state(&self) -> ModuleState {
        if self.run == Run::Running && self.is_frozen { ModuleState::Frozen } else { self.run.state() }
    }

    /// Returns the request that the module's lease is from.
    pub(crate) fn origin(&self) -> Origin {
        Origin { session: self.record.session, nonce: self.record.nonce, wish: self.record.wish }
    }
}

/// A session that holds an installed module.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) record: SessionRecord,
    pub(crate) lease_end: Instant,
}

impl Session {
    pub(crate) fn new(now: Now, origin: Origin, setup: &Setup) -> Session {
        let record = SessionRecord {
            session: origin.session,
            is_anyones: false,
            nonce: origin.nonce,
            filters: setup.filters.clone(),
            intercept: setup.intercept.clone(),
            lease_until: now.wall + setup.ttl,
            wish: origin.wish,
        };
        Session { record, lease_end: now.instant + setup.ttl }
    }

    /// Returns whether a request of a session is about this one, whichever way it came.
    pub(crate) fn is_of(&self, session: SessionId) -> bool {
        self.record.session.either_way() == session.either_way()
    }

    /// Returns whether a REMOVE of a session is about this one: it is of the same client, module and path.
    pub(crate) fn is_of_family(&self, session: SessionId) -> bool {
        self.record.session.family() == session.family()
    }

    pub(crate) fn origin(&self) -> Origin {
        Origin { session: self.record.session, nonce: self.record.nonce, wish: self.record.wish }
    }
}

/// What a SETUP for an installed module changes there, if it is for the same package and properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The lease of its session only.
    Lease,
    /// The filters that its session asks for.
    Filters,
    /// Nothing of what there is: its session is another one.
    Joins,
    /// The module has to be loaded anew.
    Reload,
}

/// One filter, with its rules' names once they are installed: one, or one for each address of the container.
#[derive(Debug)]
pub(crate) struct ModuleRule {
    pub(crate) kind: RuleKind,
    pub(crate) filter: WantedFilter,
    pub(crate) ids: Vec<FilterId>,
}

impl ModuleRule {
    /// Returns the rules of a module that are still to be installed: of its packets, then of its connections.
    pub(crate) fn all_of(filters: &[WantedFilter], manifest: Option<&Manifest>) -> Vec<ModuleRule> {
        let intercept = manifest.map(|manifest| filters::without_repetitions(manifest.intercept())).unwrap_or_default();
        let rule = |kind: RuleKind| move |filter: WantedFilter| ModuleRule { kind, filter, ids: Vec::new() };
        let packets = filters.iter().cloned().map(rule(RuleKind::Show));
        packets.chain(intercept.into_iter().map(WantedFilter::from).map(rule(RuleKind::Intercept))).collect()
    }

    /// Returns the filters of packets among some rules.
    pub(crate) fn shown(rules: &[ModuleRule]) -> Vec<WantedFilter> {
        let shown = rules.iter().filter(|rule| rule.kind == RuleKind::Show);
        shown.map(|rule| rule.filter.clone()).collect()
    }
}

/// What happens with what a rule's filter matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleKind {
    /// The module sees the packets.
    Show,
    /// The module takes the connections over.
    Intercept,
}

/// What an installed module is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// Its package is being had again.
    Fetching(EffectId),
    /// It waits for its worker.
    Waiting,
    /// It is being loaded.
    Loading,
    /// It sees packets.
    Running,
    /// It failed and waits.
    BackingOff,
    /// It failed too often and waits long.
    Quarantined,
}

impl Run {
    /// Returns whether the worker holds the module, or is about to.
    pub(crate) fn in_worker(self) -> bool {
        matches!(self, Run::Loading | Run::Running)
    }

    pub(crate) fn state(self) -> ModuleState {
        match self {
            Run::Fetching(_) => ModuleState::Fetching,
            Run::Waiting | Run::Loading => ModuleState::Starting,
            Run::Running => ModuleState::Running,
            Run::BackingOff => ModuleState::BackingOff,
            Run::Quarantined => ModuleState::Quarantined,
        }
    }
}

/// A SETUP under way.
#[derive(Debug)]
pub(crate) struct Operation {
    /// Nothing if nobody asked: a service is composed anew.
    pub(crate) ticket: Option<PendingAnswer>,
    pub(crate) origin: Origin,
    pub(crate) setup: Setup,
    pub(crate) stage: Stage,
}

impl Operation {
    /// Returns whether it only makes ready, and all but its worker is.
    pub(crate) fn only_waits(&self) -> bool {
        self.setup.prepare && matches!(self.stage, Stage::Waiting(_))
    }
}

/// How far a SETUP is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Its package is being fetched.
    Fetching(EffectId),
    /// It is a service, whose parts are being composed.
    Composing(EffectId, Candidate),
    /// It waits for its worker.
    Waiting(Candidate),
    /// It is being loaded.
    Loading(Candidate),
    /// It is loaded, and its rules are being put in the place of its predecessor's.
    Settling(Candidate, Settling),
    /// It is for what is installed, and its session's filters are being added.
    Joining(Joining),
}

/// How far the filters of a session are that joins those which hold a module.
#[derive(Debug)]
pub(crate) struct Joining {
    pub(crate) change: Change,
    /// The rules that are not there yet.
    pub(crate) rules: Vec<ModuleRule>,
    /// The change by which they come.
    pub(crate) effect: Option<EffectId>,
}

impl Stage {
    pub(crate) fn candidate(&self) -> Option<&Candidate> {
        match self {
            Stage::Fetching(_) | Stage::Joining(_) => None,
            Stage::Composing(_, candidate)
            | Stage::Waiting(candidate)
            | Stage::Loading(candidate)
            | Stage::Settling(candidate, _) => Some(candidate),
        }
    }
}

/// How far the rules of a loaded module are: first those of connections, then its floating addresses, then the rules of packets
/// in one step.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    /// Rules of connections that are being installed.
    pub(crate) intercepts: BTreeSet<EffectId>,
    /// Whether its floating addresses lead to the container, or are about to.
    pub(crate) floats: bool,
    /// What has them lead there.
    pub(crate) floating: Option<EffectId>,
    /// The change by which its rules of packets come and its predecessor's go.
    pub(crate) change: Option<EffectId>,
    /// Why that change is to be taken back once it is made.
    pub(crate) failed: Option<Failed>,
}

/// Why a module that is about to be in force does not get there.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) refusal: Refusal,
    /// Whether its worker still holds it.
    pub(crate) loaded: bool,
}

/// What a service is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Composition {
    /// Its parts in order, services among them replaced by theirs.
    pub(crate) parts: Vec<ModuleRef>,
    /// Packages of those whose components are composed, the outermost first.
    pub(crate) servers: Vec<Digest>,
}

/// A module that is to become active.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) manifest: Manifest,
    /// The connections that the manifest in the package says it takes over.
    pub(crate) declared: Vec<Filter>,
    pub(crate) flavour: Flavour,
    pub(crate) rules: Vec<ModuleRule>,
    pub(crate) slot: Option<ModuleSlot>,
    /// What a service is made of.
    pub(crate) composition: Option<Composition>,
}

impl Candidate {
    /// Returns where the module has its place.
    pub(crate) fn place(&self) -> Option<(Flavour, ModuleSlot)> {
        self.slot.map(|slot| (self.flavour, slot))
    }
}

/// What runs a user's modules of one flavour.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    pub(crate) phase: Phase,
    /// The effect that started it last.
    pub(crate) generation: Option<EffectId>,
    pub(crate) places: BTreeMap<ModuleSlot, SlotHolder>,
    next_place: u8,
    /// The order of packets through modules that was last asked for; empty if none was.
    pub(crate) order: Vec<ModuleSlot>,
    pub(crate) backoff: Backoff,
    /// Modules that are gone while connections that they had taken over go on, by their places.
    pub(crate) draining: BTreeMap<ModuleSlot, Draining>,
}

impl Worker {
    /// Returns the place of the module that drains for longest.
    pub(crate) fn first_draining(&self) -> Option<ModuleSlot> {
        self.draining.iter().min_by_key(|(_, draining)| draining.until).map(|(slot, _)| *slot)
    }

    /// Returns whether it runs or is being started.
    pub(crate) fn has_process(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Ready)
    }

    /// Takes a free place.
    ///
    /// Places are given in rotation, so that news of a module that left does not meet its successor.
    pub(crate) fn take_place(&mut self, place: SlotHolder) -> Option<ModuleSlot> {
        let places = u8::try_from(MODULES_PER_CONTAINER_MAX).expect("one bit each in 64");
        let free = (0..places).map(|n| ModuleSlot((self.next_place + n) % places));
        let slot = free.into_iter().find(|slot| !self.places.contains_key(slot))?;
        self.next_place = (slot.0 + 1) % places;
        self.places.insert(slot, place);
        Some(slot)
    }
}

/// What a worker is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// There is none, and none was wanted.
    #[default]
    Absent,
    /// It is being started.
    Starting,
    /// It takes modules.
    Ready,
    /// It died and waits to be started again.
    Down,
}

/// Who has a place in a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotHolder {
    pub(crate) module: ModuleName,
    pub(crate) role: Role,
}

/// In what role a module has its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is installed.
    Active,
    /// It is being installed.
    Candidate,
    /// It was unloaded before its load was answered; the place is free once the answer is there.
    Leaving,
    /// It is gone, and connections that it had taken over go on.
    Draining,
}

/// A module that is gone while connections that it had taken over go on.
#[derive(Debug)]
pub(crate) struct Draining {
    pub(crate) module: ModuleRef,
    pub(crate) digest: Digest,
    /// Its rules of connections.
    pub(crate) rules: Vec<ModuleRule>,
    pub(crate) until: Instant,
    /// How many bytes of memory it may have, if it goes on with them itself.
    pub(crate) finish: Option<u64>,
}

/// How often something failed of late, and how long to wait therefore.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    recent: VecDeque<Instant>,
    streak: u32,
}

impl Backoff {
    /// Counts a failure; returns how long to wait, or `None` if there were too many within the window.
    pub(crate) fn fail(&mut self, now: Instant) -> Option<Duration> {
        let wait = self.retry(now);
        (self.recent.len() < FAILURES_MAX).then_some(wait)
    }

    /// Counts a failure and returns how long to wait, however many there were.
    pub(crate) fn retry(&mut self, now: Instant) -> Duration {
        while self.recent.front().is_some_and(|at| now.since(*at) > FAILURE_WINDOW) {
            self.recent.pop_front();
        }
        if self.recent.is_empty() {
            self.streak = 0;
        }
        if self.recent.len() >= FAILURES_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        self.streak = self.streak.saturating_add(1);
        wait_after(self.streak)
    }
}

fn wait_after(streak: u32) -> Duration {
    let Some(doublings) = streak.checked_sub(2) else { return Duration::ZERO };
    BACKOFF_MIN.saturating_mul(1u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_their_bound() {
        let waits: Vec<u128> = (1..=11).map(|streak| wait_after(streak).as_millis()).collect();
        assert_eq!(waits, [0, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000]);
        assert_eq!(wait_after(u32::MAX), BACKOFF_MAX);
    }

    #[test]
    fn failures_far_apart_start_afresh() {
        let mut backoff = Backoff::default();
        for n in 0..10 {
            let at = Instant::from_millis(0) + (FAILURE_WINDOW + Duration::from_secs(1)) * n;
            assert_eq!(backoff.fail(at), Some(Duration::ZERO));
        }
    }

    #[test]
    fn too_many_failures_within_the_window_are_too_many() {
        let mut backoff = Backoff::default();
        let mut fail = |second: u64| backoff.fail(Instant::from_millis(second * 1000)).map(|wait| wait.as_millis());
        let waits = [0, 10, 20, 30].map(&mut fail);
        assert_eq!(waits, [Some(0), Some(100), Some(200), Some(400)]);
        assert_eq!(fail(61), Some(800));
        assert_eq!(fail(62), None);
    }

    #[test]
    fn places_rotate_and_run_out() {
        let mut worker = Worker::default();
        let place = || SlotHolder { module: "example.org/m".parse().unwrap(), role: Role::Active };
        for n in 0..MODULES_PER_CONTAINER_MAX {
            assert_eq!(worker.take_place(place()), Some(ModuleSlot(u8::try_from(n).unwrap())));
        }
        assert_eq!(worker.take_place(place()), None);
        worker.places.remove(&ModuleSlot(7));
        worker.places.remove(&ModuleSlot(3));
        assert_eq!(worker.take_place(place()), Some(ModuleSlot(3)));
        worker.places.remove(&ModuleSlot(3));
        assert_eq!(worker.take_place(place()), Some(ModuleSlot(7)));
    }
}
