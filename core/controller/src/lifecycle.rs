// SPDX-License-Identifier: Apache-2.0
//! The life of a module: from its SETUP over fetch, load and filters to its end.

use std::collections::VecDeque;

use netserv_model::effect::{EffectId, InstalledRecord, Job, ModuleLoad, ModuleSlot, PackageJob, StoreJob, WorkerJob};
use netserv_model::limits::REQUESTS_PENDING_MAX;
use netserv_model::manifest::Manifest;
use netserv_model::request::{Outcome, Setup, StateSource};
use netserv_model::{Digest, Flavour, Nonce, Refusal, RefusalKind, WorkerId};

use crate::admission::{Asked, check_manifest, check_ports, check_setup, clamp_limits, merged_properties};
use crate::buffering::Buffers;
use crate::control::{Control, remember_told, tell_rest};
use crate::cx::Cx;
use crate::draining::{can_drain, drain_module, end_all_draining, end_draining, end_finishing};
use crate::effects::Purpose;
use crate::expiry::Timer;
use crate::floating::{hold_floating, leave_to_later, resume_floating, take_floating};
use crate::limits::{FETCH_ANSWER_TIME_MAX, LOAD_ANSWER_TIME_MAX};
use crate::maintenance::granted_ttl;
use crate::modules::Modules;
use crate::moves::check_handed_over;
use crate::operator::expire_if_due;
use crate::quota::{Nonces, make_way};
use crate::report::not_installed;
use crate::restart::{active_fetched, active_not_fetched, fail_active, fail_load, keep_out};
use crate::rules::{fail_swap, install_rules, remove_rules, settle_module};
use crate::services::compose_parts;
use crate::services::{check_services, dissolve, first_stage, order_packets};
use crate::sessions::{
    arm_lease, check_held, check_room_for, fit_rules, join_session, leave_module, store_active, tell_replaced,
};
use crate::state::{
    Active, Backoff, Candidate, Change, Entry, Key, Leave, ModuleRule, Operation, Origin, PendingAnswer, Removal, Role,
    Run, SlotHolder, Stage, Task, Waiter,
};
use crate::tenants::Tenants;
use crate::wishes::weigh;
use crate::workers::{pump_user, release_unused};

/// Takes a request for a module; it waits for those before it.
pub(crate) fn enqueue(cx: &mut Cx, m: &mut Modules, key: &Key, waiter: Waiter) {
    if cx.in_flight() > REQUESTS_PENDING_MAX && !make_way(cx, m, &key.0) {
        let detail = format!("the node works on {REQUESTS_PENDING_MAX} requests, and on none of others for longer");
        return cx.refuse(waiter.ticket, Refusal::new(RefusalKind::QuotaExceeded, detail));
    }
    m.tenants.entry_or_new(key).waiting.push_back(waiter);
    advance(cx, m, key);
}

/// Goes on with a module's requests unless one is under way, and drops what nobody needs any more.
pub(crate) fn advance(cx: &mut Cx, m: &mut Modules, key: &Key) {
    while let Some(Waiter { ticket, origin, task }) = m.tenants.next_waiter(key) {
        match task {
            Task::Setup(setup) => begin_setup(cx, m, key, ticket, origin, *setup),
            Task::Repeat => repeat(cx, &mut m.tenants, key, ticket, origin),
            Task::Remove(removal) => remove_module(cx, m, key, ticket, origin, removal),
            Task::RemoveAgain(nonce) => remove_again(cx, &m.nonces, key, ticket, nonce),
        }
    }
    expire_if_due(cx, m, key);
    sweep(cx, &mut m.tenants, key);
}

/// A package is there.
pub(crate) fn package_fetched(
    cx: &mut Cx,
    m: &mut Modules,
    key: &Key,
    id: EffectId,
    manifest: Manifest,
    flavour: Flavour,
) {
    cx.timers.cancel(&Timer::Fetch(id));
    if matches!(m.tenants.stage(key), Some(Stage::Fetching(wanted)) if *wanted == id) {
        return operation_fetched(cx, m, key, manifest, flavour);
    }
    active_fetched(cx, m, key, id, manifest, flavour);
}

