// SPDX-License-Identifier: Apache-2.0
mod bad_input;
mod fairness;
mod files;
mod outages;
mod servers;
mod upgrades;

use super::*;
use crate::icy::{Demuxer, Piece};
use crate::testing::{FIRST_OPENED, MP3_BYTES, Node, adts, mp3s};

const SERVER: &str = "198.51.100.7:8000";
const HEAD: &[u8] = b"HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\nicy-name: test\r\nicy-metaint: 8000\r\n\r\n";
/// The first connection to a server.
const FIRST: Connection = FIRST_OPENED;

/// A reflector with its node.
struct Bench {
    reflector: Reflector,
    node: Node,
    now_ms: u64,
}

impl Bench {
    fn new() -> Bench {
        Bench::with(&[])
    }

    fn with(properties: &[(&str, &str)]) -> Bench {
        let property = |name: &str| match name {
            "servers" => Some(SERVER.to_owned()),
            name => properties.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()),
        };
        Bench { reflector: Reflector::new(Settings::read(property)), node: Node::default(), now_ms: 0 }
    }

    fn connect(&mut self, id: Connection) -> Decision {
        self.reflector.connect(&mut self.node, self.now_ms, id, Some(SERVER.parse().unwrap()))
    }

    /// A client connects and asks.
    fn listen(&mut self, id: Connection, more: &str) -> Action {
        assert_eq!(self.connect(id), Decision::Serve);
        self.client(id, format!("GET /live HTTP/1.1\r\nHost: radio\r\n{more}\r\n").as_bytes())
    }

    fn client(&mut self, id: Connection, bytes: &[u8]) -> Action {
        self.reflector.data(&mut self.node, self.now_ms, id, Side::Client, bytes)
    }

    fn server(&mut self, id: Connection, bytes: &[u8]) -> Action {
        self.reflector.data(&mut self.node, self.now_ms, id, Side::Server, bytes)
    }

    /// A server sends frames, with an empty title wherever one belongs.
    fn play(&mut self, id: Connection, frames: std::ops::Range<usize>, at: &mut usize) {
        let mut bytes = Vec::new();
        for byte in mp3s(frames) {
            if *at == 8000 {
                bytes.push(0);
                *at = 0;
            }
            *at += 1;
            bytes.push(byte);
        }
        self.server(id, &bytes);
    }

    fn closed(&mut self, id: Connection) {
        self.reflector.closed(&mut self.node, self.now_ms, id);
        self.node.closed.insert(id);
    }

    /// Time goes on.
    fn wait(&mut self, ms: u64) {
        for _ in 0..ms / 50 {
            self.now_ms += 50;
            self.reflector.tick(&mut self.node, self.now_ms);
        }
    }
}

/// Returns what a listener with titles has got, without these.
fn sound_of(body: &[u8]) -> Vec<u8> {
    let mut sound = Vec::new();
    Demuxer::new(16_000).unwrap().push(body, |piece| match piece {
        Piece::Sound(part) => sound.extend_from_slice(part),
        Piece::Title(_) => {}
    });
    sound
}

#[test]
fn listeners_of_a_stream_have_one_connection_to_its_server() {
    let mut bench = Bench::new();
    bench.listen(1, "");
    assert_eq!(bench.node.opened, [(FIRST, SERVER.parse().unwrap())]);
    assert!(bench.node.to_server(FIRST).ends_with(b"Icy-MetaData: 1\r\nConnection: close\r\n\r\n"));
    bench.listen(2, "Icy-MetaData: 1\r\n");
    assert!(bench.node.to_client(1).is_empty(), "nothing is known yet");
    let mut at = 0;
    bench.server(FIRST, HEAD);
    bench.play(FIRST, 0..80, &mut at);
    bench.listen(3, "");
    bench.wait(250);
    assert_eq!(bench.node.opened.len(), 1);
    let head = String::from_utf8_lossy(bench.node.to_client(1)).into_owned();
    assert!(
        head.starts_with("HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\nicy-name: test\r\nConnection: close\r\n\r\n")
    );
    assert!(String::from_utf8_lossy(bench.node.to_client(2)).contains("icy-metaint: 16000\r\n"));
    assert!(bench.node.body(1) == mp3s(0..79) && bench.node.body(3) == mp3s(0..79));
    assert_eq!(bench.node.body(2)[16_000], 0);
    // The first one leaves, and the last one takes the connection along.
    bench.closed(1);
    bench.play(FIRST, 80..90, &mut at);
    bench.wait(500);
    assert!(bench.node.body(3) == mp3s(0..89));
    bench.closed(3);
    assert!(!bench.node.closed.contains(&FIRST));
    bench.closed(2);
    assert!(bench.node.closed.contains(&FIRST) && bench.reflector.is_idle());
}

#[test]
fn another_url_is_another_stream_and_there_are_only_so_many() {
    let mut bench = Bench::with(&[("streams", "3")]);
    for number in 0..5 {
        bench.connect(number);
        bench.client(number, format!("GET /{number} HTTP/1.0\r\n\r\n").as_bytes());
    }
    assert_eq!(bench.reflector.streams.len(), 3);
    assert_eq!(bench.node.opened.len(), 5);
    let last = FIRST + 4;
    assert_eq!(bench.node.to_server(last), b"GET /4 HTTP/1.0\r\n\r\n");
    // It comes and goes as it is.
    bench.server(last, b"anything");
    assert_eq!(bench.node.to_client(4), b"anything");
}

