// SPDX-License-Identifier: Apache-2.0
//! A REMOVE follows what its SETUP brought to nodes beside the path, whether it names the shape or not.

use std::collections::BTreeSet;

use netserv_model::off_path::{OffPath, Shape};
use netserv_model::target::Target;
use netserv_model::{Digest, Instant, ModuleRef, Signature};
use netserv_wire::nslp::Message;

use super::off_path::Mesh;
use super::*;
use crate::exchanges::{Arrival, Beyond, Exchange, Own, Requester};
use crate::limits::{BROUGHT_MAX, BROUGHT_TO_MAX};
use crate::off_path::Brought;

/// `0 – 1` is the path, `0 – 2 – 3` and `1 – 4` lead away from it.
fn mesh() -> Mesh {
    let mut links = vec![BTreeSet::new(); 5];
    for (a, b) in [(0, 1), (0, 2), (2, 3), (1, 4)] {
        links[a].insert(b);
        links[b].insert(a);
    }
    Mesh::new(links, vec![0, 1], 1)
}

fn setup(nonce: u8) -> String {
    let module: ModuleRef = "example.org/m@1.0.0".parse().unwrap();
    let builder = RequestBuilder::setup(&module, "http://h/p", Digest([4; 32]), Duration::from_secs(600));
    signed(builder.off_path(OffPath { shape: Shape::Hose, radius: 2 }), nonce)
}

fn remove(target: &Target, nonce: u8) -> String {
    signed(RequestBuilder::remove(&"example.org/m".parse().unwrap()).target(target), nonce)
}

fn signed(builder: RequestBuilder, nonce: u8) -> String {
    let unsigned = builder.user(&"jane".parse().unwrap()).build(UnixTime(0), Nonce([nonce; 16])).unwrap();
    unsigned.with_signature(Signature([0; 64])).unwrap().as_str().to_owned()
}

#[test]
fn a_remove_without_the_shape_follows_its_setup_beside_the_path() {
    let mut mesh = mesh();
    mesh.send(&setup(1));
    assert_eq!(mesh.has, (0..5).collect());
    let result = mesh.send(&remove(&Target::default(), 2));
    assert_eq!(mesh.has, BTreeSet::new());
    let beside = result.beside.nodes.iter().filter(|beside| beside.report.outcome == Outcome::Removed);
    assert_eq!((beside.count(), result.beside.missing), (3, 0), "{result:?}");
}

#[test]
fn a_remove_at_one_node_of_the_path_takes_what_that_node_brought_and_no_more() {
    let mut mesh = mesh();
    mesh.send(&setup(1));
    let target = Target { nodes: vec!["n0".parse().unwrap()], ..Target::default() };
    mesh.send(&remove(&target, 2));
    assert_eq!(mesh.has, BTreeSet::from([1, 4]));
    // What went already is no reason to leave the others.
    mesh.send(&remove(&Target::default(), 3));
    assert_eq!(mesh.has, BTreeSet::new());
}

/// Goal: who sends a REMOVE as if it followed a SETUP changes nothing about whom it is for.
#[test]
fn only_who_brought_a_module_has_it_removed_where_the_remove_does_not_lead() {
    let target = Target { nodes: vec!["another".parse().unwrap()], ..Target::default() };
    let to_me = Mri::PathCoupled(PathCoupled::new(ip("10.0.0.9"), ip("10.0.0.1")).unwrap());
    for (brings, passed_by) in [(true, None), (false, Some(()))] {
        let mut node = Node::new(|_| {});
        if brings {
            node.receive(&to_me, 8, format!("NETSERV/1 HOP\nbudget-ms: 9000\nbeside: 0 0\n\n{}", setup(1)).as_bytes());
            let request = node.asked();
            let mut report = report("me", "0.0.0.0");
            report.outcome = Outcome::Installed { lease_s: 60 };
            node.report(request, report);
            while node.nslp.poll_api_call().is_some() {}
        }
        let forged = format!("NETSERV/1 HOP\nbudget-ms: 9000\nbeside: 0 0\n\n{}", remove(&target, 2));
        node.receive(&to_me, 8, forged.as_bytes());
        let (_, request) = node.nslp.poll_request().unwrap();
        assert_eq!(request.passed_by.map(drop), passed_by);
    }
}

#[test]
fn what_was_brought_is_remembered_within_bounds() {
    let mut brought = Brought::default();
    let now = Instant::from_millis(0);
    let text = Message::parse(setup(1).as_bytes()).unwrap();
    for number in 0..=BROUGHT_MAX {
        // Families differ in the first half of their sessions.
        let session = SessionId(u128::try_from(number).unwrap().to_le_bytes());
        let neighbour = IpAddr::from([10, 0, 0, 1]);
        brought.note_to(now, session, &text, &[(neighbour, neighbour)]);
    }
    assert_eq!(brought.len(), BROUGHT_MAX);
    // Of one module, those that were brought it last.
    let mut brought = Brought::default();
    for n in 0..=u8::try_from(BROUGHT_TO_MAX).unwrap() {
        let at = Instant::from_millis(u64::from(n));
        brought.note_to(at, SESSION, &text, &[(IpAddr::from([10, 0, 0, n]), IpAddr::from([10, 0, 0, 99]))]);
    }
    let message = Message::parse(remove(&Target::default(), 2).as_bytes()).unwrap();
    let arrival = Arrival::own(message, Requester::Nobody, None, None);
    let mut exchange = Exchange::new(now, RequestId(1), arrival, Beyond::nobody(None));
    assert!(brought.followed(now, SESSION, &exchange).is_empty(), "nothing was removed yet");
    let mut report = report("me", "0.0.0.0");
    report.outcome = Outcome::Removed;
    exchange.own = Own::Reported(Box::new(report));
    let followed = brought.followed(now, SESSION, &exchange);
    assert_eq!((followed.len(), followed[0].0), (BROUGHT_TO_MAX, IpAddr::from([10, 0, 0, 1])));
    assert!(brought.followed(now, SessionId([9; 16]), &exchange).is_empty(), "another session");
    assert!(brought.followed(Instant::from_millis(700_000), SESSION, &exchange).is_empty(), "its time is up");
}
