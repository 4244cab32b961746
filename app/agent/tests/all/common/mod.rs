// SPDX-License-Identifier: Apache-2.0
//! The program, and a node that answers it.

use std::collections::BTreeMap;
use std::io::{BufReader, Write as _};
use std::net::IpAddr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::EncodePrivateKey as _;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use netserv_api::AgentStatus;
use netserv_model::api::PostRequest;
use netserv_model::request::Outcome;
use netserv_model::{Refusal, RefusalKind, SessionId};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// How long things may take on a busy machine.
pub const LONG: Duration = Duration::from_secs(60);

/// How long a node keeps what nobody asks for again.
const LEASE_S: u64 = 10;

/// The agent with a folder of its own.
pub struct Agent {
    pub dir: tempfile::TempDir,
    pub node: FakeNode,
    child: Option<Child>,
}

impl Agent {
    /// Starts one; `rule` is what its rule `edge` has beyond the module.
    pub fn start(rule: &str) -> Agent {
        let dir = tempfile::tempdir().unwrap();
        let key = SigningKey::from_bytes(&[7; 32]).to_pkcs8_pem(LineEnding::LF).unwrap();
        std::fs::write(dir.path().join("key.pem"), key.as_bytes()).unwrap();
        let path = |name: &str| dir.path().join(name);
        let text = format!(
            "netservd = {:?}\nuser = \"janedoe\"\nkey = {:?}\nstate-dir = {:?}\nsocket = {:?}\n\
             [[log]]\nname = \"access\"\nsocket = {:?}\npattern = \"nginx: {{client}} - \"\n\
             [[rule]]\nname = \"edge\"\nlog = \"access\"\nmodule = \"example.org/m@1.0.0\"\n\
             url = \"http://192.0.2.9/m.nsm\"\ndigest = \"sha256:{:064}\"\n{rule}",
            path("node.sock"),
            path("key.pem"),
            path("state"),
            path("agent.sock"),
            path("access.sock"),
            0,
        );
        std::fs::write(path("agent.toml"), text).unwrap();
        let node = FakeNode::serve(&path("node.sock"));
        let mut agent = Agent { dir, node, child: None };
        agent.run();
        agent
    }

    /// Runs the program, also after it was killed.
    pub fn run(&mut self) {
        self.reap();
        let log = std::fs::File::options().create(true).append(true).open(self.path("log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_netserv-agent"));
        command.arg("--config").arg(self.path("agent.toml")).stderr(log).stdin(Stdio::null());
        let child = command.spawn().unwrap();
        self.node.state().pid = i32::try_from(child.id()).unwrap();
        self.child = Some(child);
        let ready = || UnixStream::connect(self.path("agent.sock")).is_ok();
        assert!(wait_until(ready), "{}", self.log());
    }

    /// Returns whether it was ended, by whoever.
    pub fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some())
    }

    fn reap(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended.
            let _ = child.kill();
            child.wait().unwrap();
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Asks how things are; nothing if it has ended.
    pub fn status(&self) -> Option<AgentStatus> {
        let (_, body, _) = self.connect()?.call("GET", "/v1/status", "")?;
        Some(serde_json::from_str(&body).unwrap())
    }

    /// Tells of clients by HTTP; returns the status, and nothing if it has ended.
    pub fn observe(&self, clients: &[(&str, u32)]) -> Option<u16> {
        let all: Vec<Value> =
            clients.iter().map(|(client, count)| json!({ "rule": "edge", "client": client, "count": count })).collect();
        let body = json!({ "observations": all }).to_string();
        self.connect()?.call("POST", "/v1/observations", &body).map(|(status, ..)| status)
    }

    pub fn connect(&self) -> Option<Connection> {
        Some(Connection(BufReader::new(UnixStream::connect(self.path("agent.sock")).ok()?)))
    }

    /// Returns the bytes of memory that it has.
    pub fn memory(&self) -> u64 {
        let pid = self.child.as_ref().unwrap().id();
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        1024 * line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.reap();
    }
}

/// A connection to the agent that stays.
pub struct Connection(BufReader<UnixStream>);

impl Connection {
    /// Sends a request; returns status, body and what the header `netserv-node` has, and nothing if the agent ends.
    pub fn call(&mut self, method: &str, path: &str, body: &str) -> Option<(u16, String, String)> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.get_mut().write_all(head.as_bytes()).ok()?;
        let (first, headers, body) = read_message(&mut self.0)?;
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        let node = headers.iter().find_map(|line| line.strip_prefix("netserv-node:")).unwrap_or_default();
        Some((status, body, node.trim().to_owned()))
    }
}

