// SPDX-License-Identifier: Apache-2.0
//! Control messages to modules, and what modules tell requesters.

use std::time::Duration;

use netserv_model::control::{CONTROL_TOPICS_MAX, MODULE_NOTIFIES_BURST_MAX, MODULE_NOTIFY_INTERVAL, ModuleMessage};
use netserv_model::effect::{EffectOutcome, Job, ModuleSlot, StoreJob, Stored, StoredMessage, WorkerJob, WorkerNews};
use netserv_model::request::{Body, Outcome, Remove};
use netserv_model::{Flavour, RefusalKind};

use super::script::*;
use crate::limits::{TELL_ANSWER_TIME_MAX, TELLS_PER_SECOND_MAX, TOLD_REMEMBERED_MAX};

#[test]
fn a_message_is_handed_over_then_kept_then_answered() {
    let mut node = installed();
    node.tell("m", "limit", 5);
    commands!(node, "tell 1 jane 0 limit 5");
    node.package(1, EffectOutcome::Done);
    commands!(node, "keep jane m limit 5", "answer 1 told");
    node.tell("m", "limit", 6);
    node.package(2, EffectOutcome::Done);
    commands!(node, "tell 2 jane 0 limit 6", "keep jane m limit 6", "answer 2 told");
    node.remove("m");
    node.commands();
    node.assert_empty();
}

/// Goal: what comes while a new version is loaded reaches it, also if the version before it was loaded again meanwhile.
#[test]
fn a_message_reaches_the_next_version_whatever_happens_to_the_one_before() {
    let mut node = installed();
    let next = setup("m@2.0.0");
    node.sleep_ms(1000);
    node.setup(next.clone());
    node.fetched(1, manifest(&next));
    node.commands();
    assert_eq!(told(&mut node, "m", "switch", 5), Outcome::Told);
    // It is given to this one with its load.
    node.trapped(0);
    node.sleep(Duration::from_secs(1));
    let loads = node.commands();
    assert!(loads.contains(&"load jane 0 m@1.0.0 5".to_owned()), "{loads:?}");
    node.loaded(0);
    node.commands();
    node.loaded(1);
    let lines = node.commands();
    assert!(lines.iter().any(|line| line.starts_with("tell") && line.ends_with("jane 1 switch 5")), "{lines:?}");
}

#[test]
fn what_a_worker_refuses_is_not_kept_and_may_come_again() {
    let mut node = installed();
    for (n, kind) in [(1, RefusalKind::InboxFull), (2, RefusalKind::NoInbox), (3, RefusalKind::NotRunning)] {
        let id = node.tell("m", "limit", 5);
        node.package(n, EffectOutcome::Refused(refusal(kind)));
        commands!(node, format!("tell {n} jane 0 limit 5"), format!("answer {id} {kind}"));
    }
    assert_eq!(told(&mut node, "m", "limit", 5), Outcome::Told);
}

#[test]
fn numbers_only_grow_also_among_those_under_way() {
    let mut node = installed();
    assert_eq!(told(&mut node, "m", "a", 5), Outcome::Told);
    for seq in [5, 4, 0] {
        let report = node.ask(node.request("jane", tell("m", "other", seq)));
        assert_refused(&report, RefusalKind::OldSequence, &format!("seq {seq} is not above 5"));
    }
    node.tell("m", "b", 9);
    let report = node.ask(node.request("jane", tell("m", "b", 8)));
    assert_refused(&report, RefusalKind::OldSequence, "seq 8 is not above 9");
    // The answers may come in another order.
    node.tell("m", "b", 10);
    node.commands();
    node.package(3, EffectOutcome::Done);
    node.package(2, EffectOutcome::Done);
    commands!(node, "keep jane m b 10", "answer 7 told", "answer 5 told");
    assert_eq!(told(&mut node, "m", "b", u64::MAX), Outcome::Told);
    let report = node.ask(node.request("jane", tell("m", "b", u64::MAX)));
    assert_refused(&report, RefusalKind::OldSequence, "is not above 18446744073709551615");
}

/// Goal: a request that somebody on the path saw has no effect a second time, also after the module was installed anew.
#[test]
fn a_replayed_message_is_refused_also_by_the_next_module_of_that_name() {
    let mut node = installed();
    let request = node.request("jane", tell("m", "limit", 5));
    assert_eq!(node.take(request.clone()), Outcome::Told);
    assert_refused(&node.ask(request.clone()), RefusalKind::OldSequence, "seq 5 is not above 5");
    node.remove("m");
    node.commands();
    assert_refused(&node.ask(request.clone()), RefusalKind::NotInstalled, "no module");
    node.sleep_ms(1000);
    node.install(setup("m@1.0.0"));
    assert_refused(&node.ask(request.clone()), RefusalKind::OldSequence, "before the module was installed anew");
    // What its user says from here on counts from wherever it begins.
    assert_eq!(told(&mut node, "m", "limit", 1), Outcome::Told);
    node.sleep(2 * node.policy.clock_skew_max);
    assert_refused(&node.ask(request), RefusalKind::StaleRequest, "at most 300 s apart");
}

