// SPDX-License-Identifier: Apache-2.0
//! Jobs for ffmpeg, which a worker asks its node for.
//!
//! A job says what is wanted, by closed lists and by numbers in bounds, and never how: no worker writes a part of a
//! command line. The media itself goes through pipes between the worker and ffmpeg, past the node.

use serde::{Deserialize, Serialize};

/// Bytes of a text that is laid over pictures.
pub const TEXT_BYTES_MAX: usize = 256;
/// Bytes of a picture that is laid over pictures.
pub const PICTURE_BYTES_MAX: usize = 1024 * 1024;
/// Pixels in a row of the output.
pub const WIDTH_MAX: u32 = 3840;
/// Rows of the output.
pub const HEIGHT_MAX: u32 = 2160;
/// Bits per second of moving pictures.
pub const VIDEO_BIT_RATE_MAX: u32 = 50_000_000;
/// Bits per second of sound.
pub const AUDIO_BIT_RATE_MAX: u32 = 512_000;
/// Bytes that ffmpeg may write about what an input holds.
pub const PROBE_BYTES_MAX: usize = 256 * 1024;
/// Bytes of the words about how a job ended.
pub const DETAIL_BYTES_MAX: usize = 512;

/// One job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MediaTask {
    /// Tell what the input holds, in JSON as `ffprobe` writes it.
    Probe {
        /// What the input is.
        source: MediaSource,
    },
    /// Make something else of the input.
    Transcode {
        /// What the input is.
        source: MediaSource,
        /// What is to be made.
        settings: MediaSettings,
    },
}

/// What an input is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MediaSource {
    /// One of the others; ffmpeg finds out. The input is kept until the job ends, so that it can be read twice.
    #[default]
    Any,
    /// MP4 and QuickTime. Kept likewise, since its index may come last.
    Mp4,
    /// Matroska and WebM.
    Matroska,
    /// MPEG transport stream.
    Mpegts,
    /// Ogg.
    Ogg,
    /// FLV.
    Flv,
    /// AVI.
    Avi,
    /// MPEG audio, as in `.mp3`.
    Mp3,
    /// AAC with ADTS headers.
    Aac,
    /// RIFF WAVE.
    Wav,
    /// FLAC.
    Flac,
    /// One JPEG picture.
    Jpeg,
    /// One PNG picture.
    Png,
}

/// What comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MediaFormat {
    /// WebM: VP8 or VP9 with Opus or Vorbis.
    Webm,
    /// MP4 in fragments, which need no seeking: H.264 with AAC or MP3.
    FragmentedMp4,
    /// MPEG transport stream: H.264 with AAC or MP3.
    Mpegts,
    /// Matroska: everything.
    Matroska,
    /// Ogg: sound only, Vorbis or Opus.
    Ogg,
    /// MPEG audio layer 3.
    Mp3,
    /// RIFF WAVE with 16-bit samples.
    Wav,
    /// FLAC.
    Flac,
    /// The first picture, as JPEG.
    Jpeg,
    /// The first picture, as PNG.
    Png,
}

/// How moving pictures are coded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VideoCodec {
    /// As the format usually has them.
    #[default]
    Standard,
    /// As they are.
    Copy,
    /// H.264.
    H264,
    /// VP8.
    Vp8,
    /// VP9.
    Vp9,
    /// They are left out.
    None,
}

/// How sound is coded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AudioCodec {
    /// As the format usually has it.
    #[default]
    Standard,
    /// As it is.
    Copy,
    /// AAC.
    Aac,
    /// Opus.
    Opus,
    /// Vorbis.
    Vorbis,
    /// MPEG audio layer 3.
    Mp3,
    /// It is left out.
    None,
}

