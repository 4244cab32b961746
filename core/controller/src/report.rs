// SPDX-License-Identifier: Apache-2.0
//! Reports: what a request is told of the node and its modules.

use std::collections::BTreeMap;

use netserv_model::api::UserInfo;
use netserv_model::limits::SESSIONS_SHOWN_MAX;
use netserv_model::request::{
    Ask, Dependency, ModuleState, ModuleStatus, NodeLoad, Outcome, PacketCounts, PolicyReport, Probe,
};
use netserv_model::{Digest, Flavour, Instant, ModuleRef, UserId};

use crate::cx::Cx;
use crate::cx::request::PendingAnswer;
use crate::tenants::Tenants;
use crate::tenants::active::Active;
use crate::tenants::operation::{Operation, Stage};
use crate::tenants::tenant::{Entry, Tenant};
use crate::tenants::worker::{Draining, Phase};

/// Answers a PROBE with what it asks for, as far as its user has proven to be one.
pub(crate) fn answer_probe(
    cx: &mut Cx,
    tenants: &Tenants,
    load: &NodeLoad,
    ticket: PendingAnswer,
    user: Option<&UserId>,
    probe: &Probe,
) {
    let mut report = cx.report(&ticket, Outcome::Probed);
    for ask in &probe.ask {
        match ask {
            Ask::Nodes => {}
            Ask::Blocks => {
                report.blocks = blocks(cx);
                report.environments.clone_from(&cx.policy.environments);
            }
            Ask::Load => report.load = Some(counted_load(cx, tenants, load)),
            Ask::Modules => report.modules = user.map(|user| modules_shown(cx, tenants, user)).unwrap_or_default(),
            Ask::Policy => report.policy = user.and_then(|user| policy_of(cx, user)),
        }
    }
    cx.send(ticket, report);
}

fn blocks(cx: &Cx) -> Vec<Dependency> {
    let block = |(block, version): (&String, &u32)| Dependency { block: block.clone(), version_min: *version };
    cx.policy.blocks.iter().map(block).collect()
}

fn modules_shown(cx: &Cx, tenants: &Tenants, user: &UserId) -> Vec<ModuleStatus> {
    let tenant = tenants.get(user);
    let mut modules = tenant.map(|tenant| modules_of(user, tenant, cx.now.instant)).unwrap_or_default();
    // A response has room for those of all modules together.
    let mut room = SESSIONS_SHOWN_MAX;
    for status in &mut modules {
        status.sessions.truncate(room);
        room -= status.sessions.len();
    }
    modules
}

fn policy_of(cx: &Cx, user: &UserId) -> Option<PolicyReport> {
    let policy = cx.may(user)?;
    let ceilings = policy.ceilings(cx.policy.cache_bytes);
    let lease_max = cx.authority.lease_max(user, cx.now.wall).unwrap_or(cx.policy.ttl_max);
    Some(PolicyReport {
        prefixes: policy.prefixes.iter().map(ToString::to_string).collect(),
        ports: policy.ports.iter().map(ToString::to_string).collect(),
        ttl_s_max: cx.policy.ttl_max.min(lease_max).as_secs(),
        modules_max: policy.modules_max,
        memory_bytes_max: policy.module_limits.memory_bytes,
        ceilings: ceilings.iter().map(|(resource, most)| (resource.to_string(), *most)).collect(),
        listen: policy.listen.iter().map(ToString::to_string).collect(),
        connect: policy.connect.iter().map(ToString::to_string).collect(),
        price_per_hour: policy.price_per_hour,
    })
}

/// Returns who may do what: the users whom the configuration names, and those who have proven their rights.
pub(crate) fn users(cx: &Cx, tenants: &Tenants, now: Instant) -> Vec<UserInfo> {
    let configured = cx.policy.users.iter().map(|(user, may)| (user, may.keys.clone(), "configured".to_owned()));
    let strangers = cx.authority.strangers().map(|(user, key, proof)| (user, key.into_iter().collect(), proof));
    let mut users: Vec<UserInfo> = configured
        .chain(strangers)
        .map(|(user, keys, proof)| UserInfo {
            user: user.clone(),
            keys,
            proof,
            until: cx.authority.end_of(user),
            may: policy_of(cx, user),
            refused: cx.rights(user).err().map(|refusal| refusal.to_string()),
            modules: tenants.get(user).map_or_else(Vec::new, |tenant| {
                modules_of(user, tenant, now).into_iter().map(|status| status.module).collect()
            }),
        })
        .collect();
    users.sort_by(|one, other| one.user.cmp(&other.user));
    users
}

