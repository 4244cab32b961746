// SPDX-License-Identifier: Apache-2.0
//! Packages as others make, keep and read them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
mod fetch;
mod manifest;
mod package;
mod registry;
mod schema;
mod skopeo;
