// SPDX-License-Identifier: Apache-2.0
//! The life of a module: requests for it one after the other, the way into its worker, and its end. Services live and end with their
//! parts, so all of this meets itself again.

use std::mem;

use netserv_model::effect::{Command, Notice};
use netserv_model::manifest::Manifest;
use netserv_model::notify::NotifyEvent;
use netserv_model::request::{Outcome, Setup};
use netserv_model::{Flavour, ModuleName, Refusal, RefusalKind, UserId, WorkerId};

use crate::control::told::remember_told;
use crate::cx::Cx;
use crate::cx::jobs::{drop_job, fetch, forget_record};
use crate::cx::request::{Key, Origin, PendingAnswer, not_installed};
use crate::cx::timers::Timer;
use crate::limits::BACKOFF_MAX;
use crate::modules::Modules;
use crate::modules::answers::{note_removed, refuse_setup, remove_again, repeat};
use crate::modules::checks::{check_ports, check_setup, granted_ttl};
use crate::modules::ending::{drop_candidate, drop_unused, fail_swap, retire};
use crate::modules::resuming::settle_module;
use crate::modules::sessions::{check_held, check_room_for, join_session, leave_module, tell_requesters, weigh};
use crate::moves::epochs::check_handed_over;
use crate::moves::floating::hold_floating;
use crate::policy::asked::Asked;
use crate::policy::package::check_manifest;
use crate::rules::names::remove_rules;
use crate::services::composing::{begin_active, compose_anew, first_stage};
use crate::services::order::order_packets;
use crate::services::parts::{Unresolved, compose_parts, is_settled_service, resolve};
use crate::tenants::active::{Active, Run, can_drain};
use crate::tenants::operation::{Candidate, Change, Operation, Stage};
use crate::tenants::rule::ModuleRule;
use crate::tenants::session::Session;
use crate::tenants::tenant::{Entry, Leave, Removal, Task, Tenant, Waiter};
use crate::tenants::worker::{Phase, Role, SlotHolder};
use crate::workers::draining::{drain_module, end_all_draining, make_room};
use crate::workers::start::{LoadWhat, load_active, load_into, start_worker};

/// Goes on with a module's requests unless one is under way, and drops what nobody needs any more.
pub(crate) fn advance(cx: &mut Cx, modules: &mut Modules, key: &Key) {
    settle_module(cx, modules, key);
    while let Some(Waiter { ticket, origin, task }) = modules.tenants.next_waiter(key) {
        match task {
            Task::Setup(setup) => begin_setup(cx, modules, key, ticket, origin, *setup),
            Task::Repeat => repeat(cx, &modules.tenants, key, ticket, origin),
            Task::Remove(removal) => remove_module(cx, modules, key, ticket, origin, removal),
            Task::RemoveAgain(nonce) => remove_again(cx, &modules.nonces, key, ticket, nonce),
        }
    }
    expire_if_due(cx, modules, key);
    drop_unused(cx, &mut modules.tenants, key);
}

/// Starts a SETUP: it joins what is installed, or has its package fetched.
pub(crate) fn begin_setup(
    cx: &mut Cx,
    modules: &mut Modules,
    key: &Key,
    ticket: PendingAnswer,
    mut origin: Origin,
    mut setup: Setup,
) {
    if let Err(refusal) = check_setup(cx, modules, key, &setup) {
        return refuse_setup(cx, &mut modules.tenants, key, ticket, origin, &refusal);
    }
    setup.ttl = granted_ttl(cx, &modules.tenants, key, setup.ttl);
    let brings_state = modules.epochs.brings_state(&modules.tenants, key, &setup);
    // One of an epoch that is in force came with the SETUP that began it.
    setup.state = setup.state.filter(|_| brings_state && !setup.prepare);
    if let Err(refusal) = check_room_for(&modules.tenants, key, origin.session) {
        return refuse_setup(cx, &mut modules.tenants, key, ticket, origin, &refusal);
    }
    if let Some(active) = modules.tenants.active_mut(key).filter(|_| !setup.prepare) {
        active.adopt(origin.session, &setup);
    }
    if !brings_state
        && !setup.prepare
        && let Err(refusal) = weigh(cx, &modules.tenants, key, &mut origin, &mut setup)
    {
        return refuse_setup(cx, &mut modules.tenants, key, ticket, origin, &refusal);
    }
    let active = modules.tenants.active_mut(key);
    if let Some(active) = active.as_ref().filter(|_| !brings_state && !setup.prepare) {
        let change = active.change_by(origin.session, &setup);
        if change != Change::Reload {
            return join_session(cx, &mut modules.tenants, &mut modules.buffers, key, ticket, (origin, setup), change);
        }
    }
    let same_code = active.filter(|active| active.record.digest == setup.digest && !brings_state);
    if let Some(code) = same_code.and_then(|active| active.whole_manifest().zip(active.record.flavour)) {
        try_candidate(cx, modules, key, ticket, origin, setup, code);
    } else {
        let job = fetch(cx, key, setup.url.clone(), setup.digest, setup.state.clone());
        let stage = Stage::Fetching(job);
        modules.tenants.entry_or_new(key).operation = Some(Operation { ticket: Some(ticket), origin, setup, stage });
    }
}

