// SPDX-License-Identifier: Apache-2.0
//! `netserv node`.

mod audit;
mod doctor;
mod drain;
mod usage;
mod user;

use std::path::Path;
use std::time::Duration;

use clap::Subcommand;
use netserv_api::{
    ConditionInfo, ConfigChange, InForceFrom, LogLine, ModuleList, NodeInfo, OperatorServiceInfo, Reloaded,
};
use netserv_model::UserId;
use netserv_model::api::{PacketSums, RevocationInfo, RevocationListInfo};
use netserv_model::application::ApplicationInfo;

use crate::exit::{Exit, Failure, OrFail, one_line};
use crate::output::{Output, Style};
use crate::report;
use crate::table::Table;
use netserv_api::Client;

/// How long a node may take to hold running containers to its configuration.
const RELOAD_TIME_MAX: Duration = Duration::from_secs(60);

/// Inspect and manage the node of this machine
#[derive(Subcommand)]
pub enum Node {
    /// Show the node's name, version, driver and load
    Status,
    /// Show the modules installed on this node
    List,
    /// Show users, their rights, and their proofs
    #[command(subcommand)]
    User(user::User),
    /// Show the usage of users and their modules, summed up over restarts
    Usage {
        /// Show only this user
        #[arg(long, value_name = "NAME")]
        user: Option<UserId>,
    },
    /// Show the node's log
    Logs {
        /// Follow the log until interrupted
        #[arg(short, long)]
        follow: bool,
        /// Start with the line of this sequence number
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        since: u64,
    },
    Audit(audit::Audit),
    /// Show the configuration that the node runs with
    Config,
    /// Reload the node's configuration file, and show each change and when it takes effect
    Reload,
    Drain(drain::Drain),
    /// Check the requirements of this node and its user, and say how to fix what is missing
    Doctor,
}

impl Node {
    /// Carries out the command.
    ///
    /// # Errors
    /// The node cannot be reached or refuses the call.
    pub async fn run(self, client: &Client, socket: &Path, output: &mut Output) -> Result<Exit, Failure> {
        match self {
            Node::Status => status(client, output).await,
            Node::List => list(client, output).await,
            Node::User(user) => user.run(client, output).await,
            Node::Usage { user } => usage::run(client, user.as_ref(), output).await,
            Node::Logs { follow, since } => logs(client, follow, since, output).await,
            Node::Audit(audit) => audit.run(client, output).await,
            Node::Config => config(client, output).await,
            Node::Reload => reload(client, output).await,
            Node::Drain(drain) => drain.run(client, output).await,
            Node::Doctor => doctor::run(client, socket, output).await,
        }
    }
}

async fn status(client: &Client, output: &mut Output) -> Result<Exit, Failure> {
    let info: NodeInfo = client.get("/v1/node").await?;
    if output.is_json() {
        output.json(&info)?;
        return Ok(Exit::Done);
    }
    let node = output.paint(Style::Bold, info.node.as_str());
    output.line(format!("node     {node}"));
    for (name, value) in [("role", &info.role), ("version", &info.version), ("driver", &info.driver)] {
        output.line(format!("{name:7}  {}", one_line(value)));
    }
    let lanes = if info.lanes == 1 { "1 packet thread".to_owned() } else { format!("{} packet threads", info.lanes) };
    output.line(format!("{:7}  {lanes}", "lanes"));
    output.line(format!("{:7}  {}", "started", info.started));
    output.line(format!("{:7}  {}", "load", report::load(&info.load)));
    let PacketSums { received, unseen, bypassed, lost } = info.packets;
    output.line(format!("packets  {received} received, {unseen} unseen by a module, {bypassed} bypassed, {lost} lost"));
    if info.load.maintenance {
        let word = output.paint(Style::Warn, "drained");
        output.line(format!("{word}  takes nothing new until `netserv node drain --undo`"));
    }
    for ApplicationInfo { nslp_id, router_alert, name, waiting } in &info.applications {
        let name = if name.is_empty() { String::new() } else { format!(" {}", one_line(name)) };
        output.line(format!(
            "nslp     {nslp_id}{name}, Router Alert {router_alert}, {waiting} messages without a status"
        ));
    }
    info.services.iter().for_each(|service| write_service(service, output));
    info.revocations.iter().for_each(|revocations| write_revocations(revocations, output));
    for missing in &info.missing {
        let word = output.paint(Style::Warn, "missing");
        output.line(format!("{word}  {}", one_line(missing)));
    }
    Ok(Exit::Done)
}