/// Reads a message of HTTP: its first line, headers and body.
fn read_message(from: &mut impl std::io::BufRead) -> Option<(String, Vec<String>, String)> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|length| *length > 0)?;
        match line.trim_end() {
            "" => break,
            text => lines.push(text.to_owned()),
        }
    }
    let length =
        lines.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    from.read_exact(&mut body).ok()?;
    let first = lines.remove(0);
    Some((first, lines, String::from_utf8(body).ok()?))
}

/// A node's API, with a network behind it: each client is behind `n1`, and a last node by the third octet of its address.
#[derive(Clone)]
pub struct FakeNode(Arc<Mutex<State>>);

/// What the node was asked, and what is where.
#[derive(Default)]
pub struct State {
    /// Each request with its client.
    pub requests: Vec<String>,
    /// The last nodes that have the module, and until when.
    installed: BTreeMap<String, Instant>,
    /// How often the module came to a last node that had it not.
    pub came: usize,
    /// No REMOVE succeeds.
    pub keeps_all: bool,
    /// The last node hears nothing of what is behind it.
    pub host_is_silent: bool,
    /// How many answers to a TELL lack the last node, which was not heard in time.
    pub tells_cut: usize,
    /// The agent is killed at the request of that number, before or after it is done.
    pub kill_at: Option<(usize, bool)>,
    pid: i32,
    sessions: u8,
}

impl FakeNode {
    fn serve(socket: &Path) -> FakeNode {
        let listener = UnixListener::bind(socket).unwrap();
        let node = FakeNode(Arc::default());
        let served = node.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let node = served.clone();
                std::thread::spawn(move || node.answer(&stream.unwrap()));
            }
        });
        node
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn answer(&self, mut stream: &UnixStream) {
        let Some((_, _, body)) = read_message(&mut BufReader::new(stream)) else { return };
        let post: PostRequest = serde_json::from_str(&body).unwrap();
        let result = self.state().carry_out(&post).to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", result.len());
        // The agent may have been killed.
        let _ = stream.write_all(format!("{head}{result}").as_bytes());
    }
}

impl State {
    /// Returns whether no node has the module any more.
    pub fn is_gone(&self) -> bool {
        !self.installed.keys().any(|edge| self.is_at(edge))
    }

    fn is_at(&self, edge: &str) -> bool {
        self.installed.get(edge).is_some_and(|until| *until > Instant::now())
    }

    fn carry_out(&mut self, post: &PostRequest) -> Value {
        let method = post.message.split(' ').next().unwrap();
        let IpAddr::V4(client) = post.path.as_ref().unwrap().destination else { panic!("no client is of IPv6") };
        self.requests.push(format!("{method} {client}"));
        let kill = self.kill_at.filter(|(number, _)| *number == self.requests.len());
        if matches!(kill, Some((_, false))) {
            self.kill();
            return Value::Null;
        }
        let edge = format!("edge{}", client.octets()[2]);
        let outcome = match method {
            "SETUP" => {
                let is_new = !self.is_at(&edge);
                self.installed.insert(edge.clone(), Instant::now() + Duration::from_secs(LEASE_S));
                self.came += usize::from(is_new);
                if is_new { Outcome::Installed { lease_s: LEASE_S } } else { Outcome::Refreshed { lease_s: LEASE_S } }
            }
            "REMOVE" if self.keeps_all => Outcome::Refused(Refusal::new(RefusalKind::NodeFailed, "not now")),
            "REMOVE" if self.is_at(&edge) => {
                self.installed.remove(&edge);
                Outcome::Removed
            }
            "REMOVE" => Outcome::Refused(Refusal::new(RefusalKind::NotInstalled, "it is not here")),
            "TELL" => Outcome::Told,
            _ => Outcome::Probed,
        };
        self.sessions += u8::from(post.session.is_none());
        let session = post.session.unwrap_or(SessionId([self.sessions; 16]));
        if kill.is_some() {
            self.kill();
        }
        let node = |name: &str| json!({ "node": name, "address": "10.0.0.1", "outcome": outcome, "took_us": 1 });
        if method == "TELL" && self.tells_cut > 0 {
            self.tells_cut -= 1;
            let incomplete = Refusal::new(RefusalKind::Timeout, "nobody after n1 answered");
            return json!({ "session": session, "nodes": [node("n1")], "incomplete": incomplete, "took_us": 1 });
        }
        let mut result = json!({ "session": session, "nodes": [node("n1"), node(&edge)], "took_us": 1 });
        if self.host_is_silent {
            result["incomplete"] = json!(Refusal::new(RefusalKind::Timeout, format!("nobody after {edge} answered")));
        }
        result
    }

    fn kill(&mut self) {
        self.kill_at = None;
        kill_process(Pid::from_raw(self.pid).unwrap(), Signal::KILL).unwrap();
    }
}

/// Waits until something holds, for [`LONG`] at most.
pub fn wait_until(mut holds: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + LONG;
    while Instant::now() < until {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}
