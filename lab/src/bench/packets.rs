// SPDX-License-Identifier: Apache-2.0
//! Packets through one node: what a null verdict costs, and what a module adds.

use std::net::Ipv4Addr;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use netserv_model::request::Outcome;
use serde::Deserialize;

use super::machine::Cores;
use super::pin::{NODE_CORE, OUTSIDE_CORE, steer, to_node_core};
use super::programs::Programs;
use super::summary::{Figure, Goal, Row};
use super::{Plan, kilo};
use crate::demo::FILES_ALLOWED;
use crate::netns::Lab;
use crate::topology::{Kind, Topology};

/// Bytes of the IPv4 packets, and of the UDP payload in them.
const IP_BYTES: usize = 64;
const PAYLOAD_BYTES: usize = IP_BYTES - 28;
/// Packets on their way at most: less than the ring of a container or the backlog of a core has room for.
const WINDOW: usize = 512;
/// The last byte of an address beyond the node that is nobody's: what goes there ends when it has arrived.
const NOBODY: u8 = 77;
/// A MAC address that no interface of the lab has.
const NOBODYS_MAC: &str = "02:00:00:00:00:01";
/// The port whose datagrams a module or the null verdict sees.
const SEEN_PORT: u16 = 9000;
/// A port that nobody wants.
const OTHER_PORT: u16 = 9001;
/// The netfilter queue of the null verdict, in a namespace of its own.
const NULL_QUEUE: u16 = 7;
/// Packets per second while latency is measured: far from saturation.
const CALM_RATE: u32 = 20_000;

/// One way through a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Kernel,
    Null,
    Module,
    Unmatched,
}

const WAYS: [Way; 4] = [Way::Kernel, Way::Null, Way::Module, Way::Unmatched];

/// The three nodes; each has sender, node and sink.
struct Nodes {
    kernel: Lab,
    null: Lab,
    netserv: Lab,
}

#[derive(Deserialize)]
struct Loop {
    received: u64,
    lost: u64,
    rate: f64,
    waits: f64,
}

#[derive(Deserialize)]
struct Sink {
    received: u64,
    lost: u64,
    latency_us: Latency,
}

#[derive(Deserialize)]
struct Latency {
    p50: f64,
    p99: f64,
}

#[derive(Deserialize)]
struct NullCounts {
    packets: u64,
}

/// Measures throughput and latency of all ways, taking turns.
///
/// # Errors
/// Something does not run, or packets went another way than they were to.
pub fn measure(plan: &Plan, programs: &Programs) -> Result<Vec<Figure>> {
    let mut nodes = Nodes::up(programs)?;
    let throughput = throughput(plan, programs, &nodes)?;
    let latency = latency(plan, programs, &mut nodes)?;
    nodes.null.stop("n1", "null")?;
    let log = nodes.null.log("n1", "null");
    let counts: NullCounts = serde_json::from_str(log.trim()).context("nfq_null's counts")?;
    ensure!(counts.packets > 0, "the null verdict saw no packets");
    Ok(vec![throughput, latency])
}

