// SPDX-License-Identifier: Apache-2.0
//! Whose turn it is: users take turns, however much each of them asks for.

use std::collections::{BTreeMap, VecDeque};

use netserv_model::UserId;

/// Jobs that wait and jobs under way, by user.
#[derive(Debug)]
pub struct Turns<T> {
    /// Jobs of one user that are under way at a time.
    share: usize,
    /// Users with jobs that wait; the first has the next turn.
    users: VecDeque<UserId>,
    waiting: BTreeMap<UserId, VecDeque<T>>,
    running: BTreeMap<UserId, usize>,
}

impl<T> Turns<T> {
    /// Returns that nobody waits. Of one user, `share` jobs are under way at a time.
    pub fn new(share: usize) -> Turns<T> {
        Turns { share, users: VecDeque::new(), waiting: BTreeMap::new(), running: BTreeMap::new() }
    }

    /// Adds a job behind the user's others.
    pub fn push(&mut self, user: UserId, job: T) {
        if !self.waiting.contains_key(&user) {
            self.users.push_back(user.clone());
        }
        self.waiting.entry(user).or_default().push_back(job);
    }

    /// Takes the next job. While `is_full`, it is that of a user who has none under way. [`Turns::end`] must follow.
    pub fn next(&mut self, is_full: bool) -> Option<(UserId, T)> {
        let (running, share) = (&self.running, if is_full { 1 } else { self.share });
        let has_turn = |user: &UserId| running.get(user).is_none_or(|count| *count < share);
        let place = self.users.iter().position(has_turn)?;
        let user = self.users.remove(place)?;
        let jobs = self.waiting.get_mut(&user)?;
        let job = jobs.pop_front()?;
        if jobs.is_empty() {
            self.waiting.remove(&user);
        } else {
            self.users.push_back(user.clone());
        }
        *self.running.entry(user.clone()).or_default() += 1;
        Some((user, job))
    }

    /// Takes note that a user's job ended.
    pub fn end(&mut self, user: &UserId) {
        if let Some(count) = self.running.get_mut(user) {
            *count -= 1;
            if *count == 0 {
                self.running.remove(user);
            }
        }
    }

    /// Returns how many jobs are under way.
    pub fn running(&self) -> usize {
        self.running.values().sum()
    }

    /// Takes out the jobs that wait and are not to be kept.
    pub fn take_out(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        for jobs in self.waiting.values_mut() {
            jobs.retain_mut(&mut keep);
        }
        self.waiting.retain(|_, jobs| !jobs.is_empty());
        self.users.retain(|user| self.waiting.contains_key(user));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_take_turns_and_have_shares() {
        let mut turns = Turns::new(1);
        for (user, job) in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5)] {
            turns.push(user.parse().unwrap(), job);
        }
        let next = |turns: &mut Turns<i32>, is_full| turns.next(is_full).map(|(_, job)| job);
        assert_eq!([(); 4].map(|()| next(&mut turns, false)), [Some(1), Some(4), Some(5), None]);
        turns.end(&"a".parse().unwrap());
        assert_eq!((next(&mut turns, false), turns.running()), (Some(2), 3));
        turns.take_out(|job| *job != 3);
        turns.end(&"a".parse().unwrap());
        assert!(turns.next(false).is_none());
    }

    /// Goal: where all places are taken, who has none has one all the same.
    #[test]
    fn who_has_no_job_under_way_does_not_wait_for_others() {
        let mut turns = Turns::new(4);
        for (user, job) in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("b", 5)] {
            turns.push(user.parse().unwrap(), job);
        }
        assert_eq!([(); 3].map(|()| turns.next(false).unwrap().1), [1, 4, 2]);
        assert!(turns.next(true).is_none());
        turns.push("c".parse().unwrap(), 6);
        assert_eq!(turns.next(true).map(|(_, job)| job), Some(6));
        assert!(turns.next(true).is_none());
    }
}
