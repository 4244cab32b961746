// SPDX-License-Identifier: Apache-2.0
//! `netserv.toml`: from text to [`Manifest`], and its JSON Schema.

use netserv_model::limits::{FILTERS_PER_MODULE_MAX, PROPERTIES_PER_MODULE_MAX, PROPERTY_BYTES_MAX};
use netserv_model::manifest::{MANIFEST_VERSION, Manifest};
use netserv_model::{Refusal, RefusalKind};

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
    if manifest.packet.filters.len() > FILTERS_PER_MODULE_MAX {
        return Err(bad(format!("{} filters, at most {FILTERS_PER_MODULE_MAX}", manifest.packet.filters.len())));
    }
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
