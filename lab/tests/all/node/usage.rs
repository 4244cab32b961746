// SPDX-License-Identifier: Apache-2.0
//! What users use on a whole node is summed up once, and goes on over unloads, deaths, upgrades and restarts.

use std::process::Command;

use crate::common::{Driver, Net, assert_nodes, eventually, net};
use netserv_lab::node::LabPackage;
use netserv_model::api::{UsageReport, UserUsage};
use netserv_model::request::{ModuleState, Outcome};
use netserv_model::usage::Traffic;

over_one_driver! {
    afxdp: [a_killed_node_keeps_what_it_stored]
    nfqueue: [sums_go_on_over_all_that_ends]
}

/// The text that is sent to the module, and its bytes with those of the headers of IPv4 and UDP.
const TEXT: &str = "how much is this";
const BYTES: u64 = 28 + TEXT.len() as u64;

/// Goal: each packet is in the sums once, whatever ends after it. Method: a module that answers each datagram, with its
/// worker killed, removed and installed again, and the node stopped in order.
fn sums_go_on_over_all_that_ends(driver: Driver) {
    let Some(mut net) = net("sums_go_on_over_all_that_ends", driver) else { return };
    assert_eq!(usage(&net), None, "nothing was used");
    let (package, url) = net.publish("echo");
    let filter = format!("udp dst {}/32 port 44444", net.lab.v4("sender"));
    assert_nodes(&net.setup(&package, &url, &filter), |outcome| matches!(outcome, Outcome::Installed { .. }));
    let mut sent = send(&net, 8);
    eventually("memory is used for a while", || check(&net, sent).usage.memory_byte_seconds > 0);
    let first = check(&net, sent);
    assert!(first.usage.cpu_ns > 0, "{first:?}");
    assert_eq!(check(&net, sent).usage.packets, first.usage.packets, "asking is not using");

    kill_worker(&net, &package);
    sent += send(&net, 5);
    let second = check(&net, sent);
    assert!(second.usage.cpu_ns > first.usage.cpu_ns, "a worker that died had its time, too");

    assert_nodes(&net.remove(&package), |outcome| *outcome == Outcome::Removed);
    let third = check(&net, sent);
    assert!(third.usage.cpu_ns >= second.usage.cpu_ns);
    net.setup(&package, &url, &filter);
    sent += send(&net, 5);
    check(&net, sent);

    // What was not read before the stop is read by it.
    sent += send(&net, 5);
    net.lab.stop("n2", "netservd").unwrap();
    net.lab.restart_netservd("n2").unwrap();
    let fourth = check(&net, sent);
    assert_eq!(fourth.since, first.since);
    eventually("the module sees packets again", || sees_packets(&net, &package));
    sent += send(&net, 5);
    check(&net, sent);

    let metrics = net.lab.metrics("n2").unwrap();
    let line = format!("netserv_user_packets_total{{user=\"janedoe\",direction=\"in\"}} {sent}\n");
    assert!(metrics.contains(&line), "no {line} in {metrics}");
    let table = net.lab.netserv("n2", &["node", "usage", "--user", "janedoe"]).unwrap().stdout;
    let table = String::from_utf8(table).unwrap();
    assert!(table.lines().any(|line| line.contains("(all)") && line.contains(&sent.to_string())), "{table}");
}

/// A kill loses what was not stored, and counts nothing twice.
fn a_killed_node_keeps_what_it_stored(driver: Driver) {
    let Some(mut net) = net("a_killed_node_keeps_what_it_stored", driver) else { return };
    let (package, url) = net.publish("echo");
    let filter = format!("udp dst {}/32 port 44444", net.lab.v4("sender"));
    net.setup(&package, &url, &filter);
    let sent = send(&net, 5);
    let before = check(&net, sent).usage.packets;
    let stored = "netserv_effects{state=\"open\"} 0\n";
    eventually("it is stored", || net.lab.metrics("n2").unwrap().contains(stored));
    net.lab.kill("n2", "netservd").unwrap();
    net.lab.restart_netservd("n2").unwrap();
    eventually("the module sees packets again", || sees_packets(&net, &package));
    assert_eq!(check(&net, sent).usage.packets, before);
    let sent = sent + send(&net, 5);
    check(&net, sent);
}

/// Sends datagrams, each of which the module answers, and returns how many packets the module was shown.
fn send(net: &Net, count: u64) -> u64 {
    let sender = net.lab.v4("sender");
    for _ in 0..count {
        assert_eq!(net.ask_udp(sender.into(), 44444, TEXT).as_deref(), Some(TEXT));
    }
    count
}

/// Checks that the user and the module used as many packets as were sent; returns what the user used.
fn check(net: &Net, sent: u64) -> UserUsage {
    let used = usage(net).expect("something was used");
    let Traffic { packets_in, bytes_in, packets_out, .. } = used.usage.packets;
    assert_eq!((packets_in, bytes_in), (sent, sent * BYTES), "{used:?}");
    assert!(packets_out <= sent, "{used:?}");
    assert_eq!(used.modules.len(), 1);
    assert_eq!(used.modules[0].packets, used.usage.packets);
    assert!(used.modules[0].cpu_ns <= used.usage.cpu_ns, "{used:?}");
    used
}

fn usage(net: &Net) -> Option<UserUsage> {
    let output = net.lab.netserv("n2", &["-j", "node", "usage"]).unwrap();
    let report: UsageReport = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report.others.is_none() && report.users.len() <= 1, "{report:?}");
    report.users.into_iter().next()
}

/// Returns whether the module runs on n2 and its filters are installed: nothing is under way.
fn sees_packets(net: &Net, package: &LabPackage) -> bool {
    let idle = "netserv_effects{state=\"open\"} 0\n";
    net.status("n2", package).is_some_and(|status| status.state == ModuleState::Running)
        && net.lab.metrics("n2").unwrap().contains(idle)
}

/// Kills the worker of n2, and waits until the module runs in another.
fn kill_worker(net: &Net, package: &LabPackage) {
    let restarts = || net.status("n2", package).filter(|status| status.state == ModuleState::Running);
    let before = restarts().unwrap().restarts;
    let netservd = net.lab.pid("n2", "netservd").unwrap();
    let script = format!("for l in $(pgrep -P {netservd}); do pgrep -P $l -f 'netserv-worker serve'; done");
    let found = Command::new("sh").args(["-c", &script]).output().unwrap();
    let pids = String::from_utf8(found.stdout).unwrap();
    assert!(!pids.trim().is_empty(), "no worker runs");
    for pid in pids.lines() {
        assert!(Command::new("kill").args(["-9", pid]).status().unwrap().success());
    }
    eventually("the module runs again", || restarts().is_some_and(|status| status.restarts > before));
    eventually("the module sees packets again", || sees_packets(net, package));
}
