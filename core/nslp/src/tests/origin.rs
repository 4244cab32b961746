// SPDX-License-Identifier: Apache-2.0
//! Requests of the node's own clients.

use super::*;

#[test]
fn a_request_goes_to_the_controller_and_down_the_path_at_once() {
    let mut node = Node::new(|_| {});
    node.local(7, 1, path()).unwrap();
    let request = node.asked();
    let sent = node.sent_request();
    assert_eq!(sent.session, SESSION);
    assert_eq!(sent.timeout, Duration::from_secs(5));
    assert_eq!((sent.hops, sent.request()), (None, (Some(4_500), probe(1))));
    node.status(sent.handle, SendStatus::Sent);
    node.at(100);
    node.receive_response(&response(1, &["r1", "r2"]));
    node.quiet();
    node.at(250);
    node.report(request, report("me", "0.0.0.0"));
    let result = node.result(7);
    assert_eq!(names(&result.nodes), ["me", "r1", "r2"]);
    assert_eq!(result.nodes[0].address, ip("10.0.0.1"));
    assert_eq!((result.session, result.incomplete, result.took_us), (SESSION, None, 250_000));
    assert_eq!(result.end, Some(PathEnd::Unreachable), "as the last node says");
    node.forgets(true);
}

#[test]
fn a_request_without_a_path_stays_here() {
    let mut node = Node::new(|_| {});
    node.local(7, 1, None).unwrap();
    node.quiet();
    let request = node.asked();
    node.report(request, report("me", "0.0.0.0"));
    let result = node.result(7);
    assert_eq!(names(&result.nodes), ["me"]);
    assert_eq!((result.incomplete, result.end), (None, None));
    node.forgets(false);
}

#[test]
fn new_sessions_have_ids_of_their_own() {
    let mut node = Node::new(|_| {});
    let mut sessions = Vec::new();
    for id in 0..2 {
        let request =
            LocalRequest { id: LocalId(id), message: probe(1), path: None, session: None, timeout: Duration::ZERO };
        node.nslp.handle_local(node.now, request).unwrap();
        let asked = node.asked();
        node.report(asked, report("me", "0.0.0.0"));
        sessions.push(node.result(id).session);
    }
    assert_ne!(sessions[0], sessions[1]);
    assert_eq!(node.nslp.state_counts().sessions, 2);
}

/// Goal: nobody guesses session ids from fewer bits than the seed has.
#[test]
fn session_ids_depend_on_every_byte_of_the_seed() {
    let session = |seed: [u8; 32]| {
        let config = Config::new("me".parse().unwrap(), NSLP_ID);
        let mut node = Node { nslp: Nslp::new(config, seed), now: Now::default(), by_datagram: false };
        let request =
            LocalRequest { id: LocalId(1), message: probe(1), path: None, session: None, timeout: Duration::ZERO };
        node.nslp.handle_local(node.now, request).unwrap();
        let asked = node.asked();
        node.report(asked, report("me", "0.0.0.0"));
        node.result(1).session
    };
    let one_bit = |byte| std::array::from_fn(|at| if at == byte { 0x80 } else { 0 });
    let sessions: std::collections::BTreeSet<_> = (0..=32).map(|byte| session(one_bit(byte))).collect();
    assert_eq!(sessions.len(), 33);
}

#[test]
fn a_host_leaves_its_refusal_out() {
    let mut node = Node::new(|config| config.host_only = true);
    node.local(7, 1, path()).unwrap();
    let (request, sent) = (node.asked(), node.sent_request());
    node.report(request, not_a_node());
    node.status(sent.handle, SendStatus::Sent);
    node.receive_response(&response(1, &["r1"]));
    let result = node.result(7);
    assert_eq!(names(&result.nodes), ["r1"]);
    assert_eq!(result.incomplete, None);
}