/// A package could not be fetched, or a service not be composed. What took too long to compile is not compiled again
/// for a while.
pub(crate) fn fetch_failed(cx: &mut Cx, m: &mut Modules, key: &Key, id: EffectId, refusal: &Refusal) {
    cx.timers.cancel(&Timer::Fetch(id));
    let stage = m.tenants.stage(key);
    let installing = matches!(stage, Some(Stage::Fetching(wanted) | Stage::Composing(wanted, _)) if *wanted == id);
    let digest = if installing {
        m.tenants.operation(key).map(|operation| operation.setup.digest)
    } else {
        m.tenants.record_fetching(key, id).map(|record| record.digest)
    };
    if let (RefusalKind::CompileLimit, Some(digest)) = (refusal.kind, digest) {
        keep_out(cx, &mut m.quarantine, key, digest);
    }
    if installing {
        return fail_operation(cx, m, key, refusal.clone());
    }
    active_not_fetched(cx, m, key, id, refusal);
}

/// A package was not fetched in time.
pub(crate) fn fetch_overdue(cx: &mut Cx, m: &mut Modules, id: EffectId, refusal: &Refusal) {
    let Some(key) = cx.abandon_effect(id) else { return };
    fetch_failed(cx, m, &key, id, refusal);
}

/// A module runs.
pub(crate) fn loaded(cx: &mut Cx, m: &mut Modules, worker: &WorkerId, slot: ModuleSlot) {
    let Some(place) = end_load(cx, &mut m.tenants, worker, slot) else { return };
    let key = (worker.user.clone(), place.module);
    match place.role {
        Role::Leaving => m.tenants.free_place(worker, slot),
        Role::Draining => cx.counters.stray_events += 1,
        Role::Candidate => settle_module(cx, m, &key),
        Role::Active => set_running(cx, &mut m.tenants, &mut m.buffers, &key, worker, slot),
    }
}

/// A module could not be loaded, or trapped.
pub(crate) fn module_failed(cx: &mut Cx, m: &mut Modules, worker: &WorkerId, slot: ModuleSlot, refusal: Refusal) {
    let Some(place) = end_load(cx, &mut m.tenants, worker, slot) else { return };
    let key = (worker.user.clone(), place.module);
    match place.role {
        Role::Leaving => m.tenants.free_place(worker, slot),
        Role::Draining => end_draining(cx, &mut m.tenants, worker, slot),
        Role::Candidate => lose_candidate(cx, m, &key, refusal),
        Role::Active if refusal.kind == RefusalKind::NodeFailed => fail_load(cx, &mut m.tenants, &key, refusal),
        Role::Active => fail_active(cx, &mut m.tenants, &mut m.quarantine, &key, refusal),
    }
}

/// A worker could not be told to load a module.
pub(crate) fn load_refused(
    cx: &mut Cx,
    m: &mut Modules,
    worker: &WorkerId,
    generation: Option<EffectId>,
    slot: ModuleSlot,
    refusal: Refusal,
) {
    // Of a worker that died, its modules' loads are settled.
    if m.tenants.worker(worker).is_some_and(|worker| worker.generation == generation) {
        module_failed(cx, m, worker, slot, refusal);
    }
}

/// A module that is not in force yet left its worker.
pub(crate) fn lose_candidate(cx: &mut Cx, m: &mut Modules, key: &Key, refusal: Refusal) {
    if !fail_swap(&mut m.tenants, key, &refusal, false) {
        m.tenants.candidate_gone(key);
        fail_operation(cx, m, key, refusal);
    }
}

