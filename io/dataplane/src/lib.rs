// SPDX-License-Identifier: Apache-2.0
//! The forwarding planes that there are, and the choice between them.
//!
//! The tests hold planes to what they promise, on real packets between network namespaces.

pub mod choose;

pub use choose::{DriverKind, Probe};
