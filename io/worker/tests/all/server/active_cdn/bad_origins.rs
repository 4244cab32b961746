// SPDX-License-Identifier: Apache-2.0
//! Origins that stall, lie, and change in the middle.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::super::connect;
use super::{CACHE_BYTES, Edge, LONG, Origin, body, header, is_hit, is_whole, kept, path_of, status, text};

/// Goal: a body that has not the length that its head says is whole for nobody, now or later.
/// Method: the origin lies once, in each of several ways, and tells the truth then.
#[test]
fn a_body_with_another_length_is_never_served_as_whole() {
    let good = text(50_000);
    let half = &good[..25_000];
    let head = "HTTP/1.1 200 OK\r\ncache-control: max-age=600\r\n";
    let lies = [
        ("short", format!("{head}content-length: 50000\r\n\r\n{half}")),
        ("empty", format!("{head}content-length: 50000\r\n\r\n")),
        ("huge", format!("{head}content-length: 18446744073709551615\r\n\r\n{half}")),
        ("two", format!("{head}content-length: 25000\r\ncontent-length: 50000\r\n\r\n{half}")),
        ("negative", format!("{head}content-length: -1\r\n\r\n{half}")),
        ("cut-chunks", format!("{head}transfer-encoding: chunked\r\n\r\n61a8\r\n{half}\r\n")),
        ("cut-chunk", format!("{head}transfer-encoding: chunked\r\n\r\nc350\r\n{half}")),
        ("bad-chunk", format!("{head}transfer-encoding: chunked\r\n\r\n61a8\r\n{half}zz\r\n0\r\n\r\n")),
        ("endless-size", format!("{head}transfer-encoding: chunked\r\n\r\n{}\r\n", "0".repeat(100_000))),
        ("wrapping-size", format!("{head}transfer-encoding: chunked\r\n\r\n10000000000000001\r\n{half}")),
        ("cut-head", head.to_owned()),
    ];
    let told = lies.clone();
    let times = AtomicUsize::new(0);
    let whole = kept("", &good);
    let origin = Origin::start(move |request, stream| {
        let lie = told.iter().find(|(name, _)| path_of(request) == format!("/{name}"));
        let is_first = times.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        let answer = lie.filter(|_| is_first).map_or(&whole, |(_, answer)| answer);
        let _ = stream.write_all(answer.as_bytes());
    });
    let edge = Edge::start(origin.port);
    for (name, _) in &lies {
        let path = format!("/{name}");
        let answer = edge.ask(&path, "");
        assert!(status(&answer) == 502 || !is_whole(&answer), "{name}: {answer}");
        let next = edge.ask(&path, "");
        assert!(!is_hit(&next) && is_whole(&next), "{name}: {next}");
        assert_eq!(body(&next), good, "{name}");
    }
    // More than was said: what was said is the body.
    let long = Origin::saying(&kept("", half).replace("content-length: 25000", "content-length: 1000"));
    let edge = Edge::start(long.port);
    for _ in 0..2 {
        let answer = edge.ask("/a", "");
        assert_eq!(body(&answer), half[..1000]);
        assert!(is_whole(&answer), "{answer}");
    }
}

