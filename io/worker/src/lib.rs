// SPDX-License-Identifier: Apache-2.0
//! The process inside a service container that runs packet modules on Wasmtime.
//!
//! Only the binary uses this library. `serve` runs modules on a container's packet ring, `compile` makes the code that
//! `serve` loads, `test` runs a module against captures. What modules see is in `wit/packet-abi.md`.
//!
//! Invariant: one thread; nothing here waits for the node but the one `poll` in [`serve`].

pub mod birth;
pub mod chain;
pub mod clock;
pub mod compile;
pub mod control;
pub mod counters;
pub mod engine;
pub mod error;
pub mod guest;
pub mod host;
pub mod imports;
pub mod instance;
pub mod jvm;
pub mod kv;
pub mod limits;
pub mod log;
pub mod pcap;
pub mod pcap_test;
pub mod ring_memory;
pub mod serve;
mod sys;
pub mod timers;
