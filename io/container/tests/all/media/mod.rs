// SPDX-License-Identifier: Apache-2.0
//! ffmpeg in its sandbox, with good inputs and with crafted ones.

mod orders;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::{Node, can_run};
use netserv_container::limits::MEDIA_STREAMS_MAX;
use netserv_container::{Exit, ExitCause, LauncherConfig, MediaFiles, MediaJob, MediaLimits, media_outcome};
use netserv_model::policy::ContainerLimits;
use netserv_skips::skipped;
use netserv_wire::container::media::{
    AudioCodec, Corner, MediaFormat, MediaLayer, MediaOutcome, MediaOverlay, MediaPart, MediaSettings, MediaSource,
    MediaTask, VideoCodec,
};

const FFMPEG: &str = "/usr/bin/ffmpeg";
const FONT: &str = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";
/// Much longer than any of these jobs takes.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_clip_becomes_every_format() {
    let Some(node) = media_node("a_clip_becomes_every_format") else { return };
    for (format, expected) in [
        (MediaFormat::Webm, ["vp8", "opus"]),
        (MediaFormat::FragmentedMp4, ["h264", "aac"]),
        (MediaFormat::Mpegts, ["h264", "aac"]),
        (MediaFormat::Matroska, ["h264", "aac"]),
        (MediaFormat::Ogg, ["vorbis", "vorbis"]),
        (MediaFormat::Mp3, ["mp3", "mp3"]),
        (MediaFormat::Wav, ["pcm_s16le", "pcm_s16le"]),
        (MediaFormat::Flac, ["flac", "flac"]),
        (MediaFormat::Jpeg, ["mjpeg", "mjpeg"]),
        (MediaFormat::Png, ["png", "png"]),
    ] {
        let done = run(&node, &transcode(MediaSettings::new(format)), &CLIP);
        assert_eq!(done.outcome, MediaOutcome::Done, "{format:?}: {}", done.detail);
        let told = probe(&node, &done.output);
        for codec in expected {
            assert!(told.contains(&format!("\"codec_name\": \"{codec}\"")), "{format:?}: {told}");
        }
        let sound = told.contains("\"codec_type\": \"audio\"");
        assert_eq!(sound, !matches!(format, MediaFormat::Jpeg | MediaFormat::Png), "{format:?}: {told}");
    }
}

#[test]
fn settings_are_kept() {
    let Some(node) = media_node("settings_are_kept") else { return };
    let settings = MediaSettings {
        audio: AudioCodec::None,
        width: 100,
        video_bit_rate: 100_000,
        ..MediaSettings::new(MediaFormat::Mpegts)
    };
    let done = run(&node, &transcode(settings), &CLIP);
    assert_eq!(done.outcome, MediaOutcome::Done, "{}", done.detail);
    let told = probe(&node, &done.output);
    for part in ["\"width\": 100", "\"height\": 56"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("audio"), "{told}");
    let vp9 =
        MediaSettings { video: VideoCodec::Vp9, audio: AudioCodec::Vorbis, ..MediaSettings::new(MediaFormat::Webm) };
    let done = run(&node, &transcode(vp9), &CLIP);
    let told = probe(&node, &done.output);
    assert!(told.contains("vp9") && told.contains("vorbis"), "{told}");
    let copy =
        MediaSettings { video: VideoCodec::Copy, audio: AudioCodec::Copy, ..MediaSettings::new(MediaFormat::Mpegts) };
    let done = run(&node, &transcode(copy), &CLIP);
    assert_eq!(done.outcome, MediaOutcome::Done, "{}", done.detail);
}

