// SPDX-License-Identifier: Apache-2.0
//! The agent, whose log nobody can take.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::{Agent, wait_until};

/// Goal: an agent whose log is on a full disk starts, and deploys.
#[test]
fn an_agent_whose_log_is_full_goes_on() {
    let mut agent = Agent::start("lease-s = 10\n");
    std::fs::remove_file(agent.path("log")).unwrap();
    std::os::unix::fs::symlink("/dev/full", agent.path("log")).unwrap();
    agent.run();
    assert_eq!(agent.observe(&[("198.51.100.7", 1)]), Some(204));
    assert!(wait_until(|| agent.status().is_some_and(|status| status.deployments.len() == 1)));
    assert!(!agent.has_ended());
}
