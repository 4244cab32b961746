// SPDX-License-Identifier: Apache-2.0
//! Asking the origin, and storing what it says.

use std::time::Duration;

use netserv_http_caching::{Entry, Head, NotKept, Refresh, Stored, Times, forward, variant_key};
use netserv_server_sdk::cache::{self, Details, Error, Reader, Writer};
use netserv_server_sdk::http::{ErrorCode, Fetched, Method, fetch, write_all};
use netserv_server_sdk::wasi::io::streams::OutputStream;
use netserv_server_sdk::wasi::random::random::get_random_u64;
use netserv_server_sdk::{cache_read, counters, kv, unread};

use crate::entries::{mark, put};
use crate::forwarded;
use crate::found::{self, Held, Place};
use crate::purge::VARIANTS_MAX;
use crate::site::{Site, now};
use crate::usage::Counted;
use crate::{purge, stall};

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
    /// Where it goes.
    key: String,
    /// The counter of what comes.
    counter: String,
    /// Bytes that came, and those that the origin promised.
    came: u64,
    length: Option<u64>,
}

/// What came of writing a piece.
enum Turn {
    /// So many bytes are there.
    Piece(u64),
    /// There are no more, or the cache takes none.
    End,
    /// The origin broke off.
    Broken,
}

/// Asks the origin for what goes to a place, by the validators of what is stored there.
///
/// Without a writer, nobody waits for it, and what is stored there may be fresh.
pub fn ask(site: &Site, place: &Place, writer: Option<Writer>, held: Option<&Held>) -> Outcome {
    let (mut place, mut writer) = (place.clone(), writer);
    for left in (0..PURGED_MAX).rev() {
        match ask_once(site, &place, writer.take(), held, left > 0) {
            Ok(outcome) => return outcome,
            Err(Purged { key, next }) => (place.key, writer) = (key, next),
        }
    }
    Outcome::Failed(ErrorCode::HttpProtocolError)
}

/// What was known when the origin was asked.
struct Before<'a> {
    /// What was stored.
    held: Option<&'a Held>,
    /// The place's writer. Those who joined it wait for the response.
    writer: Option<Writer>,
    /// The number of the last purge.
    purged: Option<u64>,
}

/// What was purged or replaced before its own writer could read it: who had joined has it, and it is asked for anew.
struct Purged {
    key: String,
    next: Option<Writer>,
}

/// Asks the origin, and stores what it says if that is wanted.
fn ask_once(
    site: &Site,
    place: &Place,
    writer: Option<Writer>,
    held: Option<&Held>,
    is_stored: bool,
) -> Result<Outcome, Purged> {
    let request = site.get();
    let mut headers = forward::fill(&request, &site.policy);
    forwarded::tell(&mut headers);
    headers.extend(held.map(|held| held.stored.conditions(&request)).unwrap_or_default());
    let (requested, purged) = (now(), purge::last());
    let answer = fetch(&site.scheme, &site.authority, &Method::Get, request.path, &headers);
    stall::asked(&site.label, &answer);
    let fetched = match answer {
        Ok(fetched) => fetched,
        Err(error) => return Ok(Outcome::Failed(error)),
    };
    let times = Times { requested, received: now() };
    let head = Head { status: fetched.status, headers: &fetched.headers };
    if let Some(held) = held
        && fetched.status == 304
    {
        count("refreshed");
        return Ok(match held.stored.refreshed(&site.policy, &request, &head, &times) {
            // It is the same for this viewer, and stays what it is for others.
            Refresh::Kept(stored) if stored.is_less_than(&held.stored) => Outcome::Refreshed(stored),
            refreshed @ (Refresh::Kept(_) | Refresh::Once(_) | Refresh::Gone | Refresh::Same) => same(held, refreshed),
        });
    }
    match site.policy.keep(&request, &head, &times) {
        Ok(_) if !is_stored => Ok(Outcome::Fetched(fetched, times)),
        Ok(stored) if writer.is_none() && held.is_some_and(|held| stored.is_less_than(&held.stored)) => {
            Ok(Outcome::Fetched(fetched, times))
        }
        Ok(stored) => begin(site, place, Before { held, writer, purged }, stored, fetched, times),
        Err(why) => {
            // What one viewer is told says nothing of what is stored for others.
            let of_viewer =
                matches!(why, NotKept::Stale | NotKept::Personal) && held.is_some_and(|held| !held.stored.is_personal);
            if !of_viewer || writer.is_some() {
                not_kept(place, writer, why, &fetched, held.is_some());
            }
            Ok(Outcome::Fetched(fetched, times))
        }
    }
}

