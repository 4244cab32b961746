// SPDX-License-Identifier: Apache-2.0
//! What is made of an input: one output of a job.

use std::ops::RangeInclusive;

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
/// The shortest and the longest segment of an output, in milliseconds.
pub const SEGMENT_MS: RangeInclusive<u32> = 200..=60_000;
/// Pictures in a second of an output of pictures.
pub const PICTURES_PER_S: RangeInclusive<u32> = 1..=60;
/// How coarse the JPEGs of such an output may be, from the best on.
pub const COARSENESS: RangeInclusive<u32> = 1..=31;

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
    /// Pictures one behind the other, each a JPEG.
    JpegPictures,
    /// Pictures one behind the other, each a PNG.
    PngPictures,
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

/// Where an output has key frames, with which a segment of it can begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MediaSegments {
    /// Where the coder likes.
    #[default]
    Free,
    /// As often as this, in milliseconds, and nowhere else.
    Every(u32),
    /// Where the input has them, and nowhere else.
    Source,
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
    /// Whether pictures lose their colours.
    pub grey: bool,
    /// Where pictures can be begun with.
    pub segments: MediaSegments,
    /// What is laid over the pictures.
    pub overlay: Option<MediaOverlay>,
    /// How many pictures there are, and how they look: of the formats that are pictures one behind the other, and of no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pictures: Option<MediaPictures>,
}

/// What pictures one behind the other are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MediaPictures {
    /// So many of the input's pictures are taken in a second; fewer if it has fewer.
    pub per_s: u32,
    /// How coarse JPEGs are, 1 for the best; PNGs have none.
    pub coarseness: u32,
    /// Whether each pixel is one of the 256 colours of a palette that is always the same: of PNGs only.
    pub palette: bool,
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
            grey: false,
            segments: MediaSegments::Free,
            overlay: None,
            pictures: None,
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
        let segmented = self.segments != MediaSegments::Free;
        if segmented && !self.codes_pictures() {
            return Err("segments need pictures that are coded".to_owned());
        }
        if let MediaSegments::Every(ms) = self.segments
            && !SEGMENT_MS.contains(&ms)
        {
            return Err(format!("a segment of {ms} ms, not {} to {}", SEGMENT_MS.start(), SEGMENT_MS.end()));
        }
        let sized = self.width != 0 || self.height != 0 || self.video_bit_rate != 0;
        let changed = self.overlay.is_some() || self.grey || sized;
        match self.video() {
            VideoCodec::Copy if changed => return Err("pictures that are copied cannot be changed".to_owned()),
            VideoCodec::None if self.overlay.is_some() => return Err("an overlay needs pictures".to_owned()),
            VideoCodec::None if self.grey => return Err("grey is for pictures".to_owned()),
            VideoCodec::None if self.audio() == AudioCodec::None => return Err("nothing is left".to_owned()),
            VideoCodec::Copy
            | VideoCodec::None
            | VideoCodec::Standard
            | VideoCodec::H264
            | VideoCodec::Vp8
            | VideoCodec::Vp9 => {}
        }
        self.check_pictures()?;
        self.overlay.as_ref().map_or(Ok(()), MediaOverlay::check)
    }

    fn check_pictures(&self) -> Result<(), String> {
        let Some(pictures) = self.pictures else {
            let is_other = !self.format.is_pictures();
            return if is_other { Ok(()) } else { Err("it is not said how many pictures there are".to_owned()) };
        };
        if !self.format.is_pictures() {
            return Err(format!("{:?} is not pictures one behind the other", self.format));
        }
        if self.width == 0 || self.height == 0 {
            return Err("pictures one behind the other have a width and a height that they fit into".to_owned());
        }
        within("per-s", pictures.per_s, PICTURES_PER_S)?;
        if pictures.palette && self.grey {
            return Err("the palette has colours, grey has none".to_owned());
        }
        match self.format == MediaFormat::JpegPictures {
            true if pictures.palette => Err("JPEG has no palette".to_owned()),
            true => within("coarseness", pictures.coarseness, COARSENESS),
            false => Ok(()),
        }
    }

    /// Returns whether moving pictures are coded anew.
    pub(super) fn codes_pictures(&self) -> bool {
        matches!(self.video(), VideoCodec::H264 | VideoCodec::Vp8 | VideoCodec::Vp9)
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
    pub const ALL: [MediaFormat; 12] = [
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
        MediaFormat::JpegPictures,
        MediaFormat::PngPictures,
    ];

    /// Returns whether only the first picture comes out.
    pub fn is_still(self) -> bool {
        matches!(self, MediaFormat::Jpeg | MediaFormat::Png)
    }

    /// Returns whether pictures come out one behind the other, with nothing else between.
    pub fn is_pictures(self) -> bool {
        matches!(self, MediaFormat::JpegPictures | MediaFormat::PngPictures)
    }

    /// The codecs for pictures, the usual one first.
    fn video(self) -> &'static [VideoCodec] {
        use VideoCodec::{Copy, H264, None, Standard, Vp8, Vp9};
        match self {
            MediaFormat::Webm => &[Vp8, Vp9, Copy, None],
            MediaFormat::FragmentedMp4 | MediaFormat::Mpegts => &[H264, Copy, None],
            MediaFormat::Matroska => &[H264, Vp8, Vp9, Copy, None],
            MediaFormat::Ogg | MediaFormat::Mp3 | MediaFormat::Wav | MediaFormat::Flac => &[None],
            MediaFormat::Jpeg | MediaFormat::Png | MediaFormat::JpegPictures | MediaFormat::PngPictures => &[Standard],
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
            MediaFormat::Jpeg | MediaFormat::Png | MediaFormat::JpegPictures | MediaFormat::PngPictures => &[None],
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

fn within(what: &str, value: u32, bounds: RangeInclusive<u32>) -> Result<(), String> {
    if bounds.contains(&value) {
        Ok(())
    } else {
        Err(format!("{what} is {value}, not {} to {}", bounds.start(), bounds.end()))
    }
}
