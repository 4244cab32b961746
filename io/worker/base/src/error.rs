// SPDX-License-Identifier: Apache-2.0
//! Errors that a module sees as the result of a host call, and those that end a worker.

use std::io;

use netserv_wire::container::ring::RingError;

/// Why a worker ends before it is told to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The process was not started by a node.
    #[error("descriptor {0} is not what a container has there: {1}; `serve` is started by netservd")]
    NotInherited(i32, io::Error),
    /// What runs the modules does not start.
    #[error("{0} does not start: {1}")]
    Engine(&'static str, String),
    /// What runs the modules broke.
    #[error("{0}")]
    Broken(String),
    /// The packet ring is broken.
    #[error("the packet ring is broken: {0}")]
    Ring(#[from] RingError),
    /// A system call failed.
    #[error("{0} failed: {1}")]
    Io(&'static str, io::Error),
}

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