/// Stores what a 304 says.
fn same(held: &Held, refreshed: Refresh) -> Outcome {
    match refreshed {
        Refresh::Kept(stored) => {
            store_head(held, &stored);
            Outcome::Refreshed(stored)
        }
        Refresh::Once(stored) => {
            cache::remove(&held.place.key);
            Outcome::Refreshed(stored)
        }
        Refresh::Gone | Refresh::Same => Outcome::Failed(ErrorCode::HttpProtocolError),
    }
}

/// Stores new headers of a body, unless another one has come in its place.
pub fn store_head(held: &Held, stored: &Stored) {
    let kept = details(stored).is_some_and(|details| cache_read::update(&held.reader, &details).is_ok());
    if !kept {
        cache::remove(&held.place.key);
    }
}

impl Fill {
    /// Returns what the origin says of the response's age.
    pub fn age(&self) -> Vec<(String, Vec<u8>)> {
        let said = self.fetched.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("age"));
        said.cloned().collect()
    }

    /// Writes what comes from the origin, and asks `goes_on` behind each piece, by its length. Who reads it fails if that
    /// does. Returns whether all of it is there.
    pub fn run(mut self, mut goes_on: impl FnMut(u64) -> bool) -> bool {
        loop {
            match self.turn() {
                Turn::Piece(length) if goes_on(length) => {}
                Turn::End => return self.finish(),
                Turn::Piece(_) | Turn::Broken => return false,
            }
        }
    }

    /// Writes what comes from the origin for as long as somebody reads it, or little of it is left.
    pub fn run_for_readers(mut self) {
        loop {
            match self.turn() {
                Turn::Piece(_) if !is_little(self.came, self.length) && unread::give_up(&self.writer) => return,
                Turn::Piece(_) => {}
                Turn::End => {
                    self.finish();
                    return;
                }
                Turn::Broken => return,
            }
        }
    }

    /// Writes no more than about so many bytes of what comes from the origin. Returns what is left to do.
    pub fn run_for(mut self, bytes: u64) -> Option<Fill> {
        let mut left = bytes;
        loop {
            match self.turn() {
                Turn::Piece(length) => match left.checked_sub(length) {
                    Some(rest) => left = rest,
                    None => return Some(self),
                },
                Turn::End => {
                    self.finish();
                    return None;
                }
                Turn::Broken => return None,
            }
        }
    }

    /// Writes the next piece.
    fn turn(&mut self) -> Turn {
        let chunk = match self.fetched.chunk() {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Turn::End,
            Err(_) => return Turn::Broken,
        };
        let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        // A counter over its quota costs nothing but the count.
        let _ = counters::add(&self.counter, length);
        self.came += length;
        if write_all(&self.stream, &chunk).is_err() { Turn::End } else { Turn::Piece(length) }
    }

    /// Ends it. Requests for what the cache does not take, since it is too large or too slow, or for anything while its disk takes
    /// nothing, go on each by itself for a while. Returns whether it is there.
    fn finish(self) -> bool {
        drop(self.stream);
        match Writer::finish(self.writer) {
            Ok(()) => return true,
            Err(Error::TooLarge | Error::Stalled) => {
                if let Some(writer) = put(&self.key) {
                    mark(writer, &Entry::Pass, GIVEN_UP_SECONDS);
                }
            }
            Err(Error::Unavailable) => {
                let until = now().as_secs() + UNWELL_SECONDS;
                // Without room there, each is tried.
                let _ = kv::set(UNWELL, &until.to_le_bytes());
            }
            Err(Error::Invalid | Error::Busy | Error::TooManyReaders | Error::Abandoned) => {}
        }
        false
    }
}

/// Returns whether so little of a body is left that it is fetched for nobody: no more than came already, or [`REST_BYTES_MAX`].
fn is_little(came: u64, length: Option<u64>) -> bool {
    length.is_some_and(|length| length.saturating_sub(came) <= came.max(REST_BYTES_MAX))
}

/// Returns whether the cache's disk took nothing a moment ago.
pub fn is_unwell() -> bool {
    let until = kv::get(UNWELL).ok().flatten().and_then(|until| Some(u64::from_le_bytes(until.try_into().ok()?)));
    let now = now().as_secs();
    // The clock may have been set.
    until.is_some_and(|until| (now..=now + UNWELL_SECONDS).contains(&until))
}

