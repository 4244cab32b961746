// SPDX-License-Identifier: Apache-2.0
//! What tests have in common: a node that keeps what it is told, and streams.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use netserv_server_sdk::tcp::{Connection, Side};

use crate::host::{Counter, Host, Sent};
use crate::quality::Quality;

/// A node of a test's.
#[derive(Debug, Default)]
pub struct Node {
    /// Connections that were opened.
    pub opened: Vec<Connection>,
    /// What was sent, by connection and whether it was to its server.
    pub sent: BTreeMap<(Connection, bool), Vec<u8>>,
    /// How many bytes wait for clients.
    pub queued: BTreeMap<Connection, u64>,
    /// Connections that were closed.
    pub closed: BTreeSet<Connection>,
    /// Connections that are not read.
    pub paused: BTreeSet<Connection>,
    /// What was counted.
    pub counters: BTreeMap<Counter, u64>,
    /// Whether no connection can be opened.
    pub is_cut_off: bool,
    /// Jobs that are there.
    pub jobs: BTreeMap<u32, Work>,
    /// Jobs that may run at a time.
    pub places: usize,
}

/// A job of a test's.
#[derive(Debug)]
pub struct Work {
    pub quality: Quality,
    pub runs: bool,
    pub input: Vec<u8>,
    /// How much more it takes.
    pub room: usize,
    pub output: Vec<u8>,
    pub ended: Option<String>,
}

/// Numbers of connections that are opened by the module.
pub const FIRST_OPENED: Connection = 1000;

impl Node {
    /// Returns one in which so many jobs can run.
    pub fn with(places: usize) -> Node {
        Node { places, ..Node::default() }
    }

    /// Returns what was sent to a client.
    pub fn to_client(&self, id: Connection) -> String {
        String::from_utf8_lossy(self.sent.get(&(id, false)).map_or(&[], Vec::as_slice)).into_owned()
    }

    /// Returns how many pictures of a quality a client got.
    pub fn pictures(&self, id: Connection, quality: &str) -> usize {
        self.to_client(id).matches(quality).count()
    }

    /// Returns a counter.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(&counter).copied().unwrap_or(0)
    }

    /// Has each job that runs give a picture.
    pub fn picture(&mut self) {
        for work in self.jobs.values_mut().filter(|work| work.runs) {
            work.output.extend([0xff, 0xd8, 0xff, 0xd9]);
        }
    }

    /// Gives jobs their turns.
    fn turn(&mut self) {
        let running = self.jobs.values().filter(|work| work.runs).count();
        let free = self.places.saturating_sub(running);
        self.jobs.values_mut().filter(|work| !work.runs).take(free).for_each(|work| work.runs = true);
    }
}

impl Host for Node {
    fn open(&mut self, _: SocketAddr) -> Option<Connection> {
        let id = FIRST_OPENED + self.opened.len() as u64;
        (!self.is_cut_off).then(|| self.opened.push(id)).map(|()| id)
    }

    fn send(&mut self, id: Connection, to: Side, bytes: &[u8]) -> Sent {
        if self.closed.contains(&id) {
            return Sent::Gone;
        }
        self.sent.entry((id, to == Side::Server)).or_default().extend_from_slice(bytes);
        if let Some(queued) = self.queued.get_mut(&id) {
            *queued += bytes.len() as u64;
        }
        Sent::Done
    }

    fn queued(&mut self, id: Connection) -> Option<u64> {
        (!self.closed.contains(&id)).then(|| self.queued.get(&id).copied().unwrap_or(0))
    }

    fn pause(&mut self, id: Connection, is_paused: bool) {
        let _ = if is_paused { self.paused.insert(id) } else { self.paused.remove(&id) };
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

    fn begin(&mut self, job: u32, quality: Quality) -> Result<(), String> {
        let work = Work { quality, runs: false, input: Vec::new(), room: usize::MAX, output: Vec::new(), ended: None };
        assert!(self.jobs.insert(job, work).is_none(), "there is one of that number");
        Ok(())
    }

    fn runs(&mut self, job: u32) -> Result<bool, String> {
        self.turn();
        Ok(self.jobs[&job].runs)
    }

    fn write(&mut self, job: u32, bytes: &[u8]) -> Option<usize> {
        let work = self.jobs.get_mut(&job)?;
        let taken = bytes.len().min(work.room).min(1000);
        work.room -= taken;
        work.input.extend_from_slice(&bytes[..taken]);
        work.ended.is_none().then_some(taken)
    }

    fn read(&mut self, job: u32) -> Result<Vec<u8>, String> {
        let work = self.jobs.get_mut(&job).ok_or("there is none")?;
        let bytes = std::mem::take(&mut work.output);
        match work.ended.clone().filter(|_| bytes.is_empty()) {
            Some(why) => {
                self.jobs.remove(&job);
                Err(why)
            }
            None => Ok(bytes),
        }
    }

    fn end(&mut self, job: u32) {
        self.jobs.remove(&job);
    }
}

/// Returns a packet without a clock.
pub fn packet(filler: u8) -> Vec<u8> {
    let mut packet = vec![filler; 188];
    packet[..4].copy_from_slice(&[0x47, 1, 0, 0x10]);
    packet
}

/// Returns a packet with a clock.
pub fn clocked(ms: u64) -> Vec<u8> {
    let mut packet = packet(0);
    let ticks = u32::try_from(ms * 90 / 2).expect("a small time");
    packet[3] = 0x30;
    packet[4..6].copy_from_slice(&[7, 0x10]);
    packet[6..10].copy_from_slice(&ticks.to_be_bytes());
    packet
}
