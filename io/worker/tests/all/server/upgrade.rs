// SPDX-License-Identifier: Apache-2.0
//! Server modules that come and go while clients ask.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use netserv_model::RefusalKind;
use netserv_model::effect::ModuleSlot;
use netserv_patience::grown;
use netserv_wire::container::frames::ToWorker;

use super::http::read_response;
use super::{Spec, Worker, body, connect, get, status, wait_until_closed};

#[test]
fn an_upgrade_refuses_no_connection_and_breaks_none() {
    let spec = Spec::new().property("version", "0");
    let mut worker = Worker::with(&spec);
    let asked = Arc::new(AtomicU32::new(0));
    let port = spec.port();
    let clients: Vec<_> = (0..4)
        .map(|kind| {
            let asked = Arc::clone(&asked);
            std::thread::spawn(move || {
                let mut kept = connect(port);
                let mut last = 0;
                while last < 10 {
                    let version = if kind % 2 == 0 {
                        kept.write_all(b"GET /version HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
                        let answer = read_response(&mut kept);
                        assert_eq!(status(&answer), 200);
                        body(&answer)
                    } else {
                        let (status, version) = get(port, "/version");
                        assert_eq!(status, 200);
                        version
                    };
                    let version: u32 = version.parse().unwrap();
                    assert!(version >= last, "version {version} after {last}");
                    last = version;
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for version in 1..=10_u8 {
        while asked.load(Ordering::Relaxed) < 20 * u32::from(version) {
            std::thread::yield_now();
        }
        // As the node does it: beside the old version, which then goes.
        let [new, old] = [version % 2, (version + 1) % 2];
        worker.load(&spec.clone().property("version", &version.to_string()).with(|spec| spec.slot = new));
        worker.send(&ToWorker::Unload { slot: ModuleSlot(old) }, None);
    }
    clients.into_iter().for_each(|client| client.join().unwrap());
}

#[test]
fn requests_end_with_the_version_that_they_began_with() {
    let spec = Spec::new();
    let mut worker = Worker::with(&spec);
    let port = spec.port();
    let under_way = std::thread::spawn(move || get(port, "/sleep?500"));
    worker.wait_for_requests(1);
    worker.load(&spec.clone().property("version", "new"));
    assert_eq!(get(port, "/version").1, "new");
    assert_eq!(under_way.join().unwrap(), (200, "slept".to_owned()));
}

#[test]
fn an_unloaded_module_answers_what_is_under_way_and_no_more() {
    let spec = Spec::new();
    let mut worker = Worker::with(&spec);
    let port = spec.port();
    let mut idle = connect(port);
    idle.write_all(b"GET /version HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    read_response(&mut idle);
    let under_way = std::thread::spawn(move || get(port, "/sleep?800"));
    worker.wait_for_requests(2);
    worker.send(&ToWorker::Unload { slot: ModuleSlot(0) }, None);
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut idle, &mut rest).unwrap();
    assert!(rest.is_empty() && !under_way.is_finished(), "an idle connection ends at once");
    assert_eq!(under_way.join().unwrap(), (200, "slept".to_owned()));
    wait_until_closed(port);
    // The port is free for another module.
    worker.load(&spec.clone().with(|spec| spec.name = "example.org/other@1.0.0".to_owned()));
    assert_eq!(get(port, "/seen").0, 200);
}

/// Goal: what a node does when a user's last module is removed costs no request. Method: `unload` and `shutdown` at once.
#[test]
fn an_unloaded_module_answers_what_is_under_way_also_if_its_worker_is_shut_down() {
    let spec = Spec::new();
    let mut worker = Worker::with(&spec);
    let port = spec.port();
    let under_way = std::thread::spawn(move || get(port, "/sleep?1000"));
    worker.wait_for_requests(1);
    worker.send(&ToWorker::Unload { slot: ModuleSlot(0) }, None);
    worker.send(&ToWorker::Shutdown, None);
    let begun = Instant::now();
    assert_eq!(under_way.join().unwrap(), (200, "slept".to_owned()));
    assert!(worker.worker.wait().unwrap().success());
    assert!(begun.elapsed() < grown(Duration::from_secs(4)), "nothing is under way any more: {:?}", begun.elapsed());
}

#[test]
fn a_worker_with_nothing_under_way_ends_at_once() {
    let spec = Spec::new();
    let mut worker = Worker::with(&spec);
    assert_eq!(get(spec.port(), "/seen").0, 200);
    worker.load(&spec);
    worker.send(&ToWorker::Unload { slot: ModuleSlot(0) }, None);
    worker.send(&ToWorker::Shutdown, None);
    let begun = Instant::now();
    assert!(worker.worker.wait().unwrap().success());
    assert!(begun.elapsed() < grown(Duration::from_secs(4)), "{:?}", begun.elapsed());
}

#[test]
fn a_worker_that_is_shut_down_waits_for_requests_but_not_forever() {
    let spec = Spec::new().with(|spec| spec.limits.request_ms = 60_000);
    let mut worker = Worker::with(&spec);
    let port = spec.port();
    let [quick, endless] = ["/sleep?400", "/drip"].map(|path| std::thread::spawn(move || get(port, path)));
    worker.wait_for_requests(2);
    worker.send(&ToWorker::Shutdown, None);
    let begun = Instant::now();
    assert_eq!(quick.join().unwrap(), (200, "slept".to_owned()));
    assert!(worker.worker.wait().unwrap().success());
    assert!((3..8).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    endless.join().unwrap();
}

#[test]
fn a_port_is_one_modules() {
    let spec = Spec::new();
    let mut worker = Worker::with(&spec);
    let other = spec.clone().with(|spec| {
        spec.slot = 1;
        spec.name = "example.org/other@1.0.0".to_owned();
    });
    let (kind, detail) = worker.refused(&other);
    assert_eq!(kind, RefusalKind::PortTaken);
    assert!(detail.contains(&spec.port().to_string()), "{detail}");
    assert_eq!(get(spec.port(), "/seen").0, 200);
    let elsewhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.with(|spec| spec.listen = vec![elsewhere.local_addr().unwrap().port()]);
    assert_eq!(worker.refused(&taken).0, RefusalKind::PortTaken);
}

#[test]
fn a_new_version_that_fails_leaves_the_old_one() {
    let spec = Spec::new().property("version", "old");
    let mut worker = Worker::with(&spec);
    let beside = spec.clone().property("version", "new").with(|spec| spec.slot = 1);
    let too_large = beside.clone().with(|spec| spec.limits.memory_bytes = 65_536);
    assert_eq!(worker.refused(&too_large).0, RefusalKind::MemoryLimit);
    assert_eq!(get(spec.port(), "/version").1, "old");
    // A node that thinks better of it takes the new one away, and the old one has its ports and connections again.
    let mut kept = connect(spec.port());
    for (slot, version) in [(None, "new"), (Some(1), "old")] {
        match slot {
            None => worker.load(&beside),
            Some(slot) => worker.send(&ToWorker::Unload { slot: ModuleSlot(slot) }, None),
        }
        while get(spec.port(), "/version").1 != version {}
        kept.write_all(b"GET /version HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
        assert_eq!(body(&read_response(&mut kept)), version);
    }
}

#[test]
fn a_module_loaded_over_itself_ends_if_it_fails() {
    let spec = Spec::new();
    let mut worker = Worker::with(&spec);
    let too_large = spec.clone().with(|spec| spec.limits.memory_bytes = 65_536);
    assert_eq!(worker.refused(&too_large).0, RefusalKind::MemoryLimit);
    wait_until_closed(spec.port());
    worker.load(&spec);
    assert_eq!(get(spec.port(), "/seen").0, 200);
}

#[test]
fn ports_change_with_the_version() {
    let spec = Spec::new();
    let mut worker = Worker::with(&spec);
    let [kept, old] = [spec.port(), super::free_port()];
    worker.load(&spec.clone().with(|spec| spec.listen = vec![kept, old]));
    assert_eq!((get(kept, "/seen").0, get(old, "/seen").0), (200, 200));
    worker.load(&spec);
    assert_eq!(get(kept, "/seen").0, 200);
    wait_until_closed(old);
}
