// SPDX-License-Identifier: Apache-2.0
//! The published JSON Schema of `netserv.toml` is the one that the code has.
#![allow(clippy::unwrap_used, reason = "these are tests")]
#![allow(clippy::disallowed_methods, reason = "the published file is read, by a test")]

use std::path::Path;

use serde_json::Value;

/// Rewrite the file with `NETSERV_REWRITE=1 cargo test -p netserv-project --test schema`.
#[test]
fn the_published_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/netserv-project.schema.json");
    let current = netserv_project::schema();
    if std::env::var_os("NETSERV_REWRITE").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == current, "{} is out of date; run this test with NETSERV_REWRITE=1", path.display());
}

#[test]
fn the_schema_refuses_unknown_keys_everywhere_and_names_the_parts() {
    let schema: Value = serde_json::from_str(&netserv_project::schema()).unwrap();
    let objects = schema["$defs"].as_object().unwrap().values().chain([&schema]);
    let objects = objects.filter(|schema| schema.get("properties").is_some());
    assert!(objects.clone().count() > 8);
    for object in objects {
        assert_eq!(object["additionalProperties"], Value::Bool(false), "{object}");
    }
    for key in ["manifest", "name", "version"] {
        assert!(schema["required"].as_array().unwrap().iter().any(|required| required == key), "{key}");
    }
    for key in ["packet", "server", "service", "build", "test", "http-test", "tcp-test"] {
        assert!(schema["properties"].get(key).is_some(), "{key}");
    }
}
