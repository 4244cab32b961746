// SPDX-License-Identifier: Apache-2.0
//! Bounds of what is stored and compared.

use std::time::Duration;

/// Bytes of a stored response without its body: as much as the cache block keeps beside one.
pub const META_BYTES_MAX: usize = 16 * 1024;
/// Bytes of a key: as much as the cache block takes.
pub const KEY_BYTES_MAX: usize = 1024;
/// Names in `Vary` of a response that is kept.
pub const VARY_NAMES_MAX: usize = 8;
/// Entity tags that are looked at in `If-None-Match`; a request with more gets the whole response.
pub const ENTITY_TAGS_MAX: usize = 256;
/// Seconds of a freshness lifetime (RFC 9111 §1.2.2).
pub const DELTA_SECONDS_MAX: u64 = 1 << 31;
/// The longest lifetime that is guessed (RFC 9111 §4.2.2).
pub const HEURISTIC_MAX: Duration = Duration::from_secs(24 * 60 * 60);
