// SPDX-License-Identifier: Apache-2.0
//! Who watches, what is made for them, and of what.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use netserv_server_sdk::tcp::{Connection, Side};

use crate::feed::{Feed, Kept};
use crate::host::{Counter, Host, Sent};
use crate::http::{self, Request};
use crate::limits::{
    BEGIN_MS, BEGINS_MAX, CLIENTS_MAX, JOBS_MAX, LINGER_MS, NAME_BYTES_MAX, QUEUED_BYTES_MAX, REQUEST_HEAD_BYTES_MAX,
    REQUEST_MS_MAX, TURN_MS,
};
use crate::page;
use crate::quality::{self, Quality};
use crate::settings::Settings;
use crate::source::Source;

/// All of the module.
#[derive(Debug)]
pub struct Transcoder {
    settings: Settings,
    /// What those get who name nothing.
    usual: Quality,
    /// Where the video comes from, or why from nowhere.
    source: Result<Source, String>,
    /// Who has not asked yet, or has its answer and is still there.
    clients: BTreeMap<Connection, Client>,
    viewers: BTreeMap<Connection, Viewer>,
    /// In the order in which they have their turns.
    feeds: Vec<Feed>,
    begins: Begins,
    /// Since when nobody watches.
    unwatched_ms: Option<u64>,
}

#[derive(Debug)]
struct Client {
    head: Vec<u8>,
    since_ms: u64,
    is_answered: bool,
}

/// Who watches.
#[derive(Debug)]
struct Viewer {
    /// By which it asks for another quality; empty if it never will.
    name: String,
    wanted: Quality,
    /// What it wanted before.
    before: Option<Quality>,
    /// Whether it has what is usual, also when that changes.
    is_usual: bool,
    /// Of which quality the picture is that it got last.
    shown: Option<Quality>,
    /// Since when it has taken nothing.
    stuck_ms: Option<u64>,
    /// Bytes that waited for it then.
    left: u64,
}

impl Viewer {
    fn want(&mut self, quality: Quality) {
        if quality != self.wanted {
            self.before = Some(std::mem::replace(&mut self.wanted, quality));
        }
    }
}

impl Transcoder {
    /// Returns one that nobody watches.
    pub fn new(settings: Settings) -> Transcoder {
        let source = settings.source.clone().map(Source::new);
        Transcoder {
            usual: settings.quality,
            source,
            settings,
            clients: BTreeMap::new(),
            viewers: BTreeMap::new(),
            feeds: Vec::new(),
            begins: Begins::default(),
            unwatched_ms: None,
        }
    }

    /// Returns whether there is nothing to do until somebody comes.
    pub fn is_idle(&self) -> bool {
        let is_asked = self.source.as_ref().is_ok_and(|source| source.id().is_some());
        self.clients.is_empty()
            && self.viewers.is_empty()
            && self.feeds.is_empty()
            && !is_asked
            && self.unwatched_ms.is_none()
    }

    /// A client came. If there are as many as there may be, the one that came first is cut.
    pub fn connect(&mut self, host: &mut dyn Host, now_ms: u64, id: Connection) {
        if self.clients.len() >= CLIENTS_MAX
            && let Some((first, _)) = self.clients.iter().min_by_key(|(id, client)| (client.since_ms, **id))
        {
            let first = *first;
            self.clients.remove(&first);
            host.close(first);
        }
        self.clients.insert(id, Client { head: Vec::new(), since_ms: now_ms, is_answered: false });
    }

    /// Bytes came of a client or of the source.
    pub fn data(&mut self, host: &mut dyn Host, now_ms: u64, id: Connection, bytes: &[u8]) {
        if let Ok(source) = &mut self.source
            && source.id() == Some(id)
        {
            source.data(host, now_ms, bytes);
            return self.forward(host, now_ms);
        }
        // What viewers say behind their requests is nothing.
        let Some(client) = self.clients.get_mut(&id).filter(|client| !client.is_answered) else { return };
        client.head.extend_from_slice(&bytes[..bytes.len().min(REQUEST_HEAD_BYTES_MAX + 4)]);
        let head = std::mem::take(&mut client.head);
        match http::request(&head) {
            Ok(None) => client.head = head,
            Ok(Some(asked)) => self.request(host, now_ms, id, asked),
            Err(status) => self.answer(host, id, &http::text(status, "no such request")),
        }
    }

