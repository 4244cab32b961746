// SPDX-License-Identifier: Apache-2.0
//! Manifests of other versions: what is optional is read over, what is required is refused by its name.

use crate::common::{COMPONENT, MANIFEST, PEM, WASM, manifest_of, signed};
use netserv_model::limits::FILTERS_PER_MODULE_MAX;
use netserv_model::manifest::{Manifest, ModuleLimits};
use netserv_model::{Refusal, RefusalKind};
use netserv_repository::limits::MANIFEST_BYTES_MAX;
use netserv_repository::{Part, manifest, package};
use serde_json::{Value, json};

/// A manifest that has every section but `[service]`.
fn whole() -> Manifest {
    let sections = "[server]\nlisten = [\"tcp port 443\"]\nintercept = [\"tcp port 80\"]\n\
                    tls = { certificate = \"a\", key = \"b\" }\n[limits]\nkv-entries = 7\n[properties]\nkey = \"value\"\n";
    manifest_of(&format!("{MANIFEST}{sections}"))
}

#[test]
fn what_was_written_is_read_back_as_it_was() {
    for written in [manifest_of(MANIFEST), whole()] {
        let json = manifest::to_json(&written).unwrap();
        let read = manifest::parse(&json).unwrap();
        assert_eq!(read, written);
        assert_eq!(manifest::to_json(&read).unwrap(), json);
        assert!(manifest::unknown_keys(&json).is_empty());
    }
}

/// These bytes are part of the format: if they change, every published module has another digest. All is said, so that a
/// node with other defaults runs the same module.
#[test]
fn a_manifest_says_all_that_a_node_needs_and_no_more() {
    let json = String::from_utf8(manifest::to_json(&manifest_of(MANIFEST)).unwrap()).unwrap();
    assert_eq!(
        json,
        r#"{"manifest":1,"requires":[],"name":"example.org/net-monitor","version":"1.2.0","description":"Counts packets","#
            .to_owned()
            + r#""dependencies":["kv>=1"],"packet":{"abi":1,"filters":["udp dst 10.2.0.0/24 port 5060"],"on-failure":"closed"},"#
            + r#""limits":{"memory-bytes":4194304,"kv-entries":65536,"kv-bytes":4194304,"timers":64,"counters":1024,"#
            + r#""call-ms":500,"request-ms":10000,"requests":64,"connections":8192,"body-bytes":16777216},"#
            + r#""properties":{},"state-schema":1}"#
    );
}