/// Goal: who waits for an origin that stands still in the middle gets what there is, sees that it is not whole, and leaves nothing.
#[test]
fn an_origin_that_stands_still_leaves_nothing_damaged() {
    let good = text(400_000);
    let sent = good.clone();
    let gate = Arc::new((Mutex::new(0), Condvar::new()));
    let counted = Arc::clone(&gate);
    let origin = Origin::start(move |request, stream| {
        let head = kept("", &sent);
        let middle = head.len() - sent.len() / 2;
        stream.write_all(&head.as_bytes()[..middle]).unwrap();
        let (count, changed) = &*counted;
        *count.lock().unwrap() += 1;
        changed.notify_all();
        if path_of(request) == "/stalls" && *count.lock().unwrap() == 1 {
            // Until the other side gives up.
            let _ = stream.read(&mut [0]);
            return;
        }
        let _ = stream.write_all(&head.as_bytes()[middle..]);
    });
    let edge = Edge::start_with(origin.port, CACHE_BYTES, |spec| spec.limits.request_ms = 4000);
    let port = edge.port();
    let readers: Vec<_> = (0..20)
        .map(|_| {
            thread::spawn(move || {
                let mut stream = connect(port);
                let request = "GET /stalls HTTP/1.1\r\nhost: edge.test\r\nconnection: close\r\n\r\n";
                stream.write_all(request.as_bytes()).unwrap();
                let mut answer = Vec::new();
                let _ = stream.read_to_end(&mut answer);
                String::from_utf8_lossy(&answer).into_owned()
            })
        })
        .collect();
    let (count, changed) = &*gate;
    drop(changed.wait_while(count.lock().unwrap(), |count| *count == 0).unwrap());
    // Others are answered meanwhile.
    let other = edge.ask("/other", "");
    assert!(is_whole(&other) && !readers.iter().any(thread::JoinHandle::is_finished));
    for reader in readers {
        let answer = reader.join().unwrap();
        assert!(status(&answer) == 200 && !is_whole(&answer), "{} bytes", answer.len());
        let got = body(&answer);
        assert!(!got.is_empty() && good.starts_with(&got), "{} bytes", got.len());
    }
    let next = edge.ask("/stalls", "");
    assert!(is_whole(&next) && !is_hit(&next) && body(&next) == good);
}

/// Goal: heads, chunks and trailers without an end end as a failure, soon and in little memory.
#[test]
fn endless_heads_end() {
    let origin = Origin::start(|request, stream| {
        let (first, line): (&str, String) = match path_of(request) {
            "/lines" => ("HTTP/1.1 200 OK\r\n", format!("x-line: {}\r\n", "y".repeat(1000))),
            "/names" => ("HTTP/1.1 200 OK\r\n", "a: b\r\n".repeat(1000)),
            "/line" => ("HTTP/1.1 200 OK\r\nx-line: ", "y".repeat(10_000)),
            "/reason" => ("HTTP/1.1 200 ", "y".repeat(10_000)),
            "/status" => ("HTTP/1.1 2", "0".repeat(10_000)),
            "/chunk-lines" => {
                ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;", format!("a={}", "y".repeat(10_000)))
            }
            "/trailers" => (
                "HTTP/1.1 200 OK\r\ncache-control: max-age=9\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n",
                "a: b\r\n".repeat(1000),
            ),
            _ => ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", String::new()),
        };
        let begun = Instant::now();
        let _ = stream.write_all(first.as_bytes());
        while !line.is_empty() && begun.elapsed() < 2 * LONG && stream.write_all(line.as_bytes()).is_ok() {}
    });
    let edge = Edge::start_with(origin.port, CACHE_BYTES, |spec| spec.limits.request_ms = 3000);
    edge.ask("/", "");
    let before = edge.worker.memory_kib("VmHWM:");
    for path in ["/lines", "/names", "/line", "/reason", "/status", "/chunk-lines", "/trailers"] {
        let begun = Instant::now();
        let answer = edge.ask(path, "");
        assert!(begun.elapsed() < LONG, "{path}: {:?}", begun.elapsed());
        assert!(status(&answer) >= 500 || !is_whole(&answer), "{path}: {answer}");
        assert!(!is_hit(&edge.ask(path, "cache-control: only-if-cached\r\n")), "{path}: nothing is kept");
    }
    assert!(edge.worker.memory_kib("VmHWM:") < before + 16 * 1024, "heads are not gathered");
    assert_eq!(status(&edge.ask("/", "")), 200);
}

/// Goal: as many interim responses as servers send before an answer are read over; without an end of them, the request fails soon.
#[test]
fn interim_responses_are_bounded() {
    let origin = Origin::start(|request, stream| {
        let interim = b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n";
        let count = path_of(request).trim_start_matches('/').parse().unwrap_or(usize::MAX);
        let begun = Instant::now();
        for _ in 0..count {
            if begun.elapsed() > 2 * LONG || stream.write_all(interim).is_err() {
                return;
            }
        }
        let _ = stream.write_all(kept("", "here").as_bytes());
    });
    let edge = Edge::start(origin.port);
    let answer = edge.ask("/16", "");
    assert_eq!((status(&answer), &*body(&answer)), (200, "here"), "{answer}");
    for (path, lines) in [("/2000", ""), ("/endless", ""), ("/endless", "range: bytes=5-\r\n")] {
        let begun = Instant::now();
        let answer = edge.ask(path, lines);
        assert_eq!(status(&answer), 502, "{path}: {answer}");
        assert!(begun.elapsed() < LONG, "{path}: {:?}", begun.elapsed());
    }
}

