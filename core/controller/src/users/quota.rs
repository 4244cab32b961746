// SPDX-License-Identifier: Apache-2.0
//! Bounded memory of what was seen: nonces against replay, digests in quarantine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use netserv_model::limits::NONCES_PER_USER_MAX;
use netserv_model::{Digest, Instant, ModuleName, Nonce, Refusal, RefusalKind, SessionId, UnixTime, UserId};

use crate::limits::{QUARANTINED_MAX, REMEMBERED_USERS_MAX, SESSIONS_REMEMBERED_PER_USER_MAX};

/// The nonces of each user, as long as the request that carried them could be taken once more.
#[derive(Debug, Default)]
pub(crate) struct Nonces {
    users: BTreeMap<UserId, UserNonces>,
}

#[derive(Debug, Default)]
struct UserNonces {
    seen: BTreeSet<Nonce>,
    /// Of those, the ones whose request was undone.
    undone: BTreeSet<Nonce>,
    /// The ones of REMOVEs that took something away.
    removed: BTreeSet<Nonce>,
    leaving: BTreeSet<(UnixTime, Nonce)>,
}

impl Nonces {
    /// Remembers a nonce until its request is stale.
    ///
    /// # Errors
    /// The nonce was seen before, or the user has used too many of late.
    pub(crate) fn take(
        &mut self,
        user: &UserId,
        nonce: Nonce,
        created: UnixTime,
        skew: Duration,
        wall: UnixTime,
    ) -> Result<(), Refusal> {
        let nonces = self.users.entry(user.clone()).or_default();
        while let Some(&(until, old)) = nonces.leaving.first().filter(|(until, _)| *until < wall) {
            nonces.leaving.remove(&(until, old));
            nonces.seen.remove(&old);
            nonces.undone.remove(&old);
            nonces.removed.remove(&old);
        }
        if nonces.undone.remove(&nonce) {
            return Ok(());
        }
        if nonces.seen.contains(&nonce) {
            return Err(Refusal::new(RefusalKind::Replayed, format!("nonce {nonce} was used before")));
        }
        if nonces.seen.len() >= NONCES_PER_USER_MAX {
            let detail = format!("{NONCES_PER_USER_MAX} requests within {} s", skew.as_secs());
            return Err(Refusal::new(RefusalKind::QuotaExceeded, detail));
        }
        nonces.seen.insert(nonce);
        nonces.leaving.insert((created + skew, nonce));
        Ok(())
    }

    /// Takes note that the request of a nonce was undone, and may come once more.
    pub(crate) fn undo(&mut self, user: &UserId, nonce: Nonce) {
        if let Some(nonces) = self.users.get_mut(user).filter(|nonces| nonces.seen.contains(&nonce)) {
            nonces.undone.insert(nonce);
        }
    }

    /// Returns whether a nonce was seen before and its request was not undone, as far as that is remembered.
    pub(crate) fn has(&self, user: &UserId, nonce: Nonce) -> bool {
        let has = |nonces: &UserNonces| nonces.seen.contains(&nonce) && !nonces.undone.contains(&nonce);
        self.users.get(user).is_some_and(has)
    }

    /// Takes note that the REMOVE of a nonce took something away.
    pub(crate) fn note_removed(&mut self, user: &UserId, nonce: Nonce) {
        if let Some(nonces) = self.users.get_mut(user).filter(|nonces| nonces.seen.contains(&nonce)) {
            nonces.removed.insert(nonce);
        }
    }

    /// Returns whether the REMOVE of a nonce took something away, as far as that is remembered.
    pub(crate) fn has_removed(&self, user: &UserId, nonce: Nonce) -> bool {
        self.users.get(user).is_some_and(|nonces| nonces.removed.contains(&nonce))
    }

    /// Returns whether the request of a nonce was undone.
    pub(crate) fn was_undone(&self, user: &UserId, nonce: Nonce) -> bool {
        self.users.get(user).is_some_and(|nonces| nonces.undone.contains(&nonce))
    }

    /// Returns of how many users something is remembered.
    pub(crate) fn users(&self) -> usize {
        self.users.len()
    }

    /// Returns whether something of a user's is remembered.
    pub(crate) fn knows(&self, user: &UserId) -> bool {
        self.users.contains_key(user)
    }

    /// Forgets users that are no longer known, once nothing of theirs could be taken if they came back.
    pub(crate) fn retain(&mut self, wall: UnixTime, known: impl Fn(&UserId) -> bool) {
        let is_over = |nonces: &UserNonces| nonces.leaving.last().is_none_or(|(until, _)| *until < wall);
        self.users.retain(|user, nonces| known(user) || !is_over(nonces));
    }
}

/// When the newest request of each session about a module was made, so that none is taken late that came before it.
#[derive(Debug, Default)]
pub(crate) struct Newest {
    users: BTreeMap<UserId, UserNewest>,
    /// Of those of users who are forgotten, none was newer.
    floor: UnixTime,
}

