// SPDX-License-Identifier: Apache-2.0
//! What a module asks by itself while it answers on intercepted connections: what its server says to that is for nobody else.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::compressed::head_of;
use super::intercepted::{Site, connect};
use super::{LONG, serve_each};

const ODD: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n6\r\nsecret\r\n0\r\n\r\n";

/// Goal: what the server says to a refresh comes to no viewer, whatever it is, and the page goes on for all. Method: an answer to the refresh
/// that nobody understands, while the viewer's connection is idle.
#[test]
fn the_answer_to_a_refresh_comes_to_no_viewer() {
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&asked);
    let port = serve_each(move |mut stream| {
        loop {
            let head = head_of(&mut stream);
            let said = match head.split(' ').nth(1) {
                Some("/stale") if seen.fetch_add(1, Ordering::SeqCst) == 0 => {
                    answer("cache-control: max-age=100, stale-while-revalidate=600\r\nage: 99\r\n", "first")
                }
                Some("/stale") => ODD.to_owned(),
                Some(path) => answer("", path),
                None => return,
            };
            let _ = stream.write_all(said.as_bytes());
        }
    });
    let site = Site::caching("active_cdn");
    let at = site.before(SocketAddr::from(([127, 0, 0, 1], port)));
    assert_eq!(Viewer::at(at).get("/stale", ""), "first");
    let begun = Instant::now();
    let mut viewer = Viewer::at(at);
    while asked.load(Ordering::SeqCst) < 2 {
        assert_eq!(viewer.get("/stale", ""), "first");
        assert!(begun.elapsed() < LONG, "nothing is refreshed");
        thread::sleep(Duration::from_millis(20));
    }
    viewer.hears_nothing();
    assert_eq!(viewer.get("/next", ""), "/next");
    assert_eq!(Viewer::at(at).get("/stale", ""), "first", "and others have it as before");
}

/// Goal: a viewer that asks no condition gets the page, if nobody understands what the server says to the module's. Method: a 304 with an odd
/// length.
#[test]
fn an_odd_answer_to_a_condition_leaves_the_page() {
    let port = serve_each(|mut stream| {
        loop {
            let head = head_of(&mut stream);
            let said = match (head.is_empty(), head.contains("if-none-match")) {
                (true, _) => return,
                (_, true) => "HTTP/1.1 304 Not Modified\r\netag: \"a\"\r\ncontent-length: \r\n\r\n".to_owned(),
                (_, false) => answer("etag: \"a\"\r\ncache-control: no-cache\r\n", "page"),
            };
            let _ = stream.write_all(said.as_bytes());
        }
    });
    let site = Site::caching("active_cdn");
    let at = site.before(SocketAddr::from(([127, 0, 0, 1], port)));
    for _ in 0..3 {
        assert_eq!(Viewer::at(at).get("/page", ""), "page");
    }
}

/// Goal: over random answers on connections that last, a viewer has the answers to its own requests, one for each, and nothing that was made
/// for another but what is fresh for all. Method: pages that are stale soon and then refreshed, with answers in between that nobody
/// understands, which have a line of their own that names whom they are for.
#[test]
fn nobody_has_what_was_said_to_another_request() {
    for module in ["active_cdn", "edge_cache"] {
        let port = serve_each(|mut stream| {
            let mut random = Random(1);
            loop {
                let head = head_of(&mut stream);
                let Some(path) = head.split(' ').nth(1) else { return };
                let who = head.split("who=").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap_or("none");
                random.mix(head.len() as u64);
                let said = random_answer(&mut random, path, who, head.contains("if-none"));
                let _ = stream.write_all(said.as_bytes());
            }
        });
        let site = Site::caching(module);
        let at = site.before(SocketAddr::from(([127, 0, 0, 1], port)));
        let wrong = Mutex::new(BTreeMap::<String, usize>::new());
        thread::scope(|scope| {
            for who in 0..8_u64 {
                let wrong = &wrong;
                scope.spawn(move || {
                    let (mut random, mut viewer, name) = (Random(who + 1), Viewer::at(at), format!("v{who}"));
                    let begun = Instant::now();
                    while begun.elapsed() < RANDOM_TIME {
                        let path = format!("/{}", random.below(6));
                        let cookie = format!("cookie: who={name}\r\n");
                        let cookie = if random.below(2) == 0 { "" } else { &*cookie };
                        let name = if cookie.is_empty() { "none" } else { &*name };
                        let Some(body) = viewer.try_get(&path, cookie) else {
                            viewer = Viewer::at(at);
                            continue;
                        };
                        // The node says something itself where there is nothing else.
                        let is_own = body.starts_with(&format!("{path} {name} "));
                        let is_shared = body.starts_with(&format!("{path} ")) && body.ends_with(" shared");
                        if !is_own && !is_shared {
                            *wrong.lock().unwrap().entry(format!("{path} {name}: {body}")).or_default() += 1;
                        }
                        thread::sleep(Duration::from_millis(random.below(30)));
                    }
                });
            }
        });
        let wrong = wrong.into_inner().unwrap();
        assert!(wrong.is_empty(), "{module}: {wrong:#?}");
    }
}