/// Puts a loaded and filtered module in force; the one before it goes.
pub(crate) fn finish_setup(cx: &mut Cx, m: &mut Modules, key: &Key) {
    let Some(entry) = m.tenants.entry(key) else { return };
    let settling = entry.operation.take_if(|operation| matches!(operation.stage, Stage::Settling(..)));
    let Some(Operation { ticket, origin, mut setup, stage: Stage::Settling(candidate, _) }) = settling else {
        return;
    };
    // It may have been drained meanwhile.
    setup.ttl = granted_ttl(cx, &mut m.tenants, key, setup.ttl);
    let mut old = m.tenants.entry_or_new(key).active.take();
    let control = old.as_mut().map(|old| std::mem::take(&mut old.control)).unwrap_or_default();
    let before = old.as_ref().map(|old| (old.record.clone(), old.sessions.clone()));
    let is_other = old.as_ref().is_some_and(|old| !old.is_same_module(&setup));
    let lease_s = setup.ttl.as_secs();
    let outcome = if old.is_some() { Outcome::Replaced { lease_s } } else { Outcome::Installed { lease_s } };
    if let Some(old) = old {
        cx.timers.cancel(&Timer::Thaw(key.clone()));
        m.buffers.end(cx, key);
        retire(cx, &mut m.tenants, key, &old);
    }
    if let Some((flavour, slot)) = candidate.place().filter(|_| setup.state.is_some()) {
        let job = WorkerJob::Confirm { worker: WorkerId::new(key.0.clone(), flavour), slot };
        cx.start_effect(&key.0, Job::Workers(job), Purpose::Nothing);
    }
    let mut active = activate(cx, &mut m.tenants, key, origin, &setup, candidate);
    active.control = control;
    if let Some((before, sessions)) = before {
        // Nobody asked: it is composed anew.
        let is_same_request = ticket.is_none();
        match is_same_request {
            true => {
                active.record.order = before.order;
                active.restore_sessions(sessions);
            }
            false => active.take_over_sessions(sessions),
        }
        if is_other {
            tell_replaced(cx, key, &active.sessions[..active.sessions.len() - 1], &setup);
        } else {
            active.record.wish = before.wish;
            active.share_wish(origin);
        }
        let record = &mut active.record;
        if record.epoch == before.epoch {
            record.state = record.state.or(before.state);
        }
        let lost = before.given_up.into_iter().filter(|lost| is_same_request || lost.epoch >= record.epoch);
        record.given_up.extend(lost);
    }
    leave_to_later(&m.tenants, key, &mut active.record);
    let (floating, epoch) = (active.record.floating.clone(), active.record.epoch);
    m.tenants.entry_or_new(key).active = Some(active);
    // Others may have left meanwhile.
    fit_rules(cx, &mut m.tenants, key);
    store_active(cx, &mut m.tenants, key);
    arm_lease(cx, &mut m.tenants, key);
    end_finishing(cx, &mut m.tenants, key);
    take_floating(cx, &mut m.tenants, &mut m.buffers, key, &floating, epoch);
    hold_floating(cx, &mut m.tenants, &key.0);
    tell_rest(cx, &mut m.tenants, key);
    order_packets(cx, &mut m.tenants, &key.0);
    if let Some(ticket) = ticket {
        cx.answer_when_done(&key.0, ticket, outcome);
    }
    check_services(cx, m, &key.0);
    advance(cx, m, key);
}

