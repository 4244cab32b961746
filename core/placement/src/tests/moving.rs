// SPDX-License-Identifier: Apache-2.0
//! Modules that go to another node by rule.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use netserv_model::{Instant, NodeId};
use proptest::prelude::*;

use super::{Agent, LEASE, RULE, assert_kept, at, done, run_out, way};
use crate::around::Around;
use crate::candidates::{Candidate, Place};
use crate::limits::{AVOID_MAX, CLIENTS_MAX, MOVES_KEPT, REFRESH_MIN};
use crate::rule::tests::{moves, rule};
use crate::{Answer, Deployment, DeploymentId, Ended, Health, MoveEnd, Moves, Rule, Why, Wish};

const CLIENT: &str = "192.0.2.1";
const ELSEWHERE: &str = "198.51.100.1";

#[test]
fn a_module_whose_node_is_drained_goes_to_the_best_other_one() {
    let mut agent = deployed("a");
    let moved = agent.look(CLIENT, &[free("c"), drained("a"), free("b")]).unwrap();
    assert_eq!((to(&moved), why(&moved)), ("c".to_owned(), Why::Drain));
    assert!(agent.kept.values().all(|kept| kept.moving.is_some()), "kept before it begins");
    // While it is not known which node has it, nothing renews a lease, and nobody is asked how they are.
    agent.sleep(100);
    assert!(agent.wishes().is_empty());
    agent.answer(&moved, Answer::Move(MoveEnd::Moved { epoch: 7 }));
    let setup = agent.wish();
    let Wish::Setup { edge, epoch: 7, address, session: None, .. } = &setup else { panic!("{setup:?}") };
    assert_eq!((edge.as_str(), *address), ("c", Some(free("c").address)));
    agent.answer(&setup, done("c"));
    assert_eq!(agent.nearest(CLIENT), Some("c".to_owned()));
    assert_eq!(agent.ends(), [("a".to_owned(), "c".to_owned(), Some(Ended::Moved))]);
    // It moves again from there, drained as that is, though it has just come.
    assert_eq!(to(&agent.look(CLIENT, &[drained("c"), free("b")]).unwrap()), "b");
}

/// Goal: a node that tells by itself that it is drained is looked at at once, and left although it is beside the way.
#[test]
fn what_a_drained_node_tells_is_heard() {
    let mut agent = deployed("a");
    assert!(agent.look(CLIENT, &[free("a"), free("b")]).is_none());
    let id = agent.id();
    let look = |agent: &mut Agent| {
        agent.placement.handle_timeout(agent.now);
        agent.wishes()
    };
    agent.placement.drained(agent.now, id, &name("b"));
    assert!(look(&mut agent).is_empty(), "it is not there");
    agent.placement.drained(agent.now, id, &name("a"));
    let [look] = &look(&mut agent)[..] else { panic!("not at once") };
    agent.answer(look, Answer::Around(vec![free("b")]));
    let moved = agent.wish();
    let Wish::Move { from_address, .. } = &moved else { panic!("{moved:?}") };
    assert_eq!((why(&moved), *from_address), (Why::Drain, Some(free("a").address)));
}

/// Goal: a module leaves a node that has too much to do for so many looks in a row, for one that has little, and then rests.
#[test]
fn a_load_has_to_last_and_a_module_rests_after_a_move() {
    let mut agent = deployed("a");
    let look = |agent: &mut Agent, a, b| agent.look(CLIENT, &[loaded("b", b), loaded("a", a)]);
    assert!(look(&mut agent, 901, 0).is_none() && look(&mut agent, 901, 0).is_none());
    assert!(look(&mut agent, 500, 0).is_none(), "it is over");
    assert!(look(&mut agent, 901, 0).is_none() && look(&mut agent, 901, 0).is_none());
    assert!(look(&mut agent, 900, 0).is_none(), "neither");
    assert!(look(&mut agent, 901, 501).is_none(), "the other one has too much to do, too");
    let moved = look(&mut agent, 901, 500).unwrap();
    assert_eq!((to(&moved), why(&moved)), ("b".to_owned(), Why::Load));
    agent.answer(&moved, Answer::Move(MoveEnd::Moved { epoch: 2 }));
    agent.answer_all("b");
    let begun = agent.now;
    while look(&mut agent, 0, 5000).is_none() {
        assert!(agent.now.since(begun) < Duration::from_secs(1000));
    }
    assert!(agent.now.since(begun) >= moves().rest, "{:?}", agent.now.since(begun));
    // A node that does not say how many processors it has is never over, and never idle.
    let mut agent = deployed("a");
    let untold = |node| Candidate { load_permille: None, ..free(node) };
    assert!((0..5).all(|_| agent.look(CLIENT, &[untold("b"), loaded("a", 5000)]).is_none()));
}

