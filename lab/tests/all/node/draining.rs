// SPDX-License-Identifier: Apache-2.0
//! A node is drained before maintenance: real nodes, whose user moves a module away.

use std::process::{Command, Stdio};

use crate::common::{Driver, eventually};
use netserv_api::DrainReport;
use netserv_lab::netns::{is_root, program};
use netserv_lab::relocating::Relocating;
use netserv_model::RefusalKind;
use netserv_model::request::{ModuleState, NodeReport};
use netserv_skips::skipped;

/// Goal: a drained node refuses what is new by a name of its own, says so to the requester's host and in PROBE, also after a restart;
/// `--wait` ends when its module was moved, and `--undo` has it take modules again. Method: `sender – n1 – r – n2 – receiver`.
#[test]
fn a_drained_node_takes_nothing_new_until_it_is_undone() {
    let test = "a_drained_node_takes_nothing_new_until_it_is_undone";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    let mut moving = Relocating::up(Driver::Nfqueue.name()).unwrap();
    assert_eq!(able(&moving), ["n1", "n2"]);
    let report = drain(&moving, "n1", &[]);
    assert!(report.maintenance && report.left.len() == 1, "{report:?}");
    eventually("the requester's host is told", || {
        let log = moving.lab.log("sender", "netservd");
        log.lines().any(|line| line.contains("node-maintenance") && line.contains("node=n1"))
    });
    moving.lab.kill("n1", "netservd").unwrap();
    moving.lab.restart_netservd("n1").unwrap();
    eventually("it runs again", || moving.states("n1").unwrap() == [ModuleState::Running]);
    let status = moving.lab.netserv("n1", &["node", "status"]).unwrap().stdout;
    assert!(String::from_utf8_lossy(&status).contains("drained  takes nothing new"), "it is so after a restart");

    let mut waiting = Command::new(program("netserv").unwrap());
    waiting.arg("--socket").arg(moving.lab.socket("n1")).args(["node", "drain", "--wait"]);
    let mut waiting = waiting.stdout(Stdio::piped()).spawn().unwrap();
    let told = moving.relocate("n1", "n2").unwrap();
    assert_eq!((&*told.node, told.epoch), ("n2", 2));
    assert!(waiting.wait().unwrap().success());
    assert_eq!((moving.states("n1").unwrap().len(), moving.states("n2").unwrap()), (0, vec![ModuleState::Running]));

    let refused = moving.setup("n1", 3).unwrap();
    let outcome = &entry(&refused.nodes, "n1").outcome;
    assert!(outcome.is_refused_for(RefusalKind::Maintenance), "{outcome:?}");
    let back = moving.command("n2", "n1").unwrap().output().unwrap();
    assert!(
        !back.status.success() && String::from_utf8_lossy(&back.stderr).contains("it is on n2 as before"),
        "{back:?}"
    );
    assert_eq!((moving.states("n1").unwrap().len(), moving.states("n2").unwrap()), (0, vec![ModuleState::Running]));
    let said = moving.candidates(&[]).unwrap();
    assert!(said.to_string().contains("its operator drains it"), "{said}");
    assert_eq!(able(&moving), ["n2"]);

    let report = drain(&moving, "n1", &["--undo"]);
    assert!(!report.maintenance && report.left.is_empty(), "{report:?}");
    assert_eq!(moving.relocate("n2", "n1").unwrap().epoch, 3);
    let host = moving.lab.try_netserv("sender", &["node", "drain"]).unwrap();
    assert!(String::from_utf8_lossy(&host.stderr).contains("a host runs no modules"), "{host:?}");
}

fn drain(moving: &Relocating, node: &str, more: &[&str]) -> DrainReport {
    let output = moving.lab.netserv(node, &[&["-j", "node", "drain"], more].concat()).unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the nodes that can have the module, in the order of their names.
fn able(moving: &Relocating) -> Vec<String> {
    let said = moving.candidates(&[]).unwrap();
    let all = said["candidates"].as_array().unwrap();
    let able = all.iter().filter(|one| one["score"].is_i64());
    let mut able: Vec<String> = able.map(|one| one["node"].as_str().unwrap().to_owned()).collect();
    able.sort();
    able
}

fn entry<'a>(nodes: &'a [NodeReport], name: &str) -> &'a NodeReport {
    nodes.iter().find(|report| report.node.as_str() == name).unwrap()
}
