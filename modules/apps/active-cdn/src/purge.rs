// SPDX-License-Identifier: Apache-2.0
//! Taking responses out of the cache: by message, and since the origin changed them.

use netserv_http_caching::{Entry, key};
use netserv_server_sdk::cache::{self, Error, Scope};
use netserv_server_sdk::wasi::clocks::monotonic_clock;
use netserv_server_sdk::{control, counters};

use crate::entries::{mark, put};
use crate::process::{place, rules};
use crate::site::Site;

/// Returns the number of the last purge that was told.
pub fn last() -> Option<u64> {
    control::last("purge").map(|message| message.seq)
}

/// Takes what lines name out of the cache.
pub fn lines(text: &str) {
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let gone = match (line.strip_suffix('*'), line.strip_prefix('#')) {
            (Some(prefix), _) => all(&Scope::Prefix(key::of_text(prefix))),
            (None, Some(tag)) => all(&Scope::Tag(tag.to_owned())),
            (None, None) => one(&key::of_text(line)),
        };
        // A counter over its quota costs nothing but the count.
        let _ = counters::add("purged", gone);
    }
}

/// Takes a response, its variants and what was made of them out of the cache. Returns how many there were.
pub fn one(key: &str) -> u64 {
    let entry = cache::stat(key).and_then(|entry| Entry::decode(&entry.details.meta));
    let gone = u64::from(cache::remove(key));
    match entry {
        Some(Entry::Stored(_) | Entry::Pass) | None => gone + made(key) + variants(key),
        Some(Entry::Variants(_)) => gone + made(key) + all(&Scope::Prefix(format!("{key}\n"))),
    }
}

/// Has requests for what is stored for a site go to the origin for a while, each by itself. Returns the key that says so.
pub fn hold_back(site: &Site) -> Option<String> {
    let key = site.key().filter(|key| site.is_kept && cache::stat(key).is_some())?;
    one(&key);
    mark(put(&key)?, &Entry::Pass, HELD_BACK_SECONDS).then_some(key)
}

/// Takes variants out of the cache whose names the cache has forgotten, which the next response would tell again.
fn variants(key: &str) -> u64 {
    let of_key = format!("{key}\n");
    let left = cache::list(&of_key, None, VARIANTS_MAX).unwrap_or_default();
    if left.len() >= VARIANTS_MAX as usize {
        // Also of several servers.
        return all(&Scope::Prefix(of_key));
    }
    left.iter().map(|one| u64::from(cache::remove(&one.key))).sum()
}

/// Takes what was made of a response out of the cache.
fn made(key: &str) -> u64 {
    if rules::is_wanted() { all(&Scope::Prefix(place::prefix(key))) } else { 0 }
}

/// Purges a scope, once no other purge goes on.
fn all(scope: &Scope) -> u64 {
    for _ in 0..TRIES_MAX {
        match cache::purge(scope) {
            Ok(gone) => return gone,
            Err(Error::Busy) => monotonic_clock::subscribe_duration(PAUSE_NS).block(),
            Err(error) => {
                eprintln!("{scope:?} was not purged: {error:?}");
                return 0;
            }
        }
    }
    eprintln!("{scope:?} was not purged: other purges take too long");
    0
}

/// Variants of one response; further ones are not stored while these are fresh.
pub const VARIANTS_MAX: u32 = 64;
/// Seconds for which a change may be under way that nobody saw the end of.
const HELD_BACK_SECONDS: u64 = 60;
/// How often a purge is tried while another one goes on.
const TRIES_MAX: u32 = 500;
/// Nanoseconds between two tries.
const PAUSE_NS: u64 = 20_000_000;
