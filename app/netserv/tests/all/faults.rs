// SPDX-License-Identifier: Apache-2.0
//! What is wrong with a module is said with the line of its manifest and the fix, before any node sees it.

use crate::support::{Home, text};

const HEAD: &str = "manifest = 1\nname = \"example.org/m\"\nversion = \"1.0.0\"\n";
const CORE: &str = "(module (func (export \"netserv_abi\") (result i32) i32.const 1))";
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----";
const KEY: &str = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----";
/// A bundle without classes.
const JAR: &[u8] = include_bytes!("../../../../io/repository/tests/all/common/empty.jar");
const HTTP: &str = "(component (instance $i) (export \"wasi:http/incoming-handler@0.2.4\" (instance $i)))";

/// Builds a module of this manifest, below the head, with these files, and returns what is said.
fn build(manifest: &str, files: &[(&str, &str)]) -> String {
    let home = Home::with_key();
    let dir = home.path().join("m");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("netserv.toml"), format!("{HEAD}{manifest}")).unwrap();
    for (name, content) in files {
        let bytes = match *content {
            "a bundle" => JAR.to_vec(),
            code if code.starts_with('(') => wat::parse_str(code).unwrap(),
            other => other.as_bytes().to_vec(),
        };
        std::fs::write(dir.join(name), bytes).unwrap();
    }
    text(&home.netserv(&["module", "build", "m"]).stderr)
}

#[track_caller]
fn check(manifest: &str, files: &[(&str, &str)], cause: &str, fix: &str) {
    let said = build(manifest, files);
    assert!(said.starts_with(&format!("error: m/{cause}")), "{said}");
    assert!(said.contains("\nfix: ") && said.contains(fix), "{said}");
}

#[test]
fn parts_that_do_not_fit_their_keys_are_named_by_line() {
    let packet = "[packet]\nabi = 1\n[build]\nwasm = \"a.wasm\"\n";
    check(
        packet,
        &[("a.wasm", HTTP)],
        "netserv.toml: line 7: `wasm` names m/a.wasm, which is a component\n",
        "write `component = …` for it",
    );
    let server = "[server]\nlisten = [\"tcp port 80\"]\n[build]\ncomponent = \"a.wasm\"\n";
    check(
        server,
        &[("a.wasm", CORE)],
        "netserv.toml: line 7: `component` names m/a.wasm, which is a core module\n",
        "write `wasm = …` for it",
    );
    check(
        &server.replace("[build]", "[packet]\nabi = 1\n[build]"),
        &[("a.wasm", HTTP)],
        "netserv.toml: line 6: there is [packet], but the package no WebAssembly core module",
        "add `wasm = \"FILE\"` below [build] in m/netserv.toml, or remove the section",
    );
    check(
        &packet.replace("abi = 1", "abi = 2"),
        &[("a.wasm", CORE)],
        "netserv.toml: line 5: `abi` is 2, but m/a.wasm was built for 1\n",
        "write `abi = 1`",
    );
}

#[test]
fn code_that_does_not_fit_into_its_memory_is_named_by_line() {
    let more = "[limits]\nmemory-bytes = 1048576\n[packet]\nabi = 1\n[build]\nwasm = \"a.wasm\"\n";
    let code = CORE.replace("(module", "(module (memory 17)");
    check(
        more,
        &[("a.wasm", &code)],
        "netserv.toml: line 5: m/a.wasm begins with 1114112 bytes of memory, and may have 1048576\n",
        "write `memory-bytes = 1114112` or more below [limits]",
    );
    let server = "[server]\nlisten = [\"tcp port 80\"]\n[build]\ncomponent = \"a.wasm\"\n";
    let code = HTTP.replace("(component ", "(component (core module (memory 65)) ");
    let cause = "netserv.toml: m/a.wasm begins with 4259840 bytes of memory, and may have 4194304\n";
    check(server, &[("a.wasm", &code)], cause, "write `memory-bytes = 4259840` or more");
}

#[test]
fn a_manifest_that_makes_no_sense_is_named_by_line() {
    let listen = "[server]\nlisten = [\"tcp\"]\n[build]\ncomponent = \"a.wasm\"\n";
    check(listen, &[], "netserv.toml: line 5: server.listen has `tcp`; write", "mend m/netserv.toml");
    check("[server]\nport = 80\n", &[], "netserv.toml: line 5: unknown field `port`", "mend m/netserv.toml");
    let typed = "[server]\nlistens = [\"tcp port 80\"]\n";
    check(typed, &[], "netserv.toml: line 5: unknown field `listens`", "write `listen` in m/netserv.toml");
    check("[[tests]]\n", &[], "netserv.toml: line 4: unknown field `tests`", "write `test` in m/netserv.toml");
    let tls = "[server]\nlisten = [\"tcp port 443\"]\n[server.tls]\ncertificate = \"a.pem\"\nkey = \"b.pem\"\n\
               [build]\ncomponent = \"a.wasm\"\n";
    check(
        tls,
        &[("a.wasm", HTTP)],
        "netserv.toml: line 7: `certificate` names m/a.pem, which cannot be read: No such file",
        "put the PEM file there",
    );
    check(
        tls,
        &[("a.wasm", HTTP), ("a.pem", "nothing"), ("b.pem", "nothing")],
        "a.pem: the PEM of `server.tls` holds no certificate\n",
        "name PEM files",
    );
}

