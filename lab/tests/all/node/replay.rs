// SPDX-License-Identifier: Apache-2.0
//! What real nodes record is what `netserv-lab replay` gets from a node again.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Driver, assert_nodes, eventually, net};
use netserv_lab::netns::{Lab, program};
use netserv_model::request::{ModuleState, Outcome};
use serde_json::Value;

const DAEMONS: [&str; 3] = ["sender", "n1", "n2"];

over_one_driver! {
    afxdp: []
    nfqueue: [recordings_of_nodes_that_do_what_the_demo_does_are_replayed]
}

/// Goal: the recordings of all daemons of a network are replayed with the same outputs for each input, and one that was
/// changed is not.
/// Method: what the demo does, which is SETUP, PROBE, packets and REMOVE, with a refresh, a refused request and a restart
/// with what is installed in between; each run of a daemon is a recording of its own.
fn recordings_of_nodes_that_do_what_the_demo_does_are_replayed(driver: Driver) {
    let test = "recordings_of_nodes_that_do_what_the_demo_does_are_replayed";
    let Some(mut net) = net(test, driver) else { return };
    restart_all(&mut net.lab, "first");
    let sender = net.lab.v4("sender");
    let filter = format!("udp dst {sender}/32 port 44444");
    let (echo, echo_url) = net.publish("echo");
    let (monitor, monitor_url) = net.publish("net-monitor");
    assert_nodes(&net.setup(&echo, &echo_url, &filter), |outcome| matches!(outcome, Outcome::Installed { .. }));
    assert_nodes(&net.setup(&echo, &echo_url, &filter), |outcome| matches!(outcome, Outcome::Refreshed { .. }));
    let monitored = format!("udp dst {sender}/32");
    let result = net.setup_with(&monitor, &monitor_url, &monitored, &["--ttl", "60s"]);
    assert_nodes(&result, |outcome| matches!(outcome, Outcome::Installed { .. }));
    let not_there = net.setup(&monitor, "http://192.0.2.1:1/x.nsm", "udp dst 192.0.2.1/32");
    assert_nodes(&not_there, |outcome| matches!(outcome, Outcome::Refused(_)));
    probe(&net);
    assert_eq!(net.ask_udp(sender.into(), 44444, "hello").as_deref(), Some("hello"));

    restart_all(&mut net.lab, "second");
    for (node, package) in [("n1", &echo), ("n1", &monitor), ("n2", &echo), ("n2", &monitor)] {
        eventually("what was installed runs again", || {
            net.status(node, package).is_some_and(|status| status.state == ModuleState::Running)
        });
    }
    assert_eq!(net.ask_udp(sender.into(), 44444, "again").as_deref(), Some("again"));
    for package in [&echo, &monitor] {
        assert_nodes(&net.remove(package), |outcome| *outcome == Outcome::Removed);
    }
    probe(&net);
    for daemon in DAEMONS {
        net.lab.stop(daemon, "netservd").unwrap();
    }

    for daemon in DAEMONS {
        for run in ["first", "second"] {
            let (is_identical, said) = replay(&recording(&net.lab, daemon, run));
            assert!(is_identical, "{daemon}, {run} run: {said}");
            holds_no_secret(&net.lab, daemon, &recording(&net.lab, daemon, run));
            let inputs = said["inputs"].as_u64().unwrap();
            eprintln!("{daemon}, {run} run: {said}");
            assert!(inputs > 10 && said["outputs"].as_u64().unwrap() > 10, "{daemon}, {run} run: {said}");
        }
    }
    a_changed_recording_is_not_replayed(&recording(&net.lab, "n1", "first"));
}

/// A recording is sent to others: it lacks what the sessions of other runs are made from.
fn holds_no_secret(lab: &Lab, daemon: &str, recording: &Path) {
    let secret = std::fs::read(lab.state_dir(daemon).join("session-secret")).unwrap();
    let text = std::fs::read_to_string(recording).unwrap();
    assert!(text.contains("session_secret") && !text.contains(&serde_json::to_string(&secret).unwrap()), "{daemon}");
}

/// Leaves out one input in the middle; what follows has other outputs.
fn a_changed_recording_is_not_replayed(recording: &Path) {
    let text = std::fs::read_to_string(recording).unwrap();
    let posted = text.lines().position(|line| line.contains("\"Datagram\"")).expect("signaling is recorded");
    let without: Vec<&str> = text.lines().enumerate().filter(|(at, _)| *at != posted).map(|(_, line)| line).collect();
    let changed = recording.with_extension("changed");
    std::fs::write(&changed, without.join("\n") + "\n").unwrap();
    let (is_identical, said) = replay(&changed);
    assert!(!is_identical && said["line"].as_u64().unwrap() > u64::try_from(posted).unwrap(), "{said}");
}

/// Starts all daemons again, each with a recording.
fn restart_all(lab: &mut Lab, run: &str) {
    for daemon in DAEMONS {
        lab.stop(daemon, "netservd").unwrap();
        let file = recording(lab, daemon, run).display().to_string();
        lab.use_wrapper(&["sh", "-c", &format!("exec \"$@\" --record '{file}'"), "sh"]);
        lab.restart_netservd(daemon).unwrap();
    }
}

fn recording(lab: &Lab, daemon: &str, run: &str) -> PathBuf {
    lab.dir().join(format!("{daemon}-{run}.jsonl"))
}

fn probe(net: &crate::common::Net) {
    let receiver = net.lab.v4("receiver").to_string();
    let result = net.request(&["probe", "--to", &receiver, "--ask", "nodes,modules,blocks,load"]);
    assert_nodes(&result, |outcome| *outcome == Outcome::Probed);
}

/// Replays a recording; returns whether the same came out, and what is said of it.
fn replay(recording: &Path) -> (bool, Value) {
    let output =
        Command::new(program("netserv-lab").unwrap()).args(["replay", "--json"]).arg(recording).output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(output.status.success(), said["identical"] == Value::Bool(true), "{said}");
    (output.status.success(), said)
}
