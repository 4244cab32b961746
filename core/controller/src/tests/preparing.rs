// SPDX-License-Identifier: Apache-2.0
//! What is made ready for a module that may come from another node.

use std::time::Duration;

use netserv_model::RefusalKind;
use netserv_model::limits::BUFFERING_TIME_MAX;
use netserv_model::request::{Body, Setup, StateSource};

use super::script::*;
use crate::limits::PREPARED_TIME;

fn prepare(node: &mut Node, module: &str) -> u64 {
    prepare_with(node, setup(module))
}

fn prepare_with(node: &mut Node, setup: Setup) -> u64 {
    let mut request = node.request("jane", Body::from(Setup { prepare: true, epoch: 2, ..setup }));
    request.dry_run = true;
    node.send(request)
}

/// Goal: package and worker are there before the module comes, which then is only loaded; until then nothing of it is.
#[test]
fn package_and_worker_are_ready_and_nothing_is_installed() {
    let mut node = Node::new();
    let id = prepare(&mut node, "m@1.0.0");
    commands!(node, "fetch 0 100");
    node.fetched(0, manifest(&setup("m@1.0.0")));
    commands!(node, "start jane");
    node.ready();
    commands!(node, format!("answer {id} would install"));
    assert!(node.states().is_empty());
    let id = node.setup(Setup { epoch: 2, ..setup("m@1.0.0") });
    commands!(node, "fetch 1 100");
    node.fetched(1, manifest(&setup("m@1.0.0")));
    let lines = node.commands();
    assert!(lines[0].starts_with("load jane 0"), "the worker is there: {lines:?}");
    node.loaded(0);
    let lines = node.commands();
    assert!(lines.contains(&format!("answer {id} installed 60")), "{lines:?}");
    // Once more, of what is there: nothing is begun, and nothing changes.
    let id = prepare(&mut node, "m@1.0.0");
    commands!(node, format!("answer {id} would refresh"));
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
}

/// Goal: a worker that waits for a module which does not come ends after a while.
#[test]
fn what_is_ready_for_nothing_goes() {
    let mut node = Node::new();
    let id = prepare(&mut node, "m@1.0.0");
    node.carry_out(&manifest(&setup("m@1.0.0")));
    assert!(node.reports[&id].outcome.is_ok());
    node.sleep(PREPARED_TIME - Duration::from_millis(1));
    assert_eq!(node.command(), None);
    node.sleep_ms(1);
    commands!(node, "stop jane");
    node.assert_empty();
}

#[test]
fn what_is_ready_goes_with_its_user_and_takes_no_state() {
    let mut node = Node::new();
    let state = StateSource { url: "https://r.example/s".to_owned(), digest: digest(7) };
    prepare_with(&mut node, Setup { state: Some(state), ..setup("m@1.0.0") });
    commands!(node, "fetch 0 100");
    node.fetched(0, manifest(&setup("m@1.0.0")));
    node.ready();
    node.commands();
    node.policy.users.clear();
    node.apply_policy();
    let lines = node.commands();
    assert!(lines.contains(&"stop jane".to_owned()), "{lines:?}");
    node.assert_empty();
}

#[test]
fn what_cannot_be_made_ready_is_refused_and_leaves_nothing() {
    let mut node = Node::new();
    let id = prepare(&mut node, "m@1.0.0");
    commands!(node, "fetch 0 100");
    node.fetch_failed(0, RefusalKind::FetchFailed);
    commands!(node, format!("answer {id} fetch-failed"));
    node.assert_empty();
    let id = prepare(&mut node, "m@1.0.0");
    commands!(node, "fetch 1 100");
    node.fetched(1, manifest(&setup("m@1.0.0")));
    commands!(node, "start jane");
    node.died(None);
    let lines = node.commands();
    assert!(lines.iter().any(|line| line.starts_with(&format!("answer {id} "))), "{lines:?}");
    node.assert_empty();
}

/// Goal: packets that do not come from the old node wait for the module, and are shown to it in the change that puts it in force; if it
/// does not come, they go after a while, and with their user.
#[test]
fn packets_wait_for_what_is_ready() {
    let buffered = |node: &mut Node| {
        let id = prepare_with(node, Setup { buffer: "10.9.9.9".parse().ok(), ..setup("m@1.0.0") });
        node.carry_out(&manifest(&setup("m@1.0.0")));
        assert!(node.reports[&id].outcome.is_ok());
        assert_eq!(node.controller.modules.buffers.len(), 1);
    };
    let mut node = Node::new();
    prepare_with(&mut node, Setup { buffer: "10.9.9.9".parse().ok(), ..setup("m@1.0.0") });
    node.commands();
    node.fetched(0, manifest(&setup("m@1.0.0")));
    node.ready();
    let lines = node.commands();
    assert!(lines.contains(&"buffer not from 10.9.9.9 0 jane 0 udp dst 10.2.0.0/24".to_owned()), "{lines:?}");
    node.sleep_ms(10);
    node.setup(Setup { epoch: 2, ..setup("m@1.0.0") });
    node.fetched(1, manifest(&setup("m@1.0.0")));
    node.loaded(0);
    let lines = node.commands();
    let swap = lines.iter().position(|line| line.starts_with("filter 1 jane 0")).unwrap();
    assert_eq!(lines[swap + 1], "unfilter 0");
    node.sleep(BUFFERING_TIME_MAX);
    // Of what is in force, none waits.
    prepare_with(&mut node, Setup { buffer: "10.9.9.9".parse().ok(), ..setup("m@1.0.0") });
    node.carry_out(&manifest(&setup("m@1.0.0")));
    assert!(node.controller.modules.buffers.is_empty());
    let mut node = Node::new();
    buffered(&mut node);
    node.sleep(BUFFERING_TIME_MAX);
    assert!(node.controller.modules.buffers.is_empty());
    node.sleep(PREPARED_TIME);
    node.commands();
    node.assert_empty();
    let mut node = Node::new();
    buffered(&mut node);
    node.policy.users.clear();
    node.apply_policy();
    node.commands();
    node.assert_empty();
}

/// Goal: however many wait for the same worker, each is ended by itself, and none of them keeps a module whose lease has ended.
#[test]
fn many_that_prepare_end_one_by_one_and_renew_nothing() {
    let mut node = Node::new();
    node.install(setup("m@1.0.0"));
    node.sleep(Duration::from_secs(59));
    for _ in 0..200 {
        prepare(&mut node, "m@1.0.0");
    }
    node.sleep(Duration::from_secs(1));
    node.carry_out(&manifest(&setup("m@1.0.0")));
    assert!(node.states().is_empty(), "{:?}", node.states());
}
