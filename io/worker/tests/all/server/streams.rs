// SPDX-License-Identifier: Apache-2.0
//! What clients can do to HTTP/2 and to TLS.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::SendRequest;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use netserv_worker_server::limits::{
    GRACE_TIME, HANDSHAKE_TIME_MAX, HEAD_BYTES_MAX, HEAD_TIME_MAX, HEADERS_MAX, WAITING_PER_REQUEST_MAX,
};

use super::http::runtime;
use super::{LONG, Spec, Worker, connect, get};

/// Goal: a client that does not read one answer loses that one, and no other of the connection.
#[test]
fn a_stream_that_is_not_read_ends_alone() {
    let spec = Spec::new().with(|spec| {
        spec.limits.request_ms = 2000;
        spec.limits.requests = 2;
    });
    let mut worker = Worker::with(&spec);
    runtime().block_on(async {
        let client = http2(spec.port()).await;
        let begun = Instant::now();
        let stalled = ask(&client, "/many?300000000").await.unwrap();
        assert_eq!(stalled.status(), 200);
        while begun.elapsed() < Duration::from_millis(4000) {
            assert_eq!(text(&client, "/seen").await, "1", "after {:?}", begun.elapsed());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // What had come before is there, and then it breaks off.
        let mut body = stalled.into_body();
        let mut taken = 0;
        let end = loop {
            match body.frame().await {
                Some(Ok(frame)) => taken += frame.data_ref().map_or(0, Bytes::len),
                other => break other,
            }
        };
        assert!(matches!(end, Some(Err(_))) && taken < 20_000_000, "{taken} bytes, then {end:?}");
        assert_eq!(text(&client, "/seen").await, "1");
    });
    assert_eq!(worker.counts().connections, 1);
}

/// Goal: one client has only so many requests wait. Method: the module serves as many as it may, and those that are one too many
/// are refused at once.
#[test]
fn requests_that_wait_without_a_connection_of_their_own_are_bounded() {
    let spec = Spec::new().with(|spec| spec.limits.requests = 2);
    let mut worker = Worker::with(&spec);
    let port = spec.port();
    let busy: Vec<_> =
        (0..2).map(|_| std::thread::spawn(move || (get(port, "/sleep?2500").0, Instant::now()))).collect();
    worker.wait_for_requests(2);
    let refused_last = runtime().block_on(async {
        let client = http2(port).await;
        let asked: Vec<_> = (0..20)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { (ask(&client, "/seen").await.unwrap().status().as_u16(), Instant::now()) })
            })
            .collect();
        let (mut refused, mut waited) = (Vec::new(), 0);
        for one in asked {
            match one.await.unwrap() {
                (503, at) => refused.push(at),
                (200, _) => waited += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((refused.len(), waited), (20 - 2 * WAITING_PER_REQUEST_MAX, 2 * WAITING_PER_REQUEST_MAX));
        refused.into_iter().max().unwrap()
    });
    assert!(busy.into_iter().all(|one| one.join().is_ok_and(|(status, at)| status == 200 && refused_last < at)));
}

#[test]
fn there_are_only_so_many_header_lines() {
    let spec = Spec::new();
    let _worker = Worker::with(&spec);
    runtime().block_on(async {
        let client = http2(spec.port()).await;
        for (lines, expected) in [(HEADERS_MAX, 200), (HEADERS_MAX + 1, 431)] {
            let asked = (0..lines).fold(request("/seen"), |asked, number| asked.header("x", number));
            assert_eq!(send(&client, asked).await.unwrap().status(), expected, "{lines} lines");
        }
    });
}

