// SPDX-License-Identifier: Apache-2.0
//! What is deployed, refreshed and removed, by what is seen and answered.

mod moving;
mod owners;
mod reload;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use netserv_model::{Instant, NodeId, SessionId};
use proptest::prelude::*;

use crate::limits::{BACKOFF_MIN, PROBES_MAX, REGIONS_MAX, REMOVES_MAX, RULES_MAX, SWEEP_REST};
use crate::rule::tests::rule;
use crate::{Answer, Change, Deployment, DeploymentId, Health, Node, Placement, Rule, RuleId, Served, Ticket, Wish};

const RULE: RuleId = RuleId(0);
/// What nodes grant, if they say nothing else.
const LEASE: Duration = Duration::from_secs(60);

/// A placement with its clock, and what it has had kept.
struct Agent {
    placement: Placement,
    now: Instant,
    kept: BTreeMap<DeploymentId, Deployment>,
}

impl Agent {
    fn new(rules: Vec<Rule>) -> Agent {
        Agent {
            placement: Placement::new(numbered(rules)),
            now: Instant::default() + Duration::from_secs(1000),
            kept: BTreeMap::new(),
        }
    }

    fn see(&mut self, client: &str, count: u32) {
        self.placement.observe(self.now, RULE, client.parse().unwrap(), count);
    }

    /// Lets time pass, and does what is due on the way.
    fn sleep(&mut self, seconds: u64) {
        let until = self.now + Duration::from_secs(seconds);
        while let Some(due) = self.placement.poll_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.placement.handle_timeout(self.now);
        }
        self.now = until;
    }

    fn wishes(&mut self) -> Vec<Wish> {
        while let Some(change) = self.placement.poll_change() {
            match change {
                Change::Put(id, deployment) => drop(self.kept.insert(id, *deployment)),
                Change::Forget(id) => assert!(self.kept.remove(&id).is_some(), "forgotten, but never kept"),
            }
        }
        std::iter::from_fn(|| self.placement.poll_wish()).collect()
    }

    fn wish(&mut self) -> Wish {
        let mut wishes = self.wishes();
        assert_eq!(wishes.len(), 1, "{wishes:?}");
        wishes.remove(0)
    }

    fn answer(&mut self, wish: &Wish, answer: Answer) {
        self.placement.answered(self.now, ticket(wish), answer);
    }

    /// Has a region served by a deployment at `edge`.
    fn deploy(&mut self, client: &str, edge: &str) -> Wish {
        self.see(client, 3);
        let probe = self.wish();
        assert!(matches!(probe, Wish::Probe { .. }), "{probe:?}");
        self.answer(&probe, way(&["n1", edge]));
        let setup = self.wish();
        assert!(matches!(setup, Wish::Setup { session: None, .. }), "{setup:?}");
        self.answer(&setup, done(edge));
        setup
    }

    fn nearest(&self, client: &str) -> Option<String> {
        self.placement.nearest(RULE, client.parse().unwrap()).map(|node| node.name.to_string())
    }
}

fn numbered(rules: Vec<Rule>) -> impl Iterator<Item = (RuleId, Rule)> {
    (0..).map(RuleId).zip(rules)
}

/// What a module answers itself, the provider's server does not see.
#[test]
fn a_module_stays_while_it_has_something_to_do_and_its_rule_is_in_force() {
    let mut agent = Agent::new(vec![rule()]);
    agent.deploy("192.0.2.1", "edge");
    let mut activity = 1;
    let mut lives = |agent: &mut Agent, grows: u64| {
        for _ in 0..1000 {
            agent.sleep(1);
            for wish in agent.wishes() {
                match wish {
                    Wish::Setup { .. } => {
                        activity += grows;
                        agent.answer(&wish, busy("edge", activity));
                    }
                    Wish::Remove { .. } => return false,
                    Wish::Probe { .. } | Wish::Look { .. } | Wish::Move { .. } => panic!("nobody is seen"),
                }
            }
        }
        true
    };
    assert!(lives(&mut agent, 1), "it is used");
    assert!(!lives(&mut agent, 0), "it is not used any more");

    let mut agent = Agent::new(vec![rule()]);
    agent.deploy("192.0.2.1", "edge");
    agent.placement.gate(RULE, false);
    assert!(!lives(&mut agent, 1), "its rule waits");
}

/// Goal: clients are not sent to a node at which all requests fail, and are tried there again after a while.
#[test]
fn a_node_whose_requests_all_fail_is_not_the_nearest() {
    let mut agent = Agent::new(vec![rule()]);
    agent.deploy("192.0.2.1", "edge");
    let mut refreshed = |requests, errors| {
        agent.see("192.0.2.1", 1);
        agent.sleep(30);
        let node = Node { served: Served { requests, errors }, ..Node::new("edge".parse().unwrap(), Vec::new()) };
        for wish in agent.wishes() {
            agent.answer(&wish, with("edge", vec![node.clone()]));
        }
        let shown = agent.placement.deployments().next().unwrap().1.nodes[0].is_failing;
        assert_eq!(agent.nearest("192.0.2.1").is_none(), shown);
        shown
    };
    assert!(!refreshed(0, 0));
    assert!(refreshed(2, 2), "all of them");
    assert!(!refreshed(2, 2), "nobody has tried since");
    assert!(!refreshed(4, 3), "one was served");
    assert!(refreshed(5, 4));
    assert!(refreshed(1, 1), "it was loaded anew");
}

