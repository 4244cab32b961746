// SPDX-License-Identifier: Apache-2.0
//! What the lanes of a node share, and what commands carry for each of them.
//!
//! A lane is a packet thread with a driver's lane, a ring of each worker, and its own copy of the filters. Every command goes
//! to all lanes, in the same order; what a lane is told, it does by itself.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use netserv_container::HostRing;
use netserv_model::limits::LANES_MAX;
use tokio::sync::oneshot;

use crate::budget::Budgets;
use crate::limits::PENDING_PACKETS_MAX;
use crate::workers::{WorkerRings, WorkerSeen};

/// The place of a packet loop among the lanes of its node, and what they share.
#[derive(Clone)]
pub struct LanePlace {
    number: usize,
    count: usize,
    begun: Instant,
    budgets: Budgets,
    /// How many workers look for packets again and again.
    spinners: Arc<Mutex<usize>>,
}

impl LanePlace {
    /// Returns the places of so many lanes, at least one and at most [`LANES_MAX`].
    pub fn all(count: usize) -> Vec<LanePlace> {
        let (count, begun) = (count.clamp(1, LANES_MAX), Instant::now());
        let (budgets, spinners) = (Budgets::default(), Arc::default());
        let place =
            |number| LanePlace { number, count, begun, budgets: budgets.clone(), spinners: Arc::clone(&spinners) };
        (0..count).map(place).collect()
    }

    /// Returns whether it is lane 0, which does what is done once for all of them.
    pub(crate) fn leads(&self) -> bool {
        self.number == 0
    }

    /// Returns the name of the lane's thread.
    pub(crate) fn thread_name(&self) -> String {
        if self.leads() { "packets".to_owned() } else { format!("packets-{}", self.number) }
    }

    /// Returns how many packets may be inside containers by this lane.
    pub(crate) fn pending_max(&self) -> usize {
        PENDING_PACKETS_MAX / self.count
    }

    /// Returns what the users' modules may still send.
    pub(crate) fn budgets(&self) -> &Budgets {
        &self.budgets
    }

    /// Takes what a command brings for this lane.
    pub(crate) fn take(&self, rings: &WorkerRings) -> Option<(HostRing, WorkerSeen)> {
        let ring = rings.take(self.number)?;
        Some((ring, rings.seen(self.spinners.clone(), self.begun, self.count)))
    }
}

/// An answer to which several lanes add. It goes to who asked when the last of them has, or is gone.
pub struct Reply<T: Default>(Arc<ReplyInner<T>>);

struct ReplyInner<T: Default> {
    sum: Mutex<Option<T>>,
    asker: Mutex<Option<oneshot::Sender<T>>>,
}

impl<T: Default> Reply<T> {
    /// Adds what a lane has to say.
    pub(crate) fn add(&self, add: impl FnOnce(&mut T)) {
        add(lock(&self.0.sum).get_or_insert_default());
    }
}

impl<T: Default> Clone for Reply<T> {
    fn clone(&self) -> Reply<T> {
        Reply(self.0.clone())
    }
}

impl<T: Default> From<oneshot::Sender<T>> for Reply<T> {
    fn from(asker: oneshot::Sender<T>) -> Reply<T> {
        Reply(Arc::new(ReplyInner { sum: Mutex::default(), asker: Mutex::new(Some(asker)) }))
    }
}

impl<T: Default> Drop for ReplyInner<T> {
    fn drop(&mut self) {
        // Where no lane answered, the asker sees that the sender is gone.
        if let (Some(sum), Some(asker)) = (lock(&self.sum).take(), lock(&self.asker).take()) {
            // The asker may have gone, with all that it would do with it.
            let _ = asker.send(sum);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limits::SPINNERS_MAX;

    #[test]
    fn an_answer_goes_when_the_last_lane_has_added_to_it() {
        let (sender, mut asked) = oneshot::channel();
        let reply = Reply::<Vec<u8>>::from(sender);
        let other = reply.clone();
        reply.add(|sum| sum.push(1));
        drop(reply);
        assert!(asked.try_recv().is_err());
        other.add(|sum| sum.push(2));
        drop(other);
        assert_eq!(asked.try_recv(), Ok(vec![1, 2]));
        // No lane answers.
        let (sender, mut asked) = oneshot::channel();
        drop(Reply::<Vec<u8>>::from(sender));
        assert_eq!(asked.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }

    #[test]
    fn a_worker_is_reported_once_by_all_lanes_and_again_if_nobody_heard() {
        let (rings, _workers) = HostRing::detached_lanes(2).unwrap();
        let rings = WorkerRings::from(rings);
        let seen: Vec<_> = LanePlace::all(2).iter().map(|place| place.take(&rings).unwrap().1).collect();
        seen[0].report_once(|| false);
        assert!(!seen[1].is_reported());
        seen[1].report_once(|| true);
        seen[0].report_once(|| panic!("it is known"));
        assert!(seen.iter().all(WorkerSeen::is_reported));
    }

    #[test]
    fn one_look_of_all_lanes_counts_in_an_interval() {
        let (rings, _workers) = HostRing::detached_lanes(2).unwrap();
        let (rings, places) = (WorkerRings::from(rings), LanePlace::all(2));
        let seen: Vec<_> = places.iter().map(|place| place.take(&rings).unwrap().1).collect();
        assert!(places[0].take(&rings).is_none(), "each lane has one");
        let interval = Duration::from_millis(10);
        let counted = (1..=20_u32)
            .filter(|look| seen[*look as usize % 2].counts(places[0].begun + interval / 2 * *look, interval));
        assert!((10..=11).contains(&counted.count()));
    }

    #[test]
    fn spinners_max_workers_spin_over_all_lanes() {
        let places = LanePlace::all(4);
        let worker = || {
            let (rings, ends) = HostRing::detached_lanes(4).unwrap();
            let rings = WorkerRings::from(rings);
            let seen = places.iter().map(|place| place.take(&rings).unwrap().1);
            (seen.collect::<Vec<_>>(), ends)
        };
        let workers: Vec<_> = (0..=SPINNERS_MAX).map(|_| worker()).collect();
        let begin = |worker: usize, lane: usize| workers[worker].0[lane].begin_spinning();
        // One that several lanes let do it counts once.
        assert!((0..SPINNERS_MAX).all(|worker| begin(worker, worker % 4) && begin(worker, (worker + 1) % 4)));
        assert!((0..4).all(|lane| !begin(SPINNERS_MAX, lane)));
        workers[0].0[0].end_spinning();
        assert!(!begin(SPINNERS_MAX, 2), "another lane still lets it");
        workers[0].0[1].end_spinning();
        assert!(begin(SPINNERS_MAX, 2) && begin(SPINNERS_MAX, 3) && !begin(0, 0));
    }

    #[test]
    fn lanes_share_out_what_may_be_pending() {
        for (wanted, count) in [(0, 1), (1, 1), (4, 4), (LANES_MAX, LANES_MAX), (1000, LANES_MAX)] {
            let places = LanePlace::all(wanted);
            assert_eq!((places.len(), places[0].pending_max()), (count, PENDING_PACKETS_MAX / count));
        }
    }
}
