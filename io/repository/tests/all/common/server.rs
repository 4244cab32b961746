// SPDX-License-Identifier: Apache-2.0
//! A web server on this machine that does what it is told, also wrong things.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Answers a request for a path; the connection closes afterwards.
type Handler = Box<dyn Fn(&str, &mut TcpStream) -> std::io::Result<()> + Send + Sync>;

/// The server; it ends when this is dropped.
pub struct Server {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Starts a server on a free port of 127.0.0.1.
    pub fn start(handler: impl Fn(&str, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> Server {
        let handler: Arc<Handler> = Arc::new(Box::new(handler));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, stopped) = (Arc::clone(&requests), Arc::clone(&stop));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (handler, counted) = (Arc::clone(&handler), Arc::clone(&counted));
                thread::spawn(move || serve(stream, &handler, &counted));
            }
        });
        Server { address, requests, stop }
    }

    /// Starts a server that answers every request with these bytes.
    pub fn of(body: Vec<u8>) -> Server {
        Server::start(move |_, stream| ok(stream, &body))
    }

    /// Returns a URL of the server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns how many requests there were.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers with a whole body.
pub fn ok(stream: &mut TcpStream, body: &[u8]) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())?;
    stream.write_all(body)
}

/// Answers with a status and a header.
pub fn status(stream: &mut TcpStream, status: &str, header: &str) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {status}\r\n{header}Content-Length: 0\r\nConnection: close\r\n\r\n")
}

fn serve(mut stream: TcpStream, handler: &Handler, requests: &AtomicUsize) {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    if reader.read_line(&mut first).unwrap_or(0) == 0 {
        return;
    }
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
        line.clear();
    }
    requests.fetch_add(1, Ordering::SeqCst);
    // The client hangs up on us in half of the tests.
    let _ = handler(first.split(' ').nth(1).unwrap_or_default(), &mut stream);
}
