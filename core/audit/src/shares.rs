// SPDX-License-Identifier: Apache-2.0
//! How many lines there may be of whom, so that nobody gets lines of others out of the log by a flood of requests.

use std::collections::BTreeMap;
use std::time::Duration;

use netserv_model::{Instant, UserId};

use crate::limits::{
    LEFT_OUT_INTERVAL, SHARE_LINE_INTERVAL, SHARE_LINES_BURST, SHARES_MAX, STRANGERS_LINE_INTERVAL,
    STRANGERS_LINES_BURST,
};

/// Whose decision it is that wants room in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The proven user; nothing if nobody has proven to have asked.
    pub user: Option<UserId>,
    /// Whether the configuration does not name the user.
    pub is_stranger: bool,
    /// Whether it was refused. Refusals take no room from decisions that were carried out.
    pub refused: bool,
}

/// All shares, and how many lines were left out.
#[derive(Debug, Default)]
pub struct Shares {
    used: BTreeMap<(Whose, bool), Used>,
    left_out: BTreeMap<Whose, u64>,
    /// When it was first left out since the last look.
    since: Option<Instant>,
}

/// Who shares room in the log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    /// A user alone.
    User(UserId),
    /// All users together whom the configuration does not name.
    Strangers,
    /// All requests together that nobody has proven to have made.
    Nobody,
}

impl Whose {
    /// Returns how many lines there may be at once, and how long it takes until there is room for one more.
    fn room(&self) -> (u64, Duration) {
        match self {
            Whose::User(_) | Whose::Nobody => (SHARE_LINES_BURST, SHARE_LINE_INTERVAL),
            Whose::Strangers => (STRANGERS_LINES_BURST, STRANGERS_LINE_INTERVAL),
        }
    }
}

/// Lines of a share that count at a time.
#[derive(Clone, Copy, Debug)]
struct Used {
    lines: u64,
    at: Instant,
}

impl Used {
    fn until(self, now: Instant, interval: Duration) -> Used {
        let steps = u32::try_from(now.since(self.at).as_nanos() / interval.as_nanos()).unwrap_or(u32::MAX);
        match self.lines.saturating_sub(steps.into()) {
            0 => Used { lines: 0, at: now },
            lines => Used { lines, at: self.at + interval * steps },
        }
    }
}

impl Shares {
    /// Returns whether there is room for a line; if not, it is counted.
    pub fn take(&mut self, now: Instant, Share { user, is_stranger, refused }: Share) -> bool {
        let of_user = user.clone().map(|user| (Whose::User(user), refused));
        let has_own = of_user.as_ref().is_some_and(|own| self.has_own(now, own));
        let shared = match (&user, is_stranger || !has_own) {
            (None, _) => Some(Whose::Nobody),
            (Some(_), true) => Some(Whose::Strangers),
            (Some(_), false) => None,
        };
        let shared = shared.map(|whose| (whose, refused));
        let shares: Vec<(Whose, bool)> = of_user.filter(|_| has_own).into_iter().chain(shared).collect();
        let full = shares.iter().find(|share| self.used_by(now, share).lines >= share.0.room().0).cloned();
        let has_room = full.is_none();
        if let Some((whose, _)) = full {
            *self.left_out.entry(whose).or_default() += 1;
            self.since.get_or_insert(now);
        } else {
            for share in shares {
                let used = self.used_by(now, &share);
                self.used.insert(share, Used { lines: used.lines + 1, ..used });
            }
        }
        has_room
    }

    /// Returns how many lines were left out of whose share, if it is time to say so or `is_last`; they are not counted any more. Each of
    /// these users had a share that was full, so there are few of them, however many keys a stranger has.
    pub fn left_out(&mut self, now: Instant, is_last: bool) -> BTreeMap<Whose, u64> {
        let is_due = self.since.is_some_and(|since| is_last || now.since(since) >= LEFT_OUT_INTERVAL);
        if is_due {
            self.since = None;
            std::mem::take(&mut self.left_out)
        } else {
            BTreeMap::new()
        }
    }

    fn used_by(&self, now: Instant, share: &(Whose, bool)) -> Used {
        let none = Used { lines: 0, at: now };
        self.used.get(share).map_or(none, |used| used.until(now, share.0.room().1))
    }

    /// Returns whether a user has a share of its own.
    fn has_own(&mut self, now: Instant, share: &(Whose, bool)) -> bool {
        if self.used.len() >= SHARES_MAX && !self.used.contains_key(share) {
            self.used.retain(|(whose, _), used| used.until(now, whose.room().1).lines > 0);
        }
        self.used.contains_key(share) || self.used.len() < SHARES_MAX
    }
}
