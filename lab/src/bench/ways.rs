// SPDX-License-Identifier: Apache-2.0
//! The ways through a router that are compared, and the routers that have them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use netserv_model::Flavour;

use super::net::{Installed, Net, Sink};
use super::pin::{NODE_CORE, Placement, steer};
use super::programs::Programs;
use super::trial::{SeenBy, Traffic};
use crate::node::{LabPackage, LabUser};

/// The port of the first way; those of other ways and modules are told apart by it.
const PORT: u16 = 9000;
const EMPTY_PORT: u16 = 9001;
const TWO_PORT: u16 = 9002;
const BUNDLE_PORT: u16 = 9003;
const SIP_PORT: u16 = 5060;
const BUNDLE_SIP_PORT: u16 = 5062;
/// A port that nobody wants.
const OTHER_PORT: u16 = 9009;
/// The netfilter queue of the null verdict, in a namespace of its own.
const NULL_QUEUE: u16 = 7;
/// Rules that the packet filter goes through for each packet, as those of a small firewall.
const RULES: u16 = 10;
/// Passes everything. A container without a module gets no packets, so this stands for the container alone.
const NULL_MODULE: &str = r#"(module
  (memory (export "memory") 5)
  (func (export "netserv_abi") (result i32) (i32.const 1))
  (func (export "netserv_area") (param i32 i32) (result i32) (i32.const 65536))
  (func (export "netserv_start") (result i32) (i32.const 0))
  (func (export "netserv_process") (param $count i32)))
"#;

/// One way through a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Way {
    /// The kernel's forwarding, on the generator's core.
    Kernel,
    /// The kernel's forwarding, steered to the node's core.
    Steered,
    /// The kernel's forwarding with some rules of the packet filter.
    Filtered,
    /// The null verdict in C through a netfilter queue.
    NfqueueNull,
    /// net-monitor by the driver `nfqueue`.
    NfqueueMonitor,
    /// The same as a bundle.
    NfqueueBundle,
    /// What no module wants, with a node and its driver `nfqueue`.
    NfqueueUnmatched,
    /// The driver `afxdp` alone.
    AfxdpNull,
    /// The driver `afxdp` and a container whose module does nothing.
    AfxdpEmpty,
    /// net-monitor by the driver `afxdp`.
    AfxdpMonitor,
    /// The same in the real-time class, and looking for packets again and again.
    AfxdpRealTime,
    /// The same as a bundle.
    AfxdpBundle,
    /// net-monitor and a module that does nothing, in turn.
    AfxdpTwo,
    /// keep-alive, which answers each packet.
    AfxdpKeepAlive,
    /// The same as a bundle.
    AfxdpKeepAliveBundle,
    /// What no module wants, with a node and its driver `afxdp`.
    AfxdpUnmatched,
    /// The same, forwarded in XDP.
    XdpForward,
}

impl Way {
    /// All ways, in the order of tables.
    pub const ALL: [Way; 17] = [
        Way::Kernel,
        Way::Steered,
        Way::Filtered,
        Way::NfqueueNull,
        Way::NfqueueMonitor,
        Way::NfqueueBundle,
        Way::NfqueueUnmatched,
        Way::AfxdpNull,
        Way::AfxdpEmpty,
        Way::AfxdpMonitor,
        Way::AfxdpRealTime,
        Way::AfxdpBundle,
        Way::AfxdpTwo,
        Way::AfxdpKeepAlive,
        Way::AfxdpKeepAliveBundle,
        Way::AfxdpUnmatched,
        Way::XdpForward,
    ];

