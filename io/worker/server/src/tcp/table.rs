// SPDX-License-Identifier: Apache-2.0
//! The connections and timers of an instance that handles connections: what `netserv:tcp/control` changes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use netserv_worker_base::limits::TIMER_DELAY_MIN;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::queue::{Pool, SendQueue};
use super::wit::control::Error;
use super::wit::{Address, Flow, Side};
use crate::limits;

/// Opens a connection to somewhere for a module.
pub type Opener = Box<dyn Fn(&Address) -> Result<u64, Error> + Send + Sync>;

/// The connections and timers of one instance.
#[derive(Default)]
pub struct ConnectionTable {
    inner: Mutex<Inner>,
    timers: Notify,
    watches: Notify,
    pool: OnceLock<Arc<Pool>>,
    opener: OnceLock<Opener>,
}

#[derive(Default)]
struct Inner {
    /// There is none where components do not handle connections.
    open: bool,
    connections: BTreeMap<u64, Arc<Connection>>,
    /// The one of them that the version before still has.
    offered: Option<u64>,
    timers: BTreeMap<u32, Timer>,
    /// What is watched, by token: numbers of pollables in the instance's table.
    watched: BTreeMap<u32, u32>,
}

#[derive(Clone, Copy)]
struct Timer {
    due: Instant,
    period: Option<Duration>,
}

/// One connection as the module, and those who read and write it, share it.
pub struct Connection {
    /// Whether the module opened it.
    is_own: bool,
    queues: [SendQueue; 2],
    there: [AtomicBool; 2],
    valves: [Valve; 2],
    stage: watch::Sender<Stage>,
    /// When something came or went last.
    moved: Mutex<Instant>,
    /// Between whom it is, once the module knows it; nothing in there for one that the module opened.
    flow: OnceLock<Option<Flow>>,
    /// How often it was handed over from one version of the module to the next.
    hand_overs: AtomicUsize,
    /// Whether the version that has it was never told of it.
    untold: AtomicBool,
    /// Whether it is over.
    gone: AtomicBool,
}

/// Which sides a connection has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// It was taken over.
    Both,
    /// It was opened to the module, or is served by it.
    Client,
    /// The module opened it.
    Server,
}

/// What holds up the reading of a side.
#[derive(Default)]
struct Valve {
    paused: AtomicBool,
    opened: Notify,
}

/// How far a connection's end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It goes on.
    Open,
    /// It goes on without the module.
    Spliced,
    /// It ends when what was sent has gone.
    Closing,
    /// It ends at once.
    Aborted,
}