#[derive(Debug, Default)]
struct UserNewest {
    by_session: BTreeMap<(ModuleName, Option<SessionId>), Last>,
    /// Of those that are forgotten, none was newer.
    floor: UnixTime,
}

/// The newest request of a session about a module, or of all sessions.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    created: UnixTime,
    /// Until when an older one could come.
    until: UnixTime,
    nonce: Option<Nonce>,
    /// When the newest REMOVE of it was made.
    removed: UnixTime,
    /// When the newest REMOVE of any session was made; kept for all sessions together.
    any_removed: UnixTime,
}

impl Newest {
    /// Checks that a SETUP is not older than a REMOVE that was taken before, and newer than all if it comes late or once more.
    ///
    /// # Errors
    /// A newer request about the module was taken before, or may have been.
    pub(crate) fn check(
        &self,
        user: &UserId,
        (module, session): (&ModuleName, Option<SessionId>),
        created: UnixTime,
        again: bool,
    ) -> Result<(), Refusal> {
        let Some(newest) = self.users.get(user) else {
            return if again && created <= self.floor { Err(too_old(created, self.floor)) } else { Ok(()) };
        };
        let of = |session: Option<SessionId>| newest.by_session.get(&subject(module, session)).copied();
        let last = match (session.and_then(|session| of(Some(session))), of(None)) {
            (Some(own), Some(all)) => Some(Last { removed: own.removed.max(all.removed), ..own }),
            (own, all) => own.or(all),
        };
        // SETUPs along several paths overtake each other; a REMOVE is about what came before it.
        let (last, is_new) = match (last, again) {
            (Some(last), true) => {
                let last = last.created.max(last.removed);
                (last, created > last)
            }
            (Some(last), false) => (last.removed, created >= last.removed),
            (None, true) => (newest.floor, created > newest.floor),
            (None, false) => return Ok(()),
        };
        if is_new { Ok(()) } else { Err(too_old(created, last)) }
    }

    /// Checks that a message for a module is not older than a REMOVE that was taken before.
    ///
    /// # Errors
    /// One was.
    pub(crate) fn check_message(&self, user: &UserId, module: &ModuleName, created: UnixTime) -> Result<(), Refusal> {
        let all = self.users.get(user).and_then(|newest| newest.by_session.get(&subject(module, None)));
        match all.map(|all| all.removed.max(all.any_removed)).filter(|removed| created < *removed) {
            Some(removed) => Err(Refusal::new(
                RefusalKind::Replayed,
                format!("made at {created}, the newest REMOVE here is of {removed}"),
            )),
            None => Ok(()),
        }
    }

    /// Takes note that a request was undone, and may be carried out again.
    pub(crate) fn undo(&mut self, user: &UserId, module: &ModuleName, nonce: Nonce) {
        let of_it = |((name, _), last): &(&(ModuleName, _), &mut Last)| name == module && last.nonce == Some(nonce);
        let last = self.users.get_mut(user).and_then(|newest| newest.by_session.iter_mut().find(of_it));
        if let Some((_, last)) = last {
            last.created = UnixTime(last.created.0.saturating_sub(1));
        }
    }

    /// Takes note of a request that is carried out. Older ones could come until a time.
    pub(crate) fn note(
        &mut self,
        user: &UserId,
        (module, session): (&ModuleName, Option<SessionId>),
        (nonce, created): (Nonce, UnixTime),
        is_remove: bool,
        until: UnixTime,
        wall: UnixTime,
    ) {
        let newest = self.users.entry(user.clone()).or_default();
        let last = newest.by_session.entry(subject(module, session)).or_default();
        if created >= last.created {
            *last = Last { created, until: last.until.max(until), nonce: Some(nonce), ..*last };
        }
        if is_remove {
            last.removed = last.removed.max(created);
            let all = newest.by_session.entry(subject(module, None)).or_default();
            (all.any_removed, all.until) = (all.any_removed.max(created), all.until.max(until));
        }
        if newest.by_session.len() > SESSIONS_REMEMBERED_PER_USER_MAX {
            newest.by_session.retain(|_, last| last.until >= wall);
        }
        while newest.by_session.len() > SESSIONS_REMEMBERED_PER_USER_MAX {
            let oldest = newest.by_session.iter().min_by_key(|(_, last)| last.created);
            let (subject, created) =
                oldest.map(|(subject, last)| (subject.clone(), last.created)).expect("there are some");
            newest.by_session.remove(&subject);
            newest.floor = newest.floor.max(created);
        }
    }

    /// Returns whether a user's requests can be noted without others being forgotten.
    pub(crate) fn has_room_for(&self, user: &UserId) -> bool {
        self.users.len() < REMEMBERED_USERS_MAX || self.users.contains_key(user)
    }

