// SPDX-License-Identifier: Apache-2.0
//! Named bounds of what modules keep: kv state, the cache, and messages between a module's parts.

use std::time::Duration;

/// How long a change of kv state waits for others before all are written together.
pub const KV_WRITE_DELAY: Duration = Duration::from_millis(500);
/// How long after a failed write of kv state the next one is tried.
pub const KV_RETRY_DELAY: Duration = Duration::from_secs(10);
/// How long the last write of kv state may take when the worker ends.
pub const KV_CLOSE_TIME_MAX: Duration = Duration::from_secs(1);
/// Bytes of a file that is of use for kv state.
pub const KV_FILE_BYTES_MIN: u64 = 128 * 1024;
/// Bytes of one record of the file, of which a batch of changes has as many as it takes.
pub const KV_RECORD_BYTES_MAX: usize = 256 * 1024;
/// Bytes that an entry counts for beside its key and value, against what the user's modules may keep together: what it
/// takes in memory, which was measured as 80 to 135.
pub const KV_ENTRY_COST: u64 = 144;
/// How many times what modules may keep together a file may hold while it is read: changes that take something away may
/// come behind those that add.
pub const KV_RESTORED_TIMES_MAX: u64 = 2;
/// Keys of one module that are noted as changed; with more, its whole state is written.
pub const KV_CHANGES_MAX: usize = 65_536;
/// Of one half of the file, how many quarters state may take; the rest is for what is written meanwhile.
pub const KV_USABLE_QUARTERS: u64 = 3;
/// Keys that one call lists.
pub const KV_KEYS_MAX: u32 = 1024;
/// Lines about the file that wait to be logged.
pub const REPORTS_MAX: usize = 16;

/// Messages that wait in one direction.
pub const MESSAGES_MAX: usize = 1024;
/// Bytes of one message.
pub const MESSAGE_BYTES_MAX: usize = 4096;
/// Bytes of the messages that wait in one direction.
pub const MESSAGES_BYTES_MAX: usize = 256 * 1024;

/// Bytes of a block of the cache's file.
pub const CACHE_BLOCK_BYTES: usize = 16 * 1024;
/// Bytes of a file that is of use as a cache.
pub const CACHE_FILE_BYTES_MIN: u64 = 16 * CACHE_BLOCK_BYTES as u64;
/// Bytes of memory that what is known of the cache's entries may take in any case, beside four for each block.
pub const CACHE_INDEX_BYTES_MIN: u64 = 8 * 1024 * 1024;
/// What is known of the cache's entries may take one of so many parts of the container's memory.
pub const CACHE_INDEX_MEMORY_SHARE: u64 = 4;
/// Blocks of a file that has a catalog; a look at all of fewer takes no time.
pub const CACHE_CATALOG_BLOCKS_MIN: u32 = 4096;
/// The catalog has one of so many blocks of the file: room for 300 bytes of texts of each other block.
pub const CACHE_CATALOG_SHARE: u32 = 16;
/// Entries that are taken at once for a catalog that is written anew, between which others use the cache.
pub const CACHE_CATALOG_STEP: usize = 1024;
/// Bytes of memory that an entry takes beside its texts.
pub const CACHE_ENTRY_COST: u64 = 480;
/// Bytes of a key.
pub const CACHE_KEY_BYTES_MAX: usize = 1024;
/// Bytes of a content type, and of an etag.
pub const CACHE_TEXT_BYTES_MAX: usize = 256;
/// Bytes that a module keeps beside a body.
pub const CACHE_META_BYTES_MAX: usize = 16 * 1024;
/// Tags of an entry.
pub const CACHE_TAGS_MAX: usize = 8;
/// Bytes of a tag.
pub const CACHE_TAG_BYTES_MAX: usize = 64;
/// Entries that one call lists.
pub const CACHE_LISTED_MAX: u32 = 1024;
/// Entries that a purge looks at in one step, between which others use the cache.
pub const CACHE_PURGE_STEP: usize = 1024;
/// Entries that a module may write at a time.
pub const CACHE_WRITERS_MAX: usize = 64;
/// Readers of an entry that is being written.
pub const CACHE_JOINED_MAX: usize = 8192;
/// Readers of an entry that is being written which are woken for each byte.
pub const CACHE_READERS_FEW: usize = 32;
/// Bytes for which more of them are woken together.
pub const CACHE_WAKE_BYTES: usize = 128 * 1024;
/// How long they wait for as many.
pub const CACHE_WAKE_TIME_MAX: Duration = Duration::from_millis(10);
/// Blocks of an entry that is being written which are in memory for its readers; those before them are read from disk.
pub const CACHE_RECENT_BLOCKS: usize = 8;
/// How long who reads an entry that is gone may go on although others want its blocks.
pub const CACHE_GONE_TIME_MIN: Duration = Duration::from_secs(60);
/// How long the writer of an entry may do nothing while others wait for it.
pub const CACHE_STALL_TIME_MAX: Duration = Duration::from_secs(60);
/// Bytes of the cache that a module under test has.
pub const CACHE_TEST_BYTES: u64 = 16 * 1024 * 1024;
/// Bytes of memory of the container that such a cache is taken to be in.
pub const CACHE_TEST_CONTAINER_BYTES: u64 = 128 << 20;
/// Bytes of a body that are read ahead, or written at once, for one stream.
pub const CACHE_STREAM_BYTES_MAX: usize = 128 * 1024;
/// Bytes that are read at once while what is in memory takes as much as it may.
pub const CACHE_STREAM_BYTES_MIN: usize = 4 * 1024;
/// Bytes of blocks that are in memory, for all who read them and for those who want them next, however much the container has.
pub const CACHE_MEMORY_BYTES_MAX: usize = 16 << 20;
/// They have one of so many parts of the container's memory, up to that.
pub const CACHE_MEMORY_SHARE: u64 = 8;
/// Bytes of memory of the container that a cache is taken to be in if it is not known.
pub const CACHE_CONTAINER_BYTES: u64 = 32 << 20;
/// Blocks that leave memory at once so that there is room for another one, which each of them may be without.
pub const CACHE_EVICTIONS_MAX: usize = 16;
/// Bodies that an instance may read at a time.
pub const CACHE_READERS_MAX: usize = 16;
