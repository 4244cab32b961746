// SPDX-License-Identifier: Apache-2.0
//! What the module asks of its node.

use std::net::SocketAddr;

use netserv_server_sdk::tcp::{Connection, Side};

use crate::limits::PIECE_BYTES_MIN;

/// What the module asks of its node.
pub trait Host {
    /// Returns whether the module may connect to a server; nothing if that cannot be said at the moment.
    fn may_open(&mut self, to: SocketAddr) -> Option<bool>;
    /// Opens a connection; nothing if there can be none.
    fn open(&mut self, to: SocketAddr) -> Option<Connection>;
    /// Sends bytes to a side, all or none.
    fn send(&mut self, id: Connection, to: Side, bytes: &[u8]) -> Sent;
    /// Sends as many bytes as there is room for. Returns how many, and what became of the next ones.
    fn send_part(&mut self, id: Connection, to: Side, bytes: &[u8]) -> (usize, Sent) {
        match self.send(id, to, bytes) {
            Sent::Done => (bytes.len(), Sent::Done),
            Sent::Full => self.send_pieces(id, to, bytes),
            Sent::Gone => (0, Sent::Gone),
        }
    }
    /// Does the same for a side that probably has room for little, without showing the node all bytes each time.
    fn send_pieces(&mut self, id: Connection, to: Side, bytes: &[u8]) -> (usize, Sent) {
        let (mut sent, mut piece) = (0, PIECE_BYTES_MIN);
        while sent < bytes.len() {
            piece = piece.min(bytes.len() - sent);
            match self.send(id, to, &bytes[sent..sent + piece]) {
                Sent::Done => (sent, piece) = (sent + piece, 2 * piece),
                Sent::Full if piece > PIECE_BYTES_MIN => piece = PIECE_BYTES_MIN,
                other @ (Sent::Full | Sent::Gone) => return (sent, other),
            }
        }
        (sent, Sent::Done)
    }
    /// Returns how many bytes wait for a side; nothing if it is gone.
    fn queued(&mut self, id: Connection, to: Side) -> Option<u64>;
    /// Reads a side no more, or again.
    fn pause(&mut self, id: Connection, of: Side, is_paused: bool);
    /// Tells a side that no more comes. Returns whether it is there.
    fn shutdown(&mut self, id: Connection, to: Side) -> bool;
    /// Closes a connection, if it is there, once what was sent has gone.
    fn close(&mut self, id: Connection);
    /// Adds to a counter.
    fn count(&mut self, counter: Counter, amount: u64);
    /// Sets a counter.
    fn set(&mut self, counter: Counter, value: u64);
    /// Takes note of a server of streams.
    fn learn(&mut self, server: SocketAddr);
    /// Returns whether a server was learned.
    fn is_learned(&mut self, server: SocketAddr) -> bool;
}

/// What became of bytes that were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// They are on their way.
    Done,
    /// There is no room.
    Full,
    /// There is no such connection.
    Gone,
}

/// What the module counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// Streams at the moment.
    Streams,
    /// Listeners at the moment.
    Listeners,
    /// Connections to servers that were opened for streams.
    Upstreams,
    /// Listeners that were served from a stream that was there.
    Joined,
    /// Connections that were passed on to their servers.
    Passed,
    /// Clients that were cut since they took nothing.
    Cut,
    /// Times that a source went away.
    Outages,
    /// Times that one came back where it went away.
    Continued,
    /// Bytes of sources that were none of a frame.
    DroppedBytes,
    /// Servers that were learned.
    Learned,
    /// Listeners that came from the version before.
    Imported,
}

impl Counter {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Streams => "streams",
            Counter::Listeners => "listeners",
            Counter::Upstreams => "upstreams",
            Counter::Joined => "joined",
            Counter::Passed => "passed",
            Counter::Cut => "cut",
            Counter::Outages => "outages",
            Counter::Continued => "continued",
            Counter::DroppedBytes => "dropped-bytes",
            Counter::Learned => "learned",
            Counter::Imported => "imported",
        }
    }
}
