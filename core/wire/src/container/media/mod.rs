// SPDX-License-Identifier: Apache-2.0
//! Jobs for ffmpeg, which a worker asks its node for.
//!
//! A job says what is wanted, by closed lists and by numbers in bounds, and never how: no worker writes a part of a
//! command line. The media itself goes through pipes between the worker and ffmpeg, past the node.

mod settings;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use settings::{
    AUDIO_BIT_RATE_MAX, AudioCodec, COARSENESS, Corner, HEIGHT_MAX, MediaFormat, MediaLayer, MediaOverlay,
    MediaPictures, MediaSegments, MediaSettings, PICTURE_BYTES_MAX, PICTURES_PER_S, SEGMENT_MS, TEXT_BYTES_MAX,
    VIDEO_BIT_RATE_MAX, VideoCodec, WIDTH_MAX,
};

/// Outputs of one job.
pub const OUTPUTS_MAX: usize = 4;
/// The least processor time that a live job asks for, in thousandths of a processor.
pub const LIVE_CPU_PERMILLE_MIN: u32 = 10;
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
        /// What is taken of it.
        part: MediaPart,
        /// What is to be made, all of it from one decoding.
        outputs: Vec<MediaSettings>,
    },
}

/// What is taken of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MediaPart {
    /// Milliseconds of the input that are left out at its start.
    pub start_ms: u32,
    /// Milliseconds to take; 0: all.
    pub duration_ms: u32,
    /// Whether the input comes as it happens.
    pub live: Option<MediaLive>,
}

/// A job whose input comes as it happens: it takes as long as that, and its output waits for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MediaLive {
    /// Its processor time, in thousandths of a processor; 0: as much as the operator gives such a job.
    pub cpu_permille: u32,
    /// Whether the outputs have the time stamps of the input, so that those of two jobs fit together.
    pub keep_times: bool,
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

impl MediaSource {
    /// Returns whether all of the input is kept, because it may have to be read twice.
    pub fn is_kept(self) -> bool {
        match self {
            MediaSource::Any | MediaSource::Mp4 => true,
            MediaSource::Matroska
            | MediaSource::Mpegts
            | MediaSource::Ogg
            | MediaSource::Flv
            | MediaSource::Avi
            | MediaSource::Mp3
            | MediaSource::Aac
            | MediaSource::Wav
            | MediaSource::Flac
            | MediaSource::Jpeg
            | MediaSource::Png => false,
        }
    }
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
            MediaTask::Transcode { source, part, outputs } => part.check(*source, outputs),
        }
    }

    /// Returns what the input is.
    pub fn source(&self) -> MediaSource {
        match self {
            MediaTask::Probe { source } | MediaTask::Transcode { source, .. } => *source,
        }
    }

    /// Returns how many outputs there are, each of which has a pipe of its own.
    pub fn outputs(&self) -> usize {
        match self {
            MediaTask::Probe { .. } => 1,
            MediaTask::Transcode { outputs, .. } => outputs.len(),
        }
    }

    /// Returns how the job is live, if it is.
    pub fn live(&self) -> Option<MediaLive> {
        match self {
            MediaTask::Probe { .. } => None,
            MediaTask::Transcode { part, .. } => part.live,
        }
    }

    /// Returns what is laid over pictures; all outputs that have something have the same.
    pub fn layer(&self) -> Option<&MediaLayer> {
        let MediaTask::Transcode { outputs, .. } = self else { return None };
        outputs.iter().find_map(|settings| settings.overlay.as_ref()).map(|overlay| &overlay.layer)
    }

    /// Returns whether a picture comes through a pipe of its own.
    pub fn has_picture(&self) -> bool {
        matches!(self.layer(), Some(MediaLayer::Png | MediaLayer::Jpeg))
    }
}

impl MediaPart {
    /// Checks every bound, those of the outputs and what they must have in common.
    fn check(&self, source: MediaSource, outputs: &[MediaSettings]) -> Result<(), String> {
        if outputs.is_empty() || outputs.len() > OUTPUTS_MAX {
            return Err(format!("a job has {} outputs, not 1 to {OUTPUTS_MAX}", outputs.len()));
        }
        outputs.iter().try_for_each(MediaSettings::check)?;
        // ADTS has headers that MP4 has not, and ffmpeg does not take them off by itself.
        let has_adts = matches!(source, MediaSource::Any | MediaSource::Mpegts | MediaSource::Aac);
        let copies = |one: &MediaSettings| one.format == MediaFormat::FragmentedMp4 && one.audio() == AudioCodec::Copy;
        if has_adts && outputs.iter().any(copies) {
            return Err(
                "sound of this source is not copied into fragmented-mp4: code it, or name another source".to_owned()
            );
        }
        let layers = outputs.iter().filter_map(|settings| settings.overlay.as_ref()).map(|overlay| &overlay.layer);
        let mut layers = layers.peekable();
        if let Some(first) = layers.peek().copied()
            && layers.any(|layer| layer != first)
        {
            return Err("outputs have different overlays".to_owned());
        }
        self.live.map_or(Ok(()), |live| self.check_live(live, source, outputs))
    }

    fn check_live(&self, live: MediaLive, source: MediaSource, outputs: &[MediaSettings]) -> Result<(), String> {
        if (1..LIVE_CPU_PERMILLE_MIN).contains(&live.cpu_permille) {
            return Err(format!("cpu-permille is {}, below {LIVE_CPU_PERMILLE_MIN}", live.cpu_permille));
        }
        if source.is_kept() {
            return Err("what comes live is not kept: its source is one of the others, by name".to_owned());
        }
        if self.start_ms > 0 {
            return Err("what comes live is taken from where it begins".to_owned());
        }
        if outputs.iter().any(|settings| settings.format.is_still()) {
            return Err("one picture is nothing live".to_owned());
        }
        if outputs.iter().any(|settings| settings.codes_pictures() && settings.video_bit_rate == 0) {
            return Err("pictures of a live job have a video-bit-rate".to_owned());
        }
        Ok(())
    }
}
