// SPDX-License-Identifier: Apache-2.0
//! A node that its operator drains.

use std::time::Duration;

use netserv_model::RefusalKind;
use netserv_model::effect::EffectOutcome;
use netserv_model::policy::OperatorPolicy;
use netserv_model::request::{Ask, Body, Export, Outcome, Probe, Setup, StateSource};

use super::script::*;

#[test]
fn a_drained_node_takes_nothing_new_and_tells_whoever_has_modules() {
    let mut node = Node::new();
    node.install(setup("m@1.0.0"));
    node.commands();
    let fetching = node.setup(setup("late@1.0.0"));
    commands!(node, "fetch 1 100");
    drain(&mut node, true);
    commands!(node, format!("answer {fetching} maintenance"));
    assert_eq!(node.told.len(), 1, "{:?}", node.told);
    assert!(node.told[0].starts_with("jane m node-maintenance: the operator drains "), "{:?}", node.told);
    let report = node.ask(node.request("jane", Body::from(setup("n@1.0.0"))));
    assert_refused(&report, RefusalKind::Maintenance, "takes nothing new");
    let mut dry = node.request("jane", Body::from(setup("n@1.0.0")));
    dry.dry_run = true;
    assert_refused(&node.ask(dry), RefusalKind::Maintenance, "");
    let load = node.ask(node.request("jane", Body::Probe(Probe { ask: vec![Ask::Load] }))).load.unwrap();
    assert!(load.maintenance);
    // Once more tells nobody.
    drain(&mut node, true);
    assert_eq!(node.told.len(), 1, "{:?}", node.told);
    drain(&mut node, false);
    node.sleep_ms(1000);
    node.install(setup("n@1.0.0"));
}

/// Goal: what is there can be changed, and have its lease renewed for as long as it would have run, and no longer.
#[test]
fn leases_are_not_put_off_while_a_node_is_drained() {
    let mut node = Node::new();
    node.install(Setup { ttl: Duration::from_secs(60), epoch: 3, ..setup("m@1.0.0") });
    node.commands();
    drain(&mut node, true);
    node.sleep(Duration::from_secs(20));
    let id = node.setup(Setup { ttl: Duration::from_secs(60), epoch: 3, ..setup("m@1.0.0") });
    commands!(node, "store jane m@1.0.0", format!("answer {id} refreshed 40"));
    node.sleep(Duration::from_secs(39));
    assert_eq!(node.command(), None);
    let id = node.setup(Setup { ttl: Duration::from_secs(60), epoch: 3, ..setup("m@1.0.0") });
    commands!(node, "store jane m@1.0.0", format!("answer {id} refreshed 1"));
    node.sleep(Duration::from_secs(1));
    node.commands();
    node.assert_empty();
}

/// Goal: nor by another version, however long that takes to come.
#[test]
fn a_slow_replacement_puts_no_lease_off_either() {
    for drained_before in [true, false] {
        let mut node = Node::new();
        node.install(Setup { ttl: Duration::from_secs(60), ..setup("m@1.0.0") });
        node.commands();
        drain(&mut node, drained_before);
        node.sleep(Duration::from_secs(10));
        let id = node.setup(Setup { ttl: Duration::from_secs(60), ..setup("m@1.0.1") });
        commands!(node, "fetch 1 101");
        drain(&mut node, true);
        node.sleep(Duration::from_secs(20));
        node.fetched(1, manifest(&setup("m@1.0.1")));
        node.loaded(1);
        node.commands();
        assert_eq!(node.reports[&id].outcome, Outcome::Replaced { lease_s: 30 }, "{drained_before}");
        node.sleep(Duration::from_secs(30));
        node.commands();
        node.assert_empty();
    }
}

/// Goal: a module that stands still to be moved goes on when its move fails, and the drained node does not become its next owner.
#[test]
fn a_move_away_can_be_called_off_and_none_comes_in() {
    let mut node = Node::new();
    let of_epoch = |epoch| Setup { ttl: Duration::from_secs(600), epoch, ..setup("m@1.0.0") };
    node.install(of_epoch(2));
    node.commands();
    drain(&mut node, true);
    let url = "https://r.example/s".to_owned();
    let export = Export {
        module: "example.org/m".parse().unwrap(),
        url,
        freeze: Some(Duration::from_secs(10)),
        buffer: "10.9.9.9".parse().ok(),
    };
    let request = node.request("jane", Body::Export(export));
    node.send(request);
    node.commands();
    node.package(1, EffectOutcome::Exported { digest: digest(7), bytes: 9 });
    node.commands();
    node.sleep_ms(1000);
    let source = StateSource { url: "https://r.example/s".to_owned(), digest: digest(7) };
    let back = Setup { state: Some(source), ..of_epoch(3) };
    let report = node.ask(node.request("jane", Body::from(back)));
    assert_refused(&report, RefusalKind::Maintenance, "");
    let report = node.ask(node.request("jane", Body::from(of_epoch(3))));
    assert_refused(&report, RefusalKind::Maintenance, "");
    let id = node.setup(of_epoch(2));
    assert!(node.commands().contains(&"filter 2 jane 0 udp dst 10.2.0.0/24".to_owned()));
    assert!(matches!(node.reports[&id].outcome, Outcome::Refreshed { lease_s: 590..=599 }));
    node.remove("m");
    node.commands();
    node.assert_empty();
}

#[test]
fn the_operators_own_services_come_and_go_on_a_drained_node() {
    let mut node = Node::new();
    node.install(setup("m@1.0.0"));
    node.policy.operator = Some(OperatorPolicy { user: user("jane"), key: public("operator") });
    node.policy.maintenance = true;
    node.apply_policy();
    node.commands();
    assert!(node.told.is_empty());
    assert!(node.controller.user_modules(node.now).is_empty());
    node.sleep_ms(1000);
    let request = sign(node.request("jane", Body::from(setup("n@1.0.0"))), &key("operator"));
    node.send(request);
    commands!(node, "fetch 1 100");
    assert_eq!(node.controller.modules(node.now).len(), 2);
    // A user of that name is none of the operator's.
    node.policy.operator = None;
    node.apply_policy();
    assert_eq!(node.controller.user_modules(node.now).len(), 1, "what is still to be fetched is refused");
}

fn drain(node: &mut Node, on: bool) {
    node.policy.maintenance = on;
    node.apply_policy();
}
