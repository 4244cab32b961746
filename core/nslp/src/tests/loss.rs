// SPDX-License-Identifier: Apache-2.0
//! Answers that never come, come late, or go nowhere.

use netserv_gist::{FailReason, IcmpKind, Notification};

use super::*;

#[test]
fn a_node_answers_before_the_one_upstream_gives_up() {
    for (end, next) in [(300, 150), (1_000, 500), (4_000, 3_500), (20_000, 19_500)] {
        let mut node = Node::new(|_| {});
        node.receive_within(end, &probe(1));
        let (request, sent) = (node.asked(), node.sent_request());
        assert_eq!((sent.hops, sent.request()), (Some(8), (Some(next), probe(1))));
        node.status(sent.handle, SendStatus::Sent);
        node.report(request, report("me", "0.0.0.0"));
        node.at(end - 1);
        node.quiet();
        node.at(end);
        let answer = node.sent_response();
        assert_eq!(names(&answer.entries), ["me"]);
        let detail = format!("the node after me did not answer within {end} ms");
        assert_eq!(answer.incomplete, Some(Refusal::new(RefusalKind::Timeout, detail)));
        assert_eq!(node.nslp.counters().requests_timed_out, 1);
        node.forgets(true);
    }
}

#[test]
fn without_a_hop_or_time_left_the_request_goes_no_further() {
    for (hops, ms, kind, detail) in [
        (0, 4_000, RefusalKind::QuotaExceeded, "the request has passed as many nodes as it may at me"),
        (8, 100, RefusalKind::Timeout, "the request's time allows no node after me"),
    ] {
        let mut node = Node::new(|_| {});
        let data = format!("NETSERV/1 HOP\nbudget-ms: {ms}\n\n{}", probe(1));
        node.receive(&flow(), hops, data.as_bytes());
        node.quiet();
        let request = node.asked();
        node.report(request, report("me", "0.0.0.0"));
        let answer = node.sent_response();
        assert_eq!(names(&answer.entries), ["me"]);
        assert_eq!(answer.incomplete, Some(Refusal::new(kind, detail)));
        node.forgets(false);
    }
}

#[test]
fn a_slow_controller_is_reported_as_such() {
    slow_controller(&probe(1), RefusalKind::Timeout);
}

/// A package that takes long to fetch or compile is no failure.
#[test]
fn a_setup_that_takes_long_is_accepted() {
    slow_controller(&follow::setup(1, "m"), RefusalKind::InProgress);
}

fn slow_controller(request: &str, kind: RefusalKind) {
    let mut node = Node::new(|_| {});
    node.receive_within(2_000, request);
    let (request, _) = (node.asked(), node.sent_request());
    node.receive_response(&response(1, &["r2"]));
    node.at(2_000);
    let answer = node.sent_response();
    assert_eq!((names(&answer.entries), &answer.incomplete), (vec!["me", "r2"], &None));
    assert!(answer.entries[0].outcome.is_refused_for(kind));
    assert_eq!(answer.entries[0].address, ip("10.0.0.1"));
    node.report(request, report("me", "0.0.0.0"));
    assert_eq!(node.nslp.counters().reports_late, 1);
    node.forgets(true);
}

#[test]
fn late_and_stray_responses_are_counted() {
    let mut node = Node::new(|_| {});
    node.local(7, 1, path()).unwrap();
    let (request, _) = (node.asked(), node.sent_request());
    node.report(request, report("me", "0.0.0.0"));
    node.receive_response(&response(2, &["stray"]));
    node.receive_response(&Response { session: SessionId([9; 16]), ..response(1, &["stray"]) });
    assert_eq!(node.nslp.counters().responses_late, 2);
    node.quiet();
    node.at(5_000);
    assert_eq!(kind(node.result(7).incomplete.as_ref()), Some(RefusalKind::Timeout));
    node.receive_response(&response(1, &["late"]));
    assert_eq!(node.nslp.counters().responses_late, 3);
    node.forgets(true);
}

#[test]
fn a_broken_connection_makes_the_node_ask_again() {
    for cut in [Notification::CommunicationFailure, Notification::RouteDeletion, Notification::LastNode] {
        let mut node = Node::new(|_| {});
        node.local(7, 1, path()).unwrap();
        let (request, sent) = (node.asked(), node.sent_request());
        node.status(sent.handle, SendStatus::Sent);
        node.report(request, report("me", "0.0.0.0"));
        node.at(1_000);
        node.notify(cut);
        let again = node.sent_request();
        assert_eq!((sent.request(), again.request()), ((Some(4_500), probe(1)), (Some(3_500), probe(1))));
        assert_eq!((again.hops, again.timeout), (None, Duration::from_secs(4)));
        node.status(again.handle, SendStatus::Sent);
        node.receive_response(&response(1, &["r1"]));
        assert_eq!(names(&node.result(7).nodes), ["me", "r1"]);
        assert_eq!(node.nslp.counters().requests_resent, 1);
        node.forgets(true);
    }
}

