// SPDX-License-Identifier: Apache-2.0
//! Requests that the node sends on by itself, through the sample `http-compressor`: uploads and answers that take longer than a request may.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_patience::grown;
use netserv_wire::container::frames::ToWorker;
use netserv_worker_server::limits;

use super::compressed::{Answer, Unchunked, decoded, head_of, header_of};
use super::intercepted::Site;
use super::{Spec, Worker, compiled, connect, serve_each};

const REQUEST_MS: u32 = 1000;
const BODY_BYTES: u64 = 1 << 20;

/// Goal: uploads longer than a module may hold arrive as they were, with their length and in chunks, one after the other on a connection,
/// and their answers are compressed as ever.
#[test]
fn uploads_of_any_length_arrive_as_they_were() {
    let origin = serve_each(|mut stream| Origin { waits: Duration::ZERO }.serve(&mut stream));
    // An upload that takes longer than a request may is not compressed.
    let mut module = Module::at(origin, 60 * REQUEST_MS);
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

/// Goal: streams of HTTP/2 have the same: uploads of any length, slow ones, and late answers.
#[test]
fn streams_of_http2_last_as_long() {
    let waits = Duration::from_millis(u64::from(REQUEST_MS) * 2);
    let (mut module, origin) = Module::before(&Origin { waits });
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (large, small) = (pattern(usize::try_from(3 * BODY_BYTES).unwrap()), pattern(60_000));
    std::fs::write(file("large"), &large).unwrap();
    std::fs::write(file("small"), &small).unwrap();
    let (url, host) = (format!("http://127.0.0.1:{}", module.spec.port()), format!("host: 127.0.0.1:{origin}"));
    let asked = [
        (vec!["-T".to_owned(), file("large")], "/large", said(&large)),
        (vec!["--limit-rate".into(), "25k".into(), "-T".into(), file("small")], "/slow", said(&small)),
        (vec![], "/poll", said(b"")),
        (vec!["-I".into(), "-o".into(), file("head")], "/now", vec![]),
    ];
    for (more, path, expected) in &asked {
        let mut curl = std::process::Command::new("curl");
        curl.args([
            "-s",
            "-g",
            "-m",
            "60",
            "--http2-prior-knowledge",
            "-w",
            "%{http_version} %{http_code}",
            "-H",
            &host,
        ]);
        let output = curl.args(more).arg(format!("{url}{path}")).output().unwrap();
        let whole = [expected, &b"2 200"[..]].concat();
        assert!(output.stdout == whole, "{path}: {}", String::from_utf8_lossy(&output.stdout));
    }
    assert_eq!(module.worker.counts().failed, 0);
}

/// Goal: a request that mostly has no body has it when the client sends one in chunks.
#[test]
fn what_is_sent_with_get_arrives() {
    let (module, origin) = Module::before(&Origin { waits: Duration::ZERO });
    let mut client = connect(module.spec.port());
    let chunks = "transfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n";
    write!(client, "GET /now HTTP/1.1\r\nhost: 127.0.0.1:{origin}\r\n{chunks}").unwrap();
    assert!(answer(&mut client).body == said(b"abcde"));
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
    assert!(begun.elapsed() < grown(limits::TURN_TIME_MAX), "{:?}", begun.elapsed());
    for poll in polls {
        let poll = poll.join().unwrap();
        assert!(poll.head.starts_with("http/1.1 200 ") && poll.body == said(b""), "{}", poll.head);
    }
    let counts = module.worker.counts();
    assert_eq!((counts.failed, counts.refused), (0, 0));
}

/// Goal: of a module's instances a quarter is never waiting for long, whoever else wants one: a container's instances are those of all its
/// modules. Method: four clients of four instances; the answer that no instance waited for is as it is.
#[test]
fn not_all_instances_wait_for_late_answers() {
    let waits = 4 * limits::FORWARD_WAIT_TIME;
    let origin = serve_each(move |mut stream| Origin { waits }.serve(&mut stream));
    let module = Module::at(origin, 30 * REQUEST_MS);
    let port = module.spec.port();
    let polls: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(move || {
                let mut client = connect(port);
                write!(client, "GET /poll HTTP/1.1\r\nhost: 127.0.0.1:{origin}\r\naccept-encoding: gzip\r\n\r\n")
                    .unwrap();
                answer(&mut client)
            })
        })
        .collect();
    let answers: Vec<Answer> = polls.into_iter().map(|poll| poll.join().unwrap()).collect();
    let compressed = answers.iter().filter(|answer| header_of(&answer.head, "content-encoding").is_some()).count();
    assert!(answers.iter().all(|answer| answer.head.starts_with("http/1.1 200 ")));
    assert_eq!(compressed, 3);
}