/// Goal: a module goes along when no way to the clients of late leads by its node, and not for one of them.
#[test]
fn a_module_goes_along_with_its_clients() {
    let mut agent = deployed("a");
    let ways: &[(&str, &[Candidate])] = &[(CLIENT, &[free("a"), free("x")]), (ELSEWHERE, &[free("b"), free("x")])];
    for _ in 0..20 {
        for (client, _) in ways {
            agent.see(client, 3);
        }
        assert!(agent.look_by(ways).is_none(), "one of two is there");
    }
    let moved = (0..10).find_map(|_| {
        agent.see(ELSEWHERE, 3);
        agent.look_by(ways)
    });
    let moved = moved.unwrap();
    let Wish::Move { from_address, moving, client, .. } = &moved else { panic!("{moved:?}") };
    assert_eq!((to(&moved), why(&moved), *from_address), ("b".to_owned(), Why::Clients, Some(free("a").address)));
    assert_eq!((moving.client.to_string(), client.to_string()), (ELSEWHERE.to_owned(), CLIENT.to_owned()));
    // A rule that does not say so leaves it where it is, and its lease is renewed there.
    let mut agent = deployed_by(Moves { follow: false, ..moves() }, "a");
    assert!(agent.look(CLIENT, &[free("a")]).is_none());
    let mut renewed = 0;
    for _ in 0..20 {
        agent.see(CLIENT, 3);
        agent.sleep(10);
        for wish in agent.wishes() {
            let is_look = matches!(wish, Wish::Look { .. });
            let is_renewal = matches!(wish, Wish::Setup { address: Some(_), session: None, .. });
            assert!(is_look || is_renewal, "{wish:?}");
            renewed += u32::from(is_renewal);
            agent.answer(&wish, if is_look { around(&[free("b")]) } else { done("a") });
        }
    }
    assert!(renewed >= 5, "{renewed}");
}

#[test]
fn a_node_that_did_not_take_it_is_left_alone_for_a_while() {
    let mut agent = deployed("a");
    let nodes = [free("b"), free("c"), drained("a")];
    let moved = agent.look(CLIENT, &nodes).unwrap();
    agent.answer(&moved, Answer::Move(MoveEnd::Stays));
    let setup = agent.wish();
    let Wish::Setup { edge, epoch: 1, .. } = &setup else { panic!("{setup:?}") };
    assert_eq!(edge.as_str(), "a", "where it may stand still");
    agent.answer(&setup, done("a"));
    let moved = agent.look(CLIENT, &nodes).unwrap();
    assert_eq!(to(&moved), "b", "5 s are over");
    agent.answer(&moved, Answer::Move(MoveEnd::Stays));
    agent.answer_all("a");
    let moved = agent.look(CLIENT, &nodes).unwrap();
    assert_eq!(to(&moved), "b", "10 s are over");
    agent.answer(&moved, Answer::Move(MoveEnd::Stays));
    agent.answer_all("a");
    let moved = agent.look(CLIENT, &nodes).unwrap();
    assert_eq!(to(&moved), "c", "20 s are not");
    // Nobody else can have it.
    let mut agent = deployed("a");
    let cannot = Candidate { score: None, against: vec!["full".to_owned()], ..free("b") };
    let beside = Candidate { place: Place::Beside { hops: 1 }, ..free("c") };
    assert!(agent.look(CLIENT, &[cannot, beside, drained("a")]).is_none());
}

