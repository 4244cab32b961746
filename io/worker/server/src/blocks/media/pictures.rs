// SPDX-License-Identifier: Apache-2.0
//! `netserv:media/pictures@1.2.0`.

use std::sync::Arc;

use netserv_wire::container::media::{
    MediaFormat, MediaLive, MediaPart, MediaPictures, MediaSettings, MediaTask, OUTPUTS_MAX,
};
use netserv_worker_base::media::desk;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::{DynPollable, subscribe};

use super::second::Live;
use super::third::{self as wit, Look, View};
use super::wit::{Error, Source};
use super::{Begun, MediaJob};
use crate::state::ServerState;

impl wit::Host for ServerState {
    fn begin(
        &mut self,
        source: Source,
        live: Live,
        views: Vec<View>,
    ) -> wasmtime::Result<Result<Resource<Begun>, Error>> {
        let asked = desk().ask(self.module.slot, task(source, live, &views));
        self.give(asked.map(|ticket| Begun { ticket: Arc::new(ticket) }).map_err(Error::from))
    }
}

impl wit::HostBegun for ServerState {
    fn subscribe(&mut self, begun: Resource<Begun>) -> wasmtime::Result<Resource<DynPollable>> {
        subscribe(&mut self.table, begun)
    }

    async fn job(&mut self, begun: Resource<Begun>) -> wasmtime::Result<Result<Resource<MediaJob>, Error>> {
        let Begun { ticket } = self.table.delete(begun)?;
        let started = MediaJob::started(ticket).await.map(|(job, _)| job);
        self.give(started)
    }

    fn drop(&mut self, begun: Resource<Begun>) -> wasmtime::Result<()> {
        self.table.delete(begun)?.ticket.cancel();
        Ok(())
    }
}

/// Returns the task, of which no more views are looked at than make it one too many.
fn task(source: Source, live: Live, views: &[View]) -> MediaTask {
    let live = Some(MediaLive { cpu_permille: live.cpu_permille, keep_times: live.keep_times });
    let outputs = views.iter().take(OUTPUTS_MAX + 1).map(output).collect();
    MediaTask::Transcode { source: source.into(), part: MediaPart { live, ..MediaPart::default() }, outputs }
}

fn output(view: &View) -> MediaSettings {
    let [jpeg, png] = [MediaFormat::JpegPictures, MediaFormat::PngPictures];
    let (format, coarseness, grey, palette) = match view.look {
        Look::Jpeg(coarseness) => (jpeg, coarseness, false, false),
        Look::GreyJpeg(coarseness) => (jpeg, coarseness, true, false),
        Look::Png => (png, 0, false, false),
        Look::GreyPng => (png, 0, true, false),
        Look::PalettePng => (png, 0, false, true),
    };
    let pictures = Some(MediaPictures { per_s: view.per_second, coarseness, palette });
    MediaSettings { width: view.width, height: view.height, grey, pictures, ..MediaSettings::new(format) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_what_the_node_makes() {
        let view = |look| View { width: 160, height: 120, per_second: 10, look };
        let live = Live { cpu_permille: 100, keep_times: false };
        let looks = [Look::Jpeg(3), Look::GreyJpeg(31), Look::Png, Look::PalettePng];
        let good = task(Source::Mpegts, live, &looks.map(view));
        assert_eq!(good.check(), Ok(()));
        let MediaTask::Transcode { outputs, .. } = &good else { panic!("it is one") };
        assert!(outputs[1].grey && outputs[3].pictures.is_some_and(|pictures| pictures.palette));
        for bad in [
            task(Source::Mpegts, live, &[]),
            task(Source::Mpegts, live, &[view(Look::Png); 5]),
            task(Source::Mpegts, live, &[view(Look::Jpeg(32))]),
            task(Source::Any, live, &[view(Look::GreyPng)]),
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
