// SPDX-License-Identifier: Apache-2.0
//! net-monitor, which counts what comes for the sender, on its way between two nodes.

use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use netserv_model::api::RequestResult;
use netserv_model::request::{ModuleState, ModuleStatus};
use serde::Deserialize;

use crate::netns::{Lab, program};
use crate::node::{LabPackage, LabUser};
use crate::states::StateStore;
use crate::topology::Topology;

/// `sender – n1 – r – n2 – receiver`, with the module on `n1` in the first epoch.
pub struct Relocating {
    /// The network.
    pub lab: Lab,
    user: LabUser,
    package: LabPackage,
    url: String,
    store: StateStore,
    moved: u32,
}

/// What the command says.
#[derive(Debug, Deserialize)]
pub struct Relocated {
    /// The node that has the module.
    pub node: String,
    /// Its epoch.
    pub epoch: u64,
    /// Whether an earlier command had done a part of it.
    pub resumed: bool,
    /// What was moved.
    pub state: Option<Moved>,
}

/// A state that was moved.
#[derive(Debug, Deserialize)]
pub struct Moved {
    /// Its bytes.
    pub bytes: u64,
    /// For how many milliseconds the module was nowhere, at most.
    pub still_ms: u64,
}

impl Relocating {
    /// Starts it over a driver.
    ///
    /// # Errors
    /// Something does not start.
    pub fn up(driver: &str) -> Result<Relocating> {
        let mut lab = Lab::up(Topology::two_nodes())?;
        lab.use_driver(driver);
        let user = lab.user("janedoe", &[&format!("{}/32", lab.v4("sender"))])?;
        let config = StateStore::config(&lab, "sender");
        for node in ["n1", "n2"] {
            lab.start_netservd(node, "node", std::slice::from_ref(&user), &config)?;
        }
        lab.start_netservd("sender", "host", &[], "")?;
        lab.serve_http("sender")?;
        let store = StateStore::open(&mut lab, "sender")?;
        let package = lab.package("net-monitor", &user)?;
        let url = lab.publish("sender", &package)?;
        let moving = Relocating { lab, user, package, url, store, moved: 0 };
        let result = moving.setup("n1", 1)?;
        let is_there = result.nodes.iter().any(|node| node.node.as_str() == "n1" && node.outcome.is_ok());
        ensure!(is_there, "no module: {result:?}");
        Ok(moving)
    }

    /// Asks a node to have the module in an epoch.
    ///
    /// # Errors
    /// The path gives no answer.
    pub fn setup(&self, node: &str, epoch: u64) -> Result<RequestResult> {
        let (file, epoch) = (self.package.path.to_string_lossy().into_owned(), epoch.to_string());
        let (to, filter) = (self.lab.v4("receiver").to_string(), filter(&self.lab));
        let key = self.user.key.to_string_lossy().into_owned();
        let module = ["setup", &file, "--to", &to, "--url", &self.url, "--filter", &filter];
        let who = ["--node", node, "--epoch", &epoch, "--user", &self.user.name, "--key", &key];
        self.lab.request("sender", &[&module[..], &who].concat())
    }

    /// Asks which nodes suit the module; returns what `netserv candidates -j` says.
    ///
    /// # Errors
    /// The command fails.
    pub fn candidates(&self, more: &[&str]) -> Result<serde_json::Value> {
        let (file, to) = (self.package.path.to_string_lossy().into_owned(), self.lab.v4("receiver").to_string());
        let key = self.user.key.to_string_lossy().into_owned();
        let args = ["-j", "candidates", &file, "--to", &to, "--user", &self.user.name, "--key", &key];
        let output = self.lab.try_netserv("sender", &[&args[..], more].concat())?;
        serde_json::from_slice(&output.stdout).with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Returns the command that moves the module, for programs.
    ///
    /// # Errors
    /// There is no such program.
    pub fn command(&mut self, old: &str, new: &str) -> Result<Command> {
        self.moved += 1;
        let lab = &self.lab;
        let mut command = Command::new(program("netserv")?);
        command.arg("--socket").arg(lab.socket("sender")).env("NO_COLOR", "1").args(["-j", "relocate"]);
        command.arg(&self.package.path).args(["--url", &self.url, "--to", &lab.v4("receiver").to_string()]);
        command.args(["--filter", &filter(lab), "--old-node", old, "--node", new]);
        command.args(["--store", &self.store.url(&format!("s{}", self.moved))]);
        command.args(["--user", &self.user.name, "--key"]).arg(&self.user.key);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// Moves the module.
    ///
    /// # Errors
    /// The command fails.
    pub fn relocate(&mut self, old: &str, new: &str) -> Result<Relocated> {
        let Output { status, stdout, stderr } = self.command(old, new)?.output()?;
        ensure!(status.success(), "netserv relocate: {}", String::from_utf8_lossy(&stderr));
        serde_json::from_slice(&stdout).context("what the command says")
    }

    /// Has so many datagrams a second come for a while.
    ///
    /// # Errors
    /// The program does not start.
    pub fn stream(&self, rate: u64, seconds: u64) -> Result<Child> {
        stream(&self.lab, rate, seconds)
    }

    /// Returns in which states a node has modules.
    ///
    /// # Errors
    /// The node does not say.
    pub fn states(&self, node: &str) -> Result<Vec<ModuleState>> {
        Ok(self.status(node)?.iter().map(|status| status.state).collect())
    }

    /// Returns what the module on a node has counted, here or wherever it was before.
    ///
    /// # Errors
    /// The node does not say.
    pub fn counted(&self, node: &str) -> Result<u64> {
        counted(&self.lab, node)
    }

    fn status(&self, node: &str) -> Result<Vec<ModuleStatus>> {
        Ok(self.lab.modules(node)?.modules)
    }
}

/// Returns what the module sees.
pub fn filter(lab: &Lab) -> String {
    format!("udp dst {}/32", lab.v4("sender"))
}

/// Returns what the module on a node has counted, here or wherever it was before.
///
/// # Errors
/// The node does not say.
pub fn counted(lab: &Lab, node: &str) -> Result<u64> {
    let sender = format!(" {} ", lab.v4("sender"));
    let counters = lab.modules(node)?.modules.into_iter().flat_map(|status| status.counters);
    Ok(counters.filter(|(name, _)| name.contains(&sender)).map(|(_, count)| count).sum())
}

/// Has so many datagrams a second come for a while.
///
/// # Errors
/// The program does not start.
pub fn stream(lab: &Lab, rate: u64, seconds: u64) -> Result<Child> {
    let script = format!(
        "import socket, time\n\
             end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
             begun = time.monotonic()\n\
             for number in range({count}):\n\
             \x20   time.sleep(max(0, begun + number / {rate} - time.monotonic()))\n\
             \x20   end.sendto(b'%d' % number, ('{sender}', 7777))\n",
        count = rate * seconds,
        sender = lab.v4("sender")
    );
    Ok(lab.command("receiver", "python3").args(["-c", &script]).spawn()?)
}
