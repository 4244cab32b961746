// SPDX-License-Identifier: Apache-2.0
//! Each bound of `limits.rs` and each bound of the configuration, hit.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use netserv_model::Instant;
use netserv_wire::gist::{Cookie, Message, MessageType, Nli, UDP_PORT};

use super::script::*;
use super::{NSLP, RELIABLE, UNRELIABLE, config, flow, send, session};
use crate::limits::*;
use crate::{
    ApiCall, ApiError, Audience, Channel, Config, Counter, Datagram, Engine, Event, FailReason, InterfaceId,
    MessageHandle, RateLimit, SendOptions, SendStatus, SiiHandle, StateCounts, Transmit,
};

const SECOND: Duration = Duration::from_secs(1);
/// As good as no limit.
const FAST: RateLimit = RateLimit { per_second: 1_000_000, burst: 1_000_000 };

#[test]
fn a_payload_fits_one_object() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, &vec![1; DATA_BYTES_MAX]));
    let (association, _) = s.connect(0);
    assert_eq!(s.recv_stream(0, association)[0].nslp_data.as_ref().unwrap().len(), DATA_BYTES_MAX);
    let too_large = s.try_call(1, send(2, 5, downstream(), UNRELIABLE, &vec![1; DATA_BYTES_MAX + 1]));
    assert_eq!(too_large, Err(ApiError::TooLarge { bytes: DATA_BYTES_MAX + 1, max: DATA_BYTES_MAX }));
}

#[test]
fn the_longest_identity_works() {
    let mut s = Script::with(Config { peer_identity: vec![1; PEER_IDENTITY_BYTES_MAX], ..config(0) });
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    assert_eq!(s.recv(0).nli.unwrap().peer_identity.len(), PEER_IDENTITY_BYTES_MAX);
}

#[test]
#[should_panic(expected = "a peer identity of 256 bytes")]
fn a_longer_identity_does_not() {
    Engine::new(Config { peer_identity: vec![1; PEER_IDENTITY_BYTES_MAX + 1], ..config(0) }, [1; 32]);
}

#[test]
fn long_cookies_and_proposals_are_not_given_back() {
    let long_cookie = |bytes| move |response: &mut Message| response.responder_cookie = Some(Cookie(vec![1; bytes]));
    let profiles =
        |count| move |response: &mut Message| response.stack_proposal.as_mut().unwrap().profiles = vec![vec![1]; count];
    check_response(long_cookie(COOKIE_BYTES_MAX), true);
    check_response(long_cookie(COOKIE_BYTES_MAX + 4), false);
    check_response(profiles(STACK_PROFILES_MAX), true);
    check_response(profiles(STACK_PROFILES_MAX + 1), false);
}

fn check_response(change: impl Fn(&mut Message), taken: bool) {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), RELIABLE, b"x"));
    let mut response = response_to(&s.recv(0));
    change(&mut response);
    s.send(1, &response);
    assert_eq!(s.engine.poll_transmit().is_some(), taken);
    assert_eq!(s.count(Counter::ResponsesUnsolicited), u64::from(!taken));
}

#[test]
fn the_routing_table_is_full_at_some_point() {
    let mut s = Script::with(Config { routes_max: 3, ..config(0xaa) });
    s.be_queried(0, 100);
    for number in 0..2 {
        s.call(1, send(number, number, downstream(), UNRELIABLE, b"x"));
        s.recv_kind(1, MessageType::Query);
    }
    assert_eq!(s.try_call(1, send(9, 9, downstream(), UNRELIABLE, b"x")), Err(ApiError::TableFull));
    s.send(2, &query(101));
    let response = s.recv(2);
    s.send(2, &confirm_to(&response));
    assert_eq!((s.engine.state_counts().querying, s.engine.state_counts().responding), (2, 1));
    assert_eq!(s.count(Counter::RoutesRefused), 2);
    assert_eq!(Config::new(vec![1]).routes_max, ROUTES_MAX);
}

