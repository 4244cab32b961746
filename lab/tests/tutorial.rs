// SPDX-License-Identifier: Apache-2.0
//! docs/tutorial: the solutions solve the exercises, and the templates alone do not.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::process::Command;

use netserv_lab::exercises::check;
use netserv_lab::netns::{is_root, skipped};
use netserv_lab::node::{cli, workspace};

#[test]
fn exercise_1_is_the_template_with_a_signature() {
    let folder = Folder::new(1, "my-monitor", "packet");
    cli(&["module", "build", &folder.0.to_string_lossy()]).unwrap();
    let unsigned = check(1, &folder.0).unwrap_err().to_string();
    assert!(unsigned.contains("is not signed"), "{unsigned}");
    let (package, key) = (folder.0.join("my-monitor-0.1.0.nsm"), folder.0.join("key.pem"));
    cli(&["key", "new", "--out", &key.to_string_lossy()]).unwrap();
    cli(&["module", "sign", &package.to_string_lossy(), "--key", &key.to_string_lossy()]).unwrap();
    check(1, &folder.0).unwrap();
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
    check(6, &folder.0).unwrap();
}

fn solved_only_by_the_solution(exercise: u8, name: &str, template: &str) -> Folder {
    let folder = Folder::new(exercise, name, template);
    check(exercise, &folder.0).unwrap_err();
    let solution = workspace().join("docs/tutorial/solutions").join(exercise.to_string());
    let copied = Command::new("cp").arg("-r").arg(solution.join(".")).arg(&folder.0).status().unwrap();
    assert!(copied.success());
    cli(&["module", "test", &folder.0.to_string_lossy(), "--accept"]).unwrap();
    check(exercise, &folder.0).unwrap();
    folder
}

/// A module made from a template, in a folder that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new(exercise: u8, name: &str, template: &str) -> Folder {
        let parent = std::env::temp_dir().join(format!("netserv-tutorial-{}-{exercise}", std::process::id()));
        std::fs::create_dir_all(&parent).unwrap();
        let dir = parent.join(name);
        let module = format!("example.org/{name}");
        cli(&["module", "new", &module, "--template", template, "--dir", &dir.to_string_lossy()]).unwrap();
        Folder(dir)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is of no harm.
        let _ = std::fs::remove_dir_all(self.0.parent().unwrap_or(Path::new("/nonexistent")));
    }
}
