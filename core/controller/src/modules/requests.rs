// SPDX-License-Identifier: Apache-2.0
//! Requests for modules, and who gives way to others.

use netserv_model::limits::REQUESTS_PENDING_MAX;
use netserv_model::{ModuleName, Refusal, RefusalKind, UserId, share};

use crate::cx::Cx;
use crate::cx::request::{Key, Origin, PendingAnswer};
use crate::modules::Modules;
use crate::modules::checks::check_setup;
use crate::modules::dry_run::answer_dry_run;
use crate::modules::lifecycle::{advance, fail_operation};
use crate::tenants::operation::Stage;
use crate::tenants::tenant::{Entry, Task, Tenant, Waiter};

pub(crate) fn take_task(
    cx: &mut Cx,
    m: &mut Modules,
    key: &Key,
    ticket: PendingAnswer,
    origin: Origin,
    task: Task,
    dry_run: bool,
) {
    if let Task::Setup(setup) = &task
        && let Err(refusal) = check_setup(cx, m, key, setup)
    {
        return cx.refuse(ticket, refusal);
    }
    if dry_run && !matches!(&task, Task::Setup(setup) if setup.prepare) {
        return answer_dry_run(cx, &m.tenants, &m.epochs, key, ticket, origin, &task);
    }
    enqueue(cx, m, key, Waiter { ticket, origin, task });
}

/// Takes a request for a module; it waits for those before it.
fn enqueue(cx: &mut Cx, m: &mut Modules, key: &Key, waiter: Waiter) {
    if cx.in_flight() > REQUESTS_PENDING_MAX && !make_way(cx, m, &key.0) {
        let detail = format!("the node works on {REQUESTS_PENDING_MAX} requests, and on none of others for longer");
        return cx.refuse(waiter.ticket, Refusal::new(RefusalKind::QuotaExceeded, detail));
    }
    m.tenants.entry_or_new(key).waiting.push_back(waiter);
    advance(cx, m, key);
}

/// Makes room for a user's request where as many are under way as there may be: the slowest SETUP that waits for its package is
/// refused, of the user with the most requests under way, unless this is the user who asks. Returns whether there is room.
fn make_way(cx: &mut Cx, m: &mut Modules, user: &UserId) -> bool {
    let count = |tenant: &Tenant| tenant.modules.values().map(Entry::requests).sum::<usize>();
    let own = m.tenants.get(user).map_or(0, count);
    let counts = m.tenants.iter().map(|(user, tenant)| (user, count(tenant)));
    let Some((greedy, most)) = share::greediest(counts, own) else { return false };
    let greedy = greedy.clone();
    let slow = |(name, entry): (&ModuleName, &Entry)| {
        let operation = entry.operation.as_ref()?;
        let waits = matches!(operation.stage, Stage::Fetching(_) | Stage::Composing(..));
        operation.ticket.as_ref().filter(|_| waits).map(|ticket| (ticket.received, name.clone()))
    };
    let slowest = m.tenants.get(&greedy).and_then(|tenant| tenant.modules.iter().filter_map(slow).min());
    let Some((_, module)) = slowest else { return false };
    cx.counters.displaced += 1;
    let detail = format!(
        "the node works on {REQUESTS_PENDING_MAX} requests, of which {most} are the user's: the slowest gives way"
    );
    fail_operation(cx, m, &(greedy, module), Refusal::new(RefusalKind::QuotaExceeded, detail));
    true
}
