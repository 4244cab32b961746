// SPDX-License-Identifier: Apache-2.0
//! The command lines of ffmpeg and ffprobe.
//!
//! Every word of them is one of this file, or a number. A text that is laid over pictures is in a file of the sandbox,
//! whose name is one of this file too, so there is nothing in which a job could hide an option or a filter.
//!
//! Inputs come through pipes, and no other protocol is on the list, nor a format that names other inputs (playlists,
//! `concat`). What has to be read twice, such as an MP4 file whose index comes last, is kept by ffmpeg's `cache` in the
//! sandbox's `/data`, which is bounded.

use netserv_wire::container::media::{
    AudioCodec, Corner, MediaFormat, MediaLayer, MediaSettings, MediaSource, MediaTask, VideoCodec,
};

use crate::limits::{MEDIA_PIXELS_MAX, MEDIA_STREAMS_MAX};
use crate::sandbox::paths::FONT;
use crate::sandbox::rootfs::media::Program;

/// The text that is laid over pictures, in `/data`, the directory that ffmpeg runs in.
pub(super) const TEXT: &str = "text";
/// The descriptor of the picture that is laid over pictures.
pub(super) const PICTURE_FD: i32 = 3;

/// Returns which program does a task.
pub(super) fn program(task: &MediaTask) -> Program {
    match task {
        MediaTask::Probe { .. } => Program::Ffprobe,
        MediaTask::Transcode { .. } => Program::Ffmpeg,
    }
}

/// What a command line depends on beside its task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Means {
    /// Threads of each coder.
    pub(super) threads: u32,
    /// Bytes of one piece of memory.
    pub(super) allocation_bytes: u64,
}

/// Returns the arguments for a task whose bounds were checked.
pub(super) fn arguments(task: &MediaTask, means: Means) -> Vec<String> {
    let mut line = Line::default();
    line.words("-hide_banner -loglevel error");
    line.option("-max_alloc", &means.allocation_bytes);
    match task {
        MediaTask::Probe { source } => {
            line.input(*source, means.threads);
            line.option("-show_entries", TOLD);
            line.words("-of json=compact=1");
        }
        MediaTask::Transcode { source, settings } => {
            line.words("-nostdin -nostats -y -abort_on empty_output -filter_threads 1 -filter_complex_threads 1");
            if settings.duration_ms > 0 {
                line.option("-t", &seconds(settings.duration_ms));
            }
            line.input(*source, means.threads);
            line.output(settings, means.threads);
        }
    }
    line.0
}

/// What is told of an input: some bytes for each stream, so that its writer never waits for a reader.
const TOLD: &str = "format=format_name,duration:stream=codec_name,codec_type,width,height,sample_rate,channels";

#[derive(Default)]
struct Line(Vec<String>);

impl Line {
    fn words(&mut self, words: &str) {
        self.0.extend(words.split(' ').map(str::to_owned));
    }

    fn option(&mut self, name: &str, value: &(impl ToString + ?Sized)) {
        self.0.extend([name.to_owned(), value.to_string()]);
    }

    /// Adds the input, and all that bounds what is read of it.
    fn input(&mut self, source: MediaSource, threads: u32) {
        self.option("-format_whitelist", &formats(source));
        self.option("-codec_whitelist", &DECODERS);
        self.option("-max_pixels", &MEDIA_PIXELS_MAX);
        self.option("-max_streams", &MEDIA_STREAMS_MAX);
        self.words("-probesize 5000000 -analyzeduration 5000000");
        self.option("-threads", &threads);
        if source != MediaSource::Any {
            self.option("-f", &formats(source));
        }
        if is_kept(source) {
            self.words("-protocol_whitelist cache,pipe -read_ahead_limit -1 -i cache:pipe:0");
        } else {
            self.words("-protocol_whitelist pipe -i pipe:0");
        }
    }

