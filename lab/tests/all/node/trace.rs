// SPDX-License-Identifier: Apache-2.0
//! `netserv trace` over real nodes: each step of a packet's way, and nothing left when a trace ends.

use std::io::{BufRead, BufReader, Lines, Read};
use std::net::IpAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::common::{Driver, Net, ask_udp, assert_nodes, eventually, net};
use netserv_api::NodeInfo;
use netserv_lab::netns::program;
use netserv_model::request::Outcome;
use netserv_model::trace::{
    TraceEgress, TraceEnd, TraceEndReason, TraceLine, TraceOrigin, TracePacket, TraceStep, TraceVerdict,
};
use netserv_model::verdict::FailureMode;
use netserv_model::{DropReason, Flavour, Verdict};

over_each_driver!(packets_are_followed_through_every_step, nothing_is_left_of_a_trace_whatever_ends_it);

/// Goal: a trace tells filter, container, module, verdict and egress of packets that a module changes, drops and passes
/// and of ones that no module wants.
/// Method: NetMonitor, which passes everything, and KeepAlive, which answers a double CRLF and drops a single one.
fn packets_are_followed_through_every_step(driver: Driver) {
    let Some(net) = net("packets_are_followed_through_every_step", driver) else { return };
    let (monitor, monitor_url) = net.publish("net-monitor");
    let (keeper, keeper_url) = net.publish("keep-alive");
    let server = IpAddr::from(net.lab.v4("sender"));
    let filter = format!("udp dst {server}/32 port 5060");
    // A trace of every packet must not come in the way of signaling.
    let everything = Trace::start(&net, "n2", &[]);
    for (package, url) in [(&monitor, &monitor_url), (&keeper, &keeper_url)] {
        assert_nodes(&net.setup(package, url, &filter), |outcome| matches!(outcome, Outcome::Installed { .. }));
    }
    // The kernel knows the neighbours from here on.
    net.lab.run("receiver", "ping", &["-c", "1", "-W", "1", &server.to_string()]).unwrap();
    drop(everything);
    let before: Vec<TraceStep> = vec![
        of_filter(&filter, &monitor.module),
        of_filter(&filter, &keeper.module),
        TraceStep::Container { user: "janedoe".parse().unwrap(), flavour: Flavour::Wasm },
    ];
    let steps =
        |first, second| [before.clone(), vec![said(&monitor.module, first), said(&keeper.module, second)]].concat();

    let mut trace = Trace::start(&net, "n2", &["udp dport 5060", "--count", "3", "--bytes", "2000"]);
    assert_eq!(net.ask_udp(server, 5060, "\r\n\r\n").as_deref(), Some("\r\n"));
    let answered = trace.packet();
    assert_eq!(answered.steps, steps(TraceVerdict::WentOn, TraceVerdict::Modified));
    assert_eq!((answered.verdict, answered.reason), (Verdict::Modified, None));
    let flow = answered.flow.unwrap();
    assert_eq!((flow.destination, flow.destination_port, flow.protocol), (server, Some(5060), 17));
    assert!(matches!(&answered.origin, TraceOrigin::Network { name: Some(name), .. } if !name.is_empty()));
    assert_eq!((answered.length, answered.bytes.len()), (32, 64));
    assert!(answered.bytes.ends_with("0d0a0d0a"), "{}", answered.bytes);
    let changed = answered.changed.clone().unwrap();
    assert!(changed.bytes.ends_with("0d0a") && changed.length == 30, "{changed:?}");
    assert_eq!((changed.flow.unwrap().destination, changed.flow.unwrap().source), (flow.source, server));
    assert_egress(driver, &answered, flow.source);

    assert_eq!(net.ask_udp(server, 5060, "\r\n"), None);
    let dropped = trace.packet();
    assert_eq!(dropped.steps, steps(TraceVerdict::WentOn, TraceVerdict::Dropped));
    assert_eq!((dropped.verdict, dropped.reason, &dropped.egress), (Verdict::Drop, Some(DropReason::Module), &None));

    assert_eq!(net.ask_udp(server, 5060, "hello"), None);
    let passed = trace.packet();
    assert_eq!(passed.steps, steps(TraceVerdict::Passed, TraceVerdict::Passed));
    assert_eq!((passed.verdict, passed.reason), (Verdict::Pass, None));
    assert_egress(driver, &passed, net.lab.topology().interfaces(2).0.v4.into());
    assert_eq!(trace.end(), TraceEnd { reason: TraceEndReason::Count, traced: 3, lost: 0, skipped: 0 });

    let mut trace = Trace::start(&net, "n2", &["udp", "dport", "7", "--count", "1"]);
    assert_eq!(net.ask_udp(server, 7, "unwanted"), None);
    let unwanted = trace.packet();
    assert_eq!((unwanted.steps, unwanted.verdict), (vec![TraceStep::NoFilter], Verdict::Pass));
    assert_eq!(trace.end().traced, 1);

    let text = shown_to_people(&net, server);
    for part in [
        " udp 32 bytes, in ",
        "  filter     udp dst ",
        "  container  janedoe (wasm)\n",
        &format!("{}: modified\n", keeper.module),
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }

    let status = net.lab.netserv("n2", &["-j", "node", "status"]).unwrap();
    let mut devices: Vec<String> = Vec::new();
    for device in serde_json::from_slice::<NodeInfo>(&status.stdout).unwrap().devices {
        assert!(!device.mode.is_empty() && device.queues > 0, "{device:?}");
        devices.push(device.name);
    }
    devices.sort();
    let expected: &[&str] = if driver == Driver::Afxdp { &["to-r", "to-receiver"] } else { &[] };
    assert_eq!(devices, expected);

    let shown = net.lab.try_netserv("n2", &["trace", "udp dprt 5060"]).unwrap();
    assert_eq!(shown.status.code(), Some(2));
    let shown = net.lab.try_netserv("sender", &["trace"]).unwrap();
    assert!(String::from_utf8_lossy(&shown.stderr).contains("fix: ask a node on the path"), "{shown:?}");
}

