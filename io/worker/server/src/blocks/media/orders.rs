// SPDX-License-Identifier: Apache-2.0
//! What components order, as the node understands it.

use netserv_wire::container::media::{
    self, AudioCodec, MediaFormat, MediaLayer, MediaLive, MediaOverlay, MediaPart, MediaSegments, MediaSettings,
    MediaSource, MediaTask, VideoCodec,
};
use netserv_worker_base::media::picture_layer;

use super::second::{Live, Order, Output, Segments};
use super::wit::{self, Error};

/// Returns the task of an order, with the picture that is laid over others.
///
/// # Errors
/// A picture is none, or one of several; other bounds are those of [`MediaTask::check`].
pub(super) fn task(order: Order) -> Result<(MediaTask, Vec<u8>), Error> {
    let mut picture = Vec::new();
    let mut outputs = Vec::with_capacity(order.outputs.len().min(media::OUTPUTS_MAX));
    for wanted in order.outputs {
        let (output, its) = output(wanted)?;
        if !its.is_empty() && !picture.is_empty() && its != picture {
            return Err(Error::Invalid("outputs have different pictures laid over".to_owned()));
        }
        if !its.is_empty() {
            picture = its;
        }
        outputs.push(output);
    }
    let live = order.live.map(|Live { cpu_permille, keep_times }| MediaLive { cpu_permille, keep_times });
    let part = MediaPart { start_ms: order.start_ms, duration_ms: order.duration_ms, live };
    Ok((MediaTask::Transcode { source: order.source.into(), part, outputs }, picture))
}

fn output(wanted: Output) -> Result<(MediaSettings, Vec<u8>), Error> {
    let (overlay, picture) = overlay(wanted.overlay)?;
    let settings = MediaSettings {
        format: wanted.format.into(),
        video: wanted.video.into(),
        audio: wanted.audio.into(),
        width: wanted.width,
        height: wanted.height,
        video_bit_rate: wanted.video_bit_rate,
        audio_bit_rate: wanted.audio_bit_rate,
        grey: wanted.grey,
        segments: match wanted.segments {
            Segments::Free => MediaSegments::Free,
            Segments::Every(ms) => MediaSegments::Every(ms),
            Segments::Source => MediaSegments::Source,
        },
        overlay,
        pictures: None,
    };
    Ok((settings, picture))
}

/// Returns what is laid over pictures, with the bytes of a picture.
///
/// # Errors
/// The picture is none.
fn overlay(wanted: Option<(wit::Overlay, wit::Corner)>) -> Result<(Option<MediaOverlay>, Vec<u8>), Error> {
    let Some((layer, corner)) = wanted else { return Ok((None, Vec::new())) };
    let (layer, picture) = match layer {
        wit::Overlay::Text(text) => (MediaLayer::Text(text), Vec::new()),
        wit::Overlay::Picture(bytes) => (picture_layer(&bytes).map_err(Error::Invalid)?, bytes),
    };
    Ok((Some(MediaOverlay { layer, corner: corner.into() }), picture))
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

    #[test]
    fn pictures_over_outputs_are_one_and_the_same() {
        let png = |last: u8| wit::Overlay::Picture([b"\x89PNG\r\n\x1a\n".as_slice(), &[last]].concat());
        let output = |overlay| Output {
            format: wit::Format::Webm,
            video: wit::VideoCodec::Standard,
            audio: wit::AudioCodec::Standard,
            width: 0,
            height: 0,
            video_bit_rate: 0,
            audio_bit_rate: 0,
            grey: true,
            segments: Segments::Every(1000),
            overlay,
        };
        let order = |outputs| Order { source: wit::Source::Any, start_ms: 1, duration_ms: 2, live: None, outputs };
        let [left, right] = [wit::Corner::TopLeft, wit::Corner::TopRight];
        let same = vec![output(Some((png(1), left))), output(None), output(Some((png(1), right)))];
        let (MediaTask::Transcode { part, outputs, .. }, picture) = task(order(same)).unwrap() else {
            panic!("it is an order")
        };
        assert_eq!((part.start_ms, part.duration_ms, outputs.len(), picture.len()), (1, 2, 3, 9));
        assert!(outputs[1].grey && outputs[1].segments == MediaSegments::Every(1000));
        let other = vec![output(Some((png(1), left))), output(Some((png(2), left)))];
        assert!(matches!(task(order(other)), Err(Error::Invalid(why)) if why.contains("different")));
        let none = vec![output(Some((wit::Overlay::Picture(b"GIF89a".to_vec()), left)))];
        assert!(task(order(none)).is_err());
    }
}
