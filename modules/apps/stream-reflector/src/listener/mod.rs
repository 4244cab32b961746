// SPDX-License-Identifier: Apache-2.0
//! One who listens to a stream: where it is, and what is due to it.
//!
//! Its player is thought of as one that plays from the first byte on and holds `burst_us` of sound; what it has no room for stays in
//! the ring. So a source may be away for as long as the listener is behind it.

use std::collections::VecDeque;

use netserv_server_sdk::tcp::{Connection, Side};

use crate::host::{Host, Sent};
use crate::icy::Muxer;
use crate::limits::{
    BLOCKED_BYTES_MAX, CATCH_UP_BYTES, CATCH_UP_PERCENT, LATE_US, QUEUED_BYTES_MAX, SEND_BYTES_MAX, TITLES_MAX,
};
use crate::ring::Ring;
use crate::settings::Settings;

/// One who listens to a stream.
#[derive(Clone, Debug)]
pub struct Listener {
    /// The place of the next byte that it gets.
    pub at: u64,
    /// What it plays, as a time of the stream.
    pub play_us: u64,
    /// When it played that.
    pub since_ms: u64,
    /// What puts titles among its bytes, if it wants any.
    pub muxer: Option<Muxer>,
    /// Since when it takes nothing.
    pub blocked_ms: Option<u64>,
    /// Whether it has got a begin of a frame, and lacks the rest.
    pub is_within_frame: bool,
}

/// What becomes of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes on.
    Goes,
    /// It has taken nothing for too long.
    Cut,
    /// It is not there.
    Gone,
}

/// The titles of a stream, and where they begin.
#[derive(Clone, Debug, Default)]
pub struct Titles {
    all: VecDeque<(u64, u64, Vec<u8>)>,
    number: u64,
}

impl Titles {
    /// Adds one that begins at a place, unless it is the last one.
    pub fn push(&mut self, at: u64, text: &[u8]) {
        if self.all.back().is_some_and(|(_, _, last)| last == text) {
            return;
        }
        if self.all.len() >= TITLES_MAX {
            self.all.pop_front();
        }
        self.number += 1;
        self.all.push_back((at, self.number, text.to_vec()));
    }

    /// Returns the one of a place, with its number; number 0 is none.
    pub fn of(&self, at: u64) -> (u64, &[u8]) {
        let last = self.all.iter().rev().find(|(begin, _, _)| *begin <= at);
        last.map_or((0, &[]), |(_, number, text)| (*number, text))
    }

    /// Returns the newest ones with the places where they begin, in their order: so many bytes of text at most.
    pub fn newest(&self, bytes: usize) -> impl Iterator<Item = (u64, &[u8])> {
        let mut left = bytes;
        let fit = self.all.iter().rev().take_while(|(_, _, text)| {
            let fits = text.len() <= left;
            left = left.saturating_sub(text.len());
            fits
        });
        let count = fit.count();
        self.all.iter().skip(self.all.len() - count).map(|(at, _, text)| (*at, &**text))
    }
}

impl Listener {
    /// Begins in a stream as far behind its source as it may.
    pub fn new(ring: &Ring, settings: &Settings, muxer: Option<Muxer>, now_ms: u64) -> Listener {
        let least = ring.end().saturating_sub(crate::limits::START_BYTES_MAX);
        let start = ring.start(least, ring.end_us().saturating_sub(settings.bridge_us));
        Listener { at: start.at, play_us: start.us, since_ms: now_ms, muxer, blocked_ms: None, is_within_frame: false }
    }

    /// Sends what is due.
    pub fn pump(
        &mut self,
        host: &mut dyn Host,
        id: Connection,
        (ring, titles): (&Ring, &Titles),
        settings: &Settings,
        now_ms: u64,
    ) -> Fate {
        self.play(ring, settings, now_ms);
        if self.at < ring.begin() {
            if self.blocked_ms.is_some() || self.is_within_frame {
                return Fate::Cut;
            }
            // It takes what it gets; the stream was too far ahead.
            let start = ring.start(ring.begin(), 0);
            (self.at, self.play_us) = (start.at, self.play_us.max(start.us));
        }
        let due = ring.before(self.play_us.saturating_add(settings.burst_us)).min(self.at + SEND_BYTES_MAX as u64);
        self.send(host, id, (ring, titles), due, (settings, now_ms))
    }

    /// Sends all that there is before a place, since another version goes on from there. What finds no room is left out.
    pub fn flush(&mut self, host: &mut dyn Host, id: Connection, (ring, titles): (&Ring, &Titles), to: u64) {
        self.at = self.at.max(ring.begin());
        while self.at < to {
            let part = to.min(self.at + SEND_BYTES_MAX as u64);
            if self.give(host, id, (ring, titles), part) != Sent::Done {
                break;
            }
        }
    }

