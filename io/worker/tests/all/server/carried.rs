// SPDX-License-Identifier: Apache-2.0
//! What server parts carry to other workers: `netserv:state/carrier`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::sync::Arc;

use netserv_model::RefusalKind;
use netserv_wire::state::{ModuleState, StatePart};

use super::tcp::ask;
use super::{Spec, Worker, compiled, connect};

#[test]
fn what_a_module_of_connections_knows_goes_to_another_worker() {
    let spec = Spec::of(compiled("tcp_tests")).property("export-state", "knows");
    let mut from = Worker::with(&spec);
    let mut client = connect(spec.port());
    assert_eq!(ask(&mut client, "hello"), "hello");
    let state = from.export(0).unwrap();
    assert_eq!(ask(&mut client, "hello again"), "hello again", "its connections go on");
    let elsewhere = Spec::of(compiled("tcp_tests")).with(|spec| spec.state = Some(copy(&state)));
    let _to = Worker::with(&elsewhere);
    assert_eq!(ask(&mut connect(elsewhere.port()), "carried"), "knows");
}

#[test]
fn a_module_of_connections_may_decline_and_goes_on() {
    let spec = Spec::of(compiled("tcp_tests")).property("export-state", "refuse");
    let mut worker = Worker::with(&spec);
    let mut client = connect(spec.port());
    assert_eq!(ask(&mut client, "hello"), "hello");
    let refusal = worker.export(0).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::StateRefused);
    assert!(refusal.detail.contains("did not say its state: not\\u{1b}[2J now"), "{refusal}");
    assert_eq!(ask(&mut client, "hello"), "hello");
}

/// Goal: a trap is told whoever asked, and ends the instance as any other trap does.
#[test]
fn a_module_of_connections_that_traps_or_stalls_is_told() {
    for (export, kind) in [("trap", RefusalKind::Trapped), ("stall", RefusalKind::Stalled)] {
        let spec = Spec::of(compiled("tcp_tests")).property("export-state", export);
        let mut worker = Worker::with(&spec);
        let (mut told, mut failed) = (None, None);
        let file = tempfile::tempfile().unwrap();
        worker.ask_for_state(0, &file);
        while told.is_none() || failed.is_none() {
            match worker.exported_or_failed() {
                (true, refusal) => told = Some(refusal),
                (false, refusal) => failed = Some(refusal),
            }
        }
        assert_eq!(told.unwrap().kind, RefusalKind::StateRefused);
        assert_eq!(failed.unwrap().kind, kind);
    }
}

#[test]
fn a_fresh_instance_of_a_module_of_requests_says_and_takes_its_state() {
    let mut from = Worker::with(&Spec::new().property("export-state", "knows"));
    let state = from.export(0).unwrap();
    let mut to = Worker::with(&Spec::new().with(|spec| spec.state = Some(copy(&state))));
    to.wait_for_line("imported knows");
    for export in ["trap", "refuse"] {
        let mut worker = Worker::with(&Spec::new().property("export-state", export));
        for _ in 0..3 {
            assert_eq!(worker.export(0).unwrap_err().kind, RefusalKind::StateRefused);
        }
    }
}

#[test]
fn a_state_that_a_server_part_does_not_take_is_refused() {
    let state = |part: StatePart, said: &[u8]| {
        let parts = BTreeMap::from([(part, said)]);
        let module = "example.org/tests".parse().unwrap();
        let state = ModuleState { module, schema: 1, parts, entries: vec![(b"key", b"value")] };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&state.to_bytes().unwrap()).unwrap();
        Some(Arc::new(file))
    };
    let tcp = || Spec::of(compiled("tcp_tests"));
    for (spec, part, kind, why) in [
        (tcp(), StatePart::Packet, RefusalKind::StateRefused, "packet part"),
        (tcp().property("import-state", "refuse"), StatePart::Server, RefusalKind::StateRefused, "never"),
        (tcp().property("import-state", "trap"), StatePart::Server, RefusalKind::Trapped, "abort"),
        (Spec::of(compiled("tcp_tests_first")), StatePart::Server, RefusalKind::StateRefused, "takes none"),
        (Spec::new(), StatePart::Server, RefusalKind::StateRefused, "never"),
        (Spec::program(), StatePart::Server, RefusalKind::StateRefused, "takes none"),
    ] {
        let mut worker = Worker::start();
        let said = state(part, b"refused");
        let (refused, detail) = worker.refused(&spec.with(|spec| spec.state = said));
        assert_eq!(refused, kind, "{detail}");
        assert!(detail.contains(why) || refused == RefusalKind::Trapped, "{detail}");
    }
}

fn copy(mut file: &File) -> Arc<File> {
    file.rewind().unwrap();
    Arc::new(file.try_clone().unwrap())
}