/// What is to be made of an input. Only what [`MediaSettings::check`] finds good is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MediaSettings {
    /// What comes out.
    pub format: MediaFormat,
    /// How pictures are coded.
    pub video: VideoCodec,
    /// How sound is coded.
    pub audio: AudioCodec,
    /// Pixels in a row; 0 follows from the height.
    pub width: u32,
    /// Rows; 0 follows from the width. Both 0: as in the input.
    pub height: u32,
    /// Bits per second of pictures; 0: by quality.
    pub video_bit_rate: u32,
    /// Bits per second of sound; 0: as usual.
    pub audio_bit_rate: u32,
    /// Milliseconds of the input to take; 0: all.
    pub duration_ms: u32,
    /// What is laid over the pictures.
    pub overlay: Option<MediaOverlay>,
}

/// Something laid over pictures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MediaOverlay {
    /// What.
    pub layer: MediaLayer,
    /// Where.
    pub corner: Corner,
}

/// What is laid over pictures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MediaLayer {
    /// A line of text.
    Text(String),
    /// A PNG picture, which comes through a pipe of its own.
    Png,
    /// A JPEG picture, likewise.
    Jpeg,
}

/// Where something is laid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Corner {
    /// At the left of the top.
    TopLeft,
    /// At the right of the top.
    TopRight,
    /// At the left of the bottom.
    BottomLeft,
    /// At the right of the bottom.
    BottomRight,
    /// In the middle.
    Center,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MediaOutcome {
    /// All of the output was written.
    Done,
    /// ffmpeg could not do it.
    Failed,
    /// It took longer than a job may.
    Time,
    /// It needed more memory than a job may have.
    Memory,
    /// More input was to be kept than may be.
    Input,
    /// The worker gave it up, or is gone.
    Cancelled,
    /// Too many jobs were there already, or it waited for its turn too long.
    Busy,
    /// The node has no ffmpeg, or could not start it.
    Unavailable,
    /// The job was none.
    Invalid,
}

impl MediaOutcome {
    /// Every outcome.
    pub const ALL: [MediaOutcome; 9] = [
        MediaOutcome::Done,
        MediaOutcome::Failed,
        MediaOutcome::Time,
        MediaOutcome::Memory,
        MediaOutcome::Input,
        MediaOutcome::Cancelled,
        MediaOutcome::Busy,
        MediaOutcome::Unavailable,
        MediaOutcome::Invalid,
    ];

    /// Returns the outcome as its word.
    pub fn as_str(self) -> &'static str {
        match self {
            MediaOutcome::Done => "done",
            MediaOutcome::Failed => "failed",
            MediaOutcome::Time => "time",
            MediaOutcome::Memory => "memory",
            MediaOutcome::Input => "input",
            MediaOutcome::Cancelled => "cancelled",
            MediaOutcome::Busy => "busy",
            MediaOutcome::Unavailable => "unavailable",
            MediaOutcome::Invalid => "invalid",
        }
    }
}

impl MediaTask {
    /// Checks every bound.
    ///
    /// # Errors
    /// What is out of its bounds, in words.
    pub fn check(&self) -> Result<(), String> {
        match self {
            MediaTask::Probe { .. } => Ok(()),
            MediaTask::Transcode { settings, .. } => settings.check(),
        }
    }

    /// Returns what the input is.
    pub fn source(&self) -> MediaSource {
        match self {
            MediaTask::Probe { source } | MediaTask::Transcode { source, .. } => *source,
        }
    }

    /// Returns whether a picture comes through a pipe of its own.
    pub fn has_picture(&self) -> bool {
        let MediaTask::Transcode { settings, .. } = self else { return false };
        let layer = settings.overlay.as_ref().map(|overlay| &overlay.layer);
        matches!(layer, Some(MediaLayer::Png | MediaLayer::Jpeg))
    }
}

impl MediaSettings {
    /// Returns settings with everything but the format as usual.
    pub fn new(format: MediaFormat) -> MediaSettings {
        MediaSettings {
            format,
            video: VideoCodec::Standard,
            audio: AudioCodec::Standard,
            width: 0,
            height: 0,
            video_bit_rate: 0,
            audio_bit_rate: 0,
            duration_ms: 0,
            overlay: None,
        }
    }

