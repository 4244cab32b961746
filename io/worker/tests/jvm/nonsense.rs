// SPDX-License-Identifier: Apache-2.0
//! A Java side that breaks the rules.
#![allow(clippy::wildcard_enum_match_arm, reason = "what was not waited for fails the test")]

use netserv_model::limits::CONTEXT_LINE_BYTES_MAX;
use netserv_model::{Refusal, RefusalKind};
use netserv_wire::container::frames::{FromWorker, ToWorker};
use netserv_wire::container::ring::Answer;

use crate::support::Worker;

#[test]
fn verdicts_that_mean_nothing_fail_their_packets() {
    let mut worker = Worker::start();
    for (slot, name) in [(0, "long"), (1, "verdict"), (2, "slot")] {
        worker.load(slot, name);
        let answer = worker.node.round(1 << slot, &[5; 64]);
        assert_eq!((answer.answer, answer.module), (Answer::Failed, Some(slot)), "{name}");
        assert!(worker.line().2.contains("1 verdicts that mean nothing"));
    }
}

#[test]
fn made_packets_that_are_none_are_counted() {
    let mut worker = Worker::start();
    worker.load(3, "inject-badly");
    let mut injected = Vec::new();
    worker.node.push(1 << 3, &[&[5; 64]]);
    worker.node.answers(1, &mut injected);
    assert_eq!(injected.iter().map(Vec::len).collect::<Vec<_>>(), [20]);
    let (slot, _, text) = worker.line();
    // All but one of the 64 places there are.
    assert_eq!((slot, text.starts_with("63 injected packets lost")), (None, true), "{text}");
}

#[test]
fn nothing_that_java_hands_over_ends_the_worker() {
    let mut worker = Worker::start();
    worker.load(1, "nonsense");
    worker.node.push(1 << 1, &[&[5; 64]]);
    assert_eq!(worker.node.answers(1, &mut Vec::new())[0].answer, Answer::Pass);
    worker.node.send(&ToWorker::Stats, None);
    let (mut engines, mut refusals, mut stats, mut lost, mut lines) = (Vec::new(), Vec::new(), Vec::new(), false, 0);
    loop {
        match worker.node.frame() {
            FromWorker::Ready { engine, .. } => engines.push(engine.len()),
            FromWorker::Failed { refusal, .. } => refusals.push(refusal),
            FromWorker::Stats { packets, counters, .. } => stats.push((packets, counters)),
            FromWorker::Log { text, .. } => {
                lines += 1;
                lost |= text.starts_with("20 reports of the Java host lost");
            }
            FromWorker::StatsDone { .. } => break,
            frame => panic!("of no slot, or nobody asked for it: {frame:?}"),
        }
    }
    assert_eq!(engines, [0, 256]);
    assert!(lost && lines >= 9, "{lines}");
    let kinds: Vec<_> = refusals.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [RefusalKind::NodeFailed; 3]);
    assert!(refusals[2].detail.contains("`no-such-kind`: a b\\u{1b}[31m\u{fffd}"), "{}", refusals[2].detail);
    let lengths = |refusal: &Refusal| refusal.context.iter().map(String::len).collect::<Vec<_>>();
    assert_eq!(refusals.iter().map(lengths).collect::<Vec<_>>(), [vec![], vec![CONTEXT_LINE_BYTES_MAX, 3], vec![]]);
    assert_eq!(stats[0].0, Default::default());
    assert_eq!((stats[1].0.seen, stats[1].0.injected), (1, u64::MAX));
    let names: Vec<_> = stats[1].1.iter().map(|(name, value)| (name.len(), *value)).collect();
    assert_eq!(names, [(4, u64::MAX), (64, 4)]);
    assert_eq!(stats[2].1.len(), 1);
}

#[test]
fn more_reports_than_the_node_reads_are_counted_and_lost() {
    let mut worker = Worker::start();
    worker.load(2, "reports");
    for _ in 0..3 {
        assert_eq!(worker.node.round(1 << 2, &[5; 64]).answer, Answer::Pass);
    }
    let (mut reports, mut lost) = (0, 0);
    while reports + lost < 30_000 {
        match worker.node.frame() {
            FromWorker::Failed { .. } => reports += 1,
            FromWorker::Log { text, .. } => {
                let (count, what) = text.split_once(' ').unwrap();
                assert!(what.starts_with("reports of the Java host lost"), "{text}");
                lost += count.parse::<usize>().unwrap();
            }
            frame => panic!("{frame:?}"),
        }
    }
    assert!(lost > 0, "the queue has no bound");
}
