// SPDX-License-Identifier: Apache-2.0
//! NATs between nodes (RFC 5971 §7.2): those that translate what GIST says, and those that do not.

use std::time::Duration;

use netserv_wire::gist::{AdditionalInfo, ErrorCode, Message, MessageType, Mri};

use super::net::{Nat, Net, OUTSIDE};
use super::script::*;
use super::{RELIABLE, UNRELIABLE, flow, send};
use crate::{Counter, Event, FailReason, SendStatus, StateCounts, limits};

/// Goal: behind a NAT that translates GIST, both modes carry messages both ways, and each node knows the flow by its own
/// addresses. Method: two nodes outside; the one inside asks, the next one answers.
#[test]
fn messages_go_both_ways_through_a_nat_that_knows_gist() {
    for attributes in [UNRELIABLE, RELIABLE] {
        let mut net = Net::new(3, 7);
        net.nat = Some(Nat::new(1, true));
        let inside = net.flow_beyond();
        let Some((_, beyond)) = inside.addresses() else { panic!() };
        let outside = flow(OUTSIDE, beyond);
        net.call(0, send(1, 5, inside.clone(), attributes, b"there")).unwrap();
        net.run(Duration::from_secs(1));
        assert_eq!(net.received(1), [("there".to_owned(), true)]);
        assert_eq!(mris(&net, 1), std::slice::from_ref(&outside));

        net.call(1, send(2, 5, outside.inverted(), attributes, b"and back")).unwrap();
        net.run(Duration::from_secs(1));
        assert_eq!(net.received(0), [("and back".to_owned(), true)]);
        assert_eq!(mris(&net, 0), [inside.inverted()]);

        // Over three refreshes and more.
        for number in 3..6 {
            net.run(Duration::from_secs(25));
            net.call(0, send(number, 5, inside.clone(), attributes, b"again")).unwrap();
        }
        net.run(Duration::from_secs(1));
        assert_eq!(net.received(1).len(), 4);
        assert_eq!(net.statuses(0), [1, 3, 4, 5].map(|handle| (handle, SendStatus::Sent)));
        assert_eq!((net.notifications(0), net.notifications(1)), (vec![], vec![]));
        let counts = net.nodes[1].engine.state_counts();
        assert_eq!((counts.responding, counts.peers), (1, 1));
    }
}

/// Goal: a peer outside that was restarted is found again. Method: it says by an Error, through the NAT, that it has no state.
#[test]
fn a_lost_state_beyond_a_nat_heals() {
    let mut net = Net::new(2, 7);
    net.nat = Some(Nat::new(1, true));
    net.call(0, send(1, 5, net.flow_beyond(), UNRELIABLE, b"one")).unwrap();
    net.run(Duration::from_secs(1));
    net.nodes[1].engine = crate::Engine::new(super::config(2), [9; 32]);
    for (handle, text) in [(2, b"two"), (3, b"six")] {
        net.call(0, send(handle, 5, net.flow_beyond(), UNRELIABLE, text)).unwrap();
        net.run(Duration::from_secs(3));
    }
    let received: Vec<String> = net.received(1).into_iter().map(|(text, _)| text).collect();
    assert_eq!(received, ["one", "six"]);
}

/// Goal: who is behind a NAT that knows nothing of GIST hears so at once. Method: the NAT lets in only what comes from where
/// the Query went, which is the flow's destination.
#[test]
fn the_refusal_of_a_node_beyond_a_nat_comes_through_it() {
    let mut net = Net::new(2, 7);
    net.nat = Some(Nat::new(1, false));
    net.call(0, send(1, 5, net.flow_beyond(), UNRELIABLE, b"x")).unwrap();
    net.run(Duration::from_millis(10));
    let status = SendStatus::Failed(FailReason::Rejected { code: 9, subcode: 4 });
    assert_eq!(net.statuses(0), [(1, status)]);
    assert_eq!(net.nodes[1].engine.state_counts(), StateCounts::default());
}

/// Goal: nothing is kept under a wrong flow. Method: NATs that left out an object with addresses, or tell of another flow.
#[test]
fn what_nats_say_of_a_query_has_to_fit_it() {
    let translated = |types: &[u16]| {
        let mut query = with_nat_traversal(query(5));
        query.nat_traversal.as_mut().unwrap().translated = types.to_vec();
        query
    };
    let told = |mri: Mri| {
        let mut query = with_nat_traversal(query(5));
        query.nat_traversal.as_mut().unwrap().mri = mri;
        query
    };
    let untranslated =
        |query: Message, object: u16| (query, ErrorCode::UntranslatedObject, Some(AdditionalInfo::ObjectType(object)));
    let v6 = flow("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    for (query, code, info) in [
        untranslated(translated(&[]), 0),
        untranslated(translated(&[0]), 2),
        untranslated(translated(&[2]), 0),
        untranslated(with_stack(translated(&[0, 2]), None), 4),
        (told(flow(FAR, HERE).inverted()), ErrorCode::ValueNotSupported, None),
        (told(v6), ErrorCode::ValueNotSupported, None),
    ] {
        let mut s = Script::new();
        s.send(0, &query);
        let error = s.recv_kind(0, MessageType::Error);
        assert_eq!(error.nat_traversal, query.nat_traversal, "it stands first, as it came");
        let object = error.error.unwrap();
        assert_eq!(object.error_code(), Some(code));
        assert!(info.is_none_or(|info| object.infos == [info]));
        assert_eq!(s.engine.state_counts(), StateCounts::default());
    }
}

