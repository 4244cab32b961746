// SPDX-License-Identifier: Apache-2.0
//! Restarts of the node and changes of its policy.

use std::time::Duration;

use netserv_model::effect::{InstalledRecord, Job, WorkerJob};
use netserv_model::{Flavour, RefusalKind};

use super::script::{Node, commands, manifest, packet, policy, setup, user, user_policy};
use crate::limits::MODULES_PER_USER_MAX;

#[test]
fn a_restarted_node_is_what_it_was() {
    let mut node = Node::new();
    let records = vec![record("b@1.0.0", 40, 8), record("a@1.0.0", 30, 5), record("old@1.0.0", 0, 1)];
    node.controller.restore(node.now, records);
    commands!(node, "expired jane old@1.0.0", "forget jane old", "fetch 0 100", "fetch 1 100");
    assert_eq!(node.states(), ["a@1.0.0 Fetching", "b@1.0.0 Fetching"]);
    node.fetched(1, manifest(&setup("b@1.0.0")));
    commands!(node, "start jane");
    node.fetched(0, manifest(&setup("a@1.0.0")));
    node.ready();
    commands!(node, "load jane 0 a@1.0.0", "load jane 1 b@1.0.0");
    node.loaded(0);
    node.loaded(1);
    commands!(node, "filter 0 jane 0 udp dst 10.2.0.0/24", "filter 1 jane 1 udp dst 10.2.0.0/24");
    assert_eq!(node.controller.counters().restored, 2);
    node.setup(setup("b@1.0.0"));
    commands!(node, "store jane b@1.0.0", "answer 0 refreshed 60");
    node.install(setup("c@1.0.0"));
    assert_eq!(node.states(), ["a@1.0.0 Running", "b@1.0.0 Running", "c@1.0.0 Running"]);
    node.sleep_ms(30_000);
    commands!(node, "unfilter 0", "unload jane 0", "forget jane a", "expired jane a@1.0.0");
}

#[test]
fn packages_that_cannot_be_had_now_are_tried_again_until_the_lease_ends() {
    let mut node = Node::new();
    node.controller.restore(node.now, vec![record("m@1.0.0", 10, 0)]);
    commands!(node, "fetch 0 100");
    node.fetch_failed(0, RefusalKind::FetchFailed);
    commands!(node,);
    assert_eq!(node.states(), ["m@1.0.0 BackingOff"]);
    node.sleep_ms(100);
    commands!(node, "fetch 1 100");
    node.fetch_failed(1, RefusalKind::FetchFailed);
    node.sleep_ms(20_000);
    assert!(node.commands().ends_with(&["forget jane m".to_owned(), "expired jane m@1.0.0".to_owned()]));
    node.assert_empty();
}

#[test]
fn packages_that_are_no_good_any_more_are_forgotten() {
    let mut node = Node::new();
    node.controller.restore(node.now, vec![record("a@1.0.0", 10, 0), record("b@1.0.0", 10, 1)]);
    commands!(node, "fetch 0 100", "fetch 1 100");
    node.fetch_failed(0, RefusalKind::ModuleUnsigned);
    commands!(node, "revoked jane a@1.0.0 module-unsigned", "forget jane a");
    let mut manifest = manifest(&setup("b@1.0.0"));
    packet(&mut manifest).abi = 9;
    node.fetched(1, manifest);
    commands!(node, "revoked jane b@1.0.0 abi-mismatch", "forget jane b");
    assert_eq!(node.controller.counters().revoked, 2);
    let told: Vec<&str> = node.told.iter().map(|told| &told[..18]).collect();
    assert_eq!(told, ["jane a lease-ended", "jane b lease-ended"], "{:?}", node.told);
    node.assert_empty();
}

#[test]
fn records_that_the_policy_does_not_allow_are_forgotten() {
    let mut node = Node::new();
    let mut foreign = record("foreign@1.0.0", 10, 0);
    foreign.filters = vec!["dst 10.9.0.1".parse().unwrap()];
    let mut stranger = record("m@1.0.0", 10, 1);
    stranger.user = user("stranger");
    node.controller.restore(node.now, vec![foreign, stranger, record("m@1.0.0", 10, 2), record("m@1.0.1", 10, 3)]);
    commands!(
        node,
        "revoked jane foreign@1.0.0 prefix-not-allowed",
        "forget jane foreign",
        "revoked stranger m@1.0.0 unknown-user",
        "forget stranger m",
        "fetch 0 100"
    );
    let mut node = Node::new();
    let many: Vec<_> = (0..=MODULES_PER_USER_MAX).map(|n| record(&format!("m{n}@1.0.0"), 10, n as u64)).collect();
    node.controller.restore(node.now, many);
    assert_eq!(node.commands().pop().unwrap(), "forget jane m63");
    assert_eq!(node.states().len(), MODULES_PER_USER_MAX);
}

