// SPDX-License-Identifier: Apache-2.0
//! The HTTP APIs of `netservd` and `netserv-agent`: the shapes of what is said, and a client.

mod agent;
mod client;
mod node;

pub use agent::*;
pub use client::*;
pub use node::*;
