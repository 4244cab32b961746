// SPDX-License-Identifier: Apache-2.0
//! Who is on which side, what is taken, and what goes out.

use super::*;
use crate::request::{Environment, Hop, NodeLoad, Remove};

#[test]
fn the_first_neighbour_that_fits_says_where_a_peer_is() {
    let neighbour = |side, prefixes: &[&str], tls_name: Option<&str>| Neighbour {
        side,
        prefixes: (!prefixes.is_empty()).then(|| prefixes.iter().map(|prefix| prefix.parse().unwrap()).collect()),
        tls_name: tls_name.map(str::to_owned),
    };
    let (inside, outside) = (Side::Inside, Side::Outside);
    let neighbours = Neighbours(vec![
        neighbour(outside, &["10.1.9.0/24"], None),
        neighbour(inside, &["10.1.0.0/16", "2001:db8:1::/48"], None),
        neighbour(inside, &["192.0.2.0/24"], Some("*.isp.example")),
        neighbour(inside, &[], Some("far.isp.example")),
    ]);
    for (address, name, expected) in [
        ("10.1.2.3", None, inside),
        ("::ffff:10.1.2.3", None, inside),
        ("10.1.9.3", Some("far.isp.example"), outside),
        ("10.2.0.1", None, outside),
        ("2001:db8:1:2::3", None, inside),
        ("2001:db8:2::3", None, outside),
        ("192.0.2.1", None, outside),
        ("192.0.2.1", Some("N1.ISP.example"), inside),
        ("192.0.2.1", Some("a.n1.isp.example"), outside),
        ("192.0.2.1", Some("*.isp.example"), inside),
        ("198.51.100.1", Some("*.isp.example"), outside),
        ("198.51.100.1", Some("n1.isp.example"), outside),
        ("198.51.100.1", Some("far.isp.example"), inside),
    ] {
        assert_eq!(neighbours.side(address.parse().unwrap(), name), expected, "{address} {name:?}");
    }
    assert_eq!(Neighbours::default().side("10.2.0.1".parse().unwrap(), None), inside);
    // A network that nobody is in, as of an interface without addresses.
    let nobody = Neighbours(vec![Neighbour { side: inside, prefixes: Some(Vec::new()), tls_name: None }]);
    assert_eq!(nobody.side("10.2.0.1".parse().unwrap(), None), outside);
}

#[test]
fn requests_are_taken_by_method_and_user() {
    let only = |users: &[&str]| Users::Only(users.iter().map(|user| user.parse().unwrap()).collect());
    let take = Methods { setup: only(&["jane"]), remove: only(&[]), probe: Users::All };
    let policy = DomainPolicy { take, ..DomainPolicy::default() };
    let (jane, joe) = ("jane".parse().unwrap(), "joe".parse().unwrap());
    let remove =
        Body::Remove(Remove { module: "example.org/m".parse().unwrap(), force: false, all: false, epoch: None });
    let probe = Body::Probe(Probe::default());
    let check = |body: &Body, user: Option<&UserId>, expected: Option<&str>| {
        let refusal = policy.why_not_taken(body, user);
        assert!(refusal.as_ref().is_none_or(|refusal| refusal.kind == RefusalKind::OutsideDomain));
        assert_eq!(refusal.map(|refusal| refusal.detail).as_deref(), expected);
    };
    check(&probe, None, None);
    check(&probe, Some(&joe), None);
    check(&remove, Some(&jane), Some("a REMOVE of `jane` is not taken from outside of the domain"));
    let setup = crate::request::Setup {
        module: "example.org/m@1.0.0".parse().unwrap(),
        url: "https://x".to_owned(),
        digest: format!("sha256:{}", "0".repeat(64)).parse().unwrap(),
        filters: Vec::new(),
        intercept: Vec::new(),
        properties: std::collections::BTreeMap::new(),
        dependencies: Vec::new(),
        ttl: std::time::Duration::from_secs(60),
        epoch: 0,
        state: None,
        floating: Vec::new(),
        prepare: false,
        buffer: None,
    };
    check(&Body::from(setup.clone()), Some(&jane), None);
    check(&Body::from(setup), None, Some("a SETUP of nobody is not taken from outside of the domain"));
}