#[test]
fn a_host_that_is_asked_alone_says_that_it_is_no_node() {
    let mut node = Node::new(|config| config.host_only = true);
    node.local(7, 1, None).unwrap();
    let request = node.asked();
    node.report(request, not_a_node());
    assert_eq!(names(&node.result(7).nodes), ["me"]);
}

#[test]
fn a_host_with_no_node_on_the_path_says_so() {
    for (own, entries) in [(not_a_node(), vec![]), (report("me", "0.0.0.0"), vec!["me"])] {
        let mut node = Node::new(|config| config.host_only = true);
        node.local(7, 1, path()).unwrap();
        let (request, sent) = (node.asked(), node.sent_request());
        node.report(request, own);
        node.no_peer(sent.handle);
        let result = node.result(7);
        assert_eq!(names(&result.nodes), entries);
        assert_eq!(kind(result.incomplete.as_ref()), Some(RefusalKind::NoNode));
        node.forgets(true);
    }
}

#[test]
fn a_node_alone_on_the_path_is_the_whole_answer() {
    let mut node = Node::new(|_| {});
    node.local(7, 1, path()).unwrap();
    let (request, sent) = (node.asked(), node.sent_request());
    node.no_peer(sent.handle);
    node.report(request, report("me", "0.0.0.0"));
    let result = node.result(7);
    assert_eq!((names(&result.nodes), result.incomplete), (vec!["me"], None));
}

#[test]
fn a_flow_to_the_node_itself_ends_here() {
    let mut node = Node::new(|_| {});
    let to_itself = LocalPath { source: ip("10.0.0.1"), destination: ip("10.0.1.1") };
    node.local(7, 1, Some(to_itself)).unwrap();
    node.quiet();
    let request = node.asked();
    node.report(request, report("me", "0.0.0.0"));
    let result = node.result(7);
    assert_eq!((names(&result.nodes), result.end), (vec!["me"], Some(PathEnd::Destination)));
    node.forgets(false);
}

#[test]
fn gist_may_know_better_that_the_flow_ends_here() {
    let mut node = Node::new(|_| {});
    node.local(7, 1, path()).unwrap();
    let (request, sent) = (node.asked(), node.sent_request());
    node.report(request, report("me", "0.0.0.0"));
    node.nslp.handle_api_error(node.now, sent.handle, own_destination());
    let result = node.result(7);
    assert_eq!((names(&result.nodes), result.incomplete), (vec!["me"], None));
}

#[test]
fn another_refusal_of_gist_leaves_the_stack_incomplete() {
    let mut node = Node::new(|_| {});
    node.local(7, 1, path()).unwrap();
    let (request, sent) = (node.asked(), node.sent_request());
    node.nslp.handle_api_error(node.now, sent.handle, ApiError::TableFull);
    node.report(request, report("me", "0.0.0.0"));
    let result = node.result(7);
    assert_eq!(result.incomplete.unwrap().detail, "me could not send the request on: the routing table is full");
}

#[test]
fn what_is_no_request_is_refused_at_once() {
    let mut node = Node::new(|_| {});
    let mut check = |message: &str, path: Option<LocalPath>| {
        let id = LocalId(1);
        let request = LocalRequest { id, message: message.to_owned(), path, session: None, timeout: Duration::ZERO };
        let refusal = node.nslp.handle_local(node.now, request).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::BadRequest);
        assert_eq!(node.nslp.state_counts(), crate::StateCounts::default());
    };
    check("PROBE\n\n", None);
    let mixed = LocalPath { source: ip("10.0.0.1"), destination: ip("2001:db8::1") };
    check(&probe(1), Some(mixed));
}

#[test]
fn an_early_timeout_does_nothing() {
    let mut node = Node::new(|_| {});
    node.local(7, 1, path()).unwrap();
    node.sent_request();
    assert_eq!(node.nslp.poll_timeout(), Some((netserv_model::Instant::from_millis(5000), "nslp answer")));
    node.nslp.handle_timeout(node.now);
    node.quiet();
    assert_eq!(node.nslp.state_counts().pending, 1);
}
