// SPDX-License-Identifier: Apache-2.0
//! The agent of a provider at the sender of a lab.

use std::process::Command;

use anyhow::{Result, ensure};
use netserv_api::AgentStatus;

use crate::netns::{Lab, program};
use crate::node::LabUser;

/// Starts it for a user, with sensors and rules as its configuration has them.
///
/// # Errors
/// It does not start.
pub fn start(lab: &mut Lab, user: &LabUser, rules: &str) -> Result<()> {
    let path = |name: &str| lab.dir().join(name);
    let (netservd, state, socket, config) =
        (lab.socket("sender"), path("agent"), path("agent.sock"), path("agent.toml"));
    let text = format!(
        "netservd = {netservd:?}\nuser = {:?}\nkey = {:?}\nstate-dir = {state:?}\nsocket = {socket:?}\n{rules}",
        user.name, user.key
    );
    std::fs::write(&config, text)?;
    let mut command = lab.command("sender", program("netserv-agent")?);
    command.arg("--config").arg(config);
    lab.start("sender", "agent", &mut command)?;
    lab.wait_for_start(("sender", "agent"), "answer", |lab| status(lab).is_ok())
}

/// Returns how things are for it.
///
/// # Errors
/// It does not answer.
pub fn status(lab: &Lab) -> Result<AgentStatus> {
    Ok(serde_json::from_slice(&ask(lab, &["status", "-j"])?)?)
}

/// Switches a rule.
///
/// # Errors
/// It does not answer.
pub fn switch(lab: &Lab, rule: &str, on: bool) -> Result<()> {
    ask(lab, &[if on { "on" } else { "off" }, rule]).map(drop)
}

fn ask(lab: &Lab, args: &[&str]) -> Result<Vec<u8>> {
    let mut command = Command::new(program("netserv")?);
    command.env("NETSERV_AGENT_SOCKET", lab.dir().join("agent.sock")).arg("agent").args(args);
    let output = command.output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout)
}
