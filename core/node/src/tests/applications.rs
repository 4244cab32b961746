// SPDX-License-Identifier: Apache-2.0
//! Programs that are NSLPs: each has its own, and none has another's.

use std::net::IpAddr;

use netserv_gist::limits::GUESTS_MAX;
use netserv_gist::{Disposition, InterfaceId, Transmit};
use netserv_model::application::{
    ApplicationCall, ApplicationErrorKind as Kind, ApplicationEvent, Carrier, RecvMessage, RouteNews, SentAs,
};

use super::*;
use crate::limits::*;
use crate::recording::{Header, Line, OutputDigest, Replay, VERSION};
use crate::{ApplicationConfig, ClientId, OwnedDatagram, Token};

const OWN: u16 = 32_704;
const PING: u16 = 32_710;
const PONG: u16 = 32_711;
const A: ClientId = ClientId(1);
const B: ClientId = ClientId(2);

#[test]
fn programs_are_told_apart_though_all_their_names_are_the_same() {
    let mut net = Net::new();
    net.register("near", A, PING);
    net.register("near", B, PONG);
    net.register("far", A, PING);
    net.register("far", B, PONG);
    for (client, data) in [(A, "aa"), (B, "bb")] {
        net.call("near", client, &send(7, data, ""));
    }
    net.run();
    let far: Vec<_> = [A, B].map(|client| net.messages("far", client)).concat();
    let told: Vec<(u16, Vec<u8>, bool)> =
        far.iter().map(|(client, message)| (*client, message.data.0.clone(), message.validated)).collect();
    assert_eq!(told, [(1, vec![0xaa, 0, 0, 0], true), (2, vec![0xbb, 0, 0, 0], true)]);
    for client in [A, B] {
        assert_eq!(net.statuses("near", client), [(7, SentAs::Sent, None)]);
        assert_eq!(net.statuses("near", client), [], "told once");
    }
    // The way back, by what each was told; each peer is the first that its program heard of.
    for (client, data) in [(A, "cc"), (B, "dd")] {
        net.call("far", client, &send(7, data, "\"peer\":1,").replace("downstream", "upstream"));
    }
    net.run();
    assert_eq!(net.messages("near", A)[0].1.data.0[0], 0xcc);
    assert_eq!(net.messages("near", B)[0].1.data.0[0], 0xdd);
    let counters = net.node("near").application_counters();
    assert_eq!((counters.registered, counters.sent, counters.refused), (2, 2, 0));
    assert_eq!(net.node("near").nslp.counters(), Default::default(), "NetServ's own heard nothing");
}

/// Goal: numbers of peers are a program's own. Method: one hears of a peer; the other names it, and so does a later program of
/// the same NSLP.
#[test]
fn no_program_reaches_a_peer_by_what_another_was_told() {
    let mut net = Net::new();
    net.register("near", A, PING);
    net.register("near", B, PONG);
    net.register("far", A, PING);
    net.register("far", B, PONG);
    net.call("near", A, &send(1, "aa", ""));
    net.run();
    net.call("far", A, &send(1, "bb", "\"peer\":1,").replace("downstream", "upstream"));
    net.run();
    assert_eq!(net.messages("near", A)[0].1.peer, Some(1));
    assert_eq!(net.statuses("far", A), [(1, SentAs::Sent, None)]);
    for name in [0, 1, 2, 1 << 32, (1 << 32) + 1, u64::MAX] {
        net.call("near", B, &send(1, "bb", &format!("\"peer\":{name},")));
        assert_eq!(net.errors("near", B), [(Kind::UnknownPeer, Some(1))], "{name}");
    }
    net.input("near", Input::ApplicationGone(A));
    net.register("near", ClientId(3), PING);
    net.call("near", ClientId(3), &send(1, "bb", "\"peer\":1,"));
    assert_eq!(net.errors("near", ClientId(3)), [(Kind::UnknownPeer, Some(1))]);
}

