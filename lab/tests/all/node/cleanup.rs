// SPDX-License-Identifier: Apache-2.0
//! A lab clears up after itself, whatever ends it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use netserv_lab::netns::{clear_leftovers, is_root, program, wait_until};
use netserv_skips::skipped;

#[test]
fn a_killed_lab_leaves_no_namespace_no_process_no_file_no_control_group() {
    let test = "a_killed_lab_leaves_no_namespace_no_process_no_file_no_control_group";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    let mut owner = start();
    let id = format!("nslab{}-0", owner.id());
    let dir = std::env::temp_dir().join(&id);
    let inside = processes(&id);
    assert_eq!(namespaces(&id).len(), 3);
    assert!(inside.len() >= 3, "only {inside:?} run in the lab");
    let groups = control_groups(&dir);
    assert!(dir.exists() && !groups.is_empty());
    owner.kill().unwrap();
    owner.wait().unwrap();
    let gone = wait_until(Duration::from_secs(60), || {
        namespaces(&id).is_empty()
            && !dir.exists()
            && groups.iter().all(|group| !group.exists())
            && inside.iter().all(|pid| !PathBuf::from(format!("/proc/{pid}")).exists())
    });
    assert!(gone, "left: {:?} {:?} {} {groups:?}", namespaces(&id), processes(&id), dir.exists());
}

#[test]
fn a_lab_whose_janitor_died_too_is_cleared_by_the_next() {
    let test = "a_lab_whose_janitor_died_too_is_cleared_by_the_next";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    let mut owner = start();
    let id = format!("nslab{}-0", owner.id());
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", owner.id())).unwrap();
    let is_janitor = |pid: &&str| {
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.contains("janitor")
    };
    let janitor = children.split_whitespace().find(is_janitor).unwrap();
    assert!(Command::new("kill").args(["-9", janitor]).status().unwrap().success());
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_eq!(namespaces(&id).len(), 3);
    // Nothing of the node is left that could take its control groups away.
    let dir = std::env::temp_dir().join(&id);
    let groups = control_groups(&dir);
    let pids: Vec<String> = processes(&id).iter().map(u32::to_string).collect();
    // Stopped first, lest one sees that another is gone, and clears up.
    for signal in ["-STOP", "-KILL"] {
        assert!(Command::new("kill").arg(signal).args(&pids).status().unwrap().success());
    }
    assert!(wait_until(Duration::from_secs(10), || processes(&id).is_empty()));
    assert!(!groups.is_empty() && groups.iter().all(|group| group.exists()), "{groups:?}");
    assert!(clear_leftovers().unwrap().contains(&id));
    assert!(namespaces(&id).is_empty());
    assert!(!dir.exists());
    assert!(groups.iter().all(|group| !group.exists()), "{groups:?}");
}

/// Starts a lab of three machines and waits until it is up.
fn start() -> Child {
    let mut command = Command::new(program("netserv-lab").unwrap());
    command.args(["up", "n"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut owner = command.spawn().unwrap();
    let lines = BufReader::new(owner.stdout.as_mut().unwrap()).lines();
    let up = lines.map_while(Result::ok).any(|line| line.contains("press Enter"));
    assert!(up, "the lab did not come up");
    owner
}

fn namespaces(id: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&format!("{id}-"))).collect()
}

/// Returns the control groups of the node of a lab that is up.
fn control_groups(dir: &Path) -> Vec<PathBuf> {
    // It says the instance's name, whether or not there is anything to clean up.
    let mut command = Command::new(program("netservd").unwrap());
    let said = command.args(["cleanup", "--dry-run", "--config"]).arg(dir.join("n1.toml")).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let instance = said.strip_prefix("instance ").and_then(|rest| rest.split(' ').next()).unwrap();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let hierarchies =
        mounts.lines().filter(|line| line.contains(" - cgroup")).filter_map(|line| line.split(' ').nth(4));
    let groups = hierarchies.map(|mount| Path::new(mount).join(format!("netserv-{instance}")));
    groups.filter(|group| group.exists()).collect()
}

/// Returns the processes in a lab's namespaces.
fn processes(id: &str) -> Vec<u32> {
    let list = |name: String| Command::new("ip").args(["netns", "pids", &name]).output().unwrap().stdout;
    let texts = namespaces(id).into_iter().map(list);
    let pids = texts.map(|text| String::from_utf8_lossy(&text).into_owned());
    pids.flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}
