// SPDX-License-Identifier: Apache-2.0
//! Where results are.

use netserv_server_sdk::cache::{self, Error, Opened};

use super::reason::Reason;

/// Returns what the keys of all that is made of a response begin with.
///
/// Variants have another byte behind the key, and are counted.
pub fn prefix(key: &str) -> String {
    format!("{key}\t")
}

/// Opens the place of a result.
pub fn open(key: &str) -> Result<Opened, Reason> {
    match cache::open_or_join(key) {
        Ok(Opened::Reader(reader)) if reader.entry().details.meta == FAILED => Err(Reason::Failed),
        Ok(opened) => Ok(opened),
        // Who made it gave up.
        Err(Error::Abandoned | Error::Stalled) => Err(Reason::Busy),
        Err(Error::Busy | Error::TooManyReaders) => Err(Reason::Busy),
        Err(Error::Invalid | Error::TooLarge | Error::Unavailable) => Err(Reason::NotStored),
    }
}

/// What stands beside an entry that says that nothing could be made.
pub const FAILED: &[u8] = b"failed\n";
