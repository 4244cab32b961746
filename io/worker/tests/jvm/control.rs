// SPDX-License-Identifier: Apache-2.0
//! What bundles are told while they run, and of their node, with the real host of `java/`, if it is built.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::process::Stdio;
use std::time::Duration;

use netserv_model::RefusalKind;
use netserv_model::control::{CONTROL_BYTES_MAX, ControlMessage};
use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_model::node_info::NodeInfo;
use netserv_wire::container::frames::{FromWorker, PartKind, TellVerdict, ToWorker};

use crate::host::{built, odd};
use crate::node::Node;
use crate::support::{java_homes, serve};

/// Goal: a listener is given what was kept, in order, and each message once; what it says goes out; it reads the last message of a
/// topic. A module that throws at a message, is gone, or never asked is told nothing.
#[test]
fn a_bundle_is_told_and_tells() {
    let Some(mut bench) = Bench::start() else { return };
    bench.load("pass");
    assert_eq!(bench.tell("a", 1, b""), TellVerdict::NoInbox);
    bench.load_with("listen", vec![message("b", 5, b"a"), message("a", 7, b"b")]);
    assert_eq!([bench.notify(), bench.notify()], [("b", "5 7"), ("a", "7 5")].map(owned));
    assert_eq!(bench.tell("c", u64::MAX, b"c"), TellVerdict::Taken);
    assert_eq!(bench.notify(), owned(("c", "18446744073709551615 -1")));
    assert_eq!(bench.tell("c", 9, &[b'x'; CONTROL_BYTES_MAX]), TellVerdict::Taken);
    assert_eq!(bench.notify(), owned(("c", "9 none")));
    assert_eq!(bench.tell("throw", 10, b"as it is told"), TellVerdict::Taken);
    let FromWorker::Failed { slot: SLOT, refusal } = bench.frame() else { panic!("it fails") };
    assert_eq!(refusal.kind, RefusalKind::Trapped);
    let first = refusal.context.first().map_or("", String::as_str);
    assert!(first.starts_with("in odd.Odd.told:"), "{refusal:?}");
    assert_eq!(refusal.detail, format!("java.lang.IllegalStateException: as it is told {first}"));
    assert_eq!(bench.tell("a", 11, b""), TellVerdict::NotLoaded);
    // What was kept is the next load's of that name alone, and goes with it.
    bench.node.send(&kept("other", vec![message("a", 1, b"")]), None);
    bench.load("listen");
    assert_eq!(bench.tell("d", 12, b"a"), TellVerdict::Taken);
    assert_eq!(bench.notify(), owned(("d", "12 none")));
    bench.node.send(&ToWorker::Unload { slot: SLOT }, None);
    assert_eq!(bench.tell("a", 13, b""), TellVerdict::NotLoaded);
}

/// Goal: what a listener does not take while it is busy is bounded, and what it says too.
#[test]
fn a_slow_bundle_is_full_and_a_talkative_one_is_cut() {
    let Some(mut bench) = Bench::start() else { return };
    bench.load("listen");
    assert_eq!(bench.tell("sleep", 1, b"1500"), TellVerdict::Taken);
    // The worker has seen the message once the listener sleeps.
    std::thread::sleep(Duration::from_millis(500));
    for seq in 2..72 {
        bench.node.send(&tell("a", seq, b""), None);
    }
    let mut verdicts = Vec::new();
    let mut said = 0;
    while verdicts.len() < 70 {
        let frame = bench.frame();
        if let FromWorker::Told { verdict, .. } = frame {
            verdicts.push(verdict);
            continue;
        }
        assert!(matches!(frame, FromWorker::Notify { .. }), "{frame:?}");
        said += 1;
    }
    let expected = [vec![TellVerdict::Taken; 64], vec![TellVerdict::Full; 6]].concat();
    assert_eq!(verdicts, expected);
    while said < 5 {
        assert!(matches!(bench.frame(), FromWorker::Notify { .. }));
        said += 1;
    }
    bench.node.send(&ToWorker::Stats, None);
    let frame = bench.frame();
    assert!(matches!(frame, FromWorker::Stats { .. }), "five and no more: {frame:?}");
}

