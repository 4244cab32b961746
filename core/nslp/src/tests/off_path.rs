// SPDX-License-Identifier: Apache-2.0
//! Nodes beside the path: whole meshes of nodes, against plain breadth-first search.
//!
//! GIST is played by the test: a message on a flow goes to the node that has the flow's destination, and the path's own flow
//! along the path; who is next to whom is configured.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use netserv_model::off_path::{OffPath, Shape};
use netserv_model::request::Body;
use netserv_model::target::Target;
use netserv_wire::nslp::Envelope;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::limits::{COPIES_BURST_MAX, COPIES_INTERVAL, COPIES_MAX, FANOUT_MAX, NEIGHBOUR_TIME, NEIGHBOURS_MAX};

/// Nodes with a path through some of them.
pub(super) struct Mesh {
    nodes: Vec<Nslp>,
    /// Which nodes are next to each.
    links: Vec<BTreeSet<usize>>,
    path: Vec<usize>,
    /// Messages under way: to whom, and what happens there.
    under_way: VecDeque<(usize, Event)>,
    now: Now,
    rng: StdRng,
    /// One in so many messages beside the path gets lost; 0 for none.
    loss: u32,
    /// Requests that went beside the path.
    copies: usize,
    /// Nodes whose controller was asked, and how often.
    asked: BTreeMap<usize, usize>,
    /// Nodes that refuse.
    refusing: BTreeSet<usize>,
    /// Nodes that have the module of SETUPs.
    pub(super) has: BTreeSet<usize>,
}

impl Mesh {
    pub(super) fn new(links: Vec<BTreeSet<usize>>, path: Vec<usize>, seed: u64) -> Mesh {
        let node = |at: usize| {
            let mut config = Config::new(format!("n{at}").parse().unwrap(), NSLP_ID);
            config.own_addresses = vec![address(at)];
            config.beside = links[at].iter().map(|next| address(*next)).collect();
            Nslp::new(config, [u8::try_from(at % 256).unwrap(); 32])
        };
        Mesh {
            nodes: (0..links.len()).map(node).collect(),
            links,
            path,
            under_way: VecDeque::new(),
            now: Now::default(),
            rng: StdRng::seed_from_u64(seed),
            loss: 0,
            copies: 0,
            asked: BTreeMap::new(),
            refusing: BTreeSet::new(),
            has: BTreeSet::new(),
        }
    }

    /// A random mesh whose first few nodes are the path.
    fn random(seed: u64) -> Mesh {
        let mut rng = StdRng::seed_from_u64(seed);
        let (count, length) = (rng.random_range(2..14_usize), rng.random_range(1..4_usize));
        let length = length.min(count);
        let mut links = vec![BTreeSet::new(); count];
        let join = |a: usize, b: usize, links: &mut Vec<BTreeSet<usize>>| {
            let room = |at: usize| links[at].len() < FANOUT_MAX;
            if a != b && room(a) && room(b) {
                links[a].insert(b);
                links[b].insert(a);
            }
        };
        (1..length).for_each(|at| join(at - 1, at, &mut links));
        let mut order: Vec<usize> = (length..count).collect();
        order.shuffle(&mut rng);
        for at in order {
            for _ in 0..rng.random_range(1..3) {
                join(at, rng.random_range(0..count), &mut links);
            }
        }
        Mesh::new(links, (0..length).collect(), seed)
    }

    /// Returns where the path's flow leads.
    pub(super) fn destination(&self) -> IpAddr {
        address(self.path[self.path.len() - 1])
    }