    /// Those that are measured on one core, too.
    pub const ON_ONE_CORE: [Way; 8] = [
        Way::Kernel,
        Way::NfqueueNull,
        Way::NfqueueMonitor,
        Way::AfxdpNull,
        Way::AfxdpMonitor,
        Way::AfxdpKeepAlive,
        Way::AfxdpUnmatched,
        Way::XdpForward,
    ];

    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Way::Kernel => "kernel",
            Way::Steered => "kernel, steered to the node's core",
            Way::Filtered => "kernel + packet filter",
            Way::NfqueueNull => "nfqueue, null verdict in C",
            Way::NfqueueMonitor => "nfqueue, net-monitor",
            Way::NfqueueBundle => "nfqueue, net-monitor in Java",
            Way::NfqueueUnmatched => "nfqueue, unmatched",
            Way::AfxdpNull => "afxdp, driver alone",
            Way::AfxdpEmpty => "afxdp, container, empty module",
            Way::AfxdpMonitor => "afxdp, net-monitor",
            Way::AfxdpRealTime => "afxdp, net-monitor, real-time",
            Way::AfxdpBundle => "afxdp, net-monitor in Java",
            Way::AfxdpTwo => "afxdp, two modules in turn",
            Way::AfxdpKeepAlive => "afxdp, keep-alive answers NOTIFY",
            Way::AfxdpKeepAliveBundle => "afxdp, keep-alive in Java answers NOTIFY",
            Way::AfxdpUnmatched => "afxdp, unmatched",
            Way::XdpForward => "afxdp, unmatched, forwarded in XDP",
        }
    }

    /// Returns the packets of the way, of a size; `notify` is the file with the NOTIFY.
    pub fn traffic(self, bytes: u16, notify: &Path) -> Traffic<'_> {
        let port = match self {
            Way::Kernel | Way::Steered | Way::Filtered | Way::NfqueueNull => PORT,
            Way::NfqueueMonitor | Way::AfxdpNull | Way::AfxdpMonitor | Way::AfxdpRealTime => PORT,
            Way::NfqueueBundle | Way::AfxdpBundle => BUNDLE_PORT,
            Way::AfxdpEmpty => EMPTY_PORT,
            Way::AfxdpTwo => TWO_PORT,
            Way::AfxdpKeepAlive => SIP_PORT,
            Way::AfxdpKeepAliveBundle => BUNDLE_SIP_PORT,
            Way::NfqueueUnmatched | Way::AfxdpUnmatched | Way::XdpForward => OTHER_PORT,
        };
        let answered = self.answers().then_some(notify);
        Traffic { answered, seen_by: self.seen_by(), ..Traffic::new(bytes, port) }
    }

    /// Returns whether a module answers each packet.
    pub fn answers(self) -> bool {
        matches!(self, Way::AfxdpKeepAlive | Way::AfxdpKeepAliveBundle)
    }

    /// Returns whether a JVM has part in it.
    pub fn is_java(self) -> bool {
        matches!(self, Way::NfqueueBundle | Way::AfxdpBundle | Way::AfxdpKeepAliveBundle)
    }

    /// Returns where the sink counts: what leaves from the generator's core is counted there in any case.
    pub fn sink(self, placement: Placement) -> Sink {
        match self {
            _ if placement == Placement::OneCore => Sink::Outside,
            Way::Kernel | Way::Filtered | Way::NfqueueUnmatched | Way::AfxdpUnmatched | Way::XdpForward => Sink::Inside,
            Way::Steered | Way::NfqueueNull | Way::NfqueueMonitor | Way::NfqueueBundle => Sink::Outside,
            Way::AfxdpNull | Way::AfxdpEmpty | Way::AfxdpMonitor | Way::AfxdpBundle => Sink::Outside,
            Way::AfxdpRealTime | Way::AfxdpTwo => Sink::Outside,
            Way::AfxdpKeepAlive | Way::AfxdpKeepAliveBundle => Sink::Outside,
        }
    }

    /// Returns who has to see each packet.
    pub fn seen_by(self) -> SeenBy {
        match self {
            Way::NfqueueMonitor | Way::AfxdpEmpty | Way::AfxdpMonitor | Way::AfxdpKeepAlive => SeenBy::Modules(1),
            Way::NfqueueBundle | Way::AfxdpBundle | Way::AfxdpKeepAliveBundle => SeenBy::Modules(1),
            Way::AfxdpRealTime => SeenBy::Modules(1),
            Way::AfxdpTwo => SeenBy::Modules(2),
            Way::NfqueueNull => SeenBy::Queue,
            Way::AfxdpNull => SeenBy::Driver,
            Way::Kernel | Way::Steered | Way::Filtered => SeenBy::Nobody,
            Way::NfqueueUnmatched | Way::AfxdpUnmatched | Way::XdpForward => SeenBy::Nobody,
        }
    }
}

/// A router, which has some of the ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Router {
    Kernel,
    Steered,
    Filtered,
    NfqueueNull,
    Nfqueue,
    AfxdpNull,
    Afxdp,
    AfxdpRealTime,
    XdpForward,
}

impl Router {
    fn of(way: Way) -> Router {
        match way {
            Way::Kernel => Router::Kernel,
            Way::Steered => Router::Steered,
            Way::Filtered => Router::Filtered,
            Way::NfqueueNull => Router::NfqueueNull,
            Way::NfqueueMonitor | Way::NfqueueBundle | Way::NfqueueUnmatched => Router::Nfqueue,
            Way::AfxdpNull => Router::AfxdpNull,
            Way::AfxdpEmpty | Way::AfxdpMonitor | Way::AfxdpBundle | Way::AfxdpTwo | Way::AfxdpUnmatched => {
                Router::Afxdp
            }
            Way::AfxdpKeepAlive | Way::AfxdpKeepAliveBundle => Router::Afxdp,
            Way::AfxdpRealTime => Router::AfxdpRealTime,
            Way::XdpForward => Router::XdpForward,
        }
    }

