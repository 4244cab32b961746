// SPDX-License-Identifier: Apache-2.0
//! Making the segments of both qualities.

use netserv_http_caching::Entry;
use netserv_server_sdk::cache::{self, Details, Writer};
use netserv_server_sdk::http::write_all;
use netserv_server_sdk::jobs::{Output, Segments};
use netserv_server_sdk::media::{Error, Format};
use netserv_server_sdk::mpegts::Cutter;
use netserv_server_sdk::wasi::io::streams::OutputStream;

use super::playlist::{Lists, segment};
use crate::fill::count;
use crate::process::job::Running;
use crate::process::limits::{FAILED_SECONDS, RESULT_SECONDS, SEGMENT_MS, STREAM_SILENT_SECONDS};
use crate::process::part::Quality;
use crate::process::place::{FAILED, prefix};
use crate::process::reason::{Reason, failed};
use crate::process::result::{Original, output, version};

/// A stream on its way into the cache.
pub struct Making {
    running: Running,
    lists: Lists,
    qualities: [Cut; 2],
    /// The key of the lists.
    key: String,
    /// What is kept beside segments and lists.
    details: Details,
    /// The key of the original, and which version of it this is made of.
    original: String,
    version: String,
}

impl Making {
    /// Begins a stream, and waits for the first segment of each quality.
    ///
    /// Returns what there is, and who makes the rest.
    pub fn begin(
        original: &Original<'_>,
        writer: Writer,
        digest: &str,
        text: &str,
    ) -> Result<(Lists, Option<Making>), Reason> {
        let outputs = Quality::ALL.map(|quality| {
            let [video_bit_rate, audio_bit_rate] = quality.bit_rates();
            let (height, segments) = (quality.height(), Segments::Every(SEGMENT_MS));
            Output { height, video_bit_rate, audio_bit_rate, segments, ..output(Format::Mpegts, 0, text) }
        });
        let running = match original.begin(outputs.into()) {
            Ok(running) => running,
            Err(reason) => {
                original.give_up(writer, reason);
                return Err(reason);
            }
        };
        let qualities = Quality::ALL.map(|quality| Cut::new(quality, digest, prefix(&original.place.base)));
        let key = original.key_of(digest);
        let details = original.details(RESULT_SECONDS, b"hls\n");
        let (lists, version) = (Lists::default(), version(original.stored));
        let original_key = original.place.key.clone();
        let mut making = Making { running, lists, qualities, key, details, original: original_key, version };
        while !making.lists.is_begun() {
            if !making.turn() {
                let Making { running, lists, qualities, details, .. } = making;
                return match ended(running, lists, qualities) {
                    Ok((lists, _)) => kept(writer, &lists, &details).then_some((lists, None)).ok_or(Reason::NotStored),
                    Err(error) => {
                        let reason = failed(&error);
                        original.give_up(writer, reason);
                        Err(reason)
                    }
                };
            }
        }
        if !kept(writer, &making.lists, &making.details) {
            return Err(Reason::NotStored);
        }
        Ok((making.lists.clone(), Some(making)))
    }

    /// Makes the rest. Lists grow with each segment; if it fails, there is no stream for a while.
    pub fn run(mut self) {
        let mut told = self.lists.clone();
        while self.turn() {
            if !self.is_wanted() {
                return self.forget();
            }
            if self.lists != told {
                told.clone_from(&self.lists);
                let _ = cache::put(&self.key).map(|writer| kept(writer, &told, &self.details));
            }
        }
        let Making { running, lists, qualities, key, details, original, version } = self;
        let Ok(writer) = cache::put(&key) else { return };
        match ended(running, lists, qualities) {
            Ok((lists, keys)) => {
                kept(writer, &lists, &details);
                if !is_version(&original, &version) {
                    keys.iter().chain([&key]).for_each(|key| _ = cache::remove(key));
                }
            }
            Err(error) if failed(&error) == Reason::Failed => {
                let details = Details { max_age: FAILED_SECONDS, meta: FAILED.to_vec(), ..details };
                written(writer, &details, &[]);
            }
            // The lists are stale in a minute, and somebody begins anew.
            Err(_) => {}
        }
    }

    /// Returns whether there still is what this is made of: a purge takes it.
    fn is_wanted(&self) -> bool {
        is_version(&self.original, &self.version)
    }