#[test]
fn one_peer_does_not_take_the_whole_table() {
    let mut s = Script::with(Config { routes_max: 10, routes_per_site_max: 2, ..config(0xaa) });
    for number in 0..3 {
        s.send(0, &query(number));
        let response = s.recv(0);
        s.send(0, &confirm_to(&response));
    }
    assert_eq!(s.engine.state_counts().responding, 2);
    let (IpAddr::V4(there), elsewhere) = (THERE, IpAddr::V4(Ipv4Addr::new(10, 77, 0, 7))) else { panic!() };
    let [a, b, c, d] = there.octets();
    let next_door = IpAddr::from([a, b, c, d ^ 0x40]);
    for (number, peer, rows) in [(3, next_door, 2), (4, elsewhere, 3)] {
        peer_confirms(&mut s, 0, number, peer);
        assert_eq!(s.engine.state_counts().responding, rows, "{peer}");
    }
    // Its place is free again when a route ends.
    s.at(30_000);
    assert_eq!(s.engine.state_counts().responding, 0);
    s.be_queried(30_000, 3);
}

#[test]
fn there_are_only_so_many_associations() {
    let mut s = Script::with(Config { associations_max: 1, ..config(0xaa) });
    s.be_connected(0, 5);
    // A peer's connection is closed at once.
    let now = s.at(1);
    let refused = s.engine.handle_accepted(now, HERE, SocketAddr::new(FAR, 40_000), Channel::Plain);
    assert_eq!(s.transmit(1), Transmit::Close { association: refused });
    // This node opens none, and sends by datagram what may go so.
    s.call(2, send(1, 6, downstream(), RELIABLE, b"x"));
    s.call(2, send(2, 6, downstream(), UNRELIABLE, b"x"));
    let query = s.recv(2);
    let other = Message { nli: Some(nli(0xcc, THERE)), ..response_to(&query) };
    s.send(3, &other);
    s.recv_kind(3, MessageType::Confirm);
    s.recv_kind(3, MessageType::Data);
    assert_eq!(s.statuses(), [(1, SendStatus::Failed(FailReason::NoConnection)), (2, SendStatus::Sent)]);
    assert_eq!(s.count(Counter::AssociationsRefused), 2);
    assert_eq!(Config::new(vec![1]).associations_max, ASSOCIATIONS_MAX);
}

/// Goal: idle connections, opened again as they end, keep no peer from a new association.
#[test]
fn only_so_many_connections_may_be_silent() {
    let mut s = Script::new();
    let now = s.at(0);
    let silent: Vec<_> = (0..ASSOCIATIONS_UNPROVEN_MAX)
        .map(|number| s.engine.handle_accepted(now, HERE, a_peer(number), Channel::Plain))
        .collect();
    s.recv_nothing(0);
    // The oldest goes for a peer that proves itself, and that one does not go for the next that are silent.
    s.send(1, &with_stack(query(5), None));
    let response = s.recv_kind(1, MessageType::Response);
    let now = s.at(1);
    let proven = s.engine.handle_accepted(now, HERE, SocketAddr::new(THERE, 40_000), Channel::Plain);
    assert_eq!(s.transmit(1), Transmit::Close { association: silent[0] });
    s.send_stream(1, proven, &first_confirm_to(&response));
    for number in 0..3 * ASSOCIATIONS_UNPROVEN_MAX {
        s.engine.handle_accepted(now, HERE, a_peer(number % 256), Channel::Plain);
    }
    let closed: Vec<_> = std::iter::from_fn(|| s.engine.poll_transmit()).collect();
    assert!(closed.starts_with(&[Transmit::Close { association: silent[1] }]), "{:?}", closed.first());
    assert!(!closed.contains(&Transmit::Close { association: proven }));
    assert_eq!(s.engine.state_counts().associations, ASSOCIATIONS_UNPROVEN_MAX + 1);
    let ended = u64::try_from(closed.len()).unwrap() + 1;
    assert_eq!((s.count(Counter::AssociationsEvicted), s.count(Counter::AssociationsRefused)), (ended, 0));
    // They go in time, too.
    s.at(5001);
    assert_eq!(s.engine.state_counts().associations, 1);
}

