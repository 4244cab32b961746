// SPDX-License-Identifier: Apache-2.0
//! Streams that come back as they were, and streams that do not.

use std::io::Write as _;

use proptest::prelude::*;

use super::*;
use crate::compute::Budget;
use crate::limits;

fn budget() -> Budget {
    Budget::new(limits::COMPRESS_MEMORY_BYTES_MAX)
}

fn compress(encoding: Encoding, level: u8, bytes: &[u8], piece: usize) -> Vec<u8> {
    let mut coder = Compressor::open(encoding, level, &budget()).unwrap();
    let mut compressed = Vec::new();
    for piece in bytes.chunks(piece) {
        compressed.extend(coder.write(piece).unwrap());
    }
    compressed.extend(coder.finish().unwrap());
    assert_eq!(coder.write(b"x"), Err(CodeError::Finished));
    assert_eq!(coder.finish(), Err(CodeError::Finished));
    compressed
}

/// Returns what a stream gives that is written in pieces and read in pieces.
fn decompress(encoding: Encoding, bytes: &[u8], piece: usize, max: usize) -> Result<Vec<u8>, CodeError> {
    let mut coder = Decompressor::open(encoding, 1 << 24, &budget()).unwrap();
    let mut decompressed = Vec::new();
    for piece in bytes.chunks(piece) {
        coder.write(piece)?;
        drain(&mut coder, max, &mut decompressed)?;
    }
    coder.finish()?;
    assert_eq!(coder.read(1), Err(CodeError::Finished));
    Ok(decompressed)
}

fn drain(coder: &mut Decompressor, max: usize, into: &mut Vec<u8>) -> Result<(), CodeError> {
    loop {
        let read = coder.read(max)?;
        assert!(read.len() <= max.min(limits::DECOMPRESS_READ_BYTES_MAX));
        if read.is_empty() {
            return Ok(());
        }
        into.extend(read);
    }
}

#[test]
fn text_becomes_smaller_at_every_level() {
    let text = "SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 192.0.2.1\r\n".repeat(2000);
    for encoding in Encoding::ALL {
        for level in [0, 1, 5, 9, 255] {
            let compressed = compress(encoding, level, text.as_bytes(), 10_000);
            assert!(compressed.len() < text.len() / 50, "{encoding:?} {level}: {}", compressed.len());
            assert_eq!(decompress(encoding, &compressed, 7, 1 << 20).unwrap(), text.as_bytes());
        }
    }
}

#[test]
fn a_flush_gives_all_that_was_written() {
    for encoding in Encoding::ALL {
        let mut coder = Compressor::open(encoding, 5, &budget()).unwrap();
        let mut other = Decompressor::open(encoding, 100, &budget()).unwrap();
        for text in ["first", "second"] {
            let mut flushed = coder.write(text.as_bytes()).unwrap();
            flushed.extend(coder.flush().unwrap());
            other.write(&flushed).unwrap();
            let mut read = Vec::new();
            drain(&mut other, 100, &mut read).unwrap();
            assert_eq!(read, text.as_bytes(), "{encoding:?}");
        }
        other.write(&coder.finish().unwrap()).unwrap();
        assert_eq!(other.read(1), Ok(vec![]));
        assert_eq!(other.finish(), Ok(()));
        assert_eq!(coder.flush(), Err(CodeError::Finished));
    }
}

#[test]
fn bombs_end_where_the_output_may() {
    let zeroes = vec![0; 1 << 20];
    for encoding in Encoding::ALL {
        let bomb = compress(encoding, 9, &zeroes, 1 << 20);
        assert!(bomb.len() < 2000, "{encoding:?}");
        for (allowed, expected) in
            [(1 << 20, Ok(1 << 20)), ((1 << 20) - 1, Err(CodeError::TooLarge)), (0, Err(CodeError::TooLarge))]
        {
            let mut coder = Decompressor::open(encoding, allowed, &budget()).unwrap();
            coder.write(&bomb).unwrap();
            let mut read = Vec::new();
            let drained = drain(&mut coder, usize::MAX, &mut read).map(|()| read.len());
            assert_eq!(drained, expected, "{encoding:?} {allowed}");
            assert_eq!(coder.finish().is_ok(), expected.is_ok());
        }
    }
}

