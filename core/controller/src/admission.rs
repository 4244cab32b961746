// SPDX-License-Identifier: Apache-2.0
//! Who may ask for what.

use std::collections::BTreeMap;
use std::time::Duration;

use ed25519_dalek::VerifyingKey;
use netserv_model::limits::{CONTAINERS_MAX, PROPERTIES_PER_MODULE_MAX, PROPERTY_BYTES_MAX, TTL_MIN};
use netserv_model::manifest::{MANIFEST_VERSION, Manifest, ModuleLimits};
use netserv_model::policy::{NodePolicy, UserPolicy};
use netserv_model::request::{Ask, Body, Dependency, NodeLoad, Outcome, Probe, Request, Setup};
use netserv_model::target::Condition;
use netserv_model::{Filter, Flavour, ModuleName, PublicKey, Refusal, RefusalKind, UnixTime, UserId, WantedFilter};

use crate::cx::Cx;
use crate::filters;
use crate::floating::{check_floating, see_floating};
use crate::freezing::see_owner;
use crate::limits::{FILTERS_OF_SESSIONS_MAX, MODULES_PER_USER_MAX};
use crate::maintenance::check_maintenance;
use crate::modules::Modules;
use crate::quota::Nonces;
use crate::quota::{Newest, Quarantine};
use crate::seen::{Seen, check_same};
use crate::state::Key;
use crate::tenants::Tenants;

/// How old a request is that may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Its user has just made it.
    Fresh,
    /// It is a SETUP that was made for nodes on another path, and its lease would still run.
    Late {
        /// What is left of the lease.
        left: Duration,
    },
    /// It is a SETUP that came before, and may be in force.
    Repeated,
}

/// What is remembered of users' requests, so that none is taken that is too late.
#[derive(Debug, Default)]
pub(crate) struct Users {
    /// Requests made before this are stale: their nonces may have been seen before a restart.
    pub(crate) fresh_from: UnixTime,
    pub(crate) newest: Newest,
    pub(crate) seen: Seen,
}

/// Why a request is not taken.
pub(crate) enum Denied {
    /// It is answered so.
    Answer(Outcome),
    /// Its user is proven, it is for other nodes, and is answered so.
    ForOthers(UserId, Outcome),
}

impl From<Outcome> for Denied {
    fn from(outcome: Outcome) -> Denied {
        Denied::Answer(outcome)
    }
}

impl From<Refusal> for Denied {
    fn from(refusal: Refusal) -> Denied {
        Denied::Answer(refusal.into())
    }
}

impl Users {
    /// Checks who asks, that the request is in time and that it is for this node; returns the proven user, if the request
    /// needs one, or else why it is not taken.
    pub(crate) fn admit(
        &mut self,
        cx: &Cx,
        tenants: &Tenants,
        nonces: &mut Nonces,
        load: &NodeLoad,
        request: &Request,
    ) -> Result<(Option<UserId>, Freshness), Denied> {
        if cx.policy.host_only {
            return match &request.body {
                Body::Probe(_) => Ok((None, Freshness::Fresh)),
                Body::Setup(_) | Body::Remove(_) | Body::Tell(_) | Body::Export(_) => {
                    Err(Refusal::new(RefusalKind::NotANode, format!("{} is a host", cx.policy.node)).into())
                }
            };
        }
        if is_harmless(&request.body) && (request.user.is_none() || request.signature.is_none()) {
            check_target(cx, load, request, false)?;
            return Ok((None, Freshness::Fresh));
        }
        let user = prove_user(cx, request)?;
        let module = module_of(&request.body);
        if self.is_repeated(tenants, nonces, user, request)? {
            check_target(cx, load, request, true)?;
            return Ok((Some(user.clone()), Freshness::Repeated));
        }
        let time = self.check_fresh(cx, request)?;
        // Before anything is noted: it may be for this node later.
        let is_there = module.is_some_and(|module| tenants.is_taken(user, module));
        if let Err(outcome) = check_target(cx, load, request, is_there) {
            return Err(Denied::ForOthers(user.clone(), outcome));
        }
        self.note(cx, nonces, user, request, time)?;
        Ok((Some(user.clone()), time))
    }