    /// Forgets the user whose newest request is the oldest, of those who are not known, if a further one is to be noted.
    pub(crate) fn make_room(&mut self, user: &UserId, known: impl Fn(&UserId) -> bool) {
        let newest = |newest: &UserNewest| {
            let times = newest.by_session.values().map(|last| last.created.max(last.removed).max(last.any_removed));
            times.max().unwrap_or_default().max(newest.floor)
        };
        if self.has_room_for(user) {
            return;
        }
        let others = self.users.iter().filter(|(user, _)| !known(user));
        let first = others.map(|(user, of_it)| (newest(of_it), user)).min();
        if let Some((time, user)) = first.map(|(time, user)| (time, user.clone())) {
            self.users.remove(&user);
            self.floor = self.floor.max(time);
        }
    }

    /// Forgets users that are no longer known, once nothing of theirs could be taken if they came back.
    pub(crate) fn retain(&mut self, wall: UnixTime, known: impl Fn(&UserId) -> bool) {
        self.users.retain(|user, newest| known(user) || newest.by_session.values().any(|last| last.until >= wall));
    }
}

fn too_old(created: UnixTime, newest: UnixTime) -> Refusal {
    Refusal::new(RefusalKind::Replayed, format!("made at {created}, the newest one here is of {newest}"))
}

/// Names what a request is about: a module of a family of sessions, or of all sessions.
fn subject(module: &ModuleName, session: Option<SessionId>) -> (ModuleName, Option<SessionId>) {
    (module.clone(), session.map(SessionId::family))
}

/// Which code failed too often or took too long to compile, and until when it is kept out.
#[derive(Debug, Default)]
pub(crate) struct Quarantine {
    until: BTreeMap<(UserId, Digest), Instant>,
}

impl Quarantine {
    /// Keeps a user's package out until then.
    pub(crate) fn insert(&mut self, now: Instant, user: UserId, digest: Digest, until: Instant) {
        self.until.retain(|_, until| *until > now);
        if self.until.len() >= QUARANTINED_MAX {
            let first = self.until.iter().min_by_key(|(_, until)| **until).map(|(key, _)| key.clone());
            self.until.remove(&first.expect("a full table has a first entry"));
        }
        self.until.insert((user, digest), until);
    }

    /// Returns how much longer a user's package is kept out.
    pub(crate) fn remaining(&self, now: Instant, user: &UserId, digest: Digest) -> Option<Duration> {
        let until = self.until.get(&(user.clone(), digest))?;
        Some(until.since(now)).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SKEW: Duration = Duration::from_secs(300);

    #[test]
    fn a_nonce_works_once_and_leaves_with_the_window() {
        let (mut nonces, created) = (Nonces::default(), UnixTime::from_secs(1000));
        let mut take = |wall: u64| nonces.take(&user("jane"), nonce(1), created, SKEW, UnixTime::from_secs(wall));
        assert_eq!(take(1000), Ok(()));
        assert_eq!(take(1300).unwrap_err().kind, RefusalKind::Replayed);
        assert_eq!(take(1301), Ok(()));
    }

    #[test]
    fn users_do_not_share_nonces() {
        let (mut nonces, at) = (Nonces::default(), UnixTime::from_secs(1000));
        assert_eq!(nonces.take(&user("jane"), nonce(1), at, SKEW, at), Ok(()));
        assert_eq!(nonces.take(&user("john"), nonce(1), at, SKEW, at), Ok(()));
    }

    #[test]
    fn nonces_of_one_user_are_bounded() {
        let (mut nonces, at) = (Nonces::default(), UnixTime::from_secs(1000));
        for n in 0..NONCES_PER_USER_MAX {
            assert_eq!(nonces.take(&user("jane"), nonce(n), at, SKEW, at), Ok(()));
        }
        let over = nonce(NONCES_PER_USER_MAX);
        let refusal = nonces.take(&user("jane"), over, at, SKEW, at).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::QuotaExceeded);
        let later = UnixTime::from_secs(1301);
        assert_eq!(nonces.take(&user("jane"), over, later, SKEW, later), Ok(()));
        assert_eq!(nonces.users[&user("jane")].seen.len(), 1);
    }

    #[test]
    fn the_quarantine_is_bounded_and_lets_the_first_go() {
        let (mut quarantine, now) = (Quarantine::default(), Instant::from_millis(0));
        for n in 0..=QUARANTINED_MAX {
            let until = Instant::from_millis(1000 + u64::try_from(n).unwrap());
            quarantine.insert(now, user("jane"), digest(n), until);
        }
        assert_eq!(quarantine.until.len(), QUARANTINED_MAX);
        assert_eq!(quarantine.remaining(now, &user("jane"), digest(0)), None);
        assert_eq!(quarantine.remaining(now, &user("jane"), digest(1)), Some(Duration::from_millis(1001)));
        assert_eq!(quarantine.remaining(Instant::from_millis(1001), &user("jane"), digest(1)), None);
    }

    fn user(name: &str) -> UserId {
        name.parse().unwrap()
    }

    fn nonce(n: usize) -> Nonce {
        Nonce(u128::try_from(n).unwrap().to_be_bytes())
    }

    fn digest(n: usize) -> Digest {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&u64::try_from(n).unwrap().to_be_bytes());
        Digest(bytes)
    }
}