#[test]
fn a_program_that_goes_leaves_nothing_and_queries_pass_by() {
    let mut net = Net::new();
    net.register("near", A, PING);
    net.register("near", B, PONG);
    net.call("near", A, &send(1, "aa", ""));
    net.call("near", B, &send(1, "bb", ""));
    let queries = net.sent("near");
    assert_eq!(queries.len(), 2);
    let released = |net: &mut Net| net.intercept("far", &queries[0]);
    assert!(matches!(released(&mut net), Disposition::Forward { payload: Some(_) }), "nobody is there");
    net.register("far", A, PING);
    assert_eq!(released(&mut net), Disposition::Consumed);
    net.input("far", Input::ApplicationGone(A));
    assert!(matches!(released(&mut net), Disposition::Forward { payload: Some(_) }), "nobody any more");
    net.input("near", Input::ApplicationGone(A));
    net.input("near", Input::ApplicationGone(A));
    assert_eq!(net.events("near", A), [], "a program that is gone is told nothing");
    assert_eq!(net.node("near").view().gist.state_counts().querying, 1, "the other's");
    net.sleep(Duration::from_secs(10));
    assert_eq!(net.statuses("near", B), [(1, SentAs::NoPeer, Some("timeout".to_owned()))]);
    let counters = net.node("near").application_counters();
    assert_eq!((counters.gone, counters.untold), (1, 1));
    assert_eq!(net.node("near").applications().iter().map(|one| one.nslp_id).collect::<Vec<_>>(), [PONG]);
    net.register("near", ClientId(3), PING);
}

/// Goal: what a program says of a flow's state comes after its message, and counts where there is no route any more.
#[test]
fn a_lifetime_neither_overtakes_its_message_nor_needs_a_route() {
    let give_up = format!(
        "{{\"call\":\"set-state-lifetime\",\"lifetime_ms\":0,\"session\":\"{SESSION}\",\"flow\":{}}}",
        flow("")
    );
    let message = send(1, "aa", "");
    let mut net = Net::new();
    net.answers = false;
    net.register("near", A, PING);
    net.call("near", A, &message);
    net.call("near", A, &give_up);
    net.answers = true;
    net.run();
    assert_eq!(net.statuses("near", A), [(1, SentAs::Failed, Some("cancelled".to_owned()))]);
    assert_eq!(net.node("near").view().gist.state_counts().querying, 0);

    net.call("near", A, &message);
    assert_eq!(net.node("near").view().gist.state_counts().querying, 1);
    net.unroutable = true;
    net.input("near", Input::RoutesChanged(netserv_model::route::RouteChange::All));
    net.call("near", A, &give_up);
    assert_eq!(net.statuses("near", A), [(1, SentAs::Failed, Some("cancelled".to_owned()))]);
    assert_eq!(net.node("near").view().gist.state_counts().querying, 0);
}

/// Goal: a message is taken back wherever it waits, once, with its one status; one that was sent is not. Method: it waits for a
/// route of the kernel, then for a handshake.
#[test]
fn a_message_that_waits_is_taken_back_and_one_that_was_sent_is_not() {
    let abort = |handle| format!("{{\"call\":\"abort-message\",\"handle\":{handle}}}");
    let cancelled = |handle| (handle, SentAs::Failed, Some("cancelled".to_owned()));
    let mut net = Net::new();
    net.call("near", A, &abort(1));
    assert_eq!(net.errors("near", A), [(Kind::Order, Some(1))]);
    net.register("near", A, PING);
    net.register("near", B, PONG);
    net.register("far", A, PING);

    net.answers = false;
    net.call("near", A, &send(1, "aa", ""));
    net.call("near", A, &send(2, "bb", ""));
    net.call("near", B, &abort(1));
    assert_eq!(net.errors("near", B), [(Kind::NotWaiting, Some(1))], "another's message");
    net.call("near", A, &abort(1));
    assert_eq!(net.statuses("near", A), [cancelled(1)]);
    net.call("near", A, &abort(1));
    assert_eq!(net.errors("near", A), [(Kind::NotWaiting, Some(1))]);
    net.answers = true;
    net.run();
    assert_eq!(net.node("near").counters().route_waiters, 0);
    assert_eq!(net.messages("far", A).len(), 1);
    assert_eq!(net.messages("far", A)[0].1.data.0[0], 0xbb);
    assert_eq!(net.statuses("near", A), [(2, SentAs::Sent, None)]);
    net.call("near", A, &abort(2));
    assert_eq!(net.errors("near", A), [(Kind::NotWaiting, Some(2))], "it was sent");

    let other = |text: String| text.replace(SESSION, &"0b".repeat(16));
    net.call("near", A, &other(send(3, "cc", "")));
    net.call("near", A, &abort(3));
    assert_eq!(net.statuses("near", A), [cancelled(3)]);
    net.run();
    assert_eq!(net.messages("far", A).len(), 1, "nothing of it came");
    assert_eq!(net.node("near").view().gist.state_counts().querying, 1, "the Query that nobody waits for is over");
}

