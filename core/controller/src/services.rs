// SPDX-License-Identifier: Apache-2.0
//! Services: modules that a user has installed, put together as one. Their components are composed, and packets go
//! through them in the service's order.
//!
//! A service is what its parts are: it is composed anew when one of them is replaced, and removed when one is gone.

use netserv_model::effect::{Command, EffectId, Job, ModuleSlot, Notice, PackageJob, WorkerJob};
use netserv_model::limits::CHAIN_PARTS_MAX;
use netserv_model::manifest::{ChainPart, Manifest};
use netserv_model::notify::NotifyEvent;
use netserv_model::{Digest, Flavour, ModuleName, Refusal, RefusalKind, UserId, WorkerId};

use crate::cx::Cx;
use crate::effects::Purpose;
use crate::expiry::Timer;
use crate::floating::resume_floating;
use crate::lifecycle::{advance, start_package, uninstall};
use crate::limits::BACKOFF_MAX;
use crate::modules::{Later, Modules};
use crate::operator::tell_requesters;
use crate::restart::as_setup;
use crate::state::{
    Active, Candidate, Composition, Entry, Key, Leave, ModuleRule, Operation, Phase, Run, Settling, Stage, Tenant,
};
use crate::tenants::Tenants;
use crate::workers::pump_user;

/// Why a service cannot be put together.
enum Unresolved {
    /// It can never be, as things are.
    Refused(Refusal),
    /// A part's package is being had again after a restart of the node.
    NotYet(Refusal),
}

/// Returns what a service is to be made of; nothing for a module that is none.
///
/// # Errors
/// A refusal that names the part that is missing or does not fit.
pub(crate) fn compose_parts(tenants: &Tenants, key: &Key, manifest: &Manifest) -> Result<Option<Composition>, Refusal> {
    if manifest.service.is_none() {
        return Ok(None);
    }
    match resolve(tenants, key, manifest) {
        Ok(composition) => Ok(Some(composition)),
        Err(Unresolved::Refused(refusal) | Unresolved::NotYet(refusal)) => Err(refusal),
    }
}

/// Returns where the installation of a module begins whose package is there and checked.
pub(crate) fn first_stage(cx: &mut Cx, tenants: &Tenants, later: &mut Later, key: &Key, candidate: Candidate) -> Stage {
    let Some(composition) = &candidate.composition else { return Stage::Waiting(candidate) };
    if composition.servers.is_empty() {
        // It has nothing to load: only the order of its parts is its own.
        later.swaps.push_back(key.clone());
        return Stage::Settling(candidate, Settling::default());
    }
    let job = compose(cx, tenants, key, &composition.servers.clone());
    Stage::Composing(job, candidate)
}

/// A composition is ready to be loaded.
pub(crate) fn service_composed(cx: &mut Cx, m: &mut Modules, key: &Key, job: EffectId) {
    cx.timers.cancel(&Timer::Fetch(job));
    if !matches!(m.tenants.stage(key), Some(Stage::Composing(wanted, _)) if *wanted == job) {
        return active_composed(cx, m, key, job);
    }
    let Some(entry) = m.tenants.entry(key) else { return };
    if let Some(Operation { ticket, origin, setup, stage: Stage::Composing(_, candidate) }) = entry.operation.take() {
        entry.operation = Some(Operation { ticket, origin, setup, stage: Stage::Waiting(candidate) });
    }
    pump_user(cx, m, &key.0);
}

/// Puts an installed service together, which is not in force: after a restart of the node, or after a failure.
pub(crate) fn compose_active(cx: &mut Cx, m: &mut Modules, key: &Key) {
    let Some(manifest) = m.tenants.active(key).and_then(|active| active.manifest.clone()) else { return };
    match resolve(&m.tenants, key, &manifest) {
        Ok(composition) => begin_active(cx, &mut m.tenants, key, composition),
        Err(Unresolved::Refused(refusal)) => dissolve(cx, m, key, refusal),
        Err(Unresolved::NotYet(refusal)) => {
            let later = cx.now.instant + BACKOFF_MAX;
            let Some(active) = m.tenants.active(key) else { return };
            active.last_failure = Some(refusal);
            active.run = Run::BackingOff;
            // Its parts wake it earlier.
            cx.timers.set(Timer::Restart(key.clone()), later);
        }
    }
}

