// SPDX-License-Identifier: Apache-2.0
//! Bounds of the project's file.

/// Bytes of `netserv.toml`.
pub const PROJECT_BYTES_MAX: usize = 1024 * 1024;
