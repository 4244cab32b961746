// SPDX-License-Identifier: Apache-2.0
//! Entries become lines, each with the digest of the one before.

use netserv_model::Digest;
use netserv_model::audit::{AuditEntry, AuditLine};
use sha2::{Digest as _, Sha256};

/// The end of a chain, to which lines are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    line: u64,
    digest: Digest,
}

impl Default for Chain {
    /// Returns a chain without lines.
    fn default() -> Chain {
        Chain { line: 0, digest: Digest([0; 32]) }
    }
}

impl Chain {
    /// Returns the chain that ends with a line; `text` is that line without its end of line.
    pub fn after(line: u64, text: &[u8]) -> Chain {
        Chain { line, digest: digest(text) }
    }

    /// Returns one whose first line has a number, in place of lines that cannot be read.
    pub fn from(first: u64) -> Chain {
        Chain { line: first.saturating_sub(1), ..Chain::default() }
    }

    /// Returns the number of the last line, 0 if there is none.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Returns the digest of the last line.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Adds an entry; returns its line, with the end of line.
    pub fn add(&mut self, entry: AuditEntry) -> String {
        let line = AuditLine { line: self.line + 1, entry, before: self.digest };
        let mut text = serde_json::to_string(&line).expect("entries are plain data");
        *self = Chain::after(line.line, text.as_bytes());
        text.push('\n');
        text
    }

    /// Returns why a line does not come next, if it does not.
    pub fn check(&self, line: &AuditLine) -> Result<(), String> {
        if line.line != self.line + 1 {
            return Err(format!("line {} follows line {}", line.line, self.line));
        }
        if line.before != self.digest {
            return Err(format!("line {} is not the one before it, or was changed", self.line));
        }
        Ok(())
    }
}

/// Returns the name of the file whose first line has a number. Names are in the order of the numbers.
pub fn name_of_file(first: u64) -> String {
    format!("{first:020}.jsonl")
}

/// Returns the number of a file's first line by the file's name; nothing if it is no file of an audit log.
pub fn first_of_file(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".jsonl")?.parse().ok()?;
    (name_of_file(number) == name).then_some(number)
}

pub(crate) fn digest(text: &[u8]) -> Digest {
    Digest(Sha256::digest(text).into())
}
