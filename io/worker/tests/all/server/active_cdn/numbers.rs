// SPDX-License-Identifier: Apache-2.0
//! What active-cdn is measured by. The long forms are `./dev cdn`, in release.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::super::crowd::{self, Crowd};
use super::super::peer::{Nginx, Rate, Varnish, median, on_core, wrk};
use super::{CACHE_BYTES, Edge};

/// Clients that want the same at once, and bytes of it.
const CLIENTS: usize = 200;
const FILM_BYTES: usize = 50 << 20;
/// How long the origin of these thinks: one that is so far away that a cache at the edge is worth it.
const THINKS: Duration = Duration::from_millis(50);
/// First bytes of all clients, against the origin's own.
const FIRST_BYTE_MAX: f64 = 2.0;
/// Rounds of each server, in turn.
const ROUNDS: usize = 5;
/// Answers in a second for small objects, throughput for large ones, and the 99th of 100 times, each against nginx.
const SMALL_MIN: f64 = 0.5;
const LARGE_MIN: f64 = 0.8;
const P99_MAX: f64 = 2.0;
/// Requests of the log, and how many things they are for.
const REQUESTS: usize = 100_000;
const OBJECTS: usize = 10_000;
/// What the cache saves of the bytes that it could.
const SAVED_MIN: f64 = 0.95;
/// Things on the disk, kibibytes that they take of memory, and the time of the first hit after a restart.
const STORED: usize = 100_000;
const MEMORY_KIB_MAX: u64 = 80 << 10;
const FIRST_HIT_MAX: Duration = Duration::from_secs(2);

/// Goal: of 200 cold clients of `active-cdn`, one has the origin asked, and all get its body; `./dev cdn` tests it with 50
/// MB.
#[test]
fn two_hundred_cold_clients_are_one_fetch() {
    cold_clients(1 << 20);
}

/// Goal: of many who want a large thing that is not there, one has it fetched, and all get its begin as it comes.
#[test]
#[ignore = "a measurement"]
fn two_hundred_cold_clients_of_a_film() {
    let (own, first) = cold_clients(FILM_BYTES);
    let ratio = first.as_secs_f64() / own.as_secs_f64();
    assert!(ratio <= FIRST_BYTE_MAX, "{ratio:.2} times the origin's own, {FIRST_BYTE_MAX} is the goal");
}

/// Returns when the origin's first byte comes, and the last client's first byte through the cache.
fn cold_clients(bytes: usize) -> (Duration, Duration) {
    let origin = crowd::Origin::start_after(bytes, THINKS);
    let mut edge = Edge::start(origin.port);
    let own = Crowd::connect(origin.port, 1).get(&origin, "/film").begun;
    let told = Crowd::connect(edge.port(), CLIENTS).get(&origin, "/film");
    let rate = (told.whole * bytes) as f64 / told.took.as_secs_f64() / 1e6;
    eprintln!("first byte of the origin {own:?}, of the last of {CLIENTS} clients {:?}; {rate:.0} MB/s", told.begun);
    assert_eq!((told.whole, origin.fetches()), (CLIENTS, 2), "{told:?}");
    assert_eq!(edge.worker.counts().failed, 0);
    (own, told.begun)
}

