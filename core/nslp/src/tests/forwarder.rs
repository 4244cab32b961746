// SPDX-License-Identifier: Apache-2.0
//! Requests of the previous node.

use super::*;

#[test]
fn the_first_node_takes_the_request_on_and_puts_its_entry_in_front() {
    let mut node = Node::new(|_| {});
    let text = probe(1);
    node.receive_within(4_000, &text);
    let request = node.asked();
    let sent = node.sent_request();
    assert_eq!((sent.session, sent.hops, sent.timeout), (SESSION, Some(8), Duration::from_secs(4)));
    assert_eq!(sent.request(), (Some(3_500), text), "the text goes on as it came");
    node.status(sent.handle, SendStatus::Sent);
    node.report(request, report("me", "0.0.0.0"));
    node.quiet();
    node.at(100);
    node.receive_response(&response(1, &["r2", "r3"]));
    let answer = node.sent_response();
    assert_eq!(names(&answer.entries), ["me", "r2", "r3"]);
    assert_eq!(answer.entries[0].address, ip("10.0.0.1"));
    assert_eq!((answer.nonce, answer.incomplete), (Nonce([1; 16]), None));
    node.forgets(true);
}

#[test]
fn the_last_node_answers() {
    let mut node = Node::new(|_| {});
    node.receive(&flow(), 8, probe(1).as_bytes());
    let (request, sent) = (node.asked(), node.sent_request());
    node.no_peer(sent.handle);
    node.quiet();
    node.report(request, report("me", "0.0.0.0"));
    let answer = node.sent_response();
    assert_eq!((names(&answer.entries), answer.incomplete), (vec!["me"], None));
    node.forgets(true);
}

#[test]
fn a_host_at_the_end_of_the_path_passes_an_empty_stack_back() {
    let mut node = Node::new(|config| {
        config.host_only = true;
        config.own_addresses = vec![ip("10.9.0.1")];
    });
    node.receive(&flow(), 8, probe(1).as_bytes());
    let request = node.asked();
    node.quiet();
    node.report(request, not_a_node());
    let answer = node.sent_response();
    assert_eq!((answer.entries, answer.incomplete), (vec![], None));
}

#[test]
fn an_incomplete_stack_stays_incomplete() {
    let mut node = Node::new(|_| {});
    node.receive(&flow(), 8, probe(1).as_bytes());
    let (request, _) = (node.asked(), node.sent_request());
    node.report(request, report("me", "0.0.0.0"));
    let incomplete = Some(Refusal::new(RefusalKind::Timeout, "the node after r3 did not answer within 5 ms"));
    node.receive_response(&Response { incomplete: incomplete.clone(), ..response(1, &["r2", "r3"]) });
    assert_eq!(node.sent_response().incomplete, incomplete);
}

#[test]
fn a_bad_message_is_answered_and_goes_no_further() {
    let mut node = Node::new(|_| {});
    node.receive(&flow(), 8, probe(1).replace("ask: nodes", "ask: mood").as_bytes());
    assert!(node.nslp.poll_request().is_none());
    let answer = node.sent_response();
    assert_eq!(names(&answer.entries), ["me"]);
    let Outcome::Refused(refusal) = &answer.entries[0].outcome else { panic!() };
    assert_eq!(refusal.kind, RefusalKind::BadRequest);
    assert!(refusal.detail.starts_with("line 2: `ask`"), "{refusal}");
    assert_eq!(kind(answer.incomplete.as_ref()), Some(RefusalKind::BadRequest));
    assert_eq!(node.nslp.counters().messages_bad, 1);
    node.forgets(false);
}

#[test]
fn what_cannot_be_answered_is_counted() {
    let mut node = Node::new(|_| {});
    node.receive(&flow(), 8, b"PROBE");
    node.receive(&flow().inverted(), 8, b"NETSERV/1 RESPONSE\n\n");
    assert_eq!(node.nslp.counters().messages_bad, 2);
    node.receive(&flow().inverted(), 8, probe(1).as_bytes());
    node.receive(&flow(), 8, response(1, &[]).emit().as_bytes());
    assert_eq!(node.nslp.counters().messages_unexpected, 2);
    node.receive(&flow(), 8, b"");
    node.forgets(false);
}

#[test]
fn messages_that_gist_cannot_vouch_for_make_no_state() {
    let mut node = Node::new(|_| {});
    let mut event = received(&flow(), 8, probe(1).as_bytes());
    if let Event::RecvMessage { validated, .. } = &mut event {
        *validated = false;
    }
    node.nslp.handle_event(node.now, event);
    assert_eq!(node.nslp.counters().messages_unexpected, 1);
    node.forgets(false);
}

#[test]
fn long_texts_come_and_go_in_parts() {
    let mut node = Node::new(|_| {});
    let nonce = Nonce([1; 16]);
    let mut builder = RequestBuilder::probe(&[]);
    for n in 0..5 {
        builder = builder.header(&format!("x-{n}"), &"v".repeat(8000));
    }
    let text = builder.build(UnixTime(0), nonce).unwrap().into_message().as_str().to_owned();
    let pieces = netserv_wire::nslp::parts(&text, nonce);
    assert_eq!(pieces.len(), 3);
    for piece in &pieces {
        assert!(node.nslp.poll_request().is_none());
        node.receive(&flow(), 8, piece);
    }
    let request = node.asked();
    let sent: Vec<SentMessage> = (0..3).map(|_| node.sent()).collect();
    let part = |sent: &SentMessage| netserv_wire::nslp::Part::parse(&sent.data).unwrap().bytes;
    let whole = sent.iter().map(part).collect::<Vec<_>>().concat();
    let Ok(Payload::Request(envelope, message)) = Payload::parse(&whole) else { panic!() };
    assert_eq!((envelope.budget, message.as_str()), (Some(Duration::from_millis(39_500)), &text[..]));
    for message in &sent {
        node.status(message.handle, SendStatus::Sent);
    }
    node.report(request, report("me", "0.0.0.0"));
    let mut long = response(1, &["r2"]);
    long.entries[0].blocks = (0..3000).map(|n| format!("block-{n}>=1").parse().unwrap()).collect();
    for piece in netserv_wire::nslp::parts(&long.emit(), nonce) {
        node.receive(&flow().inverted(), 8, &piece);
    }
    let answer: Vec<u8> = std::iter::from_fn(|| node.nslp.poll_api_call())
        .map(|call| {
            let ApiCall::SendMessage { data, .. } = call else { panic!() };
            let Ok(Payload::Part(part)) = Payload::parse(&data) else { panic!() };
            part.bytes
        })
        .collect::<Vec<_>>()
        .concat();
    let Ok(Payload::Response(answer)) = Payload::parse(&answer) else { panic!() };
    assert_eq!(names(&answer.entries), ["me", "r2"]);
    assert_eq!(answer.entries[1].blocks.len(), 3000);
}

#[test]
fn a_missing_part_loses_the_text() {
    let mut node = Node::new(|_| {});
    let nonce = Nonce([1; 16]);
    let pieces = netserv_wire::nslp::parts(&"a".repeat(60_000), nonce);
    node.receive(&flow(), 8, &pieces[0]);
    node.receive(&flow(), 8, &pieces[2]);
    assert_eq!(node.nslp.counters().assemblies_lost, 1);
    node.receive(&flow(), 8, &pieces[1]);
    assert_eq!(node.nslp.counters().assemblies_lost, 2);
    node.receive(&flow(), 8, &pieces[0]);
    assert_eq!(node.nslp.state_counts().assemblies, 1);
    node.forgets(false);
    assert_eq!(node.nslp.counters().assemblies_lost, 3);
}
