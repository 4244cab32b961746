// SPDX-License-Identifier: Apache-2.0
//! What the module asks of its node.

use std::net::SocketAddr;

use netserv_server_sdk::tcp::{Connection, Side};

use crate::quality::Quality;

/// What the module asks of its node.
pub trait Host {
    /// Opens a connection; nothing if there can be none.
    fn open(&mut self, to: SocketAddr) -> Option<Connection>;
    /// Sends bytes to a side, all or none.
    fn send(&mut self, id: Connection, to: Side, bytes: &[u8]) -> Sent;
    /// Returns how many bytes wait for a client; nothing if it is gone.
    fn queued(&mut self, id: Connection) -> Option<u64>;
    /// Reads a source no more, or again.
    fn pause(&mut self, id: Connection, is_paused: bool);
    /// Closes a connection, if it is there, once what was sent has gone.
    fn close(&mut self, id: Connection);
    /// Adds to a counter.
    fn count(&mut self, counter: Counter, amount: u64);
    /// Sets a counter.
    fn set(&mut self, counter: Counter, value: u64);
    /// Begins a job by a number.
    ///
    /// # Errors
    /// Why there is none.
    fn begin(&mut self, job: u32, quality: Quality) -> Result<(), String>;
    /// Returns whether a job runs, or waits for its turn.
    ///
    /// # Errors
    /// Why it never will.
    fn runs(&mut self, job: u32) -> Result<bool, String>;
    /// Writes to a job. Returns how many bytes it took; nothing if it takes no more.
    fn write(&mut self, job: u32, bytes: &[u8]) -> Option<usize>;
    /// Reads from a job what is there, maybe nothing.
    ///
    /// # Errors
    /// How it ended.
    fn read(&mut self, job: u32) -> Result<Vec<u8>, String>;
    /// Ends a job.
    fn end(&mut self, job: u32);
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
    /// Viewers at the moment.
    Viewers,
    /// Qualities that are made at the moment.
    Qualities,
    /// Jobs that were begun.
    Jobs,
    /// Jobs that ended before they were to.
    Failed,
    /// Pictures that viewers got.
    Pictures,
    /// Pictures that viewers did not get, since they had not taken the ones before.
    Skipped,
    /// Times that a viewer got pictures of another quality than before.
    Changed,
    /// Viewers that were cut.
    Cut,
    /// Requests for a video or quality that there was no place for.
    Refused,
    /// Connections to the source that were opened.
    Asked,
    /// Times that the source went away while it was watched.
    Outages,
    /// Answers of the source that were of no use.
    Bad,
    /// Times that a job was too slow for the source, and missed something.
    Missed,
}

impl Counter {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Viewers => "viewers",
            Counter::Qualities => "qualities",
            Counter::Jobs => "jobs",
            Counter::Failed => "failed",
            Counter::Pictures => "pictures",
            Counter::Skipped => "skipped",
            Counter::Changed => "changed",
            Counter::Cut => "cut",
            Counter::Refused => "refused",
            Counter::Asked => "asked",
            Counter::Outages => "outages",
            Counter::Bad => "bad",
            Counter::Missed => "missed",
        }
    }
}
