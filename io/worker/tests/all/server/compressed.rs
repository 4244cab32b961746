// SPDX-License-Identifier: Apache-2.0
//! Answers that the node compresses on their way, through the sample `http-compressor`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::{LONG, Spec, Worker, compiled, connect, serve_each};

const REQUEST_MS: u32 = 2000;

/// Goal: what a client has after decompressing is what the server sent, in each coding, of known and unknown length.
#[test]
fn what_clients_take_is_compressed_and_the_same_again() {
    let text: Vec<u8> = (0..40_000_u32).flat_map(|number| format!("line {number}\n").into_bytes()).collect();
    let (body, origin) = (text.clone(), Arc::new(AtomicUsize::new(0)));
    let port = serve(move |stream, _| {
        let fixed = origin.fetch_add(1, Ordering::Relaxed) % 2 == 0;
        let length = if fixed { format!("content-length: {}\r\n", body.len()) } else { String::new() };
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\netag: \"a\"\r\n{length}connection: close\r\n\r\n"
        )?;
        stream.write_all(&body)
    });
    let (spec, mut worker) = start(port);
    // Every second one comes without its length, for which only gzip is small enough.
    for coding in ["br", "gzip", "zstd", "gzip", "gzip", "gzip"] {
        let accept = if coding == "gzip" { "gzip, br;q=0.5" } else { coding };
        let answer = ask(&spec, port, &format!("accept-encoding: {accept}\r\n")).whole();
        assert_eq!(answer.header("content-encoding"), Some(coding));
        assert_eq!((answer.header("etag"), answer.header("vary")), (Some("W/\"a\""), Some("accept-encoding")));
        assert!(answer.body.len() * 2 < text.len(), "{coding}: {} bytes", answer.body.len());
        assert!(decoded(coding, &answer.body) == text, "{coding}");
    }
    let answer = ask(&spec, port, "").whole();
    assert_eq!((answer.header("content-encoding"), answer.header("vary")), (None, Some("accept-encoding")));
    assert_eq!(answer.header("etag"), Some("\"a\""));
    assert!(answer.body == text && worker.counts().failed == 0);
}

/// Goal: a cache that has a part from here learns that the whole differs by what its client takes
/// (`github.com/caddyserver/caddy/issues/5849`); nginx says so, too.
#[test]
fn a_part_says_what_the_whole_says() {
    let port = serve(|stream, _| {
        let lines = "content-type: text/plain\r\ncontent-range: bytes 0-4/9000\r\ncontent-length: 5\r\nvary: cookie";
        write!(stream, "HTTP/1.1 206 Partial Content\r\n{lines}\r\nconnection: close\r\n\r\nbegin")
    });
    let (spec, _worker) = start(port);
    let answer = ask(&spec, port, "range: bytes=0-4\r\naccept-encoding: gzip\r\n").whole();
    assert_eq!((answer.header("content-encoding"), answer.body.as_slice()), (None, &b"begin"[..]));
    assert!(answer.head.to_ascii_lowercase().contains("vary: accept-encoding"), "{}", answer.head);
}

/// Goal: events reach their reader while the stream goes on, and for longer than a request may take.
#[test]
fn events_go_on_at_once_and_for_longer_than_a_request_may_take() {
    let (has_read, was_read) = mpsc::channel();
    let was_read = Arc::new(Mutex::new(was_read));
    let port = serve(move |stream, _| {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
        for number in 0..5 {
            write!(stream, "data: {number}\n\n")?;
            was_read.lock().unwrap().recv_timeout(LONG).map_err(std::io::Error::other)?;
            thread::sleep(Duration::from_millis(u64::from(REQUEST_MS) / 3));
        }
        Ok(())
    });
    let (spec, mut worker) = start(port);
    let mut reading = ask(&spec, port, "accept-encoding: gzip\r\n");
    assert_eq!(reading.header("content-encoding").as_deref(), Some("gzip"));
    let mut lines = BufReader::new(flate2::read::GzDecoder::new(Unchunked { stream: &mut reading.stream, left: 0 }));
    for number in 0..5_u32 {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert_eq!(line, format!("data: {number}\n"));
        // The server sends the next one after that only.
        has_read.send(()).unwrap();
        lines.read_line(&mut line).unwrap();
    }
    assert_eq!(lines.read_line(&mut String::new()).unwrap(), 0, "it ends well");
    assert_eq!(worker.counts().failed, 0);
}