#[test]
fn text_and_pictures_are_laid_over_and_nothing_in_them_is_an_option() {
    let Some(node) = media_node("text_and_pictures_are_laid_over_and_nothing_in_them_is_an_option") else { return };
    let over = |layer: Option<MediaLayer>, picture: &[u8]| {
        let overlay = layer.map(|layer| MediaOverlay { layer, corner: Corner::BottomLeft });
        let task = transcode(MediaSettings { overlay, ..MediaSettings::new(MediaFormat::Png) });
        let done = run_with_picture(&node, &task, &CLIP, picture);
        assert_eq!(done.outcome, MediaOutcome::Done, "{}", done.detail);
        done.output
    };
    let text = |text: &str| over(Some(MediaLayer::Text(text.to_owned())), &[]);
    let plain = over(None, &[]);
    let hello = text("hello");
    assert_ne!(plain, hello);
    // Were anything expanded, it would look as something else does.
    let evil = text("%{pts}':x=0,[a]movie=/font\\:;\\'");
    assert!(evil != plain && evil != hello && evil != text("%{n}':x=0,[a]movie=/font\\:;\\'"));
    assert_ne!(over(Some(MediaLayer::Png), &LOGO), plain);
    let task = MediaSettings {
        overlay: Some(MediaOverlay { layer: MediaLayer::Jpeg, corner: Corner::Center }),
        ..MediaSettings::new(MediaFormat::Png)
    };
    let done = run_with_picture(&node, &transcode(task), &CLIP, b"no picture");
    assert_eq!(done.outcome, MediaOutcome::Failed, "{}", done.detail);
}

#[test]
fn what_is_no_media_fails_with_a_reason() {
    let Some(node) = media_node("what_is_no_media_fails_with_a_reason") else { return };
    let noise: Vec<u8> = (0..200_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[1]).collect();
    for (what, input) in [
        ("nothing", &[][..]),
        ("noise", &noise),
        ("truncated", &CLIP[..400]),
        ("no index", &CLIP[..CLIP.len() - 4000]),
        ("shell", b"#!/bin/sh\nid\n"),
    ] {
        for task in [transcode(MediaSettings::new(MediaFormat::Webm)), MediaTask::Probe { source: MediaSource::Any }] {
            let done = run(&node, &task, input);
            assert_eq!(done.outcome, MediaOutcome::Failed, "{what}: {}", done.detail);
            assert!(!done.detail.is_empty(), "{what}");
        }
    }
    let damaged: Vec<u8> =
        CLIP.iter().enumerate().map(|(at, byte)| if at % 701 == 700 { !byte } else { *byte }).collect();
    let done = run(&node, &transcode(MediaSettings::new(MediaFormat::Webm)), &damaged);
    assert!(matches!(done.outcome, MediaOutcome::Failed | MediaOutcome::Done), "{:?}", done.outcome);
}

#[test]
fn inputs_that_name_other_inputs_get_none_of_them() {
    let Some(node) = media_node("inputs_that_name_other_inputs_get_none_of_them") else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/x.ts", listener.local_addr().unwrap());
    let lists = [
        "ffconcat version 1.0\nfile /font\n".to_owned(),
        "ffconcat version 1.0\nfile pipe:0\n".to_owned(),
        format!("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{url}\n#EXTINF:1,\nfile:///font\n#EXT-X-ENDLIST\n"),
        "#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:1,\nconcat:/font|/data/text\n#EXT-X-ENDLIST\n".to_owned(),
        format!("v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5000 RTP/AVP 96\na=x:{url}\n"),
        format!("<?xml version=\"1.0\"?><MPD type=\"static\"><Period><BaseURL>{url}</BaseURL></Period></MPD>"),
        format!("[Reference]\nRef1={url}\n"),
    ];
    for list in &lists {
        for source in [MediaSource::Any, MediaSource::Mp4, MediaSource::Mpegts, MediaSource::Mp3] {
            let settings = MediaSettings::new(MediaFormat::Matroska);
            for task in [to(source, settings), MediaTask::Probe { source }] {
                let done = run(&node, &task, list.as_bytes());
                assert_eq!(done.outcome, MediaOutcome::Failed, "{list}: {}", done.detail);
                assert!(done.output.len() < 16, "{list}: {}", String::from_utf8_lossy(&done.output));
            }
        }
    }
    assert!(listener.accept().is_err(), "nobody came");
}