/// Goal: when a route moves so that two deployments end at one node, one stays, and no REMOVE takes its module. Method: the refresh of the
/// first is answered by the node of the second.
#[test]
fn deployments_whose_ways_come_together_are_one() {
    let mut agent = Agent::new(vec![rule()]);
    agent.deploy("192.0.2.1", "a");
    agent.deploy("198.51.100.1", "b");
    agent.sleep(30);
    let refreshes = agent.wishes();
    assert_eq!(refreshes.len(), 2, "{refreshes:?}");
    agent.answer(&refreshes[0], done("b"));
    let epochs = |agent: &Agent| agent.placement.deployments().map(|(_, one)| one.epoch).collect::<Vec<_>>();
    assert_eq!(epochs(&agent), [1, 2], "a SETUP is under way");
    agent.answer(&refreshes[1], done("b"));
    assert_eq!(epochs(&agent), [2], "the later owner");
    assert!(agent.wishes().is_empty());
    assert_eq!(agent.kept.len(), 1);
    assert_eq!((agent.nearest("192.0.2.1"), agent.nearest("198.51.100.1")), (Some("b".into()), Some("b".into())));
    // The clients of the first keep it.
    for _ in 0..10 {
        agent.see("192.0.2.1", 1);
        agent.sleep(20);
        for wish in agent.wishes() {
            match wish {
                Wish::Setup { .. } => agent.answer(&wish, done("b")),
                Wish::Probe { .. } => agent.answer(&wish, way(&["b"])),
                Wish::Remove { .. } | Wish::Look { .. } | Wish::Move { .. } => panic!("it is used"),
            }
        }
    }
    assert_eq!(epochs(&agent), [2]);
}

#[test]
fn a_region_with_enough_clients_gets_the_module() {
    let mut agent = Agent::new(vec![rule()]);
    agent.see("192.0.2.1", 1);
    agent.see("192.0.2.2", 1);
    assert!(agent.wishes().is_empty() && agent.nearest("192.0.2.1").is_none());
    agent.see("192.0.2.3", 1);
    let probe = agent.wish();
    assert!(matches!(&probe, Wish::Probe { client, .. } if client.to_string() == "192.0.2.3"));
    agent.see("192.0.2.3", 100);
    assert!(agent.wishes().is_empty(), "it is asked for once");
    agent.answer(&probe, way(&["n1", "edge"]));
    let setup = agent.wish();
    assert_eq!(
        agent.kept.values().map(|kept| kept.health).collect::<Vec<_>>(),
        [Health::New],
        "kept before it is sent"
    );
    assert_eq!(agent.nearest("192.0.2.1"), None);
    agent.answer(&setup, done("edge"));
    agent.wishes();
    assert_eq!(agent.kept.values().next().unwrap().health, Health::Running);
    assert_eq!(agent.nearest("192.0.2.200"), Some("edge".to_owned()));
    assert_eq!(agent.nearest("192.0.3.1"), None);
}

#[test]
fn observations_that_are_far_apart_do_not_add_up() {
    let mut agent = Agent::new(vec![rule()]);
    agent.see("192.0.2.1", 2);
    agent.sleep(11);
    agent.see("192.0.2.1", 2);
    assert!(agent.wishes().is_empty());
    agent.see("192.0.2.1", 1);
    agent.wish();
}

/// Goal: however many clients there are behind one node, one SETUP goes out. Method: 200 regions at once, and a second deployment
/// for the one region that has another last node.
#[test]
fn regions_behind_one_node_share_one_deployment() {
    let mut agent = Agent::new(vec![rule()]);
    (0..200).for_each(|region| agent.see(&format!("10.1.{region}.1"), 3));
    let (mut setups, mut probes) = (Vec::new(), VecDeque::from(agent.wishes()));
    for asked in 0..200 {
        let probe = probes.pop_front().unwrap();
        agent.answer(&probe, way(&["n1", if asked == 199 { "other" } else { "edge" }]));
        let (more, others) = agent.wishes().into_iter().partition(|wish| matches!(wish, Wish::Probe { .. }));
        let (more, others): (Vec<_>, Vec<_>) = (more, others);
        probes.extend(more);
        setups.extend(others);
    }
    assert!(setups.len() == 2 && setups.iter().all(|wish| matches!(wish, Wish::Setup { .. })), "{setups:?}");
    agent.answer(&setups[0], done("edge"));
    agent.answer(&setups[1], done("other"));
    assert_eq!(agent.nearest("10.1.77.9"), Some("edge".to_owned()));
    assert_eq!(agent.nearest("10.1.199.9"), Some("other".to_owned()));
    // Some of them are named, and all are counted.
    let ids: Vec<DeploymentId> = agent.placement.deployments().map(|(id, _)| id).collect();
    let shared = |ids: &[DeploymentId]| agent.placement.regions_of(&ids.iter().copied().collect(), 2);
    let (both, second) = (shared(&ids), shared(&ids[1..]));
    let told = |net: &str| vec![net.parse().unwrap()];
    assert_eq!(both[&ids[0]], ([told("10.1.0.0/24"), told("10.1.1.0/24")].concat(), 199));
    assert_eq!((&both[&ids[1]], both.len(), second.len()), (&(told("10.1.199.0/24"), 1), 2, 1));
}

