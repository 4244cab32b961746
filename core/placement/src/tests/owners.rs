// SPDX-License-Identifier: Apache-2.0
//! Epochs of deployments.

use std::collections::BTreeMap;

use super::{Agent, RULE, way};
use crate::rule::tests::rule;
use crate::{Answer, Rule, Wish};

/// Goal: of the deployments of a rule, each later one has a later epoch, over a restart and if what was kept is lost, and keeps it while it is
/// refreshed. Method: one deployment at a time, as a rule with floating addresses has.
#[test]
fn each_deployment_is_a_later_owner() {
    let one = || vec![Rule { deployments_max: 1, ..rule() }];
    let epoch = |wish: &Wish| match wish {
        Wish::Setup { epoch, edge, .. } => (edge.to_string(), *epoch),
        Wish::Probe { .. } | Wish::Look { .. } | Wish::Move { .. } | Wish::Remove { .. } => panic!("{wish:?}"),
    };
    let mut agent = Agent::new(one());
    agent.placement.begin_epochs(1000);
    assert_eq!(epoch(&agent.deploy("192.0.2.1", "a")), ("a".to_owned(), 1000));
    agent.sleep(30);
    let refresh = agent.wish();
    assert_eq!(epoch(&refresh), ("a".to_owned(), 1000));
    agent.answer(&refresh, Answer::Failed);
    // A second one does not come beside it.
    agent.see("198.51.100.1", 3);
    let probe = agent.wish();
    agent.answer(&probe, way(&["b"]));
    assert!(agent.wishes().is_empty() && agent.placement.counters().full == 1);
    agent.placement.stop(RULE);
    let gone = agent.wish();
    agent.answer(&gone, Answer::Removed);
    agent.placement.gate(RULE, true);
    agent.sleep(10);
    assert_eq!(epoch(&agent.deploy("198.51.100.1", "b")), ("b".to_owned(), 1001));
    // The clock may be set back, or what was kept be lost.
    for (kept, begin, next) in [(agent.kept.clone(), 5, 1002), (BTreeMap::new(), 2000, 2000)] {
        let mut again = Agent { kept: kept.clone(), now: agent.now, ..Agent::new(one()) };
        again.placement.begin_epochs(begin);
        again.placement.restore(again.now, kept);
        for setup in again.wishes() {
            assert_eq!(epoch(&setup), ("b".to_owned(), 1001));
            again.answer(&setup, Answer::Failed);
        }
        again.placement.stop(RULE);
        for remove in again.wishes() {
            again.answer(&remove, Answer::Removed);
        }
        again.placement.gate(RULE, true);
        assert_eq!(epoch(&again.deploy("192.0.2.1", "a")).1, next);
    }
}