#[test]
fn a_lease_longer_than_granted_is_cut_at_a_restart() {
    let mut node = Node::new();
    node.controller.restore(node.now, vec![record("m@1.0.0", 100_000, 0)]);
    assert_eq!(node.controller.modules(node.now)[0].lease_s, 3600);
}

#[test]
fn a_setup_takes_over_what_is_being_restored() {
    let mut node = Node::new();
    node.controller.restore(node.now, vec![record("m@1.0.0", 30, 0)]);
    commands!(node, "fetch 0 100");
    node.setup(setup("m@1.0.1"));
    commands!(node, "fetch 1 101");
    node.fetched(1, manifest(&setup("m@1.0.1")));
    commands!(node, "start jane");
    node.ready();
    commands!(node, "load jane 0 m@1.0.1");
    node.loaded(0);
    commands!(node, "filter 0 jane 0 udp dst 10.2.0.0/24", "store jane m@1.0.1", "answer 0 replaced 60");
    node.fetched(0, manifest(&setup("m@1.0.0")));
    commands!(node,);
    assert_eq!(node.states(), ["m@1.0.1 Running"]);
}

/// What is being restored is loaded while its successor's filters are on their way.
#[test]
fn a_restored_module_sees_packets_only_if_its_successor_does_not() {
    let [taken, refused] = [false, true].map(|refused| {
        let mut node = Node::new();
        node.controller.restore(node.now, vec![record("m@1.0.0", 30, 0)]);
        node.setup(setup("m@1.0.1"));
        node.commands();
        node.fetched(0, manifest(&setup("m@1.0.0")));
        node.fetched(1, manifest(&setup("m@1.0.1")));
        node.ready();
        commands!(node, "start jane", "load jane 0 m@1.0.0", "load jane 1 m@1.0.1");
        if refused {
            node.refuse_rule(0);
        }
        node.loaded(1);
        node.loaded(0);
        node.commands()
    });
    let first = "filter 0 jane 1 udp dst 10.2.0.0/24";
    assert_eq!(taken, [first, "unload jane 0", "store jane m@1.0.1", "answer 0 replaced 60"]);
    assert_eq!(refused, [first, "unload jane 1", "answer 0 node-failed", "filter 1 jane 0 udp dst 10.2.0.0/24"]);
}

#[test]
fn what_is_being_restored_can_be_renewed_and_removed() {
    let mut node = Node::new();
    node.controller.restore(node.now, vec![record("m@1.0.0", 30, 0)]);
    node.commands();
    node.setup(setup("m@1.0.0"));
    commands!(node, "store jane m@1.0.0", "answer 0 refreshed 60");
    node.remove("m");
    commands!(node, "forget jane m", "answer 1 removed");
    assert_eq!(node.told, [""; 0], "who removes it knows");
    node.assert_empty();
}

#[test]
fn a_user_who_is_taken_out_of_the_policy_loses_everything() {
    let mut node = Node::new();
    node.policy.users.insert(user("john"), user_policy("john", "10.3.0.0/16"));
    node.apply_policy();
    node.install(setup("a@1.0.0"));
    node.setup(setup("b@1.0.0"));
    node.setup(setup("b@1.0.1"));
    commands!(node, "fetch 1 100");
    let jane = node.policy.users.remove(&user("jane")).unwrap();
    node.apply_policy();
    commands!(
        node,
        "answer 2 unknown-user",
        "permit 200000 ",
        "unfilter 0",
        "unload jane 0",
        "forget jane a",
        "revoked jane a@1.0.0 unknown-user",
        "stop jane",
        "answer 1 unknown-user",
    );
    assert_eq!(node.told, ["jane a lease-ended: unknown-user: no user `jane` here"]);
    node.assert_empty();
    node.policy.users.insert(user("jane"), jane);
    node.apply_policy();
    node.install(setup("a@1.0.0"));
}

#[test]
fn a_module_whose_filters_are_no_longer_allowed_goes() {
    let mut node = Node::new();
    let mut narrow = setup("narrow@1.0.0");
    narrow.filters = vec!["dst 10.2.0.1".parse().unwrap()];
    node.install(setup("wide@1.0.0"));
    node.install(narrow);
    node.setup(setup("pending@1.0.0"));
    node.commands();
    node.policy.users.get_mut(&user("jane")).unwrap().prefixes = vec!["10.2.0.0/25".parse().unwrap()];
    node.apply_policy();
    commands!(
        node,
        "permit 200000 ",
        "answer 2 prefix-not-allowed",
        "unfilter 0",
        "unload jane 0",
        "forget jane wide",
        "revoked jane wide@1.0.0 prefix-not-allowed",
    );
    assert_eq!(node.states(), ["narrow@1.0.0 Running"]);
    assert_eq!(node.controller.counters().revoked, 1);
}

