// SPDX-License-Identifier: Apache-2.0
//! The OpenAPI document: paths written here, shapes generated from the API's types, checked in as `docs/openapi.json`.

use netserv_api::{ApiError, DrainReport, DrainRequest, EventLine, LogLine, ModuleList, NodeInfo, Reloaded, UserList};
use netserv_model::api::{PostRequest, RequestResult, UsageReport};
use netserv_model::audit::{AuditLine, AuditReport};
use netserv_model::trace::{TraceLine, TraceRequest};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// Returns the OpenAPI 3.1 document of the API.
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut shapes = settings.into_generator();
    let mut shape = |name: &dyn Fn(&mut schemars::SchemaGenerator) -> schemars::Schema| json!(name(&mut shapes));
    let post_request = shape(&|g| subschema::<PostRequest>(g));
    let result = shape(&|g| subschema::<RequestResult>(g));
    let node = shape(&|g| subschema::<NodeInfo>(g));
    let modules = shape(&|g| subschema::<ModuleList>(g));
    let users = shape(&|g| subschema::<UserList>(g));
    let usage = shape(&|g| subschema::<UsageReport>(g));
    let reloaded = shape(&|g| subschema::<Reloaded>(g));
    let drain_request = shape(&|g| subschema::<DrainRequest>(g));
    let drain_report = shape(&|g| subschema::<DrainReport>(g));
    let log_line = shape(&|g| subschema::<LogLine>(g));
    let event_line = shape(&|g| subschema::<EventLine>(g));
    let trace_request = shape(&|g| subschema::<TraceRequest>(g));
    let trace_line = shape(&|g| subschema::<TraceLine>(g));
    let audit_line = shape(&|g| subschema::<AuditLine>(g));
    let audit_report = shape(&|g| subschema::<AuditReport>(g));
    let api_error = shape(&|g| subschema::<ApiError>(g));
    let failure = json!({ "description": "What is wrong and what to do",
        "content": { "application/json": { "schema": api_error } } });
    let get = |summary: &str, kind: &str, schema: Value| {
        json!({ "get": { "summary": summary, "responses": {
            "200": { "description": summary, "content": { kind: { "schema": schema } } }, "default": failure } } })
    };
    let mut logs = get("The log as JSON lines", "application/x-ndjson", log_line);
    logs["get"]["parameters"] = json!([
        { "name": "follow", "in": "query", "schema": { "type": "boolean", "default": false },
          "description": "Go on with new lines" },
        { "name": "since", "in": "query", "schema": { "type": "integer", "minimum": 0, "default": 0 },
          "description": "The first sequence number wanted" },
    ]);
    let mut events = get("News of what was installed along paths, as JSON lines", "application/x-ndjson", event_line);
    let text = json!({ "type": "string" });
    let mut audit =
        get("The audit log: decisions as JSON lines, as they are in its files", "application/x-ndjson", audit_line);
    audit["get"]["parameters"] = json!([
        { "name": "since", "in": "query", "schema": { "type": "integer", "minimum": 0 },
          "description": "Since this time, in milliseconds since 1970" },
        { "name": "user", "in": "query", "schema": text, "description": "Of this user only" },
    ]);
    events["get"]["parameters"] = json!([
        { "name": "follow", "in": "query", "schema": { "type": "boolean", "default": false },
          "description": "Go on with new ones" },
        { "name": "since", "in": "query", "schema": { "type": "integer", "minimum": 0 },
          "description": "The first sequence number wanted, 0 for all that are kept. Without it, who follows gets new ones, and \
            others all. Numbers of an earlier run of the node are known as such; a line says what is missing" },
        { "name": "user", "in": "query", "schema": text, "description": "Of this user only" },
        { "name": "module", "in": "query", "schema": text, "description": "Of this module only, whatever its version" },
        { "name": "session", "in": "query", "schema": text, "description": "Of this session only, 32 hex digits" },
        { "name": "event", "in": "query", "schema": text,
          "description": "Only these events, with commas between" },
    ]);
    json!({
        "openapi": "3.1.0",
        "info": { "title": "NetServ node", "version": env!("CARGO_PKG_VERSION"), "license": { "name": "Apache-2.0" },
            "description": "The API of one node, on its Unix socket. Requests are the signed messages of the signaling." },
        "paths": {
            "/v1/requests": { "post": {
                "summary": "Send a signed request to this node alone, or along a path",
                "requestBody": { "required": true, "content": { "application/json": { "schema": post_request } } },
                "responses": {
                    "200": { "description": "The response stack; each entry says what its node did",
                        "content": { "application/json": { "schema": result } } },
                    "default": failure } } },
            "/v1/node": get("What the node is", "application/json", node),
            "/v1/modules": get("What is installed", "application/json", modules),
            "/v1/users": get("Who may do what, and by which proof", "application/json", users),
            "/v1/usage": get("What users and their modules used, over restarts", "application/json", usage),
            "/v1/logs": logs,
            "/v1/events": events,
            "/v1/audit": audit,
            "/v1/audit/verify": get("Whether the audit log is whole", "application/json", audit_report),
            "/v1/trace": { "post": {
                "summary": "Follow single packets through the node",
                "description": "Lines of JSON come until as many packets were told of as were wanted, the time is up, or \
                    the client goes away. Few traces run at a time.",
                "requestBody": { "required": false, "content": { "application/json": { "schema": trace_request } } },
                "responses": {
                    "200": { "description": "The trace as JSON lines; the first says that it runs",
                        "content": { "application/x-ndjson": { "schema": trace_line } } },
                    "default": failure } } },
            "/v1/config": get("The configuration in force", "application/json", json!({ "type": "object" })),
            "/v1/reload": { "post": {
                "summary": "Read the configuration file again",
                "description": "Users and admission hold at once, also for containers that run, as far as the answer says. \
                    All else holds from the next start of netservd.",
                "responses": {
                    "200": { "description": "What changed, and from when it holds",
                        "content": { "application/json": { "schema": reloaded } } },
                    "default": failure } } },
            "/v1/drain": {
                "get": {
                    "summary": "Whether the node is drained, and what it still has",
                    "responses": {
                        "200": { "description": "How far the node is",
                            "content": { "application/json": { "schema": drain_report } } },
                        "default": failure } },
                "post": {
                    "summary": "Drain the node before maintenance, or have it take modules again",
                    "description": "It stays so over restarts. Whoever has modules here is told; they go on until they are moved or \
                        their leases end, which are not renewed.",
                    "requestBody": { "required": true, "content": { "application/json": { "schema": drain_request } } },
                    "responses": {
                        "200": { "description": "How far the node is",
                            "content": { "application/json": { "schema": drain_report } } },
                        "default": failure } } },
            "/v1/openapi.json": get("This document", "application/json", json!({ "type": "object" })),
            "/metrics": get("Metrics in Prometheus text form", "text/plain", json!({ "type": "string" })),
        },
        "components": { "schemas": shapes.take_definitions(true) },
    })
}

fn subschema<T: JsonSchema>(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<T>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the checked-in document is the one that the node serves. `NETSERV_REWRITE=1` writes it anew.
    #[test]
    fn the_checked_in_document_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        let current = serde_json::to_string_pretty(&document()).unwrap() + "\n";
        if std::env::var_os("NETSERV_REWRITE").is_some() {
            std::fs::write(path, &current).unwrap();
        }
        let checked_in = std::fs::read_to_string(path).unwrap_or_default();
        assert!(checked_in == current, "docs/openapi.json is out of date: run the test with NETSERV_REWRITE=1");
    }

    #[test]
    fn every_reference_has_its_shape() {
        let document = document();
        let text = document.to_string();
        let shapes = document["components"]["schemas"].as_object().unwrap();
        let mut references = 0;
        for part in text.split("\"#/components/schemas/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(shapes.contains_key(name), "{name}");
            references += 1;
        }
        assert!(references > 10);
    }
}