    pub(super) fn send(&mut self, message: &str) -> RequestResult {
        let (first, last) = (self.path[0], self.path[self.path.len() - 1]);
        let path = Some(LocalPath { source: address(first), destination: address(last) });
        let (session, timeout) = (Some(SESSION), Duration::from_secs(40));
        let request = LocalRequest { id: LocalId(1), message: message.to_owned(), path, session, timeout };
        self.nodes[first].handle_local(self.now, request).unwrap();
        loop {
            self.settle();
            if let Some((_, result)) = self.nodes[first].poll_result() {
                return result;
            }
            let due = self.nodes.iter().filter_map(Nslp::poll_timeout).map(|(due, _)| due).min();
            self.now.instant = due.expect("somebody waits for something");
            let now = self.now;
            self.nodes.iter_mut().for_each(|node| node.handle_timeout(now));
        }
    }

    /// Moves all that can move without time.
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            for at in 0..self.nodes.len() {
                while let Some((request, asked)) = self.nodes[at].poll_request() {
                    moved = true;
                    *self.asked.entry(at).or_default() += 1;
                    let mut report = report(&format!("n{at}"), "0.0.0.0");
                    report.outcome = match (asked.passed_by, asked.body) {
                        (Some(reason), _) => Outcome::NotTargeted { reason },
                        (None, Body::Setup(_)) => {
                            self.has.insert(at);
                            Outcome::Installed { lease_s: 60 }
                        }
                        (None, Body::Remove(_)) if self.has.remove(&at) => Outcome::Removed,
                        (None, Body::Remove(_)) => {
                            Outcome::Refused(Refusal::new(RefusalKind::NotInstalled, "it has none"))
                        }
                        (None, _) => report.outcome,
                    };
                    if self.refusing.contains(&at) {
                        let refusal = Refusal::new(RefusalKind::QuotaExceeded, "it is full");
                        report.outcome = Outcome::Refused(refusal);
                    }
                    self.nodes[at].handle_report(self.now, request, report);
                }
                while let Some(call) = self.nodes[at].poll_api_call() {
                    moved = true;
                    self.carry(at, call);
                }
            }
            if let Some((to, event)) = self.under_way.pop_front() {
                self.nodes[to].handle_event(self.now, event);
                moved = true;
            }
            if !moved {
                return;
            }
        }
    }

    fn carry(&mut self, from: usize, call: ApiCall) {
        let ApiCall::SendMessage { handle, mri, data, sii, .. } = call else { return };
        let (_, destination) = mri.addresses().unwrap();
        let own_path = address(self.path[self.path.len() - 1]) == destination
            && mri.addresses().unwrap().0 == address(self.path[0])
            && self.path.contains(&from);
        let to = match sii {
            Some(sii) => usize::try_from(sii.0 >> 32).unwrap() - 1,
            None if own_path => self.path[self.path.iter().position(|at| *at == from).unwrap() + 1],
            None => number(destination),
        };
        let is_request = sii.is_none();
        self.under_way.push_back((
            from,
            Event::MessageStatus { nslp_id: NSLP_ID, handle, status: SendStatus::Sent, carriage: None },
        ));
        if is_request && !own_path {
            self.copies += 1;
            assert!(self.links[from].contains(&to), "only to neighbours");
            let Ok(Payload::Request(Envelope { copy, .. }, _)) = Payload::parse(&data) else { panic!() };
            assert!(copy.is_some());
        }
        if !own_path && self.loss > 0 && self.rng.random_range(0..self.loss) == 0 {
            return;
        }
        let mut event = received(&mri, 20, &data);
        let Event::RecvMessage { peer, local, sii, .. } = &mut event else { unreachable!() };
        (*peer, *local) = (address(from), address(to));
        *sii = SiiHandle::new(u32::try_from(from).unwrap() + 1, 1);
        self.under_way.push_back((to, event));
    }

    /// Returns the nodes beside the path within a radius of the shape, with their distance.
    fn reference(&self, off_path: OffPath) -> BTreeMap<String, u8> {
        let centres: Vec<usize> = match off_path.shape {
            Shape::Bubble => self.path.first().copied().into_iter().collect(),
            Shape::Balloon => self.path.last().copied().into_iter().collect(),
            Shape::Hose => self.path.clone(),
        };
        let mut distance: BTreeMap<usize, u8> = centres.iter().map(|at| (*at, 0)).collect();
        let mut queue: VecDeque<usize> = centres.into();
        while let Some(at) = queue.pop_front() {
            let next = distance[&at] + 1;
            // A node of the path sends nothing on that comes from beside it.
            let is_end = distance[&at] > 0 && self.path.contains(&at);
            for to in self.links[at].iter().filter(|_| next <= off_path.radius && !is_end) {
                if !distance.contains_key(to) {
                    distance.insert(*to, next);
                    queue.push_back(*to);
                }
            }
        }
        let beside = distance.into_iter().filter(|(at, _)| !self.path.contains(at));
        beside.map(|(at, hops)| (format!("n{at}"), hops)).collect()
    }
}

