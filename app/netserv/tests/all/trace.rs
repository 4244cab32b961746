// SPDX-License-Identifier: Apache-2.0
//! `trace`: packets as they come, and every way in which a trace ends.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use crate::support::{Channel, FakeNode, Home, check, text};
use axum::body::Body;
use axum::http::StatusCode;
use netserv_api::ApiError;
use netserv_model::trace::{
    TraceEgress, TraceEnd, TraceEndReason, TraceFlow, TraceLine, TraceOrigin, TracePacket, TraceRequest, TraceStart,
    TraceStep,
};

const SHOWN: &str = "\
2026-11-21T02:00:01.204518Z  10.1.0.2:9 > 10.2.0.9:5060 udp 33 bytes, in eth0
  filter     no module wants it
  verdict    passed
  egress     the kernel forwards it, because this driver has the kernel forward everything
";
const ANNOUNCED: &str = "tracing `udp port 5060` in nfqueue, ends after 2 packets or 1h or with Ctrl-C\n";

#[test]
fn packets_are_shown_until_the_node_ends_the_trace() {
    let node = FakeNode::answering(200, lines(&[started(), packet(0), packet(3), ended(TraceEndReason::Count)]));
    let output = Home::empty().ask(&node, &["trace", "udp dport 5060", "--count", "2"]);
    let summary = "2 packets traced, 3 lost because they were not read fast enough\n";
    check(&output, 0, &SHOWN.repeat(2), &format!("{ANNOUNCED}{summary}"));
    let (path, body) = node.seen().remove(0);
    assert_eq!(path, "/v1/trace");
    let request: TraceRequest = serde_json::from_str(&body).unwrap();
    let filters = vec!["udp port 5060".parse().unwrap()];
    assert_eq!(request, TraceRequest { filters, count: 2, timeout_ms: 0, bytes: 0 });
}

#[test]
fn programs_get_the_lines_as_they_came() {
    let sent = [started(), packet(0), ended(TraceEndReason::Time)];
    let node = FakeNode::answering(200, lines(&sent));
    let output = Home::empty().ask(&node, &["-j", "trace", "udp", "dport", "5060"]);
    check(&output, 0, &lines(&sent), "");
}

#[test]
fn ctrl_c_ends_a_trace_with_its_summary() {
    let node = FakeNode::with(|| {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel::<String>();
        sender.send(lines(&[started(), packet(0)])).unwrap();
        // The answer goes on for as long as somebody reads it.
        tokio::spawn(async move { sender.closed().await });
        (StatusCode::OK, Body::new(Channel(receiver)))
    });
    let mut command = Home::empty().command(&["trace", "udp", "dport", "5060", "--count", "2"]);
    let command = command.current_dir("/").env("NETSERV_SOCKET", &node.socket);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut shown = String::new();
    while !shown.ends_with("forward everything\n") {
        assert_ne!(reader.read_line(&mut shown).unwrap(), 0, "{shown}");
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut stderr = String::new();
    child.stderr.unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((shown.as_str(), stderr), (SHOWN, format!("{ANNOUNCED}1 packet traced\n")));
}

#[test]
fn a_trace_that_breaks_off_is_a_failure() {
    let node = FakeNode::answering(200, lines(&[started()]));
    let output = Home::empty().ask(&node, &["-j", "trace"]);
    let error: ApiError = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((error.error.as_str(), output.status.code()), ("the node broke the trace off", Some(3)));
    let node = FakeNode::answering(200, "nonsense\n");
    let output = Home::empty().ask(&node, &["trace"]);
    assert!(text(&output.stderr).starts_with("error: a line of the trace is not understood"), "{output:?}");
}

#[test]
fn a_wrong_filter_says_where_and_never_reaches_the_node() {
    let stderr = "\
error: `dprt` is no word of a filter (character 5 of `udp dprt 5060`)
fix: a filter is `[ip|ip4|ip6] [tcp|udp|icmp|icmp6] [host NET] [src NET] [dst NET] [sport PORTS] [dport PORTS]`
";
    check(&Home::empty().netserv(&["trace", "--socket", "/nowhere", "udp", "dprt", "5060"]), 2, "", stderr);
}

#[test]
fn what_the_node_refuses_comes_with_its_own_words() {
    let error = ApiError { error: "4 traces run already".into(), fix: "end one of them".into() };
    let node = FakeNode::answering(503, serde_json::to_string(&error).unwrap());
    let stderr = "error: 4 traces run already\nfix: end one of them\n";
    check(&Home::empty().ask(&node, &["trace"]), 4, "", stderr);
}

fn lines(lines: &[TraceLine]) -> String {
    lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect()
}

fn started() -> TraceLine {
    let filters = vec!["udp port 5060".parse().unwrap()];
    TraceLine::Started(TraceStart { filters, driver: "nfqueue: the best".to_owned(), timeout_ms: 3_600_000 })
}

fn packet(lost: u64) -> TraceLine {
    let flow = TraceFlow {
        source: "10.1.0.2".parse().unwrap(),
        destination: "10.2.0.9".parse().unwrap(),
        protocol: 17,
        source_port: Some(9),
        destination_port: Some(5060),
    };
    let origin = TraceOrigin::Network { interface: 2, name: Some("eth0".to_owned()) };
    TraceLine::Packet(Box::new(TracePacket {
        steps: vec![TraceStep::NoFilter],
        egress: Some(TraceEgress::Kernel { why: "this driver has the kernel forward everything".to_owned() }),
        lost,
        ..TracePacket::new(1_795_226_401_204_518, origin, Some(flow), 33)
    }))
}

fn ended(reason: TraceEndReason) -> TraceLine {
    TraceLine::Ended(TraceEnd { reason, traced: 2, lost: 3, skipped: 0 })
}
