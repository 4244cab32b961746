// SPDX-License-Identifier: Apache-2.0
//! `completions`, `man`, `--help` and `--version`.

use crate::support::{Home, check, text};

#[test]
fn each_shell_gets_completions_with_every_command() {
    let home = Home::empty();
    for shell in ["bash", "zsh", "fish"] {
        let output = home.netserv(&["completions", shell]);
        let script = text(&output.stdout);
        for word in ["setup", "trace", "doctor", "dry-run", "inspect"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
        assert_eq!(output.status.code(), Some(0));
    }
    let stderr = "\
error: invalid value 'qqq' for '<SHELL>' [possible values: bash, elvish, fish, powershell, zsh]
fix: see `netserv --help`
";
    check(&home.netserv(&["completions", "qqq"]), 2, "", stderr);
}

#[test]
fn manual_pages_go_to_a_folder_or_to_standard_output() {
    let home = Home::empty();
    let output = home.netserv(&["man", "--dir", "out/man1", "--dry-run"]);
    assert!(text(&output.stdout).contains("out/man1/netserv-module-new.1\n"), "{output:?}");
    assert!(!home.path().join("out").exists());
    assert!(home.netserv(&["man", "--dir", "out/man1"]).status.success());
    let page = std::fs::read_to_string(home.path().join("out/man1/netserv.1")).unwrap();
    check(&home.netserv(&["man"]), 0, &page, "");
    std::fs::write(home.path().join("file"), "").unwrap();
    let output = home.netserv(&["man", "--dir", "file/man1"]);
    assert!(text(&output.stderr).starts_with("error: cannot make file/man1: "), "{output:?}");
}

#[test]
fn help_and_version_are_no_errors_and_no_command_is() {
    let home = Home::empty();
    let version = format!("netserv {}\n", env!("CARGO_PKG_VERSION"));
    check(&home.netserv(&["--version"]), 0, &version, "");
    assert_eq!(home.netserv(&["setup", "--help"]).status.code(), Some(0));
    let output = home.netserv(&["module"]);
    assert!(text(&output.stderr).contains("Usage: netserv module"), "{output:?}");
    assert_eq!((output.stdout.len(), output.status.code()), (0, Some(2)));
    let output = home.netserv(&["-j", "nonsense"]);
    let error: netserv_api::ApiError = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(error.error, "unrecognized subcommand 'nonsense'");
}