#[test]
fn each_shape_reaches_the_nodes_that_are_in_it_or_says_that_it_does_not_and_no_others() {
    let (mut whole, mut all) = (0, 0);
    for seed in seeds(80) {
        for (shape, radius) in shapes() {
            let off_path = OffPath { shape, radius };
            let mut mesh = Mesh::random(seed);
            let result = mesh.send(&request(off_path));
            let said = format!("seed {seed}, {off_path}, {:?}", mesh.links);
            assert_eq!((result.nodes.len(), result.incomplete), (mesh.path.len(), None), "{said}");
            assert!(mesh.asked.values().all(|times| *times == 1), "{said}");
            let found: BTreeMap<String, u8> =
                result.beside.nodes.iter().map(|beside| (beside.report.node.to_string(), beside.hops)).collect();
            assert_eq!(found.len(), result.beside.nodes.len(), "each once: {said}");
            let reference = mesh.reference(off_path);
            let bound = usize::from(COPIES_MAX) * mesh.path.len();
            assert!(mesh.copies <= bound, "{} messages: {said}", mesh.copies);
            for (node, hops) in &found {
                // A copy may come by a detour first, but not from too far.
                assert!(reference.get(node).is_some_and(|least| least <= hops) && *hops <= radius, "{node}: {said}");
            }
            all += 1;
            if result.beside.missing == 0 {
                assert!(found.keys().eq(reference.keys()), "{found:?}, {reference:?}: {said}");
                whole += 1;
            }
        }
    }
    assert!(whole * 10 > all * 9, "{whole} of {all} requests reached all");
}

#[test]
fn loss_hides_nodes_and_says_so_and_never_reaches_others() {
    let mut missed = 0;
    for seed in seeds(60) {
        for (shape, radius) in shapes() {
            let off_path = OffPath { shape, radius };
            let mut mesh = Mesh::random(seed);
            mesh.loss = 5;
            let result = mesh.send(&request(off_path));
            let reference = mesh.reference(off_path);
            let said =
                format!("seed {seed}, {off_path}, {:?}, path {:?}, asked {:?}", mesh.links, mesh.path, mesh.asked);
            assert_eq!((result.nodes.len(), result.incomplete), (mesh.path.len(), None), "{said}");
            for beside in &result.beside.nodes {
                assert!(reference.contains_key(beside.report.node.as_str()), "{said}");
            }
            for at in mesh.asked.keys() {
                assert!(mesh.path.contains(at) || reference.contains_key(&format!("n{at}")), "{said}");
            }
            assert!(result.beside.missing > 0 || result.beside.nodes.len() == reference.len(), "{said}");
            missed += result.beside.missing;
        }
    }
    assert!(missed > 0, "something got lost");
}

/// Everybody is next to everybody: without bounds, 40 nodes would send 1,500 messages.
#[test]
fn messages_beside_the_path_have_a_bound() {
    let links = |count: usize| (0..count).map(|at| (0..count).filter(|to| *to != at).collect()).collect();
    let mut mesh = Mesh::new(links(40), vec![0], 1);
    let result = mesh.send(&request(OffPath { shape: Shape::Hose, radius: 4 }));
    assert!(mesh.copies <= usize::from(COPIES_MAX), "{} messages", mesh.copies);
    assert!(mesh.copies > FANOUT_MAX, "they went on from neighbours");
    assert!(result.beside.missing >= 39 - 8, "{:?}", result.beside.missing);
}

