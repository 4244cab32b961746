// SPDX-License-Identifier: Apache-2.0
//! The network that most end-to-end tests use.
#![allow(dead_code, reason = "each test file uses some of it")]

pub mod browser;
pub mod radio;
mod serving;
pub mod store;

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use netserv_lab::netns::{Lab, is_root, wait_until};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::node::{LabPackage, LabUser, Part};
use netserv_lab::patience::grown;
use netserv_lab::topology::Topology;
use netserv_model::api::RequestResult;
use netserv_model::request::{ModuleStatus, NodeReport, Outcome};
use netserv_model::{Refusal, RefusalKind};
use netserv_skips::skipped;

#[allow(unused_imports, reason = "some test files use it")]
pub use serving::Serving;

/// `sender – n1 – r – n2 – receiver`, with daemons, a web server on the sender, and the user `janedoe`, who owns the
/// sender's addresses.
pub struct Net {
    pub lab: Lab,
    pub user: LabUser,
    pub others: Vec<LabUser>,
}

/// Returns of how many worlds a test is: a tenth in CI, and all where the environment has `NETSERV_FULL`, as `./dev truth` and
/// `./dev ci --all` have it.
pub fn shortened(full: u64) -> u64 {
    if std::env::var_os("NETSERV_FULL").is_some() { full } else { full / 10 }
}

/// A driver by which a node takes its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    Afxdp,
    Nfqueue,
}

impl Driver {
    pub fn name(self) -> &'static str {
        match self {
            Driver::Afxdp => "afxdp",
            Driver::Nfqueue => "nfqueue",
        }
    }
}