/// Ends the operation under way without a trace of it, and answers with why.
pub(crate) fn fail_operation(cx: &mut Cx, m: &mut Modules, key: &Key, refusal: Refusal) {
    if fail_swap(&mut m.tenants, key, &refusal, true) {
        return;
    }
    let Some(operation) = m.tenants.entry(key).and_then(|entry| entry.operation.take()) else { return };
    match operation.stage {
        Stage::Fetching(job) => drop_job(cx, job),
        Stage::Composing(job, candidate) => {
            drop_job(cx, job);
            drop_candidate(cx, &mut m.tenants, key, &candidate, None);
        }
        Stage::Waiting(candidate) => drop_candidate(cx, &mut m.tenants, key, &candidate, None),
        Stage::Loading(candidate) => drop_candidate(cx, &mut m.tenants, key, &candidate, Some(Run::Loading)),
        Stage::Settling(candidate, _) => drop_candidate(cx, &mut m.tenants, key, &candidate, Some(Run::Running)),
        Stage::Joining(joining) => remove_rules(cx, key, &joining.rules),
    }
    hold_floating(cx, &mut m.tenants, &key.0);
    sweep(cx, &mut m.tenants, key);
    match operation.ticket {
        Some(ticket) => refuse_setup(cx, &mut m.tenants, key, ticket, operation.origin, &refusal),
        None => dissolve(cx, m, key, refusal),
    }
    check_services(cx, m, &key.0);
    advance(cx, m, key);
}

/// Takes an installed module away, for good.
pub(crate) fn uninstall(cx: &mut Cx, m: &mut Modules, key: &Key, leave: Leave) -> bool {
    let Some(mut active) = m.tenants.entry(key).and_then(|entry| entry.active.take()) else { return false };
    remember_told(cx, &mut m.told_before, key, &active.control);
    cx.timers.cancel(&Timer::Thaw(key.clone()));
    m.buffers.end(cx, key);
    m.epochs.note(key, active.epoch_min());
    if let Some(state) = active.record.state {
        m.epochs.note_state(key, active.record.epoch, state);
    }
    hold_floating(cx, &mut m.tenants, &key.0);
    match leave {
        Leave::Drain if can_drain(&active) => drain_module(cx, &mut m.tenants, key, &mut active),
        Leave::Drain | Leave::AtOnce => retire(cx, &mut m.tenants, key, &active),
    }
    forget_record(cx, key);
    order_packets(cx, &mut m.tenants, &key.0);
    check_services(cx, m, &key.0);
    if matches!(m.tenants.stage(key), Some(Stage::Joining(_))) {
        fail_operation(cx, m, key, not_installed(key));
    }
    true
}

/// Asks for a package, and for the state that its module is to begin with.
pub(crate) fn fetch(cx: &mut Cx, key: &Key, url: String, digest: Digest, state: Option<StateSource>) -> EffectId {
    let keys = cx.policy.users.get(&key.0).map(|user| user.keys.clone()).unwrap_or_default();
    start_package(cx, key, PackageJob::Fetch { url, digest, keys, state })
}

/// Starts a job about a module's package, which is to end in time.
pub(crate) fn start_package(cx: &mut Cx, key: &Key, job: PackageJob) -> EffectId {
    let purpose = match &job {
        PackageJob::Fetch { .. } => Purpose::Fetch(key.clone()),
        PackageJob::Compose { .. } => Purpose::Compose(key.clone()),
    };
    let id = cx.start_effect(&key.0, Job::Packages(job), purpose);
    cx.timers.set(Timer::Fetch(id), cx.now.instant + FETCH_ANSWER_TIME_MAX);
    id
}

/// Has a module remembered across restarts.
pub(crate) fn store_record(cx: &mut Cx, key: &Key, record: &InstalledRecord) {
    let job = StoreJob::Put(Box::new(record.clone()));
    cx.start_effect(&key.0, Job::Store(job), Purpose::Store(key.clone()));
}

/// Has a module forgotten.
pub(crate) fn forget_record(cx: &mut Cx, key: &Key) {
    let job = StoreJob::Forget { user: key.0.clone(), module: key.1.clone() };
    cx.start_effect(&key.0, Job::Store(job), Purpose::Store(key.clone()));
}

