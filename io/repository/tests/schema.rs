// SPDX-License-Identifier: Apache-2.0
//! The published JSON Schema of `netserv.toml` is the one that the code has.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::path::Path;

/// Rewrite the file with `NETSERV_UPDATE=1 cargo test -p netserv-repository --test schema`.
#[test]
fn the_published_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/netserv-manifest.schema.json");
    let current = netserv_repository::manifest::schema();
    if std::env::var_os("NETSERV_UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &current).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == current, "{} is out of date; run this test with NETSERV_UPDATE=1", path.display());
}

#[test]
fn the_schema_refuses_unknown_keys_and_names_the_parts() {
    let schema: serde_json::Value = serde_json::from_str(&netserv_repository::manifest::schema()).unwrap();
    assert_eq!(schema["additionalProperties"], serde_json::Value::Bool(false));
    for key in ["manifest", "name", "version"] {
        assert!(schema["required"].as_array().unwrap().iter().any(|required| required == key), "{key}");
    }
    for key in ["packet", "server", "build"] {
        assert!(schema["properties"].get(key).is_some(), "{key}");
    }
}
