// SPDX-License-Identifier: Apache-2.0
//! What is asked of the module itself: by which connections its origin hears of it, and under which name.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use netserv_model::RefusalKind;
use netserv_worker_server::limits::{KEPT_PER_SERVER_MAX, KEPT_TIME_MAX, TCP_KEEP_IDLE};

use super::super::intercepted::{Nginx, WebSockets, accept, head, said};
use super::super::{Worker, connect, talk};
use super::{CACHE_BYTES, Edge, LONG, Origin, Spec, body, header, is_hit, kept, status};

/// Parts of a page.
const PARTS: usize = 103;

/// Goal: a page of many parts comes from a real origin by a few connections, and not by one for each part.
/// Method: nginx says by which connection each request came; what is stored, what is not, one after the other and six at a time.
#[test]
fn a_page_of_many_parts_takes_few_connections_to_nginx() {
    let nginx = Nginx::start();
    let edge = Edge::start(nginx.address.port());
    let port = edge.port();
    for (path, at_a_time, most) in [("kept", 1, 3), ("connection", 1, 3), ("kept-by-six", 6, 12), ("chunks", 6, 12)] {
        let viewers = (0..at_a_time).map(|viewer| {
            thread::spawn(move || {
                let parts = (viewer..PARTS).step_by(at_a_time);
                let ask = |part| {
                    let request = format!("GET /{path}?{part} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
                    let answer = talk(port, request.as_bytes());
                    assert!(status(&answer) == 200 && !is_hit(&answer), "{answer}");
                    body(&answer).trim().to_owned()
                };
                parts.map(ask).collect::<Vec<_>>()
            })
        });
        let answers: Vec<String> = viewers.collect::<Vec<_>>().into_iter().flat_map(|it| it.join().unwrap()).collect();
        let connections: BTreeSet<&String> = answers.iter().collect();
        assert!(answers.len() == PARTS && connections.len() <= most, "{path}: {} connections", connections.len());
    }
}

/// Goal: an origin that ends idle connections when it likes costs no request. Method: one that does as the next request comes by it, and one
/// whose connection nobody uses for what cannot be asked twice.
#[test]
fn a_kept_connection_that_ends_costs_no_request() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let edge = Edge::start(origin.local_addr().unwrap().port());
    let port = edge.port();
    let ask = |request: &'static str| {
        let lines = "host: a\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        thread::spawn(move || talk(port, format!("{request} HTTP/1.1\r\n{lines}").as_bytes()))
    };
    let answer = |stream: &mut TcpStream, text: &str| {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len()).unwrap();
    };
    let first = ask("GET /1");
    let mut one = accept(&origin);
    head(&mut one);
    answer(&mut one, "one");
    assert_eq!(body(&first.join().unwrap()), "one");
    let second = ask("GET /2");
    assert!(head(&mut one).starts_with("GET /2 "));
    drop(one);
    let mut two = accept(&origin);
    assert!(head(&mut two).starts_with("GET /2 "));
    answer(&mut two, "two");
    assert_eq!(body(&second.join().unwrap()), "two");
    let third = ask("POST /3");
    let mut three = accept(&origin);
    assert!(head(&mut three).starts_with("POST /3 "));
    answer(&mut three, "three");
    assert_eq!(body(&third.join().unwrap()), "three");
}

/// Goal: what follows an answer that is not one, or that has two ends, is nobody's next answer.
#[test]
fn an_odd_answer_ends_its_connection() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let edge = Edge::start(origin.local_addr().unwrap().port());
    let port = edge.port();
    for odd in [
        "HTTP/1.1 200 OK\r\nno colon\r\ncontent-length: 3\r\n\r\nodd",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n3\r\nodd\r\n0\r\n\r\n",
    ] {
        for text in [odd, "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nnext"] {
            let viewer = thread::spawn(move || talk(port, b"GET /x HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"));
            let mut arrived = accept(&origin);
            head(&mut arrived);
            arrived.write_all(text.as_bytes()).unwrap();
            let expected = if text == odd { "odd" } else { "next" };
            assert_eq!(body(&viewer.join().unwrap()), expected, "{text}");
            if text == odd {
                assert_eq!(arrived.read(&mut [0]).unwrap(), 0, "{odd}");
            }
        }
    }
}

