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
    let mut networks = open(&dir);
    assert!(networks.make(&bob, &Permits::default()).unwrap().is_none(), "nothing is permitted");
    let permits = listen("tcp port 80");
    let first = networks.make(&alice, &permits).unwrap().unwrap();
    assert_eq!((first.addresses.len(), links().len()), (2, 1));
    let both = networks.make(&alice, &permits).unwrap().unwrap();
    assert!(Arc::ptr_eq(&first.network, &both.network), "both workers share it");
    assert_eq!(networks.dropped().keys().collect::<Vec<_>>(), [&alice]);
    networks.installed(alice.clone(), module());
    networks.leave(&alice);
    assert_eq!(links().len(), 1, "a module is installed");
    networks.make(&alice, &permits).unwrap();
    networks.gone(&alice, &module());
    assert_eq!(links().len(), 1, "a worker is in it");
    networks.leave(&alice);
    assert!(links().is_empty(), "also while somebody holds what was one");
    // As after a restart: the addresses are the same.
    let mut networks = open(&dir);
    assert_eq!(networks.make(&alice, &permits).unwrap().unwrap().addresses, first.addresses);
    networks.end();
    assert!(links().is_empty());
}

#[test]
fn what_goes_through_a_network_is_told_until_its_end_was_told() {
    let Some(_node) = Namespace::enter("what_goes_through_a_network_is_told") else { return };
    let dir = tempfile::tempdir().unwrap();
    let [alice, _] = users();
    let mut networks = open(&dir);
    assert!(networks.read_meters().is_empty());
    let made = networks.make(&alice, &listen("tcp port 80")).unwrap().unwrap();
    let target = made.addresses[0].to_string();
    // Nobody answers: the firewall inside drops it, which is past the link.
    let _ = Command::new("ping").args(["-c", "1", "-W", "1", &target]).output().unwrap();
    let [first] = &networks.read_meters()[..] else { panic!("one network") };
    assert!(first.traffic.packets_in > 0 && first.traffic.bytes_in >= 98 && !first.ended, "{first:?}");
    networks.leave(&alice);
    networks.make(&alice, &listen("tcp port 80")).unwrap();
    let [last, next] = &networks.read_meters()[..] else { panic!("two networks") };
    assert!(last.ended && last.made == first.made && last.traffic.packets_in >= first.traffic.packets_in);
    assert!(!next.ended && next.made != last.made && next.traffic.packets_in < last.traffic.packets_in + 5);
    assert_eq!(networks.read_meters().len(), 1, "the end was told");
    let gone = networks.read_meters().remove(0);
    networks.gone = vec![gone; METERED_NETWORKS_MAX];
    networks.leave(&alice);
    let refused = networks.make(&alice, &listen("tcp port 80")).unwrap_err();
    assert!(refused.detail.contains("nobody reads"), "{refused}");
}

#[test]
fn what_the_operator_changes_holds_for_networks_that_are_there() {
    let Some(_node) = Namespace::enter("what_the_operator_changes_holds_for_networks") else { return };
    let dir = tempfile::tempdir().unwrap();
    let [alice, bob] = users();
    let mut networks = open(&dir);
    let made = networks.make(&alice, &listen("tcp port 80")).unwrap().unwrap();
    networks.permit(&alice, &listen("tcp port 90")).unwrap();
    assert_eq!(made.network.permitted().0[0].to_string(), "tcp port 90");
    let none = networks.permit(&bob, &listen("tcp port 90")).unwrap_err();
    assert_eq!(none.kind, RefusalKind::NoNetwork, "one that started without a network gets none");
    networks.permit(&bob, &Permits::default()).unwrap();
    // Other addresses wait until nobody is in it, other permissions do not.
    let mut given = plan();
    given.users.insert(alice.clone(), vec!["198.51.100.5".parse().unwrap()]);
    networks.set_plan(given);
    let again = networks.make(&alice, &listen("tcp port 91")).unwrap().unwrap();
    assert!(Arc::ptr_eq(&made.network, &again.network));
    assert_eq!(made.network.permitted().0[0].to_string(), "tcp port 91");
    networks.installed(alice.clone(), module());
    networks.leave(&alice);
    let others = networks.make(&alice, &listen("tcp port 91")).unwrap().unwrap().addresses;
    assert_eq!(others, [IpAddr::from([198, 51, 100, 5])]);
    networks.end();
}

#[test]
fn a_user_for_whom_no_address_is_left_gets_no_network() {
    let Some(_node) = Namespace::enter("a_user_for_whom_no_address_is_left") else { return };
    let dir = tempfile::tempdir().unwrap();
    let [alice, bob] = users();
    let mut networks = open(&dir);
    networks.set_plan(AddressPlan { prefixes: vec!["198.51.100.7/32".parse().unwrap()], ..plan() });
    networks.make(&alice, &listen("tcp port 80")).unwrap();
    let refusal = networks.make(&bob, &listen("tcp port 80")).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::QuotaExceeded);
    networks.end();
}