fn begin(
    site: &Site,
    place: &Place,
    before: Before<'_>,
    mut stored: Stored,
    fetched: Fetched,
    times: Times,
) -> Result<Outcome, Purged> {
    stored.number = get_random_u64();
    let passed = |fetched| Ok(Outcome::Fetched(fetched, times));
    let names = stored.vary();
    let key = if names.is_empty() {
        Some(place.base.clone())
    } else {
        variant_key(&place.base, &names, &site.get()).filter(|key| has_room(place, key))
    };
    let (Some(key), Some(details)) = (key, details(&stored)) else { return passed(fetched) };
    // What has no writer is asked for beside what is there. If that has gone since, somebody may have purged or changed it.
    if before.writer.is_none() && !found::is_as_before(place, before.held) {
        return passed(fetched);
    }
    // The cache ends a writer that is older than a purge. One that is younger may have been asked for before the purge.
    let is_older = before.writer.is_some() && place.key == key;
    let Some(writer) = at(place, &key, before.writer, names) else { return passed(fetched) };
    if !is_older && purge::last() != before.purged {
        return passed(fetched);
    }
    let length = fetched.header("content-length").and_then(|text| std::str::from_utf8(text).ok()?.trim().parse().ok());
    let has_content = !matches!(fetched.status, 204 | 205);
    let Ok(stream) = writer.begin(&details, if has_content { length } else { Some(0) }) else {
        return passed(fetched);
    };
    let opened = cache::open_or_join(&key);
    let counter = Counted::OriginBytes.of(&site.label);
    let fill = Fill { fetched, stream, writer, key: key.clone(), counter, came: 0, length };
    // Somebody else's request for the same may have brought another one in its place.
    let is_own = |reader: &Reader| match Entry::decode(&reader.entry().details.meta) {
        Some(Entry::Stored(found)) => found.number == stored.number,
        Some(Entry::Variants(_) | Entry::Pass) | None => false,
    };
    let next = match opened {
        Ok(cache::Opened::Reader(reader)) if is_own(&reader) => return Ok(Outcome::Filling(reader, stored, fill)),
        Ok(cache::Opened::Writer(next)) => Some(next),
        Ok(cache::Opened::Reader(_)) | Err(_) => None,
    };
    fill.run(|_| true);
    Err(Purged { key, next })
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

/// Returns whether there is room for a variant. Stale ones give way.
fn has_room(place: &Place, key: &str) -> bool {
    if cache::stat(key).is_some() {
        return true;
    }
    // What servers said on connections that were taken over is beside the variants, and bounded by its own.
    let (of_base, servers) = (format!("{}\n", place.base), format!("{}\n@\u{7f}", place.base));
    let Ok(all) = cache::list(&of_base, Some(&servers), VARIANTS_MAX) else { return false };
    if all.len() < usize::try_from(VARIANTS_MAX).unwrap_or(usize::MAX) {
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

/// Bytes of a body that are fetched although nobody reads it.
const REST_BYTES_MAX: u64 = 1 << 20;
/// Seconds for which the names that select variants are known without a response that says so.
const VARIANTS_SECONDS: u64 = 7 * 24 * 60 * 60;
/// Seconds for which requests for what is not stored do not wait for each other.
const PASS_SECONDS: u64 = 10;
/// The same for what the cache did not take.
const GIVEN_UP_SECONDS: u64 = 600;
/// How often a response is asked for that is purged each time while it comes. The last one is not stored.
const PURGED_MAX: usize = 4;
/// The key of the time until which the disk is left alone, and seconds until then.
const UNWELL: &[u8] = b"unwell";
const UNWELL_SECONDS: u64 = 10;
/// What the cache takes for an entry.
const TAGS_MAX: usize = 8;
const TAG_BYTES_MAX: usize = 64;
const DETAIL_BYTES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_little_beside_what_came() {
        for (came, length, expected) in [
            (0, Some(REST_BYTES_MAX), true),
            (0, Some(REST_BYTES_MAX + 1), false),
            (5 << 20, Some(10 << 20), true),
            ((5 << 20) - 1, Some(10 << 20), false),
            (9 << 20, None, false),
            (2, Some(1), true),
        ] {
            assert_eq!(is_little(came, length), expected, "{came} {length:?}");
        }
    }
}
