// SPDX-License-Identifier: Apache-2.0
//! Soft state: refreshes, expiry, and what keeps connections.

use std::net::SocketAddr;
use std::time::Duration;

use netserv_model::Instant;
use netserv_wire::gist::{Message, MessageType};

use super::net::Net;
use super::script::*;
use super::{NSLP, RELIABLE, UNRELIABLE, config, flow, seeds, send, session};
use crate::{ApiCall, Channel, Config, Counter, Engine, Event, Notification, SendStatus, StateCounts, Transmit};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_route_is_refreshed_between_half_and_three_quarters_of_its_validity() {
    let mut times = Vec::new();
    for seed in 0..40 {
        let mut s = Script { engine: Engine::new(config(0xaa), [seed; 32]) };
        s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
        s.establish(0);
        s.recv_kind(0, MessageType::Data);
        s.recv_nothing(14_999);
        let (at, reason) = s.engine.poll_timeout().unwrap();
        assert_eq!(reason, "route refresh");
        assert!((Instant::from_millis(15_000)..=Instant::from_millis(22_500)).contains(&at), "{at:?}");
        s.engine.handle_timeout(at);
        let Some(Transmit::QMode { payload, .. }) = s.engine.poll_transmit() else { panic!() };
        let response = response_to(&parse_datagram(&payload)).emit_datagram();
        s.engine.handle_datagram(at, datagram(&response));
        let Some(Transmit::Datagram { payload, .. }) = s.engine.poll_transmit() else { panic!() };
        assert_eq!(parse_datagram(&payload).kind, MessageType::Confirm);
        s.recv_nothing(29_999);
        times.push(at);
    }
    times.sort_unstable();
    assert!(times[39].since(times[0]) > 5 * SECOND, "refreshes do not spread: {times:?}");
}

/// Goal: if a node has more rows than `refreshes-per-second` refreshes in time, their validity grows.
///
/// RFC 5971 §4.4.4: with many flows, the validity grows, so that refreshes are not more than the node is to answer.
#[test]
fn with_many_rows_they_are_valid_for_longer() {
    let mut s = Script::with(Config { refreshes_per_second: 10, ..config(0xaa) });
    let mut granted = Vec::new();
    for number in 0..301 {
        s.send(0, &query(number));
        let response = s.recv(0);
        granted.push(response.nli.clone().unwrap().validity);
        s.send(0, &confirm_to(&response));
    }
    assert!(granted[..=150].iter().all(|validity| *validity == 30 * SECOND));
    assert_eq!(granted[300], 60 * SECOND);
    s.at(45_000);
    let left = s.engine.state_counts().responding;
    assert!((70..80).contains(&left), "each row lives as long as it was told, and {left} are left");
    s.at(60_300);
    assert_eq!(s.engine.state_counts().responding, 0);
}

#[test]
fn messages_go_while_a_refresh_is_under_way() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    s.establish(0);
    s.recv(0);
    let at = s.next_ms();
    s.recv_kind(at, MessageType::Query);
    s.call(at + 100, send(2, 5, downstream(), UNRELIABLE, b"y"));
    s.recv_kind(at + 100, MessageType::Data);
}

#[test]
fn a_refresh_that_nobody_answers_ends_the_route() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    s.establish(0);
    s.recv(0);
    s.events();
    let started = s.engine.poll_timeout().unwrap().0;
    let started_ms = started.as_nanos() / 1_000_000 + 1;
    for (after, expected) in [(0, true), (499, false), (500, true), (1500, true), (3500, true), (7499, false)] {
        s.at(started_ms + after);
        assert_eq!(s.engine.poll_transmit().is_some(), expected, "{after} ms after the refresh began");
    }
    assert_eq!(s.events(), []);
    s.recv_nothing(started_ms + 7500);
    assert!(matches!(&s.events()[..], [Event::NetworkNotification { kind: Notification::RouteDeletion, .. }]));
    assert_eq!(s.engine.state_counts().querying, 0);
}

#[test]
fn the_querier_forgets_a_route_that_carries_nothing() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    answer_refreshes(&mut s, 119_999);
    assert_eq!(s.engine.state_counts().querying, 1);
    s.at(120_000);
    assert_eq!(s.engine.state_counts().querying, 0);
    assert_eq!(s.engine.poll_timeout(), None);
}

#[test]
fn the_nslp_says_how_long_a_route_lives() {
    let lifetime = |seconds| ApiCall::SetStateLifetime {
        nslp_id: NSLP,
        session: Some(session(5)),
        mri: Some(downstream()),
        lifetime: Duration::from_secs(seconds),
    };
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    answer_refreshes(&mut s, 1000);
    s.call(1000, lifetime(5));
    s.recv_nothing(5999);
    assert_eq!(s.engine.state_counts().querying, 1);
    s.recv_nothing(6000);
    assert_eq!(s.engine.state_counts().querying, 0);

    s.call(7000, send(2, 5, downstream(), UNRELIABLE, b"x"));
    s.recv_kind(7000, MessageType::Query);
    s.statuses();
    s.call(7001, lifetime(0));
    assert_eq!(s.statuses(), [(2, SendStatus::Failed(crate::FailReason::Cancelled))]);
    s.recv_nothing(60_000);
    assert_eq!(s.engine.poll_timeout(), None);
}

