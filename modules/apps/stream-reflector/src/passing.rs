// SPDX-License-Identifier: Apache-2.0
//! Connections that go on to their server as they are: pairs of a client's and one that was opened for it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use netserv_server_sdk::tcp::{Connection, Side};

use crate::host::{Counter, Host, Sent};
use crate::limits::{PASSED_BYTES_MAX, PASSED_QUEUED_AGAIN, PASSED_QUEUED_MAX, WAITING_BYTES_MAX};
use crate::wire::{Reader, Writer};

/// Pairs of connections.
#[derive(Debug, Default)]
pub struct Passing {
    /// Of each connection, the one that its bytes go to.
    ways: BTreeMap<Connection, Way>,
    /// Those that are not read, since much waits in the node for the other side.
    held: BTreeSet<Connection>,
    /// How often one has taken nothing.
    stuck: u64,
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
    /// Which of those it was that have taken nothing, since it last took something.
    stuck: Option<u64>,
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
        self.ways.insert(client, Way::new(Side::Client, server, Side::Server));
        self.ways.insert(server, Way::new(Side::Server, client, Side::Client));
    }

    /// Returns whether a connection is one of a pair.
    pub fn has(&self, id: Connection) -> bool {
        self.ways.contains_key(&id)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ways.is_empty()
    }

    /// Returns whether some are not read, for which it has to be looked whether they can be.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Takes bytes from one end.
    pub fn data(&mut self, host: &mut dyn Host, id: Connection, bytes: &[u8]) {
        let Some(way) = self.ways.get_mut(&id) else { return };
        let was_free = way.pending.is_empty();
        way.pending.extend_from_slice(bytes);
        match if was_free { way.flush(host) } else { Sent::Full } {
            Sent::Done => self.hold(host, id),
            Sent::Full => {
                host.pause(id, way.source, true);
                self.stuck += 1;
                way.stuck.get_or_insert(self.stuck);
                self.make_room(host);
            }
            Sent::Gone => self.give_up(host, id),
        }
    }

    /// Cuts those who have taken nothing for longest, while too much waits.
    fn make_room(&mut self, host: &mut dyn Host) {
        while self.waiting() > WAITING_BYTES_MAX {
            let stuck = self.ways.iter().filter_map(|(id, way)| Some((way.stuck?, *id)));
            let Some((_, id)) = stuck.min() else { return };
            host.count(Counter::Cut, 1);
            self.give_up(host, id);
        }
    }

    /// Reads those again for whose other ends less waits by now.
    pub fn tick(&mut self, host: &mut dyn Host) {
        let ways = &self.ways;
        self.held.retain(|id| {
            let Some(way) = ways.get(id) else { return false };
            // One that is gone says so by `closed`.
            let holds = host.queued(way.other, way.to).is_some_and(|queued| queued > PASSED_QUEUED_AGAIN);
            if !holds {
                host.pause(*id, way.source, false);
            }
            holds
        });
    }

    /// Reads an end no more while much waits in the node for the other one: what waits there is shared by all connections.
    fn hold(&mut self, host: &mut dyn Host, id: Connection) {
        let Some(way) = self.ways.get(&id) else { return };
        let is_much = host.queued(way.other, way.to).is_some_and(|queued| queued > PASSED_QUEUED_MAX);
        if is_much && self.held.insert(id) {
            host.pause(id, way.source, true);
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
            Sent::Done => {
                host.pause(from, way.source, false);
                self.held.remove(&from);
                self.hold(host, from);
            }
            Sent::Full => {
                self.stuck += 1;
                way.stuck.get_or_insert(self.stuck);
            }
            Sent::Gone => self.give_up(host, from),
        }
    }

    /// Closes a connection and its other one.
    pub fn give_up(&mut self, host: &mut dyn Host, id: Connection) {
        let Some(way) = self.ways.remove(&id) else { return };
        let back = self.ways.remove(&way.other);
        self.held.remove(&id);
        self.held.remove(&way.other);
        // A connection that is there ends when what was sent to it has gone; so has what waits here.
        if let Some(back) = back.filter(|back| !back.pending.is_empty()) {
            host.send_part(back.other, back.to, &back.pending);
        }
        if !way.pending.is_empty() {
            host.send_part(way.other, way.to, &way.pending);
        }
        host.close(id);
        host.close(way.other);
    }

    /// Says what the next version has to know of one end. Both ends go, or none.
    pub fn export(&self, id: Connection, into: &mut Writer) -> bool {
        let Some(way) = self.ways.get(&id) else { return false };
        let Some(back) = self.ways.get(&way.other) else { return false };
        let is_held = self.held.contains(&id);
        let flags = u64::from(way.source == Side::Server) | u64::from(way.has_ended) << 1 | u64::from(is_held) << 2;
        into.number(way.other).number(flags).bytes(&way.pending);
        way.pending.len().max(back.pending.len()) <= PASSED_BYTES_MAX
    }

    /// Takes one end from the version before.
    pub fn import(&mut self, id: Connection, from: &mut Reader<'_>) -> Option<()> {
        let (other, flags, pending) = (from.number()?, from.number()?, from.bytes()?.to_vec());
        let (source, to) = if flags & 1 > 0 { (Side::Server, Side::Client) } else { (Side::Client, Side::Server) };
        let (has_ended, stuck) = (flags & 2 > 0, (!pending.is_empty()).then_some(0));
        self.ways.insert(id, Way { source, other, to, pending, has_ended, stuck });
        if flags & 4 > 0 {
            self.held.insert(id);
        }
        Some(())
    }
}

impl Way {
    fn new(source: Side, other: Connection, to: Side) -> Way {
        Way { source, other, to, pending: Vec::new(), has_ended: false, stuck: None }
    }

    /// Sends what waits, as far as there is room.
    fn flush(&mut self, host: &mut dyn Host) -> Sent {
        let (length, outcome) = host.send_part(self.other, self.to, &self.pending);
        if length > 0 {
            self.stuck = None;
            // What is left keeps no more memory than it needs.
            self.pending = self.pending.split_off(length);
        }
        if outcome != Sent::Done {
            return outcome;
        }
        if self.has_ended && !host.shutdown(self.other, self.to) {
            return Sent::Gone;
        }
        Sent::Done
    }
}