    /// A connection ended, or its other end sends no more.
    pub fn closed(&mut self, host: &mut dyn Host, now_ms: u64, id: Connection) {
        if let Ok(source) = &mut self.source
            && source.id() == Some(id)
        {
            source.lost(host, now_ms);
        }
        self.clients.remove(&id);
        if self.viewers.remove(&id).is_some() {
            self.settle(host, now_ms);
        }
    }

    /// A client sends no more, which those who watch may: that they have gone is told by `closed`.
    pub fn end(&mut self, host: &mut dyn Host, now_ms: u64, id: Connection) {
        if !self.viewers.contains_key(&id) {
            self.closed(host, now_ms, id);
            host.close(id);
        }
    }

    fn request(&mut self, host: &mut dyn Host, now_ms: u64, id: Connection, asked: Request<'_>) {
        match (asked.method, asked.path) {
            ("GET", "/video") => self.watch(host, now_ms, id, asked.query),
            ("POST", "/quality") => {
                let answer = match self.change(host, now_ms, asked.query) {
                    Ok(quality) => http::text(200, &quality.to_string()),
                    Err((status, why)) => http::text(status, &why),
                };
                self.answer(host, id, &answer);
            }
            ("GET", path) => {
                let answer = match page::file(path) {
                    Some((media_type, bytes)) => http::answer(200, media_type, bytes),
                    None => http::text(404, "nothing here"),
                };
                self.answer(host, id, &answer);
            }
            _ => self.answer(host, id, &http::text(405, "GET, or POST /quality")),
        }
    }

    fn answer(&mut self, host: &mut dyn Host, id: Connection, answer: &[u8]) {
        host.send(id, Side::Client, answer);
        host.close(id);
        if let Some(client) = self.clients.get_mut(&id) {
            client.is_answered = true;
        }
    }

    /// Has a client watch, if there is a place for it and what it wants.
    fn watch(&mut self, host: &mut dyn Host, now_ms: u64, id: Connection, query: &str) {
        let name = name(query);
        let checked = match (&self.source, self.usual.with(query)) {
            (Err(why), _) => Err((503, why.clone())),
            (Ok(_), Err(why)) => Err((400, why)),
            (Ok(_), Ok(_)) if name.is_none() => Err((400, "no such name of a viewer".to_owned())),
            (Ok(_), Ok(_)) if self.viewers.len() >= self.settings.viewers => Err(refused(host, "as many watch as may")),
            (Ok(_), Ok(quality)) => self.has_place(&[], quality).then_some(quality).ok_or_else(|| self.no_place(host)),
        };
        match checked {
            Err((status, why)) => self.answer(host, id, &http::text(status, &why)),
            Ok(wanted) => {
                self.clients.remove(&id);
                host.send(id, Side::Client, &http::pictures());
                let (name, is_usual) = (name.unwrap_or_default().to_owned(), !quality::names_some(query));
                self.viewers
                    .insert(id, Viewer { name, wanted, before: None, is_usual, shown: None, stuck_ms: None, left: 0 });
                self.want(host, now_ms, wanted, &[id]);
            }
        }
    }

    /// Changes what the viewer of a name gets.
    fn change(&mut self, host: &mut dyn Host, now_ms: u64, query: &str) -> Result<Quality, (u16, String)> {
        let name = name(query).filter(|name| !name.is_empty()).ok_or((400, "no name of a viewer".to_owned()))?;
        let whose = |viewer: &Viewer| viewer.name == name;
        let ids: Vec<Connection> = self.viewers.iter().filter(|(_, viewer)| whose(viewer)).map(|(id, _)| *id).collect();
        let first = ids.first().and_then(|id| self.viewers.get(id)).ok_or((404, "no such viewer".to_owned()))?;
        let quality = first.wanted.with(query).map_err(|why| (400, why))?;
        if !self.has_place(&ids, quality) {
            return Err(self.no_place(host));
        }
        for id in &ids {
            if let Some(viewer) = self.viewers.get_mut(id) {
                viewer.want(quality);
                viewer.is_usual = false;
            }
        }
        self.want(host, now_ms, quality, &ids);
        Ok(quality)
    }

