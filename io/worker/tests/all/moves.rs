// SPDX-License-Identifier: Apache-2.0
//! State that moves from one worker to another.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};

use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_model::{Refusal, RefusalKind};
use netserv_wire::container::frames::{FromWorker, PartKind, ToWorker};
use netserv_wire::container::ring::Answer;
use netserv_wire::state::{ModuleState, StatePart};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::serve::Node;
use crate::support::{PACKET, VERDICT, guest_with};

#[test]
fn kv_and_what_a_module_says_move_to_another_worker() {
    let mut from = Node::start();
    let carrier = carrier("");
    from.load(0, "carrier", &carrier);
    assert_eq!(from.round(1, &[0; 64]).bytes[..2], [1, 1]);
    assert_eq!(from.round(1, &[0; 64]).bytes[..2], [2, 2]);
    let state = from.export(0).unwrap();
    assert_eq!(from.round(1, &[0; 64]).bytes[..2], [3, 3], "it goes on");

    let mut to = Node::start();
    assert_eq!(load(&mut to, 1, &carrier, Some(&state)), Ok(()));
    assert_eq!(to.round(2, &[0; 64]).bytes[..2], [3, 3]);
    // Two states of the same are the same, byte for byte.
    let (first, second) = (bytes_of(&to.export(1).unwrap()), bytes_of(&to.export(1).unwrap()));
    assert!(first == second);
    let read = ModuleState::parse(&first).unwrap();
    assert_eq!((read.module.as_str(), read.schema, read.entries.len()), ("example.org/carrier", 1, 1));
    assert_eq!(read.parts, BTreeMap::from([(StatePart::Packet, [3].as_slice())]));
}

/// Goal: a module that was built before the node knew of this moves its kv.
#[test]
fn a_module_that_says_nothing_moves_its_kv() {
    let (mut from, mut to) = (Node::start(), Node::start());
    let old = guest_with(&count(), "(data (i32.const 0) \"n\")");
    from.load(0, "carrier", &old);
    assert_eq!(from.round(1, &[0; 64]).bytes[0], 1);
    let state = from.export(0).unwrap();
    assert!(ModuleState::parse(&bytes_of(&state)).unwrap().parts.is_empty());
    assert_eq!(load(&mut to, 0, &old, Some(&state)), Ok(()));
    assert_eq!(to.round(1, &[0; 64]).bytes[0], 2);
}

/// Goal: a module that does not say its state goes on with all that it knows.
#[test]
fn a_module_that_traps_or_refuses_when_it_is_asked_goes_on() {
    for (export, why) in [
        ("(unreachable)", "the module trapped"),
        ("(i32.const 7)", "did not say its state, with code 7"),
        ("(drop (call $state_write (i32.const 0) (i32.const 1))) (i32.const 1)", "with code 1"),
    ] {
        let mut node = Node::start();
        let module = guest_with(&count(), &format!("(data (i32.const 0) \"n\") {}", exports(export, "(i32.const 0)")));
        node.load(0, "carrier", &module);
        assert_eq!(node.round(1, &[0; 64]).bytes[0], 1);
        let refusal = node.export(0).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::StateRefused);
        let said = format!("{refusal} {}", refusal.in_full());
        assert!(said.contains(why) || said.contains("asked for its state"), "{said}");
        assert_eq!(node.round(1, &[0; 64]).bytes[0], 2);
        let again = node.export(0).unwrap_err();
        assert_eq!(again.detail.contains("before"), export == "(unreachable)", "{again}");
        assert_eq!(node.round(1, &[0; 64]).bytes[0], 3);
    }
}

/// Goal: a module that is loaded and not installed after all leaves what was there before. Method: one that goes before it is in force, and
/// after.
#[test]
fn what_was_there_before_a_state_is_put_back_until_the_module_is_in_force() {
    for (is_confirmed, expected) in [(false, 2), (true, 10)] {
        let mut node = Node::start();
        let carrier = carrier("");
        node.load(0, "carrier", &carrier);
        assert_eq!(node.round(1, &[0; 64]).bytes[0], 1);
        let parts = BTreeMap::from([(StatePart::Packet, b"x".as_slice())]);
        let entries = vec![(b"n".as_slice(), [9, 0, 0, 0, 0, 0, 0, 0].as_slice())];
        let state = ModuleState { module: "example.org/carrier".parse().unwrap(), schema: 1, parts, entries };
        assert_eq!(load(&mut node, 1, &carrier, Some(&file(&state.to_bytes().unwrap()))), Ok(()));
        if is_confirmed {
            node.send(&ToWorker::Confirm { slot: ModuleSlot(1) }, None);
        }
        node.send(&ToWorker::Unload { slot: ModuleSlot(1) }, None);
        // Once it answers, the other is gone.
        node.export(0).unwrap();
        assert_eq!(node.round(1, &[0; 64]).bytes[0], expected);
    }
}

