// SPDX-License-Identifier: Apache-2.0
//! Golden bytes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod gist_vectors;
mod sip_vectors;
