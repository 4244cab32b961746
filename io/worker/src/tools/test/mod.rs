// SPDX-License-Identifier: Apache-2.0
//! Recorded tests of modules, without a node and without root.

pub mod bundle;
pub mod case;
pub mod http;
pub mod jobs;
pub mod tcp;
pub mod wasm;