    /// Checks every bound, and whether the codecs fit the format.
    ///
    /// # Errors
    /// What is out of its bounds, in words.
    pub fn check(&self) -> Result<(), String> {
        at_most("width", self.width, WIDTH_MAX)?;
        at_most("height", self.height, HEIGHT_MAX)?;
        at_most("video-bit-rate", self.video_bit_rate, VIDEO_BIT_RATE_MAX)?;
        at_most("audio-bit-rate", self.audio_bit_rate, AUDIO_BIT_RATE_MAX)?;
        if self.video != VideoCodec::Standard && !self.format.video().contains(&self.video) {
            return Err(format!("{:?} pictures do not go into {:?}", self.video, self.format));
        }
        if self.audio != AudioCodec::Standard && !self.format.audio().contains(&self.audio) {
            return Err(format!("{:?} sound does not go into {:?}", self.audio, self.format));
        }
        let changed = self.overlay.is_some() || self.width != 0 || self.height != 0 || self.video_bit_rate != 0;
        match self.video() {
            VideoCodec::Copy if changed => return Err("pictures that are copied cannot be changed".to_owned()),
            VideoCodec::None if self.overlay.is_some() => return Err("an overlay needs pictures".to_owned()),
            VideoCodec::None if self.audio() == AudioCodec::None => return Err("nothing is left".to_owned()),
            VideoCodec::Copy
            | VideoCodec::None
            | VideoCodec::Standard
            | VideoCodec::H264
            | VideoCodec::Vp8
            | VideoCodec::Vp9 => {}
        }
        self.overlay.as_ref().map_or(Ok(()), MediaOverlay::check)
    }

    /// Returns how pictures are coded; [`VideoCodec::Standard`] for single pictures only.
    pub fn video(&self) -> VideoCodec {
        if self.video == VideoCodec::Standard { self.format.video()[0] } else { self.video }
    }

    /// Returns how sound is coded; [`AudioCodec::Standard`] where the format has one way only.
    pub fn audio(&self) -> AudioCodec {
        if self.audio == AudioCodec::Standard { self.format.audio()[0] } else { self.audio }
    }
}

impl MediaFormat {
    /// Every format.
    pub const ALL: [MediaFormat; 10] = [
        MediaFormat::Webm,
        MediaFormat::FragmentedMp4,
        MediaFormat::Mpegts,
        MediaFormat::Matroska,
        MediaFormat::Ogg,
        MediaFormat::Mp3,
        MediaFormat::Wav,
        MediaFormat::Flac,
        MediaFormat::Jpeg,
        MediaFormat::Png,
    ];

    /// The codecs for pictures, the usual one first.
    fn video(self) -> &'static [VideoCodec] {
        use VideoCodec::{Copy, H264, None, Standard, Vp8, Vp9};
        match self {
            MediaFormat::Webm => &[Vp8, Vp9, Copy, None],
            MediaFormat::FragmentedMp4 | MediaFormat::Mpegts => &[H264, Copy, None],
            MediaFormat::Matroska => &[H264, Vp8, Vp9, Copy, None],
            MediaFormat::Ogg | MediaFormat::Mp3 | MediaFormat::Wav | MediaFormat::Flac => &[None],
            MediaFormat::Jpeg | MediaFormat::Png => &[Standard],
        }
    }

    /// The codecs for sound, likewise.
    fn audio(self) -> &'static [AudioCodec] {
        use AudioCodec::{Aac, Copy, Mp3, None, Opus, Standard, Vorbis};
        match self {
            MediaFormat::Webm => &[Opus, Vorbis, Copy, None],
            MediaFormat::FragmentedMp4 | MediaFormat::Mpegts => &[Aac, Mp3, Copy, None],
            MediaFormat::Matroska => &[Aac, Opus, Vorbis, Mp3, Copy, None],
            MediaFormat::Ogg => &[Vorbis, Opus, Copy],
            MediaFormat::Mp3 => &[Mp3, Copy],
            MediaFormat::Wav | MediaFormat::Flac => &[Standard],
            MediaFormat::Jpeg | MediaFormat::Png => &[None],
        }
    }
}

