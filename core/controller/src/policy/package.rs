// SPDX-License-Identifier: Apache-2.0
//! Whether a user may have what a package is.

use std::collections::BTreeMap;

use netserv_authority::scope;
use netserv_model::limits::{PROPERTIES_PER_MODULE_MAX, PROPERTY_BYTES_MAX};
use netserv_model::manifest::{MANIFEST_VERSION, Manifest};
use netserv_model::policy::{NodePolicy, UserPolicy};
use netserv_model::request::{Dependency, Setup};
use netserv_model::{Flavour, Refusal, RefusalKind, WantedFilter};

use crate::policy::asked::{Asked, check_together, narrowed_manifest};

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
    let manifest = narrowed_manifest(&whole, Asked::of(setup))?;
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
        scope::check(policy, user, &intercept)?;
        if let Some(filter) = server.intercept.iter().find(|filter| !filter.is_of_connections()) {
            let detail = format!("connections cannot be taken over by `{filter}`; write `tcp` and a port");
            return Err(Refusal::new(RefusalKind::BadRequest, detail));
        }
    }
    match server.listen.iter().find(|wanted| !scope::grants(&user.listen, wanted)) {
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

/// Checks the number and the size of properties.
pub(crate) fn check_properties(properties: &BTreeMap<String, String>, kind: RefusalKind) -> Result<(), Refusal> {
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

/// Checks that the node has what a module depends on.
pub(crate) fn check_dependencies(policy: &NodePolicy, dependencies: &[Dependency]) -> Result<(), Refusal> {
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
