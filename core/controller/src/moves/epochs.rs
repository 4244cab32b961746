// SPDX-License-Identifier: Apache-2.0
//! Epochs are the requester's count of a module's owners in turn, and only grow. A node takes no SETUP of an earlier epoch than
//! one that it took before, and none of the epoch of a REMOVE, or of an earlier one: from that on, another node has the module.

use std::collections::BTreeMap;

use netserv_model::request::Setup;
use netserv_model::{Digest, Refusal, RefusalKind, UserId};

use crate::cx::request::Key;
use crate::limits::{EPOCHS_OF_USER_MAX, EPOCHS_REMEMBERED_MAX};
use crate::tenants::Tenants;

/// The least epochs that are taken of modules that are not installed; over the bounds, the one that was noted first is
/// forgotten, of the user who has most of them if there are too many of all, and first of those who are not known.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    least: BTreeMap<Key, Least>,
    noted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Least {
    epoch: u64,
    noted: u64,
    /// The state that was taken in an epoch.
    state: Option<(u64, Digest)>,
}

impl Epochs {
    /// Takes note that no earlier epoch of a module is taken. Users that are not `known` give way to others.
    pub(crate) fn note(&mut self, key: &Key, epoch: u64, known: impl Fn(&UserId) -> bool) {
        let epoch = epoch.max(self.of(key));
        if epoch == 0 {
            return;
        }
        if !self.least.contains_key(key) {
            if self.of_user(&key.0).count() >= EPOCHS_OF_USER_MAX {
                self.forget_first_of(&key.0);
            } else if self.least.len() >= EPOCHS_REMEMBERED_MAX {
                let mut counts: BTreeMap<&UserId, usize> = BTreeMap::new();
                for (user, _) in self.least.keys() {
                    *counts.entry(user).or_default() += 1;
                }
                let most = counts.into_iter().max_by_key(|(user, count)| (!known(user), *count));
                let most = most.map(|(user, _)| user.clone()).expect("a full table has a user");
                if known(&most) && !known(&key.0) {
                    return;
                }
                self.forget_first_of(&most);
            }
        }
        self.noted += 1;
        let state = self.least.get(key).and_then(|least| least.state);
        self.least.insert(key.clone(), Least { epoch, noted: self.noted, state });
    }

    /// Takes note of the state that a module began an epoch with.
    pub(crate) fn note_state(&mut self, key: &Key, epoch: u64, state: Digest) {
        if let Some(least) = self.least.get_mut(key) {
            least.state = Some((epoch, state));
        }
    }

    /// Returns the state that a module began an epoch with.
    fn state_of(&self, key: &Key, epoch: u64) -> Option<Digest> {
        let (began, state) = self.least.get(key)?.state?;
        (began == epoch).then_some(state)
    }

    fn of_user(&self, user: &UserId) -> impl Iterator<Item = (&Key, &Least)> {
        self.least.iter().filter(move |((owner, _), _)| owner == user)
    }

    fn forget_first_of(&mut self, user: &UserId) {
        let first = self.of_user(user).min_by_key(|(_, least)| least.noted).map(|(key, _)| key.clone());
        if let Some(first) = first {
            self.least.remove(&first);
        }
    }

    /// Returns the least epoch that is taken of a module.
    pub(crate) fn of(&self, key: &Key) -> u64 {
        self.least.get(key).map_or(0, |least| least.epoch)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.least.len()
    }

    /// Checks that no later epoch of a module was taken.
    pub(crate) fn check(&self, tenants: &Tenants, key: &Key, epoch: u64) -> Result<(), Refusal> {
        let least = self.of(key).max(tenants.epoch_of(key));
        if epoch >= least {
            return Ok(());
        }
        let detail = format!("epoch {epoch} of {}, {least} is the first that this node takes", key.1);
        Err(Refusal::new(RefusalKind::OldEpoch, detail))
    }

    /// Returns whether a SETUP brings a state that the module is still to be given: one that it began its epoch with, and went
    /// since, left what it made of it in kv.
    pub(crate) fn brings_state(&self, tenants: &Tenants, key: &Key, setup: &Setup) -> bool {
        let taken = self.state_of(key, setup.epoch);
        setup.state.as_ref().is_some_and(|state| taken != Some(state.digest)) && setup.epoch > tenants.epoch_of(key)
    }

    /// Checks that a module in an epoch that has begun is not to begin it with another state.
    pub(crate) fn check_state(&self, tenants: &Tenants, key: &Key, setup: &Setup) -> Result<(), Refusal> {
        let Some(state) = &setup.state else { return Ok(()) };
        let record = tenants.active(key).map(|active| &active.record).filter(|record| record.epoch == setup.epoch);
        let began = match record {
            Some(record) => Some(record.state),
            None => self.state_of(key, setup.epoch).map(Some),
        };
        match began {
            Some(began) if began != Some(state.digest) => {
                let with = began.map_or("no state".to_owned(), |digest| format!("the state {digest}"));
                let detail = format!("{} began epoch {} with {with}; send this one in the next", key.1, setup.epoch);
                Err(Refusal::new(RefusalKind::OldEpoch, detail))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Checks that a module is of an earlier epoch than the one in which another node has it.
pub(crate) fn check_handed_over(tenants: &Tenants, key: &Key, epoch: Option<u64>) -> Result<(), Refusal> {
    match epoch {
        Some(epoch) if tenants.epoch_of(key) >= epoch => {
            let detail =
                format!("this node has {} in epoch {}, which is not before {epoch}", key.1, tenants.epoch_of(key));
            Err(Refusal::new(RefusalKind::OldEpoch, detail))
        }
        Some(_) | None => Ok(()),
    }
}
