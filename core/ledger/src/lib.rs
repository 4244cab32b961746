// SPDX-License-Identifier: Apache-2.0
//! What users and their modules used: sums of what meters counted between readings.
//!
//! Invariant: what a meter counted is in the sums once, of each run, however often it is read. Sums never shrink; one that
//! is not told apart any more is in another.
#![forbid(unsafe_code)]

#[cfg(feature = "fake")]
pub mod fake;
mod ledger;
pub mod limits;
#[cfg(test)]
mod tests;

pub use ledger::Ledger;
