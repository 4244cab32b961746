// SPDX-License-Identifier: Apache-2.0
//! Where the video comes from: one connection, however many watch.

use std::rc::Rc;

use netserv_server_sdk::mpegts::Cutter;
use netserv_server_sdk::tcp::{Connection, Side};

use crate::answer::Answer;
use crate::clock::Pacer;
use crate::feed::Kept;
use crate::host::{Counter, Host, Sent};
use crate::limits::{RETRY_MS_MAX, RETRY_MS_MIN, SETTLED_MS, SILENT_MS_MAX, UNMARKED_MS};
use crate::settings::Url;

/// Where the video comes from.
#[derive(Debug)]
pub struct Source {
    url: Url,
    state: State,
    /// Since when nothing comes of it though it is wanted.
    away_ms: Option<u64>,
    wait_ms: u64,
    /// Whether somebody was told what is wrong since it worked last.
    is_told: bool,
    /// What of it a picture can be begun with.
    pub kept: Kept,
}

#[derive(Debug, Default)]
enum State {
    /// Nobody wants it.
    #[default]
    Idle,
    /// It is asked again then.
    Away { next_ms: u64 },
    /// It was asked.
    There(Box<There>),
}

#[derive(Debug)]
struct There {
    id: Connection,
    answer: Answer,
    pacer: Pacer,
    cutter: Cutter,
    heard_ms: u64,
    since_ms: u64,
    is_paused: bool,
    /// Whether some of it was given to jobs.
    has_given: bool,
    /// Whether it says where a picture can be begun with, and when that was last, or taken to be.
    has_marks: bool,
    marked_ms: u64,
    /// It sends no more, and what came before goes on.
    has_ended: bool,
}

impl Source {
    /// Returns one that nobody wants yet.
    pub fn new(url: Url) -> Source {
        Source { url, state: State::Idle, away_ms: None, wait_ms: RETRY_MS_MIN, is_told: false, kept: Kept::default() }
    }

    /// Returns its connection.
    pub fn id(&self) -> Option<Connection> {
        if let State::There(there) = &self.state { Some(there.id) } else { None }
    }

    /// Returns whether there are pictures, or will be as soon as it has sent some.
    pub fn is_there(&self) -> bool {
        matches!(&self.state, State::There(there) if there.has_given)
    }

    /// Returns for how long it has been away.
    pub fn away_for_ms(&self, now_ms: u64) -> u64 {
        self.away_ms.map_or(0, |since_ms| now_ms.saturating_sub(since_ms))
    }

    /// Wants it.
    pub fn want(&mut self, host: &mut dyn Host, now_ms: u64) {
        if matches!(self.state, State::Idle) {
            self.ask(host, now_ms);
        }
    }

    /// Wants it no more.
    pub fn leave(&mut self, host: &mut dyn Host) {
        if let Some(id) = self.id() {
            host.close(id);
        }
        *self = Source::new(self.url.clone());
    }

