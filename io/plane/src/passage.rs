// SPDX-License-Identifier: Apache-2.0
//! The way of signaling messages from a forwarding plane that takes them off itself to the interceptor, and back.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use crate::{DriverError, InterfaceId, limits};

/// What a plane takes off its devices for the interceptor. Both have it, on threads of their own; neither waits.
///
/// A message that is accepted goes to the kernel, as if it had come in by a link of the plane's own.
#[derive(Clone)]
pub struct Passage(Arc<Shared>);

struct Shared {
    waiting: Mutex<VecDeque<(InterfaceId, Arc<[u8]>)>>,
    /// Is readable while something waits, or what the rules are needed for has changed.
    news: OwnedFd,
    /// Messages that found no room.
    lost: AtomicU64,
    /// Messages may come in by devices that the plane does not serve.
    is_partial: AtomicBool,
    /// Nobody takes messages any more.
    is_closed: AtomicBool,
    kernel: Arc<File>,
    /// The device by which the kernel gets them.
    device: String,
}

impl Passage {
    /// Makes a passage, with the device by which messages go on and its name.
    pub fn new(device: &str, kernel: Arc<File>) -> Result<Passage, DriverError> {
        let news = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| DriverError::system("making an event for signaling", error))?;
        Ok(Passage(Arc::new(Shared {
            waiting: Mutex::default(),
            news,
            lost: AtomicU64::new(0),
            is_partial: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            kernel,
            device: device.to_owned(),
        })))
    }

    /// Hands a message over, or loses it where more come than are taken: a Query that goes on unseen would tell its sender
    /// that this node is not there. False if nobody takes messages any more, so that it is to go on.
    pub fn offer(&self, interface: InterfaceId, packet: &[u8]) -> bool {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Looked at under the lock, so that nothing is left behind by the last look of who closes.
        if self.0.is_closed.load(Ordering::Relaxed) {
            return false;
        }
        if waiting.len() >= limits::PASSAGE_WAITING_MAX {
            self.0.lost.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        waiting.push_back((interface, packet.into()));
        if waiting.len() == 1 {
            self.tell();
        }
        true
    }

    /// Says whether messages may come in by devices that the plane does not serve.
    pub fn set_partial(&self, is_partial: bool) {
        if self.0.is_partial.swap(is_partial, Ordering::Relaxed) != is_partial {
            self.tell();
        }
    }

    /// Returns whether messages may come in by devices that the plane does not serve.
    pub fn is_partial(&self) -> bool {
        self.0.is_partial.load(Ordering::Relaxed)
    }

    /// Takes what waits, the oldest first, at most so much.
    pub fn take(&self, at_most: usize) -> Vec<(InterfaceId, Arc<[u8]>)> {
        // Before the look, so that what comes after it is told again. It fails if there are no news.
        let _ = rustix::io::read(&self.0.news, &mut [0; 8]);
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let end = waiting.len().min(at_most);
        let taken = waiting.drain(..end).collect();
        if !waiting.is_empty() {
            self.tell();
        }
        taken
    }

    /// Lets a packet go on by the kernel; returns whether the kernel took it.
    pub fn pass(&self, packet: &[u8]) -> bool {
        (&*self.0.kernel).write(packet).is_ok()
    }

    /// Takes no more, and lets go on what waits.
    pub fn close(&self) {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.is_closed.store(true, Ordering::Relaxed);
        for (_, packet) in waiting.drain(..) {
            self.pass(&packet);
        }
    }

    /// Returns how many messages found no room.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Returns the device by which messages go on.
    pub fn device(&self) -> &str {
        &self.0.device
    }

    fn tell(&self) {
        // It can only fail by being told 2^64 times.
        let _ = rustix::io::write(&self.0.news, &1_u64.to_ne_bytes());
    }
}

impl AsFd for Passage {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.news.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passage_waiting_max_messages_wait_and_more_are_lost() {
        let path = std::env::temp_dir().join(format!("netserv-passage-{}", std::process::id()));
        let passage = Passage::new("tun", Arc::new(File::create(&path).unwrap())).unwrap();
        for number in 0..limits::PASSAGE_WAITING_MAX {
            assert!(passage.offer(InterfaceId(1), &number.to_be_bytes()));
        }
        assert!(passage.offer(InterfaceId(1), b"one more"));
        assert_eq!(passage.lost(), 1);
        assert_eq!(&*passage.take(1)[0].1, 0_usize.to_be_bytes());
        assert!(passage.offer(InterfaceId(2), b"last"));
        let rest = passage.take(usize::MAX);
        assert_eq!((rest.len(), rest.last().unwrap().0), (limits::PASSAGE_WAITING_MAX, InterfaceId(2)));
        assert!(passage.offer(InterfaceId(2), b"left over"));
        passage.close();
        assert!(!passage.offer(InterfaceId(2), b"late") && passage.take(1).is_empty());
        assert_eq!(std::fs::read(&path).unwrap(), b"left over");
        std::fs::remove_file(path).unwrap();
    }
}
