// SPDX-License-Identifier: Apache-2.0
//! Modules and containers that fail, and answers that do not come.

use std::time::Duration;

use netserv_model::effect::EffectOutcome;
use netserv_model::request::Setup;
use netserv_model::{Flavour, RefusalKind};

use super::script::{Node, assert_refused, commands, manifest, setup};
use crate::limits::{
    FAILURE_WINDOW, FAILURES_MAX, FETCH_ANSWER_TIME_MAX, LOAD_ANSWER_TIME_MAX, QUARANTINE_TIME, START_ANSWER_TIME_MAX,
};

#[test]
fn a_failed_install_leaves_nothing() {
    type Step<'a> = &'a dyn Fn(&mut Node);
    let fetched: Step<'_> = &|node| node.fetched(0, manifest(&setup("m@1.0.0")));
    let ready: Step<'_> = &Node::ready;
    let cases: [(&[Step<'_>], RefusalKind, &[&str]); 10] = [
        (&[&|node| node.package(0, EffectOutcome::Done)], RefusalKind::NodeFailed, &[]),
        (&[&|node| node.package(0, EffectOutcome::Routed(None))], RefusalKind::NodeFailed, &[]),
        (&[&|node| node.fetch_failed(0, RefusalKind::DigestMismatch)], RefusalKind::DigestMismatch, &[]),
        (&[&|node| node.sleep(FETCH_ANSWER_TIME_MAX)], RefusalKind::InProgress, &[]),
        (&[fetched, &|node| node.died(None)], RefusalKind::NodeFailed, &[]),
        (&[fetched, &|node| node.sleep(START_ANSWER_TIME_MAX)], RefusalKind::NodeFailed, &["stop jane"]),
        (&[fetched, ready, &|node| node.trapped(0)], RefusalKind::Trapped, &["stop jane"]),
        (&[fetched, ready, &|node| node.died(Some(0))], RefusalKind::NodeFailed, &[]),
        (&[fetched, ready, &|node| node.sleep(LOAD_ANSWER_TIME_MAX)], RefusalKind::Stalled, &["stop jane"]),
        (
            &[fetched, ready, &|node| {
                node.refuse_rule(0);
                node.loaded(0);
            }],
            RefusalKind::NodeFailed,
            &["filter 0 jane 0 udp dst 10.2.0.0/24", "unload jane 0", "stop jane"],
        ),
    ];
    for (n, (steps, kind, cleanup)) in cases.into_iter().enumerate() {
        let mut node = Node::new();
        let id = node.setup(setup("m@1.0.0"));
        let (last, steps) = steps.split_last().unwrap();
        for step in steps {
            node.commands();
            step(&mut node);
        }
        node.commands();
        last(&mut node);
        let mut expected: Vec<String> = cleanup.iter().map(ToString::to_string).collect();
        expected.push(format!("answer 0 {kind}"));
        assert_eq!(node.commands(), expected, "case {n}");
        assert_refused(&node.reports[&id], kind, "");
        node.assert_empty();
    }
}

#[test]
fn a_trapped_module_restarts_and_keeps_its_filters() {
    let mut node = Node::new();
    node.install(Setup { ttl: Duration::from_secs(3600), ..setup("m@1.0.0") });
    node.trapped(0);
    commands!(node,);
    assert_eq!(node.states(), ["m@1.0.0 BackingOff"]);
    node.sleep_ms(0);
    commands!(node, "load jane 0 m@1.0.0");
    assert_eq!(node.states(), ["m@1.0.0 Starting"]);
    node.loaded(0);
    commands!(node,);
    let status = &node.controller.modules(node.now)[0];
    assert_eq!((status.restarts, status.last_failure.as_ref().unwrap().kind), (1, RefusalKind::Trapped));
    for wait_ms in [100, 200, 400] {
        node.trapped(0);
        node.sleep_ms(wait_ms - 1);
        commands!(node,);
        node.sleep_ms(1);
        commands!(node, "load jane 0 m@1.0.0");
        node.loaded(0);
    }
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
}

/// A module that fails too often is kept out, its filters stay; so is the same code in a new request, but no other.
#[test]
fn too_many_failures_end_in_quarantine() {
    let mut node = Node::new();
    node.install(Setup { ttl: Duration::from_secs(3600), ..setup("m@1.0.0") });
    for _ in 0..FAILURES_MAX - 1 {
        node.trapped(0);
        node.sleep_ms(1000);
        commands!(node, "load jane 0 m@1.0.0");
        node.loaded(0);
    }
    node.commands();
    assert_eq!(node.told, [""; 0], "a module that starts again is no news");
    node.trapped(0);
    assert_eq!(node.states(), ["m@1.0.0 Quarantined"]);
    node.commands();
    let why = format!("failed too often, kept out for {} s: trapped: as the test says", QUARANTINE_TIME.as_secs());
    assert_eq!(node.told, [format!("jane m module-failed: {why}")]);
    let id = node.setup(setup("m@1.0.0"));
    node.commands();
    assert_refused(&node.reports[&id], RefusalKind::Quarantined, "another 601 s");
    assert_eq!(node.controller.counters().quarantines, 1);
    node.sleep(QUARANTINE_TIME - Duration::from_millis(1));
    commands!(node,);
    node.sleep_ms(1);
    commands!(node, "load jane 0 m@1.0.0");
    node.loaded(0);
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
    node.trapped(0);
    assert_eq!(node.states(), ["m@1.0.0 BackingOff"]);
}

/// A compilation that used up its time is not begun again by the next SETUP for the same code; other code is compiled.
#[test]
fn code_that_compiles_too_slowly_is_kept_out() {
    let mut node = Node::new();
    let id = node.setup(setup("m@1.0.0"));
    commands!(node, "fetch 0 100");
    node.fetch_failed(0, RefusalKind::CompileLimit);
    node.commands();
    assert_refused(&node.reports[&id], RefusalKind::CompileLimit, "");
    let id = node.setup(setup("m@1.0.0"));
    commands!(node, "answer 1 quarantined");
    assert_refused(&node.reports[&id], RefusalKind::Quarantined, "took too long to compile");
    assert_eq!(node.controller.counters().quarantines, 1);
    node.setup(setup("m@1.0.1"));
    commands!(node, "fetch 1 101");
    node.fetched(1, manifest(&setup("m@1.0.1")));
    node.sleep(QUARANTINE_TIME);
    node.commands();
    node.setup(setup("m@1.0.0"));
    assert!(node.commands()[0].starts_with("fetch"), "it may try again");
}

/// So it is with an installed module that is compiled anew.
#[test]
fn an_installed_module_that_compiles_too_slowly_is_kept_out() {
    let mut node = three_modules();
    node.trapped(1);
    node.sleep_ms(0);
    node.commands();
    node.failed_as(Flavour::Wasm, 1, RefusalKind::NodeFailed);
    node.sleep_ms(30_000);
    commands!(node, "fetch 3 100");
    node.fetch_failed(3, RefusalKind::CompileLimit);
    node.commands();
    assert_eq!(node.states().len(), 2);
    let id = node.setup(setup("a@1.0.0"));
    node.commands();
    assert_refused(&node.reports[&id], RefusalKind::Quarantined, "");
}

#[test]
fn quarantine_outlives_the_module_and_ends_with_other_code() {
    let mut node = Node::new();
    node.install(Setup { ttl: Duration::from_secs(3600), ..setup("m@1.0.0") });
    for _ in 0..FAILURES_MAX - 1 {
        node.trapped(0);
        node.sleep_ms(1000);
        node.commands();
        node.loaded(0);
    }
    node.trapped(0);
    assert_eq!(node.states(), ["m@1.0.0 Quarantined"]);
    node.setup(setup("m@1.0.1"));
    commands!(node, "fetch 1 101");
    node.fetched(1, manifest(&setup("m@1.0.1")));
    commands!(node, "load jane 1 m@1.0.1");
    node.loaded(1);
    commands!(node, "filter 1 jane 1 udp dst 10.2.0.0/24", "unfilter 0", "store jane m@1.0.1", "answer 1 replaced 60");
    node.remove("m");
    node.commands();
    let id = node.setup(setup("m@1.0.0"));
    node.commands();
    assert_refused(&node.reports[&id], RefusalKind::Quarantined, "");
    node.assert_empty();
}

#[test]
fn failures_that_are_far_apart_do_not_add_up() {
    let mut node = Node::new();
    node.install(Setup { ttl: Duration::from_secs(3600), ..setup("m@1.0.0") });
    for _ in 0..2 * FAILURES_MAX {
        node.trapped(0);
        node.sleep_ms(0);
        commands!(node, "load jane 0 m@1.0.0");
        node.loaded(0);
        node.sleep(FAILURE_WINDOW + Duration::from_millis(1));
    }
    assert_eq!(node.controller.counters().module_failures, 2 * FAILURES_MAX as u64);
}

#[test]
fn a_refresh_does_not_shorten_a_back_off() {
    let mut node = Node::new();
    node.install(setup("m@1.0.0"));
    for _ in 0..3 {
        node.trapped(0);
        node.sleep_ms(200);
        node.commands();
        node.loaded(0);
    }
    node.trapped(0);
    node.setup(setup("m@1.0.0"));
    commands!(node, "store jane m@1.0.0", "answer 1 refreshed 60");
    node.sleep_ms(399);
    commands!(node,);
    node.sleep_ms(1);
    commands!(node, "load jane 0 m@1.0.0");
}

/// A dead container starts again at once with all but the culprit, in install order, in the places they had.
#[test]
fn a_container_restarts_without_the_culprit() {
    let mut node = three_modules();
    node.died(Some(1));
    commands!(node,);
    assert_eq!(node.states(), ["c@1.0.0 Starting", "a@1.0.0 BackingOff", "b@1.0.0 Starting"]);
    node.sleep_ms(0);
    commands!(node, "start jane");
    node.ready();
    commands!(node, "load jane 0 c@1.0.0", "load jane 2 b@1.0.0");
    node.loaded(0);
    node.loaded(2);
    node.sleep_ms(99);
    commands!(node,);
    node.sleep_ms(1);
    commands!(node, "load jane 1 a@1.0.0");
    node.loaded(1);
    commands!(node,);
    assert_eq!(node.states(), ["c@1.0.0 Running", "a@1.0.0 Running", "b@1.0.0 Running"]);
    let restarts: Vec<u32> = node.controller.modules(node.now).iter().map(|status| status.restarts).collect();
    assert_eq!(restarts, [1, 1, 1]);
}

#[test]
fn a_container_that_dies_for_no_known_reason_backs_off() {
    let mut node = three_modules();
    for wait_ms in [0, 100, 200, 400, 800, 1600] {
        node.died(None);
        if wait_ms > 0 {
            node.sleep_ms(wait_ms - 1);
            commands!(node,);
            node.sleep_ms(1);
        } else {
            node.sleep_ms(0);
        }
        commands!(node, "start jane");
        node.ready();
        commands!(node, "load jane 0 c@1.0.0", "load jane 1 a@1.0.0", "load jane 2 b@1.0.0");
        (0..3).for_each(|slot| node.loaded(slot));
    }
    assert_eq!(node.controller.counters().container_deaths, 6);
    assert_eq!(node.controller.counters().module_failures, 0);
}

#[test]
fn a_container_that_does_not_start_again_is_tried_again() {
    let mut node = three_modules();
    node.died(None);
    node.sleep_ms(0);
    commands!(node, "start jane");
    node.died(None);
    node.sleep_ms(100);
    commands!(node, "start jane");
    node.sleep(START_ANSWER_TIME_MAX);
    commands!(node, "stop jane");
    node.sleep_ms(200);
    commands!(node, "start jane");
    node.ready();
    assert_eq!(node.commands().len(), 3);
}

/// The only module in a container is to blame for its end, so it ends in quarantine and not in an endless loop.
#[test]
fn the_only_module_is_to_blame() {
    let mut node = Node::new();
    node.install(Setup { ttl: Duration::from_secs(3600), ..setup("m@1.0.0") });
    for _ in 0..FAILURES_MAX - 1 {
        node.died(None);
        node.sleep_ms(1000);
        commands!(node, "start jane");
        node.ready();
        commands!(node, "load jane 0 m@1.0.0");
        node.loaded(0);
    }
    node.died(None);
    node.sleep_ms(100_000);
    commands!(node,);
    assert_eq!(node.states(), ["m@1.0.0 Quarantined"]);
}

#[test]
fn an_install_survives_a_death_that_another_is_to_blame_for() {
    let mut node = three_modules();
    node.setup(setup("d@1.0.0"));
    node.commands();
    node.fetched(3, manifest(&setup("d@1.0.0")));
    commands!(node, "load jane 3 d@1.0.0");
    node.died(Some(0));
    commands!(node,);
    node.sleep_ms(0);
    commands!(node, "start jane");
    node.ready();
    commands!(node, "load jane 1 a@1.0.0", "load jane 2 b@1.0.0", "load jane 4 d@1.0.0");
    node.loaded(4);
    commands!(node, "filter 3 jane 4 udp dst 10.2.0.0/24", "store jane d@1.0.0", "answer 3 installed 60");
}

#[test]
fn an_install_is_refused_when_the_container_dies_of_it() {
    for culprit in [Some(3), None] {
        let mut node = three_modules();
        let id = node.setup(setup("d@1.0.0"));
        node.commands();
        node.fetched(3, manifest(&setup("d@1.0.0")));
        commands!(node, "load jane 3 d@1.0.0");
        node.died(culprit);
        commands!(node, "answer 3 node-failed");
        assert_refused(&node.reports[&id], RefusalKind::NodeFailed, "");
        node.sleep_ms(0);
        commands!(node, "start jane");
        node.ready();
        commands!(node, "load jane 0 c@1.0.0", "load jane 1 a@1.0.0", "load jane 2 b@1.0.0");
        assert_eq!(node.controller.counters().module_failures, 0);
    }
}

#[test]
fn a_load_that_is_not_answered_costs_the_container() {
    let mut node = three_modules();
    node.trapped(1);
    node.sleep_ms(0);
    commands!(node, "load jane 1 a@1.0.0");
    node.sleep(LOAD_ANSWER_TIME_MAX);
    commands!(node, "stop jane", "start jane");
    node.ready();
    commands!(node, "load jane 0 c@1.0.0", "load jane 2 b@1.0.0");
}

/// A restarted module that cannot have its filters any more, in another place than before, starts afresh.
#[test]
fn a_filter_that_a_running_module_cannot_have_restarts_it() {
    let mut node = Node::new();
    node.controller.restore(node.now, vec![super::script::record(setup("m@1.0.0"))]);
    node.fetched(0, manifest(&setup("m@1.0.0")));
    node.ready();
    node.commands();
    node.refuse_rule(0);
    node.loaded(0);
    commands!(node, "filter 0 jane 0 udp dst 10.2.0.0/24", "unload jane 0");
    assert_eq!(node.states(), ["m@1.0.0 BackingOff"]);
    node.sleep_ms(100);
    commands!(node, "load jane 0 m@1.0.0");
    node.loaded(0);
    commands!(node, "filter 1 jane 0 udp dst 10.2.0.0/24");
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
}

/// The node lost the code, say: that is no fault of the module, which therefore never ends in quarantine.
#[test]
fn a_module_that_the_node_cannot_load_is_fetched_again() {
    let mut node = three_modules();
    node.trapped(1);
    for n in 0..2 * FAILURES_MAX as u64 {
        node.sleep_ms(if n > 0 { 30_000 } else { 0 });
        let commands = node.commands();
        if n > 0 {
            assert_eq!(commands, [format!("fetch {} 100", n + 2)]);
            node.fetched(n + 2, manifest(&setup("a@1.0.0")));
            commands!(node, "load jane 1 a@1.0.0");
        }
        node.failed_as(Flavour::Wasm, 1, RefusalKind::NodeFailed);
        assert_eq!(node.states()[1], "a@1.0.0 BackingOff");
    }
    assert_eq!(node.controller.counters().quarantines, 0);
}

/// A place whose load is not answered yet is not given to another module.
#[test]
fn a_place_is_free_once_its_load_is_answered() {
    let mut node = three_modules();
    node.trapped(1);
    node.sleep_ms(0);
    commands!(node, "load jane 1 a@1.0.0");
    node.remove("a");
    commands!(node, "unfilter 1", "unload jane 1", "forget jane a", "answer 3 removed");
    for n in 0..61 {
        node.install(Setup { ttl: Duration::from_secs(3600), ..setup(&format!("x{n}@1.0.0")) });
    }
    let id = node.setup(setup("c@1.0.1"));
    node.commands();
    node.fetched(64, manifest(&setup("c@1.0.1")));
    node.commands();
    assert_refused(&node.reports[&id], RefusalKind::QuotaExceeded, "every place of the worker is taken");
    node.loaded(1);
    node.install(setup("c@1.0.2"));
    assert_eq!(node.controller.place(&super::script::user("jane"), &super::script::name("c")).unwrap().1.0, 1);
}

/// The container holds a module that the controller gave up in the meantime: it must not stay there.
#[test]
fn a_module_that_is_loaded_too_late_is_unloaded() {
    let mut node = three_modules();
    node.trapped(1);
    node.loaded(1);
    commands!(node, "unload jane 1");
    node.sleep_ms(0);
    commands!(node, "load jane 1 a@1.0.0");
    node.loaded(1);
    commands!(node,);
    assert_eq!(node.states()[1], "a@1.0.0 Running");
}

#[test]
fn news_of_nothing_is_counted_and_ignored() {
    let mut node = three_modules();
    node.fetched(77, manifest(&setup("m@1.0.0")));
    node.fetch_failed(77, RefusalKind::FetchFailed);
    node.loaded(9);
    node.loaded(0);
    node.trapped(9);
    node.ready();
    commands!(node,);
    assert_eq!(node.controller.counters().stray_events, 6);
    let mut node = Node::new();
    node.died(None);
    node.ready();
    commands!(node,);
    assert_eq!(node.controller.counters().stray_events, 2);
    node.assert_empty();
}

/// Installs c, a and b, in this order.
fn three_modules() -> Node {
    let mut node = Node::new();
    for module in ["c@1.0.0", "a@1.0.0", "b@1.0.0"] {
        node.install(Setup { ttl: Duration::from_secs(3600), ..setup(module) });
    }
    node
}