    fn ask(&mut self, host: &mut dyn Host, now_ms: u64) {
        host.count(Counter::Asked, 1);
        let Some(id) = host.open(self.url.server) else {
            return self.gone(host, now_ms, "there can be no connection to it");
        };
        let Url { host: name, path, .. } = &self.url;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {name}\r\nUser-Agent: netserv-video-transcoder\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        );
        self.state = State::There(Box::new(There {
            id,
            answer: Answer::default(),
            pacer: Pacer::default(),
            cutter: Cutter::new(),
            heard_ms: now_ms,
            since_ms: now_ms,
            is_paused: false,
            has_given: false,
            has_marks: false,
            marked_ms: now_ms,
            has_ended: false,
        }));
        if host.send(id, Side::Server, request.as_bytes()) != Sent::Done {
            self.gone(host, now_ms, "it takes no request");
        }
    }

    /// Takes bytes of its connection.
    pub fn data(&mut self, host: &mut dyn Host, now_ms: u64, bytes: &[u8]) {
        let State::There(there) = &mut self.state else { return };
        there.heard_ms = now_ms;
        if there.has_ended {
            return;
        }
        let mut body = Vec::new();
        let read = there.answer.push(bytes, &mut body);
        let outcome = read.and_then(|()| there.pacer.push(now_ms, &body).map_err(|_| "it sends no MPEG-TS"));
        if let Err(why) = outcome {
            host.count(Counter::Bad, 1);
            return self.gone(host, now_ms, why);
        }
        if there.pacer.is_full() && !there.is_paused {
            there.is_paused = true;
            host.pause(there.id, true);
        }
        if there.answer.has_ended() {
            there.has_ended = true;
        }
    }

    /// Its connection has ended.
    pub fn lost(&mut self, host: &mut dyn Host, now_ms: u64) {
        match &mut self.state {
            State::There(there) if !there.pacer.is_empty() => there.has_ended = true,
            State::There(_) => self.gone(host, now_ms, "it has gone away"),
            State::Idle | State::Away { .. } => {}
        }
    }

    /// Does what is due.
    pub fn tick(&mut self, host: &mut dyn Host, now_ms: u64) {
        match &mut self.state {
            State::Away { next_ms } if now_ms >= *next_ms => self.ask(host, now_ms),
            State::Away { .. } | State::Idle => {}
            State::There(there) => {
                if there.is_paused && there.pacer.has_room() {
                    there.is_paused = false;
                    there.heard_ms = now_ms;
                    host.pause(there.id, false);
                }
                let is_silent = !there.is_paused && now_ms.saturating_sub(there.heard_ms) > SILENT_MS_MAX;
                if there.has_ended && there.pacer.is_empty() {
                    self.gone(host, now_ms, "it has ended");
                } else if is_silent && !there.has_ended {
                    self.gone(host, now_ms, "it says nothing");
                }
            }
        }
    }

    /// Gives the packets that are due, with whether a picture can be begun with them.
    pub fn poll(&mut self, now_ms: u64, mut give: impl FnMut(bool, &Rc<[u8]>)) {
        let State::There(there) = &mut self.state else { return };
        let There { pacer, cutter, has_given, has_marks, marked_ms, .. } = &mut **there;
        let (kept, away_ms) = (&mut self.kept, &mut self.away_ms);
        let mut give = |begins: bool, packets: &mut Vec<u8>| {
            if !packets.is_empty() {
                // What answers with something else is as good as away.
                (*has_given, *away_ms) = (true, None);
                let piece: Rc<[u8]> = std::mem::take(packets).into();
                kept.push(now_ms, begins, &piece);
                give(begins, &piece);
            }
        };
        while let Some(packets) = pacer.poll(now_ms) {
            let (mut piece, mut begins_piece) = (Vec::new(), false);
            cutter.push(&packets, |begins, packets| {
                *has_marks |= begins;
                // In a stream without marks, ffmpeg finds a picture to begin with by itself.
                let begins = begins || !*has_marks && now_ms.saturating_sub(*marked_ms) > UNMARKED_MS;
                if begins {
                    *marked_ms = now_ms;
                    give(begins_piece, &mut piece);
                    begins_piece = true;
                }
                piece.extend_from_slice(packets);
            });
            give(begins_piece, &mut piece);
        }
    }

    fn gone(&mut self, host: &mut dyn Host, now_ms: u64, why: &str) {
        if let State::There(there) = &self.state {
            host.close(there.id);
            if there.answer.has_begun() && now_ms.saturating_sub(there.since_ms) > SETTLED_MS {
                (self.wait_ms, self.is_told) = (RETRY_MS_MIN, false);
            }
        }
        if !self.is_told {
            eprintln!("the source {}{}: {why}", self.url.host, self.url.path);
            self.is_told = true;
        }
        if self.away_ms.is_none() {
            host.count(Counter::Outages, 1);
            self.away_ms = Some(now_ms);
        }
        self.kept = Kept::default();
        self.state = State::Away { next_ms: now_ms + self.wait_ms };
        self.wait_ms = (2 * self.wait_ms).min(RETRY_MS_MAX);
    }
}