/// Goal: a move of which nobody knows the end is given again until it is known, or no lease can be in force any more.
#[test]
fn a_move_without_an_end_is_given_again() {
    let mut agent = deployed("a");
    let first = agent.look(CLIENT, &[free("b"), drained("a")]).unwrap();
    agent.answer(&first, Answer::Move(MoveEnd::Unknown { renewed: true }));
    agent.sleep(5);
    let second = agent.wish();
    assert_eq!((to(&second), agent.ends().len()), (to(&first), 1));
    agent.answer(&second, Answer::Move(MoveEnd::Moved { epoch: 2 }));
    agent.answer_all("b");
    assert_eq!(agent.nearest(CLIENT), Some("b".to_owned()));

    let mut agent = deployed("a");
    let mut moved = agent.look(CLIENT, &[free("b"), drained("a")]).unwrap();
    let begun = agent.now;
    loop {
        agent.answer(&moved, Answer::Move(MoveEnd::Unknown { renewed: false }));
        agent.sleep(60);
        match &agent.wishes()[..] {
            [] => break,
            [again @ Wish::Move { .. }] => moved = again.clone(),
            others => panic!("{others:?}"),
        }
    }
    assert!(agent.now.since(begun) <= LEASE * 3, "{:?}", agent.now.since(begun));
    assert!(agent.kept.is_empty() && agent.ends()[0].2 == Some(Ended::Lost));
    // The next owner is later than whoever may have it.
    agent.sleep(10);
    let Wish::Setup { epoch, .. } = agent.deploy_to(CLIENT, "c") else { panic!("no SETUP") };
    assert_eq!(epoch, 3);
}

#[test]
fn a_module_that_no_node_has_is_brought_up_again_by_its_clients() {
    let mut agent = deployed("a");
    let moved = agent.look(CLIENT, &[free("b"), drained("a")]).unwrap();
    agent.answer(&moved, Answer::Move(MoveEnd::Gone));
    assert!(agent.wishes().is_empty() && agent.kept.is_empty());
    agent.sleep(6);
    agent.deploy_to(CLIENT, "b");
}

/// Goal: an agent that is killed while a module moves goes on with that, and sends nothing that would have two nodes have it.
#[test]
fn a_restarted_agent_goes_on_with_a_move() {
    let mut agent = deployed("a");
    let moved = agent.look(CLIENT, &[free("b"), drained("a")]).unwrap();
    let kept = agent.kept.clone();
    let mut again = restarted(&agent, moving_rule());
    assert!(matches!(&moved, Wish::Move { moving, .. } if !moving.tried));
    let [Wish::Move { moving, from, from_address, .. }] = &again.wishes()[..] else { panic!("no move") };
    assert!(moving.tried, "it may have come to anything");
    assert_eq!((moving.to.as_str(), from.as_str(), *from_address), ("b", "a", Some(free("a").address)));
    assert_eq!(again.ends(), [("a".to_owned(), "b".to_owned(), None)]);
    // A rule that is gone takes it from both.
    let mut without = Agent { kept: kept.clone(), now: agent.now, ..Agent::new(Vec::new()) };
    without.placement.restore(without.now, kept);
    let remove = without.wish();
    let Wish::Remove { addresses, .. } = &remove else { panic!("{remove:?}") };
    assert_eq!(addresses[..], [free("a").address, free("b").address]);
    // So does one that is stopped meanwhile, when it is known what came of the move.
    agent.placement.stop(RULE);
    assert!(agent.wishes().is_empty(), "it is under way");
    agent.answer(&moved, Answer::Move(MoveEnd::Moved { epoch: 2 }));
    let remove = agent.wish();
    assert!(matches!(&remove, Wish::Remove { addresses, .. } if addresses.len() == 2), "{remove:?}");
    agent.answer(&remove, Answer::Removed);
    assert!(agent.wishes().is_empty() && agent.kept.is_empty());
}