    fn output(&mut self, settings: &MediaSettings, threads: u32) {
        let picture = settings.overlay.as_ref().and_then(|overlay| picture_format(&overlay.layer));
        if let Some(format) = picture {
            self.option("-format_whitelist", &format);
            self.option("-codec_whitelist", &DECODERS);
            self.option("-max_pixels", &MEDIA_PIXELS_MAX);
            self.option("-f", &format);
            self.words("-protocol_whitelist pipe");
            self.option("-i", &format!("pipe:{PICTURE_FD}"));
        }
        self.video(settings, picture.is_some());
        self.audio(settings);
        self.words("-map_metadata -1 -map_chapters -1 -sn -dn");
        self.option("-threads", &threads);
        self.words(muxer(settings.format));
        self.words("pipe:1");
    }

    fn video(&mut self, settings: &MediaSettings, picture: bool) {
        let codec = settings.video();
        match codec {
            VideoCodec::None => return self.words("-vn"),
            VideoCodec::Copy => return self.words("-map 0:V:0? -c:v copy"),
            VideoCodec::Standard | VideoCodec::H264 | VideoCodec::Vp8 | VideoCodec::Vp9 => {}
        }
        let filters = filters(settings);
        let stream = if is_still(settings.format) { "0:v:0" } else { "0:V:0" };
        if picture {
            let before = scale(settings);
            let graph = format!("[{stream}]{before}[below];[below][1:v:0]{filters}[all]");
            self.option("-filter_complex", &graph);
            self.words("-map [all]");
        } else {
            self.option("-vf", &filters);
            self.option("-map", &format!("{stream}?"));
        }
        let quality = match codec {
            VideoCodec::H264 => "-c:v libx264 -preset veryfast -g 50",
            VideoCodec::Vp8 => "-c:v libvpx -deadline realtime -cpu-used 8",
            VideoCodec::Vp9 => "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -row-mt 1",
            VideoCodec::Standard if settings.format == MediaFormat::Png => "-c:v png -frames:v 1",
            VideoCodec::Standard | VideoCodec::Copy | VideoCodec::None => "-c:v mjpeg -q:v 3 -frames:v 1",
        };
        self.words(quality);
        match (codec, settings.video_bit_rate) {
            (VideoCodec::Standard | VideoCodec::Copy | VideoCodec::None, _) | (VideoCodec::H264, 0) => {}
            (VideoCodec::Vp8, 0) => self.words("-crf 20 -b:v 2000000"),
            (VideoCodec::Vp9, 0) => self.words("-crf 34 -b:v 0"),
            (VideoCodec::H264 | VideoCodec::Vp8 | VideoCodec::Vp9, rate) => {
                self.option("-b:v", &rate);
                self.option("-maxrate", &rate);
                self.option("-bufsize", &(u64::from(rate) * 2));
            }
        }
    }

    fn audio(&mut self, settings: &MediaSettings) {
        let codec = match (settings.audio(), settings.format) {
            (AudioCodec::None, _) => return self.words("-an"),
            (AudioCodec::Copy, _) => return self.words("-map 0:a:0? -c:a copy"),
            (AudioCodec::Aac, _) => "aac",
            (AudioCodec::Opus, _) => "libopus",
            (AudioCodec::Vorbis, _) => "libvorbis",
            (AudioCodec::Mp3, _) => "libmp3lame",
            (AudioCodec::Standard, MediaFormat::Flac) => "flac",
            (AudioCodec::Standard, _) => "pcm_s16le",
        };
        self.words("-map 0:a:0? -ac 2");
        self.option("-c:a", &codec);
        if settings.audio_bit_rate > 0 {
            self.option("-b:a", &settings.audio_bit_rate);
        }
    }
}

