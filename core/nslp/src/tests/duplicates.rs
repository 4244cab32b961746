// SPDX-License-Identifier: Apache-2.0
//! The same request again.

use super::*;

#[test]
fn a_duplicate_on_its_way_waits_for_the_one_answer() {
    let mut node = Node::new(|_| {});
    node.receive(&flow(), 8, probe(1).as_bytes());
    let (request, sent) = (node.asked(), node.sent_request());
    node.receive(&flow(), 8, probe(1).as_bytes());
    node.quiet();
    assert!(node.nslp.poll_request().is_none());
    node.no_peer(sent.handle);
    node.report(request, report("me", "0.0.0.0"));
    node.sent_response();
    assert_eq!(node.nslp.counters().requests_duplicate, 1);
    node.forgets(true);
}

#[test]
fn a_late_duplicate_gets_the_same_answer() {
    let mut node = Node::new(|_| {});
    node.receive(&flow(), 8, probe(1).as_bytes());
    let (request, sent) = (node.asked(), node.sent_request());
    node.no_peer(sent.handle);
    node.report(request, report("me", "0.0.0.0"));
    let first = node.sent_response();
    node.at(9_000);
    node.receive(&flow(), 8, probe(1).as_bytes());
    assert_eq!(node.sent_response(), first);
    assert!(node.nslp.poll_request().is_none());
    node.forgets(true);
}

#[test]
fn the_same_nonce_with_another_text_is_refused() {
    let mut node = Node::new(|_| {});
    node.receive(&flow(), 8, probe(1).as_bytes());
    node.asked();
    node.sent_request();
    node.receive(&flow(), 8, probe(1).replace("ask: nodes", "ask: load").as_bytes());
    let answer = node.sent_response();
    assert!(answer.entries[0].outcome.is_refused_for(RefusalKind::Replayed));
    assert!(node.nslp.poll_request().is_none());
}

#[test]
fn a_request_that_comes_back_is_told_so_at_once() {
    let mut node = Node::new(|_| {});
    node.local(7, 1, path()).unwrap();
    node.asked();
    node.sent_request();
    node.receive(&flow(), 8, probe(1).as_bytes());
    let answer = node.sent_response();
    assert_eq!((answer.entries.len(), kind(answer.incomplete.as_ref())), (0, Some(RefusalKind::Replayed)));
}

#[test]
fn callers_with_the_same_request_share_the_answer() {
    let mut node = Node::new(|_| {});
    node.local(7, 1, path()).unwrap();
    node.local(8, 1, path()).unwrap();
    let (request, sent) = (node.asked(), node.sent_request());
    assert!(node.nslp.poll_request().is_none());
    node.no_peer(sent.handle);
    node.report(request, report("me", "0.0.0.0"));
    let (first, second) = (node.result(7), node.result(8));
    assert_eq!(first, second);
    node.local(9, 1, path()).unwrap();
    assert_eq!(node.result(9).nodes, first.nodes);
    let changed = probe(1).replace("ask: nodes", "ask: load");
    let request = LocalRequest {
        id: LocalId(1),
        message: changed,
        path: path(),
        session: Some(SESSION),
        timeout: Duration::ZERO,
    };
    assert_eq!(node.nslp.handle_local(node.now, request).unwrap_err().kind, RefusalKind::Replayed);
}

#[test]
fn a_later_request_of_the_session_keeps_the_state_downstream() {
    let mut node = Node::new(|_| {});
    for (nonce, at) in [(1, 0), (2, 8_000)] {
        node.at(at);
        node.receive(&flow(), 8, probe(nonce).as_bytes());
        let (request, sent) = (node.asked(), node.sent_request());
        node.no_peer(sent.handle);
        node.report(request, report("me", "0.0.0.0"));
        node.sent_response();
    }
    node.at(12_000);
    node.quiet();
    assert_eq!(node.nslp.state_counts().finished, 1);
    node.forgets(true);
}
