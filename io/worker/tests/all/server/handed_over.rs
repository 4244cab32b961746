// SPDX-License-Identifier: Apache-2.0
//! What modules hand over of the cache, and of other servers: `modules/fixtures/cache-tests`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use netserv_model::effect::ModuleSlot;
use netserv_patience::grown;
use netserv_wire::container::frames::{FromWorker, ToWorker};
use netserv_worker_base::storage::CACHE_FILE;
use netserv_worker_server::limits::{HEAD_TIME_MAX, HELD_WIDE_BYTES_MAX, STOP_TIME_MAX};
use rustix::net::{AddressFamily, SocketType};

use super::http::runtime;
use super::{LONG, Spec, Worker, compiled, connect, get, serve_each};

/// Bytes of what `/slowly` and `/trap` write: 20 pieces of 20,000.
const WHOLE: usize = 400_000;
/// Bytes that a slow way takes in twice the time that a connection may be idle.
const SLOWLY: u32 = 256 * 1024;
/// How long a client may take nothing, as its property says.
const PATIENCE: Duration = Duration::from_secs(6);
/// How long a source may be silent, as the module says.
const IDLE: Duration = Duration::from_secs(1);

#[test]
fn entries_and_parts_of_them_are_sent_without_an_instance() {
    let (spec, mut worker, _store) = start(None);
    let port = spec.port();
    let writes = thread::spawn(move || get(port, "/slowly?k"));
    worker.wait_for_line("begun");
    let reads: Vec<_> = (0..5).map(|_| thread::spawn(move || bytes(port, "/hand-over?k"))).collect();
    let part = bytes(port, "/hand-over-part?k").expect("it ends with its range");
    assert!(part == expected()[150_000..220_000]);
    for read in reads {
        assert!(read.join().unwrap().expect("it ends with the entry") == expected());
    }
    assert_eq!(writes.join().unwrap().1, "wrote Ok(())");
    assert!(bytes(port, "/hand-over?k").unwrap() == expected(), "from the disk");
    assert!(bytes(port, "/hand-over-part?k").unwrap() == part);
    assert_eq!(worker.counts().failed, 0);
}

#[test]
fn an_entry_with_another_length_than_its_head_says_is_cut_or_broken_off() {
    let (spec, mut worker, _store) = start(None);
    let port = spec.port();
    assert_eq!(get(port, "/slowly?k").1, "wrote Ok(())");
    assert!(bytes(port, "/hand-over-less?k").unwrap() == expected()[..200_000]);
    let got = bytes(port, "/hand-over-more?k").expect_err("it is not whole");
    assert!(expected().starts_with(&got));
    worker.wait_for_line("longer than its head says");
    worker.wait_for_line("shorter than its head says");
}

/// Goal: a writer that traps fails all who joined, and costs nobody else. Method: 200 of them, and then another writer.
#[test]
fn two_hundred_who_joined_a_writer_that_traps_see_that_it_is_not_whole() {
    let (spec, mut worker, _store) = start(None);
    let port = spec.port();
    let writes = thread::spawn(move || get(port, "/trap?k"));
    worker.wait_for_line("begun");
    let mut joined: Vec<TcpStream> = (0..200).map(|_| ask(port, "/hand-over?k")).collect();
    let mut whole = expected();
    whole.truncate(11 * 20_000);
    for stream in &mut joined {
        let got = body_of(stream).expect_err("it is not whole");
        assert!(whole.starts_with(&got), "{} bytes", got.len());
    }
    assert_eq!(writes.join().unwrap().0, 500);
    assert_eq!(get(port, "/slowly?k").1, "wrote Ok(())", "it is not there");
    assert!(bytes(port, "/hand-over?k").unwrap() == expected());
}

#[test]
fn what_is_removed_or_purged_while_it_is_written_is_read_and_not_kept() {
    let (spec, mut worker, _store) = start(None);
    let port = spec.port();
    for gone in ["/remove?k", "/purge?k", "/purge-tag?tag"] {
        let writes = thread::spawn(move || get(port, "/slowly?k"));
        worker.wait_for_line("begun");
        let mut joined: Vec<TcpStream> = (0..20).map(|_| ask(port, "/hand-over?k")).collect();
        joined.iter_mut().for_each(|stream| assert_eq!(stream.peek(&mut [0]).unwrap(), 1));
        assert_eq!(get(port, gone).0, 200);
        assert!(bytes(port, "/hand-over?k").unwrap() == b"nothing is there", "{gone}: nobody joins any more");
        assert!(joined.iter_mut().all(|stream| body_of(stream).unwrap() == expected()), "{gone}");
        assert_eq!(writes.join().unwrap().1, "wrote Ok(())");
        assert!(get(port, "/list?").1.is_empty(), "{gone}");
    }
}

