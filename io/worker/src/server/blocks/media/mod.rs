// SPDX-License-Identifier: Apache-2.0
//! `netserv:media/media`.

mod pipes;

use std::sync::Arc;

use netserv_wire::container::media::{
    self, AudioCodec, MediaFormat, MediaLayer, MediaOutcome, MediaOverlay, MediaSettings, MediaSource, MediaTask,
    PROBE_BYTES_MAX, VideoCodec,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::{Receiver, Sender};
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

use crate::limits::{MEDIA_OUTPUT_BYTES_MAX, MEDIA_PROBED_BYTES_MAX};
use crate::media::description::Description;
use crate::media::{Ending, Ends, JobHandle, desk, picture_layer};
use crate::server::module::Module;
use crate::server::state::ServerState;
use pipes::{Input, Output};

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "package netserv:host-media; world host { import netserv:media/media@1.0.0; }",
        with: {
            "netserv:media/media.job": crate::server::blocks::media::MediaJob,
            "wasi:io": wasmtime_wasi::p2::bindings::io,
        },
        imports: {
            "netserv:media/media.transcode": async | trappable,
            "netserv:media/media.probe": async | trappable,
            "netserv:media/media.[static]job.finish": async | trappable,
            default: trappable,
        },
    });
}

use bindings::netserv::media::media::{self as wit, Error};

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

/// A job as a component has it.
pub struct MediaJob {
    ticket: Arc<JobHandle>,
    ends: [Option<std::os::fd::OwnedFd>; 2],
}

impl wit::Host for ServerState {
    async fn transcode(&mut self, wanted: wit::Settings) -> wasmtime::Result<Result<Resource<MediaJob>, Error>> {
        match start(&self.module, wanted).await {
            Ok(job) => Ok(Ok(self.table.push(job)?)),
            Err(error) => Ok(Err(error)),
        }
    }

    async fn probe(
        &mut self,
        source: wit::Source,
        input: Vec<u8>,
    ) -> wasmtime::Result<Result<wit::Description, Error>> {
        Ok(probe(&self.module, source, &input).await)
    }
}

impl wit::HostJob for ServerState {
    fn input(&mut self, job: Resource<MediaJob>) -> wasmtime::Result<Result<Resource<DynOutputStream>, Error>> {
        let Some(pipe) = self.table.get_mut(&job)?.ends[0].take() else { return Ok(Err(given())) };
        match Input::new(pipe) {
            Ok(stream) => Ok(Ok(self.table.push(Box::new(stream) as DynOutputStream)?)),
            Err(error) => Ok(Err(broken(&error))),
        }
    }

    fn output(&mut self, job: Resource<MediaJob>) -> wasmtime::Result<Result<Resource<DynInputStream>, Error>> {
        let job = self.table.get_mut(&job)?;
        let Some(pipe) = job.ends[1].take() else { return Ok(Err(given())) };
        match Output::new(pipe, MEDIA_OUTPUT_BYTES_MAX, Arc::clone(&job.ticket)) {
            Ok(stream) => Ok(Ok(self.table.push(Box::new(stream) as DynInputStream)?)),
            Err(error) => Ok(Err(broken(&error))),
        }
    }

    async fn finish(&mut self, job: Resource<MediaJob>) -> wasmtime::Result<Result<(), Error>> {
        let MediaJob { ticket, ends } = self.table.delete(job)?;
        // What was never asked for is nothing.
        drop(ends);
        Ok(match ticket.ended().await {
            Ending { outcome: MediaOutcome::Done, .. } => Ok(()),
            ending => Err(ending.into()),
        })
    }

    fn drop(&mut self, job: Resource<MediaJob>) -> wasmtime::Result<()> {
        self.table.delete(job)?.ticket.cancel();
        Ok(())
    }
}

async fn start(module: &Module, wanted: wit::Settings) -> Result<MediaJob, Error> {
    let source = wanted.source.into();
    let (settings, picture) = settings(wanted)?;
    let ticket = Arc::new(desk().ask(module.slot, MediaTask::Transcode { source, settings })?);
    let Ends { input, output, picture: end } = ticket.started().await?;
    if let Some(end) = end {
        let mut end = Sender::from_owned_fd(end).map_err(|error| broken(&error))?;
        // A job that ends early has read what it wanted.
        tokio::spawn(async move { end.write_all(&picture).await });
    }
    Ok(MediaJob { ticket, ends: [Some(input), Some(output)] })
}

