// SPDX-License-Identifier: Apache-2.0
//! The sessions that hold an installed module (RFC 4080 §3.2, RFC 5971 §2): it sees what any of them asked for, stays for as long as
//! the longest of their leases, and goes with the last of them.

use netserv_model::limits::SESSIONS_SHOWN_MAX;
use netserv_model::manifest::Manifest;
use netserv_model::request::{HeldBy, Setup};
use netserv_model::{Filter, Instant, Nonce, Now, SessionId, WantedFilter};

use crate::cx::request::Origin;
use crate::policy::asked::{Asked, asked_together};
use crate::policy::filters;
use crate::tenants::active::{Active, Run};
use crate::tenants::operation::Change;
use crate::tenants::rule::RuleKind;
use crate::tenants::session::Session;

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
