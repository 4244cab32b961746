// SPDX-License-Identifier: Apache-2.0
//! Connections that go on to their server as they are: pairs of a client's and one that was opened for it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use netserv_server_sdk::tcp::{Connection, Side};

use crate::host::{Counter, Host, Sent};
use crate::limits::{PASSED_BYTES_MAX, WAITING_BYTES_MAX};
use crate::wire::{Reader, Writer};

/// Pairs of connections.
#[derive(Debug, Default)]
pub struct Passing {
    /// Of each connection, the one that its bytes go to.
    ways: BTreeMap<Connection, Way>,
}

/// The way of the bytes of one connection.
#[derive(Debug)]
struct Way {
    /// Where they come from, of this connection.
    source: Side,
    /// Where they go.
    other: Connection,
    to: Side,
    /// What the other side has not taken.
    pending: Vec<u8>,
    /// No more comes.
    has_ended: bool,
}

impl Passing {
    /// Opens a connection to a client's server, and passes on what the client has sent. Returns whether there can be one.
    pub fn open(&mut self, host: &mut dyn Host, client: Connection, server: SocketAddr, sent: &[u8]) -> bool {
        let Some(other) = host.open(server) else { return false };
        self.join(client, other);
        self.data(host, client, sent);
        true
    }

    /// Joins a client with a connection that is there.
    pub fn join(&mut self, client: Connection, server: Connection) {
        let way = |source, other, to| Way { source, other, to, pending: Vec::new(), has_ended: false };
        self.ways.insert(client, way(Side::Client, server, Side::Server));
        self.ways.insert(server, way(Side::Server, client, Side::Client));
    }

    /// Returns whether a connection is one of a pair.
    pub fn has(&self, id: Connection) -> bool {
        self.ways.contains_key(&id)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ways.is_empty()
    }

    /// Takes bytes from one end.
    pub fn data(&mut self, host: &mut dyn Host, id: Connection, bytes: &[u8]) {
        let Some(way) = self.ways.get_mut(&id) else { return };
        let was_free = way.pending.is_empty();
        way.pending.extend_from_slice(bytes);
        match if was_free { way.flush(host) } else { Sent::Full } {
            Sent::Done => {}
            Sent::Full => {
                host.pause(id, way.source, true);
                if self.waiting() > WAITING_BYTES_MAX {
                    host.count(Counter::Cut, 1);
                    self.give_up(host, id);
                }
            }
            Sent::Gone => self.give_up(host, id),
        }
    }

    /// Returns how many bytes wait here.
    fn waiting(&self) -> usize {
        self.ways.values().map(|way| way.pending.len()).sum()
    }

    /// One end sends no more.
    pub fn end(&mut self, host: &mut dyn Host, id: Connection) {
        let Some(way) = self.ways.get_mut(&id) else { return };
        way.has_ended = true;
        if way.pending.is_empty() && !host.shutdown(way.other, way.to) {
            self.give_up(host, id);
        }
    }

    /// There is room for what waits for one end.
    pub fn room(&mut self, host: &mut dyn Host, id: Connection) {
        let Some(from) = self.ways.get(&id).map(|way| way.other) else { return };
        let Some(way) = self.ways.get_mut(&from) else { return };
        match way.flush(host) {
            Sent::Done if way.has_ended => {}
            Sent::Done => host.pause(from, way.source, false),
            Sent::Full => {}
            Sent::Gone => self.give_up(host, from),
        }
    }

    /// Closes a connection and its other one.
    pub fn give_up(&mut self, host: &mut dyn Host, id: Connection) {
        let Some(way) = self.ways.remove(&id) else { return };
        let back = self.ways.remove(&way.other);
        // A connection that is there ends when what was sent to it has gone; so has what waits here.
        if let Some(back) = back.filter(|back| !back.pending.is_empty()) {
            host.send(back.other, back.to, &back.pending);
        }
        if !way.pending.is_empty() {
            host.send(way.other, way.to, &way.pending);
        }
        host.close(id);
        host.close(way.other);
    }

    /// Says what the next version has to know of one end. Both ends go, or none.
    pub fn export(&self, id: Connection, into: &mut Writer) -> bool {
        let Some(way) = self.ways.get(&id) else { return false };
        let Some(back) = self.ways.get(&way.other) else { return false };
        let flags = u64::from(way.source == Side::Server) | u64::from(way.has_ended) << 1;
        into.number(way.other).number(flags).bytes(&way.pending);
        way.pending.len().max(back.pending.len()) <= PASSED_BYTES_MAX
    }

    /// Takes one end from the version before.
    pub fn import(&mut self, id: Connection, from: &mut Reader<'_>) -> Option<()> {
        let (other, flags, pending) = (from.number()?, from.number()?, from.bytes()?.to_vec());
        let (source, to) = if flags & 1 > 0 { (Side::Server, Side::Client) } else { (Side::Client, Side::Server) };
        self.ways.insert(id, Way { source, other, to, pending, has_ended: flags & 2 > 0 });
        Some(())
    }
}

impl Way {
    /// Sends what waits.
    fn flush(&mut self, host: &mut dyn Host) -> Sent {
        let sent = if self.pending.is_empty() { Sent::Done } else { host.send(self.other, self.to, &self.pending) };
        if sent != Sent::Done {
            return sent;
        }
        self.pending.clear();
        if self.has_ended && !host.shutdown(self.other, self.to) {
            return Sent::Gone;
        }
        Sent::Done
    }
}
