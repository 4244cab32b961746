// SPDX-License-Identifier: Apache-2.0
//! The node's building blocks as components import them: one file per block, `wit/deps/netserv-*` for what they say.
//!
//! A block adds its interface to the linker, and implements the interface's functions on [`ServerState`], where it has
//! its own part of [`BlockState`]. What instances of a module share is in [`Module`].

use std::collections::BTreeSet;
use std::sync::Arc;

use wasmtime::component::Linker;

use super::module::Module;
use super::state::ServerState;

/// Adds the interfaces of a block to a linker.
type Add = fn(&mut Linker<ServerState>) -> wasmtime::Result<()>;

/// The blocks that components import by an interface `netserv:NAME/…`, each with what adds it.
const BLOCKS: &[(&str, Add)] = &[];

/// What the building blocks keep for one instance.
#[derive(Default)]
pub struct BlockState {}

impl BlockState {
    /// Returns the state of an instance that has not done anything.
    pub fn new(_module: &Arc<Module>) -> BlockState {
        BlockState {}
    }
}

/// Adds the interfaces of `blocks`, and of those that each component has.
///
/// # Errors
/// An interface is defined twice.
pub fn add_to_linker(linker: &mut Linker<ServerState>, blocks: &BTreeSet<String>) -> wasmtime::Result<()> {
    for (name, add) in BLOCKS {
        if is_linked(name, blocks) {
            add(linker)?;
        }
    }
    Ok(())
}

/// Returns whether a module that may use `blocks` gets the interfaces of `netserv:NAME`.
pub fn is_linked(name: &str, blocks: &BTreeSet<String>) -> bool {
    BLOCKS.iter().any(|(known, _)| *known == name) && blocks.contains(name)
}

/// Returns the names of all blocks that nodes can have.
pub fn all() -> BTreeSet<String> {
    BLOCKS.iter().map(|(name, _)| (*name).to_owned()).collect()
}
