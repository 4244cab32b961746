// SPDX-License-Identifier: Apache-2.0
//! What outlives the process: the files that the node mounts for a user's modules.
//!
//! Each has a fixed length from the start. What is in them may be anything: the process may have been killed amid a
//! write, the disk may be full or broken, and an earlier worker may have been taken over. So nothing is believed without
//! its checksum, nothing read from them can panic or take more memory than a bound in [`limits`], and no module fails by
//! a disk. Nobody waits for one either but who calls the cache, and that on a thread of its own.

pub mod cache;
pub mod journal;
pub mod limits;
pub mod testing;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Where the node mounts the files.
pub const STORE: &str = "/store";
/// The file of kv state there.
pub const KV_FILE: &str = "kv";
/// The file of the cache there.
pub const CACHE_FILE: &str = "cache";

/// A file of fixed length. Reads and writes beyond it are errors.
pub trait Disk: Send + Sync {
    /// Returns the length in bytes.
    fn len(&self) -> u64;
    /// Returns whether it has no byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Fills `into` from `offset` on.
    ///
    /// # Errors
    /// It cannot be read, or is shorter.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// It cannot be written, as when the disk is full, or is shorter.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Returns when everything that was written is safe from a power cut.
    ///
    /// # Errors
    /// It is not; nothing is certain of what was written since the last time.
    fn sync(&self) -> io::Result<()>;
}

/// A file that the node mounted.
#[derive(Debug)]
pub struct StoreFile {
    file: File,
    length: u64,
}

impl StoreFile {
    /// Opens a file; nothing if the node granted none, which then is an empty one or cannot be written.
    pub fn open(path: &Path) -> Option<StoreFile> {
        StoreFile::try_open(path).ok()
    }

    /// Opens a file that the node should have granted.
    ///
    /// # Errors
    /// There is none, it cannot be written, or it is empty.
    pub fn try_open(path: &Path) -> io::Result<StoreFile> {
        let file = File::options().read(true).write(true).open(path)?;
        let metadata = file.metadata()?;
        let length = metadata.len();
        let is_of_use = metadata.is_file() && length > 0;
        is_of_use.then_some(StoreFile { file, length }).ok_or_else(|| io::Error::other("it is empty, or no file"))
    }

    /// Returns one in memory, for tests.
    ///
    /// # Errors
    /// The kernel has none left.
    pub fn in_memory(length: u64) -> io::Result<StoreFile> {
        let file = rustix::fs::memfd_create("netserv-store", rustix::fs::MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&file, length)?;
        Ok(StoreFile { file: file.into(), length })
    }
}

impl Disk for StoreFile {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > self.length) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.file.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
