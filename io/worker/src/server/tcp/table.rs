// SPDX-License-Identifier: Apache-2.0
//! The connections and timers of an instance that handles connections: what `netserv:tcp/control` changes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::buffers::Buffers;
use super::wit::Side;
use super::wit::control::Error;
use crate::limits;

/// The connections and timers of one instance.
#[derive(Default)]
pub struct ConnectionTable {
    inner: Mutex<Inner>,
    timers: Notify,
    /// Bytes that wait in all connections.
    waiting: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Inner {
    /// There is none where components do not handle connections.
    open: bool,
    next: u64,
    connections: BTreeMap<u64, Arc<Connection>>,
    timers: BTreeMap<u32, Timer>,
}

#[derive(Clone, Copy)]
struct Timer {
    due: Instant,
    period: Option<Duration>,
}

/// One connection as the module, and those who read and write it, share it.
pub struct Connection {
    queues: [SendQueue; 2],
    has_server: bool,
    stage: watch::Sender<Stage>,
    /// When something came or went last.
    moved: Mutex<Instant>,
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

/// What waits to be sent to one side.
pub struct SendQueue {
    queue: Mutex<Queue>,
    /// Something is to be sent, or no more comes.
    pub more: Notify,
    /// Something has been sent.
    pub room: Notify,
    waiting: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Queue {
    chunks: VecDeque<Vec<u8>>,
    /// How much of the first was sent.
    sent: usize,
    bytes: usize,
    shut: bool,
}

impl ConnectionTable {
    /// Lets there be connections.
    pub fn open(&self) {
        self.lock().open = true;
    }

    /// Adds a connection, unless there are so many.
    pub fn enter(&self, has_server: bool, most: usize) -> Option<(u64, Arc<Connection>)> {
        let queue = || SendQueue {
            queue: Mutex::default(),
            more: Notify::new(),
            room: Notify::new(),
            waiting: Arc::clone(&self.waiting),
        };
        let mut inner = self.lock();
        if inner.connections.len() >= most {
            return None;
        }
        inner.next += 1;
        let (id, stage) = (inner.next, watch::Sender::new(Stage::Open));
        let moved = Mutex::new(Instant::now());
        let connection = Arc::new(Connection { queues: [queue(), queue()], has_server, stage, moved });
        inner.connections.insert(id, Arc::clone(&connection));
        Some((id, connection))
    }

    /// Forgets a connection.
    pub fn leave(&self, id: u64) {
        self.lock().connections.remove(&id);
    }

    /// Returns how many connections there are.
    pub fn count(&self) -> usize {
        self.lock().connections.len()
    }

    /// Ends all connections at once.
    pub fn abort_all(&self) {
        let all: Vec<Arc<Connection>> = self.lock().connections.values().cloned().collect();
        all.iter().for_each(|connection| connection.advance(Stage::Aborted));
    }

