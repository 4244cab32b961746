// SPDX-License-Identifier: Apache-2.0
//! Lost, late and repeated messages, nodes that are not there, and connections that break.

use std::net::SocketAddr;
use std::time::Duration;

use netserv_wire::gist::{ErrorCode, ErrorObject, Message, MessageType, UDP_PORT};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::net::Net;
use super::script::*;
use super::{RELIABLE, UNRELIABLE, flow, seeds, send, session};
use crate::{
    ApiCall, Config, Counter, Event, FailReason, InterfaceId, NoPeerReason, Notification, SendStatus, StateCounts,
    TransferAttributes,
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_query_is_repeated_with_growing_gaps_and_then_given_up() {
    let mut s = Script::new();
    s.call(1000, send(1, 5, downstream(), UNRELIABLE, b"x"));
    let first = s.recv_kind(1000, MessageType::Query);
    s.recv_nothing(1499);
    let second = s.recv_kind(1500, MessageType::Query);
    assert_ne!(first.query_cookie, second.query_cookie);
    s.recv_nothing(2499);
    let third = s.recv_kind(2500, MessageType::Query);
    assert_ne!(second.query_cookie, third.query_cookie);
    s.recv_nothing(2999);
    assert_eq!(s.statuses(), []);
    s.recv_nothing(3000);
    assert_eq!(s.statuses(), [(1, SendStatus::NoPeer(NoPeerReason::Timeout))]);
    assert_eq!(s.engine.state_counts(), StateCounts::default());
    assert_eq!(s.engine.poll_timeout(), None);
}

#[test]
fn a_response_to_any_copy_counts() {
    for copy in [0, 1] {
        let mut s = Script::new();
        s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
        let copies = [s.recv(0), s.recv(500)];
        s.send(600, &response_to(&copies[copy]));
        s.recv_kind(600, MessageType::Confirm);
        s.recv_kind(600, MessageType::Data);
        // The other one may come as well: the Confirm may have been lost.
        s.send(700, &response_to(&copies[1 - copy]));
        s.recv_kind(700, MessageType::Confirm);
        s.recv_nothing(5000);
    }
}

/// Goal: what a message says of the round trip to its sender is that of the copy of the Query that was answered. Method: the
/// second copy is answered, then the first one again, then a refresh; and a peer that queried this node.
#[test]
fn the_round_trip_is_that_of_the_copy_that_was_answered() {
    let rtt = |s: &mut Script, at: u64| {
        s.send(at, &data(downstream().inverted(), 5, b"text"));
        let of = |event| match event {
            Event::RecvMessage { provenance, .. } => Some(provenance.rtt),
            Event::MessageStatus { .. } | Event::NetworkNotification { .. } | Event::Malformed { .. } => None,
        };
        s.events().into_iter().find_map(of).expect("a message is handed up").map(|rtt| rtt.as_millis())
    };
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    let copies = [s.recv(0), s.recv(500)];
    s.send(600, &response_to(&copies[1]));
    assert_eq!(rtt(&mut s, 601), Some(100));
    s.send(700, &response_to(&copies[0]));
    assert_eq!(rtt(&mut s, 701), Some(100), "the same handshake's later answer waited somewhere");
    while s.engine.poll_transmit().is_some() {}
    let refreshed_at = s.next_ms();
    let query = s.recv_kind(refreshed_at, MessageType::Query);
    assert_eq!(rtt(&mut s, refreshed_at + 1), Some(100), "nothing newer is known");
    s.send(refreshed_at + 130, &response_to(&query));
    assert_eq!(rtt(&mut s, refreshed_at + 131), Some(130));

    let mut s = Script::new();
    s.be_queried(0, 5);
    s.send(1, &data(flow(THERE, HERE), 5, b"text"));
    let [.., Event::RecvMessage { provenance, .. }] = &s.events()[..] else { panic!("no message") };
    assert_eq!(provenance.rtt, None);
}

#[test]
fn an_answer_to_an_older_handshake_does_not_count() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    let query = s.recv(0);
    s.send(1, &response_to(&query));
    s.recv(1);
    s.recv(1);
    s.engine.handle_timeout(netserv_model::Instant::from_millis(22_501));
    s.recv_kind(22_501, MessageType::Query);
    s.send(22_502, &response_to(&query));
    assert_eq!(s.count(Counter::ResponsesUnsolicited), 1);
}

