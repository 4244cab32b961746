// SPDX-License-Identifier: Apache-2.0
//! The sessions that hold an installed module (RFC 4080 §3.2, RFC 5971 §2): it sees what any of them asked for, stays for as long as
//! the longest of their leases, and goes with the last of them.

use netserv_model::effect::{EffectId, InstalledRecord, SessionRecord};
use netserv_model::limits::SESSIONS_SHOWN_MAX;
use netserv_model::manifest::Manifest;
use netserv_model::notify::NotifyEvent;
use netserv_model::request::{HeldBy, Outcome, Setup};
use netserv_model::{Filter, Instant, Nonce, Now, Refusal, RefusalKind, SessionId, WantedFilter};

use crate::admission::{Asked, asked_together, check_together};
use crate::buffering::Buffers;
use crate::cx::Cx;
use crate::expiry::Timer;
use crate::filters;
use crate::freezing::thaw;
use crate::lifecycle::{advance, fail_operation, refuse_setup, store_record};
use crate::limits::SESSIONS_PER_MODULE_MAX;
use crate::maintenance::granted_ttl;
use crate::modules::Modules;
use crate::report::not_installed;
use crate::rules::{add_joining_rules, change_filters, remove_rules};
use crate::state::{
    Active, Change, Joining, Key, ModuleRule, Operation, Origin, PendingAnswer, RuleKind, Run, Session, Stage,
};
use crate::tenants::Tenants;

impl Session {
    fn asked(&self) -> Asked<'_> {
        Asked::of_record(&self.record)
    }
}

impl Active {
    /// Returns the session of a name that holds the module.
    pub(crate) fn session_of(&self, session: SessionId) -> Option<&Session> {
        self.sessions.iter().find(|held| held.is_of(session))
    }

    /// Returns the session whose last SETUP had a nonce.
    pub(crate) fn session_by(&self, nonce: Nonce) -> Option<&Session> {
        self.sessions.iter().find(|session| session.record.nonce == Some(nonce))
    }

    /// Takes note of what a session asks for from now on.
    pub(crate) fn take_session(&mut self, now: Now, origin: Origin, setup: &Setup) {
        let known = self.sessions.iter().position(|held| held.is_of(origin.session));
        let session = Session::new(now, origin, setup);
        match known {
            Some(place) => self.sessions[place] = session,
            None => self.sessions.push(session),
        }
        (self.record.session, self.record.nonce) = (origin.session, origin.nonce);
        self.share_wish(origin);
        self.note_sessions();
    }

    /// Has a session that an earlier version kept be the one of a SETUP that asks for the same.
    pub(crate) fn adopt(&mut self, session: SessionId, setup: &Setup) {
        let asked = Asked::of(setup);
        let is_its = |held: &&mut Session| held.record.is_anyones && held.asked().is_same(asked);
        if self.session_of(session).is_none()
            && let Some(held) = self.sessions.iter_mut().find(is_its)
        {
            (held.record.session, held.record.is_anyones) = (session, false);
            self.name_one_left();
            self.note_sessions();
        }
    }

    /// Returns those of the sessions that a REMOVE of one ends: those of its family, or else what an earlier version kept.
    pub(crate) fn ended_by(&self, session: SessionId) -> Vec<SessionId> {
        let of = |is: &dyn Fn(&&Session) -> bool| -> Vec<SessionId> {
            self.sessions.iter().filter(is).map(|held| held.record.session).collect()
        };
        let own = of(&|held| held.is_of_family(session));
        if own.is_empty() { of(&|held| held.record.is_anyones) } else { own }
    }

    /// Takes over the sessions of what it replaces, but for the one that it is from.
    pub(crate) fn take_over_sessions(&mut self, others: Vec<Session>) {
        let own = self.record.session;
        let at = self.sessions.len();
        self.sessions.extend(others.into_iter().filter(|held| !held.is_of(own)));
        self.sessions.rotate_left(at);
        self.note_sessions();
    }

    /// Takes the sessions that held it before the node started.
    pub(crate) fn restore_sessions(&mut self, sessions: Vec<Session>) {
        self.sessions = sessions;
        self.name_one_left();
        self.note_sessions();
    }

    /// Lets go of some sessions. Returns whether others hold it.
    pub(crate) fn end_sessions(&mut self, ends: impl Fn(&Session) -> bool) -> bool {
        if self.sessions.iter().all(&ends) {
            return false;
        }
        self.sessions.retain(|held| !ends(held));
        self.name_one_left();
        self.note_sessions();
        true
    }

    /// Has the module be of a session that holds it, if the one of its last SETUP does not any more.
    fn name_one_left(&mut self) {
        if self.session_of(self.record.session).is_none()
            && let Some(last) = self.sessions.last().map(Session::origin)
        {
            (self.record.session, self.record.nonce) = (last.session, last.nonce);
        }
    }

