// SPDX-License-Identifier: Apache-2.0
//! The processes inside a service container that run packet modules: on Wasmtime, and, in [`jvm`], on a JVM.
//!
//! Only the binaries use this library: `netserv-worker` and `netserv-jvm`, which has none of Wasmtime in it. `serve`
//! runs modules on a container's packet ring, `compile` makes the code that `serve` loads, `test` runs a module against
//! captures. What modules see is in `wit/packet-abi.md`.
//!
//! Invariant: one thread has the ring; nothing here waits for the node but the one `poll` in each `serve`.

pub mod limits;
pub mod serve;
pub mod server;
mod sys;
pub mod tools;
