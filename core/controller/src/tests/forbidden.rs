// SPDX-License-Identifier: Apache-2.0
//! Sessions of a module that ask for what the policy does not allow any more.

use netserv_model::request::Setup;

use super::script::{Node, manifest, packet, setup, user};
use super::sessions::{ONE, OTHER, held, last_stored, toward};

/// Takes all prefixes from `jane` but one.
fn keep(node: &mut Node, prefix: &str) {
    let user = node.policy.users.get_mut(&user("jane")).unwrap();
    user.prefixes = vec![prefix.parse().unwrap()];
}

/// A node whose module two sessions hold, each for another receiver.
fn held_by_both() -> Node {
    let mut node = held();
    node.setup_of(OTHER, toward(2));
    node.commands();
    node
}

#[test]
fn a_policy_that_takes_a_prefix_away_ends_the_sessions_that_need_it_alone() {
    for (kept, session) in [("10.2.0.1/32", ONE), ("10.2.0.2/32", OTHER)] {
        let mut node = held_by_both();
        keep(&mut node, kept);
        node.apply_policy();
        let ended = if session == ONE { "2" } else { "1" };
        let why = format!("neither end of filter `udp dst 10.2.0.{ended}/32` lies in a prefix of the user");
        assert!(node.commands().iter().any(|line| line.starts_with("unfilter")));
        assert_eq!(node.told, [format!("jane m lease-ended to one: prefix-not-allowed: {why}")]);
        assert_eq!((node.filters(), node.held_by()), (vec![format!("udp dst {kept}")], vec![(session, 60)]));
        assert_eq!(node.states(), ["m@1.0.0 Running"]);
        assert_eq!((last_stored(&node).session, last_stored(&node).sessions.len()), (session, 1));
    }
    // All of them.
    let mut node = held_by_both();
    keep(&mut node, "10.3.0.0/16");
    node.apply_policy();
    node.commands();
    node.assert_empty();
    assert_eq!(node.controller.counters().revoked, 1);
}

/// Goal: what is down loses the filters at once, too, which say what becomes of its packets.
#[test]
fn a_module_without_its_package_loses_what_is_not_allowed_any_more() {
    let mut node = held_by_both();
    node.failed_as(netserv_model::Flavour::Wasm, 0, netserv_model::RefusalKind::NodeFailed);
    node.commands();
    keep(&mut node, "10.2.0.1/32");
    node.apply_policy();
    assert!(node.commands().iter().any(|line| line == "unfilter 1"));
    assert_eq!((node.filters(), node.held_by()), (vec!["udp dst 10.2.0.1/32".to_owned()], vec![(ONE, 60)]));
}

#[test]
fn a_restart_under_a_narrower_policy_ends_the_sessions_that_need_more_alone() {
    for (kept, session) in [("10.2.0.1/32", ONE), ("10.2.0.2/32", OTHER)] {
        let node = held_by_both();
        let mut after = Node::new();
        keep(&mut after, kept);
        after.apply_policy();
        after.controller.restore(after.now, vec![last_stored(&node)]);
        after.carry_out(&manifest(&toward(1)));
        assert_eq!((after.filters(), after.held_by()), (vec![format!("udp dst {kept}")], vec![(session, 60)]));
        assert_eq!(last_stored(&after).sessions.len(), 1);
    }
}

/// Goal: who asked for the manifest's filters is known by these once the package is there.
#[test]
fn a_session_with_the_manifests_filters_is_held_to_the_policy_too() {
    let all = Setup { filters: Vec::new(), ..setup("m@1.0.0") };
    let mut package = manifest(&all);
    packet(&mut package).filters = vec!["udp dst 10.2.0.0/16".parse().unwrap()];
    let mut node = Node::new();
    node.setup_of(ONE, toward(1));
    node.carry_out(&package);
    node.setup_of(OTHER, all);
    node.carry_out(&package);
    assert_eq!(node.held_by().len(), 2);
    let stored = last_stored(&node);
    keep(&mut node, "10.2.0.1/32");
    let mut after = Node::with(node.policy.clone());
    node.apply_policy();
    node.commands();
    after.controller.restore(after.now, vec![stored]);
    after.carry_out(&package);
    for node in [node, after] {
        assert_eq!((node.filters(), node.held_by()), (vec!["udp dst 10.2.0.1/32".to_owned()], vec![(ONE, 60)]));
    }
}
