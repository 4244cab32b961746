// SPDX-License-Identifier: Apache-2.0
//! Programs that are NSLPs on nodes: the sample of docs/examples over a path of three, and programs that misbehave.

use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use crate::common::Driver;
use netserv_lab::netns::{Lab, is_root, wait_until};
use netserv_lab::node::workspace;
use netserv_lab::topology::{Kind, Topology};
use netserv_model::request::PathEnd;
use netserv_skips::skipped;
use serde_json::{Value, json};

over_one_driver! {
    afxdp: [programs_that_misbehave_are_told_and_disturb_nobody]
    nfqueue: [
        a_ping_finds_every_copy_on_the_path_and_passes_by_one_that_is_killed,
        a_message_is_taken_back_while_it_waits_and_one_without_state_arrives_unproven,
    ]
}

const SOON: Duration = Duration::from_secs(20);
const NODES: [&str; 3] = ["n1", "n2", "n3"];
const SESSION: &str = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a";

/// Goal: the sample works between nodes as it is, by datagrams and over connections, over both versions of IP; once a copy of
/// it is killed, Queries pass its node by, and NetServ's own signaling finds all nodes as before.
fn a_ping_finds_every_copy_on_the_path_and_passes_by_one_that_is_killed(driver: Driver) {
    let Some(mut net) = Net::up("a_ping_finds_every_copy_on_the_path_and_passes_by_one_that_is_killed", driver) else {
        return;
    };
    for node in NODES {
        net.start_ping(node);
    }
    for receiver in net.receivers() {
        for reliable in [false, true] {
            assert_eq!(net.ping(receiver, reliable), "sender n1 n2 n3 unreachable\n", "{receiver}, {reliable}");
        }
    }
    net.lab.kill("n2", "ping").unwrap();
    assert!(wait_until(SOON, || !net.status("n2").contains("nslp ")), "{}", net.status("n2"));
    for receiver in net.receivers() {
        for reliable in [false, true] {
            assert_eq!(net.ping(receiver, reliable), "sender n1 n3 unreachable\n", "{receiver}, {reliable}");
        }
        net.assert_path(receiver);
    }
    assert!(net.status("n1").contains("nslp     32710 n1, Router Alert 65503"), "{}", net.status("n1"));
    net.start_ping("n2");
    assert_eq!(net.ping(net.receivers()[0], true), "sender n1 n2 n3 unreachable\n");
    assert_eq!(net.count("n2", "registered"), 2);
    assert_eq!(net.count("n2", "gone"), 1);
}

