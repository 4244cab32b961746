// SPDX-License-Identifier: Apache-2.0
//! The manual page, made of the command line's own description; the test keeps `docs/man/netservd.1` what it says.

use std::io::{Result, Write};
use std::path::Path;

use clap::{Command, CommandFactory};
use serde_json::Value;

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
    writeln!(
        page,
        ".SH \"CONFIGURATION\"\nOne file in TOML, each key with its default here; unknown keys are refused."
    )?;
    for Table { name, about, keys } in tables() {
        if !name.is_empty() {
            writeln!(page, ".SS \"{}\"\n{}", escape(&name), escape(&about))?;
        }
        for (key, text) in keys {
            writeln!(page, ".TP\n\\fB{}\\fR\n{}", escape(&key), escape(&text))?;
        }
    }
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

/// A table of the configuration.
struct Table {
    /// Its name in brackets; nothing for what is in none.
    name: String,
    about: String,
    /// The keys with their defaults, and what they say.
    keys: Vec<(String, String)>,
}

/// Returns the tables of the configuration, those of tables after them.
fn tables() -> Vec<Table> {
    let schema = schemars::schema_for!(Config).to_value();
    let mut tables = Vec::new();
    add_table(&schema["$defs"], &schema, (String::new(), false), &mut tables);
    tables
}

fn add_table(defs: &Value, schema: &Value, (name, is_list): (String, bool), tables: &mut Vec<Table>) {
    let at = tables.len();
    let shown = if is_list { format!("[[{name}]]") } else { format!("[{name}]") };
    let shown = if name.is_empty() { String::new() } else { shown };
    let about = schema["description"].as_str().unwrap_or_default().to_owned();
    tables.push(Table { name: shown, about, keys: Vec::new() });
    for (key, property) in schema["properties"].as_object().unwrap() {
        let (shape, item) = (resolve(defs, property), resolve(defs, &property["items"]));
        let path = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
        if shape["properties"].is_object() {
            add_table(defs, shape, (path, false), tables);
        } else if item["properties"].is_object() {
            add_table(defs, item, (path, true), tables);
        } else {
            let text = [property, shape].into_iter().find_map(|one| one["description"].as_str()).unwrap_or_default();
            let choices = shape["oneOf"].as_array().into_iter().flatten();
            let choice = |one: &Value| Some(format!(" `{}`: {}", one["const"].as_str()?, one["description"].as_str()?));
            let choices: String = choices.filter_map(choice).collect();
            // The machine's own name is not the same everywhere.
            let default = property.get("default").filter(|_| path != "node");
            let default =
                default.map_or(String::new(), |default| format!(" = {}", default.to_string().replace(',', ", ")));
            tables[at].keys.push((format!("{key}{default}"), format!("{}{choices}", text.replace('\n', " "))));
        }
    }
}

fn resolve<'a>(defs: &'a Value, shape: &'a Value) -> &'a Value {
    let name = shape["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"));
    name.map_or(shape, |name| &defs[name])
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

/// Goal: docs name only keys that there are. Method: compare with those that the manual page is made of.
#[test]
fn docs_name_only_keys_that_there_are() {
    let mut known = std::collections::BTreeSet::new();
    for Table { name, keys, .. } in tables() {
        let name = name.trim_matches(['[', ']']).to_owned();
        known.extend(keys.into_iter().map(|(key, _)| format!("{name}.{}", key.split(' ').next().unwrap())));
        known.insert(name);
    }
    let sections: Vec<String> =
        known.iter().filter(|name| !name.contains('.')).map(|name| format!("{name}.")).collect();
    let (mut checked, mut wrong) = (0, Vec::new());
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")).unwrap() {
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