#[test]
fn the_endpoint_can_say_that_it_is_the_last() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    let query = s.recv(0);
    s.send_from(1, SocketAddr::new(FAR, UDP_PORT), InterfaceId(1), &error_about(&query, ErrorCode::EndpointFound));
    assert_eq!(s.statuses(), [(1, SendStatus::NoPeer(NoPeerReason::EndpointFound))]);
    // Without the session of the Query nobody can say so.
    s.call(2, send(2, 5, downstream(), UNRELIABLE, b"x"));
    let mut forged = error_about(&query, ErrorCode::EndpointFound);
    forged.error.as_mut().unwrap().session = Some(session(6));
    s.send_from(3, SocketAddr::new(FAR, UDP_PORT), InterfaceId(1), &forged);
    assert_eq!(s.statuses(), []);
    // Nor can a node on the way, which has seen it.
    s.send(4, &error_about(&query, ErrorCode::EndpointFound));
    let refused = FailReason::Rejected { code: 7, subcode: 0 };
    assert_eq!(s.statuses(), [(2, SendStatus::Failed(refused))]);
}

#[test]
fn the_nslp_may_have_less_patience_than_the_node() {
    let mut s = Script::new();
    let ApiCall::SendMessage { handle, nslp_id, session, mri, attributes, sii, data, hops, options, .. } =
        send(1, 5, downstream(), UNRELIABLE, b"x")
    else {
        unreachable!()
    };
    let timeout = Duration::from_millis(700);
    s.call(0, ApiCall::SendMessage { handle, nslp_id, session, mri, attributes, sii, timeout, data, hops, options });
    s.recv(0);
    s.recv(500);
    s.recv_nothing(699);
    assert_eq!(s.statuses(), []);
    s.recv_nothing(700);
    assert_eq!(s.statuses(), [(1, SendStatus::NoPeer(NoPeerReason::Timeout))]);
    s.recv_nothing(5000);
}

#[test]
fn a_lost_confirm_shows_at_the_first_data_and_heals() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"lost"));
    s.establish(0);
    let data = s.recv_kind(0, MessageType::Data);
    s.send(2, &error_about(&data, ErrorCode::NoRoutingState));
    let query = s.recv_kind(2, MessageType::Query);
    s.call(3, send(2, 5, downstream(), UNRELIABLE, b"next"));
    s.send(4, &response_to(&query));
    s.recv_kind(4, MessageType::Confirm);
    assert_eq!(s.recv_kind(4, MessageType::Data).nslp_data.as_deref(), Some(&b"next"[..]));
}

#[test]
fn data_without_a_route_is_refused() {
    let mut s = Script::new();
    s.send(0, &data(flow(THERE, HERE), 5, b"text"));
    let error = s.recv_kind(0, MessageType::Error).error.unwrap();
    assert_eq!(error.error_code(), Some(ErrorCode::NoRoutingState));
    assert_eq!((error.session, error.mri), (Some(session(5)), Some(flow(THERE, HERE))));
    assert_eq!(s.events(), []);
}

#[test]
fn a_responder_drops_its_route_when_the_peer_has_none() {
    let mut s = Script::new();
    s.be_queried(0, 5);
    s.call(1, send(1, 5, flow(THERE, HERE).inverted(), UNRELIABLE, b"up"));
    let data = s.recv_kind(1, MessageType::Data);
    s.events();
    s.send(2, &error_about(&data, ErrorCode::NoRoutingState));
    assert_eq!(s.engine.state_counts().responding, 0);
    assert!(matches!(&s.events()[..], [Event::NetworkNotification { kind: Notification::RouteDeletion, .. }]));
}

