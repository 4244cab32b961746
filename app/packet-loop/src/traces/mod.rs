// SPDX-License-Identifier: Apache-2.0
//! Traces: what they are told to follow, what a followed packet carries along, and where its record goes.

pub mod feed;
mod record;
mod tap;
mod tracer;

pub(crate) use record::Record;
#[cfg(test)]
pub(crate) use tap::Second;
pub use tap::{Tap, TapCounts, TraceId, Traced};
pub(crate) use tracer::Tracer;