#[test]
fn a_session_is_taken_back_with_all_that_waits_and_nothing_else() {
    let mut net = Net::new();
    net.register("near", A, PING);
    net.register("near", B, PONG);
    let other = |text: String| text.replace(SESSION, &"0b".repeat(16));
    net.call("near", A, &send(1, "aa", ""));
    net.answers = false;
    net.call("near", A, &send(2, "aa", "").replace("10.0.9.9", "10.0.9.8"));
    net.call("near", A, &other(send(3, "aa", "")));
    net.call("near", B, &send(1, "aa", ""));
    net.call("near", A, &format!("{{\"call\":\"abort-session\",\"session\":\"{SESSION}\"}}"));
    let cancelled = |handle| (handle, SentAs::Failed, Some("cancelled".to_owned()));
    let mut statuses = net.statuses("near", A);
    statuses.sort_by_key(|(handle, ..)| *handle);
    assert_eq!(statuses, [cancelled(1), cancelled(2)]);
    assert_eq!([net.events("near", A), net.events("near", B)], [[], []]);
    let waiting = net.node("near").applications().into_iter().map(|one| one.waiting);
    assert_eq!(waiting.collect::<Vec<_>>(), [1, 1], "another session, and another program");
}

/// Goal: what RFC 5971 B.1 has of a message's transfer is the program's to say, and B.3 of how it went is told.
#[test]
fn a_program_says_which_state_priority_and_ttl_its_messages_have_and_is_told_how_they_went() {
    let carried = |net: &mut Net| {
        let of = |event| {
            let ApplicationEvent::MessageStatus(status) = event else { panic!("{event:?}") };
            (status.handle, status.carried.map(|carried| (carried.by, carried.reliable)))
        };
        net.events("near", A).into_iter().map(of).collect::<Vec<_>>()
    };
    let mut net = Net::new();
    net.register("near", A, PING);
    net.register("far", A, PING);
    net.call("near", A, &send(1, "aa", "\"state\":\"not-needed\",\"ip_ttl\":9,"));
    let sent = net.sent("near");
    assert!(matches!(sent[..], [Transmit::QMode { ttl: Some(9), .. }]), "{sent:?}");
    assert_eq!(carried(&mut net), [(1, Some((Carrier::QMode, false)))]);
    net.run();
    let [(_, ref message)] = net.messages("far", A)[..] else { panic!("it comes once") };
    assert_eq!((message.validated, message.ip_ttl, message.data.0[0]), (false, Some(63), 0xaa));
    assert_eq!(net.node("near").view().gist.state_counts(), Default::default(), "no state is made for it");

    for (handle, priority) in [(2, 0), (3, 7)] {
        net.call("near", A, &send(handle, "bb", &format!("\"priority\":{priority},")));
    }
    net.run();
    let by_datagram = Some((Carrier::Datagram, false));
    assert_eq!(carried(&mut net), [(3, by_datagram), (2, by_datagram)]);

    let upstream = |handle| send(handle, "cc", "\"state\":\"queried\",").replace("downstream", "upstream");
    let of_others = |text: String| text.replace("10.0.0.1", "10.0.8.8").replace(SESSION, &"0b".repeat(16));
    net.call("near", A, &of_others(upstream(4)));
    let sent = net.sent("near");
    assert!(matches!(sent[..], [Transmit::QMode { ttl: Some(255), .. }]), "{sent:?}");
    net.call("near", A, &send(5, "cc", "\"ip_ttl\":0,"));
    assert_eq!(net.errors("near", A), [(Kind::Refused, Some(5))]);
}

