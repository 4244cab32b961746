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
    /// Runs the node until SIGTERM or SIGINT; at SIGHUP, reloads users and admission.
    Run {
        /// The configuration file [default: none; every key has its default].
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Records the node's inputs, which `netserv-lab replay` can replay. The file is as secret as the node: it
        /// contains keys of users, requests and the node's seed.
        #[arg(long, value_name = "FILE")]
        record: Option<PathBuf>,
    },
    /// Prints or checks a configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Checks what this machine can and cannot do for a node.
    Doctor {
        /// The configuration file; its requirements are checked, too.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Removes what a killed node of this configuration left behind.
    Cleanup {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Only lists what would be removed.
        #[arg(long)]
        dry_run: bool,
    },
}

/// What is to be done about a configuration.
#[derive(Subcommand)]
pub enum ConfigCommand {
    /// Prints every key with its default.
    Default,
    /// Checks a file, and prints the resulting configuration.
    Check {
        /// The configuration file.
        file: PathBuf,
    },
}