#[test]
fn a_lease_is_renewed_while_clients_are_seen_and_ends_with_them() {
    let mut agent = Agent::new(vec![rule()]);
    agent.deploy("192.0.2.1", "edge");
    for _ in 0..5 {
        agent.sleep(20);
        agent.see("192.0.2.9", 1);
        agent.sleep(10);
        let refresh = agent.wish();
        assert!(matches!(&refresh, Wish::Setup { session: Some(id), .. } if *id == SessionId([7; 16])), "{refresh:?}");
        agent.answer(&refresh, done("edge"));
    }
    let mut setups = 0;
    loop {
        agent.sleep(10);
        match agent.wishes().as_slice() {
            [] => {}
            [setup @ Wish::Setup { .. }] => {
                setups += 1;
                agent.answer(&setup.clone(), done("edge"));
            }
            [remove @ Wish::Remove { .. }] => {
                assert_eq!(agent.kept.values().next().unwrap().health, Health::Leaving);
                agent.answer(&remove.clone(), Answer::Removed);
                break;
            }
            others => panic!("{others:?}"),
        }
    }
    assert!((2..=4).contains(&setups), "it stays for 120 s: {setups}");
    agent.wishes();
    assert!(agent.kept.is_empty() && agent.placement.deployments().count() == 0);
    agent.sleep(1000);
    assert_eq!((agent.placement.regions(), agent.placement.poll_timeout()), (0, None), "nothing is left");
}

/// Goal: when the clients behind one node are gone, those behind another one keep the module on the nodes that both ways have.
#[test]
fn nodes_that_others_share_keep_the_module() {
    let mut agent = Agent::new(vec![rule()]);
    agent.deploy("192.0.2.1", "edge");
    agent.deploy("198.51.100.1", "other");
    for _ in 0..30 {
        agent.sleep(10);
        agent.see("198.51.100.1", 1);
        for wish in agent.wishes() {
            assert!(matches!(wish, Wish::Setup { .. }), "n1 is on both ways: {wish:?}");
            let is_other =
                matches!(wish, Wish::Setup { client, .. } if client == "198.51.100.1".parse::<IpAddr>().unwrap());
            agent.answer(&wish, done(if is_other { "other" } else { "edge" }));
        }
    }
    assert_eq!((agent.kept.len(), agent.nearest("192.0.2.1")), (1, None));
    // Whoever comes again has it again.
    agent.deploy("192.0.2.1", "edge");
    agent.see("198.51.100.1", 1);
    agent.placement.stop(RULE);
    let gone = agent.wishes();
    assert!(gone.len() == 2 && gone.iter().all(|wish| matches!(wish, Wish::Remove { .. })), "{gone:?}");
    let mut alone = Agent::new(vec![rule()]);
    alone.deploy("192.0.2.1", "edge");
    let mut last = None;
    for _ in 0..30 {
        alone.sleep(10);
        for wish in alone.wishes() {
            let is_end = matches!(wish, Wish::Remove { .. });
            alone.answer(&wish, if is_end { Answer::Removed } else { done("edge") });
            last = Some(wish);
        }
    }
    assert!(matches!(last, Some(Wish::Remove { .. })), "{last:?}");
}

/// Goal: rules that deploy one module share it on a node, whichever has it there first; rules with others do not.
#[test]
fn rules_with_one_module_leave_it_to_each_other() {
    let other = Rule { module: "example.org/other".parse().unwrap(), ..rule() };
    for (second, removes) in [(rule(), false), (other, true)] {
        let mut agent = Agent::new(vec![rule(), second]);
        agent.deploy("192.0.2.1", "edge");
        agent.placement.observe(agent.now, RuleId(1), "192.0.2.1".parse().unwrap(), 3);
        let mut removed = false;
        for _ in 0..30 {
            for wish in agent.wishes() {
                let answer = match wish {
                    Wish::Probe { .. } => way(&["n1", "edge"]),
                    Wish::Remove { .. } => Answer::Removed,
                    Wish::Setup { .. } | Wish::Look { .. } | Wish::Move { .. } => done("edge"),
                };
                removed |= answer == Answer::Removed;
                agent.answer(&wish, answer);
            }
            agent.sleep(10);
            agent.placement.observe(agent.now, RuleId(1), "192.0.2.1".parse().unwrap(), 1);
        }
        assert_eq!((agent.kept.len(), removed), (1, removes));
        assert_eq!(agent.kept.values().next().map(|one| one.rule), Some(RuleId(1)));
    }
}

