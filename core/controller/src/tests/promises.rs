// SPDX-License-Identifier: Apache-2.0
//! What is promised of requests, whatever order they come in and by whichever session: nothing older than a REMOVE, or than a newer
//! version, takes effect, and nothing that a stranger copied.

use std::collections::{BTreeMap, BTreeSet};

use netserv_model::effect::InstalledRecord;
use netserv_model::request::{Body, Outcome, Request, Setup};
use netserv_model::{ModuleName, SessionId, UnixTime, UserId};

type Key = (UserId, ModuleName);

/// The session by which copies come.
pub(super) const STRANGER: SessionId = SessionId([0x55; 16]);

/// What was asked for and what came of it.
#[derive(Default)]
pub(super) struct Promises {
    asked: BTreeMap<u64, (Key, Option<SessionId>, Request)>,
    /// Those that may not take effect.
    forbidden: BTreeSet<u64>,
    /// The REMOVEs that took something away.
    removed: Vec<(Key, Option<SessionId>, UnixTime)>,
    /// What is in force, and when the newest request was made that has it so.
    in_force: BTreeMap<Key, (UnixTime, Setup)>,
}

impl Promises {
    /// Takes note of a request that was sent.
    pub(super) fn asked(
        &mut self,
        id: u64,
        (user, module): (&UserId, &ModuleName),
        session: Option<SessionId>,
        request: Request,
    ) {
        let key = (user.clone(), module.clone());
        let is_over = |(of, by, made): &(Key, Option<SessionId>, UnixTime)| {
            *of == key && (by.is_none() || *by == session) && *made > request.created
        };
        if matches!(request.body, Body::Setup(_)) && (session == Some(STRANGER) || self.removed.iter().any(is_over)) {
            self.forbidden.insert(id);
        }
        self.asked.insert(id, (key, session, request));
    }

    /// Checks an answer.
    pub(super) fn answered(&mut self, id: u64, outcome: &Outcome, record: Option<&InstalledRecord>) {
        let (key, session, request) = &self.asked[&id];
        let Body::Setup(setup) = &request.body else {
            if *outcome == Outcome::Removed {
                self.removed.push((key.clone(), *session, request.created));
            }
            return;
        };
        assert!(matches!(outcome, Outcome::Refused(_)) || !self.forbidden.contains(&id), "{outcome}: {request:?}");
        let is_its = |record: &&InstalledRecord| record.module == setup.module && record.properties == setup.properties;
        if matches!(outcome, Outcome::Refused(_)) || record.filter(is_its).is_none() {
            return;
        }
        let is_same = |other: &Setup| (&other.module, &other.properties) == (&setup.module, &setup.properties);
        let mut made = request.created;
        match self.in_force.get(key) {
            Some((before, in_force)) if is_same(in_force) => made = made.max(*before),
            Some((before, in_force)) => {
                assert!(made >= *before, "{} of {made} replaced {} of {before}", setup.module, in_force.module);
            }
            None => {}
        }
        self.in_force.insert(key.clone(), (made, (**setup).clone()));
    }

    /// Takes note that a module is not installed any more.
    pub(super) fn forgotten(&mut self, key: &Key) {
        self.in_force.remove(key);
    }
}
