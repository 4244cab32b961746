// SPDX-License-Identifier: Apache-2.0
//! `./dev`: what it says of tests that passed only when retried, and to whom it shows colours.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::PathBuf;
use std::process::{Command, Output};

/// A `cargo` whose tests fail at first, and pass when they are named.
const FLAKY: &str = r#"
cargo() {
  case "$*" in
    *--exact*one*) echo "test one ... ok" ;;
    *) printf 'test one ... FAILED\ntest two ... ok\n'
       echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored; finished in 0.1s'
       echo 'error: test failed, to rerun pass `-p x`'; return 101 ;;
  esac
}"#;

#[test]
fn tests_that_pass_only_when_retried_are_counted_at_the_end() {
    let output = sourced(&format!("{FLAKY}\ntest_node; report_retried"));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(said(&output).last().unwrap(), "[dev] 1 tests passed only when retried: one");

    let output = sourced("cargo() { echo 'test one ... ok'; }\ntest_node; report_retried");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(said(&output), ["[dev] 0 tests passed only when retried"]);
}

#[test]
fn tests_that_fail_twice_and_programs_that_end_fail_the_run() {
    let twice = FLAKY.replace("echo \"test one ... ok\"", "echo \"test one ... FAILED\"; return 101");
    let no_result = FLAKY.replace("echo 'test result", "true 'test result");
    for fake in [twice, no_result] {
        let output = sourced(&format!("{fake}\ntest_node; report_retried"));
        assert!(!output.status.success(), "{output:?}");
        assert!(said(&output).iter().any(|line| line.starts_with("[dev] failed:")), "{output:?}");
    }
}

/// A `cargo` whose program of tests is ended at its time: `done` says of which test it told the end.
fn endless(done: &str) -> String {
    format!(
        r#"
cargo() {{
  case "$*" in
    *--exact*two*) echo "test two ... ok" ;;
    *) printf 'running 2 tests\n{done}test two has been running for over 60 seconds\n'
       echo 'error: test failed, to rerun pass `-p x`'
       echo '  process did not exit successfully: `timeout x` (exit status: 124)'; return 101 ;;
  esac
}}"#
    )
}

#[test]
fn a_test_without_end_is_ended_named_and_tried_once_more() {
    let output = sourced(&format!("{}\ntest_node; report_retried", endless("test one ... ok\\n")));
    assert!(output.status.success(), "{output:?}");
    let said = said(&output);
    assert_eq!(said[0], "[dev] without end: two");
    assert_eq!(said.last().unwrap(), "[dev] 1 tests passed only when retried: two");
}

#[test]
fn tests_that_never_began_fail_the_run() {
    let output = sourced(&format!("{}\ntest_node; report_retried", endless("")));
    assert!(!output.status.success(), "{output:?}");
    assert!(said(&output).iter().any(|line| line.contains("more than 15 minutes")), "{output:?}");
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
    let script = format!("cd {}; count_retried_java; report_retried", folder.path().display());
    assert_eq!(said(&sourced(&script)), ["[dev] 1 tests passed only when retried: org.netserv.A.wobbles"]);
}

#[test]
fn files_get_no_colours() {
    let output = Command::new(root().join("dev")).arg("nothing-of-that-name").output().unwrap();
    assert!(!output.status.success());
    assert!(!output.stderr.contains(&0x1b) && said(&output).iter().any(|line| line.contains("failed: ")), "{output:?}");
    let output = sourced(r"printf '\033[0m\033[1;31mred\033[m\n' | plain");
    assert_eq!(output.stdout, b"red\n");
}

/// Runs a script that has the functions of `./dev`.
fn sourced(script: &str) -> Output {
    let source = format!("source {}/dev\n{script}", root().display());
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