/// Goal: a table that is full has room for a peer, or for a connection from here, as long as one in it is not proven.
#[test]
fn a_full_table_loses_what_is_not_proven() {
    let mut s = Script::with(Config { associations_max: 2, ..config(0xaa) });
    let proven = s.be_connected(0, 5);
    let now = s.at(1);
    let silent = s.engine.handle_accepted(now, HERE, a_peer(1), Channel::Plain);
    s.recv_nothing(1);
    let next = s.engine.handle_accepted(now, HERE, a_peer(2), Channel::Plain);
    assert_eq!(s.transmit(1), Transmit::Close { association: silent });
    s.call(2, send(1, 6, downstream(), RELIABLE, b"x"));
    let query = s.recv(2);
    s.send(2, &Message { nli: Some(nli(0xcc, THERE)), ..response_to(&query) });
    assert_eq!(s.transmit(2), Transmit::Close { association: next });
    let Transmit::Connect { association: opened, .. } = s.transmit(2) else { panic!("no connection") };
    // Both are proven: the next one finds no room.
    let refused = s.engine.handle_accepted(now, HERE, a_peer(3), Channel::Plain);
    assert_eq!(s.transmit(2), Transmit::Close { association: refused });
    assert!(![proven, opened].contains(&refused));
    assert_eq!((s.count(Counter::AssociationsEvicted), s.count(Counter::AssociationsRefused)), (2, 1));
    assert_eq!(s.engine.state_counts().associations, 2);
}

fn a_peer(number: usize) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(10, 2, 0, u8::try_from(number).unwrap()).into(), 9)
}

/// Connections that do nothing, and those with a name of their own each, must leave room for other peers.
#[test]
fn one_peer_opens_only_so_many_associations() {
    let mut s = Script::new();
    let now = s.at(0);
    // Opens a connection; returns it, and what ended for it.
    let open = |s: &mut Script, from: &str| {
        let opened = s.engine.handle_accepted(now, HERE, from.parse().unwrap(), Channel::Plain);
        let ended = s.engine.poll_transmit().map(|transmit| {
            let Transmit::Close { association } = transmit else { panic!("{transmit:?}") };
            association
        });
        (opened, ended)
    };
    let mut opened = Vec::new();
    for port in 1..=ASSOCIATIONS_PER_PEER_MAX {
        for from in [format!("10.0.0.7:{port}"), format!("[2001:db8::{port}]:1")] {
            let (association, ended) = open(&mut s, &from);
            assert_eq!(ended, None, "{from}");
            opened.push(association);
        }
    }
    let before = s.engine.state_counts().associations;
    // One more ends the oldest of the same peer, and nobody else's.
    assert_eq!(open(&mut s, "10.0.0.7:40000").1, Some(opened[0]));
    assert_eq!(open(&mut s, "[2001:db8:0:0:1::1]:40000").1, Some(opened[1]), "another address of the same network");
    assert_eq!(s.engine.state_counts().associations, before);
    assert_eq!(open(&mut s, "10.0.0.8:40000").1, None);
    assert_eq!(open(&mut s, "[2001:db8:0:1::1]:40000").1, None);
    assert_eq!((s.count(Counter::AssociationsEvicted), s.count(Counter::AssociationsRefused)), (2, 0));
}

/// Goal: a peer whose associations are all proven gets no more, however many it opens, and ends nobody else's.
#[test]
fn one_peer_proves_only_so_many_associations() {
    let mut s = Script::with(Config { associations_per_peer_max: 1, ..config(0xaa) });
    let now = s.at(0);
    s.engine.handle_accepted(now, HERE, a_peer(1), Channel::Plain);
    s.be_connected(0, 5);
    let refused = s.engine.handle_accepted(now, HERE, SocketAddr::new(THERE, 40_001), Channel::Plain);
    assert_eq!(s.transmit(0), Transmit::Close { association: refused });
    assert_eq!((s.count(Counter::AssociationsEvicted), s.count(Counter::AssociationsRefused)), (0, 1));
    assert_eq!(s.engine.state_counts().associations, 2);
}

