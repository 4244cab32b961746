// SPDX-License-Identifier: Apache-2.0
//! What outlives the worker's process, and what a module's parts tell each other.

use std::fs::File;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_wire::container::frames::{FromWorker, LogLevel, PartKind, ServerLoad, StorageFailures, ToWorker};
use netserv_worker_base::shared::kv::KvStores;
use netserv_worker_base::storage::{KV_FILE, StoreFile};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::serve::Node;
use crate::support::{PACKET, VERDICT, guest_with};

#[test]
fn kv_state_survives_a_worker_that_is_killed() {
    let store = Store::new(1 << 20);
    let mut node = store.node();
    node.load(0, "counter", &counter());
    assert_eq!(node.round(1, &[0; 64]).bytes[0], 1);
    assert_eq!(node.round(1, &[0; 64]).bytes[0], 2);
    eventually(|| store.count("counter") == Some(2));
    drop(node);
    let mut node = store.node();
    node.load(0, "counter", &counter());
    assert_eq!(node.round(1, &[0; 64]).bytes[0], 3);
    node.load(1, "other", &counter());
    assert_eq!(node.round(2, &[0; 64]).bytes[0], 1);
}

#[test]
fn a_worker_that_is_told_to_end_writes_everything_first() {
    let store = Store::new(1 << 20);
    for round in 1..=3 {
        let mut node = store.node();
        node.load(0, "counter", &counter());
        assert_eq!(node.round(1, &[0; 64]).bytes[0], round);
        if round == 2 {
            // So it ends when its node is gone, too.
            rustix::net::shutdown(&node.control, rustix::net::Shutdown::Both).unwrap();
        } else {
            node.send(&ToWorker::Shutdown, None);
        }
        assert!(node.worker.wait().unwrap().success());
        assert_eq!(store.count("counter"), Some(u64::from(round)));
    }
}

/// Goal: at whatever moment the worker is killed, the file is whole, and holds a value that the module had, never an
/// older one than it held before. Method: kill it while it writes as fast as it can, again and again.
#[test]
fn a_worker_that_is_killed_while_it_writes_leaves_a_whole_file() {
    let store = Store::new(256 << 10);
    let writes = "(local $n i32)
        (drop (call $kv_increment (i32.const 0) (i32.const 1) (i64.const 1) (i32.const 8)))
        (loop $next
            (i32.store (i32.const 16) (local.get $n))
            (drop (call $kv_set (i32.const 16) (i32.const 4) (i32.const 0) (i32.const 1000)))
            (br_if $next (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 40))))";
    let writer = guest_with(writes, "(data (i32.const 0) \"n\")");
    let mut last = 0;
    for round in 0..8_u32 {
        let mut node = store.node();
        node.load(0, "counter", &writer);
        let until = Instant::now() + Duration::from_millis(u64::from(550 + round * 7));
        while Instant::now() < until {
            node.round(1, &[0; 64]);
            // Unloading has it written at once, while the next version writes already.
            node.load(0, "counter", &writer);
        }
        drop(node);
        let mut stores = store.open();
        let count = stores.open(&"example.org/counter".parse().unwrap(), 1).lock().increment(b"n", 0, &limits());
        assert_eq!(stores.take_reports(), Vec::<String>::new());
        let count = count.unwrap();
        assert!(count >= last && count > 0, "{count} after {last}");
        last = count;
    }
}

#[test]
fn a_file_that_cannot_be_used_is_reported_and_costs_nothing_else() {
    let store = Store::new(1 << 20);
    std::fs::write(store.directory.path().join(KV_FILE), vec![7; 1 << 20]).unwrap();
    let mut node = store.node();
    node.load(0, "counter", &counter());
    let frame = node.frame();
    let FromWorker::Log { slot: None, level: LogLevel::Warn, text } = frame else { panic!("{frame:?}") };
    assert!(text.contains("damaged"), "{text}");
    node.send(&ToWorker::Stats, None);
    assert!(matches!(node.frame(), FromWorker::Stats { .. }));
    assert_eq!(node.frame(), FromWorker::StatsDone { storage: StorageFailures { kv: 1, cache: 0 } });
    assert_eq!(node.round(1, &[0; 64]).bytes[0], 1);
    node.send(&ToWorker::Shutdown, None);
    assert!(node.worker.wait().unwrap().success());
    assert_eq!(store.count("counter"), Some(1));
}

