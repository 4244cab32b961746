// SPDX-License-Identifier: Apache-2.0
//! Modules whose state moves between nodes: what each begins with, and where the state of each is to be
//! written.
//!
//! What a module begins with is in kv before any of its code runs; if it is not installed after all, what was there before is
//! put back, also when it has run already: what it needs beside its worker may be refused then.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_model::{ModuleName, Refusal};

use super::kv::SharedKv;
use super::state::{self, Said};
use crate::failure;
use crate::storage::journal::Entries;

/// What is known of modules whose state moves, by their places.
#[derive(Debug, Default)]
pub struct Moves {
    owners: BTreeMap<ModuleSlot, Owner>,
    /// Those that run: until a module does, one before it may be in its place.
    running: BTreeSet<ModuleSlot>,
    /// Where to write the states of those that were asked.
    asked: BTreeMap<ModuleSlot, File>,
    /// What was in kv before modules that were loaded with a state and are not in force yet.
    before: BTreeMap<ModuleSlot, Entries>,
}

/// Whose state is whose.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The module.
    pub name: ModuleName,
    /// The version of its state.
    pub schema: u32,
    /// Its entries.
    pub kv: SharedKv,
}

impl Moves {
    /// Takes note of a module that is about to be loaded, and gives it the state that came with it, if one
    /// did. Returns what its parts are told of that. `is_there` says whether it has a part that sees packets, and one that takes
    /// connections.
    ///
    /// # Errors
    /// The state cannot be taken; kv is as before then.
    pub fn begin(
        &mut self,
        slot: ModuleSlot,
        owner: Owner,
        state: Option<File>,
        limits: &ModuleLimits,
        is_there: (bool, bool),
    ) -> Result<Said, Refusal> {
        // What is in this place now stays, whatever becomes of this one.
        self.before.remove(&slot);
        let given = state.map(|file| give(&file, &owner, limits, is_there)).transpose();
        self.owners.insert(slot, owner);
        self.running.remove(&slot);
        let Some((before, said)) = given? else { return Ok(Said::default()) };
        self.before.insert(slot, before);
        Ok(said)
    }

    /// Takes note that a module runs with what it began with.
    pub fn loaded(&mut self, slot: ModuleSlot) {
        self.running.insert(slot);
    }

    /// Takes note that a module is in force with what it began with.
    pub fn confirm(&mut self, slot: ModuleSlot) {
        self.before.remove(&slot);
    }

    /// Forgets a module, and puts back what kv held before it if it never was in force.
    /// Returns what there is to say about that.
    pub fn end(&mut self, slot: ModuleSlot) -> Option<String> {
        self.asked.remove(&slot);
        self.running.remove(&slot);
        let owner = self.owners.remove(&slot);
        let (before, owner) = self.before.remove(&slot).zip(owner)?;
        let put_back = owner.kv.lock().put_back(before);
        put_back.err().map(|_| "what the module kept before could not be put back: its user's room is full".to_owned())
    }

    /// Takes note of where to write a module's state. Returns whether the module runs.
    pub fn ask(&mut self, slot: ModuleSlot, file: File) -> bool {
        let is_asked = self.running.contains(&slot) && self.owners.contains_key(&slot);
        if is_asked {
            self.asked.insert(slot, file);
        }
        is_asked
    }

    /// Returns where to write a module's state; nothing if it was forgotten since it was asked.
    pub fn answer(&mut self, slot: ModuleSlot) -> Option<(File, Owner)> {
        self.asked.remove(&slot).zip(self.owners.get(&slot).cloned())
    }
}

/// Gives a module the entries of its state. Returns those that were there, and what its parts are told.
fn give(
    file: &File,
    owner: &Owner,
    limits: &ModuleLimits,
    (sees_packets, serves): (bool, bool),
) -> Result<(Entries, Said), Refusal> {
    let (entries, said) = state::read(file, &owner.name, owner.schema)?;
    for (part, said, is_there) in [("packet", &said.packet, sees_packets), ("server", &said.server, serves)] {
        if said.is_some() && !is_there {
            return Err(failure::no_carrier(part));
        }
    }
    Ok((state::give(&owner.kv, entries, limits)?, said))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: while a module is loaded, nobody is asked in its place, where another may still run.
    #[test]
    fn a_module_is_asked_once_it_runs() {
        let (mut moves, slot) = (Moves::default(), ModuleSlot(3));
        let file = || tempfile::tempfile().unwrap();
        let owner = || Owner { name: "example.org/m".parse().unwrap(), schema: 1, kv: SharedKv::default() };
        for _ in 0..2 {
            moves.begin(slot, owner(), None, &ModuleLimits::default(), (true, false)).unwrap();
            assert!(!moves.ask(slot, file()));
            moves.loaded(slot);
            assert!(moves.ask(slot, file()) && moves.answer(slot).is_some());
        }
        assert_eq!(moves.end(slot), None);
        assert!(!moves.ask(slot, file()));
    }
}