/// The number of the next connection, whichever version of a module has it: it keeps that.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl ConnectionTable {
    /// Lets there be connections.
    pub fn open(&self) {
        self.lock().open = true;
    }

    /// Says how the module opens connections of its own; before that it can open none.
    pub fn bind(&self, opener: Opener) {
        // A table has one instance.
        let _ = self.opener.set(opener);
    }

    /// Opens a connection of the module's own, and returns its number.
    ///
    /// # Errors
    /// There can be none, or not this one.
    pub fn open_to(&self, remote: &Address) -> Result<u64, Error> {
        self.opener.get().map_or(Err(Error::Quota), |open| open(remote))
    }

    /// Has what waits in these connections and in those of the version before be counted together: they are handed over with it.
    pub fn join(&self, before: &ConnectionTable) {
        // A table that has its own has had connections.
        let _ = self.pool.set(Arc::clone(before.pool()));
    }

    /// Returns what waits in all connections.
    pub fn pool(&self) -> &Arc<Pool> {
        self.pool.get_or_init(Arc::default)
    }

    /// Adds a connection, unless there are so many.
    pub fn enter(&self, sides: Sides, most: usize) -> Option<(u64, Arc<Connection>)> {
        let mut inner = self.lock();
        if inner.connections.len() >= most {
            return None;
        }
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(Connection::new(sides, self.pool()));
        inner.connections.insert(id, Arc::clone(&connection));
        self.pool().enter();
        Some((id, connection))
    }

    /// Adds a connection that the version before has until [`ConnectionTable::take`], unless there are so many.
    pub fn offer(&self, id: u64, connection: &Arc<Connection>, most: usize) -> bool {
        let mut inner = self.lock();
        let has_room = inner.connections.len() < most;
        if has_room {
            inner.connections.insert(id, Arc::clone(connection));
            inner.offered = Some(id);
            self.pool().enter();
        }
        has_room
    }

    /// Takes the connection that was offered.
    pub fn take(&self) {
        self.lock().offered = None;
    }

    /// Returns all connections with their numbers.
    pub fn all(&self) -> Vec<(u64, Arc<Connection>)> {
        self.lock().connections.iter().map(|(id, connection)| (*id, Arc::clone(connection))).collect()
    }

    /// Forgets a connection.
    pub fn leave(&self, id: u64) {
        let mut inner = self.lock();
        inner.offered.take_if(|offered| *offered == id);
        if inner.connections.remove(&id).is_some() {
            self.pool().leave();
        }
    }

    /// Returns how many connections there are.
    pub fn count(&self) -> usize {
        self.lock().connections.len()
    }

    /// Returns how many there are that the module did not open itself.
    pub fn count_taken(&self) -> usize {
        self.lock().connections.values().filter(|connection| !connection.is_own).count()
    }

    /// Ends all connections at once.
    pub fn abort_all(&self) {
        let inner = self.lock();
        let own = inner.connections.iter().filter(|(id, _)| inner.offered != Some(**id));
        let all: Vec<Arc<Connection>> = own.map(|(_, connection)| Arc::clone(connection)).collect();
        drop(inner);
        all.iter().for_each(|connection| connection.advance(Stage::Aborted));
    }

    /// Waits until a timer was set.
    pub async fn timers_changed(&self) {
        self.timers.notified().await;
    }

    /// Returns when the next timer is due.
    pub fn next_timer(&self) -> Option<Instant> {
        self.lock().timers.values().map(|timer| timer.due).min()
    }

    /// Takes a timer that is due.
    pub fn due_timer(&self, now: Instant) -> Option<u32> {
        let mut inner = self.lock();
        let (id, timer) = inner.timers.iter().min_by_key(|(_, timer)| timer.due).map(|(id, timer)| (*id, *timer))?;
        if timer.due > now {
            return None;
        }
        match timer.period {
            // Those that were missed are not made up for.
            Some(period) => inner.timers.insert(id, Timer { due: (timer.due + period).max(now), ..timer }),
            None => inner.timers.remove(&id),
        };
        Some(id)
    }

    /// Sends bytes to a side of a connection. Returns how many went at once.
    ///
    /// # Errors
    /// There is none, or no room.
    pub fn send(&self, id: u64, to: Side, bytes: &[u8]) -> Result<usize, Error> {
        let connection = self.connection(id)?;
        let sent = connection.with(to)?.send(bytes)?;
        if sent > 0 {
            connection.touch();
        }
        Ok(sent)
    }

    /// Returns how many bytes wait for a side of a connection.
    ///
    /// # Errors
    /// There is none.
    pub fn queued(&self, id: u64, to: Side) -> Result<u64, Error> {
        Ok(self.connection(id)?.with(to)?.bytes() as u64)
    }

    /// Has a side of a connection not be read, or be read again.
    ///
    /// # Errors
    /// There is none.
    pub fn pause(&self, id: u64, source: Side, paused: bool) -> Result<(), Error> {
        let connection = self.connection(id)?;
        connection.with(source)?;
        let valve = connection.valve(source);
        valve.paused.store(paused, Ordering::Release);
        if !paused {
            valve.opened.notify_one();
        }
        Ok(())
    }

    /// Says that no more comes for a side of a connection.
    ///
    /// # Errors
    /// There is none.
    pub fn shutdown(&self, id: u64, to: Side) -> Result<(), Error> {
        self.connection(id)?.with(to).map(SendQueue::shut)
    }

    /// Closes a connection once what was sent has gone.
    ///
    /// # Errors
    /// There is none.
    pub fn close(&self, id: u64) -> Result<(), Error> {
        self.connection(id).map(|connection| connection.advance(Stage::Closing))
    }

    /// Sets a timer, in place of one of the same number.
    ///
    /// # Errors
    /// There are as many as there may be, or its time never comes.
    pub fn set_timer(&self, id: u32, delay_ms: u64, period_ms: u64) -> Result<(), Error> {
        let time = |milliseconds: u64| Duration::from_millis(milliseconds).max(TIMER_DELAY_MIN);
        let mut inner = self.lock();
        if !inner.open || (inner.timers.len() >= limits::TCP_TIMERS_MAX && !inner.timers.contains_key(&id)) {
            return Err(Error::Quota);
        }
        let due = Instant::now().checked_add(time(delay_ms)).ok_or(Error::Quota)?;
        inner.timers.insert(id, Timer { due, period: (period_ms > 0).then(|| time(period_ms)) });
        drop(inner);
        self.timers.notify_one();
        Ok(())
    }

    /// Forgets a timer.
    pub fn cancel_timer(&self, id: u32) {
        self.lock().timers.remove(&id);
    }

    /// Watches a pollable in place of the one that was watched with this token, which is returned.
    ///
    /// # Errors
    /// There are as many as there may be.
    pub fn watch(&self, token: u32, pollable: u32) -> Result<Option<u32>, Error> {
        let mut inner = self.lock();
        if !inner.open || (inner.watched.len() >= limits::TCP_WATCHES_MAX && !inner.watched.contains_key(&token)) {
            return Err(Error::Quota);
        }
        let replaced = inner.watched.insert(token, pollable);
        drop(inner);
        self.watches.notify_one();
        Ok(replaced)
    }

    /// Forgets what is watched with a token, and returns it.
    pub fn unwatch(&self, token: u32) -> Option<u32> {
        self.lock().watched.remove(&token)
    }

    /// Returns what is watched, with its tokens.
    pub fn watched(&self) -> Vec<(u32, u32)> {
        self.lock().watched.iter().map(|(token, pollable)| (*token, *pollable)).collect()
    }

    /// Waits until more is watched.
    pub async fn watches_changed(&self) {
        self.watches.notified().await;
    }

    fn connection(&self, id: u64) -> Result<Arc<Connection>, Error> {
        self.lock().connections.get(&id).cloned().ok_or(Error::NotFound)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    fn new(sides: Sides, pool: &Arc<Pool>) -> Connection {
        let there = [sides != Sides::Server, sides != Sides::Client].map(AtomicBool::new);
        let queues = [SendQueue::new(Arc::clone(pool)), SendQueue::new(Arc::clone(pool))];
        let (stage, moved) = (watch::Sender::new(Stage::Open), Mutex::new(Instant::now()));
        let (flow, hand_overs) = (OnceLock::new(), AtomicUsize::new(0));
        let (untold, gone) = (AtomicBool::new(false), AtomicBool::new(false));
        let is_own = sides == Sides::Server;
        Connection { is_own, queues, there, valves: Default::default(), stage, moved, flow, hand_overs, untold, gone }
    }

    /// Takes note that the module knows the connection.
    pub fn known(&self, flow: Option<Flow>) {
        // It comes to know it once.
        let _ = self.flow.set(flow);
    }

    /// Returns between whom it is, if the module knows it; nothing in there for one that the module opened.
    pub fn flow(&self) -> Option<Option<&Flow>> {
        self.flow.get().map(Option::as_ref)
    }

    /// Takes note that the next version of the module has it.
    pub fn handed_over(&self) {
        self.hand_overs.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns how often it was handed over.
    pub fn hand_overs(&self) -> usize {
        self.hand_overs.load(Ordering::SeqCst)
    }

    /// Takes note that the next version is not told of it.
    pub fn untold(&self) {
        self.untold.store(true, Ordering::SeqCst);
    }

    /// Returns whether the version that has it was never told of it.
    pub fn is_untold(&self) -> bool {
        self.untold.load(Ordering::SeqCst)
    }

    /// Takes note that it is over: whoever hands it over after that forgets it himself.
    pub fn gone(&self) {
        self.gone.store(true, Ordering::SeqCst);
    }

    /// Returns whether it is over.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    /// Returns what waits for a side.
    pub fn queue(&self, side: Side) -> &SendQueue {
        &self.queues[place(side)]
    }

    /// Returns the side to which goes what comes from `source`; nothing if it has no other one.
    pub fn other(&self, source: Side) -> Option<Side> {
        let other = match source {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        };
        self.there[place(other)].load(Ordering::Acquire).then_some(other)
    }

    /// Has the module answer in the server's place.
    pub fn serve(&self) {
        self.there[place(Side::Server)].store(false, Ordering::Release);
    }

    /// Waits while a side is not to be read, or until there is no module any more that says so.
    pub async fn unpaused(&self, source: Side) {
        let valve = self.valve(source);
        while valve.paused.load(Ordering::Acquire) && self.stage() == Stage::Open {
            tokio::select! {
                () = valve.opened.notified() => {}
                () = self.reached(Stage::Spliced) => {}
            }
        }
    }

    /// Returns how far its end has come.
    pub fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    /// Goes on toward its end; never back.
    pub fn advance(&self, stage: Stage) {
        let forward = self.stage.send_if_modified(|now| std::mem::replace(now, stage.max(*now)) < stage);
        if forward && stage >= Stage::Closing {
            self.queues.iter().for_each(SendQueue::shut);
        }
    }

    /// Ends a connection whose module is not there, unless it goes on without it.
    pub fn abandon(&self) {
        if self.stage() != Stage::Spliced {
            self.advance(Stage::Aborted);
        }
    }

    /// Takes note that something came or went.
    pub fn touch(&self) {
        *self.moved.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Returns when something came or went last, or when it was opened.
    pub fn moved(&self) -> Instant {
        *self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is at least so far.
    pub async fn reached(&self, stage: Stage) {
        // The sender is this connection's own.
        let _ = self.stage.subscribe().wait_for(|now| *now >= stage).await;
    }

    fn with(&self, to: Side) -> Result<&SendQueue, Error> {
        if self.there[place(to)].load(Ordering::Acquire) { Ok(self.queue(to)) } else { Err(Error::NotFound) }
    }

    fn valve(&self, source: Side) -> &Valve {
        &self.valves[place(source)]
    }
}

fn place(of: Side) -> usize {
    match of {
        Side::Client => 0,
        Side::Server => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections() -> ConnectionTable {
        let connections = ConnectionTable::default();
        connections.open();
        connections
    }

    #[test]
    fn there_are_only_so_many_connections_and_each_has_its_own_number() {
        let connections = connections();
        let (first, _) = connections.enter(Sides::Both, 2).unwrap();
        let (second, _) = connections.enter(Sides::Both, 2).unwrap();
        assert!(first != second && connections.enter(Sides::Both, 2).is_none());
        connections.leave(first);
        let (third, _) = connections.enter(Sides::Both, 2).unwrap();
        assert!(third != first && connections.count() == 2);
    }

    #[test]
    fn what_waits_counts_in_all_versions_whose_tables_are_joined() {
        let (before, next) = (connections(), connections());
        next.join(&before);
        let (id, connection) = before.enter(Sides::Client, 1).unwrap();
        before.send(id, Side::Client, b"some").unwrap();
        assert_eq!((before.pool().waiting(), next.pool().waiting()), (4, 4));
        assert!(next.offer(id, &connection, 1));
        next.take();
        before.leave(id);
        assert_eq!(connections().pool().waiting(), 0, "others have their own");
        next.leave(id);
        drop(connection);
        assert_eq!(before.pool().waiting(), 0);
    }

    #[test]
    fn a_connection_without_a_server_has_one_side() {
        let (_, connection) = connections().enter(Sides::Client, 1).unwrap();
        assert!(connection.with(Side::Server).is_err() && connection.with(Side::Client).is_ok());
        assert_eq!(connection.other(Side::Client), None);
        let (_, connection) = connections().enter(Sides::Server, 1).unwrap();
        assert!(connection.with(Side::Client).is_err() && connection.with(Side::Server).is_ok());
        assert_eq!(connection.other(Side::Server), None);
        let (_, connection) = connections().enter(Sides::Both, 1).unwrap();
        connection.serve();
        assert!(connection.with(Side::Server).is_err());
        assert_eq!(connection.other(Side::Client), None);
    }

    #[test]
    fn there_are_only_so_many_watches() {
        let connections = connections();
        let most = u32::try_from(limits::TCP_WATCHES_MAX).unwrap();
        (0..most).for_each(|token| assert!(matches!(connections.watch(token, token), Ok(None))));
        assert!(matches!(connections.watch(most, 0), Err(Error::Quota)));
        assert!(matches!(connections.watch(0, 7), Ok(Some(0))), "one that is there is set anew");
        assert_eq!(connections.unwatch(0), Some(7));
        assert!(connections.watch(most, 0).is_ok() && connections.unwatch(0).is_none());
        assert!(matches!(ConnectionTable::default().watch(0, 0), Err(Error::Quota)), "it handles no connections");
    }

    #[tokio::test]
    async fn a_paused_side_goes_on_when_it_is_to_or_when_nobody_can_say_so_any_more() {
        let connections = connections();
        let (id, connection) = connections.enter(Sides::Both, 1).unwrap();
        let waits = async |connection: &Connection| {
            tokio::time::timeout(Duration::from_millis(5), connection.unpaused(Side::Client)).await.is_err()
        };
        assert!(!waits(&connection).await);
        connections.pause(id, Side::Client, true).unwrap();
        assert!(waits(&connection).await);
        connections.pause(id, Side::Client, false).unwrap();
        assert!(!waits(&connection).await);
        connections.pause(id, Side::Client, true).unwrap();
        connection.advance(Stage::Spliced);
        assert!(!waits(&connection).await);
        assert!(matches!(connections.pause(9, Side::Client, true), Err(Error::NotFound)));
    }

    #[test]
    fn there_are_only_so_many_timers() {
        let connections = connections();
        let most = u32::try_from(limits::TCP_TIMERS_MAX).unwrap();
        let set = |id| connections.set_timer(id, 1000, 0);
        (0..most).for_each(|id| set(id).unwrap());
        assert!(matches!(set(most), Err(Error::Quota)));
        assert!(set(0).is_ok(), "one that is there is set anew");
        connections.cancel_timer(0);
        assert!(set(most).is_ok());
    }

    #[test]
    fn stages_go_one_way() {
        let (_, connection) = connections().enter(Sides::Both, 1).unwrap();
        connection.advance(Stage::Closing);
        connection.advance(Stage::Spliced);
        assert_eq!(connection.stage(), Stage::Closing);
        assert!(connection.queue(Side::Client).is_shut());
    }
}
