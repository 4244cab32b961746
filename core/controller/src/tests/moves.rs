// SPDX-License-Identifier: Apache-2.0
//! Modules that move between nodes: epochs, and states.

use std::time::Duration;

use netserv_model::RefusalKind;
use netserv_model::effect::{EffectOutcome, InstalledRecord};
use netserv_model::request::{Body, Export, Outcome, Remove, Setup, StateSource};

use super::script::*;
use crate::limits::{
    EPOCHS_OF_USER_MAX, EPOCHS_REMEMBERED_MAX, EXPORT_ANSWER_TIME_MAX, EXPORTS_MAX, EXPORTS_OF_USER_MAX,
};

#[test]
fn a_state_is_asked_for_and_its_digest_is_answered() {
    let mut node = Node::new();
    node.install(Setup { ttl: Duration::from_secs(600), ..setup("m@1.0.0") });
    let request = node.request("jane", export("m"));
    let id = node.send(request.clone());
    commands!(node, "export 1 jane 0 m https://r.example/s");
    node.package(1, EffectOutcome::Exported { digest: digest(7), bytes: 9 });
    commands!(node, format!("answer {id} exported"));
    assert_eq!(node.reports[&id].outcome, Outcome::Exported { digest: digest(7), bytes: 9 });
    assert_refused(&node.ask(request), RefusalKind::Replayed, "");
    let request = node.request("jane", export("m"));
    let refused = node.send(request);
    node.package(2, EffectOutcome::Refused(refusal(RefusalKind::StateRefused)));
    commands!(node, "export 2 jane 0 m https://r.example/s", format!("answer {refused} state-refused"));
    let request = node.request("jane", export("m"));
    let late = node.send(request);
    node.commands();
    node.sleep(EXPORT_ANSWER_TIME_MAX);
    commands!(node, format!("answer {late} timeout"));
    node.package(3, EffectOutcome::Exported { digest: digest(7), bytes: 9 });
    assert_eq!(node.command(), None);
}

#[test]
fn the_state_of_others_and_of_what_does_not_run_is_not_exported() {
    let mut node = Node::new();
    node.policy.users.insert(user("john"), user_policy("john", "10.3.0.0/16"));
    node.apply_policy();
    node.commands();
    let report = node.ask(node.request("jane", export("m")));
    assert_refused(&report, RefusalKind::NotInstalled, "no module example.org/m of user `jane`");
    node.install(setup("m@1.0.0"));
    let report = node.ask(node.request("john", export("m")));
    assert_refused(&report, RefusalKind::NotInstalled, "of user `john`");
    let mut unsigned = node.request("jane", export("m"));
    unsigned.signature = None;
    assert_refused(&node.ask(unsigned), RefusalKind::Unsigned, "");
    let mut dry = node.request("jane", export("m"));
    dry.dry_run = true;
    assert_eq!(node.ask(dry).outcome, Outcome::WouldDo { action: "export".to_owned() });
    for _ in 0..EXPORTS_OF_USER_MAX {
        let request = node.request("jane", export("m"));
        node.send(request);
    }
    node.commands();
    let report = node.ask(node.request("jane", export("m")));
    assert_refused(&report, RefusalKind::QuotaExceeded, "the node writes 2 states of the user's already");
    node.died(Some(0));
    let report = node.ask(node.request("jane", export("m")));
    assert_refused(&report, RefusalKind::NotRunning, "does not run");
}