#[test]
fn input_of_one_call_is_bounded() {
    let budget = budget();
    let long = vec![0; limits::COMPRESS_INPUT_BYTES_MAX + 1];
    for encoding in Encoding::ALL {
        let mut coder = Compressor::open(encoding, 0, &budget).unwrap();
        assert_eq!(coder.write(&long), Err(CodeError::TooLarge));
        assert!(coder.write(&long[1..]).is_ok());
        let mut coder = Decompressor::open(encoding, 100, &budget).unwrap();
        assert_eq!(coder.write(&long[..limits::DECOMPRESS_INPUT_BYTES_MAX + 1]), Err(CodeError::TooLarge));
        coder.write(&long[..limits::DECOMPRESS_INPUT_BYTES_MAX]).unwrap();
        assert_eq!(coder.write(b""), Err(CodeError::Busy));
        assert_eq!(coder.finish(), Err(CodeError::Busy));
    }
}

#[test]
fn coders_end_with_the_memory_for_them() {
    for encoding in Encoding::ALL {
        let budget = budget();
        let open = || Compressor::open(encoding, 5, &budget);
        let coders: Vec<_> = std::iter::from_fn(|| open().ok()).collect();
        assert!(!coders.is_empty());
        assert!(matches!(open(), Err(CodeError::Quota)));
        drop(coders);
        assert!(open().is_ok());
        let open = || Decompressor::open(encoding, 0, &budget);
        let coders: Vec<_> = std::iter::from_fn(|| open().ok()).collect();
        assert!(!coders.is_empty());
        assert!(matches!(open(), Err(CodeError::Quota)));
    }
}

#[test]
fn a_window_that_does_not_fit_is_refused() {
    let budget = budget();
    // Window bits 24, the most of RFC 7932; and the escape to larger ones.
    let open = |first: u8| {
        let mut coder = Decompressor::open(Encoding::Brotli, 100, &budget).unwrap();
        coder.write(&[first]).unwrap();
        coder.read(1).map(|_| coder)
    };
    let coders: Vec<_> = std::iter::from_fn(|| open(0x0f).ok()).collect();
    assert_eq!(coders.len(), limits::COMPRESS_MEMORY_BYTES_MAX / ((1 << 24) + limits::BROTLI_DECODER_BYTES));
    assert_eq!(open(0x0f).err(), Some(CodeError::Quota));
    assert_eq!(open(0x11).err(), Some(CodeError::Invalid));

    // A frame of Zstandard with a window of 2^24 bytes, and one that fits.
    for (descriptor, expected) in [(14 << 3, Err(CodeError::Invalid)), (13 << 3, Ok(()))] {
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0, descriptor, 1, 0, 0];
        assert_eq!(decompress(Encoding::Zstd, &frame, 100, 1).map(drop), expected);
    }
}

#[test]
fn a_stream_that_ends_early_is_not_complete() {
    for encoding in Encoding::ALL {
        let compressed = compress(encoding, 5, b"some text", 100);
        for length in 0..compressed.len() {
            let cut = decompress(encoding, &compressed[..length], 3, 100);
            assert_eq!(cut, Err(CodeError::Invalid), "{encoding:?} {length}");
        }
        let longer = [&compressed[..], b"!"].concat();
        assert_eq!(decompress(encoding, &longer, 3, 100), Err(CodeError::Invalid), "{encoding:?}");
    }
}

#[test]
fn reading_without_writing_is_patient() {
    for encoding in Encoding::ALL {
        let compressed = compress(encoding, 5, b"some text", 100);
        let mut coder = Decompressor::open(encoding, 100, &budget()).unwrap();
        for _ in 0..50 {
            assert_eq!(coder.read(10), Ok(vec![]));
        }
        coder.write(&compressed[..5]).unwrap();
        let mut read = Vec::new();
        drain(&mut coder, 100, &mut read).unwrap();
        for _ in 0..50 {
            assert_eq!(coder.read(10), Ok(vec![]));
        }
        coder.write(&compressed[5..]).unwrap();
        drain(&mut coder, 100, &mut read).unwrap();
        assert_eq!((coder.finish(), &read[..]), (Ok(()), &b"some text"[..]));
    }
}

#[test]
fn streams_may_have_several_members() {
    for encoding in [Encoding::Gzip, Encoding::Zstd] {
        let two = [compress(encoding, 5, b"some ", 100), compress(encoding, 5, b"text", 100)].concat();
        for piece in [1, 10, 1000] {
            assert_eq!(decompress(encoding, &two, piece, 3), Ok(b"some text".to_vec()), "{encoding:?}");
        }
    }
}

