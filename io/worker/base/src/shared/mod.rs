// SPDX-License-Identifier: Apache-2.0
//! What the parts of a module have alike: kv state, messages and the channel, which they share, control messages, counters and
//! log lines.

pub mod channel;
pub mod control;
pub mod counters;
pub mod kv;
pub mod log;
pub mod messages;
pub mod moves;
pub mod state;
