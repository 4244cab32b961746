// SPDX-License-Identifier: Apache-2.0
//! Bounds of what is made of responses.

/// Rules of a provider.
pub const RULES_MAX: usize = 16;
/// Bytes of a rule's pattern.
pub const PATTERN_BYTES_MAX: usize = 256;
/// Widths of pictures: so many variants has each of them.
pub const WIDTHS_MAX: usize = 8;
/// Pixels of the smallest and the largest width.
pub const WIDTH_MIN: u32 = 16;
/// See [`WIDTH_MIN`].
pub const WIDTH_MAX: u32 = 3840;
/// Bytes of a text that is laid over pictures: as much as the media block takes.
pub const TEXT_BYTES_MAX: usize = 256;
/// Bytes of a picture that is processed.
pub const PICTURE_BYTES_MAX: u64 = 16 << 20;
/// Bytes of a clip that is processed: as much as a node keeps of an input unless its operator says otherwise.
pub const CLIP_BYTES_MAX: u64 = 128 << 20;
/// Bytes of a result that are waited for, so that what fails before is answered by the original.
pub const FIRST_BYTES_MAX: usize = 512 << 10;
/// Bytes of a picture's head in which its width is looked for.
pub const HEAD_BYTES_MAX: u64 = 128 << 10;
/// Seconds for which a result is kept; whether it is of use is seen from what it was made of.
pub const RESULT_SECONDS: u64 = 7 * 24 * 60 * 60;
/// Seconds after which something is tried again that could not be processed.
pub const FAILED_SECONDS: u64 = 60;
/// Seconds after which a stream that got no segment is taken for given up.
pub const STREAM_SILENT_SECONDS: u64 = 60;
/// Milliseconds of a segment.
pub const SEGMENT_MS: u32 = 4000;
/// Segments of a quality.
pub const SEGMENTS_MAX: usize = 4096;
