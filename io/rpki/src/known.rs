// SPDX-License-Identifier: Apache-2.0
//! Checks that need not be done again: none of the files that they read has changed.
//!
//! A holder may publish so much that a check takes a processor for a while, and a checklist that rights depend on is checked twice a minute.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ipnet::IpNet;
use netserv_model::evidence::Holder;
use netserv_model::{Digest, UnixTime};
use rpki::crypto::DigestAlgorithm;

use crate::files::{Files, Seen};
use crate::limits::KNOWN_MAX;
use crate::time::Clock;

/// What was found out last of checklists.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownChecks(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    by_key: BTreeMap<Key, (u64, Arc<Known>)>,
    /// Counts uses: the check that was used last longest ago makes room.
    uses: u64,
}

/// The digests of a checklist and of the grant that it has to name.
pub(crate) type Key = (Digest, Digest);

/// What a check found out.
#[derive(Debug)]
struct Known {
    prefixes: Vec<IpNet>,
    /// When everything holds that it looked at, both inclusive.
    from: UnixTime,
    until: UnixTime,
    seen: Vec<Seen>,
}

pub(crate) fn key(checklist: &[u8], grant: &Digest) -> Option<Key> {
    let digest = DigestAlgorithm::sha256().digest(checklist);
    Some((Digest(digest.as_ref().try_into().ok()?), *grant))
}

impl KnownChecks {
    /// Returns what a check would find out, if it would read what the last one read.
    pub(crate) fn find(&self, key: Key, files: &Files, now: UnixTime) -> Option<Holder> {
        let known = self.used(key)?;
        let is_in_time = known.from <= now && now <= known.until;
        let is_same = is_in_time && known.seen.iter().all(|seen| files.is_as(seen));
        is_same.then(|| Holder { prefixes: known.prefixes.clone(), until: known.until })
    }

    /// Takes note of a check, unless a file that it read had just been changed.
    pub(crate) fn note(&self, key: Key, files: Files, clock: &Clock, holder: &Holder) {
        let Some(seen) = files.into_seen() else { return };
        let (from, until) = (clock.from(), clock.until());
        let known = Arc::new(Known { prefixes: holder.prefixes.clone(), from, until, seen });
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.by_key.len() >= KNOWN_MAX && !state.by_key.contains_key(&key) {
            let oldest = state.by_key.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| *key);
            oldest.and_then(|oldest| state.by_key.remove(&oldest));
        }
        state.uses += 1;
        let uses = state.uses;
        state.by_key.insert(key, (uses, known));
    }

    fn used(&self, key: Key) -> Option<Arc<Known>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.uses += 1;
        let uses = state.uses;
        let (used, known) = state.by_key.get_mut(&key)?;
        *used = uses;
        Some(Arc::clone(known))
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.lock().unwrap().by_key.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_max_checks_are_remembered_and_the_one_used_longest_ago_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let (checks, now) = (KnownChecks::default(), UnixTime(1));
        let mut clock = Clock::new(now);
        clock.within("a list", now, now).unwrap();
        let holder = Holder { prefixes: vec!["10.0.0.0/8".parse().unwrap()], until: now };
        let files = || Files::open(folder.path()).unwrap();
        let key = |n: usize| key(&n.to_be_bytes(), &Digest([0; 32])).unwrap();
        for n in 0..KNOWN_MAX {
            checks.note(key(n), files(), &clock, &holder);
        }
        assert_eq!(checks.find(key(0), &files(), now), Some(holder.clone()));
        checks.note(key(KNOWN_MAX), files(), &clock, &holder);
        assert_eq!(checks.len(), KNOWN_MAX);
        assert!([0, 2, KNOWN_MAX].into_iter().all(|n| checks.find(key(n), &files(), now).is_some()));
        assert_eq!(checks.find(key(1), &files(), now), None);
        for other in [UnixTime(0), UnixTime(2)] {
            assert_eq!(checks.find(key(0), &files(), other), None, "out of time");
        }
    }
}
