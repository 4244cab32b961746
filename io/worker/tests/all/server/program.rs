// SPDX-License-Identifier: Apache-2.0
//! Programs with sockets of their own.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};

use netserv_model::RefusalKind;

use super::{Spec, Worker, connect, free_port};

fn program() -> Spec {
    let spec = Spec::program();
    let port = spec.port().to_string();
    spec.property("port", &port)
}

#[test]
fn a_program_serves_at_its_port() {
    let spec = program();
    let mut worker = Worker::with(&spec);
    worker.wait_for_line("listening");
    let mut stream = connect(spec.port());
    stream.write_all(b"round").unwrap();
    let mut bytes = [0; 5];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"round");
    assert_eq!(worker.counts().connections, 1);
}

#[test]
fn a_program_gets_nowhere_but_where_it_may() {
    let (listener, datagrams) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let permitted = listener.local_addr().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let try_all = format!(
        "connect={permitted} connect={} udp={} bind=127.0.0.1:{} bind=127.0.0.2:0 file=/etc/passwd file=/data/x",
        other.local_addr().unwrap(),
        datagrams.local_addr().unwrap(),
        free_port(),
    );
    let spec = program()
        .property("try", &try_all)
        .with(|spec| spec.connect = vec![format!("tcp dst 127.0.0.1 port {}", permitted.port())]);
    let mut worker = Worker::with(&spec);
    worker.wait_for_line("listening");
    let said = |what: &str| {
        let line = worker.log.iter().find(|(_, line)| line.contains(what));
        line.map(|(_, line)| line.rsplit_once(": ").unwrap().1.to_owned()).unwrap()
    };
    assert_eq!(said(&format!("connect={permitted}")), "done");
    assert_eq!(said(&format!("connect={}", other.local_addr().unwrap())), "PermissionDenied");
    assert_eq!(said("udp="), "PermissionDenied");
    assert_eq!(said("bind=127.0.0.1"), "PermissionDenied");
    assert_ne!(said("file=/etc/passwd"), "done");
    assert_ne!(said("file=/data/x"), "done");
    other.set_nonblocking(true).unwrap();
    assert!(other.accept().is_err(), "nobody came");
}

#[test]
fn a_program_that_ends_fails_its_module() {
    for (how, expected) in [("0", "status 0"), ("3", "status"), ("trap", "unreachable")] {
        let spec = program().property("end", how).property("try", "hello");
        let mut worker = Worker::start();
        worker.send_load(&spec);
        let mut answer = worker.answer();
        if matches!(answer, netserv_wire::container::frames::FromWorker::Loaded { .. }) {
            answer = worker.answer();
        }
        let netserv_wire::container::frames::FromWorker::Failed { refusal, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(refusal.kind, RefusalKind::Trapped);
        assert!(refusal.detail.contains(expected), "{how}: {}", refusal.detail);
        worker.wait_for_line("hello: unknown");
        worker.load(&program());
        worker.wait_for_line("listening");
    }
}

#[test]
fn the_old_version_ends_before_the_new_one_starts() {
    let spec = program();
    let mut worker = Worker::with(&spec);
    worker.wait_for_line("listening");
    let mut old = connect(spec.port());
    old.write_all(b"x").unwrap();
    old.read_exact(&mut [0]).unwrap();
    worker.load(&spec);
    worker.wait_for_line("listening");
    assert!(matches!(old.read(&mut [0]), Ok(0) | Err(_)), "the old version's connections end with it");
    let mut new = connect(spec.port());
    new.write_all(b"y").unwrap();
    new.read_exact(&mut [0]).unwrap();
}

#[test]
fn an_old_version_that_ended_for_nothing_is_told() {
    let spec = program();
    let mut worker = Worker::with(&spec);
    worker.wait_for_line("listening");
    let beside = spec.clone().with(|spec| spec.slot = 1);
    let (kind, _) = worker.refused(&beside.clone().with(|spec| spec.limits.memory_bytes = 65_536));
    assert_eq!(kind, RefusalKind::MemoryLimit);
    let (_, detail) = worker.failed(0);
    assert!(detail.contains("next version"), "{detail}");
    worker.load(&spec);
    worker.wait_for_line("listening");
    worker.load(&beside);
    worker.wait_for_line("listening");
    connect(spec.port());
}