#[test]
fn what_a_program_says_of_a_doubted_route_comes_with_the_next_query() {
    let mut net = Net::new();
    net.register("near", A, PING);
    net.register("far", A, PING);
    net.call("near", A, &send(1, "aa", ""));
    net.run();
    net.events("far", A);
    let doubt =
        |data: &str| format!("{{\"call\":\"invalidate-routing-state\",\"flow\":{},\"data\":\"{data}\"}}", flow(""));
    net.call("near", A, &doubt("77"));
    net.run();
    let said: Vec<_> =
        net.messages("far", A).into_iter().map(|(_, message)| (message.validated, message.data.0)).collect();
    assert!(said.contains(&(false, vec![0x77, 0, 0, 0])), "{said:?}");
    net.events("near", A);
    net.call("near", A, &doubt(&"00".repeat(netserv_gist::limits::HANDSHAKE_DATA_BYTES_MAX + 1)));
    assert_eq!(net.errors("near", A), [(Kind::Refused, None)]);
}

/// Goal: a call that waits for a route does not go out for a program that came later under the same NSLPID.
#[test]
fn what_waits_for_a_route_goes_with_its_program() {
    let mut net = Net::new();
    net.answers = false;
    net.register("near", A, PING);
    net.call("near", A, &send(1, "aa", ""));
    net.input("near", Input::ApplicationGone(A));
    net.register("near", ClientId(3), PING);
    net.answers = true;
    net.run();
    assert_eq!(net.sent("near").len(), 0);
    assert_eq!(net.events("near", ClientId(3)), []);
    assert_eq!(net.node("near").counters().route_waiters, 0);
}

#[test]
fn who_may_register_and_who_not() {
    let mut net = Net::new();
    let config =
        ApplicationConfig { router_alert: 65_503, nslps: BTreeMap::from([(33, 65), (OWN, 65_503), (32_711, 5)]) };
    net.node("near").application_config = config;
    let mut last = 10;
    let mut check = |net: &mut Net, more: &str, expected: Result<(u16, u16), Kind>| {
        last += 1;
        let client = ClientId(last);
        net.call("near", client, &format!("{{\"call\":\"register\",{more}}}"));
        let events = net.events("near", client);
        let got = match &events[..] {
            [ApplicationEvent::Registered(registered)] => Ok((registered.nslp_id, registered.router_alert)),
            [ApplicationEvent::Error(error)] => Err(error.error),
            other => panic!("{other:?}"),
        };
        assert_eq!(got, expected, "{more}");
    };
    let net = &mut net;
    check(net, "\"version\":2,\"nslp_id\":32710", Err(Kind::Version));
    check(net, "\"version\":1,\"nslp_id\":32703", Err(Kind::NotAllowed));
    check(net, "\"version\":1,\"nslp_id\":0", Err(Kind::NotAllowed));
    check(net, "\"version\":1,\"nslp_id\":32768", Err(Kind::NotAllowed));
    check(net, "\"version\":1,\"nslp_id\":32710,\"router_alert\":1", Err(Kind::NotAllowed));
    check(net, "\"version\":1,\"nslp_id\":33,\"router_alert\":65503", Err(Kind::NotAllowed));
    check(net, "\"version\":1,\"nslp_id\":32704", Err(Kind::Taken));
    let long = "x".repeat(APPLICATION_NAME_CHARS_MAX + 1);
    check(net, &format!("\"version\":1,\"nslp_id\":32712,\"name\":\"{long}\""), Err(Kind::Malformed));
    check(net, "\"version\":1,\"nslp_id\":32712,\"name\":\"\\u001b[1m\"", Err(Kind::Malformed));
    check(net, &format!("\"version\":1,\"nslp_id\":32712,\"name\":\"{}\"", &long[1..]), Ok((32_712, 65_503)));
    check(net, "\"version\":1,\"nslp_id\":32712", Err(Kind::Taken));
    check(net, "\"version\":1,\"nslp_id\":32713,\"router_alert\":65534", Ok((32_713, 65_534)));
    check(net, "\"version\":1,\"nslp_id\":33", Ok((33, 65)));
    check(net, "\"version\":1,\"nslp_id\":32711,\"router_alert\":5", Ok((32_711, 5)));
    for id in (32_720..).take(GUESTS_MAX - 4) {
        check(net, &format!("\"version\":1,\"nslp_id\":{id}"), Ok((id, 65_503)));
    }
    check(net, "\"version\":1,\"nslp_id\":32767", Err(Kind::TooManyPrograms));
}

