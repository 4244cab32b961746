// SPDX-License-Identifier: Apache-2.0
//! Programs with sockets of their own.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use netserv_model::RefusalKind;
use netserv_wire::container::frames::FromWorker;
use netserv_worker_server::limits::HANDOVER_TIME_MAX;

use super::{Spec, Worker, connect, free_port, wait_until_closed};

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
    echo(&mut connect(spec.port()));
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
        if matches!(answer, FromWorker::Loaded { .. }) {
            answer = worker.answer();
        }
        let FromWorker::Failed { refusal, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(refusal.kind, RefusalKind::Trapped);
        assert!(refusal.detail.contains(expected), "{how}: {}", refusal.detail);
        worker.wait_for_line("hello: unknown");
        worker.load(&program());
        worker.wait_for_line("listening");
    }
}

/// Goal: a program that panics at once is refused with its own words and the function that it panicked in, and does not
/// count as installed before.
#[test]
fn a_program_that_panics_at_once_is_refused_with_its_words() {
    let spec = program().property("end", "panic").property("whom", "\u{1b}[2Jjane");
    let mut worker = Worker::start();
    worker.send_load(&spec);
    let FromWorker::Failed { refusal, .. } = worker.answer() else { panic!("it counts as running") };
    assert_eq!(refusal.kind, RefusalKind::Trapped);
    let words =
        r"no key for \u{1b}[2Jjane (wasm trap: wasm `unreachable` instruction executed in server_program::main)";
    assert!(refusal.detail.contains("panicked at ") && refusal.detail.ends_with(words), "{}", refusal.detail);
    assert!(refusal.context.contains(&"in server_program::main".to_owned()), "{:?}", refusal.context);
    assert_eq!(refusal, refusal.clone().clean());
}

#[test]
fn connections_end_with_the_version_that_has_them() {
    let spec = program();
    let mut worker = Worker::with(&spec);
    worker.wait_for_line("listening");
    let mut old = connect(spec.port());
    echo(&mut old);
    worker.load(&spec);
    worker.wait_for_line("listening");
    assert!(matches!(old.read(&mut [0]), Ok(0) | Err(_)), "the old version's connections end with it");
    echo(&mut connect(spec.port()));
}

/// Goal: while a new version gets ready, the old one serves. Method: ask again and again, each time on a new connection,
/// and see for how long nobody answers although the new version takes a while before it wants its port.
#[test]
fn the_old_version_serves_until_the_new_one_wants_its_port() {
    const READY: Duration = Duration::from_millis(700);
    let (spec, done) = (program(), Arc::new(AtomicBool::new(false)));
    let mut worker = Worker::with(&spec);
    worker.wait_for_line("listening");
    let (port, stop) = (spec.port(), Arc::clone(&done));
    let client = std::thread::spawn(move || {
        let (mut served, mut failed, mut last, mut gap) = (0, 0, Instant::now(), Duration::ZERO);
        while !stop.load(Ordering::Relaxed) {
            match TcpStream::connect(("127.0.0.1", port)).and_then(|mut stream| try_echo(&mut stream)) {
                Ok(()) => {
                    served += 1;
                    gap = gap.max(last.elapsed());
                    last = Instant::now();
                }
                Err(_) => failed += 1,
            }
        }
        (served, failed, gap)
    });
    let begun = Instant::now();
    let ready_ms = READY.as_millis().to_string();
    worker.load(&spec.clone().property("wait-ms", &ready_ms).with(|spec| spec.slot = 1));
    assert!(begun.elapsed() >= READY, "it is loaded when it takes over");
    worker.wait_for_line("listening");
    echo(&mut connect(port));
    done.store(true, Ordering::Relaxed);
    let (served, failed, gap) = client.join().unwrap();
    eprintln!("{served} connections served, {failed} refused or broken, nobody answered for {gap:?}");
    assert!(served > 0 && gap < READY, "nobody answered for {gap:?}");
}

#[test]
fn a_new_version_that_wants_no_port_takes_over_all_the_same() {
    let spec = program();
    let mut worker = Worker::with(&spec);
    worker.wait_for_line("listening");
    let begun = Instant::now();
    worker.load(&spec.clone().property("wait-ms", "60000").with(|spec| spec.slot = 1));
    assert!((HANDOVER_TIME_MAX..10 * HANDOVER_TIME_MAX).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    wait_until_closed(spec.port());
}

#[test]
fn the_old_version_goes_on_if_the_new_one_does_not_start() {
    let spec = program();
    let mut worker = Worker::with(&spec);
    worker.wait_for_line("listening");
    let mut old = connect(spec.port());
    let beside = spec.clone().with(|spec| spec.slot = 1);
    let (kind, _) = worker.refused(&beside.clone().with(|spec| spec.limits.memory_bytes = 65_536));
    assert_eq!(kind, RefusalKind::MemoryLimit);
    echo(&mut old);
    let (kind, _) = worker.refused(&beside.clone().property("end", "trap"));
    assert_eq!(kind, RefusalKind::Trapped);
    echo(&mut old);
    worker.load(&beside);
    worker.wait_for_line("listening");
    echo(&mut connect(spec.port()));
}

fn echo(stream: &mut TcpStream) {
    try_echo(stream).unwrap();
}

fn try_echo(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"round")?;
    let mut bytes = [0; 5];
    stream.read_exact(&mut bytes)?;
    assert_eq!(&bytes, b"round");
    Ok(())
}
