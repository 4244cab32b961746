// SPDX-License-Identifier: Apache-2.0
//! A stream: one connection to its server, what is kept of it, and who listens.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use netserv_server_sdk::tcp::{Connection, Side};

use crate::frames::Framer;
use crate::head::{self, Answer, Answered};
use crate::host::{Counter, Host, Sent};
use crate::icy::{Demuxer, Muxer, Piece};
use crate::joining::{Joining, Place, is_alone};
use crate::limits::{
    AHEAD_BYTES_AGAIN, AHEAD_BYTES_MAX, INTERVAL, NO_FRAME_BYTES_MAX, OPENING_BYTES_MAX, PARTS, RETRY_MS_MAX,
    RETRY_MS_MIN, SAME_AGAIN_MAX, SILENT_MS_MAX, TITLES_MAX, UNANSWERED_BYTES_MAX,
};
use crate::listener::{Fate, Listener, Titles};
use crate::ring::Ring;
use crate::settings::Settings;

/// A stream.
#[derive(Debug)]
pub struct Stream {
    /// Its server.
    pub server: SocketAddr,
    /// What makes two requests ones for it.
    pub key: String,
    /// Whether all who ask for it name the same origin.
    pub has_origin: bool,
    /// What its server is asked.
    pub request: Vec<u8>,
    /// How much of that went already.
    asked: usize,
    /// Where its bytes come from.
    pub source: Source,
    /// What listeners are told, once it is known.
    pub answer: Option<Told>,
    /// What is kept of it.
    pub ring: Ring,
    /// Its titles.
    pub titles: Titles,
    /// Who listens.
    pub listeners: BTreeMap<Connection, Listener>,
    /// Who waits for the answer: whether it wants titles, and what it sent.
    pub waiting: BTreeMap<Connection, (bool, Vec<u8>)>,
    /// Its first frames, if it may be a file: by them it is known when its server begins anew.
    pub opening: Vec<u8>,
    /// Whether they still come.
    takes_opening: bool,
    /// Finds frames.
    pub framer: Framer,
    /// What has come and is not in the ring yet, while it is not known where it goes on.
    pub joining: Option<Joining>,
    /// What goes along to the next version, once some of it does.
    pub carried: Option<Carried>,
    /// What its server has said before the first frame, or before the answer.
    raw: Vec<u8>,
    /// Whether there was a frame.
    pub is_begun: bool,
    /// Whether it is asked for anew since the way there may be another one.
    pub is_moved: bool,
    /// When its server said something last.
    heard_ms: u64,
    /// Since when nothing comes of it, if so.
    away_ms: Option<u64>,
    /// Since when its server answers.
    live_ms: u64,
    /// How long until it is asked again.
    wait_ms: u64,
    /// The ring's end when the source went away, and how often it went away there since.
    ended_at: u64,
    same_again: u32,
}

/// What of a stream goes along to the next version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The place from which on it has gone.
    pub begin: u64,
    /// The place from which on it will have gone.
    pub least: u64,
}

/// What listeners are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The media type.
    pub media_type: String,
    /// The head, but for its end.
    pub onward: Vec<u8>,
    /// Whether the server has titles.
    pub has_titles: bool,
    /// Whether it says that it is a radio's; else it may be a file.
    pub is_radio: bool,
}

/// Where the bytes of a stream come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// From nowhere until it is asked for again.
    Away {
        /// When that is.
        next_ms: u64,
    },
    /// From nowhere: it was a file, and listeners get the rest of it.
    Over,
    /// A server that was asked.
    Asked(Connection),
    /// A server that answers.
    Live {
        /// The connection.
        id: Connection,
        /// What takes its titles out.
        demuxer: Demuxer,
        /// Whether it is not read, since it is too far ahead.
        is_paused: bool,
    },
}

/// What becomes of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Course {
    /// It goes on.
    Goes,
    /// What its server answered is for one client.
    IsNone {
        /// All that the server said.
        said: Vec<u8>,
        /// Whether there are titles among it.
        has_titles: bool,
    },
    /// It is over.
    Ends,
}

