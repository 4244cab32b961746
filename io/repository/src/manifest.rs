// SPDX-License-Identifier: Apache-2.0
//! The manifest of a package: from bytes to [`Manifest`] and back, and its JSON Schema.
//!
//! Other versions write packages too. Keys that are not known here are read over; what must not be read over is named in
//! `requires`, and refused by that name before anything else is looked at.

use netserv_model::manifest::{Feature, MANIFEST_VERSION, Manifest};
use netserv_model::{Refusal, RefusalKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::limits::MANIFEST_BYTES_MAX;

/// Characters of a name from outside that a refusal shows.
const SHOWN_CHARS_MAX: usize = 40;

/// Reads a manifest; keys that are not known are read over, features that are not known are refused.
///
/// # Errors
/// A refusal of kind `missing-feature` that names the feature or the version, or of kind `bad-manifest`.
pub fn parse(json: &[u8]) -> Result<Manifest, Refusal> {
    parse_as(json, &Feature::ALL)
}

/// Writes a manifest; the same manifest gives the same bytes.
///
/// # Errors
/// A refusal of kind `bad-manifest`, if it makes no sense or is too long.
pub fn to_json(manifest: &Manifest) -> Result<Vec<u8>, Refusal> {
    manifest.check().map_err(|refusal| bad(refusal.detail))?;
    let json = serde_json::to_vec(manifest).expect("a manifest is plain data");
    check_length(&json)?;
    Ok(json)
}

/// Returns the keys of a manifest that this version reads over, by their paths, such as `server.greeting`.
pub fn unknown_keys(json: &[u8]) -> Vec<String> {
    let mut unknown = Vec::new();
    if let (Ok(all), Ok(manifest)) = (serde_json::from_slice(json), parse(json)) {
        // A manifest is written with all keys that are known, whatever their values.
        let known = serde_json::to_value(manifest).expect("a manifest is plain data");
        add_unknown_keys("", &all, &known, &mut unknown);
    }
    unknown
}

/// Returns the JSON Schema of manifests, as published in `docs/schemas`.
pub fn schema() -> String {
    let mut schema = schemars::schema_for!(Manifest);
    // The types of limits refuse unknown keys where people write them; packages of later versions may have more.
    allow_more_keys(&mut schema);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}

/// Reads a manifest as a node does that knows these features.
fn parse_as(json: &[u8], features: &[Feature]) -> Result<Manifest, Refusal> {
    /// What is the same in all versions.
    #[derive(Deserialize)]
    struct Version {
        manifest: u32,
    }
    /// What is the same in all of one major version.
    #[derive(Deserialize)]
    struct Requirements {
        #[serde(default)]
        requires: Vec<String>,
    }
    check_length(json)?;
    let Version { manifest: version } = read(json)?;
    if version != MANIFEST_VERSION {
        let detail = format!("the manifest is of version {version}, understood here is {MANIFEST_VERSION}");
        return Err(Refusal::new(RefusalKind::MissingFeature, detail));
    }
    let Requirements { requires } = read(json)?;
    let is_known = |name: &str| features.iter().any(|feature| feature.as_str() == name);
    if let Some(missing) = requires.iter().find(|name| !is_known(name)) {
        return Err(missing_feature(missing, features));
    }
    let manifest: Manifest = read(json)?;
    manifest.check().map_err(|refusal| bad(refusal.detail))?;
    Ok(manifest)
}

fn missing_feature(name: &str, features: &[Feature]) -> Refusal {
    let name: String = name.chars().take(SHOWN_CHARS_MAX).collect();
    let known = match features {
        [] => "none".to_owned(),
        features => Vec::from_iter(features.iter().map(|feature| feature.as_str())).join(", "),
    };
    let detail = format!("the manifest requires `{name}`, which this version does not know; known here: {known}");
    Refusal::new(RefusalKind::MissingFeature, detail)
}

fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(json).map_err(bad)
}

fn check_length(json: &[u8]) -> Result<(), Refusal> {
    match json.len() {
        0..=MANIFEST_BYTES_MAX => Ok(()),
        bytes => Err(bad(format!("{bytes} bytes, at most {MANIFEST_BYTES_MAX}"))),
    }
}

fn add_unknown_keys(path: &str, all: &Value, known: &Value, unknown: &mut Vec<String>) {
    let (Value::Object(all), Value::Object(known)) = (all, known) else { return };
    for (key, value) in all {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match known.get(key) {
            Some(known) => add_unknown_keys(&path, value, known, unknown),
            // A section that is there and null is one that is not there.
            None if value.is_null() => {}
            None => unknown.push(path),
        }
    }
}

fn allow_more_keys(schema: &mut schemars::Schema) {
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.remove("additionalProperties");
    }
    schemars::transform::transform_subschemas(&mut allow_more_keys, schema);
}

fn bad(detail: impl std::fmt::Display) -> Refusal {
    Refusal::new(RefusalKind::BadManifest, format!("manifest: {detail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERCEPTS: &[u8] =
        br#"{"manifest":1,"requires":["intercept","tls"],"name":"example.org/m","version":"1.0.0",
        "server":{"intercept":["tcp port 80"],"tls":true}}"#;

    /// Goal: an older node refuses what it cannot honour by its name, and only that.
    /// Method: the same manifest is read with the features of several versions.
    #[test]
    fn a_node_refuses_the_features_that_it_does_not_know() {
        for (features, expected) in [
            (&[][..], Some("requires `intercept`, which this version does not know; known here: none")),
            (&[Feature::Tls], Some("requires `intercept`, which this version does not know; known here: tls")),
            (&[Feature::Intercept, Feature::Service], Some("requires `tls`")),
            (&[Feature::Intercept, Feature::Tls], None),
            (&Feature::ALL, None),
        ] {
            let read = parse_as(INTERCEPTS, features);
            match expected {
                None => assert_eq!(read, parse(INTERCEPTS)),
                Some(words) => {
                    let refusal = read.unwrap_err();
                    assert_eq!(refusal.kind, RefusalKind::MissingFeature);
                    assert!(refusal.detail.contains(words), "{} has no {words}", refusal.detail);
                }
            }
        }
    }
}
