// SPDX-License-Identifier: Apache-2.0
//! `netserv:cache/entries`, `unread`, `read` and `store`.
//!
//! What may wait for the disk is done on threads for that: the first look through the file, reading ahead, each write.

mod body;
mod entries;
mod first;
mod found;
mod sink;
#[cfg(test)]
mod tests;
mod wit;

use wasmtime::component::{HasSelf, Linker};

pub use body::{Body, Reading};

use crate::state::ServerState;

/// Adds the interfaces to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::first::store::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)?;
    wit::entries::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)?;
    wit::unread::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)?;
    wit::read::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}
