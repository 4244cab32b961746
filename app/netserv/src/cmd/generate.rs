// SPDX-License-Identifier: Apache-2.0
//! `netserv completions` and `netserv man`: text made from the command line's own description.

use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::{Args, Command};
use clap_complete::Shell;

use crate::environment::ENVIRONMENT;
use crate::exit::{EXIT_CODES, Exit, Failure, OrFail};
use crate::output::Output;

/// Print completions for a shell
///
/// bash: `netserv completions bash > ~/.local/share/bash-completion/completions/netserv`
#[derive(Args)]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Write the manual pages
///
/// Writes one page for `netserv` and one for each command. Without --dir, prints the page of `netserv` to standard
/// output.
#[derive(Args)]
pub struct Man {
    /// Folder for the pages
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Only list the pages that would be written
    #[arg(long, requires = "dir")]
    dry_run: bool,
}

impl Completions {
    /// Prints the completions of the program's command line.
    pub fn run(self, mut program: Command, output: &mut Output) {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut program, "netserv", &mut script);
        output.raw(&script);
    }
}

impl Man {
    /// Writes the pages of the program's command line.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn run(self, program: Command, output: &mut Output) -> Result<Exit, Failure> {
        let pages = pages(program)?;
        let Some(dir) = self.dir else {
            output.raw(&pages[0].1);
            return Ok(Exit::Done);
        };
        let files: Vec<PathBuf> = pages.iter().map(|(name, _)| dir.join(name)).collect();
        if !self.dry_run {
            for ((_, page), path) in pages.iter().zip(&files) {
                write(&dir, path, page)?;
            }
        }
        if output.is_json() {
            output.json(&serde_json::json!({ "files": files }))?;
        } else {
            files.iter().for_each(|path| output.line(path.display()));
        }
        Ok(Exit::Done)
    }
}

/// Returns every manual page with its file name, the one of `netserv` itself first.
///
/// # Errors
/// Never in practice: the pages are made in memory.
pub fn pages(program: Command) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut root = program;
    root.build();
    let mut pages = Vec::new();
    add_pages(&root, "netserv", &mut pages).or_fail("cannot make a manual page", "report this as a bug")?;
    Ok(pages)
}

fn add_pages(command: &Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    let mut page = Vec::new();
    // A static name is wanted; the pages are few and made once.
    let named = command.clone().name(name.to_owned().leak() as &'static str).version(env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(named.after_help(Resettable::Reset)).render(&mut page)?;
    page.extend_from_slice(list_section("EXIT STATUS", EXIT_CODES).as_bytes());
    page.extend_from_slice(list_section("ENVIRONMENT", ENVIRONMENT).as_bytes());
    pages.push((format!("{name}.1"), page));
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        add_pages(sub, &format!("{name}-{}", sub.get_name()), pages)?;
    }
    Ok(())
}

/// Makes a section of a list in which each line but the first has a term, two or more spaces and a text.
fn list_section(title: &str, list: &str) -> String {
    let mut section = format!(".SH \"{title}\"\n");
    for line in list.lines().skip(1) {
        let (term, text) = line.trim().split_once("  ").unwrap_or((line, ""));
        let text = text.trim().replace('-', "\\-").replace('\'', "\\*(Aq");
        section.push_str(&format!(".TP\n\\fB{term}\\fR\n{text}\n"));
    }
    section
}

fn write(dir: &Path, path: &Path, page: &[u8]) -> Result<(), Failure> {
    let fix = "choose a folder that you may write to";
    std::fs::create_dir_all(dir).or_fail(format!("cannot make {}", dir.display()), fix)?;
    std::fs::write(path, page).or_fail(format!("cannot write {}", path.display()), fix)
}
