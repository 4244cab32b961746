// SPDX-License-Identifier: Apache-2.0
//! NSLPs that come and go.

use netserv_wire::gist::{Message, MessageType};

use super::script::*;
use super::{NSLP, RAO, RELIABLE, UNRELIABLE, config, send};
use crate::limits::{GUEST_ROUTES_MAX, GUEST_ROUTES_PART, GUESTS_MAX};
use crate::{
    ApiCall, ApiError, Config, Counter, Disposition, Event, FailReason, HostError, SendStatus, StateCounts, Transmit,
};

const GUEST: u16 = NSLP + 1;

#[test]
fn queries_for_a_guest_are_answered_while_it_is_there() {
    let mut s = Script::new();
    let query = guests_query(5).emit_datagram();
    assert!(matches!(s.intercept(0, &query), Disposition::Forward { payload: Some(_) }), "not yet");
    s.engine.host(GUEST, RAO).unwrap();
    assert_eq!(s.intercept(0, &query), Disposition::Consumed);
    let response = s.recv_kind(0, MessageType::Response);
    s.send(0, &confirm_to(&response));
    assert_eq!(s.engine.state_counts().responding, 1);
    let at = s.at(1);
    s.engine.unhost(at, GUEST);
    assert_eq!(s.engine.state_counts(), StateCounts { peers: 1, ..StateCounts::default() });
    assert!(matches!(s.intercept(1, &query), Disposition::Forward { payload: Some(_) }), "any more");
    assert_eq!(s.count(Counter::Bypassed), 2);
    assert_eq!(s.engine.poll_timeout(), None);
}

/// Goal: what waits for a guest ends with a status, its messages are refused, and those of the others go on.
#[test]
fn what_waits_for_a_guest_that_goes_is_cancelled_and_others_go_on() {
    let mut s = Script::new();
    s.engine.host(GUEST, RAO + 1).unwrap();
    s.call(0, send(1, 5, downstream(), UNRELIABLE, b"own"));
    let own = s.recv_kind(0, MessageType::Query);
    s.call(0, guests_send(2, 5, RELIABLE));
    let Transmit::QMode { rao, payload, .. } = s.transmit(0) else { panic!("no Query") };
    assert_eq!((rao, parse_datagram(&payload).nslp_id), (Some(RAO + 1), GUEST));
    let at = s.at(1);
    s.engine.unhost(at, GUEST);
    s.engine.unhost(at, NSLP);
    assert_eq!(s.statuses(), [(2, SendStatus::Failed(FailReason::Cancelled))]);
    assert_eq!(s.try_call(1, guests_send(3, 5, UNRELIABLE)), Err(ApiError::UnknownNslp(GUEST)));
    s.send(1, &response_to(&parse_datagram(&payload)));
    s.recv_nothing(1);
    s.send(1, &response_to(&own));
    s.recv_kind(1, MessageType::Confirm);
    assert_eq!(s.recv_kind(1, MessageType::Data).nslp_data.as_deref(), Some(&b"own\0"[..]));
    assert_eq!(s.statuses(), [(1, SendStatus::Sent)]);
}

#[test]
fn guests_max_guests_come_and_no_two_of_one_id() {
    let mut s = Script::new();
    assert_eq!(s.engine.host(NSLP, RAO), Err(HostError::Taken(NSLP)));
    let ids = (GUEST..).take(GUESTS_MAX);
    ids.clone().for_each(|id| s.engine.host(id, RAO).unwrap());
    assert_eq!(s.engine.host(GUEST, RAO), Err(HostError::Taken(GUEST)));
    assert_eq!(s.engine.host(NSLP - 1, RAO), Err(HostError::Full));
    let at = s.at(0);
    s.engine.unhost(at, GUEST);
    s.engine.host(NSLP - 1, RAO).unwrap();
}

#[test]
fn guest_routes_max_rows_are_one_guests_however_large_the_table_is() {
    let mut s = Script::with(Config { routes_max: 1 << 20, ..config(0xaa) });
    s.engine.host(GUEST, RAO).unwrap();
    let max = u64::try_from(GUEST_ROUTES_MAX).unwrap();
    for number in 0..max {
        s.call(0, guests_send(number, number, UNRELIABLE));
        while s.engine.poll_transmit().is_some() {}
    }
    assert_eq!(s.try_call(0, guests_send(max, max, UNRELIABLE)), Err(ApiError::TableFull));
    s.call(0, send(max, max, downstream(), UNRELIABLE, b"own"));
    let lifetime = ApiCall::SetStateLifetime { nslp_id: GUEST, session: None, mri: None, lifetime: Default::default() };
    s.call(0, lifetime);
    assert_eq!(s.statuses().len(), GUEST_ROUTES_MAX);
    assert_eq!(s.engine.state_counts().querying, 1, "another's");
}

/// Goal: a guest and its peers fill its own part of the table, and leave the rest.
#[test]
fn guest_routes_part_of_the_table_is_one_guests() {
    let mut s = Script::with(Config { routes_max: 3 * GUEST_ROUTES_PART, ..config(0xaa) });
    s.engine.host(GUEST, RAO).unwrap();
    s.send(0, &guests_query(100));
    let response = s.recv_kind(0, MessageType::Response);
    s.send(0, &confirm_to(&response));
    for number in 1..3 {
        s.call(0, guests_send(number, number, UNRELIABLE));
        s.recv_kind(0, MessageType::Query);
    }
    assert_eq!(s.try_call(0, guests_send(4, 4, UNRELIABLE)), Err(ApiError::TableFull));
    s.send(0, &guests_query(101));
    let response = s.recv_kind(0, MessageType::Response);
    s.send(0, &confirm_to(&response));
    assert_eq!((s.engine.state_counts().querying, s.engine.state_counts().responding), (2, 1));
    s.call(0, send(5, 5, downstream(), UNRELIABLE, b"own"));
    s.recv_kind(0, MessageType::Query);
    // What ended makes room.
    s.at(60_000);
    while s.engine.poll_transmit().is_some() {}
    s.call(60_000, guests_send(6, 6, UNRELIABLE));
    let ended = s.events().into_iter().filter(|event| matches!(event, Event::MessageStatus { .. })).count();
    assert_eq!(ended, 3);
}

fn guests_query(number: u64) -> Message {
    Message { nslp_id: GUEST, ..query(number) }
}

fn guests_send(handle: u64, number: u64, attributes: crate::TransferAttributes) -> ApiCall {
    let ApiCall::SendMessage { handle, session, mri, attributes, sii, timeout, data, hops, options, .. } =
        send(handle, number, downstream(), attributes, b"guest's")
    else {
        unreachable!()
    };
    ApiCall::SendMessage { handle, nslp_id: GUEST, session, mri, attributes, sii, timeout, data, hops, options }
}
