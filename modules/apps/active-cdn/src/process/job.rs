// SPDX-License-Identifier: Apache-2.0
//! A media job over a body of the cache.

use netserv_server_sdk::jobs::{self, Job, Order};
use netserv_server_sdk::media::Error;
use netserv_server_sdk::wasi::io::poll::{Pollable, poll};
use netserv_server_sdk::wasi::io::streams::{InputStream, OutputStream, StreamError};

/// A job that is fed from a stream, and whose outputs are read as they come.
pub struct Running {
    outputs: Vec<Option<InputStream>>,
    feed: Feed,
    job: Job,
}

impl Running {
    /// Begins a job; waits for its turn.
    ///
    /// # Errors
    /// The node does not offer jobs, or has no room for another one.
    pub fn begin(body: InputStream, order: &Order) -> Result<Running, Error> {
        let job = jobs::begin(order)?;
        let feed = Feed { from: Some(body), to: Some(job.input()?), rest: Vec::new(), is_broken: false };
        let places = 0..u32::try_from(order.outputs.len()).unwrap_or(u32::MAX);
        let outputs = places.map(|place| job.output(place).map(Some)).collect::<Result<_, _>>()?;
        Ok(Running { outputs, feed, job })
    }

    /// Returns the next bytes of an output, and its place; nothing at the end of all.
    pub fn next(&mut self) -> Option<(usize, Vec<u8>)> {
        while !self.feed.is_broken {
            self.feed.turn();
            for (place, output) in self.outputs.iter_mut().enumerate() {
                let Some(stream) = output else { continue };
                match stream.read(PIECE) {
                    Ok(bytes) if bytes.is_empty() => {}
                    Ok(bytes) => return Some((place, bytes)),
                    Err(StreamError::Closed | StreamError::LastOperationFailed(_)) => *output = None,
                }
            }
            let waiting: Vec<Pollable> = self.outputs.iter().flatten().map(InputStream::subscribe).collect();
            if waiting.is_empty() {
                return None;
            }
            let fed = self.feed.subscribe();
            poll(&waiting.iter().chain(&fed).collect::<Vec<_>>());
        }
        None
    }

    /// Returns how the job ended, once there is no output left.
    ///
    /// # Errors
    /// It failed; [`Error::Busy`] if the original broke off.
    pub fn finish(self) -> Result<(), Error> {
        let Running { outputs, feed, job } = self;
        let is_broken = feed.is_broken;
        drop((outputs, feed));
        if is_broken {
            // It may come whole another time.
            return Err(Error::Busy);
        }
        Job::finish(job)
    }
}

/// What goes from a stream to a job.
struct Feed {
    from: Option<InputStream>,
    to: Option<OutputStream>,
    rest: Vec<u8>,
    is_broken: bool,
}

impl Feed {
    /// Moves what can be moved without waiting.
    fn turn(&mut self) {
        while let Some(to) = &self.to {
            if self.rest.is_empty() {
                let Some(from) = &self.from else { return self.to = None };
                match from.read(PIECE) {
                    Ok(bytes) if bytes.is_empty() => return,
                    Ok(bytes) => self.rest = bytes,
                    Err(StreamError::Closed) => self.from = None,
                    Err(StreamError::LastOperationFailed(_)) => return self.is_broken = true,
                }
                continue;
            }
            // A job may have enough before the end.
            let Ok(room) = to.check_write() else { return self.to = None };
            let length = self.rest.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            if length == 0 {
                return;
            }
            if to.write(&self.rest[..length]).is_err() {
                return self.to = None;
            }
            self.rest.drain(..length);
        }
    }

    /// Returns what to wait for before more can be moved.
    fn subscribe(&self) -> Option<Pollable> {
        let to = self.to.as_ref()?;
        if self.rest.is_empty() { self.from.as_ref().map(InputStream::subscribe) } else { Some(to.subscribe()) }
    }
}

/// Bytes that are read at once.
const PIECE: u64 = 65_536;