/// Goal: whatever comes as a state, what ran before goes on with all that it knows.
#[test]
fn a_state_that_cannot_be_taken_is_refused_and_what_runs_goes_on() {
    let mut node = Node::start();
    let running = carrier("");
    node.load(0, "carrier", &running);
    assert_eq!(node.round(1, &[0; 64]).bytes[0], 1);
    let whole = bytes_of(&node.export(0).unwrap());
    let said = |schema: u32, module: &str, said: &[u8]| {
        let parts = BTreeMap::from([(StatePart::Packet, said)]);
        let entries = vec![(b"n".as_slice(), [9, 0, 0, 0, 0, 0, 0, 0].as_slice())];
        let state = ModuleState { module: module.parse().unwrap(), schema, parts, entries };
        state.to_bytes().unwrap()
    };
    let mut many = ModuleState::parse(&whole).unwrap();
    let keys: Vec<[u8; 4]> = (0..ModuleLimits::default().kv_entries + 1).map(u32::to_be_bytes).collect();
    many.entries = keys.iter().map(|key| (key.as_slice(), b"".as_slice())).collect();
    let other = guest_with("", &exports("(i32.const 0)", "(i32.const 0)"));
    let trap = guest_with("", &exports("(i32.const 0)", "(unreachable)"));
    let refuse = guest_with("", &exports("(i32.const 0)", "(i32.const 3)"));
    let none = guest_with("", "");
    for (module, state, kind, why) in [
        (&other, whole[..whole.len() - 1].to_vec(), RefusalKind::StateRefused, "cut off"),
        (&other, b"nothing".to_vec(), RefusalKind::StateRefused, "no state"),
        (&other, said(2, "example.org/carrier", b"x"), RefusalKind::StateRefused, "schema 2"),
        (&other, said(1, "example.org/other", b"x"), RefusalKind::StateRefused, "example.org/other"),
        (&other, many.to_bytes().unwrap(), RefusalKind::StateRefused, "entries"),
        (&none, whole.clone(), RefusalKind::StateRefused, "takes none"),
        (&refuse, whole.clone(), RefusalKind::StateRefused, "with code 3"),
        (&trap, whole.clone(), RefusalKind::Trapped, "unreachable"),
    ] {
        let refusal = load(&mut node, 1, module, Some(&file(&state))).unwrap_err();
        assert_eq!(refusal.kind, kind, "{refusal}");
        assert!(refusal.detail.contains(why), "{refusal}");
        // It counts in kv, which the other shared.
        let answered = node.round(1, &[0; 64]);
        assert_eq!(answered.answer, Answer::Modified);
    }
    assert_eq!(node.round(1, &[0; 64]).bytes[..2], [10, 10]);
}

#[test]
fn what_does_not_run_has_no_state() {
    let mut node = Node::start();
    assert_eq!(node.export(5).unwrap_err().kind, RefusalKind::NotRunning);
    node.load(5, "carrier", &carrier(""));
    node.send(&ToWorker::Unload { slot: ModuleSlot(5) }, None);
    assert_eq!(node.export(5).unwrap_err().kind, RefusalKind::NotRunning);
    // Without a descriptor.
    node.send(&ToWorker::Export { slot: ModuleSlot(5) }, None);
    assert!(matches!(node.frame(), FromWorker::Exported { refusal: Some(_), .. }));
}

#[test]
fn a_module_with_an_instance_for_each_lane_moves_only_its_kv() {
    for (fields, has_state) in [(exports("(i32.const 0)", "(i32.const 0)"), true), (String::new(), false)] {
        let mut node = Node::start();
        let _lane = node.add_lane();
        let module = crate::support::roomy("", &fields);
        assert!(matches!(
            node.load_parallel(0, "carrier", &module, ModuleLimits::default()),
            FromWorker::Loaded { .. }
        ));
        match node.export(0) {
            Ok(_) => assert!(!has_state),
            Err(refusal) => assert!(has_state && refusal.detail.contains("2 instances"), "{refusal}"),
        }
    }
}