#[test]
fn huge_pictures_are_refused_before_they_take_memory() {
    let Some(node) = media_node("huge_pictures_are_refused_before_they_take_memory") else { return };
    let started = Instant::now();
    for (width, height) in [(60_000, 60_000), (4096, 2305), (0x7fff_ffff, 1)] {
        let input = png_of_size(width, height);
        let done = run(&node, &transcode(MediaSettings::new(MediaFormat::Jpeg)), &input);
        assert_eq!(done.outcome, MediaOutcome::Failed, "{width} × {height}: {}", done.detail);
    }
    assert!(started.elapsed() < PATIENCE);
}

#[test]
fn only_so_many_streams_are_read() {
    let Some(node) = media_node("only_so_many_streams_are_read") else { return };
    for (streams, outcome) in [(MEDIA_STREAMS_MAX, MediaOutcome::Done), (MEDIA_STREAMS_MAX + 1, MediaOutcome::Failed)] {
        let maps = ["-map", "0:a"].repeat(streams as usize);
        let sound = ["-f", "lavfi", "-i", "sine=d=0.05"];
        let input = make(&[&sound, &maps[..], &["-c:a", "pcm_s16le", "-f", "matroska"]].concat());
        let done = run(&node, &probe_task(), &input);
        assert_eq!(done.outcome, outcome, "{streams}: {}", done.detail);
    }
}

#[test]
fn memory_is_bounded_and_said_to_be() {
    let Some(node) = media_node("memory_is_bounded_and_said_to_be") else { return };
    let little = MediaLimits { container: ContainerLimits { memory_bytes: 40 << 20, ..LIMITS.container } };
    // Each frame fits into ffmpeg's own bound for one piece, and those that the coder looks ahead do not fit together.
    let settings = MediaSettings { width: 1920, height: 1080, ..MediaSettings::new(MediaFormat::FragmentedMp4) };
    let job = node.launcher.start_media(&transcode(settings), &little).unwrap();
    let done = finish(job, &CLIP, &[]);
    assert_eq!(done.outcome, MediaOutcome::Memory, "{}", done.detail);
    assert_eq!(done.detail, "ffmpeg reached its memory limit");
    // The next one finds everything as it was.
    assert!(probe(&node, &CLIP).contains("h264"));
}

#[test]
fn what_is_kept_of_an_input_is_bounded() {
    let Some(node) = media_node("what_is_kept_of_an_input_is_bounded") else { return };
    let little = MediaLimits { container: ContainerLimits { disk_bytes: 64 << 10, ..LIMITS.container } };
    let task = MediaTask::Probe { source: MediaSource::Mp4 };
    assert!(CLIP.len() > 64 << 10, "the index lies behind what is kept");
    let done = finish(node.launcher.start_media(&task, &little).unwrap(), &CLIP, &[]);
    assert_eq!(done.outcome, MediaOutcome::Input, "{}", done.detail);
    let enough = MediaLimits { container: ContainerLimits { disk_bytes: 1 << 20, ..LIMITS.container } };
    let done = finish(node.launcher.start_media(&task, &enough).unwrap(), &CLIP, &[]);
    assert_eq!(done.outcome, MediaOutcome::Done, "{}", done.detail);
}

