// SPDX-License-Identifier: Apache-2.0
//! Networks of containers in a namespace of the test's own.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use netserv_model::container_link::is_container_link;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::*;

#[test]
fn a_network_is_made_for_whom_something_is_permitted_and_stays_until_nobody_needs_it() {
    let Some(_node) = Namespace::enter("a_network_is_made_for_whom_something_is_permitted") else { return };
    let dir = tempfile::tempdir().unwrap();
    let [alice, bob] = users();
    let mut networks = open(&dir, "listen = ['tcp port 80']");
    assert!(networks.make(&bob).unwrap().is_none(), "nothing is permitted");
    let first = networks.make(&alice).unwrap().unwrap();
    assert_eq!((first.addresses.len(), links().len()), (2, 1));
    let both = networks.make(&alice).unwrap().unwrap();
    assert!(Arc::ptr_eq(&first.network, &both.network), "both workers share it");
    assert_eq!(networks.dropped().keys().collect::<Vec<_>>(), [&alice]);
    networks.installed(alice.clone(), module());
    networks.leave(&alice);
    assert_eq!(links().len(), 1, "a module is installed");
    networks.make(&alice).unwrap();
    networks.gone(&alice, &module());
    assert_eq!(links().len(), 1, "a worker is in it");
    networks.leave(&alice);
    assert!(links().is_empty(), "also while somebody holds what was one");
    // As after a restart: the addresses are the same.
    let mut networks = open(&dir, "connect = ['tcp port 443']");
    assert_eq!(networks.make(&alice).unwrap().unwrap().addresses, first.addresses);
    networks.end();
    assert!(links().is_empty());
}

#[test]
fn what_the_operator_changes_holds_for_networks_that_are_there() {
    let Some(_node) = Namespace::enter("what_the_operator_changes_holds_for_networks") else { return };
    let dir = tempfile::tempdir().unwrap();
    let [alice, _] = users();
    let mut networks = open(&dir, "listen = ['tcp port 80']");
    let made = networks.make(&alice).unwrap().unwrap();
    networks.set_users(&config(&dir, "listen = ['tcp port 90']"));
    assert_eq!(made.network.permitted().0[0].to_string(), "tcp port 90");
    // Other addresses wait until nobody is in it.
    networks.set_users(&config(&dir, "listen = ['tcp port 90']\naddresses = ['198.51.100.5']"));
    assert!(Arc::ptr_eq(&made.network, &networks.make(&alice).unwrap().unwrap().network));
    networks.installed(alice.clone(), module());
    networks.leave(&alice);
    assert_eq!(networks.make(&alice).unwrap().unwrap().addresses, [IpAddr::from([198, 51, 100, 5])]);
    networks.set_users(&config(&dir, ""));
    assert!(networks.make(&alice).unwrap().is_none(), "nothing is permitted any more");
    networks.end();
}

#[test]
fn a_user_for_whom_no_address_is_left_gets_no_network() {
    let Some(_node) = Namespace::enter("a_user_for_whom_no_address_is_left") else { return };
    let dir = tempfile::tempdir().unwrap();
    let [alice, bob] = users();
    let mut config = config(&dir, "listen = ['tcp port 80']");
    config.network.prefixes = vec!["198.51.100.7/32".parse().unwrap()];
    config.users.iter_mut().for_each(|user| user.listen = vec!["tcp port 80".parse().unwrap()]);
    let mut networks = Networks::new(store(&dir), &config).unwrap();
    networks.make(&alice).unwrap();
    assert_eq!(networks.make(&bob).unwrap_err().kind, RefusalKind::QuotaExceeded);
    networks.end();
}

fn users() -> [UserId; 2] {
    ["alice", "bob"].map(|name| name.parse().unwrap())
}

fn module() -> ModuleName {
    "example.org/m".parse().unwrap()
}

fn store(dir: &tempfile::TempDir) -> Store {
    Store::open(&dir.path().join("node.db")).unwrap()
}

fn open(dir: &tempfile::TempDir, permits: &str) -> Networks {
    Networks::new(store(dir), &config(dir, permits)).unwrap()
}

fn config(dir: &tempfile::TempDir, permits: &str) -> Config {
    let user = |name: &str, more: &str| format!("[[user]]\nname = '{name}'\nkeys = []\nprefixes = []\n{more}\n");
    let users = user("bob", "") + &user("alice", permits);
    let text = format!(
        "state-dir = '{}'\n[network]\nprefixes = ['198.51.100.0/29', '2001:db8::/64']\n{users}",
        dir.path().display()
    );
    Config::parse(&text).unwrap()
}

fn links() -> Vec<String> {
    let output = Command::new("ip").args(["-br", "link"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split(['@', ' ']).next());
    let mut names: Vec<String> = names.filter(|name| is_container_link(name)).map(str::to_owned).collect();
    names.sort_unstable();
    names
}

/// A network namespace in which the test's thread is.
struct Namespace(String);

impl Namespace {
    fn enter(test: &str) -> Option<Namespace> {
        if !rustix::process::geteuid().is_root() {
            netserv_skips::skipped(test, "networks need root");
            return None;
        }
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let namespace = Namespace(format!("ns-network-d{}-{number}", std::process::id()));
        assert!(Command::new("ip").args(["netns", "add", &namespace.0]).status().unwrap().success());
        let file = File::open(format!("/run/netns/{}", namespace.0)).unwrap();
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        Some(namespace)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}
