// SPDX-License-Identifier: Apache-2.0
//! The command line.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};

use crate::cmd;
use crate::exit::EXIT_CODES;

/// Sends signed requests along network paths, makes modules, and looks after the node of this machine.
#[derive(Parser)]
#[command(name = "netserv", version, arg_required_else_help = true, after_help = EXIT_CODES)]
#[command(infer_subcommands = false, disable_help_subcommand = true)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Args)]
pub struct Global {
    /// Write JSON for programs; errors are JSON on standard error
    #[arg(short, long, global = true)]
    pub json: bool,
    /// Tell more on standard error
    #[arg(short, long, global = true, action = ArgAction::SetTrue)]
    pub verbose: bool,
    /// The Unix socket of netservd
    #[arg(long, global = true, env = "NETSERV_SOCKET", hide_env_values = true, value_name = "PATH")]
    #[arg(default_value = "/run/netserv/netservd.sock")]
    pub socket: PathBuf,
}

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Install, refresh or replace a module on every node toward a destination
    Setup(cmd::setup::Setup),
    /// Remove a module from every node toward a destination
    Remove(cmd::remove::Remove),
    /// Ask every node toward a destination about itself
    Probe(cmd::probe::Probe),
    /// Show the nodes on the path to a destination
    Path(cmd::probe::Path),
    /// Make, sign, look into and test modules
    #[command(subcommand, arg_required_else_help = true)]
    Module(cmd::module::Module),
    /// Look at the node of this machine
    #[command(subcommand, arg_required_else_help = true)]
    Node(cmd::node::Node),
    /// Make and show keys
    #[command(subcommand, arg_required_else_help = true)]
    Key(cmd::key::Key),
    /// Print completions for a shell
    Completions(cmd::generate::Completions),
    /// Write the manual pages
    Man(cmd::generate::Man),
}