/// Goal: who has seen a message and says that its receiver has no state ends nothing; only the receiver does.
#[test]
fn lost_state_is_believed_of_the_peer_alone() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"down"));
    s.establish(0);
    let down = s.recv_kind(0, MessageType::Data);
    s.be_queried(0, 6);
    s.call(1, send(2, 6, flow(THERE, HERE).inverted(), UNRELIABLE, b"up"));
    let up = s.recv_kind(1, MessageType::Data);
    let stranger = SocketAddr::new(FAR, UDP_PORT);
    for (count, data) in (1..).zip([&down, &up]) {
        for code in [ErrorCode::NoRoutingState, ErrorCode::IncorrectlyDelivered] {
            s.send_from(2, stranger, InterfaceId(1), &error_about(data, code));
        }
        s.recv_nothing(2);
        assert_eq!((s.engine.state_counts().responding, s.count(Counter::ErrorsDoubted)), (1, 2 * count));
    }
    s.send(3, &error_about(&down, ErrorCode::NoRoutingState));
    s.recv_kind(3, MessageType::Query);
}

#[test]
fn errors_lead_to_another_try_where_one_can_help() {
    let mut s = Script::new();
    let call = send(1, 5, downstream(), UNRELIABLE, b"x");
    s.call(0, call);
    let query = s.recv(0);
    s.send(1, &error_about(&query, ErrorCode::HopLimitExceeded));
    let query = s.recv_kind(1, MessageType::Query);
    assert_eq!(query.hops, 255);
    s.send(2, &error_about(&query, ErrorCode::HopLimitExceeded));
    assert_eq!(s.statuses(), [(1, SendStatus::Failed(FailReason::Rejected { code: 2, subcode: 0 }))]);

    s.call(3, send(2, 5, downstream(), UNRELIABLE, b"x"));
    s.establish(3);
    let data = s.recv_kind(3, MessageType::Data);
    s.send(4, &error_about(&data, ErrorCode::MessageTooLarge));
    assert!(s.recv_kind(4, MessageType::Query).stack_proposal.is_some());
    s.statuses();

    s.call(5, send(3, 6, downstream(), UNRELIABLE, b"x"));
    let query = s.recv(5);
    s.send(6, &error_about(&query, ErrorCode::MriTooWild));
    assert_eq!(s.statuses(), [(3, SendStatus::Failed(FailReason::Rejected { code: 12, subcode: 0 }))]);
}

#[test]
fn errors_do_not_make_a_node_query_without_end() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    s.establish(0);
    let data = s.recv(0);
    let mut queries = 0;
    for at_ms in (10..5000).step_by(10) {
        s.send(at_ms, &error_about(&data, ErrorCode::NoRoutingState));
        while let Some(transmit) = s.engine.poll_transmit() {
            let crate::Transmit::QMode { payload, .. } = transmit else { continue };
            queries += 1;
            s.send(at_ms, &response_to(&parse_datagram(&payload)));
        }
    }
    assert!((4..=6).contains(&queries), "{queries} Queries in 5 s");
}

/// Goal: what a peer without connections cannot get fails by name, and what fits goes; over both IP versions.
#[test]
fn a_peer_without_connections_gets_what_fits_a_datagram() {
    let far: std::net::IpAddr = "fd00:9::9".parse().unwrap();
    let here: std::net::IpAddr = "fd00::1".parse().unwrap();
    for six in [false, true] {
        let mut s = Script::new();
        let mri = if six { flow(here, far) } else { downstream() };
        let local = if six { here } else { HERE };
        let now = s.at(0);
        let fits = vec![7; crate::limits::DATAGRAM_DATA_BYTES_MAX];
        s.engine.handle_api(now, send(1, 5, mri.clone(), UNRELIABLE, &fits), local).unwrap();
        s.engine.handle_api(now, send(2, 5, mri.clone(), UNRELIABLE, &[7; 500]), local).unwrap();
        s.engine.handle_api(now, send(3, 5, mri, RELIABLE, b"x"), local).unwrap();
        s.recv_kind(0, MessageType::Query);
        // By now the second and the third message want a connection.
        let query = s.recv_kind(0, MessageType::Query);
        let peer = if six { "fd00::2".parse().unwrap() } else { THERE };
        let nli = Some(nli(PEER, peer));
        let response = Message { stack_proposal: None, stack_configuration: None, nli, ..response_to(&query) };
        s.send_from(0, SocketAddr::new(peer, UDP_PORT), InterfaceId(1), &response);
        s.recv_kind(0, MessageType::Confirm);
        assert_eq!(s.recv_kind(0, MessageType::Data).nslp_data, Some(fits), "IPv6: {six}");
        let failed = |reason| SendStatus::Failed(reason);
        let expected = [(3, failed(FailReason::NoConnection)), (2, failed(FailReason::TooLong)), (1, SendStatus::Sent)];
        assert_eq!(s.statuses(), expected, "IPv6: {six}");
    }
}

