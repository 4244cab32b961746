// SPDX-License-Identifier: Apache-2.0
//! The agent as a process of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agent_numbers;
mod allowed;
mod common;
mod killed;
mod restarted;
mod unread;
