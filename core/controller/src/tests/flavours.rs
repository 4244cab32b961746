// SPDX-License-Identifier: Apache-2.0
//! Two workers of one user: they come, fail and go each by itself, and a module may move from one to the other.

use std::time::Duration;

use netserv_model::Flavour::{Osgi, Wasm};
use netserv_model::manifest::{Manifest, ServerPart};
use netserv_model::policy::NodePolicy;
use netserv_model::request::{Ask, Environment, ModuleState, Setup};
use netserv_model::{Filter, Flavour, RefusalKind};

use super::script::{Node, assert_refused, commands, jane, manifest, name, policy, setup, user};
use crate::limits::IDLE_WORKER_TIME;

#[test]
fn modules_of_two_flavours_run_in_two_workers() {
    let mut node = Node::new();
    node.setup(setup("w@1.0.0"));
    node.setup(setup("b@1.0.1"));
    commands!(node, "fetch 0 100", "fetch 1 101");
    node.fetched_as(Osgi, 1, manifest(&setup("b@1.0.1")));
    commands!(node, "start jane/osgi");
    node.fetched_as(Wasm, 0, manifest(&setup("w@1.0.0")));
    commands!(node, "start jane");
    node.ready_as(Osgi);
    commands!(node, "load jane/osgi 0 b@1.0.1");
    node.loaded_as(Osgi, 0);
    commands!(node, "filter 0 jane/osgi 0 udp dst 10.2.0.0/24", "store jane b@1.0.1", "answer 1 installed 60");
    node.ready_as(Wasm);
    commands!(node, "load jane 0 w@1.0.0");
    node.loaded_as(Wasm, 0);
    commands!(node, "filter 1 jane 0 udp dst 10.2.0.0/24", "store jane w@1.0.0", "answer 0 installed 60");
    let flavours: Vec<Option<Flavour>> = node.controller.modules(node.now).iter().map(|one| one.flavour).collect();
    assert_eq!(flavours, [Some(Osgi), Some(Wasm)]);
    assert_eq!(node.controller.load().containers, 1, "both workers are in one container");
    let slot = netserv_model::effect::ModuleSlot(0);
    assert_eq!(node.controller.module_at(&jane(Osgi), slot), Some(&name("b")));
    assert_eq!(node.controller.module_at(&jane(Wasm), slot), Some(&name("w")));
    assert_eq!(node.controller.place(&user("jane"), &name("b")), Some((jane(Osgi), slot)));
}

/// Its last packets are still being answered when a module leaves, so an idle worker stays for a little while.
#[test]
fn a_worker_stops_when_the_last_module_of_its_flavour_is_gone() {
    let mut node = two();
    node.remove("b");
    commands!(node, "unfilter 1", "unload jane/osgi 0", "forget jane b", "answer 2 removed");
    node.sleep(IDLE_WORKER_TIME - Duration::from_millis(1));
    commands!(node,);
    node.sleep_ms(1);
    commands!(node, "stop jane/osgi");
    node.remove("w");
    commands!(node, "unfilter 0", "unload jane 0", "forget jane w", "stop jane", "answer 3 removed");
    node.assert_empty();
}

#[test]
fn both_workers_stop_with_the_last_module() {
    let mut node = two();
    node.remove("b");
    node.commands();
    node.remove("w");
    commands!(node, "unfilter 0", "unload jane 0", "forget jane w", "stop jane", "stop jane/osgi", "answer 3 removed");
    node.assert_empty();
}

#[test]
fn an_idle_worker_that_is_needed_again_stays() {
    let mut node = two();
    node.remove("b");
    node.commands();
    node.sleep_ms(900);
    node.setup(long("c@1.0.2"));
    commands!(node, "fetch 2 102");
    node.fetched_as(Osgi, 2, manifest(&setup("c@1.0.2")));
    commands!(node, "load jane/osgi 1 c@1.0.2");
    node.loaded_as(Osgi, 1);
    node.commands();
    node.sleep(2 * IDLE_WORKER_TIME);
    commands!(node,);
    node.remove("c");
    node.commands();
    node.sleep(IDLE_WORKER_TIME - Duration::from_millis(1));
    commands!(node,);
    node.sleep_ms(1);
    commands!(node, "stop jane/osgi");
}

