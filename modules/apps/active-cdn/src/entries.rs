// SPDX-License-Identifier: Apache-2.0
//! New entries of the cache.

use netserv_http_caching::Entry;
use netserv_server_sdk::cache::{self, Details, Error, Writer};
use netserv_server_sdk::wasi::clocks::monotonic_clock;

/// Begins an entry, as soon as fewer are written than may be.
pub fn put(key: &str) -> Option<Writer> {
    for _ in 0..TRIES_MAX {
        match cache::put(key) {
            Ok(writer) => return Some(writer),
            Err(Error::Busy) => monotonic_clock::subscribe_duration(PAUSE_NS).block(),
            Err(_) => return None,
        }
    }
    None
}

/// Writes an entry without a body.
pub fn mark(writer: Writer, entry: &Entry, seconds: u64) -> bool {
    let Some(meta) = entry.encode() else { return false };
    let details =
        Details { content_type: String::new(), etag: String::new(), max_age: seconds, meta, tags: Vec::new() };
    let Ok(stream) = writer.begin(&details, Some(0)) else { return false };
    drop(stream);
    Writer::finish(writer).is_ok()
}

/// How often an entry is begun while too many others are written.
const TRIES_MAX: u32 = 10;
/// Nanoseconds between two tries.
const PAUSE_NS: u64 = 20_000_000;
