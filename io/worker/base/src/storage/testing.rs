// SPDX-License-Identifier: Apache-2.0
//! Disks in memory that break as they are told.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::Disk;

/// A disk whose clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// What is on it.
    pub bytes: Arc<Mutex<Vec<u8>>>,
    /// Writes and syncs that still work; the one after them is cut in its middle, and fails, as do all later ones.
    pub left: Arc<Mutex<Option<usize>>>,
    /// Whether reads and writes wait, and what tells them of a change.
    pub held: Arc<(Mutex<bool>, Condvar)>,
}

impl Memory {
    /// Returns a disk of so many zeroed bytes.
    pub fn new(length: usize) -> Memory {
        Memory { bytes: Arc::new(Mutex::new(vec![0; length])), ..Memory::default() }
    }

    /// Has reads and writes wait until it is told otherwise. After ten seconds one of them fails, and the others go on.
    pub fn hold(&self, is_held: bool) {
        *self.held.0.lock().unwrap() = is_held;
        self.held.1.notify_all();
    }

    fn wait(&self) -> io::Result<()> {
        let (is_held, changed) = &*self.held;
        let time = Duration::from_secs(10);
        let (mut is_held, waited) =
            changed.wait_timeout_while(is_held.lock().unwrap(), time, |is_held| *is_held).unwrap();
        *is_held = false;
        if waited.timed_out() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    /// Has it work for so many more writes and syncs, or for all.
    pub fn break_after(&self, writes: Option<usize>) {
        *self.left.lock().unwrap() = writes;
    }

    /// Returns another disk with the same bytes, as after a power cut.
    pub fn copy(&self) -> Memory {
        Memory { bytes: Arc::new(Mutex::new(self.bytes.lock().unwrap().clone())), ..Memory::default() }
    }

    fn spend(&self) -> bool {
        match &mut *self.left.lock().unwrap() {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}

impl Disk for Memory {
    fn len(&self) -> u64 {
        self.bytes.lock().unwrap().len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.wait()?;
        let bytes = self.bytes.lock().unwrap();
        let start = usize::try_from(offset).unwrap();
        let from = bytes.get(start..start + into.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(from);
        Ok(())
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.wait()?;
        let works = self.spend();
        let mut bytes = self.bytes.lock().unwrap();
        let start = usize::try_from(offset).unwrap();
        let into = bytes.get_mut(start..start + from.len()).ok_or(io::ErrorKind::StorageFull)?;
        let length = if works { from.len() } else { from.len() / 2 };
        into[..length].copy_from_slice(&from[..length]);
        if works { Ok(()) } else { Err(io::Error::other("the disk broke")) }
    }

    fn sync(&self) -> io::Result<()> {
        if self.spend() { Ok(()) } else { Err(io::Error::other("the disk broke")) }
    }
}