/// Answers what is asked until there is no more; returns all of it.
fn answer_all(agent: &mut Agent, remove: &Answer) -> Vec<Wish> {
    let (mut all, mut done_with) = (agent.wishes(), 0);
    while let Some(wish) = all.get(done_with).cloned() {
        let answer = match wish {
            Wish::Probe { .. } => way(&["n1", "edge"]),
            Wish::Remove { .. } => remove.clone(),
            Wish::Setup { .. } | Wish::Look { .. } | Wish::Move { .. } => done("edge"),
        };
        agent.answer(&wish, answer);
        all.extend(agent.wishes());
        done_with += 1;
    }
    all
}

/// Goal: a rule that is switched off, or gone, takes its module from nodes that another rule's deployment has no longer than until that is
/// asked for again.
#[test]
fn what_a_remove_takes_from_another_rule_is_asked_for_again() {
    let both = || {
        let mut agent = Agent::new(vec![rule(), rule()]);
        agent.deploy("192.0.2.1", "edge");
        agent.placement.observe(agent.now, RuleId(1), "192.0.2.1".parse().unwrap(), 3);
        answer_all(&mut agent, &Answer::Removed);
        assert_eq!(agent.kept.len(), 2);
        agent
    };
    let are = |wishes: &[Wish], setups: usize| {
        let is_setup = |wish: &&Wish| matches!(wish, Wish::Setup { rule: RuleId(1), .. });
        matches!(wishes[0], Wish::Remove { rule: RULE, .. })
            && wishes[1..].iter().filter(is_setup).count() == setups
            && wishes.len() == 1 + setups
    };
    for answer in [Answer::Removed, Answer::Failed] {
        let mut agent = both();
        agent.placement.stop(RULE);
        let asked = answer_all(&mut agent, &answer);
        assert!(are(&asked, 1), "{asked:?}");
        agent.sleep(1);
        let later = agent.wishes();
        assert!(later.is_empty() && agent.kept.len() == 1, "no REMOVE takes it again: {later:?}");

        let mut agent = both();
        agent.placement.reload(agent.now, [(RuleId(1), rule())], &BTreeSet::new());
        let asked = answer_all(&mut agent, &answer);
        assert!(are(&asked, 1), "{asked:?}");
        agent.sleep(1);
        assert!(agent.wishes().is_empty() && agent.kept.len() == 1);
    }
    // One that begins while the REMOVE is under way is asked for after it once more.
    let mut agent = Agent::new(vec![rule(), rule()]);
    agent.deploy("192.0.2.1", "edge");
    agent.placement.stop(RULE);
    let remove = agent.wish();
    agent.placement.observe(agent.now, RuleId(1), "192.0.2.1".parse().unwrap(), 3);
    let probe = agent.wish();
    agent.answer(&probe, way(&["n1", "edge"]));
    let setup = agent.wish();
    agent.answer(&remove, Answer::Removed);
    agent.answer(&setup, done("edge"));
    let again = agent.wish();
    assert!(matches!(again, Wish::Setup { rule: RuleId(1), .. }), "{again:?}");
}

/// Goal: a REMOVE that failed is sent again, though the module begins elsewhere, and not to nodes where it has begun anew.
#[test]
fn a_remove_is_sent_again_but_where_the_module_came_back() {
    let mut agent = Agent::new(vec![rule(), rule()]);
    agent.deploy("192.0.2.1", "edge");
    agent.placement.stop(RULE);
    let remove = agent.wish();
    agent.answer(&remove, Answer::Failed);
    agent.placement.observe(agent.now, RuleId(1), "203.0.113.1".parse().unwrap(), 3);
    let probe = agent.wish();
    agent.answer(&probe, way(&["far", "farther"]));
    assert!(matches!(agent.wish(), Wish::Setup { .. }));
    agent.sleep(1);
    let again = agent.wish();
    assert!(matches!(again, Wish::Remove { .. }), "{again:?}");

    let mut agent = Agent::new(vec![rule()]);
    agent.see("192.0.2.1", 3);
    let probe = agent.wish();
    agent.answer(&probe, way(&["n1", "edge"]));
    let setup = agent.wish();
    agent.placement.stop(RULE);
    agent.answer(&setup, done("edge"));
    let remove = agent.wish();
    assert!(matches!(remove, Wish::Remove { .. }), "{remove:?}");
    agent.answer(&remove, Answer::Failed);
    agent.placement.gate(RULE, true);
    agent.deploy("192.0.2.1", "edge");
    agent.sleep(1);
    let wishes = agent.wishes();
    assert!(wishes.is_empty() && agent.nearest("192.0.2.1").as_deref() == Some("edge"), "{wishes:?}");
}