/// Goal: a state is taken once in an epoch, before anything of it runs; refreshes of the same SETUP
/// take none.
#[test]
fn a_module_begins_with_a_state_once_in_each_epoch() {
    let mut node = Node::new();
    node.setup(with_state("m@1.0.0", 1, 5));
    commands!(node, "fetch 0 100 with 5");
    node.fetched(0, manifest(&setup("m@1.0.0")));
    node.ready();
    let load = node.commands().into_iter().find(|line| line.starts_with("load")).unwrap();
    assert_eq!(load, "load jane 0 m@1.0.0 with 5");
    node.loaded(0);
    assert!(node.commands().contains(&"confirm jane 0".to_owned()), "what it replaced is not put back any more");
    node.sleep_ms(1000);
    let id = node.setup(with_state("m@1.0.0", 1, 5));
    commands!(node, "store jane m@1.0.0", format!("answer {id} refreshed 600"));
    node.sleep_ms(1000);
    node.setup(with_state("m@1.0.0", 2, 6));
    commands!(node, "fetch 1 100 with 6");
    // Without a state, a later epoch only renews the lease.
    node.package(1, EffectOutcome::Refused(refusal(RefusalKind::FetchFailed)));
    node.commands();
    node.sleep_ms(1000);
    let id = node.setup(Setup { epoch: 7, ..setup("m@1.0.0") });
    commands!(node, "store jane m@1.0.0", format!("answer {id} refreshed 60"));
    assert_eq!(node.controller.modules(node.now)[0].epoch, 7);
}

#[test]
fn an_older_epoch_is_refused_also_after_a_restart_and_after_the_module_is_gone() {
    let mut node = Node::new();
    let epoch = |epoch: u64| Setup { epoch, ..setup("m@1.0.0") };
    node.install(epoch(5));
    node.sleep_ms(1000);
    for old in [0, 4] {
        let report = node.ask(node.request("jane", Body::from(epoch(old))));
        assert_refused(&report, RefusalKind::OldEpoch, "5 is the first that this node takes");
    }
    let mut restarted = Node::new();
    restarted.controller.restore(restarted.now, vec![InstalledRecord { epoch: 5, ..record(epoch(5)) }]);
    restarted.sleep_ms(1000);
    let report = restarted.ask(restarted.request("jane", Body::from(epoch(4))));
    assert_refused(&report, RefusalKind::OldEpoch, "epoch 4 of example.org/m");
    node.remove("m");
    node.commands();
    node.sleep_ms(1000);
    let report = node.ask(node.request("jane", Body::from(epoch(4))));
    assert_refused(&report, RefusalKind::OldEpoch, "");
    node.install(epoch(5));
}

/// Goal: a REMOVE along a path that both nodes are on takes the module from its earlier owner only.
#[test]
fn a_remove_with_an_epoch_leaves_the_owner_of_that_epoch_alone() {
    let mut node = Node::new();
    node.install(Setup { epoch: 5, ..setup("m@1.0.0") });
    let remove = |epoch: u64| Body::Remove(Remove { module: name("m"), force: false, all: false, epoch: Some(epoch) });
    for theirs in [4, 5] {
        node.sleep_ms(1000);
        let report = node.ask(node.request("jane", remove(theirs)));
        assert_refused(&report, RefusalKind::OldEpoch, "this node has example.org/m in epoch 5");
        let mut dry = node.request("jane", remove(theirs));
        dry.dry_run = true;
        assert_refused(&node.ask(dry), RefusalKind::OldEpoch, "");
    }
    node.sleep_ms(1000);
    let report = node.request("jane", remove(6));
    let id = node.send(report);
    node.commands();
    assert_eq!(node.reports[&id].outcome, Outcome::Removed);
    node.sleep_ms(1000);
    // Another node is the owner in epoch 6.
    let report = node.ask(node.request("jane", Body::from(Setup { epoch: 6, ..setup("m@1.0.0") })));
    assert_refused(&report, RefusalKind::OldEpoch, "7 is the first that this node takes");
    node.install(Setup { epoch: 7, ..setup("m@1.0.0") });
}

