// SPDX-License-Identifier: Apache-2.0
//! The command line's own description, and the documents made of it.

use std::path::{Path, PathBuf};

use clap::CommandFactory;

use super::*;

const CLI_MD_HEAD: &str = "\
# The command line

`netserv` installs modules along network paths, builds and tests modules, and manages the node of this machine. It is for users who deploy modules,
for their developers, and for operators of nodes. This page is generated from `--help`, as are the manual pages in [man/](man/).

- **Failures.** A command that fails prints one line with the cause and one line with the fix to standard error.
- **`--dry-run`.** Commands that change something take it. With it, `setup`, `remove`, `tell` and `state export` ask the nodes what they would do.
- **Colours** are for terminals only; `NO_COLOR` switches them off.
- **`-j`** makes every command print JSON, in the types of [openapi.json](openapi.json):

| command | prints |
|---|---|
| `setup`, `remove`, `tell`, `state export`, `probe` | a `RequestResult` |
| `path` | a `RequestResult` with `beyond_us`, which says whether the path is complete. `whole` comes with the proof of the end (`by`: `destination`, `unreachable`, `endpoint-found`, or `named` for a TELL to the last node alone). `incomplete` comes with the `reason`, and the exit code is not 0 |
| `node status`, `node list` | a `NodeInfo`, a `ModuleList` |
| `node logs`, `watch`, `trace` | a `LogLine`, an `EventLine`, a `TraceLine` in each line |
| others | an object of their own |
| any command that fails | an `ApiError` in one line, on standard error |

## Developing a module, command by command

```sh
netserv module new hello --template both     # packet, http, tcp or both; --lang rust, c, go, js or java
netserv module test hello                    # builds it; recorded packets and requests in, what is expected out
netserv module run hello                     # a small network with a real node; changed sources replace the module
netserv module bench hello                   # nanoseconds per packet, requests per second, memory
netserv module build hello --key key.pem     # the signed package
netserv module push hello/*.nsm oci://registry.example/modules/hello:0.1.0
netserv setup hello/*.nsm --to DEST --url oci://registry.example/modules/hello:0.1.0
```

- **Templates.** `new` refuses a template that its language does not support, and lists those that it does. The README.md of each new
  module has the next commands, and the versions of tools that the build depends on. Modules with a TCP part, and modules of both roles, exist only in
  Rust: they need the node's own WIT. Debian has no generator of such components for C, and Go's needs another compiler (TinyGo).
- **Tests** are in netserv.toml. `[[test]]` names captures that go in and that must come out. `[[http-test]]` has a request and its expected response
  (`status`, `expect-headers`, `expect-body`, `expect-body-file`, `expect-contains`). `--accept` overwrites the expected captures and bodies by the
  actual ones. HTTP tests run in their order and share the module's kv state.
- **netserv.toml** is the developer's file ([schema](schemas/netserv-project.schema.json)); unknown keys are errors. `build` derives the package's
  manifest from it ([schema](schemas/netserv-manifest.schema.json)), without tests and build keys. A node ignores unknown keys of a manifest. But if
  `requires` lists an unknown feature, the node refuses the package (`missing-feature`). `inspect` shows required features, and keys that this version
  ignores.
- **Errors** name the line of netserv.toml and the fix. If code and nodes do not fit together (another packet ABI, an interface `netserv:kv@2.0.0`,
  WASI 0.3), `build`, `inspect` and `test` say which of the two to update.
- **`inspect`** takes packages, `.wasm` and `.jar` files. With `-j`, `code` has an object for each flavour, with its imports, exports and building
  blocks.
- **`run`** as root makes three namespaces, `client` – `node` – `server`. The ends are 10.1.0.1 and 10.2.0.2, containers are in 10.99.1.0/29, and IPv6
  works as well. The command narrows filters without an address to the server's side. With `-j`, each line is an object with an `event`: `ready`,
  `installed`, `replaced`, `unchanged`, `failed`, `log`. When the command ends, even by `kill -9`, everything is removed.
- **`push`** stores signatures beside the package as referrers, where nodes find them. A copy by skopeo lacks the signatures: sign or push the copy
  again. A node fetches an `oci:` URL by `https` if its `fetch.schemes` lists `https`. It uses `http` if `http` is listed and `https` does not answer.
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