#[test]
fn a_way_without_nodes_and_failures_are_left_alone_for_longer_each_time() {
    let mut agent = Agent::new(vec![rule()]);
    let mut waits = Vec::new();
    for answer in [way(&[]), Answer::Failed, way(&[])] {
        let begun = agent.now;
        let probe = loop {
            agent.see("192.0.2.1", 3);
            match agent.wishes().as_slice() {
                [] => agent.sleep(1),
                [probe] => break probe.clone(),
                others => panic!("{others:?}"),
            }
        };
        waits.push(agent.now.since(begun));
        agent.answer(&probe, answer);
    }
    assert_eq!(waits, [Duration::ZERO, BACKOFF_MIN, BACKOFF_MIN * 2]);
    assert_eq!((agent.placement.counters().no_node, agent.placement.counters().failures), (2, 1));
}

#[test]
fn a_refresh_that_fails_is_tried_again_until_the_lease_ends() {
    let mut agent = Agent::new(vec![rule()]);
    agent.deploy("192.0.2.1", "edge");
    agent.sleep(30);
    let refresh = agent.wish();
    agent.answer(&refresh, Answer::Failed);
    assert_eq!(agent.nearest("192.0.2.1"), Some("edge".to_owned()), "the lease goes on");
    agent.sleep(5);
    let again = agent.wish();
    agent.answer(&again, done("edge"));
    agent.sleep(30);
    let mut tries = 0;
    while agent.placement.deployments().count() > 0 {
        for wish in agent.wishes() {
            tries += 1;
            agent.answer(&wish, Answer::Failed);
        }
        agent.sleep(1);
    }
    assert!((2..=4).contains(&tries), "{tries}");
    assert_eq!(agent.nearest("192.0.2.1"), None);
    agent.wishes();
    assert!(agent.kept.is_empty());
}

#[test]
fn a_first_setup_that_fails_leaves_nothing_and_the_region_rests() {
    let mut agent = Agent::new(vec![rule()]);
    agent.see("192.0.2.1", 3);
    let probe = agent.wish();
    agent.answer(&probe, way(&["edge"]));
    let setup = agent.wish();
    agent.answer(
        &setup,
        Answer::Done { session: SessionId([7; 16]), nodes: Vec::new(), edge: None, address: None, lease: LEASE },
    );
    agent.see("192.0.2.1", 3);
    assert!(agent.wishes().is_empty() && agent.kept.is_empty());
}

#[test]
fn while_a_gate_is_shut_nobody_counts() {
    let mut agent = Agent::new(vec![rule()]);
    agent.placement.gate(RULE, false);
    agent.see("192.0.2.1", 100);
    assert!(agent.wishes().is_empty());
    agent.placement.gate(RULE, true);
    agent.deploy("192.0.2.1", "edge");
    agent.placement.gate(RULE, false);
    for _ in 0..11 {
        agent.sleep(10);
        agent.see("192.0.2.1", 1);
        for wish in agent.wishes() {
            assert!(matches!(wish, Wish::Setup { .. }), "the lease is renewed until it has been idle: {wish:?}");
            agent.answer(&wish, done("edge"));
        }
    }
    agent.sleep(20);
    let gone = agent.wish();
    assert!(matches!(gone, Wish::Remove { .. }), "{gone:?}");
    agent.answer(&gone, Answer::Removed);
    agent.see("192.0.2.1", 100);
    assert!(agent.wishes().is_empty() && agent.kept.is_empty());
    // A way that was asked for before leads nowhere.
    agent.placement.gate(RULE, true);
    agent.see("198.51.100.1", 3);
    let probe = agent.wish();
    agent.placement.gate(RULE, false);
    agent.answer(&probe, way(&["edge"]));
    assert!(agent.wishes().is_empty());
}

#[test]
fn a_rule_that_is_stopped_removes_all_and_what_is_under_way_as_soon_as_it_is_there() {
    let mut agent = Agent::new(vec![rule()]);
    agent.deploy("192.0.2.1", "edge");
    agent.see("198.51.100.1", 3);
    let probe = agent.wish();
    agent.answer(&probe, way(&["other"]));
    let setup = agent.wish();
    agent.placement.stop(RULE);
    let gone = agent.wish();
    assert!(matches!(gone, Wish::Remove { session: Some(_), .. }) && agent.nearest("192.0.2.1").is_none());
    assert_eq!(agent.kept.values().filter(|kept| kept.health == Health::Leaving).count(), 2, "also over a restart");
    agent.answer(&setup, done("other"));
    let late = agent.wish();
    assert!(matches!(late, Wish::Remove { session: Some(_), .. }), "{late:?}");
    agent.answer(&late, Answer::Removed);
    // What nodes do not answer is asked for again, as long as its lease may be in force.
    agent.answer(&gone, Answer::Failed);
    agent.placement.stop(RULE);
    for _ in 1..REMOVES_MAX {
        assert!(agent.wishes().is_empty(), "not at once");
        agent.sleep(1);
        let again = agent.wish();
        assert!(matches!(again, Wish::Remove { .. }), "{again:?}");
        agent.answer(&again, Answer::Failed);
    }
    agent.sleep(1);
    assert!(agent.wishes().is_empty() && agent.kept.is_empty(), "often enough");
    agent.placement.gate(RULE, true);
    agent.deploy("192.0.2.1", "edge");
}

