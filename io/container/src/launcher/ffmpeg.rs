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
    AudioCodec, Corner, MediaFormat, MediaLayer, MediaLive, MediaPart, MediaPictures, MediaSegments, MediaSettings,
    MediaSource, MediaTask, VideoCodec,
};

use crate::limits::{MEDIA_PIXELS_MAX, MEDIA_STREAMS_MAX};
use crate::sandbox::paths::FONT;
use crate::sandbox::rootfs::media::Program;

/// The text that is laid over pictures, in `/data`, the directory that ffmpeg runs in.
pub(super) const TEXT: &str = "text";
/// The descriptor of the first output.
const OUTPUT_FD: i32 = 1;
/// The descriptor of the picture that is laid over pictures.
const PICTURE_FD: i32 = 3;
/// The descriptor of the second output, behind which those of further ones are.
const SECOND_OUTPUT_FD: i32 = 4;

/// Returns which program does a task.
pub(super) fn program(task: &MediaTask) -> Program {
    match task {
        MediaTask::Probe { .. } => Program::Ffprobe,
        MediaTask::Transcode { .. } => Program::Ffmpeg,
    }
}

/// Returns the numbers of the descriptors of a task: the input, the first output, the others, and the picture.
pub(super) fn numbers(task: &MediaTask) -> Vec<i32> {
    let picture = task.has_picture().then_some(PICTURE_FD);
    std::iter::once(0).chain(output_numbers().take(task.outputs())).chain(picture).collect()
}

