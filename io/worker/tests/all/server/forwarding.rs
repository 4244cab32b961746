// SPDX-License-Identifier: Apache-2.0
//! Requests that the node sends on by itself, through the sample `http-compressor`: uploads and answers that take longer than a request may.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use netserv_worker::limits;

use super::compressed::{Answer, Unchunked, decoded, head_of, header_of};
use super::{Spec, Worker, compiled, connect, serve_each};

const REQUEST_MS: u32 = 1000;
const BODY_BYTES: u64 = 1 << 20;

/// Goal: uploads longer than a module may hold arrive as they were, with their length and in chunks, one after the other on a connection,
/// and their answers are compressed as ever.
#[test]
fn uploads_of_any_length_arrive_as_they_were() {
    let (mut module, origin) = Module::before(&Origin { waits: Duration::ZERO });
    let mut client = connect(module.spec.port());
    let bytes = pattern(usize::try_from(5 * BODY_BYTES).unwrap());
    for chunked in [false, true, true, false] {
        let length =
            if chunked { "transfer-encoding: chunked".into() } else { format!("content-length: {}", bytes.len()) };
        write!(client, "PUT /large HTTP/1.1\r\nhost: 127.0.0.1:{origin}\r\naccept-encoding: gzip\r\n{length}\r\n\r\n")
            .unwrap();
        for piece in bytes.chunks(100_000) {
            match chunked {
                true => {
                    client.write_all(&[format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat()).unwrap();
                }
                false => client.write_all(piece).unwrap(),
            }
        }
        if chunked {
            client.write_all(b"0\r\n\r\n").unwrap();
        }
        let answer = answer(&mut client);
        assert_eq!(answer.header("content-encoding"), Some("gzip"), "{}", answer.head);
        assert!(decoded("gzip", &answer.body) == said(&bytes));
    }
    assert_eq!(module.worker.counts().failed, 0);
}

/// Goal: an upload that takes longer than a request may, and an answer that begins later than that, come as they are, and the connection
/// goes on; the request behind them is compressed.
#[test]
fn what_takes_longer_than_a_request_may_comes_as_it_is() {
    let late = Duration::from_millis(u64::from(REQUEST_MS) * 2);
    for waits in [Duration::ZERO, late] {
        let (mut module, origin) = Module::before(&Origin { waits });
        let mut client = connect(module.spec.port());
        let bytes = pattern(60_000);
        let head = format!("host: 127.0.0.1:{origin}\r\naccept-encoding: gzip\r\n");
        write!(client, "PUT /slow HTTP/1.1\r\n{head}content-length: {}\r\n\r\n", bytes.len()).unwrap();
        for piece in bytes.chunks(bytes.len() / 6) {
            client.write_all(piece).unwrap();
            thread::sleep(late / 6);
        }
        let slow = answer(&mut client);
        assert!(slow.head.starts_with("http/1.1 200 ") && slow.body == said(&bytes), "{}", slow.head);
        assert_eq!((slow.header("content-encoding"), slow.header("x-own")), (None, Some("yes")), "{}", slow.head);
        write!(client, "GET /poll HTTP/1.1\r\n{head}\r\n").unwrap();
        let poll = answer(&mut client);
        let coding = if waits.is_zero() { Some("gzip") } else { None };
        assert_eq!(poll.header("content-encoding"), coding, "{}", poll.head);
        write!(client, "HEAD /now HTTP/1.1\r\n{head}\r\n").unwrap();
        let empty = head_of(&mut client);
        assert!(empty.starts_with("http/1.1 200 ") && header_of(&empty, "content-encoding") == Some("gzip"), "{empty}");
        assert_eq!(module.worker.counts().failed, 0);
    }
}

/// Goal: many more than there may be instances wait for late answers and get them, and who asks for what is there is answered meanwhile.
#[test]
fn those_that_wait_leave_instances_to_others() {
    const CLIENTS: usize = 40;
    let waits = 8 * limits::FORWARD_WAIT_TIME;
    let origin = serve_each(move |mut stream| Origin { waits }.serve(&mut stream));
    let mut module = Module::at(origin, 30 * REQUEST_MS);
    let port = module.spec.port();
    let ask = move |path: &str| {
        let mut client = connect(port);
        write!(client, "GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{origin}\r\n\r\n").unwrap();
        answer(&mut client)
    };
    let polls: Vec<_> = (0..CLIENTS).map(|_| thread::spawn(move || ask("/poll"))).collect();
    thread::sleep(limits::FORWARD_WAIT_TIME / 2);
    let begun = Instant::now();
    assert!(ask("/now").head.starts_with("http/1.1 200 "));
    assert!(begun.elapsed() < limits::TURN_TIME_MAX, "{:?}", begun.elapsed());
    for poll in polls {
        let poll = poll.join().unwrap();
        assert!(poll.head.starts_with("http/1.1 200 ") && poll.body == said(b""), "{}", poll.head);
    }
    let counts = module.worker.counts();
    assert_eq!((counts.failed, counts.refused), (0, 0));
}

/// Goal: a client that goes away in the middle of its upload ends it at the server, too, which is not to take it for whole; a server that is
/// not there is 502.
#[test]
fn uploads_that_break_off_do_so_for_the_server() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let origin = serve_each(move |mut stream| {
        let head = head_of(&mut stream);
        let _ = sender.send(body(&mut stream, &head).is_err());
    });
    let module = Module::at(origin, REQUEST_MS);
    for length in ["content-length: 100000", "transfer-encoding: chunked"] {
        let mut client = connect(module.spec.port());
        write!(client, "PUT / HTTP/1.1\r\nhost: 127.0.0.1:{origin}\r\n{length}\r\n\r\n5\r\nabcde\r\n").unwrap();
        thread::sleep(Duration::from_millis(100));
        drop(client);
        assert!(receiver.recv_timeout(super::LONG).unwrap(), "{length}: the server took it for whole");
    }
    let mut client = connect(module.spec.port());
    write!(client, "POST / HTTP/1.1\r\nhost: 127.0.0.2:{origin}\r\ncontent-length: 1\r\n\r\nx").unwrap();
    assert!(head_of(&mut client).starts_with("http/1.1 502 "));
}

