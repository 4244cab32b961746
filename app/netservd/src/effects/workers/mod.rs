// SPDX-License-Identifier: Apache-2.0
//! Workers: how they start and end, and what is said between them and the node.

pub mod ending;
pub mod launches;
pub mod life;
mod load;
pub mod log_budget;
pub mod outbox;
mod watch;
