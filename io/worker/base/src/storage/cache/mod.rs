// SPDX-License-Identifier: Apache-2.0
//! The cache of a user's modules: bodies of any size with what is known of them, on disk, of which the least recently
//! used give way. All of it may wait for the disk, but for what says otherwise.
//!
//! The file is made of blocks ([`block`]); what is where is kept in memory. When the cache is first used it is found again in
//! the file's catalog ([`catalog`]), or by a look at all blocks. The head of an entry is written last, so one that was cut off is
//! none. Each module may fill its share of the file, which all modules that use it have the same of.

mod block;
mod catalog;
mod changes;
mod details;
mod entry;
mod error;
mod file;
mod fill;
mod index;
mod joined;
mod lazy;
mod memory;
mod pool;
mod scan;
mod scope;
mod shares;
mod writer;

pub use changes::Purge;
pub use details::{About, Details};
pub use entry::Entry;
pub use error::CacheError;
pub use file::Lent;
pub use fill::Piece;
pub use joined::Joined;
pub use lazy::{CacheHandle, CacheSource};
pub use scope::Scope;
pub use shares::{Cache, Share};
pub use writer::{Opened, Writer};

#[cfg(test)]
mod tests;
