// SPDX-License-Identifier: Apache-2.0
//! The modules in `modules/`, built and run on their own captures.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::repository;

#[test]
fn every_module_passes_its_tests() {
    let folder = repository().join("modules");
    build(&folder);
    let packages = packages(&folder);
    assert!(packages.len() >= 4, "{packages:?}");
    for package in packages {
        let output = Command::new(env!("CARGO_BIN_EXE_netserv-worker"))
            .args(["test", "--package-dir"])
            .arg(&package)
            .output()
            .unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}:\n{out}{err}", package.display());
        assert!(out.lines().count() >= 1 && out.lines().all(|line| line.contains("\"passed\":true")), "{out}");
    }
}

#[test]
fn a_test_that_fails_shows_the_packet() {
    let folder = repository().join("modules");
    build(&folder);
    let output = Command::new(env!("CARGO_BIN_EXE_netserv-worker"))
        .arg("test")
        .arg("--wasm")
        .arg(wasm(&folder, "echo"))
        .arg("--input")
        .arg(folder.join("echo/tests/back.in.pcap"))
        .arg("--output")
        .arg(folder.join("echo/tests/back.in.pcap"))
        .args(["--counter", "echoed=4"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["passed"], false);
    assert_eq!((&report["difference"]["packet"], &report["difference"]["byte"]), (&1.into(), &8.into()));
    assert!(report["difference"]["actual"].as_str().unwrap().starts_with("0000  45 00 00 21"));
    assert_eq!(report["wrong_counters"]["echoed"], serde_json::json!([4, 3]));
}

/// Builds the modules that have tests, in their own target folder.
fn build(folder: &Path) {
    cargo_build(folder, &["--target", "wasm32-unknown-unknown"]);
    for package in packages(folder) {
        if manifest(&package).contains("[[http-test]]") {
            let name = package.file_name().unwrap().to_str().unwrap();
            cargo_build(folder, &["--target", "wasm32-wasip2", "-p", name]);
        }
    }
}

fn cargo_build(folder: &Path, arguments: &[&str]) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--release", "--quiet"])
        .args(arguments)
        .current_dir(folder)
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

/// Returns the packages whose manifests name tests; the others are tested in labs.
fn packages(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let has_tests =
        |package: &PathBuf| ["[[test]]", "[[http-test]]"].iter().any(|test| manifest(package).contains(test));
    let mut packages: Vec<_> = entries.filter(has_tests).collect();
    packages.sort();
    packages
}

fn manifest(package: &Path) -> String {
    std::fs::read_to_string(package.join("netserv.toml")).unwrap_or_default()
}

fn wasm(folder: &Path, name: &str) -> PathBuf {
    folder.join("target/wasm32-unknown-unknown/release").join(format!("{name}.wasm"))
}
