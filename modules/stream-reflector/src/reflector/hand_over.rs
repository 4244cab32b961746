// SPDX-License-Identifier: Apache-2.0
//! How connections go on with the next version of the module. Each of a stream's has some of its frames along, the newest first. Where
//! that is not all that listeners lack, since they are few, they get all that there is before.

use std::net::SocketAddr;

use netserv_server_sdk::tcp::Connection;

use super::{Reflector, Role};
use crate::frames::Framer;
use crate::host::{Counter, Host};
use crate::icy::{Demuxer, Muxer};
use crate::limits::{CARRIED_BYTES_MAX, CARRIED_FRAMES_MAX};
use crate::listener::Listener;
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
            Some(Role::Watched { server, bytes }) => {
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
                self.roles.insert(id, Role::Watched { server, bytes });
            }
            LISTENER => {
                let number = self.stream_of(from, now_ms)?;
                let (at, behind_us) = (from.place()?, from.place()?);
                let (interval, left) = (from.size()?, from.size()?);
                let muxer = if interval > 0 { Some(Muxer::at(interval, left)?) } else { None };
                let stream = self.streams.get_mut(&number)?;
                let play_us = stream.ring.end_us().saturating_sub(behind_us);
                stream.listeners.insert(id, Listener { at, play_us, since_ms: now_ms, muxer, blocked_ms: None });
                self.roles.insert(id, Role::Client(number));
                host.count(Counter::Imported, 1);
            }
            SOURCE => {
                let number = self.stream_of(from, now_ms)?;
                let (interval, state, left) = (from.size()?, u8::try_from(from.number()?).ok()?, from.size()?);
                let demuxer = Demuxer::at(interval, state, left, from.bytes()?)?;
                let (is_paused, framer) = (from.number()? > 0, Framer::with(from.bytes()?.to_vec()));
                let title = from.bytes()?;
                let stream = self.streams.get_mut(&number)?;
                // Of all that is kept, it is true of the newest.
                stream.titles.push(0, title);
                stream.framer = framer;
                stream.source = Source::Live { id, demuxer, is_paused };
                stream.resume(now_ms);
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
        let has_titles = from.number()? > 0;
        let (end, end_us, part) = (from.place()?, from.place()?, ring(from)?);
        let known = self.streams.iter().find(|(_, stream)| stream.server == server && stream.key == key);
        let number = known.map(|(number, _)| *number).unwrap_or_else(|| {
            let mut stream = Stream::new(server, key, request);
            stream.answer = Some(Told { media_type, onward, has_titles });
            stream.ring = Ring::at(end, end_us);
            stream.resume(now_ms);
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
    describe(writer.number(LISTENER), stream)?;
    let is_all = stream.carried.is_some_and(|carried| carried.is_all);
    let one = stream.listeners.get_mut(&id)?;
    if !is_all {
        one.flush(host, id, &stream.ring, &stream.titles);
    }
    let behind_us = stream.ring.end_us().saturating_sub(one.play_us);
    let (interval, left) = one.muxer.map_or((0, 0), |muxer| muxer.place());
    writer.number(one.at).number(behind_us).number(interval as u64).number(left as u64);
    Some(())
}

fn source(writer: &mut Writer, stream: &mut Stream) -> Option<()> {
    if !matches!(stream.source, Source::Live { .. }) {
        return None;
    }
    describe(writer.number(SOURCE), stream)?;
    let Source::Live { demuxer, is_paused, .. } = &stream.source else { return None };
    let (interval, state, left, text) = demuxer.place();
    writer.number(interval as u64).number(state.into()).number(left as u64).bytes(text);
    writer.number((*is_paused).into()).bytes(stream.framer.left()).bytes(stream.titles.last());
    Some(())
}

/// Says what stream it is, with the next part of it that goes along; nothing for one that has not begun.
fn describe(writer: &mut Writer, stream: &mut Stream) -> Option<()> {
    let told = stream.answer.as_ref().filter(|_| stream.is_begun)?;
    writer.bytes(stream.server.to_string().as_bytes()).bytes(stream.key.as_bytes()).bytes(&stream.request);
    writer.bytes(told.media_type.as_bytes()).bytes(&told.onward).number(told.has_titles.into());
    let ring = &stream.ring;
    writer.number(ring.end()).number(ring.end_us());
    let carried = stream.carried.get_or_insert_with(|| {
        let least = stream.listeners.values().map(|listener| listener.at).min().unwrap_or(ring.end());
        // A part may end a frame before it is full, so half of it is counted.
        let carries = (stream.listeners.len() * CARRIED_BYTES_MAX / 2) as u64;
        Carried { begin: ring.end(), is_all: ring.end().saturating_sub(least) <= carries }
    });
    let part = ring.part(carried.begin, CARRIED_BYTES_MAX, CARRIED_FRAMES_MAX);
    carried.begin = part.begin();
    let mut bytes = Vec::new();
    part.copy(part.begin(), part.end(), &mut bytes);
    writer.number(part.begin()).bytes(&bytes).number(part.frames().count() as u64);
    writer.number(part.end_us() - part.frames().map(|(_, us, _)| us).sum::<u64>());
    for (length, duration_us, is_alone) in part.frames() {
        writer.number(length << 1 | u64::from(is_alone)).number(duration_us);
    }
    Some(())
}

fn ring(from: &mut Reader<'_>) -> Option<Ring> {
    let (begin, mut bytes, count) = (from.place()?, from.bytes()?, from.number()?);
    let mut ring = Ring::at(begin, from.place()?);
    for _ in 0..count {
        let (flags, duration_us) = (from.place()?, from.place()?);
        let (frame, rest) = bytes.split_at_checked(usize::try_from(flags >> 1).ok()?)?;
        ring.push(frame, duration_us, flags & 1 > 0);
        bytes = rest;
    }
    Some(ring)
}