#[test]
fn calls_that_cannot_work_are_refused_with_their_line() {
    let mut net = Net::new();
    net.call("near", A, &send(1, "aa", ""));
    assert_eq!(net.errors("near", A), [(Kind::Order, Some(1))]);
    net.register("near", A, PING);
    net.call("near", A, "{\"call\":\"register\",\"version\":1,\"nslp_id\":32711}");
    assert_eq!(net.errors("near", A), [(Kind::Order, None)]);
    let (own, hops, six) = (send(2, "aa", ""), send(3, "aa", "\"hops\":0,"), send(4, "aa", ""));
    for (call, expected) in [
        (own.replace("10.0.9.9", "10.0.0.1"), (Kind::Refused, Some(2))),
        (hops, (Kind::Refused, Some(3))),
        (own.replace("10.0.9.9", "224.0.0.1"), (Kind::Refused, Some(2))),
        (own.replace("10.0.9.9", "255.255.255.255"), (Kind::Refused, Some(2))),
        (own.replace("10.0.9.9", "127.0.0.1"), (Kind::Refused, Some(2))),
        (own.replace("10.0.9.9", "0.0.0.0"), (Kind::Refused, Some(2))),
        (six.replace("10.0.9.9", "fd00::9"), (Kind::Malformed, Some(4))),
        (send(5, "aa", "\"secure\":true,"), (Kind::Refused, Some(5))),
        (send(6, "aa", "").replace("downstream", "upstream"), (Kind::Refused, Some(6))),
        (send(7, &"00".repeat(netserv_gist::limits::DATA_BYTES_MAX + 1), ""), (Kind::Refused, Some(7))),
        (
            "{\"call\":\"invalidate-routing-state\",\"flow\":FLOW}".replace("FLOW", &flow("\"spi\":1,")),
            (Kind::Malformed, None),
        ),
    ] {
        net.call("near", A, &call);
        net.run();
        assert_eq!(net.errors("near", A), [expected], "{call}");
    }
    net.call("near", A, "{\"call\":\"set-state-lifetime\",\"lifetime_ms\":0}");
    assert_eq!(net.events("near", A), []);
    net.unroutable = true;
    net.call("near", A, &send(8, "aa", "").replace("10.0.9.9", "10.0.9.8"));
    assert_eq!(net.errors("near", A), [(Kind::Refused, Some(8))]);
    assert_eq!(net.node("near").application_counters().refused, 14);
    assert_eq!(net.node("near").applications()[0].waiting, 0, "a refused message is over");
    assert_eq!(net.sent("near").len(), 0);
}

#[test]
fn a_handle_is_one_message_s_until_its_status() {
    let mut net = Net::new();
    net.register("near", A, PING);
    net.call("near", A, &send(1, "aa", "\"timeout_ms\":1000,"));
    net.call("near", A, &send(1, "bb", ""));
    assert_eq!(net.errors("near", A), [(Kind::HandleInUse, Some(1))]);
    net.sleep(Duration::from_secs(1));
    assert_eq!(net.statuses("near", A), [(1, SentAs::NoPeer, Some("timeout".to_owned()))]);
    net.call("near", A, &send(1, "cc", ""));
    assert_eq!(net.events("near", A), []);
}

