// SPDX-License-Identifier: Apache-2.0
//! Peers that read slowly or not at all: they hold back who sends to them, and nobody else.

use netserv_wire::gist::{Message, MessageStream, MessageType};

use super::script::*;
use super::{NSLP, RELIABLE, UNRELIABLE, send, session};
use crate::limits::{DATA_BYTES_MAX, PENDING_PER_ROUTE_MAX, STREAM_BYTES_MAX, STREAM_WAITING_BYTES_MAX};
use crate::{ApiCall, ApiError, AssociationId, Counter, FailReason, SendOptions, SendStatus, Transmit};

const LONG: &[u8] = &[7; 16_000];

#[test]
fn a_peer_that_reads_slowly_holds_its_senders_back_and_gets_all_in_turn() {
    let mut s = Script::new();
    let association = connected(&mut s, 3);
    for handle in 0..12 {
        s.call(1, send(10 + handle, 1 + handle % 3, downstream(), RELIABLE, LONG));
    }
    let (mut taken, mut written) = (Vec::new(), 0);
    let first = take(&mut s, association, &mut taken);
    assert!((STREAM_BYTES_MAX..STREAM_BYTES_MAX + DATA_BYTES_MAX).contains(&first), "{first}");
    assert_eq!(s.statuses().len(), taken.len(), "what waits has no status yet");
    assert!(taken.len() < 12);
    // The peer takes a little more each second; nothing is lost, doubled or out of order.
    let mut at_ms = 1;
    while taken.len() < 12 {
        at_ms += 1000;
        let now = s.at(at_ms);
        s.engine.handle_written(now, association, 20_000);
        written += 20_000;
        let more = take(&mut s, association, &mut taken);
        assert!(first + more < written + STREAM_BYTES_MAX + 12 * DATA_BYTES_MAX);
    }
    let statuses: Vec<SendStatus> = s.statuses().into_iter().map(|(_, status)| status).collect();
    assert!(statuses.iter().all(|status| *status == SendStatus::Sent), "{statuses:?}");
    for number in 1..=3 {
        assert_eq!(taken.iter().filter(|of| **of == session(number)).count(), 4, "session {number}");
    }
    assert_eq!(s.engine.state_counts().pending_bytes, 0);
}

#[test]
fn of_what_waits_for_room_the_greater_priority_goes_first_and_rows_take_turns() {
    let mut s = Script::new();
    let association = connected(&mut s, 3);
    let fill = STREAM_BYTES_MAX.div_ceil(LONG.len() + 36);
    for handle in 0..fill {
        s.call(1, send(100 + u64::try_from(handle).unwrap(), 1, downstream(), RELIABLE, LONG));
    }
    for (handle, number, priority) in [(1, 1, 0), (2, 1, 0), (3, 2, 0), (4, 2, 0), (5, 3, 7)] {
        let call = send(handle, number, downstream(), RELIABLE, &vec![3; DATA_BYTES_MAX]);
        s.call(1, with_priority(call, priority));
    }
    take(&mut s, association, &mut Vec::new());
    s.statuses();
    let mut order = Vec::new();
    while order.len() < 5 {
        let now = s.at(2);
        // Room for one message at a time.
        s.engine.handle_written(now, association, STREAM_BYTES_MAX / 2 + DATA_BYTES_MAX);
        take(&mut s, association, &mut Vec::new());
        order.extend(s.statuses().into_iter().map(|(handle, _)| handle));
        let now = s.at(2);
        s.engine.handle_written(now, association, 0);
    }
    assert_eq!(order[0], 5, "{order:?}");
    let place = |handle| order.iter().position(|of| *of == handle).unwrap();
    assert!(place(1) < place(2) && place(3) < place(4), "{order:?}");
}

