// SPDX-License-Identifier: Apache-2.0
//! Server modules in a worker's process, with real connections. Their components are in `modules/fixtures/server-tests`.

#![allow(clippy::wildcard_enum_match_arm, reason = "what was not waited for fails the test")]

mod active_cdn;
mod bad_input;
mod cache;
mod carried;
mod channel;
mod compressed;
mod crowd;
mod egress;
mod forward;
mod forwarding;
mod handed_over;
mod held;
mod hits;
mod http;
mod intercepted;
mod joined;
mod pages;
mod parts;
mod passed_on;
mod patience;
mod peer;
mod program;
mod radio;
mod refreshed;
mod resident;
mod slow;
mod start;
mod streams;
mod tcp;
mod udp;
mod upgrade;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_model::request::ServerCounts;
use netserv_model::{Filter, Refusal, RefusalKind};
use netserv_wire::container::frames::{FromWorker, LogLevel, PartKind, ServerLoad, ToWorker};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::{node, samples, shared};

/// The building blocks that modules of these tests are and import.
const BLOCKS: &[&str] = &[
    "http",
    "tcp",
    "command",
    "http-client",
    "properties",
    "crypto",
    "match",
    "sip",
    "hash",
    "messages",
    "channel",
    "kv",
    "udp",
    "cache",
    "compress",
    "control",
    "state",
    "metrics",
];
/// How long to wait for what must come.
const LONG: Duration = Duration::from_secs(60);

/// A worker, with the lines that its modules wrote.
pub struct Worker {
    node: node::Node,
    pub log: Vec<(LogLevel, String)>,
}

/// A module that is to be loaded.
#[derive(Clone)]
pub struct Spec {
    pub slot: u8,
    pub name: String,
    pub packet: Option<PathBuf>,
    pub component: Option<PathBuf>,
    pub tls: Option<PathBuf>,
    pub properties: BTreeMap<String, String>,
    pub limits: ModuleLimits,
    pub listen: Vec<u16>,
    /// Of the ports it listens at.
    pub protocol: &'static str,
    pub connect: Vec<String>,
    /// What it begins with.
    pub state: Option<Arc<File>>,
}

impl Spec {
    /// Returns the module of `modules/fixtures/server-tests`, at a free port.
    pub fn new() -> Spec {
        Spec::of(compiled("server_tests"))
    }

    pub fn program() -> Spec {
        Spec::of(compiled("server-program"))
    }

    pub fn of(component: PathBuf) -> Spec {
        Spec {
            slot: 0,
            name: "example.org/tests@1.0.0".to_owned(),
            packet: None,
            component: Some(component),
            tls: None,
            properties: BTreeMap::new(),
            limits: ModuleLimits::default(),
            listen: vec![free_port()],
            protocol: "tcp",
            connect: vec![],
            state: None,
        }
    }

    pub fn with(mut self, change: impl FnOnce(&mut Spec)) -> Spec {
        change(&mut self);
        self
    }

    pub fn property(mut self, name: &str, value: &str) -> Spec {
        self.properties.insert(name.to_owned(), value.to_owned());
        self
    }

    pub fn port(&self) -> u16 {
        self.listen[0]
    }
}

impl Worker {
    pub fn start() -> Worker {
        Worker::start_with(&[])
    }

    /// Starts a worker with further arguments.
    pub fn start_with(arguments: &[&OsStr]) -> Worker {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netserv-worker"));
        command.arg("serve").args(arguments);
        Worker::of(node::Node::start(command))
    }

    /// Returns a worker whose process is there, once it is ready.
    pub fn of(mut node: node::Node) -> Worker {
        assert!(matches!(node.frame(), FromWorker::Ready { .. }));
        Worker { node, log: Vec::new() }
    }

    /// Starts a worker with one module that runs.
    pub fn with(spec: &Spec) -> Worker {
        let mut worker = Worker::start();
        worker.load(spec);
        worker
    }

    pub fn load(&mut self, spec: &Spec) {
        self.send_load(spec);
        let answer = self.answer();
        assert_eq!(answer, FromWorker::Loaded { slot: ModuleSlot(spec.slot) });
    }

    /// Loads a module that must not run. Returns why.
    pub fn refused(&mut self, spec: &Spec) -> (RefusalKind, String) {
        self.send_load(spec);
        self.failed(spec.slot)
    }

    /// Waits until a module fails.
    pub fn failed(&mut self, slot: u8) -> (RefusalKind, String) {
        match self.answer() {
            FromWorker::Failed { slot: ModuleSlot(of), refusal } if of == slot => (refusal.kind, refusal.detail),
            other => panic!("{other:?}"),
        }
    }

    pub fn send_load(&mut self, spec: &Spec) {
        let addresses = ["127.0.0.1", "::1"].map(|address| address.parse().unwrap()).to_vec();
        let filters = |texts: Vec<String>| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<Filter>>();
        let listen = filters(spec.listen.iter().map(|port| format!("{} port {port}", spec.protocol)).collect());
        let server = ServerLoad { listen, addresses, connect: filters(spec.connect.clone()), ..ServerLoad::default() };
        let parts = [(PartKind::Packet, &spec.packet), (PartKind::Server, &spec.component), (PartKind::Tls, &spec.tls)];
        let mut parts: Vec<(PartKind, File)> =
            parts.into_iter().filter_map(|(kind, path)| Some((kind, File::open(path.as_ref()?).unwrap()))).collect();
        parts.extend(spec.state.iter().map(|state| (PartKind::State, state.try_clone().unwrap())));
        let load = ToWorker::Load {
            slot: ModuleSlot(spec.slot),
            module: spec.name.parse().unwrap(),
            properties: spec.properties.clone(),
            limits: spec.limits,
            state_schema: 1,
            parts: parts.iter().map(|(kind, _)| *kind).collect(),
            server: Some(server),
            blocks: BLOCKS.iter().map(|block| (*block).to_owned()).collect(),
            parallel: false,
        };
        let files: Vec<BorrowedFd<'_>> = parts.iter().map(|(_, file)| file.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(files.is_empty() || ancillary.push(SendAncillaryMessage::ScmRights(&files)));
        let bytes = load.encode().unwrap();
        rustix::net::sendmsg(&self.node.control, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::empty()).unwrap();
    }