#[test]
fn messages_go_both_ways_also_while_a_module_is_replaced() {
    let store = Store::new(1 << 20);
    let mut node = store.node();
    let (packets, echo) = (store.compile("packets", &messenger()), store.compile("echo", &echo()));
    load_both(&mut node, &packets, &echo);
    let sent = 100_u8;
    for number in 0..sent {
        if number % 25 == 10 {
            load_both(&mut node, &packets, &echo);
        }
        node.round(1, &[number; 64]);
    }
    let mut answered = vec![];
    eventually(|| {
        // A packet that is no message, and asks what was counted.
        answered = node.round(1, &[255; 64]).bytes;
        // A server part that is replaced may have had one in hand.
        answered[0] >= sent - 4
    });
    assert_eq!(answered[1], 0, "messages came out of order");
    assert_eq!(answered[2], 0, "messages were refused");
}

#[test]
fn a_module_of_one_part_has_nobody_to_send_to() {
    let store = Store::new(1 << 20);
    let mut node = store.node();
    node.load(0, "messenger", &messenger());
    node.round(1, &[1; 64]);
    assert_eq!(node.round(1, &[255; 64]).bytes[..3], [0, 0, 1]);
}

/// A guest that counts batches under the key "n", and puts the count over the first byte.
fn counter() -> Vec<u8> {
    guest_with(
        &format!(
            "(drop (call $kv_increment (i32.const 0) (i32.const 1) (i64.const 1) (i32.const 8)))
            (i32.store8 (i32.const {PACKET}) (i32.load8_u (i32.const 8)))
            (i32.store (i32.const {VERDICT}) (i32.const 2))"
        ),
        "(data (i32.const 0) \"n\")",
    )
}

/// A guest that sends each packet's first byte to its server part, counts the answers under "n", those out of order
/// under "b", and those that were refused under "r", and shows all three over the packet 255.
fn messenger() -> Vec<u8> {
    let load = |key: u32, at: u32| {
        format!(
            "(drop (call $kv_increment (i32.const {key}) (i32.const 1) (i64.const 0) (i32.const 16)))
            (i32.store8 (i32.const {at}) (i32.load8_u (i32.const 16)))"
        )
    };
    let count =
        |key: u32| format!("(drop (call $kv_increment (i32.const {key}) (i32.const 1) (i64.const 1) (i32.const 16)))");
    let (counts, answer, disorder, refused) =
        ([load(0, PACKET), load(1, PACKET + 1), load(2, PACKET + 2)].concat(), count(0), count(1), count(2));
    guest_with(
        &format!(
            "(if (i32.eq (i32.load8_u (i32.const {PACKET})) (i32.const 255))
                (then {counts} (i32.store (i32.const {VERDICT}) (i32.const 2)))
                (else (if (call $message_send (i32.const {PACKET}) (i32.const 1)) (then {refused}))))"
        ),
        &format!(
            "(data (i32.const 0) \"nbrl\")
            (func (export \"netserv_message\")
                (loop $next
                    (if (i32.eq (call $message_receive (i32.const 32) (i32.const 4)) (i32.const 1)) (then
                        {answer}
                        ;; The last number is kept where the next version finds it.
                        (drop (call $kv_get (i32.const 3) (i32.const 1) (i32.const 48) (i32.const 1)))
                        (if (i32.lt_u (i32.load8_u (i32.const 32)) (i32.load8_u (i32.const 48))) (then {disorder}))
                        (drop (call $kv_set (i32.const 3) (i32.const 1) (i32.const 32) (i32.const 1)))
                        (br $next)))))"
        ),
    )
}