/// Goal: a body that comes at once behind an answer which has none is the answer to no later request, nor is one that its head promises
/// (`github.com/e2guardian/e2guardian/issues/136`, `github.com/Kaliumhexacyanoferrat/GenHTTP/issues/90`). Method: the connection ends, before a
/// promised body comes, too.
#[test]
fn a_body_where_none_may_be_ends_its_connection() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let edge = Edge::start(origin.local_addr().unwrap().port());
    let port = edge.port();
    for (method, said, expected) in [
        ("GET", "HTTP/1.1 204 No Content\r\ncontent-length: 4\r\n\r\n", 204),
        ("GET", "HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n", 204),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage", 204),
        ("GET", "HTTP/1.1 304 Not Modified\r\ncontent-length: 4\r\n\r\npage", 304),
        ("GET", "HTTP/1.1 304 Not Modified\r\ncontent-length: 4\r\n\r\n", 304),
        ("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n", 200),
        ("HEAD", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", 200),
        ("HEAD", "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage", 200),
    ] {
        let request = format!("{method} /x HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        let viewer = thread::spawn(move || talk(port, request.as_bytes()));
        let mut arrived = accept(&origin);
        head(&mut arrived);
        arrived.write_all(said.as_bytes()).unwrap();
        assert_eq!(status(&viewer.join().unwrap()), expected, "{method} {said}");
        // Idle ones end, too, but not so soon.
        arrived.set_read_timeout(Some(KEPT_TIME_MAX / 3)).unwrap();
        let left = arrived.read(&mut [0]);
        assert!(
            matches!(&left, Ok(0)) || left.as_ref().is_err_and(|it| it.kind() == ErrorKind::ConnectionReset),
            "{method} {said}: {left:?}"
        );
    }
}

/// Goal: of the connections of a crowd, some are kept and the others end. Method: as many requests at a time as make more than that.
#[test]
fn as_many_connections_are_kept_as_may_be() {
    let crowd = KEPT_PER_SERVER_MAX + 8;
    let together = Arc::new(Barrier::new(crowd));
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let edge = Edge::start(origin.local_addr().unwrap().port());
    let port = edge.port();
    let viewers: Vec<_> = (0..crowd)
        .map(|viewer| {
            let request = format!("GET /{viewer} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
            thread::spawn(move || assert_eq!(body(&talk(port, request.as_bytes())), "page"))
        })
        .collect();
    let arrived: Vec<_> = (0..crowd)
        .map(|_| {
            let (mut stream, together) = (accept(&origin), Arc::clone(&together));
            thread::spawn(move || {
                head(&mut stream);
                together.wait();
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage").unwrap();
                stream
            })
        })
        .collect();
    let streams: Vec<TcpStream> = arrived.into_iter().map(|one| one.join().unwrap()).collect();
    viewers.into_iter().for_each(|viewer| viewer.join().unwrap());
    let begun = Instant::now();
    let open =
        || streams.iter().filter(|stream| stream.set_nonblocking(true).is_ok() && stream.peek(&mut [0]).is_err());
    while open().count() > KEPT_PER_SERVER_MAX {
        assert!(begun.elapsed() < LONG, "{} are kept", open().count());
        thread::sleep(Duration::from_millis(5));
    }
    assert!(open().count() > 0, "none is kept");
}

/// Goal: the origin is asked by its name, wherever its connections go.
#[test]
fn connections_go_elsewhere_than_the_name() {
    let origin = Origin::saying(&kept("", "page"));
    let change = |spec: &mut Spec| {
        spec.properties.insert("origin".to_owned(), "http://www.Example.org".to_owned());
        spec.properties.insert("connect-to".to_owned(), format!("www.example.org:80=127.0.0.1:{}", origin.port));
    };
    let edge = Edge::start_with(origin.port, CACHE_BYTES, change);
    assert_eq!(body(&edge.ask("/a", "")), "page");
    assert_eq!(header(&origin.last(), "host"), Some("www.example.org"));
    edge.ask_until_hit("/a");
    let bad = edge.spec.clone().property("connect-to", "www.example.org=127.0.0.1");
    let (kind, why) = Worker::start().refused(&bad);
    assert!(kind == RefusalKind::BadRequest && why.contains("connect-to"), "{why}");
}

/// Goal: a request for another protocol goes to the origin, with the connection if that agrees; with nothing else, it is a request as any.
#[test]
fn what_upgrades_goes_to_the_origin() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut edge = Edge::start(origin.local_addr().unwrap().port());
    let ask = |client: &mut TcpStream| {
        let lines = "host: a\r\nconnection: keep-alive, Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: k\r\n";
        client.write_all(format!("GET /chat HTTP/1.1\r\n{lines}\r\n").as_bytes()).unwrap();
    };
    let mut client = connect(edge.port());
    ask(&mut client);
    let mut arrived = accept(&origin);
    let asked = head(&mut arrived).to_ascii_lowercase();
    for line in
        ["get /chat ", "\r\nconnection: upgrade\r\n", "\r\nupgrade: websocket\r\n", "\r\nsec-websocket-key: k\r\n"]
    {
        assert!(asked.contains(line), "{asked}");
    }
    assert!(asked.contains("\r\nx-forwarded-for: 127.0.0.1\r\n"), "{asked}");
    let agrees =
        b"HTTP/1.1 101 Any\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: s\r\n\r\nhello";
    arrived.write_all(agrees).unwrap();
    let agreed = head(&mut client).to_ascii_lowercase();
    assert!(agreed.starts_with("http/1.1 101 ") && agreed.contains("upgrade: websocket"), "{agreed}");
    assert!(agreed.contains("sec-websocket-accept: s"), "{agreed}");
    assert_eq!(said(&mut client), "hello");
    let sent: Vec<u8> = (0..1 << 20).map(|number: u32| number.to_le_bytes()[0]).collect();
    let (mut sends, bytes) = (client.try_clone().unwrap(), sent.clone());
    let sending = thread::spawn(move || sends.write_all(&bytes).unwrap());
    let mut got = vec![0; sent.len()];
    arrived.read_exact(&mut got).unwrap();
    sending.join().unwrap();
    assert!(got == sent);
    drop(client);
    assert_eq!(arrived.read(&mut [0]).unwrap(), 0);
    assert_eq!(edge.worker.counts().failed, 0, "{:?}", edge.worker.log);

    let mut client = connect(edge.port());
    ask(&mut client);
    let mut arrived = accept(&origin);
    head(&mut arrived);
    arrived.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno").unwrap();
    assert!(head(&mut client).starts_with("HTTP/1.1 403 "));
    let mut no = [0; 2];
    client.read_exact(&mut no).unwrap();
    assert_eq!(&no, b"no");
    // The viewer's connection goes on, by which it asks for something else.
    client.write_all(b"GET /page HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\n\r\n").unwrap();
    let mut arrived = accept(&origin);
    let asked = head(&mut arrived).to_ascii_lowercase();
    assert!(asked.starts_with("get /page ") && !asked.contains("\r\nupgrade:"), "{asked}");
}

/// Goal: a viewer or an origin that vanishes from a WebSocket without a word is found (`github.com/mtrudel/bandit/issues/577`).
/// Method: the kernel says when it asks the other end of each of the two silent connections whether it exists.
#[test]
fn who_vanishes_from_a_websocket_is_found() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let edge = Edge::start(origin.local_addr().unwrap().port());
    let mut viewer = connect(edge.port());
    viewer.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n").unwrap();
    let mut arrived = accept(&origin);
    head(&mut arrived);
    arrived.write_all(b"HTTP/1.1 101 Any\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nhello").unwrap();
    assert!(head(&mut viewer).starts_with("HTTP/1.1 101 "));
    assert_eq!(said(&mut viewer), "hello");
    let by_origin = (arrived.peer_addr().unwrap(), arrived.local_addr().unwrap());
    for (near, far) in [(viewer.peer_addr().unwrap(), viewer.local_addr().unwrap()), by_origin] {
        // Another timer runs until what was sent last is acknowledged.
        let begun = Instant::now();
        let asked = loop {
            match asked_in(near.port(), far.port()) {
                None if begun.elapsed() < Duration::from_secs(10) => thread::sleep(Duration::from_millis(20)),
                asked => break asked,
            }
        };
        assert!(asked.is_some_and(|time| time <= TCP_KEEP_IDLE), "{near} to {far}: {asked:?}");
    }
}

