// SPDX-License-Identifier: Apache-2.0
//! What HTTP modules are for.

use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use netserv_wire::container::frames::ToWorker;
use netserv_worker::tools::bench;
use netserv_worker_server::limits;
use netserv_worker_server::testing::code::HostSettings;
use netserv_worker_server::testing::http::TestRequest;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::streams::frame;
use super::{Spec, Worker, body, component, connect, get, status, talk};

#[test]
fn requests_are_answered_by_fresh_instances() {
    let spec = Spec::new().property("version", "one");
    let mut worker = Worker::with(&spec);
    for _ in 0..3 {
        assert_eq!(get(spec.port(), "/seen"), (200, "1".to_owned()));
    }
    assert_eq!(get(spec.port(), "/version"), (200, "one".to_owned()), "properties are in the environment");
    assert_eq!(get(spec.port(), "/nowhere").0, 404);
    let counts = worker.counts();
    assert_eq!((counts.connections, counts.requests, counts.refused, counts.failed), (5, 5, 0, 0));
    assert_eq!(counts.bytes_out, (3 + "one".len() + "nothing here".len()) as u64);
}

#[test]
fn one_connection_carries_many_requests() {
    let spec = Spec::new();
    let mut worker = Worker::with(&spec);
    let mut stream = connect(spec.port());
    for _ in 0..5 {
        stream.write_all(b"POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello").unwrap();
        let answer = read_response(&mut stream);
        assert_eq!((status(&answer), body(&answer)), (200, "5 ended".to_owned()));
    }
    assert_eq!((worker.counts().connections, worker.counts().bytes_in), (1, 25));
}

#[test]
fn the_component_sees_whom_a_request_is_for() {
    let spec = Spec::new();
    let _worker = Worker::with(&spec);
    let answer = talk(
        spec.port(),
        b"GET /head HTTP/1.1\r\nhost: module.test:81\r\nx-one: 1\r\nX-Two: 2\r\nconnection: close\r\n\r\n",
    );
    let text = body(&answer);
    assert!(text.starts_with("http module.test:81\n"), "{text}");
    assert!(text.contains("x-one: 1\n") && text.contains("x-two: 2\n"), "{text}");
    assert!(!text.contains("connection:"), "what belongs to the connection is not the component's: {text}");
    let v6 = TcpStream::connect(("::1", spec.port())).map(|mut stream| {
        stream.write_all(b"GET /head HTTP/1.1\r\nhost: [::1]\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        body(&answer)
    });
    assert!(v6.unwrap().starts_with("http [::1]\n"));
    let mut client = connect(spec.port());
    client.write_all(b"GET /flow HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    let (own, port) = (client.local_addr().unwrap().port(), spec.port());
    let between = format!("127.0.0.1 {own} -> 127.0.0.1 {port} served tls=false");
    assert_eq!(body(&read_response(&mut client)), between);
}

#[test]
fn http2_is_understood_without_being_asked() {
    let spec = Spec::new();
    let _worker = Worker::with(&spec);
    runtime().block_on(async {
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", spec.port())).await.unwrap();
        let answers = over_http2(TokioIo::new(stream), "http").await;
        assert_eq!(answers, ["1"; 20], "each stream has an instance of its own");
    });
}

/// The fastest instance counts, since others on the machine only make them slower.
#[test]
fn an_instance_costs_little() {
    let settings = HostSettings::new("example.org/hello@1.0.0".parse().unwrap());
    let request = TestRequest { method: "GET".to_owned(), path: "/".to_owned(), headers: Vec::new(), body: Vec::new() };
    let component = std::fs::read(component("hello_http")).unwrap();
    let report = bench::http::run(&component, settings, &[(request, 200)], Duration::from_millis(100)).unwrap();
    assert_eq!(report.failed, 0);
    eprintln!("an instance takes {:?} us", report.instantiate_us);
    // Not optimised, it takes some 70 on a quiet machine, and above 100 on one with other work.
    let most = if cfg!(debug_assertions) { 400.0 } else { 100.0 };
    assert!((1.0..=most).contains(&report.instantiate_us.least), "{report:?}");
}

/// Method: more streams than the server allows, in frames of our own, since clients that know what it allows wait.
#[test]
fn a_connection_has_only_so_many_streams() {
    let spec = Spec::new().with(|spec| spec.limits.requests = 2 * limits::STREAMS_MAX);
    let _worker = Worker::with(&spec);
    // GET, http, a path and an authority: RFC 7541, appendix A has the numbers.
    let request = b"\x82\x86\x04\x0b/sleep?4000\x01\x01a";
    let mut bytes = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, b"")].concat();
    let last = 2 * limits::STREAMS_MAX + 1;
    for stream in (1..=last).step_by(2) {
        bytes.extend(frame(1, 5, stream, request));
    }
    let mut connection = connect(spec.port());
    connection.write_all(&bytes).unwrap();
    let mut settings = Vec::new();
    loop {
        let mut head = [0; 9];
        connection.read_exact(&mut head).unwrap();
        let mut payload = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
        connection.read_exact(&mut payload).unwrap();
        let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
        match head[3] {
            // Before any of the others is answered.
            3 => {
                assert_eq!((stream, &payload[..]), (last, &[0, 0, 0, 7][..]), "refused");
                break;
            }
            4 if head[4] == 0 => settings = payload,
            kind => assert!([4, 6, 8].contains(&kind), "frame {kind} of stream {stream}"),
        }
    }
    let allowed = [&[0, 3][..], &limits::STREAMS_MAX.to_be_bytes()].concat();
    assert!(settings.chunks(6).any(|setting| setting == allowed), "{settings:?}");
}

