// SPDX-License-Identifier: Apache-2.0
//! The order of packets through a user's modules.

use netserv_model::effect::{Job, ModuleSlot, WorkerJob};
use netserv_model::{Flavour, ModuleName, UserId, WorkerId};

use crate::cx::Cx;
use crate::cx::effects::Purpose;
use crate::services::parts::sees;
use crate::tenants::Tenants;
use crate::tenants::active::{Active, Run};
use crate::tenants::operation::{Candidate, Stage};
use crate::tenants::tenant::{Entry, Tenant};
use crate::tenants::worker::Phase;

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

/// Returns what is loaded and about to be in force.
fn settling(entry: &Entry) -> Option<&Candidate> {
    match &entry.operation.as_ref()?.stage {
        Stage::Settling(candidate, _) => Some(candidate),
        Stage::Fetching(_) | Stage::Composing(..) | Stage::Waiting(_) | Stage::Loading(_) | Stage::Joining(_) => None,
    }
}