    /// Puts what all sessions together need into the record.
    fn note_sessions(&mut self) {
        let last = self.sessions.iter().max_by_key(|session| session.lease_end);
        if let Some((lease_end, lease_until)) = last.map(|last| (last.lease_end, last.record.lease_until)) {
            (self.lease_end, self.record.lease_until) = (lease_end, lease_until);
        }
        self.record.sessions = self.sessions.iter().map(|session| session.record.clone()).collect();
    }

    /// Returns the manifest as the package has it, if it is known.
    pub(crate) fn whole_manifest(&self) -> Option<Manifest> {
        let mut manifest = self.manifest.clone()?;
        if let Some(server) = &mut manifest.server {
            server.intercept.clone_from(&self.declared);
        }
        Some(manifest)
    }

    /// Returns whether a SETUP is for the package and the properties that are installed.
    pub(crate) fn is_same_module(&self, setup: &Setup) -> bool {
        filters::same(&setup.floating, &self.record.floating)
            && self.record.module == setup.module
            && self.record.digest == setup.digest
            && self.record.properties == setup.properties
    }

    /// Returns what a SETUP of a session changes.
    pub(crate) fn change_by(&self, session: SessionId, setup: &Setup) -> Change {
        if !self.is_same_module(setup) {
            return Change::Reload;
        }
        let asked = Asked::of(setup);
        let known = self.session_of(session);
        let Some(manifest) = self.whole_manifest() else {
            // Filters are known by what was asked for only.
            let same = |held: &Session| held.asked().is_same(asked);
            return match known {
                Some(held) if same(held) => Change::Lease,
                None if self.sessions.iter().any(same) => Change::Joins,
                Some(_) | None => Change::Reload,
            };
        };
        let of = |asked: Asked<'_>| asked_together(&manifest, &[asked]);
        let (packets, connections) = of(asked);
        if let Some((own_packets, own_connections)) = known.map(|held| of(held.asked()))
            && filters::same(&packets, &own_packets)
            && filters::same(&connections, &own_connections)
        {
            return Change::Lease;
        }
        // The worker knows from its load which connections the module takes over. What does not run is loaded for what is new.
        let takes_over = |filter: &Filter| self.manifest.iter().any(|manifest| manifest.intercept().contains(filter));
        let shown =
            |filter: &WantedFilter| self.rules.iter().any(|rule| rule.kind == RuleKind::Show && rule.filter == *filter);
        let runs = self.run == Run::Running && !self.is_frozen;
        match (connections.iter().all(takes_over), known) {
            (true, Some(_)) if runs => Change::Filters,
            (true, None) if runs || packets.iter().all(shown) => Change::Joins,
            (true | false, _) => Change::Reload,
        }
    }

    /// Returns the sessions for people, those with the longest leases first.
    pub(crate) fn held_by(&self, now: Instant) -> Vec<HeldBy> {
        let mut sessions: Vec<&Session> = self.sessions.iter().collect();
        sessions.sort_by_key(|session| std::cmp::Reverse(session.lease_end));
        let shown = sessions.into_iter().take(SESSIONS_SHOWN_MAX);
        let said = |session: &Session| HeldBy {
            session: session.record.session,
            lease_s: session.lease_end.since(now).as_secs(),
            filters: session.record.filters.clone(),
        };
        shown.map(said).collect()
    }
}

/// Returns the sessions of a record whose leases still run.
pub(crate) fn sessions_of(record: &InstalledRecord, now: Now, longest: std::time::Duration) -> Vec<Session> {
    let mut sessions = record.sessions.clone();
    if sessions.is_empty() {
        sessions.push(SessionRecord {
            session: record.session,
            is_anyones: true,
            nonce: record.nonce,
            filters: record.filters.clone(),
            intercept: record.intercept.clone(),
            lease_until: record.lease_until,
            wish: record.wish,
        });
    }
    let running = sessions.into_iter().filter(|session| session.lease_until > now.wall);
    let session = |mut record: SessionRecord| {
        let left = record.lease_until.distance(now.wall).min(longest);
        record.lease_until = now.wall + left;
        Session { record, lease_end: now.instant + left }
    };
    running.map(session).collect()
}

