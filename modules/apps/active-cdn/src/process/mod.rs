// SPDX-License-Identifier: Apache-2.0
//! What is made of responses at the edge, by the provider's rules: texts over pictures, smaller pictures, streams.
//!
//! A result has a key behind its original's, so that a purge takes both, and is of use while the original is: every request
//! is decided by the original first. Of many requests for a result at a time one has the node's ffmpeg make it.

mod hls;
mod job;
mod limits;
mod part;
mod picture;
pub mod place;
mod reason;
mod result;
pub mod rules;
mod text;

use netserv_http_caching::{CacheStatus, Stored};
use netserv_server_sdk::cache::{Range, Reader};
use netserv_server_sdk::http::{self, Response};
use netserv_server_sdk::media::{Format, Source};

use crate::answer::sent;
use crate::fill::count;
use crate::found;
use crate::site::Site;
use limits::HEAD_BYTES_MAX;
use part::Part;
pub use reason::Reason;
use result::{Original, bytes_max};
use rules::{Plan, Task};

/// Checks the provider's rules, when the module begins. A bad one ends it, with what is wrong.
pub fn check() {
    if let Err(why) = rules::check().and_then(|()| text::check()) {
        panic!("{why}");
    }
}

/// Returns how many bytes of an original that is on its way have to be there before it is answered, unless it ends before.
pub fn waits_for(site: &Site, reader: &Reader, stored: &Stored) -> Option<u64> {
    let plan = site.plan.as_ref().filter(|plan| !plan.is_segment() && permitted(site, stored).is_ok())?;
    let most = bytes_max(plan.kind(stored).ok()?.0);
    // One that is too long is its own answer.
    reader.entry().size.is_none_or(|size| size <= most).then_some(most)
}

/// Answers with an original that is on its way and turned out to be too long.
pub fn too_long(site: &Site, reader: &Reader, stored: &Stored, status: CacheStatus) -> Response {
    unprocessed(site, reader, stored, status, Reason::Long)
}

/// Returns the part of a stream that is asked for with `GET`.
pub fn stream_of(site: &Site) -> Option<&Part> {
    match &site.plan.as_ref().filter(|_| site.request().method == "GET")?.task {
        Task::Hls(part) => Some(part),
        Task::Same | Task::Width(_) => None,
    }
}

/// Answers with what is made of an original, or with the original.
pub fn answer(site: &Site, plan: &Plan, reader: &Reader, stored: &Stored, status: CacheStatus) -> Response {
    let made = permitted(site, stored).and_then(|()| plan.make(site, reader, stored, status));
    match made {
        Ok(response) => response,
        Err(reason) => unprocessed(site, reader, stored, status, reason),
    }
}

/// Answers with what there is in the place of what was to be made.
fn unprocessed(site: &Site, reader: &Reader, stored: &Stored, status: CacheStatus, reason: Reason) -> Response {
    count("unprocessed");
    match site.plan.as_ref().map(|plan| &plan.task) {
        Some(Task::Hls(part)) => instead(site, part, reason),
        Some(Task::Same | Task::Width(_)) | None => {
            let mut response = sent(site, reader, stored, status);
            response.headers.push(reason.field());
            response
        }
    }
}

/// Answers in the place of a part of a stream that there is not.
pub fn instead(site: &Site, part: &Part, reason: Reason) -> Response {
    let mut response = hls::instead(site.request().path, part);
    response.headers.push(reason.field());
    response
}

impl Plan {
    fn is_segment(&self) -> bool {
        matches!(&self.task, Task::Hls(Part::Segment(_)))
    }

    fn make(&self, site: &Site, reader: &Reader, stored: &Stored, status: CacheStatus) -> Result<Response, Reason> {
        let (source, format) = self.kind(stored)?;
        let place = found::place_of(site, stored).ok_or(Reason::NotStored)?;
        let text = if self.overlay { text::here() } else { String::new() };
        let original = Original { site, place, reader, stored, status, source };
        if !self.is_segment() && original.is_long() {
            return Err(Reason::Long);
        }
        match &self.task {
            Task::Hls(part) => hls::answer(&original, part, &text),
            Task::Same if text.is_empty() => Err(Reason::Same),
            Task::Same => result::answer(&original, format, 0, &text),
            Task::Width(width) => {
                // One that does not say how wide it is may be no wider.
                let width = if picture_width(reader).is_none_or(|has| has <= *width) { 0 } else { *width };
                if width == 0 && text.is_empty() {
                    return Err(Reason::Same);
                }
                result::answer(&original, format, width, &text)
            }
        }
    }

    /// Returns how a job takes an original, and what it makes of it.
    fn kind(&self, stored: &Stored) -> Result<(Source, Format), Reason> {
        let of = |name: &str| {
            let value = stored.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            value.map(|(_, value)| String::from_utf8_lossy(value).to_ascii_lowercase())
        };
        if stored.status != 200 || of("content-encoding").is_some_and(|coding| coding != "identity") {
            return Err(Reason::Kind);
        }
        let kind = of("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let is_picture = kind.starts_with("image/");
        let taken = match kind {
            "image/jpeg" => (Source::Jpeg, Format::Jpeg),
            "image/png" => (Source::Png, Format::Png),
            "video/mp4" => (Source::Mp4, Format::FragmentedMp4),
            "video/webm" => (Source::Matroska, Format::Webm),
            "video/mp2t" => (Source::Mpegts, Format::Mpegts),
            _ => return Err(Reason::Kind),
        };
        match self.task {
            Task::Width(_) if !is_picture => Err(Reason::Kind),
            Task::Hls(_) if is_picture => Err(Reason::Kind),
            Task::Same | Task::Width(_) | Task::Hls(_) => Ok(taken),
        }
    }
}

/// Returns whether a response may be changed.
fn permitted(site: &Site, stored: &Stored) -> Result<(), Reason> {
    let forbids = |headers: &[(String, Vec<u8>)]| {
        let values = headers.iter().filter(|(name, _)| {
            name.eq_ignore_ascii_case("cache-control") || name.eq_ignore_ascii_case("cdn-cache-control")
        });
        let mut words = values.flat_map(|(_, value)| value.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
        words.any(|word| word.eq_ignore_ascii_case(b"no-transform"))
    };
    if forbids(site.request().headers) || forbids(&stored.headers) { Err(Reason::NoTransform) } else { Ok(()) }
}

/// Returns the width of a picture, if its head says it.
fn picture_width(reader: &Reader) -> Option<u32> {
    let stream = reader.body(Some(Range { start: 0, length: Some(HEAD_BYTES_MAX) })).ok()?;
    let mut head = Vec::new();
    while let Ok(Some(bytes)) = http::read(&stream) {
        head.extend(bytes);
        if let Some(width) = picture::width(&head) {
            return Some(width);
        }
    }
    None
}
