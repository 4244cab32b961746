// SPDX-License-Identifier: Apache-2.0
//! Bounds of SIP messages.

/// Bytes of a message with its body: what fits in a datagram.
pub const MESSAGE_BYTES_MAX: usize = 65_535;
/// Headers of a message.
pub const HEADERS_MAX: usize = 128;
/// Bytes of a method's name.
pub const METHOD_BYTES_MAX: usize = 32;
