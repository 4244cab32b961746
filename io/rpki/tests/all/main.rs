// SPDX-License-Identifier: Apache-2.0
//! Checklists against trees of the RPKI, beside rpki-client and FORT.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bounds;
mod cases;
mod cost;
mod fort;
mod openssl;
mod relying_party;
mod scene;
