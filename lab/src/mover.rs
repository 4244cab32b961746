// SPDX-License-Identifier: Apache-2.0
//! net-monitor on one node of a way, which the agent moves by rule: nobody types a command.

use std::os::unix::net::UnixDatagram;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use netserv_api::AgentMove;
use netserv_model::NodeId;
use netserv_model::request::{ModuleState, ModuleStatus};

use crate::netns::Lab;
use crate::node::{LabPackage, LabUser, module_wasm, workspace};
use crate::patience::wait_for;
use crate::states::StateStore;
use crate::{agent, moving, relocating};

/// `sender – n1 – na – r – receiver`, and `n1 – nb – r`, with an agent at the sender, to which the receiver is a client that comes all the time.
pub struct Mover {
    /// The network.
    pub lab: Lab,
    /// The provider.
    pub user: LabUser,
    /// The module's package.
    pub package: LabPackage,
    rules: String,
    clients: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
}

/// The nodes, nearest to the sender first.
pub const NODES: [&str; 3] = ["n1", "na", "nb"];

impl Mover {
    /// Starts it over a driver, with keys of the rule's `move` and of the rule, and lines for the provider on some nodes. The module is on the
    /// node that suits it best, which is the last one of the way unless that says otherwise.
    ///
    /// # Errors
    /// Something does not start.
    pub fn up(driver: &str, keys: &str, limits: &[(&str, &str)]) -> Result<Mover> {
        Mover::up_with(driver, keys, limits, "")
    }

    /// The same with a package that has these lines below `[needs]`; `PACKAGE` in keys is its file.
    ///
    /// # Errors
    /// As of [`Mover::up`].
    pub fn up_with(driver: &str, keys: &str, limits: &[(&str, &str)], needs: &str) -> Result<Mover> {
        let mut lab = Lab::up(moving::two_ways())?;
        lab.use_driver(driver);
        let user = lab.user("janedoe", &[&format!("{}/32", lab.v4("sender"))])?;
        let config = StateStore::config(&lab, "sender");
        for node in NODES {
            let extra = limits.iter().find(|(limited, _)| *limited == node).map_or("", |(_, extra)| *extra).to_owned();
            own_load(&mut lab, node, 0.0)?;
            lab.start_netservd(node, "node", &[LabUser { extra, ..user.clone() }], &config)?;
        }
        lab.use_wrapper(&[]);
        lab.start_netservd("sender", "host", &[], "")?;
        lab.serve_http("sender")?;
        let store = StateStore::open(&mut lab, "sender")?;
        let package = needing(&lab, &user, needs)?;
        let keys = keys.replace("PACKAGE", &format!("{:?}", package.path));
        let url = lab.publish("sender", &package)?;
        let rules = format!(
            "[[log]]\nname = \"clients\"\nsocket = {:?}\npattern = \"client {{client}} \"\n\
             [[rule]]\nname = \"count\"\nlog = \"clients\"\nmodule = {:?}\nurl = {url:?}\n\
             digest = \"{}\"\nfilters = [\"{}\"]\nlease-s = 20\ndeployments-max = 1\n\
             move = {{ store = {:?}, every-s = 1, {keys} }}\n",
            lab.dir().join("clients.sock"),
            package.module,
            package.digest,
            relocating::filter(&lab),
            store.url("").trim_end_matches('/')
        );
        Ok(Mover { lab, user, package, rules, clients: None })
    }