/// Goal: a redirect is the client's to follow, wherever it leads, and the node asks nobody that `origin` does not name.
#[test]
fn redirects_are_not_followed() {
    let inside = Origin::saying(&kept("", "secret"));
    let to = format!("http://127.0.0.1:{}/secret", inside.port);
    let lines = to.clone();
    let origin = Origin::start(move |request, stream| {
        let status = path_of(request).trim_start_matches('/').to_owned();
        let head = format!("HTTP/1.1 {status} Moved\r\nlocation: {lines}\r\ncontent-location: {lines}\r\n");
        let more = format!("refresh: 0; url={lines}\r\nlink: <{lines}>; rel=preload\r\n");
        let answer = format!("{head}{more}cache-control: max-age=600\r\ncontent-length: 0\r\n\r\n");
        let _ = stream.write_all(answer.as_bytes());
    });
    let edge = Edge::start(origin.port);
    for code in [301, 302, 303, 307, 308] {
        for _ in 0..2 {
            let answer = edge.ask(&format!("/{code}"), "");
            assert_eq!((status(&answer), header(&answer, "location")), (code, Some(&*to)), "{answer}");
        }
    }
    // Nor by what a client names.
    let named = format!("http://127.0.0.1:{}/secret", inside.port);
    super::talk(
        edge.port(),
        format!("GET {named} HTTP/1.1\r\nhost: edge.test\r\nconnection: close\r\n\r\n").as_bytes(),
    );
    edge.ask("/301", &format!("x-forwarded-host: 127.0.0.1:{}\r\n", inside.port));
    assert_eq!(inside.count(), 0);
}

/// Goal: each body is of one version, whatever becomes of it meanwhile, and parts are of the version that their validator says.
/// Method: a client reads the first version slowly while it is purged by the origin's change and the second one comes.
#[test]
fn versions_are_not_mixed() {
    let version = Arc::new(AtomicUsize::new(1));
    let said = Arc::clone(&version);
    let body_of = |version: usize| format!("{version}").repeat(3_000_000);
    let origin = Origin::start(move |request, stream| {
        let version = said.load(Ordering::SeqCst);
        let answer = match header(request, "range") {
            // Parts of one version each, as the origin has them.
            Some(_) => {
                let lines = format!("etag: \"{version}\"\r\ncontent-range: bytes 10-19/3000000\r\ncontent-length: 10");
                format!("HTTP/1.1 206 Partial\r\ncache-control: max-age=1\r\n{lines}\r\n\r\n{}", "9".repeat(10))
            }
            None => {
                let lines = format!("etag: \"{version}\"\r\n");
                kept(&lines, &format!("{version}").repeat(3_000_000)).replace("max-age=600", "max-age=1")
            }
        };
        let _ = stream.write_all(answer.as_bytes());
    });
    let edge = Edge::start(origin.port);
    edge.ask("/a", "");
    let mut slow = connect(edge.port());
    slow.write_all(b"GET /a HTTP/1.1\r\nhost: edge.test\r\nconnection: close\r\n\r\n").unwrap();
    let mut begin = [0; 1000];
    slow.read_exact(&mut begin).unwrap();
    version.store(2, Ordering::SeqCst);
    thread::sleep(Duration::from_millis(2100));
    let mut readers: Vec<TcpStream> = (0..5).map(|_| connect(edge.port())).collect();
    for reader in &mut readers {
        reader.write_all(b"GET /a HTTP/1.1\r\nhost: edge.test\r\nconnection: close\r\n\r\n").unwrap();
    }
    let rest = |mut stream: TcpStream, mut answer: Vec<u8>| {
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    };
    let first = rest(slow, begin.to_vec());
    assert!(header(&first, "etag") == Some("\"1\"") && body(&first) == body_of(1));
    for reader in readers {
        let second = rest(reader, Vec::new());
        assert!(header(&second, "etag") == Some("\"2\"") && body(&second) == body_of(2));
    }
    // Who has the begin of the first version gets all of the second one, and no part of it.
    let answer = edge.ask("/a", "range: bytes=10-19\r\nif-range: \"1\"\r\n");
    assert!(status(&answer) == 200 && body(&answer) == body_of(2));
    let answer = edge.ask("/a", "range: bytes=10-19\r\nif-range: \"2\"\r\n");
    assert_eq!((status(&answer), &*body(&answer)), (206, "2222222222"));
    // A part that comes from the origin is never put into what is stored.
    for _ in 0..2 {
        let part = edge.ask("/b", "range: bytes=10-19\r\n");
        assert_eq!((status(&part), &*body(&part), is_hit(&part)), (206, "9999999999", false));
    }
    assert!(body(&edge.ask("/b", "")) == body_of(2));
}