    /// Returns how many bytes a connection should read at once at most: fewer, the more bytes wait in all of them.
    pub fn chunk_bytes(&self) -> usize {
        match self.waiting.load(Ordering::Relaxed) {
            waiting if waiting < limits::TCP_WAITING_TOTAL / 2 => limits::TCP_CHUNK_BYTES_MAX,
            waiting if waiting < limits::TCP_WAITING_TOTAL => limits::TCP_CHUNK_BYTES_FIRST,
            _ => limits::TCP_CHUNK_BYTES_MIN,
        }
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

    /// Sends bytes to a side of a connection.
    ///
    /// # Errors
    /// There is none, or no room.
    pub fn send(&self, id: u64, to: Side, bytes: Vec<u8>) -> Result<(), Error> {
        self.connection(id)?.with(to)?.send(bytes)
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
        let time = |milliseconds: u64| Duration::from_millis(milliseconds).max(limits::TIMER_DELAY_MIN);
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

    fn connection(&self, id: u64) -> Result<Arc<Connection>, Error> {
        self.lock().connections.get(&id).cloned().ok_or(Error::NotFound)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Returns what waits for a side.
    pub fn queue(&self, side: Side) -> &SendQueue {
        &self.queues[usize::from(side == Side::Server)]
    }

    /// Returns the side to which goes what comes from `source`; nothing without a server.
    pub fn other(&self, source: Side) -> Option<Side> {
        match source {
            Side::Client => self.has_server.then_some(Side::Server),
            Side::Server => Some(Side::Client),
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
        if to == Side::Server && !self.has_server { Err(Error::NotFound) } else { Ok(self.queue(to)) }
    }
}

impl SendQueue {
    /// Returns whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.lock().chunks.is_empty()
    }

    /// Returns whether more may be read for it.
    pub fn has_room(&self) -> bool {
        let queue = self.lock();
        queue.bytes == 0 || queue.shut
    }

    /// Returns whether it was shut: what is sent then goes nowhere.
    pub fn is_shut(&self) -> bool {
        self.lock().shut
    }

    /// Returns whether bytes may be sent at once: none wait, and it was not shut.
    pub fn is_free(&self) -> bool {
        let queue = self.lock();
        queue.chunks.is_empty() && !queue.shut
    }

    /// Appends what is left of bytes of which so many were sent, and keeps no more memory for it than it needs.
    pub fn push_rest(&self, bytes: Vec<u8>, sent: usize, buffers: &Buffers) {
        if sent == 0 && bytes.capacity() <= 2 * bytes.len() {
            return self.push(bytes);
        }
        if sent < bytes.len() {
            self.push(bytes[sent..].to_vec());
        }
        buffers.give(bytes);
    }

    /// Appends bytes; none to one that is shut.
    pub fn push(&self, bytes: Vec<u8>) {
        let mut queue = self.lock();
        if bytes.is_empty() || queue.shut {
            return;
        }
        queue.bytes += bytes.len();
        self.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        queue.chunks.push_back(bytes);
        drop(queue);
        self.more.notify_one();
    }

    /// Says that no more comes.
    pub fn shut(&self) {
        self.lock().shut = true;
        self.more.notify_one();
        self.room.notify_one();
    }

    /// Hands what waits to `write`, piece by piece, until that takes no more; nothing waits any more if it returns true.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn write(&self, mut write: impl FnMut(&[u8]) -> std::io::Result<usize>) -> std::io::Result<bool> {
        let mut queue = self.lock();
        while let Some(first) = queue.chunks.front() {
            let written = match write(&first[queue.sent..]) {
                Ok(written) => written,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            };
            let whole = queue.sent + written == first.len();
            queue.bytes -= written;
            self.waiting.fetch_sub(written, Ordering::Relaxed);
            queue.sent = if whole { 0 } else { queue.sent + written };
            if whole {
                queue.chunks.pop_front();
            }
        }
        drop(queue);
        self.room.notify_one();
        Ok(true)
    }

    fn send(&self, bytes: Vec<u8>) -> Result<(), Error> {
        if bytes.len() > limits::TCP_SEND_BYTES_MAX {
            return Err(Error::Quota);
        }
        let queue = self.lock();
        if queue.shut {
            return Err(Error::NotFound);
        }
        if queue.bytes > 0 && queue.bytes + bytes.len() > limits::TCP_SEND_BYTES_MAX {
            return Err(Error::WouldBlock);
        }
        drop(queue);
        if self.waiting.load(Ordering::Relaxed) > limits::TCP_SENT_TOTAL {
            return Err(Error::WouldBlock);
        }
        self.push(bytes);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SendQueue {
    fn drop(&mut self) {
        let left = self.lock().bytes;
        self.waiting.fetch_sub(left, Ordering::Relaxed);
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
        let (first, _) = connections.enter(true, 2).unwrap();
        let (second, _) = connections.enter(true, 2).unwrap();
        assert!(first != second && connections.enter(true, 2).is_none());
        connections.leave(first);
        let (third, _) = connections.enter(true, 2).unwrap();
        assert!(third != first && connections.count() == 2);
    }

    #[test]
    fn what_waits_is_bounded_and_makes_others_read_less() {
        let connections = connections();
        let (_, connection) = connections.enter(true, 8).unwrap();
        let queue = connection.queue(Side::Server);
        assert_eq!(connections.chunk_bytes(), limits::TCP_CHUNK_BYTES_MAX);
        assert!(matches!(queue.send(vec![0; limits::TCP_SEND_BYTES_MAX + 1]), Err(Error::Quota)));
        assert!(queue.send(vec![0; limits::TCP_SEND_BYTES_MAX]).is_ok());
        assert!(matches!(queue.send(vec![0]), Err(Error::WouldBlock)));
        assert!(!queue.has_room());
        let others: Vec<_> = (0..limits::TCP_SENT_TOTAL / limits::TCP_SEND_BYTES_MAX)
            .map(|_| connections.enter(true, 100).unwrap().1)
            .collect();
        others.iter().for_each(|other| other.queue(Side::Client).send(vec![0; limits::TCP_SEND_BYTES_MAX]).unwrap());
        assert_eq!(connections.chunk_bytes(), limits::TCP_CHUNK_BYTES_MIN);
        let (_, last) = connections.enter(true, 100).unwrap();
        assert!(matches!(last.queue(Side::Client).send(vec![0]), Err(Error::WouldBlock)), "the module's bound");
        drop(others);
        connections.abort_all();
        (1..=u64::try_from(connections.count()).unwrap()).for_each(|id| connections.leave(id));
        drop((connection, last));
        assert_eq!(connections.waiting.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_lane_is_written_in_pieces_and_in_order() {
        let connections = connections();
        let (_, connection) = connections.enter(true, 8).unwrap();
        let queue = connection.queue(Side::Client);
        queue.push(b"hello ".to_vec());
        queue.push(b"world".to_vec());
        queue.shut();
        queue.push(b"late".to_vec());
        let (mut written, mut room) = (Vec::new(), 4);
        while !queue
            .write(|bytes| {
                let taken = bytes.len().min(room);
                room -= taken;
                written.extend_from_slice(&bytes[..taken]);
                if taken > 0 { Ok(taken) } else { Err(std::io::ErrorKind::WouldBlock.into()) }
            })
            .unwrap()
        {
            room = 4;
        }
        assert_eq!(written, b"hello world");
        assert!(queue.is_empty() && queue.is_shut());
    }

    #[test]
    fn a_connection_without_a_server_has_one_side() {
        let (_, connection) = connections().enter(false, 1).unwrap();
        assert!(connection.with(Side::Server).is_err() && connection.with(Side::Client).is_ok());
        assert_eq!(connection.other(Side::Client), None);
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
        let (_, connection) = connections().enter(true, 1).unwrap();
        connection.advance(Stage::Closing);
        connection.advance(Stage::Spliced);
        assert_eq!(connection.stage(), Stage::Closing);
        assert!(connection.queue(Side::Client).is_shut());
    }
}