/// It was not taken before the module was removed, so only its time tells.
#[test]
fn a_message_from_before_a_remove_is_refused_after_it() {
    let mut node = installed();
    let held_back = node.request("jane", tell("m", "limit", 5));
    node.sleep_ms(1000);
    let remove =
        node.request("jane", Body::Remove(Remove { module: name("m"), force: false, all: false, epoch: None }));
    node.send(remove);
    node.install(setup("m@1.0.0"));
    assert_refused(&node.ask(held_back), RefusalKind::Replayed, "made at");
}

#[test]
fn modules_of_others_and_what_is_not_there_or_does_not_run_are_not_told() {
    let mut node = Node::new();
    node.policy.users.insert(user("john"), user_policy("john", "10.3.0.0/16"));
    node.apply_policy();
    node.commands();
    let report = node.ask(node.request("jane", tell("m", "a", 1)));
    assert_refused(&report, RefusalKind::NotInstalled, "no module example.org/m of user `jane`");
    node.install(setup("m@1.0.0"));
    let report = node.ask(node.request("john", tell("m", "a", 1)));
    assert_refused(&report, RefusalKind::NotInstalled, "no module example.org/m of user `john`");
    let mut forged = node.request("john", tell("m", "a", 1));
    forged.user = Some(user("jane"));
    assert_refused(&node.ask(forged), RefusalKind::BadSignature, "");
    let mut unsigned = node.request("jane", tell("m", "a", 1));
    unsigned.signature = None;
    assert_refused(&node.ask(unsigned), RefusalKind::Unsigned, "");
    let mut late = node.request("jane", tell("m", "a", 1));
    late.created = node.now.wall + Duration::from_secs(301);
    assert_refused(&node.ask(late), RefusalKind::StaleRequest, "");
    node.died(Some(0));
    let report = node.ask(node.request("jane", tell("m", "a", 1)));
    assert_refused(&report, RefusalKind::NotRunning, "is installed and does not run");
}

#[test]
fn a_dry_run_tells_nothing() {
    let mut node = installed();
    let mut request = node.request("jane", tell("m", "a", 1));
    request.dry_run = true;
    assert_eq!(node.ask(request).outcome, Outcome::WouldDo { action: "tell".to_owned() });
    assert_eq!(told(&mut node, "m", "a", 1), Outcome::Told);
}

#[test]
fn messages_within_a_second_are_bounded_for_each_module() {
    let mut node = installed();
    node.install(setup("n@1.0.0"));
    for seq in 0..TELLS_PER_SECOND_MAX as u64 {
        assert_eq!(told(&mut node, "m", "a", seq), Outcome::Told);
        node.sleep_ms(10);
    }
    let report = node.ask(node.request("jane", tell("m", "a", 100)));
    assert_refused(&report, RefusalKind::RateLimited, "20 messages to the module within a second");
    assert_eq!(told(&mut node, "n", "a", 1), Outcome::Told, "the other module has a bound of its own");
    node.sleep_ms(799);
    assert!(!told(&mut node, "m", "a", 100).is_ok());
    node.sleep_ms(1);
    assert_eq!(told(&mut node, "m", "a", 100), Outcome::Told);
    assert!(!told(&mut node, "m", "a", 101).is_ok());
}

#[test]
fn topics_are_bounded_also_those_under_way() {
    let mut node = installed();
    for n in 0..CONTROL_TOPICS_MAX as u64 - 1 {
        assert_eq!(told(&mut node, "m", &format!("t{n}"), n), Outcome::Told);
        node.sleep_ms(100);
    }
    node.tell("m", "last", 100);
    let report = node.ask(node.request("jane", tell("m", "one-more", 101)));
    assert_refused(&report, RefusalKind::QuotaExceeded, "16 topics");
    assert_eq!(told(&mut node, "m", "t3", 102), Outcome::Told);
}

#[test]
fn a_worker_that_does_not_answer_costs_its_requester_a_time_out() {
    let mut node = installed();
    let id = node.tell("m", "a", 1);
    node.commands();
    node.sleep(TELL_ANSWER_TIME_MAX);
    commands!(node, format!("answer {id} timeout"));
    // It was taken after all, so it is not taken again.
    node.package(1, EffectOutcome::Done);
    commands!(node, "keep jane m a 1");
    assert_refused(&node.ask(node.request("jane", tell("m", "a", 1))), RefusalKind::OldSequence, "");
}

#[test]
fn the_last_message_of_each_topic_is_given_to_each_new_instance_in_order() {
    let mut node = installed();
    for (topic, seq) in [("a", 1), ("b", 2), ("c", 3), ("a", 4)] {
        assert_eq!(told(&mut node, "m", topic, seq), Outcome::Told);
    }
    node.trapped(0);
    node.sleep_ms(0);
    commands!(node, "load jane 0 m@1.0.0 2 3 4");
    node.loaded(0);
    node.commands();
    // Another version gets them, too, and what comes while it is loaded as soon as it is in force.
    node.setup(setup("m@1.0.1"));
    node.commands();
    let fetch = 5;
    node.fetched(fetch, manifest(&setup("m@1.0.1")));
    commands!(node, "load jane 1 m@1.0.1 2 3 4");
    assert_eq!(told(&mut node, "m", "c", 7), Outcome::Told);
    node.tell("m", "d", 8);
    commands!(node, "tell 7 jane 0 d 8");
    node.loaded(1);
    let lines = node.commands();
    assert!(lines.contains(&"tell 8 jane 1 c 7".to_owned()), "{lines:?}");
    // The one that was on its way to the version before goes to this one, too.
    node.package(7, EffectOutcome::Done);
    let lines = node.commands();
    assert_eq!(lines, ["keep jane m d 8", "answer 7 told", "tell 9 jane 1 d 8"]);
}

