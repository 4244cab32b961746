// SPDX-License-Identifier: Apache-2.0
//! What wakes a thread that polls.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::ServeError;

/// An eventfd that this process waits for.
#[derive(Debug)]
pub struct Wakeup(OwnedFd);

impl Wakeup {
    /// Makes one that other threads of this process write to.
    ///
    /// # Errors
    /// The kernel has none left.
    pub fn new() -> io::Result<Wakeup> {
        let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
        Ok(Wakeup(rustix::event::eventfd(0, flags)?))
    }

    /// Makes it readable.
    pub fn raise(&self) {
        // It fails only if the counter is full, and then it is readable.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Makes it unreadable again, once it is readable.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn clear(&self) -> Result<(), ServeError> {
        match rustix::io::read(&self.0, &mut [0; 8][..]) {
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(ServeError::Io("read", error.into())),
        }
    }
}

impl From<OwnedFd> for Wakeup {
    fn from(eventfd: OwnedFd) -> Wakeup {
        Wakeup(eventfd)
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
