// SPDX-License-Identifier: Apache-2.0
//! Copies of requests that name their path or domain, and each way on which a node passes such a request on.

use std::collections::BTreeSet;

use netserv_model::domain::DomainPolicy;
use netserv_model::off_path::{OffPath, Shape};
use netserv_model::target::{Destinations, Target};
use netserv_model::{Digest, ModuleRef, Signature};

use super::off_path::Mesh;
use super::*;

/// The destination of [`flow`].
const DEST: &str = "10.9.0.1";
const HOST: &str = "10.0.0.9";

fn to(prefixes: &[&str]) -> Destinations {
    Destinations(prefixes.iter().map(|prefix| prefix.parse().unwrap()).collect())
}

fn dest() -> Destinations {
    Destinations::one(ip(DEST))
}

fn setup() -> RequestBuilder {
    let module: ModuleRef = "example.org/m@1.0.0".parse().unwrap();
    RequestBuilder::setup(&module, "http://h/p", Digest([4; 32]), Duration::from_secs(600))
}

fn text(builder: RequestBuilder, nonce: u8) -> String {
    let unsigned = builder.user(&"jane".parse().unwrap()).build(UnixTime(0), Nonce([nonce; 16])).unwrap();
    unsigned.with_signature(Signature([6; 64])).unwrap().as_str().to_owned()
}

fn between(source: &str, destination: &str) -> PathCoupled {
    PathCoupled::new(ip(source), ip(destination)).unwrap()
}

impl Node {
    /// A request comes along a flow.
    fn comes(&mut self, flow: PathCoupled, envelope: &str, text: &str) {
        let data = format!("NETSERV/1 HOP\nbudget-ms: 9000\n{envelope}\n{text}");
        self.receive(&Mri::PathCoupled(flow), 8, data.as_bytes());
    }

    /// The node has answered that it does nothing, since the request names another path, and has no state of it.
    fn refuses_the_copy(&mut self, why: &str) {
        assert_eq!(self.nslp.poll_request(), None, "the controller is not asked");
        let Some(ApiCall::SendMessage { data, .. }) = self.nslp.poll_api_call() else { panic!("no answer") };
        self.quiet();
        let Ok(Payload::Response(response)) = Payload::parse(&data) else { panic!("{data:?}") };
        let Outcome::Refused(refusal) = &response.entries[0].outcome else { panic!("{response:?}") };
        assert_eq!(refusal.kind, RefusalKind::NotForThisNode);
        assert!(refusal.detail.contains(why), "{refusal}");
        assert_eq!(self.nslp.state_counts(), crate::StateCounts::default());
    }
}

/// Goal: what is signed for one path is taken on no other. Method: flows that the request names, and others, at their edges.
#[test]
fn a_copy_on_another_path_is_refused_and_goes_no_further() {
    for (named, flow, taken) in [
        (dest(), between(HOST, DEST), true),
        (dest(), between("10.7.0.1", DEST), true),
        (to(&["10.9.0.0/16", "2001:db8::/32"]), between(HOST, DEST), true),
        (Destinations::default(), between(HOST, "10.8.0.1"), true),
        (dest(), between(HOST, "10.9.0.2"), false),
        (dest(), between(DEST, HOST), false),
        (dest(), between(HOST, DEST).with_prefixes(32, 31), false),
        (dest(), between("2001:db8::9", "2001:db8::1"), false),
        (to(&["2001:db8::/32"]), between(HOST, DEST), false),
    ] {
        let mut node = Node::new(|_| {});
        node.comes(flow.clone(), "", &text(setup().along(&named), 1));
        if taken {
            assert!(node.nslp.poll_request().unwrap().1.passed_by.is_none(), "{flow:?}");
            assert!(matches!(Payload::parse(&node.sent().data), Ok(Payload::Request(..))), "it goes on");
        } else {
            node.refuses_the_copy("it is for the path to");
        }
        assert_eq!(node.nslp.counters().requests_misdirected, u64::from(!taken));
    }
}

