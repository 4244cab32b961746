// SPDX-License-Identifier: Apache-2.0
//! What a request would do.

use netserv_model::request::Outcome;
use netserv_model::{Refusal, RefusalKind};

use crate::cx::Cx;
use crate::cx::request::{Key, Origin, PendingAnswer, not_installed};
use crate::modules::sessions::check_held;
use crate::moves::epochs::{Epochs, check_handed_over};
use crate::tenants::Tenants;
use crate::tenants::operation::Change;
use crate::tenants::tenant::{Leave, Removal, Task};
use crate::tenants::wishes::Standing;

/// Answers what would be done; everything that can be checked without effect is checked.
pub(crate) fn answer_dry_run(
    cx: &mut Cx,
    tenants: &Tenants,
    epochs: &Epochs,
    key: &Key,
    ticket: PendingAnswer,
    origin: Origin,
    task: &Task,
) {
    let outcome = would_do(tenants, epochs, key, origin, task);
    cx.answer(ticket, outcome);
}

/// Returns what would be done.
pub(crate) fn would_do(tenants: &Tenants, epochs: &Epochs, key: &Key, origin: Origin, task: &Task) -> Outcome {
    let entry = tenants.entry(key);
    let active = entry.and_then(|entry| entry.active.as_ref());
    let action = match (task, active) {
        (Task::Setup(_), None) => "install",
        (Task::Setup(setup), Some(_)) if epochs.brings_state(tenants, key, setup) => "replace",
        (Task::Setup(setup), Some(active)) => match active.standing(origin, setup) {
            Standing::Older(refusal) => return Outcome::Refused(refusal),
            Standing::Overruled => "refresh",
            Standing::InForce | Standing::Newest => match active.change_by(origin.session, setup) {
                Change::Lease => "refresh",
                Change::Joins => "install",
                Change::Filters | Change::Reload => "replace",
            },
        },
        (Task::Remove(removal), Some(_)) => {
            let held = removal.session.map_or(Ok(()), |session| check_held(tenants, key, session));
            match held.and_then(|()| check_handed_over(tenants, key, removal.epoch)) {
                Ok(()) => "remove",
                Err(refusal) => return Outcome::Refused(refusal),
            }
        }
        (Task::Repeat, _) => {
            return Outcome::Refused(Refusal::new(RefusalKind::Replayed, "this request is in force"));
        }
        (Task::Remove(Removal { leave: Leave::AtOnce, .. }), None) if tenants.drains(key) => "remove",
        (Task::Remove(_), None) | (Task::RemoveAgain(_), _) => return Outcome::Refused(not_installed(key)),
    };
    Outcome::WouldDo { action: action.to_owned() }
}
