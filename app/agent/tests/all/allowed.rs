// SPDX-License-Identifier: Apache-2.0
//! Who may tell the agent of clients.
#![allow(clippy::unwrap_used, dead_code, reason = "a test that cannot go on fails; the helpers are shared")]

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::common::{Agent, wait_until};
use netserv_skips::skipped;

/// Users and groups that are nobody's.
const STRANGER: u32 = 61_001;
const SERVER: u32 = 61_002;
const GROUP: u32 = 61_003;

/// Goal: the group of a log's socket may write to it, and nobody else may tell of clients, by no way. Method: the program itself, and
/// processes of other users.
#[test]
fn observations_from_whoever_is_not_allowed_are_refused() {
    let test = "observations_from_whoever_is_not_allowed_are_refused";
    if !rustix::process::geteuid().is_root() {
        return skipped(test, "not root, so no other users");
    }
    let mut agent = Agent::start("count = 100\n");
    let config = std::fs::read_to_string(agent.path("agent.toml")).unwrap();
    let config = config.replace("name = \"access\"\n", &format!("name = \"access\"\ngroup = \"{GROUP}\"\n"));
    std::fs::write(agent.path("agent.toml"), config).unwrap();
    agent.run();
    // It answers before it listens for logs, and the socket of the run before it, which was killed, is still there.
    let is_permitted = |log: Metadata| log.gid() == GROUP && log.mode() & 0o777 == 0o620;
    assert!(wait_until(|| agent.path("access.sock").metadata().is_ok_and(is_permitted)));
    std::fs::set_permissions(agent.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();

    let line = "import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'nginx: 192.0.2.1 - -', sys.argv[1])";
    let logs = |user: u32, group: u32| {
        let mut python = Command::new("/usr/bin/python3");
        python.args(["-I", "-c", line]).arg(agent.path("access.sock")).uid(user).gid(group);
        let output = python.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() || said.contains("PermissionError"), "{said}");
        output.status.success()
    };
    let posts = |user: u32, group: u32| {
        let body = "{\"observations\":[{\"rule\":\"edge\",\"client\":\"192.0.2.1\"}]}";
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-f", "-H", "content-type: application/json", "-d", body, "--unix-socket"]);
        curl.arg(agent.path("agent.sock")).arg("http://agent/v1/observations").uid(user).gid(group);
        curl.output().unwrap().status.success()
    };
    assert!(!logs(STRANGER, STRANGER) && !posts(STRANGER, STRANGER));
    assert!(logs(SERVER, GROUP) && !posts(SERVER, GROUP));
    assert!(logs(0, 0) && posts(0, 0));
    assert!(wait_until(|| agent.status().unwrap().observations >= 3));
    assert_eq!(agent.status().unwrap().observations, 3, "of the server's line and the two of root");
}
