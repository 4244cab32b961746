// SPDX-License-Identifier: Apache-2.0
//! Requests of a module's own, over TLS.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;

use super::{Spec, Worker, get};

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