    /// Returns whether a request came before and may be in force.
    ///
    /// # Errors
    /// It came by another session.
    fn is_repeated(
        &self,
        tenants: &Tenants,
        nonces: &Nonces,
        user: &UserId,
        request: &Request,
    ) -> Result<bool, Refusal> {
        let having = |module: &ModuleName| tenants.session_having(&(user.clone(), module.clone()), request.nonce);
        if let (Body::Setup(setup), false) = (&request.body, request.dry_run) {
            self.seen.check(user, request.nonce, request.session)?;
            if let Some(first) = having(&setup.module.name) {
                check_same(request.nonce, first, request.session)?;
            }
        }
        let module = match &request.body {
            Body::Setup(setup) => &setup.module.name,
            Body::Remove(remove) => &remove.module,
            Body::Tell(_) | Body::Export(_) | Body::Probe(_) => return Ok(false),
        };
        Ok(!request.dry_run && (having(module).is_some() || nonces.has(user, request.nonce)))
    }

    /// Checks that a request comes after those about the same that were taken before, and takes note of it.
    fn note(
        &mut self,
        cx: &Cx,
        nonces: &mut Nonces,
        user: &UserId,
        request: &Request,
        time: Freshness,
    ) -> Result<(), Refusal> {
        let (skew, wall) = (cx.policy.clock_skew_max, cx.now.wall);
        if let Body::Tell(tell) = &request.body {
            // Its number says whether it came before, so its nonce need not be remembered.
            return self.newest.check_message(user, &tell.module, request.created);
        }
        if let Body::Export(_) = &request.body {
            return nonces.take(user, request.nonce, request.created, skew, wall);
        }
        let module = module_of(&request.body);
        let late = matches!(time, Freshness::Late { .. });
        let is_remove = matches!(request.body, Body::Remove(_));
        // A REMOVE for all is about every session's requests.
        let session = match &request.body {
            Body::Remove(remove) if remove.all || remove.epoch.is_some() => None,
            Body::Setup(_) | Body::Remove(_) | Body::Tell(_) | Body::Export(_) | Body::Probe(_) => {
                Some(request.session)
            }
        };
        if let Some(module) = module.filter(|_| !is_remove) {
            let again = late || nonces.was_undone(user, request.nonce);
            if again {
                self.seen.check_late(user, request.nonce, request.created)?;
            }
            self.newest.check(user, (module, session), request.created, again)?;
        }
        if !late {
            nonces.take(user, request.nonce, request.created, skew, wall)?;
        }
        if let (Body::Setup(setup), false) = (&request.body, request.dry_run) {
            let until = request.created + skew + setup.ttl;
            self.seen.note(user, (request.nonce, request.session), (request.created, until), wall);
        }
        if let Some(module) = module.filter(|_| !request.dry_run) {
            let until = request.created + skew + cx.policy.ttl_max;
            self.newest.note(user, (module, session), (request.nonce, request.created), is_remove, until, wall);
        }
        Ok(())
    }

    /// Checks when a request was made. A SETUP is sent again by nodes when its path changes, so it can be taken for as long
    /// as its lease would run if it had been taken at the last moment at which it was fresh.
    fn check_fresh(&self, cx: &Cx, request: &Request) -> Result<Freshness, Refusal> {
        let (created, wall, skew) = (request.created, cx.now.wall, cx.policy.clock_skew_max);
        if created < self.fresh_from {
            let detail = format!("made at {created}, before the node started at {}", self.fresh_from);
            return Err(Refusal::new(RefusalKind::StaleRequest, detail));
        }
        if created.distance(wall) <= skew {
            return Ok(Freshness::Fresh);
        }
        if let (Body::Setup(setup), false) = (&request.body, request.dry_run) {
            let ends = created + skew + setup.ttl;
            let left = ends.distance(wall);
            if created < wall && wall < ends && left >= TTL_MIN && setup.ttl <= cx.policy.ttl_max {
                return Ok(Freshness::Late { left });
            }
        }
        let detail = format!("made at {created}, it is {wall} here, at most {} s apart", skew.as_secs());
        Err(Refusal::new(RefusalKind::StaleRequest, detail))
    }
}

