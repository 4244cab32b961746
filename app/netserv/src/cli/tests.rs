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
  `setup`, `remove`, `tell`, `state export`, `probe` and `path` write a `RequestResult`, `node status` a `NodeInfo`, `node list` a `ModuleList`,
  `node logs` a `LogLine`, `watch` an `EventLine` and `trace` a `TraceLine` in each line. Other commands write an object of their own.
  `path` adds `beyond_us`: `whole` with `by`, what proves the end (`destination`, `unreachable`, `endpoint-found`, or `named`: a TELL for the last node alone), or `incomplete`
  with the `reason`; only with the first does it exit with 0.
- A failure is one line of cause and one line of fix on standard error, with `-j` an `ApiError` in one line.
- Commands that change something take `--dry-run`. A `setup`, `remove`, `tell` or `state export` then asks the nodes what they would do.
- Colours are for terminals only; `NO_COLOR` switches them off.

## A module's day

```sh
netserv module new hello --template both     # packet, http, tcp or both; --lang rust, c, go, js or java
netserv module test hello                    # builds it; recorded packets and requests in, what is expected out
netserv module run hello                     # a small network with a real node; changed sources replace the module
netserv module bench hello                   # nanoseconds per packet, requests per second, memory
netserv module build hello --key key.pem     # the signed package
netserv module push hello/*.nsm oci://registry.example/modules/hello:0.1.0
netserv setup hello/*.nsm --to DEST --url oci://registry.example/modules/hello:0.1.0
```

- **Templates.** What makes no sense in a language is refused with the list of what there is. The README.md of each new
  module has the next commands, and which versions of tools it is sensitive to. TCP modules and those of both roles need
  the node's own WIT, for which only the Rust tools make small components today; C has no generator in Debian, and Go's
  needs a compiler of its own (TinyGo).
- **Tests** are in netserv.toml: `[[test]]` names captures that go in and come out, `[[http-test]]` a request and what its
  response must be (`status`, `expect-headers`, `expect-body`, `expect-body-file`, `expect-contains`). `--accept` writes
  captures and files with bodies anew. HTTP tests share the module's kv state, in their order.
- **netserv.toml** is for the developer; its schema is [netserv-project](schemas/netserv-project.schema.json), and unknown keys are
  refused. `build` derives the package's manifest from it ([schema](schemas/netserv-manifest.schema.json)), without tests and build
  keys. Nodes read over keys of the manifest that they do not know, unless `requires` names them: then they refuse the
  package as `missing-feature`. `inspect` shows what is required, and what this version reads over.
- **Faults** name the line of netserv.toml and the fix. Where code and nodes do not fit (another packet ABI, an interface
  `netserv:kv@2.0.0`, WASI 0.3), it is said which side has to be updated, by `build`, `inspect` and `test`.
- **`inspect`** takes packages, `.wasm` and `.jar` files. With `-j`, `code` has an object for each flavour with what its
  parts import, export and use.
- **`run`** as root makes three namespaces, `client` – `node` – `server`, with 10.1.0.1 and 10.2.0.2 at the ends and
  10.99.1.0/29 for containers; IPv6 beside it. Filters that name no address are narrowed to the server's side. With `-j`
  each line is an object with an `event`: `ready`, `installed`, `replaced`, `unchanged`, `failed`, `log`. Everything goes
  with the command, also after `kill -9`.
- **`push`** puts signatures beside the package as referrers, so nodes find them; a copy by skopeo leaves them behind, and
  has to be signed or pushed again. An `oci:` URL is fetched by `https` where the node's `fetch.schemes` has that, and by
  `http` if that is listed and `https` does not answer.
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
    let pages = cmd::generate::pages(Cli::command()).unwrap();
    let here: Vec<PathBuf> = pages.iter().map(|(name, _)| Path::new("docs/man").join(name)).collect();
    for ((_, page), path) in pages.iter().zip(&here) {
        check_file(path, page);
    }
    for entry in std::fs::read_dir(root().join("docs/man")).unwrap() {
        let path = Path::new("docs/man").join(entry.unwrap().file_name());
        // Those of the daemons are kept by their own tests.
        let daemons = path.ends_with("netservd.1") || path.ends_with("netserv-agent.8");
        assert!(daemons || here.contains(&path), "{} is of no command; delete it", path.display());
    }
}

#[test]
fn every_command_that_changes_something_has_a_dry_run() {
    for line in [
        "setup",
        "remove",
        "tell",
        "state export",
        "module new",
        "module build",
        "module sign",
        "module test",
        "module push",
        "module adapt",
        "key new",
        "man",
    ] {
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