/// Goal: who takes the end slowly has all of it, of what an instance handed over as of what the node answers again, though its connection
/// is over meanwhile. Method: clients of HTTP/2 that may be sent all at once, whose windows come when nobody asks for anything any more.
#[test]
fn who_takes_the_end_slowly_has_all_of_it() {
    let (spec, mut worker, _store) = start(None);
    let port = spec.port();
    assert_eq!(get(port, "/slowly?k").1, "wrote Ok(())");
    assert!(bytes(port, "/again?k").unwrap() == expected());
    let way = slow_way(port);
    let begun = Instant::now();
    runtime().block_on(async {
        let clients = ["/hand-over?k", "/again?k"].map(|path| tokio::spawn(over_http2(way, path)));
        for client in clients {
            assert!(client.await.unwrap().expect("it is whole") == expected());
        }
    });
    assert!(begun.elapsed() > HEAD_TIME_MAX, "{:?}", begun.elapsed());
    assert_eq!(worker.counts().failed, 0);
}

/// Returns the port of a way to a server that holds little, and takes what comes slowly once there is as much left as a response may
/// have on its way.
fn slow_way(port: u16) -> u16 {
    serve_each(move |mut client| {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 8 * 1024).unwrap();
        rustix::net::connect(&socket, &SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
        let mut server = TcpStream::from(socket);
        let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        thread::spawn(move || io::copy(&mut from, &mut to));
        let (mut got, mut bytes) = (0, [0; 4096]);
        while let Ok(length @ 1..) = server.read(&mut bytes) {
            got += length;
            if got + HELD_WIDE_BYTES_MAX > WHOLE {
                thread::sleep(2 * HEAD_TIME_MAX * u32::try_from(length).unwrap() / SLOWLY);
            }
            if client.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        let _ = client.shutdown(Shutdown::Both);
    })
}

async fn over_http2(port: u16, path: &str) -> Result<Vec<u8>, hyper::Error> {
    let stream = TokioIo::new(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap());
    let mut client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    client.initial_stream_window_size(1 << 20).initial_connection_window_size(1 << 20);
    let (mut sender, connection) = client.handshake(stream).await?;
    tokio::spawn(connection);
    let request = hyper::Request::get(format!("http://a{path}")).body(Full::<Bytes>::default()).unwrap();
    Ok(sender.send_request(request).await?.into_body().collect().await?.to_bytes().into())
}

/// Goal: who reads nothing is cut, and meanwhile keeps nobody from reading. Method: more than fits what lies between.
#[test]
fn readers_that_never_read_are_cut_alone() {
    let origin = Server::start(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 64000000\r\n\r\n");
        (0..64).all(|_| stream.write_all(&[7; 1_000_000]).is_ok());
    });
    let (spec, mut worker, _store) = start(Some(origin.port));
    let lazy: Vec<TcpStream> = (0..20)
        .map(|_| {
            let stream = ask(spec.port(), "/pass?/");
            rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 4096).unwrap();
            stream
        })
        .collect();
    assert_eq!(bytes(spec.port(), "/pass?/").unwrap().len(), 64_000_000);
    let begun = Instant::now();
    while worker.counts().failed < 20 {
        assert!(begun.elapsed() < LONG, "{} are cut", worker.counts().failed);
        thread::sleep(Duration::from_millis(100));
    }
    drop(lazy);
}

#[test]
fn an_answer_of_another_server_is_sent_without_an_instance() {
    // Longer than a request may take, and never silent for as long as a source may be.
    let origin = Server::start(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 60\r\n\r\n");
        (0..6).all(|_| {
            thread::sleep(IDLE / 2);
            stream.write_all(b"0123456789").is_ok()
        });
    });
    let (spec, mut worker, _store) = start(Some(origin.port));
    assert_eq!(bytes(spec.port(), "/pass?/").unwrap(), b"0123456789".repeat(6));
    assert_eq!(worker.counts().failed, 0);
}

#[test]
fn an_answer_that_stalls_or_is_not_whole_is_broken_off() {
    let stalls = |head: &'static [u8], then: Duration| {
        Server::start(move |stream| {
            let _ = stream.write_all(head).and_then(|()| stream.write_all(b"some"));
            thread::sleep(then);
        })
    };
    let fixed = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n";
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\n";
    for (head, then, most) in [
        (&fixed[..], Duration::from_secs(60), IDLE + PATIENCE / 2),
        (fixed, Duration::ZERO, PATIENCE),
        (chunked, Duration::from_secs(60), IDLE + PATIENCE / 2),
        (chunked, Duration::ZERO, PATIENCE),
    ] {
        let origin = stalls(head, then);
        let (spec, mut worker, _store) = start(Some(origin.port));
        let begun = Instant::now();
        assert_eq!(bytes(spec.port(), "/pass?/").unwrap_err(), b"some", "{then:?}");
        assert!(begun.elapsed() < grown(most), "{:?}", begun.elapsed());
        while worker.counts().failed == 0 {
            assert!(begun.elapsed() < LONG, "it does not count");
        }
    }
}

