// SPDX-License-Identifier: Apache-2.0
//! The tests of the worker that runs bundles on a JVM, with a stand-in for the Java side.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod bench;
mod control;
mod ends;
mod host;
mod lanes;
mod media;
mod memory;
mod nonsense;
mod properties;
mod serve;
mod state;
mod support;

#[path = "../node/mod.rs"]
mod node;
#[path = "../shared/mod.rs"]
mod shared;
