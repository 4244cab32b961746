// SPDX-License-Identifier: Apache-2.0
//! A session that holds an installed module.

use std::time::Duration;

use netserv_model::effect::{InstalledRecord, SessionRecord};
use netserv_model::request::Setup;
use netserv_model::{Instant, Now, SessionId};

use crate::cx::request::Origin;
use crate::policy::asked::Asked;

/// A session that holds an installed module.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) record: SessionRecord,
    pub(crate) lease_end: Instant,
}

impl Session {
    /// Returns the session of a SETUP.
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

    /// Returns the SETUP that it is from.
    pub(crate) fn origin(&self) -> Origin {
        Origin { session: self.record.session, nonce: self.record.nonce, wish: self.record.wish }
    }

    /// Returns what it asks for.
    pub(crate) fn asked(&self) -> Asked<'_> {
        Asked::of_record(&self.record)
    }
}

/// Returns the sessions of a record whose leases still run.
pub(crate) fn sessions_of(record: &InstalledRecord, now: Now, longest: Duration) -> Vec<Session> {
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

/// Returns the SETUP of the session that a module is from.
pub(crate) fn as_setup(record: &InstalledRecord) -> Setup {
    let own = record.sessions.iter().find(|session| session.session == record.session);
    let (filters, intercept) = own.map_or((&record.filters, &record.intercept), |own| (&own.filters, &own.intercept));
    Setup {
        prepare: false,
        buffer: None,
        module: record.module.clone(),
        url: record.url.clone(),
        digest: record.digest,
        filters: filters.clone(),
        intercept: intercept.clone(),
        properties: record.properties.clone(),
        dependencies: Vec::new(),
        ttl: Duration::ZERO,
        epoch: record.epoch,
        state: None,
        floating: record.floating.clone(),
    }
}
