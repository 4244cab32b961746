// SPDX-License-Identifier: Apache-2.0
//! The life of a module that does not fail.

use netserv_model::request::{Body, Remove, Setup};
use netserv_model::{Flavour, RefusalKind};

use super::script::{Node, assert_refused, commands, jane, manifest, name, setup, user, user_policy};

#[test]
fn a_module_is_fetched_loaded_filtered_stored_and_removed() {
    let mut node = Node::new();
    let mut wanted = setup("m@1.0.0");
    wanted.filters.push("icmp src 10.2.0.1".parse().unwrap());
    node.setup(wanted.clone());
    commands!(node, "fetch 0 100");
    assert_eq!(node.states(), ["m@1.0.0 Fetching"]);
    node.sleep_ms(7);
    node.fetched(0, manifest(&wanted));
    commands!(node, "start jane");
    assert_eq!(node.states(), ["m@1.0.0 Starting"]);
    node.ready();
    commands!(node, "load jane 0 m@1.0.0");
    node.loaded(0);
    commands!(
        node,
        "filter 0 jane 0 udp dst 10.2.0.0/24",
        "filter 1 jane 0 icmp src 10.2.0.1/32",
        "store jane m@1.0.0",
        "answer 0 installed 60",
    );
    assert_eq!(node.reports[&0].took_us, 7000);
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
    assert_eq!(node.controller.module_at(&jane(Flavour::Wasm), netserv_model::effect::ModuleSlot(0)), Some(&name("m")));
    node.remove("m");
    commands!(node, "unfilter 0", "unfilter 1", "unload jane 0", "forget jane m", "stop jane", "answer 1 removed");
    node.assert_empty();
}

#[test]
fn the_same_again_only_renews_the_lease() {
    let mut node = Node::new();
    node.install(setup("m@1.0.0"));
    node.sleep_ms(59_000);
    node.setup(setup("m@1.0.0"));
    commands!(node, "store jane m@1.0.0", "answer 1 refreshed 60");
    node.sleep_ms(59_999);
    commands!(node,);
    node.sleep_ms(1);
    commands!(node, "unfilter 0", "unload jane 0", "forget jane m", "expired jane m@1.0.0", "stop jane");
    assert_eq!(node.controller.counters().leases_expired, 1);
    node.assert_empty();
}

#[test]
fn the_order_of_filters_makes_no_difference() {
    let mut node = Node::new();
    let (one, two) = ("udp dst 10.2.0.0/24".parse().unwrap(), "tcp dst 10.2.0.0/24".parse().unwrap());
    let mut wanted = setup("m@1.0.0");
    wanted.filters = vec![one, two];
    node.install(wanted.clone());
    wanted.filters.reverse();
    node.setup(wanted);
    commands!(node, "store jane m@1.0.0", "answer 1 refreshed 60");
}

#[test]
fn another_version_replaces_without_a_gap() {
    let mut node = Node::new();
    node.install(setup("m@1.0.0"));
    node.setup(setup("m@1.0.1"));
    commands!(node, "fetch 1 101");
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
    node.fetched(1, manifest(&setup("m@1.0.1")));
    commands!(node, "load jane 1 m@1.0.1");
    node.loaded(1);
    commands!(
        node,
        "filter 1 jane 1 udp dst 10.2.0.0/24",
        "unfilter 0",
        "unload jane 0",
        "store jane m@1.0.1",
        "answer 1 replaced 60",
    );
    assert_eq!(node.states(), ["m@1.0.1 Running"]);
    node.remove("m");
    commands!(node, "unfilter 1", "unload jane 1", "forget jane m", "stop jane", "answer 2 removed");
    node.assert_empty();
}

#[test]
fn other_properties_replace_without_a_fetch() {
    let mut node = Node::new();
    node.install(setup("m@1.0.0"));
    let mut changed = setup("m@1.0.0");
    changed.properties.insert("sample".to_owned(), "9".to_owned());
    node.setup(changed.clone());
    commands!(node, "load jane 1 m@1.0.0");
    node.loaded(1);
    let commands = node.commands();
    assert_eq!(commands[1..], ["unfilter 0", "unload jane 0", "store jane m@1.0.0", "answer 1 replaced 60"]);
    node.setup(changed);
    commands!(node, "store jane m@1.0.0", "answer 2 refreshed 60");
}

#[test]
fn a_digest_with_another_version_is_found_out_without_a_fetch() {
    let mut node = Node::new();
    node.install(setup("m@1.0.0"));
    let wrong = Setup { digest: setup("m@1.0.0").digest, ..setup("m@2.0.0") };
    let id = node.setup(wrong);
    node.commands();
    assert_refused(&node.reports[&id], RefusalKind::BadManifest, "the package is example.org/m@1.0.0");
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
}