#[test]
fn old_peers_are_forgotten() {
    let mut s = Script::with(Config { unproven_rate: FAST, ..config(0xaa) });
    let peer = |number: usize| {
        let number = u16::try_from(number).unwrap().to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(10, 1, number[0], number[1]))
    };
    let more = 10;
    for number in 0..PEERS_KEPT_MAX + more {
        peer_confirms(&mut s, 0, u64::try_from(number).unwrap(), peer(number));
    }
    assert_eq!(s.engine.state_counts().peers, PEERS_KEPT_MAX + more, "peers with routes are not counted");
    s.at(30_000);
    assert_eq!(s.engine.state_counts(), StateCounts { peers: PEERS_KEPT_MAX, ..StateCounts::default() });
    let to = |sii| ApiCall::SendMessage {
        handle: MessageHandle(1),
        nslp_id: NSLP,
        session: session(1),
        mri: flow(THERE, HERE).inverted(),
        attributes: UNRELIABLE,
        sii: Some(SiiHandle::new(1, sii)),
        timeout: SECOND,
        data: b"x".to_vec(),
        hops: None,
        options: SendOptions::default(),
    };
    let last = u32::try_from(PEERS_KEPT_MAX + more).unwrap();
    // One node at many addresses.
    assert_eq!(s.try_call(30_000, to(10)), Err(ApiError::UnknownPeer(SiiHandle::new(1, 10))));
    assert_eq!(s.try_call(30_000, to(11)), Ok(()));
    assert_eq!(s.try_call(30_000, to(last)), Ok(()));
}

#[test]
fn only_so_many_messages_wait_for_a_route() {
    let mut s = Script::new();
    for number in 0..PENDING_PER_ROUTE_MAX {
        s.call(0, send(u64::try_from(number).unwrap(), 5, downstream(), UNRELIABLE, b"x"));
    }
    assert_eq!(s.try_call(0, send(99, 5, downstream(), UNRELIABLE, b"x")), Err(ApiError::QueueFull));
    s.establish(0);
    s.call(1, send(99, 5, downstream(), UNRELIABLE, b"x"));
    assert_eq!(s.statuses().len(), PENDING_PER_ROUTE_MAX + 1);
}

#[test]
fn only_so_many_bytes_wait_in_all() {
    let mut s = Script::new();
    let data = vec![1; DATA_BYTES_MAX];
    let fit = PENDING_BYTES_MAX / DATA_BYTES_MAX;
    for number in 0..fit {
        let number = u64::try_from(number).unwrap();
        s.call(0, send(number, number, downstream(), UNRELIABLE, &data));
    }
    assert_eq!(s.try_call(0, send(99, 5, downstream(), UNRELIABLE, &data)), Err(ApiError::QueueFull));
    assert_eq!(s.engine.state_counts().pending_bytes, fit * DATA_BYTES_MAX);
    s.at(2000);
    assert_eq!(s.statuses().len(), fit);
    assert_eq!(s.engine.state_counts(), StateCounts::default());
}

#[test]
fn a_query_has_only_so_many_copies_and_gaps_only_so_long() {
    let mut s = Script::with(Config { query_budget: 100_000 * SECOND, retry_initial: SECOND, ..config(0xaa) });
    let ApiCall::SendMessage { handle, nslp_id, session, mri, attributes, sii, data, hops, options, .. } =
        send(1, 5, downstream(), UNRELIABLE, b"x")
    else {
        unreachable!()
    };
    let timeout = 100_000 * SECOND;
    s.call(0, ApiCall::SendMessage { handle, nslp_id, session, mri, attributes, sii, timeout, data, hops, options });
    let mut times = vec![];
    for at in 0..400 {
        s.at(at * 1000);
        times.extend(std::iter::from_fn(|| s.engine.poll_transmit()).map(|_| at));
    }
    assert_eq!(times, [0, 1, 3, 7, 15, 31, 63, 95]);
    assert_eq!((times.len(), RETRY_MAX), (QUERY_COPIES_MAX, 32 * SECOND));
    assert_eq!(s.statuses().len(), 1);
}

