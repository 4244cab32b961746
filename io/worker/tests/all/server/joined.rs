// SPDX-License-Identifier: Apache-2.0
//! Many readers of one fill, through the sample `edge-cache`, beside nginx with the same file.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use netserv_worker::storage::CACHE_FILE;

use super::crowd::{Crowd, Origin};
use super::{Spec, Worker, compiled, free_port};

/// Readers of the long form, and bytes that each of them gets.
const READERS: usize = 5000;
const BYTES: usize = 1 << 20;
/// Bytes of what is asked for again and again.
const SMALL_BYTES: usize = 10_000;
/// Rounds of each of both, in turn.
const ROUNDS: usize = 3;
/// What all readers get in a second, against nginx.
const RATIO_MIN: f64 = 0.5;

#[test]
fn two_hundred_readers_are_one_fetch() {
    let origin = Origin::start(256 << 10);
    let (spec, mut worker, _store) = start(&origin);
    let told = Crowd::connect(spec.port(), 200).get(&origin, "/short");
    assert_eq!((told.whole, origin.fetches()), (200, 1), "{told:?}");
    assert_eq!(worker.counts().failed, 0);
}

/// Goal: many who want the same at a time get it from one fetch, and half as fast at least as nginx gives it to them. In release:
/// `./dev joined`.
#[test]
#[ignore = "a measurement"]
fn five_thousand_readers_are_one_fetch() {
    let origin = Origin::start(BYTES);
    let (spec, mut worker, _store) = start(&origin);
    let nginx = Nginx::start(&origin);
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let path = format!("/long-{round}");
        for (who, port, rates) in [("edge-cache", spec.port(), &mut own), ("nginx", nginx.port, &mut theirs)] {
            let before = origin.fetches();
            let told = Crowd::connect(port, READERS).get(&origin, &path);
            let rate = (told.whole * BYTES) as f64 / told.took.as_secs_f64() / 1e6;
            let fetches = origin.fetches() - before;
            eprintln!("{who}: {} of {} whole, {fetches} fetches, {rate:.0} MB/s; {told:?}", told.whole, READERS);
            assert_eq!(told.whole, READERS, "{who}");
            assert!(fetches == 1 || who == "nginx", "{fetches} fetches");
            rates.push(rate);
        }
        eprintln!("edge-cache has {} KiB of its own", worker.memory_kib("RssAnon:"));
    }
    assert_eq!(worker.counts().failed, 0);
    let ratio = median(&mut own) / median(&mut theirs);
    eprintln!("edge-cache / nginx: {ratio:.2}");
    assert!(ratio >= RATIO_MIN, "{ratio:.2} of nginx, {RATIO_MIN} is the goal");
}

/// Goal: what is small and in the cache is answered half as fast at least as nginx does. Method: `wrk` with 16 connections on one
/// core, each server alone on the other one. In release: `./dev joined`.
#[test]
#[ignore = "a measurement"]
fn small_hits_beside_nginx() {
    let origin = Origin::start(SMALL_BYTES);
    let (core, others) = (cores(&[0]), cores(&[1]));
    rustix::thread::sched_setaffinity(None, &core).unwrap();
    let (spec, mut worker, _store) = start(&origin);
    let nginx = Nginx::start(&origin);
    rustix::thread::sched_setaffinity(None, &others).unwrap();
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        own.push(per_second(&origin, spec.port()));
        theirs.push(per_second(&origin, nginx.port));
        eprintln!("edge-cache {:.0}, nginx {:.0} requests/s", own[own.len() - 1], theirs[theirs.len() - 1]);
    }
    assert_eq!((worker.counts().failed, origin.fetches()), (0, 2));
    let ratio = median(&mut own) / median(&mut theirs);
    eprintln!("edge-cache / nginx: {ratio:.2}");
    assert!(ratio >= RATIO_MIN, "{ratio:.2} of nginx, {RATIO_MIN} is the goal");
}

fn cores(numbers: &[usize]) -> rustix::thread::CpuSet {
    let mut set = rustix::thread::CpuSet::new();
    numbers.iter().for_each(|number| set.set(*number));
    set
}

/// Asks for the same again and again. Returns how many answers came in a second.
fn per_second(origin: &Origin, port: u16) -> f64 {
    let host = format!("Host: 127.0.0.1:{}", origin.port);
    let mut wrk = Command::new("wrk");
    wrk.args(["-t1", "-c16", "-d3s", "-H", &host]).arg(format!("http://127.0.0.1:{port}/small"));
    let output = wrk.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!text.contains("Non-2xx") && !text.contains("Socket errors"), "{text}");
    let rate = text.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"));
    rate.and_then(|rate| rate.trim().parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

/// Starts a worker with edge-cache before an origin. Its cache is there as long as the folder.
fn start(origin: &Origin) -> (Spec, Worker, tempfile::TempDir) {
    let store = tempfile::tempdir().unwrap();
    File::create(store.path().join(CACHE_FILE)).unwrap().set_len(256 << 20).unwrap();
    let spec = Spec::of(compiled("edge_cache")).with(|spec| {
        spec.connect = vec![format!("tcp dst 127.0.0.1/32 port {}", origin.port)];
        // As its manifest has them.
        spec.limits.request_ms = 60_000;
        spec.limits.requests = 512;
    });
    let mut worker = Worker::start_with(&[OsStr::new("--store"), store.path().as_os_str()]);
    worker.load(&spec);
    (spec, worker, store)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// An nginx that caches what comes from an origin, and is told to fetch it once.
struct Nginx {
    port: u16,
    process: Child,
    _folder: tempfile::TempDir,
}

impl Nginx {
    fn start(origin: &Origin) -> Nginx {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let config = folder.path().join("nginx.conf");
        std::fs::write(&config, Nginx::config(folder.path(), port, origin.port)).unwrap();
        let program = if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" };
        let mut command = Command::new(program);
        command.arg("-p").arg(folder.path()).arg("-c").arg(&config).stdin(Stdio::null());
        let process = command.spawn().unwrap();
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(10), "nginx does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        Nginx { port, process, _folder: folder }
    }

    fn config(folder: &Path, port: u16, origin: u16) -> String {
        let folder = folder.display();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        format!(
            "daemon off; worker_processes {processors}; user root; pid {folder}/pid; error_log stderr error;
            events {{ worker_connections 12000; }}
            http {{
                access_log off; sendfile on; tcp_nopush on; keepalive_timeout 60s; keepalive_requests 1000000;
                client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
                uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
                proxy_cache_path {folder}/cache levels=1:2 keys_zone=one:10m max_size=1g;
                server {{
                    listen 127.0.0.1:{port} backlog=4096;
                    location / {{
                        proxy_pass http://127.0.0.1:{origin}; proxy_cache one; proxy_cache_valid 200 10m;
                        proxy_cache_lock on; proxy_cache_lock_timeout 60s; proxy_cache_lock_age 60s;
                    }}
                }}
            }}"
        )
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let id = rustix::process::Pid::from_child(&self.process);
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let _ = self.process.wait();
    }
}
