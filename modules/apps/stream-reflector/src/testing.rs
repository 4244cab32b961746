// SPDX-License-Identifier: Apache-2.0
//! What tests have in common: a node that keeps what it is told, streams, and numbers that are the same each time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use netserv_server_sdk::tcp::{Connection, Side};

use crate::host::{Counter, Host, Sent};

/// A node of a test's.
#[derive(Debug, Default)]
pub struct Node {
    /// Connections that were opened, with whom.
    pub opened: Vec<(Connection, SocketAddr)>,
    /// What was sent, by connection and whether it was to its server.
    pub sent: BTreeMap<(Connection, bool), Vec<u8>>,
    /// Connections that take nothing.
    pub stuck: BTreeSet<Connection>,
    /// Connections that were closed.
    pub closed: BTreeSet<Connection>,
    /// Connections that are not read.
    pub paused: BTreeSet<Connection>,
    /// Sides that were told that no more comes.
    pub shut: BTreeSet<Connection>,
    /// What was counted.
    pub counters: BTreeMap<Counter, u64>,
    /// Servers that were learned.
    pub learned: BTreeSet<SocketAddr>,
    /// Whether no connection can be opened.
    pub is_cut_off: bool,
    /// Servers to which the module may not connect.
    pub denied: BTreeSet<SocketAddr>,
    /// Bytes that may wait for one side, if there are so few; nothing waits unless a test says so.
    pub share: Option<usize>,
    /// How often something can be sent, if not as often as is tried.
    pub room: Option<usize>,
    /// Bytes that it was tried to send.
    pub tried: usize,
    /// How many bytes wait for sides.
    pub queued: BTreeMap<Connection, u64>,
}

/// Numbers of connections that tests have opened by the module.
pub const FIRST_OPENED: Connection = 1000;

impl Node {
    /// Returns what was sent to a client.
    pub fn to_client(&self, id: Connection) -> &[u8] {
        self.sent.get(&(id, false)).map_or(&[], Vec::as_slice)
    }

    /// Returns what was sent to a server.
    pub fn to_server(&self, id: Connection) -> &[u8] {
        self.sent.get(&(id, true)).map_or(&[], Vec::as_slice)
    }

    /// Returns what a client has got behind the head.
    pub fn body(&self, id: Connection) -> &[u8] {
        let all = self.to_client(id);
        let end = all.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head");
        &all[end + 4..]
    }

    /// Returns a counter.
    pub fn count(&self, counter: Counter) -> u64 {
        self.counters.get(&counter).copied().unwrap_or(0)
    }
}

impl Host for Node {
    fn may_open(&mut self, to: SocketAddr) -> Option<bool> {
        Some(!self.denied.contains(&to))
    }

    fn open(&mut self, to: SocketAddr) -> Option<Connection> {
        let id = FIRST_OPENED + self.opened.len() as u64;
        let may_open = !self.is_cut_off && !self.denied.contains(&to);
        may_open.then(|| self.opened.push((id, to))).map(|()| id)
    }

    fn send(&mut self, id: Connection, to: Side, bytes: &[u8]) -> Sent {
        if self.closed.contains(&id) {
            return Sent::Gone;
        }
        self.tried += bytes.len();
        if self.room == Some(0) || self.stuck.contains(&id) || self.share.is_some_and(|share| bytes.len() > share) {
            return Sent::Full;
        }
        self.room = self.room.map(|room| room - 1);
        self.sent.entry((id, to == Side::Server)).or_default().extend_from_slice(bytes);
        Sent::Done
    }

    fn queued(&mut self, id: Connection, _: Side) -> Option<u64> {
        (!self.closed.contains(&id)).then(|| self.queued.get(&id).copied().unwrap_or(0))
    }

    fn pause(&mut self, id: Connection, _: Side, is_paused: bool) {
        if is_paused {
            self.paused.insert(id);
        } else {
            self.paused.remove(&id);
        }
    }

    fn shutdown(&mut self, id: Connection, _: Side) -> bool {
        self.shut.insert(id);
        !self.closed.contains(&id)
    }

    fn close(&mut self, id: Connection) {
        self.closed.insert(id);
    }

    fn count(&mut self, counter: Counter, amount: u64) {
        *self.counters.entry(counter).or_default() += amount;
    }

    fn set(&mut self, counter: Counter, value: u64) {
        self.counters.insert(counter, value);
    }

    fn learn(&mut self, server: SocketAddr) {
        self.learned.insert(server);
    }

    fn is_learned(&mut self, server: SocketAddr) -> bool {
        self.learned.contains(&server)
    }
}

/// Numbers that are the same each time.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns a number below another one.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    /// Returns a number below another one, as a size.
    pub fn size(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).expect("it is below a size")
    }

    /// Returns so many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| u8::try_from(self.below(256)).expect("a byte")).collect()
    }
}

/// Bytes of a frame of [`mp3`].
pub const MP3_BYTES: usize = 417;
/// How long it sounds.
pub const MP3_US: u64 = 26_122;

/// Returns a frame of MP3 (128 kbit/s, 44.1 kHz) with a number; it needs none before it.
pub fn mp3(number: usize) -> Vec<u8> {
    let mut frame = vec![0x55; MP3_BYTES];
    frame[..8].copy_from_slice(&[0xff, 0xfb, 0x90, 0x04, 0, 0, 0, 0]);
    let [a, b, c, d] = u32::try_from(number).expect("few frames").to_be_bytes();
    // No byte is 0xff, with which a header begins.
    frame[100..108].copy_from_slice(&[a >> 4, a & 15, b >> 4, b & 15, c >> 4, c & 15, d >> 4, d & 15]);
    frame
}

/// Returns the frames of a stream from one number on.
pub fn mp3s(numbers: std::ops::Range<usize>) -> Vec<u8> {
    numbers.flat_map(mp3).collect()
}

/// Returns a frame of AAC in ADTS (44.1 kHz, two channels) of a length.
pub fn adts(length: usize, filler: u8) -> Vec<u8> {
    let mut frame = vec![filler; length];
    let [_, high, low] = u32::try_from(length << 5).expect("13 bits").to_be_bytes()[1..] else { unreachable!() };
    let first = u8::try_from(length >> 11).expect("two bits");
    frame[..7].copy_from_slice(&[0xff, 0xf1, 0x50, 0x80 | first, high, low | 0x1f, 0xfc]);
    frame
}
