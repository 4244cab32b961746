// SPDX-License-Identifier: Apache-2.0
//! `netserv agent`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use netserv_api::{AgentCheck, AgentFinding, AgentMove, AgentNearest, AgentNode, AgentReload, AgentRule, AgentStatus};

use crate::client;
use crate::exit::{Exit, Failure};
use crate::output::{Output, Style};
use crate::report::count;
use crate::table::{Table, plain};
use netserv_api::LOCAL_CALL_TIME_MAX;

/// Inspect and manage netserv-agent, which deploys modules automatically
#[derive(Subcommand)]
pub enum Agent {
    Status(Status),
    Check(Check),
    Nearest(Nearest),
    Off(Off),
    On(On),
    Reload(Reload),
}

/// Show the agent's deployments and counters
#[derive(Args)]
pub struct Status {
    #[command(flatten)]
    way: Way,
}

/// Check whether the agent can reach everything that its configuration names
///
/// The agent checks netservd, its key, state, logs, flows, metrics, tables and files, as its own user and in its
/// own sandbox. For each that it cannot reach, the command shows the reason and the fix, and then exits with 1.
#[derive(Args)]
pub struct Check {
    #[command(flatten)]
    way: Way,
}

/// Show which node with a module is nearest to a client
///
/// Exits with 6 if the agent knows no such node.
#[derive(Args)]
pub struct Nearest {
    /// The module's name, without a version, or the name of a rule
    #[arg(value_name = "MODULE")]
    module: String,
    /// The client's address
    #[arg(value_name = "CLIENT")]
    client: IpAddr,
    #[command(flatten)]
    way: Way,
}

/// Switch a rule off
///
/// The agent removes the rule's deployments at once and makes no new ones until you switch the rule on, also after a restart.
#[derive(Args)]
pub struct Off {
    /// The name of the rule
    #[arg(value_name = "RULE")]
    rule: String,
    #[command(flatten)]
    way: Way,
}

/// Switch a rule on again
#[derive(Args)]
pub struct On {
    /// The name of the rule
    #[arg(value_name = "RULE")]
    rule: String,
    #[command(flatten)]
    way: Way,
}

/// Reload the agent's configuration file, and show the outcome for each rule
///
/// The agent keeps the deployments of unchanged rules, replaces modules of changed rules without a gap, and removes
/// deployments of rules that no longer exist. If the file is wrong, nothing changes.
#[derive(Args)]
pub struct Reload {
    #[command(flatten)]
    way: Way,
}

#[derive(Args)]
struct Way {
    /// The Unix socket of netserv-agent
    #[arg(long, env = "NETSERV_AGENT_SOCKET", hide_env_values = true, value_name = "PATH")]
    #[arg(default_value = "/run/netserv/agent.sock")]
    agent_socket: PathBuf,
}

impl Agent {
    /// Asks the agent.
    ///
    /// # Errors
    /// It cannot be reached, or does not know what is asked.
    pub async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        match self {
            Agent::Status(status) => status.run(output).await,
            Agent::Check(check) => check.run(output).await,
            Agent::Nearest(nearest) => nearest.run(output).await,
            Agent::Off(Off { rule, way }) => way.switch(&rule, "off", output).await,
            Agent::On(On { rule, way }) => way.switch(&rule, "on", output).await,
            Agent::Reload(reload) => reload.run(output).await,
        }
    }
}

impl Way {
    async fn switch(&self, rule: &str, to: &str, output: &mut Output) -> Result<Exit, Failure> {
        let path = format!("/v1/rules/{}/{to}", escaped(rule));
        let client = client::agent(&self.agent_socket);
        let rule: AgentRule = client.post(&path, &(), LOCAL_CALL_TIME_MAX).await?;
        if output.is_json() {
            output.json(&rule)?;
        } else {
            output.note(format!("rule {} is {}", rule.name, rule.state));
        }
        Ok(Exit::Done)
    }
}

/// Returns a node with how far it is, and how many requests failed there.
fn node(node: &AgentNode) -> String {
    let hops = node.ip_hops.map(|hops| if hops == 1 { "1 hop".to_owned() } else { format!("{hops} hops") });
    let far =
        hops.zip(node.rtt_us).map(|(hops, rtt_us)| format!("{hops}, {}.{} ms", rtt_us / 1000, rtt_us % 1000 / 100));
    let errors = (node.errors > 0).then(|| {
        let avoided = if node.failing { ", clients are not sent there" } else { "" };
        format!("{} of {} failed{avoided}", node.errors, count(node.requests, "request"))
    });
    let known: Vec<String> = far.into_iter().chain(errors).collect();
    if known.is_empty() { node.node.to_string() } else { format!("{} ({})", node.node, known.join(", ")) }
}