/// Looks at a user's services after something changed: what is not what its parts are is composed anew or removed.
pub(crate) fn check_services(cx: &mut Cx, m: &mut Modules, user: &UserId) {
    let Some(tenant) = m.tenants.get(user) else { return };
    let services: Vec<ModuleName> =
        tenant.modules.iter().filter(|(_, entry)| is_settled_service(entry)).map(|(name, _)| name.clone()).collect();
    for name in services {
        check_service(cx, m, &(user.clone(), name));
    }
}

/// Removes a service whose parts are not what it needs, and says so.
pub(crate) fn dissolve(cx: &mut Cx, m: &mut Modules, key: &Key, refusal: Refusal) {
    let Some(active) = m.tenants.active(key) else { return };
    let (user, module) = (key.0.clone(), active.record.module.clone());
    cx.counters.dissolved += 1;
    tell_requesters(cx, &mut m.tenants, key, NotifyEvent::LeaseEnded, refusal.to_string());
    cx.say(Command::Notify(Notice::Dissolved { user, module, refusal }));
    uninstall(cx, m, key, Leave::AtOnce);
    advance(cx, m, key);
}

/// Asks for the order of packets through a user's modules, if services want one and it is another than before.
pub(crate) fn order_packets(cx: &mut Cx, tenants: &mut Tenants, user: &UserId) {
    let Some(tenant) = tenants.get_mut(user) else { return };
    let slots = packet_order(tenant);
    let Some(worker) = tenant.workers.get_mut(&Flavour::Wasm).filter(|worker| worker.phase == Phase::Ready) else {
        return;
    };
    let Some(slots) = slots.filter(|slots| *slots != worker.order) else { return };
    worker.order.clone_from(&slots);
    let job = WorkerJob::Order { worker: WorkerId::new(user.clone(), Flavour::Wasm), slots };
    cx.start_effect(user, Job::Workers(job), Purpose::Nothing);
}

fn check_service(cx: &mut Cx, m: &mut Modules, key: &Key) {
    let Some(Entry { active: Some(active), .. }) = m.tenants.entry(key).filter(|entry| is_settled_service(entry))
    else {
        return;
    };
    let (manifest, known) = (active.manifest.clone(), active.composition.clone());
    let Some(manifest) = manifest else { return };
    match (resolve(&m.tenants, key, &manifest), known) {
        (Ok(composition), Some(known)) if composition.servers == known.servers => {
            if let Some(active) = m.tenants.active(key) {
                active.composition = Some(composition);
            }
            order_packets(cx, &mut m.tenants, &key.0);
        }
        (Ok(composition), Some(_)) => compose_anew(cx, &mut m.tenants, &mut m.later, key, manifest, composition),
        (Ok(_), None) => {
            cx.timers.cancel(&Timer::Restart(key.clone()));
            compose_active(cx, m, key);
        }
        (Err(Unresolved::Refused(refusal)), _) => dissolve(cx, m, key, refusal),
        (Err(Unresolved::NotYet(_)), _) => {}
    }
}

/// Replaces a service by itself, made of other parts. What is in force stays so until then.
fn compose_anew(
    cx: &mut Cx,
    tenants: &mut Tenants,
    later: &mut Later,
    key: &Key,
    manifest: Manifest,
    composition: Composition,
) {
    let Some(active) = tenants.active(key) else { return };
    let (origin, setup, declared) = (active.origin(), as_setup(&active.record), active.declared.clone());
    let rules = ModuleRule::all_of(&[], Some(&manifest));
    let candidate =
        Candidate { manifest, declared, flavour: Flavour::Wasm, rules, slot: None, composition: Some(composition) };
    let stage = first_stage(cx, tenants, later, key, candidate);
    tenants.entry_or_new(key).operation = Some(Operation { ticket: None, origin, setup, stage });
}

fn begin_active(cx: &mut Cx, tenants: &mut Tenants, key: &Key, composition: Composition) {
    let servers = composition.servers.clone();
    let job = (!servers.is_empty()).then(|| compose(cx, tenants, key, &servers));
    let Some(active) = tenants.active(key) else { return };
    active.composition = Some(composition);
    active.run = job.map_or(Run::Running, Run::Fetching);
    order_packets(cx, tenants, &key.0);
    if job.is_none() {
        resume_floating(cx, tenants, key);
    }
}

