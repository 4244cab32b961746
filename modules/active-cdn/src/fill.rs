// SPDX-License-Identifier: Apache-2.0
//! Asking the origin, and storing what it says.

use std::time::Duration;

use netserv_http_caching::{Entry, Head, NotKept, Refresh, Stored, Times, forward, variant_key};
use netserv_server_sdk::cache::{self, Details, Error, Reader, Writer};
use netserv_server_sdk::counters;
use netserv_server_sdk::http::{ErrorCode, Fetched, Method, fetch, write_all};
use netserv_server_sdk::wasi::clocks::monotonic_clock;
use netserv_server_sdk::wasi::io::streams::OutputStream;

use crate::found::Place;
use crate::purge;
use crate::site::{Site, now};

/// What came of asking the origin.
pub enum Outcome {
    /// What was stored is the same as ever, with these headers.
    Refreshed(Stored),
    /// A body that is being stored, which others read as it comes.
    Filling(Reader, Stored, Fill),
    /// A response that is not stored.
    Fetched(Fetched, Times),
    /// No response.
    Failed(ErrorCode),
}

/// A body on its way into the cache.
pub struct Fill {
    fetched: Fetched,
    stream: OutputStream,
    writer: Writer,
}

/// Asks the origin for what goes to a place, by the validators of what is stored there.
///
/// Without a writer, nobody waits for it, and what is stored there may be fresh.
pub fn ask(site: &Site, place: &Place, writer: Option<Writer>, held: Option<&Stored>) -> Outcome {
    let request = site.get();
    let mut headers = forward::fill(&request, &site.policy);
    headers.extend(held.map(Stored::conditions).unwrap_or_default());
    let requested = now();
    let fetched = match fetch(&site.scheme, &site.authority, &Method::Get, request.path, &headers) {
        Ok(fetched) => fetched,
        Err(error) => return Outcome::Failed(error),
    };
    let times = Times { requested, received: now() };
    let head = Head { status: fetched.status, headers: &fetched.headers };
    if let Some(held) = held
        && fetched.status == 304
    {
        count("refreshed");
        return match held.refreshed(&site.policy, &request, &head, &times) {
            Refresh::Kept(stored) => {
                store_head(place, &stored);
                Outcome::Refreshed(stored)
            }
            Refresh::Once(stored) => {
                cache::remove(&place.key);
                Outcome::Refreshed(stored)
            }
            Refresh::Gone | Refresh::Same => Outcome::Failed(ErrorCode::HttpProtocolError),
        };
    }
    match site.policy.keep(&request, &head, &times) {
        Ok(stored) => begin(site, place, writer, stored, fetched, times),
        Err(why) => {
            not_kept(place, writer, why, &fetched, held.is_some());
            Outcome::Fetched(fetched, times)
        }
    }
}

/// Stores new headers of a body.
pub fn store_head(place: &Place, stored: &Stored) {
    let kept = details(stored).is_some_and(|details| cache::update(&place.key, &details).is_ok());
    if !kept {
        cache::remove(&place.key);
    }
}

impl Fill {
    /// Returns what the origin says of the response's age.
    pub fn age(&self) -> Vec<(String, Vec<u8>)> {
        let said = self.fetched.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("age"));
        said.cloned().collect()
    }

    /// Writes what comes from the origin. Who reads it fails if that does.
    pub fn run(mut self) {
        let mut bytes = 0;
        while let Ok(chunk) = self.fetched.chunk() {
            let Some(chunk) = chunk else {
                drop(self.stream);
                let _ = Writer::finish(self.writer);
                let _ = counters::add("origin-bytes", bytes);
                return;
            };
            bytes += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
            if write_all(&self.stream, &chunk).is_err() {
                return;
            }
        }
    }
}

fn begin(
    site: &Site,
    place: &Place,
    writer: Option<Writer>,
    stored: Stored,
    fetched: Fetched,
    times: Times,
) -> Outcome {
    let names = stored.vary();
    let key = if names.is_empty() {
        Some(place.base.clone())
    } else {
        variant_key(&place.base, &names, &site.get()).filter(|key| has_room(place, key))
    };
    let (Some(key), Some(details)) = (key, details(&stored)) else { return Outcome::Fetched(fetched, times) };
    let Some(writer) = at(place, &key, writer, names) else { return Outcome::Fetched(fetched, times) };
    let length = fetched.header("content-length").and_then(|text| std::str::from_utf8(text).ok()?.trim().parse().ok());
    let has_content = !matches!(fetched.status, 204 | 205);
    let Ok(stream) = writer.begin(&details, if has_content { length } else { Some(0) }) else {
        return Outcome::Fetched(fetched, times);
    };
    match cache::open_or_join(&key) {
        Ok(cache::Opened::Reader(reader)) => Outcome::Filling(reader, stored, Fill { fetched, stream, writer }),
        Ok(cache::Opened::Writer(_)) | Err(_) => Outcome::Fetched(fetched, times),
    }
}