/// Tells sources that may have to be read twice.
fn is_kept(source: MediaSource) -> bool {
    match source {
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

/// Returns the formats of an input that may be found. None of them names another input.
fn formats(source: MediaSource) -> &'static str {
    match source {
        MediaSource::Any => "mov,matroska,mpegts,ogg,flv,avi,mp3,aac,wav,flac,jpeg_pipe,png_pipe",
        MediaSource::Mp4 => "mov",
        MediaSource::Matroska => "matroska",
        MediaSource::Mpegts => "mpegts",
        MediaSource::Ogg => "ogg",
        MediaSource::Flv => "flv",
        MediaSource::Avi => "avi",
        MediaSource::Mp3 => "mp3",
        MediaSource::Aac => "aac",
        MediaSource::Wav => "wav",
        MediaSource::Flac => "flac",
        MediaSource::Jpeg => "jpeg_pipe",
        MediaSource::Png => "png_pipe",
    }
}

/// The decoders that may be used, which leaves out some hundred that are seldom looked at.
const DECODERS: &str = "h264,hevc,vp8,vp9,libdav1d,mpeg4,mpeg2video,mpeg1video,theora,flv,mjpeg,png,\
    aac,mp3float,mp2float,opus,libopus,vorbis,flac,ac3,eac3,pcm_s16le,pcm_s16be,pcm_s24le,pcm_s32le,pcm_f32le,pcm_u8,\
    pcm_alaw,pcm_mulaw";

fn muxer(format: MediaFormat) -> &'static str {
    match format {
        MediaFormat::Webm => "-f webm",
        MediaFormat::FragmentedMp4 => "-movflags frag_keyframe+empty_moov+default_base_moof -f mp4",
        MediaFormat::Mpegts => "-f mpegts",
        MediaFormat::Matroska => "-f matroska",
        MediaFormat::Ogg => "-f ogg",
        MediaFormat::Mp3 => "-f mp3",
        MediaFormat::Wav => "-f wav",
        MediaFormat::Flac => "-f flac",
        MediaFormat::Jpeg | MediaFormat::Png => "-f image2pipe",
    }
}

fn is_still(format: MediaFormat) -> bool {
    matches!(format, MediaFormat::Jpeg | MediaFormat::Png)
}

fn picture_format(layer: &MediaLayer) -> Option<&'static str> {
    match layer {
        MediaLayer::Text(_) => None,
        MediaLayer::Png => Some("png_pipe"),
        MediaLayer::Jpeg => Some("jpeg_pipe"),
    }
}

/// Returns the filters for pictures; for an overlaid picture, those from where it comes in.
fn filters(settings: &MediaSettings) -> String {
    let pixels = match settings.format {
        MediaFormat::Png => "format=rgba",
        MediaFormat::Jpeg => "format=yuvj420p",
        MediaFormat::Webm
        | MediaFormat::FragmentedMp4
        | MediaFormat::Mpegts
        | MediaFormat::Matroska
        | MediaFormat::Ogg
        | MediaFormat::Mp3
        | MediaFormat::Wav
        | MediaFormat::Flac => "format=yuv420p",
    };
    match &settings.overlay {
        None => format!("{},{pixels}", scale(settings)),
        Some(overlay) => match overlay.layer {
            MediaLayer::Text(_) => format!("{},{},{pixels}", scale(settings), draw_text(overlay.corner)),
            MediaLayer::Png | MediaLayer::Jpeg => format!("{},{pixels}", lay_over(overlay.corner)),
        },
    }
}

/// Most coders want even numbers of pixels.
fn scale(settings: &MediaSettings) -> String {
    let even = |pixels: u32| (pixels / 2 * 2).max(2);
    match (settings.width, settings.height) {
        (0, 0) if is_still(settings.format) => "null".to_owned(),
        (0, 0) => "scale=trunc(iw/2)*2:trunc(ih/2)*2".to_owned(),
        (width, 0) => format!("scale={}:-2", even(width)),
        (0, height) => format!("scale=-2:{}", even(height)),
        (width, height) => format!("scale={}:{}", even(width), even(height)),
    }
}

fn draw_text(corner: Corner) -> String {
    let (x, y) = match corner {
        Corner::TopLeft => ("w/40", "h/40"),
        Corner::TopRight => ("w-text_w-w/40", "h/40"),
        Corner::BottomLeft => ("w/40", "h-text_h-h/40"),
        Corner::BottomRight => ("w-text_w-w/40", "h-text_h-h/40"),
        Corner::Center => ("(w-text_w)/2", "(h-text_h)/2"),
    };
    format!(
        "drawtext=fontfile={FONT}:textfile={TEXT}:expansion=none:fontsize=h/16+4:fontcolor=white:\
         box=1:boxcolor=black@0.5:boxborderw=4:x={x}:y={y}"
    )
}

