// SPDX-License-Identifier: Apache-2.0
//! When the loop takes packets, and when it leaves its core.

mod coalescing;
mod idle_sleep;

pub(crate) use coalescing::Coalescing;
pub(crate) use idle_sleep::{IDLE_SLEEP, IdleSleep};