    /// Starts the agent, and has clients come.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_agent(&mut self) -> Result<()> {
        agent::start(&mut self.lab, &self.user, &self.rules)?;
        if self.clients.is_none() {
            self.clients = Some(coming(&self.lab)?);
        }
        Ok(())
    }

    /// Waits until these nodes have the module, and no others.
    ///
    /// # Errors
    /// Others have it after a time, which grows with the machine's load.
    pub fn wait_for(&self, wanted: &[&str], time: Duration) -> Result<()> {
        let mut last = Vec::new();
        let is_so = || {
            last = self.owners().unwrap_or_default();
            let runs = last.iter().all(|(_, state)| *state == ModuleState::Running);
            runs && last.iter().map(|(node, _)| &**node).eq(wanted.iter().copied())
        };
        let waited = wait_for(&format!("{} to have the module, and nobody else", wanted.join(" and ")), time, is_so);
        let seen = || format!("{last:?} have it\n{}", self.lab.log("sender", "agent"));
        Ok(waited.map_err(|gave_up| gave_up.seeing(seen()))?)
    }

    /// Returns the nodes that have the module, and in which state.
    ///
    /// # Errors
    /// A node does not say.
    pub fn owners(&self) -> Result<Vec<(String, ModuleState)>> {
        let name = self.package.module.split('@').next().unwrap_or_default();
        let own = |status: &ModuleStatus| status.module.name.as_str() == name;
        let mut all = Vec::new();
        for node in NODES {
            let there = self.lab.modules(node)?.modules;
            all.extend(there.iter().filter(|status| own(status)).map(|status| (node.to_owned(), status.state)));
        }
        Ok(all)
    }

    /// Returns what the module has counted, as its node tells.
    ///
    /// # Errors
    /// The node does not say.
    pub fn counted(&self, node: &str) -> Result<u64> {
        relocating::counted(&self.lab, node)
    }

    /// Has so many datagrams a second come for a while.
    ///
    /// # Errors
    /// The program does not start.
    pub fn stream(&self, rate: u64, seconds: u64) -> Result<Child> {
        relocating::stream(&self.lab, rate, seconds)
    }

    /// Has a node be drained, or take modules again.
    ///
    /// # Errors
    /// The node does not.
    pub fn drain(&self, node: &str, is_on: bool) -> Result<()> {
        let undo: &[&str] = if is_on { &[] } else { &["--undo"] };
        self.lab.netserv(node, &[&["node", "drain"], undo].concat()).map(drop)
    }

    /// Has a node have a load average for each processor.
    ///
    /// # Errors
    /// It cannot be told.
    pub fn load(&self, node: &str, load: f64) -> Result<()> {
        write_load(&self.lab, node, load).map(drop)
    }

    /// Has the way to the client lead through `na` or `nb`, and back.
    ///
    /// # Errors
    /// `ip` refuses.
    pub fn lead_through(&self, node: &str) -> Result<()> {
        moving::lead_through(&self.lab, node, false)?;
        moving::lead_back_through(&self.lab, node)
    }

    /// Returns the moves that the agent tells of: from, to, why, and how each is.
    ///
    /// # Errors
    /// The agent does not answer.
    pub fn moves(&self) -> Result<Vec<[String; 4]>> {
        let told = |AgentMove { from, to, why, state, .. }| {
            let name = |node: NodeId| node.to_string();
            [name(from), name(to), why, state]
        };
        Ok(agent::status(&self.lab)?.moves.into_iter().map(told).collect())
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        if let Some((end, clients)) = self.clients.take() {
            end.store(true, Ordering::Relaxed);
            // It has nothing to say.
            let _ = clients.join();
        }
    }
}

/// Returns net-monitor's package with lines below `[needs]`.
fn needing(lab: &Lab, user: &LabUser, needs: &str) -> Result<LabPackage> {
    let manifest = std::fs::read_to_string(workspace().join("modules/apps/net-monitor/netserv.toml"))?;
    let (project, package) = (lab.dir().join("needing.toml"), lab.dir().join("needing.nsm"));
    std::fs::write(&project, manifest.replacen("[limits]\n", &format!("[needs]\n{needs}\n[limits]\n"), 1))?;
    lab.package_from(&project, &module_wasm("net-monitor")?, &package, user)
}

/// Has daemons that are started from here on see a load average of their own, as a machine of their own does.
fn own_load(lab: &mut Lab, node: &str, load: f64) -> Result<()> {
    let file = write_load(lab, node, load)?;
    let file = file.to_str().context("the lab's directory")?;
    let mount = "mount --bind \"$0\" /proc/loadavg && exec \"$@\"";
    lab.use_wrapper(&["unshare", "--mount", "--propagation", "slave", "sh", "-c", mount, file]);
    Ok(())
}

fn write_load(lab: &Lab, node: &str, load: f64) -> Result<std::path::PathBuf> {
    let file = lab.dir().join(format!("{node}.loadavg"));
    let processors = std::thread::available_parallelism()?.get();
    // In place, since it is mounted.
    std::fs::write(&file, format!("{:.2} 0.00 0.00 1/1 1\n", load * f64::from(u32::try_from(processors)?)))?;
    Ok(file)
}

/// Has the agent see the receiver all the time.
fn coming(lab: &Lab) -> Result<(Arc<AtomicBool>, JoinHandle<()>)> {
    let (end, path, line) =
        (Arc::new(AtomicBool::new(false)), lab.dir().join("clients.sock"), format!("client {} ", lab.v4("receiver")));
    let (socket, is_over) = (UnixDatagram::unbound()?, Arc::clone(&end));
    let clients = std::thread::spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            // The agent may be away.
            let _ = socket.send_to(line.as_bytes(), &path);
            std::thread::sleep(EVERY);
        }
    });
    Ok((end, clients))
}

const EVERY: Duration = Duration::from_millis(200);
