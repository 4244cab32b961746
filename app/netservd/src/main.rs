// SPDX-License-Identifier: Apache-2.0
//! `netservd`: the daemon of one NetServ node.

mod api;
mod applications;
mod arguments;
mod audit;
mod caller;
mod clock;
mod conditions;
mod config;
mod control_loop;
mod effects;
mod event;
mod inbox;
mod limits;
mod logs;
mod machine;
#[cfg(test)]
mod man;
mod metered;
mod metrics;
mod newsfeed;
mod operator;
mod readable;
mod record;
mod run;
mod signal;
mod tls;
mod unix_socket;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::arguments::{Arguments, Command, ConfigCommand};
use crate::config::Config;
use crate::machine::{doctor, say, sweep};

fn main() -> ExitCode {
    if let Some(code) = netserv_container::run_if_launcher() {
        return code;
    }
    match act(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "netservd: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn act(command: Command) -> Result<ExitCode> {
    match command {
        Command::Run { config, record } => run::run(config.as_deref(), record.as_deref())?,
        Command::Config(ConfigCommand::Default) => say::text(&Config::default_toml()),
        Command::Config(ConfigCommand::Check { file }) => say::text(&Config::load(&file)?.to_toml()),
        Command::Doctor { config } => return doctor::print(config.as_deref()),
        Command::Cleanup { config, dry_run } => sweep::cleanup(config.as_deref(), dry_run)?,
    }
    Ok(ExitCode::SUCCESS)
}
