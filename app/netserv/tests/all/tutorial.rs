// SPDX-License-Identifier: Apache-2.0
//! `docs/tutorial/1-first-module.md` and `docs/osgi.md`: their commands as they stand.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Home, text};
use netserv_skips::skipped;

/// Runs each `sh` block of the page in one shell that stops at the first failure. The node's part needs root and a
/// network namespace of its own, so that the module sees only the test's packets.
#[test]
fn the_commands_of_the_tutorial_work_as_they_stand() {
    let page = std::fs::read_to_string(root().join("docs/tutorial/1-first-module.md")).unwrap();
    let (without_root, with_root) = page.split_once("\n## 5. Run it\n").unwrap();
    let (here, node) = (commands(without_root), commands(with_root));
    assert!(here.lines().count() > 8 && node.lines().count() > 20, "the page's blocks are not found");

    let home = Home::empty();
    let tools = Path::new(env!("CARGO_BIN_EXE_netserv")).parent().unwrap().to_owned();
    if !tools.join("netserv-worker").exists() {
        skipped("the tutorial", "netserv-worker is not built");
        return;
    }
    let isolated = may_run_a_node(&tools);
    let stdout = run(&home, &tools, &here, isolated.then_some(node.as_str()), 60);
    let mut wanted = vec!["1 test passed", "exit code 7", "- 0010  c6 33 64 07 9c 40 00 35"];
    if isolated {
        wanted.extend(["would install", "installed, lease 1h", "  5     2       3  ", "counter: dropped = 3"]);
        wanted.extend(["replaced, lease 1h", "refused: prefix-not-allowed", "exit code 5", "removed"]);
    }
    check(&stdout, &wanted);
}

/// Goal: `netserv module new --lang java` makes a project that builds and tests without a network, and every command of
/// docs/osgi.md works as written.
///
/// The same for a bundle, with an empty Maven repository.
#[test]
fn the_commands_of_the_page_for_java_work_as_they_stand() {
    let page = std::fs::read_to_string(root().join("docs/osgi.md")).unwrap();
    let (without_root, with_root) = page.split_once("\n## 4. Run it\n").unwrap();
    let (here, node) = (commands(without_root), commands(with_root));
    assert!(here.lines().count() > 5 && node.lines().count() > 30, "the page's blocks are not found");

    let home = Home::empty();
    let tools = Path::new(env!("CARGO_BIN_EXE_netserv")).parent().unwrap().to_owned();
    for needed in ["netserv-jvm", "netserv-java/host", "netserv-java/repository"] {
        if !tools.join(needed).exists() {
            skipped("the page for Java", &format!("{needed} is not built (./dev build)"));
            return;
        }
    }
    if Command::new("mvn").arg("-v").output().is_err() {
        skipped("the page for Java", "there is no mvn");
        return;
    }
    let isolated = may_run_a_node(&tools);
    let here = format!("export MAVEN_OPTS=-Dmaven.repo.local=$HOME/m2\n{here}");
    let stdout = run(&home, &tools, &here, isolated.then_some(node.as_str()), 240);
    let mut wanted = vec!["1 test passed", "signed by    ed25519:"];
    if isolated {
        wanted.extend(["     osgi: Felix ", "installed, lease 1h", "  5     2       3  ", "counter: dropped = 3"]);
        wanted.extend(["refused: missing-dependency", "package com.example.missing", "exit code 5"]);
        wanted.extend(["refused: trapped", "\"nine\"", "replaced, lease 1h", "removed"]);
    }
    check(&stdout, &wanted);
}

/// Runs commands in one shell, in a network namespace of its own if some are a node's. Returns what they print.
fn run(home: &Home, tools: &Path, here: &str, node: Option<&str>, seconds: u32) -> String {
    let begin = "set -e\ntrap '[ -z $! ] || kill $! 2> /dev/null || true' EXIT\n";
    let script = match node {
        Some(node) => format!("{begin}ip link set lo up\n{here}\n{node}"),
        None => format!("{begin}{here}"),
    };
    let mut shell = Command::new("timeout");
    shell.arg(seconds.to_string()).args(node.iter().flat_map(|_| ["unshare", "--net"])).args(["bash", "-c", &script]);
    home.like_a_user(&mut shell, &[tools, &sudo_of_root(home)]);
    let output = shell.output().unwrap();
    let stdout = text(&output.stdout);
    assert!(output.status.success(), "{stdout}\n{}", text(&output.stderr));
    stdout
}

fn check(stdout: &str, wanted: &[&str]) {
    for wanted in wanted {
        assert!(stdout.contains(wanted), "no `{wanted}` in:\n{stdout}");
    }
}

fn may_run_a_node(tools: &Path) -> bool {
    let may = tools.join("netservd").exists() && may_isolate();
    if !may {
        skipped("the node's part of the page", "not root, or netservd is not built");
    }
    may
}

fn commands(page: &str) -> String {
    let blocks = page.split("\n```sh\n").skip(1).map(|rest| rest.split("\n```").next().unwrap());
    blocks.collect::<Vec<_>>().join("\n")
}

/// Root has no need of sudo, and a machine without it is no reason to fail.
fn sudo_of_root(home: &Home) -> PathBuf {
    let dir = home.path().join("bin");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("sudo"), "#!/bin/sh\n[ \"$1\" = -v ] || exec \"$@\"\n").unwrap();
    std::fs::set_permissions(dir.join("sudo"), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn may_isolate() -> bool {
    let tried = Command::new("unshare").args(["--net", "ip", "link", "set", "lo", "up"]).output();
    tried.is_ok_and(|tried| tried.status.success())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
