// SPDX-License-Identifier: Apache-2.0
//! `./dev`: what it says of tests that did not run or passed only when retried, how it waits for apt, how the long tests go on
//! where they ended, and to whom it shows colours.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A runner one of whose two tests fails beside others and passes alone, as its report says.
const FLAKY: &str = r#"
cargo-nextest() {
  local again='binary_id(=x::all) & test(=a::wobbles)'
  if [[ "$*" = *ci-again* ]]; then [[ "$*" = *"$again"* ]]; return; fi
  mkdir -p target/nextest/ci
  printf '<testsuite>\n<testcase name="steady" classname="x::all" time="0.1"/>\n' > target/nextest/ci/junit.xml
  printf '<testcase name="a::wobbles" classname="x::all" time="0.1">\n<failure message="y">\n</failure>\n</testcase>\n</testsuite>\n' \
    >> target/nextest/ci/junit.xml
  return 100
}
FLAKES_RECORD=flakes.md
test_node; report_retried"#;

#[test]
fn a_test_that_passes_only_when_retried_is_named_recorded_and_fails_the_third_time() {
    let folder = tempfile::tempdir().unwrap();
    for time in 1..=3 {
        let output = sourced(folder.path(), FLAKY);
        assert_eq!(output.status.success(), time < 3, "{time}: {output:?}");
        let said = said(&output);
        let line = "[dev] 1 tests passed only when retried: x::all.a::wobbles; flakes.md has them";
        assert!(said.iter().any(|said| said == line), "{said:?}");
        let record = std::fs::read_to_string(folder.path().join("flakes.md")).unwrap();
        assert_eq!(record.matches("| `x::all.a::wobbles` |").count(), time, "{record}");
    }
}

#[test]
fn more_than_two_such_tests_fail_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let output = sourced(folder.path(), "FLAKES_RECORD=flakes.md retried=(one two three)\nreport_retried");
    assert!(!output.status.success(), "{output:?}");
    assert!(said(&output).iter().any(|line| line.contains("failed: more than 2 tests")), "{output:?}");
    let output = sourced(folder.path(), "report_retried");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(said(&output), ["[dev] 0 tests passed only when retried"]);
}

#[test]
fn tests_that_fail_twice_fail_the_run() {
    let folder = tempfile::tempdir().unwrap();
    // Without a report, as where a test's program cannot be built; and where the second try fails, too.
    let fails_again = FLAKY.replace("*\"$again\"*", "nothing");
    for script in ["cargo-nextest() { return 100; }\ntest_node; report_retried", &fails_again] {
        let output = sourced(folder.path(), script);
        assert!(!output.status.success(), "{output:?}");
        assert!(said(&output).iter().any(|line| line.starts_with("[dev] failed: tests of the node")), "{output:?}");
    }
}

#[test]
fn flakes_in_the_reports_of_java_are_counted_once_each() {
    let folder = tempfile::tempdir().unwrap();
    let reports = folder.path().join("java/host/target/surefire-reports");
    std::fs::create_dir_all(&reports).unwrap();
    let report = r#"<testsuite>
  <testcase name="steady" classname="org.netserv.A" time="0.1"/>
  <testcase name="wobbles" classname="org.netserv.A" time="0.1">
    <flakyFailure message="x" type="y"/>
    <flakyError message="x" type="y"/>
  </testcase>
</testsuite>"#;
    std::fs::write(reports.join("TEST-org.netserv.A.xml"), report).unwrap();
    let output = sourced(folder.path(), "note_retried java; printf '%s\\n' \"${retried[@]}\"");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "org.netserv.A.wobbles\n", "{output:?}");
}

#[test]
fn what_did_not_run_stands_at_the_end_once_each() {
    let folder = tempfile::tempdir().unwrap();
    let script = "mkdir target; printf 'b: no VLANs\\na: no go\\nb: no VLANs\\n' > \"$(skips)\"; report_not_run";
    let output = sourced(folder.path(), script);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text, "[dev] 2 tests or parts of tests were not run:\n      a: no go\n      b: no VLANs\n");
}

#[test]
fn apt_is_waited_for_while_another_program_holds_its_lock() {
    let held = r#"
apt-get() {
  [ "$(wc -l < calls)" -lt 2 ] || return 0
  echo call >> calls
  echo 'E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 77 (unattended-upgr)'
  return 100
}
touch calls; run=(); apt_get update"#;
    let folder = tempfile::tempdir().unwrap();
    let output = sourced(folder.path(), held);
    assert!(output.status.success(), "{output:?}");
    let line = "[dev] another program holds apt's lock (77 (unattended-upgr)); waiting up to 15 minutes";
    assert_eq!(said(&output), [line]);

    let other = "apt-get() { echo 'E: Unable to locate package x'; return 100; }\nrun=(); apt_get install x";
    let output = sourced(folder.path(), other);
    assert!(!output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("Unable to locate package x"), "{output:?}");
}

/// A `./dev` of which one part passes, one fails and one cannot run, and a `git` with one commit.
const PARTS: &str = r#"
git() { echo abc1234; }
printf '#!/bin/sh\necho "$1" >> ran\ncase $1 in good) ;; absent) exit 77 ;; *) exit 1 ;; esac\n' > dev
chmod +x dev; mkdir -p docs
"#;

#[test]
fn the_long_tests_go_on_where_they_ended_and_fail_if_a_part_fails() {
    let folder = tempfile::tempdir().unwrap();
    let ran = || std::fs::read_to_string(folder.path().join("ran")).unwrap();
    let output = sourced(folder.path(), &format!("{PARTS}\ncmd_soak good absent"));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(ran(), "good\nabsent\n");
    let results = ["good", "absent"].map(|part| {
        let result = std::fs::read_to_string(folder.path().join("target/soak/abc1234").join(part)).unwrap();
        result.split('|').next().unwrap().to_owned()
    });
    assert_eq!(results, ["passed", "not run"]);

    // Parts with a result do not run again, unless they are named.
    let all = format!("{PARTS}\nrm -r target/soak; cmd_soak");
    let output = sourced(folder.path(), &all);
    assert!(!output.status.success(), "{output:?}");
    let before = ran().lines().count();
    let output = sourced(folder.path(), &format!("{PARTS}\ncmd_soak"));
    assert!(!output.status.success(), "parts that failed still have: {output:?}");
    assert_eq!(ran().lines().count(), before);
    let page = std::fs::read_to_string(folder.path().join("docs/soak.md")).unwrap();
    assert!(page.contains("| `./dev truth` | failed | "), "{page}");
}

#[test]
fn files_get_no_colours() {
    let output = Command::new(root().join("dev")).arg("nothing-of-that-name").output().unwrap();
    assert!(!output.status.success());
    assert!(!output.stderr.contains(&0x1b) && said(&output).iter().any(|line| line.contains("failed: ")), "{output:?}");
    let folder = tempfile::tempdir().unwrap();
    let output = sourced(folder.path(), r"printf '\033[0m\033[1;31mred\033[m\n' | plain");
    assert_eq!(output.stdout, b"red\n");
}

/// Runs a script that has the functions of `./dev`, in a folder.
fn sourced(folder: &Path, script: &str) -> Output {
    let source = format!("source {}/dev\ncd {}\n{script}", root().display(), folder.display());
    Command::new("bash").args(["-c", &source]).env_remove("CI").output().unwrap()
}

/// Returns what `./dev` said on standard error.
fn said(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().filter(|line| line.starts_with("[dev]")).map(str::to_owned).collect()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
