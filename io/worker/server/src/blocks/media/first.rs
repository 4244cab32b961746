// SPDX-License-Identifier: Apache-2.0
//! `netserv:media/media@1.0.0`.

use netserv_wire::container::media::{MediaOutcome, MediaTask, PROBE_BYTES_MAX};
use netserv_worker_base::media::description::Description;
use netserv_worker_base::media::{Ending, Ends, desk};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::{Receiver, Sender};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

use super::second::{Order, Output, Segments};
use super::wit::{self, Error};
use super::{MediaJob, broken, orders};
use crate::limits::MEDIA_PROBED_BYTES_MAX;
use crate::module::Module;
use crate::state::ServerState;

impl wit::Host for ServerState {
    async fn transcode(&mut self, wanted: wit::Settings) -> wasmtime::Result<Result<Resource<MediaJob>, Error>> {
        let begun = MediaJob::begin(&self.module, orders::task(order(wanted))).await;
        self.give(begun)
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
        let stream = self.table.get_mut(&job)?.input();
        self.give(stream)
    }

    fn output(&mut self, job: Resource<MediaJob>) -> wasmtime::Result<Result<Resource<DynInputStream>, Error>> {
        self.give_output(&job, 0)
    }

    async fn finish(&mut self, job: Resource<MediaJob>) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.table.delete(job)?.finish().await)
    }

    fn drop(&mut self, job: Resource<MediaJob>) -> wasmtime::Result<()> {
        self.table.delete(job)?.drop_by_component();
        Ok(())
    }
}

async fn probe(module: &Module, source: wit::Source, input: &[u8]) -> Result<wit::Description, Error> {
    if input.len() > MEDIA_PROBED_BYTES_MAX {
        return Err(Error::Invalid(format!("an input of {} bytes, over {MEDIA_PROBED_BYTES_MAX}", input.len())));
    }
    let ticket = desk().ask(module.slot, MediaTask::Probe { source: source.into() })?;
    let Ends { input: end, mut outputs, .. } = ticket.started().await?;
    let output = outputs.pop().ok_or_else(|| Error::Unavailable("the job has no output".to_owned()))?;
    let mut to = Sender::from_owned_fd(end).map_err(|error| broken(&error))?;
    let from = Receiver::from_owned_fd(output).map_err(|error| broken(&error))?;
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

/// Returns what is wanted as an order, of which it is one output.
fn order(wanted: wit::Settings) -> Order {
    let output = Output {
        format: wanted.format,
        video: wanted.video,
        audio: wanted.audio,
        width: wanted.width,
        height: wanted.height,
        video_bit_rate: wanted.video_bit_rate,
        audio_bit_rate: wanted.audio_bit_rate,
        grey: false,
        segments: Segments::Free,
        overlay: wanted.overlay,
    };
    let (start_ms, duration_ms) = (0, wanted.duration_ms);
    Order { source: wanted.source, start_ms, duration_ms, live: None, outputs: vec![output] }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::testing::{run, state};
    use crate::module::Shared;

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
