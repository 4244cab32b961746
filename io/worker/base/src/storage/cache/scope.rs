// SPDX-License-Identifier: Apache-2.0
//! Which entries a purge forgets.

use super::entry::Entry;

/// Which entries of a module go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those whose keys begin so; with an empty text all of them.
    Prefix(String),
    /// Those that have this tag.
    Tag(String),
}

impl Scope {
    pub(super) fn has(&self, entry: &Entry) -> bool {
        match self {
            Scope::Prefix(prefix) => entry.key().starts_with(prefix),
            Scope::Tag(tag) => entry.tags().any(|own| own == tag),
        }
    }

    /// Returns what all keys of its entries begin with.
    pub(super) fn prefix(&self) -> &str {
        match self {
            Scope::Prefix(prefix) => prefix,
            Scope::Tag(_) => "",
        }
    }
}