/// Asks a worker to load a module.
pub(crate) fn load_into(cx: &mut Cx, tenants: &mut Tenants, worker: &WorkerId, slot: ModuleSlot, what: &LoadWhat<'_>) {
    let key = (worker.user.clone(), what.manifest.module().name);
    let messages =
        tenants.active(&key).map(|active| active.control.give_kept((worker.flavour, slot))).unwrap_or_default();
    let user = cx.policy.users.get(&worker.user);
    let (granted, container) = user.map(|user| (user.module_limits, user.container)).unwrap_or_default();
    let load = ModuleLoad {
        worker: worker.clone(),
        slot,
        module: what.manifest.module(),
        digest: what.digest,
        properties: merged_properties(what.manifest, what.properties),
        limits: clamp_limits(&what.manifest.limits, &granted),
        state_schema: what.manifest.state_schema,
        packet: what.manifest.packet.is_some(),
        parallel: what.manifest.is_parallel(),
        processors: container.cpu_permille / 1000,
        server: what.manifest.server.clone(),
        chain: what.chain.to_vec(),
        blocks: cx.policy.blocks.keys().cloned().collect(),
        messages,
        state: what.state,
    };
    cx.timers.set(Timer::Load(worker.clone(), slot), cx.now.instant + LOAD_ANSWER_TIME_MAX);
    let generation = tenants.worker(worker).and_then(|worker| worker.generation);
    let purpose = Purpose::Load(worker.clone(), generation, slot);
    cx.start_effect(&worker.user, Job::Workers(WorkerJob::Load(Box::new(load))), purpose);
}

/// Drops what an entry no longer needs: itself, then its worker.
fn sweep(cx: &mut Cx, tenants: &mut Tenants, key: &Key) {
    let Some(tenant) = tenants.get_mut(&key.0) else { return };
    if tenant.modules.get(&key.1).is_some_and(Entry::is_empty) {
        tenant.modules.remove(&key.1);
    }
    release_unused(cx, tenants, &key.0);
}

fn begin_setup(cx: &mut Cx, m: &mut Modules, key: &Key, ticket: PendingAnswer, mut origin: Origin, mut setup: Setup) {
    if let Err(refusal) = check_setup(cx, m, key, &setup) {
        return refuse_setup(cx, &mut m.tenants, key, ticket, origin, &refusal);
    }
    setup.ttl = granted_ttl(cx, &mut m.tenants, key, setup.ttl);
    let brings_state = m.epochs.brings_state(&m.tenants, key, &setup);
    // One of an epoch that is in force came with the SETUP that began it.
    setup.state = setup.state.filter(|_| brings_state && !setup.prepare);
    if let Err(refusal) = check_room_for(&m.tenants, key, origin.session) {
        return refuse_setup(cx, &mut m.tenants, key, ticket, origin, &refusal);
    }
    if let Some(active) = m.tenants.active(key).filter(|_| !setup.prepare) {
        active.adopt(origin.session, &setup);
    }
    if !brings_state
        && !setup.prepare
        && let Err(refusal) = weigh(cx, &m.tenants, key, &mut origin, &mut setup)
    {
        return refuse_setup(cx, &mut m.tenants, key, ticket, origin, &refusal);
    }
    let active = m.tenants.active(key);
    if let Some(active) = active.as_ref().filter(|_| !brings_state && !setup.prepare) {
        let change = active.change_by(origin.session, &setup);
        if change != Change::Reload {
            return join_session(cx, &mut m.tenants, &mut m.buffers, key, ticket, (origin, setup), change);
        }
    }
    let same_code = active.filter(|active| active.record.digest == setup.digest && !brings_state);
    if let Some(code) = same_code.and_then(|active| active.whole_manifest().zip(active.record.flavour)) {
        try_candidate(cx, m, key, ticket, origin, setup, code);
    } else {
        let job = fetch(cx, key, setup.url.clone(), setup.digest, setup.state.clone());
        let stage = Stage::Fetching(job);
        m.tenants.entry_or_new(key).operation = Some(Operation { ticket: Some(ticket), origin, setup, stage });
    }
}