#[test]
fn an_answer_that_breaks_off_is_not_whole_for_its_reader_either() {
    let port = serve(|stream, _| {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100000\r\n\r\n")?;
        stream.write_all(&[b'x'; 50_000])
    });
    let (spec, _worker) = start(port);
    let mut reading = ask(&spec, port, "accept-encoding: br\r\n");
    let mut rest = Vec::new();
    // A connection that is cut gives what came before.
    let _ = reading.stream.read_to_end(&mut rest);
    assert_eq!(reading.header("content-encoding").as_deref(), Some("br"));
    assert!(!rest.ends_with(b"0\r\n\r\n"), "no last chunk");
}

/// Goal: who comes when no memory is left for coders gets the answer as it is. Method: 40 answers at a time that do not end, which would
/// take 6 MiB each.
#[test]
fn without_memory_for_a_coder_answers_go_on_as_they_are() {
    let port = serve(|stream, _| {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 1800000\r\n\r\n")?;
        // Who went away is noticed when something is to be sent.
        (0..600).try_for_each(|_| {
            thread::sleep(Duration::from_millis(100));
            stream.write_all(&[b'x'; 3000])
        })
    });
    let (spec, mut worker) = start(port);
    let open: Vec<Reading> = (0..40).map(|_| ask(&spec, port, "accept-encoding: br\r\n")).collect();
    let coded = open.iter().filter(|reading| reading.header("content-encoding").is_some()).count();
    assert!((1..=10).contains(&coded), "{coded} of 40");
    assert!(open.iter().all(|reading| reading.head.starts_with("http/1.1 200 ")));
    drop(open);
    // Their memory comes back with them.
    let begun = Instant::now();
    while ask(&spec, port, "accept-encoding: br\r\n").header("content-encoding").is_none() {
        assert!(begun.elapsed() < LONG, "no coder comes back");
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(worker.counts().failed, 0);
}

/// Goal: what must not be changed is not, and its head neither.
#[test]
fn what_is_left_alone_comes_as_it_was() {
    let port = serve(|stream, request| {
        let (status, more) = match request.split(' ').nth(1) {
            Some("/coded") => ("200 OK", "content-encoding: gzip"),
            Some("/part") => ("206 Partial Content", "content-range: bytes 0-1999/5000"),
            Some("/picture") => ("200 OK", "content-type: image/png"),
            Some("/untouched") => ("200 OK", "cache-control: no-transform"),
            Some("/same") => ("304 Not Modified", "x-tags: {}"),
            _ => ("200 OK", ""),
        };
        let tags = request.lines().find_map(|line| line.strip_prefix("if-none-match: ")).unwrap_or("");
        let more = more.replace("{}", tags);
        let body = if status.starts_with("304") { Vec::new() } else { vec![b'x'; 2000] };
        let length = if body.is_empty() { String::new() } else { "content-length: 2000\r\n".to_owned() };
        let kind = if more.starts_with("content-type") { "" } else { "content-type: text/plain\r\n" };
        let more = if more.is_empty() { more } else { format!("{more}\r\n") };
        write!(stream, "HTTP/1.1 {status}\r\netag: \"t\"\r\n{kind}{length}{more}connection: close\r\n\r\n")?;
        stream.write_all(&body)
    });
    let (spec, mut worker) = start(port);
    for path in ["/coded", "/part", "/picture", "/untouched"] {
        let answer = ask_for(&spec, port, path, "accept-encoding: br, gzip\r\n").whole();
        assert_eq!((answer.header("etag"), answer.header("content-length")), (Some("\"t\""), Some("2000")), "{path}");
        assert!(answer.body == [b'x'; 2000] && answer.header("content-encoding") != Some("br"), "{path}");
    }
    let weak = ask_for(&spec, port, "/same", "if-none-match: W/\"t\"\r\naccept-encoding: br\r\n").whole();
    assert_eq!((weak.header("x-tags"), weak.header("etag")), (Some("W/\"t\", \"t\""), Some("W/\"t\"")));
    let strong = ask_for(&spec, port, "/same", "if-none-match: \"t\"\r\naccept-encoding: br\r\n").whole();
    assert_eq!((strong.header("x-tags"), strong.header("etag")), (Some("\"t\""), Some("\"t\"")));
    assert_eq!((weak.header("vary"), strong.header("vary")), (Some("accept-encoding"), Some("accept-encoding")));
    assert!(strong.head.starts_with("http/1.1 304 ") && worker.counts().failed == 0);
}

fn start(origin: u16) -> (Spec, Worker) {
    let spec = Spec::of(compiled("http_compressor")).with(|spec| {
        spec.connect = vec![format!("tcp dst 127.0.0.1/32 port {origin}")];
        spec.limits.request_ms = REQUEST_MS;
        spec.limits.requests = 64;
    });
    let mut worker = Worker::start();
    worker.load(&spec);
    (spec, worker)
}

/// Starts a server that is given each connection with the head of its one request. Returns its port.
fn serve(answer: impl Fn(&mut TcpStream, &str) -> std::io::Result<()> + Send + Sync + Clone + 'static) -> u16 {
    serve_each(move |mut stream| {
        let head = head_of(&mut stream);
        // Who went away needs no answer.
        let _ = answer(&mut stream, &head);
    })
}

/// A response whose head has come.
pub struct Reading {
    /// In small letters.
    pub head: String,
    pub stream: TcpStream,
}

pub struct Answer {
    pub head: String,
    pub body: Vec<u8>,
}

fn ask(spec: &Spec, origin: u16, headers: &str) -> Reading {
    ask_for(spec, origin, "/", headers)
}

fn ask_for(spec: &Spec, origin: u16, path: &str, headers: &str) -> Reading {
    let mut stream = connect(spec.port());
    write!(stream, "GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{origin}\r\nconnection: close\r\n{headers}\r\n").unwrap();
    Reading { head: head_of(&mut stream), stream }
}

/// Reads a head, in small letters but for what is within quotes.
pub fn head_of(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|length| length == 1) {
        head.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let lines = text.lines().map(|line| match line.split_once(": ") {
        Some((name, value)) => format!("{}: {value}", name.to_lowercase()),
        None => line.replace("HTTP", "http"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub fn header_of<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

impl Reading {
    fn header(&self, name: &str) -> Option<String> {
        header_of(&self.head, name).map(str::to_owned)
    }

    /// Reads all of it.
    fn whole(mut self) -> Answer {
        let mut body = Vec::new();
        match self.header("transfer-encoding") {
            Some(_) => Unchunked { stream: &mut self.stream, left: 0 }.read_to_end(&mut body).map(drop).unwrap(),
            None => self.stream.read_to_end(&mut body).map(drop).unwrap(),
        }
        Answer { head: self.head, body }
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        header_of(&self.head, name)
    }
}

pub fn decoded(coding: &str, mut bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    match coding {
        "br" => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut text).map(drop).unwrap(),
        "zstd" => zstd::stream::copy_decode(&mut bytes, &mut text).unwrap(),
        _ => flate2::read::GzDecoder::new(bytes).read_to_end(&mut text).map(drop).unwrap(),
    }
    text
}

/// What is in the chunks of a response (RFC 9112 §7.1). An error if the last one is missing.
pub struct Unchunked<'a> {
    pub stream: &'a mut TcpStream,
    pub left: usize,
}

impl Unchunked<'_> {
    fn line(&mut self) -> std::io::Result<String> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            self.stream.read_exact(&mut byte)?;
            line.push(byte[0]);
        }
        Ok(String::from_utf8_lossy(&line).trim().to_owned())
    }
}