    /// Plays on: at most what there is, and faster if much is there.
    fn play(&mut self, ring: &Ring, settings: &Settings, now_ms: u64) {
        let mut elapsed_us = now_ms.saturating_sub(self.since_ms).saturating_mul(1000);
        self.since_ms = now_ms;
        let is_late = ring.end_us() > self.play_us.saturating_add(settings.bridge_us + LATE_US);
        if is_late || ring.end().saturating_sub(self.at) > CATCH_UP_BYTES {
            elapsed_us += elapsed_us / 100 * CATCH_UP_PERCENT;
        }
        self.play_us = self.play_us.saturating_add(elapsed_us).min(ring.end_us());
    }

    fn send(
        &mut self,
        host: &mut dyn Host,
        id: Connection,
        (ring, titles): (&Ring, &Titles),
        to: u64,
        (settings, now_ms): (&Settings, u64),
    ) -> Fate {
        if to <= self.at && self.blocked_ms.is_none() {
            return Fate::Goes;
        }
        let Some(queued) = host.queued(id, Side::Client) else { return Fate::Gone };
        let mut sent = if queued > QUEUED_BYTES_MAX { Sent::Full } else { Sent::Done };
        let before = self.at;
        if sent == Sent::Done && to > self.at {
            sent = self.give(host, id, (ring, titles), to);
        }
        match sent {
            Sent::Done => self.blocked_ms = None,
            Sent::Full if self.at > before => self.blocked_ms = None,
            Sent::Full => {
                let since = *self.blocked_ms.get_or_insert(now_ms);
                if now_ms.saturating_sub(since) > settings.slow_ms {
                    return Fate::Cut;
                }
            }
            Sent::Gone => return Fate::Gone,
        }
        Fate::Goes
    }

    /// Sends what is up to a place, as far as there is room.
    fn give(&mut self, host: &mut dyn Host, id: Connection, (ring, titles): (&Ring, &Titles), to: u64) -> Sent {
        let sent = self.give_sound(host, id, (ring, titles), to);
        self.is_within_frame = !ring.begins(self.at);
        sent
    }

    fn give_sound(&mut self, host: &mut dyn Host, id: Connection, (ring, titles): (&Ring, &Titles), to: u64) -> Sent {
        let mut sound = Vec::new();
        if self.blocked_ms.is_some() {
            // It is tried with little, since most who take nothing go on to.
            let little = to.min(self.at + BLOCKED_BYTES_MAX);
            ring.copy(self.at, little, &mut sound);
            return self.give_part(host, id, &sound, titles);
        }
        ring.copy(self.at, to, &mut sound);
        let mut muxer = self.muxer;
        let mixed = mix(muxer.as_mut(), &sound, (titles, self.at));
        match host.send(id, Side::Client, mixed.as_deref().unwrap_or(&sound)) {
            Sent::Done => {
                (self.at, self.muxer) = (self.at + sound.len() as u64, muxer);
                Sent::Done
            }
            Sent::Full => self.give_part(host, id, &sound, titles),
            Sent::Gone => Sent::Gone,
        }
    }

    /// Sends as much of what comes at its place as there is room for. A title goes whole, or comes at the next place for one.
    fn give_part(&mut self, host: &mut dyn Host, id: Connection, mut sound: &[u8], titles: &Titles) -> Sent {
        loop {
            let now = self.muxer.map_or(sound.len(), |muxer| muxer.place().1.min(sound.len()));
            let (sent, outcome) = host.send_pieces(id, Side::Client, &sound[..now]);
            self.at += sent as u64;
            sound = &sound[sent..];
            let Some(muxer) = &mut self.muxer else { return outcome };
            muxer.pass(sent);
            if outcome != Sent::Done || muxer.place().1 > 0 {
                return outcome;
            }
            let (mut told, mut block) = (*muxer, Vec::new());
            told.mix(&[], |_| titles.of(self.at), &mut block);
            match host.send(id, Side::Client, &block) {
                Sent::Done => *muxer = told,
                Sent::Full if block.len() > 1 => match host.send(id, Side::Client, &[0]) {
                    Sent::Done => muxer.skip_title(),
                    other @ (Sent::Full | Sent::Gone) => return other,
                },
                other @ (Sent::Full | Sent::Gone) => return other,
            }
        }
    }
}

/// Returns bytes that begin at a place with titles among them, if there are to be any.
fn mix(muxer: Option<&mut Muxer>, sound: &[u8], (titles, begin): (&Titles, u64)) -> Option<Vec<u8>> {
    muxer.map(|muxer| {
        let mut mixed = Vec::with_capacity(sound.len() + 64);
        muxer.mix(sound, |after| titles.of(begin + after as u64), &mut mixed);
        mixed
    })
}

#[cfg(test)]
mod tests;