    /// Takes a control message: what those get who name nothing.
    pub fn told(&mut self, host: &mut dyn Host, now_ms: u64, topic: &str, text: &str) -> Result<Quality, String> {
        if topic != "quality" {
            return Err(format!("no topic {topic}; there is quality"));
        }
        let quality = self.usual.with(text)?;
        let ids: Vec<Connection> = self.viewers.iter().filter(|(_, one)| one.is_usual).map(|(id, _)| *id).collect();
        if !ids.is_empty() && !self.has_place(&ids, quality) {
            return Err(self.no_place(host).1);
        }
        self.usual = quality;
        for id in &ids {
            if let Some(viewer) = self.viewers.get_mut(id) {
                viewer.want(quality);
            }
        }
        self.want(host, now_ms, quality, &ids);
        Ok(quality)
    }

    /// Returns whether a quality may be made, if so many viewers change over to it.
    fn has_place(&self, changing: &[Connection], wanted: Quality) -> bool {
        let others = self.viewers.iter().filter(|(id, _)| !changing.contains(id)).map(|(_, viewer)| viewer.wanted);
        let all: BTreeSet<Quality> = others.chain([wanted]).collect();
        all.len() <= self.settings.qualities
    }

    fn no_place(&self, host: &mut dyn Host) -> (u16, String) {
        let all: BTreeSet<String> = self.viewers.values().map(|viewer| viewer.wanted.to_string()).collect();
        refused(host, &format!("as many qualities are made as may be: {}", Vec::from_iter(all).join(" ")))
    }

    /// Has a quality be made for viewers, who get what there is of it at once.
    fn want(&mut self, host: &mut dyn Host, now_ms: u64, quality: Quality, ids: &[Connection]) {
        if ids.is_empty() {
            return;
        }
        self.unwatched_ms = None;
        if let Ok(source) = &mut self.source {
            source.want(host, now_ms);
        }
        if let Some(part) = self.feed(quality).and_then(|feed| feed.last.clone()) {
            ids.iter().for_each(|id| self.show(host, now_ms, *id, quality, &part));
        }
        self.settle(host, now_ms);
        if self.feed(quality).is_none() {
            self.add_feed(host, quality);
        }
        self.pump(host, now_ms);
    }

    fn feed(&self, quality: Quality) -> Option<&Feed> {
        self.feeds.iter().find(|feed| feed.quality == quality)
    }

    /// Adds a quality, if there is a number for its job. It has the turn of one that its viewers have left; others come first.
    fn add_feed(&mut self, host: &mut dyn Host, quality: Quality) {
        let unwanted = self.feeds.iter().find(|feed| feed.unwanted_ms.is_some()).map(|feed| feed.quality);
        if self.feeds.len() >= JOBS_MAX
            && let Some(unwanted) = unwanted
        {
            self.drop_feed(host, unwanted);
        }
        if self.feeds.len() >= JOBS_MAX {
            return;
        }
        let taken: BTreeSet<u32> = self.feeds.iter().map(|feed| feed.job).collect();
        let Some(job) = (0..).find(|job| !taken.contains(job)) else { return };
        let left = |feed: &Feed| {
            let of = |viewer: &Viewer| viewer.wanted == quality && viewer.before == Some(feed.quality);
            feed.unwanted_ms.is_some() && self.viewers.values().any(of)
        };
        let turn = self.feeds.iter().position(left).unwrap_or(self.feeds.len());
        self.feeds.insert(turn, Feed::new(quality, job));
        host.set(Counter::Qualities, self.feeds.len() as u64);
    }

    fn drop_feed(&mut self, host: &mut dyn Host, quality: Quality) {
        if let Some(at) = self.feeds.iter().position(|feed| feed.quality == quality) {
            self.feeds.remove(at).end(host);
        }
        host.set(Counter::Qualities, self.feeds.len() as u64);
    }

