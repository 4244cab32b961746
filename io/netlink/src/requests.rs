// SPDX-License-Identifier: Apache-2.0
//! Requests that go to the kernel together.

use std::io;

use crate::message::{FLAG_ACK, FLAG_REQUEST, append};

/// Requests that go to the kernel together. Each has words for what it is about, for errors.
#[derive(Debug, Default)]
pub struct Requests {
    bytes: Vec<u8>,
    whats: Vec<String>,
}

/// A request that the kernel refused.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {source}")]
pub struct Refused {
    /// What was asked.
    pub step: String,
    /// What the kernel said.
    pub source: io::Error,
}

impl Requests {
    /// Appends a request that the kernel acknowledges. Returns its number, the sequence number of the answers to it.
    ///
    /// # Panics
    /// If an attribute is over 65,531 bytes long; callers bound what they send.
    pub fn push(
        &mut self,
        kind: u16,
        flags: u16,
        header: &[u8],
        attributes: &[(u16, &[u8])],
        what: impl Into<String>,
    ) -> u32 {
        self.whats.push(what.into());
        let sequence = u32::try_from(self.whats.len()).expect("requests are few");
        append(&mut self.bytes, kind, FLAG_REQUEST | FLAG_ACK | flags, sequence, header, attributes);
        sequence
    }

    /// Appends a request that the kernel does not acknowledge.
    pub fn push_silent(&mut self, kind: u16, header: &[u8]) {
        append(&mut self.bytes, kind, FLAG_REQUEST, SILENT, header, &[]);
    }

    /// Returns all requests as bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns how many are acknowledged.
    pub(crate) fn acknowledged(&self) -> usize {
        self.whats.len()
    }

    /// Returns what the request of a number is about; nothing if there is no such request.
    pub(crate) fn what(&self, sequence: u32) -> Option<&str> {
        let place = usize::try_from(sequence).ok()?.checked_sub(1)?;
        self.whats.get(place).map(String::as_str)
    }
}

/// The number of requests that are not acknowledged.
const SILENT: u32 = 0;
