// SPDX-License-Identifier: Apache-2.0
//! All connections of the module, and what each is.

mod hand_over;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use netserv_server_sdk::tcp::{Action, Connection, Decision, Side};

use crate::head::{self, Answered, Asked, Request};
use crate::host::{Counter, Host, Sent};
use crate::limits::{ASKED_BYTES_MAX, REQUEST_HEAD_BYTES_MAX, REQUEST_MS_MAX};
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
    Watched { server: SocketAddr, bytes: Vec<u8> },
}

impl Reflector {
    /// Makes one without connections.
    pub fn new(settings: Settings) -> Reflector {
        let (roles, streams) = (BTreeMap::new(), BTreeMap::new());
        Reflector { settings, roles, streams, next_stream: 0, passing: Passing::default(), ticks: 0 }
    }

    /// Returns whether nothing is under way, so that no time has to be told.
    pub fn is_idle(&self) -> bool {
        self.roles.is_empty() && self.streams.is_empty()
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
        if self.settings.servers.contains(&server) || (self.settings.learn && host.is_learned(server)) {
            return self.serve(id, server, now_ms, Decision::Serve);
        }
        if !self.settings.learn {
            return Decision::Splice;
        }
        self.roles.insert(id, Role::Watched { server, bytes: Vec::new() });
        Decision::Accept
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
            Some(Role::Watched { server, bytes: all }) => {
                let server = *server;
                let is_over = watch(host, server, all, side, bytes);
                if is_over {
                    self.roles.remove(&id);
                    return Action::Splice;
                }
                Action::Pass
            }
            // What a listener says beyond its request is for nobody.
            Some(Role::Client(_)) => Action::Pass,
            None if self.passing.has(id) => {
                self.passing.data(host, id, bytes);
                Action::Pass
            }
            None => Action::Close,
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
                    self.end_if_idle(host, number);
                }
            }
            Some(Role::Source(number)) => {
                let stream = self.streams.get_mut(&number).filter(|stream| stream.source_id() == Some(id));
                if stream.is_some_and(|stream| stream.lost(host, now_ms) == Course::Ends) {
                    self.end_stream(host, number);
                }
            }
            Some(Role::Asking { .. } | Role::Watched { .. }) | None => {}
        }
    }

    /// Some milliseconds are over.
    pub fn tick(&mut self, host: &mut dyn Host, now_ms: u64) {
        self.ticks += 1;
        let late = self.roles.iter().filter_map(|(id, role)| match role {
            Role::Asking { since_ms, .. } if now_ms.saturating_sub(*since_ms) > REQUEST_MS_MAX => Some(*id),
            Role::Asking { .. } | Role::Client(_) | Role::Source(_) | Role::Watched { .. } => None,
        });
        for id in late.collect::<Vec<_>>() {
            self.pass(host, id);
        }
        for number in self.streams.keys().copied().collect::<Vec<_>>() {
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            let before = stream.source_id();
            let course = stream.tick(host, &self.settings, now_ms, self.ticks);
            self.follow(before, number);
            match course {
                Course::Goes => self.end_if_idle(host, number),
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
            Asked::Incomplete if !self.keeps_much() => Action::Pass,
            Asked::Incomplete | Asked::Other => self.pass(host, id),
            Asked::Stream(_) if self.keeps_much() => self.pass(host, id),
            Asked::Stream(request) => self.join(host, now_ms, id, server, request),
        }
    }

    /// Returns whether no more requests can be kept.
    fn keeps_much(&self) -> bool {
        let asking = self.roles.values().map(|role| match role {
            Role::Asking { bytes, .. } => bytes.len(),
            Role::Client(_) | Role::Source(_) | Role::Watched { .. } => 0,
        });
        let waiting = self.streams.values().flat_map(|stream| stream.waiting.values().map(|(_, sent)| sent.len()));
        asking.chain(waiting).sum::<usize>() > ASKED_BYTES_MAX
    }

    /// Has a client join a stream, which is asked for if it is the first.
    fn join(
        &mut self,
        host: &mut dyn Host,
        now_ms: u64,
        id: Connection,
        server: SocketAddr,
        Request { key, wants_titles, onward }: Request,
    ) -> Action {
        let known = self.streams.iter().find(|(_, stream)| stream.server == server && stream.key == key);
        let number = match known.map(|(number, _)| *number) {
            Some(number) => {
                host.count(Counter::Joined, 1);
                number
            }
            None if self.streams.len() >= self.settings.streams => return self.pass(host, id),
            None => {
                let mut stream = Stream::new(server, key, onward);
                if !stream.ask(host, now_ms) {
                    return self.unreachable(host, id);
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
            Course::Goes => self.end_if_idle(host, number),
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
            Some(Role::Client(_) | Role::Source(_) | Role::Watched { .. }) | None => Action::Close,
        }
    }

    fn pass_to(&mut self, host: &mut dyn Host, id: Connection, server: SocketAddr, sent: &[u8]) -> Action {
        if !self.passing.open(host, id, server, sent) {
            return self.unreachable(host, id);
        }
        host.count(Counter::Passed, 1);
        Action::Pass
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
    fn end_if_idle(&mut self, host: &mut dyn Host, number: u32) {
        if self.streams.get(&number).is_some_and(Stream::is_idle) {
            self.end_stream(host, number);
        }
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

/// Looks at what a client and its server say to each other; returns whether that is known by now.
fn watch(host: &mut dyn Host, server: SocketAddr, all: &mut Vec<u8>, side: Side, bytes: &[u8]) -> bool {
    if side == Side::Client {
        // A long request may come in several pieces.
        return all.is_empty() && !bytes.starts_with(b"GET ") && bytes.len() >= 4;
    }
    all.extend_from_slice(bytes);
    match head::answered(all) {
        Answered::Incomplete => all.len() > REQUEST_HEAD_BYTES_MAX,
        Answered::Stream(_) => {
            host.learn(server);
            true
        }
        Answered::Other { .. } => true,
    }
}

/// What a client is told whose server cannot be reached.
const UNREACHABLE: &[u8] = b"HTTP/1.0 502 Bad Gateway\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n\
    the radio server cannot be reached\n";
/// Counters of what is there are set once a second.
const TICKS_COUNTED: u64 = 20;

#[cfg(test)]
mod tests;
