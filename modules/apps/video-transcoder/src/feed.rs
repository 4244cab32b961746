// SPDX-License-Identifier: Apache-2.0
//! One quality: the job that makes it, what waits for that, and its pictures.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::host::{Counter, Host};
use crate::limits::{
    AGAIN_MS_MAX, AGAIN_MS_MIN, KEPT_BYTES_MAX, LOOKED_AT_MS, PICTURE_BYTES_AT_ONCE, PICTURES_AT_ONCE, SKIP_MS_MAX,
    STUCK_MS_MAX, WAITING_BYTES_MAX,
};
use crate::pictures::Pictures;
use crate::quality::Quality;

/// What of the source a picture can be begun with: from the newest such place on, and from the one before. All who have some of it share
/// the memory.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    newest: Segment,
    before: Segment,
}

/// Whole packets that begin where a picture can be begun with.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// The packets; none if there is no such place, or too much behind it.
    pub pieces: Vec<Rc<[u8]>>,
    bytes: usize,
    /// When the first of them came.
    pub since_ms: u64,
    has_begun: bool,
}

impl Kept {
    /// Takes packets, with whether a picture can be begun with them.
    pub fn push(&mut self, now_ms: u64, begins: bool, packets: &Rc<[u8]>) {
        if begins {
            let newest = Segment { since_ms: now_ms, has_begun: true, ..Segment::default() };
            self.before = std::mem::replace(&mut self.newest, newest);
        }
        self.newest.bytes += packets.len();
        if self.newest.bytes + self.before.bytes > KEPT_BYTES_MAX {
            self.before = Segment::default();
        }
        if self.newest.has_begun && self.newest.bytes <= KEPT_BYTES_MAX {
            self.newest.pieces.push(Rc::clone(packets));
        } else {
            self.newest = Segment::default();
        }
    }

    /// Returns what a job begins with: if the newest is less than what ffmpeg looks at before it begins, with the one before.
    fn start(&self, now_ms: u64) -> Segment {
        let is_enough = now_ms.saturating_sub(self.newest.since_ms) >= LOOKED_AT_MS;
        if is_enough || self.before.pieces.is_empty() || self.newest.pieces.is_empty() {
            return self.newest.clone();
        }
        let mut start = self.before.clone();
        start.pieces.extend(self.newest.pieces.iter().cloned());
        start
    }
}

/// One quality.
#[derive(Debug)]
pub struct Feed {
    /// Which.
    pub quality: Quality,
    /// The number of its job.
    pub job: u32,
    /// Since when nobody wants it.
    pub unwanted_ms: Option<u64>,
    /// Its newest picture with its head.
    pub last: Option<Rc<[u8]>>,
    state: State,
    /// What waits for the job, and how much of the first piece has gone.
    waiting: VecDeque<Rc<[u8]>>,
    gone: usize,
    /// Whether nothing is taken until a picture can be begun with.
    is_behind: bool,
    pictures: Pictures,
    /// So many pictures are left out.
    skip: u64,
    /// When the job began to run.
    runs_ms: u64,
    /// When it gave something last, or had nothing to make any of.
    gave_ms: u64,
    /// Whether it took something since it gave something.
    owes: bool,
    again_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is no job until then.
    None { next_ms: u64 },
    /// It waits for its turn since then.
    Waits { since_ms: u64 },
    /// It runs.
    Runs,
}

impl Feed {
    /// Returns one without a job.
    pub fn new(quality: Quality, job: u32) -> Feed {
        Feed {
            quality,
            job,
            unwanted_ms: None,
            last: None,
            state: State::None { next_ms: 0 },
            waiting: VecDeque::new(),
            gone: 0,
            is_behind: false,
            pictures: Pictures::default(),
            skip: 0,
            runs_ms: 0,
            gave_ms: 0,
            owes: false,
            again_ms: AGAIN_MS_MIN,
        }
    }

    /// Returns how long its job has waited for its turn, if it does.
    pub fn waits_ms(&self, now_ms: u64) -> Option<u64> {
        let State::Waits { since_ms } = self.state else { return None };
        Some(now_ms.saturating_sub(since_ms))
    }

    /// Returns whether it waits for a job, or could begin one.
    pub fn wants_place(&self, now_ms: u64) -> bool {
        match self.state {
            State::None { next_ms } => now_ms >= next_ms,
            State::Waits { .. } => true,
            State::Runs => false,
        }
    }

    /// Returns whether it has a job.
    pub fn has_job(&self) -> bool {
        !matches!(self.state, State::None { .. })
    }

    /// Ends its job.
    pub fn end(&mut self, host: &mut dyn Host) {
        if !self.has_job() {
            return;
        }
        host.end(self.job);
        *self = Feed {
            unwanted_ms: self.unwanted_ms,
            last: self.last.take(),
            again_ms: self.again_ms,
            ..Feed::new(self.quality, self.job)
        };
    }

    /// Takes packets of the source.
    pub fn push(&mut self, host: &mut dyn Host, begins: bool, packets: &Rc<[u8]>) {
        if self.state != State::Runs || self.is_behind && !begins {
            return;
        }
        self.is_behind = false;
        if self.waiting.iter().map(|piece| piece.len()).sum::<usize>() + packets.len() > WAITING_BYTES_MAX {
            // A piece of which some has gone goes whole.
            self.waiting.truncate(usize::from(self.gone > 0));
            self.is_behind = !begins;
            host.count(Counter::Missed, 1);
        }
        if !self.is_behind {
            self.waiting.push_back(Rc::clone(packets));
        }
    }

