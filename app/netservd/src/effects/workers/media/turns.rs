// SPDX-License-Identifier: Apache-2.0
//! Which media job has its turn.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use netserv_model::WorkerId;
use netserv_model::effect::ModuleSlot;
use netserv_wire::container::media::MediaTask;

use crate::config::media::{MediaBlock, MediaShares};
use crate::event::JobKey;
use crate::limits::{MEDIA_WAITING_MAX, MEDIA_WAITING_PER_JOB_MAX};

/// A job that wants to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Which job.
    pub key: JobKey,
    /// The module that asked for it.
    pub slot: ModuleSlot,
    /// What is to be done.
    pub task: MediaTask,
    /// When it was asked for.
    pub since: Instant,
}

impl Wanted {
    /// Returns whether its input comes as it happens.
    fn is_live(&self) -> bool {
        self.task.live().is_some()
    }
}

/// Jobs in the order of their turns: who came first, but no user has more at a time than its share. Live jobs and others
/// have turns of their own.
#[derive(Debug, Default)]
pub struct Turns {
    waiting: VecDeque<Wanted>,
    running: BTreeMap<JobKey, Running>,
}

/// A job that has its turn.
#[derive(Debug)]
struct Running {
    /// The module that asked for it.
    slot: ModuleSlot,
    is_live: bool,
}

impl Turns {
    /// Takes a job, unless too many wait already or there is one of the same name.
    pub fn add(&mut self, wanted: Wanted, block: &MediaBlock) -> bool {
        let user = &wanted.key.worker.user;
        let is_theirs = |other: &&Wanted| other.key.worker.user == *user && other.is_live() == wanted.is_live();
        let theirs = self.waiting.iter().filter(is_theirs).count();
        let share = usize::try_from(block.shares(wanted.is_live()).per_user).unwrap_or(usize::MAX);
        let known = self.running.contains_key(&wanted.key) || self.waiting.iter().any(|one| one.key == wanted.key);
        let fits = self.waiting.len() < MEDIA_WAITING_MAX
            && theirs < share.saturating_mul(MEDIA_WAITING_PER_JOB_MAX)
            && !known;
        if fits {
            self.waiting.push_back(wanted);
        }
        fits
    }

    /// Returns the next job that has its turn.
    pub fn next(&mut self, block: &MediaBlock) -> Option<Wanted> {
        let below = |count: usize, most: u32| u32::try_from(count).is_ok_and(|count| count < most);
        let has_turn = |wanted: &Wanted| {
            let MediaShares { jobs, per_user } = block.shares(wanted.is_live());
            let same = self.running.iter().filter(|(_, running)| running.is_live == wanted.is_live());
            let theirs = same.clone().filter(|(key, _)| key.worker.user == wanted.key.worker.user);
            below(same.count(), jobs) && below(theirs.count(), per_user)
        };
        let place = self.waiting.iter().position(has_turn)?;
        let wanted = self.waiting.remove(place)?;
        let running = Running { slot: wanted.slot, is_live: wanted.is_live() };
        self.running.insert(wanted.key.clone(), running);
        Some(wanted)
    }

    /// Takes a job away that has not had its turn; returns whether there was one.
    pub fn give_up(&mut self, key: &JobKey) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|wanted| wanted.key != *key);
        self.waiting.len() < before
    }

    /// Returns the jobs that have waited since then, or longer.
    pub fn waiting_since(&self, then: Option<Instant>) -> Vec<JobKey> {
        let long = self.waiting.iter().filter(|wanted| then.is_some_and(|then| wanted.since <= then));
        long.map(|wanted| wanted.key.clone()).collect()
    }

    /// Takes note that a job ended; returns whether it had its turn.
    pub fn end(&mut self, key: &JobKey) -> bool {
        self.running.remove(key).is_some()
    }

    /// Returns the jobs of a worker, or only those of one of its modules.
    pub fn of(&self, worker: &WorkerId, slot: Option<ModuleSlot>) -> Vec<JobKey> {
        let waiting = self.waiting.iter().map(|wanted| (&wanted.key, wanted.slot));
        let all = self.running.iter().map(|(key, running)| (key, running.slot)).chain(waiting);
        let theirs = all.filter(|(key, of)| key.worker == *worker && slot.is_none_or(|slot| slot == *of));
        theirs.map(|(key, _)| key.clone()).collect()
    }

    /// Returns how many jobs run, and how many wait.
    pub fn counts(&self) -> (usize, usize) {
        (self.running.len(), self.waiting.len())
    }
}

