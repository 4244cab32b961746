// SPDX-License-Identifier: Apache-2.0
//! `modules/apps/stream-reflector` between a radio server and its listeners, by real connections.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use netserv_model::effect::ModuleSlot;
use netserv_wire::container::frames::ToWorker;

use super::{LONG, Spec, Worker, compiled, connect};

/// A frame of MP3 at 128 kbit/s and 44.1 kHz, and how long it sounds.
const FRAME_BYTES: usize = 417;
const FRAME_MS: usize = 26;
/// Frames that the server sends at once, as Icecast does with 64 KiB.
const BURST: usize = 157;
/// How long it has been on air when it starts, so that it has as much to send at once.
const ON_AIR: Duration = Duration::from_secs(10);
/// Bytes between two titles that the server has.
const INTERVAL: usize = 4096;

/// A radio server, whose frames have numbers and come as they sound.
struct Radio {
    address: SocketAddr,
    shared: Arc<Shared>,
    begun: Instant,
}

#[derive(Default)]
struct Shared {
    connections: AtomicUsize,
    open: AtomicUsize,
    is_away: AtomicBool,
}

impl Radio {
    fn start() -> Radio {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, shared) = (listener.local_addr().unwrap(), Arc::new(Shared::default()));
        let (begun, own) = (Instant::now() - ON_AIR, Arc::clone(&shared));
        std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let own = Arc::clone(&own);
                std::thread::spawn(move || own.serve(client, begun));
            }
        });
        Radio { address, shared, begun }
    }

    /// The number of the frame that comes next.
    fn due(&self) -> usize {
        due(self.begun)
    }

    fn spec(&self) -> Spec {
        let at = format!("tcp dst {} port {}", self.address.ip(), self.address.port());
        let spec = Spec::of(compiled("stream_reflector")).property("origin", &self.address.to_string());
        spec.with(|spec| spec.connect = vec![at])
    }

    fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    fn open(&self) -> usize {
        self.shared.open.load(Ordering::Relaxed)
    }

    fn be_away(&self, is_away: bool) {
        self.shared.is_away.store(is_away, Ordering::Relaxed);
    }
}

