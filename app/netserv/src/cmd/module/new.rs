// SPDX-License-Identifier: Apache-2.0
//! `netserv module new`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use netserv_model::ModuleName;
use serde::Serialize;

use super::template::{self, Language, Template};
use crate::exit::{Exit, Failure, OrFail};
use crate::output::Output;

/// Create a folder with a new module and a test, ready to build
///
/// Templates and their languages: packet (rust, c, go, java), http (rust, js), tcp (rust), both (rust). The
/// folder's README.md lists the next commands, and the tool versions that the build depends on.
///
/// For Rust, the folder contains the SDK; for Java, this program brings everything that Maven needs. Packet modules
/// build without a network. The first build of a server module downloads two small crates (Rust) or the tools
/// (JavaScript).
#[derive(Args)]
pub struct New {
    /// The module's name; `hello` is short for `example.org/hello`
    #[arg(value_name = "NAME")]
    name: NewName,
    /// What the module does
    #[arg(long, value_enum, value_name = "TEMPLATE", default_value = "packet")]
    template: Template,
    /// Language of the module
    #[arg(long, value_enum, value_name = "LANGUAGE", default_value = "rust")]
    lang: Language,
    /// Folder to create [default: the last part of the name]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Only show which files the command would create
    #[arg(long)]
    dry_run: bool,
}

/// A name for a module, with `example.org/` in front if there was no domain.
#[derive(Clone, Debug)]
struct NewName(ModuleName);

impl FromStr for NewName {
    type Err = netserv_model::ids::ParseIdError;

    fn from_str(text: &str) -> Result<NewName, Self::Err> {
        let full = if text.contains('/') { text.to_owned() } else { format!("example.org/{text}") };
        full.parse().map(NewName)
    }
}

/// What `-j` shows.
#[derive(Serialize)]
struct Made {
    module: ModuleName,
    dir: PathBuf,
    files: Vec<PathBuf>,
}

impl New {
    /// Makes the folder.
    ///
    /// # Errors
    /// The folder exists or cannot be made.
    pub fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let NewName(module) = self.name;
        let short = module.as_str().rsplit('/').next().unwrap_or(module.as_str());
        let dir = self.dir.unwrap_or_else(|| short.into());
        let files = template::files(self.template, self.lang, &module, short)?;
        if dir.symlink_metadata().is_ok() {
            let cause = format!("{} exists and is not overwritten", dir.display());
            return Err(Failure::new(cause, "choose another folder with --dir"));
        }
        if !self.dry_run {
            for (path, bytes) in &files {
                write(&dir.join(path), bytes)?;
            }
        }
        let made = Made { module, dir, files: files.into_iter().map(|(path, _)| path).collect() };
        show(&made, self.dry_run, output)
    }
}

fn show(made: &Made, dry_run: bool, output: &mut Output) -> Result<Exit, Failure> {
    if output.is_json() {
        output.json(made)?;
        return Ok(Exit::Done);
    }
    // What comes along is many files, and nobody's to change.
    let along = ["sdk", "server-sdk", "wit/deps"];
    for file in made.files.iter().filter(|file| !along.iter().any(|dir| file.starts_with(dir))) {
        output.line(made.dir.join(file).display());
    }
    for dir in along.iter().filter(|dir| made.files.iter().any(|file| file.starts_with(dir))) {
        output.line(format!("{}/", made.dir.join(dir).display()));
    }
    if dry_run {
        output.note("these files would be made");
    } else {
        let dir = made.dir.display();
        output.note(format!("next: `netserv module test {dir}`; {dir}/README.md says more"));
    }
    Ok(Exit::Done)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let fix = "choose a folder that you may write to with --dir";
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).or_fail(format!("cannot make {}", parent.display()), fix)?;
    }
    std::fs::write(path, bytes).or_fail(format!("cannot write {}", path.display()), fix)
}