/// Goal: a client gets what came before its origin broke off. Method: 20 origins that send it and break off at once.
#[test]
fn what_came_before_an_origin_broke_off_is_sent() {
    let origin = Server::start(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nsome");
    });
    let (spec, _worker, _store) = start(Some(origin.port));
    for _ in 0..20 {
        assert_eq!(bytes(spec.port(), "/pass?/").unwrap_err(), b"some");
    }
}

/// Goal: what was handed over does not outlive a module that is drained, as no other response does. Method: a source that goes on for long.
#[test]
fn what_was_handed_over_ends_with_a_module_that_is_drained() {
    let origin = Server::start(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 600\r\n\r\n");
        (0..600).all(|_| {
            thread::sleep(IDLE / 5);
            stream.write_all(b".").is_ok()
        });
    });
    let (spec, mut worker, _store) = start(Some(origin.port));
    let mut stream = ask(spec.port(), "/pass?/");
    assert_eq!(stream.peek(&mut [0]).unwrap(), 1);
    worker.send(&ToWorker::Drain { slot: ModuleSlot(0), finish: false }, None);
    let begun = Instant::now();
    assert!(!body_of(&mut stream).expect_err("it is not whole").is_empty());
    let took = begun.elapsed();
    assert!(took > STOP_TIME_MAX / 2 && took < grown(STOP_TIME_MAX + Duration::from_secs(2)), "{took:?}");
    assert_eq!(worker.answer(), FromWorker::Drained { slot: ModuleSlot(0) });
}

/// A server that does the same on each connection once a request came.
pub struct Server {
    pub port: u16,
}

impl Server {
    pub fn start(answer: impl Fn(&mut TcpStream) + Send + Sync + Clone + 'static) -> Server {
        let port = serve_each(move |mut stream| {
            let _ = stream.read(&mut [0; 4096]);
            answer(&mut stream);
        });
        Server { port }
    }
}

fn expected() -> Vec<u8> {
    (0..20_u8).flat_map(|number| [number; WHOLE / 20]).collect()
}

pub fn ask(port: u16, path: &str) -> TcpStream {
    let mut stream = connect(port);
    write!(stream, "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    stream
}

pub fn bytes(port: u16, path: &str) -> Result<Vec<u8>, Vec<u8>> {
    body_of(&mut ask(port, path))
}

/// Reads a response to its end. Returns the body, as an error if it is not whole.
pub fn body_of(stream: &mut TcpStream) -> Result<Vec<u8>, Vec<u8>> {
    let mut answer = Vec::new();
    // A connection that is cut gives what came before.
    let _ = stream.read_to_end(&mut answer);
    let Some(end) = answer.windows(4).position(|end| end == b"\r\n\r\n") else { return Err(answer) };
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let rest = &answer[end + 4..];
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    match length {
        Some(length) if rest.len() == length => Ok(rest.to_vec()),
        Some(_) => Err(rest.to_vec()),
        None => unchunked(rest),
    }
}

fn unchunked(mut rest: &[u8]) -> Result<Vec<u8>, Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let Some(line) = rest.windows(2).position(|end| end == b"\r\n") else { return Err(body) };
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        if length == 0 {
            return Ok(body);
        }
        let chunk = &rest[line + 2..];
        body.extend_from_slice(&chunk[..length.min(chunk.len())]);
        let Some(after) = chunk.get(length + 2..) else { return Err(body) };
        rest = after;
    }
}

/// Starts a worker with a cache of 64 MiB, and another server that it may ask.
fn start(upstream: Option<u16>) -> (Spec, Worker, tempfile::TempDir) {
    let mut spec = Spec::of(compiled("cache_tests")).with(|spec| spec.limits.request_ms = 2000);
    if let Some(port) = upstream {
        spec.connect = vec![format!("tcp dst 127.0.0.1/32 port {port}")];
        spec = spec.property("upstream", &format!("127.0.0.1:{port}"));
    } else {
        spec.limits.request_ms = 60_000;
    }
    spec = spec.property("client-patience-s", &PATIENCE.as_secs().to_string());
    let (worker, store) = with_cache(&spec);
    (spec, worker, store)
}

/// Starts a worker with a cache of 64 MiB and one module.
pub fn with_cache(spec: &Spec) -> (Worker, tempfile::TempDir) {
    let store = tempfile::tempdir().unwrap();
    File::create(store.path().join(CACHE_FILE)).unwrap().set_len(64 << 20).unwrap();
    let mut worker = Worker::start_with(&[OsStr::new("--store"), store.path().as_os_str()]);
    worker.load(spec);
    (worker, store)
}
