// SPDX-License-Identifier: Apache-2.0
//! SETUP over two nodes: from posting the request to the whole response stack.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use netserv_model::Flavour;
use netserv_model::api::RequestResult;
use netserv_model::request::Outcome;

use super::Plan;
use super::goals::Goal;
use super::pin::favour_workers;
use super::summary::{Figure, Row};
use crate::netns::Lab;
use crate::node::FILES_ALLOWED;
use crate::node::{LabPackage, LabUser, module_parts, workspace};
use crate::topology::{Kind, Topology};

/// Measures SETUP and REMOVE over two nodes, with the module in the nodes' stores and without.
///
/// # Errors
/// A node refuses, or does not answer.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let times = Times::of(&Net::up(&["n1", "n2"])?, plan.setups, plan.setups_uncached)?;
    let how = "sender (host) – n1 – plain router – n2 – receiver, all on one machine; a signed SETUP of net-monitor, from \
               posting it to the sender's netservd until the whole response stack is back (took_us of the result, so \
               without the command line's own start). Each SETUP is a session of its own: GIST handshakes on both legs, \
               a container started, the module loaded, rules made, the lease on disk. REMOVE after each. Not cached: \
               a package that the nodes have not seen, fetched from the sender and compiled on both.";
    let rows = times.rows(Goal::SetupCached, Goal::SetupFetched);
    Ok(vec![Figure { name: "SETUP over two nodes", how: how.to_owned(), rows }])
}

/// Measures the same over five nodes.
///
/// # Errors
/// A node refuses, or does not answer.
pub fn over_five(plan: &Plan) -> Result<Figure> {
    let net = Net::up(&["n1", "n2", "n3", "n4", "n5"])?;
    let times = Times::of(&net, plan.setups_long, plan.setups_long_uncached)?;
    let how = "As over two nodes, with sender (host) – n1 – plain router – n2 – n3 – n4 – n5 – receiver, all on one machine: \
               five containers start at once.";
    let rows = times.rows(Goal::SetupFiveCached, Goal::SetupFiveFetched);
    Ok(Figure { name: "SETUP over five nodes", how: how.to_owned(), rows })
}

/// Measures TELL over three nodes.
///
/// # Errors
/// A node refuses, or does not answer.
pub fn tell_three(plan: &Plan) -> Result<Figure> {
    let net = Net::up(&["n1", "n2", "n3"])?;
    net.setup(&net.package(0, Flavour::Wasm)?)?;
    net.favour()?;
    let mut took = Vec::new();
    for _ in 0..plan.tells {
        took.push(net.tell()?);
        std::thread::sleep(TELL_EVERY);
    }
    let how = "As over two nodes, with sender (host) – n1 – plain router – n2 – n3 – receiver: a signed TELL of one byte, which is                in the inbox of net-monitor on all three when the answer is back. Nothing of it is kept for the next but connections.";
    let rows = vec![Row::new("TELL to three nodes and back", "ms", &took).goal(Goal::TellThree)];
    Ok(Figure { name: "TELL over three nodes", how: how.to_owned(), rows })
}

/// No module takes more than 20 messages a second.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// What requests took, in ms.
#[derive(Default)]
struct Times {
    cached: Vec<f64>,
    in_one_node: Vec<f64>,
    refresh: Vec<f64>,
    remove: Vec<f64>,
    fetched: Vec<f64>,
    first_of_all: Vec<f64>,
}

impl Times {
    fn of(net: &Net, cached: usize, uncached: usize) -> Result<Times> {
        let mut times = Times::default();
        for number in 0..uncached {
            let package = net.package(number, Flavour::Wasm)?;
            let took = net.setup(&package)?.whole;
            if number == 0 { &mut times.first_of_all } else { &mut times.fetched }.push(took);
            net.favour()?;
            net.remove(&package)?;
        }
        let package = net.package(0, Flavour::Wasm)?;
        for _ in 0..cached {
            let took = net.setup(&package)?;
            times.cached.push(took.whole);
            times.in_one_node.extend(took.nodes);
            times.refresh.push(net.setup(&package)?.whole);
            times.remove.push(net.remove(&package)?);
        }
        Ok(times)
    }

    fn rows(&self, cached: Goal, fetched: Goal) -> Vec<Row> {
        vec![
            Row::new("SETUP, module cached", "ms", &self.cached).goal(cached),
            Row::new("of it in one node", "ms", &self.in_one_node),
            Row::new("SETUP of what is installed (refresh)", "ms", &self.refresh),
            Row::new("REMOVE", "ms", &self.remove),
            Row::new("SETUP, module not cached", "ms", &self.fetched).goal(fetched),
            Row::new("the very first SETUP of the nodes", "ms", &self.first_of_all),
        ]
    }
}

/// Nodes on a path.
pub struct Net {
    lab: Lab,
    user: LabUser,
    nodes: Vec<String>,
}

/// How long a SETUP took, in ms.
pub struct Took {
    /// Until the whole response stack was back.
    pub whole: f64,
    /// In each node.
    pub nodes: Vec<f64>,
}

