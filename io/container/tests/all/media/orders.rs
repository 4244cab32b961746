// SPDX-License-Identifier: Apache-2.0
//! Parts of inputs, several outputs, segments, and what comes live.

use netserv_wire::container::media::{MediaLive, MediaSegments};

use super::*;

/// Bytes of a packet of an MPEG transport stream (ISO/IEC 13818-1 §2.4.3.2).
const TS_PACKET: usize = 188;

#[test]
fn a_part_of_a_clip_is_taken() {
    let Some(node) = media_node("a_part_of_a_clip_is_taken") else { return };
    for (source, format) in [(MediaSource::Mp4, "mp4"), (MediaSource::Mpegts, "mpegts")] {
        let clip = red_then_green(format);
        let part = MediaPart { start_ms: 1_400, duration_ms: 400, live: None };
        let settings = MediaSettings { segments: MediaSegments::Free, ..MediaSettings::new(MediaFormat::Matroska) };
        let done = run(&node, &MediaTask::Transcode { source, part, outputs: vec![settings] }, &clip);
        assert_eq!(done.outcome, MediaOutcome::Done, "{format}: {}", done.detail);
        let frames = frames(&done.output);
        assert!((9..=11).contains(&frames.len()), "{format}: {frames:?}");
        let [red, green, _] = first_pixel(&done.output);
        assert!(green > 100 && red < 50, "{format}: {red} {green}");
        let whole = run(&node, &to(source, MediaSettings::new(MediaFormat::Png)), &clip);
        assert!(first_pixel(&whole.output)[0] > 200, "{format} begins red");
    }
}

#[test]
fn grey_pictures_have_no_colour() {
    let Some(node) = media_node("grey_pictures_have_no_colour") else { return };
    for format in [MediaFormat::Png, MediaFormat::Mpegts, MediaFormat::Webm] {
        let settings = MediaSettings { grey: true, ..MediaSettings::new(format) };
        let done = run(&node, &to(MediaSource::Mpegts, settings), &red_then_green("mpegts"));
        assert_eq!(done.outcome, MediaOutcome::Done, "{format:?}: {}", done.detail);
        let [red, green, blue] = first_pixel(&done.output);
        assert!(red.abs_diff(green) < 4 && green.abs_diff(blue) < 4 && red > 20, "{format:?}: {red} {green} {blue}");
    }
}

#[test]
fn several_outputs_come_of_one_decoding() {
    let Some(node) = media_node("several_outputs_come_of_one_decoding") else { return };
    let overlay = Some(MediaOverlay { layer: MediaLayer::Png, corner: Corner::Center });
    let of = |format, width| MediaSettings { width, ..MediaSettings::new(format) };
    let outputs = vec![
        MediaSettings { overlay: overlay.clone(), ..of(MediaFormat::Mpegts, 160) },
        of(MediaFormat::Webm, 80),
        MediaSettings { overlay, ..of(MediaFormat::Jpeg, 64) },
        MediaSettings::new(MediaFormat::Mp3),
    ];
    let task = MediaTask::Transcode { source: MediaSource::Any, part: MediaPart::default(), outputs };
    let outputs = run_all(&node, &task, &CLIP, &LOGO);
    for (output, parts) in outputs.iter().zip([
        ["h264", "\"width\": 160", "aac"],
        ["vp8", "\"width\": 80", "opus"],
        ["mjpeg", "\"width\": 64", "\"height\": 36"],
        ["mp3", "44100", "audio"],
    ]) {
        let told = probe(&node, output);
        assert!(parts.iter().all(|part| told.contains(part)), "{parts:?}: {told}");
    }
    assert_eq!(outputs.len(), 4);
}

#[test]
fn an_output_that_is_not_read_holds_up_the_others_and_one_that_is_dropped_ends_them() {
    let test = "an_output_that_is_not_read_holds_up_the_others_and_one_that_is_dropped_ends_them";
    let Some(node) = media_node(test) else { return };
    let stream = make(&["-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25", "-t", "4", "-f", "mpegts"]);
    let outputs = vec![MediaSettings::new(MediaFormat::Mpegts), MediaSettings::new(MediaFormat::Matroska)];
    let task = MediaTask::Transcode { source: MediaSource::Mpegts, part: MediaPart::default(), outputs };
    let MediaJob { mut process, ends } = node.launcher.start_media(&task, &LIMITS).unwrap();
    let writer = write_once(ends.input, stream);
    let [read, unread]: [OwnedFd; 2] = ends.outputs.try_into().unwrap();
    let reader = std::thread::spawn(move || File::from(read).read_to_end(&mut vec![]).unwrap());
    until(|| waits_for(process.pid(), libc::SYS_write, 4));
    assert_eq!(process.exit(), None, "it waits for a reader");
    drop(unread);
    let (outcome, detail) = media_outcome(&process.wait(PATIENCE).unwrap().clone());
    assert_eq!(outcome, MediaOutcome::Failed, "{detail}");
    reader.join().unwrap();
    writer.join().unwrap();
}