#[test]
fn a_stack_that_goes_out_says_how_much_of_it_does_not() {
    let refused = Outcome::Refused(Refusal::new(RefusalKind::UnknownUser, "no user `jane` here"));
    let all = || {
        let installed = |lease_s| Outcome::Installed { lease_s };
        vec![entry("border", installed(60)), entry("inner", refused.clone()), entry("last", installed(90)), {
            entry("beyond", installed(30))
        }]
    };
    let check = |show: Show, own: bool, names: &[&str], withheld: (u32, u32, u64), detail: &str| {
        let policy = DomainPolicy { show, ..DomainPolicy::default() };
        let incomplete = Some(Refusal::new(RefusalKind::Timeout, "nobody after last answered"));
        let stack = Stack { entries: all(), foreign: 1, incomplete, ..Stack::default() };
        let out = policy.shown_outside(stack, own, None);
        let shown: Vec<&str> = out.entries.iter().map(|entry| entry.node.as_str()).collect();
        let (nodes, refused, lease_s) = withheld;
        assert_eq!((shown.as_slice(), out.withheld), (names, Withheld { nodes, refused, lease_s }), "{show:?}");
        assert_eq!(out.foreign, 0, "it is for the domain alone");
        let incomplete = out.incomplete.unwrap();
        assert_eq!((incomplete.kind, incomplete.detail.as_str()), (RefusalKind::Timeout, detail));
    };
    let hidden = "the operator of a domain on the path does not show where and why";
    check(Show::All, true, &["border", "inner", "last", "beyond"], (0, 0, 0), "nobody after last answered");
    check(Show::Border, true, &["border", "beyond"], (2, 1, 90), hidden);
    check(Show::Border, false, &["beyond"], (3, 1, 90), hidden);
    check(Show::Count, true, &["beyond"], (3, 1, 90), hidden);
    // More entries outside than there are is said by a peer that errs.
    let stack = Stack { entries: all(), foreign: 9, ..Stack::default() };
    let policy = DomainPolicy { show: Show::Count, ..DomainPolicy::default() };
    assert_eq!(policy.shown_outside(stack, true, None).entries.len(), 4);
}

#[test]
fn what_a_hidden_node_saw_of_the_next_one_does_not_go_out() {
    let strangers = |nodes| Strangers { nodes, ..Strangers::default() };
    let probe = |ask: &[Ask]| Some(Probe { ask: ask.to_vec() });
    let check = |show: Show, nodes: Learns, asks: Option<Probe>, expected: &[(&str, bool)]| {
        let policy = DomainPolicy { show, strangers: strangers(nodes), ..DomainPolicy::default() };
        let with_hop = |node: &str| NodeReport { hop: Some(Hop::default()), ..entry(node, Outcome::Probed) };
        let entries = ["border", "last", "beyond", "end"].map(with_hop).to_vec();
        let out = policy.shown_outside(Stack { entries, foreign: 2, ..Stack::default() }, true, asks.as_ref());
        let shown: Vec<(&str, bool)> =
            out.entries.iter().map(|entry| (entry.node.as_str(), entry.hop.is_some())).collect();
        assert_eq!(shown, expected, "{show:?} {nodes:?} {asks:?}");
    };
    let all = [("border", false), ("last", true), ("beyond", true), ("end", true)];
    let none = [("border", false), ("last", false), ("beyond", false), ("end", true)];
    check(Show::All, Learns::Nothing, None, &all);
    check(Show::Border, Learns::All, None, &[("border", false), ("beyond", false), ("end", true)]);
    check(Show::Count, Learns::All, None, &[("beyond", false), ("end", true)]);
    check(Show::All, Learns::All, probe(&[]), &all);
    check(Show::All, Learns::All, probe(&[Ask::Nodes, Ask::Blocks]), &all);
    check(Show::All, Learns::All, probe(&[Ask::Blocks]), &none);
    check(Show::All, Learns::Presence, probe(&[Ask::Nodes, Ask::Blocks]), &none);
    check(Show::All, Learns::Nothing, probe(&[Ask::Nodes, Ask::Blocks]), &none);
    check(Show::All, Learns::Nothing, probe(&[Ask::Nodes]), &[("beyond", false), ("end", true)]);
}