fn write_service(service: &OperatorServiceInfo, output: &mut Output) {
    let OperatorServiceInfo { name, module, ready, wanted, installed, refused, conditions } = service;
    let state = match (wanted, installed) {
        (true, true) => "runs",
        (true, false) => "is to run",
        (false, true) => "is to stop",
        (false, false) if *ready => "waits",
        (false, false) => "waits, its package is not ready",
    };
    output.line(format!("service  {}, {module}, {state}", one_line(name)));
    for ConditionInfo { when, per_second } in conditions {
        output.line(format!("when     {}: {per_second}", one_line(when)));
    }
    if let Some(refused) = refused {
        let word = output.paint(Style::Warn, "refused");
        output.line(format!("{word}  {}", one_line(refused)));
    }
}

fn write_revocations(revocations: &RevocationInfo, output: &mut Output) {
    let RevocationInfo { issuer, list, asked_s, failures, failure } = revocations;
    let list = list.as_ref().map_or("no revocation list".to_owned(), |list| {
        let RevocationListInfo { number, made, until, grants, keys } = list;
        format!("revocation list {number} of {made}, good until {until}, grants {grants}, keys {keys}")
    });
    let asked = asked_s.map_or("never fetched".to_owned(), |ago| format!("fetched {ago} s ago"));
    output.line(format!("issuer   {}, {list}, {asked}, {failures} failures", one_line(issuer)));
    if let Some(failure) = failure {
        let word = output.paint(Style::Warn, "failing");
        output.line(format!("{word}  {}", one_line(failure)));
    }
}

async fn list(client: &Client, output: &mut Output) -> Result<Exit, Failure> {
    let list: ModuleList = client.get("/v1/modules").await?;
    if output.is_json() {
        output.json(&list)?;
    } else if list.modules.is_empty() {
        output.note("no modules are installed here");
    } else {
        report::modules(list.modules.iter().map(|module| (None, module))).write(output);
    }
    Ok(Exit::Done)
}

async fn logs(client: &Client, follow: bool, since: u64, output: &mut Output) -> Result<Exit, Failure> {
    let mut lines = client.lines(&format!("/v1/logs?follow={follow}&since={since}")).await?;
    while let Some(text) = lines.next().await? {
        if text.is_empty() {
            continue;
        }
        let line: LogLine = serde_json::from_str(&text)
            .or_fail("a log line is not understood", "use a netserv and a netservd of one version")?;
        write_log_line(&line, output)?;
        if output.is_closed() {
            break;
        }
    }
    Ok(Exit::Done)
}

fn write_log_line(line: &LogLine, output: &mut Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.json_line(line);
    }
    let level = output.paint(Style::of_level(&line.level), &format!("{:5}", one_line(&line.level)));
    output.line(format!("{}  {level}  {}  {}", line.time, one_line(&line.source), one_line(&line.text)));
    Ok(())
}

async fn config(client: &Client, output: &mut Output) -> Result<Exit, Failure> {
    let config: serde_json::Value = client.get("/v1/config").await?;
    if output.is_json() {
        output.json(&config)?;
        return Ok(Exit::Done);
    }
    let text = toml::Value::try_from(config).and_then(|config| toml::to_string_pretty(&config));
    output.raw(text.or_fail("the configuration cannot be shown as TOML", "see it as JSON with -j")?.as_bytes());
    Ok(Exit::Done)
}

async fn reload(client: &Client, output: &mut Output) -> Result<Exit, Failure> {
    let Reloaded { changes } = client.post("/v1/reload", &(), RELOAD_TIME_MAX).await?;
    if output.is_json() {
        output.json(&Reloaded { changes })?;
    } else if changes.is_empty() {
        output.note("nothing changed");
    } else {
        let mut table = Table::new(&["KEY", "HOLDS FROM"]);
        for ConfigChange { key, from, why } in &changes {
            let style = if *from == InForceFrom::Now { Style::Plain } else { Style::Warn };
            table.row([(Style::Plain, key.clone()), (style, from.to_string())]);
            why.iter().for_each(|why| table.note(why));
        }
        table.write(output);
    }
    Ok(Exit::Done)
}