fn active_composed(cx: &mut Cx, m: &mut Modules, key: &Key, job: EffectId) {
    let Some(active) = m.tenants.active(key).filter(|active| active.run == Run::Fetching(job)) else { return };
    let (manifest, known) = (active.manifest.clone(), active.composition.clone());
    active.run = Run::Waiting;
    let Some(manifest) = manifest else { return };
    // Its parts may have changed meanwhile.
    match resolve(&m.tenants, key, &manifest) {
        Ok(composition) if Some(&composition) == known.as_ref() => pump_user(cx, m, &key.0),
        Ok(_) | Err(_) => compose_active(cx, m, key),
    }
}

fn compose(cx: &mut Cx, tenants: &Tenants, key: &Key, servers: &[Digest]) -> EffectId {
    let modules = tenants.get(&key.0).map(|tenant| &tenant.modules);
    let actives = || modules.into_iter().flatten().filter_map(|(_, entry)| entry.active.as_ref());
    let name = |digest: &Digest| actives().find(|active| active.record.digest == *digest);
    let names = servers.iter().filter_map(name).map(|active| active.record.module.clone()).collect();
    start_package(cx, key, PackageJob::Compose { parts: servers.to_vec(), names })
}

fn resolve(tenants: &Tenants, key: &Key, manifest: &Manifest) -> Result<Composition, Unresolved> {
    let empty = Tenant::default();
    let tenant = tenants.get(&key.0).unwrap_or(&empty);
    let mut parts: Vec<&Active> = Vec::new();
    collect(tenant, manifest.chain(), &mut vec![&key.1], &mut parts)?;
    for part in &parts {
        check_part(part, manifest).map_err(Unresolved::Refused)?;
    }
    let serves = |part: &&&Active| part.manifest.as_ref().is_some_and(|manifest| manifest.server.is_some());
    let servers: Vec<_> = match &manifest.server {
        Some(_) => parts.iter().filter(serves).map(|part| part.record.digest).collect(),
        None => Vec::new(),
    };
    if manifest.server.is_some() && servers.is_empty() {
        return Err(refused("the service has [server], and none of its parts has"));
    }
    Ok(Composition { parts: parts.iter().map(|part| part.record.module.clone()).collect(), servers })
}

/// Finds the parts of a chain, with those of services in it. `inside` are the services that it is in.
fn collect<'a>(
    tenant: &'a Tenant,
    chain: &'a [ChainPart],
    inside: &mut Vec<&'a ModuleName>,
    parts: &mut Vec<&'a Active>,
) -> Result<(), Unresolved> {
    for part in chain {
        if inside.contains(&&part.name) {
            let way: Vec<&str> = inside.iter().copied().chain([&part.name]).map(ModuleName::as_str).collect();
            return Err(refused(&format!("a service is inside itself: {}", way.join(", which has "))));
        }
        let active = tenant.modules.get(&part.name).and_then(|entry| entry.active.as_ref());
        let Some(active) = active else { return Err(missing(format!("its part `{part}` is not installed"))) };
        let version = &active.record.module.version;
        if !part.versions.matches(version) {
            return Err(missing(format!("of its part `{part}`, version {version} is installed")));
        }
        let Some(manifest) = &active.manifest else {
            let detail = format!("the package of its part `{part}` is being fetched");
            return Err(Unresolved::NotYet(Refusal::new(RefusalKind::MissingPart, detail)));
        };
        if manifest.service.is_some() {
            inside.push(&part.name);
            collect(tenant, manifest.chain(), inside, parts)?;
            inside.pop();
        } else if parts.iter().any(|known| known.record.module.name == part.name) {
            return Err(refused(&format!("`{}` would be in it twice", part.name)));
        } else if parts.len() >= CHAIN_PARTS_MAX {
            return Err(refused(&format!("with the parts of its parts it has more than {CHAIN_PARTS_MAX}")));
        } else {
            parts.push(active);
        }
    }
    Ok(())
}

/// Checks that a module can be part of a service.
fn check_part(part: &Active, service: &Manifest) -> Result<(), Refusal> {
    let bad = |detail: String| Err(Refusal::new(RefusalKind::BadService, detail));
    let module = &part.record.module;
    match part.record.flavour {
        Some(Flavour::Wasm) => {}
        Some(other @ Flavour::Osgi) => {
            return bad(format!("its part {module} runs as {other}; services are made of WebAssembly modules"));
        }
        None => return bad(format!("nobody knows what its part {module} runs as")),
    }
    if service.server.is_none() && !sees(part.manifest.as_ref()) {
        return bad(format!("its part {module} sees no packets, and the service has no [server]"));
    }
    Ok(())
}

