// SPDX-License-Identifier: Apache-2.0
//! What modules do with their connections beyond answering: `netserv:tcp@1.1.0`, and 1.0.0 beside it.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use netserv_model::RefusalKind;
use netserv_model::effect::ModuleSlot;
use netserv_patience::grown;
use netserv_wire::container::frames::{FromWorker, ToWorker};
use netserv_worker_server::limits::STOP_TIME_MAX;
use netserv_worker_server::origin::Origin;
use netserv_worker_server::tcp::service::Times;

use super::slow::{Server, Service};
use super::{LONG, Spec, Worker, compiled, connect};

const MANY: u32 = 500;

#[test]
fn a_module_of_the_first_version_runs_as_it_did() {
    let spec = Spec::of(compiled("tcp_tests_first"));
    let _worker = Worker::with(&spec);
    let mut client = connect(spec.port());
    client.write_all(b"hello").unwrap();
    let mut all = String::new();
    while all.len() < "HELLOlater".len() {
        all.push_str(&said(&mut client));
    }
    assert!(all.contains("HELLO") && all.contains("later"), "{all}");
}

#[test]
fn what_a_module_serves_never_gets_to_the_server() {
    let service = tests(&[("decision", "serve")], &[]);
    let (listener, origin) = server();
    listener.set_nonblocking(true).unwrap();
    let mut client = service.connect(Some(origin));
    assert_eq!(ask(&mut client, "hello"), "hello");
    assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

/// Goal: a connection goes on with the next version if both agree, and else ends with the old one, which answers until then.
#[test]
fn a_connection_is_handed_over_if_both_versions_agree() {
    for (export, import, expected) in [
        ("all of it", "", "new 9 127.0.0.1"),
        ("largest", "", "new 65536 127.0.0.1"),
        ("large", "", "old "),
        ("", "", "old "),
        ("all of it", "refuse", "old "),
    ] {
        let spec = Spec::of(compiled("tcp_tests")).property("version", "old").property("export", export);
        let mut worker = Worker::with(&spec);
        let mut client = connect(spec.port());
        assert_eq!(ask(&mut client, "hello"), "hello");
        let next = spec.clone().property("version", "new").property("import", import).with(|next| next.slot = 1);
        worker.load(&next);
        assert_eq!(ask(&mut client, "who"), "old ", "nothing is handed over before the old version leaves");
        worker.send(&ToWorker::Unload { slot: ModuleSlot(0) }, None);
        if expected.starts_with("new") {
            assert_eq!(said(&mut client), "imported");
        } else {
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(ask(&mut client, "who"), expected, "{export}, {import}");
        // A new one is the new version's, and has another number.
        assert!(ask(&mut connect(spec.port()), "who").starts_with("new"));
        let begun = Instant::now();
        client.set_read_timeout(Some(LONG)).unwrap();
        if expected.starts_with("old") {
            assert!(client.read(&mut [0; 9]).map_or(true, |length| length == 0), "it ends with its version");
            assert!(begun.elapsed() <= grown(STOP_TIME_MAX + Duration::from_secs(2)));
        }
    }
}

/// Goal: a module that is gone goes on with the connections that it has, for which it may open others, until they end, and takes no more.
/// The node hears of that, or of its failure.
#[test]
fn a_module_goes_on_with_what_it_has_when_it_is_gone() {
    let (listener, _) = server();
    let address = listener.local_addr().unwrap();
    for fails in [false, true] {
        let spec =
            Spec::of(compiled("tcp_tests")).property("version", "old").with(|spec| spec.connect = vec!["tcp".into()]);
        let mut worker = Worker::with(&spec);
        let mut client = connect(spec.port());
        assert_eq!(ask(&mut client, "hello"), "hello");
        worker.send(&ToWorker::Drain { slot: ModuleSlot(0), finish: true }, None);
        std::thread::sleep(if fails { Duration::from_millis(300) } else { STOP_TIME_MAX + Duration::from_secs(1) });
        assert!(TcpStream::connect(("127.0.0.1", spec.port())).is_err(), "it takes no others");
        assert_eq!(ask(&mut client, "who"), "old ");
        if fails {
            client.write_all(b"trap").unwrap();
            assert_eq!(worker.failed(0).0, RefusalKind::Trapped);
            continue;
        }
        client.write_all(format!("open {address}").as_bytes()).unwrap();
        let (mut opened, _) = listener.accept().unwrap();
        assert_eq!(said(&mut opened), "hello from the module");
        drop((client, opened));
        assert_eq!(worker.answer(), FromWorker::Drained { slot: ModuleSlot(0) });
    }
}

/// Goal: a module that comes again takes over the connections that the one that was gone goes on with.
#[test]
fn what_a_module_finishes_is_the_next_versions_if_there_is_one_again() {
    let spec = Spec::of(compiled("tcp_tests")).property("version", "old").property("export", "all of it");
    let mut worker = Worker::with(&spec);
    let mut client = connect(spec.port());
    assert_eq!(ask(&mut client, "hello"), "hello");
    worker.send(&ToWorker::Drain { slot: ModuleSlot(0), finish: true }, None);
    assert_eq!(ask(&mut client, "who"), "old ");
    worker.load(&spec.clone().property("version", "new").with(|next| next.slot = 1));
    worker.send(&ToWorker::Unload { slot: ModuleSlot(0) }, None);
    assert_eq!(said(&mut client), "imported");
    assert_eq!(ask(&mut client, "who"), "new 9 127.0.0.1");
}

/// Goal: a version that traps or stalls while connections are handed over costs its own connections only.
#[test]
fn a_version_that_fails_at_handing_over_costs_its_own_connections() {
    for (export, import, fails) in [("trap", "", 0), ("stall", "", 0), ("all of it", "trap", 1)] {
        let spec = Spec::of(compiled("tcp_tests")).property("version", "old").property("export", export);
        let spec = spec.with(|spec| spec.limits.request_ms = 300);
        let mut worker = Worker::with(&spec);
        let mut client = connect(spec.port());
        assert_eq!(ask(&mut client, "hello"), "hello");
        let next = spec.clone().property("version", "new").property("import", import).with(|next| next.slot = 1);
        worker.load(&next);
        worker.send(&ToWorker::Unload { slot: ModuleSlot(0) }, None);
        if fails == 0 {
            assert!(client.read(&mut [0; 9]).map_or(true, |length| length == 0), "its connection is reset");
            assert_eq!(ask(&mut connect(spec.port()), "who"), "new ");
        } else {
            assert_eq!(worker.failed(fails).0, RefusalKind::Trapped);
            assert_eq!(ask(&mut client, "who"), "old ");
        }
    }
}

/// Goal: connections that go on without the module go on over an upgrade, too. Method: one that the old version lets go on; the new one
/// traps if it is told of the end of what it does not know.
#[test]
fn a_connection_that_goes_on_without_the_module_goes_on_over_an_upgrade() {
    let old = tests(&[("decision", "splice")], &[]);
    let new = tests(&[("strict", "yes"), ("version", "new")], &[]);
    let (listener, origin) = server();
    let mut client = old.connect(Some(origin));
    let (mut opened, _) = listener.accept().unwrap();
    let mut exchange = |client: &mut TcpStream, text: &str| {
        client.write_all(text.as_bytes()).unwrap();
        assert_eq!(said(&mut opened), text);
        opened.write_all(text.as_bytes()).unwrap();
        assert_eq!(said(client), text);
    };
    exchange(&mut client, "before");
    old.runtime.block_on(old.service.hand_over(&new.service));
    exchange(&mut client, "meanwhile");
    old.runtime.block_on(old.service.stop());
    exchange(&mut client, "after");
    drop((client, opened));
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(ask(&mut new.connect(None), "who"), "new ");
}

/// Goal: no connection is told to a version that has handed over its own. Method: one that comes while the old version is at work.
#[test]
fn a_connection_that_waits_for_a_hand_over_is_the_next_versions() {
    let (old, new) = (tests(&[("version", "old")], &[]), tests(&[("version", "new")], &[]));
    let mut busy = old.connect(None);
    busy.write_all(b"block 600").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let (service, heir) = (Arc::clone(&old.service), Arc::clone(&new.service));
    let handed_over = old.runtime.spawn(async move { service.hand_over(&heir).await });
    std::thread::sleep(Duration::from_millis(100));
    let mut client = old.connect(None);
    assert_eq!(said(&mut busy), "blocked");
    old.runtime.block_on(handed_over).unwrap();
    assert_eq!(ask(&mut client, "who"), "new ");
}

/// Goal: what waits for clients is bounded for all versions of a module together. Method: clients of the old version that take nothing, which
/// are handed over, leave one of the new version less than the first of them had.
#[test]
fn what_waits_in_connections_that_were_handed_over_counts() {
    let spec = Spec::of(compiled("tcp_tests")).property("export", "it");
    let mut worker = Worker::with(&spec);
    let mut greedy: Vec<TcpStream> = (0..60).map(|_| connect(spec.port())).collect();
    let fill = |client: &mut TcpStream, worker: &mut Worker| -> u32 {
        client.write_all(b"fill").unwrap();
        let line = worker.wait_for_line(" bytes wait");
        line.split(' ').next().unwrap().parse().unwrap()
    };
    let waiting: Vec<u32> = greedy.iter_mut().map(|client| fill(client, &mut worker)).collect();
    worker.load(&spec.clone().with(|next| next.slot = 1));
    worker.send(&ToWorker::Unload { slot: ModuleSlot(0) }, None);
    std::thread::sleep(Duration::from_millis(500));
    let left = fill(&mut connect(spec.port()), &mut worker);
    assert!(left < waiting[0] / 2 && waiting[0] <= 1 << 20, "{left} bytes, and of the first {}", waiting[0]);
}

#[test]
fn a_module_opens_connections_where_it_may() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let service =
        tests(&[], &[&format!("tcp dst 127.0.0.1/32 port {}", address.port()), "tcp dst 127.0.0.1/32 port 1"]);
    let mut client = service.connect(None);
    for (remote, expected) in [
        ("nowhere", "invalid"),
        ("127.0.0.1:0", "invalid"),
        ("127.0.0.2:1", "not-permitted"),
        ("[::1]:1", "not-permitted"),
        // Nobody listens there.
        ("127.0.0.1:1", "closed"),
    ] {
        assert_eq!(ask(&mut client, &format!("open {remote}")), expected, "{remote}");
    }
    client.write_all(format!("open {address}").as_bytes()).unwrap();
    let (mut opened, _) = listener.accept().unwrap();
    assert_eq!(said(&mut opened), "hello from the module");
    opened.write_all(b"hello from the server").unwrap();
    let mut heard = String::new();
    while !heard.contains("server") {
        heard.push_str(&said(&mut client));
    }
    assert_eq!(heard, "openedhello from the server");
    // Its end is an event, and so is its client's.
    drop(opened);
    assert_eq!(said(&mut client), "closed");
    client.write_all(format!("open {address}").as_bytes()).unwrap();
    let (mut opened, _) = listener.accept().unwrap();
    assert_eq!(said(&mut opened), "hello from the module");
    drop(client);
    assert_eq!(opened.read(&mut [0]).unwrap(), 0);
}

#[test]
fn opened_connections_count_among_the_modules() {
    let (listener, _) = server();
    let address = listener.local_addr().unwrap();
    let service = Service::of("tcp_tests", Times::default(), 2, &[], &["tcp"]);
    let mut client = service.connect(None);
    assert_eq!(ask(&mut client, &format!("open {address}")), "opened");
    assert_eq!(ask(&mut client, &format!("open {address}")), "quota");
}

#[test]
fn a_paused_side_is_not_read_until_it_is_to() {
    let service = tests(&[], &[]);
    let mut client = service.connect(None);
    let begun = Instant::now();
    client.write_all(b"pause 300").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    client.write_all(b"after").unwrap();
    let mut heard = String::new();
    while heard.len() < "resumedafter".len() {
        heard.push_str(&said(&mut client));
    }
    assert_eq!(heard, "resumedafter");
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

/// Goal: clients that take nothing leave the module's others theirs, who get messages of some size at once.
#[test]
fn clients_that_take_nothing_leave_others_their_share() {
    let service = tests(&[], &[]);
    let mut greedy: Vec<TcpStream> = (0..60).map(|_| service.connect(None)).collect();
    for client in &mut greedy {
        client.write_all(b"fill").unwrap();
    }
    let mut good = service.connect(None);
    let queued = |client: &mut TcpStream| ask(client, "queued");
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(1) {
        assert_eq!(queued(&mut good), "0");
    }
    let message = "m".repeat(60 * 1024);
    for _ in 0..20 {
        good.write_all(message.as_bytes()).unwrap();
        let mut answer = vec![0; message.len()];
        good.read_exact(&mut answer).unwrap();
        assert!(answer == message.as_bytes());
    }
    // Who takes what waits is told that there is room.
    let mut all = Vec::new();
    while !all.ends_with(b"room") {
        all.extend(said(&mut greedy[0]).into_bytes());
    }
    assert!(all[..all.len() - 4].iter().all(|byte| *byte == b'f') && all.len() > 100_000, "{}", all.len());
}

/// Goal: what a module watches holds up no other connection, which a call that blocks does.
#[test]
fn what_is_watched_holds_up_nobody() {
    let service = tests(&[], &[]);
    let [mut one, mut other] = [service.connect(None), service.connect(None)];
    let took = |one: &mut TcpStream, other: &mut TcpStream, how: &str, answer: &str| {
        one.write_all(how.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let begun = Instant::now();
        let mut asked = 0_u32;
        while asked < 20 {
            assert_eq!(ask(other, "hello"), "hello");
            asked += 1;
        }
        let took = begun.elapsed();
        assert_eq!(said(one), answer);
        took
    };
    let blocked = took(&mut one, &mut other, "block 600", "blocked");
    assert!(blocked > Duration::from_millis(400), "{blocked:?}");
    // On a busy machine 20 answers may take as long as what is watched; once they do not.
    let held_up = (0..5).all(|_| took(&mut one, &mut other, "watch 600", "watched") > Duration::from_millis(400));
    assert!(!held_up);
    // More than 64 at a time are too many.
    let mut clients: Vec<TcpStream> = (0..70).map(|_| service.connect(None)).collect();
    clients.iter_mut().for_each(|client| client.write_all(b"watch 1000").unwrap());
    let answers: Vec<String> = clients.iter_mut().map(said).collect();
    let count = |wanted: &str| answers.iter().filter(|answer| *answer == wanted).count();
    assert_eq!((count("watched"), count("quota")), (64, 6), "{answers:?}");
}

/// Goal: what is watched is told of while other connections want the module all the time.
#[test]
fn what_is_watched_is_told_to_a_module_that_is_busy() {
    let service = tests(&[], &[]);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..30 {
            scope.spawn(|| {
                let mut client = service.connect(None);
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    assert_eq!(ask(&mut client, "block 5"), "blocked");
                }
            });
        }
        std::thread::sleep(Duration::from_millis(100));
        let mut client = service.connect(None);
        client.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        client.write_all(b"watch 100").unwrap();
        let (begun, mut answer) = (Instant::now(), [0; 7]);
        let told = client.read_exact(&mut answer);
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        told.unwrap();
        assert_eq!(&answer, b"watched", "after {:?}", begun.elapsed());
    });
}

fn tests(properties: &[(&str, &str)], connect: &[&str]) -> Service {
    Service::of("tcp_tests", Times::default(), MANY, properties, connect)
}

fn server() -> (TcpListener, Arc<dyn Origin>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    (listener, Arc::new(Server(address)))
}

pub fn ask(client: &mut TcpStream, text: &str) -> String {
    client.write_all(text.as_bytes()).unwrap();
    said(client)
}

/// Returns what comes next.
fn said(stream: &mut TcpStream) -> String {
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut buffer = vec![0; 256 * 1024];
    let length = stream.read(&mut buffer).unwrap();
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}
