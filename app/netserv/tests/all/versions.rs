// SPDX-License-Identifier: Apache-2.0
//! Packages of other versions: what they require and what is read over is shown, what is not known is named.

#[path = "../../../../io/repository/tests/all/common/tar_file.rs"]
mod tar_file;

use crate::support::{Home, text};
use netserv_model::manifest::Feature;
use netserv_repository::package;
use tar_file::Tar;

const PROJECT: &str = "manifest = 1\nname = \"example.org/m\"\nversion = \"1.0.0\"\n[server]\nintercept = [\"tcp port 80\"]\n\
                       [[tcp-test]]\nname = \"secret\"\n[build]\ncomponent = \"a.wasm\"\n";
const HTTP: &str = "(component (instance $i) (export \"wasi:http/incoming-handler@0.2.4\" (instance $i)))";

/// A home with a package `m-1.0.0.nsm`.
fn home() -> Home {
    let home = Home::with_key();
    std::fs::write(home.path().join("netserv.toml"), PROJECT).unwrap();
    std::fs::write(home.path().join("a.wasm"), wat::parse_str(HTTP).unwrap()).unwrap();
    let built = home.netserv(&["module", "build"]);
    assert!(built.status.success(), "{built:?}");
    assert!(text(&built.stdout).contains("\nrequires     intercept\n"), "{built:?}");
    home
}

/// Writes `later.nsm`: the package, if its manifest were another one.
fn write_later(home: &Home, from: &str, to: &str) {
    let bytes = std::fs::read(home.path().join("m-1.0.0.nsm")).unwrap();
    let mut later = Tar::of(&package::read(&bytes).unwrap());
    later.rewrite_everywhere(from, to);
    std::fs::write(home.path().join("later.nsm"), later.to_bytes()).unwrap();
}

#[test]
fn a_package_says_what_it_requires_and_nothing_of_its_tests() {
    let home = home();
    let shown = home.netserv(&["-j", "module", "inspect", "m-1.0.0.nsm"]);
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["manifest"]["requires"], serde_json::json!(["intercept"]));
    assert_eq!(shown.get("unknown_keys"), None);
    assert!(!shown.to_string().contains("secret"), "{shown}");
}

#[test]
fn keys_that_are_read_over_are_shown() {
    let home = home();
    write_later(&home, "\"state-schema\":1", "\"state-schema\":1,\"greeting\":1,\"meter\":{}");
    let shown = home.netserv(&["module", "inspect", "later.nsm"]);
    let said = "nodes of this version read over 2 keys of the manifest: greeting, meter\n";
    assert_eq!((text(&shown.stderr).as_str(), shown.status.code()), (said, Some(0)));
    let shown = home.netserv(&["-j", "module", "inspect", "later.nsm"]);
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["unknown_keys"], serde_json::json!(["greeting", "meter"]));
}

#[test]
fn features_that_are_not_known_are_named() {
    let home = home();
    write_later(&home, "[\"intercept\"]", "[\"detour\",\"intercept\"]");
    let shown = home.netserv(&["module", "inspect", "later.nsm"]);
    let known = Feature::ALL.map(Feature::as_str).join(", ");
    let said = "error: later.nsm: the manifest requires `detour`, which this version does not know; known here:";
    assert!(text(&shown.stderr).starts_with(&format!("{said} {known}\nfix: update NetServ there")), "{shown:?}");
    assert_eq!(shown.status.code(), Some(1));
}