impl Stream {
    /// Makes one that nobody has asked for yet.
    pub fn new(server: SocketAddr, key: String, has_origin: bool, request: Vec<u8>) -> Stream {
        Stream {
            server,
            key,
            has_origin,
            request,
            asked: 0,
            source: Source::Away { next_ms: 0 },
            answer: None,
            ring: Ring::default(),
            titles: Titles::default(),
            listeners: BTreeMap::new(),
            waiting: BTreeMap::new(),
            opening: Vec::new(),
            takes_opening: false,
            framer: Framer::default(),
            joining: None,
            carried: None,
            raw: Vec::new(),
            is_begun: false,
            is_moved: false,
            heard_ms: 0,
            away_ms: None,
            live_ms: 0,
            wait_ms: RETRY_MS_MIN,
            ended_at: 0,
            same_again: 0,
        }
    }

    /// Returns whether nobody wants it.
    pub fn is_idle(&self) -> bool {
        self.listeners.is_empty() && self.waiting.is_empty()
    }

    /// Returns the connection to its server.
    pub fn source_id(&self) -> Option<Connection> {
        match self.source {
            Source::Away { .. } | Source::Over => None,
            Source::Asked(id) | Source::Live { id, .. } => Some(id),
        }
    }

    /// Returns the connection to its server, if that is a radio's, and has begun.
    pub fn live_id(&self) -> Option<Connection> {
        let is_live = self.is_begun && self.answer.as_ref().is_some_and(|answer| answer.is_radio);
        self.source_id().filter(|_| is_live)
    }

    /// Asks its server. Returns whether there can be a connection to it.
    pub fn ask(&mut self, host: &mut dyn Host, now_ms: u64) -> bool {
        let Some(id) = host.open(self.server) else { return false };
        host.count(Counter::Upstreams, 1);
        self.source = Source::Asked(id);
        self.asked = 0;
        self.go_on_asking(host, id);
        self.heard_ms = now_ms;
        self.raw.clear();
        true
    }

    /// Says as much of the request as there is room for.
    fn go_on_asking(&mut self, host: &mut dyn Host, id: Connection) {
        self.asked += host.send_part(id, Side::Server, &self.request[self.asked..]).0;
    }

    /// Takes bytes of its server.
    pub fn data(&mut self, host: &mut dyn Host, settings: &Settings, now_ms: u64, bytes: &[u8]) -> Course {
        self.heard_ms = now_ms;
        let is_asked = matches!(self.source, Source::Asked(_));
        if is_asked || !self.is_begun {
            self.raw.extend_from_slice(bytes);
        }
        if is_asked {
            match head::answered(&self.raw, self.has_origin) {
                Answered::Incomplete => return Course::Goes,
                Answered::Stream(answer) if self.goes_on_with(&answer) => self.answered(host, answer, now_ms),
                // Whoever comes back to the server has the sound that it has now.
                Answered::Stream(answer) if self.is_begun && !self.is_of_type(&answer) => return Course::Ends,
                Answered::Other { is_media: true, .. } if self.is_begun => return Course::Ends,
                Answered::Stream(_) | Answered::Other { .. } if self.is_begun => return self.give_up(host, now_ms),
                Answered::Stream(_) => return self.is_none(true),
                Answered::Other { has_titles, .. } => return self.is_none(has_titles),
            }
        } else {
            self.sound(host, now_ms, bytes);
        }
        if self.joining.as_ref().is_some_and(Joining::is_of_other_kind) {
            return Course::Ends;
        }
        if self.is_again(now_ms) {
            self.end(host);
        }
        self.begin(host, settings, now_ms);
        if !self.is_begun && self.raw.len() > NO_FRAME_BYTES_MAX {
            return self.odd();
        }
        self.hold(host, now_ms);
        Course::Goes
    }

