// SPDX-License-Identifier: Apache-2.0
//! `netserv.toml`: from text to [`Manifest`], and its JSON Schema.

use std::collections::BTreeSet;

use netserv_model::limits::{CHAIN_PARTS_MAX, CHAIN_PARTS_MIN};
use netserv_model::limits::{FILTERS_PER_MODULE_MAX, PROPERTIES_PER_MODULE_MAX, PROPERTY_BYTES_MAX};
use netserv_model::manifest::{MANIFEST_VERSION, Manifest};
use netserv_model::{Filter, ModuleName, Protocol, Refusal, RefusalKind};

use crate::limits::MANIFEST_BYTES_MAX;

/// Reads a manifest; unknown keys are refused.
///
/// # Errors
/// A refusal of kind `bad-manifest` that names the line.
pub fn parse(text: &str) -> Result<Manifest, Refusal> {
    if text.len() > MANIFEST_BYTES_MAX {
        return Err(bad(format!("{} bytes, at most {MANIFEST_BYTES_MAX}", text.len())));
    }
    let manifest: Manifest = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        bad(format!("{line}{}", error.message()))
    })?;
    if manifest.manifest != MANIFEST_VERSION {
        return Err(bad(format!("`manifest = {}`, understood is {MANIFEST_VERSION}", manifest.manifest)));
    }
    check_parts(&manifest)?;
    if manifest.properties.len() > PROPERTIES_PER_MODULE_MAX {
        return Err(bad(format!("{} properties, at most {PROPERTIES_PER_MODULE_MAX}", manifest.properties.len())));
    }
    let too_long = |(key, value): &(&String, &String)| key.len() + value.len() > PROPERTY_BYTES_MAX;
    if let Some((key, _)) = manifest.properties.iter().find(too_long) {
        let key: String = key.chars().take(40).collect();
        return Err(bad(format!("property `{key}` is longer than {PROPERTY_BYTES_MAX} bytes")));
    }
    Ok(manifest)
}

fn check_parts(manifest: &Manifest) -> Result<(), Refusal> {
    if manifest.service.is_some() {
        check_service(manifest)?;
    } else if manifest.packet.is_none() && manifest.server.is_none() {
        return Err(bad("there is neither [packet] nor [server], so the module would do nothing"));
    }
    if manifest.filters().len() > FILTERS_PER_MODULE_MAX {
        return Err(bad(format!("{} filters, at most {FILTERS_PER_MODULE_MAX}", manifest.filters().len())));
    }
    if manifest.listen().len() > FILTERS_PER_MODULE_MAX {
        let detail = format!("{} entries of server.listen, at most {FILTERS_PER_MODULE_MAX}", manifest.listen().len());
        return Err(bad(detail));
    }
    let odd = |filter: &&Filter| {
        let elsewhere = filter.destination().is_some() || filter.source_ports().is_some();
        elsewhere || filter.destination_ports().is_none()
    };
    if let Some(filter) = manifest.listen().iter().find(odd) {
        return Err(bad(format!("server.listen has `{filter}`; write a protocol and a port, as `tcp port 80`")));
    }
    check_intercept(manifest.intercept())
}

fn check_intercept(filters: &[Filter]) -> Result<(), Refusal> {
    if filters.len() > FILTERS_PER_MODULE_MAX {
        return Err(bad(format!("{} entries of server.intercept, at most {FILTERS_PER_MODULE_MAX}", filters.len())));
    }
    let odd = |filter: &&Filter| filter.protocol() != Protocol::Tcp || filter.destination_ports().is_none();
    match filters.iter().find(odd) {
        Some(filter) => {
            let detail =
                format!("server.intercept has `{filter}`; write `tcp` and a port, as `tcp dst PREFIX port 80`");
            Err(bad(detail))
        }
        None => Ok(()),
    }
}

fn check_service(manifest: &Manifest) -> Result<(), Refusal> {
    if manifest.packet.is_some() {
        return Err(bad("[service] and [packet]: the packet parts of a service are its modules'"));
    }
    let chain = manifest.chain();
    if !(CHAIN_PARTS_MIN..=CHAIN_PARTS_MAX).contains(&chain.len()) {
        let detail = format!("{} parts in service.chain, {CHAIN_PARTS_MIN} to {CHAIN_PARTS_MAX} make one", chain.len());
        return Err(bad(detail));
    }
    let mut seen: BTreeSet<&ModuleName> = BTreeSet::from([&manifest.name]);
    match chain.iter().find(|part| !seen.insert(&part.name)) {
        Some(part) if part.name == manifest.name => {
            Err(bad(format!("service.chain has the service {} itself", part.name)))
        }
        Some(part) => Err(bad(format!("service.chain has {} twice", part.name))),
        None => Ok(()),
    }
}

/// Returns the JSON Schema of `netserv.toml`, as published in `docs/schemas`.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Manifest);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}

fn bad(detail: impl std::fmt::Display) -> Refusal {
    Refusal::new(RefusalKind::BadManifest, format!("netserv.toml: {detail}"))
}
