// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::limits::{RING_BYTES_MAX, STATE_BYTES_MAX};
use crate::testing::Random;

impl Bench {
    /// Hands connections over to a next version, in their order.
    fn next(mut self, ids: &[Connection]) -> Bench {
        let mut next = Bench::new();
        // What is sent is one, whichever version does.
        next.now_ms = 7;
        for id in ids {
            let state = self.reflector.export(&mut self.node, *id);
            next.node = std::mem::take(&mut self.node);
            let taken = state.is_some_and(|state| next.reflector.import(&mut next.node, next.now_ms, *id, &state));
            self.node = std::mem::take(&mut next.node);
            assert!(taken, "{id}");
        }
        next.node = self.node;
        next
    }
}

/// Goal: listeners, the connection to the server, one who asks and one that is passed on go on with the next version, and no frame is
/// lost or comes twice, whichever connection comes first.
#[test]
fn everything_goes_on_with_the_next_version() {
    for order in [[1, 2, 3, 4, FIRST + 1, FIRST], [FIRST, 4, FIRST + 1, 3, 2, 1]] {
        let mut bench = Bench::new();
        let mut at = 0;
        bench.listen(1, "");
        bench.server(FIRST, HEAD);
        bench.play(FIRST, 0..380, &mut at);
        bench.listen(2, "Icy-MetaData: 1\r\n");
        bench.connect(3);
        bench.client(3, b"GET /live HTTP/1.1\r\nHost: ra");
        bench.connect(4);
        bench.client(4, b"POST / HTTP/1.1\r\n\r\n");
        bench.wait(500);
        let mut next = bench.next(&order);
        next.play(FIRST, 380..480, &mut at);
        next.client(3, b"dio\r\n\r\n");
        next.server(FIRST + 1, b"posted");
        next.wait(9000);
        next.play(FIRST, 480..481, &mut at);
        next.wait(9000);
        assert_eq!(next.node.opened.len(), 2, "nothing is opened anew");
        assert!(next.node.body(1) == mp3s(0..480), "{} frames", next.node.body(1).len() / MP3_BYTES);
        let sound = sound_of(next.node.body(2));
        assert!(mp3s(0..480).ends_with(&sound) && sound.len() > 300 * MP3_BYTES);
        assert!(mp3s(0..480).ends_with(next.node.body(3)) && next.node.body(3).len() > 150 * MP3_BYTES);
        assert_eq!(next.node.to_client(4), b"posted");
        assert_eq!(next.node.count(Counter::Imported), 2);
    }
}

/// Goal: many listeners are handed over with what they lack, and without sending it to each; few get what exceeds that before.
#[test]
fn what_listeners_lack_goes_along() {
    for listeners in [2, 30] {
        let mut bench = Bench::new();
        let mut at = 0;
        bench.listen(1, "");
        bench.server(FIRST, HEAD);
        bench.play(FIRST, 0..380, &mut at);
        (2..=listeners).for_each(|id| drop(bench.listen(id, "")));
        let before = bench.node.body(1).len();
        let ids: Vec<Connection> = (1..=listeners).chain([FIRST]).collect();
        let mut next = bench.next(&ids);
        assert_eq!(next.node.body(1).len() == before, listeners == 30);
        next.play(FIRST, 380..480, &mut at);
        next.listen(500, "");
        next.wait(9000);
        next.play(FIRST, 480..481, &mut at);
        next.wait(9000);
        assert!(ids.iter().all(|id| *id == FIRST || next.node.body(*id) == mp3s(0..480)), "{listeners}");
        assert!(mp3s(0..480).ends_with(next.node.body(500)));
    }
}

