// SPDX-License-Identifier: Apache-2.0
//! Paths that are checked when routes change.

use std::collections::BTreeSet;

use netserv_model::route::RouteChange;
use netserv_model::{Digest, Signature};

use super::follow::installed;
use super::*;
use crate::limits::{CHECK_AGAIN_MIN, CHECK_INTERVAL, CHECKS_AT_ONCE_MAX, FLOWS_SCANNED_MAX};

fn mri(number: usize) -> Mri {
    let [.., high, low] = number.to_be_bytes();
    Mri::PathCoupled(PathCoupled::new(ip("10.0.0.1"), ip(&format!("10.8.{high}.{low}"))).unwrap())
}

fn toward(prefix: &str) -> RouteChange {
    RouteChange::Toward(vec![prefix.parse().unwrap()])
}

/// A node with a lease along each of so many flows.
fn with_flows(count: usize) -> Node {
    let mut node = Node::new(|_| {});
    let module = "example.org/m@1.0.0".parse().unwrap();
    for number in 0..count {
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&number.to_be_bytes());
        let builder = RequestBuilder::setup(&module, "http://h/p", Digest([4; 32]), Duration::from_secs(600));
        let unsigned = builder.user(&"jane".parse().unwrap()).build(UnixTime(0), Nonce(nonce)).unwrap();
        let text = unsigned.with_signature(Signature([6; 64])).unwrap().as_str().to_owned();
        node.receive(&mri(number), 9, text.as_bytes());
        let (request, sent) = (node.asked(), node.sent());
        node.report(request, installed("me"));
        node.no_peer(sent.handle);
        while node.nslp.poll_api_call().is_some() {}
    }
    assert_eq!(node.nslp.state_counts().leases, count);
    node
}

fn checked(node: &mut Node) -> BTreeSet<Mri> {
    let calls = std::iter::from_fn(|| node.nslp.poll_api_call());
    let checked = |call| {
        let ApiCall::InvalidateRoutingState { nslp_id: Some(NSLP_ID), session: None, mri, bad: false, data: None } =
            call
        else {
            return None;
        };
        Some(mri)
    };
    calls.filter_map(checked).collect()
}

#[test]
fn only_paths_whose_destination_is_under_a_changed_prefix_are_checked() {
    let mut node = with_flows(3 * 256);
    node.nslp.handle_routes(node.now, toward("10.8.1.64/26"));
    let mut found = checked(&mut node);
    assert_eq!(found.len(), CHECKS_AT_ONCE_MAX);
    node.at(u64::try_from(CHECK_INTERVAL.as_millis()).unwrap());
    found.extend(checked(&mut node));
    assert_eq!(found, (256 + 64..256 + 128).map(mri).collect());
    // What changes meanwhile comes next, and no other path with it.
    node.at(5000);
    node.nslp.handle_routes(node.now, toward("10.8.0.0/32"));
    node.nslp.handle_routes(node.now, toward("10.8.2.255/32"));
    node.nslp.handle_routes(node.now, toward("10.8.2.254/32"));
    assert_eq!(checked(&mut node), BTreeSet::from([mri(0)]));
    node.at(5000 + 2 * u64::try_from(CHECK_AGAIN_MIN.as_millis()).unwrap());
    assert_eq!(checked(&mut node), BTreeSet::from([mri(767), mri(766)]));
    node.nslp.handle_routes(node.now, toward("fd00::/8"));
    node.at(9000);
    assert!(checked(&mut node).is_empty());
}

#[test]
fn flows_scanned_max_flows_are_looked_at_at_once() {
    let mut node = with_flows(FLOWS_SCANNED_MAX + 1);
    let last = FLOWS_SCANNED_MAX;
    let [.., high, low] = last.to_be_bytes();
    node.nslp.handle_routes(node.now, toward(&format!("10.8.{high}.{low}/32")));
    assert!(checked(&mut node).is_empty(), "it is the last one in order");
    node.at(u64::try_from(CHECK_INTERVAL.as_millis()).unwrap());
    assert_eq!(checked(&mut node), BTreeSet::from([mri(last)]));
}