#[test]
fn a_bundle_knows_its_node_as_it_was_when_it_was_loaded() {
    let Some(mut bench) = Bench::start() else { return };
    let facts = [("uplink".to_owned(), "10G".to_owned())].into();
    let addresses = vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
    let info = NodeInfo { id: "n1".to_owned(), place: "berlin".to_owned(), facts, addresses };
    let mut told = Vec::new();
    for info in [None, Some(info), Some(NodeInfo::default())] {
        if let Some(info) = info {
            bench.node.send(&ToWorker::Node { info }, None);
        }
        bench.send_load("where");
        let mut lines = Vec::new();
        while let FromWorker::Log { text, .. } = bench.node.frame() {
            lines.push(text);
        }
        told.push(lines.concat());
    }
    assert_eq!(
        told,
        ["  {} null []", "n1 berlin {uplink=10G} null [/192.0.2.1, /2001:db8:0:0:0:0:0:1]", "  {} null []"]
    );
}

const SLOT: ModuleSlot = ModuleSlot(3);

/// A worker on the first Java that there is.
struct Bench {
    node: Node,
    _data: tempfile::TempDir,
}

impl Bench {
    fn start() -> Option<Bench> {
        let dist = built()?;
        let data = tempfile::tempdir().unwrap();
        let mut command = serve(&java_homes().remove(0), &dist.join("host"), data.path());
        command.arg("--blocks").arg(dist.join("blocks")).stderr(Stdio::inherit());
        let mut node = Node::start(command);
        assert!(matches!(node.frame(), FromWorker::Ready { .. }));
        Some(Bench { node, _data: data })
    }

    fn load(&mut self, what: &str) {
        self.load_with(what, Vec::new());
    }

    fn load_with(&mut self, what: &str, messages: Vec<ControlMessage>) {
        if !messages.is_empty() {
            self.node.send(&kept("odd", messages), None);
        }
        self.send_load(what);
        assert_eq!(self.frame(), FromWorker::Loaded { slot: SLOT });
    }

    fn send_load(&self, what: &str) {
        let load = ToWorker::Load {
            slot: SLOT,
            module: "example.org/odd@1.0.0".parse().unwrap(),
            properties: BTreeMap::from([("do".to_owned(), what.to_owned())]),
            limits: ModuleLimits::default(),
            state_schema: 1,
            parts: vec![PartKind::Packet],
            server: None,
            blocks: ["control".to_owned()].into(),
            parallel: false,
        };
        self.node.send(&load, Some(File::open(odd()).unwrap().as_fd()));
    }

    fn tell(&mut self, topic: &str, seq: u64, body: &[u8]) -> TellVerdict {
        self.node.send(&tell(topic, seq, body), None);
        let frame = self.frame();
        let FromWorker::Told { slot: SLOT, seq: answered, verdict } = frame else { panic!("{frame:?}") };
        assert_eq!(answered, seq);
        verdict
    }

    fn notify(&mut self) -> (String, String) {
        let frame = self.frame();
        let FromWorker::Notify { slot: SLOT, message } = frame else { panic!("{frame:?}") };
        (message.topic.as_str().to_owned(), String::from_utf8(message.body).unwrap())
    }

    /// Waits for the next frame that is no line of the log.
    fn frame(&mut self) -> FromWorker {
        loop {
            let frame = self.node.frame();
            if !matches!(frame, FromWorker::Log { .. }) {
                return frame;
            }
        }
    }
}

fn message(topic: &str, seq: u64, body: &[u8]) -> ControlMessage {
    ControlMessage { topic: topic.parse().unwrap(), seq, body: body.to_vec() }
}

fn tell(topic: &str, seq: u64, body: &[u8]) -> ToWorker {
    ToWorker::Tell { slot: SLOT, message: message(topic, seq, body) }
}

fn kept(name: &str, messages: Vec<ControlMessage>) -> ToWorker {
    ToWorker::Kept { slot: SLOT, module: format!("example.org/{name}").parse().unwrap(), messages }
}

fn owned((topic, text): (&str, &str)) -> (String, String) {
    (topic.to_owned(), text.to_owned())
}