#[test]
fn a_lifetime_can_be_for_all_flows_or_all_sessions() {
    let other_flow = || flow(HERE, "10.0.9.8".parse().unwrap());
    for (session_given, mri_given, left) in [(true, true, 3), (true, false, 2), (false, true, 2), (false, false, 0)] {
        let mut s = Script::new();
        for (handle, (number, mri)) in
            (1..).zip([(5, downstream()), (5, other_flow()), (6, downstream()), (6, other_flow())])
        {
            s.call(0, send(handle, number, mri, UNRELIABLE, b"x"));
        }
        let (session, mri) = (session_given.then(|| session(5)), mri_given.then(downstream));
        s.call(1, ApiCall::SetStateLifetime { nslp_id: NSLP + 1, session, mri: mri.clone(), lifetime: Duration::ZERO });
        assert_eq!(s.engine.state_counts().querying, 4, "another NSLP's state stays");
        s.call(1, ApiCall::SetStateLifetime { nslp_id: NSLP, session, mri, lifetime: Duration::ZERO });
        assert_eq!(s.engine.state_counts().querying, left);
    }
}

#[test]
fn the_responder_forgets_a_route_that_is_not_refreshed() {
    let mut s = Script::new();
    s.be_queried(0, 5);
    s.be_queried(20_000, 5);
    s.at(49_999);
    assert_eq!(s.engine.state_counts().responding, 1);
    assert_eq!(s.events(), []);
    s.at(50_000);
    assert_eq!(s.engine.state_counts().responding, 0);
    assert!(matches!(&s.events()[..], [Event::NetworkNotification { kind: Notification::RouteDeletion, .. }]));
    assert_eq!(s.engine.poll_timeout(), None);
}

/// Goal: routes in both modes live for as long as the NSLP wants, also on a path that loses datagrams, and end when it
/// does not want them any more: then the path falls silent.
#[test]
fn routes_live_for_as_long_as_they_are_wanted() {
    for seed in seeds(10) {
        let mut net = Net::with(3, seed, |config| {
            (config.query_budget, config.refresh_budget, config.validity) = (20 * SECOND, 15 * SECOND, 60 * SECOND);
        });
        net.loss_permille = 50;
        let mri = net.flow();
        for number in 0..6 {
            let attributes = if number % 2 == 0 { RELIABLE } else { UNRELIABLE };
            for node in [0, 1] {
                net.call(node, send(number, number, mri.clone(), attributes, b"text")).unwrap();
            }
        }
        net.run(10 * SECOND);
        for _ in 0..10 {
            for number in 0..6 {
                for node in [0, 1] {
                    net.call(node, send(9, number, mri.clone(), UNRELIABLE, b"more")).unwrap();
                }
            }
            net.run(60 * SECOND);
        }
        for (node, querying) in [(0, 6), (1, 6), (2, 0)] {
            assert_eq!(net.nodes[node].engine.state_counts().querying, querying);
        }
        assert_eq!(net.open_connections(), 2);
        for number in 0..6 {
            net.lifetime_zero(0, number, mri.clone());
            net.lifetime_zero(1, number, mri.clone());
        }
        let before = net.datagrams;
        net.run(100 * SECOND);
        assert_eq!(net.datagrams, before);
        assert_eq!(net.open_connections(), 0);
        for node in &net.nodes {
            let StateCounts { querying, responding, associations, pending_bytes, .. } = node.engine.state_counts();
            assert_eq!((querying, responding, associations, pending_bytes), (0, 0, 0, 0));
            assert_eq!(node.engine.poll_timeout(), None);
        }
    }
}

#[test]
fn a_refresh_over_a_connection_opens_no_other() {
    let mut net = Net::new(2, 1);
    let mri = net.flow();
    for round in 0..20 {
        net.call(0, send(round, 1, mri.clone(), RELIABLE, b"text")).unwrap();
        net.run(60 * SECOND);
    }
    assert_eq!(net.received(1).len(), 20);
    assert_eq!(net.nodes[0].engine.counters().get(Counter::AssociationsOpened), 1);
    assert!(net.nodes[0].engine.counters().get(Counter::QueriesSent) > 40);
}

#[test]
fn hellos_keep_a_connection_that_is_wanted() {
    let mut s = Script::new();
    let id = s.be_connected(0, 5);
    s.recv_nothing(14_999);
    let (at, reason) = s.engine.poll_timeout().unwrap();
    assert_eq!(reason, "association hello");
    assert!(at <= Instant::from_millis(22_500));
    s.engine.handle_timeout(at);
    let hello = s.recv_stream(22_500, id).remove(0);
    assert_eq!((hello.kind, hello.hello_id, hello.reply_wanted), (MessageType::MaHello, Some(0), false));
    assert!(!hello.context_free && hello.source_is_signaller && hello.nslp_id == 0);
}