fn output_numbers() -> impl Iterator<Item = i32> {
    std::iter::once(OUTPUT_FD).chain(SECOND_OUTPUT_FD..)
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
            line.input(*source, means.threads, false);
            line.option("-show_entries", TOLD);
            line.words("-of json=compact=1");
        }
        MediaTask::Transcode { source, part, outputs } => {
            line.words("-nostdin -nostats -y -abort_on empty_output -filter_threads 1 -filter_complex_threads 1");
            line.part(*source, *part);
            line.input(*source, means.threads, part.live.is_some());
            line.picture(task);
            for (settings, number) in outputs.iter().zip(output_numbers()) {
                line.output(*source, *part, settings, means.threads);
                line.words(muxer(settings.format));
                line.segments(settings, part.live);
                line.0.push(format!("pipe:{number}"));
            }
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

    /// Adds what is taken of the input. Seeking is for inputs that are kept; of others, outputs leave out the start.
    fn part(&mut self, source: MediaSource, part: MediaPart) {
        let MediaPart { start_ms, duration_ms, live } = part;
        if start_ms > 0 && source.is_kept() {
            self.option("-ss", &seconds(start_ms.into()));
        }
        if duration_ms > 0 {
            let left_out = if source.is_kept() { 0 } else { start_ms };
            self.option("-t", &seconds(u64::from(duration_ms) + u64::from(left_out)));
        }
        if live.is_some_and(|live| live.keep_times) {
            self.words("-copyts");
        }
    }

    /// Adds the input, and all that bounds what is read of it. Of a live one, less is read before it is begun with.
    fn input(&mut self, source: MediaSource, threads: u32, live: bool) {
        self.option("-format_whitelist", &formats(source));
        self.option("-codec_whitelist", &DECODERS);
        self.option("-max_pixels", &MEDIA_PIXELS_MAX);
        self.option("-max_streams", &MEDIA_STREAMS_MAX);
        self.words(match live {
            false => "-probesize 5000000 -analyzeduration 5000000",
            true => "-probesize 1000000 -analyzeduration 500000",
        });
        self.option("-threads", &threads);
        if source != MediaSource::Any {
            self.option("-f", &formats(source));
        }
        if source.is_kept() {
            self.words("-protocol_whitelist cache,pipe -read_ahead_limit -1 -i cache:pipe:0");
        } else {
            self.words("-protocol_whitelist pipe -i pipe:0");
        }
    }

    /// Adds the picture that is laid over others as a second input.
    fn picture(&mut self, task: &MediaTask) {
        let Some(format) = task.layer().and_then(picture_format) else { return };
        self.option("-format_whitelist", &format);
        self.option("-codec_whitelist", &DECODERS);
        self.option("-max_pixels", &MEDIA_PIXELS_MAX);
        self.option("-f", &format);
        self.words("-protocol_whitelist pipe");
        self.option("-i", &format!("pipe:{PICTURE_FD}"));
    }

    fn output(&mut self, source: MediaSource, part: MediaPart, settings: &MediaSettings, threads: u32) {
        if part.start_ms > 0 && !source.is_kept() {
            self.option("-ss", &seconds(part.start_ms.into()));
        }
        self.video(settings, part.live.is_some());
        self.audio(settings);
        self.words("-map_metadata -1 -map_chapters -1 -sn -dn");
        self.option("-threads", &threads);
    }

    /// Says where key frames are, and that live output waits for nothing.
    fn segments(&mut self, settings: &MediaSettings, live: Option<MediaLive>) {
        let is_mpegts = settings.format == MediaFormat::Mpegts;
        match settings.segments {
            MediaSegments::Free => {}
            MediaSegments::Every(ms) => {
                let seconds = seconds(ms.into());
                self.option("-force_key_frames", &format!("expr:gte(t,n_forced*{seconds})"));
            }
            MediaSegments::Source => self.words("-force_key_frames source"),
        }
        if settings.segments != MediaSegments::Free {
            // No other key frames, and what a segment is decoded by stands before it.
            self.words("-g 1000000");
            match settings.video() {
                VideoCodec::H264 => self.words("-sc_threshold 0 -forced-idr 1"),
                VideoCodec::Vp8 | VideoCodec::Vp9 => self.words("-auto-alt-ref 0"),
                VideoCodec::Standard | VideoCodec::Copy | VideoCodec::None => {}
            }
            if is_mpegts {
                self.words("-mpegts_flags pat_pmt_at_frames");
            }
        }
        let Some(live) = live else { return };
        self.words("-flush_packets 1 -muxdelay 0 -muxpreload 0");
        // Without pictures, no fragment would end before the input does.
        if settings.format == MediaFormat::FragmentedMp4 && settings.video() == VideoCodec::None {
            self.words("-frag_duration 1000000");
        }
        if live.keep_times && is_mpegts {
            self.words("-mpegts_copyts 1");
        }
    }

    fn video(&mut self, settings: &MediaSettings, live: bool) {
        let codec = settings.video();
        match codec {
            VideoCodec::None => return self.words("-vn"),
            VideoCodec::Copy => return self.words("-map 0:V:0? -c:v copy"),
            VideoCodec::Standard | VideoCodec::H264 | VideoCodec::Vp8 | VideoCodec::Vp9 => {}
        }
        if let Some(pictures) = settings.pictures {
            return self.pictures(settings, pictures);
        }
        let filters = filters(settings);
        let layer = settings.overlay.as_ref().map(|overlay| &overlay.layer);
        let stream = if settings.format.is_still() { "0:v:0" } else { "0:V:0" };
        if layer.and_then(picture_format).is_some() {
            let before = scale(settings);
            // Each graph has labels of its own, by the place of its words in the line.
            let all = format!("all{}", self.0.len());
            let graph = format!("[{stream}]{before}[below];[below][1:v:0]{filters}[{all}]");
            self.option("-filter_complex", &graph);
            self.option("-map", &format!("[{all}]"));
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
        match codec {
            VideoCodec::H264 if live => self.words("-tune zerolatency"),
            // It looks ahead, and puts key frames where it likes by what it sees there.
            VideoCodec::Vp9 if live || settings.segments != MediaSegments::Free => self.words("-lag-in-frames 0"),
            VideoCodec::H264
            | VideoCodec::Vp8
            | VideoCodec::Vp9
            | VideoCodec::Standard
            | VideoCodec::Copy
            | VideoCodec::None => {}
        }
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

    /// Adds pictures one behind the other. Each is given as soon as it is there, and none twice, whatever times the input has.
    fn pictures(&mut self, settings: &MediaSettings, pictures: MediaPictures) {
        let MediaPictures { per_s, coarseness, palette } = pictures;
        let text = match settings.overlay.as_ref().map(|overlay| (&overlay.layer, overlay.corner)) {
            Some((MediaLayer::Text(_), corner)) => format!(",{}", draw_text(corner)),
            Some((MediaLayer::Png | MediaLayer::Jpeg, _)) | None => String::new(),
        };
        let chosen = format!(
            "select=isnan(prev_selected_t)+not(eq(floor(t*{per_s})\\,floor(prev_selected_t*{per_s}))),{}{text}",
            fit(settings.width, settings.height)
        );
        if palette {
            let place = self.0.len();
            let graph = format!(
                "[0:V:0]{chosen}[shown{place}];{PALETTE}[colours{place}];\
                 [shown{place}][colours{place}]paletteuse=dither=bayer:bayer_scale=3[all{place}]"
            );
            self.option("-filter_complex", &graph);
            self.option("-map", &format!("[all{place}]"));
        } else {
            let pixels = match (settings.format == MediaFormat::PngPictures, settings.grey) {
                (true, true) => "format=gray",
                (true, false) => "format=rgb24",
                (false, true) => "format=gray,format=yuvj420p",
                (false, false) => "format=yuvj420p",
            };
            self.option("-vf", &format!("{chosen},{pixels}"));
            self.words("-map 0:V:0?");
        }
        if settings.format == MediaFormat::PngPictures {
            self.words("-c:v png -pred none -compression_level 4");
        } else {
            self.words("-c:v mjpeg -huffman default");
            self.option("-q:v", &coarseness);
            self.option("-qmin", &coarseness.min(2));
        }
        self.words("-fps_mode passthrough");
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
        MediaFormat::Jpeg | MediaFormat::Png | MediaFormat::JpegPictures | MediaFormat::PngPictures => "-f image2pipe",
    }
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
        | MediaFormat::Flac
        | MediaFormat::JpegPictures
        | MediaFormat::PngPictures => "format=yuv420p",
    };
    let drawn = match &settings.overlay {
        None => scale(settings),
        Some(overlay) => match overlay.layer {
            MediaLayer::Text(_) => format!("{},{}", scale(settings), draw_text(overlay.corner)),
            MediaLayer::Png | MediaLayer::Jpeg => lay_over(overlay.corner),
        },
    };
    let grey = if settings.grey { ",format=gray" } else { "" };
    format!("{drawn}{grey},{pixels}")
}

/// Most coders want even numbers of pixels.
fn scale(settings: &MediaSettings) -> String {
    let even = |pixels: u32| (pixels / 2 * 2).max(2);
    match (settings.width, settings.height) {
        (0, 0) if settings.format.is_still() => "null".to_owned(),
        (0, 0) => "scale=trunc(iw/2)*2:trunc(ih/2)*2".to_owned(),
        (width, 0) => format!("scale={}:-2", even(width)),
        (0, height) => format!("scale=-2:{}", even(height)),
        (width, height) => format!("scale={}:{}", even(width), even(height)),
    }
}

/// The largest size within these bounds that has the form of the input's pictures as they are to be shown.
fn fit(width: u32, height: u32) -> String {
    let (width, height) = ((width / 2 * 2).max(2), (height / 2 * 2).max(2));
    format!(
        "scale=w=max(2\\,2*trunc(min({width}\\,{height}*dar)/2)):h=max(2\\,2*trunc(min({height}\\,{width}/dar)/2)),setsar=1"
    )
}

/// 256 colours: six steps of red, green and blue each, and 40 steps of grey from black to white.
const PALETTE: &str = "color=black:s=16x16:r=1:d=1,format=gbrp,\
    geq=r=if(lt(16*Y+X\\,216)\\,51*floor((16*Y+X)/36)\\,(16*Y+X-216)*255/39):\
    g=if(lt(16*Y+X\\,216)\\,51*mod(floor((16*Y+X)/6)\\,6)\\,(16*Y+X-216)*255/39):\
    b=if(lt(16*Y+X\\,216)\\,51*mod(16*Y+X\\,6)\\,(16*Y+X-216)*255/39),format=bgra";

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

fn seconds(ms: u64) -> String {
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
                let line = arguments(&task(MediaSource::Any, MediaPart::default(), settings), MEANS).join(" ");
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
            for task in [MediaTask::Probe { source }, task(source, MediaPart::default(), settings)] {
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
            ..MediaSettings::new(MediaFormat::FragmentedMp4)
        };
        let part = MediaPart { duration_ms: 61_007, ..MediaPart::default() };
        let line = arguments(&task(MediaSource::Any, part, settings), MEANS).join(" ");
        for part in ["-t 61.007 ", "scale=320:-2", "-b:v 500000 ", "-bufsize 1000000 ", "-b:a 64000 ", " -f mp4 pipe:1"]
        {
            assert!(line.contains(part), "{part} in {line}");
        }
    }

    #[test]
    fn the_start_is_sought_where_that_can_be_and_left_out_elsewhere() {
        let part = MediaPart { start_ms: 2_500, duration_ms: 1_000, live: None };
        let line = |source| arguments(&task(source, part, MediaSettings::new(MediaFormat::Webm)), MEANS).join(" ");
        let (kept, stream) = (line(MediaSource::Mp4), line(MediaSource::Mpegts));
        let (start, input) = (kept.find("-ss 2.500 -t 1.000 ").unwrap(), kept.find("-i cache:pipe:0").unwrap());
        assert!(start < input, "{kept}");
        let (start, input) = (stream.find("-ss 2.500 ").unwrap(), stream.find("-i pipe:0").unwrap());
        assert!(start > input && stream.contains("-t 3.500 "), "{stream}");
    }

    #[test]
    fn outputs_have_pipes_of_their_own_and_a_graph_each() {
        let overlay = Some(MediaOverlay { layer: MediaLayer::Png, corner: Corner::Center });
        let output = |format| MediaSettings { overlay: overlay.clone(), ..MediaSettings::new(format) };
        let outputs =
            vec![output(MediaFormat::Webm), output(MediaFormat::Mpegts), MediaSettings::new(MediaFormat::Mp3)];
        let task = MediaTask::Transcode { source: MediaSource::Any, part: MediaPart::default(), outputs };
        assert_eq!(numbers(&task), [0, 1, 4, 5, 3]);
        let line = arguments(&task, MEANS);
        let pipes: Vec<&str> = line.iter().map(String::as_str).filter(|word| word.starts_with("pipe:")).collect();
        assert_eq!(pipes, ["pipe:3", "pipe:1", "pipe:4", "pipe:5"]);
        let labels: Vec<&String> = line.iter().filter(|word| word.starts_with("[all")).collect();
        assert!(labels.len() == 2 && labels[0] != labels[1], "{line:?}");
        assert_eq!(numbers(&MediaTask::Probe { source: MediaSource::Any }), [0, 1]);
    }

    fn task(source: MediaSource, part: MediaPart, settings: MediaSettings) -> MediaTask {
        MediaTask::Transcode { source, part, outputs: vec![settings] }
    }
}