fn remove_module(
    cx: &mut Cx,
    modules: &mut Modules,
    key: &Key,
    ticket: PendingAnswer,
    origin: Origin,
    removal: Removal,
) {
    let Removal { leave, epoch, session } = removal;
    if let Err(refusal) = check_handed_over(&modules.tenants, key, epoch) {
        return cx.refuse(ticket, refusal);
    }
    if let Some(session) = session.filter(|_| modules.tenants.active(key).is_some()) {
        if let Err(refusal) = check_held(&modules.tenants, key, session) {
            return cx.refuse(ticket, refusal);
        }
        let ended = modules.tenants.active(key).map(|active| active.ended_by(session)).unwrap_or_default();
        if leave_module(cx, &mut modules.tenants, key, |held| ended.contains(&held.record.session)) {
            note_removed(&mut modules.nonces, key, origin);
            return cx.answer_when_done(&key.0, ticket, Outcome::Removed);
        }
    }
    let drained = leave == Leave::AtOnce && end_all_draining(cx, &mut modules.tenants, key);
    if !uninstall(cx, modules, key, leave) && !drained {
        return cx.refuse(ticket, not_installed(key));
    }
    // From this epoch on another node has it.
    modules.epochs.note(key, epoch.map_or(0, |epoch| epoch.saturating_add(1)), |user| cx.may(user).is_some());
    drop_unused(cx, &mut modules.tenants, key);
    note_removed(&mut modules.nonces, key, origin);
    cx.answer_when_done(&key.0, ticket, Outcome::Removed);
}

/// Checks a package that is there, and has its module wait for its worker.
pub(crate) fn try_candidate(
    cx: &mut Cx,
    modules: &mut Modules,
    key: &Key,
    ticket: PendingAnswer,
    origin: Origin,
    setup: Setup,
    (manifest, flavour): (Manifest, Flavour),
) {
    let user = cx.rights(&key.0);
    let (others, declared) = (modules.tenants.others_than(key, origin.session), manifest.intercept().to_vec());
    let others: Vec<Asked<'_>> = others.iter().map(Asked::of_record).collect();
    let checked = user.and_then(|user| check_manifest(&cx.policy, user, &setup, &others, manifest, flavour));
    let checked = checked.and_then(|(manifest, filters)| {
        check_ports(&modules.tenants, key, &manifest)?;
        let composition = compose_parts(&modules.tenants, key, &manifest)?;
        Ok((manifest, filters, composition))
    });
    let (manifest, filters, composition) = match checked {
        Ok(checked) => checked,
        Err(refusal) => {
            refuse_setup(cx, &mut modules.tenants, key, ticket, origin, &refusal);
            return drop_unused(cx, &mut modules.tenants, key);
        }
    };
    let rules = ModuleRule::all_of(&filters, Some(&manifest));
    let flavour = if composition.is_some() { Flavour::Wasm } else { flavour };
    let candidate = Candidate { manifest, declared, flavour, rules, slot: None, composition };
    let (prepares, loads) =
        (setup.prepare, candidate.composition.as_ref().is_none_or(|parts| !parts.servers.is_empty()));
    if prepares && !loads {
        let stage = Stage::Waiting(candidate);
        modules.tenants.entry_or_new(key).operation = Some(Operation { ticket: Some(ticket), origin, setup, stage });
        return modules.later.push_prepared(key, None);
    }
    let stage = first_stage(cx, &modules.tenants, &mut modules.later, key, candidate);
    modules.tenants.entry_or_new(key).operation = Some(Operation { ticket: Some(ticket), origin, setup, stage });
    load_all_waiting(cx, modules, &key.0);
}

