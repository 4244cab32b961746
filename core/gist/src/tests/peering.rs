// SPDX-License-Identifier: Apache-2.0
//! Of which Queries a node becomes the peer: by rules, and by what its NSLP says.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use netserv_model::Instant;
use netserv_wire::gist::{ErrorCode, Message, MessageType, Mri, PathCoupled, UDP_PORT, strip_magic};

use super::script::{FAR, HERE, Script, THERE, confirm_to, data, datagram, nli, parse_datagram, query};
use super::{NSLP, RAO, config, flow, session};
use crate::{
    ApiCall, ApiError, Config, Counter, Datagram, Disposition, Event, PeerChoice, PeerRule, Peering, Prefix,
    QueryDecision, QueryId, limits,
};

const ASK_OR_PEER: PeerChoice = PeerChoice::Ask { silence_is_peer: true };
const ASK_OR_FORWARD: PeerChoice = PeerChoice::Ask { silence_is_peer: false };

fn script(otherwise: PeerChoice) -> Script {
    let mut config = config(0xaa);
    config.peering.insert(NSLP, Peering { rules: Vec::new(), otherwise });
    Script::with(config)
}

/// Returns a Query of the peer about a flow that passes this node.
fn passing_query(number: u64) -> Message {
    Message { mri: Some(flow(THERE, FAR)), ..query(number) }
}