/// Takes a SETUP for what is installed: its session holds it from now on, too, or for longer, or with other filters.
pub(crate) fn join_session(
    cx: &mut Cx,
    tenants: &mut Tenants,
    buffers: &mut Buffers,
    key: &Key,
    ticket: PendingAnswer,
    (origin, setup): (Origin, Setup),
    change: Change,
) {
    let checked = match change {
        Change::Lease => Ok(Vec::new()),
        Change::Filters | Change::Joins | Change::Reload => rules_with(cx, tenants, key, origin.session, &setup),
    };
    let rules = match checked {
        Ok(rules) => rules,
        Err(refusal) => return refuse_setup(cx, tenants, key, ticket, origin, &refusal),
    };
    let Some(active) = tenants.active(key) else { return };
    let is_there = |rule: &ModuleRule| active.rules.iter().any(|own| own.is_same(rule));
    let add: Vec<ModuleRule> = rules.into_iter().filter(|rule| !is_there(rule)).collect();
    let sees = active.run == Run::Running && !active.is_frozen;
    let joining = Joining { change, rules: add, effect: None };
    let operation = Operation { ticket: Some(ticket), origin, setup, stage: Stage::Joining(joining) };
    tenants.entry_or_new(key).operation = Some(operation);
    let effect = if sees { add_joining_rules(cx, tenants, key) } else { None };
    match tenants.joining(key) {
        Some(joining) if effect.is_some() => joining.effect = effect,
        Some(_) | None => joined(cx, tenants, buffers, key),
    }
}

/// The filters of a session that joins were installed or refused. Returns whether it was about such.
pub(crate) fn joining_changed(cx: &mut Cx, m: &mut Modules, key: &Key, id: EffectId, failure: Option<Refusal>) -> bool {
    let Some(joining) = m.tenants.joining(key).filter(|joining| joining.effect == Some(id)) else { return false };
    joining.effect = None;
    match failure {
        None => {
            joined(cx, &mut m.tenants, &mut m.buffers, key);
            advance(cx, m, key);
        }
        Some(refusal) => {
            joining.rules.iter_mut().for_each(|rule| rule.ids.clear());
            fail_operation(cx, m, key, refusal);
        }
    }
    true
}

/// Puts what a session asked for in force, now that its filters are there.
fn joined(cx: &mut Cx, tenants: &mut Tenants, buffers: &mut Buffers, key: &Key) {
    let now = cx.now;
    let Some(entry) = tenants.entry(key) else { return };
    let joins = entry.operation.take_if(|operation| matches!(operation.stage, Stage::Joining(_)));
    let Some(Operation { ticket, origin, mut setup, stage: Stage::Joining(joining) }) = joins else { return };
    setup.ttl = granted_ttl(cx, tenants, key, setup.ttl);
    let Some(active) = tenants.active(key) else { return };
    let Joining { change, mut rules, effect: _ } = joining;
    // If it was frozen meanwhile, its rules come when it thaws.
    let unseen = match active.is_frozen {
        true => rules.iter_mut().flat_map(|rule| std::mem::take(&mut rule.ids)).collect(),
        false => Vec::new(),
    };
    let runs = active.run == Run::Running;
    active.rules.extend(rules);
    active.take_session(now, origin, &setup);
    active.record.url.clone_from(&setup.url);
    if setup.epoch > active.record.epoch {
        (active.record.epoch, active.record.state) = (setup.epoch, None);
    }
    active.record.moved_in = None;
    change_filters(cx, key, Vec::new(), unseen);
    if change != Change::Lease {
        fit_rules(cx, tenants, key);
    }
    arm_lease(cx, tenants, key);
    store_active(cx, tenants, key);
    thaw(cx, tenants, buffers, key);
    let lease_s = setup.ttl.as_secs();
    let outcome = match change {
        Change::Lease => Outcome::Refreshed { lease_s },
        Change::Filters | Change::Reload => Outcome::Replaced { lease_s },
        Change::Joins if runs => Outcome::Installed { lease_s },
        Change::Joins => Outcome::Refreshed { lease_s },
    };
    if let Some(ticket) = ticket {
        cx.answer_when_done(&key.0, ticket, outcome);
    }
}

/// Ends what a session has of an installed module. Returns whether other sessions hold it.
pub(crate) fn leave_module(cx: &mut Cx, tenants: &mut Tenants, key: &Key, ends: impl Fn(&Session) -> bool) -> bool {
    let Some(active) = tenants.active(key) else { return false };
    if !active.end_sessions(ends) {
        return false;
    }
    fit_rules(cx, tenants, key);
    arm_lease(cx, tenants, key);
    store_active(cx, tenants, key);
    true
}

/// Returns why a REMOVE of a session takes nothing away, if it does not.
pub(crate) fn check_held(tenants: &Tenants, key: &Key, session: SessionId) -> Result<(), Refusal> {
    let Some(active) = tenants.active_of(key) else { return Err(not_installed(key)) };
    if !active.ended_by(session).is_empty() {
        return Ok(());
    }
    let (held_by, first) = (active.sessions.len(), active.record.session);
    let detail = format!(
        "session {session} does not hold {} of user `{}`; {held_by} others do: `--session {first}` removes one of \
         them (`probe --ask modules` shows all), `--all` the module",
        key.1, key.0
    );
    Err(Refusal::new(RefusalKind::NotInstalled, detail))
}

