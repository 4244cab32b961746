// SPDX-License-Identifier: Apache-2.0
//! A server that was restarted, and the nodes that are told.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Agent, wait_until};

/// Goal: each node that has the module is told of the server's restart, also one that was not heard the first time: a TELL follows the path, and the
/// answer of a node beyond may be late. Method: the program itself, a node whose first answers lack the one behind it, and a Kamailio that says
/// that it began later.
#[test]
fn a_node_that_was_not_heard_is_told_again_of_a_restart() {
    let (agent, kamailio) = deployed();
    agent.node.state().tells_cut = 2;
    let before = tells(&agent);
    kamailio.restart();
    assert!(wait_until(|| tells(&agent) == before + 3), "{} of 3\n{}", tells(&agent) - before, agent.log());
    assert_eq!(agent.node.state().tells_cut, 0);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(tells(&agent), before + 3, "all were told");
}

/// Goal: where the end of the path is not known, which may be behind a silent host or before a node that was late, modules are told a few times and no
/// more.
#[test]
fn before_a_silent_host_a_restart_is_told_three_times() {
    let (agent, kamailio) = deployed();
    agent.node.state().host_is_silent = true;
    let before = tells(&agent);
    kamailio.restart();
    assert!(wait_until(|| tells(&agent) == before + 3), "{} of 3\n{}", tells(&agent) - before, agent.log());
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(tells(&agent), before + 3);
}

/// Goal: a module that a node has though it was to be removed is told of the server's restart, too: it may serve clients that come again. Method: a
/// server that is away so long that its modules go, and a node that removes none.
#[test]
fn a_module_that_does_not_go_is_told_of_a_restart() {
    let (agent, kamailio) = deployed();
    agent.node.state().keeps_all = true;
    let before = tells(&agent);
    kamailio.answers.store(false, Ordering::Relaxed);
    let state = || agent.status().unwrap().rules[0].state.clone();
    assert!(wait_until(|| state() == "no-server"), "{}", agent.log());
    kamailio.restart();
    kamailio.answers.store(true, Ordering::Relaxed);
    assert!(wait_until(|| state() == "on"), "{}", agent.log());
    assert!(wait_until(|| tells(&agent) > before), "{}", agent.log());
}

/// Starts an agent that has its module on two nodes, before a server.
fn deployed() -> (Agent, Kamailio) {
    let kamailio = Kamailio::start();
    let socket = kamailio.folder.path().join("rpc.sock");
    let agent = Agent::start(&format!(
        "server = \"done\"\nrestart-topic = \"server\"\nidle-s = 600\n[[metric]]\nname = \"done\"\nevery-s = 1\n\
         kamailio = {socket:?}\nstatistic = \"core:rcv_requests\"\n"
    ));
    let is_running = || {
        assert_eq!(agent.observe(&[("198.51.100.7", 9)]), Some(204));
        agent.status().unwrap().deployments.iter().any(|one| one.nodes.len() == 2)
    };
    assert!(wait_until(is_running), "{}", agent.log());
    (agent, kamailio)
}

fn tells(agent: &Agent) -> usize {
    agent.node.state().requests.iter().filter(|request| request.starts_with("TELL")).count()
}

/// Answers as Kamailio's `jsonrpcs` does.
struct Kamailio {
    folder: tempfile::TempDir,
    begun: Arc<AtomicU32>,
    answers: Arc<AtomicBool>,
}

impl Kamailio {
    fn start() -> Kamailio {
        let folder = tempfile::tempdir().unwrap();
        let (begun, answers) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(true)));
        serve(&folder.path().join("rpc.sock"), Arc::clone(&begun), Arc::clone(&answers));
        Kamailio { folder, begun, answers }
    }

    fn restart(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }
}

fn serve(socket: &Path, begun: Arc<AtomicU32>, answers: Arc<AtomicBool>) {
    let socket = UnixDatagram::bind(socket).unwrap();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let asked: Value = serde_json::from_slice(&bytes[..length]).unwrap();
            let result = match asked["method"].as_str() {
                Some("core.uptime") => json!({ "up_since": begun.load(Ordering::Relaxed).to_string() }),
                _ => json!(["core:rcv_requests = 17"]),
            };
            let answer = json!({ "jsonrpc": "2.0", "result": result, "id": asked["id"] }).to_string();
            if answers.load(Ordering::Relaxed) {
                // The agent may have ended, or wait no more.
                let _ = socket.send_to_addr(answer.as_bytes(), &from);
            }
        }
    });
}
