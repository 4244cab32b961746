// SPDX-License-Identifier: Apache-2.0
//! The Wasm worker's process.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsFd as _;
use std::process::Command;
use std::time::{Duration, Instant};

use netserv_model::RefusalKind;
use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_wire::container::frames::{FromWorker, LogLevel, StorageFailures, ToWorker};
use netserv_wire::container::ring::{Answer, Ingress, Returned};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::node::{self, wait_for};
use crate::support::{bad_module, guest, guest_with};

/// A Wasm worker that dies with the test, and the directory in which its modules are compiled.
pub struct Node {
    node: node::Node,
    folder: tempfile::TempDir,
}

impl Node {
    pub fn start() -> Node {
        Node::start_with(&[])
    }

    /// Starts a worker with further arguments.
    pub fn start_with(arguments: &[&str]) -> Node {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netserv-worker"));
        command.arg("serve").args(arguments);
        let mut node = node::Node::start(command);
        assert_eq!(node.frame(), FromWorker::Ready { abi: 1, engine: "wasmtime 48.0.8".to_owned() });
        Node { node, folder: tempfile::tempdir().unwrap() }
    }

    pub fn load_with(&mut self, slot: u8, name: &str, wasm: &[u8], limits: ModuleLimits) -> FromWorker {
        let code = self.compile(wasm);
        self.node.load_file(slot, name, Some(&code), limits)
    }

    /// Loads a module that is parallel, and returns the answer.
    pub fn load_parallel(&mut self, slot: u8, name: &str, wasm: &[u8], limits: ModuleLimits) -> FromWorker {
        let code = self.compile(wasm);
        self.node.send_load(slot, name, Some(&code), limits, true);
        self.node.frame()
    }

    pub fn compile(&self, wasm: &[u8]) -> File {
        // The same file for each module: code that runs must not depend on the file that it came from.
        let (from, to) = (self.folder.path().join("in.wasm"), self.folder.path().join("out.cwasm"));
        std::fs::write(&from, wasm).unwrap();
        let compiled = Command::new(env!("CARGO_BIN_EXE_netserv-worker")).arg("compile").arg(from).arg(&to).output();
        let compiled = compiled.unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        File::open(to).unwrap()
    }

    pub fn load(&mut self, slot: u8, name: &str, wasm: &[u8]) {
        let answer = self.load_with(slot, name, wasm, ModuleLimits::default());
        assert_eq!(answer, FromWorker::Loaded { slot: ModuleSlot(slot) });
    }
}

impl Deref for Node {
    type Target = node::Node;

    fn deref(&self) -> &node::Node {
        &self.node
    }
}

impl DerefMut for Node {
    fn deref_mut(&mut self) -> &mut node::Node {
        &mut self.node
    }
}

/// Goal: a worker that may spin takes packets without being woken, and still hears its control socket; then it sleeps again.
#[test]
fn a_worker_spins_while_the_node_lets_it() {
    let mut node = Node::start();
    node.load(0, "adder", &adder());
    node.ring.let_spin(true);
    let packet = [1; 40];
    assert_eq!(node.round(1, &packet).answer, Answer::Modified);
    for _ in 0..200 {
        node.ring.push(&packet, Ingress::default(), 1, 7).unwrap();
        assert!(!node.ring.publish(), "it sleeps");
        assert_eq!(node.answers(1, &mut Vec::new())[0].cookie, 7);
    }
    node.send(&ToWorker::Stats, None);
    while !matches!(node.frame(), FromWorker::StatsDone { .. }) {}
    node.ring.let_spin(false);
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        std::thread::sleep(Duration::from_millis(5));
        node.ring.push(&packet, Ingress::default(), 1, 7).unwrap();
        if node.ring.publish() {
            break;
        }
        assert!(Instant::now() < until, "it does not sleep");
        node.answers(1, &mut Vec::new());
    }
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
    let (resident, own) = (node.memory_kib("VmRSS:"), node.memory_kib("RssAnon:"));
    println!("resident: {resident} KiB, of it anonymous: {own} KiB");
    // docs/figures.md: at most 6 MB with one module. Half of it may be the worker's own; the rest are pages of its program.
    // Here, where it is not optimised, both are more: the own by the addresses in the program that are set at its start, 2.6 MB of
    // them, the others by as much as the kernel has of them in its cache.
    assert!(own <= 3_400_000 / 1024, "{own} KiB");
    assert!(resident <= 18_000_000 / 1024, "{resident} KiB");
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
    let none = node.load_file(5, "bad", None, ModuleLimits::default());
    let FromWorker::Failed { refusal, .. } = none else { panic!("a refusal") };
    assert_eq!(refusal.kind, RefusalKind::NodeFailed);
    let not_code = tempfile::tempfile().unwrap();
    let answer = node.load_file(5, "bad", Some(&not_code), ModuleLimits::default());
    let FromWorker::Failed { refusal, .. } = answer else { panic!("a refusal") };
    assert_eq!(refusal.kind, RefusalKind::BadCode);
    assert_eq!(node.round(1 << 5, &[5; 64]).answer, Answer::Failed);
}

#[test]
fn an_endless_loop_is_seen_in_the_activity_word() {
    let mut node = Node::start();
    node.load(6, "loop", &bad_module("endless-loop.wat"));
    assert_eq!(node.ring.activity().module, None);
    node.push(1 << 6, &[&[5; 64]]);
    let until = Instant::now() + Duration::from_secs(60);
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
    assert_eq!(node.frame(), FromWorker::StatsDone { storage: StorageFailures::default() });
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
    let (mut injected, until) = (0, Instant::now() + Duration::from_secs(60));
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
