// SPDX-License-Identifier: Apache-2.0
//! What a project's file becomes, and what is refused, by line.

use netserv_model::limits::{CHAIN_PARTS_MAX, CHAIN_PARTS_MIN};
use netserv_model::limits::{FILTERS_PER_MODULE_MAX, PROPERTIES_PER_MODULE_MAX, PROPERTY_BYTES_MAX, TLS_NAMES_MAX};
use netserv_model::manifest::Feature;

use super::*;

const TEXT: &str = r#"manifest = 1
name = "example.org/net-monitor"
version = "1.2.0"
description = "Counts packets"
dependencies = ["kv>=1"]

[packet]
abi = 1
filters = ["udp dst 10.2.0.0/24 port 5060"]
on-failure = "closed"
"#;

const TESTS_AND_BUILD: &str = r#"
[build]
command = "cargo build"
wasm = "target/a.wasm"

[[test]]
name = "counts"
input = "in.pcap"
output = "out.pcap"

[[http-test]]
name = "answers"

[[tcp-test]]
name = "echoes"
steps = [{ from-client = "a", to-client = [97] }]
"#;

/// Tests and build keys stay with the developer: the same manifest comes of a file with and without them.
#[test]
fn the_manifest_has_neither_tests_nor_build_keys() {
    let bare = Project::parse(TEXT).unwrap();
    let whole = Project::parse(&format!("{TEXT}{TESTS_AND_BUILD}")).unwrap();
    assert_eq!(whole.manifest, bare.manifest);
    assert_eq!(whole.build.wasm.as_deref(), Some("target/a.wasm"));
    assert_eq!((whole.tests.len(), whole.http_tests.len(), whole.tcp_tests.len()), (1, 1, 1));
    assert_eq!((whole.has_tests(), whole.has_server_tests()), (true, true));
    assert_eq!((bare.has_tests(), bare.has_server_tests()), (false, false));
    assert_eq!(bare.manifest.module().to_string(), "example.org/net-monitor@1.2.0");
}

#[test]
fn the_manifest_requires_what_the_file_makes_use_of() {
    for (text, expected) in [
        (TEXT.to_owned(), vec![]),
        (server("listen = [\"tcp port 80\"]"), vec![]),
        (server("intercept = []"), vec![]),
        (server("intercept = [\"tcp port 80\"]"), vec![Feature::Intercept]),
        (server("tls = { certificate = \"a.pem\", key = \"b.pem\" }"), vec![Feature::Tls]),
        (
            server(
                "intercept = [\"tcp port 443\"]\nintercept-tls = [\"a.example\"]\n\
                 tls = { certificate = \"a.pem\", key = \"b.pem\" }",
            ),
            vec![Feature::Intercept, Feature::InterceptTls, Feature::Tls],
        ),
        (service(2), vec![Feature::Service]),
    ] {
        let project = Project::parse(&text).unwrap();
        assert_eq!(project.manifest.requires.into_iter().collect::<Vec<_>>(), expected, "{text}");
        assert_eq!(project.manifest.server.is_some_and(|server| server.tls), project.tls.is_some());
    }
}

