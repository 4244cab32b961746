// SPDX-License-Identifier: Apache-2.0
//! What `wit-bindgen` makes of `wit/`. `modules/sdk/bindings` says of which worlds, and writes what is in the folder; nothing there
//! is changed by hand.

/// The export of a module that answers HTTP requests.
#[rustfmt::skip]
pub mod http;
/// Everything that a module may import.
#[rustfmt::skip]
pub mod imports;
/// The import of a module that stands before another one of its service; what it exports is as in [`http`].
#[rustfmt::skip]
pub mod middleware;
/// The export of a program, alone or beside what answers requests.
#[rustfmt::skip]
pub mod run;
/// The export of a module that carries its state to other nodes.
#[rustfmt::skip]
pub mod state;
/// The export of a module that handles TCP connections.
#[rustfmt::skip]
pub mod tcp;