/// Answers a request that came once more, as those do that a node sends again when the path changes.
fn repeat(cx: &mut Cx, tenants: &mut Tenants, key: &Key, ticket: PendingAnswer, origin: Origin) {
    let now = cx.now.instant;
    let active = origin.nonce.and_then(|nonce| Some((tenants.active(key)?, nonce)));
    let in_force = active.and_then(|(active, nonce)| active.session_by(nonce));
    match in_force.map(|session| session.lease_end.since(now).as_secs()) {
        Some(lease_s) => cx.answer_when_done(&key.0, ticket, Outcome::Refreshed { lease_s }),
        None => {
            let detail = "another request came after this one, or what it installed is gone";
            cx.refuse(ticket, Refusal::new(RefusalKind::Replayed, detail));
        }
    }
}

/// Refuses a SETUP, and those that are the same one and wait for it: it may come by several ways.
pub(crate) fn refuse_setup(
    cx: &mut Cx,
    tenants: &mut Tenants,
    key: &Key,
    ticket: PendingAnswer,
    origin: Origin,
    refusal: &Refusal,
) {
    let same = |waiter: &Waiter| matches!(waiter.task, Task::Repeat) && waiter.origin.nonce == origin.nonce;
    let waiting = tenants.entry(key).map(|entry| std::mem::take(&mut entry.waiting)).unwrap_or_default();
    let (repeats, others): (VecDeque<_>, VecDeque<_>) = waiting.into_iter().partition(same);
    if !others.is_empty() {
        tenants.entry_or_new(key).waiting = others;
    }
    for ticket in std::iter::once(ticket).chain(repeats.into_iter().map(|waiter| waiter.ticket)) {
        cx.answer_when_done(&key.0, ticket, Outcome::Refused(refusal.clone()));
    }
}

fn remove_module(cx: &mut Cx, m: &mut Modules, key: &Key, ticket: PendingAnswer, origin: Origin, removal: Removal) {
    let Removal { leave, epoch, session } = removal;
    if let Err(refusal) = check_handed_over(&m.tenants, key, epoch) {
        return cx.refuse(ticket, refusal);
    }
    if let Some(session) = session.filter(|_| m.tenants.active_of(key).is_some()) {
        if let Err(refusal) = check_held(&m.tenants, key, session) {
            return cx.refuse(ticket, refusal);
        }
        let ended = m.tenants.active_of(key).map(|active| active.ended_by(session)).unwrap_or_default();
        if leave_module(cx, &mut m.tenants, key, |held| ended.contains(&held.record.session)) {
            note_removed(&mut m.nonces, key, origin);
            return cx.answer_when_done(&key.0, ticket, Outcome::Removed);
        }
    }
    let drained = leave == Leave::AtOnce && end_all_draining(cx, &mut m.tenants, key);
    if !uninstall(cx, m, key, leave) && !drained {
        return cx.refuse(ticket, not_installed(key));
    }
    // From this epoch on another node has it.
    m.epochs.note(key, epoch.map_or(0, |epoch| epoch.saturating_add(1)));
    sweep(cx, &mut m.tenants, key);
    note_removed(&mut m.nonces, key, origin);
    cx.answer_when_done(&key.0, ticket, Outcome::Removed);
}

/// Answers a REMOVE that came once more, as it does by the second way of a round trip.
fn remove_again(cx: &mut Cx, nonces: &Nonces, key: &Key, ticket: PendingAnswer, nonce: Nonce) {
    match nonces.has_removed(&key.0, nonce) {
        true => cx.answer_when_done(&key.0, ticket, Outcome::Removed),
        false => cx.refuse(ticket, not_installed(key)),
    }
}

fn note_removed(nonces: &mut Nonces, key: &Key, origin: Origin) {
    if let Some(nonce) = origin.nonce {
        nonces.note_removed(&key.0, nonce);
    }
}

