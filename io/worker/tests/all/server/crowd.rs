// SPDX-License-Identifier: Apache-2.0
//! Many clients on one thread, and the server that has what they want.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::epoll;

/// How long all clients together have to get what they want.
const TIME_MAX: Duration = Duration::from_secs(180);

/// A server whose answers are all the same body, which may be kept.
pub struct Origin {
    pub port: u16,
    pub body: Arc<Vec<u8>>,
    fetches: Arc<AtomicUsize>,
}

impl Origin {
    /// Starts one with a body of so many bytes.
    pub fn start(bytes: usize) -> Origin {
        Origin::start_after(bytes, Duration::ZERO)
    }

    /// Starts one that thinks for a while before each answer, as one that is far away seems to.
    pub fn start_after(bytes: usize, thinks: Duration) -> Origin {
        let body: Vec<u8> = (0..=250).flat_map(|byte| [byte; 7]).cycle().take(bytes).collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin =
            Origin { port: listener.local_addr().unwrap().port(), body: Arc::new(body), fetches: Arc::default() };
        let (body, fetches) = (Arc::clone(&origin.body), Arc::clone(&origin.fetches));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (body, fetches) = (Arc::clone(&body), Arc::clone(&fetches));
                thread::spawn(move || serve(&mut stream.unwrap(), thinks, &body, &fetches));
            }
        });
        origin
    }

    /// Returns how many requests came.
    pub fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }
}

fn serve(stream: &mut TcpStream, thinks: Duration, body: &[u8], fetches: &AtomicUsize) {
    let (mut request, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        while !request.windows(4).any(|end| end == b"\r\n\r\n") {
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => return,
                Ok(length) => request.extend_from_slice(&piece[..length]),
            }
        }
        request.clear();
        fetches.fetch_add(1, Ordering::SeqCst);
        thread::sleep(thinks);
        let head = format!("HTTP/1.1 200 OK\r\ncache-control: max-age=600\r\ncontent-length: {}\r\n\r\n", body.len());
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).is_err() {
            return;
        }
    }
}

/// Clients that are connected, and ask for the same.
pub struct Crowd {
    port: u16,
    clients: Vec<Client>,
}

struct Client {
    stream: TcpStream,
    head: Vec<u8>,
    /// Bytes of the body, once it has begun.
    read: Option<usize>,
}

/// How they fared.
#[derive(Debug)]
pub struct Told {
    /// How many got all of it, as it is.
    pub whole: usize,
    /// From the first request to the last byte.
    pub took: Duration,
    /// From the first request to the last client's first byte.
    pub begun: Duration,
    /// How many others there are for each reason.
    pub failed: BTreeMap<String, usize>,
}

impl Crowd {
    pub fn connect(port: u16, count: usize) -> Crowd {
        let connect = |_| {
            let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.set_nonblocking(true).unwrap();
            Client { stream, head: Vec::new(), read: None }
        };
        Crowd { port, clients: (0..count).map(connect).collect() }
    }

    /// Has all of them ask for a path of an origin at once, and reads what comes.
    pub fn get(mut self, origin: &Origin, path: &str) -> Told {
        let host = format!("127.0.0.1:{}", origin.port);
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n");
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let begun = Instant::now();
        for (number, client) in self.clients.iter_mut().enumerate() {
            client.stream.write_all(request.as_bytes()).unwrap();
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&poll, &client.stream, data, epoll::EventFlags::IN).unwrap();
        }
        let mut told = Told { whole: 0, took: Duration::ZERO, begun: Duration::ZERO, failed: BTreeMap::new() };
        let (mut left, mut buffer) = (self.clients.len(), vec![0; 256 << 10]);
        while left > 0 {
            let mut events = [MaybeUninit::<epoll::Event>::uninit(); 256];
            let (ready, _) =
                epoll::wait(&poll, &mut events, Some(&rustix::event::Timespec { tv_sec: 1, tv_nsec: 0 })).unwrap();
            for event in ready.iter() {
                let client = &mut self.clients[usize::try_from(event.data.u64()).unwrap()];
                let had_none = client.read.unwrap_or(0) == 0;
                let end = client.advance(&origin.body, &mut buffer);
                if had_none && client.read.unwrap_or(0) > 0 {
                    told.begun = begun.elapsed();
                }
                let Some(end) = end else { continue };
                epoll::delete(&poll, &client.stream).unwrap();
                left -= 1;
                match end {
                    Ok(()) => told.whole += 1,
                    Err(why) => *told.failed.entry(why).or_default() += 1,
                }
            }
            if begun.elapsed() > TIME_MAX {
                told.failed.insert(format!("late at port {}", self.port), left);
                break;
            }
        }
        told.took = begun.elapsed();
        told
    }
}

impl Client {
    /// Reads what is there. Returns how it ended, once it did.
    fn advance(&mut self, expected: &[u8], buffer: &mut [u8]) -> Option<Result<(), String>> {
        let length = match self.stream.read(buffer) {
            Ok(0) => return Some(Err(format!("closed in the {}", if self.read.is_some() { "body" } else { "head" }))),
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(error) => return Some(Err(error.to_string())),
        };
        let mut bytes = &buffer[..length];
        if self.read.is_none() {
            self.head.extend_from_slice(bytes);
            let end = self.head.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
            let text = String::from_utf8_lossy(&self.head[..end]).to_ascii_lowercase();
            if !text.starts_with("http/1.1 200") || !text.contains(&format!("content-length: {}\r\n", expected.len())) {
                return Some(Err(text.lines().next().unwrap_or_default().to_owned()));
            }
            bytes = &bytes[bytes.len() - (self.head.len() - end)..];
            self.read = Some(0);
        }
        let read = self.read.unwrap_or(0);
        if expected.get(read..read + bytes.len()) != Some(bytes) {
            return Some(Err("another body".to_owned()));
        }
        self.read = Some(read + bytes.len());
        (self.read == Some(expected.len())).then_some(Ok(()))
    }
}
