// SPDX-License-Identifier: Apache-2.0
//! Named bounds of the interceptor and of the sockets. Each has a test that hits it.

use std::time::Duration;

pub use netserv_plane::limits::{BATCH_PACKETS_MAX, SLOT_BYTES};

/// Signaling messages that the interceptor holds; the oldest is lost when one more comes.
pub const INTERCEPTED_WAITING_MAX: usize = 512;
/// Signaling messages of one kind and version of IP that wait for room in their socket; the oldest is lost when one more comes.
pub const SEND_WAITING_MAX: usize = 256;
/// How long they wait at most: after that their sender sends another one anyway (T1 of RFC 5971 §5.3.3).
pub const SEND_WAITING_TIME_MAX: Duration = Duration::from_millis(500);