/// Goal: an answer that comes when the version has gone that waited for it is the client's all the same.
#[test]
fn late_answers_go_on_over_an_upgrade() {
    let waits = limits::STOP_TIME_MAX + Duration::from_secs(2);
    let origin = serve_each(move |mut stream| Origin { waits }.serve(&mut stream));
    let mut module = Module::at(origin, 60 * REQUEST_MS);
    let mut client = connect(module.spec.port());
    write!(client, "GET /poll HTTP/1.1\r\nhost: 127.0.0.1:{origin}\r\n\r\n").unwrap();
    thread::sleep(Duration::from_millis(300));
    module.worker.load(&module.spec.clone().with(|spec| spec.slot = 1));
    module.worker.send(&ToWorker::Unload { slot: ModuleSlot(0) }, None);
    let poll = answer(&mut client);
    assert!(poll.head.starts_with("http/1.1 200 ") && poll.body == said(b""), "{}", poll.head);
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

/// Goal: a client that is gone while its answer is awaited is noticed, and the server is not waited for any more; one that only says that it
/// will say no more gets its answer.
#[test]
fn a_client_that_is_gone_ends_its_request_at_the_server() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let origin = serve_each(move |mut stream| {
        let head = head_of(&mut stream);
        if head.starts_with("GET /late ") {
            thread::sleep(2 * limits::PRESENCE_EVERY);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlate");
        }
        let begun = Instant::now();
        let ended = stream.read(&mut [0; 1]);
        let _ = sender.send((head.starts_with("GET /gone "), ended.is_ok_and(|read| read == 0), begun.elapsed()));
    });
    let module = Module::at(origin, REQUEST_MS);
    let mut gone = connect(module.spec.port());
    write!(gone, "GET /gone HTTP/1.1\r\nhost: 127.0.0.1:{origin}\r\n\r\n").unwrap();
    let mut half = connect(module.spec.port());
    write!(half, "GET /late HTTP/1.1\r\nhost: 127.0.0.1:{origin}\r\nconnection: close\r\n\r\n").unwrap();
    half.shutdown(std::net::Shutdown::Write).unwrap();
    thread::sleep(Duration::from_millis(300));
    rustix::net::sockopt::set_socket_linger(&gone, Some(Duration::ZERO)).unwrap();
    drop(gone);
    let (is_it, is_ended, after) = receiver.recv_timeout(super::LONG).unwrap();
    assert!(is_it && is_ended, "the server is waited for");
    assert!(after < grown(2 * limits::PRESENCE_EVERY), "{after:?}");
    let answer = answer(&mut half);
    assert!(answer.head.starts_with("http/1.1 200 ") && answer.body == b"late", "{}", answer.head);
}

