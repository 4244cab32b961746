// SPDX-License-Identifier: Apache-2.0
//! How many leases each user has of those that are remembered: who has the most makes room.

use std::collections::BTreeMap;

use netserv_model::UserId;

/// The users with something, and how much.
#[derive(Debug, Default)]
pub(super) struct Shares(BTreeMap<UserId, usize>);

impl Shares {
    pub(super) fn add(&mut self, user: &UserId) {
        *self.0.entry(user.clone()).or_default() += 1;
    }

    pub(super) fn remove(&mut self, user: &UserId) {
        if let Some(count) = self.0.get_mut(user) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(user);
            }
        }
    }

    /// Returns how much the user has who has the most.
    pub(super) fn most(&self) -> usize {
        self.0.values().copied().max().unwrap_or(0)
    }

    pub(super) fn of(&self, user: &UserId) -> usize {
        self.0.get(user).copied().unwrap_or(0)
    }
}