#[test]
fn an_endless_job_ends_when_it_is_killed_and_one_nobody_reads_waits() {
    let Some(node) = media_node("an_endless_job_ends_when_it_is_killed_and_one_nobody_reads_waits") else { return };
    let stream = run(&node, &transcode(MediaSettings::new(MediaFormat::Mpegts)), &CLIP).output;
    let task = to(MediaSource::Mpegts, MediaSettings::new(MediaFormat::Webm));
    // Endless input, and a reader: output comes until the job is killed.
    let MediaJob { mut process, ends } = node.launcher.start_media(&task, &LIMITS).unwrap();
    let writer = write_forever(ends.input, stream.clone());
    let mut output = File::from(first(ends.outputs));
    let mut first = [0; 4096];
    output.read_exact(&mut first).unwrap();
    assert_eq!(process.exit(), None);
    process.kill();
    assert_eq!(process.wait(PATIENCE).unwrap().cause, ExitCause::Signal(libc::SIGKILL));
    writer.join().unwrap();
    // A reader that goes away: ffmpeg ends by itself.
    let MediaJob { mut process, ends } = node.launcher.start_media(&task, &LIMITS).unwrap();
    let writer = write_forever(ends.input, stream.clone());
    drop(ends.outputs);
    assert!(matches!(process.wait(PATIENCE).unwrap().cause, ExitCause::Code(code) if code != 0));
    writer.join().unwrap();
    // Nobody reads: the pipe is full, and writing waits; what is kept meanwhile is the pipes' and ffmpeg's.
    let MediaJob { mut process, ends } = node.launcher.start_media(&task, &LIMITS).unwrap();
    let writer = write_forever(ends.input, stream);
    until(|| waits_for(process.pid(), libc::SYS_write, 1));
    let waiting = rustix::io::ioctl_fionread(&ends.outputs[0]).unwrap();
    assert!((1..=64 << 10).contains(&waiting), "{waiting}");
    assert_eq!(process.exit(), None);
    drop(process);
    writer.join().unwrap();
}

#[test]
fn the_sandbox_has_its_walls() {
    let Some(node) = media_node("the_sandbox_has_its_walls") else { return };
    let MediaJob { mut process, ends } = node.launcher.start_media(&probe_task(), &LIMITS).unwrap();
    let proc = PathBuf::from(format!("/proc/{}", process.pid()));
    // It waits for its input when it has read that it has none yet, behind all of its start.
    until(|| waits_for(process.pid(), libc::SYS_read, 0));
    let status = fs::read_to_string(proc.join("status")).unwrap();
    for (field, value) in [
        ("CapPrm", "0000000000000000"),
        ("CapEff", "0000000000000000"),
        ("CapBnd", "0000000000000000"),
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
        ("Seccomp_filters", "3"),
        ("Groups", ""),
    ] {
        let line = status.lines().find_map(|line| line.strip_prefix(&format!("{field}:"))).unwrap();
        assert_eq!(line.trim(), value, "{field}");
    }
    let user = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
    assert!(user.split_whitespace().skip(1).all(|id| id.parse::<u32>().unwrap() >= 64_000), "{user}");
    for namespace in ["mnt", "pid", "ipc", "uts", "net"] {
        let of = |path: &Path| fs::read_link(path.join("ns").join(namespace)).unwrap();
        assert_ne!(of(Path::new("/proc/self")), of(&proc), "{namespace}");
    }
    let mut files = vec![];
    list(&proc.join("root"), &mut files);
    let root = proc.join("root");
    let strange = |path: &&PathBuf| {
        let inside = path.strip_prefix(&root).unwrap().to_str().unwrap();
        let known = inside.contains(".so") || inside.starts_with("data/") || inside.starts_with("store/");
        !known && !["ffmpeg", "ffprobe", "font", "tmp"].contains(&inside)
    };
    assert_eq!(files.iter().filter(strange).collect::<Vec<_>>(), Vec::<&PathBuf>::new());
    assert!(files.len() > 50, "its libraries are there");
    let open: Vec<PathBuf> = fs::read_dir(proc.join("fd")).unwrap().map(|one| one.unwrap().path()).collect();
    let targets: Vec<PathBuf> = open.iter().filter_map(|fd| fs::read_link(fd).ok()).collect();
    let allowed = |target: &PathBuf| {
        let text = target.to_string_lossy();
        text.starts_with("pipe:") || text.contains("ffcache")
    };
    assert!(targets.len() >= 3 && targets.iter().all(allowed), "{targets:?}");
    drop(ends);
    assert!(process.wait(PATIENCE).is_some());
}