/// Returns what `netserv trace` shows of a keep-alive, and prints it for whoever writes documentation.
fn shown_to_people(net: &Net, server: IpAddr) -> String {
    let mut command = Command::new(program("netserv").unwrap());
    command.arg("--socket").arg(net.lab.socket("n2")).args([
        "trace",
        "udp dport 5060",
        "--count",
        "1",
        "--timeout",
        "30s",
    ]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let (mut announced, mut shown) = (String::new(), String::new());
    stderr.read_line(&mut announced).unwrap();
    assert!(announced.starts_with("tracing `udp port 5060` in "), "{announced}");
    assert_eq!(net.ask_udp(server, 5060, "\r\n\r\n").as_deref(), Some("\r\n"));
    child.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
    let mut summary = String::new();
    stderr.read_to_string(&mut summary).unwrap();
    assert_eq!((summary.as_str(), child.wait().unwrap().code()), ("1 packet traced\n", Some(0)));
    println!("{announced}{shown}{summary}");
    shown
}

/// Goal: packets of a trace that has ended are not taken out of the kernel any more, however it ended.
/// Method: the node counts what it receives; only the trace makes it receive these packets.
fn nothing_is_left_of_a_trace_whatever_ends_it(driver: Driver) {
    let Some(mut net) = net("nothing_is_left_of_a_trace_whatever_ends_it", driver) else { return };
    let server = IpAddr::from(net.lab.v4("sender"));
    let send = |net: &Net| assert_eq!(ask_udp(&net.lab, "receiver", server, 9, "x"), None);
    // A filter goes a moment after its trace has ended.
    let is_unseen = |net: &Net| {
        let before = received(net, "n2");
        send(net);
        received(net, "n2") == before
    };
    let rules = rules(&net, "n2");
    send(&net);
    assert_eq!(received(&net, "n2"), 0);

    let mut trace = Trace::start(&net, "n2", &["udp dport 9"]);
    send(&net);
    trace.packet();
    eventually("the packet is counted", || received(&net, "n2") == 1);
    trace.child.kill().unwrap();
    trace.child.wait().unwrap();
    eventually("the filter of a client that is gone is gone", || is_unseen(&net));
    assert_eq!(self::rules(&net, "n2"), rules);

    let mut trace = Trace::start(&net, "n2", &["udp dport 9", "--timeout", "100ms"]);
    assert_eq!(trace.end().reason, TraceEndReason::Time);
    eventually("the filter of a trace whose time was up is gone", || is_unseen(&net));
    assert_eq!(self::rules(&net, "n2"), rules);

    let mut trace = Trace::start(&net, "n2", &["udp dport 9"]);
    net.lab.kill("n2", "netservd").unwrap();
    let mut stderr = String::new();
    trace.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((trace.child.wait().unwrap().code(), stderr.contains("\"fix\"")), (Some(3), true), "{stderr}");
    net.lab.restart_netservd("n2").unwrap();
    assert_eq!(self::rules(&net, "n2"), rules);
    send(&net);
    assert_eq!(received(&net, "n2"), 0);
}

/// A `netserv trace` that runs.
struct Trace {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Trace {
    /// Starts it; packets that are sent from here on are in it.
    fn start(net: &Net, machine: &str, args: &[&str]) -> Trace {
        let mut command = Command::new(program("netserv").unwrap());
        command.arg("-j").arg("--socket").arg(net.lab.socket(machine)).arg("trace").args(args);
        if !args.contains(&"--timeout") {
            // So that a test that waits for a packet in vain ends.
            command.args(["--timeout", "30s"]);
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut trace = Trace { child, lines };
        let line = trace.line();
        assert!(matches!(line, TraceLine::Started(_)), "{line:?}");
        trace
    }

    fn packet(&mut self) -> TracePacket {
        match self.line() {
            TraceLine::Packet(packet) => *packet,
            other @ (TraceLine::Started(_) | TraceLine::Ended(_)) => panic!("no packet but {other:?}"),
        }
    }

    fn end(&mut self) -> TraceEnd {
        let TraceLine::Ended(end) = self.line() else { panic!("the trace goes on") };
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        end
    }

    fn line(&mut self) -> TraceLine {
        let line = self.lines.next().expect("the trace goes on").unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn of_filter(filter: &str, module: &str) -> TraceStep {
    TraceStep::Filter {
        user: "janedoe".parse().unwrap(),
        module: Some(module.parse().unwrap()),
        filter: filter.parse().unwrap(),
        on_failure: FailureMode::Open,
    }
}

fn said(module: &str, verdict: TraceVerdict) -> TraceStep {
    TraceStep::Module { user: "janedoe".parse().unwrap(), module: Some(module.parse().unwrap()), verdict }
}

/// Asserts that the driver says where it sends a packet, if it does that itself.
fn assert_egress(driver: Driver, packet: &TracePacket, to: IpAddr) {
    match (driver, packet.egress.as_ref().unwrap()) {
        (Driver::Nfqueue, TraceEgress::Kernel { .. }) => {}
        (Driver::Afxdp, TraceEgress::Device { interface, next_hop, .. }) => {
            assert_eq!((*next_hop, interface.is_empty()), (to, false), "{packet:?}");
        }
        (driver, other) => panic!("{driver:?} says {other:?}"),
    }
}

/// Returns how many packets a node took from its driver.
fn received(net: &Net, machine: &str) -> u64 {
    let metrics = net.lab.metrics(machine).unwrap();
    let value = metrics.lines().find_map(|line| line.strip_prefix("netserv_packets_total{fate=\"received\"} "));
    value.unwrap().parse().unwrap()
}

/// Returns how many rules bring a machine's IPv4 packets to user space.
fn rules(net: &Net, machine: &str) -> usize {
    let output = net.lab.run(machine, "nft", &["list", "ruleset", "ip"]).unwrap();
    String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.contains(" queue num ")).count()
}