/// Sets the timer for the first lease that ends.
pub(crate) fn arm_lease(cx: &mut Cx, tenants: &mut Tenants, key: &Key) {
    let first = tenants.active(key).and_then(|active| active.sessions.iter().map(|session| session.lease_end).min());
    if let Some(first) = first {
        cx.timers.set(Timer::Lease(key.clone()), first);
    }
}

/// Has an installed module remembered as it is.
pub(crate) fn store_active(cx: &mut Cx, tenants: &mut Tenants, key: &Key) {
    if let Some(record) = tenants.active(key).map(|active| active.record.clone()) {
        store_record(cx, key, &record);
    }
}

/// Takes away the rules that no session needs any more.
pub(crate) fn fit_rules(cx: &mut Cx, tenants: &mut Tenants, key: &Key) {
    let Some(active) = tenants.active(key) else { return };
    let Some(manifest) = active.whole_manifest() else { return };
    let asked: Vec<Asked<'_>> = active.sessions.iter().map(Session::asked).collect();
    let (packets, connections) = asked_together(&manifest, &asked);
    let is_needed = |rule: &ModuleRule| match rule.kind {
        RuleKind::Show => packets.contains(&rule.filter),
        RuleKind::Intercept => rule.filter.everywhere().is_some_and(|filter| connections.contains(filter)),
    };
    let (kept, gone): (Vec<ModuleRule>, Vec<ModuleRule>) =
        std::mem::take(&mut active.rules).into_iter().partition(is_needed);
    active.rules = kept;
    if let Some(server) = active.manifest.as_mut().and_then(|manifest| manifest.server.as_mut()) {
        server.intercept.retain(|filter| connections.contains(filter));
    }
    if manifest.packet.is_some() {
        active.record.filters = ModuleRule::shown(&active.rules);
    }
    remove_rules(cx, key, &gone);
}

/// Tells the other sessions that hold a module that a SETUP put another version or other properties in its place.
pub(crate) fn tell_replaced(cx: &mut Cx, key: &Key, others: &[Session], by: &Setup) {
    for session in others {
        let detail = format!("{} of another session is in its place, with its own properties", by.module);
        cx.tell_requester(key, session.origin(), NotifyEvent::ModuleReplaced, detail, None);
    }
}

/// Returns the rules that an installed module has if a session asks for what a SETUP says.
fn rules_with(
    cx: &Cx,
    tenants: &Tenants,
    key: &Key,
    session: SessionId,
    setup: &Setup,
) -> Result<Vec<ModuleRule>, Refusal> {
    let active = tenants.active_of(key).ok_or_else(|| not_installed(key))?;
    let Some(manifest) = active.whole_manifest() else { return Ok(Vec::new()) };
    let others = tenants.others_than(key, session);
    let others: Vec<Asked<'_>> = others.iter().map(Asked::of_record).collect();
    let user = cx.user_policy(&key.0)?;
    let (manifest, filters) = check_together(&cx.policy, user, manifest, Asked::of(setup), &others)?;
    Ok(ModuleRule::all_of(&filters, Some(&manifest)))
}

/// Checks that an installed module may be held by one session more.
pub(crate) fn check_room_for(tenants: &Tenants, key: &Key, session: SessionId) -> Result<(), Refusal> {
    let is_full = |active: &&Active| active.sessions.len() >= SESSIONS_PER_MODULE_MAX;
    let full = tenants.active_of(key).filter(is_full);
    if full.is_none_or(|active| active.session_of(session).is_some()) {
        return Ok(());
    }
    let detail = format!("{SESSIONS_PER_MODULE_MAX} sessions hold the module");
    Err(Refusal::new(RefusalKind::QuotaExceeded, detail))
}

impl ModuleRule {
    fn is_same(&self, other: &ModuleRule) -> bool {
        (self.kind, &self.filter) == (other.kind, &other.filter)
    }
}

impl<'a> Asked<'a> {
    /// Returns what a SETUP asks for.
    pub(crate) fn of(setup: &'a Setup) -> Asked<'a> {
        Asked { filters: &setup.filters, intercept: &setup.intercept }
    }

    /// Returns what a session asked for.
    pub(crate) fn of_record(record: &'a SessionRecord) -> Asked<'a> {
        Asked { filters: &record.filters, intercept: &record.intercept }
    }

    fn is_same(self, other: Asked<'_>) -> bool {
        filters::same::<WantedFilter>(self.filters, other.filters) && filters::same(self.intercept, other.intercept)
    }
}