#[test]
fn stream_waiting_bytes_max_wait_for_one_connection_and_others_go_on() {
    let mut s = Script::new();
    let rows = u64::try_from(STREAM_WAITING_BYTES_MAX / LONG.len() / PENDING_PER_ROUTE_MAX).unwrap() + 2;
    connected(&mut s, rows);
    let fill = u64::try_from(STREAM_BYTES_MAX.div_ceil(LONG.len() + 36)).unwrap();
    (0..fill).for_each(|handle| s.call(1, send(handle, 1, downstream(), RELIABLE, LONG)));
    let (mut waiting, mut handle) = (0, 1000);
    let refused = 'full: loop {
        for number in 1..=rows {
            handle += 1;
            match s.try_call(1, send(handle, number, downstream(), RELIABLE, LONG)) {
                Ok(()) => waiting += LONG.len(),
                Err(error) => break 'full error,
            }
        }
    };
    assert_eq!(refused, ApiError::QueueFull);
    assert!((STREAM_WAITING_BYTES_MAX - LONG.len()..=STREAM_WAITING_BYTES_MAX).contains(&waiting), "{waiting}");
    assert_eq!(s.engine.state_counts().pending_bytes, waiting);
    // Who sends elsewhere does not notice; what waits too long is told so.
    while s.engine.poll_transmit().is_some() {}
    s.statuses();
    s.call(2, send(1, 9999, flow_elsewhere(), UNRELIABLE, b"x"));
    s.recv_kind(2, MessageType::Query);
    s.at(20_000);
    let statuses = s.statuses();
    let late = statuses.iter().filter(|(_, status)| *status == SendStatus::Failed(FailReason::Timeout));
    assert_eq!(late.count(), waiting / LONG.len());
    assert_eq!(s.engine.state_counts().pending_bytes, 0);
}

/// Goal: a peer that asks and asks without reading makes this node keep no more than twice the bound, and a Query of it is
/// answered by datagram.
#[test]
fn twice_stream_bytes_max_is_kept_for_a_peer_that_asks_without_reading() {
    let mut s = Script::new();
    let association = s.be_connected(0, 5);
    let mut hello = Message::new(MessageType::MaHello, 0);
    (hello.reply_wanted, hello.hello_id) = (true, Some(3));
    let reply_bytes = Message { reply_wanted: false, ..hello.clone() }.emit().len();
    let hellos = hello.emit().repeat(2 * STREAM_BYTES_MAX / reply_bytes / 64 + 1);
    for _ in 0..70 {
        let now = s.at(1);
        s.engine.handle_stream(now, association, &hellos);
    }
    let kept: usize = std::iter::from_fn(|| s.engine.poll_transmit()).map(|transmit| bytes_of(&transmit)).sum();
    assert!((2 * STREAM_BYTES_MAX..2 * STREAM_BYTES_MAX + 64).contains(&kept), "{kept}");
    assert!(s.count(Counter::StreamsFull) > 0);
    s.send(2, &with_stack(query(5), None));
    s.recv_kind(2, MessageType::Response);
}

/// Goal: a node does not take a peer for dead that has not yet got what asks it.
#[test]
fn a_peer_that_is_behind_is_not_asked_whether_it_is_there() {
    let mut s = Script::new();
    let association = connected(&mut s, 1);
    let fill = u64::try_from(STREAM_BYTES_MAX.div_ceil(LONG.len() + 36)).unwrap();
    (0..fill).for_each(|handle| s.call(1, send(handle, 1, downstream(), RELIABLE, LONG)));
    let mut bytes = take(&mut s, association, &mut Vec::new());
    let mut at_ms = 1;
    // Longer than the hold time and the time for an answer.
    while at_ms < 60_000 {
        at_ms += 1000;
        let now = s.at(at_ms);
        s.engine.handle_written(now, association, 100);
        bytes -= 100;
        while let Some(transmit) = s.engine.poll_transmit() {
            match transmit {
                // Refreshes go on.
                Transmit::QMode { payload, .. } => s.send(at_ms, &response_to(&parse_datagram(&payload))),
                Transmit::Stream { bytes: more, .. } => {
                    let message = Message::parse(&more).unwrap();
                    assert_eq!(message.kind, MessageType::Confirm, "at {at_ms} ms");
                    bytes += more.len();
                }
                other @ (Transmit::Datagram { .. } | Transmit::Connect { .. } | Transmit::Close { .. }) => {
                    panic!("{other:?} at {at_ms} ms")
                }
            }
        }
    }
    // Once it has all, it is asked as ever.
    let now = s.at(at_ms);
    s.engine.handle_written(now, association, bytes);
    s.at(at_ms + 30_000);
    let asks = |transmit| match transmit {
        Transmit::Stream { bytes, .. } => Message::parse(&bytes).is_ok_and(|message| message.reply_wanted),
        Transmit::QMode { .. } | Transmit::Datagram { .. } | Transmit::Connect { .. } | Transmit::Close { .. } => false,
    };
    assert!(std::iter::from_fn(|| s.engine.poll_transmit()).any(asks));
}

