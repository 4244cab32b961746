// SPDX-License-Identifier: Apache-2.0
//! Counters.

use crate::error::Error;
use crate::host;

/// A counter that people see by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter(u32);

impl Counter {
    /// Returns the counter of a name, which is made at 0 if need be.
    ///
    /// # Errors
    /// [`Error::Quota`] if the module has no more counters, [`Error::TooLarge`] for a name over 64 bytes,
    /// [`Error::Invalid`] for an empty one or one with control characters.
    pub fn open(name: &str) -> Result<Counter, Error> {
        host::counter_open(name).map(Counter)
    }

    /// Adds to the counter, wrapping.
    pub fn add(self, amount: u64) {
        // A counter that was opened is there.
        let _ = host::counter_add(self.0, amount);
    }

    /// Sets the counter.
    pub fn set(self, value: u64) {
        // A counter that was opened is there.
        let _ = host::counter_set(self.0, value);
    }
}
