// SPDX-License-Identifier: Apache-2.0
//! One network per way through a router: a sender, the router, a sink, and what runs on the router.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use netserv_model::request::Outcome;

use super::null_driver_args;
use super::pin::{OUTSIDE_CORE, steer, to_node_core};
use crate::netns::{Lab, program, wait_until};
use crate::node::{LabPackage, LabUser};
use crate::topology::{Kind, Topology};

/// The last byte of an address beyond a link that is nobody's: what goes there ends when it has arrived.
const NOBODY: u8 = 77;
/// A MAC address that no interface of the lab has.
const NOBODYS_MAC: &str = "02:00:00:00:00:01";
/// How long a program may take until it is ready.
const READY_WAIT: Duration = Duration::from_secs(20);

/// Sender, router `n1` and sink, in a row.
pub struct Net {
    /// The namespaces.
    pub lab: Lab,
}

/// Where the sink counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sink {
    /// On the generator's core.
    Outside,
    /// On the core that the router sends from, without another interrupt.
    Inside,
}

/// A module that a user has on the router.
pub struct Installed<'a> {
    /// The user.
    pub user: &'a LabUser,
    /// The module.
    pub package: &'a LabPackage,
    /// The UDP port whose packets it sees.
    pub port: u16,
    /// `key=value` for the module.
    pub properties: &'a [&'a str],
}

impl Net {
    /// Makes the network, with links that take frames as cards do: many at a time (GRO).
    ///
    /// # Errors
    /// A tool is missing.
    pub fn up() -> Result<Net> {
        let lab = Lab::up(Topology::chain(&[("sender", Kind::Host), ("n1", Kind::Node), ("sink", Kind::Host)]))?;
        let net = Net { lab };
        for (machine, interface) in [("sender", "to-n1"), ("n1", "to-sender")] {
            net.lab.run(machine, "ethtool", &["-K", interface, "gro", "on"])?;
        }
        for neighbour in ["sender", "sink"] {
            let (address, device) = (net.nobody(neighbour).to_string(), format!("to-{neighbour}"));
            let args = ["neigh", "replace", &address, "lladdr", NOBODYS_MAC, "nud", "permanent", "dev", &device];
            net.lab.run("n1", "ip", &args)?;
        }
        Ok(net)
    }

    /// Returns an address beside a machine that has a neighbour entry at the router and no station.
    pub fn nobody(&self, machine: &str) -> Ipv4Addr {
        let [a, b, c, _] = self.lab.v4(machine).octets();
        Ipv4Addr::new(a, b, c, NOBODY)
    }

    /// Returns the network behind the router.
    pub fn destination(&self) -> String {
        let [a, b, c, _] = self.lab.v4("sink").octets();
        format!("{a}.{b}.{c}.0/24")
    }

    /// Returns the filter of a port.
    pub fn filter(&self, port: u16) -> String {
        format!("udp dst {} port {port}", self.destination())
    }

    /// Starts a driver alone on the router.
    ///
    /// # Errors
    /// It does not open here.
    pub fn start_null_driver(&mut self, driver: &str, port: u16, more: &[&str]) -> Result<()> {
        let mut command = self.lab.command("n1", program("netserv-lab")?);
        command.args(null_driver_args(driver, &self.filter(port), more));
        let pid = self.lab.start("n1", "null", &mut command)?;
        let mut ended = false;
        let ready = wait_until(READY_WAIT, || {
            ended = self.lab.has_ended("n1", "null");
            ended || self.lab.log("n1", "null").contains("ready")
        });
        ensure!(ready && !ended, "the driver {driver} does not run: {}", self.lab.log("n1", "null").trim());
        to_node_core(pid)
    }

    /// Starts `netservd` on the router, on the node's core.
    ///
    /// # Errors
    /// It does not start; its log is in the error.
    pub fn start_netservd(&mut self, driver: &str, more: &str, users: &[LabUser]) -> Result<()> {
        self.lab.use_driver(driver);
        let fetch = format!("[fetch]\nschemes = [\"file\"]\nfile-roots = [{:?}]", self.lab.dir());
        self.lab.start_netservd("n1", "node", users, &format!("{more}\n{fetch}"))?;
        to_node_core(self.lab.pid("n1", "netservd").context("netservd runs")?)
    }

    /// Installs a module by a signed request to the router itself.
    ///
    /// # Errors
    /// The router refuses it.
    pub fn install(&self, installed: &Installed) -> Result<()> {
        let Installed { user, package, port, properties } = installed;
        let (file, key) = (package.path.to_string_lossy().into_owned(), user.key.to_string_lossy().into_owned());
        let filter = self.filter(*port);
        let mut args = vec!["setup", &file, "--local", "--filter", &filter, "--user", &user.name, "--key", &key];
        for property in *properties {
            args.extend(["--property", property]);
        }
        let result = self.lab.request("n1", &args)?;
        let done = result.nodes.iter().filter(|node| matches!(node.outcome, Outcome::Installed { .. })).count();
        ensure!(done == 1, "{} is not installed: {result:?}", package.module);
        Ok(())
    }

    /// Makes ready for trials: all of the node on its core, and the sink on the core of the generator or, if it is to be
    /// `inside`, on that which the router sends from.
    ///
    /// # Errors
    /// The node has ended, or the kernel has no receive packet steering.
    pub fn prepare(&self, sink: Sink) -> Result<()> {
        let core = match sink {
            Sink::Outside => Some(OUTSIDE_CORE),
            Sink::Inside => None,
        };
        // Answers come back to the sender.
        steer(&self.lab, "sink", "to-n1", core)?;
        steer(&self.lab, "sender", "to-n1", core)?;
        self.pids().into_iter().try_for_each(to_node_core)
    }

    /// Returns what runs on the router.
    pub fn pids(&self) -> Vec<u32> {
        ["netservd", "null"].into_iter().filter_map(|name| self.lab.pid("n1", name)).collect()
    }

    /// Returns how many packets the modules have seen so far, all together.
    ///
    /// # Errors
    /// The node does not answer.
    pub fn seen(&self) -> Result<u64> {
        Ok(self.lab.modules("n1")?.modules.iter().map(|module| module.packets.seen).sum())
    }
}