/// Ends the operation under way without a trace of it, and answers with why.
pub(crate) fn fail_operation(cx: &mut Cx, modules: &mut Modules, key: &Key, refusal: Refusal) {
    if fail_swap(&mut modules.tenants, key, &refusal, true) {
        return;
    }
    let Some(operation) = modules.tenants.entry_mut(key).and_then(|entry| entry.operation.take()) else { return };
    match operation.stage {
        Stage::Fetching(job) => drop_job(cx, job),
        Stage::Composing(job, candidate) => {
            drop_job(cx, job);
            drop_candidate(cx, &mut modules.tenants, key, &candidate, None);
        }
        Stage::Waiting(candidate) => drop_candidate(cx, &mut modules.tenants, key, &candidate, None),
        Stage::Loading(candidate) => drop_candidate(cx, &mut modules.tenants, key, &candidate, Some(Run::Loading)),
        Stage::Settling(candidate, _) => drop_candidate(cx, &mut modules.tenants, key, &candidate, Some(Run::Running)),
        Stage::Joining(joining) => remove_rules(cx, key, &joining.rules),
    }
    hold_floating(cx, &mut modules.tenants, &key.0);
    drop_unused(cx, &mut modules.tenants, key);
    match operation.ticket {
        Some(ticket) => refuse_setup(cx, &mut modules.tenants, key, ticket, operation.origin, &refusal),
        None => dissolve(cx, modules, key, refusal),
    }
    check_services(cx, modules, &key.0);
    advance(cx, modules, key);
}

/// Takes an installed module away, for good.
pub(crate) fn uninstall(cx: &mut Cx, modules: &mut Modules, key: &Key, leave: Leave) -> bool {
    let Some(mut active) = modules.tenants.entry_mut(key).and_then(|entry| entry.active.take()) else { return false };
    remember_told(cx, &mut modules.told_before, key, &active.control);
    cx.timers.cancel(&Timer::Thaw(key.clone()));
    modules.buffers.end(cx, key);
    modules.epochs.note(key, active.epoch_min(), |user| cx.may(user).is_some());
    if let Some(state) = active.record.state {
        modules.epochs.note_state(key, active.record.epoch, state);
    }
    hold_floating(cx, &mut modules.tenants, &key.0);
    match leave {
        Leave::Drain if can_drain(&active) => drain_module(cx, &mut modules.tenants, key, &mut active),
        Leave::Drain | Leave::AtOnce => retire(cx, &mut modules.tenants, key, &active),
    }
    forget_record(cx, key);
    order_packets(cx, &mut modules.tenants, &key.0);
    check_services(cx, modules, &key.0);
    if matches!(modules.tenants.stage(key), Some(Stage::Joining(_))) {
        fail_operation(cx, modules, key, not_installed(key));
    }
    true
}

/// Ends the sessions of a module whose leases have ended, and the module with the last of them, unless a request for it is under
/// way, which may renew one.
fn expire_if_due(cx: &mut Cx, modules: &mut Modules, key: &Key) {
    let now = cx.now.instant;
    let Some(entry) = modules.tenants.entry(key) else { return };
    let is_over = |session: &Session| session.lease_end <= now;
    let over =
        entry.active.as_ref().map_or(0, |active| active.sessions.iter().filter(|session| is_over(session)).count());
    let renews = |task: &Task| !matches!(task, Task::Setup(setup) if setup.prepare);
    let is_renewed = entry.operation.as_ref().is_some_and(|operation| !operation.setup.prepare)
        || entry.waiting.iter().any(|waiter| renews(&waiter.task));
    if over > 0 && !is_renewed {
        cx.counters.leases_expired += u64::try_from(over).unwrap_or(u64::MAX);
        let module = entry.active.as_ref().map(|active| active.record.module.clone());
        if !leave_module(cx, &mut modules.tenants, key, is_over) && uninstall(cx, modules, key, Leave::Drain) {
            cx.say_expired(&key.0, module.expect("it was there"));
        }
    }
}