#[test]
fn what_a_module_needs_is_said_only_if_it_needs_something() {
    let needs = format!("{MANIFEST}\n[needs]\ntimers = 100\ncache-bytes = 5\n");
    let manifest = manifest_of(&needs);
    assert_eq!(manifest.limits.timers, 100);
    let json = String::from_utf8(manifest::to_json(&manifest).unwrap()).unwrap();
    assert!(json.contains(r#""requires":["needs"]"#), "{json}");
    assert!(json.contains(r#""needs":{"cache-bytes":5,"timers":100}"#), "{json}");
    assert_eq!(manifest::parse(json.as_bytes()).unwrap(), manifest);
    for (odd, cause) in [
        (json.replace("\"timers\":100}", "\"timers\":101}"), "needs.timers is 101, and limits.timers only 100"),
        (json.replace("\"requires\":[\"needs\"]", "\"requires\":[]"), "`requires` lacks `needs`"),
        (json.replace("cache-bytes", "cheese-bytes"), "unknown variant `cheese-bytes`"),
    ] {
        let refusal = manifest::parse(odd.as_bytes()).unwrap_err();
        assert!(refusal.detail.contains(cause), "{refusal}");
    }
}

#[test]
fn keys_that_are_left_out_have_their_defaults() {
    let parallel = br#"{"manifest":1,"name":"example.org/m","version":"1.0.0","packet":{"abi":1,"parallel":true}}"#;
    assert!(manifest::parse(parallel).unwrap().is_parallel());
    let least = br#"{"manifest":1,"name":"example.org/m","version":"1.0.0","packet":{},"limits":{"timers":3}}"#;
    let read = manifest::parse(least).unwrap();
    assert_eq!(read.limits, ModuleLimits { timers: 3, ..ModuleLimits::default() });
    assert_eq!((read.state_schema, read.filters().len(), read.requires.len()), (1, 0, 0));
    assert!(!read.is_parallel());
}

/// Goal: a package that was built by a later version runs on this node, unless it says that it must not.
/// Method: keys that are not known, of every kind of value, are put into every object of a manifest.
#[test]
fn optional_keys_of_later_versions_are_read_over() {
    let older = whole();
    let mut later = serde_json::to_value(&older).unwrap();
    later["greeting"] = json!("hello");
    later["meter"] = json!({ "rate": 1, "packet": { "abi": 9 } });
    later["packet"]["mirror"] = json!([1, 2, 3]);
    later["server"]["backlog"] = json!(null);
    later["server"]["alpn"] = json!(["h3"]);
    later["limits"]["gpu-ms"] = json!(1.5);
    let json = serde_json::to_vec(&later).unwrap();
    assert_eq!(manifest::parse(&json), Ok(older));
    assert_eq!(manifest::unknown_keys(&json), ["greeting", "limits.gpu-ms", "meter", "packet.mirror", "server.alpn"]);
}

#[test]
fn packages_of_later_versions_are_taken_with_their_optional_keys() {
    let parts = [(Part::Core, WASM), (Part::Component, COMPONENT), (Part::Tls, PEM.as_bytes())];
    let older = package::build(whole(), &parts).unwrap();
    assert!(older.unknown_keys().is_empty());
    let mut later = crate::common::tar_file::Tar::of(&older);
    later.rewrite_everywhere(r#""state-schema":1"#, r#""state-schema":1,"greeting":"hello""#);
    let read = package::read(&later.to_bytes()).unwrap();
    assert_eq!((read.manifest(), read.parts()), (older.manifest(), older.parts()));
    assert_eq!(read.unknown_keys(), ["greeting"]);
    assert_ne!(read.digest(), older.digest());
}

/// The name is what a requester is told, whatever else of the manifest is not understood.
#[test]
fn required_features_of_later_versions_are_refused_by_name() {
    let with = |requires: Value| {
        let mut later = serde_json::to_value(manifest_of(MANIFEST)).unwrap();
        later["requires"] = requires;
        later["packet"]["on-failure"] = json!("detour");
        later["name"] = json!(["not", "a", "name"]);
        serde_json::to_vec(&later).unwrap()
    };
    let known = "which this version does not know; known here: intercept, intercept-tls, needs, self-filter, service, syn-filter, \
                 tls";
    for (requires, expected) in [
        (json!(["detour"]), format!("requires `detour`, {known}")),
        (json!(["tls", "detour"]), format!("requires `detour`, {known}")),
        (json!(["TLS"]), format!("requires `TLS`, {known}")),
        (json!([""]), format!("requires ``, {known}")),
        (json!(["\u{1b}[31m\n"]), format!("requires `\\u{{1b}}[31m `, {known}")),
        (json!(["x".repeat(50_000)]), format!("requires `{}`, {known}", "x".repeat(40))),
    ] {
        check(&with(requires), RefusalKind::MissingFeature, &expected);
    }
    check(&with(json!(["tls"])), RefusalKind::BadManifest, "invalid type: sequence");
    check(&with(json!("tls")), RefusalKind::BadManifest, "expected a sequence");
}

#[test]
fn other_major_versions_are_refused_whatever_is_in_them() {
    for version in [0, 2, u32::MAX] {
        let json = serde_json::to_vec(&json!({ "manifest": version, "requires": 7 })).unwrap();
        let expected = format!("of version {version}, understood here is 1");
        check(&json, RefusalKind::MissingFeature, &expected);
    }
}

/// Whoever wrote the package: a node relies on none of what `netserv module build` checks.
#[test]
fn manifests_that_make_no_sense_are_refused() {
    let bent = |path: &str, value: Value| {
        let mut manifest = serde_json::to_value(whole()).unwrap();
        *manifest.pointer_mut(path).unwrap() = value;
        serde_json::to_vec(&manifest).unwrap()
    };
    let filters = |count: usize| (1..=count).map(|port| json!(format!("tcp port {port}"))).collect::<Value>();
    let over = FILTERS_PER_MODULE_MAX + 1;
    for (path, value, expected) in [
        ("/requires", json!(["intercept"]), "`requires` lacks `tls`, which the manifest uses"),
        ("/server/listen", json!(["tcp"]), "server.listen has `tcp`"),
        ("/server/intercept", json!(["udp port 53"]), "server.intercept has `udp port 53`"),
        ("/packet/filters", filters(over), "17 filters, at most 16"),
        ("/server/listen", filters(over), "17 entries of server.listen"),
        ("/packet/filters", json!(["udp to 10.0.0.1"]), "`to` is not understood"),
        ("/packet/on-failure", json!("detour"), "unknown variant `detour`"),
        ("/name", json!("nowhere"), "`nowhere`"),
        ("/version", json!("1"), "version"),
        ("/limits", json!(null), "invalid type: null"),
        ("/properties/key", json!("x".repeat(5000)), "property `key` is longer"),
    ] {
        check(&bent(path, value), RefusalKind::BadManifest, expected);
    }
    assert!(manifest::parse(&bent("/server/listen", filters(over - 1))).is_ok());
    let nothing = br#"{"manifest":1,"name":"example.org/m","version":"1.0.0"}"#;
    check(nothing, RefusalKind::BadManifest, "neither [packet] nor [server]");
    let parallel = br#"{"manifest":1,"name":"example.org/m","version":"1.0.0","packet":{"parallel":true}}"#;
    check(parallel, RefusalKind::BadManifest, "packet.parallel without packet.abi");
    for odd in [&b""[..], b"{", b"[]", b"1", b"\xff", b"manifest = 1", &[b'['; 10_000]] {
        check(odd, RefusalKind::BadManifest, "manifest: ");
    }
    let twice = br#"{"manifest":1,"manifest":1,"name":"example.org/m","version":"1.0.0","packet":{}}"#;
    check(twice, RefusalKind::BadManifest, "duplicate field `manifest`");
    let mut wrong = whole();
    wrong.requires.clear();
    assert!(manifest::to_json(&wrong).unwrap_err().detail.contains("`requires` lacks `intercept`"));
}

#[test]
fn manifests_are_bounded() {
    let with = |bytes: usize| Manifest { description: "x".repeat(bytes), ..manifest_of(MANIFEST) };
    let frame = manifest::to_json(&with(0)).unwrap().len();
    let longest = manifest::to_json(&with(MANIFEST_BYTES_MAX - frame)).unwrap();
    assert!(longest.len() == MANIFEST_BYTES_MAX && manifest::parse(&longest).is_ok());
    let refusal = manifest::to_json(&with(MANIFEST_BYTES_MAX - frame + 1)).unwrap_err();
    assert!(refusal.detail.contains("65537 bytes, at most 65536"), "{refusal}");
    check(&[longest, b" ".to_vec()].concat(), RefusalKind::BadManifest, "65537 bytes, at most 65536");
}

/// What developers write for themselves is not in the package: neither tests nor build keys, nor names of files.
#[test]
fn nothing_of_the_developer_travels() {
    let private = "[build]\ncommand = \"make secret-command\"\n[[test]]\nname = \"secret-test\"\n\
                   input = \"secret-input.pcap\"\noutput = \"o.pcap\"\n";
    let package = signed(&format!("{MANIFEST}{private}"), WASM, &[]);
    let bytes = package.to_bytes();
    assert!(!bytes.windows(6).any(|window| window == b"secret"));
    assert_eq!(package.digest(), signed(MANIFEST, WASM, &[]).digest());
}

#[track_caller]
fn check(json: &[u8], kind: RefusalKind, expected: &str) {
    let Refusal { kind: found, detail, .. } = manifest::parse(json).unwrap_err();
    assert_eq!(found, kind, "{detail}");
    assert!(detail.contains(expected), "`{detail}` has no `{expected}`");
    assert!(manifest::unknown_keys(json).is_empty());
}
