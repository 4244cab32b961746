// SPDX-License-Identifier: Apache-2.0
//! What was used: read when somebody asks, and stored before the node stops.

use netserv_model::effect::StoreJob;
use netserv_model::usage::{Held, Meters, WorkerMeter};

use super::*;
use crate::limits::STOP_WAIT;

#[test]
fn whoever_asks_for_usage_waits_for_a_reading() {
    let mut script = Script::new(1);
    let first = script.handle(Input::Ask(CallId(1), What::Usage));
    let [(reading, Job::ReadMeters)] = effects(&first)[..] else { panic!("{first:?}") };
    assert_eq!(script.handle(Input::Ask(CallId(2), What::Usage)), [], "one reading at a time");
    let then = script.handle(Input::Done(reading, EffectOutcome::Metered(Box::new(meters(5)))));
    assert!(then.contains(&Output::Fresh(CallId(1))) && !then.contains(&Output::Fresh(CallId(2))), "{then:?}");
    assert_eq!(script.node.view().controller.usage().users[0].usage.cpu_ns, 5);
    let next = effects(&then).into_iter().find(|(_, job)| **job == Job::ReadMeters).unwrap().0;
    let refused = EffectOutcome::Refused(Refusal::new(RefusalKind::NodeFailed, "as the test says"));
    let last = script.handle(Input::Done(next, refused));
    assert!(last.contains(&Output::Fresh(CallId(2))), "as fresh as it gets: {last:?}");
}

#[test]
fn a_node_stops_when_what_was_used_is_stored() {
    let mut script = Script::new(1);
    let stop = script.handle(Input::Stop);
    let [(reading, Job::ReadMeters)] = effects(&stop)[..] else { panic!("{stop:?}") };
    let read = script.handle(Input::Done(reading, EffectOutcome::Metered(Box::new(meters(5)))));
    let [(put, Job::Store(StoreJob::PutUsage(change)))] = effects(&read)[..] else { panic!("{read:?}") };
    assert_eq!(change.put.values().map(|used| used.usage.cpu_ns).collect::<Vec<_>>(), [5]);
    assert!(!read.contains(&Output::Stopped));
    assert_eq!(script.handle(Input::Done(put, EffectOutcome::Done)), [Output::Stopped]);
    assert_eq!(script.handle(Input::Stop), [], "it is said once");
    assert_eq!(script.node.poll_timeout(), None);
}

/// What users' lanes have begun is waited for, and requests are refused.
#[test]
fn a_node_that_is_about_to_stop_begins_nothing_and_ends_what_it_began() {
    let mut script = Script::new(1);
    script.setup(0, "user0", None);
    let fetch = script.open.remove(0);
    script.carry_out(&fetch);
    let start = script.open.remove(0);
    assert!(matches!(start.job, Job::Workers(WorkerJob::Start { .. })));
    let stop = script.handle(Input::Stop);
    let reading = effects(&stop)[0].0;
    assert!(!script.handle(Input::Done(reading, EffectOutcome::Metered(Box::default()))).contains(&Output::Stopped));
    script.setup(1, "user0", None);
    assert!(script.outcome(1).is_some_and(|said| said.is_ok_and(|said| said.contains("about to stop"))));
    assert!(script.handle(Input::Done(start.id, EffectOutcome::Done)).contains(&Output::Stopped));
}

#[test]
fn a_node_stops_also_if_nothing_is_answered() {
    let mut script = Script::new(1);
    script.handle(Input::Stop);
    let (at, why) = script.node.poll_timeout().unwrap();
    assert_eq!((at.since(script.now.instant), why), (STOP_WAIT, "stop"));
    script.now = script.now + STOP_WAIT;
    assert_eq!(script.handle(Input::Timeout), [Output::Stopped]);
}

fn meters(cpu_ns: u64) -> Meters {
    let user: netserv_model::UserId = "user0".parse().unwrap();
    let worker = WorkerId::new(user.clone(), Flavour::Wasm);
    let workers = vec![WorkerMeter { worker, generation: EffectId(0), cpu_ns, ended: false }];
    Meters { workers, held: BTreeMap::from([(user, Held::default())]), ..Meters::default() }
}
