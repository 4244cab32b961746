// SPDX-License-Identifier: Apache-2.0
//! Codes of the packet ABI; [`Error::from_code`](crate::Error::from_code) has their meanings.

pub(super) const NOT_FOUND: i32 = -1;
pub(super) const TOO_LARGE: i32 = -4;
pub(super) const INVALID: i32 = -5;
