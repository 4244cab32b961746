// SPDX-License-Identifier: Apache-2.0
//! The audit log of a real node.

use std::path::PathBuf;

use crate::common::{Driver, Net, assert_nodes, assert_refused, eventually, net};
use netserv_lab::node::cli;
use netserv_model::RefusalKind;
use netserv_model::audit::{AuditEntry, AuditLine};
use netserv_model::request::Outcome;

/// The node's log as its command line shows it, from a line on.
fn lines(net: &Net, first: u64) -> Vec<AuditEntry> {
    lines_of(net, "n1", first)
}

fn lines_of(net: &Net, machine: &str, first: u64) -> Vec<AuditEntry> {
    let output = net.lab.netserv(machine, &["node", "audit", "-j"]).unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<AuditLine>(line).unwrap());
    lines.filter(|line| line.line >= first).map(|line| line.entry).collect()
}

fn folder(net: &Net) -> PathBuf {
    net.lab.state_dir("n1").join("audit")
}

/// Goal: decisions are in the log with who asked, from where, and by which evidence, over a kill and a restart, and what is changed there
/// afterwards is found. Method: real nodes; a SETUP that works and one that is refused, a REMOVE, a reload, and files that are changed while
/// the node is down.
#[test]
fn decisions_are_kept_and_changes_are_found() {
    let Some(mut net) = net("decisions_are_kept_and_changes_are_found", Driver::Afxdp) else { return };
    let (package, url) = net.publish("keep-alive");
    let own = format!("udp dst {}/32 port 5060", net.lab.v4("sender"));
    assert_nodes(&net.setup(&package, &url, &own), |outcome| matches!(outcome, Outcome::Installed { .. }));
    assert_refused(&net.setup(&package, &url, "dst 198.51.100.1"), RefusalKind::PrefixNotAllowed);
    net.lab.netserv("n1", &["node", "reload"]).unwrap();
    eventually("what was decided is in the log", || lines(&net, 1).len() >= 4);
    let told = |line: &AuditEntry| format!("{} {}", line.verb, line.outcome);
    let all = lines(&net, 1);
    assert_eq!(
        all.iter().map(told).collect::<Vec<_>>(),
        ["START done", "SETUP installed", "SETUP refused", "RELOAD done"]
    );
    for line in &all[1..3] {
        assert_eq!(line.user.as_ref().map(|user| user.as_str()), Some("janedoe"));
        assert_eq!(line.evidence.as_deref(), Some("configured"));
        assert_eq!(line.key.map(|key| key.to_string()), Some(net.user.public.clone()));
        assert_eq!(line.module.as_deref(), Some(package.module.as_str()));
        let from: std::net::IpAddr = line.from.as_ref().unwrap().parse().unwrap();
        assert_eq!(from, std::net::IpAddr::from(net.lab.v4("sender")));
    }
    assert!(all[3].from.as_ref().is_some_and(|from| from.starts_with("local uid ")), "{:?}", all[3].from);
    assert!(all[2].detail.starts_with("prefix-not-allowed"), "{}", all[2].detail);

    // A host has nothing to trace and nothing to drain, and its log says that it did not.
    for refused in [&["trace", "--count", "1"][..], &["node", "drain"]] {
        net.lab.netserv("sender", refused).unwrap_err();
    }
    let of_operator = || {
        let lines = lines_of(&net, "sender", 2).into_iter();
        lines.filter(|line| line.from.as_ref().is_some_and(|from| from.starts_with("local uid "))).collect::<Vec<_>>()
    };
    eventually("refused operations are in the log", || of_operator().len() >= 2);
    let refused = of_operator();
    assert_eq!(refused.iter().map(told).collect::<Vec<_>>(), ["TRACE failed", "DRAIN failed"]);
    assert!(refused.iter().all(|line| line.detail.contains("host")), "{refused:?}");

    net.lab.kill("n1", "netservd").unwrap();
    net.lab.restart_netservd("n1").unwrap();
    assert_nodes(&net.remove(&package), |outcome| *outcome == Outcome::Removed);
    eventually("the log goes on after a kill", || lines(&net, 5).iter().any(|line| line.verb == "REMOVE"));
    net.lab.netserv("n1", &["node", "audit", "--verify"]).unwrap();

    net.lab.stop("n1", "netservd").unwrap();
    let folder = folder(&net);
    let path = folder.to_string_lossy().into_owned();
    let verify = ["node", "audit", "--verify", "--folder", &path];
    cli(&verify).unwrap();
    let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("prefix-not-allowed", "prefix-not-granted", 1)).unwrap();
    let error = cli(&verify).unwrap_err().to_string();
    assert!(error.contains("broken at line 4"), "{error}");
    net.lab.restart_netservd("n1").unwrap();
    let error = net.lab.netserv("n1", &["node", "audit", "--verify"]).unwrap_err().to_string();
    assert!(error.contains("broken at line 4"), "{error}");
}
