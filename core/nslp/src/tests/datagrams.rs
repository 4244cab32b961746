// SPDX-License-Identifier: Apache-2.0
//! Neighbours that take no connections.

use netserv_gist::FailReason;
use netserv_gist::limits::DATAGRAM_DATA_BYTES_MAX;

use super::*;
use crate::limits::{RETRANSMISSION_FIRST, RETRANSMISSION_GAP_MAX};

/// Has the node send a request on whose next node takes no connections; returns the first datagram.
fn refused_a_connection(node: &mut Node) -> SentMessage {
    let first = node.sent_request();
    node.by_datagram = true;
    node.status(first.handle, SendStatus::Failed(FailReason::NoConnection));
    let again = node.sent_request();
    assert_eq!(again.data, first.data, "the same text");
    again
}

#[test]
fn a_request_to_a_node_without_connections_is_repeated_until_its_answer_comes() {
    let mut node = Node::new(|_| {});
    node.receive_within(20_000, &probe(1));
    let request = node.asked();
    let sent = refused_a_connection(&mut node);
    node.report(request, report("me", "0.0.0.0"));
    node.status(sent.handle, SendStatus::Sent);
    let (mut at, mut gap) = (0, RETRANSMISSION_FIRST);
    for copy in 1..=5 {
        at += u64::try_from(gap.as_millis()).unwrap();
        node.at(at - 1);
        node.quiet();
        node.at(at);
        let sent = node.sent_request();
        assert_eq!(sent.request().1, probe(1), "copy {copy}");
        // A copy that the limiter drops is made up for by the next.
        let status = if copy == 2 { SendStatus::Failed(FailReason::RateLimited) } else { SendStatus::Sent };
        node.status(sent.handle, status);
        gap = (gap * 2).min(RETRANSMISSION_GAP_MAX);
    }
    assert_eq!(node.nslp.counters().requests_retransmitted, 5);
    node.receive_response(&response(1, &["r2"]));
    node.by_datagram = false;
    let answer = node.sent_response();
    assert_eq!((names(&answer.entries), answer.incomplete), (vec!["me", "r2"], None));
    node.forgets(true);
}

#[test]
fn a_request_that_nobody_answers_is_repeated_no_longer_than_its_time() {
    let mut node = Node::new(|_| {});
    node.receive_within(4_000, &probe(1));
    let request = node.asked();
    let sent = refused_a_connection(&mut node);
    node.status(sent.handle, SendStatus::Sent);
    node.report(request, report("me", "0.0.0.0"));
    node.at(3_999);
    let copies = std::iter::from_fn(|| node.nslp.poll_api_call()).count();
    assert_eq!(copies, 3, "after 500, 1,500 and 3,500 ms");
    node.by_datagram = false;
    node.at(4_000);
    let detail = "the node after me did not answer within 4000 ms";
    assert_eq!(node.sent_response().incomplete, Some(Refusal::new(RefusalKind::Timeout, detail)));
    node.forgets(true);
    assert_eq!(node.nslp.counters().requests_retransmitted, 3);
}

#[test]
fn a_request_that_is_too_long_for_a_datagram_is_refused_by_name() {
    for (reason, told) in [
        (FailReason::TooLong, "takes no connections, and the message is too long for a datagram"),
        // As where TLS is required.
        (FailReason::NoStack, "offers no connection that will do"),
    ] {
        let mut node = Node::new(|_| {});
        node.local(7, 1, path()).unwrap();
        let request = node.asked();
        node.report(request, report("me", "0.0.0.0"));
        let sent = refused_a_connection(&mut node);
        node.status(sent.handle, SendStatus::Failed(reason));
        let incomplete = node.result(7).incomplete.unwrap();
        assert!(incomplete.detail.contains(told), "{incomplete:?}");
        node.by_datagram = false;
        node.forgets(true);
    }
}

/// Goal: who asks by datagram is answered by datagram, again for each copy, and what does not fit is left out, which is said.
#[test]
fn who_asks_by_datagram_is_answered_so_and_told_what_does_not_fit() {
    for (further, whole) in [(0, true), (40, false)] {
        let mut node = Node::new(|_| {});
        let asks = |node: &mut Node| {
            let mut event = received(&flow(), 8, probe(1).as_bytes());
            if let Event::RecvMessage { attributes, .. } = &mut event {
                *attributes = TransferAttributes::default();
            }
            node.nslp.handle_event(node.now, event);
        };
        asks(&mut node);
        let (request, sent) = (node.asked(), node.sent_request());
        asks(&mut node);
        node.quiet();
        if whole {
            node.no_peer(sent.handle);
        } else {
            node.status(sent.handle, SendStatus::Sent);
            let nodes: Vec<String> = (0..further).map(|number| format!("r{number}")).collect();
            node.receive_response(&response(1, &nodes.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        node.by_datagram = true;
        node.report(request, report("me", "0.0.0.0"));
        let answer = node.sent_response();
        assert!(answer.emit().len() <= DATAGRAM_DATA_BYTES_MAX);
        if whole {
            assert_eq!((names(&answer.entries), &answer.incomplete), (vec!["me"], &None));
        } else {
            let incomplete = answer.incomplete.clone().unwrap();
            assert_eq!(incomplete.kind, RefusalKind::QuotaExceeded);
            assert!(incomplete.detail.contains("more than a datagram takes"), "{incomplete:?}");
            assert_eq!(answer.entries.len() + usize::try_from(answer.withheld.nodes).unwrap(), further + 1);
        }
        asks(&mut node);
        assert_eq!(node.sent_response(), answer, "each copy is answered");
    }
}

/// By datagram it would have no answer either, and its user not be told why.
#[test]
fn a_request_to_a_node_that_offers_other_connections_is_refused_at_once() {
    let mut node = Node::new(|_| {});
    node.local(7, 1, path()).unwrap();
    let request = node.asked();
    node.report(request, report("me", "0.0.0.0"));
    let sent = node.sent_request();
    node.status(sent.handle, SendStatus::Failed(FailReason::NoStack));
    assert!(node.result(7).incomplete.unwrap().detail.contains("may want TLS"));
    node.forgets(true);
    assert_eq!(node.nslp.counters().requests_retransmitted, 0);
}