/// Looks at a user's services after something changed: what is not what its parts are is composed anew or removed.
pub(crate) fn check_services(cx: &mut Cx, modules: &mut Modules, user: &UserId) {
    let Some(tenant) = modules.tenants.get(user) else { return };
    let services: Vec<ModuleName> =
        tenant.modules.iter().filter(|(_, entry)| is_settled_service(entry)).map(|(name, _)| name.clone()).collect();
    for name in services {
        check_service(cx, modules, &(user.clone(), name));
    }
}

fn check_service(cx: &mut Cx, modules: &mut Modules, key: &Key) {
    let Some(Entry { active: Some(active), .. }) =
        modules.tenants.entry_mut(key).filter(|entry| is_settled_service(entry))
    else {
        return;
    };
    let (manifest, known) = (active.manifest.clone(), active.composition.clone());
    let Some(manifest) = manifest else { return };
    match (resolve(&modules.tenants, key, &manifest), known) {
        (Ok(composition), Some(known)) if composition.servers == known.servers => {
            if let Some(active) = modules.tenants.active_mut(key) {
                active.composition = Some(composition);
            }
            order_packets(cx, &mut modules.tenants, &key.0);
        }
        (Ok(composition), Some(_)) => {
            compose_anew(cx, &mut modules.tenants, &mut modules.later, key, manifest, composition);
        }
        (Ok(_), None) => {
            cx.timers.cancel(&Timer::Restart(key.clone()));
            compose_active(cx, modules, key);
        }
        (Err(Unresolved::Refused(refusal)), _) => dissolve(cx, modules, key, refusal),
        (Err(Unresolved::NotYet(_)), _) => {}
    }
}

/// Puts an installed service together, which is not in force: after a restart of the node, or after a failure.
pub(crate) fn compose_active(cx: &mut Cx, modules: &mut Modules, key: &Key) {
    let Some(manifest) = modules.tenants.active_mut(key).and_then(|active| active.manifest.clone()) else { return };
    match resolve(&modules.tenants, key, &manifest) {
        Ok(composition) => begin_active(cx, &mut modules.tenants, key, composition),
        Err(Unresolved::Refused(refusal)) => dissolve(cx, modules, key, refusal),
        Err(Unresolved::NotYet(refusal)) => {
            let later = cx.now.instant + BACKOFF_MAX;
            let Some(active) = modules.tenants.active_mut(key) else { return };
            active.last_failure = Some(refusal);
            active.run = Run::BackingOff;
            // Its parts wake it earlier.
            cx.timers.set(Timer::Restart(key.clone()), later);
        }
    }
}

/// Removes a service whose parts are not what it needs, and says so.
fn dissolve(cx: &mut Cx, modules: &mut Modules, key: &Key, refusal: Refusal) {
    let Some(active) = modules.tenants.active_mut(key) else { return };
    let (user, module) = (key.0.clone(), active.record.module.clone());
    cx.counters.dissolved += 1;
    tell_requesters(cx, &modules.tenants, key, NotifyEvent::LeaseEnded, refusal.to_string());
    cx.say(Command::Notify(Notice::Dissolved { user, module, refusal }));
    uninstall(cx, modules, key, Leave::AtOnce);
    advance(cx, modules, key);
}

/// Brings a user's waiting modules on: into their worker if it takes them, else by starting it.
pub(crate) fn load_all_waiting(cx: &mut Cx, modules: &mut Modules, user: &UserId) {
    for flavour in Flavour::ALL {
        load_or_start(cx, modules, &WorkerId::new(user.clone(), flavour));
    }
}

/// Has the modules that wait for a worker loaded, or starts the worker.
pub(crate) fn load_or_start(cx: &mut Cx, modules: &mut Modules, worker: &WorkerId) {
    let Some(tenant) = modules.tenants.get(&worker.user) else { return };
    let asked_for = tenant.modules.values().any(|entry| operation_waits(entry, worker.flavour));
    if !asked_for && !tenant.modules.values().any(|entry| active_waits(entry, worker.flavour)) {
        return;
    }
    match tenant.workers.get(&worker.flavour).map(|worker| worker.phase).unwrap_or_default() {
        Phase::Starting => {}
        Phase::Ready => load_waiting(cx, modules, worker),
        Phase::Absent => start_worker(cx, &mut modules.tenants, worker),
        // A request is worth an attempt at once; modules that only come back wait for the back-off.
        Phase::Down if asked_for => start_worker(cx, &mut modules.tenants, worker),
        Phase::Down => {}
    }
}