#[test]
fn times_that_a_peer_gives_have_bounds() {
    for (validity, from, to) in [
        (Duration::from_millis(1), PEER_TIME_MIN / 2, PEER_TIME_MIN * 3 / 4),
        (Duration::from_millis(u64::from(u32::MAX)), PEER_TIME_MAX / 2, PEER_TIME_MAX * 3 / 4),
    ] {
        let mut s = Script::with(Config { inactivity: 2 * PEER_TIME_MAX, ..config(0xaa) });
        s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
        let query = s.recv(0);
        s.send(0, &Message { nli: Some(Nli { validity, ..nli(PEER, THERE) }), ..response_to(&query) });
        let (at, reason) = s.engine.poll_timeout().unwrap();
        assert_eq!(reason, "route refresh");
        assert!((from..=to).contains(&at.since(Instant::default())));

        let mut s = Script::with(Config { validity: 2 * PEER_TIME_MAX, ..config(0xaa) });
        s.send(0, &with_stack(super::script::query(5), None));
        let mut confirm = first_confirm_to(&s.recv(0));
        confirm.stack_configuration.as_mut().unwrap().hold_time = validity;
        let now = s.at(0);
        let id = s.engine.handle_accepted(now, HERE, SocketAddr::new(THERE, 40_000), Channel::Plain);
        s.send_stream(0, id, &confirm);
        let (at, reason) = s.engine.poll_timeout().unwrap();
        assert_eq!(reason, "association hello");
        assert!((from..=to).contains(&at.since(Instant::default())));
    }
}

#[test]
fn transmits_that_nobody_polls_are_bounded() {
    let mut s = Script::with(Config { query_rate: FAST, ..config(0xaa) });
    let id = s.be_connected(0, 5);
    for _ in 0..TRANSMITS_MAX {
        s.send(1, &query(6));
    }
    assert_eq!(s.count(Counter::TransmitsDropped), 0);
    s.send(1, &query(6));
    assert_eq!(s.count(Counter::TransmitsDropped), 1);
    // A connection must not lose bytes in the middle, so it ends.
    s.call(1, send(1, 5, flow(THERE, HERE).inverted(), RELIABLE, b"x"));
    assert_eq!(s.statuses(), [(1, SendStatus::Failed(FailReason::Association))]);
    let sent: Vec<Transmit> = std::iter::from_fn(|| s.engine.poll_transmit()).collect();
    assert_eq!((sent.len(), sent.last()), (TRANSMITS_MAX + 1, Some(&Transmit::Close { association: id })));
    assert_eq!(s.engine.state_counts().associations, 0);
}

/// Goal: Data that no handshake vouches for is bounded for each network and in all, whatever sources are made up; Data of peers
/// is not.
#[test]
fn alone_rate_per_network_and_alone_rate_bound_data_without_state() {
    let mut s = Script::new();
    s.be_queried(0, 5);
    s.events();
    let alone = Message { context_free: true, ..data(flow(THERE, HERE), 5, b"x") };
    let from = |address: IpAddr| {
        let nli = Some(Nli { ip_ttl: 64, ..nli(0xcc, address) });
        (SocketAddr::new(address, UDP_PORT), Message { nli, source_is_signaller: false, ..alone.clone() })
    };
    let taken = |s: &mut Script, ms: u64, address: IpAddr| {
        let (source, message) = from(address);
        s.send_from(ms, source, InterfaceId(1), &message);
        s.events().len()
    };
    let burst = usize::try_from(ALONE_RATE_PER_NETWORK.burst).unwrap();
    let sum: usize = (0..burst + 50).map(|n| taken(&mut s, 1, [10, 7, 7, n.to_be_bytes()[7]].into())).sum();
    assert_eq!((sum, s.count(Counter::DataLimited)), (burst, 50));
    assert_eq!(taken(&mut s, 1, [10, 7, 8, 1].into()), 1, "another network");
    assert_eq!(taken(&mut s, 1001, [10, 7, 7, 1].into()), 1, "a second later");
    // All networks there are.
    let all = usize::try_from(ALONE_RATE.burst).unwrap();
    let networks = (0..2 * u32::try_from(all).unwrap()).map(|n| IpAddr::from(Ipv4Addr::from(n << 8 | 0x0b00_0000)));
    let sum: usize = networks.map(|address| taken(&mut s, 12_000, address)).sum();
    assert_eq!(sum, all);
    s.send(12_000, &data(flow(THERE, HERE), 5, b"x"));
    assert_eq!(s.events().len(), 1, "a peer's");
}