/// Has a Query intercepted that the NSLP is asked about.
fn hold(s: &mut Script, at_ms: u64, message: &Message) -> QueryId {
    let Disposition::Held(id) = s.intercept(at_ms, &message.emit_datagram()) else { panic!("it is not held") };
    let events = s.events();
    let [Event::RecvMessage { query, validated: false, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(*query, Some(id));
    id
}

fn answer(s: &mut Script, at_ms: u64, query: QueryId, decision: QueryDecision) -> Result<(), ApiError> {
    s.try_call(at_ms, ApiCall::AnswerQuery { nslp_id: NSLP, query, decision })
}

#[test]
fn the_nslp_decides_whether_the_node_becomes_the_peer() {
    let mut s = script(ASK_OR_FORWARD);
    let asked = Message { nslp_data: Some(b"who is there".to_vec()), ..passing_query(5) };
    let Disposition::Held(id) = s.intercept(0, &asked.emit_datagram()) else { panic!() };
    s.recv_nothing(0);
    let events = s.events();
    let [Event::RecvMessage { nslp_id, session: of, mri, data: said, query, hops, provenance, validated, .. }] =
        &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((*nslp_id, *of, mri, &said[..]), (NSLP, session(5), &flow(THERE, FAR), &b"who is there"[..]));
    assert_eq!((*query, *hops, *validated), (Some(id), 31, false));
    assert_eq!((provenance.ip_ttl, provenance.from_flow_end, provenance.way_back), (Some(62), true, false));

    answer(&mut s, 10, id, QueryDecision::Peer { data: Some(b"me".to_vec()) }).unwrap();
    let response = s.recv_kind(10, MessageType::Response);
    assert_eq!(response.nslp_data.as_deref(), Some(&b"me\0\0"[..]));
    assert_eq!(s.engine.poll_release(), Some((id, Disposition::Consumed)));
    assert_eq!(s.engine.state_counts(), crate::StateCounts::default(), "nothing is kept before the Confirm");
    s.send(11, &confirm_to(&response));
    assert_eq!(s.engine.state_counts().responding, 1);
    assert_eq!(answer(&mut s, 12, id, QueryDecision::Peer { data: None }), Err(ApiError::UnknownQuery(id)));
    assert_eq!(s.engine.poll_timeout().unwrap().1, "route expiry");
}

#[test]
fn a_query_that_the_nslp_does_not_want_goes_on() {
    for said in [None, Some(&b"else"[..]), Some(&b""[..]), Some(&b"a longer text than before"[..])] {
        let mut s = script(ASK_OR_PEER);
        let asked = Message { nslp_data: Some(b"text of the first".to_vec()), ..passing_query(5) };
        // An object that must be forwarded, which nobody knows.
        let mut payload = asked.emit_datagram();
        payload[7] += 1;
        payload.extend_from_slice(&[0x80 | 0x07, 0xff, 0, 0]);
        let Disposition::Held(id) = s.intercept(0, &payload) else { panic!() };
        answer(&mut s, 1, id, QueryDecision::Forward { data: said.map(<[u8]>::to_vec) }).unwrap();
        s.recv_nothing(1);
        let Some((released, Disposition::Forward { payload: Some(forwarded) })) = s.engine.poll_release() else {
            panic!()
        };
        assert_eq!((released, s.engine.poll_release()), (id, None));
        let gone_on = Message::parse(strip_magic(&forwarded).unwrap()).unwrap();
        let expected = said.map_or_else(
            || b"text of the first\0\0\0".to_vec(),
            |said| [said, &[0; 3][..said.len().next_multiple_of(4) - said.len()]].concat(),
        );
        assert_eq!((gone_on.hops, gone_on.nslp_data, gone_on.unknown.len()), (31, Some(expected), 1));
        assert_eq!(
            (gone_on.session, gone_on.query_cookie, gone_on.mri),
            (asked.session, asked.query_cookie, asked.mri)
        );
        if said.is_none() {
            payload[5] -= 1;
            assert_eq!(forwarded, payload, "nothing but the hops changes");
        }
        assert_eq!((s.count(Counter::Declined), s.count(Counter::QueriesUndecided)), (1, 0));
    }
}

#[test]
fn an_nslp_that_says_nothing_gets_its_default_in_time() {
    let late = u64::try_from(limits::DECISION_TIME.as_millis()).unwrap();
    let mut s = script(ASK_OR_PEER);
    let id = hold(&mut s, 0, &passing_query(5));
    s.recv_nothing(late - 1);
    assert_eq!((s.next_ms(), s.engine.poll_timeout().unwrap().1), (late, "peer decision"));
    s.recv_kind(late, MessageType::Response);
    assert_eq!(s.engine.poll_release(), Some((id, Disposition::Consumed)));
    assert_eq!((s.count(Counter::QueriesHeld), s.count(Counter::QueriesUndecided)), (1, 1));

    let mut s = script(ASK_OR_FORWARD);
    let id = hold(&mut s, 0, &passing_query(5));
    s.recv_nothing(late);
    let Some((released, Disposition::Forward { payload: Some(payload) })) = s.engine.poll_release() else { panic!() };
    assert_eq!((released, parse_datagram(&payload).hops), (id, 31));
    assert_eq!(answer(&mut s, late, id, QueryDecision::Peer { data: None }), Err(ApiError::UnknownQuery(id)));
}

#[test]
fn only_the_nslp_that_was_asked_decides() {
    let mut s = script(ASK_OR_PEER);
    s.engine.host(NSLP + 1, RAO).unwrap();
    let query = hold(&mut s, 0, &passing_query(5));
    let decision = QueryDecision::Forward { data: None };
    let other = ApiCall::AnswerQuery { nslp_id: NSLP + 1, query, decision: decision.clone() };
    assert_eq!(s.try_call(1, other), Err(ApiError::UnknownQuery(query)));
    answer(&mut s, 1, query, decision).unwrap();
}

#[test]
fn the_flows_endpoint_always_becomes_the_peer() {
    for otherwise in [PeerChoice::Forward, ASK_OR_FORWARD] {
        let mut s = script(otherwise);
        s.send_held(0, &query(5));
        let asked = s.events().into_iter().find_map(|event| match event {
            Event::RecvMessage { query, .. } => query,
            Event::MessageStatus { .. } | Event::NetworkNotification { .. } | Event::Malformed { .. } => None,
        });
        assert_eq!(asked.is_some(), otherwise != PeerChoice::Forward, "it may have something to say in the Response");
        if let Some(id) = asked {
            answer(&mut s, 0, id, QueryDecision::Forward { data: None }).unwrap();
        }
        s.recv_kind(0, MessageType::Response);
        assert_eq!(s.engine.poll_release(), None);
    }
}

#[test]
fn flows_that_the_rules_leave_out_pass_as_if_the_nslp_were_not_here() {
    let rule = |source: &str, destination: &str, choice| PeerRule {
        source: prefix(source),
        destination: prefix(destination),
        choice,
    };
    let mut s = Script::new();
    let rules = vec![
        rule("10.0.0.2/32", "10.0.9.0/24", PeerChoice::Peer),
        rule("10.0.0.0/8", "10.0.8.0/23", PeerChoice::Forward),
        rule("fd00::/16", "::/0", ASK_OR_PEER),
    ];
    s.call(0, ApiCall::SetPeering { nslp_id: NSLP, peering: Peering { rules, otherwise: PeerChoice::Forward } });
    let mut taken = |source: &str, destination: &str| {
        let ends: [IpAddr; 2] = [source.parse().unwrap(), destination.parse().unwrap()];
        s.intercept(0, &Message { mri: Some(flow(ends[0], ends[1])), ..query(5) }.emit_datagram())
    };
    assert_eq!(taken("10.0.0.2", "10.0.9.9"), Disposition::Consumed);
    for (source, destination) in [("10.0.0.3", "10.0.9.9"), ("10.0.0.2", "10.0.8.9"), ("192.0.2.1", "10.0.9.9")] {
        let Disposition::Forward { payload: Some(payload) } = taken(source, destination) else { panic!("{source}") };
        assert_eq!(parse_datagram(&payload).hops, 31);
    }
    s.recv_kind(0, MessageType::Response);
    s.recv_nothing(0);
    assert_eq!((s.count(Counter::Declined), s.engine.state_counts()), (3, crate::StateCounts::default()));

    // All of a flow has to be covered.
    let wild = Mri::PathCoupled(PathCoupled::new(THERE, FAR).unwrap().with_prefixes(24, 32));
    let wild = Message { mri: Some(wild), ..query(5) };
    assert!(matches!(s.intercept(0, &wild.emit_datagram()), Disposition::Forward { .. }));
    // So does Data in Q-mode, and what has no hop left.
    let alone = Message { context_free: true, ..data(flow(THERE, "10.0.8.8".parse().unwrap()), 5, b"text") };
    assert!(matches!(s.intercept(0, &alone.emit_datagram()), Disposition::Forward { .. }));
    assert_eq!(s.intercept(0, &Message { hops: 1, ..alone }.emit_datagram()), Disposition::Consumed);
    assert_eq!(s.recv(0).error.unwrap().error_code(), Some(ErrorCode::HopLimitExceeded));

    s.call(0, ApiCall::SetPeering { nslp_id: NSLP, peering: Peering::default() });
    assert_eq!(s.intercept(0, &wild.emit_datagram()), Disposition::Consumed);
}

#[test]
fn what_an_nslp_says_in_a_handshake_is_short() {
    let mut s = script(ASK_OR_PEER);
    let id = hold(&mut s, 0, &passing_query(5));
    let long = vec![b'x'; limits::HANDSHAKE_DATA_BYTES_MAX + 1];
    let refused = answer(&mut s, 0, id, QueryDecision::Peer { data: Some(long.clone()) });
    let max = limits::HANDSHAKE_DATA_BYTES_MAX;
    assert_eq!(refused, Err(ApiError::TooLarge { bytes: max + 1, max }));
    answer(&mut s, 0, id, QueryDecision::Peer { data: Some(long[1..].to_vec()) }).unwrap();
    let response = s.recv_kind(0, MessageType::Response);
    assert_eq!(response.nslp_data.as_ref().map(Vec::len), Some(max));
    assert!(response.emit().len() <= 512);

    let id = hold(&mut s, 0, &passing_query(6));
    let rest = passing_query(6).emit().len() + 4;
    let refused = answer(&mut s, 0, id, QueryDecision::Forward { data: Some(vec![0; 513 - rest]) });
    assert!(matches!(refused, Err(ApiError::TooLarge { .. })), "{refused:?}");
    answer(&mut s, 0, id, QueryDecision::Forward { data: Some(vec![0; 512 - rest]) }).unwrap();
    s.engine.poll_release();
    let Some((_, Disposition::Forward { payload: Some(payload) })) = s.engine.poll_release() else { panic!() };
    assert_eq!(payload.len(), 4 + 512);
    parse_datagram(&payload);

    let long = Some(long);
    let call =
        ApiCall::InvalidateRoutingState { nslp_id: None, session: None, mri: flow(HERE, FAR), bad: false, data: long };
    assert_eq!(s.try_call(0, call), Err(ApiError::TooLarge { bytes: max + 1, max }));
}

#[test]
fn held_queries_max_wait_for_decision_time_and_one_more_ends_the_wait_of_the_oldest() {
    for otherwise in [ASK_OR_PEER, ASK_OR_FORWARD] {
        let mut s = script(otherwise);
        let held = |number: usize| passing_query(u64::try_from(number).unwrap());
        let first = hold(&mut s, 0, &held(0));
        for number in 1..=limits::HELD_QUERIES_MAX {
            hold(&mut s, 0, &held(number));
        }
        let (released, disposition) = s.engine.poll_release().unwrap();
        assert_eq!((released, s.count(Counter::QueriesUndecided)), (first, 1));
        match otherwise {
            ASK_OR_PEER => {
                assert_eq!(disposition, Disposition::Consumed);
                assert_eq!(s.recv_kind(0, MessageType::Response).session, Some(session(0)));
            }
            PeerChoice::Peer | PeerChoice::Forward | PeerChoice::Ask { .. } => {
                assert!(matches!(disposition, Disposition::Forward { .. }));
            }
        }
        // While nobody polls what became of so many, none waits.
        s.at(1000);
        assert!(!matches!(s.intercept(1000, &passing_query(1).emit_datagram()), Disposition::Held(_)));
        assert_eq!(s.events(), []);
        let released = std::iter::from_fn(|| s.engine.poll_release()).count();
        assert_eq!(released, limits::HELD_QUERIES_MAX);
        hold(&mut s, 1000, &passing_query(1));
        assert_eq!(s.engine.state_counts(), crate::StateCounts::default());
    }
}

/// Goal: however many Queries strangers send, an NSLP that answers at once decides about each one, and what waits of peers is not
/// pushed out. Method: a flood of five times what may wait, with an honest Query in the middle of it.
#[test]
fn a_flood_of_strangers_queries_takes_neither_the_time_to_answer_nor_the_place_of_peers() {
    let mut s = Script::new();
    s.be_queried(0, 1);
    s.events();
    let peering = Peering { rules: Vec::new(), otherwise: ASK_OR_FORWARD };
    s.call(1, ApiCall::SetPeering { nslp_id: NSLP, peering });
    let stranger = |number: u64| Message { nli: Some(nli(0xcc, STRANGER)), ..passing_query(number) };
    let flood = 5 * u64::try_from(limits::HELD_QUERIES_MAX).unwrap();
    let of_peer = hold(&mut s, 1, &passing_query(2));
    for number in 100..100 + flood / 2 {
        s.intercept_from(1, STRANGER, &stranger(number));
        while s.engine.poll_release().is_some() {}
    }
    let last = s.intercept_from(1, STRANGER, &stranger(3));
    let Disposition::Held(honest) = last else { panic!("{last:?}") };
    answer(&mut s, 1, honest, QueryDecision::Peer { data: None }).unwrap();
    for number in 100 + flood / 2..100 + flood {
        s.intercept_from(1, STRANGER, &stranger(number));
        while s.engine.poll_release().is_some() {}
    }
    answer(&mut s, 2, of_peer, QueryDecision::Peer { data: None }).unwrap();
    let sessions: Vec<_> = [1, 2].map(|ms| s.recv_kind(ms, MessageType::Response).session).into();
    assert_eq!(sessions, [Some(session(3)), Some(session(2))]);
}

#[test]
fn held_queries_per_peer_max_of_one_peer_keep_their_place_before_others() {
    let mut s = Script::new();
    s.be_queried(0, 1);
    s.events();
    let peering = Peering { rules: Vec::new(), otherwise: ASK_OR_FORWARD };
    s.call(1, ApiCall::SetPeering { nslp_id: NSLP, peering });
    let ids: Vec<QueryId> = (0..limits::HELD_QUERIES_MAX)
        .map(|number| hold(&mut s, 1, &passing_query(u64::try_from(number).unwrap() + 10)))
        .collect();
    // A stranger's takes the place of the oldest of those over the peer's share.
    let one_more = Message { nli: Some(nli(0xcc, STRANGER)), ..passing_query(3) };
    assert!(matches!(s.intercept_from(1, STRANGER, &one_more), Disposition::Held(_)));
    let released: Vec<QueryId> = std::iter::from_fn(|| s.engine.poll_release()).map(|(id, _)| id).collect();
    assert_eq!(released, [ids[limits::HELD_QUERIES_PER_PEER_MAX]]);
}

/// Goal: a Query that cannot wait goes no further than one that waits: not without hops, and not past the flow's endpoint.
#[test]
fn a_query_that_finds_no_place_is_treated_as_if_the_nslp_said_nothing() {
    let full = || {
        let mut s = script(ASK_OR_FORWARD);
        for number in 0..limits::HELD_QUERIES_MAX {
            hold(&mut s, 0, &passing_query(u64::try_from(number).unwrap()));
        }
        s.at(1000);
        s
    };
    let mut s = full();
    let last_hop = Message { hops: 1, ..passing_query(9999) };
    assert_eq!(s.intercept(1000, &last_hop.emit_datagram()), Disposition::Consumed);
    let refused = s.recv_kind(1000, MessageType::Error).error.unwrap();
    assert_eq!(refused.error_code(), Some(ErrorCode::HopLimitExceeded));

    let mut s = full();
    s.send_held(1000, &query(9999));
    s.recv_kind(1000, MessageType::Response);
}

#[test]
fn peer_rules_max_hold() {
    let mut s = Script::new();
    let (source, destination) = (prefix("10.0.0.0/8"), prefix("10.0.0.0/8"));
    let rule = PeerRule { source, destination, choice: PeerChoice::Forward };
    let peering = |count| Peering { rules: vec![rule.clone(); count], otherwise: PeerChoice::Peer };
    let set = |nslp_id, peering| ApiCall::SetPeering { nslp_id, peering };
    let max = limits::PEER_RULES_MAX;
    s.call(0, set(NSLP, peering(max)));
    assert_eq!(s.try_call(0, set(NSLP, peering(max + 1))), Err(ApiError::TooManyRules(max + 1)));
    assert_eq!(s.try_call(0, set(NSLP + 1, peering(1))), Err(ApiError::UnknownNslp(NSLP + 1)));
}

#[test]
fn queries_go_on_whose_nslp_goes() {
    let mut s = Script::with(Config { hosted: BTreeMap::new(), ..config(0xaa) });
    s.engine.host(NSLP, RAO).unwrap();
    s.call(0, ApiCall::SetPeering { nslp_id: NSLP, peering: Peering { rules: Vec::new(), otherwise: ASK_OR_PEER } });
    let id = hold(&mut s, 1, &passing_query(5));
    let now = s.at(2);
    s.engine.unhost(now, NSLP);
    let Some((released, Disposition::Forward { .. })) = s.engine.poll_release() else { panic!() };
    assert_eq!((released, s.engine.poll_timeout()), (id, None));
    // Who comes after it decides anew.
    s.engine.host(NSLP, RAO).unwrap();
    assert_eq!(s.intercept(3, &passing_query(5).emit_datagram()), Disposition::Consumed);
    s.recv_kind(3, MessageType::Response);
}

#[test]
fn a_query_for_the_node_itself_is_refused_when_its_nslp_goes() {
    let mut s = Script::with(Config { hosted: BTreeMap::new(), ..config(0xaa) });
    s.engine.host(NSLP, RAO).unwrap();
    s.call(0, ApiCall::SetPeering { nslp_id: NSLP, peering: Peering { rules: Vec::new(), otherwise: ASK_OR_PEER } });
    s.send_held(1, &query(5));
    let now = s.at(2);
    s.engine.unhost(now, NSLP);
    let refused = s.recv_kind(2, MessageType::Error).error.unwrap();
    assert_eq!(refused.error_code(), Some(ErrorCode::EndpointFound));
    s.recv_nothing(1000);
}

const STRANGER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 7, 0, 7));

fn prefix(text: &str) -> Prefix {
    let (address, bits) = text.split_once('/').unwrap();
    Prefix { address: address.parse().unwrap(), bits: bits.parse().unwrap() }
}

impl Script {
    /// Hands in a Query for `FAR` that somebody else than the peer sent.
    fn intercept_from(&mut self, at_ms: u64, source: IpAddr, message: &Message) -> Disposition {
        let payload = message.emit_datagram();
        let now = self.at(at_ms);
        let source = SocketAddr::new(source, UDP_PORT);
        let rx = Datagram { source, destination: FAR, destination_is_local: false, ..datagram(&payload) };
        self.engine.handle_datagram(now, rx)
    }

    /// Hands in a message for this node that its NSLP may be asked about.
    fn send_held(&mut self, at_ms: u64, message: &Message) {
        let payload = message.emit_datagram();
        let now: Instant = self.at(at_ms);
        let rx = Datagram { ..datagram(&payload) };
        assert_eq!(self.engine.handle_datagram(now, rx), Disposition::Consumed);
    }
}