/// Goal: one deployment serves all clients of a rule that moves, wherever their ways lead.
#[test]
fn all_clients_share_what_moves() {
    let mut agent = deployed("a");
    agent.see(ELSEWHERE, 3);
    let probe = agent.wish();
    agent.answer(&probe, way(&["b"]));
    assert!(agent.wishes().is_empty());
    assert_eq!((agent.nearest(ELSEWHERE), agent.kept.len()), (Some("a".to_owned()), 1));
}

/// Goal: a lease is taken for what was granted, and renewed by that, yet not all the time.
#[test]
fn a_node_that_grants_less_is_asked_sooner() {
    let mut agent = Agent::new(vec![rule()]);
    agent.deploy(CLIENT, "edge");
    agent.sleep(30);
    let granted = |seconds| {
        let Answer::Done { session, nodes, edge, address, .. } = done("edge") else { panic!("not done") };
        Answer::Done { session, nodes, edge, address, lease: Duration::from_secs(seconds) }
    };
    for (seconds, renewed_after) in [(24, 12), (3, REFRESH_MIN.as_secs()), (600, 30)] {
        let setup = agent.wish();
        assert!(matches!(setup, Wish::Setup { .. }), "{setup:?}");
        agent.answer(&setup, granted(seconds));
        agent.sleep(renewed_after - 1);
        agent.see(CLIENT, 1);
        assert!(agent.wishes().is_empty(), "{seconds} s granted");
        agent.sleep(1);
    }
    // It is over with the lease, though that was asked for longer.
    let setup = agent.wish();
    agent.answer(&setup, granted(24));
    agent.sleep(12);
    let mut tries = 0;
    while agent.placement.deployment_count() > 0 {
        for wish in agent.wishes() {
            tries += 1;
            agent.answer(&wish, Answer::Failed);
        }
        agent.sleep(1);
    }
    assert_eq!(tries, 2, "after 12 and 17 s");
}

#[test]
fn what_is_known_of_nodes_and_clients_is_bounded() {
    let (now, mut around) = (Instant::default(), Around::new(Instant::default()));
    let after = |seconds| now + Duration::from_secs(seconds);
    for number in 0..=AVOID_MAX as u64 {
        around.avoid(after(number), name(&format!("n{number}")));
    }
    let moves = Moves { load_over: None, ..moves() };
    let mut agent = deployed("a");
    agent.wishes();
    let deployment = agent.kept.values().next().unwrap().clone();
    let client: IpAddr = CLIENT.parse().unwrap();
    // The first one gave way, and may be asked again though its time is not up; the last one may not.
    let mut to = |node: &str| around.decide(after(0), &moves, &deployment, client, &[free(node), drained("a")]);
    assert!(to("n0").is_some() && to(&format!("n{AVOID_MAX}")).is_none());

    let mut around = Around::new(now);
    let client = |number: usize| IpAddr::from([10, 0, u8::try_from(number).unwrap(), 1]);
    for number in 0..=CLIENTS_MAX {
        around.note(after(number as u64), rule().region(client(number)), client(number));
    }
    let mut looked: Vec<IpAddr> = (0..20).map(|_| around.client(after(5), &moves).unwrap()).collect();
    looked.sort();
    looked.dedup();
    assert_eq!(looked, (1..=CLIENTS_MAX).map(client).collect::<Vec<_>>());
    let late = after(3600);
    assert_eq!((around.client(late, &moves), around.client(late, &moves)), (Some(client(4)), Some(client(4))));

    let mut agent = deployed("a");
    for _ in 0..=MOVES_KEPT {
        agent.sleep(600);
        agent.see(CLIENT, 3);
        agent.answer_all("a");
        let moved = agent.look(CLIENT, &[free("b"), drained("a")]).unwrap();
        agent.answer(&moved, Answer::Move(MoveEnd::Stays));
        agent.answer_all("a");
    }
    assert_eq!(agent.ends().len(), MOVES_KEPT);
}