/// Goal: what is in the cache is given half as often as nginx does, as fast in bytes, and not much later. Method: `wrk` with 16
/// connections on one core, each server alone on the other one. Shown beside it: Varnish, which keeps all in memory.
#[test]
#[ignore = "a measurement"]
fn hits_beside_nginx() {
    let [small, large] = [(10_000, "10 kB"), (1_000_000, "1 MB")].map(|(bytes, name)| {
        let origin = crowd::Origin::start(bytes);
        let (mut edge, nginx, varnish) =
            on_core(|| (Edge::start(origin.port), Nginx::start(origin.port), Varnish::start(origin.port)));
        let (mut own, mut theirs, mut others): (Vec<Rate>, Vec<Rate>, Vec<Rate>) = Default::default();
        for _ in 0..ROUNDS {
            own.push(wrk(edge.port(), "edge.test", "/hit"));
            theirs.push(wrk(nginx.port, "edge.test", "/hit"));
            eprintln!("{name}: active-cdn {:?}, nginx {:?}", own[own.len() - 1], theirs[theirs.len() - 1]);
        }
        if let Some(varnish) = &varnish {
            others.extend((0..ROUNDS).map(|_| wrk(varnish.port, "edge.test", "/hit")));
        }
        assert_eq!((edge.worker.counts().failed, origin.fetches()), (0, 2 + usize::from(varnish.is_some())));
        let of = |rates: &[Rate], value: fn(&Rate) -> f64| median(&mut rates.iter().map(value).collect::<Vec<f64>>());
        let per_second = of(&own, |rate| rate.per_second) / of(&theirs, |rate| rate.per_second);
        let p99 = of(&own, |rate| rate.p99.as_secs_f64()) / of(&theirs, |rate| rate.p99.as_secs_f64());
        eprintln!("{name}: {per_second:.2} of nginx, the 99th of 100 after {p99:.2} of its time");
        if !others.is_empty() {
            let ratio = of(&own, |rate| rate.per_second) / of(&others, |rate| rate.per_second);
            eprintln!("{name}: {ratio:.2} of Varnish, {:?}", others[others.len() - 1]);
        }
        (per_second, p99)
    });
    assert!(small.0 >= SMALL_MIN && small.1 <= P99_MAX, "10 kB: {small:?}, {SMALL_MIN} and {P99_MAX} are the goal");
    assert!(large.0 >= LARGE_MIN && large.1 <= P99_MAX, "1 MB: {large:?}, {LARGE_MIN} and {P99_MAX} are the goal");
}

#[test]
fn a_log_costs_the_origin_each_thing_once() {
    assert!(replay(2000, 200, CACHE_BYTES) >= SAVED_MIN);
}

/// Goal: of requests as people make them, the origin sees hardly more than the first for each thing.
/// Shown beside it: what is saved by a cache for a tenth of it all, against one that knows beforehand what will be wanted most.
#[test]
#[ignore = "a measurement"]
fn a_long_log_costs_the_origin_each_thing_once() {
    let saved = replay(REQUESTS, OBJECTS, 1 << 30);
    replay(REQUESTS, OBJECTS, 32 << 20);
    assert!(saved >= SAVED_MIN, "{saved:.3} of what could be saved, {SAVED_MIN} is the goal");
}

/// Replays a log. Returns what was saved of the bytes that a cache of so many could save that knows the log.
fn replay(requests: usize, objects: usize, cache_bytes: u64) -> f64 {
    let (origin, sent) = sized_origin();
    let mut edge = Edge::start_with(origin, cache_bytes, |_| {});
    let log = zipf(requests, objects);
    let begun = Instant::now();
    let port = edge.port();
    thread::scope(|scope| {
        for part in log.chunks(requests.div_ceil(8)) {
            scope.spawn(move || {
                let mut client = Client::connect(port);
                part.iter().for_each(|object| client.get(*object));
            });
        }
    });
    let took = begun.elapsed();
    let mut counts = vec![0_u64; objects];
    log.iter().for_each(|object| counts[*object] += 1);
    let all: u64 = log.iter().map(|object| size(*object) as u64).sum();
    // The best that a cache of this size can do: it keeps what is wanted most for its bytes, in whole blocks.
    let mut wanted: Vec<usize> = (0..objects).filter(|object| counts[*object] > 1).collect();
    wanted.sort_by_key(|object| std::cmp::Reverse(counts[*object]));
    let mut room = cache_bytes;
    let possible: u64 = wanted
        .iter()
        .filter(|object| {
            let fits = room.checked_sub((size(**object) as u64).next_multiple_of(16 << 10));
            room = fits.unwrap_or(room);
            fits.is_some()
        })
        .map(|object| (counts[*object] - 1) * size(*object) as u64)
        .sum();
    let from_origin = sent.load(Ordering::SeqCst);
    let saved = all.saturating_sub(from_origin) as f64 / possible as f64;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    eprintln!(
        "{requests} requests for {objects} things, {:.0} MB, with a cache of {:.0} MB: {:.0} MB from the origin, {:.3} of what \
         could be saved; {:.0} requests/s",
        megabytes(all),
        megabytes(cache_bytes),
        megabytes(from_origin),
        saved,
        requests as f64 / took.as_secs_f64()
    );
    assert_eq!(edge.worker.counts().failed, 0);
    saved
}

