// SPDX-License-Identifier: Apache-2.0
//! `netserv:media/media`, `netserv:media/jobs`, which can more, and `netserv:media/pictures` for small devices.

mod first;
mod jobs;
mod orders;
mod pictures;
mod pipes;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use netserv_wire::container::media::{MediaOutcome, MediaTask};
use netserv_worker_base::limits::MEDIA_OUTPUT_BYTES_MAX;
use netserv_worker_base::media::{Ending, Ends, JobHandle, desk};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Sender;
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, Pollable};

use crate::limits::MEDIA_END_TIME_MAX;
use crate::module::Module;
use crate::state::ServerState;
use pipes::{Input, Output};

mod bindings {
    wasmtime::component::bindgen!({
        path: [
            "../../../wit/deps/wasi-io",
            "../../../wit/deps/netserv-media",
            "../../../wit/deps/netserv-media-1.1",
            "../../../wit/deps/netserv-media-1.2",
        ],
        inline: "package netserv:host-media;
            world host { import netserv:media/media@1.0.0; import netserv:media/jobs@1.1.0; import netserv:media/pictures@1.2.0; }",
        with: {
            "netserv:media/media.job": crate::blocks::media::MediaJob,
            "netserv:media/jobs.job": crate::blocks::media::MediaJob,
            "netserv:media/pictures.begun": crate::blocks::media::Begun,
            "wasi:io": wasmtime_wasi::p2::bindings::io,
        },
        imports: {
            "netserv:media/media.transcode": async | trappable,
            "netserv:media/media.probe": async | trappable,
            "netserv:media/media.[static]job.finish": async | trappable,
            "netserv:media/jobs.begin": async | trappable,
            "netserv:media/jobs.[static]job.finish": async | trappable,
            "netserv:media/pictures.[static]begun.job": async | trappable,
            default: trappable,
        },
    });
}

use bindings::netserv::media1_0_0::media::{self as wit, Error};
use bindings::netserv::media1_1_0::jobs as second;
use bindings::netserv::media1_2_0::pictures as third;

/// Adds all interfaces to a linker.
///
/// # Errors
/// One is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)?;
    second::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)?;
    third::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

/// A job as a component has it, by either interface.
pub struct MediaJob {
    ticket: Arc<JobHandle>,
    input: Option<OwnedFd>,
    outputs: Vec<Option<OwnedFd>>,
    /// Whether an output goes on without the component.
    is_handed_over: Arc<AtomicBool>,
}

/// A job that waits for its turn, or runs.
pub struct Begun {
    ticket: Arc<JobHandle>,
}

#[wasmtime_wasi::async_trait]
impl Pollable for Begun {
    async fn ready(&mut self) {
        self.ticket.settled().await;
    }
}

impl MediaJob {
    /// Begins what is ordered, with the picture that is laid over others, and waits for its turn.
    async fn begin(module: &Module, ordered: Result<(MediaTask, Vec<u8>), Error>) -> Result<MediaJob, Error> {
        let (task, picture) = ordered?;
        let ticket = Arc::new(desk().ask(module.slot, task)?);
        let (job, end) = MediaJob::started(ticket).await?;
        if let Some(end) = end {
            let mut end = Sender::from_owned_fd(end).map_err(|error| broken(&error))?;
            // A job that ends early has read what it wanted.
            tokio::spawn(async move { end.write_all(&picture).await });
        }
        Ok(job)
    }

    /// Waits for the turn of a job. Returns it with where the picture goes that is laid over others.
    async fn started(ticket: Arc<JobHandle>) -> Result<(MediaJob, Option<OwnedFd>), Error> {
        let Ends { input, outputs, picture } = ticket.started().await?;
        let outputs = outputs.into_iter().map(Some).collect();
        Ok((MediaJob { ticket, input: Some(input), outputs, is_handed_over: Arc::default() }, picture))
    }

    fn input(&mut self) -> Result<DynOutputStream, Error> {
        let pipe = self.input.take().ok_or_else(given)?;
        Ok(Box::new(Input::new(pipe).map_err(|error| broken(&error))?))
    }

    /// Returns an output, with what says whether it was handed over.
    fn output(&mut self, place: u32) -> Result<(DynInputStream, Arc<AtomicBool>), Error> {
        let outputs = self.outputs.len();
        let output = usize::try_from(place).ok().and_then(|place| self.outputs.get_mut(place));
        let output = output.ok_or_else(|| Error::Invalid(format!("output {place} of {outputs}")))?;
        let pipe = output.take().ok_or_else(given)?;
        let (most, job) = (self.ticket.output_bytes_max(MEDIA_OUTPUT_BYTES_MAX), Arc::clone(&self.ticket));
        let stream = Output::new(pipe, most, job, Arc::clone(&self.is_handed_over)).map_err(|error| broken(&error))?;
        Ok((Box::new(stream), Arc::clone(&self.is_handed_over)))
    }

    /// Ends the job, unless an output goes on without the component.
    fn drop_by_component(self) {
        if !self.is_handed_over.load(Ordering::Acquire) {
            self.ticket.cancel();
        }
    }

    /// Waits for the job's end. What of its pipes was never asked for is nothing.
    async fn finish(self) -> Result<(), Error> {
        let MediaJob { ticket, input, outputs, .. } = self;
        drop((input, outputs));
        let ended = if ticket.is_live() {
            // What gives no more and does not end keeps nobody waiting.
            tokio::time::timeout(MEDIA_END_TIME_MAX, ticket.ended()).await.unwrap_or_else(|_| {
                ticket.cancel();
                Ending::new(MediaOutcome::Failed, "its output ended before it did")
            })
        } else {
            ticket.ended().await
        };
        match ended {
            Ending { outcome: MediaOutcome::Done, .. } => Ok(()),
            ending => Err(ending.into()),
        }
    }
}

impl ServerState {
    /// Gives a component an output of a job.
    fn give_output(
        &mut self,
        job: &Resource<MediaJob>,
        place: u32,
    ) -> wasmtime::Result<Result<Resource<DynInputStream>, Error>> {
        let (stream, is_handed_over) = match self.table.get_mut(job)?.output(place) {
            Ok(output) => output,
            Err(error) => return Ok(Err(error)),
        };
        let stream = self.table.push(stream)?;
        self.blocks.media.note(stream.rep(), &is_handed_over);
        Ok(Ok(stream))
    }

    /// Gives a component what there is, as a resource of its own.
    fn give<T: Send + 'static>(&mut self, made: Result<T, Error>) -> wasmtime::Result<Result<Resource<T>, Error>> {
        made.map_or_else(|error| Ok(Err(error)), |resource| Ok(Ok(self.table.push(resource)?)))
    }
}

fn given() -> Error {
    Error::Invalid("the stream was given before".to_owned())
}

fn broken(error: &std::io::Error) -> Error {
    Error::Unavailable(error.to_string())
}

impl From<Ending> for Error {
    fn from(ending: Ending) -> Error {
        let Ending { outcome, detail } = ending;
        match outcome {
            MediaOutcome::Failed | MediaOutcome::Done => Error::Failed(detail),
            MediaOutcome::Time | MediaOutcome::Memory | MediaOutcome::Input => Error::Limit(detail),
            // Only who lets an output grow over its bound and still wants to know sees this.
            MediaOutcome::Cancelled => Error::Limit("it was given up, or its output was too large".to_owned()),
            MediaOutcome::Busy => Error::Busy,
            MediaOutcome::Unavailable => Error::Unavailable(detail),
            MediaOutcome::Invalid => Error::Invalid(detail),
        }
    }
}