#[test]
fn a_node_that_becomes_a_host_lets_everything_go() {
    let mut node = Node::new();
    node.install(setup("m@1.0.0"));
    node.policy.host_only = true;
    node.apply_policy();
    let revoked = "revoked jane m@1.0.0 not-a-node";
    commands!(node, "unfilter 0", "unload jane 0", "forget jane m", revoked, "stop jane");
    node.assert_empty();
}

#[test]
fn the_next_deadline_says_what_it_is_for() {
    let mut node = Node::new();
    let reason = |node: &Node| node.controller.poll_timeout().map(|(_, reason)| reason);
    assert_eq!(reason(&node), None);
    node.setup(setup("m@1.0.0"));
    assert_eq!(reason(&node), Some("fetch answer"));
    node.fetched(0, manifest(&setup("m@1.0.0")));
    assert_eq!(reason(&node), Some("worker answer"));
    node.ready();
    assert_eq!(reason(&node), Some("reading of meters"));
    node.sleep_ms(1000);
    node.commands();
    assert_eq!(reason(&node), Some("load answer"));
    node.loaded(0);
    node.commands();
    assert_eq!(reason(&node), Some("lease"));
    node.trapped(0);
    assert_eq!(reason(&node), Some("module restart"));
}

#[test]
fn running_containers_are_held_to_a_changed_policy() {
    let mut node = Node::new();
    node.install(setup("m@1.0.0"));
    let policy = node.policy.users.get_mut(&user("jane")).unwrap();
    policy.network.packets_per_second = 7;
    policy.connect = vec!["udp port 53".parse().unwrap()];
    policy.container.memory_bytes = 1 << 26;
    node.apply_policy();
    commands!(node, "permit 7 udp port 53", "limit 67108864");
    assert_eq!(node.changes, (1, 1));
    node.apply_policy();
    commands!(node,);
    assert_eq!(node.changes, (2, 2));
}

#[test]
fn what_a_running_container_cannot_be_held_to_is_told() {
    let mut node = Node::new();
    node.install(setup("m@1.0.0"));
    node.policy.users.get_mut(&user("jane")).unwrap().container.memory_bytes = 0;
    node.apply_policy();
    commands!(node, "limit 0", "late node-failed");
    assert_eq!(node.changes, (1, 1));
}

#[test]
fn a_user_without_a_container_gets_what_holds_when_one_starts() {
    let mut node = Node::new();
    node.policy.users.get_mut(&user("jane")).unwrap().network.packets_per_second = 7;
    node.apply_policy();
    commands!(node,);
    node.install(setup("m@1.0.0"));
    let told = |job: &Job| {
        let Job::Workers(WorkerJob::Start { permits, .. }) = job else { return None };
        Some(permits.rate.packets_per_second)
    };
    assert_eq!(node.jobs.iter().find_map(told), Some(7));
}

#[test]
fn a_user_who_is_gone_is_permitted_nothing_while_its_container_ends() {
    let mut node = Node::new();
    node.policy.users.get_mut(&user("jane")).unwrap().connect = vec!["udp port 53".parse().unwrap()];
    node.apply_policy();
    node.install(setup("m@1.0.0"));
    node.policy.users.clear();
    node.apply_policy();
    let usual = netserv_model::policy::NetworkRate::default().packets_per_second;
    let gone = node.commands();
    assert!(
        gone.contains(&format!("permit {usual} ")) && !gone.iter().any(|line| line.starts_with("limit")),
        "{gone:?}"
    );
    node.assert_empty();
}

#[test]
fn the_plan_of_addresses_is_told_at_the_start_and_when_it_changes() {
    let mut policy = policy();
    policy.container_prefixes = vec!["10.9.0.0/24".parse().unwrap()];
    let mut node = Node::with(policy);
    node.controller.restore(node.now, Vec::new());
    commands!(node, "addresses [10.9.0.0/24] []");
    node.apply_policy();
    commands!(node,);
    node.policy.users.get_mut(&user("jane")).unwrap().addresses = vec!["10.9.0.7".parse().unwrap()];
    node.apply_policy();
    commands!(node, "addresses [10.9.0.0/24] [10.9.0.7]");
    assert_eq!(node.changes, (2, 2));
}

fn record(module: &str, left_s: u64, order: u64) -> InstalledRecord {
    InstalledRecord {
        lease_until: super::script::START.wall + Duration::from_secs(left_s),
        order,
        flavour: Some(Flavour::Wasm),
        epoch: 0,
        ..super::script::record(setup(module))
    }
}
