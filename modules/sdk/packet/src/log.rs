// SPDX-License-Identifier: Apache-2.0
//! The module's log. The node takes a burst of 256 lines, then 100 per second; a line has at most 1,024 bytes.

use crate::error::Error;
use crate::host;

/// How important a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something is broken.
    Error,
    /// A person should look.
    Warn,
    /// A state change that a user sees.
    Info,
    /// For those who debug the module.
    Debug,
}

/// Writes a line.
///
/// # Errors
/// [`Error::Quota`] if the module writes too many; the line is counted and lost.
pub fn write(level: Level, text: &str) -> Result<(), Error> {
    let number = match level {
        Level::Error => 0,
        Level::Warn => 1,
        Level::Info => 2,
        Level::Debug => 3,
    };
    host::log(number, text)
}

/// Writes a line of level `error`, if the node takes it.
pub fn error(text: &str) {
    let _ = write(Level::Error, text);
}

/// Writes a line of level `warn`, if the node takes it.
pub fn warn(text: &str) {
    let _ = write(Level::Warn, text);
}

/// Writes a line of level `info`, if the node takes it.
pub fn info(text: &str) {
    let _ = write(Level::Info, text);
}

/// Writes a line of level `debug`, if the node takes it.
pub fn debug(text: &str) {
    let _ = write(Level::Debug, text);
}
