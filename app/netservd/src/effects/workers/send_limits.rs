// SPDX-License-Identifier: Apache-2.0
//! How much users' modules may send of their own, as the configuration has it.

use std::collections::BTreeMap;

use netserv_model::UserId;

use crate::config::User;
use crate::packet_loop::budget::SendLimits;

/// Returns the users whose limits are others than before, with the new ones. Who is in no configuration has the usual.
pub(super) fn changed(before: &[User], after: &[User]) -> Vec<(UserId, SendLimits)> {
    let limits = |users: &[User]| -> BTreeMap<UserId, SendLimits> {
        users.iter().map(|user| (user.name.clone(), user.network.into())).collect()
    };
    let (before, mut after) = (limits(before), limits(after));
    for user in before.keys() {
        after.entry(user.clone()).or_default();
    }
    after.retain(|user, limits| before.get(user).copied().unwrap_or_default() != *limits);
    after.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn limits_are_told_when_they_change() {
        let none = users("");
        let usual = users(&user("alice", ""));
        let slow = users(&user("alice", "network = { packets-per-second = 50, bits-per-second = 1000000 }"));
        let fast = users(&user("alice", "network = { packets-per-second = 9000000, bits-per-second = 10000000000 }"));
        let limits = SendLimits { packets_per_second: 50, bits_per_second: 1_000_000 };
        assert_eq!(told(&none, &slow), [("alice".to_owned(), limits)]);
        assert_eq!(told(&slow, &slow), []);
        // More than the usual is for the network alone, and who is gone has the usual again.
        for other in [&none, &usual, &fast] {
            assert_eq!(told(&slow, other), [("alice".to_owned(), SendLimits::default())]);
            assert_eq!(told(&none, other), []);
        }
    }

    fn told(before: &[User], after: &[User]) -> Vec<(String, SendLimits)> {
        changed(before, after).into_iter().map(|(user, limits)| (user.to_string(), limits)).collect()
    }

    fn user(name: &str, more: &str) -> String {
        format!("[[user]]\nname = '{name}'\nprefixes = ['10.0.0.0/8']\nkeys = []\n{more}\n")
    }

    fn users(text: &str) -> Vec<User> {
        toml::from_str::<Config>(text).unwrap().users
    }
}
