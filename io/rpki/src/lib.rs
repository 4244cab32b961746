// SPDX-License-Identifier: Apache-2.0
//! Which prefixes the holder of an RPKI signed checklist (RFC 9323) speaks for, and until when.
#![forbid(unsafe_code)]

mod anchor;
mod cache;
mod checklist;
mod der;
mod error;
mod files;
mod issued;
pub mod limits;
mod manifest;
mod publication;
mod time;

pub use cache::{Cache, Spoken};
pub use error::{CacheError, Invalid};
