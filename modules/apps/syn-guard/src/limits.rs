// SPDX-License-Identifier: Apache-2.0
//! Bounds of the module.

/// SYNs that were dropped and are remembered; the newest take the places of others.
pub const ASKED_MAX: usize = 1 << 18;
/// Clients that are known; the newest take the places of others.
pub const KNOWN_MAX: usize = 1 << 16;
/// Addresses with limits of their own; further ones share one.
pub const DESTINATIONS_MAX: usize = 1024;
/// How long after it was dropped a SYN comes again at the earliest: TCP waits a second (RFC 6298 §2.1), less what its way may differ by.
pub const AGAIN_MS_MIN: u32 = 500;
/// How long at most: three times are tried by then.
pub const AGAIN_MS_MAX: u32 = 8_000;
/// Connections in a second that properties may name.
pub const LIMIT_MAX: u32 = 1_000_000;
/// Seconds for which a client may be known.
pub const KNOWN_S_MAX: u32 = 86_400;
