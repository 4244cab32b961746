// SPDX-License-Identifier: Apache-2.0
//! Bounds of what the page shows.

/// Rows of a table; those beyond are told as a sum.
pub const ROWS_MAX: usize = 100;
/// Bytes of an event, which are what the channel takes at once.
pub const EVENT_BYTES_MAX: usize = 64 * 1024;
/// Seconds whose rates those get who open the page.
pub const HISTORY_S: u64 = 600;
/// Entries that are read at a time.
pub const ENTRIES_AT_ONCE: u32 = 1024;
/// Reading all entries for the page takes at most one part of the time in so many.
pub const READING_SHARE: u32 = 10;
