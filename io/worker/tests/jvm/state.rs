// SPDX-License-Identifier: Apache-2.0
//! What bundles carry to another worker, with the real host of `java/`, if it is built.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_model::{Refusal, RefusalKind};
use netserv_wire::container::frames::{FromWorker, PartKind, ToWorker};
use netserv_wire::container::ring::Answer;
use netserv_wire::state::{ModuleState, StatePart};

use crate::host::{built, odd};
use crate::node::Node;
use crate::support::{java_homes, serve_within};

/// Goal: what a bundle says, and what it puts into kv meanwhile, is what another begins with.
#[test]
fn a_bundle_carries_what_it_says() {
    let Some(mut bench) = Bench::start() else { return };
    assert_eq!(bench.load(0, "carry", None), Ok(vec![]));
    let state = bench.node.export(0).unwrap();
    assert_eq!(parts_of(&state), [b"carry"]);
    assert_eq!(bench.load(0, "carry-again", Some(&state)), Ok(vec!["took carry".to_owned()]));
    assert_eq!(parts_of(&bench.node.export(0).unwrap()), [b"carry-again"]);
    // Without a state, the next one begins with none.
    assert_eq!(bench.load(0, "carry-much", None), Ok(vec![]));
    let bytes = bytes_of(&bench.node.export(0).unwrap());
    let much = ModuleState::parse(&bytes).unwrap();
    assert_eq!(much.parts[&StatePart::Packet].len(), 1 << 20);
    assert_eq!(much.entries, [(b"n".as_slice(), [7].as_slice())]);
    for what in ["carry-nothing", "pass"] {
        assert_eq!(bench.load(0, what, None), Ok(vec![]));
        let state = bench.node.export(0).unwrap();
        assert_eq!(parts_of(&state), [[0; 0]; 0]);
        assert_eq!(bench.load(1, "pass", Some(&state)), Ok(vec![]), "there is nothing to take but kv");
    }
}

/// Goal: a bundle that does not say its state is refused by name, as often as it is asked, and goes on.
#[test]
fn a_bundle_that_does_not_say_its_state_goes_on() {
    let Some(mut bench) = Bench::with_memory(512 << 20) else { return };
    for (what, why) in [("carry-throw", "not now"), ("carry-too-much", "67108865 bytes of state")] {
        assert_eq!(bench.load(0, what, None), Ok(vec![]));
        for _ in 0..2 {
            let refusal = bench.node.export(0).unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::StateRefused);
            assert!(refusal.detail.contains(why), "{refusal}");
            assert_eq!(bench.node.round(1, &[0; 64]).answer, Answer::Pass);
        }
    }
    // With so little heap there is no room to say it.
    let Some(mut small) = Bench::start() else { return };
    assert_eq!(small.load(0, "carry-too-much", None), Ok(vec![]));
    let refusal = small.node.export(0).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::StateRefused);
    assert!(refusal.detail.contains("OutOfMemoryError"), "{refusal}");
    assert_eq!(small.node.round(1, &[0; 64]).answer, Answer::Pass);
}

/// Goal: the node's watchdog sees which bundle never says its state.
#[test]
fn a_bundle_that_never_says_its_state_is_seen_by_the_watchdog() {
    let Some(mut bench) = Bench::start() else { return };
    assert_eq!(bench.load(5, "carry-hang", None), Ok(vec![]));
    let (mut reader, writer) = std::io::pipe().unwrap();
    bench.node.send(&ToWorker::Export { slot: ModuleSlot(5) }, Some(writer.as_fd()));
    drop(writer);
    let until = Instant::now() + Duration::from_secs(60);
    while bench.node.ring.activity().module != Some(ModuleSlot(5)) {
        assert!(Instant::now() < until, "the bundle is never asked");
        std::thread::yield_now();
    }
    bench.node.worker.kill().unwrap();
    assert_eq!(reader.read_to_end(&mut Vec::new()).unwrap(), 0, "nothing came");
}

/// Goal: whatever comes as a state, and whatever a bundle does that is to take it, what ran before goes on with all that it knows.
#[test]
fn a_state_that_is_not_taken_is_refused_and_what_runs_goes_on() {
    let Some(mut bench) = Bench::start() else { return };
    assert_eq!(bench.load(0, "carry-much", None), Ok(vec![]));
    let before = bytes_of(&bench.node.export(0).unwrap());
    let state = |part: StatePart| {
        let parts = BTreeMap::from([(part, b"said".as_slice())]);
        let (module, entries) = ("example.org/odd".parse().unwrap(), vec![(b"n".as_slice(), [8].as_slice())]);
        ModuleState { module, schema: 1, parts, entries }.to_bytes().unwrap()
    };
    let whole = state(StatePart::Packet);
    let cuts = [0, 7, 8, 20, whole.len() - 33, whole.len() - 1].map(|at| (whole[..at].to_vec(), "carry", ""));
    let mut bad = cuts.to_vec();
    bad.push((state(StatePart::Server), "carry", "server part"));
    for (what, why) in [
        ("carry-refuse", "never"),
        ("carry-swallow", "never"),
        ("carry-error", "not at all"),
        ("carry-late", "has not returned"),
        ("pass", "takes none"),
        ("keep-at-stop", "takes none"),
    ] {
        bad.push((whole.clone(), what, why));
    }
    for (state, what, why) in bad {
        let refusal = bench.load(1, what, Some(&file(&state))).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::StateRefused, "{what}: {refusal}");
        assert!(refusal.detail.contains(why), "{what}: {refusal}");
        assert_eq!(bench.node.export(1).unwrap_err().kind, RefusalKind::NotRunning);
    }
    // The last one has stopped then, and wanted to keep something as it did, of which its log may come here.
    assert!(bench.load(1, "pass", None).is_ok());
    assert!(bytes_of(&bench.node.export(0).unwrap()) == before);
    assert_eq!(bench.load(1, "carry", Some(&file(&whole))), Ok(vec!["took said".to_owned()]));
}

