// SPDX-License-Identifier: Apache-2.0
//! Modules with two parts, and services of several components.

use netserv_model::RefusalKind;
use netserv_model::effect::ModuleSlot;
use netserv_wire::container::frames::ToWorker;
use netserv_wire::container::ring::Answer;

use super::{Spec, Worker, compile, component, get, talk, wait_until_closed};
use crate::shared;
use crate::support::guest;

/// A module whose packet part drops everything.
fn both() -> Spec {
    let code = shared::file("dropper.cwasm", |code| {
        let wasm = shared::folder().join("dropper.wasm");
        std::fs::write(&wasm, guest("(i32.store (i32.const 65548) (i32.const 1))")).unwrap();
        compile(&[&wasm], code).unwrap();
    });
    Spec::new().with(|spec| spec.packet = Some(code))
}

#[test]
fn one_module_sees_packets_and_takes_connections() {
    let spec = both();
    let mut worker = Worker::with(&spec);
    assert_eq!(get(spec.port(), "/seen").0, 200);
    assert_eq!(worker.round(1, &[5; 64]).answer, Answer::Drop);
    // The version after it has no packet part, and the one after that no server part.
    worker.load(&spec.clone().with(|spec| spec.packet = None));
    assert_eq!(get(spec.port(), "/seen").0, 200);
    assert_eq!(worker.round(1, &[5; 64]).answer, Answer::Failed);
    worker.load(&spec.clone().with(|spec| spec.component = None));
    assert_eq!(worker.round(1, &[5; 64]).answer, Answer::Drop);
    wait_until_closed(spec.port());
    worker.load(&spec);
    worker.send(&ToWorker::Unload { slot: ModuleSlot(0) }, None);
    worker.send(&ToWorker::Stats, None);
    worker.answer();
    assert_eq!(worker.round(1, &[5; 64]).answer, Answer::Failed);
    wait_until_closed(spec.port());
}

#[test]
fn both_parts_fail_with_either() {
    let spec = both();
    let mut worker = Worker::start();
    let (kind, _) = worker.refused(&spec.clone().with(|spec| spec.limits.memory_bytes = 65_536));
    assert_eq!(kind, RefusalKind::MemoryLimit);
    assert_eq!(worker.round(1, &[5; 64]).answer, Answer::Failed);

    let (wasm, code) = (shared::folder().join("trapper.wasm"), shared::folder().join("trapper.cwasm"));
    std::fs::write(&wasm, guest("(unreachable)")).unwrap();
    compile(&[&wasm], &code).unwrap();
    worker.load(&spec.clone().with(|spec| spec.packet = Some(code)));
    assert_eq!(get(spec.port(), "/seen").0, 200);
    assert_eq!(worker.round(1, &[5; 64]).answer, Answer::Failed);
    assert_eq!(worker.failed(0).0, RefusalKind::Trapped);
    worker.send(&ToWorker::Stats, None);
    worker.answer();
    wait_until_closed(spec.port());
}

#[test]
fn components_become_one_service() {
    let [token, hello, program] = ["token", "hello_http", "server-program"].map(component);
    let code = shared::folder().join("service.cwasm");
    compile(&[&token, &token, &hello], &code).unwrap();
    let spec = Spec::of(code).property("token", "open");
    let _worker = Worker::with(&spec);
    assert_eq!(get(spec.port(), "/").0, 401);
    let with = b"GET / HTTP/1.1\r\nhost: a\r\nauthorization: Bearer open\r\nconnection: close\r\n\r\n";
    let answer = talk(spec.port(), with);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("Hello"), "{answer}");

    let none = shared::folder().join("none.cwasm");
    let refused = |parts: &[&std::path::Path], what: &str| {
        let refusal = compile(parts, &none).unwrap_err();
        assert!(refusal.contains("bad-service") && refusal.contains(what), "{refusal}");
    };
    refused(&[&hello, &token, &hello], "part 1 answers itself");
    refused(&[&token, &token], "part 2 hands requests on, and is the last");
    refused(&[&token, &program], "part 2 takes no HTTP requests");
    let core = shared::folder().join("core.wasm");
    std::fs::write(&core, guest("")).unwrap();
    refused(&[&token, &core], "part 2 is no component");
}