#[test]
fn bounds_are_kept() {
    let mut agent = Agent::new(vec![Rule { deployments_max: 1, region_v4_bits: 32, ..rule() }]);
    agent.deploy("10.0.0.1", "edge");
    agent.see("10.9.0.1", 3);
    let probe = agent.wish();
    agent.answer(&probe, way(&["other"]));
    assert!(agent.wishes().is_empty() && agent.placement.counters().full == 1);

    let mut agent = Agent::new(vec![Rule { region_v4_bits: 32, ..rule() }]);
    let address = |number: usize| IpAddr::from((0x0a00_0000 + u32::try_from(number).unwrap()).to_be_bytes());
    (0..REGIONS_MAX + 5).for_each(|number| agent.placement.observe(agent.now, RULE, address(number), 3));
    assert_eq!((agent.placement.regions(), agent.placement.counters().uncounted), (REGIONS_MAX, 15));
    assert_eq!(agent.wishes().len(), PROBES_MAX);
    assert_eq!(Placement::new(numbered(vec![rule(); RULES_MAX + 1])).rules(), RULES_MAX);
    agent.placement.answered(agent.now, Ticket(u64::MAX), Answer::Removed);
    agent.placement.observe(agent.now, RuleId(9), address(0), 1);
    assert_eq!(agent.placement.counters().stray, 1);
}

/// Goal: who makes up clients in many regions delays others by one turn of each network (16 bits of IPv4, 40 of IPv6), and not of each
/// region. Method: 900 regions in nine networks, then two honest ones, each seen once; probes are answered one after the other.
#[test]
fn a_new_region_waits_for_one_turn_of_each_other_network() {
    let mut agent = Agent::new(vec![Rule { count: 1, ..rule() }]);
    for number in 0..900 {
        let (network, region) = (number % 9, number / 9);
        let client = if network == 8 { format!("2001:db8:{region:x}::1") } else { format!("10.{network}.{region}.1") };
        agent.see(&client, 1);
    }
    let (mut waiting, mut answered) = (VecDeque::from(agent.wishes()), 0);
    assert_eq!(waiting.len(), PROBES_MAX);
    let honest = ["198.51.100.7", "2001:db9::7"];
    honest.iter().for_each(|client| agent.see(client, 1));
    let mut left: BTreeSet<IpAddr> = honest.iter().map(|client| client.parse().unwrap()).collect();
    while !left.is_empty() {
        let probe = waiting.pop_front().unwrap();
        agent.answer(&probe, way(&[]));
        answered += 1;
        for wish in agent.wishes() {
            let Wish::Probe { client, .. } = &wish else { panic!("{wish:?}") };
            left.remove(client);
            waiting.push_back(wish);
        }
    }
    assert!(answered <= 9 + honest.len(), "{answered} were answered before");
}

/// Goal: where there are as many regions as there may be, those of a network with fewer are counted all the same.
#[test]
fn regions_of_the_network_with_the_most_give_way() {
    let mut agent = Agent::new(vec![Rule { region_v4_bits: 32, region_v6_bits: 128, ..rule() }]);
    (0..REGIONS_MAX).for_each(|number| agent.see(&format!("10.{}.{}.1", number % 4, number / 4), 1));
    for number in 0..REGIONS_MAX / 8 {
        agent.see(&format!("198.51.100.{}", number % 250), 1);
        agent.see(&format!("2001:db8::{number:x}"), 1);
    }
    assert_eq!((agent.placement.regions(), agent.placement.counters().uncounted), (REGIONS_MAX, 0));
    // A network with as many as the others takes nobody's.
    let known = agent.placement.regions();
    (0..REGIONS_MAX).for_each(|number| agent.see(&format!("10.0.0.{}", 2 + number % 250), 1));
    assert_eq!(agent.placement.regions(), known);
    assert!(agent.placement.counters().uncounted > 0);
    // Nothing is left of those that are forgotten.
    agent.sleep(130 + 2 * SWEEP_REST.as_secs());
    assert_eq!(agent.placement.regions(), 0);
}

/// Goal: what is known of clients is forgotten soon after nobody is seen any more, however many there were, and a few at a time.
#[test]
fn clients_are_forgotten_some_at_a_time() {
    let mut agent = Agent::new(vec![Rule { region_v4_bits: 32, ..rule() }]);
    let address = |number: u32| IpAddr::from((0x0a00_0000 + number).to_be_bytes());
    (0..1000).for_each(|number| agent.placement.observe(agent.now, RULE, address(number), 1));
    agent.sleep(119);
    assert_eq!(agent.placement.regions(), 1000);
    agent.placement.observe(agent.now, RULE, address(7), 1);
    agent.sleep(1 + 2 * SWEEP_REST.as_secs());
    assert_eq!(agent.placement.regions(), 1);
    agent.sleep(130);
    assert_eq!((agent.placement.regions(), agent.placement.poll_timeout()), (0, None));
    agent.see("192.0.2.1", 1);
    assert!(agent.placement.poll_timeout().is_some());
}

