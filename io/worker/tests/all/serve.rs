// SPDX-License-Identifier: Apache-2.0
//! A worker process, with the test in the place of the node.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::process::{Child, Command};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use netserv_model::RefusalKind;
use netserv_model::command::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_wire::container::frames::{FRAME_BYTES_MAX, FromWorker, LogLevel, ToWorker};
use netserv_wire::container::ring::{Answer, HostEnd, Ingress, Returned};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

use crate::support::{bad_module, guest, guest_with};
use crate::sys;

/// A worker that dies with the test.
pub struct Node {
    worker: Child,
    control: OwnedFd,
    wake_worker: OwnedFd,
    wake_host: OwnedFd,
    pub ring: HostEnd<&'static [AtomicU64]>,
    /// The whole ring as the node sees it.
    pub words: &'static [AtomicU64],
    folder: tempfile::TempDir,
}

/// What became of a packet.
#[derive(Debug, PartialEq)]
pub struct Answered {
    pub cookie: u64,
    pub answer: Answer,
    pub module: Option<u8>,
    pub bytes: Vec<u8>,
}

impl Node {
    pub fn start() -> Node {
        Node::start_with(&[])
    }

    /// Starts a worker with further arguments.
    pub fn start_with(arguments: &[&str]) -> Node {
        let (control, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let (memory, words) = sys::ring();
        let ring = HostEnd::new(words).unwrap();
        let wake_worker = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let wake_host = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_netserv-worker"));
        command.arg("serve").args(arguments);
        let worker = sys::spawn(command, [&theirs, &memory, &wake_worker, &wake_host]);
        let folder = tempfile::tempdir().unwrap();
        let mut node = Node { worker, control, wake_worker, wake_host, ring, words, folder };
        assert_eq!(node.frame(), FromWorker::Ready { abi: 1, engine: "wasmtime 48.0.8".to_owned() });
        node
    }

    pub fn send(&self, frame: &ToWorker, fd: Option<BorrowedFd<'_>>) {
        let bytes = frame.encode().unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds: Vec<_> = fd.into_iter().collect();
        if !fds.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(&fds)));
        }
        rustix::net::sendmsg(&self.control, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::empty()).unwrap();
    }

    /// Waits for the next frame.
    pub fn frame(&mut self) -> FromWorker {
        assert!(wait_for(self.control.as_fd()), "the worker says nothing");
        let mut bytes = vec![0; FRAME_BYTES_MAX];
        let (length, _) = rustix::net::recv(&self.control, &mut bytes[..], RecvFlags::empty()).unwrap();
        FromWorker::decode(&bytes[..length]).unwrap()
    }

    pub fn load_with(&mut self, slot: u8, name: &str, wasm: &[u8], limits: ModuleLimits) -> FromWorker {
        // The same file for each module: code that runs must not depend on the file that it came from.
        let (from, to) = (self.folder.path().join("in.wasm"), self.folder.path().join("out.cwasm"));
        std::fs::write(&from, wasm).unwrap();
        let compiled = Command::new(env!("CARGO_BIN_EXE_netserv-worker")).arg("compile").arg(from).arg(&to).output();
        let compiled = compiled.unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let load = ToWorker::Load {
            slot: ModuleSlot(slot),
            module: format!("example.org/{name}@1.0.0").parse().unwrap(),
            properties: BTreeMap::new(),
            limits,
            state_schema: 1,
        };
        let code = std::fs::File::open(to).unwrap();
        self.send(&load, Some(code.as_fd()));
        self.frame()
    }

    pub fn load(&mut self, slot: u8, name: &str, wasm: &[u8]) {
        let answer = self.load_with(slot, name, wasm, ModuleLimits::default());
        assert_eq!(answer, FromWorker::Loaded { slot: ModuleSlot(slot) });
    }

    pub fn push(&mut self, modules: u64, packets: &[&[u8]]) {
        for (cookie, packet) in packets.iter().enumerate() {
            self.ring.push(packet, Ingress { interface: 1, timestamp_ns: 1 }, modules, cookie as u64).unwrap();
        }
        self.publish();
    }

    pub fn publish(&mut self) {
        if self.ring.publish() {
            rustix::io::write(&self.wake_worker, &1_u64.to_ne_bytes()).unwrap();
        }
    }

    /// Waits for as many answers; what is injected meanwhile is put aside.
    pub fn answers(&mut self, count: usize, injected: &mut Vec<Vec<u8>>) -> Vec<Answered> {
        let (mut answered, mut stray) = (Vec::new(), 0);
        while answered.len() < count {
            match self.ring.pop().unwrap() {
                Some(Returned::Answer { cookie, answer, bytes, module, .. }) => {
                    answered.push(Answered {
                        cookie,
                        answer,
                        module: module.map(|slot| slot.0),
                        bytes: bytes.to_vec(),
                    });
                }
                Some(Returned::Injected { bytes, .. }) => injected.push(bytes.to_vec()),
                None => {
                    self.publish();
                    if self.ring.prepare_sleep() {
                        assert!(wait_for(self.wake_host.as_fd()), "the worker does not answer");
                        rustix::io::read(&self.wake_host, &mut [0; 8]).unwrap();
                    }
                    stray += 1;
                    assert!(stray < 10_000, "woken without a reason");
                }
            }
        }
        self.publish();
        answered
    }

    pub fn round(&mut self, modules: u64, packet: &[u8]) -> Answered {
        self.push(modules, &[packet]);
        self.answers(1, &mut Vec::new()).remove(0)
    }

    fn memory_kib(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.worker.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.worker.kill();
        let _ = self.worker.wait();
    }
}

