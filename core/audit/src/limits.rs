// SPDX-License-Identifier: Apache-2.0
//! Named bounds of the audit log.

use std::time::Duration;

/// Bytes of one line; what is longer is none.
pub const LINE_BYTES_MAX: usize = 8192;
/// Bytes that are read at a time.
pub const READ_BYTES: usize = 256 * 1024;
/// Lines of one share at once.
pub const SHARE_LINES_BURST: u64 = 512;
/// The time after which a share has room for one line more.
pub const SHARE_LINE_INTERVAL: Duration = Duration::from_secs(6);
/// Lines of all users together whom the configuration does not name, at once: they may make as many keys as they like.
pub const STRANGERS_LINES_BURST: u64 = 4096;
/// The time after which there is room for one line of theirs more.
pub const STRANGERS_LINE_INTERVAL: Duration = Duration::from_secs(2);
/// Shares that are known at a time; over it, those that are full again are forgotten, and then further users only share that of
/// strangers.
pub const SHARES_MAX: usize = 16_384;
/// How often a line says how many were left out.
pub const LEFT_OUT_INTERVAL: Duration = Duration::from_secs(60);