/// Goal: a node that stops reading in the middle is told so by name, and the module goes on.
#[test]
fn a_state_that_nobody_reads_to_its_end_is_refused() {
    let mut node = Node::start();
    // More than a pipe takes by itself.
    let said = "(drop (call $state_write (i32.const 0) (i32.const 65536)))".repeat(8) + "(i32.const 0)";
    let module = guest_with(&count(), &format!("(data (i32.const 0) \"n\") {}", exports(&said, "(i32.const 0)")));
    node.load(0, "carrier", &module);
    let (mut reader, writer) = std::io::pipe().unwrap();
    node.send(&ToWorker::Export { slot: ModuleSlot(0) }, Some(writer.as_fd()));
    drop(writer);
    reader.read_exact(&mut [0; 100]).unwrap();
    drop(reader);
    let frame = node.frame();
    let FromWorker::Exported { refusal: Some(refusal), .. } = frame else { panic!("{frame:?}") };
    assert!(refusal.detail.contains("cannot write the state"), "{refusal}");
    assert_eq!(node.round(1, &[0; 64]).bytes[0], 1);
    let whole = bytes_of(&node.export(0).unwrap());
    assert_eq!(ModuleState::parse(&whole).unwrap().parts[&StatePart::Packet].len(), 8 * 65_536);
}

/// Goal: a worker says more than any file may have that it writes.
#[test]
fn a_state_is_no_file_that_a_worker_grows() {
    let mut node = Node::start();
    let most = Rlimit { current: Some(4096), maximum: Some(4096) };
    prlimit(Pid::from_child(&node.worker).into(), Resource::Fsize, most).unwrap();
    let said = "(drop (call $state_write (i32.const 0) (i32.const 65536)))(i32.const 0)";
    node.load(0, "carrier", &guest_with("", &exports(said, "(i32.const 0)")));
    let whole = bytes_of(&node.export(0).unwrap());
    assert_eq!(ModuleState::parse(&whole).unwrap().parts[&StatePart::Packet].len(), 65_536);
}

/// Returns a guest that counts batches in kv under "n" and in its memory, and puts both over the first
/// bytes. Its memory is what it says.
fn carrier(more: &str) -> Vec<u8> {
    let export = "(drop (call $state_write (i32.const 40) (i32.const 1))) (i32.const 0)";
    let import = "(i32.store8 (i32.const 40) (i32.const 0))
        (drop (call $state_read (i32.const 40) (i32.const 1)))
        (call $state_read (i32.const 48) (i32.const 8))";
    let process = format!(
        "(i32.store8 (i32.const 40) (i32.add (i32.load8_u (i32.const 40)) (i32.const 1)))
        {}
        (i32.store8 (i32.const {}) (i32.load8_u (i32.const 40)))",
        count(),
        PACKET + 1
    );
    guest_with(&process, &format!("(data (i32.const 0) \"n\") {} {more}", exports(export, import)))
}

fn count() -> String {
    format!(
        "(drop (call $kv_increment (i32.const 0) (i32.const 1) (i64.const 1) (i32.const 8)))
        (i32.store8 (i32.const {PACKET}) (i32.load8_u (i32.const 8)))
        (i32.store (i32.const {VERDICT}) (i32.const 2))"
    )
}

fn exports(export: &str, import: &str) -> String {
    format!(
        "(func (export \"netserv_export\") (result i32) {export})
        (func (export \"netserv_import\") (param i32) (result i32) {import})"
    )
}

/// Loads a module with a state. Returns why it is not loaded.
fn load(node: &mut Node, slot: u8, wasm: &[u8], state: Option<&File>) -> Result<(), Refusal> {
    let code = node.compile(wasm);
    let mut parts = vec![(PartKind::Packet, &code)];
    parts.extend(state.map(|state| (PartKind::State, state)));
    let load = ToWorker::Load {
        slot: ModuleSlot(slot),
        module: "example.org/carrier@1.0.0".parse().unwrap(),
        properties: BTreeMap::new(),
        limits: ModuleLimits::default(),
        state_schema: 1,
        parts: parts.iter().map(|(kind, _)| *kind).collect(),
        server: None,
        blocks: ["match", "sip", "hash", "state"].map(str::to_owned).into(),
        parallel: false,
    };
    let files: Vec<BorrowedFd<'_>> = parts.iter().map(|(_, file)| file.as_fd()).collect();
    node.send_with(&load, &files);
    loop {
        let frame = node.frame();
        if let FromWorker::Failed { refusal, .. } = frame {
            return Err(refusal);
        }
        if matches!(frame, FromWorker::Loaded { .. }) {
            return Ok(());
        }
        assert!(matches!(frame, FromWorker::Log { .. }), "{frame:?}");
    }
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