#[test]
fn a_node_without_ffmpeg_says_so() {
    if !can_run("a_node_without_ffmpeg_says_so") {
        return;
    }
    let node = Node::start();
    let error = node.launcher.start_media(&probe_task(), &LIMITS).unwrap_err().to_string();
    assert!(error.contains("ffmpeg"), "{error}");
    let report = Node::start_with(|config| LauncherConfig { media: Some(files("/bin/sh")), ..config });
    let missing = &report.launcher.report().missing;
    assert!(!missing.iter().any(|line| line.contains("media")), "any program is one: {missing:?}");
}

#[test]
fn jobs_leave_nothing() {
    let Some(node) = media_node("jobs_leave_nothing") else { return };
    let launcher = format!("/proc/{}/fd", node.launcher.pid());
    let count = || fs::read_dir(&launcher).unwrap().count();
    probe(&node, &CLIP);
    let before = count();
    for _ in 0..5 {
        assert!(probe(&node, &CLIP).contains("h264"));
    }
    until(|| count() <= before);
}

/// Prints what docs/blocks.md says, of a clip of 4 seconds.
#[test]
#[ignore = "prints figures, and wants a quiet machine"]
fn times_are_measured() {
    let Some(node) = media_node("times_are_measured") else { return };
    let clip = make(&["-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25", "-t", "4", "-f", "mpegts"]);
    let as_usual = |format| to(MediaSource::Mpegts, MediaSettings::new(format));
    let copy = MediaSettings { video: VideoCodec::Copy, ..MediaSettings::new(MediaFormat::Matroska) };
    let copy = to(MediaSource::Mpegts, copy);
    let small = MediaSettings { width: 160, ..MediaSettings::new(MediaFormat::Jpeg) };
    let still = to(MediaSource::Mpegts, small);
    for (what, task) in [
        ("probe", MediaTask::Probe { source: MediaSource::Mpegts }),
        ("copy", copy),
        ("jpeg", still),
        ("webm", as_usual(MediaFormat::Webm)),
        ("mp4", as_usual(MediaFormat::FragmentedMp4)),
    ] {
        let mut times: [Vec<Duration>; 3] = Default::default();
        for _ in 0..5 {
            let started = Instant::now();
            let MediaJob { mut process, ends } = node.launcher.start_media(&task, &LIMITS).unwrap();
            times[0].push(started.elapsed());
            let writer = write_once(ends.input, clip.clone());
            let mut output = File::from(first(ends.outputs));
            output.read_exact(&mut [0]).unwrap();
            times[1].push(started.elapsed());
            output.read_to_end(&mut vec![]).unwrap();
            let exit = process.wait(PATIENCE).unwrap().clone();
            assert_eq!(media_outcome(&exit).0, MediaOutcome::Done);
            times[2].push(started.elapsed());
            writer.join().unwrap();
        }
        times.iter_mut().for_each(|times| times.sort());
        let [launched, first, whole] = times.each_ref().map(|times| (times[2], times[0], times[4]));
        eprintln!("{what}: launched {launched:?}, first byte {first:?}, whole {whole:?} (median, least, most of 5)");
        assert!(first.0 < PATIENCE / 4 && launched.0 <= first.0 && first.0 <= whole.0);
    }
}

const LIMITS: MediaLimits = MediaLimits {
    container: ContainerLimits { memory_bytes: 512 << 20, cpu_permille: 2000, pids: 64, disk_bytes: 64 << 20 },
};

/// One second of pictures and sound, its index at the end.
static CLIP: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("clip.mp4");
    let made = Command::new(FFMPEG)
        .args(["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25", "-f", "lavfi", "-i"])
        .args(["sine=frequency=440", "-t", "1", "-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac"])
        .arg(&path)
        .status();
    assert!(made.unwrap().success());
    fs::read(path).unwrap()
});

static LOGO: LazyLock<Vec<u8>> = LazyLock::new(|| {
    make(&["-f", "lavfi", "-i", "color=red:s=32x32", "-frames:v", "1", "-c:v", "png", "-f", "image2pipe"])
});

struct Done {
    outcome: MediaOutcome,
    detail: String,
    output: Vec<u8>,
}