    /// Takes what was made out of the cache: some of it may be younger than the purge.
    fn forget(self) {
        let keys: Vec<String> = self.qualities.iter().flat_map(Cut::keys).collect();
        let key = self.key.clone();
        // A segment that is being written is none any more.
        drop(self);
        keys.iter().chain([&key]).for_each(|key| _ = cache::remove(key));
    }

    /// Takes what comes next. Returns whether there was something.
    fn turn(&mut self) -> bool {
        let Some((place, bytes)) = self.running.next() else { return false };
        let Some(cut) = self.qualities.get_mut(place) else { return false };
        let lists = &mut self.lists;
        cut.push(&bytes, &self.details, |duration_ms| lists.push(place, duration_ms))
    }
}

/// Returns whether the cache has this version of an original.
fn is_version(key: &str, wanted: &str) -> bool {
    let entry = cache::stat(key).and_then(|entry| Entry::decode(&entry.details.meta));
    matches!(entry, Some(Entry::Stored(stored)) if version(&stored) == wanted)
}

/// Returns the lists of a stream that ended, and the keys of its segments.
fn ended(running: Running, mut lists: Lists, qualities: [Cut; 2]) -> Result<(Lists, Vec<String>), Error> {
    running.finish()?;
    let keys = qualities.iter().flat_map(Cut::keys).collect();
    for (place, cut) in qualities.into_iter().enumerate() {
        if let Some(duration_ms) = cut.end() {
            lists.push(place, duration_ms);
        }
    }
    if !lists.is_begun() {
        return Err(Error::Failed("the clip has no pictures".to_owned()));
    }
    count("processed");
    lists.is_whole = true;
    Ok((lists, keys))
}

/// Keeps lists. Those that grow are of use for as long as they do.
fn kept(writer: Writer, lists: &Lists, details: &Details) -> bool {
    let max_age = if lists.is_whole { RESULT_SECONDS } else { STREAM_SILENT_SECONDS };
    written(writer, &Details { max_age, ..details.clone() }, lists.encode().as_bytes())
}

fn written(writer: Writer, details: &Details, bytes: &[u8]) -> bool {
    let Ok(stream) = writer.begin(details, u64::try_from(bytes.len()).ok()) else { return false };
    let whole = write_all(&stream, bytes).is_ok();
    drop(stream);
    whole && Writer::finish(writer).is_ok()
}

/// One quality, cut into segments.
struct Cut {
    cutter: Cutter,
    quality: Quality,
    digest: String,
    /// What keys begin with.
    prefix: String,
    number: usize,
    open: Option<Open>,
}

/// A segment that is being written.
struct Open {
    stream: OutputStream,
    writer: Writer,
    rest: Vec<u8>,
    times: Times,
}

impl Cut {
    fn new(quality: Quality, digest: &str, prefix: String) -> Cut {
        Cut { cutter: Cutter::new(), quality, digest: digest.to_owned(), prefix, number: 0, open: None }
    }

    /// Takes bytes, and tells the milliseconds of each segment that they end. Returns whether it goes on.
    fn push(&mut self, bytes: &[u8], details: &Details, mut told: impl FnMut(u32) -> bool) -> bool {
        let mut goes_on = true;
        let mut cutter = std::mem::take(&mut self.cutter);
        cutter.push(bytes, |begins, packets| {
            if begins && goes_on {
                goes_on = self.open.take().is_none_or(|open| open.end().is_some_and(&mut told));
                self.open = if goes_on { self.begin(details) } else { None };
                goes_on &= self.open.is_some();
            }
            if let Some(open) = &mut self.open {
                goes_on &= open.push(packets);
            }
        });
        self.cutter = cutter;
        goes_on
    }

    /// Returns the keys of the segments that were begun.
    fn keys(&self) -> Vec<String> {
        (0..self.number).map(|number| self.key(number)).collect()
    }

    fn key(&self, number: usize) -> String {
        format!("{}{}", self.prefix, segment(self.quality, number, &self.digest))
    }

    fn begin(&mut self, details: &Details) -> Option<Open> {
        let key = self.key(self.number);
        self.number += 1;
        let writer = cache::put(&key).ok()?;
        let stream = writer.begin(details, None).ok()?;
        Some(Open { stream, writer, rest: Vec::new(), times: Times::default() })
    }

