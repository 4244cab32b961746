// SPDX-License-Identifier: Apache-2.0
//! The streams of a media job: ends of pipes whose other ends ffmpeg has.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Buf as _, Bytes};
use netserv_wire::container::media::MediaOutcome;
use netserv_worker_base::limits::MEDIA_PIECE_BYTES_MAX;
use netserv_worker_base::media::{Ending, JobHandle};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::{Receiver, Sender};
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::limits::MEDIA_REST_TIME_MAX;

/// Where a job's input goes.
pub struct Input {
    pipe: Option<Sender>,
    /// What was taken and not yet written.
    rest: Bytes,
}

impl Input {
    /// Returns the stream over a pipe.
    ///
    /// # Errors
    /// It is no pipe, or cannot be waited for.
    pub fn new(pipe: OwnedFd) -> io::Result<Input> {
        Ok(Input { pipe: Some(Sender::from_owned_fd(pipe)?), rest: Bytes::new() })
    }

    /// Writes as much as there is room for.
    fn push(&mut self) -> StreamResult<()> {
        while !self.rest.is_empty() {
            let Some(pipe) = &self.pipe else { return Err(StreamError::Closed) };
            match pipe.try_write(&self.rest) {
                Ok(written) => self.rest.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => {
                    // ffmpeg has enough, or is gone.
                    (self.pipe, self.rest) = (None, Bytes::new());
                    return Err(StreamError::Closed);
                }
            }
        }
        Ok(())
    }
}

impl OutputStream for Input {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if !self.rest.is_empty() {
            return Err(StreamError::trap("more was written than was permitted"));
        }
        self.rest = bytes;
        self.push()
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.push()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.push()?;
        match &self.pipe {
            None => Err(StreamError::Closed),
            Some(_) => Ok(if self.rest.is_empty() { MEDIA_PIECE_BYTES_MAX } else { 0 }),
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Input {
    async fn ready(&mut self) {
        while !self.rest.is_empty() {
            let Some(pipe) = &self.pipe else { return };
            // If it cannot be waited for, the next write says so.
            if pipe.writable().await.is_err() || self.push().is_err() {
                return;
            }
        }
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        let (Some(mut pipe), false) = (self.pipe.take(), self.rest.is_empty()) else { return };
        let rest = std::mem::take(&mut self.rest);
        // Instances are dropped on threads of the runtime; elsewhere nobody waits for the rest.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // A job that takes no more of it, or nothing for so long, has what it has.
                let _ = tokio::time::timeout(MEDIA_REST_TIME_MAX, pipe.write_all(&rest)).await;
            });
        }
    }
}

/// Where a job's output comes from.
pub struct Output {
    pipe: Receiver,
    left: u64,
    job: Arc<JobHandle>,
    /// Whether it goes on without the component, which then does not ask how the job ended.
    is_handed_over: Arc<AtomicBool>,
    is_over: bool,
}

impl Output {
    /// Returns the stream over a pipe, which gives `bytes_max` bytes of a job at most.
    ///
    /// # Errors
    /// It is no pipe, or cannot be waited for.
    pub fn new(
        pipe: OwnedFd,
        bytes_max: u64,
        job: Arc<JobHandle>,
        is_handed_over: Arc<AtomicBool>,
    ) -> io::Result<Output> {
        Ok(Output { pipe: Receiver::from_owned_fd(pipe)?, left: bytes_max, job, is_handed_over, is_over: false })
    }

    /// Says how it ends: as its job did, for who does not ask that.
    fn end(&mut self) -> StreamResult<Bytes> {
        self.is_over = true;
        if !self.is_handed_over.load(Ordering::Acquire) {
            return Err(StreamError::Closed);
        }
        match self.job.ending() {
            None => Ok(Bytes::new()),
            Some(Ending { outcome: MediaOutcome::Done, .. }) => Err(StreamError::Closed),
            Some(Ending { detail, .. }) => Err(StreamError::LastOperationFailed(wasmtime::format_err!("{detail}"))),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Its component is not there to do it.
        if self.is_handed_over.load(Ordering::Acquire) {
            self.job.cancel();
        }
    }
}

impl InputStream for Output {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let mut bytes = vec![0; size.min(MEDIA_PIECE_BYTES_MAX)];
        if bytes.is_empty() {
            return Ok(Bytes::new());
        }
        if self.is_over {
            return self.end();
        }
        match self.pipe.try_read(&mut bytes) {
            Ok(0) => self.end(),
            Ok(length) => {
                let length_wide = u64::try_from(length).unwrap_or(u64::MAX);
                if length_wide > self.left {
                    self.job.cancel();
                    return Err(StreamError::LastOperationFailed(wasmtime::format_err!("the output is too large")));
                }
                self.left -= length_wide;
                bytes.truncate(length);
                Ok(bytes.into())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Bytes::new()),
            Err(error) => Err(StreamError::LastOperationFailed(error.into())),
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {
        if self.is_over && self.is_handed_over.load(Ordering::Acquire) {
            let _ = self.job.ended().await;
            return;
        }
        // If it cannot be waited for, the next read says so.
        let _ = self.pipe.readable().await;
    }
}

#[cfg(test)]
mod tests {
    use netserv_model::effect::ModuleSlot;
    use netserv_wire::container::media::{MediaSource, MediaTask};
    use netserv_worker_base::media::Desk;

