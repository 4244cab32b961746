// SPDX-License-Identifier: Apache-2.0
//! One network per way through a router: a sender, the router, a sink, and what runs on the router.

use std::cell::Cell;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netserv_api::ModuleList;
use netserv_model::request::Outcome;

use super::account::{Counts, SeenBy};
use super::links::{self, Links, NOBODY};
use super::null_driver::Passed;
use super::null_driver_args;
use super::pin::{OUTSIDE_CORE, Placement, keep, place_threads, receive_in_thread, steer, to_node_core};
use crate::netns::{Lab, program, wait_until};
use crate::node::{LabPackage, LabUser};
use crate::topology::{Kind, Topology};

/// The name of a program that wants all of a core.
const HOG: &str = "hog";
/// How long who saw packets may take to tell it, once the last one has arrived.
const SETTLE_MAX: Duration = Duration::from_secs(1);
/// For how long a count must not change to be taken for what it is in the end.
const STILL: Duration = Duration::from_millis(60);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(4);
/// How old the driver's counters in the metrics may be.
const METRICS_AGE: Duration = Duration::from_millis(300);
/// How long a program may take until it is ready.
const READY_WAIT: Duration = Duration::from_secs(20);

/// Sender, router `n1` and sink.
pub struct Net {
    /// The namespaces.
    pub lab: Lab,
    /// The links between them.
    pub links: Links,
    /// Whether the node's core takes the generator's packets from a queue.
    has_arrival: Cell<bool>,
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
    /// Makes the network with the three in a row.
    ///
    /// # Errors
    /// A tool is missing.
    pub fn up() -> Result<Net> {
        Net::with(Links::Row)
    }

    /// Makes the network.
    ///
    /// # Errors
    /// A tool is missing.
    pub fn with(links: Links) -> Result<Net> {
        let lab = Lab::up(Topology::chain(&[("sender", Kind::Host), ("n1", Kind::Node), ("sink", Kind::Host)]))?;
        links.lay(&lab)?;
        let net = Net { lab, links, has_arrival: Cell::new(false) };
        for (neighbour, device) in [("sender", "to-sender"), ("sink", "to-sink")] {
            links::silence(&net.lab, net.nobody(neighbour).into(), device)?;
        }
        links::silence(&net.lab, net.v6_nobody("sink").into(), "to-sink")?;
        Ok(net)
    }

    /// Returns an address beside a machine that has a neighbour entry at the router and no station.
    pub fn nobody(&self, machine: &str) -> Ipv4Addr {
        let [a, b, c, _] = self.lab.v4(machine).octets();
        Ipv4Addr::new(a, b, c, NOBODY)
    }

    /// Returns an IPv6 address beside a machine that is nobody's.
    pub fn v6_nobody(&self, machine: &str) -> Ipv6Addr {
        let mut segments = self.lab.v6(machine).segments();
        segments[7] = u16::from(NOBODY);
        Ipv6Addr::from(segments)
    }

    /// Returns the IPv6 network behind the router.
    pub fn v6_destination(&self) -> String {
        let mut segments = self.lab.v6("sink").segments();
        segments[7] = 0;
        format!("{}/64", Ipv6Addr::from(segments))
    }

    /// Returns the network behind the router.
    pub fn destination(&self) -> String {
        let [a, b, c, _] = self.lab.v4("sink").octets();
        format!("{a}.{b}.{c}.0/24")
    }

    /// Returns the network before the router.
    pub fn origin(&self) -> String {
        let [a, b, c, _] = self.lab.v4("sender").octets();
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
        keep(self.lab.pid("n1", "netservd").context("netservd runs")?)
    }

    /// Installs a module by a signed request to the router itself.
    ///
    /// # Errors
    /// The router refuses it.
    pub fn install(&self, installed: &Installed) -> Result<()> {
        let Installed { user, package, port, properties } = installed;
        self.install_for(user, package, &[&self.filter(*port)], properties)
    }

