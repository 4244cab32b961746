// SPDX-License-Identifier: Apache-2.0
//! Other rules while deployments are there.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Agent, RULE, done, numbered, way};
use crate::rule::tests::rule;
use crate::{Answer, DeploymentId, Rule, RuleId, Wish};

/// Goal: deployments of a rule that stays are not touched, those of one that says something else are set up anew in their sessions, and
/// those of one that is gone are removed. Method: three rules with a deployment each.
#[test]
fn after_a_reload_only_what_changed_is_touched() {
    let other = Rule { module: "example.org/other".parse().unwrap(), ..rule() };
    let mut agent = Agent::new(vec![rule(), rule(), other]);
    let clients = ["192.0.2.1", "198.51.100.1", "203.0.113.1"];
    for (rule, client) in (0..).map(RuleId).zip(clients) {
        agent.placement.observe(agent.now, rule, client.parse().unwrap(), 3);
        for answer in [way(&["n1", "edge"]), done("edge")] {
            let wish = agent.wish();
            agent.answer(&wish, answer);
        }
    }
    agent.sleep(10);
    let before = agent.kept.clone();
    agent.placement.reload(agent.now, numbered(vec![rule(), rule()]), &BTreeSet::from([RuleId(1)]));
    let wishes = agent.wishes();
    let [Wish::Setup { rule: RuleId(1), session: Some(_), .. }, Wish::Remove { rule: RuleId(2), .. }] = &wishes[..]
    else {
        panic!("{wishes:?}")
    };
    assert_eq!(agent.kept[&DeploymentId(1)], before[&DeploymentId(1)], "the first rule's is as it was");
    assert_eq!(agent.nearest("192.0.2.1"), Some("edge".to_owned()));
    agent.answer(&wishes[0], done("edge"));
    agent.answer(&wishes[1], Answer::Removed);
    assert!(agent.wishes().is_empty());
    let nearest = |rule, client: &str| agent.placement.nearest(RuleId(rule), client.parse().unwrap()).is_some();
    assert!(nearest(1, clients[1]) && !nearest(2, clients[2]));
    assert_eq!(agent.placement.deployments_of(RuleId(2)).count(), 0);
    agent.placement.observe(agent.now, RuleId(2), clients[2].parse().unwrap(), 100);
    assert!(agent.wishes().is_empty());
}

/// Goal: a SETUP that was under way with what the rule said before is followed by one with what it says. Method: reload between a SETUP
/// and its answer, at first, at a refresh, and when it fails.
#[test]
fn a_reload_amid_a_setup_is_followed_by_another_one() {
    let renewed = BTreeSet::from([RULE]);
    let mut agent = Agent::new(vec![rule()]);
    agent.see("192.0.2.1", 3);
    let probe = agent.wish();
    agent.answer(&probe, way(&["edge"]));
    let first = agent.wish();
    for _ in 0..3 {
        agent.placement.reload(agent.now, numbered(vec![rule()]), &renewed);
    }
    assert!(agent.wishes().is_empty(), "one request at a time");
    agent.answer(&first, done("edge"));
    let second = agent.wish();
    assert!(matches!(second, Wish::Setup { session: Some(_), .. }), "{second:?}");
    agent.placement.reload(agent.now, numbered(vec![rule()]), &renewed);
    agent.answer(&second, Answer::Failed);
    assert!(agent.wishes().is_empty(), "it is tried again as every refresh that fails");
    agent.sleep(5);
    let third = agent.wish();
    agent.placement.reload(agent.now, Vec::new(), &BTreeSet::new());
    assert!(agent.wishes().is_empty(), "a REMOVE does not overtake it");
    agent.answer(&third, done("edge"));
    let gone = agent.wish();
    assert!(matches!(gone, Wish::Remove { .. }), "{gone:?}");
    agent.answer(&gone, Answer::Removed);
    assert!(agent.wishes().is_empty() && agent.kept.is_empty() && agent.placement.regions() == 0);
}

