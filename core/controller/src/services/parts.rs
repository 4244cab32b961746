// SPDX-License-Identifier: Apache-2.0
//! What a service is made of.

use netserv_model::limits::CHAIN_PARTS_MAX;
use netserv_model::manifest::{ChainPart, Manifest};
use netserv_model::{Flavour, ModuleName, Refusal, RefusalKind};

use crate::cx::request::Key;
use crate::tenants::Tenants;
use crate::tenants::active::{Active, Run};
use crate::tenants::operation::Composition;
use crate::tenants::tenant::{Entry, Tenant};

/// Why a service cannot be put together.
pub(crate) enum Unresolved {
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

/// Returns what a service is made of, as things are.
pub(crate) fn resolve(tenants: &Tenants, key: &Key, manifest: &Manifest) -> Result<Composition, Unresolved> {
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

/// Returns whether an entry is an installed service about which nothing is under way.
pub(crate) fn is_settled_service(entry: &Entry) -> bool {
    let service = |active: &Active| active.manifest.as_ref().is_some_and(|manifest| manifest.service.is_some());
    let active = entry.active.as_ref().filter(|active| service(active));
    entry.operation.is_none() && active.is_some_and(|active| !matches!(active.run, Run::Fetching(_)))
}

/// Returns whether a module sees packets.
pub(crate) fn sees(manifest: Option<&Manifest>) -> bool {
    manifest.is_some_and(|manifest| manifest.packet.is_some())
}

fn missing(detail: String) -> Unresolved {
    Unresolved::Refused(Refusal::new(RefusalKind::MissingPart, detail))
}

fn refused(detail: &str) -> Unresolved {
    Unresolved::Refused(Refusal::new(RefusalKind::BadService, detail))
}
