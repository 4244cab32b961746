// SPDX-License-Identifier: Apache-2.0
//! Associations with TLS (RFC 5971 §5.7.3): what is offered, chosen, shared and refused.

use std::net::SocketAddr;
use std::time::Duration;

use netserv_wire::gist::{Message, MessageType};

use super::net::Net;
use super::script::*;
use super::{RELIABLE, SECURE, UNRELIABLE, config, flow, send};
use crate::{
    ApiError, AssociationId, Channel, Config, Counter, Event, FailReason, FlowRule, FlowScope, Notification, Prefix,
    SendStatus, TlsPolicy, Transmit,
};

#[test]
fn a_node_that_requires_tls_proposes_nothing_else() {
    for (policy, profiles) in [
        (TlsPolicy::Off, vec![vec![1]]),
        (TlsPolicy::Offered, vec![vec![2, 1], vec![1]]),
        (TlsPolicy::Required, vec![vec![2, 1]]),
    ] {
        let mut s = script(policy);
        s.call(0, send(1, 5, downstream(), RELIABLE, b"x"));
        let query = s.recv_kind(0, MessageType::Query);
        assert_eq!(query.stack_proposal.unwrap().profiles, profiles);
        assert!(query.stack_configuration.unwrap().options.iter().all(|option| option.port.is_none()));

        s.send(1, &with_stack(super::script::query(6), None));
        let response = s.recv_kind(1, MessageType::Response);
        assert_eq!(response.stack_proposal.unwrap().profiles, profiles, "whatever the Query proposes");
        let options = response.stack_configuration.unwrap().options;
        let ports: Vec<(u8, u8, Option<u16>)> =
            options.iter().map(|option| (option.protocol, option.profile, option.port)).collect();
        let expected = profiles
            .iter()
            .zip(1..)
            .map(|(profile, number)| (1, number, Some(if profile.len() == 2 { 30_001 } else { 30_000 })));
        assert_eq!(ports, expected.collect::<Vec<_>>());
    }
}

#[test]
fn a_secure_message_goes_over_tls_and_says_by_whom_it_was_sent() {
    let mut net = Net::with(2, 1, |config| config.tls = TlsPolicy::Offered);
    net.call(0, send(1, 5, net.flow(), SECURE, b"hush")).unwrap();
    net.run(Duration::from_secs(1));
    assert_eq!(net.statuses(0), [(1, SendStatus::Sent)]);
    assert_eq!(net.connections(), (0, 1));
    let [Event::RecvMessage { attributes: SECURE, validated: true, peer_name: Some(name), .. }] =
        &net.nodes[1].events[..]
    else {
        panic!("{:?}", net.nodes[1].events)
    };
    assert_eq!(name, "10.0.0.1");
    // The answer goes back over the same connection.
    net.call(1, send(2, 5, net.flow().inverted(), SECURE, b"back")).unwrap();
    net.run(Duration::from_secs(1));
    let back = net.nodes[0].events.iter().any(|event| {
        matches!(event, Event::RecvMessage { attributes: SECURE, peer_name: Some(name), .. } if name == "10.0.0.2")
    });
    assert!(back, "{:?}", net.nodes[0].events);
    assert_eq!(net.connections(), (0, 1));
    for node in [0, 1] {
        assert_eq!(net.nodes[node].engine.counters().get(Counter::AssociationsSecured), 1);
    }
}

#[test]
fn nodes_that_require_tls_send_nothing_without_it() {
    let mut net = Net::with(3, 1, |config| config.tls = TlsPolicy::Required);
    for (handle, attributes) in [(1, UNRELIABLE), (2, RELIABLE), (3, SECURE)] {
        net.call(0, send(handle, handle, net.flow(), attributes, b"x")).unwrap();
    }
    net.run(Duration::from_secs(1));
    assert_eq!(net.statuses(0), [(1, SendStatus::Sent), (2, SendStatus::Sent), (3, SendStatus::Sent)]);
    assert_eq!(net.connections(), (0, 1));
    let secure =
        |event: &Event| matches!(event, Event::RecvMessage { attributes, validated: true, .. } if attributes.secure);
    assert_eq!(net.nodes[1].events.iter().filter(|event| secure(event)).count(), 3);
}

#[test]
fn nodes_of_different_policies_find_the_best_stack_that_both_have() {
    use TlsPolicy::{Off, Offered, Required};
    for (querier, responder, connections) in [
        (Off, Offered, (1, 0)),
        (Offered, Off, (1, 0)),
        (Offered, Required, (0, 1)),
        (Required, Offered, (0, 1)),
        (Off, Required, (0, 0)),
        (Required, Off, (0, 0)),
    ] {
        let mut net = Net::with(2, 1, |config| {
            config.tls = if config.peer_identity[0] == 1 { querier } else { responder };
        });
        net.call(0, send(1, 5, net.flow(), RELIABLE, b"x")).unwrap();
        net.run(Duration::from_secs(1));
        assert_eq!(net.connections(), connections, "{querier:?} {responder:?}");
        assert_eq!(net.received(1).len(), connections.0 + connections.1);
    }
}