    /// Goes on with its job. Returns the pictures that have come.
    pub fn pump(&mut self, host: &mut dyn Host, now_ms: u64, kept: &Kept) -> Vec<Vec<u8>> {
        match self.state {
            State::None { next_ms } if now_ms >= next_ms => match host.begin(self.job, self.quality) {
                Ok(()) => {
                    host.count(Counter::Jobs, 1);
                    self.state = State::Waits { since_ms: now_ms };
                }
                Err(why) => self.fail(host, now_ms, &why),
            },
            State::None { .. } => {}
            State::Waits { .. } => match host.runs(self.job) {
                Ok(false) => {}
                Ok(true) => return self.run(host, now_ms, kept),
                Err(why) => self.fail(host, now_ms, &why),
            },
            State::Runs => return self.exchange(host, now_ms),
        }
        Vec::new()
    }

    fn run(&mut self, host: &mut dyn Host, now_ms: u64, kept: &Kept) -> Vec<Vec<u8>> {
        self.state = State::Runs;
        (self.runs_ms, self.gave_ms) = (now_ms, now_ms);
        let Segment { pieces, since_ms, .. } = kept.start(now_ms);
        self.waiting = pieces.into();
        self.is_behind = self.waiting.is_empty();
        let passed_ms = if self.is_behind { 0 } else { now_ms.saturating_sub(since_ms) };
        self.skip = (passed_ms * u64::from(self.quality.rate) / 1000).saturating_sub(1);
        self.exchange(host, now_ms)
    }

    fn exchange(&mut self, host: &mut dyn Host, now_ms: u64) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        self.write(host);
        let outcome = self.read(host, &mut found);
        if !found.is_empty() {
            (self.gave_ms, self.again_ms, self.owes) = (now_ms, AGAIN_MS_MIN, false);
        }
        if !self.owes && self.waiting.is_empty() {
            self.gave_ms = now_ms;
        }
        let is_stuck = now_ms.saturating_sub(self.gave_ms) > STUCK_MS_MAX;
        if let Err(why) = outcome.and_then(|()| if is_stuck { Err("it gives nothing".to_owned()) } else { Ok(()) }) {
            self.fail(host, now_ms, &why);
        }
        if now_ms.saturating_sub(self.runs_ms) > SKIP_MS_MAX {
            self.skip = 0;
        }
        let left_out = usize::try_from(self.skip).unwrap_or(usize::MAX).min(found.len());
        self.skip -= left_out as u64;
        found.drain(..left_out);
        found
    }

    fn write(&mut self, host: &mut dyn Host) {
        while let Some(piece) = self.waiting.front() {
            // Why it takes no more, its end says.
            let taken = host.write(self.job, &piece[self.gone..]).unwrap_or(0);
            if taken == 0 {
                return;
            }
            (self.owes, self.gone) = (true, self.gone + taken);
            if self.gone >= piece.len() {
                self.waiting.pop_front();
                self.gone = 0;
            }
        }
    }

    fn read(&mut self, host: &mut dyn Host, found: &mut Vec<Vec<u8>>) -> Result<(), String> {
        let mut read = 0;
        // The rest waits for the next time.
        while found.len() < PICTURES_AT_ONCE && read < PICTURE_BYTES_AT_ONCE {
            let bytes = host.read(self.job)?;
            if bytes.is_empty() {
                return Ok(());
            }
            read += bytes.len();
            self.pictures.push(&bytes);
            while let Some(picture) = self.pictures.poll().map_err(|_| "it gives no pictures".to_owned())? {
                found.push(picture);
            }
        }
        Ok(())
    }

    fn fail(&mut self, host: &mut dyn Host, now_ms: u64, why: &str) {
        eprintln!("{}: {why}", self.quality);
        host.count(Counter::Failed, 1);
        let again_ms = self.again_ms;
        self.end(host);
        self.state = State::None { next_ms: now_ms + again_ms };
        self.again_ms = (2 * again_ms).min(AGAIN_MS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;

    #[test]
    fn what_is_kept_begins_where_a_picture_can_and_is_bounded() {
        let piece = |filler: u8, packets: usize| -> Rc<[u8]> { packet(filler).repeat(packets).into() };
        let begins_with = |kept: &Kept, now_ms| {
            let start = kept.start(now_ms);
            (start.pieces.first().map(|first| first[10]), start.since_ms)
        };
        let mut kept = Kept::default();
        kept.push(0, false, &piece(1, 1));
        assert_eq!(begins_with(&kept, 0), (None, 0), "no picture can be begun with that");
        kept.push(100, true, &piece(2, 1));
        kept.push(200, false, &piece(3, 1));
        assert_eq!(begins_with(&kept, 200), (Some(2), 100));
        kept.push(1_000, true, &piece(4, 1));
        assert_eq!(begins_with(&kept, 1_100), (Some(2), 100), "with the one before");
        assert_eq!(kept.start(1_100).pieces.len(), 3);
        assert_eq!(begins_with(&kept, 1_000 + LOOKED_AT_MS), (Some(4), 1_000), "it is enough by itself");
        let half = KEPT_BYTES_MAX / 188 / 2;
        kept.push(1_200, false, &piece(5, half));
        kept.push(1_300, true, &piece(6, half));
        kept.push(1_400, false, &piece(7, 2));
        assert_eq!(begins_with(&kept, 1_400), (Some(6), 1_300), "the one before gave way");
        kept.push(1_500, false, &piece(8, half));
        kept.push(1_600, false, &piece(8, 1));
        assert_eq!(begins_with(&kept, 1_600), (None, 0), "nothing until the next one");
    }
}
