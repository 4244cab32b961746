// SPDX-License-Identifier: Apache-2.0
//! What sessions ask a module to see and to take over, one by one and together.

use netserv_authority::scope;
use netserv_model::effect::SessionRecord;
use netserv_model::manifest::Manifest;
use netserv_model::policy::{NodePolicy, UserPolicy};
use netserv_model::request::Setup;
use netserv_model::{Filter, Refusal, RefusalKind, WantedFilter};

use crate::limits::FILTERS_OF_SESSIONS_MAX;
use crate::policy::filters;

/// Which packets a session wants a module to see, and which connections to take over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) filters: &'a [WantedFilter],
    pub(crate) intercept: &'a [Filter],
}

impl<'a> Asked<'a> {
    /// Returns what a SETUP asks for.
    pub(crate) fn of(setup: &'a Setup) -> Asked<'a> {
        Asked { filters: &setup.filters, intercept: &setup.intercept }
    }

    /// Returns what a session asked for.
    pub(crate) fn of_record(record: &'a SessionRecord) -> Asked<'a> {
        Asked { filters: &record.filters, intercept: &record.intercept }
    }

    /// Returns whether two sessions ask for the same.
    pub(crate) fn is_same(self, other: Asked<'_>) -> bool {
        filters::same::<WantedFilter>(self.filters, other.filters) && filters::same(self.intercept, other.intercept)
    }
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
    scope::check(policy, user, &packets(&manifest, own))?;
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

/// Returns a manifest whose connections are those that a session asks for.
pub(crate) fn narrowed_manifest(manifest: &Manifest, asked: Asked<'_>) -> Result<Manifest, Refusal> {
    let mut manifest = manifest.clone();
    let connections = connections(&manifest, asked)?;
    if let Some(server) = &mut manifest.server {
        server.intercept = connections;
    }
    Ok(manifest)
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

fn no_container(filter: &WantedFilter) -> Refusal {
    let detail = format!("connections cannot be taken over by `{filter}`: those to and from containers never are");
    Refusal::new(RefusalKind::BadRequest, detail)
}