    /// Its server says nothing more.
    pub fn lost(&mut self, host: &mut dyn Host, now_ms: u64) -> Course {
        if !self.is_begun {
            // What it said is an answer, too.
            return if self.raw.is_empty() { Course::Ends } else { self.odd() };
        }
        let is_live = matches!(self.source, Source::Live { .. });
        if is_live && now_ms.saturating_sub(self.live_ms) > LONG_MS {
            self.wait_ms = RETRY_MS_MIN;
        }
        // What has come and was not joined is better than nothing.
        self.join(host, u64::MAX);
        self.takes_opening = false;
        if self.is_again(u64::MAX) {
            self.end(host);
            return Course::Goes;
        }
        if is_live && self.joining.is_none() {
            self.same_again = if self.ring.end() == self.ended_at { self.same_again + 1 } else { 0 };
            self.ended_at = self.ring.end();
            if self.same_again >= SAME_AGAIN_MAX {
                self.end(host);
                return Course::Goes;
            }
        }
        self.joining = None;
        if self.away_ms.is_none() {
            host.count(Counter::Outages, 1);
            self.away_ms = Some(now_ms);
        }
        self.source = Source::Away { next_ms: now_ms + self.wait_ms };
        self.wait_ms = (2 * self.wait_ms).min(RETRY_MS_MAX);
        Course::Goes
    }

    /// Does what is due: sends a part of the listeners theirs, and asks for the source again.
    pub fn tick(&mut self, host: &mut dyn Host, settings: &Settings, now_ms: u64, part: u64) -> Course {
        let is_silent = now_ms.saturating_sub(self.heard_ms) > SILENT_MS_MAX;
        match self.source {
            Source::Away { next_ms } if now_ms >= next_ms => {
                if !self.ask(host, now_ms) {
                    self.source = Source::Away { next_ms: now_ms + self.wait_ms };
                }
            }
            Source::Asked(_) | Source::Live { is_paused: false, .. } if is_silent => {
                // Whether more comes is for who waits for it to see.
                if !self.is_begun && !self.raw.is_empty() {
                    return self.odd();
                }
                if self.give_up(host, now_ms) == Course::Ends {
                    return Course::Ends;
                }
            }
            Source::Asked(id) => self.go_on_asking(host, id),
            Source::Away { .. } | Source::Over | Source::Live { .. } => {}
        }
        if self.away_ms.is_some_and(|since| now_ms.saturating_sub(since) > settings.outage_ms) {
            return Course::Ends;
        }
        self.join(host, now_ms);
        if self.is_again(now_ms) {
            self.end(host);
        }
        if self.is_over() {
            self.let_go(host);
        }
        self.begin(host, settings, now_ms);
        let (ring, titles) = (&self.ring, &self.titles);
        self.listeners.retain(|id, listener| {
            if id % PARTS != part % PARTS {
                return true;
            }
            match listener.pump(host, *id, (ring, titles), settings, now_ms) {
                Fate::Goes => true,
                Fate::Cut => {
                    host.count(Counter::Cut, 1);
                    host.close(*id);
                    false
                }
                Fate::Gone => false,
            }
        });
        self.hold(host, now_ms);
        Course::Goes
    }

    /// Returns whether it was a file, of which who comes now would get the end alone.
    pub fn is_over(&self) -> bool {
        self.source == Source::Over
    }

    /// Returns whether what has come is what was there first.
    fn is_again(&self, now_ms: u64) -> bool {
        self.joining.as_ref().is_some_and(|pending| pending.place(now_ms, &self.opening) == Place::Again)
    }

    /// Asks for no more of it: listeners get what is there.
    fn end(&mut self, host: &mut dyn Host) {
        if let Some(id) = self.source_id() {
            host.close(id);
        }
        self.source = Source::Over;
        self.joining = None;
        self.away_ms = None;
    }

    /// Returns whether one more can be served: who waits for an answer is kept with its request.
    pub fn has_place(&self) -> bool {
        let kept: usize = self.waiting.values().map(|(_, sent)| sent.len()).sum();
        !self.is_over() && kept <= UNANSWERED_BYTES_MAX
    }