#[derive(Clone, Debug)]
enum Step {
    See(bool),
    Answer { which: usize, how: u8 },
    Sleep(u64),
    Drained,
    Stop,
    Renew,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any::<bool>().prop_map(Step::See),
        6 => (0_usize..4, 0_u8..12).prop_map(|(which, how)| Step::Answer { which, how }),
        3 => (0_u64..30).prop_map(Step::Sleep),
        1 => Just(Step::Drained),
        1 => Just(Step::Stop),
        1 => Just(Step::Renew),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Whatever is seen and answered: one request at a time for each deployment, no SETUP for one that moves, one node has the module
    /// unless that is just not known, and all of it goes when nobody is seen any more.
    #[test]
    fn a_module_that_moves_has_one_owner(steps in proptest::collection::vec(step(), 1..150)) {
        let mut agent = Agent::new(vec![moving_rule()]);
        let mut open: Vec<Wish> = Vec::new();
        let take = |agent: &mut Agent, open: &mut Vec<Wish>| {
            for wish in agent.wishes() {
                if let Wish::Setup { deployment, .. } = &wish {
                    assert!(agent.kept[deployment].moving.is_none(), "a lease is renewed meanwhile");
                }
                open.push(wish);
            }
            assert_kept(agent, open);
            let stays = agent.placement.deployments().filter(|(_, one)| one.health != Health::Leaving);
            assert!(stays.count() <= 1, "two deployments");
        };
        for step in steps {
            match step {
                Step::See(here) => agent.see(if here { CLIENT } else { ELSEWHERE }, 3),
                Step::Answer { which, how } if !open.is_empty() => {
                    let wish = open.swap_remove(which % open.len());
                    reply(&mut agent, &wish, how);
                }
                Step::Answer { .. } => {}
                Step::Sleep(seconds) => agent.sleep(seconds),
                Step::Drained => {
                    let all: Vec<_> = agent.placement.deployments().map(|(id, one)| (id, one.edge.clone())).collect();
                    all.iter().for_each(|(id, edge)| agent.placement.drained(agent.now, *id, edge));
                }
                Step::Stop => {
                    agent.placement.stop(RULE);
                    agent.placement.gate(RULE, true);
                }
                Step::Renew => agent.placement.reload(agent.now, [(RULE, moving_rule())], &[RULE].into()),
                Step::Restart => {
                    agent = restarted(&agent, moving_rule());
                    open.clear();
                }
            }
            take(&mut agent, &mut open);
        }
        run_out(&mut agent, &mut open, take, reply);
    }
}

/// Answers; `how` says what fails, and which of the nodes are drained.
fn reply(agent: &mut Agent, wish: &Wish, how: u8) {
    let answer = match (wish, how) {
        (_, 7) => Answer::Failed,
        (Wish::Probe { .. }, _) => way(&["a"]),
        (Wish::Look { .. }, 0) => around(&[free("a"), free("b"), free("c")]),
        (Wish::Look { .. }, 1 | 2) => around(&[free("a"), drained("b"), loaded("c", 2000)]),
        (Wish::Look { .. }, 3) => around(&[free("d")]),
        (Wish::Look { .. }, _) => around(&[drained("a"), free("b"), loaded("c", 2000)]),
        (Wish::Setup { edge, .. }, _) => done(edge.as_str()),
        (Wish::Move { .. }, 1 | 2) => Answer::Move(MoveEnd::Stays),
        (Wish::Move { .. }, 3) => Answer::Move(MoveEnd::Gone),
        (Wish::Move { .. }, 4 | 5) => Answer::Move(MoveEnd::Unknown { renewed: how == 4 }),
        (Wish::Move { .. }, _) => Answer::Move(MoveEnd::Moved { epoch: 2 }),
        (Wish::Remove { .. }, _) => Answer::Removed,
    };
    agent.answer(wish, answer);
}

impl Agent {
    fn id(&self) -> DeploymentId {
        *self.kept.keys().next().unwrap()
    }

