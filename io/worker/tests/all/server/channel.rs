// SPDX-License-Identifier: Apache-2.0
//! Live pages: what modules publish, and their readers get. The module is the sample `live-page`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use netserv_wire::container::ring::Answer;

use super::{Spec, Worker, compiled, compiled_packets, connect, get, status, talk};

/// The sample with both its parts, whose requests may take half a minute.
pub fn live_page() -> Spec {
    Spec::of(compiled("live_page")).with(|spec| {
        spec.packet = Some(compiled_packets("live_page"));
        spec.limits.request_ms = 30_000;
    })
}

#[test]
fn viewers_get_what_is_said_as_it_is_said() {
    let spec = live_page();
    let _worker = Worker::with(&spec);
    let mut first = Viewer::open(spec.port(), None);
    let said = say(spec.port(), "hello\n\ndata: forged");
    assert_eq!(first.next(), format!("id: {said}\ndata: hello  data: forged\n\n"));
    let mut late = Viewer::open(spec.port(), None);
    assert_eq!(late.next(), first.last);
    assert_eq!(say(spec.port(), "again"), said + 1);
    for viewer in [&mut first, &mut late] {
        assert_eq!(viewer.next(), format!("id: {}\ndata: again\n\n", said + 1));
    }
    // One that comes back goes on where it was; one from another time begins anew.
    assert_eq!(Viewer::open(spec.port(), Some(said)).next(), format!("id: {}\ndata: again\n\n", said + 1));
    for unknown in [0, said + 100, u64::MAX] {
        assert!(Viewer::open(spec.port(), Some(unknown)).next().contains("hello"), "{unknown}");
    }
    assert!(get(spec.port(), "/").1.contains("EventSource"));
    let long = format!(
        "POST /say HTTP/1.1\r\nhost: a\r\ncontent-length: 16385\r\nconnection: close\r\n\r\n{}",
        "x".repeat(16_385)
    );
    assert_eq!(status(&talk(spec.port(), long.as_bytes())), 413);
}

#[test]
fn what_the_packet_part_publishes_is_read_by_the_server_part() {
    let spec = live_page();
    let mut worker = Worker::with(&spec);
    let mut viewer = Viewer::open(spec.port(), None);
    for packets in [3, 2] {
        (0..packets).for_each(|_| assert_eq!(worker.round(1, &[0x45; 64]).answer, Answer::Pass));
        let event = viewer.next();
        assert!(event.contains("event: packets\ndata: "), "{event}");
    }
    while !viewer.last.contains("data: 5\n") {
        viewer.next();
    }
    // By its key, one that comes later gets the last number only.
    assert_eq!(Viewer::open(spec.port(), None).next(), viewer.last);
}

#[test]
fn topics_outlive_an_upgrade_and_no_removal() {
    let spec = live_page();
    let mut worker = Worker::with(&spec);
    say(spec.port(), "before");
    worker.load(&spec.clone().with(|spec| spec.slot = 1));
    say(spec.port(), "after");
    let mut viewer = Viewer::open(spec.port(), None);
    assert!(viewer.next().contains("before") && viewer.next().contains("after"));
    drop(worker);
    let _worker = Worker::with(&spec);
    say(spec.port(), "anew");
    assert!(Viewer::open(spec.port(), None).next().contains("anew"));
}

/// Publishes a line. Returns its number.
pub fn say(port: u16, text: &str) -> u64 {
    let length = text.len();
    let request =
        format!("POST /say HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}");
    let answer = talk(port, request.as_bytes());
    assert_eq!(status(&answer), 202, "{answer}");
    super::body(&answer).trim().parse().unwrap()
}

/// Somebody who reads the events of a page.
pub struct Viewer {
    pub stream: TcpStream,
    /// What came, and was not taken apart yet.
    raw: Vec<u8>,
    /// What came of the body, and is no whole event yet.
    body: String,
    pub last: String,
}

impl Viewer {
    /// Asks for the events, those behind the one of a number.
    pub fn open(port: u16, last: Option<u64>) -> Viewer {
        let mut stream = connect(port);
        let last = last.map(|number| format!("last-event-id: {number}\r\n")).unwrap_or_default();
        stream.write_all(format!("GET /events HTTP/1.1\r\nhost: a\r\n{last}\r\n").as_bytes()).unwrap();
        let mut viewer = Viewer { stream, raw: Vec::new(), body: String::new(), last: String::new() };
        let head = loop {
            match cut(&mut viewer.raw, b"\r\n\r\n") {
                Some(head) => break head,
                None => viewer.read(),
            }
        };
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/event-stream"), "{head}");
        viewer
    }

    /// Returns the next event.
    pub fn next(&mut self) -> String {
        loop {
            if let Some(end) = self.body.find("\n\n") {
                let rest = self.body.split_off(end + 2);
                self.last = std::mem::replace(&mut self.body, rest);
                return self.last.clone();
            }
            match self.chunk() {
                Some(chunk) => self.body.push_str(&chunk),
                None => self.read(),
            }
        }
    }

    /// Takes the next chunk, if it is whole.
    fn chunk(&mut self) -> Option<String> {
        let line = self.raw.windows(2).position(|window| window == b"\r\n")?;
        let length = usize::from_str_radix(std::str::from_utf8(&self.raw[..line]).unwrap(), 16).unwrap();
        let chunk = self.raw.get(line + 2..line + 4 + length)?[..length].to_vec();
        self.raw.drain(..line + 4 + length);
        assert!(length > 0, "the body ended");
        Some(String::from_utf8(chunk).unwrap())
    }

    fn read(&mut self) {
        let mut piece = [0; 4096];
        let length = self.stream.read(&mut piece).unwrap();
        assert!(length > 0, "the connection ended: {}", String::from_utf8_lossy(&self.raw));
        self.raw.extend_from_slice(&piece[..length]);
    }
}

fn cut(bytes: &mut Vec<u8>, end: &[u8]) -> Option<String> {
    let at = bytes.windows(end.len()).position(|window| window == end)?;
    let rest = bytes.split_off(at + end.len());
    Some(String::from_utf8(std::mem::replace(bytes, rest)).unwrap())
}
