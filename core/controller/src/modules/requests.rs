// SPDX-License-Identifier: Apache-2.0
//! Requests for modules, and who gives way to others.

use netserv_model::limits::REQUESTS_PENDING_MAX;
use netserv_model::request::{Remove, Setup};
use netserv_model::{ModuleName, Nonce, Refusal, RefusalKind, SessionId, UserId, share};

use crate::cx::Cx;
use crate::cx::request::{Key, Origin, PendingAnswer};
use crate::modules::Modules;
use crate::modules::checks::check_setup;
use crate::modules::dry_run::answer_dry_run;
use crate::modules::lifecycle::{advance, fail_operation, uninstall};
use crate::modules::sessions::leave_module;
use crate::tenants::operation::Stage;
use crate::tenants::tenant::{Entry, Leave, Removal, Task, Tenant, Waiter};
use crate::users::admission::Freshness;

/// Returns what a SETUP asks for that was made then.
pub(crate) fn setup_task(mut setup: Box<Setup>, time: Freshness) -> Task {
    match time {
        Freshness::Fresh => Task::Setup(setup),
        Freshness::Late { left } => {
            setup.ttl = left;
            Task::Setup(setup)
        }
        Freshness::Repeated => Task::Repeat,
    }
}

/// Returns what a REMOVE asks for that was made then.
pub(crate) fn remove_task(remove: &Remove, session: SessionId, nonce: Nonce, time: Freshness) -> Task {
    let leave = if remove.force { Leave::AtOnce } else { Leave::Drain };
    // What another node owns from here on goes whoever holds it.
    let session = (!remove.all && remove.epoch.is_none()).then_some(session);
    match time {
        Freshness::Repeated => Task::RemoveAgain(nonce),
        Freshness::Fresh | Freshness::Late { .. } => Task::Remove(Removal { leave, epoch: remove.epoch, session }),
    }
}

/// Takes what a request asks for, or answers what it would do.
pub(crate) fn take_task(
    cx: &mut Cx,
    modules: &mut Modules,
    key: &Key,
    ticket: PendingAnswer,
    origin: Origin,
    task: Task,
    dry_run: bool,
) {
    if let Task::Setup(setup) = &task
        && let Err(refusal) = check_setup(cx, modules, key, setup)
    {
        return cx.refuse(ticket, refusal);
    }
    if dry_run && !matches!(&task, Task::Setup(setup) if setup.prepare) {
        return answer_dry_run(cx, &modules.tenants, &modules.epochs, key, ticket, origin, &task);
    }
    enqueue(cx, modules, key, Waiter { ticket, origin, task });
}

/// Takes a request for a module; it waits for those before it.
fn enqueue(cx: &mut Cx, modules: &mut Modules, key: &Key, waiter: Waiter) {
    if cx.in_flight() > REQUESTS_PENDING_MAX && !make_way(cx, modules, &key.0) {
        let detail = format!("the node works on {REQUESTS_PENDING_MAX} requests, and on none of others for longer");
        return cx.refuse(waiter.ticket, Refusal::new(RefusalKind::QuotaExceeded, detail));
    }
    modules.tenants.entry_or_new(key).waiting.push_back(waiter);
    advance(cx, modules, key);
}

/// Makes room for a user's request where as many are under way as there may be: the slowest SETUP that waits for its package is
/// refused, of the user with the most requests under way, unless this is the user who asks. Strangers together give way to a user of the
/// configuration who has fewer. Returns whether there is room.
fn make_way(cx: &mut Cx, modules: &mut Modules, user: &UserId) -> bool {
    let count = |tenant: &Tenant| tenant.modules.values().map(Entry::requests).sum::<usize>();
    let own = modules.tenants.get(user).map_or(0, count);
    let counts = modules.tenants.iter().map(|(user, tenant)| (user, count(tenant)));
    // Whoever may delegate makes as many strangers as it likes: they are one to the users of the configuration.
    let is_named = |user: &UserId| cx.policy.users.contains_key(user);
    let strangers =
        || modules.tenants.iter().filter(|(user, _)| !is_named(user)).map(|(user, tenant)| (user, count(tenant)));
    let all_strangers: usize = strangers().map(|(_, count)| count).sum();
    let of_strangers =
        || strangers().max_by_key(|(_, count)| *count).filter(|_| is_named(user) && own + 1 < all_strangers);
    let Some((greedy, most)) = share::greediest(counts, own).or_else(of_strangers) else { return false };
    let greedy = greedy.clone();
    let slow = |(name, entry): (&ModuleName, &Entry)| {
        let operation = entry.operation.as_ref()?;
        let waits = matches!(operation.stage, Stage::Fetching(_) | Stage::Composing(..));
        operation.ticket.as_ref().filter(|_| waits).map(|ticket| (ticket.received, name.clone()))
    };
    let slowest = modules.tenants.get(&greedy).and_then(|tenant| tenant.modules.iter().filter_map(slow).min());
    let Some((_, module)) = slowest else { return false };
    cx.counters.displaced += 1;
    let detail = format!(
        "the node works on {REQUESTS_PENDING_MAX} requests, of which {most} are the user's: the slowest gives way"
    );
    fail_operation(cx, modules, &(greedy, module), Refusal::new(RefusalKind::QuotaExceeded, detail));
    true
}

/// Ends the session of the SETUP with a nonce. Returns whether there was anything.
pub(crate) fn withdraw(cx: &mut Cx, modules: &mut Modules, key: &Key, nonce: Nonce) -> bool {
    let from_it = |origin: Origin| origin.nonce == Some(nonce);
    let under_way = modules.tenants.operation(key).is_some_and(|operation| from_it(operation.origin));
    let installed = modules.tenants.active(key).is_some_and(|active| active.session_by(nonce).is_some());
    if under_way || installed {
        // The path may come back.
        modules.nonces.undo(&key.0, nonce);
    }
    if under_way {
        let detail = "the path does not lead here any more";
        fail_operation(cx, modules, key, Refusal::new(RefusalKind::NotInstalled, detail));
    }
    if installed {
        cx.counters.leases_withdrawn += 1;
        if !leave_module(cx, &mut modules.tenants, key, |session| session.record.nonce == Some(nonce)) {
            uninstall(cx, modules, key, Leave::Drain);
        }
        advance(cx, modules, key);
    }
    under_way || installed
}