/// Makes of each function, which takes a driver, two tests: one over each driver.
#[macro_export]
macro_rules! over_each_driver {
    ($($test:ident),+ $(,)?) => {
        mod afxdp {
            $(#[test] fn $test() { super::$test($crate::common::Driver::Afxdp); })+
        }
        mod nfqueue {
            $(#[test] fn $test() { super::$test($crate::common::Driver::Nfqueue); })+
        }
    };
}

/// Makes of each function, which takes a driver, a test over the driver that it stands behind, and one over the other driver
/// that only `./dev ci --all` runs: for tests that are not about drivers. Chosen so that each topic has both.
#[macro_export]
macro_rules! over_one_driver {
    (afxdp: [$($afxdp:ident),* $(,)?] nfqueue: [$($nfqueue:ident),* $(,)?]) => {
        mod afxdp {
            $(#[test] fn $afxdp() { super::$afxdp($crate::common::Driver::Afxdp); })*
        }
        mod nfqueue {
            $(#[test] fn $nfqueue() { super::$nfqueue($crate::common::Driver::Nfqueue); })*
        }
        mod product {
            mod afxdp {
                $(#[test] fn $nfqueue() { super::super::$nfqueue($crate::common::Driver::Afxdp); })*
            }
            mod nfqueue {
                $(#[test] fn $afxdp() { super::super::$afxdp($crate::common::Driver::Nfqueue); })*
            }
        }
    };
}

thread_local! {
    /// The lanes that nodes of this test are to have; 0 leaves it to them.
    static LANES: Cell<usize> = const { Cell::new(0) };
}

/// Has the nodes of this test take their packets in so many lanes, where the driver can have them.
pub fn use_lanes(lanes: usize) {
    LANES.set(lanes);
}

/// Makes of each function, which takes a driver, two more tests: one over each driver with four lanes.
#[macro_export]
macro_rules! over_each_driver_in_four_lanes {
    ($($test:ident),+ $(,)?) => {
        mod afxdp_lanes {
            $(#[test] fn $test() { $crate::common::use_lanes(4); super::$test($crate::common::Driver::Afxdp); })+
        }
        mod nfqueue_lanes {
            $(#[test] fn $test() { $crate::common::use_lanes(4); super::$test($crate::common::Driver::Nfqueue); })+
        }
    };
}

/// Builds the network, or says that the test is skipped.
pub fn net(test: &str, driver: Driver) -> Option<Net> {
    net_with(test, driver, FILES_ALLOWED, &[])
}

/// The same with another configuration of both nodes, and further users.
pub fn net_with(test: &str, driver: Driver, extra: &str, others: &[(&str, &[&str])]) -> Option<Net> {
    if !is_root() {
        skipped(test, "not root, so no namespaces");
        return None;
    }
    let mut lab = Lab::up(Topology::two_nodes()).unwrap();
    lab.use_driver(driver.name());
    if LANES.get() > 0 {
        lab.use_lanes(LANES.get());
    }
    let own = [format!("{}/32", lab.v4("sender")), format!("{}/128", lab.v6("sender"))];
    let user = lab.user("janedoe", &[&own[0], &own[1]]).unwrap();
    let mut users = vec![user.clone()];
    users.extend(others.iter().map(|(name, prefixes)| lab.user(name, prefixes).unwrap()));
    for node in ["n1", "n2"] {
        lab.start_netservd(node, "node", &users, extra).unwrap();
    }
    lab.start_netservd("sender", "host", &[], "").unwrap();
    lab.serve_http("sender").unwrap();
    Some(Net { lab, user, others: users.split_off(1) })
}

impl Net {
    /// Packs, signs and publishes a sample module, and returns it with its URL.
    pub fn publish(&self, module: &str) -> (LabPackage, String) {
        let package = self.lab.package(module, &self.user).unwrap();
        let url = self.lab.publish("sender", &package).unwrap();
        (package, url)
    }

    /// Sends a SETUP from the sender toward the receiver as `janedoe`.
    pub fn setup(&self, package: &LabPackage, url: &str, filter: &str) -> RequestResult {
        self.setup_with(package, url, filter, &[])
    }

    /// The same with further arguments.
    pub fn setup_with(&self, package: &LabPackage, url: &str, filter: &str, more: &[&str]) -> RequestResult {
        let file = package.path.to_string_lossy().into_owned();
        let receiver = self.lab.v4("receiver").to_string();
        let mut args = vec!["setup", &file, "--to", &receiver, "--url", url, "--filter", filter];
        args.extend(more);
        self.request(&args)
    }

    /// Sends any request from the sender as `janedoe`.
    pub fn request(&self, args: &[&str]) -> RequestResult {
        request_as(&self.lab, &self.user, args)
    }

    /// Sends a REMOVE toward the receiver.
    pub fn remove(&self, package: &LabPackage) -> RequestResult {
        let name = package.module.split('@').next().unwrap();
        self.request(&["remove", name, "--to", &self.lab.v4("receiver").to_string()])
    }

    /// Returns the module's status on a node.
    pub fn status(&self, node: &str, package: &LabPackage) -> Option<ModuleStatus> {
        let list = self.lab.modules(node).unwrap();
        list.modules.into_iter().find(|status| status.module.to_string() == package.module)
    }

    /// Sends one UDP datagram from the receiver and returns what comes back within half a second.
    pub fn ask_udp(&self, destination: IpAddr, port: u16, text: &str) -> Option<String> {
        ask_udp(&self.lab, "receiver", destination, port, text)
    }
}

/// `sender – node – receiver`, whose node gives containers addresses of `prefixes`, as [`netserv_lab::serving::network`] makes it, or
/// says that the test is skipped.
pub fn serving_net<const N: usize>(
    test: &str,
    driver: Driver,
    prefixes: &[&str],
    users: [(&str, &str); N],
) -> Option<(Lab, [LabUser; N])> {
    if !is_root() {
        skipped(test, "not root, so no namespaces");
        return None;
    }
    Some(netserv_lab::serving::network(Some(driver.name()), prefixes, users).unwrap())
}

/// Sends any request from the sender as a user.
pub fn request_as(lab: &Lab, user: &LabUser, args: &[&str]) -> RequestResult {
    let key = user.key.to_string_lossy().into_owned();
    lab.request("sender", &[args, &["--user", &user.name, "--key", &key]].concat()).unwrap()
}

/// Sends one UDP datagram from a machine and returns what comes back within half a second.
pub fn ask_udp(lab: &Lab, machine: &str, destination: IpAddr, port: u16, text: &str) -> Option<String> {
    let wait = grown(Duration::from_millis(700));
    let ask = || -> std::io::Result<String> {
        let socket = sending_udp(destination, port)?;
        socket.set_read_timeout(Some(wait))?;
        socket.send(text.as_bytes())?;
        let mut answer = [0; 2048];
        let length = socket.recv(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
    };
    lab.within(machine, ask).unwrap().ok().filter(|answer| !answer.is_empty())
}

/// Opens a socket for datagrams to an address and port, in the namespace that this thread is in.
pub fn sending_udp(destination: IpAddr, port: u16) -> std::io::Result<UdpSocket> {
    let any: IpAddr = if destination.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((destination, port))?;
    Ok(socket)
}

/// Returns the one refusal that all nodes agree on.
pub fn refusal(result: &RequestResult) -> Refusal {
    let refusals: Vec<Refusal> = result
        .nodes
        .iter()
        .map(|node| match &node.outcome {
            Outcome::Refused(refusal) => refusal.clone(),
            Outcome::Installed { .. }
            | Outcome::Refreshed { .. }
            | Outcome::Replaced { .. }
            | Outcome::Removed
            | Outcome::Told
            | Outcome::Exported { .. }
            | Outcome::Probed
            | Outcome::WouldDo { .. }
            | Outcome::NotTargeted { .. } => panic!("{} did not refuse but {:?}", node.node, node.outcome),
        })
        .collect();
    assert!(!refusals.is_empty(), "no node answered: {result:?}");
    assert!(refusals.iter().all(|refusal| refusal.kind == refusals[0].kind), "{refusals:?}");
    refusals[0].clone()
}

/// Asserts that every node refused with a kind, and two did.
pub fn assert_refused(result: &RequestResult, kind: RefusalKind) {
    let refusal = refusal(result);
    assert_eq!(refusal.kind, kind, "{refusal}");
    assert_eq!(result.nodes.len(), 2, "{result:?}");
}

/// Asserts that both nodes, in the order of the path, did what is expected. The sender's own entry, which only a PROBE
/// has, does not count.
pub fn assert_nodes(result: &RequestResult, expected: impl Fn(&Outcome) -> bool) {
    assert_eq!(result.incomplete, None);
    let nodes: Vec<&NodeReport> = result.nodes.iter().filter(|node| node.node.as_str() != "sender").collect();
    let names: Vec<&str> = nodes.iter().map(|node| node.node.as_str()).collect();
    assert_eq!(names, ["n1", "n2"]);
    for node in nodes {
        assert!(expected(&node.outcome), "{}: {:?}", node.node, node.outcome);
    }
}

/// Posts a message to the sender's daemon as it is, toward the receiver.
pub fn post(net: &Net, message: &str) -> RequestResult {
    let body = serde_json::json!({ "message": message, "path": { "destination": net.lab.v4("receiver") } });
    let answer = post_body(net, &body);
    serde_json::from_value(answer.clone()).unwrap_or_else(|_| panic!("{answer}"))
}

/// Posts any body to the sender's daemon, and returns what it answers.
pub fn post_body(net: &Net, body: &serde_json::Value) -> serde_json::Value {
    let mut command = Command::new("curl");
    command
        .args(["--silent", "--show-error", "--data", &body.to_string(), "--unix-socket"])
        .arg(net.lab.socket("sender"));
    let output = command.arg("http://netserv/v1/requests").output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stdout)))
}

/// Packs one of the modules that misbehave. They are text in Wasm's own form; one is no module at all.
pub fn publish_bad(net: &Net, name: &str) -> (LabPackage, String) {
    let dir = netserv_lab::node::workspace().join("modules/fixtures/bad");
    let wasm = net.lab.dir().join(format!("{name}.wasm"));
    match std::fs::read_to_string(dir.join(format!("{name}.wat"))) {
        Ok(source) => std::fs::write(&wasm, wat::parse_str(&source).unwrap()).unwrap(),
        // What is no module at all is not even packed; this has a module's first bytes, and then no module.
        Err(_) => std::fs::write(&wasm, b"\0asm\x01\0\0\0 and nothing that follows is a section").unwrap(),
    }
    let manifest = manifest(net.lab.dir(), name);
    let package =
        net.lab.package_from(&manifest, &wasm, &net.lab.dir().join(format!("{name}.nsm")), &net.user).unwrap();
    let url = net.lab.publish("sender", &package).unwrap();
    (package, url)
}

/// Packs a bundle as a module of a name, with small limits.
pub fn publish_bundle(net: &Net, name: &str, properties: &str, bundle: PathBuf) -> (LabPackage, String) {
    let manifest = net.lab.dir().join(format!("{name}.toml"));
    let text = format!(
        "manifest = 1\nname = \"example.org/{name}\"\nversion = \"1.0.0\"\n[packet]\n[limits]\ncall-ms = 300\n\
         memory-bytes = 4194304\nkv-entries = 16\nkv-bytes = 4096\ntimers = 4\ncounters = 16\n[properties]\n{properties}"
    );
    std::fs::write(&manifest, text).unwrap();
    let path = net.lab.dir().join(format!("{name}.nsm"));
    let package = net.lab.package_of(&manifest, &[(Part::Bundle, bundle)], &path, &net.user).unwrap();
    let url = net.lab.publish("sender", &package).unwrap();
    (package, url)
}

fn manifest(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(format!("{name}.toml"));
    // What begins with more memory than its manifest asks for is not packed.
    let more = if name == "four-gib" { "memory-bytes = 4294967296\n" } else { "" };
    let text = format!(
        "manifest = 1\nname = \"example.org/{name}\"\nversion = \"1.0.0\"\n[packet]\nabi = 1\n\
         [limits]\ncall-ms = 200\n{more}"
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// Waits for something to be so, as long as it may take on a slow machine with much to do.
pub fn eventually(what: &str, condition: impl FnMut() -> bool) {
    assert!(wait_until(EVENTUALLY, condition), "{what}: not within {:?}", grown(EVENTUALLY));
}

const EVENTUALLY: Duration = Duration::from_secs(20);

/// Returns the processes below one, at any depth.
pub fn processes_under(pid: u32) -> Vec<u32> {
    let children = |pid: u32| -> Vec<u32> {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
        lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
    };
    let mut found = children(pid);
    let mut next = 0;
    while next < found.len() {
        found.extend(children(found[next]));
        next += 1;
    }
    found
}