fn lay_over(corner: Corner) -> String {
    let (x, y) = match corner {
        Corner::TopLeft => ("W/40", "H/40"),
        Corner::TopRight => ("W-w-W/40", "H/40"),
        Corner::BottomLeft => ("W/40", "H-h-H/40"),
        Corner::BottomRight => ("W-w-W/40", "H-h-H/40"),
        Corner::Center => ("(W-w)/2", "(H-h)/2"),
    };
    format!("overlay=x={x}:y={y}:eof_action=repeat")
}

fn seconds(ms: u32) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

#[cfg(test)]
mod tests {
    use netserv_wire::container::media::MediaOverlay;

    use super::*;

    const MEANS: Means = Means { threads: 2, allocation_bytes: 1 << 20 };

    #[test]
    fn no_text_reaches_a_command_line() {
        let evil = "x':textfile=/etc/passwd,[in]movie=http\\://evil/%{pts} -i /etc/passwd";
        for layer in [MediaLayer::Text(evil.to_owned()), MediaLayer::Png, MediaLayer::Jpeg] {
            for corner in [Corner::TopLeft, Corner::TopRight, Corner::BottomLeft, Corner::BottomRight, Corner::Center] {
                let overlay = Some(MediaOverlay { layer: layer.clone(), corner });
                let settings = MediaSettings { overlay, ..MediaSettings::new(MediaFormat::Webm) };
                let line = arguments(&MediaTask::Transcode { source: MediaSource::Any, settings }, MEANS).join(" ");
                assert!(!line.contains("passwd") && !line.contains("evil"), "{line}");
                assert_eq!(line.contains("pipe:3"), layer == MediaLayer::Png || layer == MediaLayer::Jpeg, "{line}");
            }
        }
    }

    #[test]
    fn every_input_is_a_pipe_and_every_input_has_its_lists() {
        for source in [MediaSource::Any, MediaSource::Mp4, MediaSource::Mpegts, MediaSource::Png] {
            let layer = MediaLayer::Png;
            let overlay = Some(MediaOverlay { layer, corner: Corner::Center });
            let settings = MediaSettings { overlay, ..MediaSettings::new(MediaFormat::Jpeg) };
            for task in [MediaTask::Probe { source }, MediaTask::Transcode { source, settings }] {
                let line = arguments(&task, MEANS);
                let after = |name: &str| {
                    let values = line.windows(2).filter(|pair| pair[0] == name).map(|pair| pair[1].clone());
                    values.collect::<Vec<String>>()
                };
                let inputs = after("-i");
                assert!(inputs.iter().all(|input| ["pipe:0", "cache:pipe:0", "pipe:3"].contains(&input.as_str())));
                for list in ["-protocol_whitelist", "-format_whitelist", "-codec_whitelist", "-max_pixels"] {
                    assert_eq!(after(list).len(), inputs.len(), "{list} in {line:?}");
                }
                let formats = after("-format_whitelist").join(",");
                for bad in ["concat", "hls", "dash", "sdp", "image2", "lavfi", "tedcaptions"] {
                    assert!(!formats.split(',').any(|format| format == bad), "{bad}");
                }
            }
        }
    }

    #[test]
    fn numbers_are_as_they_were_asked_for() {
        let settings = MediaSettings {
            width: 321,
            video_bit_rate: 500_000,
            audio_bit_rate: 64_000,
            duration_ms: 61_007,
            ..MediaSettings::new(MediaFormat::FragmentedMp4)
        };
        let line = arguments(&MediaTask::Transcode { source: MediaSource::Any, settings }, MEANS).join(" ");
        for part in ["-t 61.007 ", "scale=320:-2", "-b:v 500000 ", "-bufsize 1000000 ", "-b:a 64000 ", " -f mp4 pipe:1"]
        {
            assert!(line.contains(part), "{part} in {line}");
        }
    }
}
