// SPDX-License-Identifier: Apache-2.0
//! Clients that take one byte a second.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use netserv_patience::grown;

use super::super::{LONG, crowd};
use super::{Edge, is_hit};

/// Bytes of what they want.
const BYTES: usize = 1 << 20;

/// Goal: clients that read one byte a second stop no other client's fetch or hit.
#[test]
fn a_hundred_slow_readers_do_not_stop_the_rest() {
    beside_slow_readers(100);
}

/// Goal: a thousand clients that take one byte a second keep neither a fill nor hits from others, and take little memory.
/// In release: `./dev cdn`.
#[test]
#[ignore = "a measurement"]
fn a_thousand_slow_readers_do_not_stop_the_rest() {
    beside_slow_readers(1000);
}

fn beside_slow_readers(count: usize) {
    let origin = crowd::Origin::start(BYTES);
    let mut edge = Edge::start(origin.port);
    let whole = |path: &str| {
        let begun = Instant::now();
        let told = crowd::Crowd::connect(edge.port(), 1).get(&origin, path);
        assert_eq!(told.whole, 1, "{told:?}");
        begun.elapsed()
    };
    whole("/before");
    let mut before: Vec<Duration> = (0..20).map(|_| whole("/before")).collect();
    before.sort();
    // Half of them read what is there, and half what they are the first to want.
    let mut slow: Vec<TcpStream> =
        (0..count).map(|number| ask(edge.port(), ["/before", "/slow"][number % 2])).collect();
    let cold = whole("/slow");
    let (mut hits, mut bytes) = (Vec::new(), vec![0; count]);
    for _ in 0..3 {
        let begun = Instant::now();
        for (stream, bytes) in slow.iter_mut().zip(&mut bytes) {
            *bytes += stream.read(&mut [0]).unwrap_or(0);
        }
        hits.extend((0..10).map(|_| whole("/before")));
        thread::sleep(Duration::from_secs(1).saturating_sub(begun.elapsed()));
    }
    hits.sort();
    let (alone, beside) = (before[before.len() / 2], hits[hits.len() / 2]);
    let memory = edge.worker.memory_kib("RssAnon:");
    eprintln!("{count} slow readers: a hit takes {beside:?}, {alone:?} without them; a fill {cold:?}; {memory} KiB");
    assert!(bytes.iter().all(|bytes| *bytes == 3), "they get what they take");
    assert!(cold < LONG, "a fill takes {cold:?}");
    assert!(
        beside < grown(5 * alone + Duration::from_millis(50)),
        "a hit takes {beside:?}, and {alone:?} without them"
    );
    assert!(memory < 128 << 10, "{memory} KiB");
    assert!(is_hit(&edge.ask("/slow", "")));
    assert_eq!((edge.worker.counts().failed, origin.fetches()), (0, 2));
}

/// Asks on a connection whose end holds little.
fn ask(port: u16, path: &str) -> TcpStream {
    let kind = (rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM);
    let stream = rustix::net::socket(kind.0, kind.1, None).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 4096).unwrap();
    rustix::net::connect(&stream, &SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
    let mut stream = TcpStream::from(stream);
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: edge.test\r\n\r\n").as_bytes()).unwrap();
    stream
}
