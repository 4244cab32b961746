// SPDX-License-Identifier: Apache-2.0
//! Services are composed: on their way into force, after a restart of the node, and when a part changed.

use netserv_model::effect::{EffectId, PackageJob};
use netserv_model::manifest::Manifest;
use netserv_model::{Digest, Flavour};

use crate::cx::Cx;
use crate::cx::jobs::start_package;
use crate::cx::request::Key;
use crate::moves::floating::resume_floating;
use crate::services::order::order_packets;
use crate::tenants::Tenants;
use crate::tenants::active::Run;
use crate::tenants::later::Later;
use crate::tenants::operation::{Candidate, Composition, Operation, Settling, Stage};
use crate::tenants::rule::ModuleRule;
use crate::tenants::session::as_setup;

/// Returns where the installation of a module begins whose package is there and checked.
pub(crate) fn first_stage(cx: &mut Cx, tenants: &Tenants, later: &mut Later, key: &Key, candidate: Candidate) -> Stage {
    let Some(composition) = &candidate.composition else { return Stage::Waiting(candidate) };
    if composition.servers.is_empty() {
        // It has nothing to load: only the order of its parts is its own.
        later.push_swap(key);
        return Stage::Settling(candidate, Settling::default());
    }
    let job = compose(cx, tenants, key, &composition.servers.clone());
    Stage::Composing(job, candidate)
}

fn compose(cx: &mut Cx, tenants: &Tenants, key: &Key, servers: &[Digest]) -> EffectId {
    let modules = tenants.get(&key.0).map(|tenant| &tenant.modules);
    let actives = || modules.into_iter().flatten().filter_map(|(_, entry)| entry.active.as_ref());
    let name = |digest: &Digest| actives().find(|active| active.record.digest == *digest);
    let names = servers.iter().filter_map(name).map(|active| active.record.module.clone()).collect();
    start_package(cx, key, PackageJob::Compose { parts: servers.to_vec(), names })
}

/// Starts an installed service, of which the parts are known.
pub(crate) fn begin_active(cx: &mut Cx, tenants: &mut Tenants, key: &Key, composition: Composition) {
    let servers = composition.servers.clone();
    let job = (!servers.is_empty()).then(|| compose(cx, tenants, key, &servers));
    let Some(active) = tenants.active_mut(key) else { return };
    active.composition = Some(composition);
    active.run = job.map_or(Run::Running, Run::Fetching);
    order_packets(cx, tenants, &key.0);
    if job.is_none() {
        resume_floating(cx, tenants, key);
    }
}

/// Replaces a service by itself, made of other parts. What is in force stays so until then.
pub(crate) fn compose_anew(
    cx: &mut Cx,
    tenants: &mut Tenants,
    later: &mut Later,
    key: &Key,
    manifest: Manifest,
    composition: Composition,
) {
    let Some(active) = tenants.active_mut(key) else { return };
    let (origin, setup, declared) = (active.origin(), as_setup(&active.record), active.declared.clone());
    let rules = ModuleRule::all_of(&[], Some(&manifest));
    let candidate =
        Candidate { manifest, declared, flavour: Flavour::Wasm, rules, slot: None, composition: Some(composition) };
    let stage = first_stage(cx, tenants, later, key, candidate);
    tenants.entry_or_new(key).operation = Some(Operation { ticket: None, origin, setup, stage });
}