fn media_node(test: &str) -> Option<Node> {
    if !can_run(test) {
        return None;
    }
    if !Path::new(FFMPEG).exists() || !Path::new(FONT).exists() {
        skipped(test, "needs ffmpeg and fonts-dejavu-core");
        return None;
    }
    Some(Node::start_with(|config| LauncherConfig { media: Some(files(FFMPEG)), ..config }))
}

fn files(ffmpeg: &str) -> MediaFiles {
    MediaFiles { ffmpeg: ffmpeg.into(), ffprobe: Path::new(FFMPEG).with_file_name("ffprobe"), font: Some(FONT.into()) }
}

fn make(arguments: &[&str]) -> Vec<u8> {
    let made = Command::new(FFMPEG).args(["-v", "error"]).args(arguments).arg("pipe:1").output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    made.stdout
}

fn to(source: MediaSource, settings: MediaSettings) -> MediaTask {
    MediaTask::Transcode { source, part: MediaPart::default(), outputs: vec![settings] }
}

fn first(outputs: Vec<OwnedFd>) -> OwnedFd {
    outputs.into_iter().next().unwrap()
}

fn transcode(settings: MediaSettings) -> MediaTask {
    to(MediaSource::Any, settings)
}

fn probe_task() -> MediaTask {
    MediaTask::Probe { source: MediaSource::Any }
}

fn probe(node: &Node, input: &[u8]) -> String {
    let done = run(node, &probe_task(), input);
    assert_eq!(done.outcome, MediaOutcome::Done, "{}", done.detail);
    String::from_utf8(done.output).unwrap()
}

fn run(node: &Node, task: &MediaTask, input: &[u8]) -> Done {
    run_with_picture(node, task, input, &[])
}

fn run_with_picture(node: &Node, task: &MediaTask, input: &[u8], picture: &[u8]) -> Done {
    finish(node.launcher.start_media(task, &LIMITS).unwrap(), input, picture)
}

fn finish(job: MediaJob, input: &[u8], picture: &[u8]) -> Done {
    let MediaJob { mut process, ends } = job;
    let writers =
        [Some(write_once(ends.input, input.to_vec())), ends.picture.map(|end| write_once(end, picture.to_vec()))];
    let mut output = vec![];
    File::from(first(ends.outputs)).read_to_end(&mut output).unwrap();
    let exit: Exit = process.wait(PATIENCE).expect("it ends").clone();
    writers.into_iter().flatten().for_each(|writer| writer.join().unwrap());
    let (outcome, detail) = media_outcome(&exit);
    Done { outcome, detail, output }
}

/// A job may end before it read everything.
fn write_once(end: OwnedFd, bytes: Vec<u8>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let _ = File::from(end).write_all(&bytes);
    })
}

fn write_forever(end: OwnedFd, bytes: Vec<u8>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut end = File::from(end);
        while end.write_all(&bytes).is_ok() {}
    })
}

/// Tells whether a thread of a process is in this call on this descriptor.
fn waits_for(pid: i32, call: i64, fd: i32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let calls = tasks.filter_map(|task| fs::read_to_string(task.path().join("syscall")).ok());
    let wanted = format!("{call} {fd:#x} ");
    calls.into_iter().any(|now| now.starts_with(&wanted))
}

fn until(condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "it does not come to that");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn list(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            list(&entry.path(), files);
        } else {
            files.push(entry.path());
        }
    }
}

/// A PNG file with this size in its header and no data.
fn png_of_size(width: u32, height: u32) -> Vec<u8> {
    let mut header = b"IHDR".to_vec();
    header.extend([width.to_be_bytes(), height.to_be_bytes()].concat());
    header.extend([8, 2, 0, 0, 0]);
    let crc = header.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    });
    [&b"\x89PNG\r\n\x1a\n"[..], &13_u32.to_be_bytes(), &header, &(!crc).to_be_bytes(), b"\0\0\x40\0IDAT"].concat()
}
