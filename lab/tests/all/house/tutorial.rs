// SPDX-License-Identifier: Apache-2.0
//! docs/tutorial: the solutions solve the exercises, and the templates alone do not.

use std::path::PathBuf;
use std::process::Command;

use netserv_lab::exercises::check;
use netserv_lab::netns::is_root;
use netserv_lab::node::{cli, workspace};
use netserv_skips::skipped;
use tempfile::TempDir;

#[test]
fn exercise_1_is_the_template_with_a_signature() {
    let folder = Folder::new("my-monitor", "packet");
    cli(&["module", "build", &folder.path.to_string_lossy()]).unwrap();
    let unsigned = check(1, &folder.path).unwrap_err().to_string();
    assert!(unsigned.contains("is not signed"), "{unsigned}");
    let (package, key) = (folder.path.join("my-monitor-0.1.0.nsm"), folder.path.join("key.pem"));
    cli(&["key", "new", "--out", &key.to_string_lossy()]).unwrap();
    cli(&["module", "sign", &package.to_string_lossy(), "--key", &key.to_string_lossy()]).unwrap();
    check(1, &folder.path).unwrap();
}

#[test]
fn exercise_2_a_filter() {
    solved_only_by_the_solution(2, "my-filter", "packet");
}

#[test]
fn exercise_3_state() {
    solved_only_by_the_solution(3, "my-door", "packet");
}

#[test]
fn exercise_4_a_server() {
    solved_only_by_the_solution(4, "my-notes", "http");
}

#[test]
fn exercises_5_and_6_both_roles_and_an_upgrade() {
    if !is_root() {
        skipped("exercises_5_and_6_both_roles_and_an_upgrade", "not root, so no namespaces");
        return;
    }
    let folder = solved_only_by_the_solution(5, "my-door-page", "both");
    check(6, &folder.path).unwrap();
}

fn solved_only_by_the_solution(exercise: u8, name: &str, template: &str) -> Folder {
    let folder = Folder::new(name, template);
    check(exercise, &folder.path).unwrap_err();
    let solution = workspace().join("docs/tutorial/solutions").join(exercise.to_string());
    let copied = Command::new("cp").arg("-r").arg(solution.join(".")).arg(&folder.path).status().unwrap();
    assert!(copied.success());
    if exercise == 5 {
        // As its page says: the packet part is what exercise 3 made.
        std::fs::copy(solution.join("../3/src/lib.rs"), folder.path.join("src/packets.rs")).unwrap();
    }
    cli(&["module", "test", &folder.path.to_string_lossy(), "--accept"]).unwrap();
    check(exercise, &folder.path).unwrap();
    folder
}

/// A module made from a template, in a folder that goes away.
struct Folder {
    path: PathBuf,
    _parent: TempDir,
}

impl Folder {
    fn new(name: &str, template: &str) -> Folder {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join(name);
        let module = format!("example.org/{name}");
        cli(&["module", "new", &module, "--template", template, "--dir", &path.to_string_lossy()]).unwrap();
        Folder { path, _parent: parent }
    }
}
