// SPDX-License-Identifier: Apache-2.0
//! Clients and components that mean ill, or are broken.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use netserv_model::RefusalKind;
use netserv_patience::grown;
use netserv_worker_server::engine::instances;
use netserv_worker_server::limits::{CONTAINER_BYTES, HEAD_BYTES_MAX, HEAD_TIME_MAX, HEADERS_MAX, TURN_TIME_MAX};
use rustix::net::{AddressFamily, SocketType};

use super::http::read_response;
use super::{Spec, Worker, body, compile, connect, get, status, talk};
use crate::shared;

/// Clients that never finish a request's head, in all three ways, end in time, and keep nobody else from being served.
#[test]
fn slow_clients_are_given_up() {
    let spec = Spec::new();
    let _worker = Worker::with(&spec);
    let begun = Instant::now();
    let mut silent: Vec<TcpStream> = (0..50).map(|_| connect(spec.port())).collect();
    let mut trickling = connect(spec.port());
    let mut half_way = connect(spec.port());
    half_way.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n").unwrap();
    let mut http2 = connect(spec.port());
    http2.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    let mut ended = false;
    while !ended {
        ended = trickling.write_all(b"G").is_err();
        assert!(begun.elapsed() < grown(HEAD_TIME_MAX + Duration::from_secs(3)), "it trickles on");
        assert_eq!(get(spec.port(), "/seen").0, 200);
        std::thread::sleep(Duration::from_millis(200));
    }
    for stream in silent.iter_mut().chain([&mut half_way, &mut http2]) {
        let mut rest = Vec::new();
        // Closed or reset, and in time.
        let _ = stream.read_to_end(&mut rest);
        assert_eq!(rest.windows(12).filter(|part| part.starts_with(b"HTTP/1.1 2")).count(), 0);
    }
    assert!(begun.elapsed() < grown(HEAD_TIME_MAX + Duration::from_secs(3)));
    assert!(begun.elapsed() >= HEAD_TIME_MAX - Duration::from_secs(1), "an honest client has its time");
}