/// Goal: what is wrong is told with cause and fix, counted, and ends at most the program's own connection. Method: garbage, two
/// programs for one id, and a program that calls without pause and never reads, while paths are asked for.
fn programs_that_misbehave_are_told_and_disturb_nobody(driver: Driver) {
    let Some(net) = Net::up("programs_that_misbehave_are_told_and_disturb_nobody", driver) else { return };
    let mut garbage = net.connect("n1");
    for number in 0..200_u32 {
        let line: Vec<u8> =
            (0..number * 7 % 251).map(|n| (n * 31 + number).to_le_bytes()[0]).filter(|byte| *byte != b'\n').collect();
        if garbage.get_mut().write_all(&[line, b"\n".to_vec()].concat()).is_err() {
            break;
        }
    }
    let told = rest(&mut garbage);
    assert_eq!(told.len(), 33, "{told:?}");
    assert!(told.iter().all(|error| error["cause"].is_string() && error["fix"].is_string()), "{told:?}");
    assert_eq!([&told[0]["error"], &told[32]["error"]], [&json!("malformed"), &json!("too-many-errors")]);

    let mut first = net.register("n1", 32_710);
    let mut second = net.connect("n1");
    say(&mut second, &json!({ "call": "register", "version": 1, "nslp_id": 32_710 }));
    let told = rest(&mut second);
    assert_eq!((told.len(), &told[0]["error"], &told[0]["fatal"]), (1, &json!("taken"), &json!(true)));

    let mut flood = net.register("n1", 32_711);
    flood.get_mut().set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    let (to, from) = (net.lab.v4("receiver"), net.lab.v4("n1"));
    let flow = json!({ "source": from, "destination": to, "direction": "downstream" });
    let mut sent = 0_u64;
    let mut paths = 0;
    let was_cut = wait_until(Duration::from_secs(60), || {
        // As fast as the socket takes them.
        for _ in 0..200 {
            sent += 1;
            let session = format!("{sent:032x}");
            let call =
                json!({ "call": "send-message", "handle": sent, "session": session, "flow": flow, "data": "00" });
            if flood.get_mut().write_all(format!("{call}\n").as_bytes()).is_err() {
                break;
            }
        }
        net.receivers().into_iter().for_each(|receiver| net.assert_path(receiver));
        paths += 1;
        net.count("n1", "cut") > 0
    });
    assert!(was_cut && paths > 0, "{sent} calls, {paths} paths");
    assert!(net.count("n1", "paused") > 0 && net.count("n1", "message-sent") > 100);
    let told = rest(&mut flood);
    assert_eq!(told.last().map(|last| &last["error"]), Some(&json!("too-slow")));

    // The one that behaves has noticed nothing.
    let call = json!({ "call": "send-message", "handle": 1, "session": SESSION, "flow": flow, "data": "00" });
    say(&mut first, &call);
    let status = next(&mut first);
    assert_eq!(
        [&status["event"], &status["handle"], &status["status"]],
        [&json!("message-status"), &json!(1), &json!("no-peer")]
    );
    assert!(net.count("n1", "malformed-line") >= 33);
    net.register("n1", 32_711);
}

/// Goal: what a program says of a message's transfer holds between nodes, and a message that waits is taken back. Method: the
/// flow of the one that waits ends at an address that nobody has.
fn a_message_is_taken_back_while_it_waits_and_one_without_state_arrives_unproven(driver: Driver) {
    let test = "a_message_is_taken_back_while_it_waits_and_one_without_state_arrives_unproven";
    let Some(net) = Net::up(test, driver) else { return };
    let (mut near, mut far) = (net.register("n1", 32_710), net.register("n3", 32_710));
    let [v4, v6] = net.receivers();
    for (to, from) in [(v4, net.lab.v4("n1").into()), (v6, IpAddr::from(net.lab.v6("n1")))] {
        let flow = json!({ "source": from, "destination": to, "direction": "downstream" });
        let call = json!({
            "call": "send-message", "handle": 1, "session": SESSION, "flow": flow, "data": "00ff00ff", "state": "not-needed",
        });
        say(&mut near, &call);
        let status = next(&mut near);
        let carried = json!({ "by": "q-mode", "reliable": false, "secure": false });
        assert_eq!([&status["status"], &status["carried"]], [&json!("sent"), &carried]);
        let message = next(&mut far);
        assert_eq!([&message["validated"], &message["data"]], [&json!(false), &json!("00ff00ff")], "{message}");
        assert!(message["ip_ttl"].as_u64().is_some_and(|ttl| ttl > 1), "{message}");
    }
    let mut nobody = net.lab.v4("receiver").octets();
    nobody[3] = 99;
    let flow = json!({ "source": net.lab.v4("n3"), "destination": IpAddr::from(nobody), "direction": "downstream" });
    let message = |handle: u64| json!({ "call": "send-message", "handle": handle, "session": SESSION, "flow": flow, "data": "00", "priority": 9 });
    for abort in
        [json!({ "call": "abort-message", "handle": 2 }), json!({ "call": "abort-session", "session": SESSION })]
    {
        say(&mut far, &message(2));
        say(&mut far, &abort);
        let status = next(&mut far);
        assert_eq!(
            [&status["handle"], &status["status"], &status["reason"]],
            [&json!(2), &json!("failed"), &json!("cancelled")],
            "{status}"
        );
    }
    say(&mut far, &json!({ "call": "abort-message", "handle": 2 }));
    let error = next(&mut far);
    assert_eq!([&error["error"], &error["handle"], &error["fatal"]], [&json!("not-waiting"), &json!(2), &json!(false)]);
}

