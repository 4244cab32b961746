// SPDX-License-Identifier: Apache-2.0
//! By which session each SETUP came: nothing that is signed names it, so that a copy could be of any.

use std::collections::BTreeMap;

use netserv_model::{Nonce, Refusal, RefusalKind, SessionId, UnixTime, UserId};

use crate::limits::{REMEMBERED_USERS_MAX, SETUPS_REMEMBERED_PER_USER_MAX};

/// The SETUPs of each user, for as long as they could be taken.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    users: BTreeMap<UserId, SeenOfUser>,
    /// Of those of users who are forgotten, none was made later.
    floor: UnixTime,
}

#[derive(Debug, Default)]
struct SeenOfUser {
    by_nonce: BTreeMap<Nonce, First>,
    /// Of those that are forgotten, none was made later.
    floor: UnixTime,
}

#[derive(Debug)]
struct First {
    session: SessionId,
    created: UnixTime,
    /// Until when it could be taken.
    until: UnixTime,
}

impl Seen {
    /// Checks that a SETUP did not come by another session before.
    ///
    /// # Errors
    /// It did.
    pub(crate) fn check(&self, user: &UserId, nonce: Nonce, session: SessionId) -> Result<(), Refusal> {
        let first = self.users.get(user).and_then(|seen| seen.by_nonce.get(&nonce));
        first.map_or(Ok(()), |first| check_same(nonce, first.session, session))
    }

    /// Checks that a SETUP which comes late did not come before, as far as that is known.
    ///
    /// # Errors
    /// It may have, and is forgotten.
    pub(crate) fn check_late(&self, user: &UserId, nonce: Nonce, created: UnixTime) -> Result<(), Refusal> {
        let floor = match self.users.get(user) {
            Some(seen) if seen.by_nonce.contains_key(&nonce) => return Ok(()),
            Some(seen) => seen.floor,
            None => self.floor,
        };
        if created > floor || floor == UnixTime::default() {
            return Ok(());
        }
        let detail = format!("made at {created}, requests up to {floor} are forgotten");
        Err(Refusal::new(RefusalKind::Replayed, detail))
    }

    /// Remembers the session of a SETUP, which could be taken until a time.
    pub(crate) fn note(
        &mut self,
        user: &UserId,
        (nonce, session): (Nonce, SessionId),
        (created, until): (UnixTime, UnixTime),
        wall: UnixTime,
    ) {
        let seen = self.users.entry(user.clone()).or_default();
        seen.by_nonce.insert(nonce, First { session, created, until });
        if seen.by_nonce.len() > SETUPS_REMEMBERED_PER_USER_MAX {
            seen.by_nonce.retain(|_, first| first.until >= wall);
        }
        while seen.by_nonce.len() > SETUPS_REMEMBERED_PER_USER_MAX {
            let oldest = seen.by_nonce.iter().min_by_key(|(_, first)| first.created);
            let (nonce, created) = oldest.map(|(nonce, first)| (*nonce, first.created)).expect("there are some");
            seen.by_nonce.remove(&nonce);
            seen.floor = seen.floor.max(created);
        }
    }

    /// Returns whether a user's SETUPs can be noted without others being forgotten.
    pub(crate) fn has_room_for(&self, user: &UserId) -> bool {
        self.users.len() < REMEMBERED_USERS_MAX || self.users.contains_key(user)
    }

    /// Forgets the user whose newest SETUP is the oldest, of those who are not known, if a further one is to be noted.
    pub(crate) fn make_room(&mut self, user: &UserId, known: impl Fn(&UserId) -> bool) {
        let newest = |seen: &SeenOfUser| {
            seen.by_nonce.values().map(|first| first.created).max().unwrap_or_default().max(seen.floor)
        };
        if self.has_room_for(user) {
            return;
        }
        let others = self.users.iter().filter(|(user, _)| !known(user));
        let first = others.map(|(user, seen)| (newest(seen), user)).min();
        if let Some((time, user)) = first.map(|(time, user)| (time, user.clone())) {
            self.users.remove(&user);
            self.floor = self.floor.max(time);
        }
    }

    #[cfg(test)]
    pub(crate) fn users(&self) -> usize {
        self.users.len()
    }

    /// Forgets users that are no longer known, once nothing of theirs could be taken if they came back.
    pub(crate) fn retain(&mut self, wall: UnixTime, known: impl Fn(&UserId) -> bool) {
        self.users.retain(|user, seen| known(user) || seen.by_nonce.values().any(|first| first.until >= wall));
    }
}

/// Checks that a SETUP comes by the session by which it came first, whichever way.
///
/// # Errors
/// It does not.
pub(crate) fn check_same(nonce: Nonce, first: SessionId, session: SessionId) -> Result<(), Refusal> {
    if first.either_way() == session.either_way() {
        return Ok(());
    }
    Err(Refusal::new(RefusalKind::Replayed, format!("nonce {nonce} was used before, by another session")))
}
