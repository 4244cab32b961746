// SPDX-License-Identifier: Apache-2.0
//! What active-cdn's user tells it, and what it tells its user.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use netserv_model::control::ControlMessage;
use netserv_model::effect::ModuleSlot;
use netserv_wire::container::frames::{FromWorker, ToWorker};

use super::super::Worker;
use super::{CACHE_BYTES, Edge, LONG, Origin, body, is_hit, kept, path_of, text};

/// Goal: what is to be warm is there before anybody asks, also if it is told while other things are fetched, and nobody is asked for
/// what is there or is none of ours.
#[test]
fn what_is_told_to_be_warm_is_there() {
    let origin = Origin::start(|request, stream| {
        let answer = match path_of(request) {
            "/none" => "HTTP/1.1 404 Not Found\r\ncache-control: no-store\r\ncontent-length: 0\r\n\r\n".to_owned(),
            path => kept("", &format!("this is {path}")),
        };
        let _ = stream.write_all(answer.as_bytes());
    });
    let mut edge = Edge::start(origin.port);
    let own = format!("127.0.0.1:{}", origin.port);
    tell(&mut edge.worker, "warm", 1, &format!("/a\n{own}/b?c\nhttp://{own}/d\n\n/a\n"));
    tell(&mut edge.worker, "warm", 2, "/none\nftp://x/\nhttp://other.test:1/x\n/e\n");
    wait_for(&mut edge.worker, "warm-errors", 3);
    assert_eq!(wait_for(&mut edge.worker, "warmed", 5), 5);
    assert_eq!(origin.count(), 5);
    for path in ["/a", "/b?c", "/d", "/e"] {
        let answer = edge.ask(path, "");
        assert!(is_hit(&answer) && body(&answer) == format!("this is {path}"), "{answer}");
    }
    assert_eq!(origin.count(), 5);
    // What waits is kept if the worker ends, as far as it was on the disk; what comes later is heard in any case.
    let mut edge = edge.restart();
    tell(&mut edge.worker, "warm", 3, "/f");
    wait_for(&mut edge.worker, "warmed", 1);
    assert!(is_hit(&edge.ask("/f", "")));
}

/// Goal: a message that many wait for is heard while something large is fetched, and further ones are taken.
#[test]
fn a_long_fetch_does_not_keep_messages_waiting() {
    let goes_on = Arc::new(AtomicBool::new(false));
    let go = Arc::clone(&goes_on);
    let origin = Origin::start(move |request, stream| {
        let answer = kept("", &text(100_000));
        let (begin, rest) = answer.as_bytes().split_at(50_000);
        let _ = stream.write_all(begin);
        while path_of(request) == "/film" && !go.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = stream.write_all(rest);
    });
    let mut edge = Edge::start(origin.port);
    edge.ask_until_hit("/page");
    tell(&mut edge.worker, "warm", 1, "/film");
    let begun = Instant::now();
    while origin.count() < 2 {
        assert!(begun.elapsed() < LONG);
        thread::sleep(Duration::from_millis(5));
    }
    for number in 0..100 {
        tell(&mut edge.worker, "purge", 2 + number, "/nothing");
        if number % 10 == 9 {
            // Whoever asks hears it.
            assert!(is_hit(&edge.ask("/page", "")));
        }
    }
    let purge = format!("127.0.0.1:{}/page", origin.port);
    tell(&mut edge.worker, "purge", 200, &purge);
    assert!(!is_hit(&edge.ask("/page", "")), "the very next request");
    goes_on.store(true, Ordering::SeqCst);
    wait_for(&mut edge.worker, "warmed", 1);
}

/// Goal: what is fetched beforehand does not keep the totals of what is counted meanwhile.
#[test]
fn totals_are_made_while_something_long_is_fetched() {
    let origin = Origin::start(|request, stream| {
        if path_of(request) != "/film" {
            return drop(stream.write_all(kept("", "page").as_bytes()));
        }
        let _ = stream.write_all(kept("", &"a".repeat(100_000)).split_at(1000).0.as_bytes());
        while stream.write_all(b"a").is_ok() {
            thread::sleep(Duration::from_millis(100));
        }
    });
    let own = format!("127.0.0.1:{}", origin.port);
    let mut edge = Edge::start_with(origin.port, CACHE_BYTES, |spec| *spec = spec.clone().property("hosts", &own));
    tell(&mut edge.worker, "warm", 1, "/film");
    let begun = Instant::now();
    while origin.count() < 1 {
        assert!(begun.elapsed() < LONG);
        thread::sleep(Duration::from_millis(5));
    }
    edge.ask_until_hit("/page");
    assert!(wait_for(&mut edge.worker, "hits", 1) >= 1);
}