/// `sender – n1 – n2 – n3 – receiver`, with a daemon on all but the receiver.
struct Net {
    lab: Lab,
}

impl Net {
    fn up(test: &str, driver: Driver) -> Option<Net> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        let mut chain = vec![("sender", Kind::Host)];
        chain.extend(NODES.map(|node| (node, Kind::Node)));
        chain.push(("receiver", Kind::Host));
        let mut lab = Lab::up(Topology::chain(&chain)).unwrap();
        lab.use_driver(driver.name());
        let mut net = Net { lab };
        for (machine, role) in [("sender", "host")].into_iter().chain(NODES.map(|node| (node, "node"))) {
            let extra = format!("[signaling.applications]\nsocket = {:?}\n", net.socket(machine));
            net.lab.start_netservd(machine, role, &[], &extra).unwrap();
        }
        Some(net)
    }

    fn socket(&self, machine: &str) -> PathBuf {
        self.lab.dir().join(format!("{machine}-gist.sock"))
    }

    fn receivers(&self) -> [IpAddr; 2] {
        [self.lab.v4("receiver").into(), self.lab.v6("receiver").into()]
    }

    /// Starts the sample on a node; returns when it is an NSLP there.
    fn start_ping(&mut self, node: &str) {
        let mut command = self.ping_command(node);
        self.lab.start(node, "ping", &mut command).unwrap();
        let registered = wait_until(SOON, || self.status(node).contains("nslp     32710"));
        assert!(registered, "{}", self.lab.log(node, "ping"));
    }

    fn ping_command(&self, machine: &str) -> std::process::Command {
        let mut command = self.lab.command(machine, "python3");
        command.arg(workspace().join("docs/examples/ping-nslp.py"));
        command.arg("--socket").arg(self.socket(machine)).args(["--name", machine]);
        command
    }

    /// Returns what the sample says of the path to an address.
    fn ping(&self, to: IpAddr, reliable: bool) -> String {
        let mut command = self.ping_command("sender");
        command.args(["--to", &to.to_string()]).args(reliable.then_some("--reliable"));
        let output = command.output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    /// NetServ's own signaling finds all nodes.
    fn assert_path(&self, to: IpAddr) {
        let result = self.lab.request("sender", &["path", &to.to_string(), "--timeout", "20s"]).unwrap();
        let nodes: Vec<&str> =
            result.nodes.iter().map(|node| node.node.as_str()).filter(|node| *node != "sender").collect();
        assert_eq!((nodes, result.end), (NODES.to_vec(), Some(PathEnd::Unreachable)), "{:?}", result.incomplete);
    }

    fn status(&self, machine: &str) -> String {
        let output = self.lab.netserv(machine, &["node", "status"]).unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn count(&self, machine: &str, event: &str) -> u64 {
        let metrics = self.lab.metrics(machine).unwrap();
        let name = format!("netserv_application_events_total{{event=\"{event}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
    }

    fn connect(&self, machine: &str) -> BufReader<UnixStream> {
        let stream = UnixStream::connect(self.socket(machine)).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        BufReader::new(stream)
    }

    fn register(&self, machine: &str, id: u16) -> BufReader<UnixStream> {
        let mut program = self.connect(machine);
        say(&mut program, &json!({ "call": "register", "version": 1, "nslp_id": id }));
        assert_eq!(next(&mut program)["event"], "registered");
        program
    }
}

fn say(program: &mut BufReader<UnixStream>, line: &Value) {
    program.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn next(program: &mut BufReader<UnixStream>) -> Value {
    let mut line = String::new();
    program.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// Returns all that a program is told until its connection ends.
fn rest(program: &mut BufReader<UnixStream>) -> Vec<Value> {
    // A connection that ends with unread lines ends with an error.
    program.lines().map_while(Result::ok).map(|line| serde_json::from_str(&line).unwrap()).collect()
}
