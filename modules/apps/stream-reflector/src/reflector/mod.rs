// SPDX-License-Identifier: Apache-2.0
//! All connections of the module, and what each is.

mod hand_over;

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::SocketAddr;

use netserv_server_sdk::tcp::{Action, Connection, Decision, Side};

use crate::head::{self, Answered, Asked, Request};
use crate::host::{Counter, Host, Sent};
use crate::limits::{
    ANSWER_HEAD_BYTES_MAX, ASKED_BYTES_MAX, DENIED_MS_MAX, FILE_MS_MAX, FILES_MAX, REQUEST_MS_MAX, SERVERS_MAX,
    WATCHED_BYTES_MAX, WATCHED_MAX, WATCHED_MS_MAX,
};
use crate::passing::Passing;
use crate::settings::Settings;
use crate::stream::{Course, Stream};

/// All connections of the module.
#[derive(Debug)]
pub struct Reflector {
    settings: Settings,
    roles: BTreeMap<Connection, Role>,
    streams: BTreeMap<u32, Stream>,
    next_stream: u32,
    passing: Passing,
    ticks: u64,
    /// Whether the module may connect to servers, and since when that is known.
    reachable: BTreeMap<SocketAddr, (bool, u64)>,
    /// Hashes of requests that were for files, and when that was seen.
    files: VecDeque<(u64, u64)>,
}

/// What a connection is, if it is not passed on.
#[derive(Debug)]
enum Role {
    /// A client whose request comes.
    Asking { server: SocketAddr, bytes: Vec<u8>, since_ms: u64 },
    /// A client of a stream.
    Client(u32),
    /// One to a stream's server.
    Source(u32),
    /// A client whose server answers it, and of which it is seen whether it is a radio's.
    Watched { server: SocketAddr, bytes: Vec<u8>, since_ms: u64 },
}

impl Reflector {
    /// Makes one without connections.
    pub fn new(settings: Settings) -> Reflector {
        let (roles, streams) = (BTreeMap::new(), BTreeMap::new());
        let (passing, reachable, files) = (Passing::default(), BTreeMap::new(), VecDeque::new());
        Reflector { settings, roles, streams, next_stream: 0, passing, ticks: 0, reachable, files }
    }

    /// Returns whether nothing is under way, so that no time has to be told.
    pub fn is_idle(&self) -> bool {
        self.roles.is_empty() && self.streams.is_empty() && !self.passing.is_holding()
    }

    /// Decides on a connection to a server; there is none for one to the module's own port.
    pub fn connect(
        &mut self,
        host: &mut dyn Host,
        now_ms: u64,
        id: Connection,
        server: Option<SocketAddr>,
    ) -> Decision {
        let Some(server) = server else {
            return match self.settings.origin {
                Some(origin) => self.serve(id, origin, now_ms, Decision::Accept),
                None => Decision::Refuse,
            };
        };
        if self.is_denied(now_ms, server) {
            return Decision::Splice;
        }
        if self.settings.servers.contains(&server) || (self.settings.learn && host.is_learned(server)) {
            let reaches = self.reaches(host, now_ms, server);
            return if reaches { self.serve(id, server, now_ms, Decision::Serve) } else { Decision::Splice };
        }
        let watched = self.roles.values().filter(|role| matches!(role, Role::Watched { .. })).count();
        if !self.settings.learn || watched >= WATCHED_MAX {
            return Decision::Splice;
        }
        self.roles.insert(id, Role::Watched { server, bytes: Vec::new(), since_ms: now_ms });
        Decision::Accept
    }

    /// Returns whether it is known that the module may not connect to a server.
    fn is_denied(&self, now_ms: u64, server: SocketAddr) -> bool {
        let known = self.reachable.get(&server);
        known.is_some_and(|(may, since_ms)| !may && now_ms.saturating_sub(*since_ms) <= DENIED_MS_MAX)
    }

    /// Returns whether the module may connect to a server: else it could answer nobody in its place.
    fn reaches(&mut self, host: &mut dyn Host, now_ms: u64, server: SocketAddr) -> bool {
        if let Some((true, _)) = self.reachable.get(&server) {
            return true;
        }
        let may = host.may_open(server);
        if let Some(may) = may {
            if self.reachable.len() >= SERVERS_MAX as usize {
                self.reachable.clear();
            }
            self.reachable.insert(server, (may, now_ms));
        }
        may == Some(true)
    }

