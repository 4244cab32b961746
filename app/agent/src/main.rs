// SPDX-License-Identifier: Apache-2.0
//! `netserv-agent`: the provider's daemon. It watches what servers log, and deploys modules near their clients by rule.

mod access;
mod agent;
mod api;
mod checks;
mod conditions;
mod config;
mod destination;
mod event;
mod feedback;
mod flows;
mod http;
mod ids;
mod limits;
mod log;
#[cfg(test)]
mod man;
mod metric;
mod metrics;
mod names;
mod news;
mod node;
mod page;
mod page_counts;
mod pattern;
mod relays;
mod relocate;
mod requests;
mod sensors;
mod socket;
mod table;
mod task;

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{Sender, channel, unbounded_channel};
use tokio::sync::watch;

use crate::agent::Agent;
use crate::api::Api;
use crate::config::Config;
use crate::event::{Event, Observations};
use crate::limits::{BATCHES_MAX, CALLS_MAX};
use crate::node::{Evidence, NodeClient};
use crate::sensors::Sensors;
use crate::table::Table;

/// Deploys modules near the clients of this machine's servers, by rules over the servers' logs
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
    // What is logged when nobody reads it, or a disk is full, is lost: the agent goes on.
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(ansi).log_internal_errors(false).init();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "netserv-agent: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let config = Config::read(&arguments.config)?;
    let node = NodeClient::new(&config.netservd, &config.user, &config.key)?.with_evidence(Evidence::of(&config));
    if arguments.check {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(&arguments.config, Arc::new(config), node))
}

async fn serve(path: &Path, config: Arc<Config>, node: NodeClient) -> Result<()> {
    // A reload while it starts is one, too.
    let hangups = signal(SignalKind::hangup())?;
    // So early that no second agent takes anything of the one that is there.
    let listener = api::bind(&config.socket)?;
    let table = Table::open(&config.state_dir)?;
    let (events, inbox) = channel(CALLS_MAX);
    let (batches, seen) = channel(BATCHES_MAX);
    let (answers, answered) = unbounded_channel();
    let observations = Observations::new(batches);
    let (configs, current) = watch::channel(Arc::clone(&config));
    let sensors = Sensors::open(&config, events.clone(), observations.clone())?;
    tokio::spawn(reload_at_hangups(hangups, events.clone()));
    let (last, reached) = watch::channel(Vec::new());
    tokio::spawn(checks::watch(current.clone(), events.clone(), last));
    let api = Api { config: current, events, observations: observations.clone(), reached, begun: Instant::now() };
    let served = axum::serve(listener, api::router(api.clone()));
    tokio::spawn(async move { served.await });
    if let Some(address) = config.nearest {
        let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen at {address}"))?;
        let served = axum::serve(listener, api::nearest_only(api.clone()));
        tokio::spawn(async move { served.await });
    }
    if let Some(address) = config.page {
        let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen at {address}"))?;
        let served = axum::serve(listener, page::router(api));
        tokio::spawn(async move { served.await });
    }
    let agent = Agent::new((path.to_owned(), configs), sensors, table, node, answers, observations)?;
    let (mut end, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tracing::info!(rules = config.rules.len(), logs = config.logs.len(), socket = %config.socket.display(), "ready");
    tokio::select! {
        ended = agent.run(inbox, seen, answered) => ended,
        // What is deployed stays until its lease ends, or the agent comes back.
        _ = end.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}

/// Has the configuration read again at each SIGHUP. An agent that ends takes no word of it.
async fn reload_at_hangups(mut hangups: Signal, events: Sender<Event>) {
    while hangups.recv().await.is_some() && events.send(Event::Reload(None)).await.is_ok() {}
}