#[test]
fn application_messages_max_messages_and_application_bytes_max_bytes_wait() {
    let mut net = Net::new();
    net.register("near", A, PING);
    net.register("near", B, PONG);
    let session = |n: usize| format!("{n:032x}");
    let to = |n: usize, data: &str, more: &str| send(n as u64, data, more).replace(SESSION, &session(n));
    for n in 0..APPLICATION_MESSAGES_MAX {
        net.call("near", A, &to(n, "aa", ""));
    }
    assert_eq!(net.events("near", A), []);
    net.call("near", A, &to(APPLICATION_MESSAGES_MAX, "aa", ""));
    assert_eq!(net.errors("near", A), [(Kind::TooManyWaiting, Some(APPLICATION_MESSAGES_MAX as u64))]);
    let large = "00".repeat(netserv_gist::limits::DATA_BYTES_MAX);
    let fit = APPLICATION_BYTES_MAX / netserv_gist::limits::DATA_BYTES_MAX;
    for n in 0..fit {
        net.call("near", B, &to(n, &large, ""));
    }
    assert_eq!(net.events("near", B), []);
    net.call("near", B, &to(fit, &large, ""));
    assert_eq!(net.errors("near", B), [(Kind::TooManyWaiting, Some(fit as u64))]);
    let pending = net.node("near").view().gist.state_counts().pending_bytes;
    assert_eq!(pending, fit * netserv_gist::limits::DATA_BYTES_MAX + APPLICATION_MESSAGES_MAX);
    const { assert!(GUESTS_MAX * APPLICATION_BYTES_MAX <= netserv_gist::limits::PENDING_BYTES_MAX / 2) };
    // An hour is as long as they may wait, however long was asked for.
    net.sleep(Duration::from_secs(60));
    assert_eq!(net.statuses("near", A).len(), APPLICATION_MESSAGES_MAX);
}

#[test]
fn application_route_waiting_max_calls_wait_for_routes_and_netservs_own_find_room() {
    let mut net = Net::new();
    net.answers = false;
    for (n, id) in (32_710..).take(5).enumerate() {
        net.register("near", ClientId(n as u64), id);
    }
    let mut taken = 0;
    'all: for n in 0..5 {
        for handle in 0..APPLICATION_MESSAGES_MAX {
            net.call("near", ClientId(n), &send(handle as u64, "aa", ""));
            match net.errors("near", ClientId(n)).first() {
                None => taken += 1,
                Some((kind, _)) => {
                    assert_eq!(*kind, Kind::TooManyWaiting);
                    break 'all;
                }
            }
        }
    }
    assert_eq!(taken, APPLICATION_ROUTE_WAITING_MAX);
    net.answers = true;
    net.run();
    assert!(!net.node("near").routes.is_full_of_applications());
    assert_eq!(net.node("near").counters().route_waiters, 0);
}

#[test]
fn application_timeout_max_is_as_long_as_a_message_waits() {
    let mut net = Net::new();
    net.register("near", A, PING);
    net.call("near", A, &send(1, "aa", &format!("\"timeout_ms\":{},", u64::MAX)));
    net.call("near", A, "{\"call\":\"set-state-lifetime\",\"lifetime_ms\":18446744073709551615}");
    let deadline = net.node("near").poll_timeout().unwrap().0;
    assert!(deadline <= START.instant + APPLICATION_TIMEOUT_MAX);
}

#[test]
fn news_of_routes_go_to_their_program() {
    let mut net = Net::new();
    net.register("near", A, PING);
    net.register("near", B, PONG);
    net.register("far", A, PING);
    net.call("near", A, &send(1, "aa", ""));
    net.run();
    net.events("near", A);
    let call = format!("{{\"call\":\"invalidate-routing-state\",\"bad\":true,\"flow\":{}}}", flow(""));
    net.call("near", B, &call);
    net.run();
    assert_eq!([net.events("near", A), net.events("near", B)], [[], []], "another's routes are none of B's business");
    net.call("near", A, &call);
    net.run();
    let news = |event| {
        let ApplicationEvent::NetworkNotification(news) = event else { panic!("{event:?}") };
        (news.kind, news.peer)
    };
    let news: Vec<_> = net.events("near", A).into_iter().map(news).collect();
    assert_eq!(news, [(RouteNews::RouteBad, None), (RouteNews::RouteGood, Some(1))]);
}

