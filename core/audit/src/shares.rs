// SPDX-License-Identifier: Apache-2.0
//! How many lines there may be of whom, so that nobody gets lines of others out of the log by a flood of requests.

use std::collections::BTreeMap;

use netserv_model::{Instant, UserId};

use crate::limits::{LEFT_OUT_INTERVAL, SHARE_LINE_INTERVAL, SHARE_LINES_BURST, SHARES_MAX};

/// What shares room in the log: what a user did, what of a user's was refused, and with no user what nobody has proven to have asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share {
    /// The proven user.
    pub user: Option<UserId>,
    /// Whether it was refused.
    pub refused: bool,
}

/// All shares, and how many lines were left out.
#[derive(Debug, Default)]
pub struct Shares {
    used: BTreeMap<Share, Used>,
    left_out: BTreeMap<Option<UserId>, u64>,
    /// When it was first left out since the last look.
    since: Option<Instant>,
}

/// Lines of a share that count at a time.
#[derive(Clone, Copy, Debug)]
struct Used {
    lines: u64,
    at: Instant,
}

impl Used {
    fn until(self, now: Instant) -> Used {
        let steps = now.since(self.at).as_nanos() / SHARE_LINE_INTERVAL.as_nanos();
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        Used { lines: self.lines.saturating_sub(steps.into()), at: self.at + SHARE_LINE_INTERVAL * steps }
    }
}

impl Shares {
    /// Returns whether there is room for a line; if not, it is counted.
    pub fn take(&mut self, now: Instant, share: Share) -> bool {
        let share = if self.has_room_for(now, &share) { share } else { Share { user: None, ..share } };
        let user = share.user.clone();
        let used = self.used.entry(share).or_insert(Used { lines: 0, at: now });
        *used = if used.lines == 0 { Used { lines: 0, at: now } } else { used.until(now) };
        let has_room = used.lines < SHARE_LINES_BURST;
        if has_room {
            used.lines += 1;
        } else {
            *self.left_out.entry(user).or_default() += 1;
            self.since.get_or_insert(now);
        }
        has_room
    }

    /// Returns how many lines were left out of whom, if it is time to say so or `is_last`; they are not counted any more.
    pub fn left_out(&mut self, now: Instant, is_last: bool) -> BTreeMap<Option<UserId>, u64> {
        let is_due = self.since.is_some_and(|since| is_last || now.since(since) >= LEFT_OUT_INTERVAL);
        if is_due {
            self.since = None;
            std::mem::take(&mut self.left_out)
        } else {
            BTreeMap::new()
        }
    }

    fn has_room_for(&mut self, now: Instant, share: &Share) -> bool {
        if self.used.len() >= SHARES_MAX && !self.used.contains_key(share) {
            self.used.retain(|_, used| used.until(now).lines > 0);
        }
        // Those of nobody always have room.
        share.user.is_none() || self.used.contains_key(share) || self.used.len() < SHARES_MAX
    }
}
