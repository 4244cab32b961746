// SPDX-License-Identifier: Apache-2.0
//! The agent moves a running module by rule: nobody types a command.

use std::time::{Duration, Instant};

use crate::common::{Driver, eventually};
use netserv_lab::mover::Mover;
use netserv_lab::netns::{is_root, wait_until};
use netserv_lab::node::{LabPackage, module_wasm, workspace};
use netserv_skips::skipped;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// How long things may take on a busy machine.
const LONG: Duration = Duration::from_secs(60);
/// How long nothing is to happen.
const A_WHILE: Duration = Duration::from_secs(4);
/// Moves in each of which the agent is killed.
const KILLS: u32 = 4;

/// Goal: a module whose node is drained goes to another one with what it has counted, and no packet is counted twice; when that one is
/// drained in turn, it goes back. Method: packets come all the time, and the node's operator says `netserv node drain`.
#[test]
fn a_module_leaves_a_drained_node() {
    let Some(net) = up("a_module_leaves_a_drained_node", Driver::Afxdp, "", &[]) else { return };
    let (rate, seconds) = (200, 30);
    let mut stream = net.stream(rate, seconds).unwrap();
    eventually("it counts", || net.counted("na").unwrap() > rate);
    for (old, new) in [("na", "n1"), ("n1", "na")] {
        let before = net.counted(old).unwrap();
        let begun = Instant::now();
        net.drain(old, true).unwrap();
        net.wait_for(&[new], LONG).unwrap();
        println!("{old} drained: on {new} alone after {:?}", begun.elapsed());
        eventually("it counts on", || net.counted(new).unwrap() > before);
        net.drain(old, false).unwrap();
    }
    assert!(stream.wait().unwrap().success());
    let counted = net.counted("na").unwrap();
    println!("{counted} of {} counted", rate * seconds);
    assert!(counted <= rate * seconds, "some twice");
    have_moved(&net, &["na n1 drain moved", "n1 na drain moved"]);
}

/// Goal: a module leaves a node that has too much to do, and only for one that has not. Method: each node sees a load average of its own.
#[test]
fn a_module_leaves_a_node_with_too_much_to_do() {
    let keys = "load-over = 0.9, load-until = 0.5, looks = 2";
    let test = "a_module_leaves_a_node_with_too_much_to_do";
    let Some(net) = up(test, Driver::Nfqueue, keys, &[]) else { return };
    net.load("n1", 0.8).unwrap();
    net.load("na", 0.8).unwrap();
    stays(&net, "na");
    net.load("na", 2.0).unwrap();
    stays(&net, "na");
    let begun = Instant::now();
    net.load("n1", 0.2).unwrap();
    net.wait_for(&["n1"], LONG).unwrap();
    println!("on n1 {:?} after it had little to do", begun.elapsed());
    net.load("na", 0.0).unwrap();
    net.load("n1", 2.0).unwrap();
    // It has just moved.
    stays(&net, "n1");
    have_moved(&net, &["na n1 load moved"]);
}

/// Goal: a module goes along when the way to its clients leads by another node, and by a rule that does not say so stays with its lease
/// renewed. Method: the route moves from `na` to `nb`.
#[test]
fn a_module_goes_along_with_its_clients() {
    let test = "a_module_goes_along_with_its_clients";
    let Some(net) = up(test, Driver::Nfqueue, "follow = true, looks = 2", &[]) else { return };
    let mut stream = net.stream(100, 300).unwrap();
    eventually("it counts", || net.counted("na").unwrap() > 100);
    let before = net.counted("na").unwrap();
    let begun = Instant::now();
    net.lead_through("nb").unwrap();
    net.wait_for(&["nb"], LONG).unwrap();
    println!("on nb {:?} after the way led there", begun.elapsed());
    eventually("it counts on", || net.counted("nb").unwrap() > before);
    stream.kill().unwrap();
    stream.wait().unwrap();
    have_moved(&net, &["na nb clients moved"]);
    drop(net);
    let Some(net) = up(test, Driver::Nfqueue, "looks = 2", &[]) else { return };
    net.lead_through("nb").unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while Instant::now() < until {
        stays(&net, "na");
    }
    assert!(moves(&net).is_empty());
}