/// In HTTP/1 it ends the connection, whose place is another's then.
#[test]
fn a_connection_that_is_not_read_ends_soon_after_its_request() {
    let spec = Spec::new().with(|spec| {
        spec.limits.request_ms = 700;
        spec.limits.connections = 1;
    });
    let _worker = Worker::with(&spec);
    let mut stalled = connect(spec.port());
    let begun = Instant::now();
    stalled.write_all(b"GET /many?300000000 HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    stalled.read_exact(&mut [0; 1]).unwrap();
    while get(spec.port(), "/seen").0 != 200 {
        assert!(begun.elapsed() < HEAD_TIME_MAX, "it keeps its place until a head would be late");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(begun.elapsed() >= Duration::from_millis(700) + GRACE_TIME);
}

#[test]
fn a_head_that_is_too_long_ends_its_stream_only() {
    let spec = Spec::new();
    let mut worker = Worker::with(&spec);
    runtime().block_on(async {
        let client = http2(spec.port()).await;
        let long = "x".repeat(HEAD_BYTES_MAX / 16);
        let request = (0..17).fold(request("/seen"), |request, number| request.header(format!("x-{number}"), &long));
        let answer = send(&client, request).await;
        assert!(answer.as_ref().map_or(true, |answer| answer.status() == 431), "{answer:?}");
        assert_eq!(text(&client, "/seen").await, "1");
    });
    assert_eq!(worker.counts().requests, 1, "the component was not asked");
}

/// Goal: a head that goes on and on in CONTINUATION frames ends its connection, and takes no memory.
#[test]
fn a_head_without_end_ends_its_connection() {
    let spec = Spec::new();
    let mut worker = Worker::with(&spec);
    let mut warm = connect(spec.port());
    warm.write_all(b"GET /seen HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    warm.read_to_end(&mut Vec::new()).unwrap();
    let before = worker.memory_kib("VmHWM:");
    for payload in [&[][..], &[0x40, 1, b'x', 1, b'y'], &[0; 16_000]] {
        let mut client = connect(spec.port());
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        client.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
        client.write_all(&frame(HEADERS, 0, 1, &[0x82, 0x86, 0x84])).unwrap();
        let begun = Instant::now();
        let more = frame(CONTINUATION, 0, 1, payload).repeat(100_000_usize.div_ceil(9 + payload.len()));
        let mut sent = 0;
        while client.write_all(&more).is_ok() {
            sent += more.len();
            assert!(begun.elapsed() < LONG && sent < 64 << 20, "{sent} bytes of a head are taken");
        }
    }
    assert!(worker.memory_kib("VmHWM:") < before + 8 * 1024);
    assert_eq!(worker.counts().requests, 1);
}

#[test]
fn a_handshake_that_does_not_end_is_given_up() {
    let pem = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/server/tls.pem");
    let spec = Spec::new().with(|spec| spec.tls = Some(pem));
    let _worker = Worker::with(&spec);
    let begun = Instant::now();
    let mut silent = connect(spec.port());
    let mut half_way = connect(spec.port());
    // The beginning of a ClientHello of 512 bytes.
    half_way.write_all(&[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]).unwrap();
    for client in [&mut silent, &mut half_way] {
        // Closed or reset, without a word.
        assert!(matches!(client.read(&mut [0; 16]), Ok(0) | Err(_)));
        assert!((HANDSHAKE_TIME_MAX..HANDSHAKE_TIME_MAX + Duration::from_secs(3)).contains(&begun.elapsed()));
    }
}

const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;

/// Returns a frame of HTTP/2.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

pub type Client = SendRequest<Full<Bytes>>;
pub type Answer = hyper::Result<Response<hyper::body::Incoming>>;

pub async fn http2(port: u16) -> Client {
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    client
}

fn request(path: &str) -> http::request::Builder {
    Request::get(format!("http://module.test{path}"))
}

async fn send(client: &Client, request: http::request::Builder) -> Answer {
    client.clone().send_request(request.body(Full::default()).unwrap()).await
}

pub async fn ask(client: &Client, path: &str) -> Answer {
    send(client, request(path)).await
}

async fn text(client: &Client, path: &str) -> String {
    let body = ask(client, path).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}