/// A program that sends every message back, and sleeps while there is none.
fn echo() -> Vec<u8> {
    wat::parse_str(
        r#"(component
            (import "wasi:io/poll@0.2.12" (instance $poll
                (export "pollable" (type $pollable (sub resource)))
                (export "[method]pollable.block" (func (param "self" (borrow $pollable))))))
            (alias export $poll "pollable" (type $pollable))
            (import "netserv:messages/exchange@1.0.0" (instance $exchange
                (alias outer 1 $pollable (type $outer))
                (export "pollable" (type $pollable (eq $outer)))
                (type $errors (enum "quota" "too-large" "no-peer"))
                (export "error" (type $error (eq $errors)))
                (export "send" (func (param "message" (list u8)) (result (result (error $error)))))
                (export "receive" (func (result (option (list u8)))))
                (export "subscribe" (func (result (own $pollable))))))
            (core module $memory
                (memory (export "memory") 1)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024)))
            (core instance $m (instantiate $memory))
            (core func $send (canon lower (func $exchange "send") (memory (core memory $m "memory"))))
            (core func $receive
                (canon lower (func $exchange "receive") (memory (core memory $m "memory")) (realloc (core func $m "realloc"))))
            (core func $subscribe (canon lower (func $exchange "subscribe")))
            (core func $block (canon lower (func $poll "[method]pollable.block")))
            (core module $main
                (import "" "memory" (memory 1))
                (import "" "send" (func $send (param i32 i32 i32)))
                (import "" "receive" (func $receive (param i32)))
                (import "" "subscribe" (func $subscribe (result i32)))
                (import "" "block" (func $block (param i32)))
                (func (export "run") (result i32)
                    (local $news i32)
                    (local.set $news (call $subscribe))
                    (loop $next
                        (call $receive (i32.const 16))
                        (if (i32.load8_u (i32.const 16))
                            (then (call $send (i32.load (i32.const 20)) (i32.load (i32.const 24)) (i32.const 32)))
                            (else (call $block (local.get $news))))
                        (br $next))
                    (unreachable)))
            (core instance $i (instantiate $main (with "" (instance
                (export "memory" (memory $m "memory"))
                (export "send" (func $send))
                (export "receive" (func $receive))
                (export "subscribe" (func $subscribe))
                (export "block" (func $block))))))
            (func $run (result (result)) (canon lift (core func $i "run")))
            (instance $exported (export "run" (func $run)))
            (export "wasi:cli/run@0.2.12" (instance $exported)))"#,
    )
    .unwrap()
}

/// The files of a user, in a directory of the test's.
struct Store {
    directory: tempfile::TempDir,
}

impl Store {
    fn new(kv_bytes: u64) -> Store {
        let directory = tempfile::tempdir().unwrap();
        File::create(directory.path().join(KV_FILE)).unwrap().set_len(kv_bytes).unwrap();
        Store { directory }
    }

    fn node(&self) -> Node {
        Node::start_with(&["--store", self.directory.path().to_str().unwrap()])
    }

    /// Returns what a worker that started right now would find.
    fn open(&self) -> KvStores {
        let copy = self.directory.path().join("copy");
        std::fs::copy(self.directory.path().join(KV_FILE), &copy).unwrap();
        KvStores::in_file(StoreFile::open(&copy))
    }

    fn count(&self, module: &str) -> Option<u64> {
        let state = self.open().open(&format!("example.org/{module}").parse().unwrap(), 1);
        let state = state.lock();
        state.value(b"n").map(|count| u64::from_le_bytes(count.try_into().unwrap()))
    }

    fn compile(&self, name: &str, wasm: &[u8]) -> File {
        let path = |extension| self.directory.path().join(name).with_extension(extension);
        let (from, to) = (path("wasm"), path("cwasm"));
        std::fs::write(&from, wasm).unwrap();
        run(Command::new(env!("CARGO_BIN_EXE_netserv-worker")).arg("compile").arg(from).arg(&to));
        open(&to)
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn open(path: &Path) -> File {
    File::open(path).unwrap()
}

fn limits() -> ModuleLimits {
    ModuleLimits::default()
}

/// Loads a module of both parts.
fn load_both(node: &mut Node, packets: &File, server: &File) {
    let load = ToWorker::Load {
        slot: ModuleSlot(0),
        module: "example.org/messenger@1.0.0".parse().unwrap(),
        properties: [].into(),
        limits: limits(),
        state_schema: 1,
        parts: vec![PartKind::Packet, PartKind::Server],
        server: Some(ServerLoad::default()),
        blocks: ["messages", "command", "match", "sip", "hash", "state"].map(str::to_owned).into(),
        parallel: false,
    };
    // Each has an offset of its own for whoever reads it.
    let path = |file: &File| format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
    let files = [packets, server].map(|file| open(Path::new(&path(file))));
    let fds: Vec<BorrowedFd<'_>> = files.iter().map(|file| file.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&fds)));
    let bytes = load.encode().unwrap();
    rustix::net::sendmsg(&node.control, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::empty()).unwrap();
    loop {
        let frame = node.frame();
        if let FromWorker::Loaded { .. } = frame {
            return;
        }
        let FromWorker::Log { text, .. } = frame else { panic!("{frame:?}") };
        eprintln!("{text}");
    }
}

fn eventually(mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < until, "it does not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}