#[test]
fn events_that_nobody_polls_are_bounded() {
    let mut s = Script::new();
    s.be_queried(0, 5);
    for _ in 0..=EVENTS_MAX {
        s.send(1, &data(flow(THERE, HERE), 5, b"x"));
    }
    assert_eq!(s.count(Counter::EventsDropped), 1);
    assert_eq!(s.events().len(), EVENTS_MAX);
}

#[test]
fn one_call_serves_only_so_many_timers() {
    let mut s = Script::new();
    let routes = TIMERS_PER_CALL_MAX + 1;
    for number in 0..routes {
        let number = u64::try_from(number).unwrap();
        s.call(0, send(number, number, downstream(), UNRELIABLE, b"x"));
    }
    let now = Instant::from_millis(500);
    s.engine.handle_timeout(now);
    assert_eq!(std::iter::from_fn(|| s.engine.poll_transmit()).count(), routes + TIMERS_PER_CALL_MAX);
    assert_eq!(s.engine.poll_timeout().unwrap().0, now, "the rest is due at once");
    s.engine.handle_timeout(now);
    assert_eq!(std::iter::from_fn(|| s.engine.poll_transmit()).count(), 1);
}

#[test]
fn an_early_timeout_does_nothing() {
    let mut s = Script::new();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    s.recv(0);
    let before = s.engine.poll_timeout();
    s.engine.handle_timeout(Instant::from_millis(499));
    assert_eq!(s.engine.poll_transmit(), None);
    assert_eq!(s.engine.poll_timeout(), before);
}

#[test]
fn own_datagrams_keep_to_the_rate() {
    let mut s = Script::with(Config { send_rate: RateLimit { per_second: 10, burst: 5 }, ..config(0xaa) });
    for number in 0..8 {
        s.call(0, send(number, number, downstream(), UNRELIABLE, b"x"));
    }
    assert_eq!(std::iter::from_fn(|| s.engine.poll_transmit()).count(), 5);
    assert_eq!(s.count(Counter::DatagramsLimited), 3);
    // The copies of the Queries get through later: nothing is lost for good.
    s.at(500);
    assert_eq!(std::iter::from_fn(|| s.engine.poll_transmit()).count(), 5);
    // Forwarded ones are exempt (RFC 5971 §5.3.3).
    let foreign = Message { nslp_id: NSLP + 1, ..query(5) }.emit_datagram();
    for _ in 0..20 {
        assert!(matches!(s.intercept(500, &foreign), crate::Disposition::Forward { payload: Some(_) }));
    }
}

/// Goal: connections of strangers keep nobody out who holds a cookie of this node. Method: a peer connects after a Response,
/// then ten times as many strangers as there is room for; the peer's Confirm still comes.
#[test]
fn strangers_connections_make_room_before_those_of_who_holds_a_cookie() {
    let mut s = Script::new();
    s.send(0, &with_stack(query(5), None));
    let response = s.recv_kind(0, MessageType::Response);
    let now = s.at(1);
    let id = s.engine.handle_accepted(now, HERE, SocketAddr::new(THERE, 40_000), Channel::Plain);
    for number in 0..10 * ASSOCIATIONS_UNPROVEN_MAX {
        let [.., high, low] = number.to_be_bytes();
        let stranger = SocketAddr::new([10, 7, high, low].into(), 40_000);
        s.engine.handle_accepted(now, HERE, stranger, Channel::Plain);
    }
    assert_eq!(s.engine.state_counts().associations, ASSOCIATIONS_UNPROVEN_MAX);
    s.send_stream(2, id, &first_confirm_to(&response));
    assert_eq!(s.count(Counter::ConfirmsAccepted), 1);
    // The fewer places are free, the sooner the last strangers go.
    s.at(2 + u64::try_from(HALF_OPEN_TIME_MIN.as_millis()).unwrap());
    assert!(s.engine.state_counts().associations < ASSOCIATIONS_UNPROVEN_MAX);
    s.at(6000);
    assert_eq!(s.engine.state_counts().associations, 1);
}