impl Net {
    /// Builds the network, with a plain router after the first node.
    ///
    /// # Errors
    /// A daemon does not start.
    pub fn up(nodes: &[&str]) -> Result<Net> {
        let mut chain = vec![("sender", Kind::Host)];
        chain.extend(nodes.iter().map(|node| (*node, Kind::Node)));
        chain.insert(2, ("r", Kind::Router));
        chain.push(("receiver", Kind::Host));
        let mut lab = Lab::up(Topology::chain(&chain))?;
        let user = lab.user("janedoe", &[&format!("{}/32", lab.v4("sender"))])?;
        for node in nodes {
            lab.start_netservd(node, "node", std::slice::from_ref(&user), FILES_ALLOWED)?;
        }
        lab.start_netservd("sender", "host", &[], "")?;
        lab.serve_http("sender")?;
        Ok(Net { lab, user, nodes: nodes.iter().map(ToString::to_string).collect() })
    }

    /// Packs net-monitor under a version of its own, so that no node has seen it.
    ///
    /// # Errors
    /// It is not built.
    pub fn package(&self, number: usize, flavour: Flavour) -> Result<LabPackage> {
        let source = std::fs::read_to_string(workspace().join("modules/apps/net-monitor/netserv.toml"))?;
        let text = source.replacen("version = \"1.0.0\"", &format!("version = \"1.0.{number}\""), 1);
        // Recorded tests lie beside the module's own manifest, and the nodes do not run them.
        let text = text.split("[[test]]").next().context("the manifest is empty")?;
        let manifest = self.lab.dir().join("net-monitor.toml");
        std::fs::write(&manifest, text)?;
        let path = self.lab.dir().join(format!("net-monitor-{flavour}-{number}.nsm"));
        self.lab.package_of(&manifest, &module_parts("net-monitor", flavour)?, &path, &self.user)
    }

    /// Packs keep-alive.
    ///
    /// # Errors
    /// It is not built.
    pub fn other(&self, flavour: Flavour) -> Result<LabPackage> {
        self.lab.package_in("keep-alive", &[flavour], &self.user)
    }

    /// Installs a package on all nodes.
    ///
    /// # Errors
    /// One refuses it.
    pub fn setup(&self, package: &LabPackage) -> Result<Took> {
        let url = self.lab.publish("sender", package)?;
        let (file, to) = (package.path.to_string_lossy().into_owned(), self.lab.v4("receiver").to_string());
        let filter = format!("udp dst {}/32 port 5060", self.lab.v4("sender"));
        let result = self.request(&["setup", &file, "--to", &to, "--url", &url, "--filter", &filter])?;
        let good = |outcome: &Outcome| matches!(outcome, Outcome::Installed { .. } | Outcome::Refreshed { .. });
        self.all(&result, good)?;
        Ok(Took {
            whole: millis(result.took_us),
            nodes: result.nodes.iter().map(|node| millis(node.took_us)).collect(),
        })
    }

    /// Removes a package from all nodes, and returns how long that took, in ms.
    ///
    /// # Errors
    /// One refuses it.
    pub fn remove(&self, package: &LabPackage) -> Result<f64> {
        let name = package.module.split('@').next().unwrap_or_default();
        let result = self.request(&["remove", name, "--to", &self.lab.v4("receiver").to_string()])?;
        self.all(&result, |outcome| *outcome == Outcome::Removed)?;
        Ok(millis(result.took_us))
    }

    /// Tells net-monitor something on all nodes, and returns how long that took, in ms.
    fn tell(&self) -> Result<f64> {
        let (module, to) = ("example.org/net-monitor", self.lab.v4("receiver").to_string());
        let result = self.request(&["tell", module, "--topic", "sample", "--to", &to, "1"])?;
        self.all(&result, |outcome| *outcome == Outcome::Told)?;
        Ok(millis(result.took_us))
    }

    /// Has what the nodes start from here on go before other programs of the machine.
    fn favour(&self) -> Result<()> {
        let pids = self.nodes.iter().filter_map(|node| self.lab.pid(node, "netservd"));
        pids.into_iter().try_for_each(favour_workers)
    }

    fn request(&self, args: &[&str]) -> Result<RequestResult> {
        let key = self.user.key.to_string_lossy().into_owned();
        self.lab.request("sender", &[args, &["--user", "janedoe", "--key", &key]].concat())
    }

    fn all(&self, result: &RequestResult, good: impl Fn(&Outcome) -> bool) -> Result<()> {
        let answered = result.nodes.iter().filter(|node| good(&node.outcome)).count();
        let whole = answered == self.nodes.len() && result.incomplete.is_none();
        ensure!(whole, "not done on all {} nodes: {result:?}", self.nodes.len());
        Ok(())
    }
}

#[allow(clippy::cast_precision_loss, reason = "a time in microseconds")]
fn millis(micros: u64) -> f64 {
    micros as f64 / 1000.0
}
