// SPDX-License-Identifier: Apache-2.0
//! Hands each connection to its port on to the server that the property `backend` names, as fast as both ends take it: who sends
//! faster than the other side reads is not read meanwhile.

use std::collections::HashMap;
use std::net::SocketAddr;

use netserv_server_sdk::tcp::{self, Action, Address, Connection, Decision, Error, Flow, Side, TcpModule};
use netserv_server_sdk::tcp_module;

#[derive(Default)]
struct PortForward {
    /// Of each connection, the one that its bytes go to.
    ways: HashMap<Connection, Way>,
}

/// The way of the bytes of one connection.
struct Way {
    /// Where they come from, of this connection.
    source: Side,
    /// Where they go.
    other: Connection,
    to: Side,
    /// What the other side has not taken.
    pending: Vec<u8>,
    /// No more comes.
    ended: bool,
}

impl Way {
    fn new(source: Side, other: Connection, to: Side) -> Way {
        Way { source, other, to, pending: Vec::new(), ended: false }
    }

    /// What the next version is told: the other connection, both sides, whether more comes, and what waits.
    fn to_bytes(&self) -> Vec<u8> {
        let is_server = |side: Side| u8::from(side == Side::Server);
        let flags = is_server(self.source) | is_server(self.to) << 1 | u8::from(self.ended) << 2;
        [&self.other.to_be_bytes()[..], &[flags], &self.pending].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Way> {
        let (other, rest) = bytes.split_first_chunk()?;
        let (flags, pending) = rest.split_first()?;
        let side = |bit: u8| if flags & bit == 0 { Side::Client } else { Side::Server };
        let way = Way::new(side(1), Connection::from_be_bytes(*other), side(2));
        Some(Way { pending: pending.to_vec(), ended: flags & 4 != 0, ..way })
    }

    /// Sends what waits. Returns whether nothing does any more.
    fn flush(&mut self) -> Result<bool, Error> {
        match tcp::send(self.other, self.to, &self.pending) {
            Ok(()) => self.pending.clear(),
            Err(Error::WouldBlock) => return Ok(false),
            Err(error) => return Err(error),
        }
        if self.ended {
            tcp::shutdown(self.other, self.to)?;
        }
        Ok(true)
    }
}

impl TcpModule for PortForward {
    fn connect(&mut self, id: Connection, _: &Flow) -> Decision {
        let Some(backend) = backend() else {
            eprintln!("the property `backend` is no address with a port");
            return Decision::Refuse;
        };
        match tcp::open(&Address { ip: backend.ip().to_string(), port: backend.port() }) {
            Ok(other) => {
                self.ways.insert(id, Way::new(Side::Client, other, Side::Server));
                self.ways.insert(other, Way::new(Side::Server, id, Side::Client));
                Decision::Serve
            }
            Err(error) => {
                eprintln!("no connection to {backend}: {error:?}");
                Decision::Refuse
            }
        }
    }

    fn data(&mut self, id: Connection, _: Side, bytes: &[u8]) -> Action {
        let Some(way) = self.ways.get_mut(&id) else { return Action::Close };
        let was_free = way.pending.is_empty();
        way.pending.extend_from_slice(bytes);
        match if was_free { way.flush() } else { Ok(false) } {
            Ok(true) => Action::Pass,
            // It goes on when the other side has room.
            Ok(false) if tcp::pause(id, way.source).is_ok() => Action::Pass,
            Ok(false) | Err(_) => Action::Close,
        }
    }

    fn end(&mut self, id: Connection, _: Side) {
        let Some(way) = self.ways.get_mut(&id) else { return };
        way.ended = true;
        if way.pending.is_empty() && tcp::shutdown(way.other, way.to).is_err() {
            self.give_up(id);
        }
    }

    fn room(&mut self, id: Connection, _: Side) {
        let from = self.ways.get(&id).map(|way| way.other);
        let Some(way) = from.and_then(|from| self.ways.get_mut(&from)) else { return };
        let (from, source) = (from.unwrap_or(id), way.source);
        match way.flush() {
            // A side that has ended is read no more.
            Ok(true) if way.ended || tcp::resume(from, source).is_ok() => {}
            Ok(false) => {}
            Ok(true) | Err(_) => self.give_up(from),
        }
    }

    /// Both ends of a client's way go, or none.
    fn export(&mut self, id: Connection) -> Option<Vec<u8>> {
        let way = self.ways.get(&id)?;
        let back = self.ways.get(&way.other)?;
        (way.pending.len().max(back.pending.len()) <= EXPORTED_MAX).then(|| way.to_bytes())
    }

    fn import(&mut self, id: Connection, _: Option<&Flow>, state: &[u8]) -> bool {
        let way = Way::from_bytes(state);
        way.map(|way| self.ways.insert(id, way)).is_some()
    }

    fn closed(&mut self, id: Connection) {
        self.give_up(id);
    }
}

/// Bytes that wait for an end and go along to the next version.
const EXPORTED_MAX: usize = 60_000;

impl PortForward {
    /// Closes a connection and its other one. One that is gone already needs no closing.
    fn give_up(&mut self, id: Connection) {
        if let Some(way) = self.ways.remove(&id) {
            self.ways.remove(&way.other);
            let _ = (tcp::close(id), tcp::close(way.other));
        }
    }
}

fn backend() -> Option<SocketAddr> {
    std::env::var("backend").ok()?.parse().ok()
}

tcp_module!(PortForward);