#[test]
fn a_failed_replacement_leaves_the_old_one() {
    let fail: [&dyn Fn(&mut Node); 5] = [
        &|node| node.fetch_failed(1, RefusalKind::FetchFailed),
        &|node| node.fetched(1, manifest(&setup("m@2.0.0"))),
        &|node| {
            node.fetched(1, manifest(&setup("m@1.0.1")));
            commands!(node, "load jane 1 m@1.0.1");
            node.trapped(1);
        },
        &|node| {
            node.fetched(1, manifest(&setup("m@1.0.1")));
            commands!(node, "load jane 1 m@1.0.1");
            node.refuse_rule(1);
            node.loaded(1);
            assert_eq!(node.command().unwrap(), "filter 1 jane 1 udp dst 10.2.0.0/24");
            assert_eq!(node.command().unwrap(), "unfilter 0");
            assert_eq!(node.command().unwrap(), "unload jane 1");
        },
        &|node| node.sleep(crate::limits::FETCH_ANSWER_TIME_MAX),
    ];
    for (n, fail) in fail.iter().enumerate() {
        let mut node = Node::new();
        node.install(Setup { ttl: std::time::Duration::from_secs(600), ..setup("m@1.0.0") });
        let id = node.setup(setup("m@1.0.1"));
        commands!(node, "fetch 1 101");
        fail(&mut node);
        let commands = node.commands();
        assert_eq!(commands.len(), 1, "case {n}: {commands:?}");
        assert!(!node.reports[&id].outcome.is_ok(), "case {n}");
        assert_eq!(node.states(), ["m@1.0.0 Running"], "case {n}");
        node.remove("m");
        commands!(node, "unfilter 0", "unload jane 0", "forget jane m", "stop jane", "answer 2 removed");
        node.assert_empty();
    }
}

#[test]
fn modules_share_a_container_and_users_do_not() {
    let mut node = Node::new();
    node.policy.users.insert(user("john"), user_policy("john", "10.3.0.0/16"));
    node.apply_policy();
    node.install(setup("a@1.0.0"));
    let second = setup("b@1.0.0");
    node.setup(second.clone());
    commands!(node, "fetch 1 100");
    node.fetched(1, manifest(&second));
    commands!(node, "load jane 1 b@1.0.0");
    node.loaded(1);
    node.commands();
    let mut johns = setup("b@1.0.0");
    johns.filters = vec!["dst 10.3.0.0/24".parse().unwrap()];
    node.setup_by("john", johns.clone());
    commands!(node, "fetch 2 100");
    node.fetched(2, manifest(&johns));
    commands!(node, "start john");
    assert_eq!(node.states(), ["a@1.0.0 Running", "b@1.0.0 Running", "b@1.0.0 Starting"]);
    node.remove("a");
    commands!(node, "unfilter 0", "unload jane 0", "forget jane a", "answer 3 removed");
    node.remove("b");
    commands!(node, "unfilter 1", "unload jane 1", "forget jane b", "stop jane", "answer 4 removed");
}

#[test]
fn what_is_not_there_cannot_be_removed() {
    let mut node = Node::new();
    node.remove("m");
    commands!(node, "answer 0 not-installed");
    node.assert_empty();
}

/// Requests for one module wait for each other; those for others do not.
#[test]
fn requests_for_one_module_are_taken_in_turn() {
    let mut node = Node::new();
    node.setup(setup("m@1.0.0"));
    commands!(node, "fetch 0 100");
    node.setup(setup("m@1.0.0"));
    node.remove("m");
    node.setup(setup("m@1.0.1"));
    commands!(node,);
    node.setup(setup("other@1.0.0"));
    commands!(node, "fetch 1 100");
    node.fetched(0, manifest(&setup("m@1.0.0")));
    commands!(node, "start jane");
    node.ready();
    commands!(node, "load jane 0 m@1.0.0");
    node.loaded(0);
    commands!(
        node,
        "filter 0 jane 0 udp dst 10.2.0.0/24",
        "store jane m@1.0.0",
        "answer 0 installed 60",
        "store jane m@1.0.0",
        "answer 1 refreshed 60",
        "unfilter 0",
        "unload jane 0",
        "forget jane m",
        "answer 2 removed",
        "fetch 2 101",
    );
}

/// A lease that ends while a renewal is under way is not cut off.
#[test]
fn a_lease_waits_for_a_request_under_way() {
    let mut node = Node::new();
    node.install(setup("m@1.0.0"));
    node.sleep_ms(55_000);
    node.setup(setup("m@1.0.1"));
    commands!(node, "fetch 1 101");
    node.sleep_ms(10_000);
    commands!(node,);
    node.fetch_failed(1, RefusalKind::FetchFailed);
    let gone = ["unfilter 0", "unload jane 0", "forget jane m", "expired jane m@1.0.0", "stop jane"];
    assert_eq!(node.commands(), [&["answer 1 fetch-failed"], &gone[..]].concat());
    node.assert_empty();
}

#[test]
fn a_container_that_is_not_needed_any_more_is_stopped_when_it_is_there() {
    let mut node = Node::new();
    let wanted = setup("m@1.0.0");
    node.setup(wanted.clone());
    node.fetched(0, manifest(&wanted));
    commands!(node, "fetch 0 100", "start jane");
    node.policy = netserv_model::policy::NodePolicy::new("r1".parse().unwrap());
    node.apply_policy();
    commands!(node, "permit 200000 ", "answer 0 unknown-user");
    node.ready();
    commands!(node, "stop jane");
    node.assert_empty();
}

#[test]
fn modules_are_listed_in_install_order() {
    let mut node = Node::new();
    for module in ["b@1.0.0", "a@1.0.0", "c@1.0.0"] {
        node.install(setup(module));
    }
    assert_eq!(node.states(), ["b@1.0.0 Running", "a@1.0.0 Running", "c@1.0.0 Running"]);
    node.install(setup("b@1.0.1"));
    assert_eq!(node.states(), ["a@1.0.0 Running", "c@1.0.0 Running", "b@1.0.1 Running"]);
}

#[test]
fn remove_does_not_name_a_version() {
    let mut node = Node::new();
    node.install(setup("m@2.0.0"));
    let request =
        node.request("jane", Body::Remove(Remove { module: name("m"), force: false, all: false, epoch: None }));
    assert!(node.ask(request).outcome.is_ok());
    node.assert_empty();
}