#[test]
fn headers_of_gzip_may_have_everything() {
    let plain = compress(Encoding::Gzip, 5, b"text", 100);
    let with = |flags: u8, fields: &[u8]| [&plain[..3], &[flags], &plain[4..10], fields, &plain[10..]].concat();
    let mut builder = flate2::GzBuilder::new()
        .filename("name")
        .comment("comment")
        .extra([7; 300])
        .write(Vec::new(), flate2::Compression::fast());
    builder.write_all(b"text").unwrap();
    for stream in [builder.finish().unwrap(), with(2, b"xy"), with(0x1e, b"\x01\0xname\0comment\0xy"), with(1, b"")] {
        for piece in [1, 1000] {
            assert_eq!(decompress(Encoding::Gzip, &stream, piece, 10), Ok(b"text".to_vec()));
        }
    }
    let mut wrong_sum = plain.clone();
    let last = wrong_sum.len() - 1;
    wrong_sum[last] ^= 1;
    let endless = with(8, &[b'n'; limits::GZIP_HEADER_BYTES_MAX]);
    for stream in [with(0x20, b""), wrong_sum, endless, b"\x1f\x8b\x07".to_vec(), b"\0".to_vec()] {
        assert_eq!(decompress(Encoding::Gzip, &stream, 1000, 10), Err(CodeError::Invalid));
    }
}

#[test]
#[ignore = "reads the memory of the whole process, so it runs alone"]
fn coders_take_no_more_memory_than_they_are_taken_to_need() {
    let resident = || {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0] & 0x3f
    };
    let bytes: Vec<u8> = (0..20 << 20).map(|_| random()).collect();
    let needs = [limits::GZIP_ENCODER_BYTES, limits::BROTLI_ENCODER_BYTES, limits::ZSTD_ENCODER_BYTES];
    for (encoding, need) in Encoding::ALL.into_iter().zip(needs) {
        for level in [1, 5, 9] {
            let budget = budget();
            let before = resident();
            let mut coders: Vec<_> = (0..4).map(|_| Compressor::open(encoding, level, &budget).unwrap()).collect();
            for coder in &mut coders {
                bytes.chunks(65_536).for_each(|piece| drop(coder.write(piece).unwrap()));
            }
            let each = (resident() - before) / coders.len();
            println!("{encoding:?} level {level}: {each} of {need} bytes");
            assert!(each <= need);
        }
    }
    let needs = [limits::GZIP_DECODER_BYTES, limits::BROTLI_DECODER_BYTES + (1 << 18), limits::ZSTD_DECODER_BYTES];
    for (encoding, need) in Encoding::ALL.into_iter().zip(needs) {
        let compressed = compress(encoding, 5, &bytes, 65_536);
        let budget = budget();
        let before = resident();
        let open = |_| Decompressor::open(encoding, u64::MAX, &budget).unwrap();
        let mut coders: Vec<_> = (0..4).map(open).collect();
        for coder in &mut coders {
            for piece in compressed.chunks(65_536) {
                coder.write(piece).unwrap();
                while !coder.read(65_536).unwrap().is_empty() {}
            }
        }
        let each = (resident() - before) / coders.len();
        println!("{encoding:?} back: {each} of {need} bytes");
        assert!(each <= need + limits::DECOMPRESS_INPUT_BYTES_MAX);
    }
}

proptest! {
    #[test]
    fn everything_comes_back(
        bytes in proptest::collection::vec(prop_oneof![4 => Just(7_u8), 1 => any::<u8>()], 0..5000),
        which in 0_usize..3,
        level in 0_u8..=9,
        pieces in (1_usize..3000, 1_usize..500, 1_usize..3000),
    ) {
        let encoding = Encoding::ALL[which];
        let compressed = compress(encoding, level, &bytes, pieces.0);
        prop_assert_eq!(decompress(encoding, &compressed, pieces.1, pieces.2), Ok(bytes));
    }

    #[test]
    fn damage_does_no_harm(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        which in 0_usize..3,
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
        piece in 1_usize..300,
    ) {
        let encoding = Encoding::ALL[which];
        // Either bytes that mean nothing, or a stream of them with a few wrong.
        let mut stream = if damage.is_empty() { bytes } else { compress(encoding, 5, &bytes.repeat(3), 1000) };
        for (index, byte) in damage {
            let at = index.index(stream.len());
            stream[at] = byte;
        }
        let _ = decompress(encoding, &stream, piece, 1000);
    }
}
