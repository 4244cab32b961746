// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::testing::Random;

/// Goal: whatever the intervals and the pieces are, who takes titles out has the sound and the titles that were put in.
#[test]
fn what_is_put_in_comes_out() {
    for seed in 1..100 {
        let mut random = Random(seed);
        let interval = 1 + random.size(500);
        let (mut muxer, mut mixed, mut sound) = (Muxer::new(interval), Vec::new(), Vec::new());
        let mut demuxer = Demuxer::new(interval).unwrap();
        let mut titles = Vec::new();
        for number in 1..30 {
            let length = random.size(TITLE_BYTES_MAX + 100);
            let title: Vec<u8> = (0..length).map(|at| b'a' + u8::try_from((at + length) % 26).unwrap()).collect();
            let piece = random.bytes(600);
            muxer.mix(&piece, |_| (number, &title), &mut mixed);
            sound.extend_from_slice(&piece);
            titles.push(title[..length.min(TITLE_BYTES_MAX)].to_vec());
        }
        let (mut got, mut told, mut rest) = (Vec::new(), Vec::new(), &mixed[..]);
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(1 + random.size(rest.len().min(900)));
            demuxer.push(piece, |piece| match piece {
                Piece::Sound(part) => got.extend_from_slice(part),
                Piece::Title(title) => told.push(title.to_vec()),
            });
            // A version goes on where the last one was.
            let (interval, state, left, text) = demuxer.place();
            demuxer = Demuxer::at(interval, state, left, text).unwrap();
            rest = later;
        }
        assert!(got == sound, "seed {seed}");
        titles.retain(|title| !title.is_empty());
        // An interval may be longer than a title lasts.
        assert!(told.iter().all(|title| titles.contains(title)) && told.len() <= titles.len());
        assert!(interval > 550 || told == titles, "seed {seed}: {} of {}", told.len(), titles.len());
    }
}

#[test]
fn without_titles_everything_is_sound() {
    let mut demuxer = Demuxer::new(0).unwrap();
    let mut got = Vec::new();
    demuxer.push(b"\x01\x02", |piece| match piece {
        Piece::Sound(part) => got.extend_from_slice(part),
        Piece::Title(_) => panic!("a title"),
    });
    assert_eq!(got, b"\x01\x02");
}

#[test]
fn a_title_is_told_once() {
    let (mut muxer, mut mixed) = (Muxer::new(2), Vec::new());
    muxer.mix(b"abcdef", |at| if at < 2 { (0, b"") } else { (1, b"hello, everybody!") }, &mut mixed);
    assert_eq!(mixed, b"ab\x02hello, everybody!\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0cd\0ef\0");
    assert_eq!(Muxer::at(2, 2), Some(Muxer::new(2)));
    assert_eq!((Muxer::at(0, 0), Muxer::at(2, 3)), (None, None));
}

#[test]
fn places_that_are_none_are_refused() {
    assert_eq!(Demuxer::new(INTERVAL_MAX + 1), None);
    for (interval, state, left, text) in
        [(5, 0, 6, 0), (5, 2, 0, 0), (5, 2, 4000, 81), (5, 3, 0, 0), (INTERVAL_MAX + 1, 1, 0, 0)]
    {
        assert_eq!(Demuxer::at(interval, state, left, &vec![1; text]), None);
    }
}
