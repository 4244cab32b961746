// SPDX-License-Identifier: Apache-2.0
//! One HTTP connection: how long it may be idle, and until when its requests must be over.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::time::{Instant, sleep_until};

use crate::limits;

/// When something must be over, which may be put off until then. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Deadline(Arc<Mutex<Instant>>);

impl Deadline {
    /// Returns a deadline.
    pub fn new(at: Instant) -> Deadline {
        Deadline(Arc::new(Mutex::new(at)))
    }

    /// Returns when it is.
    pub fn at(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes it another time.
    pub fn set(&self, at: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    /// Runs a future to its end or the deadline, which the future may put off itself. Nothing comes of it then.
    pub async fn bound<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let (mut future, mut alarm) = (pin!(future), pin!(sleep_until(self.at())));
        poll_fn(|context| {
            if let Poll::Ready(done) = future.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            loop {
                let at = self.at();
                if alarm.deadline() != at {
                    alarm.as_mut().reset(at);
                }
                ready!(alarm.as_mut().poll(context));
                if self.at() <= at {
                    return Poll::Ready(None);
                }
            }
        })
        .await
    }
}

/// What is under way on a connection.
#[derive(Clone, Debug)]
pub struct Progress(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    next: u64,
    /// When each request must be over; nothing for one that sees to that by itself.
    deadlines: BTreeMap<u64, Option<Deadline>>,
    /// Since when there is none.
    idle_since: Instant,
    /// It may be a way between its two ends, without requests.
    is_opening: bool,
    /// Who waits until there is none.
    waker: Option<Waker>,
    /// Whether it is another protocol's from here on.
    is_upgraded: bool,
}

/// A request under way, until this is dropped.
#[derive(Debug)]
pub struct Underway {
    progress: Progress,
    number: u64,
}

/// What to do with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Let it go on; to be asked again then.
    GoOn(Instant),
    /// End it.
    End,
}

impl Default for Progress {
    /// Returns the state of a connection without a request.
    fn default() -> Progress {
        let (deadlines, idle_since) = (BTreeMap::new(), Instant::now());
        let state = State { next: 0, deadlines, idle_since, is_opening: false, waker: None, is_upgraded: false };
        Progress(Arc::new(Mutex::new(state)))
    }
}

impl Progress {
    /// Begins a request, at whose deadline the whole connection ends, if it has one.
    pub fn begin(&self, deadline: Option<Deadline>) -> Underway {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.deadlines.insert(number, deadline);
        drop(state);
        Underway { progress: self.clone(), number }
    }

    /// Returns when a connection ends if none of its requests does before.
    pub fn ends(&self) -> Option<Instant> {
        self.lock().deadlines.values().flatten().map(Deadline::at).min().map(|deadline| deadline + limits::GRACE_TIME)
    }

    /// Says whether a connection goes on: one whose client does not ask, or does not read the answer, ends.
    pub fn judge(&self, now: Instant) -> Judgement {
        let ends = self.ends();
        let state = self.lock();
        let until = match ends {
            Some(until) => until,
            None if state.deadlines.is_empty() => state.idle_since + limits::HEAD_TIME_MAX,
            None => now + limits::HEAD_TIME_MAX,
        };
        if until <= now { Judgement::End } else { Judgement::GoOn(until) }
    }

    /// Returns whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        let state = self.lock();
        state.deadlines.is_empty() && !state.is_opening
    }

    /// Takes note of whether it is still to be told what the connection is for, and handed on if it is for others.
    pub fn opening(&self, is_opening: bool) {
        self.lock().is_opening = is_opening;
    }

    /// Waits until no request is under way.
    pub fn poll_idle(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.deadlines.is_empty() {
            return Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Has no more requests come.
    pub fn upgrade(&self) {
        self.lock().is_upgraded = true;
    }

    /// Returns whether no more requests come, but another protocol.
    pub fn is_upgraded(&self) -> bool {
        self.lock().is_upgraded
    }

    /// Returns whether there were requests, and all are over.
    pub fn is_done(&self) -> bool {
        let state = self.lock();
        state.next > 0 && state.deadlines.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Underway {
    /// Returns what is under way on its connection.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let mut state = self.progress.lock();
        state.deadlines.remove(&self.number);
        state.idle_since = Instant::now();
        let waker = if state.deadlines.is_empty() { state.waker.take() } else { None };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_idle_connection_ends() {
        let progress = Progress::default();
        let now = Instant::now();
        let Judgement::GoOn(until) = progress.judge(now) else { panic!("it ended at once") };
        assert!(until <= now + limits::HEAD_TIME_MAX);
        assert_eq!(progress.judge(until), Judgement::End);
    }

    #[test]
    fn the_oldest_request_counts() {
        let progress = Progress::default();
        let start = Instant::now();
        let first = progress.begin(Some(Deadline::new(start + Duration::from_secs(60))));
        let other = Deadline::new(start + Duration::from_secs(90));
        let second = progress.begin(Some(other.clone()));
        let late = start + Duration::from_secs(80);
        assert_eq!(progress.judge(late), Judgement::End);
        drop(first);
        assert!(matches!(progress.judge(late), Judgement::GoOn(_)));
        other.set(start + Duration::from_secs(70));
        assert_eq!(progress.judge(late), Judgement::End);
        other.set(start + Duration::from_secs(3600));
        assert!(matches!(progress.judge(late), Judgement::GoOn(until) if until > start + Duration::from_secs(3600)));
        drop(second);
        assert_eq!(progress.judge(late), Judgement::End);
    }

    #[test]
    fn a_request_that_ends_by_itself_leaves_the_connection() {
        let progress = Progress::default();
        let request = progress.begin(None);
        let late = Instant::now() + 2 * limits::HEAD_TIME_MAX;
        assert!(matches!(progress.judge(late), Judgement::GoOn(until) if until > late));
        drop(request);
        assert_eq!(progress.judge(late), Judgement::End, "it is idle, as any other");
    }
}