#[test]
fn nodes_that_refuse_send_nothing_on() {
    let links = |pairs: &[(usize, usize)]| {
        let mut links = vec![BTreeSet::new(); 4];
        for (a, b) in pairs {
            links[*a].insert(*b);
            links[*b].insert(*a);
        }
        links
    };
    let mut mesh = Mesh::new(links(&[(0, 1), (1, 2), (2, 3)]), vec![0], 1);
    mesh.refusing.insert(1);
    let result = mesh.send(&request(OffPath { shape: Shape::Bubble, radius: 4 }));
    assert_eq!(mesh.asked.keys().copied().collect::<Vec<_>>(), [0, 1]);
    assert!(!result.beside.nodes[0].report.outcome.is_ok());
    // Nor what nobody has signed.
    let mut mesh = Mesh::new(links(&[(0, 1)]), vec![0], 1);
    let unsigned = RequestBuilder::probe(&[]).off_path(OffPath { shape: Shape::Hose, radius: 1 });
    let unsigned = unsigned.build(UnixTime(0), Nonce([1; 16])).unwrap().into_message();
    assert!(mesh.send(unsigned.as_str()).beside.is_empty());
    // A signature that nobody is named for is not looked at by controllers.
    let mut mesh = Mesh::new(links(&[(0, 1)]), vec![0], 1);
    let nameless = RequestBuilder::probe(&[]).off_path(OffPath { shape: Shape::Hose, radius: 1 });
    let nameless = nameless.build(UnixTime(0), Nonce([1; 16])).unwrap();
    let nameless = nameless.with_signature(netserv_model::Signature([0; 64])).unwrap();
    assert!(mesh.send(nameless.as_str()).beside.is_empty());
}

/// Whom a request is not for does not say what is wrong with it, and does not send it to others either.
#[test]
fn what_is_wrong_and_for_others_goes_nowhere_beside_the_path() {
    let target = Target { nodes: vec!["another".parse().unwrap()], ..Target::default() };
    let builder = RequestBuilder::probe(&[Ask::Nodes]).user(&"jane".parse().unwrap()).target(&target);
    let unsigned = builder.off_path(OffPath { shape: Shape::Hose, radius: 2 }).build(UnixTime(0), Nonce([1; 16]));
    let text = unsigned.unwrap().with_signature(netserv_model::Signature([0; 64])).unwrap().as_str().to_owned();
    for is_wrong in [true, false] {
        let mut node = Node::new(|config| config.beside = vec![ip("10.7.0.1")]);
        node.receive(&flow(), 8, text.as_bytes());
        let (request, handle) = (node.asked(), node.sent_request().handle);
        let mut report = report("me", "0.0.0.0");
        if is_wrong {
            report.outcome = Outcome::Refused(Refusal::new(RefusalKind::BadSignature, "as the test says"));
        }
        node.report(request, report);
        node.no_peer(handle);
        assert_eq!(node.nslp.counters().copies_sent, u64::from(!is_wrong));
    }
}

#[test]
fn who_sends_a_request_beside_its_path_cannot_go_further_than_its_user_signed() {
    for (text, expected) in [
        (request(OffPath { shape: Shape::Hose, radius: 1 }), 0),
        (request(OffPath { shape: Shape::Hose, radius: 2 }), 1),
    ] {
        let mut node = Node::new(|config| config.beside = vec![ip("10.7.0.1")]);
        let to_me = Mri::PathCoupled(PathCoupled::new(ip("10.0.0.9"), ip("10.0.0.1")).unwrap());
        let forged = format!("NETSERV/1 HOP\nbudget-ms: 9000\nbeside: 3 60000\n\n{text}");
        node.receive(&to_me, 8, forged.as_bytes());
        let request = node.asked();
        node.report(request, report("me", "0.0.0.0"));
        let sent: Vec<ApiCall> = std::iter::from_fn(|| node.nslp.poll_api_call()).collect();
        let copies = sent.iter().filter(|call| matches!(call, ApiCall::SendMessage { sii: None, .. })).count();
        assert_eq!(copies, expected, "{sent:?}");
    }
    // Who did not sign that it is for nodes beside the path, has it go along the flow.
    let mut node = Node::new(|_| {});
    node.receive(&flow(), 8, format!("NETSERV/1 HOP\nbeside: 3 9\n\n{}", probe(1)).as_bytes());
    node.asked();
    node.sent_request();
}