/// Goal: uploads to servers that take nothing are as many as there is memory for; half of them give way to others soon, and the rest stays;
/// answers to what is short are waited for as ever.
/// Method: one after the other, since each needs an instance for a while.
#[test]
fn uploads_that_go_nowhere_are_bounded() {
    let most = limits::UPLOADS_MEMORY_BYTES_MAX / limits::UPLOAD_BYTES;
    // As long as the test takes.
    let (keeps, _kept) = std::sync::mpsc::channel();
    let origin = serve_each(move |mut stream| {
        let head = head_of(&mut stream);
        if header_of(&head, "content-length").is_none_or(|length| length.len() < 4) {
            thread::sleep(limits::UPLOAD_HURRIED_TIME + Duration::from_secs(5));
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlate");
        }
        let _ = keeps.send(stream);
    });
    let module = Module::at(origin, 30 * REQUEST_MS);
    let upload = || {
        let mut client = connect(module.spec.port());
        write!(client, "PUT / HTTP/1.1\r\nhost: 127.0.0.1:{origin}\r\ncontent-length: 100000000\r\n\r\nbegun").unwrap();
        thread::sleep(limits::FORWARD_WAIT_TIME / 3);
        client
    };
    let refused = |mut client: TcpStream| {
        client.set_read_timeout(Some(grown(Duration::from_secs(1)))).unwrap();
        let mut first = [0; 12];
        client.read_exact(&mut first).is_ok() && first == *b"HTTP/1.1 503"
    };
    let mut clients: Vec<TcpStream> = (0..most - 2).map(|_| upload()).collect();
    let short = ["GET / HTTP/1.1\r\n", "PUT / HTTP/1.1\r\ncontent-length: 5\r\n"].map(|head| {
        let mut client = connect(module.spec.port());
        let body = if head.starts_with("PUT ") { "short" } else { "" };
        write!(client, "{head}host: 127.0.0.1:{origin}\r\n\r\n{body}").unwrap();
        client
    });
    thread::sleep(2 * limits::FORWARD_WAIT_TIME);
    clients.extend((0..2).map(|_| upload()));
    assert!(refused(upload()), "there is memory for more than {most}");
    let begun = Instant::now();
    while refused(upload()) {
        assert!(begun.elapsed() < grown(2 * limits::UPLOAD_HURRIED_TIME), "none gives way");
    }
    let is_there = |mut client: &TcpStream| {
        client.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        client.read(&mut [0; 1]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    let there = clients.iter().filter(|client| is_there(client)).count();
    assert!(clients[..most / 2].iter().all(is_there) && there < most, "{there} of {most} are there");
    for mut client in short {
        let answer = answer(&mut client);
        assert!(answer.head.starts_with("http/1.1 200 ") && answer.body == b"late", "{}", answer.head);
    }
}

/// Goal: what a client hides in a request on a connection that was taken over is no request for the server. Method: the server notes all
/// that comes on each connection, and says how many requests that is.
#[test]
fn nothing_is_smuggled_to_the_server() {
    let origin = serve_each(|mut stream| {
        let (mut all, mut piece) = (Vec::new(), [0; 4096]);
        // The first may take a while on a busy machine; what comes behind it has been sent by then.
        stream.set_read_timeout(Some(super::LONG)).unwrap();
        while let Ok(length @ 1..) = stream.read(&mut piece) {
            all.extend_from_slice(&piece[..length]);
            stream.set_read_timeout(Some(Duration::from_millis(150))).unwrap();
        }
        let all = String::from_utf8_lossy(&all).into_owned();
        let said = format!("{} at {}", all.matches(" HTTP/1.1\r\n").count(), all.split(' ').nth(1).unwrap_or_default());
        let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{said}", said.len());
    });
    let at = taken_over(origin);
    let smuggled = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";
    for (first, lines, body) in [
        ("POST /a", "content-length: 6\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n"),
        ("POST /a", "transfer-encoding: chunked\r\ncontent-length: 100\r\n", "0\r\n\r\n"),
        ("GET /a", "content-length: 6\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n"),
        ("POST /a", "content-length: 0\r\ncontent-length: 39\r\n", ""),
        ("POST /a", "content-length: +0\r\n", ""),
        ("POST /a", "content-length: 0, 0\r\n", ""),
        ("POST /a", "transfer-encoding: xchunked\r\n", ""),
        ("POST /a", "transfer-encoding : chunked\r\n", "0\r\n\r\n"),
        ("POST /a", "transfer-encoding: chunked, identity\r\n", "0\r\n\r\n"),
        ("POST /a", "transfer-encoding: chunked\r\n", "0;x=\"\r\n\r\n"),
        ("POST /a", "transfer-encoding: chunked\r\n", "0\r\ncontent-length: 39\r\n\r\n"),
        ("POST /a", "transfer-encoding: chunked\r\n", "-1\r\n\r\n"),
        ("POST /a", "transfer-encoding: chunked\r\n", "10000000000000000\r\n\r\n"),
        ("GET /a", "x: 1\r\n folded\r\n", ""),
        ("GET /a", "x: a\rb: c\r\n", ""),
        ("GET /a", "connection: content-length, host, transfer-encoding\r\ncontent-length: 0\r\n", ""),
        ("DELETE /a", "expect: 100-continue\r\ncontent-length: 0\r\n", ""),
    ] {
        let mut client = TcpStream::connect(at).unwrap();
        client.set_read_timeout(Some(super::LONG)).unwrap();
        let _ = write!(client, "{first} HTTP/1.1\r\nhost: a\r\n{lines}\r\n{body}{smuggled}");
        // The node may have reset it by then.
        let _ = client.shutdown(std::net::Shutdown::Write);
        let mut seen = Vec::new();
        let _ = client.read_to_end(&mut seen);
        let seen = String::from_utf8_lossy(&seen).into_owned();
        for answer in seen.split("HTTP/1.1 ").skip(1).filter(|answer| answer.starts_with("200")) {
            let said = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
            // What the node cannot read goes to the server as it came, with what follows.
            let is_raw = lines.starts_with("x: ") && said == "2 at /a";
            assert!(said == "1 at /a" || said == "1 at /smuggled" || is_raw, "{lines:?} {body:?}: {seen}");
        }
    }
}

/// Goal: a server that answers before it has the whole upload does not have the rest of it taken for requests, nor the next request for
/// the rest. Method: the body is made of requests; the server reads as much as the head says.
#[test]
fn an_early_answer_shifts_nothing() {
    let origin = serve_each(|mut stream| {
        loop {
            let head = head_of(&mut stream);
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let answered = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{path}", path.len());
            if head.is_empty() || answered.is_err() || body(&mut stream, &head).is_err() {
                return;
            }
        }
    });
    let at = taken_over(origin);
    let hidden = "GET /hidden HTTP/1.1\r\nhost: a\r\n\r\n".repeat(40_000);
    for chunked in [false, true] {
        let mut client = TcpStream::connect(at).unwrap();
        client.set_read_timeout(Some(super::LONG)).unwrap();
        let length = match chunked {
            true => "transfer-encoding: chunked".to_owned(),
            false => format!("content-length: {}", hidden.len()),
        };
        write!(client, "PUT /large HTTP/1.1\r\nhost: a\r\n{length}\r\n\r\n").unwrap();
        let (begin, rest) = hidden.split_at(hidden.len() / 2);
        let chunk = |text: &str| if chunked { format!("{:x}\r\n{text}\r\n", text.len()) } else { text.to_owned() };
        client.write_all(chunk(begin).as_bytes()).unwrap();
        let early = answer(&mut client);
        assert_eq!(String::from_utf8_lossy(&early.body), "/large", "{}", early.head);
        // The node may have closed the connection by then, as servers do.
        let end = if chunked { "0\r\n\r\n" } else { "" };
        let next = "GET /next HTTP/1.1\r\nhost: a\r\n\r\n";
        let _ = client.write_all(format!("{}{end}{next}", chunk(rest)).as_bytes());
        let _ = client.shutdown(std::net::Shutdown::Write);
        let mut seen = Vec::new();
        let _ = client.read_to_end(&mut seen);
        let seen = String::from_utf8_lossy(&seen).into_owned();
        assert!(!seen.contains("/hidden") && seen.matches("HTTP/1.1").count() <= 1, "{seen}");
        assert!(seen.is_empty() || seen.ends_with("/next"), "{seen}");
    }
}

/// Goal: an upload goes on behind an answer that came before all of it had, for longer than a silent connection is kept, and the connection
/// after it. Method: a server that the module asks, and one whose connection was taken over.
#[test]
fn an_upload_goes_on_behind_an_early_answer() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let origin = serve_each(move |mut stream| {
        loop {
            let head = head_of(&mut stream);
            let answered = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nearly");
            if head.is_empty() || answered.is_err() {
                return;
            }
            let _ = sender.send(body(&mut stream, &head).unwrap_or_default());
        }
    });
    let module = Module::at(origin, REQUEST_MS);
    let bytes = pattern(140_000);
    thread::scope(|scope| {
        for at in [SocketAddr::from(([127, 0, 0, 1], module.spec.port())), taken_over(origin)] {
            let bytes = &bytes;
            scope.spawn(move || {
                let mut client = TcpStream::connect(at).unwrap();
                client.set_read_timeout(Some(super::LONG)).unwrap();
                let host = format!("host: 127.0.0.1:{origin}\r\n");
                write!(client, "PUT /early HTTP/1.1\r\n{host}content-length: {}\r\n\r\n", bytes.len()).unwrap();
                assert_eq!(answer(&mut client).body, b"early");
                for piece in bytes.chunks(bytes.len() / 7) {
                    thread::sleep(limits::HEAD_TIME_MAX / 5);
                    client.write_all(piece).unwrap();
                }
                write!(client, "PUT /next HTTP/1.1\r\n{host}content-length: 0\r\n\r\n").unwrap();
                assert_eq!(answer(&mut client).body, b"early");
            });
        }
    });
    let mut came: Vec<Vec<u8>> = (0..4).map(|_| receiver.recv_timeout(super::LONG).unwrap()).collect();
    came.sort_by_key(Vec::len);
    assert!(came[..2].iter().all(Vec::is_empty) && came[2..].iter().all(|body| *body == bytes));
}

/// Goal: a client that sends all of an upload before it reads has the answer of a server that took only its begin; who then sends nothing,
/// or never comes to an end, is waited for no longer than the bounds say.
#[test]
fn the_rest_of_an_upload_that_no_one_takes_is_read_within_bounds() {
    let origin = serve_each(move |mut stream| {
        head_of(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 413 Any\r\ncontent-length: 9\r\nconnection: close\r\n\r\ntoo large");
        let _ = stream.shutdown(std::net::Shutdown::Write);
        thread::sleep(Duration::from_millis(300));
    });
    let module = Module::at(origin, REQUEST_MS);
    let begin = || {
        let mut client = connect(module.spec.port());
        let head = format!("PUT / HTTP/1.1\r\nhost: 127.0.0.1:{origin}\r\ncontent-length: 8000000\r\n\r\n");
        client.write_all(head.as_bytes()).unwrap();
        (client, Instant::now())
    };
    let refused = |client: &mut TcpStream| {
        let answer = answer(client);
        assert!(answer.head.starts_with("http/1.1 413 ") && answer.body == b"too large", "{}", answer.head);
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut client, _) = begin();
            for _ in 0..80 {
                client.write_all(&[b'x'; 100_000]).unwrap();
                thread::sleep(Duration::from_millis(20));
            }
            refused(&mut client);
        });
        scope.spawn(|| {
            let (mut client, begun) = begin();
            refused(&mut client);
            assert!(client.read(&mut [0]).is_ok_and(|read| read == 0));
            let took = begun.elapsed();
            assert!(
                took >= limits::UPLOAD_REST_SILENCE_MAX && took < grown(3 * limits::UPLOAD_REST_SILENCE_MAX),
                "{took:?}"
            );
        });
        scope.spawn(|| {
            let (mut client, begun) = begin();
            refused(&mut client);
            while client.write_all(b"x").is_ok() && begun.elapsed() < grown(2 * limits::UPLOAD_REST_TIME_MAX) {
                thread::sleep(limits::UPLOAD_REST_SILENCE_MAX / 10);
            }
            let took = begun.elapsed();
            assert!(took >= limits::UPLOAD_REST_TIME_MAX && took < grown(2 * limits::UPLOAD_REST_TIME_MAX), "{took:?}");
        });
    });
}

