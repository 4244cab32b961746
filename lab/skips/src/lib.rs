// SPDX-License-Identifier: Apache-2.0
//! Says that a test did not run, so that it cannot be overlooked.

use std::io::Write as _;

/// Says that a test did not run for want of root, of a program or of something built. In CI all of that is there.
///
/// # Panics
///
/// Panics if the environment has `CI`.
#[track_caller]
pub fn skipped(test: &str, reason: &str) {
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!is_ci, "{test} did not run, and in CI it must: {reason}");
    not_run(test, reason);
}

/// Says that a test, or a part of one, did not run for want of what not every CI has: an ability of the kernel, say.
///
/// A line goes to standard error and, if `NETSERV_SKIPS` names a file, to its end: runners show little of tests that pass.
pub fn not_run(test: &str, reason: &str) {
    let line = format!("{test}: {reason}\n");
    // The test harness captures what `eprintln!` writes, and shows it of tests that fail.
    let _ = std::io::stderr().write_all(format!("SKIPPED {line}").as_bytes());
    let Some(file) = std::env::var_os("NETSERV_SKIPS") else { return };
    let file = std::fs::File::options().create(true).append(true).open(file);
    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::{Command, Output};

    use super::{not_run, skipped};

    #[test]
    #[ignore = "run by another test"]
    fn one_that_is_skipped() {
        skipped("one", "no root");
    }

    #[test]
    #[ignore = "run by another test"]
    fn one_that_cannot_run_here() {
        not_run("other", "no VLANs");
    }

    /// Runs a test as `cargo test` does, by a harness that captures.
    fn run(test: &str, ci: &str, skips: &Path) -> Output {
        let mut command = Command::new(std::env::current_exe().expect("this test has a file"));
        command.args(["--exact", &format!("tests::{test}"), "--ignored", "--test-threads=2"]);
        command.env("CI", ci).env("NETSERV_SKIPS", skips).output().expect("this test starts")
    }

    #[test]
    fn a_skip_is_seen_and_fails_in_ci() {
        let skips = std::env::temp_dir().join(format!("netserv-skips-{}", std::process::id()));
        for (test, ci, passes, said) in [
            ("one_that_is_skipped", "", true, "SKIPPED one: no root\n"),
            ("one_that_is_skipped", "true", false, ""),
            ("one_that_cannot_run_here", "true", true, "SKIPPED other: no VLANs\n"),
        ] {
            let output = run(test, ci, &skips);
            assert_eq!(output.status.success(), passes, "{test}, {ci}: {output:?}");
            assert_eq!(String::from_utf8_lossy(&output.stderr), said, "{test}, {ci}");
            assert!(String::from_utf8_lossy(&output.stdout).contains("running 1 test"), "{output:?}");
        }
        let noted = std::fs::read_to_string(&skips).expect("tests noted what they skipped");
        std::fs::remove_file(&skips).expect("the file is there");
        assert_eq!(noted, "one: no root\nother: no VLANs\n");
    }
}