    /// Takes note of who watches what.
    fn settle(&mut self, host: &mut dyn Host, now_ms: u64) {
        for feed in &mut self.feeds {
            let is_wanted = self.viewers.values().any(|viewer| viewer.wanted == feed.quality);
            feed.unwanted_ms = if is_wanted { None } else { feed.unwanted_ms.or(Some(now_ms)) };
        }
        if self.viewers.is_empty() {
            self.unwatched_ms = self.unwatched_ms.or(Some(now_ms));
        }
        host.set(Counter::Viewers, self.viewers.len() as u64);
    }

    /// Does what is due.
    pub fn tick(&mut self, host: &mut dyn Host, now_ms: u64) {
        if let Ok(source) = &mut self.source {
            source.tick(host, now_ms);
        }
        self.forward(host, now_ms);
        self.end_feeds(host, now_ms);
        self.cut(host, now_ms);
        if self.unwatched_ms.is_some_and(|since_ms| now_ms.saturating_sub(since_ms) > LINGER_MS) {
            self.unwatched_ms = None;
            if let Ok(source) = &mut self.source {
                source.leave(host);
            }
        }
    }

    /// A job has something, or can begin.
    pub fn ready(&mut self, host: &mut dyn Host, now_ms: u64) {
        self.pump(host, now_ms);
    }

    /// Gives jobs what of the source is due.
    fn forward(&mut self, host: &mut dyn Host, now_ms: u64) {
        let Ok(source) = &mut self.source else { return };
        let feeds = &mut self.feeds;
        source.poll(now_ms, |begins, packets| feeds.iter_mut().for_each(|feed| feed.push(host, begins, packets)));
        self.pump(host, now_ms);
    }

    /// Goes on with jobs, and gives viewers the pictures that have come.
    fn pump(&mut self, host: &mut dyn Host, now_ms: u64) {
        let Ok(source) = &self.source else { return };
        let is_there = source.is_there();
        let kept: &Kept = &source.kept;
        let mut come: Vec<(Quality, Rc<[u8]>)> = Vec::new();
        let mut has_turn = true;
        for feed in &mut self.feeds {
            if !is_there {
                feed.end(host);
                continue;
            }
            // The next place of the node is that of the first one that has none.
            if feed.wants_place(now_ms) {
                if feed.unwanted_ms.is_some() && !feed.has_job() {
                    continue;
                }
                if !has_turn || !feed.has_job() && !self.begins.take(now_ms) {
                    feed.end(host);
                    continue;
                }
                has_turn = false;
            }
            let (media_type, quality) = (feed.quality.media_type(), feed.quality.to_string());
            for picture in feed.pump(host, now_ms, kept) {
                let part: Rc<[u8]> = http::part(media_type, &quality, &picture).into();
                feed.last = Some(Rc::clone(&part));
                come.push((feed.quality, part));
            }
        }
        for (quality, part) in come {
            let of = |viewer: &Viewer| {
                let waits = viewer.shown == Some(quality);
                let has_own = self.feed(viewer.wanted).is_some_and(|feed| feed.last.is_some());
                viewer.wanted == quality || waits && !has_own
            };
            let ids: Vec<Connection> = self.viewers.iter().filter(|(_, one)| of(one)).map(|(id, _)| *id).collect();
            ids.into_iter().for_each(|id| self.show(host, now_ms, id, quality, &part));
        }
    }

    /// Gives a viewer a picture, unless those before still wait.
    fn show(&mut self, host: &mut dyn Host, now_ms: u64, id: Connection, quality: Quality, part: &[u8]) {
        let Some(viewer) = self.viewers.get_mut(&id) else { return };
        let Some(queued) = host.queued(id) else { return };
        let fits = queued == 0 || queued + part.len() as u64 <= QUEUED_BYTES_MAX;
        let sent = if fits { host.send(id, Side::Client, part) } else { Sent::Full };
        match sent {
            Sent::Done => {
                viewer.stuck_ms = None;
                if viewer.shown.is_some_and(|shown| shown != quality) {
                    host.count(Counter::Changed, 1);
                }
                viewer.shown = Some(quality);
                host.count(Counter::Pictures, 1);
            }
            Sent::Full => {
                // Others may have the memory.
                if queued > 0 {
                    viewer.stuck_ms = viewer.stuck_ms.or(Some(now_ms));
                }
                host.count(Counter::Skipped, 1);
            }
            // It says so by `closed`.
            Sent::Gone => {}
        }
    }

