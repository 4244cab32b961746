// SPDX-License-Identifier: Apache-2.0
//! The node's news for requesters as the API shows them: a bounded ring, which clients follow at their own speed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netserv_api::{EventRecord, MissedEvents};
use netserv_model::UnixTime;
use netserv_model::notify::Notify;
use tokio::sync::{Notify as Signal, OwnedSemaphorePermit, Semaphore};

use crate::limits::{EVENT_FOLLOWERS_MAX, EVENTS_BATCH, EVENTS_KEPT_MAX};
use crate::logs::wall;

/// A handle to the news; clones share it.
#[derive(Clone)]
pub struct NewsFeed {
    ring: Arc<Mutex<Ring>>,
    grown: Arc<Signal>,
    places: Arc<Semaphore>,
}

struct Ring {
    /// The first sequence number of this run.
    begun: u64,
    next: u64,
    kept: VecDeque<EventRecord>,
}

/// Some news in a row.
#[derive(Debug, Default, PartialEq)]
pub struct Batch {
    /// What is missing before them.
    pub missed: Option<MissedEvents>,
    /// The news.
    pub records: Vec<EventRecord>,
    /// The sequence number after theirs.
    pub next: u64,
}

impl NewsFeed {
    /// Returns a feed without news of a node that started then.
    pub fn new(started: UnixTime) -> NewsFeed {
        // Zero stands for the first that is kept.
        let begun = started.0.max(1);
        NewsFeed {
            ring: Arc::new(Mutex::new(Ring { begun, next: begun, kept: VecDeque::new() })),
            grown: Arc::default(),
            places: Arc::new(Semaphore::new(EVENT_FOLLOWERS_MAX)),
        }
    }

    /// Appends news, and forgets the oldest ones if there are too many.
    pub fn push(&self, notify: Notify) {
        let mut ring = self.ring();
        let sequence = ring.next;
        ring.next += 1;
        if ring.kept.len() == EVENTS_KEPT_MAX {
            ring.kept.pop_front();
        }
        ring.kept.push_back(EventRecord { sequence, time: wall(), notify });
        drop(ring);
        self.grown.notify_waiters();
    }

    /// Returns the sequence number that the next news get.
    pub fn next(&self) -> u64 {
        self.ring().next
    }

    /// Returns the first news from a sequence number on; 0 means the first of this run.
    pub fn from(&self, from: u64) -> Batch {
        let ring = self.ring();
        let first = ring.kept.front().map_or(ring.next, |record| record.sequence);
        let is_of_this_run = from == 0 || (ring.begun..=ring.next).contains(&from);
        let from = if is_of_this_run { from.max(ring.begun) } else { first };
        let missed = match (is_of_this_run, first.saturating_sub(from)) {
            (false, _) => Some(MissedEvents { count: None, sequence: first }),
            (true, 0) => None,
            (true, count) => Some(MissedEvents { count: Some(count), sequence: first }),
        };
        let from = from.max(first);
        let skipped = usize::try_from(from - first).unwrap_or(usize::MAX);
        let records: Vec<EventRecord> = ring.kept.iter().skip(skipped).take(EVENTS_BATCH).cloned().collect();
        let next = records.last().map_or(from, |record| record.sequence + 1);
        Batch { missed, records, next }
    }

    /// Waits until there is something to tell from a sequence number on, and returns the first of it.
    pub async fn wait(&self, from: u64) -> Batch {
        loop {
            let grown = self.grown.notified();
            tokio::pin!(grown);
            grown.as_mut().enable();
            let batch = self.from(from);
            if batch.missed.is_some() || !batch.records.is_empty() {
                return batch;
            }
            grown.await;
        }
    }

    /// Returns a place among those who follow the news, for as long as it is held; nothing if all are taken.
    pub fn follow(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub use tests::news;

#[cfg(test)]
mod tests {
    use netserv_model::notify::NotifyEvent;
    use netserv_model::{Nonce, SessionId};

    use super::*;

    /// Returns news of a user's module.
    pub fn news(user: &str, event: NotifyEvent) -> Notify {
        Notify {
            session: SessionId([1; 16]),
            nonce: Nonce([2; 16]),
            user: user.parse().unwrap(),
            module: "example.org/m".parse().unwrap(),
            node: "n1".parse().unwrap(),
            event,
            nodes: Vec::new(),
            detail: String::new(),
            topic: None,
            body: Vec::new(),
        }
    }

    fn sequences(batch: &Batch) -> Vec<u64> {
        batch.records.iter().map(|record| record.sequence).collect()
    }

    #[test]
    fn who_comes_again_goes_on_where_it_was() {
        let feed = NewsFeed::new(UnixTime(1000));
        assert_eq!(feed.from(0), Batch { next: 1000, ..Batch::default() });
        (0..3).for_each(|_| feed.push(news("jane", NotifyEvent::RouteMoved)));
        assert_eq!((sequences(&feed.from(0)), feed.from(0).next), (vec![1000, 1001, 1002], 1003));
        assert_eq!(sequences(&feed.from(1001)), [1001, 1002]);
        assert_eq!(feed.from(1003), Batch { next: 1003, ..Batch::default() });
        assert_eq!(feed.next(), 1003);
    }

    #[test]
    fn events_kept_max_news_are_kept_and_it_is_said_how_many_were_missed() {
        let feed = NewsFeed::new(UnixTime(1000));
        for _ in 0..EVENTS_KEPT_MAX + 3 {
            feed.push(news("jane", NotifyEvent::RouteMoved));
        }
        for (from, count) in [(0, Some(3)), (1000, Some(3)), (1002, Some(1))] {
            let batch = feed.from(from);
            assert_eq!(batch.missed, Some(MissedEvents { count, sequence: 1003 }), "{from}");
            assert_eq!((batch.records.len(), batch.records[0].sequence), (EVENTS_BATCH, 1003));
        }
        assert_eq!(feed.from(1003).missed, None);
        let mut all = 0;
        let mut from = 1003;
        while from < feed.next() {
            let batch = feed.from(from);
            (all, from) = (all + batch.records.len(), batch.next);
        }
        assert_eq!(all, EVENTS_KEPT_MAX);
    }

    #[test]
    fn numbers_of_another_run_are_told_from_those_of_this_one() {
        let feed = NewsFeed::new(UnixTime(1000));
        feed.push(news("jane", NotifyEvent::RouteMoved));
        // Of a run before, and of one whose clock was ahead.
        for from in [7, 5000] {
            let batch = feed.from(from);
            assert_eq!(batch.missed, Some(MissedEvents { count: None, sequence: 1000 }));
            assert_eq!((sequences(&batch), batch.next), (vec![1000], 1001));
        }
    }

    #[tokio::test]
    async fn waiting_ends_with_the_next_news() {
        let feed = NewsFeed::new(UnixTime(1000));
        let waiting = tokio::spawn({
            let feed = feed.clone();
            async move { feed.wait(1000).await }
        });
        tokio::task::yield_now().await;
        feed.push(news("jane", NotifyEvent::RouteMoved));
        assert_eq!(sequences(&waiting.await.unwrap()), [1000]);
    }
}