#[test]
fn floods_of_headers_are_refused() {
    let spec = Spec::new();
    let mut worker = Worker::with(&spec);
    let ask = |headers: &str| {
        status(&talk(
            spec.port(),
            format!("GET /seen HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}\r\n").as_bytes(),
        ))
    };
    let lines = |count: usize| {
        (0..count).fold(String::new(), |mut text, number| {
            write!(text, "x-{number}: 1\r\n").unwrap();
            text
        })
    };
    assert_eq!(ask(&lines(HEADERS_MAX - 2)), 200);
    assert_eq!(ask(&lines(HEADERS_MAX - 1)), 431);
    assert_eq!(ask(&lines(10_000)), 431);
    assert_eq!(ask(&format!("x: {}\r\n", "y".repeat(HEAD_BYTES_MAX / 2))), 200);
    assert_eq!(ask(&format!("x: {}\r\n", "y".repeat(2 * HEAD_BYTES_MAX))), 431);
    let long = talk(spec.port(), format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", "y".repeat(80_000)).as_bytes());
    assert!([414, 431].contains(&status(&long)), "{long}");
    assert_eq!(worker.counts().requests, 2, "no component was asked");
}

/// What one side takes for two requests and the other for one.
#[test]
fn requests_are_not_smuggled() {
    let spec = Spec::new();
    let _worker = Worker::with(&spec);
    let smuggled = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";
    let post = |headers: &str, body: &str| format!("POST /count HTTP/1.1\r\nhost: a\r\n{headers}\r\n{body}");
    // Both lengths: the chunks count, and the connection ends with the answer, so that nothing after is taken for more.
    let both = [
        post("content-length: 6\r\ntransfer-encoding: chunked\r\n", &format!("0\r\n\r\n{smuggled}")),
        post("transfer-encoding: chunked\r\ncontent-length: 100\r\n", &format!("0\r\n\r\n{smuggled}")),
    ];
    for request in both {
        let answer = talk(spec.port(), request.as_bytes());
        assert_eq!((status(&answer), body(&answer).as_str()), (200, "0 ended"), "{request}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    }
    let refused = [
        post("content-length: 0\r\ncontent-length: 44\r\n", smuggled),
        post("content-length: 0, 44\r\n", smuggled),
        post("content-length: +0\r\n", smuggled),
        post("content-length: -1\r\n", smuggled),
        post("content-length: 0x0\r\n", smuggled),
        post("transfer-encoding: identity\r\n", smuggled),
        post("transfer-encoding: chunked, identity\r\n", smuggled),
        post("transfer-encoding: xchunked\r\n", smuggled),
        post("transfer-encoding : chunked\r\n", &format!("0\r\n\r\n{smuggled}")),
        post("transfer-encoding:\r\n chunked\r\n", &format!("0\r\n\r\n{smuggled}")),
        post("x: 1\r\n folded\r\ncontent-length: 0\r\n", smuggled),
        post("x: \0\r\n", smuggled),
        post("x: a\rb: c\r\n", smuggled),
        format!("POST /count HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}"),
        format!("GET /seen HTTP/1.1\r\n\r\n{smuggled}"),
        format!("GET /seen HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\n\r\n{smuggled}"),
        format!("GET /seen HTTP/1.1\r\nhost: a b\r\nconnection: close\r\n\r\n{smuggled}"),
        format!("CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\nconnection: close\r\n\r\n{smuggled}"),
    ];
    for request in &refused {
        let answer =
            talk(spec.port(), format!("{request}GET /end HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes());
        assert!([400, 501].contains(&status(&answer)), "{request:?}: {answer}");
        if !request.starts_with("GET /seen HTTP/1.1\r\n\r\n") {
            assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{request:?}: {answer}");
        }
    }
    for chunks in ["5\r\nhelloX0\r\n\r\n", "zz\r\n", "5;x=\n\r\nhello\r\n0\r\n\r\n", "fffffffffffffffff\r\n"] {
        let answer =
            talk(spec.port(), post("transfer-encoding: chunked\r\n", &format!("{chunks}{smuggled}")).as_bytes());
        assert!(answer.matches("HTTP/1.1 ").count() <= 1, "{chunks:?}: {answer}");
        assert!(!answer.contains("nothing here"), "{chunks:?}: {answer}");
    }
    // A lone line feed ends a line, as RFC 9112 §2.2 allows, and in one way only.
    let answer = talk(spec.port(), b"GET /seen HTTP/1.1\nhost: a\nconnection: close\n\n");
    assert_eq!((status(&answer), answer.matches("HTTP/1.1 ").count()), (200, 1));
}

#[test]
fn bodies_are_bounded_and_never_kept() {
    let spec = Spec::new().with(|spec| spec.limits.body_bytes = 100_000);
    let mut worker = Worker::with(&spec);
    assert_eq!(get(spec.port(), "/seen").0, 200);
    let before = worker.memory_kib("VmHWM:");
    let said = talk(spec.port(), b"POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: 1073741824\r\n\r\n");
    assert_eq!(status(&said), 413, "{said}");
    let exact = format!(
        "POST /count HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 100000\r\n\r\n{}",
        "x".repeat(100_000)
    );
    assert_eq!(body(&talk(spec.port(), exact.as_bytes())), "100000 ended");

    // A gigabyte in chunks, as far as it goes.
    let mut stream = connect(spec.port());
    stream.write_all(b"POST /count HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(65_536));
    let sent = (0..16_384).take_while(|_| stream.write_all(chunk.as_bytes()).is_ok()).count();
    assert!(sent < 1000, "{sent} chunks were taken");
    assert!(worker.counts().refused >= 2);
    assert!(worker.memory_kib("VmHWM:") < before + 8 * 1024, "bodies pass through");
    assert_eq!(get(spec.port(), "/seen").0, 200);
}

#[test]
fn components_that_never_answer_end_and_others_go_on() {
    let spec = Spec::new().with(|spec| {
        spec.limits.request_ms = 1000;
        spec.limits.requests = 8;
    });
    let mut worker = Worker::with(&spec);
    let port = spec.port();
    let stuck: Vec<_> = ["/spin", "/spin", "/spin", "/sleep?60000"]
        .map(|path| std::thread::spawn(move || (get(port, path).0, Instant::now())))
        .into();
    let begun = Instant::now();
    let mut served = 0;
    while stuck.iter().any(|one| !one.is_finished()) {
        assert_eq!(get(port, "/seen").0, 200);
        served += 1;
    }
    assert!(served >= 5, "{served} others were served meanwhile");
    for one in stuck {
        let (status, ended) = one.join().unwrap();
        assert_eq!(status, 504);
        assert!((900..4000).contains(&ended.duration_since(begun).as_millis()));
    }
    assert_eq!(worker.counts().failed, 4);
    worker.wait_for_line("over 1000 ms");
}

#[test]
fn a_component_that_fails_costs_one_request() {
    let spec = Spec::new();
    let mut worker = Worker::with(&spec);
    for path in ["/trap", "/panic", "/exit", "/silent"] {
        assert_eq!(get(spec.port(), path).0, 500, "{path}");
        assert_eq!(get(spec.port(), "/seen").0, 200);
    }
    assert_eq!(get(spec.port(), "/status?101").0, 502, "no connection is handed over");
    let broken = talk(spec.port(), b"GET /break?100000 HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(status(&broken) == 200 && !broken.ends_with("0\r\n\r\n"), "the end does not look like one");
    assert_eq!(worker.counts().failed, 6);
    worker.wait_for_line("unreachable");
    let line = worker.wait_for_line("on request (wasm trap");
    assert!(line.contains("panicked at ") && line.contains("Guest>::handle"), "{line}");
    worker.wait_for_line("no answer");
}

#[test]
fn a_client_that_does_not_read_ends_with_its_request() {
    let spec = Spec::new().with(|spec| {
        spec.limits.request_ms = 700;
        spec.limits.requests = 1;
    });
    let mut worker = Worker::with(&spec);
    let mut stream = connect(spec.port());
    stream.write_all(b"GET /many?300000000 HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    let begun = Instant::now();
    while worker.counts().bytes_out == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    // Its place is free for the next in time.
    let (status, _) = get(spec.port(), "/seen");
    assert!([200, 503].contains(&status) && begun.elapsed() < grown(Duration::from_secs(3)), "{status}");
    std::thread::sleep(Duration::from_millis(1500).saturating_sub(begun.elapsed()));
    assert_eq!(get(spec.port(), "/seen").0, 200);
    let mut read = 0;
    let mut buffer = vec![0; 1 << 20];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        read += length;
    }
    assert!(read < 20_000_000, "{read} bytes were kept for a client that did not read");
    assert!(worker.memory_kib("VmRSS:") < 64 * 1024);
}

#[test]
fn memory_is_bounded_and_gone_with_the_request() {
    let spec = Spec::new().with(|spec| spec.limits.memory_bytes = 8 << 20);
    let worker = Worker::with(&spec);
    let (_, got) = get(spec.port(), "/memory?64");
    let got: u64 = got.parse().unwrap();
    assert!((3..8).contains(&got), "{got} MiB");
    for _ in 0..50 {
        assert_eq!(get(spec.port(), "/leak?4000000").0, 200);
    }
    let before = worker.memory_kib("VmRSS:");
    for _ in 0..200 {
        assert_eq!(get(spec.port(), "/leak?4000000").0, 200);
    }
    let after = worker.memory_kib("VmRSS:");
    assert!(after < before + 4 * 1024, "{before} KiB, then {after} KiB");
}

/// Goal: instances that take memory at the same time do not end their container. Method: in a container with room for one
/// of them, one keeps its memory and another wants as much.
#[test]
fn memory_of_all_instances_together_is_bounded() {
    let mut worker = Worker::start_with(&["--memory-bytes", "16777216"].map(OsStr::new));
    let spec = Spec::new().with(|spec| spec.limits.memory_bytes = 12 << 20);
    worker.load(&spec);
    let mut one = connect(spec.port());
    let head = "POST /hold?7000000 HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n";
    one.write_all(head.as_bytes()).unwrap();
    let mut go_on = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    one.read_exact(&mut go_on).unwrap();

    let more = "GET /leak?7000000 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let answer = talk(spec.port(), more.as_bytes());
    assert!(status(&answer) == 503 && answer.contains("retry-after: 1\r\n"), "{answer}");
    assert_eq!(get(spec.port(), "/seen").0, 200, "those that need little go on");
    let counts = worker.counts();
    assert_eq!((counts.refused, counts.failed), (1, 0));

    one.write_all(b"x").unwrap();
    assert_eq!(status(&read_response(&mut one)), 200);
    assert_eq!(get(spec.port(), "/leak?7000000").0, 200);
}

/// Goal: what an instance has on the node's side is bounded as its own memory is, over all instances of a module together,
/// and gone with the request. Method: many requests at a time each keep as many headers, or requests, as they get.
#[test]
fn memory_outside_of_the_component_is_bounded_too() {
    let spec = Spec::new();
    let port = spec.port();
    for path in ["/headers", "/requests"] {
        let mut worker = Worker::with(&spec);
        assert_eq!(get(port, &format!("{path}?10")).0, 200, "{path}");
        let before = worker.memory_kib("VmHWM:");
        let asked: Vec<_> = (0..64).map(|_| std::thread::spawn(move || get(port, &format!("{path}?1000")).0)).collect();
        let answers: Vec<u16> = asked.into_iter().map(|one| one.join().unwrap()).collect();
        // One that waited too long for its turn is told to come back; one that waited too long for a processor, that it did.
        assert!(
            answers.iter().all(|status| [500, 503, 504].contains(status)),
            "{path}: none gets so much: {answers:?}"
        );
        assert!(answers.contains(&500), "{path}: {answers:?}");
        let most = worker.memory_kib("VmHWM:") - before;
        eprintln!("{path}: {most} KiB more");
        assert!(most < 64 * 1024, "{path}: {most} KiB more");
        assert_eq!(get(port, &format!("{path}?10")).0, 200, "{path}: all is given back");
        worker.wait_for_line("memory-limit");
    }
}

#[test]
fn a_component_that_starts_too_large_is_refused() {
    let spec = Spec::new().with(|spec| spec.limits.memory_bytes = 65_536);
    let (kind, detail) = Worker::start().refused(&spec);
    assert_eq!(kind, RefusalKind::MemoryLimit, "{detail}");
}

/// Goal: who holds all connections that there may be and asks for nothing keeps nobody else from being served, also if it opens each
/// anew that it loses. Method: clients of several networks of the loopback.
#[test]
fn idle_connections_of_one_client_give_way_to_those_of_others() {
    let spec = Spec::new().with(|spec| spec.limits.connections = 30);
    let _worker = Worker::with(&spec);
    let mut idle: Vec<TcpStream> = (0..30).map(|_| connect(spec.port())).collect();
    for round in 1..=60_u8 {
        for _ in 0..2 {
            assert_eq!(get_from([127, round, 0, 1], spec.port(), "/seen"), 200, "127.{round}.0.1");
        }
        idle.push(connect(spec.port()));
    }
}

#[test]
fn requests_and_connections_at_a_time_are_bounded() {
    let spec = Spec::new().with(|spec| {
        spec.limits.requests = 2;
        spec.limits.connections = 30;
        spec.limits.request_ms = 20_000;
    });
    let mut worker = Worker::with(&spec);
    let port = spec.port();
    let busy: Vec<_> = (0..2).map(|_| std::thread::spawn(move || get(port, "/sleep?13000").0)).collect();
    worker.wait_for_requests(2);
    let asked: Vec<_> = (0..20)
        .map(|_| std::thread::spawn(move || (Instant::now(), talk(port, ASK.as_bytes()), Instant::now())))
        .collect();
    let answers: Vec<_> = asked.into_iter().map(|one| one.join().unwrap()).collect();
    assert!(answers.iter().all(|(_, answer, _)| status(answer) == 503 && answer.contains("retry-after: 1")));
    assert!(answers.iter().all(|(begun, _, ended)| ended.duration_since(*begun) >= TURN_TIME_MAX), "they wait");
    assert!(busy.into_iter().all(|one| one.join().unwrap() == 200));
    assert_eq!(get(port, "/seen").0, 200);

    let mut open = Vec::new();
    while status(&talk(port, ASK.as_bytes())) != 503 {
        open.push(connect(port));
        assert!(open.len() < 60, "nobody is turned away");
    }
    // The worker may not have closed the latest of the others.
    assert!(open.len() >= 20, "{} are too many", open.len());
}

/// Goal: more requests than the container has instances for are refused, and cost nothing else. Method: as many clients as
/// there are instances each have one that waits for a body.
#[test]
fn instances_at_a_time_are_bounded() {
    let most = instances(CONTAINER_BYTES);
    let spec = Spec::new().with(|spec| {
        spec.limits.requests = 2 * most;
        spec.limits.request_ms = 120_000;
    });
    let mut worker = Worker::with(&spec);
    let mut clients: Vec<TcpStream> = (0..most).map(|_| connect(spec.port())).collect();
    for client in &mut clients {
        client
            .write_all(b"POST /count HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n")
            .unwrap();
    }
    // The component asks for the body, so there is an instance.
    let mut go_on = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    for client in &mut clients {
        client.read_exact(&mut go_on).unwrap();
        assert!(go_on.starts_with(b"HTTP/1.1 100"));
    }
    let answer = talk(spec.port(), ASK.as_bytes());
    assert!(status(&answer) == 503 && answer.contains("retry-after: 1\r\n"), "{answer}");
    let counts = worker.counts();
    assert_eq!((counts.requests, counts.refused, counts.failed), (u64::from(most) + 1, 1, 0));
    let other = spec.clone().with(|spec| {
        spec.slot = 1;
        spec.name = "example.org/other@1.0.0".to_owned();
    });
    assert_eq!(worker.refused(&other).0, RefusalKind::QuotaExceeded);

    for client in &mut clients {
        client.write_all(b"x").unwrap();
        let answer = read_response(client);
        assert_eq!((status(&answer), body(&answer).as_str()), (200, "1 ended"));
    }
    assert_eq!(get(spec.port(), "/seen").0, 200);
}

const ASK: &str = "GET /seen HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

#[test]
fn imports_that_nodes_lack_are_named() {
    let lacking = wat::parse_str(
        r#"(component
            (import "wasi:keyvalue/store@0.2.0-draft" (instance))
            (import "acme:wallet/pay" (instance))
            (import "wasi:clocks/wall-clock@0.2.0" (instance))
            (core module $m (func (export "run") (result i32) (i32.const 0)))
            (core instance $i (instantiate $m))
            (func $run (result (result)) (canon lift (core func $i "run")))
            (instance $run (export "run" (func $run)))
            (export "wasi:cli/run@0.2.0" (instance $run)))"#,
    )
    .unwrap();
    let refusal = refused_code("lacking", &lacking);
    assert!(refusal.contains("abi-mismatch"), "{refusal}");
    assert!(refusal.contains("wasi:keyvalue/store@0.2.0-draft, acme:wallet/pay"), "{refusal}");
    assert!(!refusal.contains("wall-clock"), "{refusal}");

    let useless = wat::parse_str("(component)").unwrap();
    assert!(refused_code("useless", &useless).contains("exports nothing"));
    assert!(refused_code("broken", b"\0asm\x0d\0\x01\0junk").contains("bad-code"));
}

fn refused_code(name: &str, wasm: &[u8]) -> String {
    let path = shared::folder().join(format!("{name}.wasm"));
    std::fs::write(&path, wasm).unwrap();
    compile(&[&path], &shared::folder().join(format!("{name}.cwasm"))).unwrap_err()
}

/// Asks for a path from an address; returns the status.
fn get_from(client: [u8; 4], port: u16, path: &str) -> u16 {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from((client, 0))).unwrap();
    rustix::net::connect(&socket, &SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
    let mut stream = TcpStream::from(socket);
    write!(stream, "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    // Who is turned away may be so with a reset.
    let _ = stream.read_to_string(&mut answer);
    status(&answer)
}
