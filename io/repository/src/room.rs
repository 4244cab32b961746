// SPDX-License-Identifier: Apache-2.0
//! Disk space of what is being downloaded, of which each user has a share.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netserv_model::{Refusal, RefusalKind, UserId, share};
use sha2::{Digest as _, Sha256};

/// What all downloads together may take.
#[derive(Debug)]
pub(crate) struct Room {
    bytes_max: u64,
    taken: Mutex<BTreeMap<UserId, u64>>,
}

impl Room {
    pub(crate) fn new(bytes_max: u64) -> Arc<Room> {
        Arc::new(Room { bytes_max, taken: Mutex::new(BTreeMap::new()) })
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<UserId, u64>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file without a name that takes its user's share of the room; both go with it.
#[derive(Debug)]
pub struct Downloaded {
    file: File,
    bytes: u64,
    user: UserId,
    room: Arc<Room>,
}

impl Downloaded {
    /// Returns a file that takes nobody's share.
    pub fn from_file(file: File, user: &UserId) -> Downloaded {
        Downloaded::new(file, user, &Room::new(0))
    }

    pub(crate) fn new(file: File, user: &UserId, room: &Arc<Room>) -> Downloaded {
        Downloaded { file, bytes: 0, user: user.clone(), room: Arc::clone(room) }
    }

    /// Puts another descriptor of the same file in the place of the one that it was written by.
    pub(crate) fn reopened(mut self, file: File) -> Downloaded {
        self.file = file;
        self
    }

    /// Returns whose it is.
    pub fn user(&self) -> &UserId {
        &self.user
    }

    /// Returns all that is in the file.
    pub(crate) fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn grow(&mut self, bytes: u64) -> Result<(), OverShare> {
        let mut taken = self.room.taken();
        let held: u64 = taken.values().sum();
        let own = taken.entry(self.user.clone()).or_default();
        if !share::is_fair(own.saturating_add(bytes), held.saturating_add(bytes), self.room.bytes_max) {
            return Err(OverShare { own: *own, all: self.room.bytes_max });
        }
        *own += bytes;
        self.bytes += bytes;
        Ok(())
    }
}

impl Write for Downloaded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.grow(u64::try_from(bytes.len()).unwrap_or(u64::MAX)).map_err(io::Error::other)?;
        self.file.write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes on, and digests what it writes.
pub(crate) struct Digesting<'a> {
    pub(crate) out: &'a mut dyn Write,
    pub(crate) digest: &'a mut Sha256,
}

impl Write for Digesting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.out.write(bytes)?;
        self.digest.update(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl AsFd for Downloaded {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Downloaded {
    fn drop(&mut self) {
        let mut taken = self.room.taken();
        if let Some(own) = taken.get_mut(&self.user) {
            *own = own.saturating_sub(self.bytes);
            if *own == 0 {
                taken.remove(&self.user);
            }
        }
    }
}

/// A user's downloads would take more than its share.
#[derive(Debug, thiserror::Error)]
#[error("the user's downloads have {own} bytes already, of {all} for those of all users")]
struct OverShare {
    own: u64,
    all: u64,
}

/// Returns why a download could not be written.
pub(crate) fn not_kept(error: &io::Error) -> Refusal {
    let over = error.get_ref().is_some_and(|inner| inner.is::<OverShare>());
    let kind = if over { RefusalKind::QuotaExceeded } else { RefusalKind::NodeFailed };
    Refusal::new(kind, format!("the download cannot be kept: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_a_share_until_its_files_go() {
        let room = Room::new(1000);
        let file = |user: &str| Downloaded::new(tempfile::tempfile().unwrap(), &user.parse().unwrap(), &room);
        let mut first = file("greedy");
        first.write_all(&[0; 200]).unwrap();
        let refused = not_kept(&file("greedy").write_all(&[0]).unwrap_err());
        assert_eq!(refused.kind, RefusalKind::QuotaExceeded, "{refused}");
        let mut other = file("other");
        other.write_all(&[0; 160]).unwrap();
        drop((first, other));
        assert!(room.taken().is_empty());
        file("greedy").write_all(&[0; 200]).unwrap();
    }
}