#[test]
fn an_explicit_message_to_a_full_connection_fails_by_name() {
    let mut s = Script::new();
    let association = connected(&mut s, 1);
    let fill = u64::try_from(STREAM_BYTES_MAX.div_ceil(LONG.len() + 36)).unwrap();
    (0..fill).for_each(|handle| s.call(1, send(handle, 1, downstream(), RELIABLE, LONG)));
    take(&mut s, association, &mut Vec::new());
    s.statuses();
    let explicit = |handle, attributes| match send(handle, 7, downstream(), attributes, b"x") {
        ApiCall::SendMessage { handle, nslp_id, session, mri, attributes, timeout, data, hops, options, .. } => {
            let sii = Some(crate::SiiHandle::new(1, 1));
            ApiCall::SendMessage { handle, nslp_id, session, mri, attributes, sii, timeout, data, hops, options }
        }
        other @ (ApiCall::AbortMessage { .. }
        | ApiCall::SetStateLifetime { .. }
        | ApiCall::InvalidateRoutingState { .. }
        | ApiCall::AnswerQuery { .. }
        | ApiCall::SetPeering { .. }) => panic!("{other:?}"),
    };
    s.call(2, explicit(1, RELIABLE));
    s.call(2, explicit(2, UNRELIABLE));
    let congested = SendStatus::Failed(FailReason::Congested);
    assert_eq!(s.statuses(), [(1, congested), (2, SendStatus::Sent)], "what need not be reliable goes by datagram");
    assert!(s.recv_kind(2, MessageType::Data).explicit);
}

/// Has rows of sessions 1 to `rows` share one connection to the peer.
fn connected(s: &mut Script, rows: u64) -> AssociationId {
    s.call(0, send(1, 1, downstream(), RELIABLE, b"first"));
    let (association, _) = s.connect(0);
    for number in 2..=rows {
        s.call(0, send(number, number, downstream(), RELIABLE, b"first"));
        let query = loop {
            match s.transmit(0) {
                Transmit::QMode { payload, .. } => break parse_datagram(&payload),
                Transmit::Datagram { .. }
                | Transmit::Connect { .. }
                | Transmit::Stream { .. }
                | Transmit::Close { .. } => {}
            }
        };
        s.send(0, &response_to(&query));
    }
    let sent: usize = std::iter::from_fn(|| s.engine.poll_transmit()).map(|transmit| bytes_of(&transmit)).sum();
    assert!(sent > 0);
    let now = s.at(0);
    s.engine.handle_written(now, association, usize::MAX);
    s.statuses();
    association
}

/// Takes what is appended to the connection, of which the sessions of Data are noted; returns how many bytes it is.
fn take(s: &mut Script, association: AssociationId, taken: &mut Vec<netserv_model::SessionId>) -> usize {
    let (mut bytes, mut stream) = (0, MessageStream::new());
    while let Some(transmit) = s.engine.poll_transmit() {
        let Transmit::Stream { association: of, bytes: more } = transmit else { continue };
        assert_eq!(of, association);
        bytes += more.len();
        for message in stream.handle_bytes(&more) {
            let message = message.unwrap().message;
            if message.kind == MessageType::Data {
                assert_eq!(message.nslp_id, NSLP);
                taken.push(message.session.unwrap());
            }
        }
    }
    bytes
}

fn bytes_of(transmit: &Transmit) -> usize {
    match transmit {
        Transmit::Stream { bytes, .. } => bytes.len(),
        Transmit::QMode { .. } | Transmit::Datagram { .. } | Transmit::Connect { .. } | Transmit::Close { .. } => 0,
    }
}

fn with_priority(call: ApiCall, priority: u8) -> ApiCall {
    match call {
        ApiCall::SendMessage { handle, nslp_id, session, mri, attributes, sii, timeout, data, hops, .. } => {
            let options = SendOptions { priority, ..SendOptions::default() };
            ApiCall::SendMessage { handle, nslp_id, session, mri, attributes, sii, timeout, data, hops, options }
        }
        other @ (ApiCall::AbortMessage { .. }
        | ApiCall::SetStateLifetime { .. }
        | ApiCall::InvalidateRoutingState { .. }
        | ApiCall::AnswerQuery { .. }
        | ApiCall::SetPeering { .. }) => panic!("{other:?}"),
    }
}

fn flow_elsewhere() -> netserv_wire::gist::Mri {
    super::flow(HERE, std::net::IpAddr::from([10, 0, 9, 10]))
}