fn operation_fetched(cx: &mut Cx, m: &mut Modules, key: &Key, manifest: Manifest, flavour: Flavour) {
    let Some(operation) = m.tenants.entry(key).and_then(|entry| entry.operation.take()) else { return };
    let Operation { ticket: Some(ticket), origin, setup, stage: _ } = operation else { return };
    // The package of what is installed may have come meanwhile.
    let same = m.tenants.active_of(key).filter(|active| active.manifest.is_some() && active.is_same_module(&setup));
    if same.is_some() && !setup.prepare && setup.state.is_none() {
        begin_setup(cx, m, key, ticket, origin, setup);
        return advance(cx, m, key);
    }
    try_candidate(cx, m, key, ticket, origin, setup, (manifest, flavour));
    advance(cx, m, key);
}

fn try_candidate(
    cx: &mut Cx,
    m: &mut Modules,
    key: &Key,
    ticket: PendingAnswer,
    origin: Origin,
    setup: Setup,
    (manifest, flavour): (Manifest, Flavour),
) {
    let user = cx.user_policy(&key.0);
    let (others, declared) = (m.tenants.others_than(key, origin.session), manifest.intercept().to_vec());
    let others: Vec<Asked<'_>> = others.iter().map(Asked::of_record).collect();
    let checked = user.and_then(|user| check_manifest(&cx.policy, user, &setup, &others, manifest, flavour));
    let checked = checked.and_then(|(manifest, filters)| {
        check_ports(&m.tenants, key, &manifest)?;
        let composition = compose_parts(&m.tenants, key, &manifest)?;
        Ok((manifest, filters, composition))
    });
    let (manifest, filters, composition) = match checked {
        Ok(checked) => checked,
        Err(refusal) => {
            refuse_setup(cx, &mut m.tenants, key, ticket, origin, &refusal);
            return sweep(cx, &mut m.tenants, key);
        }
    };
    let rules = ModuleRule::all_of(&filters, Some(&manifest));
    let flavour = if composition.is_some() { Flavour::Wasm } else { flavour };
    let candidate = Candidate { manifest, declared, flavour, rules, slot: None, composition };
    let (prepares, loads) =
        (setup.prepare, candidate.composition.as_ref().is_none_or(|parts| !parts.servers.is_empty()));
    if prepares && !loads {
        let stage = Stage::Waiting(candidate);
        m.tenants.entry_or_new(key).operation = Some(Operation { ticket: Some(ticket), origin, setup, stage });
        return m.later.prepared.push_back((key.clone(), None));
    }
    let stage = first_stage(cx, &m.tenants, &mut m.later, key, candidate);
    m.tenants.entry_or_new(key).operation = Some(Operation { ticket: Some(ticket), origin, setup, stage });
    pump_user(cx, m, &key.0);
}

/// Takes note that an installed module runs again, and installs the filters that it has not yet.
fn set_running(
    cx: &mut Cx,
    tenants: &mut Tenants,
    buffers: &mut Buffers,
    key: &Key,
    worker: &WorkerId,
    slot: ModuleSlot,
) {
    let Some(active) = tenants.active(key) else { return };
    if active.run != Run::Loading {
        // It failed before this answer was given, so the worker must not keep it.
        let down = active.run != Run::Running;
        cx.counters.stray_events += 1;
        if down {
            unload(cx, worker, slot);
        }
        return;
    }
    active.run = Run::Running;
    tell_rest(cx, tenants, key);
    order_packets(cx, tenants, &key.0);
    resume_floating(cx, tenants, key);
    install_rules(cx, tenants, buffers, key);
}

/// Has a worker unload a module.
pub(crate) fn unload(cx: &mut Cx, worker: &WorkerId, slot: ModuleSlot) {
    let job = WorkerJob::Unload { worker: worker.clone(), slot };
    cx.start_effect(&worker.user, Job::Workers(job), Purpose::Stop);
}

