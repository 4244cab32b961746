// SPDX-License-Identifier: Apache-2.0
//! Which media job has its turn.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use netserv_model::WorkerId;
use netserv_model::effect::ModuleSlot;
use netserv_wire::container::media::MediaTask;

use crate::config::media::MediaBlock;
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

/// Jobs in the order of their turns: users with fewer that run come first, of these who came first, and no user has more at a time than its
/// share. The node's last place is for a user that has none, unless the operator lets one user have all. Live jobs and others have turns of
/// their own.
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
        let place = |wanted: &Wanted| {
            let shares = block.shares(wanted.is_live());
            let (jobs, per_user) = (at_most(shares.jobs), at_most(shares.per_user));
            let (all, theirs) = self.running_beside(wanted);
            let last = usize::from(theirs > 0 && per_user < jobs);
            (all + last < jobs && theirs < per_user).then_some(theirs)
        };
        let places = self.waiting.iter().enumerate().filter_map(|(at, wanted)| Some((place(wanted)?, at)));
        let (_, place) = places.min()?;
        let wanted = self.waiting.remove(place)?;
        let running = Running { slot: wanted.slot, is_live: wanted.is_live() };
        self.running.insert(wanted.key.clone(), running);
        Some(wanted)
    }

    /// Returns the job that gives way to another user's that waits: the slowest of those users that have more running than that one has.
    /// `slowness` says how slow a job is, and nothing of one that is at work. Nobody waits for a live job to give way.
    pub fn gives_way<S: Ord>(&self, block: &MediaBlock, slowness: impl Fn(&JobKey) -> Option<S>) -> Option<JobKey> {
        let is_kept_out = |wanted: &&Wanted| {
            let (all, theirs) = self.running_beside(wanted);
            let shares = block.shares(false);
            !wanted.is_live() && all >= at_most(shares.jobs) && theirs < at_most(shares.per_user)
        };
        let least = self.waiting.iter().filter(is_kept_out).map(|wanted| self.running_beside(wanted).1).min()?;
        let of_user = |key: &JobKey| {
            let theirs =
                |(other, running): &(&JobKey, &Running)| !running.is_live && other.worker.user == key.worker.user;
            self.running.iter().filter(theirs).count()
        };
        let ours = self.running.iter().filter(|(key, running)| !running.is_live && of_user(key) > least);
        let slow = ours.filter_map(|(key, _)| Some((slowness(key)?, key)));
        slow.max().map(|(_, key)| key.clone())
    }

    /// Returns how many jobs of its kind run, and how many of these are its user's.
    fn running_beside(&self, wanted: &Wanted) -> (usize, usize) {
        let same = self.running.iter().filter(|(_, running)| running.is_live == wanted.is_live());
        let theirs = same.clone().filter(|(key, _)| key.worker.user == wanted.key.worker.user);
        (same.count(), theirs.count())
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

fn at_most(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use netserv_model::Flavour;
    use netserv_wire::container::media::{MediaFormat, MediaLive, MediaPart, MediaSettings, MediaSource};

    use super::*;

    #[test]
    fn turns_are_taken_in_order_and_in_shares() {
        let block = MediaBlock { jobs: 4, jobs_per_user: 2, ..MediaBlock::default() };
        let mut turns = Turns::default();
        for (user, job) in [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("c", 1)] {
            assert!(turns.add(wanted(user, job), &block));
        }
        assert!(!turns.add(wanted("b", 2), &block), "it is there already");
        let mut next = || turns.next(&block).map(|wanted| (wanted.key.worker.user.to_string(), wanted.key.job));
        assert_eq!(next(), Some(("a".to_owned(), 1)));
        assert_eq!(next(), Some(("b".to_owned(), 1)), "it has none");
        assert_eq!(next(), Some(("c".to_owned(), 1)), "it has none, either");
        assert_eq!(next(), None, "the last place is for a user without one");
        assert!(turns.add(wanted("d", 1), &block));
        assert_eq!(turns.next(&block).unwrap().key, wanted("d", 1).key);
        assert!(turns.end(&wanted("d", 1).key) && !turns.end(&wanted("d", 1).key));
        assert!(turns.end(&wanted("c", 1).key));
        assert_eq!(turns.next(&block).unwrap().key, wanted("a", 2).key);
        assert!(turns.end(&wanted("b", 1).key));
        assert_eq!(turns.next(&block).unwrap().key, wanted("b", 2).key, "user a has its share");
        assert_eq!(turns.of(&wanted("a", 0).key.worker, None).len(), 3);
        assert_eq!(turns.of(&wanted("a", 0).key.worker, Some(ModuleSlot(9))).len(), 0);
        assert_eq!(turns.counts(), (3, 1));
    }

    #[test]
    fn one_user_has_all_places_where_the_operator_lets_it() {
        let block = MediaBlock { jobs: 2, jobs_per_user: 2, ..MediaBlock::default() };
        let mut turns = Turns::default();
        assert!((1..=3).all(|job| turns.add(wanted("a", job), &block)));
        let mut next = || turns.next(&block).map(|wanted| wanted.key.job);
        assert_eq!([next(), next(), next()], [Some(1), Some(2), None]);
    }

    #[test]
    fn the_slowest_job_of_who_has_more_gives_way() {
        let block = MediaBlock { jobs: 3, jobs_per_user: 2, ..MediaBlock::default() };
        let mut turns = turns_of(&[("a", 1), ("a", 2), ("b", 1)]);
        let slowness = |key: &JobKey| (key.job == 1).then_some(if *key.worker.user.as_str() == *"a" { 1 } else { 2 });
        assert_eq!(turns.gives_way(&block, slowness), None, "nobody waits");
        assert!(turns.add(live("c", 8), &block));
        assert!(turns.add(wanted("a", 3), &block));
        assert_eq!(turns.gives_way(&block, slowness), None, "nobody waits who has less");
        assert!(turns.add(wanted("b", 2), &block));
        assert_eq!(turns.gives_way(&block, slowness), Some(wanted("a", 1).key), "user b has one itself");
        assert!(turns.add(wanted("c", 1), &block));
        assert_eq!(turns.gives_way(&block, slowness), Some(wanted("b", 1).key), "the slowest");
        assert_eq!(turns.gives_way(&block, |_| None::<u8>), None, "all are at work");
        assert!(turns.end(&wanted("b", 1).key));
        assert_eq!(turns.gives_way(&block, slowness), None, "there is a place");
    }

    /// Returns turns with jobs that run.
    fn turns_of(running: &[(&str, u64)]) -> Turns {
        let running = running.iter().map(|(user, job)| {
            let Wanted { key, slot, .. } = wanted(user, *job);
            (key, Running { slot, is_live: false })
        });
        Turns { running: running.collect(), ..Turns::default() }
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