/// Goal: floating addresses come and go in one step, are nobody else's, outlive the container's network, and go with it.
#[test]
fn floating_addresses_lead_to_one_container_and_are_routes_of_a_number_of_their_own() {
    let Some(_node) = Namespace::enter("floating_addresses_lead_to_one_container") else { return };
    let dir = tempfile::tempdir().unwrap();
    let [alice, bob] = users();
    let mut networks = open(&dir);
    let none = networks.float(&alice, floating(&["203.0.113.9"])).unwrap_err();
    assert_eq!(none.kind, RefusalKind::NoNetwork);
    networks.float(&alice, floating(&[])).unwrap();
    let made = networks.make(&alice, &listen("tcp port 80")).unwrap().unwrap();
    networks.float(&alice, floating(&["203.0.113.9", "2001:db8:9::9"])).unwrap();
    let device = made.network.name().to_owned();
    assert_eq!(floating_routes(), [format!("2001:db8:9::9 dev {device}"), format!("203.0.113.9 dev {device}")]);
    assert!(networks.has_address("203.0.113.9".parse().unwrap()));

    // Who else has an address is refused by its name, and nothing changes.
    networks.make(&bob, &listen("tcp port 80")).unwrap();
    assert!(Command::new("ip").args(["address", "add", "203.0.113.1/24", "dev", "lo"]).status().unwrap().success());
    assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
    for (address, why) in [
        ("203.0.113.9", "203.0.113.9 leads to another container"),
        ("203.0.113.1", "203.0.113.1 is the node's own"),
        (&made.addresses[0].to_string(), "is that of a container"),
    ] {
        let refusal = networks.float(&bob, floating(&[address])).unwrap_err();
        assert!(refusal.kind == RefusalKind::AddressTaken && refusal.detail.contains(why), "{refusal}");
    }
    let blocked = ["route", "add", "203.0.113.7/32", "dev", "lo"];
    assert!(Command::new("ip").args(blocked).status().unwrap().success());
    let refusal = networks.float(&alice, floating(&["203.0.113.8", "203.0.113.7"])).unwrap_err();
    assert!(refusal.detail.contains("lead packets for 203.0.113.7 to the container: File exists"), "{refusal}");
    assert_eq!(floating_routes().len(), 2, "{:?}", floating_routes());
    let routes = String::from_utf8(Command::new("ip").args(["route"]).output().unwrap().stdout).unwrap();
    assert!(routes.contains("203.0.113.7 dev lo"), "the operator's route stays: {routes}");
    let inside = made.network.floating();
    assert_eq!(inside, floating(&["203.0.113.9", "2001:db8:9::9"]));

    // One goes, the other stays; it is in the next network, too, and no other container gets it as its own.
    networks.float(&alice, floating(&["203.0.113.9"])).unwrap();
    assert_eq!(floating_routes().len(), 1);
    networks.leave(&alice);
    assert_eq!(floating_routes(), [] as [String; 0]);
    networks.make(&alice, &listen("tcp port 80")).unwrap();
    assert_eq!(floating_routes().len(), 1);
    networks.float(&alice, floating(&[])).unwrap();
    assert_eq!(floating_routes(), [] as [String; 0]);
    networks.float(&alice, floating(&["203.0.113.9"])).unwrap();
    networks.end();
    assert_eq!(floating_routes(), [] as [String; 0]);
}

fn floating(texts: &[&str]) -> BTreeSet<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Returns the routes of floating addresses as `ip` shows them, up to the device.
fn floating_routes() -> Vec<String> {
    let shown = |version: &str| {
        let output = Command::new("ip").args([version, "route", "show", "proto", "79"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = shown("-4") + &shown("-6");
    let words = |line: &str| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = text.lines().map(words).collect();
    lines.sort_unstable();
    lines
}

fn users() -> [UserId; 2] {
    ["alice", "bob"].map(|name| name.parse().unwrap())
}

fn module() -> ModuleName {
    "example.org/m".parse().unwrap()
}

fn open(dir: &tempfile::TempDir) -> Networks {
    let store = Store::open(&dir.path().join("node.db")).unwrap();
    let instance = crate::config::Config { state_dir: dir.path().to_owned(), ..Default::default() }.instance();
    let mut networks = Networks::new(store, instance, Notices::default()).unwrap();
    networks.set_plan(plan());
    networks
}

fn plan() -> AddressPlan {
    let prefixes = ["198.51.100.0/29", "2001:db8::/64"].map(|text| text.parse().unwrap()).to_vec();
    AddressPlan { prefixes, users: users().map(|user| (user, Vec::new())).into() }
}

fn listen(filter: &str) -> Permits {
    Permits { listen: vec![filter.parse().unwrap()], ..Permits::default() }
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