#[test]
fn a_node_that_vanished_is_not_taken_for_the_end() {
    let mut node = Node::new(|_| {});
    node.local(7, 1, path()).unwrap();
    let (request, sent) = (node.asked(), node.sent_request());
    node.report(request, report("me", "0.0.0.0"));
    node.status(sent.handle, SendStatus::Sent);
    node.notify(Notification::CommunicationFailure);
    let again = node.sent_request();
    node.no_peer(again.handle);
    let result = node.result(7);
    assert_eq!((names(&result.nodes), kind(result.incomplete.as_ref())), (vec!["me"], Some(RefusalKind::Timeout)));
}

#[test]
fn what_is_not_waited_for_is_not_sent_again() {
    let mut node = Node::new(|_| {});
    node.local(7, 1, path()).unwrap();
    let (request, sent) = (node.asked(), node.sent_request());
    node.notify(Notification::CommunicationFailure);
    node.quiet();
    node.status(sent.handle, SendStatus::Sent);
    node.notify(Notification::StatusChange(netserv_gist::RouteStatus::Bad));
    node.quiet();
    node.receive_response(&response(1, &["r1"]));
    node.notify(Notification::CommunicationFailure);
    node.quiet();
    node.report(request, report("me", "0.0.0.0"));
    assert_eq!(names(&node.result(7).nodes), ["me", "r1"]);
}

#[test]
fn only_the_endpoint_shows_that_the_path_ends() {
    let silent = "nobody after me answered; there may be nodes further on";
    let hindered = "nobody after me answered; 10.0.0.9 does not let Queries pass; there may be nodes further on";
    let firewall = NoPeerReason::Hindered { kind: IcmpKind::Prohibited, reporter: [10, 0, 0, 9].into() };
    for (reason, end, incomplete) in [
        (NoPeerReason::Timeout, None, Some(silent)),
        (firewall, None, Some(hindered)),
        (NoPeerReason::Unreachable, Some(PathEnd::Unreachable), None),
        (NoPeerReason::EndpointFound, Some(PathEnd::EndpointFound), None),
    ] {
        let mut node = Node::new(|_| {});
        node.local(7, 1, path()).unwrap();
        let (request, sent) = (node.asked(), node.sent_request());
        node.report(request, report("me", "0.0.0.0"));
        node.status(sent.handle, SendStatus::NoPeer(reason));
        let result = node.result(7);
        assert!(result.incomplete.iter().all(|refusal| refusal.kind == RefusalKind::Timeout));
        let detail = result.incomplete.as_ref().map(|refusal| refusal.detail.as_str());
        assert_eq!((detail, result.end), (incomplete, end));
    }
}

#[test]
fn a_stack_that_does_not_say_how_its_end_is_known_may_have_another() {
    let mut node = Node::new(|_| {});
    node.local(7, 1, path()).unwrap();
    let (request, sent) = (node.asked(), node.sent_request());
    node.report(request, report("me", "0.0.0.0"));
    node.status(sent.handle, SendStatus::Sent);
    node.receive_response(&Response { end: None, ..response(1, &["r1"]) });
    let result = node.result(7);
    assert_eq!((names(&result.nodes), result.end), (vec!["me", "r1"], None));
    let detail = "the last node that answered does not say how it knows that it is the last";
    assert_eq!(result.incomplete.unwrap().detail, detail);
}

#[test]
fn failures_that_time_does_not_mend_end_the_wait() {
    for (reason, resends) in [
        (FailReason::Association, 2),
        (FailReason::NoAssociation, 2),
        (FailReason::TooLong, 0),
        (FailReason::Timeout, 0),
        (FailReason::Cancelled, 0),
    ] {
        let mut node = Node::new(|_| {});
        node.local(7, 1, path()).unwrap();
        let request = node.asked();
        node.report(request, report("me", "0.0.0.0"));
        for _ in 0..=resends {
            let sent = node.sent_request();
            node.status(sent.handle, SendStatus::Failed(reason));
        }
        let result = node.result(7);
        assert_eq!(kind(result.incomplete.as_ref()), Some(RefusalKind::Timeout));
        assert_eq!(node.nslp.counters().requests_resent, resends);
    }
}

#[test]
fn an_answer_that_gets_lost_is_counted_and_given_again() {
    let mut node = Node::new(|_| {});
    node.receive(&flow(), 8, probe(1).as_bytes());
    let (request, sent) = (node.asked(), node.sent_request());
    node.no_peer(sent.handle);
    node.report(request, report("me", "0.0.0.0"));
    let answer = node.sent();
    node.status(answer.handle, SendStatus::Failed(FailReason::NoAssociation));
    node.receive(&flow(), 8, probe(1).as_bytes());
    let again = node.sent();
    assert_eq!(again.data, answer.data);
    node.nslp.handle_api_error(node.now, again.handle, ApiError::NoRoute);
    assert_eq!(node.nslp.counters().responses_lost, 2);
    node.forgets(true);
}