#[test]
fn invitations_max_are_remembered_for_invitation_time() {
    let mut s = Script::with(Config { unproven_rate: FAST, ..config(0xaa) });
    let ask = |s: &mut Script, at_ms: u64, number: usize| {
        let [.., high, low] = number.to_be_bytes();
        let address = IpAddr::from([10, 7, high, low]);
        let query = with_stack(Message { nli: Some(nli(PEER, address)), ..query(1) }, None);
        s.send_from(at_ms, SocketAddr::new(address, UDP_PORT), InterfaceId(1), &query);
        s.recv_kind(at_ms, MessageType::Response);
        SocketAddr::new(address, 40_000)
    };
    // Of two that connect, the stranger gives way.
    let gives_way = |s: &mut Script, at_ms: u64, peer: SocketAddr| {
        let now = s.at(at_ms);
        let id = s.engine.handle_accepted(now, HERE, peer, Channel::Plain);
        for number in 0..ASSOCIATIONS_UNPROVEN_MAX {
            let stranger = IpAddr::from([10, 8, 0, u8::try_from(number).unwrap()]);
            s.engine.handle_accepted(now, HERE, SocketAddr::new(stranger, 40_000), Channel::Plain);
        }
        !s.engine.associations.contains(id)
    };
    let first = ask(&mut s, 0, 0);
    for number in 1..=INVITATIONS_MAX {
        ask(&mut s, 0, number);
    }
    let last = ask(&mut s, 0, INVITATIONS_MAX);
    assert_eq!((gives_way(&mut s, 1, first), gives_way(&mut s, 1, last)), (true, false));
    let late = u64::try_from(INVITATION_TIME.as_millis()).unwrap() + 1;
    assert!(gives_way(&mut s, late, last));
}

#[test]
fn a_datagram_over_the_rate_is_reported() {
    let mut s = Script::with(Config { send_rate: RateLimit { per_second: 1, burst: 3 }, ..config(0xaa) });
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"x"));
    s.establish(0);
    s.call(0, send(2, 5, downstream(), UNRELIABLE, b"y"));
    assert_eq!(s.statuses(), [(1, SendStatus::Sent), (2, SendStatus::Failed(FailReason::RateLimited))]);
}

#[test]
fn queries_are_answered_at_the_rate() {
    let mut s = Script::with(Config { query_rate: RateLimit { per_second: 10, burst: 5 }, ..config(0xaa) });
    for number in 0..8 {
        s.send(0, &query(number));
    }
    assert_eq!(std::iter::from_fn(|| s.engine.poll_transmit()).count(), 5);
    assert_eq!(s.count(Counter::QueriesLimited), 3);
    s.send(100, &query(9));
    s.recv_kind(100, MessageType::Response);
}

/// Goal: nobody makes this node flood the address that a message names, nor spend its own datagrams' rate on that.
#[test]
fn errors_are_sent_at_the_rate() {
    let mut s = Script::with(Config { error_rate: RateLimit { per_second: 10, burst: 5 }, ..config(0xaa) });
    for number in 0..8 {
        s.send(0, &Message { nslp_id: NSLP + 1, ..query(number) });
    }
    assert_eq!(std::iter::from_fn(|| s.engine.poll_transmit()).count(), 5);
    assert_eq!((s.count(Counter::ErrorsSent), s.count(Counter::ErrorsLimited)), (5, 3));
    assert_eq!(s.count(Counter::DatagramsLimited), 0);
    s.send(0, &query(9));
    s.recv_kind(0, MessageType::Response);
    s.send(100, &Message { nslp_id: NSLP + 1, ..query(10) });
    s.recv_kind(100, MessageType::Error);
}