/// Goal: what programs did is in a recording, and comes to the same when it is replayed.
#[test]
fn a_recording_has_what_programs_did() {
    let mut net = Net::new();
    net.register("near", A, PING);
    net.register("far", A, PING);
    net.call("near", A, &send(1, "aa", ""));
    net.call("near", A, &send(1, "aa", "\"peer\":5,"));
    net.run();
    net.call("far", A, &send(1, "bb", "\"peer\":1,").replace("downstream", "upstream"));
    net.run();
    net.input("near", Input::ApplicationGone(A));
    net.sleep(Duration::from_secs(5));
    for name in ["near", "far"] {
        let station = net.station(name);
        let mut replay = Replay::begin(&station.header.to_line()).unwrap();
        assert!(station.lines.len() > 5 && station.lines.iter().any(|line| line.contains("send-message")));
        for line in &station.lines {
            replay.line(line).unwrap();
        }
    }
}

const SESSION: &str = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a";

fn flow(more: &str) -> String {
    format!("{{\"source\":\"10.0.0.1\",\"destination\":\"10.0.9.9\",{more}\"direction\":\"downstream\"}}")
}

fn send(handle: u64, data: &str, more: &str) -> String {
    let flow = flow("");
    format!(
        "{{\"call\":\"send-message\",\"handle\":{handle},\"session\":\"{SESSION}\",{more}\"flow\":{flow},\"data\":\"{data}\"}}"
    )
}

/// Two nodes on a path, `near` at 10.0.0.1 and `far` at 10.0.0.2; flows go on beyond `far`.
struct Net {
    stations: Vec<Station>,
    now: Now,
    /// Whether questions for routes are answered.
    answers: bool,
    /// Whether there is a route.
    unroutable: bool,
}

struct Station {
    name: &'static str,
    address: IpAddr,
    node: Node,
    header: Header,
    lines: Vec<String>,
    sent: Vec<Transmit>,
    asked: Vec<EffectId>,
    released: Option<Disposition>,
    events: BTreeMap<ClientId, Vec<ApplicationEvent>>,
}

impl Net {
    fn new() -> Net {
        let station = |(name, address): (&'static str, u8)| {
            let config = NodeConfig::new(name.parse().unwrap(), vec![address; 16]);
            let header =
                Header { recording: VERSION, software: String::new(), config, policy: policy(1), seed: [address; 32] };
            Station {
                name,
                address: [10, 0, 0, address].into(),
                node: header.node(),
                header,
                lines: Vec::new(),
                sent: Vec::new(),
                asked: Vec::new(),
                released: None,
                events: BTreeMap::new(),
            }
        };
        let stations = [("near", 1), ("far", 2)].map(station).into();
        let mut net = Net { stations, now: START, answers: true, unroutable: false };
        for (name, address) in [("near", [10, 0, 0, 1]), ("far", [10, 0, 0, 2])] {
            net.input(name, Input::Addresses(vec![address.into()]));
        }
        net
    }

    fn station(&mut self, name: &str) -> &mut Station {
        self.stations.iter_mut().find(|station| station.name == name).unwrap()
    }

    fn node(&mut self, name: &str) -> &mut Node {
        &mut self.station(name).node
    }

    /// Gives an input, and answers what comes of it.
    fn input(&mut self, name: &str, input: Input) {
        let now = self.now;
        let station = self.station(name);
        station.node.handle(now, input.clone());
        let mut digest = OutputDigest::default();
        while let Some(output) = station.node.poll_output() {
            digest.add(&output);
            match output {
                Output::Send(transmit) => station.sent.push(transmit),
                Output::Release(_, disposition) => station.released = Some(disposition),
                Output::Application(client, event) => station.events.entry(client).or_default().push(event),
                Output::Do(Effect { id, .. }) => station.asked.push(id),
                output @ (Output::Attach(..)
                | Output::Abandon(_)
                | Output::Reply(..)
                | Output::Fresh(_)
                | Output::Applied(..)
                | Output::Notice(_)
                | Output::Stopped) => panic!("{output:?}"),
            }
        }
        station.lines.push(Line { now, input, outputs: digest.to_hex() }.to_line());
        let local = (!self.unroutable).then_some(self.station(name).address);
        while self.answers
            && let Some(effect) = self.station(name).asked.pop()
        {
            self.input(name, Input::Done(effect, EffectOutcome::Routed(local)));
        }
    }