struct Module {
    spec: Spec,
    worker: Worker,
}

impl Module {
    /// Starts the module and a server behind it. Returns the server's port, too.
    fn before(origin: &Origin) -> (Module, u16) {
        let waits = origin.waits;
        let origin = serve_each(move |mut stream| Origin { waits }.serve(&mut stream));
        (Module::at(origin, REQUEST_MS), origin)
    }

    fn at(origin: u16, request_ms: u32) -> Module {
        let spec = Spec::of(compiled("http_compressor")).property("least", "0").with(|spec| {
            spec.connect = vec![format!("tcp dst 127.0.0.1/32 port {origin}")];
            spec.limits.request_ms = request_ms;
            spec.limits.body_bytes = BODY_BYTES;
            spec.limits.requests = 4;
        });
        let mut worker = Worker::start();
        worker.load(&spec);
        Module { spec, worker }
    }
}

/// A server that answers with what it was sent, and what is asked for at `/poll` after a while.
struct Origin {
    waits: Duration,
}

impl Origin {
    fn serve(&self, stream: &mut TcpStream) {
        loop {
            let head = head_of(stream);
            let Ok(bytes) = body(stream, &head) else { return };
            if head.starts_with("GET /poll ") {
                thread::sleep(self.waits);
            }
            let text = if head.starts_with("HEAD ") { vec![] } else { said(&bytes) };
            let answered = write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nx-own: yes\r\ncontent-length: {}\r\n\r\n",
                said(&bytes).len()
            );
            if head.is_empty() || answered.and_then(|()| stream.write_all(&text)).is_err() {
                return;
            }
        }
    }
}

/// Returns what the server says of what it was sent.
fn said(bytes: &[u8]) -> Vec<u8> {
    let sum = bytes.iter().zip(1_u64..).fold(7_u64, |sum, (byte, at)| sum.rotate_left(5) ^ (u64::from(*byte) * at));
    format!("{} bytes, {sum}\n", bytes.len()).repeat(40).into_bytes()
}

fn body(stream: &mut TcpStream, head: &str) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if header_of(head, "transfer-encoding").is_some() {
        Unchunked { stream, left: 0 }.read_to_end(&mut bytes)?;
    } else if let Some(length) = header_of(head, "content-length") {
        bytes.resize(length.parse().unwrap(), 0);
        stream.read_exact(&mut bytes)?;
    }
    Ok(bytes)
}

/// Reads a response on a connection that goes on.
fn answer(stream: &mut TcpStream) -> Answer {
    let head = head_of(stream);
    let bytes = body(stream, &head).unwrap();
    Answer { head, body: bytes }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from(at * 7 / 3 % 251).unwrap()).collect()
}
