// SPDX-License-Identifier: Apache-2.0
//! Filters that mean something else on each node, or together with the manifest.

use std::time::Duration;

use netserv_model::effect::WorkerNews;
use netserv_model::manifest::Manifest;
use netserv_model::request::Setup;
use netserv_model::{Flavour, RefusalKind};

use super::script::{Node, assert_refused, commands, jane, manifest, packet, policy};
use super::servers::{asked, both, server_policy};

const BOTH: [&str; 2] = ["10.9.0.2", "2001:db8::2"];

#[test]
fn a_filter_with_self_stands_for_each_address_of_the_container() {
    let mut node = Node::with(server_policy());
    let setup = filtered("udp dst self port 5060");
    start(&mut node, &setup, &BOTH);
    let commands = node.commands();
    assert!(commands.contains(&"filter 0 jane 0 udp dst 10.9.0.2/32 port 5060".to_owned()), "{commands:?}");
    assert!(commands.contains(&"filter 1 jane 0 udp dst 2001:db8::2/128 port 5060".to_owned()), "{commands:?}");
    assert_eq!(node.controller.modules(node.now)[0].filters[0].to_string(), "udp dst self port 5060");

    // The same again refreshes it, and both rules go with it.
    let id = node.setup(setup);
    commands!(node, "store jane m@1.0.0", format!("answer {id} refreshed 3600"));
    node.remove("m");
    let commands = node.commands();
    assert!(commands.contains(&"unfilter 0".to_owned()) && commands.contains(&"unfilter 1".to_owned()), "{commands:?}");
    node.assert_empty();
}

#[test]
fn a_container_that_comes_back_with_other_addresses_has_other_rules() {
    let mut node = Node::with(server_policy());
    start(&mut node, &filtered("src self"), &BOTH[..1]);
    node.commands();
    node.died(None);
    node.sleep(Duration::from_secs(1));
    node.commands();
    node.news(&jane(Flavour::Wasm), ready(&["10.9.0.3"]));
    commands!(node, "unfilter 0", "load jane 0 m@1.0.0");
    node.loaded(0);
    commands!(node, "filter 1 jane 0 ip src 10.9.0.3/32");

    node.died(None);
    node.sleep(Duration::from_secs(1));
    node.commands();
    node.news(&jane(Flavour::Wasm), ready(&["10.9.0.3"]));
    node.loaded(0);
    commands!(node, "load jane 0 m@1.0.0");
}

#[test]
fn self_means_nothing_without_a_network() {
    let check = |mut node: Node, detail: &str| {
        let id = node.setup(filtered("udp dst self"));
        node.commands();
        assert_refused(&node.reports[&id], RefusalKind::NoNetwork, detail);
    };
    check(Node::new(), "containers of this node have no network");
    let mut none_granted = server_policy();
    none_granted.users.get_mut(&"jane".parse().unwrap()).unwrap().listen.clear();
    check(Node::with(none_granted), "grants neither `listen` nor `connect`");
}