#[test]
fn refreshes_keep_the_connection_with_tls() {
    for policy in [TlsPolicy::Offered, TlsPolicy::Required] {
        let mut net = Net::with(2, 1, |config| config.tls = policy);
        for handle in 1..=10 {
            net.call(0, send(handle, 5, net.flow(), SECURE, b"x")).unwrap();
            net.run(Duration::from_secs(60));
        }
        assert_eq!(net.received(1).len(), 10);
        assert_eq!(net.connections(), (0, 1), "{policy:?}");
        // One that breaks is replaced by one like it.
        net.cut_connections();
        net.run(Duration::from_secs(2));
        net.call(0, send(11, 5, net.flow(), RELIABLE, b"x")).unwrap();
        net.run(Duration::from_secs(2));
        assert_eq!((net.received(1).len(), net.connections()), (11, (0, 2)), "{policy:?}");
    }
}

#[test]
fn what_comes_past_tls_where_it_is_required_is_not_believed() {
    let mut s = script(TlsPolicy::Required);
    // A Confirm by datagram makes no route.
    s.send(0, &query(5));
    let response = s.recv_kind(0, MessageType::Response);
    s.send(0, &confirm_to(&response));
    assert_eq!((s.engine.state_counts().responding, s.count(Counter::StacksRefused)), (0, 1));
    // A connection without TLS is closed.
    let now = s.at(1);
    let plain = s.engine.handle_accepted(now, HERE, SocketAddr::new(THERE, 40_000), Channel::Plain);
    assert_eq!(s.transmit(1), Transmit::Close { association: plain });
    assert_eq!((s.engine.state_counts().associations, s.count(Counter::AssociationsRefused)), (0, 1));
    // Data by datagram of the peer that a Response names is handed up unvalidated.
    s.call(2, send(1, 7, downstream(), RELIABLE, b"x"));
    let query = s.recv_kind(2, MessageType::Query);
    let response = with_stacks(response_to(&query), TlsPolicy::Required, Some(30_000));
    s.send(2, &response);
    assert!(matches!(s.transmit(2), Transmit::Connect { tls: true, .. }));
    s.send(3, &data(downstream().inverted(), 7, b"lies"));
    let events = s.events();
    assert!(matches!(events[..], [Event::RecvMessage { validated: false, .. }]), "{events:?}");
}

#[test]
fn a_peer_without_tls_is_no_peer_for_secure_messages() {
    for (policy, statuses) in [
        (TlsPolicy::Offered, [(1, SendStatus::Failed(FailReason::NoStack)), (2, SendStatus::Sent)]),
        (TlsPolicy::Required, [1, 2].map(|handle| (handle, SendStatus::Failed(FailReason::NoStack)))),
    ] {
        let mut net = Net::with(2, 1, |config| {
            config.tls = if config.peer_identity[0] == 1 { policy } else { TlsPolicy::Off };
        });
        net.call(0, send(1, 5, net.flow(), SECURE, b"hush")).unwrap();
        net.call(0, send(2, 5, net.flow(), RELIABLE, b"loud")).unwrap();
        net.run(Duration::from_secs(1));
        assert_eq!(net.statuses(0), statuses);
        assert_eq!(net.connections(), (usize::from(policy == TlsPolicy::Offered), 0));
    }
    let mut s = script(TlsPolicy::Off);
    assert_eq!(s.try_call(0, send(1, 5, downstream(), SECURE, b"x")), Err(ApiError::SecureUnsupported));
}

/// Method: on the way, somebody takes TLS out of the Response's proposal.
#[test]
fn bidding_down_is_noticed() {
    let mut q = script(TlsPolicy::Offered);
    q.call(0, send(1, 5, downstream(), SECURE, b"hush"));
    q.call(0, send(2, 6, downstream(), RELIABLE, b"loud"));
    for _ in 0..2 {
        let query = q.recv_kind(0, MessageType::Query);
        q.send(1, &response_to(&query));
        if query.session == Some(super::session(6)) {
            assert!(matches!(q.transmit(1), Transmit::Connect { tls: false, .. }));
        }
    }
    assert_eq!(q.statuses(), [(1, SendStatus::Failed(FailReason::NoStack))]);

    let mut r = script(TlsPolicy::Offered);
    r.send(0, &with_stacks(query(5), TlsPolicy::Offered, None));
    let response = r.recv_kind(0, MessageType::Response);
    let mut confirm = first_confirm_to(&response);
    confirm.stack_proposal = with_stack(confirm.clone(), None).stack_proposal;
    let now = r.at(1);
    let id = r.engine.handle_accepted(now, HERE, SocketAddr::new(THERE, 40_000), Channel::Plain);
    r.send_stream(1, id, &confirm);
    assert_eq!(r.transmit(1), Transmit::Close { association: id });
    assert_eq!((r.engine.state_counts().responding, r.count(Counter::StacksRefused)), (0, 1));
}

