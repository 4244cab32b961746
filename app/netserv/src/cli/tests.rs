// SPDX-License-Identifier: Apache-2.0
//! The command line's own description, and the documents made of it.

use std::path::{Path, PathBuf};

use clap::CommandFactory;

use super::*;

const CLI_MD_HEAD: &str = "\
# The command line

`netserv` sends signed requests along network paths, makes module packages, and looks after the node of this machine.
This page is what `--help` says; a test keeps it so. The same text is in the manual pages, [man/](man/).

- Every command takes `-j` and then writes JSON to standard output, in the shapes of [openapi.json](openapi.json):
  `setup`, `remove`, `probe` and `path` write a `RequestResult`, `node status` a `NodeInfo`, `node list` a `ModuleList`,
  `node logs` a `LogLine` and `trace` a `TraceLine` in each line. Other commands write an object of their own.
- A failure is one line of cause and one line of fix on standard error, with `-j` an `ApiError` in one line.
- Commands that change something take `--dry-run`. A `setup` or `remove` then asks the nodes what they would do.
- Colours are for terminals only; `NO_COLOR` switches them off.
";

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn the_reference_is_what_help_says() {
    let mut text = format!("{CLI_MD_HEAD}\n## Exit codes\n\n| code | meaning |\n|---|---|\n");
    for line in EXIT_CODES.lines().skip(1) {
        let (code, meaning) = line.trim().split_once("  ").unwrap();
        text.push_str(&format!("| {code} | {meaning} |\n"));
    }
    let mut root = Cli::command();
    root.build();
    add_help(&mut root, &mut text);
    check_file("docs/cli.md", text.as_bytes());
}

#[test]
fn the_manual_pages_are_what_man_writes() {
    let pages = cmd::generate::pages().unwrap();
    let here: Vec<PathBuf> = pages.iter().map(|(name, _)| Path::new("docs/man").join(name)).collect();
    for ((_, page), path) in pages.iter().zip(&here) {
        check_file(path, page);
    }
    for entry in std::fs::read_dir(root().join("docs/man")).unwrap() {
        let path = Path::new("docs/man").join(entry.unwrap().file_name());
        // The daemon's is kept by its own test.
        let daemons = path.ends_with("netservd.1");
        assert!(daemons || here.contains(&path), "{} is of no command; delete it", path.display());
    }
}

#[test]
fn every_command_that_changes_something_has_a_dry_run() {
    for line in ["setup", "remove", "module new", "module build", "module sign", "module test", "key new", "man"] {
        let mut command = Cli::command();
        for word in line.split(' ') {
            command = command.find_subcommand(word).unwrap().clone();
        }
        assert!(command.get_arguments().any(|argument| argument.get_id() == "dry_run"), "{line}");
    }
}

fn add_help(command: &mut clap::Command, text: &mut String) {
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    let name = command.get_bin_name().unwrap_or("netserv").to_owned();
    text.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", help.join("\n").trim_end()));
    for sub in command.get_subcommands_mut() {
        add_help(sub, text);
    }
}

/// Compares with the file in the repository, or writes it if `NETSERV_REWRITE` is set.
fn check_file(path: impl AsRef<Path>, wanted: &[u8]) {
    let full = root().join(&path);
    if std::env::var_os("NETSERV_REWRITE").is_some_and(|value| !value.is_empty()) {
        std::fs::create_dir_all(full.parent().unwrap()).unwrap();
        std::fs::write(&full, wanted).unwrap();
    }
    let there = std::fs::read(&full).unwrap_or_default();
    let path = path.as_ref().display();
    assert!(there == wanted, "{path} is out of date; write it anew with NETSERV_REWRITE=1 cargo test -p netserv");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