#[test]
fn segments_begin_where_they_are_wanted_and_nowhere_else() {
    let Some(node) = media_node("segments_begin_where_they_are_wanted_and_nowhere_else") else { return };
    let every = |format| MediaSettings { segments: MediaSegments::Every(480), ..MediaSettings::new(format) };
    let source = |format| MediaSettings { segments: MediaSegments::Source, ..MediaSettings::new(format) };
    let clip = make(&["-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25", "-t", "2", "-g", "20", "-f", "mpegts"]);
    let formats = [MediaFormat::Mpegts, MediaFormat::FragmentedMp4, MediaFormat::Webm];
    for (settings, expected) in formats
        .map(|format| (every(format), vec![0, 12, 24, 36, 48]))
        .into_iter()
        .chain(formats.map(|format| (source(format), vec![0, 20, 40])))
    {
        let what = format!("{:?} {:?}", settings.format, settings.segments);
        let done = run(&node, &to(MediaSource::Mpegts, settings.clone()), &clip);
        assert_eq!(done.outcome, MediaOutcome::Done, "{what}: {}", done.detail);
        let frames = frames(&done.output);
        let keys: Vec<usize> = (0..frames.len()).filter(|place| frames[*place].is_key).collect();
        assert_eq!(keys, expected, "{what}");
        let fragments = done.output.windows(4).filter(|name| name == b"moof").count();
        if settings.format == MediaFormat::FragmentedMp4 {
            assert_eq!(fragments, expected.len(), "{what}");
        }
        if settings.format == MediaFormat::Mpegts {
            assert_eq!(cut(&done.output).len(), expected.len(), "{what}");
        }
    }
}

/// Goal: VP9, which looks ahead, has no key frame of its own at a cut of the picture.
#[test]
fn a_cut_begins_no_segment() {
    let Some(node) = media_node("a_cut_begins_no_segment") else { return };
    let settings = MediaSettings {
        video: VideoCodec::Vp9,
        segments: MediaSegments::Every(800),
        ..MediaSettings::new(MediaFormat::Webm)
    };
    let done = run(&node, &to(MediaSource::Mpegts, settings), &red_then_green("mpegts"));
    assert_eq!(done.outcome, MediaOutcome::Done, "{}", done.detail);
    let frames = frames(&done.output);
    let keys: Vec<usize> = (0..frames.len()).filter(|place| frames[*place].is_key).collect();
    assert_eq!(keys, [0, 20, 40], "the cut is at the 25th picture");
}

/// Goal: live sound comes while the input does, also in a format whose fragments begin with pictures.
#[test]
fn live_sound_in_mp4_comes_while_the_input_does() {
    let Some(node) = media_node("live_sound_in_mp4_comes_while_the_input_does") else { return };
    let clip = make(&["-f", "lavfi", "-i", "sine=frequency=440", "-t", "8", "-c:a", "aac", "-f", "mpegts"]);
    let live = Some(MediaLive { cpu_permille: 0, keep_times: false });
    let part = MediaPart { live, ..MediaPart::default() };
    let outputs = vec![MediaSettings { video: VideoCodec::None, ..MediaSettings::new(MediaFormat::FragmentedMp4) }];
    let task = MediaTask::Transcode { source: MediaSource::Mpegts, part, outputs };
    let MediaJob { mut process, ends } = node.launcher.start_media(&task, &LIMITS).unwrap();
    let mut input = File::from(ends.input);
    let mut output = File::from(first(ends.outputs));
    input.write_all(&clip[..clip.len() / TS_PACKET * 3 / 4 * TS_PACKET]).unwrap();
    let mut begun = vec![0; 16 * 1024];
    output.read_exact(&mut begun).unwrap();
    assert!(begun.windows(4).any(|name| name == b"moof") && process.exit().is_none());
    drop(input);
    output.read_to_end(&mut begun).unwrap();
    assert_eq!(media_outcome(&process.wait(PATIENCE).unwrap().clone()).0, MediaOutcome::Done);
}

