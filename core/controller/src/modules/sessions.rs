// SPDX-License-Identifier: Apache-2.0
//! Sessions join those that hold an installed module, and let go of it.

use netserv_model::notify::NotifyEvent;
use netserv_model::request::{Outcome, Setup};
use netserv_model::{Refusal, RefusalKind, SessionId};

use crate::cx::Cx;
use crate::cx::jobs::store_record;
use crate::cx::request::{Key, Origin, PendingAnswer, not_installed};
use crate::cx::timers::Timer;
use crate::limits::SESSIONS_PER_MODULE_MAX;
use crate::modules::answers::refuse_setup;
use crate::modules::checks::granted_ttl;
use crate::moves::freezing::thaw;
use crate::policy::asked::{Asked, asked_together, check_together};
use crate::rules::buffering::Buffers;
use crate::rules::install::add_joining_rules;
use crate::rules::names::{change_filters, remove_rules};
use crate::tenants::Tenants;
use crate::tenants::active::{Active, Run};
use crate::tenants::operation::Change;
use crate::tenants::operation::{Joining, Operation, Stage};
use crate::tenants::rule::{ModuleRule, RuleKind};
use crate::tenants::session::Session;
use crate::tenants::wishes::Standing;

/// Takes a SETUP for what is installed: its session holds it from now on, too, or for longer, or with other filters.
pub(crate) fn join_session(
    cx: &mut Cx,
    tenants: &mut Tenants,
    buffers: &mut Buffers,
    key: &Key,
    ticket: PendingAnswer,
    (origin, setup): (Origin, Setup),
    change: Change,
) {
    let checked = match change {
        Change::Lease => Ok(Vec::new()),
        Change::Filters | Change::Joins | Change::Reload => rules_with(cx, tenants, key, origin.session, &setup),
    };
    let rules = match checked {
        Ok(rules) => rules,
        Err(refusal) => return refuse_setup(cx, tenants, key, ticket, origin, &refusal),
    };
    let Some(active) = tenants.active_mut(key) else { return };
    let is_there = |rule: &ModuleRule| active.rules.iter().any(|own| own.is_same(rule));
    let add: Vec<ModuleRule> = rules.into_iter().filter(|rule| !is_there(rule)).collect();
    let sees = active.run == Run::Running && !active.is_frozen;
    let joining = Joining { change, rules: add, effect: None };
    let operation = Operation { ticket: Some(ticket), origin, setup, stage: Stage::Joining(joining) };
    tenants.entry_or_new(key).operation = Some(operation);
    let effect = if sees { add_joining_rules(cx, tenants, key) } else { None };
    match tenants.joining(key) {
        Some(joining) if effect.is_some() => joining.effect = effect,
        Some(_) | None => joined(cx, tenants, buffers, key),
    }
}

/// Puts what a session asked for in force, now that its filters are there.
pub(crate) fn joined(cx: &mut Cx, tenants: &mut Tenants, buffers: &mut Buffers, key: &Key) {
    let now = cx.now;
    let Some(entry) = tenants.entry_mut(key) else { return };
    let joins = entry.operation.take_if(|operation| matches!(operation.stage, Stage::Joining(_)));
    let Some(Operation { ticket, origin, mut setup, stage: Stage::Joining(joining) }) = joins else { return };
    setup.ttl = granted_ttl(cx, tenants, key, setup.ttl);
    let Some(active) = tenants.active_mut(key) else { return };
    let Joining { change, mut rules, effect: _ } = joining;
    // If it was frozen meanwhile, its rules come when it thaws.
    let unseen = match active.is_frozen {
        true => rules.iter_mut().flat_map(|rule| std::mem::take(&mut rule.ids)).collect(),
        false => Vec::new(),
    };
    let runs = active.run == Run::Running;
    active.rules.extend(rules);
    active.take_session(now, origin, &setup);
    active.record.url.clone_from(&setup.url);
    if setup.epoch > active.record.epoch {
        (active.record.epoch, active.record.state) = (setup.epoch, None);
    }
    active.record.moved_in = None;
    change_filters(cx, key, Vec::new(), unseen);
    if change != Change::Lease {
        fit_rules(cx, tenants, key);
    }
    arm_lease(cx, tenants, key);
    store_active(cx, tenants, key);
    thaw(cx, tenants, buffers, key);
    let lease_s = setup.ttl.as_secs();
    let outcome = match change {
        Change::Lease => Outcome::Refreshed { lease_s },
        Change::Filters | Change::Reload => Outcome::Replaced { lease_s },
        Change::Joins if runs => Outcome::Installed { lease_s },
        Change::Joins => Outcome::Refreshed { lease_s },
    };
    if let Some(ticket) = ticket {
        cx.answer_when_done(&key.0, ticket, outcome);
    }
}

/// Returns the rules that an installed module has if a session asks for what a SETUP says.
fn rules_with(
    cx: &Cx,
    tenants: &Tenants,
    key: &Key,
    session: SessionId,
    setup: &Setup,
) -> Result<Vec<ModuleRule>, Refusal> {
    let active = tenants.active(key).ok_or_else(|| not_installed(key))?;
    let Some(manifest) = active.whole_manifest() else { return Ok(Vec::new()) };
    let others = tenants.others_than(key, session);
    let others: Vec<Asked<'_>> = others.iter().map(Asked::of_record).collect();
    let user = cx.rights(&key.0)?;
    let (manifest, filters) = check_together(&cx.policy, user, manifest, Asked::of(setup), &others)?;
    Ok(ModuleRule::all_of(&filters, Some(&manifest)))
}