#[test]
fn bounds_of_a_reloaded_rule_hold_for_what_is_deployed() {
    let mut agent = Agent::new(vec![rule()]);
    agent.deploy("192.0.2.1", "edge");
    agent.sleep(20);
    // Shorter regions: its client is counted anew, and finds the deployment.
    agent.placement.reload(agent.now, numbered(vec![Rule { region_v4_bits: 16, ..rule() }]), &BTreeSet::new());
    assert!(agent.placement.regions() == 0 && agent.nearest("192.0.2.1").is_none());
    agent.see("192.0.2.1", 3);
    let probe = agent.wish();
    agent.answer(&probe, way(&["edge"]));
    assert!(agent.wishes().is_empty());
    assert_eq!(agent.nearest("192.0.9.9"), Some("edge".to_owned()));
    // A shorter idle time, which is over.
    agent.sleep(8);
    let idle = Rule { region_v4_bits: 16, idle: Duration::from_secs(5), ..rule() };
    agent.placement.reload(agent.now, numbered(vec![idle]), &BTreeSet::new());
    agent.sleep(0);
    let gone = agent.wish();
    assert!(matches!(gone, Wish::Remove { .. }), "{gone:?}");
}

/// Goal: a rule that may have fewer from here on loses those whose clients were not seen for the longest time, so that an address that it
/// leads to a deployment has one owner.
#[test]
fn a_rule_that_may_have_fewer_loses_those_that_were_seen_first() {
    let mut agent = Agent::new(vec![rule()]);
    for (number, edge) in ["edge1", "edge2", "edge3"].into_iter().enumerate() {
        agent.sleep(1);
        agent.deploy(&format!("192.0.{number}.1"), edge);
    }
    let one = Rule { deployments_max: 1, ..rule() };
    agent.placement.reload(agent.now, numbered(vec![one]), &BTreeSet::from([RULE]));
    let wishes = agent.wishes();
    let removed = wishes.iter().filter(|wish| matches!(wish, Wish::Remove { .. })).count();
    assert!(removed == 2 && wishes.len() == 3, "{wishes:?}");
    assert_eq!(agent.nearest("192.0.2.1"), Some("edge3".to_owned()));
    assert_eq!(agent.nearest("192.0.0.1"), None);
}

/// Goal: what a rule that is gone has deployed is removed before another one sets up the same module there, from which it would be taken.
#[test]
fn a_renamed_rule_waits_until_the_old_one_is_gone() {
    let mut agent = Agent::new(vec![rule()]);
    agent.deploy("192.0.2.1", "edge");
    let other = RuleId(7);
    agent.placement.reload(agent.now, vec![(other, rule())], &BTreeSet::new());
    let gone = agent.wish();
    let see = |agent: &mut Agent| {
        agent.placement.observe(agent.now, other, "192.0.2.1".parse().unwrap(), 3);
        let probe = agent.wish();
        agent.answer(&probe, way(&["edge"]));
        agent.wishes()
    };
    assert!(see(&mut agent).is_empty(), "the REMOVE is under way");
    agent.answer(&gone, Answer::Removed);
    agent.sleep(6);
    let wishes = see(&mut agent);
    assert!(matches!(&wishes[..], [Wish::Setup { rule, .. }] if *rule == other), "{wishes:?}");
}

/// Goal: a last node that does not take the module is the last node all the same: who is behind it shares what is before it.
#[test]
fn a_last_node_that_refuses_is_no_reason_for_more_deployments() {
    let mut agent = Agent::new(vec![rule()]);
    agent.see("192.0.2.1", 3);
    let probe = agent.wish();
    agent.answer(&probe, way(&["n1", "edge"]));
    let setup = agent.wish();
    let Answer::Done { session, mut nodes, edge, address, lease } = done("edge") else { unreachable!("as it says") };
    nodes.pop();
    agent.answer(&setup, Answer::Done { session, nodes, edge, address, lease });
    assert_eq!(agent.nearest("192.0.2.1"), Some("n1".to_owned()));
    agent.see("198.51.100.1", 3);
    let probe = agent.wish();
    agent.answer(&probe, way(&["n1", "edge"]));
    assert!(agent.wishes().is_empty(), "it shares the first one's");
    assert_eq!(agent.nearest("198.51.100.1"), Some("n1".to_owned()));
}