#[test]
fn a_peer_that_offers_no_stack_fails_what_needs_one() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), RELIABLE, b"x"));
    s.call(0, send(2, 5, downstream(), UNRELIABLE, b"y"));
    let query = s.recv(0);
    s.send(1, &Message { stack_proposal: None, stack_configuration: None, ..response_to(&query) });
    s.recv_kind(1, MessageType::Confirm);
    s.recv_kind(1, MessageType::Data);
    assert_eq!(s.statuses(), [(1, SendStatus::Failed(FailReason::NoConnection)), (2, SendStatus::Sent)]);
}

#[test]
fn a_broken_connection_is_reported_and_replaced() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), RELIABLE, b"maybe"));
    let (association, _) = s.connect(0);
    s.recv_stream(0, association);
    s.events();
    let now = s.at(5);
    s.engine.handle_closed(now, association, Some("reset".to_owned()));
    assert!(matches!(&s.events()[..], [Event::NetworkNotification { kind: Notification::CommunicationFailure, .. }]));
    s.call(6, send(2, 5, downstream(), RELIABLE, b"after"));
    let (second, _) = s.connect(6);
    assert_ne!(association, second);
    assert_eq!(s.recv_stream(6, second)[0].nslp_data.as_deref(), Some(&b"after\0\0\0"[..]));
    assert_eq!(s.statuses(), [(2, SendStatus::Sent)]);
}

/// Goal: a peer that restarts is not asked by all rows at once. Method: the connection that 1,500 rows share is cut; Queries are
/// counted in the first tenth of the time that they have, and a row that has something to send does not wait.
#[test]
fn many_rows_whose_connection_breaks_ask_one_after_the_other() {
    const ROWS: u64 = 1500;
    let mut net = Net::new(2, 1);
    let mri = net.flow();
    for number in 0..ROWS {
        net.call(0, send(number, number, mri.clone(), RELIABLE, b"x")).unwrap();
        net.run(Duration::from_millis(4));
    }
    let queries = |net: &Net| net.nodes[0].engine.counters().get(Counter::QueriesSent);
    let before = queries(&net);
    net.cut_connections();
    net.call(0, send(ROWS, 7, mri, RELIABLE, b"at once")).unwrap();
    net.run(Duration::from_millis(10));
    assert_eq!(net.received(1).last().map(|(text, _)| text.as_str()), Some("at once"));
    net.run(Duration::from_millis(10));
    let first = queries(&net) - before;
    assert!((50..300).contains(&first), "{first} in 20 of {} ms", (ROWS - 100) / 5);
    net.run(Duration::from_millis((ROWS - 100) / 5));
    assert!(queries(&net) - before >= ROWS);
    assert_eq!((net.open_connections(), net.nodes[0].engine.state_counts().querying), (1, 1500));
}

#[test]
fn the_last_node_finds_out_in_time() {
    for (icmp, wait, reason) in [
        (true, Duration::from_millis(4), NoPeerReason::Unreachable),
        (false, Duration::from_secs(2), NoPeerReason::Timeout),
    ] {
        let mut net = Net::new(2, 1);
        net.icmp = icmp;
        let mri = net.flow_beyond();
        net.call(1, send(1, 5, mri, RELIABLE, b"x")).unwrap();
        net.run(wait);
        assert_eq!(net.statuses(1), [(1, SendStatus::NoPeer(reason))]);
    }
}

