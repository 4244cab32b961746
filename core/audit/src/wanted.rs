// SPDX-License-Identifier: Apache-2.0
//! Which lines somebody wants to see.

use netserv_model::audit::AuditLine;
use netserv_model::{UnixTime, UserId};

/// Which lines somebody wants to see; without a field, all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Since this time, to the second.
    pub since: Option<UnixTime>,
    /// Of this user.
    pub user: Option<UserId>,
}

impl Wanted {
    /// Returns whether a line is one.
    pub fn wants(&self, AuditLine { entry, .. }: &AuditLine) -> bool {
        // Lines have whole seconds.
        self.since.is_none_or(|since| entry.time.0 / 1000 >= since.0 / 1000)
            && (self.user.is_none() || entry.user == self.user)
    }
}