/// Goal: a state is the same bytes, whether a module for WebAssembly or a bundle says it, and each takes it of the other.
#[test]
fn a_state_goes_from_a_bundle_to_a_wasm_module_and_back() {
    let Some(mut bench) = Bench::start() else { return };
    let parts = BTreeMap::from([(StatePart::Packet, b"carry".as_slice())]);
    let entries = vec![(b"\0".as_slice(), b"x".as_slice()), (b"n", b""), (b"\xff", &[7; 300])];
    let state = ModuleState { module: "example.org/odd".parse().unwrap(), schema: 1, parts, entries };
    let bytes = state.to_bytes().unwrap();
    assert_eq!(bench.load(0, "carry", Some(&file(&bytes))), Ok(vec!["took carry".to_owned()]));
    let of_bundle = bench.node.export(0).unwrap();
    assert!(bytes_of(&of_bundle) == bytes);

    let mut command = Command::new(env!("CARGO_BIN_EXE_netserv-worker"));
    command.arg("serve");
    let mut wasm = Node::start(command);
    assert!(matches!(wasm.frame(), FromWorker::Ready { .. }));
    assert_eq!(load(&mut wasm, 0, &compiled(SAYS_WHAT_IT_TOOK), "", Some(&of_bundle)), Ok(vec![]));
    let of_wasm = wasm.export(0).unwrap();
    assert!(bytes_of(&of_wasm) == bytes);

    assert_eq!(bench.load(1, "carry", Some(&of_wasm)), Ok(vec!["took carry".to_owned()]));
    assert!(bytes_of(&bench.node.export(1).unwrap()) == bytes);
}

/// A module that says the five bytes that it was told.
const SAYS_WHAT_IT_TOOK: &str = r#"(module
    (import "netserv" "state_write" (func $state_write (param i32 i32) (result i32)))
    (import "netserv" "state_read" (func $state_read (param i32 i32) (result i32)))
    (memory (export "memory") 5)
    (func (export "netserv_abi") (result i32) (i32.const 1))
    (func (export "netserv_area") (param i32 i32) (result i32) (i32.const 65536))
    (func (export "netserv_start") (result i32) (i32.const 0))
    (func (export "netserv_process") (param i32))
    (func (export "netserv_export") (result i32) (call $state_write (i32.const 0) (i32.const 5)))
    (func (export "netserv_import") (param i32) (result i32)
        (i32.ne (call $state_read (i32.const 0) (local.get 0)) (i32.const 5))))"#;

/// A worker with the real host.
struct Bench {
    node: Node,
    _data: tempfile::TempDir,
}

impl Bench {
    fn start() -> Option<Bench> {
        Bench::with_memory(64 << 20)
    }

    /// Starts a worker whose container has so many bytes.
    fn with_memory(bytes: u64) -> Option<Bench> {
        let dist = built()?;
        let data = tempfile::tempdir().unwrap();
        let mut command = serve_within(bytes, &java_homes().remove(0), &dist.join("host"), data.path());
        command.arg("--blocks").arg(dist.join("blocks")).stderr(Stdio::inherit());
        let mut node = Node::start(command);
        assert!(matches!(node.frame(), FromWorker::Ready { .. }));
        Some(Bench { node, _data: data })
    }

    /// Loads the odd bundle, which does what it is told, with a state. Returns what it logs, or why it is not loaded.
    fn load(&mut self, slot: u8, what: &str, state: Option<&File>) -> Result<Vec<String>, Refusal> {
        load(&mut self.node, slot, &File::open(odd()).unwrap(), what, state)
    }
}

/// Loads a module. Returns what it logs, or why it is not loaded.
fn load(node: &mut Node, slot: u8, code: &File, what: &str, state: Option<&File>) -> Result<Vec<String>, Refusal> {
    let mut parts = vec![(PartKind::Packet, code)];
    parts.extend(state.map(|state| (PartKind::State, state)));
    let load = ToWorker::Load {
        slot: ModuleSlot(slot),
        module: "example.org/odd@1.0.0".parse().unwrap(),
        properties: BTreeMap::from([("do".to_owned(), what.to_owned())]),
        limits: ModuleLimits::default(),
        state_schema: 1,
        parts: parts.iter().map(|(kind, _)| *kind).collect(),
        server: None,
        blocks: ["kv", "state"].map(str::to_owned).into(),
        parallel: false,
    };
    let files: Vec<BorrowedFd<'_>> = parts.iter().map(|(_, file)| file.as_fd()).collect();
    node.send_with(&load, &files);
    let mut lines = Vec::new();
    loop {
        let frame = node.frame();
        if let FromWorker::Failed { refusal, .. } = frame {
            return Err(refusal);
        }
        if frame == (FromWorker::Loaded { slot: ModuleSlot(slot) }) {
            return Ok(lines);
        }
        let FromWorker::Log { text, .. } = frame else { panic!("{frame:?}") };
        lines.push(text);
    }
}

fn compiled(text: &str) -> File {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("in.wasm"), folder.path().join("out.cwasm"));
    std::fs::write(&from, wat::parse_str(text).unwrap()).unwrap();
    crate::support::run(Command::new(env!("CARGO_BIN_EXE_netserv-worker")).arg("compile").arg(from).arg(&to));
    File::open(to).unwrap()
}

/// Returns what is said in a state.
fn parts_of(state: &File) -> Vec<Vec<u8>> {
    let bytes = bytes_of(state);
    ModuleState::parse(&bytes).unwrap().parts.into_values().map(<[u8]>::to_vec).collect()
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn bytes_of(mut file: &File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}
