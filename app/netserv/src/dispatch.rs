// SPDX-License-Identifier: Apache-2.0
//! Which command a command line asks for.

use clap::CommandFactory as _;

use crate::cli::{Cli, Command};
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Carries out one command line.
///
/// # Errors
/// What kept the command from being carried out.
pub async fn run(cli: Cli, output: &mut Output) -> Result<Exit, Failure> {
    let client = Client::new(&cli.global.socket);
    match cli.command {
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
        Command::Node(node) => node.run(&client, &cli.global.socket, output).await,
        Command::Agent(agent) => agent.run(output).await,
        Command::Key(key) => key.run(output),
        Command::Grant(grant) => grant.run(output),
        Command::Completions(completions) => {
            completions.run(Cli::command(), output);
            Ok(Exit::Done)
        }
        Command::Man(man) => man.run(Cli::command(), output),
    }
}