#[test]
fn strangers_learn_what_each_question_may_bring() {
    use Learns::{All, Nothing, Presence};
    let strangers = Strangers { nodes: Presence, modules: Nothing, blocks: All, load: Presence, policy: Nothing };
    let policy = DomainPolicy { strangers, ..DomainPolicy::default() };
    let check = |asks: &[Ask], expected: Option<(bool, bool)>| {
        let probe = Probe { ask: asks.to_vec() };
        let full = entry("inner", Outcome::Probed);
        let environment = Environment { flavour: crate::Flavour::Wasm, engine: "Wasmtime".to_owned() };
        let (load, environments) = (Some(NodeLoad::default()), vec![environment]);
        let stack = Stack { entries: vec![NodeReport { load, environments, ..full }], ..Stack::default() };
        let out = policy.shown_outside(stack.clone(), false, Some(&probe));
        let told = out.entries.first().map(|entry| (!entry.environments.is_empty(), entry.load.is_some()));
        assert_eq!(told, expected, "{asks:?}");
        assert_eq!(out.withheld.nodes, u32::from(expected.is_none()));
        assert_eq!(policy.shown_outside(stack.clone(), false, None).entries, stack.entries, "a user is told all");
    };
    check(&[], Some((false, false)));
    check(&[Ask::Nodes], Some((false, false)));
    check(&[Ask::Blocks], Some((true, false)));
    check(&[Ask::Load], Some((false, false)));
    check(&[Ask::Modules, Ask::Policy], None);
    check(&[Ask::Modules, Ask::Blocks, Ask::Load], Some((true, false)));
}

#[test]
fn who_proves_to_be_nobody_is_a_stranger() {
    let probe = Body::Probe(Probe::default());
    let refused = Outcome::Refused(Refusal::new(RefusalKind::BadSignature, "it does not fit"));
    for (is_signed, own, expected) in [
        (true, Some(&Outcome::Probed), false),
        (false, Some(&Outcome::Probed), true),
        (true, Some(&refused), true),
        (true, None, true),
    ] {
        assert_eq!(stranger(&probe, is_signed, own).is_some(), expected);
    }
    // Whoever asks for something else learns as much as by asking for nodes, until the controller knows it.
    let remove =
        Body::Remove(Remove { module: "example.org/m".parse().unwrap(), force: false, all: false, epoch: None });
    let refused = |kind| Outcome::Refused(Refusal::new(kind, "why"));
    for (is_signed, own, expected) in [
        (true, Some(Outcome::Removed), false),
        (false, Some(Outcome::Removed), false),
        (true, Some(refused(RefusalKind::NotInstalled)), false),
        (false, Some(refused(RefusalKind::NotInstalled)), true),
        (true, Some(refused(RefusalKind::UnknownUser)), true),
        (true, Some(refused(RefusalKind::BadSignature)), true),
        (true, Some(refused(RefusalKind::OutsideDomain)), true),
        (true, Some(refused(RefusalKind::Replayed)), true),
        (true, Some(Outcome::NotTargeted { reason: String::new() }), false),
        (false, Some(Outcome::NotTargeted { reason: String::new() }), true),
        (true, None, true),
    ] {
        let asked = stranger(&remove, is_signed, own.as_ref());
        assert_eq!(asked, expected.then(Probe::default), "{is_signed} {own:?}");
    }
}

fn entry(node: &str, outcome: Outcome) -> NodeReport {
    NodeReport {
        node: node.parse().unwrap(),
        address: "10.0.0.1".parse().unwrap(),
        outcome,
        took_us: 5,
        hop: None,
        load: None,
        modules: Vec::new(),
        blocks: Vec::new(),
        environments: Vec::new(),
        policy: None,
    }
}