/// Goal: an answer for which the instance did not wait is no more trusted than others: one with another length than it says, or without its
/// end, is not whole for the client; what is no answer is 502.
#[test]
fn late_answers_that_lie_are_found_out() {
    let origin = serve_each(|mut stream| {
        let head = head_of(&mut stream);
        thread::sleep(Duration::from_millis(u64::from(REQUEST_MS) * 3 / 2));
        let _ = stream.write_all(match head.split(' ').nth(1).unwrap_or_default() {
            "/short" => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc",
            "/open" => b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
            "/long" => {
                b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhidden"
            }
            "/both" => {
                b"HTTP/1.1 200 OK\r\ncontent-length: 60\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
            }
            "/switch" => b"HTTP/1.1 101 Any\r\nconnection: upgrade\r\nupgrade: any\r\n\r\nabc",
            "/nonsense" => b"SSH-2.0-any\r\n\r\n",
            _ => b"",
        });
    });
    let at = taken_over(origin);
    let asking = ["/short", "/open", "/long", "/both", "/switch", "/nonsense", "/nothing"].map(|path| {
        thread::spawn(move || {
            let mut client = TcpStream::connect(at).unwrap();
            client.set_read_timeout(Some(super::LONG)).unwrap();
            write!(client, "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
            let mut seen = Vec::new();
            let _ = client.read_to_end(&mut seen);
            (path, String::from_utf8_lossy(&seen).to_lowercase())
        })
    });
    for (path, seen) in asking.map(|asking| asking.join().unwrap()) {
        let (head, body) = seen.split_once("\r\n\r\n").unwrap_or((&seen, ""));
        match path {
            "/short" => assert!(head.contains("content-length: 100") && body == "abc", "{path}: {seen}"),
            "/open" => assert!(!body.ends_with("0\r\n\r\n") && head.contains(" 200 "), "{path}: {seen}"),
            "/long" => assert!(body == "abc" && !seen.contains("hidden"), "{path}: {seen}"),
            "/both" => {
                assert!(seen.matches("abc").count() == 1 && !head.contains("content-length: 60"), "{path}: {seen}");
            }
            "/nonsense" => assert_eq!(seen, "ssh-2.0-any\r\n\r\n", "{path}"),
            _ => assert!(head.contains(" 502 "), "{path}: {seen}"),
        }
    }
}

/// Returns where connections to the server at a port are taken over by the module.
fn taken_over(origin: u16) -> SocketAddr {
    static SITE: OnceLock<Site> = OnceLock::new();
    let limits = ModuleLimits { request_ms: REQUEST_MS, body_bytes: BODY_BYTES, ..ModuleLimits::default() };
    SITE.get_or_init(|| Site::compressing(limits)).before(SocketAddr::from(([127, 0, 0, 1], origin)))
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
