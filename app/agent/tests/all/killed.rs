// SPDX-License-Identifier: Apache-2.0
//! The agent, killed at any step.
#![allow(clippy::unwrap_used, dead_code, reason = "a test that cannot go on fails; the helpers are shared")]

use crate::common::{Agent, wait_until};

/// Goal: in whatever moment the agent is killed, nothing is deployed twice, what is deployed is known again, and nothing is left when
/// nobody comes. Method: the program itself with a node that kills it at its n-th request, before the request is done and before it is
/// answered, for n = 1, 2, … until none is left; all of them at once.
#[test]
fn an_agent_that_is_killed_at_any_step_leaves_nothing() {
    let whole = run(None);
    // The way, the SETUP and what became of it, for two clients behind nodes of their own, and the end of the last: that of the first one
    // is its lease's, since a REMOVE would take the module from the node that both have.
    assert!(whole >= 7, "{whole} requests");
    let runs = (1..=whole).flat_map(|number| [false, true].map(|done| (number, done)));
    let runs: Vec<_> = runs.map(|at| std::thread::spawn(move || run(Some(at)))).collect();
    runs.into_iter().for_each(|run| _ = run.join().unwrap());
}

/// Runs an agent until what it deployed is gone, and returns how many requests there were.
fn run(kill_at: Option<(usize, bool)>) -> usize {
    let mut agent = Agent::start("lease-s = 10\nidle-s = 2\n");
    agent.node.state().kill_at = kill_at;
    let clients = [("198.51.100.7", 1), ("198.51.101.7", 1)];
    // One that is killed at once may not answer.
    let _ = agent.observe(&clients);
    let mut was_killed = false;
    let over = || {
        if agent.has_ended() {
            was_killed = true;
            agent.run();
            // They come once more.
            assert_eq!(agent.observe(&clients), Some(204));
        }
        let is_due = kill_at.is_none() || was_killed;
        let state = agent.node.state();
        let is_gone = is_due && state.came >= clients.len() && state.is_gone();
        drop(state);
        is_gone && agent.status().is_some_and(|status| status.deployments.is_empty())
    };
    assert!(wait_until(over), "{kill_at:?}: {:?}\n{}", agent.node.state().requests, agent.log());
    let state = agent.node.state();
    let came = state.came;
    // Once it was gone, clients that come again may bring it back once.
    assert!((2..=4).contains(&came), "{kill_at:?}: it came {came} times: {:?}", state.requests);
    // Not only the leases end: whoever is the last to go is removed.
    let last = state.requests.iter().rfind(|request| !request.starts_with("PROBE"));
    assert!(last.is_some_and(|last| last.starts_with("REMOVE")), "{kill_at:?}: {:?}", state.requests);
    state.requests.len()
}