#[test]
fn neighbours_that_are_remembered_have_a_bound_and_a_time() {
    let mut node = Node::new(|_| {});
    for n in 0..=NEIGHBOURS_MAX {
        let mut event = received(&flow(), 8, b"NETSERV/1 RESPONSE\n\n");
        let Event::RecvMessage { peer, sii, .. } = &mut event else { unreachable!() };
        *peer = IpAddr::from((0x0a14_0000 + u32::try_from(n).unwrap()).to_be_bytes());
        *sii = SiiHandle::new(u32::try_from(n).unwrap() + 1, 1);
        node.nslp.handle_event(node.now, event);
    }
    assert_eq!(node.nslp.neighbours(), NEIGHBOURS_MAX);
    for (wait, expected) in [(NEIGHBOUR_TIME, FANOUT_MAX), (NEIGHBOUR_TIME + Duration::from_secs(1), 0)] {
        node.now.instant = netserv_model::Instant::from_millis(0) + wait;
        let nonce = u8::try_from(expected).unwrap();
        let text = signed(OffPath { shape: Shape::Hose, radius: 1 }, nonce);
        let path = Some(LocalPath { source: ip("10.0.0.1"), destination: ip("10.0.0.1") });
        let (session, timeout) = (Some(SESSION), Duration::from_secs(5));
        let request = LocalRequest { id: LocalId(1), message: text, path, session, timeout };
        node.nslp.handle_local(node.now, request).unwrap();
        while node.nslp.poll_api_call().is_some() {}
        let request = node.asked();
        node.report(request, report("me", "0.0.0.0"));
        let sent =
            std::iter::from_fn(|| node.nslp.poll_api_call()).filter(|call| matches!(call, ApiCall::SendMessage { .. }));
        assert_eq!(sent.count(), expected);
    }
}

fn shapes() -> impl Iterator<Item = (Shape, u8)> {
    let shapes = [Shape::Bubble, Shape::Balloon, Shape::Hose];
    shapes.into_iter().flat_map(|shape| (1..=4).map(move |radius| (shape, radius)))
}

/// `NETSERV_SEED` gives one back.
fn seeds(count: u64) -> std::ops::Range<u64> {
    let one = std::env::var("NETSERV_SEED").ok().and_then(|seed| seed.parse().ok());
    one.map_or(0..count, |seed: u64| seed..seed + 1)
}

fn request(off_path: OffPath) -> String {
    signed(off_path, 1)
}

fn signed(off_path: OffPath, nonce: u8) -> String {
    let builder = RequestBuilder::probe(&[Ask::Nodes]).user(&"jane".parse().unwrap()).off_path(off_path);
    let unsigned = builder.build(UnixTime(0), Nonce([nonce; 16])).unwrap();
    unsigned.with_signature(netserv_model::Signature([0; 64])).unwrap().as_str().to_owned()
}

fn address(at: usize) -> IpAddr {
    IpAddr::from([10, 50, 0, u8::try_from(at).unwrap()])
}

fn number(address: IpAddr) -> usize {
    let IpAddr::V4(v4) = address else { panic!() };
    v4.octets()[3].into()
}