/// Goal: on a path that loses every fifth datagram, messages that an NSLP repeats get through for every session, each
/// has one status, and nothing is made up. Method: 20 sessions, one message per second and session, for 60 seconds.
#[test]
fn datagrams_get_through_a_lossy_path() {
    for seed in seeds(60) {
        let mut net = lossy_with(seed, 10 * SECOND);
        let mri = net.flow();
        for round in 0..60 {
            for number in 0..20 {
                let text = format!("{number} {round}");
                let call = send(number * 100 + round, number, mri.clone(), UNRELIABLE, text.as_bytes());
                net.call(0, call).unwrap();
            }
            net.run(SECOND);
        }
        net.run(20 * SECOND);
        check_statuses(&net, 1200);
        let received = net.received(1);
        for number in 0..20 {
            let of_session = received.iter().filter(|(text, _)| text.starts_with(&format!("{number} "))).count();
            assert!(of_session >= 10, "session {number} got {of_session} of 60 messages through");
        }
        assert!(received.iter().all(|(_, validated)| *validated));
        assert!(net.nodes[0].engine.state_counts().querying <= 20);
    }
}

/// Goal: reliable messages arrive once and in order although the handshake's datagrams are lost and reordered, and
/// their statuses tell the truth: what is said to be sent arrives, what is said to be not sent does not.
#[test]
fn reliable_messages_arrive_once_and_in_order_on_a_lossy_path() {
    for seed in seeds(60) {
        let mut net = lossy(seed);
        let mri = net.flow();
        for number in 0..5 {
            for index in 0..10 {
                let attributes = TransferAttributes { reliable: index % 3 != 1, ..TransferAttributes::default() };
                let text = format!("{number} {index}");
                net.call(0, send(number * 100 + index, number, mri.clone(), attributes, text.as_bytes())).unwrap();
            }
            net.run(SECOND);
        }
        net.run(40 * SECOND);
        check_statuses(&net, 50);
        let mut sent: Vec<u64> = net.statuses(0).into_iter().filter_map(sent_handle).collect();
        sent.sort_unstable();
        for number in 0..5 {
            let of_session = sent.iter().filter(|handle| *handle / 100 == number);
            let expected: Vec<String> = of_session.map(|handle| format!("{number} {}", handle % 100)).collect();
            assert_eq!(self::of_session(&net, 1, number), expected);
        }
        assert!(sent.len() >= 25, "handshakes get through on the whole");
        assert_eq!(net.open_connections(), 1);
    }
}

/// Goal: where connections are cut at random, each reliable message arrives at most once and in order, and the sender
/// learns of every loss: by the message's status or by a notification of its route.
#[test]
fn cut_connections_lose_nothing_in_silence() {
    for seed in seeds(150) {
        let mut net = lossy(seed);
        let mut rng = StdRng::seed_from_u64(seed);
        let mri = net.flow();
        for index in 0..100 {
            let number = index % 3;
            let text = format!("{number} {index:03}");
            let result = net.call(0, send(index, number, mri.clone(), RELIABLE, text.as_bytes()));
            result.unwrap_or_else(|error| panic!("{error}"));
            net.run(Duration::from_millis(rng.random_range(0..1500)));
            if rng.random_ratio(1, 8) {
                net.cut_connections();
            }
        }
        net.run(60 * SECOND);
        check_statuses(&net, 100);
        let statuses = net.statuses(0);
        for number in 0..3 {
            let received = of_session(&net, 1, number);
            assert!(received.is_sorted() && received.windows(2).all(|pair| pair[0] != pair[1]), "{received:?}");
            let is_of = |handle: &u64| handle % 3 == number;
            let sent = statuses.iter().filter(|(handle, status)| is_of(handle) && *status == SendStatus::Sent).count();
            assert!(received.len() <= sent);
            let failures = failures_of(&net, number);
            assert!(received.len() == sent || failures > 0, "{} of {sent} arrived, nobody was told", received.len());
        }
        // It still works once the connections hold.
        net.nodes[1].events.clear();
        net.loss_permille = 0;
        net.call(0, send(1000, 7, mri, RELIABLE, b"7 end")).unwrap();
        net.run(2 * SECOND);
        assert_eq!(of_session(&net, 1, 7), ["7 end"]);
    }
}

/// Goal: the answer of the responding side comes through after a cut, since the querying side reconnects at once.
#[test]
fn an_answer_survives_a_cut_connection() {
    let mut net = Net::new(2, 1);
    let mri = net.flow();
    net.call(0, send(1, 1, mri.clone(), RELIABLE, b"request")).unwrap();
    net.run(SECOND);
    net.cut_connections();
    net.call(1, send(2, 1, mri.inverted(), RELIABLE, b"answer")).unwrap();
    net.run(SECOND / 10);
    assert_eq!(net.received(0), [("answer".to_owned(), true)]);
}