#[test]
fn servers_are_listed_learned_or_left_alone() {
    let mut bench = Bench::new();
    let other: SocketAddr = "198.51.100.9:80".parse().unwrap();
    let connect = |bench: &mut Bench, id| bench.reflector.connect(&mut bench.node, 0, id, Some(other));
    assert_eq!(connect(&mut bench, 1), Decision::Accept);
    assert!(matches!(bench.client(1, b"GET / HTTP/1.1\r\n\r\n"), Action::Pass));
    assert!(matches!(bench.server(1, &HEAD[..20]), Action::Pass));
    assert!(matches!(bench.server(1, &HEAD[20..]), Action::Splice));
    assert_eq!(connect(&mut bench, 2), Decision::Serve);
    bench.node.learned.clear();
    for (client, server) in
        [(&b"GET / HTTP/1.1\r\n\r\n"[..], &b"HTTP/1.1 200 OK\r\n\r\nno radio"[..]), (b"SSH-2.0-", b"")]
    {
        assert_eq!(connect(&mut bench, 3), Decision::Accept);
        if matches!(bench.client(3, client), Action::Pass) {
            assert!(matches!(bench.server(3, server), Action::Splice));
        }
        assert!(bench.node.learned.is_empty());
    }
    let mut off = Bench::with(&[("learn", "off")]);
    assert_eq!(connect(&mut off, 1), Decision::Splice);
    assert_eq!(off.reflector.connect(&mut off.node, 0, 2, None), Decision::Refuse);
    let mut own = Bench::with(&[("origin", "192.0.2.1:80")]);
    assert_eq!(own.reflector.connect(&mut own.node, 0, 1, None), Decision::Accept);
    own.client(1, b"GET /live HTTP/1.1\r\n\r\n");
    assert_eq!(own.node.opened[0].1, "192.0.2.1:80".parse().unwrap());
}

#[test]
fn titles_come_to_those_who_want_them() {
    let mut bench = Bench::new();
    bench.listen(1, "Icy-MetaData: 1\r\n");
    bench.server(FIRST, HEAD);
    let sound = mp3s(0..60);
    bench.server(FIRST, &sound[..8000]);
    bench.server(FIRST, b"\x02StreamTitle='a title';\0\0\0\0\0\0\0\0\0\0");
    bench.server(FIRST, &sound[8000..16_000]);
    bench.server(FIRST, &[0]);
    bench.server(FIRST, &sound[16_000..]);
    bench.wait(250);
    bench.listen(2, "Icy-MetaData: 1\r\n");
    for id in [1, 2] {
        assert_eq!(&bench.node.body(id)[16_001..16_023], b"StreamTitle='a title';", "{id}");
        assert!(bench.node.body(id)[..16_000] == sound[..16_000]);
    }
}

#[test]
fn aac_is_cut_at_its_frames() {
    let mut bench = Bench::new();
    bench.listen(1, "");
    bench.server(FIRST, b"ICY 200 OK\r\ncontent-type: audio/aacp\r\n\r\n\x21\x22");
    let frames: Vec<u8> = (0..9).flat_map(|number| adts(300 + number, 0x21)).collect();
    bench.server(FIRST, &frames);
    bench.wait(250);
    assert!(bench.node.body(1) == &frames[..frames.len() - 308]);
    assert!(
        bench.node.to_client(1).starts_with(b"ICY 200 OK\r\ncontent-type: audio/aacp\r\nConnection: close\r\n\r\n\xff")
    );
}

/// Goal: one that takes nothing is cut, and others notice nothing of it.
#[test]
fn who_is_slow_is_cut_alone() {
    let mut bench = Bench::new();
    let mut at = 0;
    bench.listen(1, "");
    bench.server(FIRST, HEAD);
    bench.play(FIRST, 0..50, &mut at);
    bench.listen(2, "");
    bench.node.stuck.insert(2);
    for second in 0..15 {
        let first = 50 + 38 * second;
        bench.play(FIRST, first..first + 38, &mut at);
        bench.wait(1000);
    }
    assert_eq!((bench.node.count(Counter::Cut), bench.node.closed.contains(&2)), (1, true));
    assert!(!bench.node.closed.contains(&1) && bench.node.body(1) == mp3s(0..50 + 15 * 38 - 1));
    bench.closed(2);
    assert_eq!(bench.node.count(Counter::Listeners), 1);
}

/// Goal: a title comes where it begins, also if more than what is before it came at once, and to one that begins before it.
#[test]
fn no_title_comes_before_its_sound() {
    let mut bench = Bench::new();
    bench.listen(1, "Icy-MetaData: 1\r\n");
    bench.server(FIRST, HEAD);
    let sound = mp3s(0..480);
    let mut all = Vec::new();
    for (number, part) in sound.chunks_exact(8000).enumerate() {
        all.extend_from_slice(part);
        all.extend_from_slice(match number {
            1 => b"\x01StreamTitle='1';",
            9 => b"\x01StreamTitle='2';",
            _ => b"\0",
        });
    }
    bench.server(FIRST, &all[..7000]);
    bench.server(FIRST, &all[7000..]);
    bench.listen(2, "Icy-MetaData: 1\r\n");
    bench.wait(20_000);
    for id in [1, 2] {
        let (mut at, mut told) = (0, Vec::new());
        Demuxer::new(16_000).unwrap().push(bench.node.body(id), |piece| match piece {
            Piece::Sound(part) => at += part.len(),
            Piece::Title(text) => told.push((at, text.to_vec())),
        });
        let heard = sound_of(bench.node.body(id));
        let begun = (0..480).find(|number| heard.starts_with(&mp3s(*number..number + 1))).unwrap() * MP3_BYTES;
        assert_eq!(begun > 0, id == 2, "one comes later");
        let places: Vec<usize> = told.iter().map(|(at, _)| begun + at).collect();
        assert_eq!(told.iter().map(|(_, text)| &text[13..14]).collect::<Vec<_>>(), [b"1", b"2"], "{id}");
        assert!((80_000..80_000 + 16_000).contains(&places[1]), "{id}: {places:?}");
    }
}