/// Returns the load with the controller's own counts filled in.
pub(crate) fn counted_load(cx: &Cx, tenants: &Tenants, load: &NodeLoad) -> NodeLoad {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let modules = tenants.iter().flat_map(|(_, tenant)| tenant.modules.values());
    let modules = modules.filter(|entry| entry.active.is_some()).count();
    let there = |(_, tenant): &(&UserId, &Tenant)| tenant.workers.values().any(|worker| worker.phase != Phase::Absent);
    let containers = tenants.iter().filter(there).count();
    let maintenance = cx.policy.maintenance;
    NodeLoad { containers: count(containers), modules: count(modules), maintenance, ..*load }
}

/// Returns what is installed for a user in install order, then what is being installed.
pub(crate) fn modules_of(user: &UserId, tenant: &Tenant, now: Instant) -> Vec<ModuleStatus> {
    let mut entries: Vec<&Entry> = tenant.modules.values().collect();
    entries.sort_by_key(|entry| entry.active.as_ref().map_or(u64::MAX, |active| active.record.order));
    let status = |entry: &Entry| match (&entry.active, &entry.operation) {
        (Some(active), _) => Some(active_status(user, active, now)),
        (None, Some(operation)) => Some(operation_status(user, operation)),
        (None, None) => None,
    };
    let draining = tenant.workers.iter().flat_map(|(flavour, worker)| {
        worker.draining.values().map(|draining| draining_status(user, *flavour, draining, now))
    });
    entries.into_iter().filter_map(status).chain(draining).collect()
}

fn draining_status(user: &UserId, flavour: Flavour, draining: &Draining, now: Instant) -> ModuleStatus {
    let intercept = draining.rules.iter().map(|rule| rule.filter.open().clone()).collect();
    ModuleStatus {
        flavour: Some(flavour),
        lease_s: draining.until.since(now).as_secs(),
        intercept,
        ..status_of(user, &draining.module, draining.digest, ModuleState::Draining)
    }
}

fn status_of(user: &UserId, module: &ModuleRef, digest: Digest, state: ModuleState) -> ModuleStatus {
    ModuleStatus {
        user: user.clone(),
        module: module.clone(),
        digest,
        flavour: None,
        state,
        epoch: 0,
        lease_s: 0,
        held_by: 0,
        sessions: Vec::new(),
        filters: Vec::new(),
        listen: Vec::new(),
        intercept: Vec::new(),
        chain: Vec::new(),
        addresses: Vec::new(),
        floating: Vec::new(),
        given_up: Vec::new(),
        restarts: 0,
        last_failure: None,
        packets: PacketCounts::default(),
        server: None,
        counters: BTreeMap::new(),
    }
}

fn active_status(user: &UserId, active: &Active, now: Instant) -> ModuleStatus {
    // Else they say which connections it takes over.
    let sees_packets = active.manifest.as_ref().is_none_or(|manifest| manifest.packet.is_some());
    ModuleStatus {
        flavour: active.record.flavour,
        epoch: active.record.epoch,
        lease_s: active.lease_end.since(now).as_secs(),
        held_by: u64::try_from(active.sessions.len()).unwrap_or(u64::MAX),
        sessions: active.held_by(now),
        filters: if sees_packets { active.record.filters.clone() } else { Vec::new() },
        listen: active.manifest.as_ref().map(|manifest| manifest.listen().to_vec()).unwrap_or_default(),
        intercept: active.manifest.as_ref().map(|manifest| manifest.intercept().to_vec()).unwrap_or_default(),
        chain: active.composition.as_ref().map(|composition| composition.parts.clone()).unwrap_or_default(),
        floating: Some(active.record.floating.clone()).filter(|_| active.holds_floating).unwrap_or_default(),
        given_up: active.record.given_up.clone(),
        restarts: active.restarts,
        last_failure: active.last_failure.clone(),
        ..status_of(user, &active.record.module, active.record.digest, active.state())
    }
}

fn operation_status(user: &UserId, operation: &Operation) -> ModuleStatus {
    let state = match operation.stage {
        Stage::Fetching(_) => ModuleState::Fetching,
        Stage::Composing(..) | Stage::Waiting(_) | Stage::Loading(_) | Stage::Settling(..) | Stage::Joining(_) => {
            ModuleState::Starting
        }
    };
    ModuleStatus {
        flavour: operation.stage.candidate().map(|candidate| candidate.flavour),
        epoch: operation.setup.epoch,
        filters: operation.setup.filters.clone(),
        ..status_of(user, &operation.setup.module, operation.setup.digest, state)
    }
}