/// Goal: nodes of the row that do not run GIST, or not this NSLP, do no harm, also where datagrams are lost.
#[test]
fn nodes_in_between_are_passed_by() {
    for seed in seeds(40) {
        let mut net = Net::with(5, seed, |config| config.query_budget = 20 * SECOND);
        net.loss_permille = 100;
        net.nodes[1].gist = false;
        for node in [2, 3] {
            net.nodes[node].engine = crate::Engine::new(Config::new(vec![99; 16]), [99; 32]);
        }
        let mri = net.flow();
        let arrived = (0..20).any(|attempt| {
            net.call(0, send(attempt, 1, mri.clone(), RELIABLE, b"request")).unwrap();
            net.run(11 * SECOND);
            !net.received(4).is_empty()
        });
        assert!(arrived);
        net.call(4, send(2, 1, mri.inverted(), RELIABLE, b"answer")).unwrap();
        net.run(SECOND);
        assert_eq!(net.received(0), [("answer".to_owned(), true)]);
        assert!(net.nodes[2].engine.counters().get(Counter::Bypassed) > 0);
        assert_eq!(net.nodes[2].engine.state_counts(), StateCounts::default());
    }
}

/// Goal: a run is a function of its seed.
#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let mut net = lossy(seed);
        let mri = net.flow();
        for number in 0..10 {
            let attributes = if number % 2 == 0 { RELIABLE } else { UNRELIABLE };
            net.call(0, send(number, number, mri.clone(), attributes, b"text")).unwrap();
            net.run(SECOND / 3);
        }
        net.run(60 * SECOND);
        (net.nodes[0].events.clone(), net.nodes[1].events.clone(), net.datagrams)
    };
    assert_eq!(run(42), run(42));
    assert!((43..50).any(|seed| run(seed).2 != run(42).2));
}

fn lossy(seed: u64) -> Net {
    lossy_with(seed, 30 * SECOND)
}

fn lossy_with(seed: u64, query_budget: Duration) -> Net {
    let mut net = Net::with(2, seed, |config| {
        config.query_budget = query_budget;
        config.refresh_budget = 20 * SECOND;
        config.validity = 60 * SECOND;
    });
    net.loss_permille = 200;
    net.delay = (Duration::from_millis(1), Duration::from_millis(60));
    net
}

/// Checks that each of the messages with the handles that were used has one status.
fn check_statuses(net: &Net, count: usize) {
    let mut handles: Vec<u64> = net.statuses(0).into_iter().map(|(handle, _)| handle).collect();
    assert_eq!(handles.len(), count);
    handles.sort_unstable();
    handles.dedup();
    assert_eq!(handles.len(), count, "a message has two statuses");
}

fn sent_handle((handle, status): (u64, SendStatus)) -> Option<u64> {
    (status == SendStatus::Sent).then_some(handle)
}

fn of_session(net: &Net, node: usize, number: u64) -> Vec<String> {
    let texts = net.received(node).into_iter().map(|(text, _)| text);
    texts.filter(|text| text.starts_with(&format!("{number} "))).collect()
}

fn failures_of(net: &Net, number: u64) -> usize {
    let told = |event: &&Event| match event {
        Event::NetworkNotification { session: of, kind, .. } => {
            *of == session(number) && *kind == Notification::CommunicationFailure
        }
        Event::RecvMessage { .. } | Event::MessageStatus { .. } | Event::Malformed { .. } => false,
    };
    net.nodes[0].events.iter().filter(told).count()
}

/// Returns the peer's Error about a message of this node.
pub(crate) fn error_about(offender: &Message, code: ErrorCode) -> Message {
    let header = offender.emit()[..8].try_into().unwrap();
    let mut object = ErrorObject::new(code, header, true, offender.context_free);
    object.session = offender.session;
    object.mri = offender.mri.clone();
    let mut error = Message::new(MessageType::Error, 0);
    error.nli = Some(nli(PEER, THERE));
    error.error = Some(object);
    error
}
