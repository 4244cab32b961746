// SPDX-License-Identifier: Apache-2.0
//! How long the node waits for clients that take nothing of their responses, and which of them give way to others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Duration;

use tokio::time::Instant;

use super::connection::Deadline;
use crate::limits;

/// The responses of one module that the node pumps by itself, and how long it waits for their clients.
#[derive(Debug)]
pub struct Patience {
    /// How long a client may take nothing.
    pub time: Duration,
    clients: Mutex<Clients>,
}

#[derive(Debug, Default)]
struct Clients {
    by_number: BTreeMap<u64, Arc<Client>>,
    next: u64,
    /// Until when a search for one that gives way finds none.
    not_before: Option<Instant>,
}

/// The client of one response.
#[derive(Debug)]
pub struct Client {
    begun: Instant,
    /// Milliseconds from `begun` on at which it took something, or something began to wait for it; [`NOTHING_WAITS`] if nothing does.
    since: AtomicU64,
    task: Mutex<Option<Waker>>,
    deadline: Arc<OnceLock<Deadline>>,
    /// Whether it gave way.
    is_ended: AtomicBool,
}

/// A client that is known to its module, until this is dropped.
#[derive(Debug)]
pub struct Known {
    number: u64,
    patience: Arc<Patience>,
    client: Arc<Client>,
}

impl Patience {
    /// Returns that of a module with these properties.
    pub fn new(properties: &BTreeMap<String, String>) -> Patience {
        let seconds = properties.get(PROPERTY).and_then(|text| text.trim().parse().ok());
        let time = seconds.map_or(limits::HELD_PATIENCE, Duration::from_secs);
        Patience { time: time.clamp(limits::HELD_PATIENCE_MIN, limits::HELD_PATIENCE_MAX), clients: Mutex::default() }
    }

    /// Adds the client of a response that ends at `deadline`.
    pub fn add(self: &Arc<Self>, deadline: Arc<OnceLock<Deadline>>) -> Known {
        let client = Arc::new(Client::new(Instant::now(), deadline));
        let mut clients = self.lock();
        let number = clients.next;
        clients.next += 1;
        clients.by_number.insert(number, Arc::clone(&client));
        drop(clients);
        Known { number, patience: Arc::clone(self), client }
    }

    /// Ends the response whose client has taken nothing for the longest, at least for [`limits::HELD_PATIENCE_CROWDED`]. To be called when
    /// there is little room left for others.
    pub fn give_way(&self) {
        let now = Instant::now();
        let mut clients = self.lock();
        if clients.not_before.is_some_and(|not_before| now < not_before) {
            return;
        }
        let waiting = |(number, client): (&u64, &Arc<Client>)| Some((client.waits_since()?, *number));
        let slowest = clients.by_number.iter().filter_map(waiting).min();
        match slowest.filter(|(since, _)| *since + limits::HELD_PATIENCE_CROWDED <= now) {
            Some((_, number)) => {
                let client = clients.by_number.remove(&number);
                drop(clients);
                client.iter().for_each(|client| client.end(now));
            }
            None => clients.not_before = Some(now + limits::HELD_SEARCH_EVERY),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client {
    fn new(begun: Instant, deadline: Arc<OnceLock<Deadline>>) -> Client {
        let (since, is_ended) = (AtomicU64::new(NOTHING_WAITS), AtomicBool::new(false));
        Client { begun, since, task: Mutex::default(), deadline, is_ended }
    }

    /// Takes note that something waits for it from now on, or that it took something and more waits.
    pub fn waits(&self) {
        self.since.store(u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(NOTHING_WAITS), Ordering::Relaxed);
    }

    /// Takes note that it has taken everything.
    pub fn has_all(&self) {
        self.since.store(NOTHING_WAITS, Ordering::Relaxed);
    }

    /// Takes note of the task that serves it.
    pub fn is_served_by(&self, waker: &Waker) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if !task.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *task = Some(waker.clone());
        }
    }

    /// Returns whether its response is to end at once.
    pub fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Acquire)
    }

    fn waits_since(&self) -> Option<Instant> {
        let since = self.since.load(Ordering::Relaxed);
        (since != NOTHING_WAITS).then(|| self.begun + Duration::from_millis(since))
    }

    fn end(&self, now: Instant) {
        self.is_ended.store(true, Ordering::Release);
        if let Some(deadline) = self.deadline.get() {
            deadline.set(now);
        }
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl Known {
    /// Returns the client.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.patience.lock().by_number.remove(&self.number);
    }
}

/// The property of a module that says for how many seconds its clients may take nothing.
const PROPERTY: &str = "client-patience-s";
const NOTHING_WAITS: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_says_how_long_clients_are_waited_for() {
        let check = |value: Option<&str>, expected: Duration| {
            let properties = value.map(|value| (PROPERTY.to_owned(), value.to_owned())).into_iter().collect();
            assert_eq!(Patience::new(&properties).time, expected, "{value:?}");
        };
        check(None, limits::HELD_PATIENCE);
        check(Some("45"), Duration::from_secs(45));
        check(Some("0"), limits::HELD_PATIENCE_MIN);
        check(Some("999999999"), limits::HELD_PATIENCE_MAX);
        check(Some("soon"), limits::HELD_PATIENCE);
    }

    /// Goal: of several clients, the one that has taken nothing for the longest gives way, each time there is need; none that takes
    /// something. Method: clients with a past of their own.
    #[test]
    fn who_has_taken_nothing_for_the_longest_gives_way() {
        let patience = Arc::new(Patience::new(&BTreeMap::new()));
        let now = Instant::now();
        let later = now + Duration::from_secs(3600);
        let clients: Vec<(Known, Deadline)> = [11, 30, 20, 9]
            .map(|seconds| {
                let deadline = Deadline::new(later);
                let known = patience.add(Arc::new(OnceLock::from(deadline.clone())));
                let begun = now.checked_sub(Duration::from_secs(seconds)).expect("the machine runs for longer");
                let client = Client::new(begun, Arc::clone(&known.client.deadline));
                client.since.store(0, Ordering::Relaxed);
                patience.lock().by_number.insert(known.number, Arc::new(client));
                (known, deadline)
            })
            .into();
        let ended = || clients.iter().map(|(_, deadline)| deadline.at() < later).collect::<Vec<bool>>();
        let first = Arc::clone(&patience.lock().by_number[&clients[0].0.number]);
        patience.give_way();
        assert_eq!(ended(), [false, true, false, false]);
        patience.give_way();
        assert_eq!(ended(), [false, true, true, false]);
        first.has_all();
        patience.give_way();
        assert_eq!(ended(), [false, true, true, false], "one has all, and another has not waited for long");
        assert!(patience.lock().not_before.is_some(), "who asks again at once searches nothing");
        drop(clients);
        assert!(patience.lock().by_number.is_empty());
    }
}