async fn probe(module: &Module, source: wit::Source, input: &[u8]) -> Result<wit::Description, Error> {
    if input.len() > MEDIA_PROBED_BYTES_MAX {
        return Err(Error::Invalid(format!("an input of {} bytes, over {MEDIA_PROBED_BYTES_MAX}", input.len())));
    }
    let ticket = desk().ask(module.slot, MediaTask::Probe { source: source.into() })?;
    let ends = ticket.started().await?;
    let mut to = Sender::from_owned_fd(ends.input).map_err(|error| broken(&error))?;
    let from = Receiver::from_owned_fd(ends.output).map_err(|error| broken(&error))?;
    let writing = async move {
        // It may have read enough before the end.
        let _ = to.write_all(input).await;
    };
    let reading = async move {
        let mut told = Vec::new();
        // If it cannot be read to the end, what there is makes no JSON.
        let _ = from.take(PROBE_BYTES_MAX as u64).read_to_end(&mut told).await;
        told
    };
    let ((), told) = tokio::join!(writing, reading);
    match ticket.ended().await {
        Ending { outcome: MediaOutcome::Done, .. } => Description::parse(&told).map(Into::into).map_err(Error::Failed),
        ending => Err(ending.into()),
    }
}

/// Returns what is wanted, with the picture that is laid over others.
fn settings(wanted: wit::Settings) -> Result<(MediaSettings, Vec<u8>), Error> {
    let mut picture = Vec::new();
    let overlay = match wanted.overlay {
        None => None,
        Some((layer, corner)) => {
            let layer = match layer {
                wit::Overlay::Text(text) => MediaLayer::Text(text),
                wit::Overlay::Picture(bytes) => {
                    picture = bytes;
                    picture_layer(&picture).map_err(Error::Invalid)?
                }
            };
            Some(MediaOverlay { layer, corner: corner.into() })
        }
    };
    let settings = MediaSettings {
        format: wanted.format.into(),
        video: wanted.video.into(),
        audio: wanted.audio.into(),
        width: wanted.width,
        height: wanted.height,
        video_bit_rate: wanted.video_bit_rate,
        audio_bit_rate: wanted.audio_bit_rate,
        duration_ms: wanted.duration_ms,
        overlay,
    };
    Ok((settings, picture))
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

impl From<Description> for wit::Description {
    fn from(found: Description) -> wit::Description {
        let Description { format, duration_ms, video, audio } = found;
        let video = video.into_iter().map(|(codec, width, height)| wit::VideoStream { codec, width, height });
        let audio =
            audio.into_iter().map(|(codec, sample_rate, channels)| wit::AudioStream { codec, sample_rate, channels });
        wit::Description { format, duration_ms, video: video.collect(), audio: audio.collect() }
    }
}

/// Converts enums whose variants have the same names.
macro_rules! same_names {
    ($from:ty => $to:ty: $($variant:ident)*) => {
        impl From<$from> for $to {
            fn from(from: $from) -> $to {
                match from {
                    $(<$from>::$variant => <$to>::$variant,)*
                }
            }
        }
    };
}

same_names!(wit::Source => MediaSource: Any Mp4 Matroska Mpegts Ogg Flv Avi Mp3 Aac Wav Flac Jpeg Png);
same_names!(wit::Format => MediaFormat: Webm FragmentedMp4 Mpegts Matroska Ogg Mp3 Wav Flac Jpeg Png);
same_names!(wit::VideoCodec => VideoCodec: Standard Copy H264 Vp8 Vp9 None);
same_names!(wit::AudioCodec => AudioCodec: Standard Copy Aac Opus Vorbis Mp3 None);
same_names!(wit::Corner => media::Corner: TopLeft TopRight BottomLeft BottomRight Center);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::blocks::testing::{run, state};
    use crate::server::module::Shared;

    #[test]
    fn what_is_told_of_is_bounded() {
        let state = state(Shared::for_tests);
        let input = vec![0; MEDIA_PROBED_BYTES_MAX + 1];
        run(async {
            let refused = probe(&state.module, wit::Source::Any, &input).await.unwrap_err();
            assert!(matches!(refused, Error::Invalid(why) if why.contains("16777217 bytes")));
            let asked = probe(&state.module, wit::Source::Any, &input[1..]).await.unwrap_err();
            assert!(matches!(asked, Error::Unavailable(_)), "there is no node to do it");
        });
    }
}
