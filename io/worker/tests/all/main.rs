// SPDX-License-Identifier: Apache-2.0
//! The worker's tests, in one binary because linking Wasmtime takes long.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod bench;
mod blocks;
mod chain;
mod compute_calls;
mod guards;
mod host_calls;
mod lanes;
mod mapped;
mod modules;
mod moves;
#[path = "../node/mod.rs"]
mod node;
mod parallel;
mod refusals;
mod samples;
mod serve;
mod server;
#[path = "../shared/mod.rs"]
mod shared;
mod state;
mod support;