    /// Takes bytes.
    pub fn data(&mut self, host: &mut dyn Host, now_ms: u64, id: Connection, side: Side, bytes: &[u8]) -> Action {
        match self.roles.get_mut(&id) {
            Some(Role::Asking { bytes: all, .. }) => {
                all.extend_from_slice(bytes);
                self.asked(host, now_ms, id)
            }
            Some(Role::Source(stream)) => {
                let stream = *stream;
                self.source(host, now_ms, id, stream, bytes)
            }
            Some(Role::Watched { server, bytes: all, .. }) => {
                let server = *server;
                let seen = watch(all, side, bytes);
                if seen == Seen::Stream && self.reaches(host, now_ms, server) {
                    host.learn(server);
                }
                if seen == Seen::Nothing && self.watched_bytes() <= WATCHED_BYTES_MAX {
                    return Action::Pass;
                }
                self.roles.remove(&id);
                Action::Splice
            }
            // What a listener says beyond its request is for nobody.
            Some(Role::Client(_)) => Action::Pass,
            None if self.passing.has(id) => {
                self.passing.data(host, id, bytes);
                Action::Pass
            }
            // One that was watched for long, or one that is being closed.
            None => Action::Splice,
        }
    }

    /// A side sends no more.
    pub fn end(&mut self, host: &mut dyn Host, now_ms: u64, id: Connection) {
        match self.roles.get(&id) {
            // Without a request nobody is asked, and a stream's server has nothing more.
            Some(Role::Asking { .. }) => host.close(id),
            Some(Role::Source(_)) => {
                host.close(id);
                self.closed(host, now_ms, id);
            }
            // It may still read.
            Some(Role::Client(_) | Role::Watched { .. }) => {}
            None => self.passing.end(host, id),
        }
    }

    /// There is room for a side.
    pub fn room(&mut self, host: &mut dyn Host, id: Connection) {
        self.passing.room(host, id);
    }

    /// A connection is gone.
    pub fn closed(&mut self, host: &mut dyn Host, now_ms: u64, id: Connection) {
        self.passing.give_up(host, id);
        match self.roles.remove(&id) {
            Some(Role::Client(number)) => {
                if let Some(stream) = self.streams.get_mut(&number) {
                    stream.listeners.remove(&id);
                    stream.waiting.remove(&id);
                    self.end_if_idle(host, now_ms, number);
                }
            }
            Some(Role::Source(number)) => {
                let stream = self.streams.get_mut(&number).filter(|stream| stream.source_id() == Some(id));
                match stream.map(|stream| stream.lost(host, now_ms)) {
                    Some(Course::Goes) | None => {}
                    Some(Course::Ends) => self.end_stream(host, number),
                    Some(Course::IsNone { said, has_titles }) => {
                        self.is_none(host, number, &said, has_titles);
                        self.passing.give_up(host, id);
                    }
                }
            }
            Some(Role::Asking { .. } | Role::Watched { .. }) | None => {}
        }
    }

    /// Asks for what is live anew, since the way there may lead over a node by now that has it: listeners have what is kept meanwhile.
    pub fn reopen(&mut self, host: &mut dyn Host, now_ms: u64) {
        let mut sources: Vec<Connection> = Vec::new();
        for stream in self.streams.values_mut() {
            if let Some(id) = stream.live_id() {
                stream.is_moved = true;
                sources.push(id);
            }
        }
        for id in sources {
            host.close(id);
            self.closed(host, now_ms, id);
        }
    }

    /// Some milliseconds are over.
    pub fn tick(&mut self, host: &mut dyn Host, now_ms: u64) {
        self.ticks += 1;
        let late = self.roles.iter().filter_map(|(id, role)| match role {
            Role::Asking { since_ms, .. } if now_ms.saturating_sub(*since_ms) > REQUEST_MS_MAX => Some(*id),
            Role::Watched { since_ms, .. } if now_ms.saturating_sub(*since_ms) > WATCHED_MS_MAX => Some(*id),
            Role::Asking { .. } | Role::Client(_) | Role::Source(_) | Role::Watched { .. } => None,
        });
        for id in late.collect::<Vec<_>>() {
            // One that is watched goes on without the module from its next bytes on.
            self.pass(host, id);
        }
        self.passing.tick(host);
        for number in self.streams.keys().copied().collect::<Vec<_>>() {
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            let before = stream.source_id();
            let course = stream.tick(host, &self.settings, now_ms, self.ticks);
            self.follow(before, number);
            match course {
                Course::Goes => self.end_if_idle(host, now_ms, number),
                Course::Ends => self.end_stream(host, number),
                Course::IsNone { said, has_titles } => self.is_none(host, number, &said, has_titles),
            }
        }
        if self.ticks.is_multiple_of(TICKS_COUNTED) {
            self.show(host);
        }
    }

