// SPDX-License-Identifier: Apache-2.0
//! Results of one piece: pictures and clips.

use netserv_http_caching::{CacheStatus, Stored};
use netserv_server_sdk::cache::{self, Details, Opened, Reader, Writer};
use netserv_server_sdk::http::{Response, write_all};
use netserv_server_sdk::jobs::{Order, Output, Segments};
use netserv_server_sdk::media::{AudioCodec, Corner, Error, Format, Overlay, Source, VideoCodec};
use netserv_server_sdk::wasi::io::streams::OutputStream;

use super::job::Running;
use super::limits::{CLIP_BYTES_MAX, FAILED_SECONDS, FIRST_BYTES_MAX, PICTURE_BYTES_MAX, RESULT_SECONDS};
use super::place::{FAILED, open, prefix};
use super::reason::{HEADER, Reason, failed};
use crate::answer::sent;
use crate::fill::{self, count};
use crate::found::Place;
use crate::site::Site;

/// What something is made of.
pub struct Original<'a> {
    /// The request's target.
    pub site: &'a Site,
    /// Where it is.
    pub place: Place,
    /// Its body.
    pub reader: &'a Reader,
    /// Its head.
    pub stored: &'a Stored,
    /// How it was found.
    pub status: CacheStatus,
    /// What it is to a job.
    pub source: Source,
}

impl Original<'_> {
    /// Returns a word for what is made of this version of the original, in hexadecimal digits.
    pub fn digest(&self, task: &str, text: &str) -> String {
        let version = format!("{}\n{}\n{task}\n{text}", self.place.key, version(self.stored));
        format!("{:016x}", digest(version.as_bytes()))
    }

    /// Returns whether it is longer than what is processed of its kind.
    pub fn is_long(&self) -> bool {
        let most = bytes_max(self.source);
        // Of one that came in chunks the length is known once it is there; the job bounds it until then.
        self.reader.entry().size.is_some_and(|size| size > most)
    }

    /// Returns the key of a result.
    pub fn key_of(&self, name: &str) -> String {
        prefix(&self.place.base) + name
    }

    /// Begins a job over the original.
    ///
    /// # Errors
    /// There is none to be had.
    pub fn begin(&self, outputs: Vec<Output>) -> Result<Running, Reason> {
        let body = self.reader.body(None).map_err(|_| Reason::Busy)?;
        let order = Order { source: self.source, start_ms: 0, duration_ms: 0, live: None, outputs };
        Running::begin(body, &order).map_err(|error| failed(&error))
    }

    /// Returns the head of a result.
    pub fn head(&self, etag: &str, content_type: Option<&str>) -> Stored {
        let mut head = self.stored.clone();
        let of_original = |name: &str| {
            let is_replaced = content_type.is_some() && name.eq_ignore_ascii_case("content-type");
            is_replaced || OF_ORIGINAL.iter().any(|own| name.eq_ignore_ascii_case(own))
        };
        head.headers.retain(|(name, _)| !of_original(name));
        head.headers.push(("etag".to_owned(), format!("\"{etag}\"").into_bytes()));
        head.headers.extend(content_type.map(|kind| ("content-type".to_owned(), kind.as_bytes().to_vec())));
        head
    }

    /// Returns what is kept beside a result.
    pub fn details(&self, max_age: u64, meta: &[u8]) -> Details {
        let tags = fill::tags(self.stored);
        Details { content_type: String::new(), etag: String::new(), max_age, meta: meta.to_vec(), tags }
    }

    /// Lets others try, or nobody for a while if it would be of no use.
    pub fn give_up(&self, writer: Writer, reason: Reason) {
        if reason == Reason::Failed
            && let Ok(stream) = writer.begin(&self.details(FAILED_SECONDS, FAILED), Some(0))
        {
            drop(stream);
            let _ = Writer::finish(writer);
        }
    }
}

/// Returns what tells versions of an original apart.
pub fn version(stored: &Stored) -> String {
    let of = |name: &str| {
        let value = stored.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        value.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).unwrap_or_default()
    };
    let (etag, modified) = (of("etag"), of("last-modified"));
    // Without a validator, it stays for as long as its entry does.
    let received = if etag.is_empty() && modified.is_empty() { stored.received.as_millis() } else { 0 };
    format!("{etag}\n{modified}\n{received}")
}

/// Returns how long an original may be.
pub fn bytes_max(source: Source) -> u64 {
    if matches!(source, Source::Jpeg | Source::Png) { PICTURE_BYTES_MAX } else { CLIP_BYTES_MAX }
}