impl Status {
    async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let status: AgentStatus = client::agent(&self.way.agent_socket).get("/v1/status").await?;
        if output.is_json() {
            output.json(&status)?;
            return Ok(Exit::Done);
        }
        let mut table = Table::new(&["RULE", "HEALTH", "SEEN", "NODES"]);
        for deployment in &status.deployments {
            let is_good = deployment.health == "running" && !deployment.nodes.iter().any(|node| node.failing);
            let style = if is_good { Style::Good } else { Style::Warn };
            let nodes = deployment.nodes.iter().map(node).collect::<Vec<_>>().join(", ");
            let seen = format!("{} s ago", deployment.seen_s);
            table.row([plain(&deployment.rule), (style, deployment.health.clone()), plain(seen), plain(nodes)]);
        }
        table.write(output);
        for AgentMove { rule, from, to, why, state, ago_s } in &status.moves {
            output.line(format!("rule {rule}: {from} to {to} by {why}, {state}, {ago_s} s ago"));
        }
        for rule in &status.rules {
            if rule.state != "on" {
                output.line(format!("rule {} is {}", rule.name, rule.state));
            }
            if let Some(told) = &rule.told {
                output.line(format!("rule {} tells its modules: {told}", rule.name));
            }
        }
        for metric in &status.metrics {
            let value = metric.value.map(|value| format!("{value}"));
            let told = value.or_else(|| metric.error.clone()).unwrap_or_else(|| "not read yet".to_owned());
            output.line(format!("metric {}: {told}", metric.name));
        }
        for flows in &status.flows {
            let told = flows.count.map(|count| count.to_string()).or_else(|| flows.error.clone());
            output.line(format!("flows {}: {}", flows.name, told.unwrap_or_else(|| "not looked at yet".to_owned())));
        }
        let AgentStatus { regions, observations, lost, no_node, failures, .. } = status;
        let regions = count(u64::try_from(regions).unwrap_or(u64::MAX), "region");
        output.line(format!("{regions}, {}, {lost} lost", count(observations, "observation")));
        output.line(format!("{} without a node, {}", count(no_node, "way"), count(failures, "failure")));
        Ok(Exit::Done)
    }
}

impl Check {
    async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let found: AgentCheck = client::agent(&self.way.agent_socket).get("/v1/check").await?;
        let exit = if found.checks.iter().all(|check| check.ok) { Exit::Done } else { Exit::Failed };
        if output.is_json() {
            output.json(&found)?;
            return Ok(exit);
        }
        let mut table = Table::new(&["CHECK", "STATE", "AT", "FOUND"]);
        for AgentFinding { what, at, ok, found, fix } in &found.checks {
            let state = if *ok { (Style::Good, "ok".to_owned()) } else { (Style::Bad, "fail".to_owned()) };
            table.row([plain(what), state, plain(at), plain(found)]);
            if let Some(fix) = fix {
                table.note(format!("fix: {fix}"));
            }
        }
        table.write(output);
        Ok(exit)
    }
}

impl Reload {
    async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let client = client::agent(&self.way.agent_socket);
        let reloaded: AgentReload = client.post("/v1/reload", &(), LOCAL_CALL_TIME_MAX).await?;
        if output.is_json() {
            output.json(&reloaded)?;
            return Ok(Exit::Done);
        }
        let mut table = Table::new(&["RULE", "CHANGE"]);
        for rule in &reloaded.rules {
            table.row([plain(&rule.name), plain(&rule.change)]);
        }
        table.write(output);
        Ok(Exit::Done)
    }
}

impl Nearest {
    async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let path = format!("/v1/nearest?module={}&client={}", escaped(&self.module), self.client);
        let nearest: AgentNearest = client::agent(&self.way.agent_socket).get(&path).await?;
        if output.is_json() {
            output.json(&nearest)?;
        } else if !nearest.node.is_empty() {
            let addresses = nearest.addresses.iter().map(|address| format!("  {address}")).collect::<String>();
            output.line(format!("{}{addresses}", nearest.node));
        }
        if nearest.node.is_empty() {
            output.note(format!("no node with {} is known near {}", self.module, self.client));
            return Ok(Exit::Incomplete);
        }
        Ok(Exit::Done)
    }
}

/// Returns a text as part of a query.
fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}
