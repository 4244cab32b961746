// SPDX-License-Identifier: Apache-2.0
use super::*;
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
    joining.push(frame, &Header::parse(frame).unwrap());
}

#[test]
fn a_new_stream_begins_with_a_frame_that_needs_none_before_it() {
    let mut joining = Joining::behind(&Ring::default(), 0);
    assert_eq!(joining.place(u64::MAX), Place::Unknown, "there is none");
    (0..5).for_each(|number| push(&mut joining, &frame(number, false)));
    assert_eq!(joining.place(0), Place::Unknown);
    assert_eq!(joining.place(JOIN_MS_MAX + 1), Place::With(0), "none comes");
    push(&mut joining, &frame(5, true));
    assert_eq!(joining.place(0), Place::With(5));
    let mut ring = Ring::default();
    joining.finish(5, &mut ring);
    assert_eq!(ring.end(), MP3_BYTES as u64);
}

#[test]
fn no_more_is_looked_through_than_may_be() {
    for (ring, most) in [(Ring::default(), LEAD_BYTES_MAX), (ring(10), JOIN_BYTES_MAX)] {
        let mut joining = Joining::behind(&ring, 0);
        let mut bytes = 0;
        while joining.place(0) == Place::Unknown {
            push(&mut joining, &frame(100, false));
            bytes += MP3_BYTES;
        }
        assert!((most..most + MP3_BYTES).contains(&bytes), "{bytes}");
    }
}

#[test]
fn a_source_goes_on_behind_the_last_frames_of_the_ring() {
    let mut old = ring(10);
    let mut joining = Joining::behind(&old, 0);
    (3..9).for_each(|number| push(&mut joining, &mp3(number)));
    assert_eq!(joining.place(0), Place::Unknown);
    push(&mut joining, &mp3(9));
    assert_eq!(joining.place(0), Place::Behind);
    joining.finish(usize::MAX, &mut old);
    let mut bytes = Vec::new();
    old.copy(0, old.end(), &mut bytes);
    assert!(bytes == mp3s(0..10));
}

#[test]
fn a_source_without_them_goes_on_with_the_first_frame_that_needs_none() {
    let mut joining = Joining::behind(&ring(10), 0);
    push(&mut joining, &frame(100, false));
    push(&mut joining, &frame(101, true));
    assert_eq!((joining.place(0), joining.place(JOIN_MS_MAX + 1)), (Place::Unknown, Place::With(1)));
}
