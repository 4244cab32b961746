// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

pub mod cli;
pub mod clocks;
pub mod filesystem;
pub mod http;
pub mod io;
pub mod random;
pub mod sockets;