    /// Has nodes asked once on the way to a client, who is seen first; returns the move that begins, if one does.
    fn look(&mut self, client: &str, nodes: &[Candidate]) -> Option<Wish> {
        self.see(client, 3);
        self.look_by(&[(client, nodes)])
    }

    /// Has nodes asked once, on the ways as they are; renews leases meanwhile.
    fn look_by(&mut self, ways: &[(&str, &[Candidate])]) -> Option<Wish> {
        for _ in 0..100 {
            for wish in self.wishes() {
                match &wish {
                    Wish::Look { client, .. } => {
                        let (_, nodes) = ways.iter().find(|(of, _)| client.to_string() == *of).unwrap();
                        self.answer(&wish, around(nodes));
                        return self.wishes().into_iter().next();
                    }
                    Wish::Setup { edge, .. } => self.answer(&wish, done(edge.as_str())),
                    Wish::Probe { .. } => self.answer(&wish, way(&["z"])),
                    Wish::Move { .. } | Wish::Remove { .. } => panic!("{wish:?}"),
                }
            }
            self.sleep(1);
        }
        panic!("nobody is asked")
    }

    fn answer_all(&mut self, edge: &str) {
        for wish in self.wishes() {
            let answer = match &wish {
                Wish::Setup { .. } => done(edge),
                Wish::Look { .. } => Answer::Failed,
                Wish::Probe { .. } => way(&[edge]),
                Wish::Move { .. } | Wish::Remove { .. } => panic!("{wish:?}"),
            };
            self.answer(&wish, answer);
        }
    }

    fn deploy_to(&mut self, client: &str, edge: &str) -> Wish {
        self.see(client, 3);
        let probe = self.wish();
        self.answer(&probe, way(&[edge]));
        let setup = self.wish();
        self.answer(&setup, done(edge));
        setup
    }

    fn ends(&self) -> Vec<(String, String, Option<Ended>)> {
        self.placement.moves().map(|one| (one.from.to_string(), one.to.to_string(), one.ended)).collect()
    }
}

fn restarted(agent: &Agent, rule: Rule) -> Agent {
    let kept: BTreeMap<DeploymentId, Deployment> = agent.kept.clone();
    let mut again = Agent { kept: kept.clone(), now: agent.now, ..Agent::new(vec![rule]) };
    again.placement.restore(again.now, kept);
    again
}

fn moving_rule() -> Rule {
    Rule { deployments_max: 1, moves: Some(moves()), ..rule() }
}

/// Returns an agent whose module is on a node, of which it knows the address.
fn deployed(edge: &str) -> Agent {
    deployed_by(moves(), edge)
}

fn deployed_by(moves: Moves, edge: &str) -> Agent {
    let mut agent = Agent::new(vec![Rule { moves: Some(moves), ..moving_rule() }]);
    agent.deploy_to(CLIENT, edge);
    assert!(agent.look(CLIENT, &[free(edge)]).is_none());
    agent
}

fn around(nodes: &[Candidate]) -> Answer {
    Answer::Around(nodes.to_vec())
}

fn to(wish: &Wish) -> String {
    let Wish::Move { moving, .. } = wish else { panic!("{wish:?}") };
    moving.to.to_string()
}

fn why(wish: &Wish) -> Why {
    let Wish::Move { moving, .. } = wish else { panic!("{wish:?}") };
    moving.why
}

fn name(node: &str) -> NodeId {
    node.parse().unwrap()
}

fn free(node: &str) -> Candidate {
    Candidate {
        node: name(node),
        address: at(node),
        place: Place::Path { hop: 1, behind_us: None },
        score: Some(500),
        reasons: Vec::new(),
        against: Vec::new(),
        price_per_hour: None,
        load_permille: Some(0),
        maintenance: false,
    }
}

fn loaded(node: &str, permille: u32) -> Candidate {
    Candidate { load_permille: Some(permille), ..free(node) }
}

fn drained(node: &str) -> Candidate {
    Candidate { score: None, maintenance: true, ..free(node) }
}
