// SPDX-License-Identifier: Apache-2.0
//! What waits to be sent to the sides of a module's connections, and how much of it there may be.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::buffers::Buffers;
use super::wit::control::Error;
use crate::limits;

/// What waits in all connections of a module.
#[derive(Debug, Default)]
pub struct Pool {
    waiting: AtomicUsize,
    connections: AtomicUsize,
}

/// What waits to be sent to one side.
pub struct SendQueue {
    queue: Mutex<Queue>,
    /// Where bytes go at once while none wait, as soon as there is such a thing.
    stream: OnceLock<Arc<TcpStream>>,
    /// Something is to be sent, or no more comes.
    pub more: Notify,
    /// Something has been sent.
    pub room: Notify,
    pool: Arc<Pool>,
}

#[derive(Default)]
struct Queue {
    chunks: VecDeque<Vec<u8>>,
    /// How much of the first was sent.
    sent: usize,
    bytes: usize,
    shut: bool,
    /// Bytes that the module was told that there is no room for, and was not told since that there is.
    wanted: Option<usize>,
}

impl Pool {
    /// Takes note of a further connection.
    pub fn enter(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes note that a connection is gone.
    pub fn leave(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns how many bytes a connection should read at once at most: fewer, the more bytes wait in all of them.
    pub fn chunk_bytes(&self) -> usize {
        match self.waiting() {
            waiting if waiting < limits::TCP_WAITING_TOTAL / 2 => limits::TCP_CHUNK_BYTES_MAX,
            waiting if waiting < limits::TCP_WAITING_TOTAL => limits::TCP_CHUNK_BYTES_FIRST,
            _ => limits::TCP_CHUNK_BYTES_MIN,
        }
    }

    /// Returns how many bytes a module may have waiting for one side: once many wait in all, what is left for it is shared
    /// out, so that sides that take nothing leave the others theirs.
    fn share(&self) -> usize {
        let waiting = self.waiting();
        if waiting < limits::TCP_SENT_FREE {
            return limits::TCP_SEND_BYTES_MAX;
        }
        let left = limits::TCP_SENT_TOTAL.saturating_sub(waiting);
        let share = left / self.connections.load(Ordering::Relaxed).max(1);
        share.clamp(limits::TCP_SHARE_BYTES_MIN, limits::TCP_SEND_BYTES_MAX)
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

impl SendQueue {
    /// Returns a queue in which nothing waits.
    pub fn new(pool: Arc<Pool>) -> SendQueue {
        SendQueue { queue: Mutex::default(), stream: OnceLock::new(), more: Notify::new(), room: Notify::new(), pool }
    }

    /// Says where bytes go from here on.
    pub fn attach(&self, stream: &Arc<TcpStream>) {
        // There is one stream for each side.
        let _ = self.stream.set(Arc::clone(stream));
    }

    /// Returns whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.lock().chunks.is_empty()
    }

    /// Returns how many bytes wait.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
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

    /// Returns whether the module waits for room.
    pub fn is_wanted(&self) -> bool {
        let queue = self.lock();
        queue.wanted.is_some() && !queue.shut
    }

    /// Returns whether there is room that the module waits for: it is to be told so, and does not wait any more.
    pub fn take_wanted(&self) -> bool {
        let mut queue = self.lock();
        let fits = queue.wanted.is_some_and(|wanted| queue.bytes + wanted <= self.pool.share()) && !queue.shut;
        if fits {
            queue.wanted = None;
        }
        fits
    }

    /// Sends bytes behind those that wait: at once as many as the stream takes, if none do. Keeps no more memory for the
    /// rest than it needs. Returns how many went at once.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn send_on(&self, bytes: Vec<u8>, buffers: &Buffers) -> io::Result<usize> {
        let mut queue = self.lock();
        if queue.shut {
            return Ok(0);
        }
        let sent = self.write_at_once(&queue, &bytes)?;
        if sent == 0 && bytes.capacity() <= 2 * bytes.len() {
            self.append(&mut queue, bytes);
            return Ok(0);
        }
        if sent < bytes.len() {
            self.append(&mut queue, bytes[sent..].to_vec());
        }
        drop(queue);
        buffers.give(bytes);
        Ok(sent)
    }

    /// Appends bytes; none to one that is shut.
    pub fn push(&self, bytes: Vec<u8>) {
        let mut queue = self.lock();
        if !queue.shut {
            self.append(&mut queue, bytes);
        }
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
    pub fn write(&self, mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<bool> {
        let mut queue = self.lock();
        while let Some(first) = queue.chunks.front() {
            let written = match write(&first[queue.sent..]) {
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            };
            let whole = queue.sent + written == first.len();
            queue.bytes -= written;
            self.pool.waiting.fetch_sub(written, Ordering::Relaxed);
            queue.sent = if whole { 0 } else { queue.sent + written };
            if whole {
                queue.chunks.pop_front();
            }
        }
        drop(queue);
        self.room.notify_one();
        Ok(true)
    }

    /// Sends bytes of the module's own. Returns how many went at once.
    ///
    /// # Errors
    /// There is no room, or no more may come.
    pub fn send(&self, bytes: &[u8]) -> Result<usize, Error> {
        if bytes.len() > limits::TCP_SEND_BYTES_MAX {
            return Err(Error::Quota);
        }
        let mut queue = self.lock();
        if queue.shut {
            return Err(Error::NotFound);
        }
        if queue.bytes + bytes.len() > self.pool.share() {
            queue.wanted = Some(bytes.len());
            drop(queue);
            self.more.notify_one();
            return Err(Error::WouldBlock);
        }
        // Who writes what waits finds the error that there may be.
        let sent = self.write_at_once(&queue, bytes).unwrap_or(0);
        self.append(&mut queue, bytes[sent..].to_vec());
        Ok(sent)
    }

    fn write_at_once(&self, queue: &Queue, bytes: &[u8]) -> io::Result<usize> {
        let mut sent = 0;
        let Some(stream) = self.stream.get().filter(|_| queue.chunks.is_empty()) else { return Ok(0) };
        while sent < bytes.len() {
            match stream.try_write(&bytes[sent..]) {
                Ok(length) => sent += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    fn append(&self, queue: &mut Queue, bytes: Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        queue.bytes += bytes.len();
        self.pool.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        queue.chunks.push_back(bytes);
        self.more.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SendQueue {
    fn drop(&mut self) {
        let left = self.lock().bytes;
        self.pool.waiting.fetch_sub(left, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(pool: &Arc<Pool>) -> SendQueue {
        pool.enter();
        SendQueue::new(Arc::clone(pool))
    }

    #[test]
    fn what_waits_is_bounded_and_makes_others_read_less() {
        let pool = Arc::new(Pool::default());
        let first = queue(&pool);
        assert_eq!(pool.chunk_bytes(), limits::TCP_CHUNK_BYTES_MAX);
        assert!(matches!(first.send(&vec![0; limits::TCP_SEND_BYTES_MAX + 1]), Err(Error::Quota)));
        assert!(first.send(&vec![0; limits::TCP_SEND_BYTES_MAX]).is_ok());
        assert!(matches!(first.send(&[0]), Err(Error::WouldBlock)));
        assert!(!first.has_room());
        let others: Vec<_> = (0..100).map(|_| queue(&pool)).collect();
        for other in &others {
            while other.send(&[0; 1024]).is_ok() {}
        }
        assert!(pool.waiting() > limits::TCP_WAITING_TOTAL && pool.waiting() <= limits::TCP_SENT_TOTAL);
        assert_eq!(pool.chunk_bytes(), limits::TCP_CHUNK_BYTES_MIN);
        drop((first, others));
        assert_eq!(pool.waiting(), 0);
    }

    /// Goal: sides that take nothing leave others their share, even if they came first and try again and again.
    #[test]
    fn who_takes_nothing_leaves_others_their_share() {
        let pool = Arc::new(Pool::default());
        let greedy: Vec<_> = (0..200).map(|_| queue(&pool)).collect();
        for _ in 0..3 {
            for one in &greedy {
                while one.send(&[0; 16 * 1024]).is_ok() {}
            }
        }
        let good = queue(&pool);
        assert!(good.send(&[0; 16 * 1024]).is_ok(), "{} bytes wait", pool.waiting());
        assert!(pool.waiting() <= limits::TCP_SENT_TOTAL);
        // With as many as there may be, the least is left for each.
        let many: Vec<_> = (0..8192).map(|_| queue(&pool)).collect();
        for one in &many {
            while one.send(&[0; 512]).is_ok() {}
        }
        let last = queue(&pool);
        assert!(last.send(&[0; limits::TCP_SHARE_BYTES_MIN]).is_ok());
        assert!(pool.waiting() <= limits::TCP_SENT_TOTAL + 8193 * limits::TCP_SHARE_BYTES_MIN);
    }

    #[test]
    fn who_was_told_to_wait_is_told_once_that_there_is_room() {
        let pool = Arc::new(Pool::default());
        let queue = queue(&pool);
        assert!(!queue.is_wanted() && !queue.take_wanted());
        queue.send(&vec![0; limits::TCP_SEND_BYTES_MAX]).unwrap();
        assert!(queue.send(&[0; 100]).is_err());
        assert!(queue.is_wanted() && !queue.take_wanted(), "nothing has gone");
        assert!(queue.write(|bytes| Ok(bytes.len())).unwrap());
        assert!(queue.take_wanted());
        assert!(!queue.is_wanted() && !queue.take_wanted(), "once");
    }

    #[test]
    fn a_queue_is_written_in_pieces_and_in_order() {
        let queue = queue(&Arc::new(Pool::default()));
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
                if taken > 0 { Ok(taken) } else { Err(io::ErrorKind::WouldBlock.into()) }
            })
            .unwrap()
        {
            room = 4;
        }
        assert_eq!(written, b"hello world");
        assert!(queue.is_empty() && queue.is_shut());
    }
}