/// Ends what a session has of an installed module. Returns whether other sessions hold it.
pub(crate) fn leave_module(cx: &mut Cx, tenants: &mut Tenants, key: &Key, ends: impl Fn(&Session) -> bool) -> bool {
    let Some(active) = tenants.active_mut(key) else { return false };
    if !active.end_sessions(ends) {
        return false;
    }
    fit_rules(cx, tenants, key);
    arm_lease(cx, tenants, key);
    store_active(cx, tenants, key);
    true
}

/// Returns why a REMOVE of a session takes nothing away, if it does not.
pub(crate) fn check_held(tenants: &Tenants, key: &Key, session: SessionId) -> Result<(), Refusal> {
    let Some(active) = tenants.active(key) else { return Err(not_installed(key)) };
    if !active.ended_by(session).is_empty() {
        return Ok(());
    }
    let (held_by, first) = (active.sessions.len(), active.record.session);
    let detail = format!(
        "session {session} does not hold {} of user `{}`; {held_by} others do: `--session {first}` removes one of \
         them (`probe --ask modules` shows all), `--all` the module",
        key.1, key.0
    );
    Err(Refusal::new(RefusalKind::NotInstalled, detail))
}

/// Checks that an installed module may be held by one session more.
pub(crate) fn check_room_for(tenants: &Tenants, key: &Key, session: SessionId) -> Result<(), Refusal> {
    let is_full = |active: &&Active| active.sessions.len() >= SESSIONS_PER_MODULE_MAX;
    let full = tenants.active(key).filter(is_full);
    if full.is_none_or(|active| active.session_of(session).is_some()) {
        return Ok(());
    }
    let detail = format!("{SESSIONS_PER_MODULE_MAX} sessions hold the module");
    Err(Refusal::new(RefusalKind::QuotaExceeded, detail))
}

/// Sets the timer for the first lease that ends.
pub(crate) fn arm_lease(cx: &mut Cx, tenants: &Tenants, key: &Key) {
    let first = tenants.active(key).and_then(|active| active.sessions.iter().map(|session| session.lease_end).min());
    if let Some(first) = first {
        cx.timers.set(Timer::Lease(key.clone()), first);
    }
}

/// Has an installed module remembered as it is.
pub(crate) fn store_active(cx: &mut Cx, tenants: &Tenants, key: &Key) {
    if let Some(record) = tenants.active(key).map(|active| active.record.clone()) {
        store_record(cx, key, &record);
    }
}

/// Takes away the rules that no session needs any more.
pub(crate) fn fit_rules(cx: &mut Cx, tenants: &mut Tenants, key: &Key) {
    let Some(active) = tenants.active_mut(key) else { return };
    let Some(manifest) = active.whole_manifest() else { return };
    let asked: Vec<Asked<'_>> = active.sessions.iter().map(Session::asked).collect();
    let (packets, connections) = asked_together(&manifest, &asked);
    let is_needed = |rule: &ModuleRule| match rule.kind {
        RuleKind::Show => packets.contains(&rule.filter),
        RuleKind::Intercept => rule.filter.everywhere().is_some_and(|filter| connections.contains(filter)),
    };
    let (kept, gone): (Vec<ModuleRule>, Vec<ModuleRule>) =
        std::mem::take(&mut active.rules).into_iter().partition(is_needed);
    active.rules = kept;
    if let Some(server) = active.manifest.as_mut().and_then(|manifest| manifest.server.as_mut()) {
        server.intercept.retain(|filter| connections.contains(filter));
    }
    if manifest.packet.is_some() {
        active.record.filters = ModuleRule::shown(&active.rules);
    }
    remove_rules(cx, key, &gone);
}

/// Tells the other sessions that hold a module that a SETUP put another version or other properties in its place.
pub(crate) fn tell_replaced(cx: &mut Cx, key: &Key, others: &[Session], by: &Setup) {
    for session in others {
        let detail = format!("{} of another session is in its place, with its own properties", by.module);
        cx.tell_requester(key, session.origin(), NotifyEvent::ModuleReplaced, detail, None);
    }
}

/// Has those told whose SETUPs installed a module what happened to it, if it is installed.
pub(crate) fn tell_requesters(cx: &mut Cx, tenants: &Tenants, key: &Key, event: NotifyEvent, detail: String) {
    let Some(origin) = tenants.active(key).map(|active| active.origin()) else { return };
    cx.tell_all_requesters(key, origin, event, detail);
}

/// Weighs the wish of a SETUP: has it ask for what is in force if that is what its session gets, and its requester told so.
///
/// # Errors
/// It is older than what is in force.
pub(crate) fn weigh(
    cx: &mut Cx,
    tenants: &Tenants,
    key: &Key,
    origin: &mut Origin,
    setup: &mut Setup,
) -> Result<(), Refusal> {
    let Some(active) = tenants.active(key) else { return Ok(()) };
    let held = active.session_of(origin.session).map(Session::origin);
    let standing = active.standing(*origin, setup);
    if let (Some(wish), Some(before)) = (&mut origin.wish, held.and_then(|held| held.wish))
        && wish.what == before.what
        && !matches!(standing, Standing::Newest)
    {
        *wish = before;
    }
    let record = &active.record;
    match standing {
        Standing::InForce | Standing::Newest => Ok(()),
        Standing::Older(refusal) => Err(refusal),
        Standing::Overruled => {
            setup.module.clone_from(&record.module);
            setup.url.clone_from(&record.url);
            setup.properties.clone_from(&record.properties);
            setup.floating.clone_from(&record.floating);
            setup.digest = record.digest;
            let detail = format!("{} of another session stays in its place, with its own properties", record.module);
            if let Some(held) = held {
                cx.tell_requester(key, held, NotifyEvent::ModuleReplaced, detail, None);
            }
            Ok(())
        }
    }
}
