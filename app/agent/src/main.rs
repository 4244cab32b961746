// SPDX-License-Identifier: Apache-2.0
//! `netserv-agent`: the provider's daemon. It watches what servers log, and deploys modules near their clients by rule.

mod agent;
mod api;
mod config;
mod errands;
mod event;
mod feedback;
mod gates;
mod http;
mod limits;
mod log;
mod metric;
mod node;
mod pattern;
mod socket;
mod table;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Parser;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{channel, unbounded_channel};

use crate::agent::Agent;
use crate::api::Api;
use crate::config::Config;
use crate::event::Observations;
use crate::limits::{BATCHES_MAX, CALLS_MAX};
use crate::log::LogReader;
use crate::node::NodeClient;
use crate::table::Table;

/// Deploys modules near the clients of this machine's servers, by rules over what the servers log
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = "/etc/netserv/agent.toml")]
    config: PathBuf,
    /// Only check the configuration
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ansi = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(ansi).init();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("netserv-agent: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let config = Arc::new(Config::read(&arguments.config)?);
    let node = NodeClient::new(&config.netservd, &config.user, &config.key)?;
    if arguments.check {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(config, node))
}

async fn serve(config: Arc<Config>, node: NodeClient) -> Result<()> {
    let table = Table::open(&config.state_dir)?;
    let (events, inbox) = channel(BATCHES_MAX + CALLS_MAX);
    let (answers, answered) = unbounded_channel();
    let observations = Observations::new(events.clone());
    for log in &config.logs {
        tokio::spawn(LogReader::open(&config, log)?.run(observations.clone()));
    }
    for (place, metric) in config.metrics.iter().enumerate() {
        tokio::spawn(metric::watch(place, metric.clone(), events.clone()));
    }
    let api = Api { config: Arc::clone(&config), events, observations: observations.clone() };
    let listener = api::bind(&config.socket)?;
    let served = axum::serve(listener, api::router(api.clone()));
    tokio::spawn(async move { served.await });
    if let Some(address) = config.nearest {
        let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen at {address}"))?;
        let served = axum::serve(listener, api::nearest_only(api));
        tokio::spawn(async move { served.await });
    }
    let agent = Agent::new(Arc::clone(&config), table, node, answers, observations)?;
    let (mut end, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tracing::info!(rules = config.rules.len(), logs = config.logs.len(), socket = %config.socket.display(), "ready");
    tokio::select! {
        ended = agent.run(inbox, answered) => ended,
        // What is deployed stays until its lease ends, or the agent comes back.
        _ = end.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}
