// SPDX-License-Identifier: Apache-2.0
//! `modules/apps/active-cdn` before origins that do what they should, and before others.

mod bad_clients;
mod bad_origins;
mod beside;
mod ended;
mod late;
mod numbers;
mod processed;
mod replaced;
mod reports;
mod reverse;
mod slow;
mod stalled;
mod told;
mod unread;
mod viewers;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use netserv_worker_base::storage::CACHE_FILE;
use tempfile::TempDir;

use super::{LONG, Spec, Worker, body, compiled, status, talk};

/// Bytes of a cache that is large enough.
const CACHE_BYTES: u64 = 256 << 20;
/// Bytes of the container's memory: 256 MiB, of which what is known of 100,000 entries may take its part.
const MEMORY_BYTES: &str = "268435456";

/// A worker with active-cdn, and its cache.
struct Edge {
    spec: Spec,
    worker: Worker,
    store: TempDir,
}

impl Edge {
    /// Starts one before the origin at a port.
    fn start(origin: u16) -> Edge {
        Edge::start_with(origin, CACHE_BYTES, |_| {})
    }

    fn start_with(origin: u16, cache_bytes: u64, change: impl FnOnce(&mut Spec)) -> Edge {
        let store = tempfile::tempdir().unwrap();
        File::create(store.path().join(CACHE_FILE)).unwrap().set_len(cache_bytes).unwrap();
        let spec = Spec::of(compiled("active_cdn")).property("origin", &format!("http://127.0.0.1:{origin}"));
        let mut spec = spec.with(|spec| {
            spec.connect = vec!["tcp dst 127.0.0.1/32".to_owned()];
            // As its manifest has them.
            spec.limits.request_ms = 600_000;
            spec.limits.requests = 512;
        });
        change(&mut spec);
        Edge { worker: serve(store.path(), &spec), spec, store }
    }

    /// Kills the worker, and starts another one with the same cache.
    fn restart(mut self) -> Edge {
        self.worker.worker.kill().unwrap();
        self.worker.worker.wait().unwrap();
        let worker = serve(self.store.path(), &self.spec);
        Edge { worker, ..self }
    }

    fn port(&self) -> u16 {
        self.spec.port()
    }

    /// Asks for a path, with further lines in the head. Returns all that comes.
    fn ask(&self, path: &str, lines: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nhost: edge.test\r\n{lines}connection: close\r\n\r\n");
        talk(self.port(), request.as_bytes())
    }

    /// Asks until the answer comes from the cache, which it does a moment after the first one has come whole.
    fn ask_until_hit(&self, path: &str) -> String {
        let begun = Instant::now();
        loop {
            let answer = self.ask(path, "");
            if is_hit(&answer) {
                return answer;
            }
            assert!(begun.elapsed() < LONG, "{answer}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn serve(store: &Path, spec: &Spec) -> Worker {
    let memory = ["--memory-bytes", MEMORY_BYTES].map(OsStr::new);
    let mut worker = Worker::start_with(&[OsStr::new("--store"), store.as_os_str(), memory[0], memory[1]]);
    worker.load(spec);
    worker
}

/// Returns whether an answer is from the cache.
fn is_hit(answer: &str) -> bool {
    header(answer, "cache-status").is_some_and(|status| status.contains("; hit"))
}

/// Returns the first line of a name in an answer's head.
fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next()?;
    let line = |line: &'a str| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then_some(value.trim())
    };
    head.lines().find_map(line)
}

/// Returns whether an answer came whole: as its length says, or its last chunk.
fn is_whole(answer: &str) -> bool {
    match header(answer, "content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => answer.split_once("\r\n\r\n").is_some_and(|(_, body)| body.len() == length),
        None => answer.ends_with("\r\n0\r\n\r\n"),
    }
}

/// A server that a function plays, once for each connection and its first request.
struct Origin {
    port: u16,
    /// What came, with as much of a body as came with it.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    fn start(play: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, requests, play) =
            (listener.local_addr().unwrap().port(), Arc::<Mutex<Vec<String>>>::default(), Arc::new(play));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, seen, play) = (stream.unwrap(), Arc::clone(&seen), Arc::clone(&play));
                std::thread::spawn(move || {
                    let Some(request) = head_of(&mut stream) else { return };
                    seen.lock().unwrap().push(request.clone());
                    play(&request, &mut stream);
                });
            }
        });
        Origin { port, requests }
    }

    /// Starts one that gives the same answer to all.
    fn saying(answer: &str) -> Origin {
        let answer = answer.to_owned();
        Origin::start(move |_, stream| {
            let _ = stream.write_all(answer.as_bytes());
        })
    }

    /// Returns how many requests came.
    fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    fn last(&self) -> String {
        self.requests.lock().unwrap().last().cloned().unwrap_or_default()
    }
}

fn head_of(stream: &mut TcpStream) -> Option<String> {
    let (mut request, mut piece) = (Vec::new(), [0; 4096]);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return None,
            Ok(length) => request.extend_from_slice(&piece[..length]),
        }
    }
    Some(String::from_utf8_lossy(&request).into_owned())
}

/// Returns the path of a request.
fn path_of(request: &str) -> &str {
    request.split(' ').nth(1).unwrap_or_default()
}

/// Returns an answer that may be kept, with further lines in its head.
fn kept(lines: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncache-control: max-age=600\r\n{lines}content-length: {}\r\n\r\n{body}", body.len())
}

/// Returns text of so many bytes that is another one at each place.
fn text(bytes: usize) -> String {
    let mut text: String = (0..bytes.div_ceil(8)).map(|number| format!("{number:07}\n")).collect();
    text.truncate(bytes);
    text
}