    /// Closes the connections of those who have all of it.
    fn let_go(&mut self, host: &mut dyn Host) {
        let end = self.ring.end();
        self.listeners.retain(|id, listener| {
            let has_all = listener.at >= end;
            if has_all {
                host.close(*id);
            }
            !has_all
        });
    }

    /// Adds a client, which listens at once if it can.
    pub fn add(&mut self, host: &mut dyn Host, settings: &Settings, now_ms: u64, client: (Connection, bool, Vec<u8>)) {
        let (id, wants_titles, sent) = client;
        self.waiting.insert(id, (wants_titles, sent));
        self.begin(host, settings, now_ms);
    }

    /// Returns what the next version goes on with: joins what is to be joined.
    pub fn settle(&mut self, host: &mut dyn Host) {
        self.join(host, u64::MAX);
        if self.is_again(u64::MAX) {
            self.end(host);
        }
    }

    /// Goes on with what the version before had.
    pub fn resume(&mut self, now_ms: u64, is_over: bool) {
        self.is_begun = true;
        (self.heard_ms, self.live_ms) = (now_ms, now_ms);
        if is_over {
            self.source = Source::Over;
        } else if matches!(self.source, Source::Away { .. }) {
            self.source = Source::Away { next_ms: now_ms + self.wait_ms };
        }
    }

    /// Returns whether an answer is one that its listeners can go on with.
    fn goes_on_with(&self, answer: &Answer) -> bool {
        self.is_of_type(answer) && Demuxer::new(answer.interval).is_some()
    }

    /// Returns whether an answer has the type of sound that listeners were told.
    fn is_of_type(&self, answer: &Answer) -> bool {
        self.answer.as_ref().is_none_or(|told| told.media_type == answer.media_type)
    }

    fn answered(&mut self, host: &mut dyn Host, answer: Answer, now_ms: u64) {
        let (Source::Asked(id), Some(demuxer)) = (&self.source, Demuxer::new(answer.interval)) else { return };
        self.source = Source::Live { id: *id, demuxer, is_paused: false };
        self.live_ms = now_ms;
        self.framer = Framer::default();
        self.joining = Some(Joining::behind(&self.ring, now_ms, std::mem::take(&mut self.is_moved)));
        self.takes_opening = !self.is_begun && !answer.is_radio;
        let rest = self.raw[answer.length..].to_vec();
        if self.is_begun {
            self.raw = Vec::new();
        }
        let Answer { interval, media_type, onward, is_radio, .. } = answer;
        // Those that were told before that there are titles go on to get some, or none.
        self.answer = Some(Told { media_type, onward, has_titles: interval > 0, is_radio });
        self.sound(host, now_ms, &rest);
    }

    /// Takes what comes behind the head.
    fn sound(&mut self, host: &mut dyn Host, now_ms: u64, bytes: &[u8]) {
        let Source::Live { demuxer, .. } = &mut self.source else { return };
        let mut sound = Vec::with_capacity(bytes.len());
        let mut told: VecDeque<(usize, Vec<u8>)> = VecDeque::new();
        demuxer.push(bytes, |piece| match piece {
            Piece::Sound(part) => sound.extend_from_slice(part),
            Piece::Title(text) => {
                if told.len() >= TITLES_MAX {
                    told.pop_front();
                }
                told.push_back((sound.len(), text.to_vec()));
            }
        });
        let mut begin = 0;
        for (end, text) in told {
            self.frames(host, now_ms, &sound[begin..end]);
            begin = end;
            let behind = self.framer.left().len();
            match &mut self.joining {
                Some(pending) => pending.push_title(behind, &text),
                None => self.titles.push(self.ring.end() + behind as u64, &text),
            }
        }
        self.frames(host, now_ms, &sound[begin..]);
        match self.framer.take_dropped() {
            0 => {}
            dropped => host.count(Counter::DroppedBytes, dropped),
        }
        self.joined();
    }

