// SPDX-License-Identifier: Apache-2.0
//! Answers that the node gives again without an instance. `modules/fixtures/cache-tests` says in `x-put` that an instance answered;
//! `modules/samples/edge-cache` uses it as modules do.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::thread::sleep;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use netserv_model::control::ControlMessage;
use netserv_model::effect::ModuleSlot;
use netserv_wire::container::frames::{FromWorker, ToWorker};
use netserv_worker_base::storage::CACHE_FILE;
use netserv_worker_server::limits;

use super::crowd::Origin;
use super::http::runtime;
use super::{Spec, Worker, body, compile, compiled, component, connect, get, status, talk};
use crate::shared;

/// Goal: the node answers from an entry without an instance until the entry is removed, purged, replaced or updated; the
/// very next request sees the change.
#[test]
fn an_entry_is_answered_again_until_it_changes() {
    let (spec, mut worker, _store) = start();
    let port = spec.port();
    let changes: &[(&str, Option<&str>)] = &[
        ("/store?k=two", Some("two")),
        ("/update?k", Some("two")),
        ("/remove?k", None),
        ("/store?k=three", Some("three")),
        ("/purge?k", None),
        ("/store?k=four", Some("four")),
        ("/purge-tag?tag", None),
        ("/store?k=five", Some("five")),
        ("/forget?/again?k", Some("five")),
    ];
    assert_eq!(get(port, "/store?k=one").0, 200);
    assert_eq!(by(port, "one"), "instance");
    for (change, expected) in changes {
        let again = get_again(port);
        assert!(!again.contains("x-put"), "{again}");
        let age = again.lines().find_map(|line| line.strip_prefix("age: ")?.parse::<u64>().ok());
        assert!(age.is_some_and(|age| age < 60) && again.contains("\r\netag: \"1\"\r\n"), "{again}");
        assert!(again.contains(&format!("\r\ncontent-length: {}\r\n", body(&again).len())), "{again}");
        assert_eq!(get(port, change).0, 200, "{change}");
        // The very next request.
        match expected {
            Some(expected) => assert_eq!((by(port, expected), by(port, expected)), ("instance", "node"), "{change}"),
            None => {
                assert_eq!(status(&get_again(port)), 404, "{change}");
                assert_eq!(get(port, "/store?k=between").0, 200);
                assert_eq!(by(port, "between"), "instance", "{change}");
            }
        }
    }
    assert_eq!(get(port, "/forget?/nothing").1, "false");
    let counts = worker.counts();
    assert_eq!(counts.failed, 0);
    let counted = counter(&mut worker, "again");
    assert!(counted >= changes.len() as u64, "{counted}");
}