fn activate(cx: &Cx, tenants: &mut Tenants, key: &Key, origin: Origin, setup: &Setup, candidate: Candidate) -> Active {
    if let Some(tenant) = tenants.get_mut(&key.0)
        && let Some(slot) = candidate.slot
        && let Some(worker) = tenant.workers.get_mut(&candidate.flavour)
        && let Some(place) = worker.places.get_mut(&slot)
    {
        place.role = Role::Active;
    }
    let sees_packets = candidate.manifest.packet.is_some();
    let state = setup.state.as_ref().map(|state| state.digest);
    let record = InstalledRecord {
        user: key.0.clone(),
        module: setup.module.clone(),
        url: setup.url.clone(),
        digest: setup.digest,
        session: origin.session,
        nonce: origin.nonce,
        filters: if sees_packets { ModuleRule::shown(&candidate.rules) } else { setup.filters.clone() },
        intercept: setup.intercept.clone(),
        properties: setup.properties.clone(),
        lease_until: cx.now.wall + setup.ttl,
        sessions: Vec::new(),
        wish: origin.wish,
        order: tenants.take_order(),
        flavour: Some(candidate.flavour),
        epoch: setup.epoch,
        floating: setup.floating.clone(),
        given_up: Vec::new(),
        state,
        moved_in: None,
    };
    let mut active = Active {
        record,
        sessions: Vec::new(),
        lease_end: cx.now.instant + setup.ttl,
        manifest: Some(candidate.manifest),
        declared: candidate.declared,
        rules: candidate.rules,
        slot: candidate.slot,
        composition: candidate.composition,
        run: Run::Running,
        backoff: Backoff::default(),
        restarts: 0,
        is_frozen: false,
        holds_floating: true,
        control: Control::default(),
        last_failure: None,
    };
    active.take_session(cx.now, origin, setup);
    active
}

/// Removes everything that an installed module has outside of its entry.
fn retire(cx: &mut Cx, tenants: &mut Tenants, key: &Key, active: &Active) {
    cx.timers.cancel(&Timer::Lease(key.clone()));
    cx.timers.cancel(&Timer::Restart(key.clone()));
    if let Run::Fetching(job) = active.run {
        drop_job(cx, job);
    }
    let (place, run) = (active.place(), Some(active.run).filter(|run| run.in_worker()));
    drop_module(cx, tenants, key, &active.rules, place, run);
}

fn drop_candidate(cx: &mut Cx, tenants: &mut Tenants, key: &Key, candidate: &Candidate, run: Option<Run>) {
    let place = candidate.place();
    drop_module(cx, tenants, key, &candidate.rules, place, run);
}

fn drop_module(
    cx: &mut Cx,
    tenants: &mut Tenants,
    key: &Key,
    rules: &[ModuleRule],
    place: Option<(Flavour, ModuleSlot)>,
    run: Option<Run>,
) {
    remove_rules(cx, key, rules);
    let Some((flavour, slot)) = place else { return };
    let worker = WorkerId::new(key.0.clone(), flavour);
    if run.is_some() {
        unload(cx, &worker, slot);
    }
    if run == Some(Run::Loading) {
        tenants.leave_place(&worker, slot);
    } else {
        tenants.free_place(&worker, slot);
    }
}

/// Takes note of the answer to a load, or of later news of it; returns who has the place.
fn end_load(cx: &mut Cx, tenants: &mut Tenants, worker: &WorkerId, slot: ModuleSlot) -> Option<SlotHolder> {
    cx.timers.cancel(&Timer::Load(worker.clone(), slot));
    let place = tenants.worker(worker).and_then(|worker| worker.places.get(&slot)).cloned();
    if place.is_none() {
        cx.counters.stray_events += 1;
    }
    place
}

fn drop_job(cx: &mut Cx, id: EffectId) {
    cx.timers.cancel(&Timer::Fetch(id));
    cx.abandon_effect(id);
}

/// What to load, apart from where.
pub(crate) struct LoadWhat<'a> {
    pub(crate) digest: Digest,
    pub(crate) manifest: &'a Manifest,
    pub(crate) properties: &'a std::collections::BTreeMap<String, String>,
    /// The packages that a service's component is composed of.
    pub(crate) chain: &'a [Digest],
    /// The state that it begins with.
    pub(crate) state: Option<Digest>,
}