    /// Takes sound.
    fn frames(&mut self, host: &mut dyn Host, now_ms: u64, sound: &[u8]) {
        let Stream { framer, joining, ring, titles, opening, takes_opening, .. } = self;
        framer.push(sound, |frame, header| {
            if *takes_opening && opening.len() < OPENING_BYTES_MAX {
                opening.extend_from_slice(frame);
            }
            match joining {
                Some(pending) => {
                    pending.push(frame, header);
                    finish(host, joining, (ring, titles, opening), now_ms);
                }
                None => ring.push(frame, header.duration_us, is_alone(frame, header)),
            }
        });
    }

    /// Joins what has come to what is there, if it is known how by now.
    fn join(&mut self, host: &mut dyn Host, now_ms: u64) {
        if self.joining.is_some() {
            let into = (&mut self.ring, &mut self.titles, &self.opening[..]);
            finish(host, &mut self.joining, into, now_ms);
            self.joined();
        }
    }

    /// Takes note that a source is there, if it is.
    fn joined(&mut self) {
        if self.joining.is_none() && self.ring.end() > self.ring.begin() && matches!(self.source, Source::Live { .. }) {
            self.is_begun = true;
            self.away_ms = None;
            if !self.raw.is_empty() {
                self.raw = Vec::new();
            }
        }
    }

    /// Has those listen who wait for it, once there is something.
    fn begin(&mut self, host: &mut dyn Host, settings: &Settings, now_ms: u64) {
        let Some(told) = self.answer.as_ref().filter(|_| self.is_begun) else { return };
        for (id, (wants_titles, _)) in std::mem::take(&mut self.waiting) {
            let muxer = (wants_titles && told.has_titles).then(|| Muxer::new(INTERVAL));
            let head = head::head_for(&told.onward, muxer.map(|_| INTERVAL));
            if host.send_part(id, Side::Client, &head).1 != Sent::Done {
                host.close(id);
                continue;
            }
            let mut listener = Listener::new(&self.ring, settings, muxer, now_ms);
            if listener.pump(host, id, (&self.ring, &self.titles), settings, now_ms) == Fate::Goes {
                self.listeners.insert(id, listener);
            }
        }
    }

    /// Reads the source no more while it is too far ahead of all listeners.
    fn hold(&mut self, host: &mut dyn Host, now_ms: u64) {
        let Source::Live { id, is_paused, .. } = &mut self.source else { return };
        let front = self.listeners.values().map(|listener| listener.at).max().unwrap_or(self.ring.end());
        let ahead = self.ring.end().saturating_sub(front);
        let holds = ahead > if *is_paused { AHEAD_BYTES_AGAIN } else { AHEAD_BYTES_MAX };
        if holds != *is_paused {
            *is_paused = holds;
            self.heard_ms = now_ms;
            host.pause(*id, Side::Server, holds);
        }
    }

    /// Gives up the connection to its server.
    fn give_up(&mut self, host: &mut dyn Host, now_ms: u64) -> Course {
        if let Some(id) = self.source_id() {
            host.close(id);
        }
        self.lost(host, now_ms)
    }

    fn odd(&mut self) -> Course {
        self.is_none(self.answer.as_ref().is_some_and(|told| told.has_titles))
    }

    fn is_none(&mut self, has_titles: bool) -> Course {
        Course::IsNone { said: std::mem::take(&mut self.raw), has_titles }
    }
}

/// Puts what is to be joined into the ring, if it is known where.
fn finish(
    host: &mut dyn Host,
    joining: &mut Option<Joining>,
    (ring, titles, opening): (&mut Ring, &mut Titles, &[u8]),
    now_ms: u64,
) {
    let first = match joining.as_ref().filter(|it| !it.is_of_other_kind()).map(|it| it.place(now_ms, opening)) {
        None | Some(Place::Unknown | Place::Again) => return,
        Some(Place::Behind) => {
            host.count(Counter::Continued, 1);
            usize::MAX
        }
        Some(Place::With(first)) => first,
    };
    if let Some(pending) = joining.take() {
        pending.finish(first, ring, titles);
    }
}

/// How long a server answers for the next outage to be one of its own.
const LONG_MS: u64 = 5000;