fn wait_for(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    rustix::event::poll(&mut fds, Some(&Timespec { tv_sec: 10, tv_nsec: 0 })).unwrap() == 1
}

/// A guest that adds one to the first byte of the first packet.
fn adder() -> Vec<u8> {
    guest(
        "(i32.store8 (i32.const 131136) (i32.add (i32.load8_u (i32.const 131136)) (i32.const 1)))
        (i32.store (i32.const 65548) (i32.const 2))",
    )
}

/// A guest that stores how many batches it saw under the key "n", and puts that over the first byte.
fn kv_counter() -> Vec<u8> {
    guest_with(
        "(drop (call $kv_get (i32.const 0) (i32.const 1) (i32.const 4) (i32.const 1)))
        (i32.store8 (i32.const 4) (i32.add (i32.load8_u (i32.const 4)) (i32.const 1)))
        (drop (call $kv_set (i32.const 0) (i32.const 1) (i32.const 4) (i32.const 1)))
        (i32.store8 (i32.const 131136) (i32.load8_u (i32.const 4)))
        (i32.store (i32.const 65548) (i32.const 2))",
        "(data (i32.const 0) \"n\")",
    )
}

#[test]
fn packets_go_through_modules_and_back() {
    let mut node = Node::start();
    node.load(3, "first", &adder());
    node.load(1, "second", &adder());
    let answer = node.round(1 << 3 | 1 << 1, &[5; 64]);
    assert_eq!((answer.answer, answer.module, answer.bytes[0], answer.bytes[1]), (Answer::Modified, Some(1), 7, 5));
    let answer = node.round(1 << 3, &[5; 1984]);
    assert_eq!((answer.answer, answer.module, answer.bytes[0]), (Answer::Modified, Some(3), 6));
    assert_eq!(node.round(1 << 7, &[5; 64]).answer, Answer::Failed);

    let packets = vec![&[9_u8; 100][..]; 1000];
    node.push(1 << 1, &packets);
    let answers = node.answers(1000, &mut Vec::new());
    assert!(answers.iter().enumerate().all(|(n, one)| one.cookie == n as u64));
    assert!(answers.iter().all(|one| matches!(one.answer, Answer::Modified | Answer::Pass)));

    node.send(&ToWorker::Stats, None);
    let mut seen = BTreeMap::new();
    while let FromWorker::Stats { slot, packets, .. } = node.frame() {
        seen.insert(slot.0, packets.seen);
    }
    assert_eq!(seen, [(3, 2), (1, 1001)].into());
}

#[test]
fn a_worker_is_small() {
    let mut node = Node::start();
    node.load(0, "adder", &adder());
    node.round(1, &[5; 64]);
    let resident = node.memory_kib("VmRSS:");
    println!("resident: {resident} KiB, of it anonymous: {} KiB", node.memory_kib("RssAnon:"));
    // SPECIFICATION.md: at most 6 MB with one module.
    let allowed = 6_000_000 / 1024;
    assert!(resident <= allowed, "{resident} KiB");
}

