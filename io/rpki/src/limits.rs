// SPDX-License-Identifier: Apache-2.0
//! The bounds of a check.

use std::time::Duration;

/// Bytes of a checklist in DER. One of a single prefix and digest has about 2 KiB.
pub use netserv_model::limits::CHECKLIST_BYTES_MAX;
/// Prefixes that a checklist speaks for; a range of addresses counts as the prefixes that it is made of.
pub const PREFIXES_MAX: usize = 256;
/// Certificates from the checklist's issuer up to the trust anchor, without that; as many as rpki-client follows.
pub const DEPTH_MAX: usize = 12;
/// Bytes of one file of the cache; as many as rpki-client takes.
pub const FILE_BYTES_MAX: usize = 4_000_000;
/// Bytes that one check reads.
pub const READ_BYTES_MAX: usize = 4 * FILE_BYTES_MAX;
/// Checks that are remembered, for as long as no file of theirs changes: one for each user that a node may know by a checklist.
pub const KNOWN_MAX: usize = 512;
/// Files and certificates of which it is remembered what their publications say, for as long as no file of these changes: two for each
/// certificate of the checks that are remembered. All are forgotten if there are more, as those of users who are gone.
pub const ANSWERS_MAX: usize = 2 * KNOWN_MAX * (DEPTH_MAX + 1);
/// How long ago a file was changed if a further change cannot have the same time: file systems count in ticks, or seconds.
pub const SETTLED_AFTER: Duration = Duration::from_secs(2);
/// Bytes of a trust anchor locator.
pub const TAL_BYTES_MAX: usize = 16 * 1024;
/// Trust anchor locators; the five registries have one each.
pub const TALS_MAX: usize = 16;
/// Characters of what a checklist itself adds to a reason, such as a long object identifier.
pub const REASON_CHARS_MAX: usize = 100;