/// Goal: from the moment at which a purge is told, no request gets what was there before, however many come at a time.
/// Method: each version of a page has its number; it changes, the purge is told, and what is asked for from then on has it.
#[test]
fn nobody_gets_what_was_purged() {
    gets_nothing_purged("");
}

/// Goal: the same of a page with variants, whose places are known only when the origin has answered.
#[test]
fn nobody_gets_a_variant_that_was_purged() {
    gets_nothing_purged("vary: accept-language\r\n");
}

fn gets_nothing_purged(vary: &'static str) {
    let version = Arc::new(AtomicUsize::new(0));
    let said = Arc::clone(&version);
    let origin = Origin::start(move |_, stream| {
        let lines = format!("surrogate-key: page\r\n{vary}");
        let answer = kept(&lines, &said.load(Ordering::SeqCst).to_string());
        let _ = stream.write_all(answer.as_bytes());
    });
    let mut edge = Edge::start(origin.port);
    let port = edge.port();
    let told = Arc::new(AtomicUsize::new(0));
    let (is_over, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let readers: Vec<_> = (0..6)
        .map(|number| {
            let (told, is_over, asked) = (Arc::clone(&told), Arc::clone(&is_over), Arc::clone(&asked));
            thread::spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    let least = told.load(Ordering::SeqCst);
                    // Some say more, and get an instance each time.
                    let more = if number % 2 == 0 { "" } else { "accept: a\r\nif-none-match: \"x\"\r\n" };
                    let request = format!("GET /page HTTP/1.1\r\nhost: edge.test\r\n{more}connection: close\r\n\r\n");
                    let answer = super::talk(port, request.as_bytes());
                    let got = body(&answer).parse::<usize>();
                    if !got.is_ok_and(|got| got >= least) {
                        return Err(format!("{least} was told: {answer}"));
                    }
                    asked.fetch_add(1, Ordering::SeqCst);
                }
                Ok(())
            })
        })
        .collect();
    let begun = Instant::now();
    for number in 1.. {
        let is_enough = number > 40 && asked.load(Ordering::SeqCst) > 60;
        if is_enough || begun.elapsed() > LONG {
            break;
        }
        version.store(number, Ordering::SeqCst);
        let lines = ["#page".to_owned(), format!("127.0.0.1:{}/page", origin.port)];
        tell(&mut edge.worker, "purge", number as u64, &lines[number % 2]);
        told.store(number, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(10));
    }
    is_over.store(true, Ordering::SeqCst);
    for reader in readers {
        reader.join().unwrap().unwrap_or_else(|why: String| panic!("{why}\n{:?}", edge.worker.log));
    }
    let asked = asked.load(Ordering::SeqCst);
    eprintln!("{asked} answers, {} purges in {:?}", told.load(Ordering::SeqCst), begun.elapsed());
    assert!(asked > 60 && edge.worker.counts().failed == 0, "{asked}: {:?}", edge.worker.log);
}

/// Goal: a purge takes all variants, also if the cache has forgotten in the meantime what selects them.
/// Method: a cache of 64 blocks, pages with two variants, and other things that push out what was used first: some pages, and of one of them
/// in one of three rounds all but its last variant.
#[test]
fn a_purge_takes_variants_whose_names_are_forgotten() {
    let version = Arc::new(AtomicUsize::new(0));
    let said = Arc::clone(&version);
    let origin = Origin::start(move |request, stream| {
        let lines = if path_of(request).starts_with("/page") { "vary: accept-language\r\n" } else { "" };
        let answer = kept(lines, &said.load(Ordering::SeqCst).to_string());
        let _ = stream.write_all(answer.as_bytes());
    });
    let mut edge = Edge::start_with(origin.port, 1 << 20, |_| {});
    for round in 0..3 {
        let pages: Vec<String> = (0..10).map(|page| format!("/page-{round}-{page}")).collect();
        let ask_all = |edge: &Edge| {
            let ask = |page: &String, language: &str| edge.ask(page, &format!("accept-language: {language}\r\n"));
            pages.iter().flat_map(|page| ["de", "en"].map(|language| ask(page, language))).collect::<Vec<_>>()
        };
        ask_all(&edge);
        for other in 0..48 + round {
            edge.ask(&format!("/other-{round}-{other}"), "");
        }
        let latest = version.fetch_add(1, Ordering::SeqCst) + 1;
        let lines: Vec<String> = pages.iter().map(|page| format!("127.0.0.1:{}{page}", origin.port)).collect();
        tell(&mut edge.worker, "purge", 1 + round, &lines.join("\n"));
        for answer in ask_all(&edge) {
            assert_eq!(body(&answer), latest.to_string(), "{round}: {answer}");
        }
    }
}

