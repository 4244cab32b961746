// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::testing::{MP3_BYTES, MP3_US, Random, mp3, mp3s};

fn ring(frames: usize) -> Ring {
    let mut ring = Ring::default();
    (0..frames).for_each(|number| ring.push(&mp3(number), MP3_US, true));
    ring
}

/// Goal: a ring is what a list of all frames is, of which the oldest are forgotten.
#[test]
fn it_has_the_newest_of_all_frames() {
    for seed in 1..8 {
        let mut random = Random(seed);
        let (mut ring, mut all, mut marks, mut us) = (Ring::at(1000, 50), Vec::new(), Vec::new(), 50);
        for _ in 0..1500 {
            let length = 1 + random.size(3000);
            let (frame, duration) = (vec![u8::try_from(random.below(256)).unwrap(); length], random.below(40_000));
            marks.push((1000 + all.len() as u64, us));
            ring.push(&frame, duration, random.below(3) == 0);
            all.extend_from_slice(&frame);
            us += duration;
            assert!(ring.end() - ring.begin() <= RING_BYTES_MAX as u64);
            let (begin, end) = (ring.begin(), ring.end());
            assert!(marks.iter().any(|(at, _)| *at == begin) && end == 1000 + all.len() as u64 && ring.end_us() == us);
            let (from, to) = (begin + random.below(end - begin), begin + random.below(end - begin));
            let mut bytes = Vec::new();
            ring.copy(from, to, &mut bytes);
            let place = |of: u64| usize::try_from(of - 1000).unwrap();
            assert!(bytes == all[place(from)..place(to).max(place(from))], "seed {seed}");
            let time = random.below(us + 1);
            let before = marks.iter().find(|(at, other)| *at >= begin && *other >= time).map_or(end, |(at, _)| *at);
            assert_eq!(ring.before(time), before, "seed {seed}");
            let start = ring.start(from, time);
            assert!(marks.contains(&(start.at, start.us)) && start.at >= begin);
        }
    }
}

#[test]
fn bounds_are_kept() {
    let mut small = Ring::default();
    (0..FRAMES_MAX + 10).for_each(|_| small.push(&[1], 1, true));
    assert_eq!((small.begin(), small.end()), (10, FRAMES_MAX as u64 + 10));
    let large = ring(2 * RING_BYTES_MAX / MP3_BYTES);
    assert!(large.end() - large.begin() > (RING_BYTES_MAX - MP3_BYTES) as u64);
    assert_eq!(large.begin() % MP3_BYTES as u64, 0);
    assert!(large.bytes.capacity() <= RING_BYTES_MAX);
    let mut huge = ring(1);
    huge.push(&vec![0; RING_BYTES_MAX + 1], 1, true);
    assert_eq!(huge.end(), MP3_BYTES as u64, "what never fits is left out");
}

#[test]
fn a_start_is_a_frame_that_needs_none_before_it_if_one_is_near() {
    let mut ring = Ring::default();
    (0..100).for_each(|number| ring.push(&mp3(number), MP3_US, number == 30 || number == 95));
    let number = |mark: Mark| usize::try_from(mark.at).unwrap() / MP3_BYTES;
    assert_eq!(number(ring.start(0, 0)), 30);
    assert_eq!(number(ring.start(0, 31 * MP3_US)), 31, "the next one is too far");
    assert_eq!(number(ring.start(60 * MP3_BYTES as u64, 0)), 95, "the later of place and time counts");
    assert_eq!(number(ring.start(u64::MAX, 0)), 99);
    assert_eq!(Ring::at(7, 9).start(0, 0), Mark { at: 7, us: 9, is_alone: true });
}

/// Goal: a ring that is handed on in parts, the newest first, is the same again.
#[test]
fn parts_make_the_whole() {
    let whole = ring(100);
    let mut other = Ring::at(whole.end(), whole.end_us());
    while other.begin() > 0 {
        let part = whole.part(other.begin(), 10_000);
        let frames = usize::try_from(other.begin() - part.at).unwrap() / MP3_BYTES;
        assert!((23..=100).contains(&(frames + 76 * usize::from(part.at == 0))));
        let mut older = Ring::at(part.at, part.us);
        let first = usize::try_from(part.at).unwrap() / MP3_BYTES;
        (first..first + frames).for_each(|number| older.push(&mp3(number), MP3_US, true));
        other.prepend(&older);
        other.prepend(&older);
    }
    assert_eq!((&other.bytes, &other.frames, other.end_us), (&whole.bytes, &whole.frames, whole.end_us));
    assert_eq!((whole.part(0, 10_000).at, whole.part(whole.end(), 400).at), (0, whole.end()));
    assert_eq!(Ring::at(7, 9).part(7, 10), Mark { at: 7, us: 9, is_alone: true });
    let full = ring(2 * RING_BYTES_MAX / MP3_BYTES);
    let mut too_full = full.clone();
    let mut older = Ring::at(full.begin() - MP3_BYTES as u64, 0);
    older.push(&mp3(0), MP3_US, true);
    too_full.prepend(&older);
    assert_eq!(too_full.begin(), full.begin());
    assert!(too_full.bytes.capacity() <= RING_BYTES_MAX);
    let mut last = Vec::new();
    whole.copy(whole.last_but(3).unwrap(), whole.end(), &mut last);
    assert!(last == mp3s(97..100) && whole.last_but(101).is_none() && Ring::default().last_but(1).is_none());
}