impl MediaOverlay {
    fn check(&self) -> Result<(), String> {
        let MediaLayer::Text(text) = &self.layer else { return Ok(()) };
        if text.is_empty() || text.len() > TEXT_BYTES_MAX {
            return Err(format!("an overlay's text has {} bytes, not 1 to {TEXT_BYTES_MAX}", text.len()));
        }
        if text.chars().any(char::is_control) {
            return Err("an overlay's text has a control character".to_owned());
        }
        Ok(())
    }
}

fn at_most(what: &str, value: u32, most: u32) -> Result<(), String> {
    if value <= most { Ok(()) } else { Err(format!("{what} is {value}, over {most}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_usual_codecs_that_fit() {
        for format in MediaFormat::ALL {
            let usual = MediaSettings::new(format);
            assert_eq!(usual.check(), Ok(()), "{format:?}");
            let spelled = MediaSettings { video: usual.video(), audio: usual.audio(), ..usual };
            assert_eq!(spelled.check(), Ok(()), "{format:?}");
        }
    }

    #[test]
    fn what_is_out_of_bounds_is_named() {
        let webm = || MediaSettings::new(MediaFormat::Webm);
        let text = |text: &str| {
            let layer = MediaLayer::Text(text.to_owned());
            MediaSettings { overlay: Some(MediaOverlay { layer, corner: Corner::Center }), ..webm() }
        };
        check(&MediaSettings { width: WIDTH_MAX, height: HEIGHT_MAX, ..webm() }, None);
        check(&MediaSettings { width: WIDTH_MAX + 1, ..webm() }, Some("width"));
        check(&MediaSettings { height: HEIGHT_MAX + 1, ..webm() }, Some("height"));
        check(&MediaSettings { video_bit_rate: VIDEO_BIT_RATE_MAX + 1, ..webm() }, Some("video-bit-rate"));
        check(&MediaSettings { audio_bit_rate: AUDIO_BIT_RATE_MAX + 1, ..webm() }, Some("audio-bit-rate"));
        check(&MediaSettings { video: VideoCodec::H264, ..webm() }, Some("H264"));
        check(&MediaSettings { audio: AudioCodec::Aac, ..webm() }, Some("Aac"));
        check(&MediaSettings { video: VideoCodec::None, audio: AudioCodec::None, ..webm() }, Some("nothing"));
        check(&MediaSettings { video: VideoCodec::Copy, width: 2, ..webm() }, Some("copied"));
        check(&MediaSettings { video: VideoCodec::None, ..text("x") }, Some("overlay"));
        check(&text(&"x".repeat(TEXT_BYTES_MAX)), None);
        check(&text(&"x".repeat(TEXT_BYTES_MAX + 1)), Some("bytes"));
        check(&text(""), Some("bytes"));
        check(&text("a\nb"), Some("control"));
        check(&text("a':[in]%{pts}\\,;"), None);
    }

    #[test]
    fn unknown_words_are_no_jobs() {
        let good = r#"{"transcode":{"source":"any","settings":{"format":"webm","video":"standard","audio":"none",
            "width":0,"height":0,"video-bit-rate":0,"audio-bit-rate":0,"duration-ms":0,"overlay":null}}}"#;
        assert!(serde_json::from_str::<MediaTask>(good).is_ok());
        for (from, to) in [("any", "concat"), ("webm", "hls"), ("standard", "rawvideo"), ("width", "filter")] {
            assert!(serde_json::from_str::<MediaTask>(&good.replacen(from, to, 1)).is_err(), "{to}");
        }
    }

    fn check(settings: &MediaSettings, named: Option<&str>) {
        match (settings.check(), named) {
            (Ok(()), None) => {}
            (Err(text), Some(named)) => assert!(text.contains(named), "{text}"),
            (outcome, named) => panic!("{settings:?}: {outcome:?}, not {named:?}"),
        }
    }
}