/// Goal: who says of a node that it is on a path has to show it, unless the user named any.
#[test]
fn a_copy_whose_query_was_not_sent_along_the_path_is_refused() {
    for (named, taken) in [(dest(), false), (to(&["0.0.0.0/0"]), true), (Destinations::default(), true)] {
        let mut node = Node::new(|_| {});
        let data = text(setup().along(&named), 1);
        let mut event = received(&flow(), 8, data.as_bytes());
        let Event::RecvMessage { provenance, .. } = &mut event else { unreachable!() };
        provenance.along_flow = false;
        node.nslp.handle_event(node.now, event);
        match taken {
            true => drop(node.asked()),
            false => node.refuses_the_copy("its Query was not sent there"),
        }
    }
}

#[test]
fn what_names_a_path_is_for_no_node_alone() {
    let mut node = Node::new(|_| {});
    let mut local = |path: Option<LocalPath>, builder: RequestBuilder, nonce| {
        let (session, timeout) = (Some(SESSION), Duration::from_secs(5));
        let request = LocalRequest { id: LocalId(1), message: text(builder, nonce), path, session, timeout };
        node.nslp.handle_local(node.now, request).map_err(|refusal| refusal.kind)
    };
    let elsewhere = LocalPath { source: ip("10.0.0.1"), destination: ip("10.8.0.1") };
    assert_eq!(local(None, setup().along(&dest()), 1), Err(RefusalKind::NotForThisNode));
    assert_eq!(local(Some(elsewhere), setup().along(&dest()), 2), Err(RefusalKind::NotForThisNode));
    assert_eq!(local(path(), setup().along(&dest()), 3), Ok(()));
    assert_eq!(local(None, setup(), 4), Ok(()));
    let asked: Vec<bool> =
        std::iter::from_fn(|| node.nslp.poll_request()).map(|(_, request)| request.is_bound).collect();
    assert_eq!(asked, [true, true], "no copy of what stays on this node is anywhere");
}

/// Goal: an operator who wants requests that name where they are carried out gets no others. Method: those that name every path.
#[test]
fn what_names_any_path_is_not_bound() {
    for (named, is_bound) in [(dest(), true), (to(&["0.0.0.0/0"]), false), (to(&["10.9.0.0/16", "::/0"]), false)] {
        let mut node = Node::new(|_| {});
        node.comes(between(HOST, DEST), "", &text(setup().along(&named), 1));
        assert_eq!(node.nslp.poll_request().unwrap().1.is_bound, is_bound, "{named}");
    }
}

/// Goal: a request for nodes of a domain is passed on by others, which do nothing.
#[test]
fn other_domains_pass_a_request_on() {
    let domains = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
    for (own, named, why) in [
        (Some("isp.example"), &["isp.example"][..], None),
        (Some("isp.example"), &["a.example", "isp.example"], None),
        (Some("isp.example"), &["a.example"], Some("it is for nodes of other domains")),
        (Some("isp.example"), &["example"], Some("it is for nodes of other domains")),
        (None, &["a.example"], Some("it is for nodes of other domains")),
        (None, &[], None),
    ] {
        let mut node = Node::new(|_| {});
        let name = own.map(|own| own.parse().unwrap());
        node.nslp.handle_domain(DomainPolicy { name, ..DomainPolicy::default() });
        let target = Target { domains: domains(named), ..Target::default() };
        node.comes(between("10.0.0.1", DEST), "", &text(setup().target(&target), 1));
        let request = node.nslp.poll_request().unwrap().1;
        assert_eq!((request.passed_by.as_deref(), request.is_bound), (why, !named.is_empty()), "{own:?} {named:?}");
        node.sent_request();
    }
    let mut host = Node::new(|config| config.host_only = true);
    let target = Target { domains: domains(&["isp.example"]), ..Target::default() };
    let message = text(RequestBuilder::probe(&[]).target(&target), 1);
    let timeout = Duration::from_secs(5);
    let request = LocalRequest { id: LocalId(1), message, path: path(), session: Some(SESSION), timeout };
    host.nslp.handle_local(host.now, request).unwrap();
    assert_eq!(host.nslp.poll_request(), None, "a host says nothing of itself");
}