    use super::*;

    #[tokio::test]
    async fn input_waits_for_room_and_is_written_to_its_end() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let mut input = Input::new(writer).unwrap();
        let piece = Bytes::from(vec![7; MEDIA_PIECE_BYTES_MAX]);
        let mut written = 0;
        while input.check_write().unwrap() > 0 {
            input.write(piece.clone()).unwrap();
            written += piece.len();
        }
        assert!((MEDIA_PIECE_BYTES_MAX..=4 * MEDIA_PIECE_BYTES_MAX).contains(&written), "{written}");
        assert!(input.write(piece).is_err(), "nothing was permitted");
        drop(input);
        // The rest goes on in the background, and then the pipe is closed.
        let mut reader = Receiver::from_owned_fd(reader).unwrap();
        let mut read = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut read).await.unwrap();
        assert_eq!(read.len(), written);
    }

    #[tokio::test]
    async fn input_ends_when_nobody_reads_it_any_more() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let mut input = Input::new(writer).unwrap();
        while input.check_write().unwrap() > 0 {
            input.write(Bytes::from(vec![7; MEDIA_PIECE_BYTES_MAX])).unwrap();
        }
        drop(reader);
        input.ready().await;
        assert!(matches!(input.check_write(), Err(StreamError::Closed)));
    }

    #[tokio::test]
    async fn output_is_counted_and_one_too_many_ends_the_job() {
        let desk: &'static Desk = Box::leak(Box::default());
        desk.open(|| {});
        let ticket = Arc::new(desk.ask(ModuleSlot(0), MediaTask::Probe { source: MediaSource::Any }).unwrap());
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let mut output = Output::new(reader, 6, Arc::clone(&ticket), Arc::default()).unwrap();
        assert!(output.read(10).unwrap().is_empty());
        rustix::io::write(&writer, b"12345").unwrap();
        output.ready().await;
        assert_eq!(output.read(3).unwrap(), "123");
        assert_eq!(output.read(10).unwrap(), "45");
        rustix::io::write(&writer, b"67").unwrap();
        assert!(matches!(output.read(10), Err(StreamError::LastOperationFailed(_))));
        assert_eq!(ticket.ended().await.outcome, MediaOutcome::Cancelled);
        drop(writer);
        assert!(matches!(output.read(10), Err(StreamError::Closed)));
    }

    /// Goal: output that was handed over ends as its job does, so that one that was broken off is not taken for whole; and a job ends whose
    /// output nobody has any more.
    #[tokio::test]
    async fn output_that_was_handed_over_ends_as_its_job_does() {
        for (outcome, is_whole) in [(MediaOutcome::Done, true), (MediaOutcome::Failed, false)] {
            let desk: &'static Desk = Box::leak(Box::default());
            desk.open(|| {});
            let ticket = Arc::new(desk.ask(ModuleSlot(0), MediaTask::Probe { source: MediaSource::Any }).unwrap());
            let (reader, writer) = rustix::pipe::pipe().unwrap();
            let is_handed_over = Arc::new(AtomicBool::new(true));
            let mut output = Output::new(reader, 6, Arc::clone(&ticket), is_handed_over).unwrap();
            drop(writer);
            output.ready().await;
            assert!(output.read(10).unwrap().is_empty(), "it is not known yet");
            let ended = ticket.number();
            let told = tokio::spawn(async move {
                output.ready().await;
                output.read(10)
            });
            desk.handle_ended(ended, outcome, "why".to_owned());
            let end = told.await.unwrap();
            assert_eq!(matches!(end, Err(StreamError::Closed)), is_whole, "{end:?}");
            assert_eq!(matches!(end, Err(StreamError::LastOperationFailed(_))), !is_whole, "{end:?}");
            let ticket = Arc::new(desk.ask(ModuleSlot(0), MediaTask::Probe { source: MediaSource::Any }).unwrap());
            let (reader, _writer) = rustix::pipe::pipe().unwrap();
            drop(Output::new(reader, 6, Arc::clone(&ticket), Arc::new(AtomicBool::new(true))).unwrap());
            assert_eq!(ticket.ended().await.outcome, MediaOutcome::Cancelled);
        }
    }
}
