// SPDX-License-Identifier: Apache-2.0
//! Guards against code that becomes slower unseen: the instructions of hot functions, counted by Valgrind's callgrind.
//!
//! Wall time on a shared machine is noise; the same program executes the same instructions each time. What may be
//! executed is in `counts.toml`. A measured program says `guard NAME OPERATIONS` and then calls a function of the name
//! `netserv_guarded`, once for each time that it says so; all that happens in there counts. There are three:
//!
//! - this program with `cases`, built for release: the pure code of `core/`;
//! - the worker's tests, built for tests as CI does anyway, since Wasmtime takes minutes to build for release;
//! - the packet loop's tests.

mod arena;
mod callgrind;
mod cases;
mod programs;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use programs::Program;
use table::{Counted, Table};

/// Counts the instructions of hot functions and compares them with what they may take.
#[derive(Parser)]
struct Arguments {
    /// Take what was counted for what is allowed from now on.
    #[arg(long)]
    accept: bool,
    /// The table of what is allowed.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/counts.toml"))]
    table: PathBuf,
    /// Count only in this section of the table: `core`, `worker` or `packet-loop`.
    #[arg(long)]
    section: Option<String>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Run the cases of `core`, to be counted from outside.
    Cases,
}

fn main() -> ExitCode {
    run(&Arguments::parse()).unwrap_or_else(|error| {
        eprintln!("{error:#}");
        ExitCode::FAILURE
    })
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(Command::Cases) = arguments.command {
        cases::run();
        return Ok(ExitCode::SUCCESS);
    }
    if !cfg!(target_arch = "x86_64") {
        println!("SKIPPED: what is allowed was counted on x86_64");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::read(&arguments.table)?;
    let wanted = |section: &str| arguments.section.as_deref().is_none_or(|only| only == section);
    let mut counted = Counted::new();
    for program in Program::all().into_iter().filter(|program| wanted(program.section)) {
        let counts = program.count().with_context(|| format!("counting in section `{}`", program.section))?;
        counted.insert(program.section.to_owned(), counts);
    }
    if arguments.accept {
        table.accept(counted);
        table.write(&arguments.table)?;
        println!("{} has what was counted; commit it with the reason", arguments.table.display());
        return Ok(ExitCode::SUCCESS);
    }
    let comparison = table.compare(&counted);
    print!("{comparison}");
    Ok(if comparison.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
