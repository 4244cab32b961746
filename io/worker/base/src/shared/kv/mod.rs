// SPDX-License-Identifier: Apache-2.0
//! Kv state: what a module remembers beyond its own replacement.
//!
//! What is in memory counts. Where the node gives a file, changes are written to it a little later, on a thread of its
//! own (`writer`), so that no packet waits for a disk.

mod bell;
mod kept;
mod store;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use netserv_model::{Instant, ModuleName};

use crate::clock;
use crate::storage::StoreFile;
use kept::Kept;
use writer::Writer;

pub use kept::SharedKv;
pub use store::KvStore;

/// The state of all modules of the container, by name and schema version.
///
/// Without a file, state lasts for a while after its last module. With one, it lasts until others need the room.
#[derive(Debug, Default)]
pub struct KvStores {
    kept: Arc<Kept>,
    /// Whether the file was looked for.
    is_open: bool,
    file: Option<StoreFile>,
    /// What modules may keep in the file, if that is less than what it has room for.
    room: Option<u64>,
    writer: Option<Writer>,
}

impl KvStores {
    /// Returns stores that keep what they hold in a file, from where also comes what earlier ones held. It is read when
    /// the first module comes.
    pub fn in_file(file: Option<StoreFile>) -> KvStores {
        KvStores { file, ..KvStores::default() }
    }

    /// Has modules keep so many bytes together at most, counted as the file counts them.
    pub fn within(self, bytes: u64) -> KvStores {
        KvStores { room: Some(bytes), ..self }
    }

    /// Returns the state of a module, which all versions of the same schema share.
    pub fn open(&mut self, name: &ModuleName, schema: u32) -> SharedKv {
        if !std::mem::replace(&mut self.is_open, true)
            && let Some(file) = self.file.take()
        {
            self.writer =
                Some(Writer::start(file, Arc::clone(&self.kept), self.room.unwrap_or(u64::MAX), clock::monotonic()));
        }
        self.kept.open((name.clone(), schema))
    }

    /// Forgets state that no module has used for a while, or whose room is needed. To be called after modules were
    /// unloaded, and at [`KvStores::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        let left = self.kept.handle_timeout(now);
        // A module that was unloaded may be followed by the worker's end.
        if let Some(writer) = self.writer.as_ref().filter(|_| left) {
            writer.hurry();
        }
    }

    /// Returns when state is next to be forgotten.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.kept.poll_timeout()
    }

    /// Has what changed written at once, without waiting for that.
    pub fn hurry(&self) {
        self.writer.iter().for_each(Writer::hurry);
    }

    /// Returns what there is to say about the file since the last time, for the log.
    pub fn take_reports(&self) -> Vec<String> {
        self.writer.as_ref().map(Writer::take_reports).unwrap_or_default()
    }

    /// Returns how many times the file could not be read or written.
    pub fn failures(&self) -> u64 {
        self.writer.as_ref().map_or(0, Writer::failures)
    }

    /// Writes what is not in the file yet, and waits for that, at most so long.
    pub fn close(&mut self, at_most: Duration) {
        if let Some(writer) = self.writer.take() {
            writer.close(at_most);
        }
    }
}

#[cfg(test)]
mod tests;