#[test]
fn a_trap_is_told_and_the_others_go_on() {
    let mut node = Node::start();
    node.load(0, "trap", &bad_module("trap-on-packet.wat"));
    node.load(1, "adder", &adder());
    let answer = node.round(0b11, &[5; 64]);
    assert_eq!((answer.answer, answer.module), (Answer::Failed, Some(0)));
    let FromWorker::Failed { slot, refusal } = node.frame() else { panic!("a failure") };
    assert_eq!((slot.0, refusal.kind), (0, RefusalKind::Trapped));
    assert_eq!(node.round(0b10, &[5; 64]).answer, Answer::Modified);
    node.load(0, "trap", &adder());
    assert_eq!(node.round(0b11, &[5; 64]).bytes[0], 7);
}

#[test]
fn refusals_are_told() {
    let mut node = Node::start();
    let small = ModuleLimits { memory_bytes: 65_536, ..ModuleLimits::default() };
    for (wasm, limits, kind) in [
        (bad_module("trap-at-start.wat"), ModuleLimits::default(), RefusalKind::Trapped),
        (bad_module("wrong-abi.wat"), ModuleLimits::default(), RefusalKind::AbiMismatch),
        (adder(), small, RefusalKind::MemoryLimit),
    ] {
        let FromWorker::Failed { slot, refusal } = node.load_with(4, "bad", &wasm, limits) else { panic!("a refusal") };
        assert_eq!((slot.0, refusal.kind), (4, kind));
    }
    let load = ToWorker::Load {
        slot: ModuleSlot(5),
        module: "example.org/bad@1.0.0".parse().unwrap(),
        properties: BTreeMap::new(),
        limits: ModuleLimits::default(),
        state_schema: 1,
    };
    node.send(&load, None);
    let FromWorker::Failed { refusal, .. } = node.frame() else { panic!("a refusal") };
    assert_eq!(refusal.kind, RefusalKind::NodeFailed);
    let not_code = tempfile::tempfile().unwrap();
    node.send(&load, Some(not_code.as_fd()));
    let FromWorker::Failed { refusal, .. } = node.frame() else { panic!("a refusal") };
    assert_eq!(refusal.kind, RefusalKind::BadCode);
    assert_eq!(node.round(1 << 5, &[5; 64]).answer, Answer::Failed);
}

#[test]
fn an_endless_loop_is_seen_in_the_activity_word() {
    let mut node = Node::start();
    node.load(6, "loop", &bad_module("endless-loop.wat"));
    assert_eq!(node.ring.activity().module, None);
    node.push(1 << 6, &[&[5; 64]]);
    let until = Instant::now() + Duration::from_secs(5);
    while node.ring.activity().module != Some(ModuleSlot(6)) {
        assert!(Instant::now() < until, "the module never runs");
        std::thread::sleep(Duration::from_millis(1));
    }
    let before = node.ring.activity();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(node.ring.activity(), before);
    node.worker.kill().unwrap();
    assert_eq!(node.ring.take_outstanding().len(), 1);
}

#[test]
fn kv_state_outlives_a_replacement() {
    let mut node = Node::start();
    node.load(0, "counter", &kv_counter());
    assert_eq!(node.round(1, &[0; 64]).bytes[0], 1);
    assert_eq!(node.round(1, &[0; 64]).bytes[0], 2);
    // In another slot while the first still runs, and after it is gone.
    node.load(1, "counter", &kv_counter());
    assert_eq!(node.round(2, &[0; 64]).bytes[0], 3);
    node.send(&ToWorker::Unload { slot: ModuleSlot(0) }, None);
    node.send(&ToWorker::Unload { slot: ModuleSlot(1) }, None);
    node.load(2, "counter", &kv_counter());
    assert_eq!(node.round(4, &[0; 64]).bytes[0], 4);
    node.load(3, "other", &kv_counter());
    assert_eq!(node.round(8, &[0; 64]).bytes[0], 1);
}

