// SPDX-License-Identifier: Apache-2.0
//! `kill -9` of a node at any point: packets flow on, nothing stays that the next start does not clean or restore.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Driver, Net, assert_nodes, eventually, net, processes_under};
use netserv_lab::netns::wait_until;
use netserv_model::request::{ModuleState, Outcome};

over_each_driver!(
    a_killed_node_forwards_and_restores,
    a_killed_launcher_is_replaced,
    a_lease_that_ends_while_the_node_is_down_is_not_restored,
    a_stopped_node_leaves_nothing,
    killed_at_any_point_of_a_setup,
);

over_each_driver_in_four_lanes!(
    a_killed_node_forwards_and_restores,
    a_killed_launcher_is_replaced,
    a_stopped_node_leaves_nothing,
);

/// Goal: a node whose `netservd` is killed forwards every packet, also those that a module wanted; started again, it
/// restores its modules.
fn a_killed_node_forwards_and_restores(driver: Driver) {
    let Some(mut net) = net("a_killed_node_forwards_and_restores", driver) else { return };
    let (package, url) = net.publish("echo");
    let sender = net.lab.v4("sender");
    let filter = format!("udp dst {sender}/32 port 44444");
    let result = net.setup_with(&package, &url, &filter, &["--ttl", "60s"]);
    assert_nodes(&result, |outcome| matches!(outcome, Outcome::Installed { .. }));
    let workers = processes_under(net.lab.pid("n2", "netservd").unwrap());
    assert!(!workers.is_empty(), "no container runs");

    net.lab.kill("n2", "netservd").unwrap();
    net.lab.kill("n1", "netservd").unwrap();
    eventually("the containers die with their node", || workers.iter().all(|pid| !alive(*pid)));
    // Nobody answers any more, but everything is forwarded: what the module wanted, and what nobody did.
    assert_eq!(net.ask_udp(sender.into(), 44444, "dead"), None);
    for port in [44444, 44445] {
        assert_eq!(arrived(&net, port), DATAGRAMS, "datagrams to port {port} that passed two dead nodes");
    }

    for node in ["n1", "n2"] {
        net.lab.restart_netservd(node).unwrap();
        eventually("the module runs again", || {
            net.status(node, &package).is_some_and(|status| status.state == ModuleState::Running)
        });
        let lease = net.status(node, &package).unwrap().lease_s;
        assert!((30..60).contains(&lease), "the lease goes on where it was, not from {lease}");
    }
    assert_eq!(net.ask_udp(sender.into(), 44444, "again").as_deref(), Some("again"));
    assert_eq!(hooks(&net, "n2"), Hooks::of(driver, 1), "the dead node's are gone, the new one's are there");
}

/// How many datagrams are sent past dead nodes.
const DATAGRAMS: usize = 2000;