#[test]
fn what_did_not_reach_the_version_before_is_handed_to_this_one() {
    let mut node = installed();
    let id = node.tell("m", "a", 1);
    node.setup(setup("m@1.0.1"));
    node.commands();
    node.fetched(2, manifest(&setup("m@1.0.1")));
    node.loaded(1);
    node.commands();
    node.package(1, EffectOutcome::Refused(refusal(RefusalKind::NotRunning)));
    commands!(node, "tell 3 jane 1 a 1");
    node.package(3, EffectOutcome::Refused(refusal(RefusalKind::NotRunning)));
    commands!(node, format!("answer {id} not-running"));
}

#[test]
fn messages_outlive_the_node_and_go_with_the_module() {
    let message = |topic: &str, seq: u64| {
        let Body::Tell(tell) = tell("m", topic, seq) else { unreachable!() };
        StoredMessage { user: user("jane"), module: name("m"), message: tell.message }
    };
    let mut node = Node::new();
    let messages = vec![message("a", 9), message("b", 3)];
    let stored = Stored { installed: vec![record(setup("m@1.0.0"))], messages, ..Stored::default() };
    node.controller.restore(START, stored);
    node.commands();
    node.fetched(0, manifest(&setup("m@1.0.0")));
    node.ready();
    commands!(node, "store jane m@1.0.0", "start jane", "load jane 0 m@1.0.0 3 9");
    node.loaded(0);
    node.commands();
    assert_refused(&node.ask(node.request("jane", tell("m", "a", 9))), RefusalKind::OldSequence, "not above 9");
    node.remove("m");
    assert!(node.commands().contains(&"forget jane m".to_owned()));
    node.install(setup("m@1.0.0"));
    let mut loads = node.jobs.iter().rev().filter_map(|job| {
        let Job::Workers(WorkerJob::Load(load)) = job else { return None };
        Some(load.messages.len())
    });
    assert_eq!(loads.next(), Some(0), "they went with the module");
    assert!(!node.jobs.iter().any(|job| matches!(job, Job::Store(StoreJob::PutMessage { .. }))));
}

#[test]
fn modules_that_are_gone_are_remembered_up_to_a_bound() {
    let mut before = crate::control::told::ToldBefore::default();
    for n in 0..=TOLD_REMEMBERED_MAX {
        before.remember_for_tests(&(user("jane"), name(&format!("m{n}"))), n as u64, START.wall);
    }
    assert_eq!(before.len(), TOLD_REMEMBERED_MAX);
}

#[test]
fn what_a_module_says_goes_to_its_requester_as_often_as_it_may() {
    let mut node = installed();
    let say = |node: &mut Node, slot: u8| {
        let message = ModuleMessage { topic: "full".parse().unwrap(), body: b"x".to_vec() };
        node.news(&jane(Flavour::Wasm), WorkerNews::Notified { slot: ModuleSlot(slot), message });
        node.commands();
        node.told.len()
    };
    let burst = MODULE_NOTIFIES_BURST_MAX as usize;
    let sent: Vec<usize> = (0..burst + 2).map(|_| say(&mut node, 0)).collect();
    assert_eq!(sent[..burst], (1..=burst).collect::<Vec<_>>());
    assert_eq!(sent[burst..], [burst, burst]);
    assert_eq!(node.controller.counters().module_notifies_dropped, 2);
    node.sleep(MODULE_NOTIFY_INTERVAL);
    assert_eq!([say(&mut node, 0), say(&mut node, 0)], [burst + 1, burst + 1]);
    node.sleep(100 * MODULE_NOTIFY_INTERVAL);
    let after: Vec<usize> = (0..burst + 1).map(|_| say(&mut node, 0)).collect();
    assert_eq!(after.last(), Some(&(2 * burst + 1)));
    assert_eq!(node.told.last().unwrap(), "jane m module-message: ");
    let stray = node.controller.counters().stray_events;
    say(&mut node, 7);
    assert_eq!(node.controller.counters().stray_events, stray + 1, "nobody is in that place");
}

/// Returns a node with a running module of `jane`, `m@1.0.0` in place 0.
fn installed() -> Node {
    let mut node = Node::new();
    let mut setup = setup("m@1.0.0");
    setup.ttl = Duration::from_secs(3600);
    node.install(setup);
    node.commands();
    node
}

/// Tells a module something that its worker takes, if it is asked.
fn told(node: &mut Node, module: &str, topic: &str, seq: u64) -> Outcome {
    let request = node.request("jane", tell(module, topic, seq));
    node.take(request)
}
