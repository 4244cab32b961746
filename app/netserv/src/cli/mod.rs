// SPDX-License-Identifier: Apache-2.0
//! The command line.

use std::path::PathBuf;

use clap::{ArgAction, Args, CommandFactory as _, Parser, Subcommand};

use crate::client;
use crate::cmd;
use crate::environment::ENVIRONMENT;
use crate::exit::{EXIT_CODES, Exit, Failure};
use crate::output::Output;

/// Where `--help` shows the options of every command.
const HEADING: &str = "Options of every command";

/// Install NetServ modules along network paths, build and test modules, and manage this machine's node
#[derive(Parser)]
#[command(name = "netserv", version, arg_required_else_help = true)]
#[command(after_help = format!("{EXIT_CODES}\n\n{ENVIRONMENT}"))]
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
#[command(next_help_heading = HEADING)]
pub struct Global {
    /// Print JSON, also for errors (on standard error)
    #[arg(short, long, global = true)]
    pub json: bool,
    /// Print details to standard error
    #[arg(short, long, global = true, action = ArgAction::SetTrue)]
    pub verbose: bool,
    /// The Unix socket of netservd
    #[arg(long, global = true, env = "NETSERV_SOCKET", hide_env_values = true, value_name = "PATH")]
    #[arg(default_value = "/run/netserv/netservd.sock")]
    pub socket: PathBuf,
}

/// What to do. Each command's help is the doc comment of its type.
#[derive(Subcommand)]
pub enum Command {
    Setup(Box<cmd::setup::Setup>),
    Remove(cmd::remove::Remove),
    Candidates(Box<cmd::candidates::Candidates>),
    Relocate(Box<cmd::relocate::Relocate>),
    Tell(cmd::tell::Tell),
    #[command(subcommand, arg_required_else_help = true)]
    State(cmd::state::State),
    Probe(cmd::probe::Probe),
    Path(cmd::probe::Path),
    Watch(cmd::watch::Watch),
    Trace(cmd::trace::Trace),
    #[command(subcommand, arg_required_else_help = true)]
    Module(cmd::module::Module),
    #[command(subcommand, arg_required_else_help = true)]
    Node(cmd::node::Node),
    #[command(subcommand, arg_required_else_help = true)]
    Agent(cmd::agent::Agent),
    #[command(subcommand, arg_required_else_help = true)]
    Key(cmd::key::Key),
    #[command(subcommand, arg_required_else_help = true)]
    Grant(cmd::grant::Grant),
    #[command(subcommand, arg_required_else_help = true)]
    Prove(cmd::prove::Prove),
    Completions(cmd::generate::Completions),
    Man(cmd::generate::Man),
}

impl Cli {
    /// Carries out the command line.
    ///
    /// # Errors
    /// What kept the command from being carried out.
    pub async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let client = client::node(&self.global.socket);
        match self.command {
            Command::Setup(setup) => setup.run(&client, output).await,
            Command::Remove(remove) => remove.run(&client, output).await,
            Command::State(state) => state.run(&client, output).await,
            Command::Candidates(candidates) => candidates.run(&client, output).await,
            Command::Relocate(relocate) => relocate.run(&client, output).await,
            Command::Tell(tell) => tell.run(&client, output).await,
            Command::Probe(probe) => probe.run(&client, output).await,
            Command::Path(path) => path.run(&client, output).await,
            Command::Trace(trace) => trace.run(&client, output).await,
            Command::Watch(watch) => watch.run(&client, output).await,
            Command::Module(module) => module.run(output).await,
            Command::Node(node) => node.run(&client, &self.global.socket, output).await,
            Command::Agent(agent) => agent.run(output).await,
            Command::Key(key) => key.run(output),
            Command::Grant(grant) => grant.run(output),
            Command::Prove(prove) => prove.run(output),
            Command::Completions(completions) => {
                completions.run(Cli::command(), output);
                Ok(Exit::Done)
            }
            Command::Man(man) => man.run(Cli::command(), output),
        }
    }
}

#[cfg(test)]
mod tests;