/// Goal: after a restart, in whatever moment, each deployment is known, none is made twice, and those of rules that are gone go.
#[test]
fn a_restarted_agent_goes_on_with_what_it_deployed() {
    let mut agent = Agent::new(vec![rule(), rule()]);
    agent.deploy("192.0.2.1", "edge");
    agent.see("198.51.100.1", 3);
    let probe = agent.wish();
    agent.answer(&probe, way(&["late"]));
    // Killed before this one is answered.
    agent.wish();
    let kept = agent.kept.clone();
    let mut again = Agent { kept: kept.clone(), ..Agent::new(vec![rule()]) };
    again.placement.restore(again.now, kept.clone());
    let setups = again.wishes();
    let deployments: BTreeSet<DeploymentId> = setups.iter().filter_map(deployment).collect();
    assert!(setups.len() == 2 && deployments == kept.keys().copied().collect(), "{setups:?}");
    for (wish, edge) in setups.iter().zip(["edge", "late"]) {
        again.answer(wish, done(edge));
    }
    // A region that comes back finds its deployment.
    again.see("192.0.2.1", 3);
    let probe = again.wish();
    again.answer(&probe, way(&["n1", "edge"]));
    assert!(again.wishes().is_empty());
    assert_eq!(again.nearest("192.0.2.1"), Some("edge".to_owned()));

    let mut without = Agent { kept: kept.clone(), ..Agent::new(Vec::new()) };
    without.placement.restore(without.now, kept);
    let removes = without.wishes();
    assert!(removes.len() == 2 && removes.iter().all(|wish| matches!(wish, Wish::Remove { .. })), "{removes:?}");
    removes.iter().for_each(|wish| without.answer(wish, Answer::Failed));
    without.wishes();
    assert!(without.kept.is_empty());
}

/// Goal: a REMOVE that is sent again takes nothing from a deployment that has come since.
#[test]
fn a_remove_that_failed_is_not_repeated_when_the_module_is_wanted_again() {
    let mut agent = Agent::new(vec![rule()]);
    agent.deploy("192.0.2.1", "edge");
    agent.placement.stop(RULE);
    let gone = agent.wish();
    agent.answer(&gone, Answer::Failed);
    agent.placement.gate(RULE, true);
    agent.deploy("192.0.2.1", "edge");
    agent.sleep(2);
    assert!(agent.wishes().is_empty());
    assert_eq!(agent.kept.len(), 1);
}

/// Goal: what was first being set up when its rule was stopped is asked to go as often as others.
#[test]
fn what_came_after_its_rule_was_stopped_goes_although_a_remove_fails() {
    for answer in [done("edge"), Answer::Failed] {
        let mut agent = Agent::new(vec![rule()]);
        agent.see("192.0.2.1", 3);
        let probe = agent.wish();
        agent.answer(&probe, way(&["edge"]));
        let setup = agent.wish();
        agent.placement.stop(RULE);
        agent.answer(&setup, answer);
        for _ in 0..REMOVES_MAX {
            let gone = agent.wish();
            assert!(matches!(gone, Wish::Remove { .. }), "{gone:?}");
            agent.answer(&gone, Answer::Failed);
            agent.sleep(1);
        }
        assert!(agent.wishes().is_empty() && agent.kept.is_empty());
    }
}

#[derive(Clone, Debug)]
enum Step {
    See { region: u8, count: u32 },
    Answer { which: usize, how: u8 },
    Sleep(u64),
    Gate(bool),
    Stop,
    Reload { bits: u8, is_renewed: bool },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u8..6, 1_u32..4).prop_map(|(region, count)| Step::See { region, count }),
        4 => (0_usize..8, 0_u8..8).prop_map(|(which, how)| Step::Answer { which, how }),
        2 => (0_u64..40).prop_map(Step::Sleep),
        1 => any::<bool>().prop_map(Step::Gate),
        1 => Just(Step::Stop),
        1 => (23_u8..26, any::<bool>()).prop_map(|(bits, is_renewed)| Step::Reload { bits, is_renewed }),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Whatever is seen and answered: one request at a time for each deployment, no two deployments behind one node, what is kept is
    /// what there is, and all of it goes when nobody is seen any more.
    #[test]
    fn deployments_are_few_and_end(steps in proptest::collection::vec(step(), 1..120)) {
        let mut agent = Agent::new(vec![rule()]);
        let mut open: Vec<Wish> = Vec::new();
        let take = |agent: &mut Agent, open: &mut Vec<Wish>| {
            open.extend(agent.wishes());
            assert_kept(agent, open);
            let staying = agent.placement.deployments().filter(|(_, one)| one.health != Health::Leaving);
            let edges: Vec<NodeId> = staying.map(|(_, one)| one.edge.clone()).collect();
            assert_eq!(edges.iter().collect::<BTreeSet<_>>().len(), edges.len(), "two deployments behind one node");
        };
        for step in steps {
            match step {
                Step::See { region, count } => agent.see(&format!("10.0.{region}.1"), count),
                Step::Answer { which, how } if !open.is_empty() => {
                    let wish = open.swap_remove(which % open.len());
                    reply(&mut agent, &wish, how);
                }
                Step::Answer { .. } => {}
                Step::Sleep(seconds) => agent.sleep(seconds),
                Step::Gate(open) => agent.placement.gate(RULE, open),
                Step::Stop => {
                    agent.placement.stop(RULE);
                    let stays = agent.placement.deployments().any(|(_, one)| one.health != Health::Leaving);
                    assert!(!stays, "something stays");
                }
                // 25 bits stand for no rule.
                Step::Reload { bits, is_renewed } => {
                    let rules = (bits < 25).then(|| (RULE, Rule { region_v4_bits: bits, ..rule() }));
                    let renewed = is_renewed.then_some(RULE).into_iter().collect();
                    agent.placement.reload(agent.now, rules, &renewed);
                }
                Step::Restart => {
                    let (now, kept) = (agent.now, agent.kept.clone());
                    agent = Agent { now, kept: kept.clone(), ..Agent::new(vec![rule()]) };
                    agent.placement.restore(now, kept);
                    open.clear();
                }
            }
            take(&mut agent, &mut open);
        }
        run_out(&mut agent, &mut open, take, reply);
    }
}

