// SPDX-License-Identifier: Apache-2.0
//! The manual page, made of the command line's own description; the test keeps `docs/man/netservd.1` what it says.

use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use netserv_manual::{Page, Table, tables};

use crate::arguments::Arguments;
use crate::config::Config;

/// What the page says beyond the command line: sections of terms with their texts.
const SECTIONS: [(&str, &[(&str, &str)]); 5] = [
    (
        "SIGNALS",
        &[
            ("SIGTERM, SIGINT", "Stop: containers end, and what the node added to the machine is taken away."),
            (
                "SIGHUP",
                "Read users, admission, and the files and peers of signaling.tls from the configuration file again; all else needs a restart. `netserv node reload` does the same, and says what changed.",
            ),
        ],
    ),
    (
        "ENVIRONMENT",
        &[("RUST_LOG", "What goes to standard error, such as debug or netserv_gist=trace; info if not set.")],
    ),
    (
        "EXIT STATUS",
        &[
            ("0", "done; the node was told to stop"),
            ("1", "failed, with the cause on standard error; of doctor: a node cannot run modules here"),
            ("2", "the command line is wrong"),
        ],
    ),
    (
        "FILES",
        &[
            ("/var/lib/netserv", "Packages, compiled code, the database of installed modules (state-dir)."),
            ("/run/netserv/netservd.sock", "The HTTP API, for the owner and the group (socket)."),
        ],
    ),
    (
        "SEE ALSO",
        &[("netserv(1)", "requests, modules, and a look at the node"), ("docs/operations.md", "running a node")],
    ),
];

#[test]
fn the_manual_page_is_current() {
    let (name, section, command) = ("netservd", 1, Arguments::command());
    let synopsis = "<\\fICOMMAND\\fR> [\\fIOPTIONS\\fR]";
    Page { name, section, synopsis, command, tables: keys(), sections: &SECTIONS }.check(&docs());
}

fn keys() -> Vec<Table> {
    tables(&schemars::schema_for!(Config).to_value())
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Goal: docs name only keys that there are. Method: compare with those that the manual page is made of.
#[test]
fn docs_name_only_keys_that_there_are() {
    let mut known = std::collections::BTreeSet::new();
    for Table { name, keys, .. } in keys() {
        let name = name.trim_matches(['[', ']']).to_owned();
        known.extend(keys.into_iter().map(|(key, _)| format!("{name}.{}", key.split(' ').next().unwrap())));
        known.insert(name);
    }
    let sections: Vec<String> =
        known.iter().filter(|name| !name.contains('.')).map(|name| format!("{name}.")).collect();
    let (mut checked, mut wrong) = (0, Vec::new());
    for entry in std::fs::read_dir(docs()).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        for word in text.split('`').skip(1).step_by(2) {
            // A namespace of OSGi has a name like a key's.
            let is_key =
                word != "osgi.ee" && word.bytes().all(|byte| byte.is_ascii_lowercase() || b"-.".contains(&byte));
            if is_key && sections.iter().any(|section| section.len() > 1 && word.starts_with(section)) {
                checked += 1;
                if !known.contains(word) {
                    wrong.push(format!("{}: {word}", path.display()));
                }
            }
        }
    }
    assert!(checked > 10 && wrong.is_empty(), "{checked} checked; there is no such key: {wrong:?}");
}
