// SPDX-License-Identifier: Apache-2.0
//! The cache of a user's modules: bodies of any size with what is known of them, on disk, of which the least recently
//! used give way. All of it may wait for the disk, but for what says otherwise.
//!
//! The file is made of blocks ([`block`]); what is where is kept in memory and found again by a look at all blocks when
//! the cache is first used. The head of an entry is written last, so one that was cut off is none. Each module may fill
//! its share of the file, which all modules that use it have the same of.

mod block;
mod changes;
mod details;
mod entry;
mod error;
mod fill;
mod index;
mod joined;
mod lazy;
mod pool;
mod scan;
mod scope;
mod shares;
mod writer;

pub use changes::Purge;
pub use details::{About, Details};
pub use entry::Entry;
pub use error::CacheError;
pub use fill::Piece;
pub use joined::Joined;
pub use lazy::{CacheHandle, CacheSource};
pub use scope::Scope;
pub use shares::{Cache, Share};
pub use writer::{Opened, Writer};

#[cfg(test)]
mod tests;