/// Returns when a connection's other end is asked whether it exists, if ever.
fn asked_in(local: u16, remote: u16) -> Option<Duration> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let ends = [local, remote].map(|port| format!(":{port:04X}"));
    let row = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = row.into_iter().find(|row| row[1].ends_with(&ends[0]) && row[2].ends_with(&ends[1])).unwrap();
    let (timer, ticks) = row[5].split_once(':').unwrap();
    (timer == "02").then(|| Duration::from_millis(10 * u64::from_str_radix(ticks, 16).unwrap()))
}

/// Goal: clients that offer HTTP/2 with each request, as those of Java do, are served as any (`github.com/envoyproxy/envoy/issues/7161`).
/// Method: curl, also with a body; the origin hears nothing of the offer, and the second answer comes from the cache.
#[test]
fn an_offer_of_http_2_is_passed_over() {
    let origin = Origin::saying(&kept("", "page"));
    let edge = Edge::start(origin.port);
    for (more, expected) in [(&[][..], "page"), (&[], "page"), (&["-d", "x=1"], "page")] {
        let url = format!("http://127.0.0.1:{}/offered", edge.port());
        let curl =
            Command::new("curl").args(["-sS", "--http2", "--max-time", "20"]).args(more).arg(url).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&curl.stdout), expected, "{curl:?}");
        let asked = origin.last().to_ascii_lowercase();
        assert!(!asked.contains("h2c") && !asked.contains("http2-settings"), "{asked}");
    }
    assert_eq!(origin.count(), 2, "one GET and one POST");
}

/// Goal: a file without a byte comes to clients that ask for a part of it (`github.com/NVIDIA/nvcf/issues/1338`), as from nginx.
#[test]
fn an_empty_page_comes_whole() {
    let origin = Origin::saying(&kept("", ""));
    let edge = Edge::start(origin.port);
    edge.ask_until_hit("/empty");
    for range in ["0-", "0-0", "0--1", "-5"] {
        let answer = edge.ask("/empty", &format!("range: bytes={range}\r\n"));
        assert!(status(&answer) == 200 && is_hit(&answer), "{range}: {answer}");
    }
    assert_eq!(status(&edge.ask("/empty", "range: bytes=5-\r\n")), 416);
}

/// A real client and a real server of WebSocket, with the cache asked itself.
#[test]
fn a_websocket_of_curl_comes_to_its_origin() {
    let python = WebSockets::start();
    let edge = Edge::start(python.address.port());
    let text = WebSockets::ask(SocketAddr::from(([127, 0, 0, 1], edge.port())));
    assert!(text.contains("101 Switching") && text.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{text}");
    assert!(text.contains("hello"), "{text}");
}