    fn call(&mut self, name: &str, client: ClientId, call: &str) {
        let call: ApplicationCall = serde_json::from_str(call).unwrap_or_else(|error| panic!("{call}: {error}"));
        self.input(name, Input::Application(client, 1, Box::new(call)));
    }

    fn register(&mut self, name: &str, client: ClientId, id: u16) {
        self.call(name, client, &format!("{{\"call\":\"register\",\"version\":1,\"nslp_id\":{id}}}"));
        assert!(matches!(self.events(name, client)[..], [ApplicationEvent::Registered(_)]));
    }

    /// Carries datagrams between the nodes until none is left.
    fn run(&mut self) {
        for _ in 0..20 {
            for (from, to) in [("near", "far"), ("far", "near")] {
                if self.answers {
                    let here = (!self.unroutable).then_some(self.station(from).address);
                    while let Some(effect) = self.station(from).asked.pop() {
                        self.input(from, Input::Done(effect, EffectOutcome::Routed(here)));
                    }
                }
                for transmit in std::mem::take(&mut self.station(from).sent) {
                    match transmit {
                        Transmit::QMode { .. } => drop(self.intercept(to, &transmit)),
                        Transmit::Datagram { peer, ref payload, .. } => {
                            assert_eq!(peer.ip(), self.station(to).address);
                            let source = self.station(from).address;
                            let datagram = self.datagram(to, source, peer.ip(), payload.clone());
                            self.input(to, Input::Datagram(Box::new(datagram)));
                        }
                        Transmit::Connect { .. } | Transmit::Stream { .. } | Transmit::Close { .. } => {
                            panic!("{transmit:?} is no datagram")
                        }
                    }
                }
            }
        }
    }

    fn intercept(&mut self, name: &str, transmit: &Transmit) -> Disposition {
        let Transmit::QMode { local, destination, payload, .. } = transmit else { panic!("{transmit:?}") };
        let datagram = self.datagram(name, *local, *destination, payload.clone());
        self.input(name, Input::Intercepted(Token(0), Box::new(datagram)));
        self.station(name).released.take().unwrap()
    }

    fn datagram(&mut self, to: &str, source: IpAddr, destination: IpAddr, payload: Vec<u8>) -> OwnedDatagram {
        let local = self.station(to).address;
        OwnedDatagram { interface: InterfaceId(1), local, source: (source, 270).into(), destination, ttl: 63, payload }
    }

    fn sleep(&mut self, time: Duration) {
        self.now = self.now + time;
        for name in ["near", "far"] {
            self.input(name, Input::Timeout);
        }
    }

    fn sent(&mut self, name: &str) -> Vec<Transmit> {
        self.station(name).sent.clone()
    }

    fn events(&mut self, name: &str, client: ClientId) -> Vec<ApplicationEvent> {
        self.station(name).events.remove(&client).unwrap_or_default()
    }

    /// Returns the statuses among what a program was told, and keeps the rest.
    fn statuses(&mut self, name: &str, client: ClientId) -> Vec<(u64, SentAs, Option<String>)> {
        let (statuses, rest) = self
            .events(name, client)
            .into_iter()
            .partition(|event| matches!(event, ApplicationEvent::MessageStatus(_)));
        self.station(name).events.insert(client, rest);
        let status = |event| {
            let ApplicationEvent::MessageStatus(status) = event else { panic!("{event:?}") };
            (status.handle, status.status, status.reason)
        };
        let statuses: Vec<ApplicationEvent> = statuses;
        statuses.into_iter().map(status).collect()
    }

    fn messages(&mut self, name: &str, client: ClientId) -> Vec<(u16, RecvMessage)> {
        let number = u16::try_from(client.0).unwrap();
        let message = |event| {
            if let ApplicationEvent::RecvMessage(message) = event { Some((number, *message)) } else { None }
        };
        let events = self.station(name).events.get(&client).cloned().unwrap_or_default();
        events.into_iter().filter_map(message).collect()
    }

    fn errors(&mut self, name: &str, client: ClientId) -> Vec<(Kind, Option<u64>)> {
        let error = |event| {
            let ApplicationEvent::Error(error) = event else { panic!("{event:?}") };
            (error.error, error.handle)
        };
        self.events(name, client).into_iter().map(error).collect()
    }
}