#[test]
fn https_has_the_certificate_of_the_module() {
    let pem = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/server/tls.pem");
    let spec = Spec::new().with(|spec| spec.tls = Some(pem.clone()));
    let _worker = Worker::with(&spec);
    for (offered, agreed) in [(vec!["h2", "http/1.1"], "h2"), (vec!["http/1.1"], "http/1.1")] {
        runtime().block_on(async {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_file(&pem).unwrap()).unwrap();
            let provider = netserv_worker_server::tls::provider();
            let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
            let mut config = builder.with_root_certificates(roots).with_no_client_auth();
            config.alpn_protocols = offered.iter().map(|name| name.as_bytes().to_vec()).collect();
            let stream = tokio::net::TcpStream::connect(("127.0.0.1", spec.port())).await.unwrap();
            let name = ServerName::try_from("module.test").unwrap();
            let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(agreed.as_bytes()));
            if agreed == "h2" {
                assert_eq!(over_http2(TokioIo::new(stream), "https").await, ["1"; 20]);
            } else {
                let (mut sender, connection) =
                    hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
                tokio::spawn(connection);
                let request = hyper::Request::get("/head").header("host", "module.test");
                let response = sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
                let text = response.into_body().collect().await.unwrap().to_bytes();
                assert!(text.starts_with(b"https module.test\n"), "{text:?}");
                let request = hyper::Request::get("/flow").header("host", "module.test");
                let response = sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
                let text = response.into_body().collect().await.unwrap().to_bytes();
                assert!(text.ends_with(b" served tls=true"), "{text:?}");
            }
        });
    }
    // Who speaks no TLS gets nothing that could be taken for an answer.
    assert_eq!(status(&talk(spec.port(), b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")), 0);
}

#[test]
fn what_a_module_prints_is_in_its_log() {
    let spec = Spec::new();
    let mut worker = Worker::with(&spec);
    assert_eq!(get(spec.port(), "/print?hello").0, 200);
    assert_eq!(worker.wait_for_line("hello"), "hello");
    assert_eq!(worker.wait_for_line("no end"), "no end of line");
}

#[test]
fn work_goes_on_after_the_answer() {
    let spec = Spec::new();
    let mut worker = Worker::with(&spec);
    let begun = Instant::now();
    assert_eq!(get(spec.port(), "/work?300"), (200, "answered".to_owned()));
    assert!(begun.elapsed().as_millis() < 300);
    worker.wait_for_line("worked");
}

#[test]
fn requests_are_sent_only_where_the_module_may_connect() {
    let other = Spec::new().with(|spec| {
        spec.slot = 1;
        spec.name = "example.org/other@1.0.0".to_owned();
    });
    let spec = Spec::new().with(|spec| spec.connect = vec![format!("tcp dst 127.0.0.1 port {}", other.port())]);
    let mut worker = Worker::with(&spec);
    worker.load(&other);
    let fetch = |what: &str| get(spec.port(), &format!("/fetch?{what}")).1;
    assert_eq!(fetch(&format!("http://127.0.0.1:{}/seen", other.port())), "200 1");
    assert_eq!(fetch(&format!("http://localhost:{}/seen", other.port())), "200 1", "a name is looked up");
    assert!(fetch(&format!("http://[::1]:{}/seen", other.port())).contains("Denied"));
    assert!(fetch(&format!("http://127.0.0.1:{}/seen", spec.port())).contains("Denied"));
    assert!(fetch(&format!("http://127.0.0.1:{}/status?302", other.port())).starts_with("302"), "it is not followed");
    assert!(fetch(&format!("https://127.0.0.1:{}/", other.port())).contains("Tls"), "no TLS, no answer");
    let none = ToWorker::Permit { connect: vec![], listen: vec![] };
    worker.send(&none, None);
    worker.counts();
    assert!(fetch(&format!("http://127.0.0.1:{}/seen", other.port())).contains("Denied"));
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Asks twenty times at once over one connection.
async fn over_http2<S>(stream: TokioIo<S>, scheme: &str) -> Vec<String>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let ask = |_| {
        let mut sender = sender.clone();
        let request = hyper::Request::get(format!("{scheme}://module.test/seen"));
        let request = request.body(Full::<Bytes>::default()).unwrap();
        tokio::spawn(async move {
            let response = sender.send_request(request).await.unwrap();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            String::from_utf8(body.to_vec()).unwrap()
        })
    };
    let mut answers = Vec::new();
    for answer in (0..20).map(ask).collect::<Vec<_>>() {
        answers.push(answer.await.unwrap());
    }
    answers
}

/// Reads one chunked response, and leaves the connection open.
pub fn read_response(stream: &mut impl Read) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(b"0\r\n\r\n") {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&answer));
        answer.push(byte[0]);
    }
    String::from_utf8(answer).unwrap()
}