/// Returns the user who has proven to ask.
fn prove_user<'a>(cx: &Cx, request: &'a Request) -> Result<&'a UserId, Refusal> {
    let Some(user) = &request.user else {
        return Err(Refusal::new(RefusalKind::Unsigned, "the request names no user"));
    };
    let policy = cx.user_policy(user)?;
    // Who signs the operator's packages does not sign its requests.
    match cx.policy.operator.as_ref().filter(|operator| operator.user == *user) {
        Some(operator) => check_signature(std::slice::from_ref(&operator.key), false, request)?,
        None => check_signature(&policy.keys, cx.policy.accept_unsigned, request)?,
    }
    Ok(user)
}

/// Returns the module that a request is about.
fn module_of(body: &Body) -> Option<&ModuleName> {
    match body {
        Body::Setup(setup) => Some(&setup.module.name),
        Body::Remove(remove) => Some(&remove.module),
        Body::Tell(tell) => Some(&tell.module),
        Body::Export(export) => Some(&export.module),
        Body::Probe(_) => None,
    }
}

/// Returns what to answer to a proven request that is not for this node, and lets go of what another one has by it.
pub(crate) fn pass_by(cx: &mut Cx, m: &mut Modules, user: &UserId, request: &Request, outcome: Outcome) -> Outcome {
    let said = match &request.body {
        Body::Setup(setup) if !request.dry_run && names_others(cx, request) => {
            let key = (user.clone(), setup.module.name.clone());
            let said = [see_floating(cx, m, &key, setup), see_owner(cx, &mut m.tenants, &mut m.buffers, &key, setup)];
            Some(said.into_iter().flatten().collect::<Vec<_>>().join("; ")).filter(|said| !said.is_empty())
        }
        Body::Setup(_) | Body::Remove(_) | Body::Tell(_) | Body::Export(_) | Body::Probe(_) => None,
    };
    match (outcome, said) {
        (Outcome::NotTargeted { reason }, Some(said)) => Outcome::NotTargeted { reason: format!("{reason}; {said}") },
        (outcome, _) => outcome,
    }
}

/// Returns whether a request is for nodes by name, of which this is none.
fn names_others(cx: &Cx, request: &Request) -> bool {
    !request.nodes.is_empty() && !request.nodes.contains(&cx.policy.node)
}

/// Checks that a request is for this node. What is there already does not have to find room once more.
fn check_target(cx: &Cx, load: &NodeLoad, request: &Request, is_there: bool) -> Result<(), Outcome> {
    let unmet = || request.require.iter().find_map(|condition| unmet(cx, load, condition, is_there));
    match request.passed_by.clone().or_else(unmet) {
        Some(reason) => Err(Outcome::NotTargeted { reason }),
        None => Ok(()),
    }
}

/// Returns why a condition is not true here, if it is not.
fn unmet(cx: &Cx, load: &NodeLoad, condition: &Condition, is_there: bool) -> Option<String> {
    let has = match condition {
        Condition::Flavour(flavour) => {
            let has = cx.policy.blocks.contains_key(flavour.as_str());
            return (!has).then(|| format!("`{condition}` is asked for, the node does not run it"));
        }
        Condition::Block(block) => match cx.policy.blocks.get(&block.block) {
            Some(version) if *version >= block.version_min => return None,
            Some(version) => format!("the node has version {version}"),
            None => "the node has none".to_owned(),
        },
        Condition::MemoryFree(_) | Condition::LoadBelow(_) if is_there => return None,
        Condition::MemoryFree(bytes) => {
            let free = load.memory_free_kib.saturating_mul(1024);
            if free >= *bytes {
                return None;
            }
            format!("{free} bytes are free")
        }
        Condition::LoadBelow(permille) => {
            let load = load.load_permille;
            if load < *permille {
                return None;
            }
            format!("the load is {}.{:03}", load / 1000, load % 1000)
        }
    };
    Some(format!("`{condition}` is asked for, {has}"))
}