#[test]
fn bytes_of_bodies_are_counted() {
    let (spec, mut worker, _store) = start();
    let port = spec.port();
    get(port, "/store?k=three");
    let ask = |method: &str| {
        let request = format!("{method} /again-counted?k HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        talk(port, request.as_bytes()).contains("x-put")
    };
    assert!(ask("GET"), "an instance answers");
    assert_eq!(counter(&mut worker, "again-bytes"), 0);
    assert!(!ask("GET") && !ask("HEAD") && !ask("GET"));
    assert_eq!((counter(&mut worker, "again"), counter(&mut worker, "again-bytes")), (3, 10));
}

#[test]
fn an_answer_ends_with_its_time_and_its_entrys() {
    let (spec, _worker, _store) = start();
    let port = spec.port();
    get(port, "/store?k=one");
    let shortly = || talk(port, b"GET /again-shortly?k HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    assert!(shortly().contains("x-put"));
    assert!(!shortly().contains("x-put"));
    sleep(Duration::from_millis(350));
    assert!(shortly().contains("x-put"));
    get(port, "/store-shortly?k=two");
    by(port, "two");
    sleep(Duration::from_millis(2100));
    assert_eq!(status(&get_again(port)), 404, "the entry is stale");
}

#[test]
fn requests_that_say_more_get_an_instance() {
    let (spec, _worker, _store) = start();
    let port = spec.port();
    get(port, "/store?k=one");
    let ask = |text: &str| talk(port, format!("{text}connection: close\r\n\r\n").as_bytes());
    let plain = "GET /again?k HTTP/1.1\r\nhost: module.test\r\n";
    assert!(ask(plain).contains("x-put: Ok(())"));
    for more in ["", "accept: a\r\naccept-encoding: gzip\r\nuser-agent: b\r\n", "x-other: 1\r\n"] {
        let answer = ask(&format!("{plain}{more}"));
        assert!(!answer.contains("x-put") && answer.ends_with("\r\n\r\none"), "{more} {answer}");
    }
    for more in [
        "range: bytes=0-0",
        "if-none-match: \"1\"",
        "if-modified-since: Thu, 26 Nov 2026 00:00:00 GMT",
        "if-range: \"1\"",
        "if-match: *",
        "cache-control: no-cache",
        "pragma: no-cache",
        "authorization: Basic YQ==",
        "te: trailers",
        "upgrade: x",
        "expect: 100-continue",
        "content-length: 0",
        "cookie: a=b",
        "COOKIE: a=b",
        "x-kind: a",
    ] {
        let answer = ask(&format!("{plain}{more}\r\n"));
        assert!(answer.contains("x-put"), "{more} {answer}");
    }
    let chunked = format!("{plain}transfer-encoding: chunked\r\nconnection: close\r\n\r\n1\r\nx\r\n0\r\n\r\n");
    assert!(talk(port, chunked.as_bytes()).contains("x-put"));
    for other in [
        "GET /again?k HTTP/1.1\r\nhost: Module.test\r\n",
        "GET /again?k HTTP/1.1\r\nhost: other.test\r\n",
        "GET /again?k HTTP/1.1\r\nhost: module.test:80\r\n",
        "GET http://x.test/again?k HTTP/1.1\r\nhost: module.test\r\n",
        "POST /again?k HTTP/1.1\r\nhost: module.test\r\n",
        "OPTIONS /again?k HTTP/1.1\r\nhost: module.test\r\n",
    ] {
        let answer = ask(other);
        assert!(answer.contains("x-put"), "{other} {answer}");
    }
    assert_eq!(status(&ask("GET /again?k HTTP/1.1\r\nhost: module.test\r\nhost: module.test\r\n")), 400);
    // A path of other letters is another one.
    assert_eq!(status(&ask("GET /again?K HTTP/1.1\r\nhost: module.test\r\n")), 404);
    assert!(
        !ask("GET http://module.test/again?k HTTP/1.1\r\nhost: x.test\r\n").contains("x-put"),
        "it is the same target"
    );
}

#[test]
fn all_versions_of_http_get_it() {
    let (spec, _worker, _store) = start();
    let port = spec.port();
    get(port, "/store?k=one");
    assert_eq!(by(port, "one"), "instance");
    let head = talk(port, b"HEAD /again?k HTTP/1.1\r\nhost: module.test\r\nconnection: close\r\n\r\n");
    assert!(head.contains("\r\ncontent-length: 3\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(!head.contains("x-put"), "{head}");
    let old = talk(port, b"GET /again?k HTTP/1.0\r\nhost: module.test\r\n\r\n");
    assert!(old.starts_with("HTTP/1.0 200") && old.ends_with("\r\n\r\none") && !old.contains("x-put"), "{old}");
    // Three at once, of which the second is the module's.
    let mut stream = connect(port);
    let plain = "GET /again?k HTTP/1.1\r\nhost: module.test\r\n";
    stream
        .write_all(format!("{plain}\r\n{plain}cookie: a\r\n\r\n{plain}connection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    let answers: Vec<&str> = answers.split("HTTP/1.1 200 OK").skip(1).collect();
    let by_instance: Vec<bool> = answers.iter().map(|answer| answer.contains("x-put")).collect();
    assert_eq!(by_instance, [false, true, false], "{answers:?}");
    runtime().block_on(async {
        let stream = TokioIo::new(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap());
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        for (method, text) in [("GET", "one"), ("HEAD", ""), ("GET", "one")] {
            let request = hyper::Request::builder().method(method).uri("http://module.test/again?k");
            let response = sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
            let headers = response.headers().clone();
            assert_eq!((headers["content-length"].as_bytes(), headers.get("x-put")), (&b"3"[..], None));
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), text);
        }
    });
}

/// Goal: what is larger than what is given at once is answered by the node as well, whole to each of many, and a client that reads late
/// gets it, too.
#[test]
fn what_is_large_is_answered_again_as_it_is_taken() {
    let (spec, mut worker, _store) = start();
    let port = spec.port();
    let ask = |method: &str, more: &str| {
        let request = format!("{method} /again-counted?large HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{more}\r\n");
        talk(port, request.as_bytes())
    };
    let given = get(port, "/slowly?large").1;
    let first = ask("GET", "");
    assert!(first.contains("x-put: Ok(())") && body(&first).len() > limits::HTTP_HIT_AT_ONCE_BYTES_MAX, "{given}");
    let mut late = connect(port);
    late.write_all(b"GET /again-counted?large HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    for _ in 0..3 {
        let again = ask("GET", "");
        assert!(!again.contains("x-put") && body(&again) == body(&first));
        assert!(again.contains(&format!("\r\ncontent-length: {}\r\n", body(&first).len())));
    }
    let head = ask("HEAD", "");
    assert!(!head.contains("x-put") && head.ends_with("\r\n\r\n") && head.contains("content-length: 4"), "{head}");
    assert!(ask("GET", "range: bytes=0-0\r\n").contains("x-put"), "a part is the module's");
    let mut read = String::new();
    late.read_to_string(&mut read).unwrap();
    assert!(!read.contains("x-put") && body(&read) == body(&first));
    assert_eq!(counter(&mut worker, "again-bytes"), 4 * body(&first).len() as u64);
    assert_eq!(worker.counts().failed, 0);
}

#[test]
fn what_the_node_does_not_take_is_answered_by_instances() {
    let (spec, _worker, _store) = start();
    let port = spec.port();
    assert_eq!(by(port, "x"), "none");
    // Of a new version none is left, and of a chain there is none, since its other parts would not be asked.
    get(port, "/store?k=one");
    assert_eq!((by(port, "one"), by(port, "one")), ("instance", "node"));
    let code = shared::folder().join("chain.cwasm");
    let [token, tests] = ["token", "cache_tests"].map(component);
    compile(&[&token, &token, &tests], &code).unwrap();
    let (chain, mut worker, _store) = start_as(Spec::of(code));
    get(chain.port(), "/store?k=one");
    for _ in 0..2 {
        assert!(get_again(chain.port()).contains("\"unavailable\""));
    }
    worker.counts();
}

#[test]
fn a_new_version_begins_without_any() {
    let (spec, mut worker, _store) = start();
    let port = spec.port();
    get(port, "/store?k=one");
    assert_eq!((by(port, "one"), by(port, "one")), ("instance", "node"));
    let newer = spec.with(|spec| spec.slot = 1);
    worker.load(&newer);
    assert_eq!((by(port, "one"), by(port, "one")), ("instance", "node"));
    worker.send(&ToWorker::Unload { slot: ModuleSlot(0) }, None);
    assert_eq!(by(port, "one"), "node");
}

/// Goal: `edge-cache` receives its user's purge before the next answer, also before one that the node gives by itself.
#[test]
fn edge_cache_hears_of_a_purge_before_the_next_answer() {
    let origin = Origin::start(10_000);
    let (spec, mut worker, _store) = start_as(Spec::of(compiled("edge_cache")).with(|spec| {
        spec.connect = vec![format!("tcp dst 127.0.0.1/32 port {}", origin.port)];
    }));
    let request = format!("GET /small HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nconnection: close\r\n\r\n", origin.port);
    let ask = || {
        let answer = talk(spec.port(), request.as_bytes());
        assert!(answer.ends_with(&*String::from_utf8_lossy(&origin.body)), "{} bytes", answer.len());
        if answer.contains("x-cache: hit") { "hit" } else { "miss" }
    };
    for round in 1..4 {
        assert_eq!(ask(), "miss");
        // What it fetched is whole a little later.
        while ask() == "miss" {}
        for _ in 0..5 {
            assert_eq!(ask(), "hit");
        }
        assert_eq!(origin.fetches(), round);
        let body = format!("127.0.0.1:{}/small", origin.port).into_bytes();
        let message = ControlMessage { topic: "purge".parse().unwrap(), seq: round as u64, body };
        worker.send(&ToWorker::Tell { slot: ModuleSlot(0), message }, None);
        assert!(matches!(worker.answer(), FromWorker::Told { .. }));
    }
    assert_eq!(worker.counts().failed, 0);
}

/// Asks for what `/again?k` gives, and returns who answered.
fn by(port: u16, expected: &str) -> &'static str {
    let answer = get_again(port);
    if status(&answer) != 200 {
        return "none";
    }
    assert_eq!(body(&answer), expected, "{answer}");
    if answer.contains("x-put: Ok(())") { "instance" } else { "node" }
}

fn get_again(port: u16) -> String {
    talk(port, b"GET /again?k HTTP/1.1\r\nhost: module.test\r\nconnection: close\r\n\r\n")
}

/// Returns what a counter of the module's has.
fn counter(worker: &mut Worker, wanted: &str) -> u64 {
    worker.send(&ToWorker::Stats, None);
    let mut counted = 0;
    loop {
        match worker.answer() {
            FromWorker::Stats { counters, .. } => {
                counted = counters.iter().find(|(name, _)| *name == wanted).map_or(0, |(_, value)| *value);
            }
            FromWorker::StatsDone { .. } => return counted,
            other => panic!("{other:?}"),
        }
    }
}

fn start() -> (Spec, Worker, tempfile::TempDir) {
    start_as(Spec::of(compiled("cache_tests")))
}

/// Starts a worker with a module and a cache of 64 MiB. It is there as long as the folder.
fn start_as(spec: Spec) -> (Spec, Worker, tempfile::TempDir) {
    let store = tempfile::tempdir().unwrap();
    File::create(store.path().join(CACHE_FILE)).unwrap().set_len(64 << 20).unwrap();
    let mut worker = Worker::start_with(&[OsStr::new("--store"), store.path().as_os_str()]);
    worker.load(&spec);
    (spec, worker, store)
}
