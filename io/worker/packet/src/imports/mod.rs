// SPDX-License-Identifier: Apache-2.0
//! Host calls: what a module may ask of the node (`wit/packet-abi.md`).

mod call;
mod channel;
mod clock;
mod control;
mod counter;
mod find;
mod hash;
mod inject;
mod kv;
mod log;
mod messages;
mod node;
mod property;
mod random;
mod sip;
mod state;
mod timer;

use wasmtime::Linker;

use super::host::Host;

/// Defines all host calls.
///
/// # Errors
/// A name is defined twice.
pub fn add_to_linker(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    log::add(linker)?;
    clock::add(linker)?;
    random::add(linker)?;
    property::add(linker)?;
    counter::add(linker)?;
    kv::add(linker)?;
    messages::add(linker)?;
    control::add(linker)?;
    channel::add(linker)?;
    node::add(linker)?;
    state::add(linker)?;
    timer::add(linker)?;
    find::add(linker)?;
    sip::add(linker)?;
    hash::add(linker)?;
    inject::add(linker)
}

/// Returns the block that a host call belongs to, if it is one that a node may do without.
pub fn block_of(name: &str) -> Option<&'static str> {
    match name {
        "find" | "patterns_open" | "patterns_find" | "patterns_close" => Some("match"),
        "sip_parse" => Some("sip"),
        "hash" => Some("hash"),
        "channel_publish" => Some("channel"),
        "state_write" | "state_read" => Some("state"),
        "control_receive" | "control_notify" => Some("control"),
        _ => None,
    }
}