/// Goal: of nodes that suit it alike, the module is on the one that costs less, as their operators tell.
#[test]
fn a_module_is_on_the_node_that_costs_less() {
    let test = "a_module_is_on_the_node_that_costs_less";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    let prices = [("n1", "price-per-hour = 10\n"), ("na", "price-per-hour = 30\n")];
    let mut net = Mover::up(Driver::Nfqueue.name(), "", &prices).unwrap();
    net.start_agent().unwrap();
    net.wait_for(&["n1"], LONG).unwrap();
}

/// Goal: the agent knows beforehand what the module needs, so that a node which grants less is not even asked: the module is on the other one,
/// and stays there when that is drained. Without that knowledge it is tried and refused. Method: `na`, which would be the best one, grants
/// fewer counters than the package needs.
#[test]
fn a_node_that_grants_less_than_the_module_needs_is_not_asked() {
    let test = "a_node_that_grants_less_than_the_module_needs_is_not_asked";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    let limits = [("na", "module-limits = { counters = 64 }\n")];
    let mut net = Mover::up_with(Driver::Nfqueue.name(), "package = PACKAGE", &limits, "counters = 128").unwrap();
    net.start_agent().unwrap();
    net.wait_for(&["n1"], LONG).unwrap();
    net.drain("n1", true).unwrap();
    stays(&net, "n1");
    assert!(moves(&net).is_empty() && !refused(&net), "{:?}", moves(&net));
    drop(net);
    let mut net = Mover::up_with(Driver::Nfqueue.name(), "", &limits, "counters = 128").unwrap();
    net.start_agent().unwrap();
    eventually("it is refused", || refused(&net));
}

fn refused(net: &Mover) -> bool {
    net.lab.log("na", "netservd").contains("outcome=refused")
}

/// Goal: an agent that is killed at whatever time of a move goes on with it, and one node has the module then.
#[test]
fn there_is_one_owner_after_the_agent_was_killed() {
    let test = "there_is_one_owner_after_the_agent_was_killed";
    let Some(mut net) = up(test, Driver::Nfqueue, "", &[]) else { return };
    let mut random = StdRng::seed_from_u64(17);
    for number in 0..KILLS {
        let (old, new) = if number % 2 == 0 { ("na", "n1") } else { ("n1", "na") };
        let begun = || net.lab.log("sender", "agent").matches("a module moves").count();
        let before = begun();
        net.drain(old, true).unwrap();
        eventually("a move begins", || begun() > before);
        let after = Duration::from_millis(random.random_range(0..150));
        std::thread::sleep(after);
        net.lab.kill("sender", "agent").unwrap();
        println!("{number}: killed after {after:?}, {:?}", net.owners().unwrap());
        net.start_agent().unwrap();
        net.wait_for(&[new], LONG).unwrap();
        net.drain(old, false).unwrap();
        stays(&net, new);
    }
}

/// Goal: a node that is full does not get the module, which goes on where it was; when it has room, it gets it.
#[test]
fn a_module_stays_if_no_other_node_has_room() {
    let test = "a_module_stays_if_no_other_node_has_room";
    let Some(net) = up(test, Driver::Nfqueue, "", &[("n1", "modules-max = 1\n")]) else { return };
    let other = other_module(&net);
    net.drain("na", true).unwrap();
    eventually("it is tried", || moves(&net).contains(&"na n1 drain stayed".to_owned()));
    net.wait_for(&["na"], Duration::from_secs(5)).unwrap();
    let key = net.user.key.to_string_lossy().into_owned();
    let who = ["--node", "n1", "--user", &net.user.name, "--key", &key];
    let to = net.lab.v4("receiver").to_string();
    net.lab.request("sender", &[&["remove", &other, "--to", &to][..], &who].concat()).unwrap();
    net.wait_for(&["n1"], LONG).unwrap();
}

