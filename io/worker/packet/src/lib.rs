// SPDX-License-Identifier: Apache-2.0
//! Packet modules: core WebAssembly modules that see batches of packets (`wit/packet-abi.md`), on the packet thread.

pub mod carried;
pub mod chain;
pub mod engine;
pub mod guest;
pub mod host;
pub mod imports;
pub mod instance;
pub mod limits;
mod sys;
pub mod timers;