    /// Installs a module with any filters.
    ///
    /// # Errors
    /// The router refuses it.
    pub fn install_for(
        &self,
        user: &LabUser,
        package: &LabPackage,
        filters: &[&str],
        properties: &[&str],
    ) -> Result<()> {
        let (file, key) = (package.path.to_string_lossy().into_owned(), user.key.to_string_lossy().into_owned());
        let mut args = vec!["setup", &file, "--local", "--user", &user.name, "--key", &key];
        args.extend(filters.iter().flat_map(|filter| ["--filter", filter]));
        for property in properties {
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
    pub fn prepare(&self, placement: Placement, sink: Sink) -> Result<()> {
        self.receive_as(placement, sink)?;
        self.pids().into_iter().try_for_each(to_node_core)
    }

    /// The same for the kernel only: the node's programs stay where they are.
    ///
    /// # Errors
    /// The kernel has no receive packet steering.
    pub fn receive_as(&self, placement: Placement, sink: Sink) -> Result<()> {
        let one = placement == Placement::OneCore;
        self.has_arrival.set(one);
        for (machine, interface) in self.links.ends() {
            receive_in_thread(&self.lab, machine, &interface, one)?;
        }
        if one {
            place_threads()?;
        }
        let core = match sink {
            Sink::Outside => Some(OUTSIDE_CORE),
            Sink::Inside => None,
        };
        self.links.ends().iter().try_for_each(|(machine, interface)| steer(&self.lab, machine, interface, core))
    }

    /// Returns whether the node's core takes the generator's packets from a queue, as a card's, and so does all that the router
    /// does for them.
    pub fn has_arrival(&self) -> bool {
        self.has_arrival.get()
    }

    /// Starts a program on the node's core that never sleeps.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_hog(&mut self) -> Result<()> {
        let mut command = self.lab.command("n1", "sh");
        command.args(["-c", "while :; do :; done"]);
        keep(self.lab.start("n1", HOG, &mut command)?)
    }

    /// Returns what runs on the router.
    pub fn pids(&self) -> Vec<u32> {
        ["netservd", "null", HOG].into_iter().filter_map(|name| self.lab.pid("n1", name)).collect()
    }

    /// Returns what was seen so far, and, if wanted, what the node's metrics say became of other packets.
    ///
    /// # Errors
    /// The node does not answer.
    pub fn counts(&self, seen_by: SeenBy, with_metrics: bool) -> Result<Counts> {
        if seen_by == SeenBy::Driver {
            return Ok(Counts::of_driver(Passed::last_of(&self.lab.log("n1", "null"))));
        }
        let seen = match seen_by {
            SeenBy::Modules(_) => self.seen()?,
            SeenBy::Nobody | SeenBy::Driver | SeenBy::Queue => 0,
        };
        let metrics = match with_metrics && self.lab.pid("n1", "netservd").is_some() {
            true => self.lab.get("n1", "/metrics")?,
            false => String::new(),
        };
        Ok(Counts::of_node(seen, &metrics))
    }

    /// Returns the same once so many packets more were seen, or no more are.
    ///
    /// # Errors
    /// The node does not answer.
    pub fn settled(&self, seen_by: SeenBy, with_metrics: bool, before: &Counts, sent: u64) -> Result<Counts> {
        let wanted = before.seen + sent * if let SeenBy::Modules(modules) = seen_by { modules } else { 1 };
        let began = Instant::now();
        let (mut last, mut changed) = (before.seen, began);
        let counts_seen = !matches!(seen_by, SeenBy::Nobody | SeenBy::Queue);
        while counts_seen && last < wanted && changed.elapsed() < STILL && began.elapsed() < SETTLE_MAX {
            std::thread::sleep(LOOK);
            let seen = self.counts(seen_by, false)?.seen;
            if seen != last {
                (last, changed) = (seen, Instant::now());
            }
        }
        if with_metrics {
            std::thread::sleep(METRICS_AGE.saturating_sub(began.elapsed()));
        }
        self.counts(seen_by, with_metrics)
    }

    /// Returns how many packets the modules have seen so far, all together.
    fn seen(&self) -> Result<u64> {
        let list: ModuleList =
            serde_json::from_str(&self.lab.get("n1", "/v1/modules")?).context("the list of modules")?;
        Ok(list.modules.iter().map(|module| module.packets.seen).sum())
    }
}