#[test]
fn live_output_comes_while_input_does_and_quality_changes_in_mid_stream() {
    let test = "live_output_comes_while_input_does_and_quality_changes_in_mid_stream";
    let Some(node) = media_node(test) else { return };
    let clip = make(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=size=320x180:rate=25",
        "-f",
        "lavfi",
        "-i",
        "sine=frequency=440",
        "-t",
        "8",
        "-g",
        "25",
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-c:a",
        "aac",
        "-f",
        "mpegts",
    ]);
    let live = Some(MediaLive { cpu_permille: 0, keep_times: true });
    let output = |video_bit_rate, width, grey| MediaSettings {
        width,
        video_bit_rate,
        grey,
        segments: MediaSegments::Source,
        ..MediaSettings::new(MediaFormat::Mpegts)
    };
    let start = |settings| {
        let part = MediaPart { live, ..MediaPart::default() };
        let task = MediaTask::Transcode { source: MediaSource::Mpegts, part, outputs: vec![settings] };
        node.launcher.start_media(&task, &LIMITS).unwrap()
    };
    // Most of the input is there, and its end is not.
    let MediaJob { process: mut first, ends } = start(output(600_000, 0, false));
    let mut input = File::from(ends.input);
    let reader = read_until_key_frames(File::from(super::first(ends.outputs)), 4);
    input.write_all(&clip[..clip.len() / TS_PACKET * 3 / 4 * TS_PACKET]).unwrap();
    let (before, rest) = reader.recv_timeout(PATIENCE).expect("output comes before the end of the input");
    assert_eq!(first.exit(), None);
    drop(input);
    let first_whole = [before, rest.recv_timeout(PATIENCE).unwrap()].concat();
    assert_eq!(media_outcome(&first.wait(PATIENCE).unwrap().clone()).0, MediaOutcome::Done);

    // The other begins in the middle of the input, as who changes over to it would have it.
    let MediaJob { process: second, ends } = start(output(100_000, 160, true));
    let from = clip.len() / TS_PACKET / 4 * TS_PACKET;
    let done = finish(MediaJob { process: second, ends }, &clip[from..], &[]);
    assert_eq!(done.outcome, MediaOutcome::Done, "{}", done.detail);

    let (first, second) = (cut(&first_whole), cut(&done.output));
    let began = |segment: &&[u8]| frames(segment).first().map(|frame| frame.ms).unwrap();
    let starts: Vec<i64> = second.iter().map(began).collect();
    let kept: Vec<&[u8]> = first.iter().copied().filter(|segment| began(segment) < starts[1]).collect();
    let last = began(kept.last().unwrap());
    assert!(starts[1] - last == 1000, "segments of both fit together: {last}, {starts:?}");
    let joined = [kept.concat(), second[1..].concat()].concat();
    let shown = frames(&joined);
    let steps: Vec<i64> = shown.windows(2).map(|pair| pair[1].ms - pair[0].ms).collect();
    assert!(steps.iter().all(|step| *step == 40), "one stream without a gap: {steps:?}");
    assert!((190..=200).contains(&shown.len()), "{}", shown.len());
    let of = |segments: &[&[u8]]| segments.iter().map(|segment| segment.len()).sum::<usize>() / segments.len();
    assert!(of(&second[1..]) * 2 < of(&first), "{} of {}", of(&second[1..]), of(&first));
}

/// Reads in the background; what came is told once so many key frames were there, and then the rest.
#[allow(clippy::type_complexity, reason = "a channel in a channel, used once")]
fn read_until_key_frames(
    mut output: File,
    wanted: usize,
) -> std::sync::mpsc::Receiver<(Vec<u8>, std::sync::mpsc::Receiver<Vec<u8>>)> {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut before, mut piece) = (vec![], [0; 4096]);
        while cut(&before).len() < wanted {
            match output.read(&mut piece) {
                Ok(0) | Err(_) => return,
                Ok(length) => before.extend(&piece[..length]),
            }
        }
        let (tell_rest, rest) = std::sync::mpsc::channel();
        tell.send((before, rest)).unwrap();
        let mut after = vec![];
        output.read_to_end(&mut after).unwrap();
        tell_rest.send(after).unwrap();
    });
    told
}

