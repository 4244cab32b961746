// SPDX-License-Identifier: Apache-2.0
//! Manual pages of daemons, made of their command lines and of the schemas of their configurations. Tests keep the files what these say.

use std::io::{Result, Write};
use std::path::Path;

use clap::Command;
use serde_json::Value;

/// What a page says.
pub struct Page<'p> {
    /// The daemon's name.
    pub name: &'p str,
    /// The manual's section.
    pub section: u8,
    /// How it is called, beyond its name.
    pub synopsis: &'p str,
    /// Its command line.
    pub command: Command,
    /// The tables of its configuration.
    pub tables: Vec<Table>,
    /// What is beyond: sections of terms with their texts.
    pub sections: &'p [(&'p str, &'p [(&'p str, &'p str)])],
}

impl Page<'_> {
    /// Compares the page with its file in `docs/man`, or writes it if `NETSERV_REWRITE` is set.
    ///
    /// # Panics
    /// The file says something else.
    pub fn check(self, docs: &Path) {
        let file = docs.join("man").join(format!("{}.{}", self.name, self.section));
        let wanted = self.text().expect("a page is made in memory");
        if std::env::var_os("NETSERV_REWRITE").is_some_and(|value| !value.is_empty()) {
            std::fs::write(&file, &wanted).expect("docs/man can be written");
        }
        let there = std::fs::read(&file).unwrap_or_default();
        assert!(there == wanted, "{} is out of date: run the test with NETSERV_REWRITE=1", file.display());
    }

    fn text(mut self) -> Result<Vec<u8>> {
        self.command.build();
        let name = escape(self.name);
        let about = escape(&self.command.get_about().map(ToString::to_string).unwrap_or_default());
        let mut page = Vec::new();
        writeln!(page, ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '")?;
        writeln!(page, ".TH {name} {} \"\" \"{name} {}\"", self.section, env!("CARGO_PKG_VERSION"))?;
        writeln!(page, ".SH NAME\n{name} \\- {about}")?;
        writeln!(page, ".SH SYNOPSIS\n\\fB{name}\\fR {}", self.synopsis)?;
        if self.command.has_subcommands() {
            writeln!(page, ".SH COMMANDS")?;
            write_commands(&self.command, self.name, &mut page)?;
        } else {
            writeln!(page, ".SH OPTIONS")?;
            write_arguments(&self.command, &mut page)?;
        }
        writeln!(
            page,
            ".SH \"CONFIGURATION\"\nOne file in TOML, each key with its default here; unknown keys are refused."
        )?;
        for Table { name, about, keys } in &self.tables {
            if !name.is_empty() {
                writeln!(page, ".SS \"{}\"\n{}", escape(name), escape(about))?;
            }
            for (key, text) in keys {
                writeln!(page, ".TP\n\\fB{}\\fR\n{}", escape(key), escape(text))?;
            }
        }
        for (title, terms) in self.sections {
            writeln!(page, ".SH \"{title}\"")?;
            for (term, text) in *terms {
                writeln!(page, ".TP\n\\fB{}\\fR\n{}", escape(term), escape(text))?;
            }
        }
        Ok(page)
    }
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
        write_arguments(sub, page)?;
    }
    Ok(())
}

fn write_arguments(command: &Command, page: &mut Vec<u8>) -> Result<()> {
    for argument in
        command.get_arguments().filter(|argument| !["help", "version"].contains(&argument.get_id().as_str()))
    {
        let text = argument.get_help().map(ToString::to_string).unwrap_or_default();
        writeln!(page, ".TP\n\\fB{}\\fR\n{}", escape(&argument.to_string()), escape(&text))?;
    }
    Ok(())
}

/// A table of a configuration.
pub struct Table {
    /// Its name in brackets; nothing for what is in none.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// The keys with their defaults, and what they say.
    pub keys: Vec<(String, String)>,
}

/// Returns the tables of a configuration by its schema, those of tables after them.
pub fn tables(schema: &Value) -> Vec<Table> {
    let mut tables = Vec::new();
    add_table(&schema["$defs"], schema, (String::new(), false), &mut tables);
    tables
}

fn add_table(defs: &Value, schema: &Value, (name, is_list): (String, bool), tables: &mut Vec<Table>) {
    let at = tables.len();
    let shown = if is_list { format!("[[{name}]]") } else { format!("[{name}]") };
    let shown = if name.is_empty() { String::new() } else { shown };
    let about = schema["description"].as_str().unwrap_or_default().to_owned();
    tables.push(Table { name: shown, about, keys: Vec::new() });
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
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