/// Goal: a node that has another version of the module has that of the rule afterwards, with its state, and alone. Method: the user put 9.0.0
/// there by hand.
#[test]
fn another_version_gives_way_to_that_of_the_rule() {
    let test = "another_version_gives_way_to_that_of_the_rule";
    let Some(net) = up(test, Driver::Nfqueue, "", &[]) else { return };
    let mut stream = net.stream(100, 300).unwrap();
    eventually("it counts", || net.counted("na").unwrap() > 200);
    let manifest = std::fs::read_to_string(workspace().join("modules/apps/net-monitor/netserv.toml")).unwrap();
    let project = net.lab.dir().join("newer.toml");
    std::fs::write(&project, manifest.replacen("version = \"1.0.0\"", "version = \"9.0.0\"", 1)).unwrap();
    let wasm = module_wasm("net-monitor").unwrap();
    let newer = net.lab.package_from(&project, &wasm, &net.lab.dir().join("newer.nsm"), &net.user).unwrap();
    install(&net, &newer, "7777");
    let before = net.counted("na").unwrap();
    net.drain("na", true).unwrap();
    net.wait_for(&["n1"], LONG).unwrap();
    let there = net.lab.modules("n1").unwrap().modules;
    assert_eq!(there[0].module.to_string(), net.package.module);
    assert!(net.counted("n1").unwrap() >= before, "it goes on with what the old node counted");
    stream.kill().unwrap();
    stream.wait().unwrap();
}

/// Goal: a node that vanishes while it is to take the module leaves it with one owner, which is it when it is back, or the old one.
#[test]
fn a_node_that_vanishes_in_the_middle_leaves_one_owner() {
    let test = "a_node_that_vanishes_in_the_middle_leaves_one_owner";
    let Some(mut net) = up(test, Driver::Nfqueue, "freeze-s = 5", &[]) else { return };
    net.drain("na", true).unwrap();
    eventually("it is under way", || !moves(&net).is_empty());
    net.lab.kill("n1", "netservd").unwrap();
    println!("{:?}", moves(&net));
    std::thread::sleep(Duration::from_secs(3));
    net.lab.restart_netservd("n1").unwrap();
    net.wait_for(&["n1"], LONG).unwrap();
    stays(&net, "n1");
}

fn stays(net: &Mover, node: &str) {
    let until = Instant::now() + A_WHILE;
    while Instant::now() < until {
        let owners: Vec<String> = net.owners().unwrap().into_iter().map(|(node, _)| node).collect();
        assert_eq!(owners, [node]);
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The agent tells of a relocation once it is over, which is after the module counts at its new place.
fn have_moved(net: &Mover, expected: &[&str]) {
    assert!(wait_until(LONG, || moves(net) == expected), "{:?}", moves(net));
}

fn moves(net: &Mover) -> Vec<String> {
    net.moves().unwrap().iter().map(|told| told.join(" ")).collect()
}

/// Installs another module on `n1`, and returns its name.
fn other_module(net: &Mover) -> String {
    let package = net.lab.package("keep-alive", &net.user).unwrap();
    install(net, &package, "5060");
    package.module.split('@').next().unwrap().to_owned()
}

/// Installs a package on `n1` by hand.
fn install(net: &Mover, package: &LabPackage, port: &str) {
    let url = net.lab.publish("sender", package).unwrap();
    let (file, key) = (package.path.to_string_lossy().into_owned(), net.user.key.to_string_lossy().into_owned());
    let to = net.lab.v4("receiver").to_string();
    let filter = format!("udp dst {}/32 port {port}", net.lab.v4("sender"));
    let module = ["setup", &file, "--to", &to, "--url", &url, "--filter", &filter];
    let who = ["--node", "n1", "--user", &net.user.name, "--key", &key];
    let result = net.lab.request("sender", &[&module[..], &who].concat()).unwrap();
    assert!(result.nodes.iter().any(|node| node.outcome.lease_s().is_some()), "{result:?}");
}

/// Returns the network with the module on `na`, or says that the test is skipped.
fn up(test: &str, driver: Driver, keys: &str, limits: &[(&str, &str)]) -> Option<Mover> {
    if !is_root() {
        skipped(test, "not root, so no namespaces");
        return None;
    }
    let mut net = Mover::up(driver.name(), keys, limits).unwrap();
    net.start_agent().unwrap();
    net.wait_for(&["na"], LONG).unwrap();
    Some(net)
}
