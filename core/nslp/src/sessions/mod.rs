// SPDX-License-Identifier: Apache-2.0
//! What SETUPs installed along paths: leases, with the previous and the next node of each.

mod checks;
mod ended;
mod ids;
mod lease;
mod leases;
mod questions;
mod shares;
mod state;
mod tears;
mod withdrawn;

pub(crate) use ids::SessionIds;
pub(crate) use lease::{Installed, Lease, LeaseId, Left, Text};
pub(crate) use leases::Leases;
pub(crate) use questions::{doubt, on_question, question};
pub(crate) use state::Sessions;
pub(crate) use tears::{answered_late, end_lease, leave, leave_return_path, let_go, lose_lease, on_tear, withdraw};
