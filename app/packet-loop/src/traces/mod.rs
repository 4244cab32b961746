// SPDX-License-Identifier: Apache-2.0
//! Traces: what they are told to follow, what a followed packet carries along, and where its record goes.

pub mod feed;
mod record;
mod tracer;

pub(crate) use record::Record;
#[cfg(test)]
pub(crate) use record::Second;
pub use record::{Tap, TapCounts, TraceId, Traced};
pub(crate) use tracer::Tracer;