impl Shared {
    fn serve(&self, mut client: TcpStream, begun: Instant) {
        let mut head = [0; 4096];
        let length = client.read(&mut head).unwrap_or(0);
        if self.is_away.load(Ordering::Relaxed) {
            let _ = client.write_all(b"HTTP/1.0 404 Not Found\r\n\r\n");
            return;
        }
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        assert!(String::from_utf8_lossy(&head[..length]).contains("Icy-MetaData: 1"));
        let head = format!("HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\nicy-metaint: {INTERVAL}\r\n\r\n");
        let _ = client.write_all(head.as_bytes());
        let (mut next, mut left) = (due(begun).saturating_sub(BURST), INTERVAL);
        while !self.is_away.load(Ordering::Relaxed) {
            let (mut bytes, end) = (Vec::new(), due(begun).max(next));
            for byte in (next..end).flat_map(frame) {
                if left == 0 {
                    bytes.extend_from_slice(b"\x02StreamTitle='the only song';\0\0\0\0");
                    left = INTERVAL;
                }
                left -= 1;
                bytes.push(byte);
            }
            next = end;
            if client.write_all(&bytes).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

fn due(begun: Instant) -> usize {
    1 + usize::try_from(begun.elapsed().as_millis()).unwrap() / FRAME_MS
}

fn frame(number: usize) -> Vec<u8> {
    let mut frame = vec![0x55; FRAME_BYTES];
    frame[..6].copy_from_slice(&[0xff, 0xfb, 0x90, 0x04, 0, 0]);
    let digits = format!("{number:010}");
    frame[100..110].copy_from_slice(digits.as_bytes());
    frame
}

/// What a listener got: the numbers of its frames, and whether it saw the title.
struct Heard {
    frames: Vec<usize>,
    has_title: bool,
}

/// Listens for some time.
fn listen(port: u16, titles: bool, time: Duration) -> JoinHandle<Heard> {
    let mut client = connect(port);
    client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let asked = if titles { "Icy-MetaData: 1\r\n" } else { "" };
    write!(client, "GET /live HTTP/1.1\r\nHost: radio\r\n{asked}\r\n").unwrap();
    std::thread::spawn(move || {
        let (until, mut all, mut buffer) = (Instant::now() + time, Vec::new(), [0; 65_536]);
        while Instant::now() < until {
            match client.read(&mut buffer) {
                Ok(0) => panic!("cut after {} bytes", all.len()),
                Ok(length) => all.extend_from_slice(&buffer[..length]),
                Err(error) => assert!(error.kind() == std::io::ErrorKind::WouldBlock, "{error}"),
            }
        }
        heard(&all, titles)
    })
}

fn heard(all: &[u8], titles: bool) -> Heard {
    let end = all.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8_lossy(&all[..end]);
    let interval = head.lines().find_map(|line| line.strip_prefix("icy-metaint: ")).map(|text| text.parse().unwrap());
    assert_eq!(interval.is_some(), titles, "{head}");
    let (mut sound, mut has_title, mut rest) = (Vec::new(), false, &all[end..]);
    while let Some(interval) = interval.filter(|interval| rest.len() > *interval) {
        sound.extend_from_slice(&rest[..interval]);
        let (length, later) = (16 * usize::from(rest[interval]), &rest[interval + 1..]);
        let title = &later[..length.min(later.len())];
        assert!(title.is_empty() || title.starts_with(b"StreamTitle='the"), "{title:?}");
        has_title |= title.starts_with(b"StreamTitle='the only song';");
        rest = &later[title.len()..];
    }
    sound.extend_from_slice(rest);
    let frames = sound.chunks_exact(FRAME_BYTES).map(|bytes| {
        let number = String::from_utf8_lossy(&bytes[100..110]).parse().expect("a frame begins here");
        assert!(bytes == frame(number));
        number
    });
    Heard { frames: frames.collect(), has_title }
}

fn assert_whole(frames: &[usize]) {
    assert!(frames.windows(2).all(|two| two[0] + 1 == two[1]), "{frames:?}");
}

/// Goal: one connection for all, also when the first listener has left; each gets whole frames, in order, from a frame on, and titles
/// if it asked for them; with the last one the connection goes.
#[test]
fn listeners_share_one_connection() {
    let radio = Radio::start();
    let spec = radio.spec();
    let _worker = Worker::with(&spec);
    let first = listen(spec.port(), false, Duration::from_millis(1500));
    std::thread::sleep(Duration::from_millis(300));
    let others: Vec<_> =
        (0..20).map(|number| listen(spec.port(), number % 2 == 0, Duration::from_millis(3000))).collect();
    assert_whole(&first.join().unwrap().frames);
    for (number, other) in others.into_iter().enumerate() {
        let heard = other.join().unwrap();
        assert_whole(&heard.frames);
        // Four seconds at once, and then as it sounds.
        assert!(heard.frames.len() * FRAME_MS > 6000, "{} frames", heard.frames.len());
        assert!(heard.has_title || number % 2 == 1);
    }
    assert_eq!(radio.connections(), 1);
    let until = Instant::now() + LONG;
    while radio.open() > 0 {
        assert!(Instant::now() < until, "the connection stays");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Goal: while the source is away nobody is cut, and who comes then is served; when it is back all go on.
#[test]
fn an_outage_cuts_nobody() {
    let radio = Radio::start();
    let spec = radio.spec();
    let _worker = Worker::with(&spec);
    std::thread::sleep(Duration::from_millis(1000));
    let listeners: Vec<_> = (0..5).map(|number| listen(spec.port(), number == 0, Duration::from_secs(7))).collect();
    std::thread::sleep(Duration::from_millis(1000));
    radio.be_away(true);
    std::thread::sleep(Duration::from_millis(1000));
    let late = listen(spec.port(), true, Duration::from_secs(5));
    std::thread::sleep(Duration::from_millis(1000));
    radio.be_away(false);
    let back_at = radio.due();
    let mut last = Vec::new();
    for listener in listeners.into_iter().chain([late]) {
        let heard = listener.join().unwrap();
        // What it missed is in the burst of the server.
        assert_whole(&heard.frames);
        last.push(*heard.frames.last().unwrap());
    }
    assert_eq!(radio.connections(), 2);
    assert!(last.iter().all(|number| *number > back_at), "{last:?}, {back_at}");
}

/// Goal: an upgrade cuts no listener, loses no frame, and opens no connection.
#[test]
fn listeners_go_on_with_the_next_version() {
    let radio = Radio::start();
    let spec = radio.spec();
    let mut worker = Worker::with(&spec);
    let listeners: Vec<_> =
        (0..50).map(|number| listen(spec.port(), number % 2 == 0, Duration::from_secs(5))).collect();
    std::thread::sleep(Duration::from_millis(1500));
    for (old, new) in [(0, 1), (1, 2)] {
        worker.load(&spec.clone().with(|spec| spec.slot = new));
        worker.send(&ToWorker::Unload { slot: ModuleSlot(old) }, None);
        std::thread::sleep(Duration::from_millis(700));
    }
    let late = listen(spec.port(), false, Duration::from_secs(1));
    for (listener, ms) in listeners.into_iter().map(|listener| (listener, 8000)).chain([(late, 4000)]) {
        let heard = listener.join().unwrap();
        assert_whole(&heard.frames);
        assert!(heard.frames.len() * FRAME_MS > ms, "{} frames", heard.frames.len());
    }
    assert_eq!(radio.connections(), 1);
}

/// Goal: a server that goes away before it has said anything, or refuses, is said; what is no stream comes as it is.
#[test]
fn what_is_no_stream_is_passed_on() {
    let radio = Radio::start();
    let spec = radio.spec();
    let _worker = Worker::with(&spec);
    radio.be_away(true);
    let ask = || {
        let mut client = connect(spec.port());
        client.set_read_timeout(Some(LONG)).unwrap();
        write!(client, "GET /live HTTP/1.1\r\nHost: radio\r\n\r\n").unwrap();
        let mut all = String::new();
        client.read_to_string(&mut all).unwrap();
        all
    };
    assert_eq!(ask(), "HTTP/1.0 404 Not Found\r\n\r\n");
    let nobody = spec.clone().property("origin", "127.0.0.1:1").with(|spec| {
        spec.connect = vec!["tcp dst 127.0.0.1 port 1".to_owned()];
        spec.listen = vec![super::free_port()];
        spec.name = "example.org/other@1.0.0".to_owned();
        spec.slot = 1;
    });
    let _other = Worker::with(&nobody.clone().with(|spec| spec.slot = 0));
    let mut client = connect(nobody.port());
    write!(client, "GET /live HTTP/1.1\r\n\r\n").unwrap();
    let mut all = String::new();
    client.read_to_string(&mut all).unwrap();
    assert!(all.starts_with("HTTP/1.0 502 "), "{all}");
}