/// Returns the writer of a key. Who waits at another one is sent there.
fn at(place: &Place, key: &str, writer: Option<Writer>, names: Vec<String>) -> Option<Writer> {
    if place.key == key
        && let Some(writer) = writer
    {
        return Some(writer);
    }
    if key == place.base {
        // What had variants has none.
        purge::one(key);
        return put(key);
    }
    // What is written is read at once, and not what was there before.
    cache::remove(key);
    let own = put(key)?;
    if place.key == key {
        return Some(own);
    }
    let base = writer.filter(|_| place.key == place.base).or_else(|| put(&place.base));
    mark(base?, &Entry::Variants(names), VARIANTS_SECONDS).then_some(own)
}

/// Begins an entry, as soon as fewer are written than may be.
fn put(key: &str) -> Option<Writer> {
    for _ in 0..TRIES_MAX {
        match cache::put(key) {
            Ok(writer) => return Some(writer),
            Err(Error::Busy) => monotonic_clock::subscribe_duration(PAUSE_NS).block(),
            Err(_) => return None,
        }
    }
    None
}

/// Returns whether there is room for a variant. Stale ones give way.
fn has_room(place: &Place, key: &str) -> bool {
    if place.key == key {
        return true;
    }
    let Ok(all) = cache::list(&format!("{}\n", place.base), None, VARIANTS_MAX) else { return false };
    if all.iter().any(|one| one.key == key) || all.len() < usize::try_from(VARIANTS_MAX).unwrap_or(usize::MAX) {
        return true;
    }
    let stale = all.iter().filter(|one| one.age >= one.max_age);
    stale.map(|one| u64::from(cache::remove(&one.key))).sum::<u64>() > 0
}

/// Tells those who wait that they get nothing from here.
fn not_kept(place: &Place, writer: Option<Writer>, why: NotKept, fetched: &Fetched, had_one: bool) {
    let of_request = matches!(why, NotKept::Request | NotKept::Authorized);
    if of_request || fetched.status >= 500 {
        return;
    }
    if had_one {
        cache::remove(&place.key);
    }
    if let Some(writer) = writer {
        mark(writer, &Entry::Pass, PASS_SECONDS);
    }
}

/// Writes an entry without a body.
fn mark(writer: Writer, entry: &Entry, seconds: u64) -> bool {
    let Some(meta) = entry.encode() else { return false };
    let details =
        Details { content_type: String::new(), etag: String::new(), max_age: seconds, meta, tags: Vec::new() };
    let Ok(stream) = writer.begin(&details, Some(0)) else { return false };
    drop(stream);
    Writer::finish(writer).is_ok()
}

/// Returns what is stored beside a body; nothing if it is too much.
fn details(stored: &Stored) -> Option<Details> {
    let text = |name: &str, most: usize| {
        let value = stored.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        let value = value.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).unwrap_or_default();
        if value.len() <= most { value } else { String::new() }
    };
    let meta = Entry::Stored(stored.clone()).encode()?;
    // To the nearest second, so that what is fresh for one is not stale at once.
    let max_age = (stored.fresh_for(now()) + Duration::from_millis(500)).as_secs();
    let (content_type, etag) = (text("content-type", DETAIL_BYTES_MAX), text("etag", DETAIL_BYTES_MAX));
    Some(Details { content_type, etag, max_age, meta, tags: tags(stored) })
}

/// Returns the words by which a response is purged.
pub fn tags(stored: &Stored) -> Vec<String> {
    let text = |name: &str| {
        let value = stored.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        value.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).unwrap_or_default()
    };
    let words = ["surrogate-key", "cache-tag"].map(text).join(" ");
    let tags = words.split([',', ' ']).filter(|tag| (1..=TAG_BYTES_MAX).contains(&tag.len()));
    tags.take(TAGS_MAX).map(str::to_owned).collect()
}

/// Counts one.
pub fn count(name: &str) {
    // A counter over its quota costs nothing but the count.
    let _ = counters::add(name, 1);
}

/// Variants of one response; further ones are not stored while these are fresh.
const VARIANTS_MAX: u32 = 64;
/// Seconds for which the names that select variants are known without a response that says so.
const VARIANTS_SECONDS: u64 = 7 * 24 * 60 * 60;
/// Seconds for which requests for what is not stored do not wait for each other.
const PASS_SECONDS: u64 = 10;
/// How often an entry is begun while too many others are written.
const TRIES_MAX: u32 = 10;
/// Nanoseconds between two tries.
const PAUSE_NS: u64 = 20_000_000;
/// What the cache takes for an entry.
const TAGS_MAX: usize = 8;
const TAG_BYTES_MAX: usize = 64;
const DETAIL_BYTES_MAX: usize = 256;