    /// Ends the last segment. Returns its milliseconds.
    fn end(self) -> Option<u32> {
        self.open?.end()
    }
}

impl Open {
    fn push(&mut self, packets: &[u8]) -> bool {
        self.times.read(packets);
        self.rest.extend(packets);
        if self.rest.len() < PIECE_BYTES {
            return true;
        }
        let written = write_all(&self.stream, &self.rest).is_ok();
        self.rest.clear();
        written
    }

    fn end(self) -> Option<u32> {
        let Open { stream, writer, rest, times } = self;
        write_all(&stream, &rest).ok()?;
        drop(stream);
        Writer::finish(writer).ok()?;
        Some(times.duration_ms())
    }
}

/// When the pictures of a segment are shown.
#[derive(Debug, Default)]
struct Times {
    first: Option<u64>,
    last: u64,
    pictures: u64,
}

impl Times {
    /// Reads the times of pictures that begin in packets (ISO/IEC 13818-1 §2.4.3.6).
    fn read(&mut self, packets: &[u8]) {
        for packet in packets.chunks_exact(PACKET_BYTES) {
            let Some(time) = presentation(packet) else { continue };
            self.first = Some(self.first.map_or(time, |first| first.min(time)));
            self.last = self.last.max(time);
            self.pictures += 1;
        }
    }

    /// Returns the time from the first picture to the end of the last one, which is shown as long as the others are.
    fn duration_ms(&self) -> u32 {
        let between = self.last.saturating_sub(self.first.unwrap_or(self.last));
        let ticks = if self.pictures > 1 { between * self.pictures / (self.pictures - 1) } else { TICKS_OF_ONE };
        u32::try_from(ticks / 90).unwrap_or(u32::MAX)
    }
}

/// Returns when a picture is shown that begins in a packet, in ticks of 90 kHz.
fn presentation(packet: &[u8]) -> Option<u64> {
    let [_, high, _, flags, rest @ ..] = packet else { return None };
    let adaptation = if flags & 0x20 == 0 { 0 } else { 1 + usize::from(*rest.first()?) };
    let payload = rest.get(adaptation..).filter(|_| high & 0x40 != 0 && flags & 0x10 != 0)?;
    let [0, 0, 1, 0xe0..=0xef, _, _, _, flags, _, time @ ..] = payload else { return None };
    let [a, b, c, d, e, ..] = time else { return None };
    let [a, b, c, d, e] = [a, b, c, d, e].map(|byte| u64::from(*byte));
    (flags & 0x80 != 0).then_some((a >> 1 & 7) << 30 | b << 22 | (c >> 1) << 15 | d << 7 | e >> 1)
}

const PACKET_BYTES: usize = 188;
/// Bytes that are written to the cache at once.
const PIECE_BYTES: usize = 64 * 1024;
/// How long a picture is shown that is alone.
const TICKS_OF_ONE: u64 = 3600;

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(stream: u8, ticks: u64) -> Vec<u8> {
        let mut packet = vec![0x47, 0x41, 0, 0x30, 1, 0x40, 0, 0, 1, stream, 0, 0, 0x80, 0x80, 5];
        let byte = |shift: u32, mask: u64| u8::try_from(ticks >> shift & mask).unwrap();
        packet.extend([
            0x21 | byte(30, 7) << 1,
            byte(22, 0xff),
            byte(15, 0x7f) << 1 | 1,
            byte(7, 0xff),
            byte(0, 0x7f) << 1 | 1,
        ]);
        packet.resize(PACKET_BYTES, 0xff);
        packet
    }

    #[test]
    fn a_segment_lasts_from_its_first_picture_to_the_end_of_its_last() {
        let mut times = Times::default();
        assert_eq!(times.duration_ms(), 40);
        // Pictures are not sent in the order in which they are shown.
        for ticks in [1 << 32, (1 << 32) + 7200, (1 << 32) + 3600] {
            times.read(&[picture(0xc0, 5), picture(0xe0, ticks)].concat());
        }
        assert_eq!((times.pictures, times.duration_ms()), (3, 120));
        let mut odd = picture(0xe0, 1);
        for length in 0..20 {
            assert_eq!(presentation(&odd[..length]), None);
        }
        odd[4] = 0xff;
        assert_eq!(presentation(&odd), None);
    }
}
