// SPDX-License-Identifier: Apache-2.0
//! SETUP over two nodes: from posting the request to the whole response stack.

use anyhow::{Context, Result, ensure};
use netserv_model::Flavour;
use netserv_model::api::RequestResult;
use netserv_model::request::Outcome;

use super::Plan;
use super::goals::Goal;
use super::summary::{Figure, Row};
use crate::demo::FILES_ALLOWED;
use crate::netns::Lab;
use crate::node::{LabPackage, LabUser, module_parts, workspace};
use crate::topology::{Kind, Topology};

/// Measures SETUP and REMOVE, with the module in the nodes' stores and without.
///
/// # Errors
/// A node refuses, or does not answer.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let net = Net::up()?;
    let (mut fresh, mut first_of_all) = (Vec::new(), Vec::new());
    for number in 0..plan.setups_uncached {
        let package = net.package(number, Flavour::Wasm)?;
        let took = net.setup(&package)?;
        if number == 0 {
            first_of_all.push(took.whole);
        } else {
            fresh.push(took.whole);
        };
        net.remove(&package)?;
    }
    let package = net.package(0, Flavour::Wasm)?;
    let (mut whole, mut nodes, mut refresh, mut remove) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.setups {
        let took = net.setup(&package)?;
        whole.push(took.whole);
        nodes.extend(took.nodes);
        refresh.push(net.setup(&package)?.whole);
        remove.push(net.remove(&package)?);
    }
    let how = "sender (host) – n1 – plain router – n2 – receiver, all on one machine; a signed SETUP of net-monitor, from \
               posting it to the sender's netservd until the whole response stack is back (took_us of the result, so \
               without the command line's own start). Each SETUP is a session of its own: GIST handshakes on both legs, \
               a container started, the module loaded, rules made, the lease on disk. REMOVE after each. Not cached: \
               a package that the nodes have not seen, fetched from the sender and compiled on both.";
    let rows = vec![
        Row::new("SETUP, module cached", "ms", &whole).goal(Goal::SetupCached),
        Row::new("of it in one node", "ms", &nodes),
        Row::new("SETUP of what is installed (refresh)", "ms", &refresh),
        Row::new("REMOVE", "ms", &remove),
        Row::new("SETUP, module not cached", "ms", &fresh).goal(Goal::SetupFetched),
        Row::new("the very first SETUP of the nodes", "ms", &first_of_all),
    ];
    Ok(vec![Figure { name: "SETUP over two nodes", how: how.to_owned(), rows }])
}

/// Two nodes on a path.
pub struct Net {
    lab: Lab,
    user: LabUser,
}

/// How long a SETUP took, in ms.
pub struct Took {
    /// Until the whole response stack was back.
    pub whole: f64,
    /// In each node.
    pub nodes: Vec<f64>,
}

impl Net {
    /// Builds the network.
    ///
    /// # Errors
    /// A daemon does not start.
    pub fn up() -> Result<Net> {
        let chain = [
            ("sender", Kind::Host),
            ("n1", Kind::Node),
            ("r", Kind::Router),
            ("n2", Kind::Node),
            ("receiver", Kind::Host),
        ];
        let mut lab = Lab::up(Topology::chain(&chain))?;
        let user = lab.user("janedoe", &[&format!("{}/32", lab.v4("sender"))])?;
        for node in ["n1", "n2"] {
            lab.start_netservd(node, "node", std::slice::from_ref(&user), FILES_ALLOWED)?;
        }
        lab.start_netservd("sender", "host", &[], "")?;
        lab.serve_http("sender")?;
        Ok(Net { lab, user })
    }

    /// Packs net-monitor under a version of its own, so that no node has seen it.
    ///
    /// # Errors
    /// It is not built.
    pub fn package(&self, number: usize, flavour: Flavour) -> Result<LabPackage> {
        let source = std::fs::read_to_string(workspace().join("modules/net-monitor/netserv.toml"))?;
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

    /// Installs a package on both nodes.
    ///
    /// # Errors
    /// One refuses it.
    pub fn setup(&self, package: &LabPackage) -> Result<Took> {
        let url = self.lab.publish("sender", package)?;
        let (file, to) = (package.path.to_string_lossy().into_owned(), self.lab.v4("receiver").to_string());
        let filter = format!("udp dst {}/32 port 5060", self.lab.v4("sender"));
        let result = self.request(&["setup", &file, "--to", &to, "--url", &url, "--filter", &filter])?;
        let good = |outcome: &Outcome| matches!(outcome, Outcome::Installed { .. } | Outcome::Refreshed { .. });
        both(&result, good)?;
        Ok(Took {
            whole: millis(result.took_us),
            nodes: result.nodes.iter().map(|node| millis(node.took_us)).collect(),
        })
    }

    /// Removes a package from both nodes, and returns how long that took, in ms.
    ///
    /// # Errors
    /// One refuses it.
    pub fn remove(&self, package: &LabPackage) -> Result<f64> {
        let name = package.module.split('@').next().unwrap_or_default();
        let result = self.request(&["remove", name, "--to", &self.lab.v4("receiver").to_string()])?;
        both(&result, |outcome| *outcome == Outcome::Removed)?;
        Ok(millis(result.took_us))
    }

    fn request(&self, args: &[&str]) -> Result<RequestResult> {
        let key = self.user.key.to_string_lossy().into_owned();
        self.lab.request("sender", &[args, &["--user", "janedoe", "--key", &key]].concat())
    }
}

fn both(result: &RequestResult, good: impl Fn(&Outcome) -> bool) -> Result<()> {
    let answered = result.nodes.iter().filter(|node| good(&node.outcome)).count();
    ensure!(answered == 2 && result.incomplete.is_none(), "not done on both nodes: {result:?}");
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "a time in microseconds")]
fn millis(micros: u64) -> f64 {
    micros as f64 / 1000.0
}
