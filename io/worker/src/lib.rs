// SPDX-License-Identifier: Apache-2.0
//! The processes inside a service container that run packet modules: `netserv-worker` on Wasmtime, and `netserv-jvm` on a JVM, which has none
//! of Wasmtime in it.
//!
//! Only these programs use this library. `serve` runs modules on a container's packet ring, `compile` makes the code that `serve` loads, `test`
//! runs a module against captures. What modules see is in `wit/packet-abi.md`. The engines are crates of their own: `netserv-worker-packet`,
//! `netserv-worker-server` and `netserv-worker-jvm`.
//!
//! Invariant: one thread has the ring; nothing here waits for the node but the one `poll` in each `serve`.

pub mod serve;
pub mod tools;
