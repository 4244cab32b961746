// SPDX-License-Identifier: Apache-2.0
//! Why the cache does nothing.

use std::io;

/// Why the cache did nothing.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The entry is larger than the module's share, or the rest of that is being read or written.
    #[error("an entry is larger than the module's share of the cache")]
    TooLarge,
    /// A key or a piece of metadata is empty or too long.
    #[error("a key is empty, or a text too long")]
    Invalid,
    /// The module writes, or purges, as much at a time as it may.
    #[error("too many entries are being written, or a purge goes on")]
    Busy,
    /// An entry that is being written has as many readers as it may.
    #[error("too many read the entry while it is being written")]
    Crowded,
    /// Who wrote the entry gave it up.
    #[error("who wrote the entry gave it up")]
    Abandoned,
    /// Who wrote the entry did nothing for too long.
    #[error("who wrote the entry did nothing for too long")]
    Stalled,
    /// The entry was gone for long, and others needed its blocks.
    #[error("an entry that was gone for long was not read to its end")]
    Cut,
    /// The disk failed.
    #[error("the cache's file failed: {0}")]
    Disk(#[from] io::Error),
    /// What was read is not what was written.
    #[error("an entry of the cache is damaged")]
    Damaged,
}