    /// Starts it; with a JVM only if that is wanted.
    fn up(self, programs: &Programs, java: bool) -> Result<Net> {
        match self {
            Router::Kernel => Net::up(),
            Router::Steered => {
                let net = Net::up()?;
                steer(&net.lab, "n1", "to-sender", Some(NODE_CORE))?;
                Ok(net)
            }
            Router::Filtered => filtered(),
            Router::NfqueueNull => nfqueue_null(programs),
            Router::Nfqueue => nfqueue(java).context("a node with the driver nfqueue"),
            Router::AfxdpNull => {
                let mut net = Net::up()?;
                net.start_null_driver("afxdp", PORT, &[]).context("the driver afxdp alone")?;
                Ok(net)
            }
            Router::Afxdp => afxdp(java).context("a node with the driver afxdp"),
            Router::AfxdpRealTime => real_time(),
            Router::XdpForward => xdp_forward(),
        }
    }
}

/// The routers. Those without traffic sleep.
pub struct Nets {
    nets: BTreeMap<Router, Net>,
    // The directory of the payload goes in the end.
    _files: Net,
    /// The payload of a NOTIFY that makes a packet of 340 bytes.
    pub notify: PathBuf,
}

impl Nets {
    /// Makes the routers of some ways.
    ///
    /// # Errors
    /// One of them does not run; without forwarding in XDP, which not every kernel can, it goes.
    pub fn up(programs: &Programs, ways: &[Way]) -> Result<Nets> {
        let files = Net::up()?;
        let notify = files.lab.dir().join("notify.sip");
        std::fs::write(&notify, notify_of(340 - 28)?)?;
        let java = ways.iter().any(|way| way.is_java());
        let routers: BTreeSet<Router> = ways.iter().map(|way| Router::of(*way)).collect();
        let mut nets = BTreeMap::new();
        for router in routers {
            match router.up(programs, java) {
                Ok(net) => drop(nets.insert(router, net)),
                Err(error) if router == Router::XdpForward => {
                    println!("NOTE: a node that forwards in XDP is not measured: {error:#}");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Nets { nets, _files: files, notify })
    }

    /// Returns the router that has a way, if there is one.
    pub fn of(&self, way: Way) -> Option<&Net> {
        self.nets.get(&Router::of(way))
    }
}

/// A router with rules that match nothing of what is sent.
fn filtered() -> Result<Net> {
    let net = Net::up()?;
    for number in 0..RULES {
        let port = (PORT + 1000 + number).to_string();
        net.lab.run("n1", "iptables", &["-A", "FORWARD", "-p", "udp", "--dport", &port, "-j", "DROP"])?;
    }
    Ok(net)
}

fn nfqueue_null(programs: &Programs) -> Result<Net> {
    let mut net = Net::up()?;
    let (port, queue) = (PORT.to_string(), NULL_QUEUE.to_string());
    let rule = ["-t", "mangle", "-A", "PREROUTING", "-p", "udp", "--dport", &port, "-j", "NFQUEUE", "--queue-num"];
    net.lab.run("n1", "iptables", &[&rule[..], &[&queue, "--queue-bypass"]].concat())?;
    let mut command = net.lab.command("n1", programs.dir.join("nfq_null"));
    command.args([&queue, &NODE_CORE.to_string()]);
    net.lab.start("n1", "null", &mut command)?;
    Ok(net)
}

fn nfqueue(java: bool) -> Result<Net> {
    let mut net = Net::up()?;
    let prefix = net.destination();
    let [alice, bob] = [net.lab.user("alice", &[&prefix])?, net.lab.user("bob", &[&prefix])?];
    net.start_netservd("nfqueue", "", &[alice.clone(), bob.clone()])?;
    let install = |user, package: &LabPackage, port| net.install(&Installed { user, package, port, properties: &[] });
    install(&alice, &net.lab.package("net-monitor", &alice)?, PORT)?;
    if java {
        install(&bob, &net.lab.package_in("net-monitor", &[Flavour::Osgi], &bob)?, BUNDLE_PORT)?;
    }
    Ok(net)
}

/// A node with six users: net-monitor, the empty module, both, keep-alive, and, if wanted, the two as bundles.
fn afxdp(java: bool) -> Result<Net> {
    let mut net = Net::up()?;
    let prefix = net.destination();
    let users = ["alice", "bob", "carol", "dave", "erin", "frank"].map(|name| net.lab.user(name, &[&prefix]));
    let users = users.into_iter().collect::<Result<Vec<LabUser>>>()?;
    net.start_netservd("afxdp", "dataplane.xdp-forward = \"off\"", &users)?;
    let [alice, bob, carol, dave, erin, frank] = &users[..] else { anyhow::bail!("six users") };
    let install = |user, package: &LabPackage, port| net.install(&Installed { user, package, port, properties: &[] });
    install(alice, &net.lab.package("net-monitor", alice)?, PORT)?;
    install(bob, &empty_module(&net, bob)?, EMPTY_PORT)?;
    install(carol, &net.lab.package("net-monitor", carol)?, TWO_PORT)?;
    install(carol, &empty_module(&net, carol)?, TWO_PORT)?;
    install(dave, &net.lab.package("keep-alive", dave)?, SIP_PORT)?;
    if java {
        install(erin, &net.lab.package_in("net-monitor", &[Flavour::Osgi], erin)?, BUNDLE_PORT)?;
        install(frank, &net.lab.package_in("keep-alive", &[Flavour::Osgi], frank)?, BUNDLE_SIP_PORT)?;
    }
    Ok(net)
}

/// The settings of a node whose packet thread and workers are in the real-time class.
pub fn real_time_settings() -> String {
    format!("dataplane.cores = [{NODE_CORE}]\ndataplane.real-time = true\ndataplane.busy-poll-us = 50")
}

/// A node in the real-time class.
fn real_time() -> Result<Net> {
    monitored(Net::up()?, &real_time_settings())
}

/// A node that forwards in XDP what its one module does not want.
fn xdp_forward() -> Result<Net> {
    let net = Net::up()?;
    // A veth takes frames out of XDP only when the other end takes many at a time, too.
    for (machine, interface) in [("n1", "to-sink"), ("sink", "to-n1")] {
        net.lab.run(machine, "ethtool", &["-K", interface, "gro", "on"])?;
    }
    monitored(net, "dataplane.xdp-forward = \"on\"")
}

/// Starts a node with the driver `afxdp` whose one module is net-monitor.
fn monitored(mut net: Net, settings: &str) -> Result<Net> {
    let user = net.lab.user("alice", &[&net.destination()])?;
    net.start_netservd("afxdp", settings, std::slice::from_ref(&user))?;
    let package = net.lab.package("net-monitor", &user)?;
    net.install(&Installed { user: &user, package: &package, port: PORT, properties: &[] })?;
    Ok(net)
}

/// Packs the module that does nothing.
///
/// # Errors
/// The package is refused.
pub fn empty_module(net: &Net, user: &LabUser) -> Result<LabPackage> {
    let dir = net.lab.dir();
    let (wasm, manifest) = (dir.join("empty.wasm"), dir.join("empty.toml"));
    std::fs::write(&wasm, wat::parse_str(NULL_MODULE)?)?;
    let text =
        "manifest = 1\nname = \"example.org/empty\"\nversion = \"1.0.0\"\n[packet]\nabi = 1\non-failure = \"open\"\n";
    std::fs::write(&manifest, text)?;
    net.lab.package_from(&manifest, &wasm, &dir.join(format!("{}-empty.nsm", user.name)), user)
}

/// Returns a NOTIFY of so many bytes that only keeps a binding alive; the answer goes to where it came from.
fn notify_of(bytes: usize) -> Result<String> {
    let mut text = "NOTIFY sip:example.com SIP/2.0\r\n\
                    Via: SIP/2.0/UDP 10.0.0.5:5060;branch=z9hG4bK77ef;rport\r\n\
                    From: \"Alice\" <sip:alice@example.com>;tag=42\r\n\
                    To: <sip:example.com>\r\n\
                    Call-ID: 1234@10.0.0.5\r\n\
                    CSeq: 7 NOTIFY\r\n\
                    Max-Forwards: 70\r\n\
                    Event: keep-alive\r\n"
        .to_owned();
    let end = "Content-Length: 0\r\n\r\n";
    let filler = bytes.checked_sub(text.len() + end.len() + "User-Agent: \r\n".len()).context("a longer NOTIFY")?;
    // Writing to a String cannot fail.
    let _ = write!(text, "User-Agent: {}\r\n{end}", "x".repeat(filler));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notify_has_the_papers_size() {
        let text = notify_of(312).unwrap();
        assert_eq!(text.len(), 312);
        assert!(text.ends_with("\r\n\r\n") && text.matches("\r\n\r\n").count() == 1);
        assert!(notify_of(100).is_err());
    }

    #[test]
    fn ways_differ_in_name() {
        let names: BTreeSet<_> = Way::ALL.iter().map(|way| way.name()).collect();
        assert_eq!(names.len(), Way::ALL.len());
    }
}
