// SPDX-License-Identifier: Apache-2.0
//! `netserv.toml`: from text to [`Manifest`], and its JSON Schema.

use netserv_model::limits::{FILTERS_PER_MODULE_MAX, PROPERTIES_PER_MODULE_MAX, PROPERTY_BYTES_MAX};
use netserv_model::manifest::{MANIFEST_VERSION, Manifest};
use netserv_model::{Filter, Refusal, RefusalKind};

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
    if manifest.packet.is_none() && manifest.server.is_none() {
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
    match manifest.listen().iter().find(odd) {
        Some(filter) => {
            Err(bad(format!("server.listen has `{filter}`; write a protocol and a port, as `tcp port 80`")))
        }
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