/// Goal: a full ring, all of which listeners lack, goes along once, however many they are, and is sent to none of them.
#[test]
fn a_full_ring_goes_along_once() {
    for listeners in [20, 40, 1000] {
        let mut bench = Bench::new();
        bench.listen(1, "Icy-MetaData: 1\r\n");
        bench.server(FIRST, HEAD);
        let mut at = 0;
        bench.play(FIRST, 0..100, &mut at);
        (2..=listeners).for_each(|id| drop(bench.listen(id, "Icy-MetaData: 1\r\n")));
        let got = bench.node.to_client(1).len();
        // All of them take nothing, while the source goes on.
        bench.node.queued = (1..=listeners).map(|id| (id, u64::MAX)).collect();
        bench.play(FIRST, 100..RING_BYTES_MAX / MP3_BYTES + 50, &mut at);
        bench.node.queued.clear();
        let ring = bench.reflector.streams[&0].ring.clone();
        let mut next = Bench::new();
        let mut bytes = 0;
        for id in (1..=listeners).chain([FIRST]) {
            let state = bench.reflector.export(&mut bench.node, id).unwrap();
            assert!(state.len() <= STATE_BYTES_MAX, "{}", state.len());
            bytes += state.len();
            assert!(next.reflector.import(&mut next.node, 0, id, &state));
        }
        let heads = usize::try_from(listeners + 1).unwrap() * 500;
        assert!(bytes < RING_BYTES_MAX + heads, "{bytes} bytes for {listeners}");
        assert_eq!(bench.node.to_client(1).len(), got);
        let again = &next.reflector.streams[&0].ring;
        let copy = |ring: &crate::ring::Ring| {
            let mut bytes = Vec::new();
            ring.copy(ring.begin(), ring.end(), &mut bytes);
            (ring.begin(), ring.end_us(), bytes)
        };
        assert!(copy(again) == copy(&ring), "{} of {}", again.end() - again.begin(), ring.end() - ring.begin());
    }
}

/// Goal: whatever a client asks, a server answers and a stream has, what is said of a connection is no more than may be.
#[test]
fn no_state_is_longer_than_may_be() {
    for long in [1, 3600, 7000] {
        let mut bench = Bench::new();
        let (referer, agent) = ("r".repeat(long), "a".repeat(8000 - long));
        let lines = format!("Icy-MetaData: 1\r\nReferer: {referer}\r\nUser-Agent: {agent}\r\n");
        bench.listen(1, &lines);
        let head = format!(
            "HTTP/1.0 200 OK\r\nContent-Type: audio/aac\r\nicy-metaint: 8000\r\nServer: {}\r\n\r\n",
            "s".repeat(4000)
        );
        bench.server(FIRST, head.as_bytes());
        assert!(bench.reflector.roles.len() == 2 && bench.reflector.streams.len() == 1);
        let mut frames: Vec<u8> = (0..90).flat_map(|_| adts(8191, 0x21)).collect();
        frames.truncate(frames.len() - 1);
        for piece in frames.chunks(8000) {
            bench.server(FIRST, piece);
            if piece.len() == 8000 {
                bench.server(FIRST, &[255]);
                let title: Vec<u8> =
                    (0..4080).map(|_| b'a' + u8::try_from(bench.reflector.ticks % 26).unwrap()).collect();
                bench.server(FIRST, &title);
            }
            bench.wait(50);
        }
        bench.connect(2);
        bench.client(2, &lines.as_bytes()[..8000.min(lines.len())]);
        for id in [1, FIRST] {
            let state = bench.reflector.export(&mut bench.node, id).unwrap();
            assert!(state.len() <= STATE_BYTES_MAX, "{id}: {}", state.len());
            let mut next = Bench::new();
            assert!(next.reflector.import(&mut next.node, 0, id, &state), "{id}");
        }
        let asking = Reflector::export(&mut bench.reflector, &mut bench.node, 2);
        assert!(asking.is_none_or(|state| state.len() <= STATE_BYTES_MAX));
    }
}

/// Goal: titles go along with the places where they begin, also those of listeners that are behind.
#[test]
fn titles_go_along_with_their_places() {
    let mut bench = Bench::new();
    bench.listen(1, "Icy-MetaData: 1\r\n");
    bench.server(FIRST, HEAD);
    let sound = mp3s(0..600);
    for (number, part) in sound.chunks(8000).enumerate() {
        bench.server(FIRST, part);
        let title = match number {
            0 => b"\x01StreamTitle='1';".to_vec(),
            20 => b"\x01StreamTitle='2';".to_vec(),
            _ => vec![0],
        };
        if part.len() == 8000 {
            bench.server(FIRST, &title);
        }
    }
    bench.listen(2, "Icy-MetaData: 1\r\n");
    // What is left for one that has got nothing is sent to nobody.
    (3..30).for_each(|id| drop(bench.listen(id, "")));
    let ids: Vec<Connection> = (1..30).chain([FIRST]).collect();
    let mut next = bench.next(&ids);
    next.wait(20_000);
    let mut told = Vec::new();
    let mut at = 0;
    Demuxer::new(16_000).unwrap().push(next.node.body(1), |piece| match piece {
        Piece::Sound(part) => at += part.len(),
        Piece::Title(text) => told.push((at, text.to_vec())),
    });
    told.dedup_by(|later, first| later.1 == first.1);
    let expected = [(16_000, b"StreamTitle='1';".to_vec()), (176_000, b"StreamTitle='2';".to_vec())];
    assert_eq!(told, expected);
}

