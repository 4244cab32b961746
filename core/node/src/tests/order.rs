// SPDX-License-Identifier: Apache-2.0
//! What comes before what, and who waits for whom.

use netserv_model::api::PathSpec;
use netserv_model::effect::{FilterChange, StoreJob};

use super::*;

#[test]
fn a_request_goes_on_before_the_node_works_on_it() {
    let mut script = Script::new(1);
    let path = PathSpec { destination: [10, 9, 0, 9].into(), source: None };
    let outputs = script.setup(0, "user0", Some(path));
    let [(route, Job::Route(destination))] = effects(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!(*destination, path.destination);
    let outputs = script.handle(Input::Done(route, EffectOutcome::Routed(Some([10, 0, 0, 1].into()))));
    let sent = outputs.iter().position(|output| matches!(output, Output::Send(_))).unwrap();
    let fetch = outputs.iter().position(|output| matches!(output, Output::Do(_))).unwrap();
    assert!(sent < fetch, "{outputs:?}");
    assert_eq!(script.node.poll_output(), None);
}

#[test]
fn an_answer_comes_after_the_last_effect() {
    let mut script = Script::new(1);
    script.setup(0, "user0", None);
    let is_store = |effect: &Effect| matches!(effect.job, Job::Store(StoreJob::Put(_)));
    while !script.open.iter().any(is_store) {
        let effect = script.open.remove(0);
        script.carry_out(&effect);
    }
    assert_eq!(script.outcome(0), None, "it is not on the disk");
    script.work(None);
    assert_eq!(script.outcome(0), Some(Ok("installed for 60 s".to_owned())));
}

#[test]
fn a_slow_effect_of_one_user_delays_nobody_else() {
    let mut script = Script::new(3);
    for (call, user) in [(0, "user0"), (1, "user1"), (2, "user2")] {
        script.setup(call, user, None);
    }
    // A fetch is in no lane; what comes after it is.
    let fetches = std::mem::take(&mut script.open);
    fetches.iter().for_each(|fetch| script.carry_out(fetch));
    let slow: Vec<EffectId> = script.open.iter().map(|effect| effect.id).collect();
    script.work(Some("user0"));
    assert_eq!([0, 1, 2].map(|call| script.outcome(call).is_some()), [false, true, true]);
    assert_eq!(script.replies[&CallId(1)].as_ref().unwrap().nodes[0].took_us, 0);
    assert_eq!((script.open.len(), script.open[0].id), (1, slow[0]), "one effect of a user at a time");
    script.sleep(Duration::from_secs(5));
    script.work(None);
    assert_eq!(script.outcome(0), Some(Ok("installed for 60 s".to_owned())));
    assert_eq!(script.replies[&CallId(0)].as_ref().unwrap().nodes[0].took_us, 5_000_000);
}

#[test]
fn a_successor_of_a_module_takes_its_rules_in_one_step() {
    let mut script = Script::new(1);
    script.setup(0, "user0", None);
    script.work(None);
    let builder =
        RequestBuilder::setup(&MODULE.parse().unwrap(), "file:///m.nsm", Digest([2; 32]), Duration::from_secs(60));
    script.post(1, builder.user(&"user0".parse().unwrap()), None);
    let is_change = |effect: &Effect| matches!(effect.job, Job::Filters(_));
    while !script.open.iter().any(is_change) {
        let effect = script.open.remove(0);
        script.carry_out(&effect);
    }
    let change = script.open.iter().find(|effect| is_change(effect)).unwrap();
    let Job::Filters(FilterChange { add, remove }) = &change.job else { unreachable!() };
    assert_eq!((add.len(), remove.len()), (1, 1));
    script.work(None);
    assert_eq!(script.outcome(1), Some(Ok("replaced for 60 s".to_owned())));
}

#[test]
fn an_outcome_of_what_was_not_given_out_changes_nothing() {
    let mut script = Script::new(1);
    script.setup(0, "user0", None);
    let fetch = script.open.remove(0);
    script.carry_out(&fetch);
    let start = script.open.remove(0);
    assert!(matches!(start.job, Job::Workers(WorkerJob::Start { .. })));
    let refused = || EffectOutcome::Refused(Refusal::new(RefusalKind::NodeFailed, "a guess"));
    for guess in [fetch.id, EffectId(start.id.0 + 1), EffectId(u64::MAX), EffectId(1 << 63)] {
        let outputs = script.handle(Input::Done(guess, refused()));
        assert_eq!(outputs, [], "{guess:?}");
    }
    assert_eq!(script.node.counters().stray_outcomes, 4);
    script.carry_out(&start);
    script.work(None);
    assert_eq!(script.outcome(0), Some(Ok("installed for 60 s".to_owned())));
}

/// Goal: an effect that waits in its user's lane is not done by an outcome that comes too early.
#[test]
fn an_outcome_of_a_waiting_effect_changes_nothing() {
    let mut script = Script::new(1);
    script.setup(0, "user0", None);
    script.work(None);
    let remove = RequestBuilder::remove(&module_name()).user(&"user0".parse().unwrap());
    script.post(1, remove, None);
    let first = script.open.remove(0);
    let waiting = script.node.counters().effects_waiting;
    assert!(waiting > 0, "a REMOVE takes several effects");
    for guess in 1..=u64::try_from(waiting).unwrap() {
        assert_eq!(script.handle(Input::Done(EffectId(first.id.0 + guess), EffectOutcome::Done)), []);
    }
    assert_eq!(script.outcome(1), None);
    script.carry_out(&first);
    script.work(None);
    assert_eq!(script.outcome(1), Some(Ok("removed".to_owned())));
}