#[test]
fn what_is_not_understood_is_refused_by_line() {
    let head = TEXT.split("[packet]").next().unwrap();
    for (text, expected) in [
        (format!("{TEXT}\nsurprise = 1\n"), "line 12: unknown field `surprise`"),
        (format!("{TEXT}[surprise]\n"), "line 11: unknown field `surprise`"),
        (TEXT.replace("manifest = 1", "manifest = 2"), "line 1: `manifest = 2`, understood is 1"),
        (format!("requires = []\n{TEXT}"), "line 1: unknown field `requires`"),
        (TEXT.replace("abi = 1", "abi = 1\nsurprise = 2"), "line 9: unknown field `surprise`"),
        (TEXT.replace("udp dst", "udp to"), "line 9: `to` is not understood"),
        (TEXT.replace("name", "nam"), "line 2: unknown field `nam`"),
        (TEXT.replace("closed", "shut"), "line 10: unknown variant `shut`"),
        ("manifest = ".to_owned(), "line 1: "),
        ("manifest = 1".to_owned(), "missing field"),
        (TEXT.replace("[packet]", "[server]").replace("abi = 1\n", ""), "line 8: unknown field `filters`"),
        (head.to_owned(), "neither [packet] nor [server]"),
        (server("listen = [\"tcp\"]"), "line 13: server.listen has `tcp`; write a protocol and a port"),
        (server("listen = [\"tcp dst 10.0.0.1 port 80\"]"), "write a protocol and a port"),
        (server("listen = [\"tcp sport 1 port 80\"]"), "write a protocol and a port"),
        (server(&list("listen", FILTERS_PER_MODULE_MAX + 1)), "line 13: 17 entries of server.listen, at most 16"),
        (server("intercept = [\"tcp\"]"), "line 13: server.intercept has `tcp`; write `tcp` and a port"),
        (server("intercept = [\"udp port 53\"]"), "write `tcp` and a port"),
        (server("intercept-tls = [\"a.example\"]"), "line 13: server.intercept-tls without both server.tls and"),
        (server("drain = \"splice\""), "line 13: server.drain = \"splice\" without server.intercept"),
        (server("drain = \"finish\""), "line 13: server.drain = \"finish\" without server.intercept"),
        (server("drain = \"keep\""), "line 13: unknown variant `keep`"),
        (server("intercept-tls = [\"a b\"]"), "line 13: server.intercept-tls has `a b`; write a name"),
        (server("intercept-tls = [\"*.example\"]"), "has `*.example`"),
        (server("intercept-tls = [\"\"]"), "has ``"),
        (
            server(&format!("intercept-tls = [{}]", "\"a.example\",".repeat(TLS_NAMES_MAX + 1))),
            "line 13: 65 entries of server.intercept-tls, at most 64",
        ),
        (server(&list("intercept", FILTERS_PER_MODULE_MAX + 1)), "17 entries of server.intercept, at most 16"),
        (server("tls = true"), "line 13: invalid type: boolean"),
        (server("[limits]\nkv-entris = 1"), "line 14: unknown field `kv-entris`"),
        (service(CHAIN_PARTS_MIN - 1), "line 8: 1 parts in service.chain, 2 to 16"),
        (service(CHAIN_PARTS_MAX + 1), "17 parts in service.chain, 2 to 16"),
        (service(2).replace("a1@", "a0@"), "service.chain has example.org/a0 twice"),
        (service(2).replace("a1@", "net-monitor@"), "has the service example.org/net-monitor itself"),
        (service(2).replace("@^1", "@^^1"), "is not a part of a service"),
        (format!("{}\n[packet]\nabi = 1\n", service(2)), "[service] and [packet]"),
        (filters(FILTERS_PER_MODULE_MAX + 1), "line 9: 17 filters, at most 16"),
        (properties(PROPERTIES_PER_MODULE_MAX + 1), "line 12: 65 properties, at most 64"),
        (property(PROPERTY_BYTES_MAX + 1), "line 13: property `key` is longer than 4096 bytes"),
        (long(PROJECT_BYTES_MAX + 1), "1048577 bytes, at most 1048576"),
    ] {
        let said = Project::parse(&text).unwrap_err().to_string();
        assert!(said.contains(expected) && !said.contains('\n'), "{said} has no {expected}");
    }
}

#[test]
fn what_is_at_a_bound_is_taken() {
    for text in [
        filters(FILTERS_PER_MODULE_MAX),
        server(&list("listen", FILTERS_PER_MODULE_MAX)),
        server(&list("intercept", FILTERS_PER_MODULE_MAX)),
        service(CHAIN_PARTS_MIN),
        service(CHAIN_PARTS_MAX),
        properties(PROPERTIES_PER_MODULE_MAX),
        property(PROPERTY_BYTES_MAX),
        long(PROJECT_BYTES_MAX),
    ] {
        assert_eq!(Project::parse(&text).map(drop), Ok(()));
    }
}

#[test]
fn a_typing_error_is_told_with_what_was_meant() {
    for (from, to, line, meant) in [
        ("filters", "filter", 9, "filters"),
        ("on-failure", "on_failure", 10, "on-failure"),
        ("[packet]", "[packets]", 7, "packet"),
        ("closed", "close", 10, "closed"),
    ] {
        let error = Project::parse(&TEXT.replace(from, to)).unwrap_err();
        assert_eq!((error.line, error.meant.as_deref()), (Some(line), Some(meant)), "{error}");
    }
}

fn server(keys: &str) -> String {
    format!("{TEXT}\n[server]\n{keys}\n")
}

fn list(key: &str, count: usize) -> String {
    let filters: Vec<String> = (1..=count).map(|port| format!("\"tcp port {port}\"")).collect();
    format!("{key} = [{}]", filters.join(", "))
}

fn service(parts: usize) -> String {
    let parts: Vec<String> = (0..parts).map(|n| format!("\"example.org/a{n}@^1\"")).collect();
    format!("{}[service]\nchain = [{}]\n", TEXT.split("[packet]").next().unwrap(), parts.join(", "))
}

fn filters(count: usize) -> String {
    let filters: Vec<String> = (0..count).map(|n| format!("\"dst 10.0.0.{n}\"")).collect();
    TEXT.replace("\"udp dst 10.2.0.0/24 port 5060\"", &filters.join(","))
}

fn properties(count: usize) -> String {
    let properties: Vec<String> = (0..count).map(|n| format!("key{n} = \"\"\n")).collect();
    format!("{TEXT}\n[properties]\n{}", properties.concat())
}

fn property(bytes: usize) -> String {
    format!("{TEXT}\n[properties]\nkey = \"{}\"", "x".repeat(bytes - "key".len()))
}

fn long(bytes: usize) -> String {
    format!("{TEXT}#{}", "x".repeat(bytes - TEXT.len() - 1))
}
