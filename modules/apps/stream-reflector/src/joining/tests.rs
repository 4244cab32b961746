// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::frames::parse_header;
use crate::testing::{MP3_BYTES, MP3_US, mp3, mp3s};

fn ring(frames: usize) -> Ring {
    let mut ring = Ring::default();
    (0..frames).for_each(|number| ring.push(&mp3(number), MP3_US, true));
    ring
}

/// Returns a frame that begins in one before it, unless it is to be alone.
fn frame(number: usize, is_alone: bool) -> Vec<u8> {
    let mut frame = mp3(number);
    frame[4] = u8::from(!is_alone);
    frame
}

fn push(joining: &mut Joining, frame: &[u8]) {
    joining.push(frame, &parse_header(frame).unwrap());
}

#[test]
fn a_new_stream_begins_with_a_frame_that_needs_none_before_it() {
    let mut joining = Joining::behind(&Ring::default(), 0, false);
    assert_eq!(joining.place(u64::MAX, &[]), Place::Unknown, "there is none");
    (0..5).for_each(|number| push(&mut joining, &frame(number, false)));
    assert_eq!(joining.place(0, &[]), Place::Unknown);
    assert_eq!(joining.place(JOIN_MS_MAX + 1, &[]), Place::With(0), "none comes");
    push(&mut joining, &frame(5, true));
    assert_eq!(joining.place(0, &[]), Place::With(5));
    let mut ring = Ring::default();
    joining.finish(5, &mut ring, &mut Titles::default());
    assert_eq!(ring.end(), MP3_BYTES as u64);
}

#[test]
fn no_more_is_looked_through_than_may_be() {
    for (ring, most) in [(Ring::default(), LEAD_BYTES_MAX), (ring(10), JOIN_BYTES_MAX)] {
        let mut joining = Joining::behind(&ring, 0, false);
        let mut bytes = 0;
        while joining.place(0, &[]) == Place::Unknown {
            push(&mut joining, &frame(100, false));
            bytes += MP3_BYTES;
        }
        assert!((most..most + MP3_BYTES).contains(&bytes), "{bytes}");
    }
}

#[test]
fn a_source_goes_on_behind_the_last_frames_of_the_ring() {
    let mut old = ring(10);
    let mut joining = Joining::behind(&old, 0, false);
    (3..9).for_each(|number| push(&mut joining, &mp3(number)));
    assert_eq!(joining.place(0, &[]), Place::Unknown);
    push(&mut joining, &mp3(9));
    assert_eq!(joining.place(0, &[]), Place::Behind);
    joining.finish(usize::MAX, &mut old, &mut Titles::default());
    let mut bytes = Vec::new();
    old.copy(0, old.end(), &mut bytes);
    assert!(bytes == mp3s(0..10));
}

#[test]
fn a_source_without_them_goes_on_with_the_first_frame_that_needs_none() {
    let mut joining = Joining::behind(&ring(10), 0, false);
    push(&mut joining, &frame(100, false));
    push(&mut joining, &frame(101, true));
    assert_eq!((joining.place(0, &[]), joining.place(JOIN_MS_MAX + 1, &[])), (Place::Unknown, Place::With(1)));
}

/// Goal: what may be a file and comes once more from its begin goes on nowhere, unless it goes on behind what is there.
#[test]
fn a_file_that_begins_again_is_told() {
    let (ring, opening) = (ring(300), mp3s(0..10));
    let mut joining = Joining::behind(&ring, 0, false);
    (0..230).for_each(|number| push(&mut joining, &mp3(number)));
    assert_eq!((joining.place(0, &opening), joining.place(0, &[])), (Place::Unknown, Place::Unknown));
    (230..240).for_each(|number| push(&mut joining, &mp3(number)));
    assert_eq!((joining.place(0, &opening), joining.place(0, &[])), (Place::Again, Place::With(0)));
    assert_eq!(joining.place(0, &mp3s(1..10)), Place::With(0), "it began with something else");
    let mut joining = Joining::behind(&ring, 0, false);
    (0..10).chain(297..300).for_each(|number| push(&mut joining, &mp3(number)));
    assert_eq!(joining.place(0, &opening), Place::Behind);
}

/// Goal: titles begin where they do among the frames that are put into the ring; of those that are not, the last is that of what comes.
#[test]
fn titles_come_along_with_their_frames() {
    let mut ring = ring(10);
    let mut joining = Joining::behind(&ring, 0, false);
    for number in 100..110 {
        joining.push_title(0, number.to_string().as_bytes());
        push(&mut joining, &mp3(number));
    }
    joining.push_title(100, b"next");
    let mut titles = Titles::default();
    joining.finish(2, &mut ring, &mut titles);
    let title = |bytes: usize| titles.of(bytes as u64).1;
    assert_eq!([title(9 * MP3_BYTES), title(10 * MP3_BYTES), title(11 * MP3_BYTES)], [&b""[..], b"102", b"103"]);
    assert_eq!([title(18 * MP3_BYTES + 99), title(18 * MP3_BYTES + 100)], [&b"109"[..], b"next"]);
    let mut joining = Joining::behind(&ring, 0, false);
    (0..2 * TITLES_MAX).for_each(|number| joining.push_title(number, &[]));
    assert_eq!(joining.titles.len(), TITLES_MAX);
}