/// Goal: a file whose end its listeners have yet to hear is ended by no version.
#[test]
fn a_file_that_is_over_goes_on_to_its_end() {
    let mut bench = Bench::new();
    bench.listen(1, "");
    for id in [FIRST, FIRST + 1] {
        bench.server(id, b"HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n");
        (0..600).step_by(50).for_each(|first| drop(bench.server(id, &mp3s(first..first + 50))));
        bench.closed(id);
        bench.wait(1000);
    }
    assert!(bench.reflector.streams[&0].is_over());
    let mut next = bench.next(&[1]);
    next.wait(20_000);
    assert!(next.node.body(1) == mp3s(0..599) && next.node.closed.contains(&1));
    assert_eq!(next.node.opened.len(), 2);
}

/// Goal: a file that begins again while it is handed over comes once.
#[test]
fn a_file_that_begins_again_is_over_for_the_next_version() {
    let mut bench = Bench::new();
    bench.listen(1, "");
    for (id, frames) in [(FIRST, 600), (FIRST + 1, 50)] {
        bench.server(id, b"HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n");
        (0..frames).step_by(50).for_each(|first| drop(bench.server(id, &mp3s(first..first + 50))));
        if id == FIRST {
            bench.closed(id);
            bench.wait(1000);
        }
    }
    assert!(!bench.reflector.streams[&0].is_over());
    let state = bench.reflector.export(&mut bench.node, 1).unwrap();
    assert!(bench.reflector.export(&mut bench.node, FIRST + 1).is_none() && bench.node.closed.contains(&(FIRST + 1)));
    let mut next = Bench::new();
    next.node = bench.node;
    assert!(next.reflector.import(&mut next.node, 0, 1, &state));
    next.wait(20_000);
    assert!(next.node.body(1) == mp3s(0..599) && next.node.closed.contains(&1));
}

/// Goal: a version that has listeners and no connection to their server asks for one.
#[test]
fn listeners_alone_are_enough() {
    let mut bench = Bench::new();
    bench.listen(1, "");
    bench.server(FIRST, HEAD);
    bench.play(FIRST, 0..100, &mut 0);
    let mut next = bench.next(&[1]);
    next.wait(500);
    assert_eq!(next.node.opened.len(), 2);
    next.server(FIRST + 1, HEAD);
    next.play(FIRST + 1, 500..600, &mut 0);
    next.wait(2000);
    assert!(next.node.body(1) == [mp3s(0..99), mp3s(500..599)].concat());
}

#[test]
fn one_who_waits_for_an_answer_asks_anew() {
    let mut bench = Bench::new();
    bench.listen(1, "");
    let next = bench.next(&[1]);
    assert_eq!((next.node.opened.len(), next.node.to_server(FIRST + 1)), (2, next.node.to_server(FIRST)));
}

#[test]
fn what_a_version_says_may_be_anything() {
    let mut bench = Bench::new();
    bench.listen(1, "");
    bench.server(FIRST, HEAD);
    bench.play(FIRST, 0..100, &mut 0);
    let states = [1, FIRST].map(|id| bench.reflector.export(&mut bench.node, id).unwrap());
    assert!(states.iter().all(|state| state.len() <= 65_536));
    let import = |state: &[u8]| {
        let mut next = Bench::new();
        next.reflector.import(&mut next.node, 0, 1, state)
    };
    for state in &states {
        assert!(import(state) && (0..state.len()).all(|length| !import(&state[..length])));
        for seed in 1..200 {
            let (mut random, mut state) = (Random(seed), state.clone());
            for _ in 0..3 {
                let at = random.size(state.len());
                state[at] = random.bytes(1)[0];
            }
            let mut next = Bench::new();
            next.reflector.import(&mut next.node, 0, 1, &state);
            next.wait(1000);
        }
    }
}