/// Goal: what the origin said before a purge is not kept after it, also if it was on its way, in whatever way it is stored.
#[test]
fn a_purge_reaches_what_is_on_its_way() {
    let version = Arc::new(AtomicUsize::new(0));
    let said = Arc::clone(&version);
    let origin = Origin::start(move |request, stream| {
        let version = said.load(Ordering::SeqCst);
        // It has read its database, and takes its time.
        thread::sleep(Duration::from_millis(300));
        let lines = if path_of(request) == "/plain" { "" } else { "vary: x-kind\r\n" };
        let _ = stream.write_all(kept(lines, &version.to_string()).as_bytes());
    });
    let mut edge = Edge::start(origin.port);
    let port = edge.port();
    let ask = move |path: &str, kind: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nhost: edge.test\r\nx-kind: {kind}\r\nconnection: close\r\n\r\n");
        body(&super::talk(port, request.as_bytes()))
    };
    for (number, (path, kind)) in [("/plain", "a"), ("/vary", "a"), ("/vary", "b")].into_iter().enumerate() {
        version.store(2 * number, Ordering::SeqCst);
        let before = origin.count();
        let asked = thread::spawn(move || ask(path, kind));
        while origin.count() == before {
            thread::sleep(Duration::from_millis(2));
        }
        thread::sleep(Duration::from_millis(50));
        version.store(2 * number + 1, Ordering::SeqCst);
        tell(&mut edge.worker, "purge", number as u64 + 1, &format!("127.0.0.1:{}{path}", origin.port));
        // Another one has the purge done while the first one waits for the origin.
        edge.ask("/other", "");
        let got: usize = asked.join().unwrap().parse().unwrap();
        assert!((2 * number..=2 * number + 1).contains(&got), "{got} {path}");
        for _ in 0..2 {
            assert_eq!(ask(path, kind), (2 * number + 1).to_string(), "{path} {kind}");
        }
    }
}

/// Goal: its user sees for each site how many requests the cache answered, and how many bytes it saved and did not save.
#[test]
fn sites_have_counters_of_their_own() {
    let origin = Origin::start(|request, stream| {
        let lines = if path_of(request) == "/once" { "x: y\r\n" } else { "" };
        let answer = kept(lines, &text(10_000));
        let answer = if path_of(request) == "/once" { answer.replace("max-age=600", "no-store") } else { answer };
        let _ = stream.write_all(answer.as_bytes());
    });
    let own = format!("127.0.0.1:{}", origin.port);
    let mut edge = Edge::start_with(origin.port, CACHE_BYTES, |spec| {
        spec.properties.insert("hosts".to_owned(), format!("www.example.org {own}"));
    });
    edge.ask_until_hit("/a");
    let before = counters(&mut edge.worker);
    let of =
        |counters: &BTreeMap<String, u64>, name: &str| counters.get(&format!("{name} {own}")).copied().unwrap_or(0);
    // By an instance, by the node, a part, and what is the same as ever.
    for lines in ["cache-control: max-age=600\r\n", "", "range: bytes=0-999\r\n", "if-modified-since: x\r\n", ""] {
        assert!(is_hit(&edge.ask("/a", lines)), "{lines}");
    }
    edge.ask("/once", "");
    let after = counters(&mut edge.worker);
    assert_eq!(of(&after, "hits") - of(&before, "hits"), 5);
    assert_eq!(of(&after, "saved-bytes") - of(&before, "saved-bytes"), 4 * 10_000 + 1000);
    assert_eq!((of(&after, "misses"), of(&after, "origin-bytes")), (2, 20_000));
    // The totals are made a moment later.
    wait_for(&mut edge.worker, "origin-bytes", 20_000);
    assert_eq!(wait_for(&mut edge.worker, "hits", 6), of(&after, "hits"));
}

fn tell(worker: &mut Worker, topic: &str, seq: u64, lines: &str) {
    let message = ControlMessage { topic: topic.parse().unwrap(), seq, body: lines.as_bytes().to_vec() };
    worker.send(&ToWorker::Tell { slot: ModuleSlot(0), message }, None);
    let answer = worker.answer();
    assert!(matches!(answer, FromWorker::Told { .. }), "{answer:?}");
}

/// Waits until a counter has at least a value. Returns what it has.
pub fn wait_for(worker: &mut Worker, name: &str, least: u64) -> u64 {
    let begun = Instant::now();
    loop {
        let value = counters(worker).get(name).copied().unwrap_or(0);
        if value >= least {
            return value;
        }
        assert!(begun.elapsed() < LONG, "{name} is {value}: {:?}", worker.log);
        thread::sleep(Duration::from_millis(10));
    }
}

pub fn counters(worker: &mut Worker) -> BTreeMap<String, u64> {
    worker.send(&ToWorker::Stats, None);
    let mut counted = BTreeMap::new();
    loop {
        match worker.answer() {
            FromWorker::Stats { counters, .. } => counted.extend(counters),
            FromWorker::StatsDone { .. } => return counted,
            other => panic!("{other:?}"),
        }
    }
}
