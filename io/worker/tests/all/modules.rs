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

/// Goal: modules that were built against interfaces of an earlier day run as they did.
#[test]
fn modules_of_an_earlier_day_pass_their_tests() {
    for name in ["sip-filter", "capitals"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netserv-worker"));
        command.args(["test", "--package-dir"]).arg(repository().join("vectors/interfaces/modules").join(name));
        let output = command.output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out.contains("\"passed\":true"), "{name}:\n{out}{err}");
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
        .arg(folder.join("samples/echo/tests/back.in.pcap"))
        .arg("--output")
        .arg(folder.join("samples/echo/tests/back.in.pcap"))
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

#[test]
fn a_module_that_does_not_start_says_why() {
    let folder = repository().join("modules");
    build(&folder);
    let capture = folder.join("samples/echo/tests/back.in.pcap");
    let output = Command::new(env!("CARGO_BIN_EXE_netserv-worker"))
        .arg("test")
        .arg("--wasm")
        .arg(wasm(&folder, "echo"))
        .arg("--input")
        .arg(&capture)
        .arg("--output")
        .arg(&capture)
        .args(["--property", "port=high"])
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let detail =
        "property `port` has the value `high`, which is not understood (the module refused to start, with code 1)";
    assert_eq!((&report["failure"]["kind"], &report["failure"]["detail"]), (&"trapped".into(), &detail.into()));
}

#[test]
fn a_tcp_test_that_fails_shows_the_bytes() {
    let folder = repository().join("modules");
    build(&folder);
    let component = folder.join("target/wasm32-wasip2/release/redact.wasm");
    let package = tempfile::tempdir().unwrap();
    let write = |more: &str| {
        let head = "manifest = 1\nname = \"example.org/redact\"\nversion = \"1.0.0\"\n[server]\n";
        let text = format!("{head}{more}\n[build]\ncomponent = {component:?}\n");
        std::fs::write(package.path().join("netserv.toml"), text).unwrap();
    };
    let run = |command: &str, more: &[&str]| {
        let mut worker = Command::new(env!("CARGO_BIN_EXE_netserv-worker"));
        let output = worker.arg(command).arg("--package-dir").arg(package.path()).args(more).output().unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        let reports = lines.lines().map(|line| serde_json::from_str(line).unwrap());
        (output.status.code(), reports.collect::<Vec<serde_json::Value>>(), String::from_utf8(output.stderr).unwrap())
    };

    let steps = "steps = [{ from-client = \"a secret\\n\", to-server = \"a secret\\n\" }]";
    write(&format!(
        "[[tcp-test]]\nname = \"a\"\nintercepted = true\n{steps}\noutcome = \"closed\"\n\
                    [[tcp-test]]\nname = \"b\"\nsteps = [{{ from-client = \"x\", wait-ms = 1 }}]\n"
    ));
    let (code, reports, _) = run("test", &[]);
    assert_eq!((code, reports.len()), (Some(1), 2));
    let [sent, outcome] = [
        r#"step 1: to-server: 9 bytes expected, 9 came; from byte 2 on expected "secret\n", is "******\n""#,
        "outcome: expected closed, is open",
    ];
    assert_eq!(reports[0]["differences"], serde_json::json!([sent, outcome]));
    assert_eq!((&reports[0]["bytes_in"], &reports[0]["bytes_out"]), (&9.into(), &9.into()));
    let refused = "step 1: the client cannot send, for the connection is refused";
    assert_eq!(reports[1]["differences"][0], refused);

    // What comes out is written down where that is wanted.
    write(
        "[[tcp-test]]\nname = \"a\"\nintercepted = true\n\
           steps = [{ from-client = \"a secret\", to-server = { file = \"golden/out\" } }]",
    );
    let (code, _, stderr) = run("test", &[]);
    assert!(code == Some(2) && stderr.contains("[[tcp-test]] `a`: cannot read"), "{stderr}");
    assert_eq!(run("test", &["--accept"]).0, Some(0));
    assert_eq!(std::fs::read(package.path().join("golden/out")).unwrap(), b"a ******");
    assert_eq!(run("test", &[]).0, Some(0));
    let (code, reports, stderr) = run("bench", &["--time-ms", "100"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!((&reports[0]["tcp"]["connections"], &reports[0]["tcp"]["chunk_bytes"]), (&1.into(), &65536.into()));

    // A module that does not run at all says why, in each test; one that refuses cannot be measured.
    write("[limits]\nmemory-bytes = 65536\n[[tcp-test]]\nname = \"a\"\n[[tcp-test]]\nname = \"b\"\n");
    let (code, reports, _) = run("test", &[]);
    assert_eq!((code, reports.len()), (Some(1), 2));
    assert!(reports.iter().all(|report| report["failure"]["kind"] == "memory-limit"), "{reports:?}");
    write("");
    let (code, _, stderr) = run("bench", &["--time-ms", "100"]);
    assert!(code == Some(2) && stderr.contains("the module has each connection refused"), "{stderr}");
}

/// Builds the modules that have tests, in their own target folder.
fn build(folder: &Path) {
    cargo_build(folder, &["--target", "wasm32-unknown-unknown"]);
    for package in packages(folder) {
        if ["[[http-test]]", "[[tcp-test]]"].iter().any(|test| manifest(&package).contains(test)) {
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
    let kinds = ["apps", "samples", "fixtures"].into_iter();
    let entries =
        kinds.flat_map(|kind| std::fs::read_dir(folder.join(kind)).unwrap()).map(|entry| entry.unwrap().path());
    let tests = ["[[test]]", "[[http-test]]", "[[tcp-test]]"];
    let has_tests = |package: &PathBuf| tests.iter().any(|test| manifest(package).contains(test));
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