struct Frame {
    ms: i64,
    is_key: bool,
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.ms, if self.is_key { "K" } else { "" })
    }
}

/// Returns the pictures of a stream in the order in which they are shown, as ffprobe sees them.
fn frames(stream: &[u8]) -> Vec<Frame> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), stream).unwrap();
    let mut ffprobe = Command::new(Path::new(FFMPEG).with_file_name("ffprobe"));
    ffprobe.args(["-v", "error", "-select_streams", "v", "-show_entries", "packet=pts_time,flags", "-of", "csv=p=0"]);
    let told = ffprobe.arg(file.path()).output().unwrap();
    let text = String::from_utf8(told.stdout).unwrap();
    let frame = |line: &str| {
        let (at, flags) = line.split_once(',')?;
        let (seconds, micros) = at.split_once('.')?;
        let ms = seconds.parse::<i64>().ok()? * 1000 + micros.parse::<i64>().ok()? / 1000;
        Some(Frame { ms, is_key: flags.starts_with('K') })
    };
    let mut frames: Vec<Frame> = text.lines().filter_map(frame).collect();
    frames.sort_by_key(|frame| frame.ms);
    frames
}

/// Returns the colours of the first picture's first pixel.
fn first_pixel(input: &[u8]) -> [u8; 3] {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), input).unwrap();
    let path = file.path().to_str().unwrap();
    let raw = make(&["-i", path, "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "rgb24"]);
    raw[..3].try_into().unwrap()
}

/// Returns a clip of a red second and a green one.
fn red_then_green(format: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("clip");
    let mut ffmpeg = Command::new(FFMPEG);
    ffmpeg.args(["-v", "error", "-f", "lavfi", "-i", "color=red:s=64x48:r=25:d=1", "-f", "lavfi", "-i"]);
    ffmpeg.args([
        "color=green:s=64x48:r=25:d=1",
        "-filter_complex",
        "[0][1]concat[all]",
        "-map",
        "[all]",
        "-f",
        format,
    ]);
    assert!(ffmpeg.arg(&path).status().unwrap().success());
    fs::read(path).unwrap()
}

/// Runs a job whose outputs are read at the same time.
fn run_all(node: &Node, task: &MediaTask, input: &[u8], picture: &[u8]) -> Vec<Vec<u8>> {
    let MediaJob { mut process, ends } = node.launcher.start_media(task, &LIMITS).unwrap();
    let writers = [(Some(ends.input), input), (ends.picture, picture)];
    let writers = writers.map(|(end, bytes)| end.map(|end| write_once(end, bytes.to_vec())));
    let read = |end: OwnedFd| {
        std::thread::spawn(move || {
            let mut output = vec![];
            File::from(end).read_to_end(&mut output).unwrap();
            output
        })
    };
    let readers: Vec<_> = ends.outputs.into_iter().map(read).collect();
    let outputs = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    let (outcome, detail) = media_outcome(&process.wait(PATIENCE).expect("it ends").clone());
    assert_eq!(outcome, MediaOutcome::Done, "{detail}");
    writers.into_iter().flatten().for_each(|writer| writer.join().unwrap());
    outputs
}

/// Cuts a transport stream where pictures can be begun with (`random_access_indicator`, ISO/IEC 13818-1 §2.4.3.5), before the
/// tables that stand there.
fn cut(stream: &[u8]) -> Vec<&[u8]> {
    let packets: Vec<&[u8]> = stream.chunks_exact(TS_PACKET).collect();
    let number = |packet: &[u8]| u16::from(packet[1] & 0x1f) << 8 | u16::from(packet[2]);
    let begins = |packet: &[u8]| {
        packet[1] & 0x40 != 0
            && packet[3] & 0x20 != 0
            && packet[4] > 0
            && packet[5] & 0x40 != 0
            && number(packet) == 0x100
    };
    let is_table = |packet: &[u8]| [0, 0x11, 0x1000].contains(&number(packet));
    let mut places = vec![];
    for place in (0..packets.len()).filter(|place| begins(packets[*place])) {
        places.push((0..place).rev().take_while(|before| is_table(packets[*before])).last().unwrap_or(place));
    }
    let ends = places.iter().skip(1).copied().chain([packets.len()]);
    places.iter().zip(ends).map(|(from, to)| &stream[from * TS_PACKET..to * TS_PACKET]).collect()
}