/// Checks everything about a SETUP that can be known before its package is there.
pub(crate) fn check_setup(cx: &Cx, m: &Modules, key: &Key, setup: &Setup) -> Result<(), Refusal> {
    let user = cx.user_policy(&key.0)?;
    if setup.ttl < TTL_MIN || setup.ttl > cx.policy.ttl_max {
        let (asked, longest) = (setup.ttl.as_secs_f64(), cx.policy.ttl_max.as_secs());
        let detail = format!("{asked} s asked for, {} to {longest} s granted", TTL_MIN.as_secs());
        return Err(Refusal::new(RefusalKind::BadTtl, detail));
    }
    check_maintenance(cx, &m.tenants, key, setup.epoch)?;
    check_properties(&setup.properties, RefusalKind::BadRequest)?;
    m.epochs.check(&m.tenants, key, setup.epoch)?;
    m.epochs.check_state(&m.tenants, key, setup)?;
    check_floating(cx, &m.tenants, key, &setup.floating, setup.epoch)?;
    check_quota(&m.tenants, key, user)?;
    filters::check(&cx.policy, user, &setup.filters)?;
    check_dependencies(&cx.policy, &setup.dependencies)?;
    check_quarantine(cx, &m.quarantine, key, setup)
}

fn check_quota(tenants: &Tenants, key: &Key, user: &UserPolicy) -> Result<(), Refusal> {
    let Some(tenant) = tenants.get(&key.0) else {
        if tenants.len() >= CONTAINERS_MAX {
            let detail = format!("the node has {CONTAINERS_MAX} containers");
            return Err(Refusal::new(RefusalKind::QuotaExceeded, detail));
        }
        return check_modules(0, user);
    };
    let taken = |entry: &crate::state::Entry| entry.active.is_some() || entry.operation.is_some();
    if tenant.modules.get(&key.1).is_some_and(taken) {
        return Ok(());
    }
    check_modules(tenant.modules.values().filter(|entry| taken(entry)).count(), user)
}

fn check_quarantine(cx: &Cx, quarantine: &Quarantine, key: &Key, setup: &Setup) -> Result<(), Refusal> {
    let Some(left) = quarantine.remaining(cx.now.instant, &key.0, setup.digest) else { return Ok(()) };
    let detail = format!(
        "{} failed too often or took too long to compile, kept out for another {} s",
        setup.digest,
        left.as_secs() + 1
    );
    Err(Refusal::new(RefusalKind::Quarantined, detail))
}

/// Checks that no other module of the user's takes connections where a module would: they share a container.
pub(crate) fn check_ports(tenants: &Tenants, key: &Key, manifest: &Manifest) -> Result<(), Refusal> {
    let Some(tenant) = tenants.get(&key.0) else { return Ok(()) };
    for (name, entry) in tenant.modules.iter().filter(|(name, _)| **name != key.1) {
        let candidate = entry.operation.as_ref().and_then(|operation| operation.stage.candidate());
        let active = entry.active.as_ref().and_then(|active| active.manifest.as_ref());
        for other in active.into_iter().chain(candidate.map(|candidate| &candidate.manifest)) {
            if let Some((wanted, theirs)) = pair(manifest.listen(), other.listen(), filters::share_port) {
                let detail = format!("server.listen `{wanted}` meets `{theirs}` of {name}, another module of the user");
                return Err(Refusal::new(RefusalKind::PortTaken, detail));
            }
        }
    }
    Ok(())
}

/// Returns the first two filters of two lists of which something is true.
fn pair<'a>(
    one: &'a [Filter],
    other: &'a [Filter],
    is: impl Fn(&Filter, &Filter) -> bool,
) -> Option<(&'a Filter, &'a Filter)> {
    let is = &is;
    one.iter().find_map(|own| other.iter().find(|theirs| is(own, theirs)).map(|theirs| (own, theirs)))
}

/// Which packets a session wants a module to see, and which connections to take over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) filters: &'a [WantedFilter],
    pub(crate) intercept: &'a [Filter],
}