    /// Sets the counters of what is there.
    pub fn show(&self, host: &mut dyn Host) {
        host.set(Counter::Streams, self.streams.len() as u64);
        host.set(Counter::Listeners, self.streams.values().map(|stream| stream.listeners.len() as u64).sum());
    }

    fn serve(&mut self, id: Connection, server: SocketAddr, now_ms: u64, decision: Decision) -> Decision {
        self.roles.insert(id, Role::Asking { server, bytes: Vec::new(), since_ms: now_ms });
        decision
    }

    /// Looks at a client's request.
    fn asked(&mut self, host: &mut dyn Host, now_ms: u64, id: Connection) -> Action {
        let Some(Role::Asking { server, bytes, .. }) = self.roles.get(&id) else { return Action::Close };
        let server = *server;
        match head::asked(bytes) {
            Asked::Incomplete => {
                self.make_room(host);
                Action::Pass
            }
            Asked::Other => self.pass(host, id),
            Asked::Stream(request) => self.join(host, now_ms, id, server, request),
        }
    }

    /// Passes on the longest of the requests that have not come whole, while there are too many bytes of them.
    fn make_room(&mut self, host: &mut dyn Host) {
        loop {
            let asking = self.roles.iter().filter_map(|(id, role)| match role {
                Role::Asking { bytes, .. } => Some((bytes.len(), *id)),
                Role::Client(_) | Role::Source(_) | Role::Watched { .. } => None,
            });
            let (bytes, longest) = asking.fold((0, (0, 0)), |(bytes, longest), one| (bytes + one.0, longest.max(one)));
            if bytes <= ASKED_BYTES_MAX {
                return;
            }
            self.pass(host, longest.1);
        }
    }

    fn watched_bytes(&self) -> usize {
        let watched = self.roles.values().map(|role| match role {
            Role::Watched { bytes, .. } => bytes.len(),
            Role::Asking { .. } | Role::Client(_) | Role::Source(_) => 0,
        });
        watched.sum()
    }

