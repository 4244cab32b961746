// SPDX-License-Identifier: Apache-2.0
//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// The daemon of a NetServ node.
#[derive(Parser)]
#[command(name = "netservd", version, about)]
pub struct Arguments {
    /// What is to be done.
    #[command(subcommand)]
    pub command: Command,
}

/// What is to be done.
#[derive(Subcommand)]
pub enum Command {
    /// Runs the node until SIGTERM or SIGINT; SIGHUP reads users and admission again.
    Run {
        /// The configuration file; without it, every default holds.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Records what the node is given, to be given to it again by `netserv-lab replay`. The file is as secret as the
        /// node: it holds keys of users, requests and the node's seed.
        #[arg(long, value_name = "FILE")]
        record: Option<PathBuf>,
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

/// What is to be done about a configuration.
#[derive(Subcommand)]
pub enum ConfigCommand {
    /// Prints every key with its default.
    Default,
    /// Checks a file, and prints what is in force.
    Check {
        /// The configuration file.
        file: PathBuf,
    },
}