/// Loads what waits: installed modules in install order, then those being installed in order of their requests.
pub(crate) fn load_waiting(cx: &mut Cx, modules: &mut Modules, worker: &WorkerId) {
    let (user, flavour) = (&worker.user, worker.flavour);
    let Some(tenant) = modules.tenants.get(user) else { return };
    let mut waiting: Vec<(u64, ModuleName)> = Vec::new();
    let actives = tenant.modules.iter().filter(|(_, entry)| active_waits(entry, flavour));
    let order = |entry: &Entry| entry.active.as_ref().map_or(0, |active| active.record.order);
    waiting.extend(actives.map(|(name, entry)| (order(entry), name.clone())));
    waiting.sort_unstable();
    for (_, name) in waiting.drain(..) {
        load_active(cx, &mut modules.tenants, &(user.clone(), name), worker);
    }
    let Some(tenant) = modules.tenants.get(user) else { return };
    let operations = tenant.modules.iter().filter(|(_, entry)| operation_waits(entry, flavour));
    let request = |entry: &Entry| {
        let ticket = entry.operation.as_ref().and_then(|operation| operation.ticket.as_ref());
        ticket.map_or(u64::MAX, |ticket| ticket.request.0)
    };
    waiting.extend(operations.map(|(name, entry)| (request(entry), name.clone())));
    waiting.sort_unstable();
    for (_, name) in waiting {
        load_candidate(cx, modules, &(user.clone(), name), worker);
    }
}

fn load_candidate(cx: &mut Cx, modules: &mut Modules, key: &Key, id: &WorkerId) {
    // Another one of its module may have come in its place, which waits for something else.
    if modules.tenants.operation(key).is_some_and(|operation| operation.only_waits()) {
        return modules.later.push_prepared(key, Some(id));
    }
    make_room(cx, &mut modules.tenants, id);
    let Some(Tenant { workers, modules: entries, .. }) = modules.tenants.get_mut(&key.0) else { return };
    let Some(worker) = workers.get_mut(&id.flavour) else { return };
    let entry = entries.get_mut(&key.1);
    let Some(operation) = entry.and_then(|entry| entry.operation.as_mut()) else { return };
    let Stage::Waiting(candidate) = &mut operation.stage else { return };
    let Some(slot) = worker.take_place(SlotHolder { module: key.1.clone(), role: Role::Candidate }) else {
        let detail = "every place of the worker is taken";
        return fail_operation(cx, modules, key, Refusal::new(RefusalKind::QuotaExceeded, detail));
    };
    let (flavour, rules) = (candidate.flavour, mem::take(&mut candidate.rules));
    let (manifest, composition) = (candidate.manifest.clone(), candidate.composition.take());
    let declared = mem::take(&mut candidate.declared);
    let chain = composition.as_ref().map(|composition| composition.servers.clone()).unwrap_or_default();
    let loading = Candidate { manifest: manifest.clone(), declared, flavour, rules, slot: Some(slot), composition };
    operation.stage = Stage::Loading(loading);
    let (digest, properties) = (operation.setup.digest, operation.setup.properties.clone());
    let state = operation.setup.state.as_ref().map(|state| state.digest);
    let what = LoadWhat { digest, manifest: &manifest, properties: &properties, chain: &chain, state };
    load_into(cx, &mut modules.tenants, id, slot, &what);
}

fn active_waits(entry: &Entry, flavour: Flavour) -> bool {
    let waits = |active: &Active| active.run == Run::Waiting && active.record.flavour == Some(flavour);
    entry.active.as_ref().is_some_and(waits)
}

fn operation_waits(entry: &Entry, flavour: Flavour) -> bool {
    entry
        .operation
        .as_ref()
        .is_some_and(|operation| matches!(&operation.stage, Stage::Waiting(candidate) if candidate.flavour == flavour))
}
