// SPDX-License-Identifier: Apache-2.0
//! The manual page, made of the command line's own description; the test keeps `docs/man/netservd.1` what it says.

use std::io::{Result, Write};
use std::path::Path;

use clap::{Command, CommandFactory};

use crate::Arguments;

/// What the page says beyond the command line: sections of terms with their texts.
const SECTIONS: [(&str, &[(&str, &str)]); 5] = [
    (
        "SIGNALS",
        &[
            ("SIGTERM, SIGINT", "Stop: containers end, and what the node added to the machine is taken away."),
            ("SIGHUP", "Read users and admission from the configuration file again; all else needs a restart."),
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

fn page() -> Result<Vec<u8>> {
    let mut root = Arguments::command();
    root.build();
    let about = escape(&root.get_about().map(ToString::to_string).unwrap_or_default());
    let mut page = Vec::new();
    writeln!(page, ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '")?;
    writeln!(page, ".TH netservd 1 \"\" \"netservd {}\"", env!("CARGO_PKG_VERSION"))?;
    writeln!(page, ".SH NAME\nnetservd \\- {about}")?;
    writeln!(page, ".SH SYNOPSIS\n\\fBnetservd\\fR <\\fICOMMAND\\fR> [\\fIOPTIONS\\fR]")?;
    writeln!(page, ".SH COMMANDS")?;
    write_commands(&root, "netservd", &mut page)?;
    for (title, terms) in SECTIONS {
        writeln!(page, ".SH \"{title}\"")?;
        for (term, text) in terms {
            writeln!(page, ".TP\n\\fB{}\\fR\n{}", escape(term), escape(text))?;
        }
    }
    Ok(page)
}

/// Writes the commands that have none below them, each with its arguments.
fn write_commands(command: &Command, name: &str, page: &mut Vec<u8>) -> Result<()> {
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let name = format!("{name} {}", sub.get_name());
        if sub.has_subcommands() {
            write_commands(sub, &name, page)?;
            continue;
        }
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(page, ".SS \"{}\"\n{}", escape(&name), escape(&about))?;
        for argument in sub.get_arguments().filter(|argument| argument.get_id() != "help") {
            let text = argument.get_help().map(ToString::to_string).unwrap_or_default();
            writeln!(page, ".TP\n\\fB{}\\fR\n{}", escape(&argument.to_string()), escape(&text))?;
        }
    }
    Ok(())
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\*(Aq")
}

#[test]
fn the_manual_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man/netservd.1");
    let wanted = page().unwrap();
    if std::env::var_os("NETSERV_REWRITE").is_some_and(|value| !value.is_empty()) {
        std::fs::write(&path, &wanted).unwrap();
    }
    let there = std::fs::read(&path).unwrap_or_default();
    assert!(there == wanted, "docs/man/netservd.1 is out of date: run the test with NETSERV_REWRITE=1");
}