/// The candidate is loaded and filtered in the other worker before the old module goes, and back again.
#[test]
fn a_module_is_replaced_across_flavours_without_a_gap() {
    let mut node = Node::new();
    node.install(long("m@1.0.0"));
    node.setup(long("m@1.0.1"));
    commands!(node, "fetch 1 101");
    node.fetched_as(Osgi, 1, manifest(&setup("m@1.0.1")));
    commands!(node, "start jane/osgi");
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
    node.ready_as(Osgi);
    commands!(node, "load jane/osgi 0 m@1.0.1");
    node.loaded_as(Osgi, 0);
    commands!(
        node,
        "filter 1 jane/osgi 0 udp dst 10.2.0.0/24",
        "unfilter 0",
        "unload jane 0",
        "store jane m@1.0.1",
        "answer 1 replaced 3600",
    );
    node.sleep(IDLE_WORKER_TIME);
    commands!(node, "stop jane");
    node.setup(long("m@1.0.2"));
    commands!(node, "fetch 2 102");
    node.fetched_as(Wasm, 2, manifest(&setup("m@1.0.2")));
    commands!(node, "start jane");
    node.ready();
    commands!(node, "load jane 0 m@1.0.2");
    node.loaded(0);
    commands!(
        node,
        "filter 2 jane 0 udp dst 10.2.0.0/24",
        "unfilter 1",
        "unload jane/osgi 0",
        "store jane m@1.0.2",
        "answer 2 replaced 3600",
    );
    node.sleep(IDLE_WORKER_TIME);
    commands!(node, "stop jane/osgi");
}

#[test]
fn a_replacement_that_fails_in_the_other_worker_leaves_the_old_module() {
    for fails in [&|node: &mut Node| node.trapped_as(Osgi, 0), &|node: &mut Node| node.died_as(Osgi, None)]
        as [&dyn Fn(&mut Node); 2]
    {
        let mut node = Node::new();
        node.install(long("m@1.0.0"));
        let id = node.setup(long("m@1.0.1"));
        node.commands();
        node.fetched_as(Osgi, 1, manifest(&setup("m@1.0.1")));
        node.ready_as(Osgi);
        node.commands();
        fails(&mut node);
        node.commands();
        assert!(!node.reports[&id].outcome.is_ok());
        assert_eq!(node.states(), ["m@1.0.0 Running"]);
        node.sleep(IDLE_WORKER_TIME);
        node.commands();
        assert!(!node.controller.modules.tenants.get(&user("jane")).unwrap().workers.contains_key(&Osgi));
    }
}

#[test]
fn a_worker_that_dies_leaves_the_other_alone() {
    let mut node = two();
    node.died_as(Osgi, Some(0));
    commands!(node,);
    assert_eq!(node.states(), ["w@1.0.0 Running", "b@1.0.1 BackingOff"]);
    node.sleep_ms(100);
    commands!(node, "start jane/osgi");
    node.ready_as(Osgi);
    commands!(node, "load jane/osgi 0 b@1.0.1");
    node.loaded_as(Osgi, 0);
    commands!(node,);
    let modules = node.controller.modules(node.now);
    assert_eq!(modules.iter().map(|one| one.restarts).collect::<Vec<_>>(), [0, 1]);
    node.died_as(Wasm, None);
    node.sleep_ms(0);
    assert_eq!(node.states(), ["w@1.0.0 BackingOff", "b@1.0.1 Running"]);
}

/// News of a place in one worker is not taken for news of the same place in the other.
#[test]
fn places_of_two_workers_are_two() {
    let mut node = two();
    node.trapped_as(Osgi, 0);
    assert_eq!(node.states(), ["w@1.0.0 Running", "b@1.0.1 BackingOff"]);
    node.trapped_as(Wasm, 0);
    assert_eq!(node.states(), ["w@1.0.0 BackingOff", "b@1.0.1 BackingOff"]);
    node.trapped_as(Osgi, 1);
    assert_eq!(node.controller.counters().stray_events, 1);
}

/// Each worker backs off by itself.
#[test]
fn a_worker_that_does_not_start_does_not_hold_the_other() {
    let mut node = two();
    for wait_ms in [0, 100, 200] {
        node.died_as(Osgi, None);
        node.sleep_ms(wait_ms.max(100));
        assert!(node.commands().contains(&"start jane/osgi".to_owned()), "{wait_ms}");
    }
    assert_eq!(node.states()[0], "w@1.0.0 Running");
    node.install(long("x@1.0.2"));
}

#[test]
fn a_package_without_a_flavour_for_this_node_is_refused() {
    let mut node = Node::new();
    let id = node.setup(setup("m@1.0.0"));
    node.commands();
    node.fetch_failed(0, RefusalKind::NoFlavour);
    commands!(node, "answer 0 no-flavour");
    assert_refused(&node.reports[&id], RefusalKind::NoFlavour, "");
    node.assert_empty();
}

/// An operator may take a JVM away for a while: what is installed then waits for it.
#[test]
fn an_installed_module_waits_for_its_flavour_to_come_back() {
    let mut node = Node::new();
    node.controller.restore(node.now, vec![record(None)]);
    commands!(node, "fetch 0 100");
    node.fetch_failed(0, RefusalKind::NoFlavour);
    assert_eq!(node.states(), ["m@1.0.0 BackingOff"]);
    node.sleep_ms(100);
    commands!(node, "fetch 1 100");
    node.fetched_as(Osgi, 1, manifest(&setup("m@1.0.0")));
    commands!(node, "store jane m@1.0.0", "start jane/osgi");
}

