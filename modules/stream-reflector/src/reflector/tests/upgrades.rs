// SPDX-License-Identifier: Apache-2.0
use super::*;
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
        let mut sound = Vec::new();
        let mut demuxer = crate::icy::Demuxer::new(16_000).unwrap();
        demuxer.push(next.node.body(2), |part| sound.extend_from_slice(part), |_| {});
        assert!(mp3s(0..480).ends_with(&sound) && sound.len() > 300 * MP3_BYTES);
        assert!(mp3s(0..480).ends_with(next.node.body(3)) && next.node.body(3).len() > 150 * MP3_BYTES);
        assert_eq!(next.node.to_client(4), b"posted");
        assert_eq!(next.node.count(Counter::Imported), 2);
    }
}

/// Goal: many listeners are handed over with what they lack, and without sending it to each; few get it before.
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
