// SPDX-License-Identifier: Apache-2.0
//! The process inside a service container that runs packet modules.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use netserv_worker::serve::Delivery;
use netserv_worker::tools::test::jobs::{self, Jobs};
use netserv_worker::tools::test::wasm::{self, Code};
use netserv_worker::tools::test::{http, tcp};
use netserv_worker::tools::{bench, compile, serve_http};
use netserv_worker_packet::engine::Interruption;
use netserv_worker_server::{limits, route};

#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run modules inside a service container; started by netservd.
    Serve {
        /// Copy packets into modules even where they could be mapped, for comparison.
        #[arg(long, hide = true)]
        copy: bool,
        /// The directory of the files that outlive the process, for tests.
        #[arg(long, hide = true, default_value = netserv_worker_base::storage::STORE)]
        store: PathBuf,
        /// The file of the operator's own certificate authorities, for tests.
        #[arg(long, hide = true, default_value = route::AUTHORITIES)]
        authorities: PathBuf,
        /// The container's memory, in bytes.
        #[arg(long, hide = true, default_value_t = limits::CONTAINER_BYTES)]
        memory_bytes: u64,
    },
    /// Compile a WebAssembly file to code that `serve` loads: a core module that sees packets, or a component that takes
    /// connections. Several HTTP components become one, in which each hands requests on to the next.
    Compile {
        /// Compile a packet module for `test`, where nobody but the engine ends its endless loops.
        #[arg(long)]
        for_tests: bool,
        /// The WebAssembly files, then the file to write.
        #[arg(num_args = 2..=17, required = true, value_name = "WASM… OUT")]
        files: Vec<PathBuf>,
    },
    /// Serve HTTP with a component, on this machine and without a sandbox, for developers.
    ServeHttp(serve_http::Args),
    /// Run a module's tests, or a module on recorded packets, and print what it did as JSON.
    Test(jobs::Args),
    /// Measure a module, and print how long it takes as JSON.
    Bench(bench::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve { copy, store, authorities, memory_bytes } => {
            route::trust(authorities);
            let delivery = if copy { Delivery::Copied } else { Delivery::Mapped };
            match netserv_worker::serve::serve(delivery, &store, memory_bytes) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("netserv-worker: {error}");
                    ExitCode::FAILURE
                }
            }
        }
        Command::Compile { for_tests, files } => {
            let Some((out, wasm)) = files.split_last() else { return ExitCode::FAILURE };
            let interruption = if for_tests { Interruption::Epochs } else { Interruption::None };
            match compile::compile_all(wasm, out, interruption) {
                Ok(()) => ExitCode::SUCCESS,
                Err(refusal) => {
                    eprintln!("{}", serde_json::to_string(&refusal).expect("a refusal is plain data"));
                    ExitCode::FAILURE
                }
            }
        }
        Command::ServeHttp(args) => match serve_http::serve(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(refusal) => {
                eprintln!("netserv-worker: {refusal}");
                ExitCode::FAILURE
            }
        },
        Command::Test(args) => ExitCode::from(jobs::exit_code(test(&args))),
        Command::Bench(args) => match bench::run(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("bench: {error:#}");
                ExitCode::from(2)
            }
        },
    }
}

fn test(args: &jobs::Args) -> anyhow::Result<bool> {
    let jobs = Jobs::read(args, |build| build.wasm.as_ref())?;
    let mut all_passed = true;
    if jobs.iter().len() > 0 {
        let code = match &jobs.compiled_packet {
            Some(path) => Code::load(File::open(path).with_context(|| format!("cannot read {}", path.display()))?),
            None => Code::compile(&compile::read_wasm(&jobs.code)?),
        };
        for job in &jobs {
            all_passed &= jobs.finish(job, wasm::run(code.as_ref(), &job.case))?;
        }
    }
    if let Some((dir, project)) = &jobs.server {
        if !project.http_tests.is_empty() {
            all_passed &= http::run(dir, project, jobs.compiled.as_deref(), jobs.accept)?;
        }
        if !project.tcp_tests.is_empty() {
            all_passed &= tcp::run(dir, project, jobs.compiled.as_deref(), jobs.accept)?;
        }
    }
    Ok(all_passed)
}