#[test]
fn packets_under_way_are_answered_before_an_unload() {
    let mut node = Node::start();
    node.load(0, "adder", &adder());
    // The module leaves while its packets are in the ring: they are pushed and the frame is sent before it is woken.
    for cookie in 0..200 {
        node.ring.push(&[5; 64], Ingress::default(), 1, cookie).unwrap();
    }
    let must_wake = node.ring.publish();
    node.send(&ToWorker::Unload { slot: ModuleSlot(0) }, None);
    if must_wake {
        rustix::io::write(&node.wake_worker, &1_u64.to_ne_bytes()).unwrap();
    }
    let answers = node.answers(200, &mut Vec::new());
    assert!(answers.iter().all(|one| one.answer != Answer::Failed));
    node.send(&ToWorker::Stats, None);
    assert_eq!(node.frame(), FromWorker::StatsDone);
    assert_eq!(node.round(1, &[5; 64]).answer, Answer::Failed);
}

#[test]
fn timers_fire_while_the_ring_is_quiet() {
    let mut node = Node::start();
    let ticker = guest_with(
        "(drop (call $timer_set (i32.const 1) (i64.const 5000000) (i64.const 5000000)))",
        r#"(func (export "netserv_timer") (param i32) (drop (call $inject (i32.const 131136) (i32.const 32))))"#,
    );
    node.load(0, "ticker", &ticker);
    node.round(1, &[5; 64]);
    let (mut injected, until) = (0, Instant::now() + Duration::from_secs(5));
    // More than the worker has slots for, so that they come back to it.
    while injected < 300 {
        assert!(Instant::now() < until, "{injected} packets");
        match node.ring.pop().unwrap() {
            Some(Returned::Injected { bytes, module }) => {
                assert_eq!((bytes, module), (&[5; 32][..], Some(ModuleSlot(0))));
                injected += 1;
            }
            Some(other) => panic!("{other:?}"),
            None => {
                node.publish();
                if node.ring.prepare_sleep() {
                    assert!(wait_for(node.wake_host.as_fd()));
                    rustix::io::read(&node.wake_host, &mut [0; 8]).unwrap();
                }
            }
        }
    }
}

#[test]
fn what_a_timer_makes_is_seen_at_once() {
    let mut node = Node::start();
    let once = guest_with(
        "(drop (call $timer_set (i32.const 1) (i64.const 5000000) (i64.const 0)))",
        r#"(func (export "netserv_timer") (param i32) (drop (call $inject (i32.const 131136) (i32.const 32))))"#,
    );
    node.load(0, "once", &once);
    node.round(1, &[5; 64]);
    // Nothing else happens that could carry the packet along.
    if node.ring.prepare_sleep() {
        assert!(wait_for(node.wake_host.as_fd()), "the worker keeps the packet");
    }
    let injected = node.ring.pop().unwrap();
    assert_eq!(injected, Some(Returned::Injected { bytes: &[5; 32], module: Some(ModuleSlot(0)) }));
}

#[test]
fn logs_arrive_and_a_deaf_node_does_not_stop_packets() {
    let mut node = Node::start();
    let talker =
        guest_with("(drop (call $log (i32.const 1) (i32.const 0) (i32.const 5)))", "(data (i32.const 0) \"hello\")");
    node.load(0, "talker", &talker);
    node.round(1, &[5; 64]);
    let line = FromWorker::Log { slot: Some(ModuleSlot(0)), level: LogLevel::Warn, text: "hello".to_owned() };
    assert_eq!(node.frame(), line);
    node.load(1, "flood", &bad_module("log-flood.wat"));
    for _ in 0..200 {
        assert_eq!(node.round(0b11, &[5; 64]).answer, Answer::Pass);
    }
}

#[test]
fn shutdown_stops_modules_and_ends_well() {
    let mut node = Node::start();
    let stops = guest_with(
        "",
        r#"(data (i32.const 0) "bye")
        (func (export "netserv_stop") (drop (call $log (i32.const 2) (i32.const 0) (i32.const 3))))"#,
    );
    node.load(0, "stops", &stops);
    node.send(&ToWorker::Shutdown, None);
    assert!(matches!(node.frame(), FromWorker::Log { text, .. } if text == "bye"));
    assert!(node.worker.wait().unwrap().success());
}

#[test]
fn a_worker_ends_with_its_node() {
    let mut node = Node::start();
    let (unused, _) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    drop(std::mem::replace(&mut node.control, unused));
    assert!(node.worker.wait().unwrap().success());
}

#[test]
fn serve_needs_a_node() {
    let output = Command::new(env!("CARGO_BIN_EXE_netserv-worker")).arg("serve").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("started by netservd"));
}
