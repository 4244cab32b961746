// SPDX-License-Identifier: Apache-2.0
//! When meters are read, what comes of it, and the bounds of what is remembered.

use netserv_model::effect::{EffectId, Job, StoreJob, Stored};
use netserv_model::usage::{Meters, Usage, UsageKey, Used, WorkerMeter};
use netserv_model::{Flavour, UnixTime};

use super::script::{Node, START, commands, jane, setup, user};

#[test]
fn meters_are_read_soon_after_something_began_and_then_now_and_again() {
    let mut node = Node::new();
    node.install(setup("m@1.0.0"));
    assert_eq!(readings(&node), 0);
    node.meters = meters(5, false);
    node.sleep_ms(1000);
    commands!(node, "put-usage");
    assert_eq!((readings(&node), cpu(&node)), (1, 5));
    node.meters = meters(7, false);
    node.sleep_ms(9999);
    commands!(node,);
    node.sleep_ms(1);
    commands!(node, "put-usage");
    assert_eq!((readings(&node), cpu(&node)), (2, 7));
    node.sleep_ms(10_000);
    commands!(node,);
    assert_eq!((readings(&node), cpu(&node)), (3, 7), "what did not change is not stored");
}

#[test]
fn what_ended_is_read_and_then_nothing_more() {
    let mut node = Node::new();
    node.install(setup("m@1.0.0"));
    node.meters = meters(5, false);
    node.sleep_ms(1000);
    node.commands();
    node.remove("m");
    node.meters = meters(9, true);
    commands!(node, "unfilter 0", "unload jane 0", "forget jane m", "stop jane", "answer 1 removed");
    node.sleep_ms(1000);
    commands!(node, "put-usage");
    assert_eq!((readings(&node), cpu(&node)), (2, 9));
    node.sleep_ms(100_000);
    assert_eq!((readings(&node), node.controller.poll_timeout()), (2, None));
}

#[test]
fn a_restart_goes_on_where_the_sums_were() {
    let mut node = Node::new();
    let usage = Usage { cpu_ns: 100, ..Usage::default() };
    let used = Used { since: UnixTime::from_secs(1), until: UnixTime::from_secs(2), usage };
    let usage = vec![(UsageKey::of_user(&user("jane")), used)];
    node.controller.restore(START, Stored { usage, ..Stored::default() });
    assert_eq!(cpu(&node), 100);
    node.meters = meters(5, true);
    node.sleep_ms(1000);
    commands!(node, "put-usage");
    let [used] = &node.controller.usage().users[..] else { panic!("one user") };
    assert_eq!((used.usage.cpu_ns, used.since), (105, UnixTime::from_secs(1)));
    assert_eq!(used.until, node.now.wall);
}

#[test]
fn a_stop_has_what_was_used_stored_and_refuses_requests() {
    let mut node = Node::new();
    node.install(setup("m@1.0.0"));
    node.meters = meters(5, false);
    node.controller.handle_stop(node.now);
    commands!(node, "put-usage", "settled");
    assert_eq!(cpu(&node), 5);
    node.setup(setup("n@1.0.0"));
    commands!(node, "answer 1 node-failed");
}

fn readings(node: &Node) -> usize {
    let stored = |job: &&Job| matches!(job, Job::Store(StoreJob::PutUsage(_)));
    assert!(node.jobs.iter().filter(stored).count() <= node.jobs.iter().filter(|job| **job == Job::ReadMeters).count());
    node.jobs.iter().filter(|job| **job == Job::ReadMeters).count()
}

fn cpu(node: &Node) -> u64 {
    node.controller.usage().users[0].usage.cpu_ns
}

fn meters(cpu_ns: u64, ended: bool) -> Meters {
    let worker = WorkerMeter { worker: jane(Flavour::Wasm), generation: EffectId(0), cpu_ns, ended };
    Meters { workers: vec![worker], ..Meters::default() }
}