/// A record of a node that knew one flavour names none; what it runs as is found when its package is there.
#[test]
fn a_record_without_a_flavour_gets_one_when_its_package_is_there() {
    for (recorded, commands) in [
        (None, vec!["store jane m@1.0.0", "start jane"]),
        (Some(Osgi), vec!["store jane m@1.0.0", "start jane"]),
        (Some(Wasm), vec!["start jane"]),
    ] {
        let mut node = Node::new();
        node.controller.restore(node.now, vec![record(recorded)]);
        commands!(node, "fetch 0 100");
        assert_eq!(node.controller.modules(node.now)[0].flavour, recorded);
        node.fetched(0, manifest(&setup("m@1.0.0")));
        assert_eq!(node.commands(), commands);
        assert_eq!(node.controller.modules(node.now)[0].flavour, Some(Wasm));
        node.ready();
        commands!(node, "load jane 0 m@1.0.0");
    }
}

/// The node could not load a module, fetched it again, and takes another flavour then: what belongs to the place that
/// it had goes.
#[test]
fn a_module_that_comes_back_in_another_flavour_leaves_its_old_place() {
    let mut node = Node::new();
    node.install(long("m@1.0.0"));
    node.trapped(0);
    node.sleep_ms(0);
    commands!(node, "load jane 0 m@1.0.0");
    node.failed_as(Wasm, 0, RefusalKind::NodeFailed);
    node.sleep_ms(1000);
    commands!(node, "fetch 1 100");
    node.fetched_as(Osgi, 1, manifest(&setup("m@1.0.0")));
    commands!(node, "unfilter 0", "store jane m@1.0.0", "start jane/osgi");
    node.ready_as(Osgi);
    commands!(node, "load jane/osgi 0 m@1.0.0");
    node.loaded_as(Osgi, 0);
    commands!(node, "filter 1 jane/osgi 0 udp dst 10.2.0.0/24");
    node.remove("m");
    assert!(node.commands().contains(&"stop jane/osgi".to_owned()));
    node.assert_empty();
}

/// Likewise where the other worker runs already, so that nothing else happens that would let the first one go.
#[test]
fn the_worker_that_such_a_module_leaves_is_stopped() {
    let mut node = two();
    node.trapped(0);
    node.sleep_ms(0);
    node.failed_as(Wasm, 0, RefusalKind::NodeFailed);
    node.sleep_ms(1000);
    assert!(node.commands().contains(&"fetch 2 100".to_owned()));
    node.fetched_as(Osgi, 2, manifest(&setup("w@1.0.0")));
    node.loaded_as(Osgi, 1);
    assert!(node.commands().contains(&"load jane/osgi 1 w@1.0.0".to_owned()));
    node.sleep(IDLE_WORKER_TIME);
    commands!(node, "stop jane");
}

#[test]
fn a_server_needs_a_network_and_a_permission() {
    for (network, granted, kind, detail) in [
        (false, "tcp port 80", Some(RefusalKind::NoNetwork), "no network"),
        (true, "tcp port 8080", Some(RefusalKind::NotPermitted), "`tcp port 80`, granted to the user: `tcp port 8080`"),
        (true, "", Some(RefusalKind::NotPermitted), "granted to the user: none"),
        (true, "tcp port 80-90", None, ""),
    ] {
        let mut node = Node::with(server_policy(network, granted));
        let asked = Setup { filters: Vec::new(), ..setup("m@1.0.0") };
        let id = node.setup(asked.clone());
        node.commands();
        node.fetched_as(Osgi, 0, server(&asked, "tcp port 80"));
        match kind {
            Some(kind) => {
                commands!(node, format!("answer 0 {kind}"));
                assert_refused(&node.reports[&id], kind, detail);
                node.assert_empty();
            }
            None => {
                commands!(node, "start jane/osgi");
                node.ready_as(Osgi);
                node.loaded_as(Osgi, 0);
                commands!(node, "load jane/osgi 0 m@1.0.0", "store jane m@1.0.0", "answer 0 installed 60");
            }
        }
    }
}