const RANDOM_TIME: Duration = Duration::from_millis(2500);

/// Returns an answer whose body says for what and whom it is.
fn random_answer(random: &mut Random, path: &str, who: &str, has_condition: bool) -> String {
    let odd = [" cache-control: private\r\n", "vary: cookie\x01\r\n", "no colon\r\n", ": x\r\n"];
    let fresh = [
        "cache-control: max-age=100, stale-while-revalidate=600\r\nage: 99\r\n",
        "cache-control: private\r\ncdn-cache-control: max-age=100, stale-while-revalidate=600\r\nage: 99\r\n",
        "surrogate-control: max-age=1\r\n",
        "cache-control: max-age=1\r\n",
    ];
    let own = ["", "cache-control: no-cache\r\netag: \"a\"\r\n", "cache-control: private, max-age=60\r\n"];
    let pick = |random: &mut Random, from: &[&str]| {
        let at = usize::try_from(random.below(from.len() as u64)).unwrap();
        from[at].to_owned()
    };
    let (for_one, for_all) = (format!("{path} {who} one"), format!("{path} {who} shared"));
    match random.below(10) {
        0 | 1 => {
            let lines = [pick(random, &odd), pick(random, &fresh)].concat();
            answer(&lines, &for_one)
        }
        2 => format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n{:x}\r\n{for_one}\r\n0\r\n\r\n",
            for_one.len()
        ),
        3 if has_condition => "HTTP/1.1 304 Not Modified\r\ncontent-length: \r\n\r\n".to_owned(),
        3 | 4 => answer(&pick(random, &own), &for_one),
        // For viewers with a name, it is for them.
        5 => answer(&format!("vary: cookie\r\n{}", pick(random, &fresh)), &for_one),
        _ => answer(&pick(random, &fresh), &for_all),
    }
}

fn answer(lines: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{lines}content-length: {}\r\n\r\n{body}", body.len())
}

/// Numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn mix(&mut self, with: u64) {
        self.0 = (self.0 ^ with).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    }

    fn below(&mut self, end: u64) -> u64 {
        self.mix(self.0 >> 29);
        (self.0 >> 33) % end
    }
}

/// A viewer with a connection that lasts.
struct Viewer(TcpStream);

impl Viewer {
    fn at(at: SocketAddr) -> Viewer {
        Viewer(connect(at))
    }

    fn get(&mut self, path: &str, lines: &str) -> String {
        self.try_get(path, lines).unwrap_or_else(|| panic!("no answer to {path}"))
    }

    /// Returns the body of the answer; nothing if the connection ends first.
    fn try_get(&mut self, path: &str, lines: &str) -> Option<String> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: site.test\r\n{lines}\r\n");
        self.0.write_all(request.as_bytes()).ok()?;
        let head = head_of(&mut self.0);
        if let Some(length) = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()) {
            let mut body = vec![0; length.trim().parse().ok()?];
            self.0.read_exact(&mut body).ok()?;
            return Some(String::from_utf8_lossy(&body).into_owned());
        }
        let mut all = Vec::new();
        while !all.ends_with(b"0\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).ok()?;
            all.push(byte[0]);
        }
        Some(super::body(&format!("transfer-encoding: chunked\r\n\r\n{}", String::from_utf8_lossy(&all))))
    }

    /// Asserts that nothing comes for a while, and that the connection goes on.
    fn hears_nothing(&mut self) {
        self.0.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let mut byte = [0];
        let heard = self.0.read(&mut byte);
        assert!(heard.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "{heard:?} {byte:?}");
        self.0.set_read_timeout(Some(LONG)).unwrap();
    }
}