/// Goal: bytes in a head that are an end of line for some are none here: no answer has a line more than its origin meant.
#[test]
fn answers_are_not_split() {
    let origin = Origin::start(|request, stream| {
        let value: &[u8] = match path_of(request) {
            "/cr" => b"a\rset-cookie: evil=1",
            "/nul" => b"a\0b",
            "/fold" => b"a\r\n set-cookie: evil=1",
            "/lf" => b"a\nx-of-the-origin: 1",
            _ => b"a",
        };
        let head = [b"HTTP/1.1 200 OK\r\ncache-control: max-age=600\r\ncontent-length: 1\r\nx-value: ", value];
        let _ = stream.write_all(&[&head.concat()[..], b"\r\n\r\nb"].concat());
    });
    let edge = Edge::start(origin.port);
    for path in ["/cr", "/nul", "/fold", "/lf", "/plain"] {
        for _ in 0..2 {
            let answer = edge.ask(path, "");
            assert!([200, 502].contains(&status(&answer)), "{path}: {answer}");
            assert!(header(&answer, "set-cookie").is_none(), "{path}: {answer}");
            let head = answer.split("\r\n\r\n").next().unwrap_or_default();
            assert!(head.replace("\r\n", "").bytes().all(|byte| byte >= b' '), "{path}: {answer:?}");
        }
    }
}

/// Goal: a page that browsers show is shown, whatever lines its server writes beside those that count; a blank before a colon goes, and
/// what is no header line does (RFC 9112 §5.1, §5.2).
#[test]
fn odd_lines_of_a_server_cost_those_lines_alone() {
    let many: String = (0..300).map(|number| format!("x-{number}: y\r\n")).collect();
    for (lines, shown) in [
        ("content-type : text/html\r\nX-XSS-Protection : 1\r\n", Some(("content-type", "text/html"))),
        ("Secured by Some Server :\r\n", None),
        ("no colon at all\r\n", None),
        (": x\r\n", None),
        ("x-bad: a\x01b\r\n", None),
        ("x-long: a\r\n b\r\n", Some(("x-after", "c"))),
        (&many, Some(("x-299", "y"))),
    ] {
        for private in ["", "cache-control: private\r\n"] {
            let answer = format!(
                "HTTP/1.1 200 OK\r\n{lines}{private}x-after: c\r\ncontent-length : 5\r\nconnection: close\r\n\r\nhello"
            );
            let origin = Origin::saying(&answer);
            let edge = Edge::start(origin.port);
            let got = edge.ask("/", "");
            assert_eq!((status(&got), &*body(&got)), (200, "hello"), "{answer}\n{got}");
            if let Some((name, value)) = shown {
                assert_eq!(header(&got, name), Some(value), "{answer}\n{got}");
            }
        }
    }
}

