// SPDX-License-Identifier: Apache-2.0
//! Errors of host calls.

use std::fmt;

/// Why the node did not do what the module asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No such property, key or timer.
    NotFound,
    /// A pointer and its length reach beyond the module's memory.
    BadAddress,
    /// One of the module's limits is reached; nothing was done.
    Quota,
    /// A key, value, name or packet is longer than allowed.
    TooLarge,
    /// An argument has no meaning here.
    Invalid,
    /// A code that this SDK does not know.
    Other(i32),
}

impl Error {
    /// Returns the error of a code of the packet ABI.
    pub fn from_code(code: i32) -> Error {
        match code {
            -1 => Error::NotFound,
            -2 => Error::BadAddress,
            -3 => Error::Quota,
            -4 => Error::TooLarge,
            -5 => Error::Invalid,
            other => Error::Other(other),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound => f.write_str("not found"),
            Error::BadAddress => f.write_str("bad address"),
            Error::Quota => f.write_str("a limit of the module is reached"),
            Error::TooLarge => f.write_str("too large"),
            Error::Invalid => f.write_str("invalid"),
            Error::Other(code) => write!(f, "error {code}"),
        }
    }
}

impl std::error::Error for Error {}

/// Why a module does not start, as text for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartError(pub String);

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

impl From<Error> for StartError {
    fn from(error: Error) -> StartError {
        StartError(error.to_string())
    }
}

impl From<String> for StartError {
    fn from(text: String) -> StartError {
        StartError(text)
    }
}

impl From<&str> for StartError {
    fn from(text: &str) -> StartError {
        StartError(text.to_owned())
    }
}