#[cfg(test)]
mod tests {
    use netserv_model::Flavour;
    use netserv_wire::container::media::{MediaFormat, MediaLive, MediaPart, MediaSettings, MediaSource};

    use super::*;

    #[test]
    fn turns_are_taken_in_order_and_in_shares() {
        let block = MediaBlock { jobs: 3, jobs_per_user: 2, ..MediaBlock::default() };
        let mut turns = Turns::default();
        for (user, job) in [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2)] {
            assert!(turns.add(wanted(user, job), &block));
        }
        assert!(!turns.add(wanted("b", 2), &block), "it is there already");
        let mut next = || turns.next(&block).map(|wanted| (wanted.key.worker.user.to_string(), wanted.key.job));
        assert_eq!(next(), Some(("a".to_owned(), 1)));
        assert_eq!(next(), Some(("a".to_owned(), 2)));
        assert_eq!(next(), Some(("b".to_owned(), 1)), "user a has its share");
        assert_eq!(next(), None, "the node has its jobs");
        assert!(turns.end(&wanted("b", 1).key) && !turns.end(&wanted("b", 1).key));
        assert_eq!(turns.next(&block).unwrap().key, wanted("b", 2).key);
        assert!(turns.end(&wanted("a", 1).key));
        assert_eq!(turns.next(&block).unwrap().key, wanted("a", 3).key);
        assert_eq!(turns.of(&wanted("a", 0).key.worker, None).len(), 2);
        assert_eq!(turns.of(&wanted("a", 0).key.worker, Some(ModuleSlot(9))).len(), 0);
        assert_eq!(turns.counts(), (3, 0));
    }

    #[test]
    fn live_jobs_have_turns_of_their_own() {
        let block = MediaBlock { jobs: 1, live_jobs: 2, live_jobs_per_user: 1, ..MediaBlock::default() };
        let mut turns = Turns::default();
        for wanted in [live("a", 1), live("a", 2), wanted("a", 3), live("b", 4), live("c", 5), wanted("b", 6)] {
            assert!(turns.add(wanted, &block));
        }
        let mut next = || turns.next(&block).map(|wanted| wanted.key.job);
        assert_eq!([next(), next(), next(), next()], [Some(1), Some(3), Some(4), None]);
        assert!(turns.end(&live("b", 4).key));
        assert_eq!(turns.next(&block).unwrap().key.job, 5, "user a has its share");
        assert_eq!(turns.counts(), (3, 2));
    }

    #[test]
    fn waiting_jobs_are_bounded_for_a_user_and_for_all() {
        let block = MediaBlock::default();
        let mut turns = Turns::default();
        let share = u64::from(block.jobs_per_user) * u64::try_from(MEDIA_WAITING_PER_JOB_MAX).unwrap();
        for job in 0..share {
            assert!(turns.add(wanted("a", job), &block));
        }
        assert!(!turns.add(wanted("a", share), &block));
        assert!(turns.give_up(&wanted("a", 0).key) && !turns.give_up(&wanted("a", 0).key));
        assert!(turns.add(wanted("a", share), &block));
        let more = (0..MEDIA_WAITING_MAX).filter(|number| turns.add(wanted(&format!("u{number}"), 1), &block)).count();
        assert_eq!(turns.counts(), (0, MEDIA_WAITING_MAX));
        assert_eq!(turns.waiting_since(Some(Instant::now())).len(), MEDIA_WAITING_MAX);
        assert_eq!(turns.waiting_since(None).len(), 0);
        assert!(more < MEDIA_WAITING_MAX);
    }

    fn live(user: &str, job: u64) -> Wanted {
        let part = MediaPart { live: Some(MediaLive { cpu_permille: 0, keep_times: true }), ..MediaPart::default() };
        let outputs = vec![MediaSettings::new(MediaFormat::Ogg)];
        let task = MediaTask::Transcode { source: MediaSource::Ogg, part, outputs };
        Wanted { task, ..wanted(user, job) }
    }

    fn wanted(user: &str, job: u64) -> Wanted {
        let worker = WorkerId::new(user.parse().unwrap(), Flavour::Wasm);
        let task = MediaTask::Probe { source: MediaSource::Any };
        Wanted { key: JobKey { worker, generation: 0, job }, slot: ModuleSlot(1), task, since: Instant::now() }
    }
}
