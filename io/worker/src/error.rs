// SPDX-License-Identifier: Apache-2.0
//! Errors that a module sees as the result of a host call.

/// Why a host call did nothing; the codes are part of the packet ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum HostError {
    /// No such property, key or timer.
    #[error("not found")]
    NotFound,
    /// A pointer and its length reach beyond the module's memory.
    #[error("bad address")]
    BadAddress,
    /// One of the module's limits is reached.
    #[error("quota")]
    Quota,
    /// Something is longer than allowed.
    #[error("too large")]
    TooLarge,
    /// An argument has no meaning here.
    #[error("invalid")]
    Invalid,
}

impl HostError {
    /// Returns the code that the module sees.
    pub fn code(self) -> i32 {
        match self {
            HostError::NotFound => -1,
            HostError::BadAddress => -2,
            HostError::Quota => -3,
            HostError::TooLarge => -4,
            HostError::Invalid => -5,
        }
    }
}
