// SPDX-License-Identifier: Apache-2.0
//! Responses that come while another one is stored in the place of what they are about.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Edge, LONG, Origin, body, header, is_hit, talk};

/// An origin whose first 304 waits, and whose page then is another one.
struct Changing {
    origin: Origin,
    is_let: Arc<AtomicBool>,
}

impl Changing {
    fn start(first: &'static str, second: &'static str) -> Changing {
        let (is_changed, is_let) = (AtomicBool::new(false), Arc::<AtomicBool>::default());
        let go = Arc::clone(&is_let);
        let origin = Origin::start(move |request, stream| {
            let has = |tag: &str| request.contains(&format!("if-none-match: {tag}"));
            let said = if has("\"first\"") && !is_changed.swap(true, Ordering::SeqCst) {
                while !go.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(5));
                }
                "HTTP/1.1 304 Not Modified\r\netag: \"first\"\r\ncache-control: max-age=600\r\n\r\n"
            } else if has("\"second\"") {
                "HTTP/1.1 304 Not Modified\r\netag: \"second\"\r\n\r\n"
            } else if is_changed.load(Ordering::SeqCst) {
                second
            } else {
                first
            };
            let _ = stream.write_all(said.as_bytes());
        });
        Changing { origin, is_let }
    }

    /// Waits until so many requests came that name a tag.
    fn wait_for(&self, tag: &str, count: usize) {
        let begun = Instant::now();
        let named = |request: &&String| request.contains(tag);
        while self.origin.requests.lock().unwrap().iter().filter(named).count() < count {
            assert!(begun.elapsed() < LONG);
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Has a viewer ask whether the page is the same.
fn validate(port: u16, lines: &'static str) -> thread::JoinHandle<String> {
    let request =
        format!("GET /page HTTP/1.1\r\nhost: edge.test\r\ncache-control: no-cache\r\n{lines}connection: close\r\n\r\n");
    thread::spawn(move || talk(port, request.as_bytes()))
}

/// Goal: a 304 that comes late says nothing of a response that was stored meanwhile.
#[test]
fn a_late_304_leaves_the_head_of_what_took_its_place() {
    let changing = Changing::start(
        "HTTP/1.1 200 OK\r\netag: \"first\"\r\ncache-control: max-age=600\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nfirst one",
        "HTTP/1.1 200 OK\r\netag: \"second\"\r\ncache-control: max-age=600\r\ncontent-type: text/html\r\ncontent-length: 10\r\n\r\nsecond one",
    );
    let edge = Edge::start(changing.origin.port);
    edge.ask_until_hit("/page");
    let late = validate(edge.port(), "");
    changing.wait_for("\"first\"", 1);
    assert_eq!(body(&validate(edge.port(), "").join().unwrap()), "second one");
    let second = edge.ask_until_hit("/page");
    assert_eq!((header(&second, "etag"), body(&second).as_str()), (Some("\"second\""), "second one"));
    changing.is_let.store(true, Ordering::SeqCst);
    assert_eq!(body(&late.join().unwrap()), "first one", "what the origin said is the same");
    let after = edge.ask_until_hit("/page");
    assert_eq!(
        (header(&after, "etag"), header(&after, "content-type"), body(&after).as_str()),
        (Some("\"second\""), Some("text/html"), "second one"),
        "{after}"
    );
}

/// Goal: a 304 about a response that all may have does not give all what was made for one.
#[test]
fn a_late_304_gives_nobody_what_was_made_for_another() {
    let changing = Changing::start(
        "HTTP/1.1 200 OK\r\netag: \"first\"\r\ncache-control: max-age=600\r\ncontent-length: 10\r\n\r\nfor anyone",
        "HTTP/1.1 200 OK\r\netag: \"second\"\r\ncache-control: max-age=0\r\ncontent-length: 9\r\n\r\nfor alice",
    );
    let edge = Edge::start(changing.origin.port);
    while !is_hit(&edge.ask("/page", "cookie: who=alice\r\n")) {}
    let late = validate(edge.port(), "cookie: who=bob\r\n");
    changing.wait_for("\"first\"", 1);
    assert_eq!(body(&validate(edge.port(), "cookie: who=alice\r\n").join().unwrap()), "for alice");
    // It is stored once she is asked about.
    let begun = Instant::now();
    while !changing.origin.last().contains("\"second\"") {
        assert!(begun.elapsed() < LONG);
        edge.ask("/page", "cookie: who=alice\r\n");
    }
    changing.is_let.store(true, Ordering::SeqCst);
    assert_eq!(body(&late.join().unwrap()), "for anyone");
    let answer = edge.ask("/page", "");
    assert!(!is_hit(&answer), "what is hers is asked about: {answer}");
}
