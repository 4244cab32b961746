// SPDX-License-Identifier: Apache-2.0
//! Bounds of GIST messages.

/// Bytes of the value of one object: its length field counts 32-bit words in 12 bits.
pub const OBJECT_BYTES_MAX: usize = 4 * 0x0FFF;
/// Bytes of NSLP data in one message, which travel in one object.
pub const NSLP_DATA_BYTES_MAX: usize = OBJECT_BYTES_MAX;
/// Bytes of one message with its header, without magic number: the length field counts words in 16 bits.
pub const MESSAGE_BYTES_MAX: usize = 8 + 4 * 0xFFFF;
/// Bytes of an invalid object that an Error carries back; what is longer is cut, so that an Error fits a datagram.
pub const INVALID_OBJECT_BYTES_MAX: usize = 128;
/// Bytes of a comment in an Error that are read or written.
pub const COMMENT_BYTES_MAX: usize = 256;
/// Bytes of an MRI that an Error can carry: its length field counts words in 8 bits.
pub const ERROR_MRI_BYTES_MAX: usize = 4 * 0xFF;
