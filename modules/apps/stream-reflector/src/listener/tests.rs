// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::limits::PIECE_BYTES_MIN;
use crate::testing::{MP3_BYTES, MP3_US, Node, mp3};

const SECOND: usize = 38;

fn settings() -> Settings {
    Settings::read(|_| None)
}

fn ring(seconds: usize) -> Ring {
    let mut ring = Ring::default();
    (0..seconds * SECOND).for_each(|number| ring.push(&mp3(number), MP3_US, true));
    ring
}

fn seconds_got(node: &Node) -> usize {
    node.to_client(1).len() / MP3_BYTES / SECOND
}

/// Goal: a listener begins so far behind the source, gets so much at once, and the rest as it sounds, also while nothing comes.
#[test]
fn what_is_due_comes_as_it_sounds() {
    let (mut node, ring, titles, settings) = (Node::default(), ring(15), Titles::default(), settings());
    let mut listener = Listener::new(&ring, &settings, None, 0);
    for (now_ms, seconds) in [(0, 4), (1000, 5), (3000, 7), (6000, 10), (60_000, 10)] {
        assert_eq!(listener.pump(&mut node, 1, (&ring, &titles), &settings, now_ms), Fate::Goes);
        assert!(seconds_got(&node).abs_diff(seconds) <= 1, "{now_ms} ms: {} s", seconds_got(&node));
    }
    assert_eq!(listener.at, ring.end(), "it has all that there is");
}

/// Goal: a player that has played all there was begins again with what comes then, and not all that it would have played by now.
#[test]
fn after_an_outage_it_goes_on_in_time() {
    let (mut node, mut ring, titles, settings) = (Node::default(), ring(2), Titles::default(), settings());
    let mut listener = Listener::new(&ring, &settings, None, 0);
    listener.pump(&mut node, 1, (&ring, &titles), &settings, 0);
    listener.pump(&mut node, 1, (&ring, &titles), &settings, 30_000);
    (0..20 * SECOND).for_each(|number| ring.push(&mp3(number), MP3_US, true));
    listener.pump(&mut node, 1, (&ring, &titles), &settings, 30_000);
    assert!((5..=6).contains(&seconds_got(&node)), "{} s", seconds_got(&node));
}

#[test]
fn who_takes_nothing_is_cut_and_who_takes_something_again_is_not() {
    let (mut node, ring, titles, settings) = (Node::default(), ring(60), Titles::default(), settings());
    let mut listener = Listener::new(&ring, &settings, None, 0);
    node.stuck.insert(1);
    let mut pump = |node: &mut Node, now_ms| listener.pump(node, 1, (&ring, &titles), &settings, now_ms);
    assert_eq!(pump(&mut node, 0), Fate::Goes);
    assert_eq!(pump(&mut node, settings.slow_ms), Fate::Goes);
    node.stuck.clear();
    assert_eq!(pump(&mut node, settings.slow_ms + 1), Fate::Goes);
    node.stuck.insert(1);
    assert_eq!(pump(&mut node, 15_000), Fate::Goes);
    assert_eq!(pump(&mut node, 15_001 + settings.slow_ms), Fate::Cut);
    node.closed.insert(1);
    assert_eq!(pump(&mut node, 0), Fate::Gone);
}

/// Goal: whose place is overwritten goes on with the oldest frame if it takes what it gets, and is cut if it does not.
#[test]
fn a_place_that_is_overwritten() {
    let (mut node, mut ring, titles, settings) = (Node::default(), ring(1), Titles::default(), settings());
    let mut listener = Listener::new(&ring, &settings, None, 0);
    let mut stuck = listener.clone();
    stuck.blocked_ms = Some(0);
    (0..5000).for_each(|number| ring.push(&mp3(number), MP3_US, true));
    assert!(ring.begin() > listener.at);
    assert_eq!(stuck.pump(&mut node, 2, (&ring, &titles), &settings, 1), Fate::Cut);
    assert_eq!(listener.pump(&mut node, 1, (&ring, &titles), &settings, 1), Fate::Goes);
    assert!(node.to_client(1).starts_with(&[0xff, 0xfb]) && listener.at > ring.begin());
}

/// Goal: who is further behind than it has to be catches up slowly.
#[test]
fn who_is_late_catches_up() {
    let (mut node, ring, titles, settings) = (Node::default(), ring(30), Titles::default(), settings());
    let mut listener = Listener::new(&ring, &settings, None, 0);
    listener.play_us -= 5_000_000;
    let begun = listener.play_us;
    listener.pump(&mut node, 1, (&ring, &titles), &settings, 1000);
    assert_eq!(listener.play_us - begun, 1_050_000);
}

#[test]
fn titles_come_where_they_begin() {
    let mut titles = Titles::default();
    assert_eq!((titles.of(u64::MAX), titles.newest(100).count()), ((0, &b""[..]), 0));
    titles.push(10, b"a");
    titles.push(20, b"a");
    titles.push(20, b"b");
    assert_eq!([titles.of(9), titles.of(10), titles.of(20)], [(0, &b""[..]), (1, b"a"), (2, b"b")]);
    assert_eq!(titles.newest(1).collect::<Vec<_>>(), [(20, &b"b"[..])]);
    assert_eq!(titles.newest(2).collect::<Vec<_>>(), [(10, &b"a"[..]), (20, b"b")]);
    (0..TITLES_MAX as u64).for_each(|at| titles.push(30 + at, at.to_string().as_bytes()));
    assert_eq!((titles.of(29), titles.all.len()), ((0, &b""[..]), TITLES_MAX), "the oldest give way");
}