/// Goal: peers that were connected together do not all say Hello together. Method: who accepted, by what 32 seeds draw.
#[test]
fn the_first_hello_comes_at_random_too() {
    let mut times: Vec<u64> = (0..32)
        .map(|seed| {
            let mut s = Script { engine: Engine::new(config(0xaa), [seed; 32]) };
            s.be_connected(0, 5);
            let (at, reason) = s.engine.poll_timeout().unwrap();
            assert_eq!(reason, "association hello");
            at.as_nanos() / 1_000_000
        })
        .collect();
    assert!(times.iter().all(|at| (15_000..=22_500).contains(at)), "{times:?}");
    times.sort_unstable();
    times.dedup();
    assert!(times.len() > 24, "{times:?}");
}

#[test]
fn a_hello_that_asks_is_answered() {
    let mut s = Script::new();
    let id = s.be_connected(0, 5);
    s.send_stream(10, id, &hello(77, true));
    let reply = s.recv_stream(10, id).remove(0);
    assert_eq!((reply.kind, reply.hello_id, reply.reply_wanted), (MessageType::MaHello, Some(77), false));
    s.send_stream(11, id, &hello(0, false));
    s.send_stream(12, id, &hello(5, false));
    s.recv_nothing(12);
}

#[test]
fn a_peer_that_is_silent_for_long_is_asked_and_then_given_up() {
    for answers in [true, false] {
        let mut s = Script::with(Config { validity: 1000 * SECOND, ..config(0xaa) });
        let id = s.be_connected(0, 5);
        let mut asked = None;
        for at_ms in (0..80_000).step_by(100) {
            s.at(at_ms);
            while let Some(transmit) = s.engine.poll_transmit() {
                let Transmit::Stream { bytes, .. } = transmit else { continue };
                let message = Message::parse(&bytes).unwrap();
                if message.reply_wanted && asked.is_none() {
                    asked = Some(at_ms);
                    if answers {
                        s.send_stream(at_ms, id, &hello(message.hello_id.unwrap(), false));
                    }
                }
            }
            if asked.is_some_and(|asked| at_ms > asked + 5200) {
                break;
            }
        }
        assert!(asked.unwrap() >= 30_000);
        assert_eq!(s.engine.state_counts().associations, usize::from(answers));
        assert_eq!(s.engine.state_counts().responding, 1);
    }
}

#[test]
fn an_idle_connection_is_closed_after_the_hold_time_and_not_before() {
    let mut s = Script::new();
    let id = s.be_connected(0, 5);
    let call = ApiCall::SetStateLifetime {
        nslp_id: NSLP,
        session: Some(session(5)),
        mri: Some(flow(THERE, HERE).inverted()),
        lifetime: Duration::ZERO,
    };
    s.call(1000, call);
    s.recv_nothing(20_000);
    s.send_stream(20_000, id, &hello(0, false));
    s.recv_nothing(49_999);
    assert_eq!(s.transmit(50_000), Transmit::Close { association: id });
    assert_eq!(s.engine.state_counts().associations, 0);
    assert_eq!(s.count(Counter::AssociationsFailed), 0);
    // What is still on its way on it is nobody's.
    s.send_stream(50_001, id, &hello(5, true));
    s.recv_nothing(50_001);
}

#[test]
fn a_connection_that_shows_no_confirm_is_closed() {
    let mut s = Script::new();
    let now = s.at(0);
    let id = s.engine.handle_accepted(now, HERE, SocketAddr::new(THERE, 40_000), Channel::Plain);
    s.send_stream(4000, id, &hello(0, false));
    s.recv_nothing(4999);
    assert_eq!(s.transmit(5000), Transmit::Close { association: id });
}

#[test]
fn a_connection_that_does_not_open_is_given_up() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), RELIABLE, b"x"));
    let query = s.recv(0);
    s.send(0, &response_to(&query));
    let Transmit::Connect { association, .. } = s.transmit(0) else { panic!() };
    s.recv_nothing(4999);
    assert_eq!(s.transmit(5000), Transmit::Close { association });
    s.recv_kind(5000, MessageType::Query);
}

fn hello(number: u32, ask: bool) -> Message {
    let mut hello = Message::new(MessageType::MaHello, 0);
    hello.hello_id = Some(number);
    hello.reply_wanted = ask;
    hello
}

/// Plays a peer that answers every Query of this node until `until_ms`.
fn answer_refreshes(s: &mut Script, until_ms: u64) {
    let mut now = Instant::from_millis(0);
    loop {
        while let Some(transmit) = s.engine.poll_transmit() {
            let Transmit::QMode { payload, .. } = transmit else { continue };
            let query = parse_datagram(&payload);
            let response = response_to(&query).emit_datagram();
            s.engine.handle_datagram(now, datagram(&response));
        }
        let next = s.engine.poll_timeout().map(|(at, _)| at).filter(|at| *at <= Instant::from_millis(until_ms));
        let Some(at) = next else { return };
        now = at;
        s.engine.handle_timeout(now);
    }
}