#[test]
fn ends_alone_narrow_the_filters_of_the_manifest_that_name_none() {
    let check = |own: &[&str], asked: &[&str], expected: &[&str]| {
        let mut node = Node::with(policy());
        let setup =
            Setup { filters: asked.iter().map(|text| text.parse().unwrap()).collect(), ..self::asked("m@1.0.0") };
        let mut made = manifest(&setup);
        packet(&mut made).filters = own.iter().map(|text| text.parse().unwrap()).collect();
        node.setup(setup.clone());
        node.carry_out(&made);
        let filters = |node: &Node| {
            node.controller.modules(node.now)[0].filters.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(filters(&node), expected, "{own:?} {asked:?}");

        // It is what is installed; and the same after a restart of the node.
        let id = node.setup(setup);
        commands!(node, "store jane m@1.0.0", format!("answer {id} refreshed 3600"));
        let record = node.controller.modules.tenants.iter().next().unwrap().1.modules.values().next().unwrap();
        let record = record.active.as_ref().unwrap().record.clone();
        let mut again = Node::with(policy());
        again.controller.restore(again.now, vec![record]);
        again.carry_out(&made);
        assert_eq!(filters(&again), expected, "{own:?} {asked:?}");
    };
    check(&["udp port 5060"], &["dst 10.2.0.0/24"], &["udp dst 10.2.0.0/24 port 5060"]);
    check(&["udp port 1", "tcp"], &["dst 10.2.0.1"], &["udp dst 10.2.0.1/32 port 1", "tcp dst 10.2.0.1/32"]);
    check(&["udp port 1", "ip"], &["src 10.2.0.1"], &["udp src 10.2.0.1/32 port 1", "ip src 10.2.0.1/32"]);
    // What names more replaces, as does what meets no open filter.
    check(&["udp port 5060"], &["udp dst 10.2.0.0/24 port 9"], &["udp dst 10.2.0.0/24 port 9"]);
    check(&["udp dst 10.2.0.9 port 5060"], &["dst 10.2.0.0/24"], &["ip dst 10.2.0.0/24"]);
    check(&["udp port 1", "udp dst 10.2.0.9"], &["dst 10.2.0.1"], &["udp dst 10.2.0.1/32 port 1"]);
}

#[test]
fn a_request_narrows_so_far_that_too_many_filters_are_refused() {
    let mut node = Node::with(policy());
    let ends: Vec<_> = (0..5).map(|n| format!("dst 10.2.0.{n}").parse().unwrap()).collect();
    let setup = Setup { filters: ends, ..asked("m@1.0.0") };
    let mut made = manifest(&setup);
    packet(&mut made).filters = (0..4).map(|n| format!("udp port {n}").parse().unwrap()).collect();
    let id = node.setup(setup);
    node.carry_out(&made);
    assert_refused(&node.reports[&id], RefusalKind::QuotaExceeded, "20 filters");
}

#[test]
fn a_request_names_the_connections_that_are_taken_over() {
    let check = |intercept: &[&str], expected: Result<&[&str], (RefusalKind, &str)>| {
        let mut node = Node::with(server_policy());
        let intercept = intercept.iter().map(|text| text.parse().unwrap()).collect();
        let setup = Setup { intercept, ..asked("m@1.0.0") };
        let id = node.setup(setup.clone());
        node.carry_out(&both(&setup));
        match expected {
            Ok(expected) => {
                let status = &node.controller.modules(node.now)[0];
                let texts: Vec<String> = status.intercept.iter().map(ToString::to_string).collect();
                assert_eq!((texts, status.filters.len()), (expected.iter().map(ToString::to_string).collect(), 1));
                let id = node.setup(setup);
                commands!(node, "store jane m@1.0.0", format!("answer {id} refreshed 3600"));
            }
            Err((kind, detail)) => assert_refused(&node.reports[&id], kind, detail),
        }
    };
    check(&["tcp dst 10.2.3.0/24 port 80"], Ok(&["tcp dst 10.2.3.0/24 port 80"]));
    check(&["tcp src 10.2.3.0/24"], Err((RefusalKind::BadRequest, "write `tcp` and a port")));
    check(&["tcp dst 10.77.3.0/24 port 80"], Err((RefusalKind::PrefixNotAllowed, "10.77.3.0/24")));

    // A module that takes none over is not asked to.
    let mut node = Node::with(server_policy());
    let setup = Setup { intercept: vec!["tcp dst 10.2.3.0/24 port 80".parse().unwrap()], ..asked("m@1.0.0") };
    let mut made = both(&setup);
    made.server.as_mut().unwrap().intercept.clear();
    let id = node.setup(setup);
    node.carry_out(&made);
    assert_refused(&node.reports[&id], RefusalKind::BadRequest, "takes over no connections");
}

fn filtered(filter: &str) -> Setup {
    Setup { filters: vec![filter.parse().unwrap()], ..asked("m@1.0.0") }
}

fn start(node: &mut Node, setup: &Setup, addresses: &[&str]) {
    let made: Manifest = manifest(setup);
    node.setup(setup.clone());
    node.fetched(0, made);
    node.news(&jane(Flavour::Wasm), ready(addresses));
    node.loaded(0);
}

fn ready(addresses: &[&str]) -> WorkerNews {
    WorkerNews::Ready { addresses: addresses.iter().map(|address| address.parse().unwrap()).collect() }
}