/// Goal: Queries and offenders that name addresses where nobody is cost peers nothing. Method: more of both than the rate
/// allows name one network; then a stranger of another network, and a peer of the same one, ask.
#[test]
fn the_unproven_of_a_network_are_answered_at_the_rate_and_peers_always() {
    let unproven_rate = RateLimit { per_second: 10, burst: 5 };
    let mut s = Script::with(Config { unproven_rate, ..config(0xaa) });
    s.be_queried(0, 1);
    s.events();
    let stranger = |number: u8, network: u8| {
        let address = IpAddr::V4(Ipv4Addr::new(10, 0, network, 100 + number));
        let nli = Some(nli(0x55, address));
        (SocketAddr::new(address, UDP_PORT), Message { nli, ..query(u64::from(number)) })
    };
    let mut audiences = Vec::new();
    for number in 0..8 {
        let (from, message) = stranger(number, 0);
        s.send_from(1, from, InterfaceId(1), &message);
        audiences.extend(std::iter::from_fn(|| s.engine.poll_transmit()).map(|sent| audience(&sent)));
    }
    // The peer's own first Query has taken one.
    assert_eq!(audiences, [Audience::Querier; 4]);
    assert_eq!(s.count(Counter::UnprovenLimited), 4);
    let (from, message) = stranger(9, 0);
    s.send_from(1, from, InterfaceId(1), &Message { nslp_id: NSLP + 1, ..message });
    assert_eq!((s.engine.poll_transmit(), s.count(Counter::UnprovenLimited)), (None, 5));

    s.send(1, &query(2));
    assert_eq!(audience(&s.transmit(1)), Audience::Peer);
    let (from, message) = stranger(1, 7);
    s.send_from(1, from, InterfaceId(1), &Message { nslp_id: NSLP + 1, ..message });
    assert_eq!(audience(&s.transmit(1)), Audience::Offender);
    let (from, message) = stranger(10, 0);
    s.send_from(101, from, InterfaceId(1), &message);
    assert_eq!(audience(&s.transmit(101)), Audience::Querier);
}

fn audience(transmit: &Transmit) -> Audience {
    let Transmit::Datagram { audience, .. } = transmit else { panic!("{transmit:?}") };
    *audience
}

#[test]
fn nothing_is_sent_where_nobody_else_can_be() {
    let mut s = Script::new();
    let other: IpAddr = [10, 0, 5, 1].into();
    s.engine.set_own_addresses([HERE, other]);
    let named = ["0.0.0.0", "224.0.0.1", "255.255.255.255", "127.0.0.1"].map(|address| address.parse().unwrap());
    let named: Vec<IpAddr> = named.into_iter().chain([HERE, other]).collect();
    for (count, address) in (1..).zip(&named) {
        let nli = Some(nli(PEER, *address));
        s.send(0, &Message { nli: nli.clone(), source_is_signaller: false, ..query(5) });
        s.send(0, &Message { nli, source_is_signaller: false, nslp_id: NSLP + 1, ..query(5) });
        s.recv_nothing(0);
        assert_eq!(s.count(Counter::Unanswerable), 2 * count, "{address}");
    }
}

/// Goal: the bounds hold for a node under load too: a full table of default size, which then empties itself.
#[test]
fn a_full_table_of_the_default_size_empties_itself() {
    let mut s = Script::with(Config { send_rate: FAST, query_rate: FAST, ..config(0xaa) });
    let per_peer = u64::try_from(ROUTES_MAX / 2).unwrap();
    for number in 0..2 * per_peer + 10 {
        let site = if number < per_peer { 2 } else { 3 };
        let peer = IpAddr::V4(Ipv4Addr::new(10, 0, site, 2));
        peer_confirms(&mut s, 0, number, peer);
    }
    assert_eq!(s.engine.state_counts().responding, ROUTES_MAX);
    assert_eq!(s.count(Counter::RoutesRefused), 10);
    while s.engine.poll_timeout().is_some() {
        s.engine.handle_timeout(Instant::from_millis(30_000));
        while let Some(event) = s.engine.poll_event() {
            assert!(matches!(event, Event::NetworkNotification { .. }));
        }
    }
    assert_eq!(s.engine.state_counts().responding, 0);
}

/// Plays a peer at another address through the handshake.
fn peer_confirms(s: &mut Script, at_ms: u64, number: u64, peer: IpAddr) {
    let own = nli(PEER, peer);
    let source = SocketAddr::new(peer, UDP_PORT);
    let now = s.at(at_ms);
    let query = Message { nli: Some(own.clone()), ..query(number) }.emit_datagram();
    s.engine.handle_datagram(now, Datagram { source, ..datagram(&query) });
    let Some(Transmit::Datagram { payload, .. }) = s.engine.poll_transmit() else { panic!() };
    let confirm = Message { nli: Some(own), ..confirm_to(&parse_datagram(&payload)) }.emit_datagram();
    s.engine.handle_datagram(now, Datagram { source, ..datagram(&confirm) });
}