#[test]
fn a_server_that_the_operator_no_longer_permits_is_removed() {
    let mut node = Node::with(server_policy(true, "tcp port 80"));
    let asked = Setup { filters: Vec::new(), ..long("m@1.0.0") };
    node.setup(asked.clone());
    node.commands();
    node.fetched_as(Osgi, 0, server(&asked, "tcp port 80"));
    node.ready_as(Osgi);
    node.loaded_as(Osgi, 0);
    node.commands();
    let mut narrower = node.policy.clone();
    narrower.users.get_mut(&user("jane")).unwrap().listen = vec!["tcp port 443".parse().unwrap()];
    node.policy = narrower;
    node.apply_policy();
    let revoked = "revoked jane m@1.0.0 not-permitted";
    commands!(node, "permit 200000 tcp port 443", "unload jane/osgi 0", "forget jane m", revoked, "stop jane/osgi");
    node.assert_empty();
}

#[test]
fn filters_for_a_module_that_sees_no_packets_are_refused() {
    let mut node = Node::with(server_policy(true, "tcp port 80"));
    let id = node.setup(setup("m@1.0.0"));
    node.commands();
    node.fetched_as(Osgi, 0, server(&setup("m@1.0.0"), "tcp port 80"));
    node.commands();
    assert_refused(&node.reports[&id], RefusalKind::BadManifest, "no part in the packet path");
}

/// The packet ABI is that of WebAssembly: a bundle names none.
#[test]
fn a_bundle_needs_no_packet_abi() {
    let mut manifest = manifest(&setup("m@1.0.0"));
    super::script::packet(&mut manifest).abi = 0;
    for (flavour, commands) in [(Osgi, ["start jane/osgi"]), (Wasm, ["answer 0 abi-mismatch"])] {
        let mut node = Node::new();
        node.setup(setup("m@1.0.0"));
        node.commands();
        node.fetched_as(flavour, 0, manifest.clone());
        assert_eq!(node.commands(), commands);
    }
}

#[test]
fn environments_and_blocks_are_told_and_checked() {
    let mut policy = policy();
    policy.blocks.extend([("osgi".to_owned(), 8), ("java".to_owned(), 17)]);
    let engine = "Felix 7.0.5 (OSGi Core 8) on OpenJDK 17.0.15".to_owned();
    policy.environments = vec![Environment { flavour: Osgi, engine }];
    let mut node = Node::with(policy.clone());
    let report = node.probe(&[Ask::Blocks]);
    assert_eq!(report.environments, policy.environments);
    let blocks: Vec<String> = report.blocks.iter().map(ToString::to_string).collect();
    assert_eq!(blocks, ["java>=17", "kv>=2", "osgi>=8", "packet>=1"]);
    assert_eq!(node.probe(&[Ask::Nodes]).environments, []);
    for (wanted, refused) in [("java>=17", None), ("osgi>=8", None), ("java>=21", Some("the node has version 17"))] {
        let asked = Setup { dependencies: vec![wanted.parse().unwrap()], ..setup("m@1.0.0") };
        let id = node.setup(asked);
        node.commands();
        match refused {
            Some(detail) => assert_refused(&node.reports[&id], RefusalKind::MissingDependency, detail),
            None => assert!(!node.reports.contains_key(&id), "{wanted}"),
        }
    }
}

#[test]
fn what_a_module_is_of_is_unknown_until_its_package_is_there() {
    let mut node = Node::new();
    node.setup(setup("m@1.0.0"));
    node.commands();
    let status = &node.controller.modules(node.now)[0];
    assert_eq!((status.state, status.flavour), (ModuleState::Fetching, None));
    node.fetched_as(Osgi, 0, manifest(&setup("m@1.0.0")));
    let status = &node.controller.modules(node.now)[0];
    assert_eq!((status.state, status.flavour), (ModuleState::Starting, Some(Osgi)));
}

/// A node with `w` as Wasm and `b` as OSGi.
fn two() -> Node {
    let mut node = Node::new();
    node.install(long("w@1.0.0"));
    node.install_as(Osgi, long("b@1.0.1"));
    node
}

fn long(module: &str) -> Setup {
    Setup { ttl: Duration::from_secs(3600), ..setup(module) }
}

fn server_policy(network: bool, granted: &str) -> NodePolicy {
    let container_prefixes = network.then(|| "10.9.0.0/24".parse().unwrap()).into_iter().collect();
    let mut policy = NodePolicy { container_prefixes, ..policy() };
    let granted: Option<Filter> = (!granted.is_empty()).then(|| granted.parse().unwrap());
    policy.users.get_mut(&user("jane")).unwrap().listen = granted.into_iter().collect();
    policy
}

fn server(setup: &Setup, listen: &str) -> Manifest {
    let server = Some(ServerPart { listen: vec![listen.parse().unwrap()], ..ServerPart::default() });
    Manifest { packet: None, server, ..manifest(setup) }
}

fn record(flavour: Option<Flavour>) -> netserv_model::effect::InstalledRecord {
    netserv_model::effect::InstalledRecord { flavour, ..super::script::record(setup("m@1.0.0")) }
}