    /// Has a client join a stream, which is asked for if it is the first.
    fn join(
        &mut self,
        host: &mut dyn Host,
        now_ms: u64,
        id: Connection,
        server: SocketAddr,
        Request { key, wants_titles, has_origin, onward }: Request,
    ) -> Action {
        let known = self.streams.iter().find(|(_, stream)| stream.server == server && stream.key == key);
        let hash = hash(server, &key);
        let is_recent = |since_ms: u64| now_ms.saturating_sub(since_ms) <= FILE_MS_MAX;
        let is_file = self.files.iter().any(|(file, since_ms)| *file == hash && is_recent(*since_ms));
        let number = match known.map(|(number, stream)| (*number, stream)) {
            Some((_, stream)) if !stream.has_place() => return self.pass(host, id),
            Some((number, _)) => {
                host.count(Counter::Joined, 1);
                number
            }
            None if is_file || self.streams.len() >= self.settings.streams => return self.pass(host, id),
            None => {
                let mut stream = Stream::new(server, key, has_origin, onward);
                if !stream.ask(host, now_ms) {
                    return self.unreached(host, id, server);
                }
                let number = self.new_stream(stream);
                self.follow(None, number);
                number
            }
        };
        let Some(Role::Asking { bytes, .. }) = self.roles.insert(id, Role::Client(number)) else {
            return Action::Close;
        };
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.add(host, &self.settings, now_ms, (id, wants_titles, bytes));
        }
        Action::Pass
    }

    fn new_stream(&mut self, stream: Stream) -> u32 {
        let number = self.next_stream;
        self.next_stream = self.next_stream.wrapping_add(1);
        self.streams.insert(number, stream);
        number
    }

    /// Takes what a stream's server says.
    fn source(&mut self, host: &mut dyn Host, now_ms: u64, id: Connection, number: u32, bytes: &[u8]) -> Action {
        let stream = self.streams.get_mut(&number).filter(|stream| stream.source_id() == Some(id));
        let Some(stream) = stream else { return Action::Close };
        match stream.data(host, &self.settings, now_ms, bytes) {
            Course::Goes => self.end_if_idle(host, now_ms, number),
            Course::IsNone { said, has_titles } => self.is_none(host, number, &said, has_titles),
            Course::Ends => self.end_stream(host, number),
        }
        Action::Pass
    }

    /// What a server has answered is for the first client alone, and the others ask for themselves. So does the first if there are titles
    /// in it that it did not ask for.
    fn is_none(&mut self, host: &mut dyn Host, number: u32, said: &[u8], has_titles: bool) {
        let Some(mut stream) = self.streams.remove(&number) else { return };
        let mut source = stream.source_id().inspect(|id| drop(self.roles.remove(id)));
        for (id, (wants_titles, sent)) in std::mem::take(&mut stream.waiting) {
            self.roles.remove(&id);
            if let Some(server) = source.take_if(|_| wants_titles || !has_titles) {
                host.count(Counter::Passed, 1);
                self.passing.join(id, server);
                self.passing.data(host, server, said);
            } else {
                self.pass_to(host, id, stream.server, &sent);
            }
        }
        if let Some(id) = source {
            host.close(id);
        }
    }

    /// Hands a client on to its server, with what it has sent.
    fn pass(&mut self, host: &mut dyn Host, id: Connection) -> Action {
        match self.roles.remove(&id) {
            Some(Role::Asking { server, bytes, .. }) => self.pass_to(host, id, server, &bytes),
            Some(Role::Client(_) | Role::Source(_) | Role::Watched { .. }) | None => Action::Splice,
        }
    }

    fn pass_to(&mut self, host: &mut dyn Host, id: Connection, server: SocketAddr, sent: &[u8]) -> Action {
        if !self.passing.open(host, id, server, sent) {
            return self.unreached(host, id, server);
        }
        host.count(Counter::Passed, 1);
        Action::Pass
    }

    /// Tells a client that there can be no connection to its server; whether there may be any is looked at for the next one.
    fn unreached(&mut self, host: &mut dyn Host, id: Connection, server: SocketAddr) -> Action {
        self.reachable.remove(&server);
        self.unreachable(host, id)
    }

    /// Tells a client that its server cannot be reached.
    fn unreachable(&mut self, host: &mut dyn Host, id: Connection) -> Action {
        self.roles.remove(&id);
        if host.send(id, Side::Client, UNREACHABLE) != Sent::Gone {
            host.close(id);
        }
        Action::Pass
    }

    /// Takes note of the connection to a stream's server.
    fn follow(&mut self, before: Option<Connection>, number: u32) {
        let id = self.streams.get(&number).and_then(Stream::source_id);
        if id == before {
            return;
        }
        if let Some(before) = before {
            self.roles.remove(&before);
        }
        if let Some(id) = id {
            self.roles.insert(id, Role::Source(number));
        }
    }

    /// Closes the connection to a stream's server behind the last listener.
    fn end_if_idle(&mut self, host: &mut dyn Host, now_ms: u64, number: u32) {
        let Some(stream) = self.streams.get(&number).filter(|stream| stream.is_idle()) else { return };
        // A radio that goes away again and again may stay one day.
        if stream.is_over() && stream.answer.as_ref().is_some_and(|told| !told.is_radio) {
            if self.files.len() >= FILES_MAX {
                self.files.pop_front();
            }
            self.files.push_back((hash(stream.server, &stream.key), now_ms));
        }
        self.end_stream(host, number);
    }

    /// Ends a stream with all that belongs to it.
    fn end_stream(&mut self, host: &mut dyn Host, number: u32) {
        let Some(stream) = self.streams.remove(&number) else { return };
        if let Some(id) = stream.source_id() {
            self.roles.remove(&id);
            host.close(id);
        }
        for id in stream.waiting.into_keys() {
            self.unreachable(host, id);
        }
        for id in stream.listeners.into_keys() {
            self.roles.remove(&id);
            host.close(id);
        }
        self.show(host);
    }
}

fn hash(server: SocketAddr, key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (server, key).hash(&mut hasher);
    hasher.finish()
}

/// What is seen of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// Nothing yet.
    Nothing,
    /// That it has something else than streams.
    Other,
    /// That it has streams.
    Stream,
}

/// Looks at what a client and its server say to each other.
fn watch(all: &mut Vec<u8>, side: Side, bytes: &[u8]) -> Seen {
    if side == Side::Client {
        // A long request may come in several pieces.
        let is_other = all.is_empty() && !bytes.starts_with(b"GET ") && bytes.len() >= 4;
        return if is_other { Seen::Other } else { Seen::Nothing };
    }
    all.extend_from_slice(&bytes[..bytes.len().min(ANSWER_HEAD_BYTES_MAX.saturating_sub(all.len()))]);
    match head::answered(all, false) {
        Answered::Incomplete => Seen::Nothing,
        Answered::Stream(_) => Seen::Stream,
        Answered::Other { .. } => Seen::Other,
    }
}

/// What a client is told whose server cannot be reached.
const UNREACHABLE: &[u8] = b"HTTP/1.0 502 Bad Gateway\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n\
    the radio server cannot be reached\n";
/// Counters of what is there are set once a second.
const TICKS_COUNTED: u64 = 20;

#[cfg(test)]
mod tests;
