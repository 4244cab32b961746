// SPDX-License-Identifier: Apache-2.0
//! Programs at the socket, with a control loop that the test plays.

use std::path::{Path, PathBuf};

use netserv_model::application::{ApplicationCall, Registered};
use netserv_patience::grown;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use super::*;
use crate::event::{ApplicationInput, ApplicationPort, Offered};
use crate::limits::*;
use crate::unix_socket::{OWNER, bind};

const REGISTER: &str = r#"{"call":"register","version":1,"nslp_id":32710}"#;
const CALL: &str = r#"{"call":"set-state-lifetime","lifetime_ms":0}"#;
const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_program_calls_and_is_told_until_it_goes() {
    let mut node = Node::start();
    let mut program = Program::connect(&node.path).await;
    let (client, port) = node.opened().await;
    program.say(REGISTER).await;
    assert!(matches!(node.call().await, (id, 1, ApplicationCall::Register(_)) if id == client));
    let registered = Registered { version: 1, node: "n1".parse().unwrap(), nslp_id: 32_710, router_alert: 65_503 };
    port.events.send(ApplicationEvent::Registered(registered)).await.unwrap();
    let told = json!({ "event": "registered", "version": 1, "node": "n1", "nslp_id": 32710, "router_alert": 65503 });
    assert_eq!(program.next().await, told);
    program.say(CALL).await;
    assert!(matches!(node.call().await, (_, 2, ApplicationCall::SetStateLifetime(_))));
    drop(program);
    assert_eq!(node.gone().await, client);
    assert_eq!(node.counts.open.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn malformed_lines_are_answered_and_application_malformed_max_end_the_connection() {
    let mut node = Node::start();
    let mut program = Program::connect(&node.path).await;
    let _opened = node.opened().await;
    program.say(REGISTER).await;
    node.call().await;
    let long = "x".repeat(APPLICATION_LINE_BYTES_MAX + 1);
    let bad = ["", "hello", "{}", "[1]", "\u{0}\u{ff}", r#"{"call":"fly"}"#, &format!("{{\"call\":\"{long}"), &long];
    for (number, line) in (2..).zip(bad) {
        program.say(line).await;
        let error = program.next().await;
        let of = |key: &str| error[key].clone();
        assert_eq!(
            [of("event"), of("error"), of("line"), of("fatal")],
            [json!("error"), json!("malformed"), json!(number), json!(false)]
        );
        assert!(of("cause").as_str().is_some_and(|cause| (10..=240).contains(&cause.len())), "{error}");
        assert!(of("fix").as_str().unwrap().contains("docs/nslp-api.md"), "{error}");
    }
    // A good line makes up for a bad one.
    program.say(CALL).await;
    node.call().await;
    for _ in 1..=APPLICATION_MALFORMED_MAX - 8 + 1 {
        program.say("bad").await;
        assert_eq!(program.next().await["error"], "malformed");
    }
    program.say("bad").await;
    let last = program.next().await;
    assert_eq!([&last["error"], &last["fatal"]], [&json!("too-many-errors"), &json!(true)]);
    program.ends().await;
    node.gone().await;
    assert_eq!(node.counts.malformed.load(Ordering::Relaxed), u64::from(APPLICATION_MALFORMED_MAX) + 2);
}

/// Goal: who does not read is cut, told why once it reads, and holds up nobody.
#[tokio::test]
async fn a_program_that_leaves_application_events_max_events_is_cut_and_told_why() {
    let mut node = Node::start();
    let mut program = Program::connect(&node.path).await;
    let (client, port) = node.opened().await;
    let event = || ApplicationEvent::Error(ApplicationError::new(ApplicationErrorKind::Refused, "x".repeat(999), None));
    let mut sent = 0;
    let mut idle = 0;
    while idle < 50 {
        match port.events.try_send(event()) {
            Ok(()) => (sent, idle) = (sent + 1, 0),
            // The writer may still fill the socket.
            Err(_) => {
                idle += 1;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    }
    assert!(sent >= APPLICATION_EVENTS_MAX, "{sent}");
    port.cut.send(()).unwrap();
    let mut told = 0;
    let last = loop {
        let line = program.next().await;
        if line["error"] != "refused" {
            break line;
        }
        told += 1;
    };
    assert_eq!([&last["error"], &last["fatal"]], [&json!("too-slow"), &json!(true)]);
    assert!(told < sent && told >= sent - APPLICATION_EVENTS_MAX, "{told} of {sent}");
    program.ends().await;
    assert_eq!(node.gone().await, client);
}

/// Goal: a flood of what anybody can send costs a program no more than that.
#[tokio::test]
async fn messages_of_strangers_take_half_of_the_room_and_cut_nobody() {
    let (events, mut told) = mpsc::channel(APPLICATION_EVENTS_MAX);
    let port = ApplicationPort { events, cut: tokio::sync::oneshot::channel().0 };
    let message = |validated: bool| {
        let flow = json!({ "source": "10.0.0.1", "destination": "10.0.9.9", "direction": "downstream" });
        let value = json!({
            "event": "recv-message", "session": "11".repeat(16), "flow": flow, "data": "aa", "peer": null,
            "peer_address": "10.0.0.2", "local_address": "10.0.0.1", "interface": 1, "ip_distance": null,
            "reliable": false, "secure": false, "validated": validated, "peer_name": null, "hops": 3,
        });
        serde_json::from_value::<ApplicationEvent>(value).unwrap()
    };
    let taken = (0..10_000).filter(|_| port.offer(message(false)) == Offered::Taken).count();
    assert_eq!((taken, port.offer(message(false))), (APPLICATION_EVENTS_MAX / 2, Offered::Lost));
    for _ in 0..APPLICATION_EVENTS_MAX / 2 {
        assert_eq!(port.offer(message(true)), Offered::Taken);
    }
    assert_eq!(port.offer(message(true)), Offered::Full);
    while told.try_recv().is_ok() {}
    assert_eq!(port.offer(message(false)), Offered::Taken, "once it has read");
}

/// Goal: a program that never reads at all ends within the time for one line.
#[tokio::test]
async fn a_program_that_never_reads_ends_after_application_write_wait() {
    let mut node = Node::start();
    let _program = Program::connect(&node.path).await;
    let (client, port) = node.opened().await;
    let long = ApplicationError::new(ApplicationErrorKind::Refused, "x".repeat(1 << 20), None);
    port.events.send(ApplicationEvent::Error(long)).await.unwrap();
    let begun = tokio::time::Instant::now();
    assert_eq!(node.gone().await, client);
    assert!(begun.elapsed() >= APPLICATION_WRITE_WAIT && begun.elapsed() < grown(2 * APPLICATION_WRITE_WAIT));
    assert_eq!(node.counts.cut.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_program_that_does_not_register_ends_after_application_register_wait() {
    let mut node = Node::start();
    let mut programs = Vec::new();
    let begun = tokio::time::Instant::now();
    for said in ["", CALL, REGISTER, "bad", "no end of line"] {
        let mut program = Program::connect(&node.path).await;
        let opened = node.opened().await;
        let end = if said == "no end of line" || said.is_empty() { "" } else { "\n" };
        program.write.write_all(format!("{said}{end}").as_bytes()).await.unwrap();
        // What the node does not take registers nobody.
        if said == CALL || said == REGISTER {
            node.call().await;
        }
        programs.push((said, program, opened));
    }
    for (said, mut program, _opened) in programs {
        if said == "bad" {
            assert_eq!(program.next().await["error"], "malformed");
        }
        let last = program.next().await;
        assert_eq!([&last["error"], &last["fatal"]], [&json!("silent"), &json!(true)]);
        assert!(begun.elapsed() >= APPLICATION_REGISTER_WAIT);
        program.ends().await;
        node.gone().await;
    }
}

#[tokio::test]
async fn application_connections_max_programs_connect_and_one_that_goes_makes_room() {
    let mut node = Node::start();
    let mut programs = Vec::new();
    for _ in 0..APPLICATION_CONNECTIONS_MAX {
        programs.push((Program::connect(&node.path).await, node.opened().await));
    }
    let mut turned_away = Program::connect(&node.path).await;
    assert_eq!(turned_away.next().await["error"], "too-many-programs");
    turned_away.ends().await;
    programs.pop();
    node.gone().await;
    assert_eq!(node.counts.turned_away.load(Ordering::Relaxed), 1);
    // Its place is free a moment after the node has heard of it.
    let mut again = Program::connect(&node.path).await;
    while timeout(Duration::from_millis(100), again.next()).await.is_ok() {
        again = Program::connect(&node.path).await;
    }
    node.opened().await;
}

/// Goal: calls come to the node at the speed that a program may have, and none is lost.
#[tokio::test]
async fn application_calls_per_second_calls_come_and_none_is_lost() {
    let mut node = Node::start();
    let mut program = Program::connect(&node.path).await;
    let _opened = node.opened().await;
    program.say(REGISTER).await;
    node.call().await;
    let begun = std::time::Instant::now();
    let wide = 12;
    for _ in 0..wide {
        program.say(CALL).await;
    }
    for number in 0..wide {
        assert_eq!(node.call().await.1, 2 + number);
    }
    let paid = f64::from(APPLICATION_WIDE_CALL) * 12.0 - f64::from(APPLICATION_CALLS_BURST);
    assert!(begun.elapsed().as_secs_f64() >= paid / f64::from(APPLICATION_CALLS_PER_SECOND) - 0.02);
    assert!(node.counts.paused.load(Ordering::Relaxed) >= 7);
}

#[tokio::test]
async fn programs_are_told_that_the_node_stops() {
    let mut node = Node::start();
    let mut program = Program::connect(&node.path).await;
    let (_, port) = node.opened().await;
    drop(port);
    assert_eq!(program.next().await["error"], "stopping");
    program.ends().await;
}

/// Goal: the published JSON Schema of the lines is the one that the code has. `NETSERV_REWRITE=1` writes it anew.
#[test]
fn the_published_schema_is_current() {
    let mut generator = schemars::generate::SchemaSettings::draft2020_12().into_generator();
    let lines =
        [json!(generator.subschema_for::<ApplicationCall>()), json!(generator.subschema_for::<ApplicationEvent>())];
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One line between a program that is an NSLP and its node (docs/nslp-api.md)",
        "anyOf": lines,
        "$defs": generator.take_definitions(true),
    });
    let current = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas/nslp-api.schema.json");
    if std::env::var_os("NETSERV_REWRITE").is_some() {
        std::fs::write(path, &current).unwrap();
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert!(published == current, "{path} is out of date; run this test with NETSERV_REWRITE=1");
}

/// The node's side, without a node.
struct Node {
    path: PathBuf,
    inbox: mpsc::Receiver<Event>,
    counts: Arc<ApplicationCounts>,
    _dir: tempfile::TempDir,
}

impl Node {
    fn start() -> Node {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gist.sock");
        let listener = bind(&path, OWNER, "signaling.applications.socket").unwrap();
        let (control, inbox) = mpsc::channel(4);
        let counts = Arc::new(ApplicationCounts::default());
        tokio::spawn(serve(listener, control, counts.clone()));
        Node { path, inbox, counts, _dir: dir }
    }

    async fn input(&mut self) -> ApplicationInput {
        let event = timeout(SOON, self.inbox.recv()).await.expect("something happens").expect("the socket is served");
        let Event::Application(input) = event else { panic!("something else than a program") };
        input
    }

    async fn opened(&mut self) -> (ClientId, ApplicationPort) {
        match self.input().await {
            ApplicationInput::Opened(client, port) => (client, port),
            ApplicationInput::Call(..) | ApplicationInput::Gone(_) => panic!("nobody connected"),
        }
    }

    async fn call(&mut self) -> (ClientId, u64, ApplicationCall) {
        match self.input().await {
            ApplicationInput::Call(client, line, call) => (client, line, *call),
            ApplicationInput::Opened(..) | ApplicationInput::Gone(_) => panic!("nobody called"),
        }
    }

    async fn gone(&mut self) -> ClientId {
        loop {
            match self.input().await {
                ApplicationInput::Gone(client) => return client,
                ApplicationInput::Call(..) => {}
                ApplicationInput::Opened(..) => panic!("nobody went"),
            }
        }
    }
}

struct Program {
    write: tokio::net::unix::OwnedWriteHalf,
    read: tokio::io::Lines<BufReader<tokio::net::unix::OwnedReadHalf>>,
}

impl Program {
    async fn connect(path: &Path) -> Program {
        let (read, write) = UnixStream::connect(path).await.unwrap().into_split();
        Program { write, read: BufReader::new(read).lines() }
    }

    async fn say(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = timeout(SOON, self.read.next_line()).await.expect("it is told something");
        serde_json::from_str(&line.unwrap().expect("the connection is open")).unwrap()
    }

    async fn ends(&mut self) {
        let end = timeout(SOON, self.read.next_line()).await.expect("the connection ends");
        assert!(!matches!(end, Ok(Some(_))), "{end:?}");
    }
}
