// SPDX-License-Identifier: Apache-2.0
//! Headers of MPEG audio frames.

use super::header::{Codec, HEADER_BYTES, Header, Kind};

/// Bit rates in kbit/s by their index, from 1 on: version 1, layers I to III; then the later versions, layers I, and II and III.
const RATES: [[u32; 14]; 5] = [
    [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
    [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];
/// Bits of version, layer and whether it has one channel.
const SHAPE_VERSION: u8 = 0x18;
const SHAPE_LAYER: u8 = 0x06;

/// Returns what a header says, if it is one. Free format, whose length no header tells, is none.
pub(super) fn header(bytes: &[u8; HEADER_BYTES]) -> Option<Header> {
    let [first, second, third, fourth, ..] = *bytes;
    let (version, layer) = (second & SHAPE_VERSION, second & SHAPE_LAYER);
    if first != 0xff || second & 0xe0 != 0xe0 || version == 0x08 || layer == 0 {
        return None;
    }
    let is_first_version = version == 0x18;
    let row = match (is_first_version, layer) {
        (true, 0x06) => 0,
        (true, 0x04) => 1,
        (true, _) => 2,
        (false, 0x06) => 3,
        (false, _) => 4,
    };
    let rate_kbit = *RATES[row].get(usize::from(third >> 4).checked_sub(1)?)?;
    let base_hz = *[44_100_u32, 48_000, 32_000].get(usize::from(third >> 2 & 3))?;
    let rate_hz = match version {
        0x18 => base_hz,
        0x10 => base_hz / 2,
        _ => base_hz / 4,
    };
    // An emphasis that there is not.
    if fourth & 3 == 2 {
        return None;
    }
    let padding = u32::from(third >> 1 & 1);
    let (samples, length) = match (is_first_version, layer) {
        (_, 0x06) => (384, (12_000 * rate_kbit / rate_hz + padding) * 4),
        (true, _) | (false, 0x04) => (1152, 144_000 * rate_kbit / rate_hz + padding),
        (false, _) => (576, 72_000 * rate_kbit / rate_hz + padding),
    };
    let is_mono = u8::from(fourth >> 6 == 3);
    Some(Header {
        kind: Kind { codec: Codec::Mpeg, rate_hz, shape: version | layer | is_mono },
        length: usize::try_from(length).ok()?,
        duration_us: samples * 1_000_000 / u64::from(rate_hz),
    })
}

/// Returns whether a frame can be decoded without those before it: one of layer III may begin with what lies in them.
pub fn is_alone(frame: &[u8]) -> bool {
    let [_, second, _, _, rest @ ..] = frame else { return false };
    if second & SHAPE_LAYER != 0x02 {
        return true;
    }
    // A checksum comes first, unless the bit says that there is none.
    let side = if second & 1 == 0 { rest.get(2..) } else { Some(rest) };
    let Some([begin, more, ..]) = side else { return false };
    let is_first_version = second & SHAPE_VERSION == 0x18;
    *begin == 0 && (!is_first_version || more & 0x80 == 0)
}