fn throughput(plan: &Plan, programs: &Programs, nodes: &Nodes) -> Result<Figure> {
    let mut rates: [Vec<f64>; 4] = Default::default();
    let mut notes: [String; 4] = Default::default();
    let mut unseen = 0.0_f64;
    for round in 0..plan.packet_rounds {
        for turn in 0..WAYS.len() {
            // Each way starts a round as often as any other.
            let at = (turn + round) % WAYS.len();
            let (way, before) = (WAYS[at], Cores::now()?);
            let seen_before = nodes.seen(way)?;
            let result = nodes.run_loop(programs, way, plan.packet_seconds)?;
            let core = Cores::now()?.words_since(&before, NODE_CORE);
            notes[at] = format!("{core}; window full {:.0} % of the time", result.waits * 100.0);
            ensure!(result.received > 0, "no packet got through");
            if let (Some(now), Some(then)) = (nodes.seen(way)?, seen_before) {
                // The warm-up is seen and not counted, so the module cannot have seen fewer.
                unseen = unseen.max(1.0 - share(now - then, result.received));
            }
            ensure!(result.lost * 1000 < result.received, "{} of {} packets lost", result.lost, result.received);
            rates[at].push(kilo(result.rate));
        }
    }
    ensure!(unseen < 0.001, "{:.1} % of the packets passed without the module", unseen * 100.0);
    let ratio = |above: usize, below: usize| -> Vec<f64> {
        rates[above].iter().zip(&rates[below]).map(|(above, below)| above / below).collect()
    };
    let names = ["kernel forwarding", "null verdict in C, nfqueue", "net-monitor, nfqueue", "unmatched, netservd"];
    let mut rows: Vec<Row> =
        (0..WAYS.len()).map(|at| Row::new(names[at], "kpps", &rates[at]).note(notes[at].clone())).collect();
    rows.push(Row::new("net-monitor / null verdict in C", "ratio", &ratio(2, 1)).goal(Goal::AtLeast(0.95)));
    rows.push(Row::new("unmatched / kernel forwarding", "ratio", &ratio(3, 0)).goal(Goal::AtLeast(0.97)));
    rows.push(Row::new("net-monitor / kernel forwarding", "ratio", &ratio(2, 0)));
    let how = format!(
        "Saturation throughput behind the node, {IP_BYTES}-byte IPv4 packets, at most {WINDOW} on their way (udploop), so \
         that no queue overflows and none passes unseen; {} s each, the four ways in turn, {} rounds. The generator is on \
         core {OUTSIDE_CORE}; forwarding, netservd and worker or null verdict on core {NODE_CORE}, which receive packet \
         steering gives the packets. A window that is seldom full means that the generator is the slowest part. Ratios \
         are within a round; remarks are of the last round.",
        plan.packet_seconds, plan.packet_rounds
    );
    Ok(Figure { name: "Packets through one node", how, rows })
}

fn latency(plan: &Plan, programs: &Programs, nodes: &mut Nodes) -> Result<Figure> {
    let (mut half, mut most): ([Vec<f64>; 4], [Vec<f64>; 4]) = Default::default();
    for round in 0..plan.latency_rounds {
        for turn in 0..WAYS.len() {
            let at = (turn + round) % WAYS.len();
            let sink = nodes.run_calm(programs, WAYS[at], plan.packet_seconds)?;
            ensure!(sink.received > 0 && sink.lost * 100 < sink.received, "{} packets lost", sink.lost);
            half[at].push(sink.latency_us.p50);
            most[at].push(sink.latency_us.p99);
        }
    }
    let names = ["kernel forwarding", "null verdict in C", "net-monitor", "unmatched"];
    let mut rows = Vec::new();
    for (at, name) in names.iter().enumerate() {
        rows.push(Row::new(format!("{name}, 50 %"), "µs", &half[at]));
        rows.push(Row::new(format!("{name}, 99 %"), "µs", &most[at]));
    }
    let added = |below: usize| -> Vec<f64> { half[2].iter().zip(&half[below]).map(|(m, b)| m - b).collect() };
    rows.push(Row::new("added by the module to the null verdict, 50 %", "µs", &added(1)).goal(Goal::AtMost(15.0)));
    rows.push(Row::new("added by the module to forwarding, 50 %", "µs", &added(0)));
    let how = format!(
        "One way from socket to socket at {CALM_RATE} packets per second (udpgen, udpsink; one packet per system call), \
         {} s each, in turn, {} rounds; cores as above. The clock of the histogram steps by 1 µs.",
        plan.packet_seconds, plan.latency_rounds
    );
    Ok(Figure { name: "Latency through one node", how, rows })
}

impl Nodes {
    fn up(programs: &Programs) -> Result<Nodes> {
        let mut nodes = Nodes { kernel: chain()?, null: chain()?, netserv: chain()? };
        nodes.start_null(programs)?;
        nodes.start_netserv()?;
        Ok(nodes)
    }

    fn start_null(&mut self, programs: &Programs) -> Result<()> {
        let lab = &mut self.null;
        let port = SEEN_PORT.to_string();
        let queue = NULL_QUEUE.to_string();
        let rule = ["-t", "mangle", "-A", "PREROUTING", "-p", "udp", "--dport", &port, "-j", "NFQUEUE", "--queue-num"];
        lab.run("n1", "iptables", &[&rule[..], &[&queue, "--queue-bypass"]].concat())?;
        let mut command = lab.command("n1", &programs.nfq_null);
        command.args([&queue, &NODE_CORE.to_string()]);
        lab.start("n1", "null", &mut command)?;
        Ok(())
    }