#[test]
fn a_connection_is_shared_only_if_it_protects_enough() {
    let mut s = script(TlsPolicy::Offered);
    s.call(0, send(1, 5, downstream(), RELIABLE, b"loud"));
    let (plain, _) = s.connect(0);
    s.recv_stream(0, plain);
    // The same flow gets a second connection when a message needs it, and another flow shares that one.
    s.call(10, send(2, 5, downstream(), SECURE, b"hush"));
    s.call(10, send(3, 5, downstream(), RELIABLE, b"behind"));
    let query = s.recv_kind(10, MessageType::Query);
    assert_eq!(query.stack_proposal.as_ref().unwrap().profiles, [[2, 1]]);
    let tls = respond(&mut s, 10, &query).expect("a connection of its own");
    open(&mut s, 11, tls);
    let sent: Vec<Option<Vec<u8>>> = (0..3).flat_map(|_| s.recv_stream(11, tls)).map(|m| m.nslp_data).collect();
    assert_eq!(sent[1..], [Some(b"hush".to_vec()), Some(b"behind\0\0".to_vec())]);
    s.call(20, send(4, 6, downstream(), SECURE, b"hush"));
    let query = s.recv_kind(20, MessageType::Query);
    assert_eq!(respond(&mut s, 20, &query), None, "it is shared");
    assert_eq!(s.recv_stream(20, tls).len(), 1, "the Confirm");
    assert_eq!(s.recv_stream(20, tls)[0].nslp_data.as_deref(), Some(&b"hush"[..]));
    // What needs no protection may have it.
    s.call(30, send(5, 7, downstream(), RELIABLE, b"loud"));
    let query = s.recv_kind(30, MessageType::Query);
    assert_eq!(respond(&mut s, 30, &query), None);
    s.recv_stream(30, tls);
    assert_eq!(s.recv_stream(30, tls)[0].nslp_data.as_deref(), Some(&b"loud"[..]));
}

#[test]
fn a_responder_answers_over_a_connection_only_if_it_protects_enough() {
    let mut s = script(TlsPolicy::Offered);
    let plain = be_connected(&mut s, 0, 5, Channel::Plain);
    s.send(1, &Message { nslp_data: None, ..with_stacks(query(6), TlsPolicy::Required, None) });
    assert!(s.recv_kind(1, MessageType::Response).stack_proposal.is_some(), "a connection of its own is wanted");
    s.send(2, &with_stacks(query(6), TlsPolicy::Offered, None));
    assert!(s.recv_stream(2, plain)[0].stack_proposal.is_none(), "what is there will do");
    let tls = be_connected(&mut s, 3, 7, Channel::Tls { peer: None, flows: FlowScope::default() });
    for policy in [TlsPolicy::Required, TlsPolicy::Offered, TlsPolicy::Off] {
        s.send(4, &with_stacks(query(8), policy, None));
        assert_eq!(s.recv_stream(4, tls)[0].kind, MessageType::Response, "the better one will do for {policy:?}");
    }
}

#[test]
fn a_connection_that_is_not_what_was_agreed_on_ends() {
    for channel in [Channel::Plain, Channel::Tls { peer: None, flows: FlowScope::default() }] {
        let mut s = script(TlsPolicy::Required);
        s.call(0, send(1, 5, downstream(), SECURE, b"hush"));
        let query = s.recv_kind(0, MessageType::Query);
        let id = respond(&mut s, 0, &query).unwrap();
        let now = s.at(1);
        s.engine.handle_connected(now, id, channel);
        assert_eq!(s.transmit(1), Transmit::Close { association: id });
        assert_eq!((s.count(Counter::AssociationsFailed), s.count(Counter::DataSent)), (1, 0));
    }
}