/// Returns the loaded modules of a tenant that see packets, in the order that its services want: the order of
/// installation, in which the parts of each service change places among themselves. Nothing if no service cares.
fn packet_order(tenant: &Tenant) -> Option<Vec<ModuleSlot>> {
    let mut services: Vec<(u64, Vec<&ModuleName>)> =
        tenant.modules.values().filter_map(|entry| packet_parts(tenant, entry)).collect();
    services.sort_unstable();
    let cared_for = tenant.workers.get(&Flavour::Wasm).is_some_and(|worker| !worker.order.is_empty());
    if services.is_empty() && !cared_for {
        return None;
    }
    let mut loaded: Vec<(u64, ModuleSlot, &ModuleName)> = Vec::new();
    for (name, entry) in &tenant.modules {
        let order = entry.active.as_ref().map_or(u64::MAX, |active| active.record.order);
        let running =
            entry.active.as_ref().filter(|active| active.run == Run::Running && sees(active.manifest.as_ref()));
        let settling = settling(entry).filter(|candidate| sees(Some(&candidate.manifest)));
        let places = running.and_then(Active::place).into_iter().chain(settling.and_then(Candidate::place));
        let wasm = places.filter(|(flavour, _)| *flavour == Flavour::Wasm);
        loaded.extend(wasm.map(|(_, slot)| (order, slot, name)));
    }
    loaded.sort_unstable();
    for (_, parts) in services {
        let rank = |name: &ModuleName| parts.iter().position(|part| *part == name);
        let places: Vec<usize> = (0..loaded.len()).filter(|at| rank(loaded[*at].2).is_some()).collect();
        let mut in_order: Vec<_> = places.iter().map(|at| loaded[*at]).collect();
        in_order.sort_by_key(|(_, _, name)| rank(name));
        places.into_iter().zip(in_order).for_each(|(at, part)| loaded[at] = part);
    }
    Some(loaded.into_iter().map(|(_, slot, _)| slot).collect())
}

/// Returns the parts that see packets of an installed service, or of one that is about to be, with its place in the
/// order of installation; nothing for fewer than two.
fn packet_parts<'a>(tenant: &'a Tenant, entry: &'a Entry) -> Option<(u64, Vec<&'a ModuleName>)> {
    let order = entry.active.as_ref().map_or(u64::MAX, |active| active.record.order);
    let composition = settling(entry).and_then(|candidate| candidate.composition.as_ref());
    let composition = composition.or_else(|| entry.active.as_ref()?.composition.as_ref())?;
    let active = |name: &ModuleName| tenant.modules.get(name)?.active.as_ref();
    let looks = |name: &&ModuleName| active(name).is_some_and(|active| sees(active.manifest.as_ref()));
    let parts: Vec<&ModuleName> = composition.parts.iter().map(|part| &part.name).filter(looks).collect();
    (parts.len() > 1).then_some((order, parts))
}

/// Returns whether a module sees packets.
fn sees(manifest: Option<&Manifest>) -> bool {
    manifest.is_some_and(|manifest| manifest.packet.is_some())
}

/// Returns what is loaded and about to be in force.
fn settling(entry: &Entry) -> Option<&Candidate> {
    match &entry.operation.as_ref()?.stage {
        Stage::Settling(candidate, _) => Some(candidate),
        Stage::Fetching(_) | Stage::Composing(..) | Stage::Waiting(_) | Stage::Loading(_) | Stage::Joining(_) => None,
    }
}

/// Returns whether an entry is an installed service about which nothing is under way.
fn is_settled_service(entry: &Entry) -> bool {
    let service = |active: &Active| active.manifest.as_ref().is_some_and(|manifest| manifest.service.is_some());
    let active = entry.active.as_ref().filter(|active| service(active));
    entry.operation.is_none() && active.is_some_and(|active| !matches!(active.run, Run::Fetching(_)))
}

fn missing(detail: String) -> Unresolved {
    Unresolved::Refused(Refusal::new(RefusalKind::MissingPart, detail))
}

fn refused(detail: &str) -> Unresolved {
    Unresolved::Refused(Refusal::new(RefusalKind::BadService, detail))
}
