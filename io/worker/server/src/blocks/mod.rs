// SPDX-License-Identifier: Apache-2.0
//! The node's building blocks as components import them: one file per block, `wit/deps/netserv-*` for what they say.
//!
//! A block adds its interface to the linker, and implements the interface's functions on [`ServerState`], where it has
//! its own part of [`BlockState`](state::BlockState). What instances of a module share is in [`Module`](super::module::Module).

pub mod cache;
mod channel;
mod coded;
mod compress;
mod connection;
mod control;
mod crypto;
mod hash;
mod http;
mod kv;
mod log;
mod media;
mod messages;
mod metrics;
mod node;
mod properties;
mod search;
mod sip;
pub mod state;
mod tcp;
#[cfg(test)]
pub(super) mod testing;
mod udp;

use std::collections::BTreeSet;

pub use http::CHAIN_INTERFACE;
use wasmtime::component::Linker;

use super::state::ServerState;

/// Adds the interfaces of a block to a linker.
type Add = fn(&mut Linker<ServerState>) -> wasmtime::Result<()>;

/// A block that components import.
struct Block {
    /// The package of its interfaces, `netserv:PACKAGE/…`.
    package: &'static str,
    /// The block's own name.
    name: &'static str,
    /// What adds its interfaces.
    add: Add,
}

const BLOCKS: &[Block] = &[
    Block { package: "cache", name: "cache", add: cache::add_to_linker },
    Block { package: "channel", name: "channel", add: channel::add_to_linker },
    Block { package: "compress", name: "compress", add: compress::add_to_linker },
    Block { package: "connection", name: "connection", add: connection::add_to_linker },
    Block { package: "control", name: "control", add: control::add_to_linker },
    Block { package: "crypto", name: "crypto", add: crypto::add_to_linker },
    Block { package: "hash", name: "hash", add: hash::add_to_linker },
    Block { package: "http", name: "http", add: http::add_to_linker },
    Block { package: "kv", name: "kv", add: kv::add_to_linker },
    Block { package: "log", name: "log", add: log::add_to_linker },
    Block { package: "media", name: "media", add: media::add_to_linker },
    Block { package: "messages", name: "messages", add: messages::add_to_linker },
    Block { package: "metrics", name: "metrics", add: metrics::add_to_linker },
    Block { package: "node", name: "node", add: node::add_to_linker },
    Block { package: "properties", name: "properties", add: properties::add_to_linker },
    Block { package: "search", name: "match", add: search::add_to_linker },
    Block { package: "sip", name: "sip", add: sip::add_to_linker },
    Block { package: "state", name: "state", add: nothing },
    Block { package: "tcp", name: "tcp", add: tcp::add_to_linker },
    Block { package: "udp", name: "udp", add: udp::add_to_linker },
];
/// Blocks that every component has, as every packet module does.
const OF_EVERYBODY: [&str; 4] = ["connection", "log", "node", "properties"];
/// Blocks whose calls can say that the node does not offer them, so that every component may import them.
const OR_UNAVAILABLE: [&str; 1] = ["media"];

/// Adds the interfaces of `blocks`, and of those that each component has.
///
/// # Errors
/// An interface is defined twice.
pub fn add_to_linker(linker: &mut Linker<ServerState>, blocks: &BTreeSet<String>) -> wasmtime::Result<()> {
    for block in BLOCKS.iter().filter(|block| block.is_in(blocks)) {
        (block.add)(linker)?;
    }
    Ok(())
}

/// Returns whether a module that may use `blocks` gets the interfaces of `netserv:PACKAGE`.
pub fn is_linked(package: &str, blocks: &BTreeSet<String>) -> bool {
    BLOCKS.iter().any(|block| block.package == package && block.is_in(blocks))
}

/// Returns the names of all blocks that nodes can have.
pub fn all() -> BTreeSet<String> {
    BLOCKS.iter().map(|block| block.name.to_owned()).collect()
}

/// Adds nothing: components export what this block calls.
fn nothing(_: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    Ok(())
}

impl Block {
    fn is_in(&self, blocks: &BTreeSet<String>) -> bool {
        blocks.contains(self.name) || OF_EVERYBODY.contains(&self.name) || OR_UNAVAILABLE.contains(&self.name)
    }
}
