// SPDX-License-Identifier: Apache-2.0
//! The command line as its users run it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod faults;
mod flavours;
mod generated;
mod keys;
mod mistakes;
mod modules;
mod node;
mod push;
mod requests;
mod revoke;
mod run;
mod support;
mod templates;
mod trace;
mod tutorial;
mod versions;
mod watch;
