// SPDX-License-Identifier: Apache-2.0
//! Fair shares of something that all users of a node have together.

/// Which part of what is left one user may hold.
pub const SHARE_PART: u64 = 4;

/// Returns whether a user may hold `own` of `all`, where `held` is what all users hold then, this one included: at most a quarter
/// of what is left. However many users take what they can, the next one still gets something.
pub fn is_fair(own: u64, held: u64, all: u64) -> bool {
    own <= all.saturating_sub(held) / SHARE_PART
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: eight users who take all that they get leave a ninth a thirtieth, and one alone has a fifth.
    #[test]
    fn greedy_users_leave_something_for_the_next() {
        let all = 1_000_000;
        let mut held = 0;
        let mut take = || {
            let own = (0..all).rev().find(|own| is_fair(*own, held + own, all)).unwrap();
            held += own;
            own
        };
        assert_eq!(take(), all / 5);
        for _ in 0..7 {
            assert!(take() > 0);
        }
        assert!(take() > all / 30);
    }
}