/// Returns an output with a text over it, if there is one.
pub fn output(format: Format, width: u32, text: &str) -> Output {
    let is_picture = matches!(format, Format::Jpeg | Format::Png);
    Output {
        format,
        video: VideoCodec::Standard,
        audio: if is_picture { AudioCodec::None } else { AudioCodec::Standard },
        width,
        height: 0,
        video_bit_rate: 0,
        audio_bit_rate: 0,
        grey: false,
        segments: Segments::Free,
        overlay: (!text.is_empty()).then(|| (Overlay::Text(text.to_owned()), Corner::BottomLeft)),
    }
}

/// Answers with the original in a width, 0 for its own, and with a text over it.
pub fn answer(original: &Original<'_>, format: Format, width: u32, text: &str) -> Result<Response, Reason> {
    let words = match (width, text.is_empty()) {
        (0, _) => "overlay".to_owned(),
        (_, true) => format!("resize={width}"),
        (_, false) => format!("resize={width}; overlay"),
    };
    let digest = original.digest(&words, text);
    let key = original.key_of(&digest);
    let (reader, making, how) = match open(&key)? {
        Opened::Reader(reader) if reader.entry().size.is_none() => (reader, None, "joined"),
        Opened::Reader(reader) => (reader, None, "hit"),
        Opened::Writer(writer) => {
            let making = Rest::begin(original, writer, output(format, width, text))?;
            let Ok(Opened::Reader(reader)) = cache::open_or_join(&key) else { return Err(Reason::Busy) };
            (reader, making, "made")
        }
    };
    let head = original.head(&digest, None);
    let mut response = sent(original.site, &reader, &head, original.status);
    response.headers.push((HEADER.to_owned(), format!("{words}; {how}").into_bytes()));
    Ok(match making {
        None => response,
        Some(making) => {
            let sorry = original.details(FAILED_SECONDS, FAILED);
            response.then(move || making.run(&key, &sorry))
        }
    })
}

/// A result that is longer than what was waited for.
struct Rest {
    running: Running,
    stream: OutputStream,
    writer: Writer,
}

impl Rest {
    /// Begins to make a result; of a short one, there is nothing left to do.
    fn begin(original: &Original<'_>, writer: Writer, output: Output) -> Result<Option<Rest>, Reason> {
        let mut running = match original.begin(vec![output]) {
            Ok(running) => running,
            Err(reason) => {
                original.give_up(writer, reason);
                return Err(reason);
            }
        };
        let mut first = Vec::new();
        while first.len() < FIRST_BYTES_MAX
            && let Some((_, bytes)) = running.next()
        {
            first.extend(bytes);
        }
        let details = original.details(RESULT_SECONDS, b"made\n");
        let begin = |size| {
            let stream = writer.begin(&details, size).ok()?;
            write_all(&stream, &first).ok()?;
            Some(stream)
        };
        if first.len() >= FIRST_BYTES_MAX {
            let stream = begin(None).ok_or(Reason::NotStored)?;
            return Ok(Some(Rest { running, stream, writer }));
        }
        match running.finish() {
            Ok(()) if !first.is_empty() => {
                drop(begin(u64::try_from(first.len()).ok()).ok_or(Reason::NotStored)?);
                Writer::finish(writer).map_err(|_| Reason::NotStored)?;
                count("processed");
                Ok(None)
            }
            ended => {
                let reason = failed(&ended.err().unwrap_or_else(|| Error::Failed("nothing came out".to_owned())));
                original.give_up(writer, reason);
                Err(reason)
            }
        }
    }

    /// Makes the rest. If that fails, who reads it sees it break off, and the original is the answer for a while.
    fn run(self, key: &str, sorry: &Details) {
        let Rest { mut running, stream, writer } = self;
        let mut written = true;
        while written && let Some((_, bytes)) = running.next() {
            written = write_all(&stream, &bytes).is_ok();
        }
        drop(stream);
        let ended = if written { running.finish().map_err(|error| failed(&error)) } else { Err(Reason::NotStored) };
        if ended.is_ok() {
            if Writer::finish(writer).is_ok() {
                count("processed");
            }
            return;
        }
        drop(writer);
        if ended == Err(Reason::Failed)
            && let Ok(writer) = cache::put(key)
            && let Ok(stream) = writer.begin(sorry, Some(0))
        {
            drop(stream);
            let _ = Writer::finish(writer);
        }
    }
}

/// Returns the digest FNV-1a of 64 bits, the same on every node.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// What is said of the original's bytes and not of a result's.
const OF_ORIGINAL: [&str; 9] = [
    "etag",
    "last-modified",
    "content-length",
    "content-md5",
    "content-digest",
    "repr-digest",
    "digest",
    "content-encoding",
    "accept-ranges",
];
