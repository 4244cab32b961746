// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::testing::{MP3_BYTES, MP3_US, Random, adts, mp3, mp3s};

fn frames(framer: &mut Framer, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    framer.push(bytes, |frame, _| found.push(frame.to_vec()));
    found
}

#[test]
fn headers_say_length_and_time() {
    let check = |bytes: &[u8], codec, rate_hz, length, duration_us| {
        let header = parse_header(bytes).unwrap();
        let got = (header.kind.codec, header.kind.rate_hz, header.length, header.duration_us);
        assert_eq!(got, (codec, rate_hz, length, duration_us), "{bytes:x?}");
    };
    check(&mp3(0), Codec::Mpeg, 44_100, MP3_BYTES, MP3_US);
    // With padding; MPEG-2 of layer III at 64 kbit/s; layer II at 256 kbit/s; layer I.
    check(&[0xff, 0xfb, 0x92, 0, 0, 0, 0], Codec::Mpeg, 44_100, 418, MP3_US);
    check(&[0xff, 0xf3, 0x80, 0, 0, 0, 0], Codec::Mpeg, 22_050, 208, MP3_US);
    check(&[0xff, 0xfd, 0xc4, 0, 0, 0, 0], Codec::Mpeg, 48_000, 768, 24_000);
    check(&[0xff, 0xff, 0xc4, 0, 0, 0, 0], Codec::Mpeg, 48_000, 384, 8_000);
    check(&adts(300, 0x21), Codec::Adts, 44_100, 300, 23_219);
    for bad in [
        &[0xff, 0xfb, 0x90][..],
        &[0xff, 0xeb, 0x90, 0, 0, 0, 0],
        &[0xff, 0xfb, 0x00, 0, 0, 0, 0],
        &[0xff, 0xfb, 0xf0, 0, 0, 0, 0],
        &[0xff, 0xfb, 0x9c, 0, 0, 0, 0],
        &[0xff, 0xfb, 0x90, 2, 0, 0, 0],
        &[0xff, 0xf1, 0x50, 0x80, 0, 0x1f, 0xfc],
        &[0xff, 0xf1, 0x7c, 0x80, 0x20, 0x1f, 0xfc],
    ] {
        assert_eq!(parse_header(bad), None, "{bad:x?}");
    }
}

#[test]
fn a_frame_that_begins_in_those_before_it_is_not_alone() {
    let mut frame = mp3(1);
    assert!(mpeg::is_alone(&frame));
    frame[5] = 0x80;
    assert!(!mpeg::is_alone(&frame));
    frame[4..6].copy_from_slice(&[1, 0]);
    assert!(!mpeg::is_alone(&frame));
    // Behind a checksum.
    assert!(mpeg::is_alone(&[0xff, 0xfa, 0x90, 0, 9, 9, 0, 0x7f]));
    assert!(!mpeg::is_alone(&[0xff, 0xfa, 0x90, 0, 9, 9, 0, 0x80]));
    // MPEG-2 has eight bits; layer II none.
    assert!(mpeg::is_alone(&[0xff, 0xf3, 0x80, 0, 0, 0x80]) && mpeg::is_alone(&[0xff, 0xfd, 0xc4, 0, 9, 9]));
    assert!((0..6).all(|length| !mpeg::is_alone(&mp3(1)[..length])));
}

/// Goal: in whatever pieces a stream comes, and whatever stands between its frames, the same frames are found, and nothing else.
#[test]
fn whole_frames_are_found_between_anything() {
    for seed in 1..200 {
        let mut random = Random(seed);
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        for number in 0..40 {
            if random.below(4) == 0 {
                // What is no header; also the begin of one.
                let count = random.size(600);
                bytes.extend(random.bytes(count).iter().map(|byte| byte & 0x7f));
                if random.below(2) == 0 {
                    bytes.push(0xff);
                }
                // A frame counts that another one follows.
                expected.pop();
            }
            let length = 20 + random.size(700);
            let frame = if seed % 2 == 0 { mp3(number) } else { adts(length, 0x21) };
            bytes.extend_from_slice(&frame);
            expected.push(frame);
        }
        expected.pop();
        let (mut framer, mut found, mut rest) = (Framer::default(), Vec::new(), &bytes[..]);
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(1 + random.size(rest.len().min(2000)));
            found.extend(frames(&mut framer, piece));
            rest = later;
        }
        assert!(found == expected, "seed {seed}: {} frames of {}", found.len(), expected.len());
    }
}

/// Goal: a frame that is cut short costs itself and the one that it would take along, and no others.
#[test]
fn a_broken_frame_costs_itself() {
    let mut bytes = mp3s(0..10);
    bytes.drain(5 * MP3_BYTES + 200..5 * MP3_BYTES + 230);
    let mut framer = Framer::default();
    let found = frames(&mut framer, &bytes);
    let expected: Vec<Vec<u8>> = (0..9).filter(|number| *number != 5).map(mp3).collect();
    assert!(found == expected, "{} frames", found.len());
    assert_eq!(framer.take_dropped(), (MP3_BYTES - 30) as u64);
    assert_eq!(framer.take_dropped(), 0);
}

/// Goal: no bytes whatever make it panic, find what is no frame of its own length, or keep more than the longest frame.
#[test]
fn any_bytes_are_borne() {
    for seed in 1..100 {
        let mut random = Random(seed);
        let mut framer = Framer::default();
        for _ in 0..20 {
            let count = random.size(3000);
            let mut bytes = random.bytes(count);
            // Many bytes with which headers begin.
            for byte in &mut bytes {
                *byte = if random.below(8) == 0 { 0xff } else { *byte };
            }
            framer.push(&bytes, |frame, header| assert_eq!(frame.len(), header.length));
            assert!(framer.left().len() <= 8191 + HEADER_BYTES, "seed {seed}");
        }
    }
}
