// SPDX-License-Identifier: Apache-2.0
//! `netservd`: the daemon of one NetServ node.

mod addresses;
mod api;
mod clock;
mod config;
mod control_loop;
mod event;
mod execute;
mod filter_changes;
mod interception;
mod launcher;
mod limits;
mod log_budget;
mod logs;
mod machine;
#[cfg(test)]
mod man;
mod media;
mod metrics;
mod network;
mod network_thread;
mod packages;
mod packet_loop;
mod readable;
mod record;
mod run;
mod signal;
mod store;
mod trace;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::config::Config;

/// The daemon of a NetServ node.
#[derive(Parser)]
#[command(name = "netservd", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the node until SIGTERM or SIGINT; SIGHUP reads users and admission again.
    Run {
        /// The configuration file; without it, every default holds.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Prints or checks a configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Says what this machine can and cannot do for a node.
    Doctor {
        /// The configuration file: what it asks for is looked at too.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Removes what a node of this configuration left behind when it was killed.
    Cleanup {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Only says what is there.
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Prints every key with its default.
    Default,
    /// Checks a file, and prints what is in force.
    Check {
        /// The configuration file.
        file: PathBuf,
    },
}

fn main() -> ExitCode {
    if let Some(code) = netserv_container::run_if_launcher() {
        return code;
    }
    match act(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("netservd: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn act(command: Command) -> Result<ExitCode> {
    match command {
        Command::Run { config } => run::run(config.as_deref())?,
        Command::Config(ConfigCommand::Default) => print!("{}", Config::default_toml()),
        Command::Config(ConfigCommand::Check { file }) => print!("{}", Config::load(&file)?.to_toml()),
        Command::Doctor { config } => return machine::doctor::print(config.as_deref()),
        Command::Cleanup { config, dry_run } => machine::sweep::cleanup(config.as_deref(), dry_run)?,
    }
    Ok(ExitCode::SUCCESS)
}