/// Sends numbered datagrams from the receiver to the sender, one a millisecond, and returns how many of them arrived. Any that
/// arrives twice counts as none.
fn arrived(net: &Net, port: u16) -> usize {
    const SINK: &str = r#"use IO::Socket::INET; $| = 1;
        $socket = IO::Socket::INET->new(LocalPort => $ARGV[0], Proto => "udp") or die $!; print "ready\n";
        while (1) {
            my $wanted = ""; vec($wanted, $socket->fileno, 1) = 1;
            last unless select($wanted, undef, undef, 3) > 0;
            $socket->recv($text, 100); $seen{$text}++;
        }
        print scalar(grep { $_ == 1 } values %seen), "\n";"#;
    const SOURCE: &str = r#"use IO::Socket::INET; use Time::HiRes "usleep";
        $socket = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => $ARGV[1], Proto => "udp") or die $!;
        for (1 .. $ARGV[2]) { $socket->send("number $_"); usleep(1000); }"#;
    let (sender, port, count) = (net.lab.v4("sender").to_string(), port.to_string(), DATAGRAMS.to_string());
    let mut sink = net.lab.command("sender", "perl");
    let mut sink = sink.args(["-e", SINK, &port]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(sink.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    net.lab.run("receiver", "perl", &["-e", SOURCE, &sender, &port, &count]).unwrap();
    let arrived = lines.next().unwrap().unwrap();
    sink.wait().unwrap();
    arrived.parse().unwrap()
}

/// The launcher's death costs the containers, and nothing else: what was installed comes back, and what is new works.
fn a_killed_launcher_is_replaced(driver: Driver) {
    let Some(net) = net("a_killed_launcher_is_replaced", driver) else { return };
    let (package, url) = net.publish("echo");
    let sender = net.lab.v4("sender");
    net.setup(&package, &url, &format!("udp dst {sender}/32 port 44444"));
    let netservd = net.lab.pid("n2", "netservd").unwrap();
    let processes = processes_under(netservd);
    let launcher = processes[0];
    assert!(processes.len() > 1, "no container runs");
    Command::new("kill").args(["-9", &launcher.to_string()]).status().unwrap();
    eventually("all containers die", || processes.iter().all(|pid| !alive(*pid)));
    eventually("the module runs again", || {
        net.status("n2", &package).is_some_and(|status| status.state == ModuleState::Running && status.restarts > 0)
    });
    assert_eq!(net.ask_udp(sender.into(), 44444, "again").as_deref(), Some("again"));

    // Without modules nobody misses the launcher before it is needed.
    assert_nodes(&net.remove(&package), |outcome| *outcome == Outcome::Removed);
    let launcher = processes_under(netservd)[0];
    Command::new("kill").args(["-9", &launcher.to_string()]).status().unwrap();
    eventually("it dies", || !alive(launcher));
    let (other, url) = net.publish("net-monitor");
    let result = net.setup(&other, &url, &format!("udp dst {sender}/32"));
    assert_nodes(&result, |outcome| matches!(outcome, Outcome::Installed { .. }));
}

fn a_lease_that_ends_while_the_node_is_down_is_not_restored(driver: Driver) {
    let Some(mut net) = net("a_lease_that_ends_while_the_node_is_down_is_not_restored", driver) else { return };
    let (package, url) = net.publish("echo");
    let filter = format!("udp dst {}/32 port 44444", net.lab.v4("sender"));
    net.setup_with(&package, &url, &filter, &["--ttl", "2s"]);
    net.lab.kill("n2", "netservd").unwrap();
    std::thread::sleep(Duration::from_millis(2100));
    net.lab.restart_netservd("n2").unwrap();
    assert_eq!(net.status("n2", &package), None);
}

fn a_stopped_node_leaves_nothing(driver: Driver) {
    let Some(mut net) = net("a_stopped_node_leaves_nothing", driver) else { return };
    let (package, url) = net.publish("echo");
    net.setup(&package, &url, &format!("udp dst {}/32 port 44444", net.lab.v4("sender")));
    let pid = net.lab.pid("n2", "netservd").unwrap();
    let workers = processes_under(pid);
    let groups = cgroups_of(&workers);
    assert!(!groups.is_empty(), "the container is in no cgroup of ours");
    net.lab.stop("n2", "netservd").unwrap();
    assert!(wait_until(Duration::from_secs(20), || workers.iter().all(|pid| !alive(*pid))));
    assert_eq!(hooks(&net, "n2"), Hooks::default());
    assert!(!net.lab.socket("n2").exists(), "the socket is still there");
    for group in groups {
        assert!(!Path::new(&group).exists(), "{group} is still there");
    }
}

/// Goal: no moment of a SETUP at which a kill leaves something that the next start does not put right.
/// Method: kill a node at growing delays after the SETUP was sent; start it again; the node must be without the module,
/// or run it, and a new SETUP must work.
fn killed_at_any_point_of_a_setup(driver: Driver) {
    let Some(mut net) = net("killed_at_any_point_of_a_setup", driver) else { return };
    let (package, url) = net.publish("echo");
    let sender = net.lab.v4("sender");
    let filter = format!("udp dst {sender}/32 port 44444");
    for delay_ms in [0, 5, 10, 15, 20, 30, 45, 70, 100] {
        std::thread::scope(|scope| {
            let requester = scope.spawn(|| net.setup_with(&package, &url, &filter, &["--timeout", "4s"]));
            std::thread::sleep(Duration::from_millis(delay_ms + 15));
            let pid = net.lab.pid("n2", "netservd").unwrap();
            Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
            let result = requester.join().unwrap();
            assert!(result.nodes.iter().any(|node| node.node.as_str() == "n1"), "after {delay_ms} ms: {result:?}");
        });
        // It is dead; this only takes it off the lab's list.
        let _ = net.lab.kill("n2", "netservd");
        net.lab.restart_netservd("n2").unwrap();
        let restored = net.status("n2", &package).is_some();
        if restored {
            eventually("a restored module runs", || {
                net.status("n2", &package).is_some_and(|status| status.state == ModuleState::Running)
            });
        }
        let result = net.setup(&package, &url, &filter);
        assert_nodes(&result, |outcome| outcome.is_ok());
        assert_eq!(net.ask_udp(sender.into(), 44444, "works").as_deref(), Some("works"), "after {delay_ms} ms");
        assert_nodes(&net.remove(&package), |outcome| *outcome == Outcome::Removed);
        assert_eq!(hooks(&net, "n2"), Hooks::of(driver, 0), "after {delay_ms} ms");
    }
}

/// What brings a machine's packets to user space.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hooks {
    /// Rules for IPv4.
    rules: usize,
    /// Devices with an XDP program.
    programs: usize,
}

impl Hooks {
    /// Returns those of a running node with so many filters: one rule is for signaling.
    fn of(driver: Driver, filters: usize) -> Hooks {
        match driver {
            Driver::Afxdp => Hooks { rules: 0, programs: 2 },
            Driver::Nfqueue => Hooks { rules: 1 + filters, programs: 0 },
        }
    }
}

fn hooks(net: &Net, machine: &str) -> Hooks {
    let lines_with = |output: std::process::Output, word: &str| {
        String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.contains(word)).count()
    };
    Hooks {
        rules: lines_with(net.lab.run(machine, "nft", &["list", "ruleset", "ip"]).unwrap(), " queue num "),
        programs: lines_with(net.lab.run(machine, "ip", &["-o", "link"]).unwrap(), " prog/xdp "),
    }
}

fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Returns the directories of the cgroups of processes that are ours.
fn cgroups_of(pids: &[u32]) -> Vec<String> {
    let mut groups = Vec::new();
    for pid in pids {
        let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        for line in text.lines().filter(|line| line.contains("netserv")) {
            let parts: Vec<&str> = line.splitn(3, ':').collect();
            let controllers = if parts[1].is_empty() { "unified" } else { parts[1] };
            let first = controllers.split(',').next().unwrap_or_default();
            let candidates = [
                format!("/sys/fs/cgroup/{controllers}{}", parts[2]),
                format!("/sys/fs/cgroup/{first}{}", parts[2]),
                format!("/sys/fs/cgroup{}", parts[2]),
            ];
            groups.extend(candidates.into_iter().find(|path| Path::new(path).exists()));
        }
    }
    groups
}