/// Goal: what one listener is told of a title has nothing to do with others, and a send that finds no room changes nothing.
#[test]
fn each_listener_has_titles_of_its_own() {
    let (mut node, ring, mut titles, settings) = (Node::default(), ring(15), Titles::default(), settings());
    titles.push(0, b"StreamTitle='x';");
    let mut listener = Listener::new(&ring, &settings, Some(Muxer::new(1000)), 0);
    node.stuck.insert(1);
    listener.pump(&mut node, 1, (&ring, &titles), &settings, 0);
    assert_eq!(listener.muxer, Some(Muxer::new(1000)));
    node.stuck.clear();
    listener.pump(&mut node, 1, (&ring, &titles), &settings, 0);
    assert_eq!(&node.to_client(1)[1000..1017], b"\x01StreamTitle='x';");
}

/// Goal: with little memory left for what waits, a listener gets what is due in pieces, and its titles whole or not at all.
#[test]
fn a_small_share_of_memory_is_enough() {
    for share in [1, 16, 2048] {
        let (mut node, ring, mut titles, settings) = (Node::default(), ring(15), Titles::default(), settings());
        titles.push(0, b"StreamTitle='x';");
        node.share = Some(share);
        for (id, muxer) in [(1, None), (2, Some(Muxer::new(1000)))] {
            let mut listener = Listener::new(&ring, &settings, muxer, 0);
            assert_eq!(listener.pump(&mut node, id, (&ring, &titles), &settings, 0), Fate::Goes);
            assert_eq!(listener.blocked_ms.is_some(), share < PIECE_BYTES_MIN, "{share}");
            node.share = None;
            // Who took nothing is tried with little first.
            for now_ms in [10, 20] {
                assert_eq!(listener.pump(&mut node, id, (&ring, &titles), &settings, now_ms), Fate::Goes);
            }
            node.share = Some(share);
        }
        let (plain, with_titles) = (node.to_client(1), node.to_client(2));
        let (mut sound, mut told) = (Vec::new(), 0);
        crate::icy::Demuxer::new(1000).unwrap().push(with_titles, |piece| match piece {
            crate::icy::Piece::Sound(part) => sound.extend_from_slice(part),
            crate::icy::Piece::Title(text) => told += usize::from(text == b"StreamTitle='x';"),
        });
        assert!(plain == sound && plain.len() > 3 * SECOND * MP3_BYTES, "{} and {}", plain.len(), sound.len());
        assert_eq!(told, 1);
    }
}

/// Goal: one that has no room for a title has an empty one there, and that one at the next place.
#[test]
fn a_title_that_finds_no_room_comes_later() {
    let (mut node, ring, mut titles, settings) = (Node::default(), ring(15), Titles::default(), settings());
    titles.push(0, &[b'x'; 3000]);
    node.share = Some(PIECE_BYTES_MIN);
    let mut listener = Listener::new(&ring, &settings, Some(Muxer::new(16_000)), 0);
    listener.pump(&mut node, 1, (&ring, &titles), &settings, 0);
    assert_eq!(node.to_client(1)[16_000], 0);
    node.share = None;
    listener.pump(&mut node, 1, (&ring, &titles), &settings, 0);
    listener.pump(&mut node, 1, (&ring, &titles), &settings, 2000);
    let at = (2..).map(|count| count * 16_001 - 1).find(|at| node.to_client(1)[*at] != 0).unwrap();
    assert_eq!(node.to_client(1)[at..at + 2], [188, b'x']);
}

/// Goal: one whose place is overwritten amid a frame is cut, since it would hear the begin of one and then another.
#[test]
fn nobody_hears_half_a_frame() {
    let (mut node, mut ring, titles, settings) = (Node::default(), ring(15), Titles::default(), settings());
    let mut listener = Listener::new(&ring, &settings, None, 0);
    node.share = Some(PIECE_BYTES_MIN);
    node.room = Some(3);
    assert_eq!(listener.pump(&mut node, 1, (&ring, &titles), &settings, 0), Fate::Goes);
    assert_eq!((node.to_client(1).len(), listener.is_within_frame), (3 * PIECE_BYTES_MIN, true));
    (0..5000).for_each(|number| ring.push(&mp3(number), MP3_US, true));
    node.room = None;
    assert_eq!(listener.pump(&mut node, 1, (&ring, &titles), &settings, 1), Fate::Cut);
}

/// Goal: one that takes nothing costs the node next to nothing each time that it is tried, however much is due to it.
#[test]
fn who_takes_nothing_costs_little() {
    let (mut node, ring, titles, settings) = (Node::default(), ring(15), Titles::default(), settings());
    let mut listener = Listener::new(&ring, &settings, None, 0);
    node.stuck.insert(1);
    listener.pump(&mut node, 1, (&ring, &titles), &settings, 0);
    node.tried = 0;
    listener.pump(&mut node, 1, (&ring, &titles), &settings, 250);
    assert_eq!(node.tried, PIECE_BYTES_MIN);
}