#[test]
fn epochs_of_modules_that_are_gone_are_bounded() {
    let mut epochs = crate::moves::epochs::Epochs::default();
    epochs.note(&(user("john"), name("m")), 7, |_| true);
    for n in 0..=EPOCHS_OF_USER_MAX {
        epochs.note(&(user("jane"), name(&format!("m{n}"))), 1, |_| true);
    }
    epochs.note(&(user("jane"), name("none")), 0, |_| true);
    assert_eq!(epochs.len(), 1 + EPOCHS_OF_USER_MAX, "the first of the user's own went");
    // The users who have most lose one each.
    let users = EPOCHS_REMEMBERED_MAX / EPOCHS_OF_USER_MAX;
    for (number, n) in (0..users).flat_map(|number| (0..EPOCHS_OF_USER_MAX).map(move |n| (number, n))) {
        epochs.note(&(user(&format!("u{number}")), name(&format!("m{n}"))), 1, |_| true);
        assert!(epochs.len() <= EPOCHS_REMEMBERED_MAX);
    }
    assert_eq!((epochs.len(), epochs.of(&(user("john"), name("m")))), (EPOCHS_REMEMBERED_MAX, 7));
}

/// All places may be taken by several users, of whom each has a few.
#[test]
fn states_of_all_users_are_written_so_many_at_a_time() {
    let mut node = Node::new();
    for other in ["john", "jim"] {
        node.policy.users.insert(user(other), user_policy(other, "10.2.0.0/24"));
    }
    node.apply_policy();
    let setup = || setup("m@1.0.0");
    for (n, who) in ["jane", "john", "jim"].into_iter().enumerate() {
        node.setup_by(who, setup());
        node.carry_out(&manifest(&setup()));
        node.sleep_ms(1000);
        for place in 0..EXPORTS_OF_USER_MAX {
            let request = node.request(who, export("m"));
            if n * EXPORTS_OF_USER_MAX + place < EXPORTS_MAX {
                node.send(request);
            } else {
                assert_refused(&node.ask(request), RefusalKind::QuotaExceeded, "the node writes 4 states already");
            }
        }
    }
}

/// Goal: the state of an epoch is taken once, also if the module went meanwhile and its SETUP comes again; another state has to
/// wait for the next epoch, and its requester is told so.
#[test]
fn a_state_is_not_taken_again_in_its_epoch_and_another_one_is_refused() {
    let mut node = Node::new();
    node.install(with_state("m@1.0.0", 2, 5));
    node.sleep_ms(1000);
    let report = node.ask(node.request("jane", Body::from(with_state("m@1.0.0", 2, 6))));
    assert_refused(&report, RefusalKind::OldEpoch, "example.org/m began epoch 2 with the state sha256:05");
    // Its lease ends, and its path leads here again.
    node.sleep(Duration::from_secs(601));
    node.commands();
    node.setup(with_state("m@1.0.0", 2, 5));
    commands!(node, "fetch 1 100");
    node.fetched(1, manifest(&setup("m@1.0.0")));
    node.ready();
    let load = node.commands().into_iter().find(|line| line.starts_with("load")).unwrap();
    assert_eq!(load, "load jane 0 m@1.0.0");
    node.sleep_ms(1000);
    let mut node = Node::new();
    node.install(Setup { epoch: 2, ..setup("m@1.0.0") });
    node.sleep_ms(1000);
    let report = node.ask(node.request("jane", Body::from(with_state("m@1.0.0", 2, 6))));
    assert_refused(&report, RefusalKind::OldEpoch, "began epoch 2 with no state; send this one in the next");
}

/// Who was never there is not told of owners, so a REMOVE along a path keeps no epoch from a node that is to have the module yet.
#[test]
fn a_remove_of_what_is_not_there_keeps_no_epoch_out() {
    let mut node = Node::new();
    let remove = Body::Remove(Remove { module: name("m"), force: false, all: false, epoch: Some(6) });
    assert_refused(&node.ask(node.request("jane", remove)), RefusalKind::NotInstalled, "");
    node.sleep_ms(1000);
    node.install(Setup { epoch: 6, ..setup("m@1.0.0") });
}

fn export(module: &str) -> Body {
    Body::Export(Export { module: name(module), url: "https://r.example/s".to_owned(), freeze: None, buffer: None })
}

fn with_state(module: &str, epoch: u64, number: u8) -> Setup {
    let state = Some(StateSource { url: "https://r.example/s".to_owned(), digest: digest(number) });
    Setup { epoch, state, ttl: Duration::from_secs(600), ..setup(module) }
}
