// SPDX-License-Identifier: Apache-2.0
//! The published JSON Schema of manifests is the one that the code has.

use std::path::Path;

use serde_json::Value;

/// Rewrite the file with `NETSERV_REWRITE=1 cargo test -p netserv-repository --test schema`.
#[test]
fn the_published_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/netserv-manifest.schema.json");
    let current = netserv_repository::manifest::schema();
    if std::env::var_os("NETSERV_REWRITE").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == current, "{} is out of date; run this test with NETSERV_REWRITE=1", path.display());
}

#[test]
fn the_schema_allows_keys_of_later_versions_and_names_the_parts() {
    let schema: Value = serde_json::from_str(&netserv_repository::manifest::schema()).unwrap();
    assert!(!schema.to_string().contains("\"additionalProperties\":false"), "{schema}");
    for key in ["manifest", "name", "version"] {
        assert!(schema["required"].as_array().unwrap().iter().any(|required| required == key), "{key}");
    }
    for key in ["requires", "packet", "server", "service"] {
        assert!(schema["properties"].get(key).is_some(), "{key}");
    }
    for key in ["build", "test", "http-test", "tcp-test"] {
        assert!(schema["properties"].get(key).is_none(), "{key}");
    }
}