    /// Ends jobs that nobody wants: after a while, or at once if others wait for a turn.
    fn end_feeds(&mut self, host: &mut dyn Host, now_ms: u64) {
        let waits = self.feeds.iter().any(|feed| feed.waits_ms(now_ms).is_some_and(|ms| ms > TURN_MS));
        let is_over = |feed: &Feed| {
            let is_shown =
                self.viewers.values().any(|viewer| viewer.shown == Some(feed.quality) && viewer.wanted != feed.quality);
            let unwanted_for_ms = feed.unwanted_ms.map(|since_ms| now_ms.saturating_sub(since_ms));
            unwanted_for_ms.is_some_and(|ms| waits || ms > LINGER_MS && !is_shown)
        };
        let over: Vec<Quality> = self.feeds.iter().filter(|feed| is_over(feed)).map(|feed| feed.quality).collect();
        over.into_iter().for_each(|quality| self.drop_feed(host, quality));
        // Those who changed over while there was no number for a job.
        let wanted: BTreeSet<Quality> = self.viewers.values().map(|viewer| viewer.wanted).collect();
        for quality in wanted {
            if self.feed(quality).is_none() {
                self.add_feed(host, quality);
            }
        }
    }

    /// Cuts who takes nothing, who does not say what it wants, and everybody if the source is away for long.
    fn cut(&mut self, host: &mut dyn Host, now_ms: u64) {
        let away_for_ms = self.source.as_ref().map_or(0, |source| source.away_for_ms(now_ms));
        let is_over = away_for_ms > self.settings.outage_ms;
        let slow_ms = self.settings.slow_ms;
        for (id, viewer) in self.viewers.iter_mut().filter(|(_, viewer)| viewer.stuck_ms.is_some()) {
            match host.queued(*id) {
                Some(0) => viewer.stuck_ms = None,
                Some(left) if left < viewer.left => (viewer.stuck_ms, viewer.left) = (Some(now_ms), left),
                Some(left) => viewer.left = left,
                None => {}
            }
        }
        let is_slow =
            |viewer: &Viewer| viewer.stuck_ms.is_some_and(|since_ms| now_ms.saturating_sub(since_ms) > slow_ms);
        let viewers = self.viewers.iter().filter(|(_, viewer)| is_over || is_slow(viewer)).map(|(id, _)| *id);
        for id in viewers.collect::<Vec<Connection>>() {
            self.viewers.remove(&id);
            host.count(Counter::Cut, 1);
            host.close(id);
            self.settle(host, now_ms);
        }
        self.clients.retain(|id, client| {
            let is_late = now_ms.saturating_sub(client.since_ms) > REQUEST_MS_MAX;
            if is_late {
                host.close(*id);
            }
            !is_late
        });
    }
}

/// How many jobs may begin yet: what viewers ask for costs the node a sandbox each.
#[derive(Debug)]
struct Begins {
    left: u32,
    since_ms: u64,
}

impl Default for Begins {
    fn default() -> Begins {
        Begins { left: BEGINS_MAX, since_ms: 0 }
    }
}

impl Begins {
    fn take(&mut self, now_ms: u64) -> bool {
        let more = now_ms.saturating_sub(self.since_ms) / BEGIN_MS;
        self.since_ms += more * BEGIN_MS;
        self.left = u32::try_from(more).unwrap_or(u32::MAX).saturating_add(self.left).min(BEGINS_MAX);
        let is_free = self.left > 0;
        self.left -= u32::from(is_free);
        is_free
    }
}

fn refused(host: &mut dyn Host, why: &str) -> (u16, String) {
    host.count(Counter::Refused, 1);
    (503, why.to_owned())
}

/// Returns the name of a viewer in a query, empty if there is none; nothing if it is none that there can be.
fn name(query: &str) -> Option<&str> {
    let name = quality::pairs(query).find(|(name, _)| *name == "viewer").map_or("", |(_, value)| value);
    (name.len() <= NAME_BYTES_MAX && name.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(name)
}

#[cfg(test)]
mod tests;
