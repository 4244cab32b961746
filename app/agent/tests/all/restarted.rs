// SPDX-License-Identifier: Apache-2.0
//! A server that was restarted, and the nodes that are told.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::common::{Agent, wait_until};

/// Goal: each node that has the module is told of the server's restart, also one that was not heard the first time: a TELL follows the path, and the
/// answer of a node beyond may be late. Method: the program itself, a node whose first answers lack the one behind it, and a Kamailio that says
/// that it began later.
#[test]
fn a_node_that_was_not_heard_is_told_again_of_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("rpc.sock");
    let begun = kamailio(&socket);
    let agent = Agent::start(&format!(
        "server = \"done\"\nrestart-topic = \"server\"\nidle-s = 600\n[[metric]]\nname = \"done\"\nevery-s = 1\n\
         kamailio = {socket:?}\nstatistic = \"core:rcv_requests\"\n"
    ));
    let tells = || agent.node.state().requests.iter().filter(|request| request.starts_with("TELL")).count();
    let is_running = || {
        assert_eq!(agent.observe(&[("198.51.100.7", 9)]), Some(204));
        agent.status().unwrap().deployments.iter().any(|one| one.nodes.len() == 2)
    };
    assert!(wait_until(is_running), "{}", agent.log());
    agent.node.state().tells_cut = 2;
    let before = tells();
    begun.fetch_add(1, Ordering::Relaxed);
    assert!(wait_until(|| tells() == before + 3), "{} of 3\n{}", tells() - before, agent.log());
    assert_eq!(agent.node.state().tells_cut, 0);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(tells(), before + 3, "all were told");
}

/// Answers as Kamailio's `jsonrpcs` does. It began at the second that is returned.
fn kamailio(socket: &Path) -> Arc<AtomicU32> {
    let socket = UnixDatagram::bind(socket).unwrap();
    let begun = Arc::new(AtomicU32::new(0));
    let since = Arc::clone(&begun);
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let asked: Value = serde_json::from_slice(&bytes[..length]).unwrap();
            let result = match asked["method"].as_str() {
                Some("core.uptime") => json!({ "up_since": since.load(Ordering::Relaxed).to_string() }),
                _ => json!(["core:rcv_requests = 17"]),
            };
            let answer = json!({ "jsonrpc": "2.0", "result": result, "id": asked["id"] }).to_string();
            // The agent may have ended.
            let _ = socket.send_to_addr(answer.as_bytes(), &from);
        }
    });
    begun
}