    fn start_netserv(&mut self) -> Result<()> {
        let lab = &mut self.netserv;
        let sink = lab.v4("sink");
        let net = format!("{sink}/24");
        let user = lab.user("janedoe", &[&net])?;
        lab.start_netservd("n1", "node", std::slice::from_ref(&user), FILES_ALLOWED)?;
        lab.start_netservd("sender", "host", &[], "")?;
        lab.serve_http("sender")?;
        let package = lab.package("net-monitor", &user)?;
        let url = lab.publish("sender", &package)?;
        let (file, key) = (package.path.to_string_lossy().into_owned(), user.key.to_string_lossy().into_owned());
        let filter = format!("udp dst {net} port {SEEN_PORT}");
        let to = sink.to_string();
        let args =
            ["setup", &file, "--to", &to, "--url", &url, "--filter", &filter, "--user", "janedoe", "--key", &key];
        let result = lab.request("sender", &args)?;
        let installed = result.nodes.iter().filter(|node| matches!(node.outcome, Outcome::Installed { .. })).count();
        ensure!(installed == 1, "net-monitor is not installed: {result:?}");
        lab.stop("sender", "netservd")?;
        lab.stop("sender", "nginx")?;
        to_node_core(lab.pid("n1", "netservd").context("netservd runs")?)
    }

    fn lab(&self, way: Way) -> &Lab {
        match way {
            Way::Kernel => &self.kernel,
            Way::Null => &self.null,
            Way::Module | Way::Unmatched => &self.netserv,
        }
    }

    fn port(way: Way) -> String {
        match way {
            Way::Kernel | Way::Null | Way::Module => SEEN_PORT.to_string(),
            Way::Unmatched => OTHER_PORT.to_string(),
        }
    }

    /// Returns how many packets the module saw so far, for the way that has one.
    fn seen(&self, way: Way) -> Result<Option<u64>> {
        match way {
            Way::Module => Ok(self.netserv.modules("n1")?.modules.first().map(|module| module.packets.seen)),
            Way::Kernel | Way::Null | Way::Unmatched => Ok(None),
        }
    }

    fn run_loop(&self, programs: &Programs, way: Way, seconds: f64) -> Result<Loop> {
        let lab = self.lab(way);
        let place = |machine, interface| format!("/run/netns/{}:{interface}", lab.namespace(machine));
        let output = std::process::Command::new(&programs.udploop)
            .args([place("sender", "to-n1"), place("n1", "to-sender"), place("sink", "to-n1")])
            .args([lab.v4("sender").to_string(), nobody(lab).to_string(), Nodes::port(way), seconds.to_string()])
            .args([WINDOW.to_string(), IP_BYTES.to_string(), OUTSIDE_CORE.to_string()])
            .output()?;
        ensure!(output.status.success(), "udploop: {}", String::from_utf8_lossy(&output.stderr).trim());
        serde_json::from_slice(&output.stdout).context("udploop's result")
    }

    fn run_calm(&self, programs: &Programs, way: Way, seconds: f64) -> Result<Sink> {
        let lab = self.lab(way);
        let (address, port) = (lab.v4("sink").to_string(), Nodes::port(way));
        let core = OUTSIDE_CORE.to_string();
        let mut sink = lab.command("sink", &programs.udpsink);
        sink.args([&address, &port, "-1", &core]).stdout(Stdio::piped());
        let sink = sink.spawn().context("cannot run udpsink")?;
        std::thread::sleep(std::time::Duration::from_millis(100));
        let rate = CALM_RATE.to_string();
        let (seconds, payload) = (seconds.to_string(), PAYLOAD_BYTES.to_string());
        let args = [address.as_str(), &port, &rate, &seconds, &payload, &core, "1", "1"];
        lab.run("sender", &programs.udpgen.to_string_lossy(), &args)?;
        let output = sink.wait_with_output()?;
        serde_json::from_slice(&output.stdout).context("udpsink's result")
    }
}

fn chain() -> Result<Lab> {
    let lab = Lab::up(Topology::chain(&[("sender", Kind::Host), ("n1", Kind::Node), ("sink", Kind::Host)]))?;
    steer(&lab, "n1", "to-sender", NODE_CORE)?;
    let neighbour = ["neigh", "replace", &nobody(&lab).to_string(), "lladdr", NOBODYS_MAC, "nud", "permanent"];
    lab.run("n1", "ip", &[&neighbour[..], &["dev", "to-sink"]].concat())?;
    Ok(lab)
}

fn nobody(lab: &Lab) -> Ipv4Addr {
    let [a, b, c, _] = lab.v4("sink").octets();
    Ipv4Addr::new(a, b, c, NOBODY)
}

#[allow(clippy::cast_precision_loss, reason = "a share is shown with one digit")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
