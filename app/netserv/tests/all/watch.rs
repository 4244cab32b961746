// SPDX-License-Identifier: Apache-2.0
//! `watch`: events as they come, and every way in which it ends.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Channel, FakeNode, Home, check, text};
use axum::body::Body;
use axum::http::StatusCode;
use netserv_api::{ApiError, EventLine, EventRecord, MissedEvents};
use netserv_model::notify::{Notify, NotifyEvent};
use netserv_model::{Nonce, SessionId, UnixTime};

const SHOWN: &str = "\
2026-11-21T02:00:01Z  route-moved    n1  jane  example.org/m  nb comes after n1 now; further on: nb, nc
2026-11-21T02:00:01Z  lease-ended    n1  jane  example.org/m  unknown-user: no user `jane` here
";

#[test]
fn events_are_shown_until_there_are_enough() {
    let node = FakeNode::answering(200, lines(&[moved(7), ended(8), moved(9)]));
    let output = Home::empty().ask(&node, &["watch", "--count", "2", "--since", "7"]);
    check(&output, 0, SHOWN, "watching, ends after 2 events or with Ctrl-C\n2 events seen\n");
    assert_eq!(node.seen()[0].0, "/v1/events?follow=true&since=7");
}

#[test]
fn what_is_missing_is_said() {
    let missed = |count| EventLine::Missed(MissedEvents { count, sequence: 7 });
    let node = FakeNode::answering(200, lines(&[missed(Some(3)), missed(None), moved(7)]));
    let output = Home::empty().ask(&node, &["watch", "--count", "1", "--since", "4"]);
    let shown =
        "3 events before this are not kept any more\nnetservd was started anew; what it had told before is gone\n";
    let first = SHOWN.lines().next().unwrap();
    check(&output, 0, &format!("{shown}{first}\n"), "watching, ends after 1 event or with Ctrl-C\n1 event seen\n");
}

#[test]
fn programs_get_the_lines_as_they_came() {
    let sent = [moved(7), ended(8)];
    let node = FakeNode::answering(200, lines(&sent));
    check(&Home::empty().ask(&node, &["-j", "watch", "--count", "2"]), 0, &lines(&sent), "");
}

#[test]
fn a_node_that_goes_away_is_a_failure_that_says_how_to_go_on() {
    let node = FakeNode::answering(200, lines(&[moved(7)]));
    let output = Home::empty().ask(&node, &["-j", "watch"]);
    let error: ApiError = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((error.error.as_str(), output.status.code()), ("netservd went away: it ended the stream", Some(3)));
    assert!(error.fix.ends_with("then go on with `netserv watch --since 8`"), "{}", error.fix);
    let node = FakeNode::answering(200, "nonsense\n");
    let output = Home::empty().ask(&node, &["watch"]);
    assert!(text(&output.stderr).contains("error: an event is not understood"), "{output:?}");
}

/// Goal: scripts can wait for an event, and learn whether it came.
#[test]
fn too_few_events_in_time_are_an_exit_code_of_their_own() {
    let quiet = || {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel::<String>();
        sender.send(lines(&[moved(7)])).unwrap();
        // The answer goes on for as long as somebody reads it.
        tokio::spawn(async move { sender.closed().await });
        (StatusCode::OK, Body::new(Channel(receiver)))
    };
    for (arguments, code) in [(&["--count", "2"][..], 6), (&[][..], 0)] {
        let (node, begun) = (FakeNode::with(quiet), Instant::now());
        let output = Home::empty().ask(&node, &[&["watch", "--timeout", "1s"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(text(&output.stderr).ends_with("1 event seen\n"), "{output:?}");
        assert!(begun.elapsed() >= Duration::from_secs(1));
    }
    let node = FakeNode::with(quiet);
    let mut command = Home::empty().command(&["watch", "--count", "2"]);
    let command = command.current_dir("/").env("NETSERV_SOCKET", &node.socket);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut shown = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut shown).unwrap();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0), "Ctrl-C ends it in order");
    let mut stderr = String::new();
    child.stderr.unwrap().read_to_string(&mut stderr).unwrap();
    assert!(stderr.ends_with("1 event seen\n"), "{stderr}");
}

#[test]
fn a_wrong_event_is_a_wrong_command_line() {
    let output = Home::empty().netserv(&["watch", "--socket", "/nowhere", "--event", "rout-moved"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("route-moved"), "{output:?}");
}

fn lines(lines: &[EventLine]) -> String {
    lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect()
}

fn moved(sequence: u64) -> EventLine {
    let nodes = ["nb", "nc"].map(|node| node.parse().unwrap()).to_vec();
    line(sequence, NotifyEvent::RouteMoved, nodes, "nb comes after n1 now")
}

fn ended(sequence: u64) -> EventLine {
    line(sequence, NotifyEvent::LeaseEnded, Vec::new(), "unknown-user: no user `jane` here")
}

fn line(sequence: u64, event: NotifyEvent, nodes: Vec<netserv_model::NodeId>, detail: &str) -> EventLine {
    let notify = Notify {
        session: SessionId([1; 16]),
        nonce: Nonce([2; 16]),
        user: "jane".parse().unwrap(),
        module: "example.org/m".parse().unwrap(),
        node: "n1".parse().unwrap(),
        event,
        nodes,
        detail: detail.to_owned(),
        topic: None,
        body: Vec::new(),
    };
    EventLine::News(Box::new(EventRecord { sequence, time: UnixTime(1_795_226_401_204), notify }))
}