/// Goal: who wants two bytes of what cannot be stored has these from the origin, which sends no more than a connection holds of the rest.
#[test]
fn a_part_of_what_is_not_stored_costs_that_part() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let origin = Origin::start(move |request, stream| {
        if header(request, "range").is_some() {
            let _ = stream.write_all(
                b"HTTP/1.1 206 Partial Content\r\ncache-control: no-store\r\ncontent-range: bytes 0-1/1000000000\r\ncontent-length: 2\r\n\r\nab",
            );
            return;
        }
        let head = "HTTP/1.1 200 OK\r\ncache-control: no-store\r\ncontent-length: 1000000000\r\n\r\n";
        let mut goes_on = stream.write_all(head.as_bytes());
        while goes_on.is_ok() && counted.load(Ordering::Relaxed) < 1_000_000_000 {
            goes_on = stream.write_all(&[b'a'; 10_000]);
            counted.fetch_add(10_000, Ordering::Relaxed);
        }
    });
    let edge = Edge::start(origin.port);
    for round in 0..3 {
        let answer = edge.ask("/film", "range: bytes=0-1\r\n");
        assert_eq!((status(&answer), &*body(&answer)), (206, "ab"), "{round}: {answer}");
        assert_eq!(header(&answer, "content-range"), Some("bytes 0-1/1000000000"), "{round}: {answer}");
    }
    thread::sleep(Duration::from_millis(200));
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent < 50_000_000, "{sent} bytes left the origin");
}

/// Goal: lines that are not understood may say that an answer is for one client alone, so that it is not stored.
#[test]
fn an_answer_with_lines_that_are_not_understood_is_not_stored() {
    for (line, is_stored) in [
        ("x-plain: a\r\n", true),
        ("x-blank : a\r\n", true),
        ("x-long: a\r\n b\r\n", true),
        ("cache-control private\r\n", false),
        ("cache-control\x01: private\r\n", false),
        ("vary: cookie\x02\r\n", false),
        (": private\r\n", false),
    ] {
        let origin = Origin::saying(&kept(line, "hello"));
        let edge = Edge::start(origin.port);
        for _ in 0..2 {
            let answer = edge.ask("/", "");
            assert_eq!((status(&answer), &*body(&answer)), (200, "hello"), "{line}: {answer}");
        }
        thread::sleep(Duration::from_millis(100));
        assert_eq!(is_hit(&edge.ask("/", "")), is_stored, "{line}");
    }
}

/// Goal: an origin that does not speak HTTP/1 as it is today is shown all the same, as nginx does, and nothing of it is stored.
#[test]
fn an_origin_of_old_is_shown() {
    for (answer, shown) in [
        ("ICY 200 OK\r\ncache-control: max-age=600\r\ncontent-length: 5\r\n\r\nmusic", "music"),
        ("<html>no head</html>", "<html>no head</html>"),
    ] {
        let origin = Origin::saying(answer);
        let edge = Edge::start(origin.port);
        for _ in 0..2 {
            let got = edge.ask("/", "");
            assert_eq!((status(&got), &*body(&got), is_hit(&got)), (200, shown, false), "{got}");
        }
    }
}

/// Goal: requests as clients write them are answered on a port of the node's own, too.
#[test]
fn requests_as_clients_write_them_are_answered() {
    let origin = Origin::start(|request, stream| {
        let _ = stream.write_all(kept("", path_of(request)).as_bytes());
    });
    let edge = Edge::start(origin.port);
    let ask = |request: &str| super::talk(edge.port(), format!("{request}\r\n").as_bytes());
    let quoted = ask("GET /?ids=[\"a\",\"b\"]&c=<d> HTTP/1.1\r\nhost: edge.test\r\nconnection: close\r\n");
    assert_eq!((status(&quoted), &*body(&quoted)), (200, "/?ids=[%22a%22,%22b%22]&c=%3Cd%3E"), "{quoted}");
    let old = ask("GET /old HTTP/1.0\r\n").replacen("HTTP/1.0", "HTTP/1.1", 1);
    assert_eq!((status(&old), &*body(&old)), (200, "/old"), "{old}");
    assert_eq!(status(&ask("OPTIONS * HTTP/1.1\r\nhost: edge.test\r\nconnection: close\r\n")), 200);
    assert_eq!(status(&ask("GET / HTTP/1.1\r\nconnection: close\r\n")), 400);
}