impl std::io::Read for Unchunked<'_> {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            let length = self.line()?;
            self.left = usize::from_str_radix(&length, 16).map_err(std::io::Error::other)?;
            if self.left == 0 {
                self.line()?;
                return Ok(0);
            }
        }
        let most = room.len().min(self.left);
        let length = self.stream.read(&mut room[..most])?;
        self.left -= length;
        if self.left == 0 {
            self.line()?;
        }
        Ok(length)
    }
}

/// Goal: a request without a body goes on as such, so that one on a kept connection which the server has closed can be sent again.
#[test]
fn a_request_without_a_body_goes_on_without_one() {
    let port = serve(|stream, request| {
        let framed =
            request.lines().find(|line| line.starts_with("transfer-encoding") || line.starts_with("content-length"));
        let framed = framed.unwrap_or("neither");
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{framed}", framed.len())
    });
    let (spec, _worker) = start(port);
    for (method, body, framed) in [
        ("GET", "", "neither"),
        ("OPTIONS", "", "content-length: 0"),
        ("DELETE", "", "content-length: 0"),
        ("POST", "x", "content-length: 1"),
    ] {
        let mut stream = connect(spec.port());
        let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        write!(stream, "{method} / HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n{length}\r\n{body}")
            .unwrap();
        let head = head_of(&mut stream);
        let answer = Reading { head, stream }.whole();
        assert_eq!(String::from_utf8_lossy(&answer.body), framed, "{method}");
    }
}
