// SPDX-License-Identifier: Apache-2.0
//! Requests of a module's own, over TLS.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

use super::http::runtime;
use super::streams::{ask as ask_by, http2};
use super::{LONG, Spec, Worker, get};

/// Goal: a module gets what a server says whose certificate an authority vouches for that the operator trusts, and from
/// others learns what is wrong. Method: modules with certificates of a private authority are the servers.
#[test]
fn requests_over_tls_go_to_servers_with_the_right_certificate() {
    let authorities = certificates("authority.pem");
    let mut worker = Worker::start_with(&[OsStr::new("--authorities"), authorities.as_os_str()]);
    let [right, expired, strange] =
        [(1, "localhost.pem"), (2, "expired.pem"), (3, "../tls.pem")].map(|(slot, pem)| https(&mut worker, slot, pem));
    let spec = client();
    worker.load(&spec);
    let fetch = |url: &str| get(spec.port(), &format!("/fetch?{url}")).1;
    for _ in 0..2 {
        let answer = fetch(&format!("https://localhost:{right}/head"));
        assert!(answer.starts_with(&format!("200 https localhost:{right}\n")), "{answer}");
    }
    for (host, port, why) in [
        ("127.0.0.1", right, "not valid for name"),
        ("localhost", expired, "expired"),
        ("localhost", strange, "UnknownIssuer"),
    ] {
        let answer = fetch(&format!("https://{host}:{port}/head"));
        assert_eq!(answer, "ErrorCode::TlsCertificateError", "{why}");
        let line = worker.wait_for_line(&format!("no TLS with {host}:{port}: "));
        assert!(line.contains(why), "{line}");
    }
    let counts = worker.counts();
    assert_eq!((counts.requests, counts.failed), (5, 0));
}

#[test]
fn authorities_are_the_operators_to_add() {
    let mut worker = Worker::start();
    let server = https(&mut worker, 1, "localhost.pem");
    let spec = client();
    worker.load(&spec);
    let answer = get(spec.port(), &format!("/fetch?https://localhost:{server}/head")).1;
    assert_eq!(answer, "ErrorCode::TlsCertificateError");

    let (unusable, spec) = (certificates("../mod.rs"), client());
    let mut worker = Worker::start_with(&[OsStr::new("--authorities"), unusable.as_os_str()]);
    worker.load(&spec);
    let answer = get(spec.port(), &format!("/fetch?https://localhost:{server}/head")).1;
    assert!(answer.contains("InternalError") && answer.contains("authorities"), "{answer}");
}

#[test]
fn servers_that_refuse_tls_are_told_apart() {
    let spec = client();
    let _worker = Worker::with(&spec);
    // An alert of level "fatal": handshake_failure.
    let alert = b"\x15\x03\x03\x00\x02\x02\x28".as_slice();
    for (answer, expected) in [
        (alert, "TlsAlertReceived"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(), "TlsProtocolError"),
        (b"".as_slice(), "TlsProtocolError"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            stream.write_all(answer).unwrap();
        });
        let answer = get(spec.port(), &format!("/fetch?https://127.0.0.1:{port}/")).1;
        assert!(answer.contains(expected), "{answer}");
        assert!(expected != "TlsAlertReceived" || answer.contains("Some(40)"), "{answer}");
        server.join().unwrap();
    }
}

/// Goal: a server never takes what was cut off for the whole. Method: a body without a length, whose instance ends in all ways in mid-body.
#[test]
fn a_body_that_is_cut_off_does_not_look_whole() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", origin.local_addr().unwrap());
    let spec = client().with(|spec| spec.limits.request_ms = 1000);
    let mut worker = Worker::with(&spec);
    let port = spec.port();
    let ask = |then: &str| {
        let path = format!("/upload?{then}&{url}");
        std::thread::spawn(move || get(port, &path))
    };
    let whole = ask("end");
    let (mut arrived, _) = some_of_it(&origin);
    arrived.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ngood").unwrap();
    assert!(rest(arrived).ends_with("0\r\n\r\n"));
    assert_eq!(whole.join().unwrap().1, "200 good");
    for (then, status) in [("trap", 500), ("wait", 504)] {
        let asked = ask(then);
        let (arrived, got) = some_of_it(&origin);
        let all = got + &rest(arrived);
        assert!(!all.ends_with("0\r\n\r\n"), "{then}: {all}");
        assert_eq!(asked.join().unwrap().0, status, "{then}");
    }
    // A client of HTTP/2 that thinks better of it.
    let spec = client().with(|spec| spec.slot = 1).with(|spec| spec.name = "example.org/other@1.0.0".to_owned());
    worker.load(&spec);
    let (arrived, got) = runtime().block_on(async {
        let client = http2(spec.port()).await;
        let path = format!("/upload?wait&{url}");
        let asked = ask_by(&client, &path);
        let arrived = tokio::task::spawn_blocking(move || some_of_it(&origin));
        tokio::select! {
            _ = asked => panic!("it was answered"),
            arrived = arrived => arrived.unwrap(),
        }
    });
    let all = got + &rest(arrived);
    assert!(!all.ends_with("0\r\n\r\n"), "{all}");
}

/// Accepts a connection, and returns what comes by it up to some of a body.
fn some_of_it(listener: &TcpListener) -> (TcpStream, String) {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let (mut got, mut byte) = (Vec::new(), [0]);
    while !got.ends_with(b"some of it\r\n") {
        stream.read_exact(&mut byte).unwrap();
        got.push(byte[0]);
    }
    (stream, String::from_utf8(got).unwrap())
}

/// Returns what else comes by a connection, however it ends.
fn rest(mut stream: TcpStream) -> String {
    let mut all = Vec::new();
    // One that is reset has said what it had to say.
    let _ = stream.read_to_end(&mut all);
    String::from_utf8(all).unwrap()
}

fn client() -> Spec {
    Spec::new().with(|spec| spec.connect = vec!["tcp dst 127.0.0.1".to_owned()])
}

/// Loads a module that answers over HTTPS. Returns its port.
fn https(worker: &mut Worker, slot: u8, pem: &str) -> u16 {
    let server = Spec::new().with(|spec| {
        spec.slot = slot;
        spec.name = format!("example.org/https-{slot}@1.0.0");
        spec.tls = Some(certificates(pem));
    });
    worker.load(&server);
    server.port()
}

/// Returns a file of those beside these tests: an authority, and certificates of its for `localhost`.
fn certificates(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/all/server/certificates").join(file)
}
