// SPDX-License-Identifier: Apache-2.0
//! How connections go on with the next version of the module. Each of a stream's has some of its frames along, the newest first and each
//! frame once. Where these are not all that a listener lacks, since listeners are few, it gets the others before.

use std::net::SocketAddr;

use netserv_server_sdk::tcp::Connection;

use super::{Reflector, Role};
use crate::frames::{Framer, HEADER_BYTES, parse_header};
use crate::host::{Counter, Host};
use crate::icy::{Demuxer, Muxer};
use crate::joining::is_alone;
use crate::limits::{CARRIED_TITLES_BYTES_MAX, STATE_BYTES_MAX, TITLE_BYTES_MAX};
use crate::listener::{Listener, Titles};
use crate::ring::Ring;
use crate::stream::{Carried, Source, Stream, Told};
use crate::wire::{Reader, Writer};

/// What a connection is, in what is said of it.
const ASKING: u64 = 1;
const LISTENER: u64 = 2;
const SOURCE: u64 = 3;
const PASSED: u64 = 4;
const WATCHED: u64 = 5;

impl Reflector {
    /// Says what the next version has to know of a connection; nothing if it ends with this one.
    pub fn export(&mut self, host: &mut dyn Host, id: Connection) -> Option<Vec<u8>> {
        let mut writer = Writer::default();
        match self.roles.get(&id) {
            Some(Role::Asking { server, bytes, .. }) => asking(&mut writer, *server, bytes),
            Some(Role::Watched { server, bytes, .. }) => {
                writer.number(WATCHED).bytes(server.to_string().as_bytes()).bytes(bytes);
            }
            Some(Role::Client(number)) => {
                let stream = self.streams.get_mut(number)?;
                if let Some((_, sent)) = stream.waiting.get(&id) {
                    // It asks anew.
                    asking(&mut writer, stream.server, sent);
                } else {
                    stream.settle(host);
                    listener(&mut writer, host, stream, id)?;
                }
            }
            Some(Role::Source(number)) => {
                let stream = self.streams.get_mut(number).filter(|stream| stream.source_id() == Some(id))?;
                stream.settle(host);
                source(&mut writer, stream)?;
            }
            None => {
                if !self.passing.export(id, writer.number(PASSED)) {
                    return None;
                }
            }
        }
        Some(writer.finish())
    }

    /// Takes a connection of the version before. Returns whether it could.
    pub fn import(&mut self, host: &mut dyn Host, now_ms: u64, id: Connection, state: &[u8]) -> bool {
        let mut reader = Reader(state);
        self.take(host, now_ms, id, &mut reader).is_some()
    }

    fn take(&mut self, host: &mut dyn Host, now_ms: u64, id: Connection, from: &mut Reader<'_>) -> Option<()> {
        match from.number()? {
            ASKING => {
                let (server, bytes) = (from.text()?.parse().ok()?, from.bytes()?.to_vec());
                self.roles.insert(id, Role::Asking { server, bytes, since_ms: now_ms });
                // What it has to say may have come.
                if !matches!(self.asked(host, now_ms, id), netserv_server_sdk::tcp::Action::Pass) {
                    host.close(id);
                }
            }
            WATCHED => {
                let (server, bytes) = (from.text()?.parse().ok()?, from.bytes()?.to_vec());
                self.roles.insert(id, Role::Watched { server, bytes, since_ms: now_ms });
            }
            LISTENER => {
                let number = self.stream_of(from, now_ms)?;
                let (at, behind_us) = (from.place()?, from.place()?);
                let (interval, left, is_within_frame) = (from.size()?, from.size()?, from.number()? > 0);
                let muxer = if interval > 0 { Some(Muxer::at(interval, left)?) } else { None };
                let stream = self.streams.get_mut(&number)?;
                let play_us = stream.ring.end_us().saturating_sub(behind_us);
                let (since_ms, blocked_ms) = (now_ms, None);
                let listener = Listener { at, play_us, since_ms, muxer, blocked_ms, is_within_frame };
                stream.listeners.insert(id, listener);
                self.roles.insert(id, Role::Client(number));
                host.count(Counter::Imported, 1);
            }
            SOURCE => {
                let number = self.stream_of(from, now_ms)?;
                let (interval, state, left) = (from.size()?, u8::try_from(from.number()?).ok()?, from.size()?);
                let demuxer = Demuxer::at(interval, state, left, from.bytes()?)?;
                let (is_paused, framer) = (from.number()? > 0, Framer::with(from.bytes()?.to_vec()));
                let stream = self.streams.get_mut(&number)?;
                stream.framer = framer;
                stream.source = Source::Live { id, demuxer, is_paused };
                stream.resume(now_ms, false);
                self.roles.insert(id, Role::Source(number));
            }
            PASSED => self.passing.import(id, from)?,
            _ => return None,
        }
        Some(())
    }

    /// Returns the stream that is described, made if need be, with what of it has come along.
    fn stream_of(&mut self, from: &mut Reader<'_>, now_ms: u64) -> Option<u32> {
        let server: SocketAddr = from.text()?.parse().ok()?;
        let (key, request) = (from.text()?.to_owned(), from.bytes()?.to_vec());
        let (media_type, onward) = (from.text()?.to_owned(), from.bytes()?.to_vec());
        let flags = from.number()?;
        let (has_titles, is_radio) = (flags & HAS_TITLES > 0, flags & IS_RADIO > 0);
        let (end, end_us, opening) = (from.place()?, from.place()?, from.bytes()?.to_vec());
        let mut titles = Titles::default();
        for _ in 0..from.number()? {
            titles.push(from.place()?, from.bytes()?);
        }
        let part = ring(from)?;
        let known = self.streams.iter().find(|(_, stream)| stream.server == server && stream.key == key);
        let number = known.map(|(number, _)| *number).unwrap_or_else(|| {
            let mut stream = Stream::new(server, key, flags & HAS_ORIGIN > 0, request);
            stream.answer = Some(Told { media_type, onward, has_titles, is_radio });
            (stream.ring, stream.titles, stream.opening) = (Ring::at(end, end_us), titles, opening);
            stream.resume(now_ms, flags & IS_OVER > 0);
            self.new_stream(stream)
        });
        self.streams.get_mut(&number)?.ring.prepend(&part);
        Some(number)
    }
}