    /// Waits for the next frame that is no line of a log.
    pub fn answer(&mut self) -> FromWorker {
        loop {
            match self.node.frame() {
                FromWorker::Log { level, text, .. } => self.log.push((level, text)),
                other => return other,
            }
        }
    }

    /// Asks a module for its state, and waits for nothing.
    pub fn ask_for_state(&mut self, slot: u8, file: &File) {
        self.node.send(&ToWorker::Export { slot: ModuleSlot(slot) }, Some(file.as_fd()));
    }

    /// Waits until a module does not say its state, which is told by the first, or fails. Returns why.
    pub fn exported_or_failed(&mut self) -> (bool, Refusal) {
        match self.answer() {
            FromWorker::Exported { refusal: Some(refusal), .. } => (true, refusal),
            FromWorker::Failed { refusal, .. } => (false, refusal),
            other => panic!("{other:?}"),
        }
    }

    /// Waits until a line of a module's log has `part` in it.
    pub fn wait_for_line(&mut self, part: &str) -> String {
        loop {
            if let Some(at) = self.log.iter().position(|(_, text)| text.contains(part)) {
                return self.log.remove(at).1;
            }
            match self.node.frame() {
                FromWorker::Log { level, text, .. } => self.log.push((level, text)),
                other => panic!("{other:?} instead of a line with {part}"),
            }
        }
    }

    /// Waits until so many requests came to the module in place 0.
    pub fn wait_for_requests(&mut self, count: u64) {
        while self.counts().requests < count {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns what the module in place 0 counted.
    pub fn counts(&mut self) -> ServerCounts {
        self.node.send(&ToWorker::Stats, None);
        let mut counts = None;
        loop {
            match self.answer() {
                FromWorker::Stats { slot: ModuleSlot(0), server, .. } => counts = server,
                FromWorker::Stats { .. } => {}
                FromWorker::StatsDone { .. } => return counts.unwrap(),
                other => panic!("{other:?}"),
            }
        }
    }
}

impl Deref for Worker {
    type Target = node::Node;

    fn deref(&self) -> &node::Node {
        &self.node
    }
}

impl DerefMut for Worker {
    fn deref_mut(&mut self) -> &mut node::Node {
        &mut self.node
    }
}

/// Returns a port that no other test of this run has, and that the kernel gives to nobody.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let number = u32::from(NEXT.fetch_add(1, Ordering::Relaxed)) + std::process::id() * 97;
        let port = 10_000 + u16::try_from(number % 20_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Waits until nobody listens at a port.
pub fn wait_until_closed(port: u16) {
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_ok() {
        assert!(begun.elapsed() < LONG, "somebody listens at {port}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the code of a component in `modules`, built and compiled once for all tests.
pub fn compiled(name: &str) -> PathBuf {
    let wasm = component(name);
    shared::file(&format!("{name}-{}.cwasm", shared::stamp(&wasm)), |code| compile(&[&wasm], code).unwrap())
}

/// Returns the code of a packet part in `modules`, built and compiled once for all tests.
pub fn compiled_packets(name: &str) -> PathBuf {
    let wasm = samples::wasm("wasm32-unknown-unknown", name);
    shared::file(&format!("{name}-packets-{}.cwasm", shared::stamp(&wasm)), |code| compile(&[&wasm], code).unwrap())
}

/// Returns a component in `modules`.
pub fn component(name: &str) -> PathBuf {
    samples::wasm("wasm32-wasip2", name)
}

/// Runs `netserv-worker compile`.
pub fn compile(wasm: &[&Path], out: &Path) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netserv-worker"));
    let output = command.arg("compile").args(wasm).arg(out).output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// Starts a server that has a thread for each connection. Returns its port.
pub fn serve_each(answer: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = answer.clone();
            std::thread::spawn(move || answer(stream.unwrap()));
        }
    });
    port
}

pub fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

/// Sends bytes on a connection of their own. Returns all that comes until the other side closes it.
pub fn talk(port: u16, bytes: &[u8]) -> String {
    let mut stream = connect(port);
    // Who is refused early may be so before all was sent.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Asks for a path on a connection of its own. Returns the status and the body.
pub fn get(port: u16, path: &str) -> (u16, String) {
    let answer =
        talk(port, format!("GET {path} HTTP/1.1\r\nhost: module.test\r\nconnection: close\r\n\r\n").as_bytes());
    (status(&answer), body(&answer))
}

/// Returns the status of the first response in `answer`; 0 if there is none.
pub fn status(answer: &str) -> u16 {
    answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok()).unwrap_or(0)
}

/// Returns the body of a response, with chunks put together.
pub fn body(answer: &str) -> String {
    let Some((head, rest)) = answer.split_once("\r\n\r\n") else { return String::new() };
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return rest.to_owned();
    }
    let (mut rest, mut body) = (rest, String::new());
    while let Some((size, after)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size, 16) else { break };
        let Some(chunk) = after.get(..size).filter(|chunk| !chunk.is_empty()) else { break };
        body.push_str(chunk);
        rest = after.get(size + 2..).unwrap_or("");
    }
    body
}