/// Goal: a peer speaks only about flows that it is authorised for (RFC 5971 §4.4.2), at either end. Method: the first rule that
/// a flow fits decides.
#[test]
fn a_peer_speaks_about_its_flows_only() {
    let prefix = |text: &str, bits| Prefix { address: text.parse().unwrap(), bits };
    let rule = |allow, prefixes| FlowRule { allow, prefixes };
    let all = rule(true, vec![]);
    for (rules, may) in [
        (vec![], true),
        (vec![all.clone()], true),
        (vec![rule(true, vec![prefix("10.0.9.0", 24)])], true),
        (vec![rule(true, vec![prefix("10.7.0.0", 16), prefix("10.0.0.0", 30)])], true),
        (vec![rule(true, vec![prefix("10.7.0.0", 16)])], false),
        (vec![rule(false, vec![prefix("10.0.9.0", 24)]), all.clone()], false),
        (vec![rule(false, vec![prefix("2001:db8::", 32)]), all], true),
    ] {
        let channel = Channel::Tls { peer: Some("there".to_owned()), flows: FlowScope(rules.clone()) };
        let mut s = script(TlsPolicy::Offered);
        s.call(0, send(1, 5, downstream(), SECURE, b"hush"));
        let query = s.recv_kind(0, MessageType::Query);
        let id = respond(&mut s, 0, &query).unwrap();
        let now = s.at(1);
        s.engine.handle_connected(now, id, channel.clone());
        let status = if may { SendStatus::Sent } else { SendStatus::Failed(FailReason::NoStack) };
        assert_eq!(s.statuses(), [(1, status)], "{rules:?}");
        assert_eq!((s.count(Counter::DataSent), s.count(Counter::FlowsForbidden)), (may.into(), (!may).into()));

        let mut s = script(TlsPolicy::Offered);
        let query = Message { mri: Some(flow(THERE, FAR)), ..with_stacks(query_of_peer(), TlsPolicy::Offered, None) };
        s.send(0, &query);
        let response = s.recv_kind(0, MessageType::Response);
        let now = s.at(0);
        let id = s.engine.handle_accepted(now, HERE, SocketAddr::new(THERE, 40_000), channel);
        let confirm = Message { mri: Some(flow(THERE, FAR)), ..first_confirm_to(&response) };
        s.send_stream(0, id, &confirm);
        assert_eq!(s.engine.state_counts().responding, usize::from(may), "{rules:?}");
        if !may {
            assert_eq!(s.transmit(0), Transmit::Close { association: id });
        }
    }
}

fn query_of_peer() -> Message {
    query(5)
}

#[test]
fn a_peer_that_is_refused_gets_nothing_and_is_given_up() {
    let mut s = script(TlsPolicy::Required);
    s.call(0, send(1, 5, downstream(), SECURE, b"hush"));
    for at_ms in [0, 0, 1000] {
        let query = s.recv_kind(at_ms, MessageType::Query);
        let id = respond(&mut s, at_ms, &query).unwrap();
        let now = s.at(at_ms);
        s.engine.handle_closed(now, id, Some("its certificate is of an unknown authority".to_owned()));
    }
    let events = s.events();
    let gone = |event: &Event| matches!(event, Event::NetworkNotification { kind: Notification::RouteDeletion, .. });
    assert!(events.iter().any(gone));
    let failed = SendStatus::Failed(FailReason::Association);
    assert!(events.iter().any(|event| matches!(event, Event::MessageStatus { status, .. } if *status == failed)));
    assert_eq!(s.count(Counter::DataSent), 0);
}

fn script(policy: TlsPolicy) -> Script {
    Script::with(Config { tls: policy, ..config(0xaa) })
}

/// Answers a Query as a node that offers TLS; returns the association if a connection with TLS is opened.
fn respond(s: &mut Script, at_ms: u64, query: &Message) -> Option<AssociationId> {
    s.send(at_ms, &with_stacks(response_to(query), TlsPolicy::Offered, Some(30_000)));
    let opened = s.count(Counter::AssociationsReused) == 0;
    if !opened {
        return None;
    }
    let Transmit::Connect { association, peer, tls: true, .. } = s.transmit(at_ms) else { panic!("no connection") };
    assert_eq!(peer, SocketAddr::new(THERE, 30_001));
    Some(association)
}

fn open(s: &mut Script, at_ms: u64, id: AssociationId) {
    let now = s.at(at_ms);
    s.engine.handle_connected(now, id, Channel::Tls { peer: Some("there".to_owned()), flows: FlowScope::default() });
}

/// Plays a querying peer through the handshake over a connection of its own.
fn be_connected(s: &mut Script, at_ms: u64, number: u64, channel: Channel) -> AssociationId {
    s.send(
        at_ms,
        &with_stacks(query(number), if channel == Channel::Plain { TlsPolicy::Off } else { TlsPolicy::Required }, None),
    );
    let response = s.recv_kind(at_ms, MessageType::Response);
    assert_eq!(response.mri.as_ref(), Some(&flow(THERE, HERE).inverted()));
    let now = s.at(at_ms);
    let id = s.engine.handle_accepted(now, HERE, SocketAddr::new(THERE, 40_000), channel);
    s.send_stream(at_ms, id, &first_confirm_to(&response));
    id
}