/// As somebody could have who sends a request of others again in many sessions.
#[test]
fn copies_burst_max_messages_go_beside_paths_in_a_time() {
    let mut node = Node::new(|config| config.beside = (1..=8).map(|n| ip(&format!("10.7.0.{n}"))).collect());
    let text = request(OffPath { shape: Shape::Hose, radius: 1 });
    let mut ask = |at: u64, number: u8| {
        node.at(at);
        let mut event = received(&flow(), 8, text.as_bytes());
        let Event::RecvMessage { session, .. } = &mut event else { unreachable!() };
        *session = SessionId([number; 16]);
        node.nslp.handle_event(node.now, event);
        let request = node.asked();
        let Some(ApiCall::SendMessage { handle, .. }) = node.nslp.poll_api_call() else { panic!() };
        node.no_peer(handle);
        node.report(request, report("me", "0.0.0.0"));
        std::iter::from_fn(|| node.nslp.poll_api_call()).for_each(drop);
        (node.nslp.counters().copies_sent, node.nslp.counters().copies_over_limit)
    };
    let bound = u64::try_from(COPIES_BURST_MAX).unwrap();
    let requests = u8::try_from(bound / 8).unwrap();
    let last = (1..=requests).map(|number| ask(0, number)).last();
    assert_eq!(last, Some((bound, 0)));
    assert_eq!(ask(0, requests + 1), (bound, 8));
    let later = u64::try_from(COPIES_INTERVAL.as_millis()).unwrap();
    assert_eq!(ask(later, requests + 2), (bound + 8, 8));
}

/// Goal: a neighbour beside the path that takes no connections gets the request by datagram, until it answers.
#[test]
fn a_neighbour_without_connections_is_asked_by_datagram() {
    let mut node = Node::new(|config| config.beside = vec![ip("10.5.0.7")]);
    let text = signed(OffPath { shape: Shape::Bubble, radius: 1 }, 1);
    node.receive_within(20_000, &text);
    let (request, sent) = (node.asked(), node.sent_request());
    node.no_peer(sent.handle);
    node.report(request, report("me", "0.0.0.0"));
    let first = node.sent();
    assert_eq!(first.mri.addresses().unwrap(), (ip("10.0.0.1"), ip("10.5.0.7")));
    node.by_datagram = true;
    node.status(first.handle, SendStatus::Failed(netserv_gist::FailReason::NoConnection));
    let again = node.sent();
    assert_eq!((&again.mri, again.request().1), (&first.mri, text.clone()));
    // A copy that the limiter drops is made up for by the next.
    node.status(again.handle, SendStatus::Failed(netserv_gist::FailReason::RateLimited));
    node.at(500);
    let copy = node.sent();
    assert_eq!((&copy.mri, copy.request().1), (&first.mri, text));
    node.quiet();
    assert_eq!(node.nslp.counters().requests_retransmitted, 1);
    let mut answer = received(&first.mri.inverted(), 9, response(1, &["beside"]).emit().as_bytes());
    if let Event::RecvMessage { attributes, .. } = &mut answer {
        attributes.reliable = false;
    }
    node.nslp.handle_event(node.now, answer);
    node.by_datagram = false;
    let stack = std::iter::from_fn(|| node.nslp.poll_api_call()).find_map(|call| match call {
        ApiCall::SendMessage { data, .. } => match Payload::parse(&data) {
            Ok(Payload::Response(stack)) => Some(*stack),
            other => panic!("{other:?}"),
        },
        ApiCall::AbortMessage { .. }
        | ApiCall::SetStateLifetime { .. }
        | ApiCall::InvalidateRoutingState { .. }
        | ApiCall::AnswerQuery { .. }
        | ApiCall::SetPeering { .. } => None,
    });
    let beside = stack.expect("the answer goes out").beside;
    let told: Vec<&str> = beside.nodes.iter().map(|beside| beside.report.node.as_str()).collect();
    assert_eq!((told, beside.missing), (vec!["beside"], 0));
    node.at(60_000);
    node.quiet();
}