/// Goal: what a large cache has takes little memory, and is there soon after a restart. Method: things of 2 kB, since what is known of
/// each takes the same whatever its size is; `./dev cache` has the same with 10 GB.
#[test]
#[ignore = "a measurement"]
fn a_large_cache_takes_little_memory_and_is_there_soon() {
    let (origin, sent) = sized_origin();
    let mut edge = Edge::start_with(origin, 10 << 30, |_| {});
    let port = edge.port();
    thread::scope(|scope| {
        for first in 0..8 {
            scope.spawn(move || {
                let mut client = Client::connect(port);
                (first..STORED).step_by(8).for_each(|object| client.get_sized(object, STORED_BYTES));
            });
        }
    });
    let (full, before) = (edge.worker.memory_kib("RssAnon:"), sent.load(Ordering::SeqCst));
    edge = edge.restart();
    let begun = Instant::now();
    Client::connect(port).get_sized(0, STORED_BYTES);
    let first = begun.elapsed();
    (0..STORED).step_by(STORED / 100).for_each(|object| Client::connect(port).get_sized(object, STORED_BYTES));
    assert_eq!(sent.load(Ordering::SeqCst), before, "the origin is asked again");
    let again = edge.worker.memory_kib("RssAnon:");
    eprintln!("{STORED} things: {full} KiB, {again} KiB after a restart, the first hit after {first:?}");
    assert!(full.max(again) <= MEMORY_KIB_MAX, "{full} and {again} KiB, {MEMORY_KIB_MAX} is the goal");
    assert!(first <= FIRST_HIT_MAX, "{first:?}, {FIRST_HIT_MAX:?} is the goal");
}

/// Bytes of each thing of a large cache.
const STORED_BYTES: usize = 2000;

/// Returns the bytes of a thing: from 1 to 64 kB, mostly few.
fn size(object: usize) -> usize {
    1000 << (object * 7 % 13 / 2)
}

/// Returns which things a log is for: the n-th most wanted one is wanted the n-th part as often as the first.
fn zipf(requests: usize, objects: usize) -> Vec<usize> {
    let mut sums: Vec<f64> = Vec::with_capacity(objects);
    for object in 0..objects {
        sums.push(sums.last().unwrap_or(&0.0) + 1.0 / (object + 1) as f64);
    }
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        // xorshift64*, so that each run has the same log.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    };
    let all = sums[objects - 1];
    (0..requests).map(|_| sums.partition_point(|sum| *sum < random() * all).min(objects - 1)).collect()
}

/// Starts a server for `/OBJECT/BYTES`. Returns its port, and how many bytes of bodies it has sent.
fn sized_origin() -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, sent) = (listener.local_addr().unwrap().port(), Arc::<AtomicU64>::default());
    let total = Arc::clone(&sent);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, total) = (stream.unwrap(), Arc::clone(&total));
            thread::spawn(move || {
                let Some(request) = super::head_of(&mut stream) else { return };
                let bytes = super::path_of(&request).rsplit('/').next().and_then(|bytes| bytes.parse().ok());
                let answer = super::kept("", &"x".repeat(bytes.unwrap_or(0)));
                total.fetch_add(bytes.unwrap_or(0) as u64, Ordering::SeqCst);
                let _ = stream.write_all(answer.as_bytes());
            });
        }
    });
    (port, sent)
}

/// A connection for one request after the other.
struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(port: u16) -> Client {
        Client(BufReader::new(super::super::connect(port)))
    }

    fn get(&mut self, object: usize) {
        self.get_sized(object, size(object));
    }

    /// Asks for a thing, and reads all of it.
    fn get_sized(&mut self, object: usize, bytes: usize) {
        let request = format!("GET /{object}/{bytes} HTTP/1.1\r\nhost: edge.test\r\n\r\n");
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        let (mut line, mut length) = (String::new(), 0);
        self.0.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        while line != "\r\n" {
            line.clear();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "it ended in the head");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        assert_eq!(length, bytes);
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        assert!(body.iter().all(|byte| *byte == b'x'));
    }
}