/// Checks that there is one request at a time about each deployment, and that what is kept is what there is.
fn assert_kept(agent: &Agent, open: &[Wish]) {
    let about: Vec<DeploymentId> = open.iter().filter_map(deployment).collect();
    assert_eq!(about.iter().collect::<BTreeSet<_>>().len(), about.len(), "two requests about one deployment");
    assert!(agent.placement.deployments().map(|(id, _)| id).eq(agent.kept.keys().copied()), "what is kept");
}

/// Has nobody be seen any more and all be answered well, and checks that nothing is left.
fn run_out(
    agent: &mut Agent,
    open: &mut Vec<Wish>,
    take: impl Fn(&mut Agent, &mut Vec<Wish>),
    reply: impl Fn(&mut Agent, &Wish, u8),
) {
    for _ in 0..2000 {
        while let Some(wish) = open.pop() {
            reply(agent, &wish, 0);
            take(agent, open);
        }
        agent.sleep(10);
        take(agent, open);
    }
    assert_eq!((agent.placement.deployments().count(), agent.placement.regions()), (0, 0));
    assert_eq!(agent.placement.poll_timeout(), None);
}

/// Answers as a network does in which the third octet of a client says behind which node it is; `how` says what fails.
fn reply(agent: &mut Agent, wish: &Wish, how: u8) {
    let (Wish::Probe { client, .. }
    | Wish::Look { client, .. }
    | Wish::Setup { client, .. }
    | Wish::Move { client, .. }
    | Wish::Remove { client, .. }) = wish;
    let IpAddr::V4(client) = client else { panic!("no client is of IPv6") };
    let edge = format!("edge{}", client.octets()[2] % 3);
    let answer = match (wish, how) {
        (_, 7) => Answer::Failed,
        (Wish::Probe { .. }, 6) => way(&[]),
        (Wish::Probe { .. }, _) => way(&["n1", &edge]),
        (Wish::Setup { .. }, _) => done(&edge),
        (Wish::Remove { .. }, _) => Answer::Removed,
        (Wish::Look { .. } | Wish::Move { .. }, _) => panic!("no rule moves: {wish:?}"),
    };
    agent.answer(wish, answer);
}

fn way(nodes: &[&str]) -> Answer {
    Answer::Way(nodes.iter().map(|name| name.parse().unwrap()).collect())
}

fn done(edge: &str) -> Answer {
    busy(edge, 0)
}

fn busy(edge: &str, activity: u64) -> Answer {
    let node = |name: &str| Node { activity, ..Node::new(name.parse().unwrap(), Vec::new()) };
    with(edge, vec![node("n1"), node(edge)])
}

fn with(edge: &str, nodes: Vec<Node>) -> Answer {
    Answer::Done {
        session: SessionId([7; 16]),
        nodes,
        edge: Some(edge.parse().unwrap()),
        address: Some(at(edge)),
        lease: LEASE,
    }
}

/// Returns the address of a node.
fn at(node: &str) -> IpAddr {
    IpAddr::from([10, 9, 9, node.bytes().next_back().unwrap()])
}

fn ticket(wish: &Wish) -> Ticket {
    let (Wish::Probe { ticket, .. }
    | Wish::Look { ticket, .. }
    | Wish::Setup { ticket, .. }
    | Wish::Move { ticket, .. }
    | Wish::Remove { ticket, .. }) = wish;
    *ticket
}

fn deployment(wish: &Wish) -> Option<DeploymentId> {
    match wish {
        Wish::Probe { .. } | Wish::Look { .. } => None,
        Wish::Setup { deployment, .. } | Wish::Move { deployment, .. } | Wish::Remove { deployment, .. } => {
            Some(*deployment)
        }
    }
}
