// SPDX-License-Identifier: Apache-2.0
//! The tree, `./dev`, and simulated networks.

mod dev;
mod file_imports;
mod interfaces;
mod promises;
mod prose;
mod scale;
mod sizes;
mod tidy;
mod tutorial;
mod world;
