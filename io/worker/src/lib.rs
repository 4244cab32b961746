// SPDX-License-Identifier: Apache-2.0
//! The processes inside a service container that run packet modules: on Wasmtime, and, in [`jvm`], on a JVM.
//!
//! Only the binaries use this library: `netserv-worker` and `netserv-jvm`, which has none of Wasmtime in it. `serve`
//! runs modules on a container's packet ring, `compile` makes the code that `serve` loads, `test` runs a module against
//! captures. What modules see is in `wit/packet-abi.md`.
//!
//! Invariant: one thread has the ring; nothing here waits for the node but the one `poll` in each `serve`.

pub mod bench_command;
pub mod birth;
pub mod chain;
pub mod clock;
pub mod compile;
pub mod compute;
pub mod control;
pub mod counters;
pub mod engine;
pub mod error;
pub mod guest;
pub mod host;
pub mod http_bench;
pub mod http_test;
pub mod imports;
pub mod instance;
pub mod jvm;
pub mod kv;
pub mod limits;
pub mod log;
pub mod media;
pub mod messages;
pub mod packet_bench;
pub mod parts;
pub mod pcap;
pub mod pcap_test;
pub mod ring_memory;
pub mod serve;
pub mod server;
pub mod storage;
mod sys;
pub mod tcp_bench;
pub mod tcp_test;
pub mod test_command;
pub mod timers;
pub mod wasm_test;
