// SPDX-License-Identifier: Apache-2.0
//! Headers of AAC frames in ADTS.

use super::header::{Codec, HEADER_BYTES, Header, Kind};

const RATES_HZ: [u32; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];
/// Samples of one block; a frame has one to four.
const BLOCK_SAMPLES: u64 = 1024;

/// Returns what a header says, if it is one.
pub(super) fn header(bytes: &[u8; HEADER_BYTES]) -> Option<Header> {
    let [first, second, third, fourth, fifth, sixth, seventh] = *bytes;
    if first != 0xff || second & 0xf6 != 0xf0 {
        return None;
    }
    let rate_hz = *RATES_HZ.get(usize::from(third >> 2 & 15))?;
    let length = usize::from(fourth & 3) << 11 | usize::from(fifth) << 3 | usize::from(sixth >> 5);
    // With its checksum, a header has two bytes more.
    let own = if second & 1 == 0 { HEADER_BYTES + 2 } else { HEADER_BYTES };
    if length <= own {
        return None;
    }
    let channels = (third & 1) << 2 | fourth >> 6;
    let blocks = u64::from(seventh & 3) + 1;
    Some(Header {
        kind: Kind { codec: Codec::Adts, rate_hz, shape: (third & 0xc0) | (second & 0x08) | channels },
        length,
        duration_us: blocks * BLOCK_SAMPLES * 1_000_000 / u64::from(rate_hz),
    })
}
