// SPDX-License-Identifier: Apache-2.0
//! The commands, a file for each group.

pub mod agent;
pub mod candidates;
pub mod generate;
pub mod grant;
pub mod key;
pub mod module;
pub mod node;
pub mod probe;
pub mod prove;
pub mod relocate;
pub mod remove;
pub mod revoke;
pub mod setup;
pub mod state;
pub mod tell;
pub mod trace;
pub mod watch;