/// Before a node starts a bundle that would wait for connections, or speak in clear, or to nobody.
#[test]
fn what_bundles_do_not_have_is_named_by_line() {
    let server = "[server]\nlisten = [\"tcp port 80\"]\n[build]\nbundle = \"a.jar\"\n";
    let files = [("a.jar", "a bundle"), ("a.pem", CERTIFICATE), ("b.pem", KEY)];
    let check = |manifest: String, cause| check(&manifest, &files, cause, "mend m/netserv.toml");
    check(
        server.replace("[build]", "intercept = [\"tcp port 8080\"]\n[build]"),
        "netserv.toml: line 6: server.intercept is set, and bundles take over no connections; remove it, or the bundle\n",
    );
    check(
        server.replace("[build]", "tls = { certificate = \"a.pem\", key = \"b.pem\" }\n[build]"),
        "netserv.toml: line 6: server.tls is set, and bundles get no certificate; remove it, or the bundle\n",
    );
    check(
        format!("dependencies = [\"messages>=1\"]\n{server}"),
        "netserv.toml: line 4: `dependencies` has messages, and a bundle is one part",
    );
}

/// Code for other versions of nodes is refused with the side that is to be updated; missing blocks are only pointed to.
#[test]
fn skew_is_said_by_build_and_inspect() {
    let server = "[server]\nlisten = [\"tcp port 80\"]\n[build]\ncomponent = \"a.wasm\"\n";
    let with = |import: &str| HTTP.replace("(component ", &format!("(component (import \"{import}\" (instance)) "));
    check(
        server,
        &[("a.wasm", &with("netserv:kv/store@2.0.0"))],
        "a.wasm uses netserv:kv/store@2.0.0; nodes of this version have netserv:kv@1.0.0\n",
        "update netserv and the nodes",
    );
    check(
        server,
        &[("a.wasm", &with("wasi:http/types@0.3.0"))],
        "a.wasm uses wasi:http/types@0.3.0; nodes of this version have WASI 0.2\n",
        "build for WASI 0.2",
    );
    let said =
        build(&format!("dependencies = [\"http>=1\"]\n{server}"), &[("a.wasm", &with("netserv:kv/store@1.0.0"))]);
    assert_eq!(said, "m/netserv.toml: line 4: add \"kv>=1\" to `dependencies`, since m/a.wasm imports it\n");

    let home = Home::empty();
    std::fs::write(home.path().join("a.wasm"), wat::parse_str(with("wasi:io/poll@0.3.0")).unwrap()).unwrap();
    let shown = text(&home.netserv(&["module", "inspect", "a.wasm"]).stdout);
    assert!(shown.starts_with("file         a.wasm, component for HTTP, "), "{shown}");
    assert!(shown.contains("\nnodes        cannot run it: it uses wasi:io/poll@0.3.0; "), "{shown}");
    assert!(shown.contains("\nfix          build for WASI 0.2"), "{shown}");
}

#[test]
fn a_bundle_shows_what_it_says_of_itself() {
    let home = Home::empty();
    std::fs::write(home.path().join("a.jar"), JAR).unwrap();
    let shown = text(&home.netserv(&["module", "inspect", "a.jar"]).stdout);
    assert!(shown.starts_with("file         a.jar, OSGi bundle, "), "{shown}");
    let json: serde_json::Value =
        serde_json::from_slice(&home.netserv(&["-j", "module", "inspect", "a.jar"]).stdout).unwrap();
    assert!(json["bundle"]["symbolic_name"].is_string(), "{json}");
}

/// Certificate and key go into the package as one part, in that order.
#[test]
fn certificates_are_packaged() {
    let home = Home::with_key();
    let dir = home.path().join("m");
    std::fs::create_dir(&dir).unwrap();
    let manifest = "[server]\nlisten = [\"tcp port 443\"]\ntls = { certificate = \"a.pem\", key = \"b.pem\" }\n\
                    [build]\ncomponent = \"a.wasm\"\n";
    std::fs::write(dir.join("netserv.toml"), format!("{HEAD}{manifest}")).unwrap();
    std::fs::write(dir.join("a.wasm"), wat::parse_str(HTTP).unwrap()).unwrap();
    std::fs::write(dir.join("a.pem"), CERTIFICATE).unwrap();
    std::fs::write(dir.join("b.pem"), KEY).unwrap();
    let built = home.netserv(&["-j", "module", "build", "m"]);
    assert!(built.status.success(), "{built:?}");
    let package = std::fs::read(dir.join("m-1.0.0.nsm")).unwrap();
    let package = netserv_repository::package::read(&package).unwrap();
    let expected = format!("{CERTIFICATE}\n{KEY}\n");
    assert_eq!(package.part(netserv_repository::Part::Tls), Some(expected.as_bytes()));
}
