// SPDX-License-Identifier: Apache-2.0
//! Named bounds of netlink sockets.

use std::time::Duration;

/// How long the kernel may take to answer.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes of the largest set of requests that is handed to the kernel at once, and of its answers.
pub const REQUESTS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// More than the kernel puts into one datagram of an answer.
pub const ANSWER_BYTES: usize = 64 * 1024;
/// Datagrams of one answer at most.
pub const ANSWERS_MAX: usize = 16_384;