#[test]
fn what_nats_say_of_a_query_is_bounded() {
    let with = |nats: Vec<Vec<u8>>| {
        let mut query = with_nat_traversal(query(5));
        query.nat_traversal.as_mut().unwrap().nats = nats;
        query
    };
    let rest = with_nat_traversal(query(5)).nat_traversal.unwrap().value_bytes() - 8 + 4;
    let most = limits::NAT_TRAVERSAL_BYTES_MAX - rest;
    for (query, taken) in [
        (with(vec![vec![1]; limits::NATS_MAX]), true),
        (with(vec![vec![1]; limits::NATS_MAX + 1]), false),
        (with(vec![vec![1; most + 2]]), true),
        (with(vec![vec![1; most + 3]]), false),
    ] {
        let mut s = Script::new();
        s.send(0, &query);
        let answer = s.recv(0);
        assert_eq!(answer.kind == MessageType::Response, taken, "{:?}", query.nat_traversal);
        assert_eq!(answer.nat_traversal, query.nat_traversal);
    }
}

/// Goal: only the peer that a NAT gave an address speaks for its flow. Method: Confirms and Data of others, by what is inside.
#[test]
fn a_row_beyond_a_nat_belongs_to_one_peer() {
    let mut s = Script::new();
    s.send(0, &with_nat_traversal(query(5)));
    let response = s.recv_kind(0, MessageType::Response);
    assert!(!response.source_is_signaller, "its source may be translated");
    assert_eq!(response.mri, Some(flow(THERE, HERE).inverted()));
    let confirm = Message {
        mri: Some(flow(FAR, HERE)),
        nli: Some(nli(PEER, FAR)),
        source_is_signaller: false,
        ..confirm_to(&response)
    };
    s.send_from(0, "10.0.0.7:270".parse().unwrap(), crate::InterfaceId(1), &confirm);
    s.send(0, &Message { nli: Some(nli(0xcc, FAR)), ..confirm.clone() });
    s.send(0, &Message { mri: Some(flow(THERE, HERE)), ..confirm.clone() });
    assert_eq!(s.engine.state_counts(), StateCounts::default());
    s.send(0, &confirm);
    assert_eq!(s.engine.state_counts().responding, 1);

    let inside = |identity: u8| Message {
        nli: Some(nli(identity, FAR)),
        source_is_signaller: false,
        ..data(flow(FAR, HERE), 5, b"from inside")
    };
    s.send_from(0, "10.0.0.7:270".parse().unwrap(), crate::InterfaceId(1), &inside(PEER));
    s.send(0, &inside(0xcc));
    assert_eq!((s.count(Counter::DataDropped), s.events()), (2, vec![]));
    s.send(0, &inside(PEER));
    let events = s.events();
    let [Event::RecvMessage { mri, peer, validated: true, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((mri, *peer), (&flow(THERE, HERE), THERE));
}

/// Goal: a Response that NATs changed counts only with a cookie of this node's Query for that very flow.
#[test]
fn a_response_through_nats_needs_a_cookie_of_ours() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    let query = s.recv_kind(0, MessageType::Query);
    let mut response = with_nat_traversal(response_to(&query));
    response.nat_traversal.as_mut().unwrap().mri = downstream();
    response.mri = Some(flow(OUTSIDE, FAR).inverted());
    response.source_is_signaller = false;
    let other_flow = {
        let mut response = response.clone();
        response.nat_traversal.as_mut().unwrap().mri = flow(HERE, THERE);
        response
    };
    let other_cookie = Message { query_cookie: Some(netserv_wire::gist::Cookie(vec![1; 16])), ..response.clone() };
    for wrong in [other_flow, other_cookie] {
        s.send(0, &wrong);
        s.recv_nothing(0);
    }
    // One that says that its source is its own is held to it.
    s.send_from(
        0,
        "10.0.0.7:270".parse().unwrap(),
        crate::InterfaceId(1),
        &Message { source_is_signaller: true, ..response.clone() },
    );
    s.recv_nothing(0);
    // Nobody is sent to that cannot be one host.
    for nobody in ["224.0.0.1", "255.255.255.255", "0.0.0.0", "127.0.0.1"] {
        s.send(0, &Message { nli: Some(nli(PEER, nobody.parse().unwrap())), ..response.clone() });
        s.recv_nothing(0);
    }
    s.send(0, &response);
    let confirm = s.recv_kind(0, MessageType::Confirm);
    assert!(!confirm.source_is_signaller);
    assert_eq!((confirm.mri, confirm.nli.unwrap().address), (Some(downstream()), HERE));
    assert_eq!(s.recv_kind(0, MessageType::Data).mri, Some(downstream()));
    assert_eq!(s.statuses(), [(1, SendStatus::Sent)]);
}

/// Goal: an Error about a Query that NATs changed is understood. Method: the endpoint, which has not the NSLP, says so.
#[test]
fn an_error_through_nats_finds_its_query() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    let query = s.recv_kind(0, MessageType::Query);
    let mut error = super::loss::error_about(&query, ErrorCode::ValueNotSupported);
    error.error.as_mut().unwrap().mri = Some(flow(OUTSIDE, FAR));
    s.send(0, &error);
    assert_eq!(s.events(), [], "of no flow of this node");
    error.nat_traversal = with_nat_traversal(query.clone()).nat_traversal;
    error.nat_traversal.as_mut().unwrap().mri = downstream();
    s.send(0, &error);
    let status = SendStatus::Failed(FailReason::Rejected { code: 10, subcode: 1 });
    assert_eq!(s.statuses(), [(1, status)]);
}

/// Returns the MRIs of what a node received.
fn mris(net: &Net, node: usize) -> Vec<Mri> {
    let mri = |event: &Event| match event {
        Event::RecvMessage { mri, .. } => Some(mri.clone()),
        Event::MessageStatus { .. } | Event::NetworkNotification { .. } | Event::Malformed { .. } => None,
    };
    net.nodes[node].events.iter().filter_map(mri).collect()
}