/// Goal: the way back is a path like another: a copy does not get past by saying that it comes back.
#[test]
fn a_request_on_its_way_back_names_that_path_too() {
    for (named, taken) in
        [(to(&["10.9.0.1/32", "10.0.0.9/32"]), true), (Destinations::default(), true), (dest(), false)]
    {
        let message = text(setup().and_return().along(&named), 1);
        // At the last node it turns around, whatever it names.
        let mut last = Node::new(|_| {});
        last.comes(between(HOST, DEST), "may-return: true\n", &message);
        let handle = last.sent().handle;
        last.no_peer(handle);
        let back = last.sent();
        assert_eq!((&back.mri, back.request().1), (&Mri::PathCoupled(between("10.0.0.1", HOST)), message.clone()));
        // A node on the way back.
        let mut node = Node::new(|_| {});
        node.comes(between(DEST, HOST), "way: back\n", &message);
        if taken {
            assert!(node.nslp.poll_request().is_some(), "{named}");
        } else {
            node.refuses_the_copy("follows one to 10.0.0.9");
        }
    }
}

/// Goal: nodes beside the path get what names it if its user wants that, and nobody else does.
#[test]
fn a_request_beside_its_path_follows_no_path() {
    let beside = |builder: RequestBuilder| builder.off_path(OffPath { shape: Shape::Hose, radius: 2 });
    let to_me = || between(HOST, "10.0.0.1");
    let mut node = Node::new(|_| {});
    node.comes(to_me(), "beside: 0 0\n", &text(beside(setup()).along(&dest()), 1));
    node.asked();
    let mut node = Node::new(|_| {});
    node.comes(to_me(), "beside: 0 0\n", &text(setup().along(&dest()), 1));
    node.refuses_the_copy("follows one to 10.0.0.1");
    let mut node = Node::new(|_| {});
    node.comes(to_me(), "", &text(beside(setup()).along(&dest()), 1));
    node.refuses_the_copy("follows one to 10.0.0.1");
    // A whole mesh: `0 – 1` is the path, `0 – 2 – 3` leads away from it.
    let mut links = vec![BTreeSet::new(); 4];
    for (a, b) in [(0, 1), (0, 2), (2, 3)] {
        links[a].insert(b);
        links[b].insert(a);
    }
    let mut mesh = Mesh::new(links, vec![0, 1], 1);
    let path = mesh.destination();
    mesh.send(&text(beside(setup()).along(&Destinations::one(path)), 1));
    assert_eq!(mesh.has, (0..4).collect());
    // A REMOVE follows, though it names the path alone.
    let remove = RequestBuilder::remove(&"example.org/m".parse().unwrap()).along(&Destinations::one(path));
    mesh.send(&text(remove, 2));
    assert_eq!(mesh.has, BTreeSet::new());
}

/// Goal: what nodes beside the path take is bound by a domain or names alone, as its path says nothing of them.
#[test]
fn a_request_beside_its_path_is_not_bound_by_that() {
    let domains = Target { domains: vec!["isp.example".parse().unwrap()], ..Target::default() };
    for (target, is_bound) in [(Target::default(), false), (domains, true)] {
        let setup = setup().off_path(OffPath { shape: Shape::Hose, radius: 2 }).along(&dest()).target(&target);
        let mut node = Node::new(|_| {});
        node.comes(between(HOST, "10.0.0.1"), "beside: 0 0\n", &text(setup, 1));
        assert_eq!(node.nslp.poll_request().unwrap().1.is_bound, is_bound, "{target:?}");
    }
}

/// Goal: a SETUP is sent on along a path that changed, as it was signed.
#[test]
fn what_names_its_path_follows_it() {
    let mut node = Node::new(|_| {});
    let message = text(setup().along(&dest()), 1);
    node.comes(between("10.0.0.1", DEST), "", &message);
    let sent = node.sent_request();
    node.no_peer(sent.handle);
    let asked = node.asked();
    node.report(asked, NodeReport { outcome: Outcome::Installed { lease_s: 600 }, ..report("me", "0.0.0.0") });
    while node.nslp.poll_api_call().is_some() {}
    node.at(5_000);
    node.notify(netserv_gist::Notification::StatusChange(netserv_gist::RouteStatus::Good(SiiHandle::new(3, 3))));
    node.at(5_000);
    assert_eq!(node.sent_request().request().1, message);
}