/// Returns the packets that a module sees and the connections that it takes over if sessions ask for these.
pub(crate) fn asked_together(manifest: &Manifest, asked: &[Asked<'_>]) -> (Vec<WantedFilter>, Vec<Filter>) {
    let packets: Vec<WantedFilter> = asked.iter().flat_map(|asked| packets(manifest, *asked)).collect();
    let connections = asked.iter().flat_map(|asked| connections(manifest, *asked).unwrap_or_default());
    (filters::without_repetitions(&packets), filters::without_repetitions(&connections.collect::<Vec<_>>()))
}

/// Checks what a session asks of a module beside others; returns the module's manifest and packets as they are for all together.
pub(crate) fn check_together(
    policy: &NodePolicy,
    user: &UserPolicy,
    mut manifest: Manifest,
    own: Asked<'_>,
    others: &[Asked<'_>],
) -> Result<(Manifest, Vec<WantedFilter>), Refusal> {
    if manifest.packet.is_none() && !own.filters.is_empty() && manifest.intercept().is_empty() {
        let detail =
            "the request has filters, and the module has no part in the packet path and takes over no connections";
        return Err(Refusal::new(RefusalKind::BadManifest, detail));
    }
    filters::check(policy, user, &packets(&manifest, own))?;
    connections(&manifest, own)?;
    let asked: Vec<Asked<'_>> = others.iter().copied().chain([own]).collect();
    let (packets, connections) = asked_together(&manifest, &asked);
    let most = packets.len().max(connections.len());
    if most > FILTERS_OF_SESSIONS_MAX {
        let detail = format!("{most} filters of {} sessions, at most {FILTERS_OF_SESSIONS_MAX}", asked.len());
        return Err(Refusal::new(RefusalKind::QuotaExceeded, detail));
    }
    if let Some(server) = &mut manifest.server {
        server.intercept = connections;
    }
    Ok((manifest, packets))
}

fn packets(manifest: &Manifest, asked: Asked<'_>) -> Vec<WantedFilter> {
    match manifest.packet {
        Some(_) => filters::narrowed(manifest.filters(), asked.filters),
        None => Vec::new(),
    }
}

/// Returns the connections that a module takes over if a session asks so. So do the filters of a request for a module without a
/// packet part.
///
/// # Errors
/// The module takes over no connections, or the request names some that cannot be taken over.
fn connections(manifest: &Manifest, asked: Asked<'_>) -> Result<Vec<Filter>, Refusal> {
    let own = manifest.intercept();
    let wanted = |filters: &[Filter]| filters.iter().cloned().map(WantedFilter::from).collect::<Vec<_>>();
    let asked_for = match &manifest.packet {
        None if asked.intercept.is_empty() => asked.filters.to_vec(),
        None | Some(_) => wanted(asked.intercept),
    };
    if asked_for.is_empty() || (own.is_empty() && asked.intercept.is_empty()) {
        return Ok(own.to_vec());
    }
    if own.is_empty() {
        let detail = "the request has `intercept`, and the module takes over no connections";
        return Err(Refusal::new(RefusalKind::BadRequest, detail));
    }
    let narrowed = filters::narrowed(&wanted(own), &asked_for);
    narrowed.iter().map(|filter| filter.everywhere().cloned().ok_or_else(|| no_container(filter))).collect()
}

/// Returns a manifest whose connections are those that a session asks for.
fn narrowed(manifest: &Manifest, asked: Asked<'_>) -> Result<Manifest, Refusal> {
    let mut manifest = manifest.clone();
    let connections = connections(&manifest, asked)?;
    if let Some(server) = &mut manifest.server {
        server.intercept = connections;
    }
    Ok(manifest)
}

fn no_container(filter: &WantedFilter) -> Refusal {
    let detail = format!("connections cannot be taken over by `{filter}`: those to and from containers never are");
    Refusal::new(RefusalKind::BadRequest, detail)
}

/// Checks a package against the SETUP that named it, beside what other sessions ask for; returns its manifest as all of them leave
/// it, and the filters that the module gets.
pub(crate) fn check_manifest(
    policy: &NodePolicy,
    user: &UserPolicy,
    setup: &Setup,
    others: &[Asked<'_>],
    whole: Manifest,
    flavour: Flavour,
) -> Result<(Manifest, Vec<WantedFilter>), Refusal> {
    let manifest = narrowed(&whole, Asked::of(setup))?;
    let bad = |detail: String| Err(Refusal::new(RefusalKind::BadManifest, detail));
    if manifest.manifest != MANIFEST_VERSION {
        let detail = format!("manifest version {}, understood is {MANIFEST_VERSION}", manifest.manifest);
        return Err(Refusal::new(RefusalKind::MissingFeature, detail));
    }
    if manifest.module() != setup.module {
        return bad(format!("the package is {}, the request names {}", manifest.module(), setup.module));
    }
    if let (Flavour::Wasm, Some(packet)) = (flavour, &manifest.packet) {
        check_abi(policy, packet.abi)?;
    }
    check_dependencies(policy, &manifest.dependencies)?;
    if manifest.limits.memory_bytes > user.module_limits.memory_bytes {
        let (wanted, granted) = (manifest.limits.memory_bytes, user.module_limits.memory_bytes);
        let detail = format!("the module wants {wanted} bytes of memory, the user's modules get {granted}");
        return Err(Refusal::new(RefusalKind::MemoryLimit, detail));
    }
    check_needs(policy, user, &manifest)?;
    check_properties(&merged_properties(&manifest, &setup.properties), RefusalKind::BadManifest)?;
    check_server(policy, user, &manifest)?;
    check_together(policy, user, whole, Asked::of(setup), others)
}

/// Checks that a module is granted what it cannot do without.
pub(crate) fn check_needs(policy: &NodePolicy, user: &UserPolicy, manifest: &Manifest) -> Result<(), Refusal> {
    let ceilings = user.ceilings(policy.cache_bytes);
    let granted = |resource| ceilings.get(resource).copied().unwrap_or(0);
    match manifest.needs.iter().find(|(resource, amount)| granted(resource) < **amount) {
        Some((resource, amount)) => {
            let granted = granted(resource);
            let detail = format!("the module needs {resource} of {amount}, the user's modules get {granted} at most");
            Err(Refusal::new(RefusalKind::QuotaExceeded, detail))
        }
        None => Ok(()),
    }
}

/// Checks that a module's server part, if it has one, may take its connections.
pub(crate) fn check_server(policy: &NodePolicy, user: &UserPolicy, manifest: &Manifest) -> Result<(), Refusal> {
    let Some(server) = &manifest.server else { return Ok(()) };
    if !policy.has_network() {
        let detail = "the module is a server, and the containers of this node have no network";
        return Err(Refusal::new(RefusalKind::NoNetwork, detail));
    }
    if !server.intercept.is_empty() {
        if !user.needs_network() {
            let detail = "the module takes over connections, and the user's container has no network: the operator \
                          grants neither `listen` nor `connect`";
            return Err(Refusal::new(RefusalKind::NotPermitted, detail));
        }
        let intercept: Vec<WantedFilter> = server.intercept.iter().cloned().map(WantedFilter::from).collect();
        filters::check(policy, user, &intercept)?;
        if let Some(filter) = server.intercept.iter().find(|filter| !filter.is_of_connections()) {
            let detail = format!("connections cannot be taken over by `{filter}`; write `tcp` and a port");
            return Err(Refusal::new(RefusalKind::BadRequest, detail));
        }
    }
    match server.listen.iter().find(|wanted| !filters::grants(&user.listen, wanted)) {
        None => Ok(()),
        Some(wanted) => {
            let granted: Vec<String> = user.listen.iter().map(|filter| format!("`{filter}`")).collect();
            let granted = if granted.is_empty() { "none".to_owned() } else { granted.join(", ") };
            let detail = format!("the module wants to take connections at `{wanted}`, granted to the user: {granted}");
            Err(Refusal::new(RefusalKind::NotPermitted, detail))
        }
    }
}

/// Returns the manifest's properties with those of the SETUP over them.
pub(crate) fn merged_properties(manifest: &Manifest, own: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut merged = manifest.properties.clone();
    merged.extend(own.clone());
    merged
}

/// Returns what a module gets: what it asks for, as far as the operator grants it.
pub(crate) fn clamp_limits(wanted: &ModuleLimits, granted: &ModuleLimits) -> ModuleLimits {
    ModuleLimits {
        memory_bytes: wanted.memory_bytes.min(granted.memory_bytes),
        kv_entries: wanted.kv_entries.min(granted.kv_entries),
        kv_bytes: wanted.kv_bytes.min(granted.kv_bytes),
        timers: wanted.timers.min(granted.timers),
        counters: wanted.counters.min(granted.counters),
        call_ms: wanted.call_ms.min(granted.call_ms),
        request_ms: wanted.request_ms.min(granted.request_ms),
        requests: wanted.requests.min(granted.requests),
        connections: wanted.connections.min(granted.connections),
        body_bytes: wanted.body_bytes.min(granted.body_bytes),
    }
}

/// Returns whether a request tells only what everybody may know.
fn is_harmless(body: &Body) -> bool {
    match body {
        Body::Probe(Probe { ask }) => ask.iter().all(|ask| match ask {
            Ask::Nodes | Ask::Blocks | Ask::Load => true,
            Ask::Modules | Ask::Policy => false,
        }),
        Body::Setup(_) | Body::Remove(_) | Body::Tell(_) | Body::Export(_) => false,
    }
}

fn check_signature(keys: &[PublicKey], accept_unsigned: bool, request: &Request) -> Result<(), Refusal> {
    let Some(signature) = request.signature else {
        let refusal = Refusal::new(RefusalKind::Unsigned, "the node takes only signed requests");
        return if accept_unsigned { Ok(()) } else { Err(refusal) };
    };
    let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
    let signed_by = |key: &PublicKey| {
        let key = VerifyingKey::from_bytes(&key.0);
        key.is_ok_and(|key| key.verify_strict(&request.signed_bytes, &signature).is_ok())
    };
    let refusal = || Refusal::new(RefusalKind::BadSignature, format!("none of the user's {} keys fits", keys.len()));
    if keys.iter().any(signed_by) { Ok(()) } else { Err(refusal()) }
}

fn check_modules(installed: usize, user: &UserPolicy) -> Result<(), Refusal> {
    let granted = usize::try_from(user.modules_max).unwrap_or(usize::MAX).min(MODULES_PER_USER_MAX);
    let refusal = || Refusal::new(RefusalKind::QuotaExceeded, format!("{installed} modules of at most {granted}"));
    if installed < granted { Ok(()) } else { Err(refusal()) }
}

fn check_properties(properties: &BTreeMap<String, String>, kind: RefusalKind) -> Result<(), Refusal> {
    if properties.len() > PROPERTIES_PER_MODULE_MAX {
        let detail = format!("{} properties, at most {PROPERTIES_PER_MODULE_MAX}", properties.len());
        return Err(Refusal::new(kind, detail));
    }
    match properties.iter().find(|(key, value)| key.len() + value.len() > PROPERTY_BYTES_MAX) {
        None => Ok(()),
        Some((key, _)) => {
            let key: String = key.chars().take(40).collect();
            Err(Refusal::new(kind, format!("property `{key}` is longer than {PROPERTY_BYTES_MAX} bytes")))
        }
    }
}

fn check_dependencies(policy: &NodePolicy, dependencies: &[Dependency]) -> Result<(), Refusal> {
    let missing = |wanted: &&Dependency| policy.blocks.get(&wanted.block).is_none_or(|has| *has < wanted.version_min);
    let Some(wanted) = dependencies.iter().find(missing) else { return Ok(()) };
    let detail = match policy.blocks.get(&wanted.block) {
        Some(version) => format!("`{wanted}` is needed, the node has version {version}"),
        None => format!("`{wanted}` is needed, the node has none"),
    };
    Err(Refusal::new(RefusalKind::MissingDependency, detail))
}

/// Checks that the node speaks the module's packet ABI: the block `packet` names the newest one, older ones stay.
fn check_abi(policy: &NodePolicy, abi: u32) -> Result<(), Refusal> {
    let newest = policy.blocks.get("packet").copied().unwrap_or(0);
    let refusal =
        || Refusal::new(RefusalKind::AbiMismatch, format!("built for packet ABI {abi}, the node has {newest}"));
    if (1..=newest).contains(&abi) { Ok(()) } else { Err(refusal()) }
}
