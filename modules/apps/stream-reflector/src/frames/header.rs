// SPDX-License-Identifier: Apache-2.0
//! What the header of a frame says.

/// What a frame's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What all frames of a stream have in common.
    pub kind: Kind,
    /// Bytes of the frame with its header.
    pub length: usize,
    /// How long it sounds.
    pub duration_us: u64,
}

/// What all frames of a stream have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The coding.
    pub codec: Codec,
    /// Samples a second.
    pub rate_hz: u32,
    /// Version, layer, channels: the bits in which they stand.
    pub shape: u8,
}

/// A coding of sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// MPEG-1, MPEG-2 and MPEG-2.5 audio (ISO 11172-3, 13818-3).
    Mpeg,
    /// AAC with headers of its own (ISO 13818-7, 14496-3).
    Adts,
}

/// Bytes by which a header is known.
pub const HEADER_BYTES: usize = 7;