fn asking(writer: &mut Writer, server: SocketAddr, bytes: &[u8]) {
    writer.number(ASKING).bytes(server.to_string().as_bytes()).bytes(bytes);
}

fn listener(writer: &mut Writer, host: &mut dyn Host, stream: &mut Stream, id: Connection) -> Option<()> {
    let begin = describe(writer.number(LISTENER), stream, LISTENER_BYTES)?;
    let one = stream.listeners.get_mut(&id)?;
    one.flush(host, id, (&stream.ring, &stream.titles), begin);
    let behind_us = stream.ring.end_us().saturating_sub(one.play_us);
    let (interval, left) = one.muxer.map_or((0, 0), |muxer| muxer.place());
    writer
        .number(one.at)
        .number(behind_us)
        .number(interval as u64)
        .number(left as u64)
        .number(one.is_within_frame.into());
    Some(())
}

fn source(writer: &mut Writer, stream: &mut Stream) -> Option<()> {
    let Source::Live { demuxer, is_paused, .. } = stream.source.clone() else { return None };
    let left_bytes = stream.framer.left().len();
    describe(writer.number(SOURCE), stream, SOURCE_BYTES + left_bytes)?;
    let (interval, state, left, text) = demuxer.place();
    writer.number(interval as u64).number(state.into()).number(left as u64).bytes(text);
    writer.number(is_paused.into()).bytes(stream.framer.left());
    Some(())
}

/// Says what stream it is, with the next part of it that goes along, if `more` bytes are to follow. Returns the place from which on all of
/// it goes along with some connection; nothing for a stream that has not begun.
fn describe(writer: &mut Writer, stream: &mut Stream, more: usize) -> Option<u64> {
    let told = stream.answer.as_ref().filter(|_| stream.is_begun)?;
    let ring = &stream.ring;
    writer.bytes(stream.server.to_string().as_bytes()).bytes(stream.key.as_bytes()).bytes(&stream.request);
    writer.bytes(told.media_type.as_bytes()).bytes(&told.onward);
    let flags = [
        (told.has_titles, HAS_TITLES),
        (told.is_radio, IS_RADIO),
        (stream.has_origin, HAS_ORIGIN),
        (stream.is_over(), IS_OVER),
    ];
    writer.number(flags.iter().filter(|(is, _)| *is).map(|(_, flag)| flag).sum());
    writer.number(ring.end()).number(ring.end_us());
    let room = |writer: &Writer, more: usize| STATE_BYTES_MAX.saturating_sub(writer.length() + PART_BYTES + more);
    let carried = match &mut stream.carried {
        Some(carried) => {
            writer.bytes(&[]).number(0);
            carried
        }
        carried @ None => {
            // The first one has less room, the one of the source perhaps as well, and a part may end a frame before it is full.
            let each = room(writer, LISTENER_BYTES + 16);
            let least = (2..stream.listeners.len()).try_fold(ring.end(), |end, _| {
                let begin = ring.part(end, each).at;
                if begin < end { Ok(begin) } else { Err(end) }
            });
            writer.bytes(&stream.opening);
            let titles: Vec<_> = stream.titles.newest(CARRIED_TITLES_BYTES_MAX).collect();
            writer.number(titles.len() as u64);
            for (at, text) in titles {
                writer.number(at).bytes(text);
            }
            let (Ok(least) | Err(least)) = least;
            carried.insert(Carried { begin: ring.end(), least })
        }
    };
    let part = ring.part(carried.begin, room(writer, more));
    let mut bytes = Vec::new();
    ring.copy(part.at, carried.begin, &mut bytes);
    carried.begin = part.at;
    carried.least = carried.least.min(part.at);
    writer.number(part.at).number(part.us).bytes(&bytes);
    Some(carried.least)
}

fn ring(from: &mut Reader<'_>) -> Option<Ring> {
    let (mut ring, mut bytes) = (Ring::at(from.place()?, from.place()?), from.bytes()?);
    while !bytes.is_empty() {
        // No frame is as short as what is looked at of it.
        let mut first = [0; HEADER_BYTES];
        let length = bytes.len().min(HEADER_BYTES);
        first[..length].copy_from_slice(&bytes[..length]);
        let header = parse_header(&first)?;
        let (frame, rest) = bytes.split_at_checked(header.length)?;
        ring.push(frame, header.duration_us, is_alone(frame, &header));
        bytes = rest;
    }
    Some(ring)
}

/// What there is to say of a stream beside numbers and texts.
const HAS_TITLES: u64 = 1;
const IS_RADIO: u64 = 2;
const HAS_ORIGIN: u64 = 4;
const IS_OVER: u64 = 8;
/// Bytes that are said of a part of a stream, beside the part: numbers of eight bytes.
const PART_BYTES: usize = 3 * 8;
/// Bytes that are said of a listener behind the stream.
const LISTENER_BYTES: usize = 5 * 8;
/// Bytes that are said of a source behind the stream at most, beside what is no frame yet.
const SOURCE_BYTES: usize = 6 * 8 + TITLE_BYTES_MAX;
