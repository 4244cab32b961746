// SPDX-License-Identifier: Apache-2.0
//! nginx with its cache, Varnish and Apache Traffic Server, as what caches of ours are measured beside, and `wrk`, which asks all.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::free_port;

/// Starts servers on the first core, and keeps the calling thread, with whatever it starts, to the second one.
pub fn on_core<T>(start: impl FnOnce() -> T) -> T {
    rustix::thread::sched_setaffinity(None, &core(0)).unwrap();
    let started = start();
    rustix::thread::sched_setaffinity(None, &core(1)).unwrap();
    started
}

fn core(number: usize) -> rustix::thread::CpuSet {
    let mut set = rustix::thread::CpuSet::new();
    set.set(number);
    set
}

/// How a server fared.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Answers in a second.
    pub per_second: f64,
    /// The time within which 99 of 100 answers came.
    pub p99: Duration,
}

/// Asks a server for the same again and again, by 16 connections for three seconds.
pub fn wrk(port: u16, host: &str, path: &str) -> Rate {
    let mut wrk = Command::new("wrk");
    wrk.args(["-t1", "-c16", "-d3s", "--latency", "-H", &format!("Host: {host}")]);
    let output = wrk.arg(format!("http://127.0.0.1:{port}{path}")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!text.contains("Non-2xx") && !text.contains("Socket errors"), "{text}");
    let value = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name)).map(str::trim);
    let per_second = value("Requests/sec:").and_then(|rate| rate.parse().ok());
    let p99 = value("99%").and_then(time);
    Rate { per_second: per_second.unwrap_or_else(|| panic!("{text}")), p99: p99.unwrap_or_else(|| panic!("{text}")) }
}

/// Reads a time as `wrk` writes it: `12.30ms`.
fn time(text: &str) -> Option<Duration> {
    let end = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let unit = match &text[end..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        _ => return None,
    };
    Some(Duration::from_secs_f64(text[..end].parse::<f64>().ok()? * unit))
}

pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// An nginx that caches what comes from an origin, and is told to fetch it once.
pub struct Nginx {
    pub port: u16,
    process: Child,
    _folder: tempfile::TempDir,
}

impl Nginx {
    /// Starts one before the origin at a port.
    pub fn start(origin: u16) -> Nginx {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let config = folder.path().join("nginx.conf");
        std::fs::write(&config, Nginx::config(folder.path(), port, origin)).unwrap();
        let program = if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" };
        let mut command = Command::new(program);
        command.arg("-p").arg(folder.path()).arg("-c").arg(&config).stdin(Stdio::null());
        let process = command.spawn().unwrap();
        wait_for(port);
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
        stop(&mut self.process);
    }
}

/// A Varnish that keeps in memory what comes from an origin.
pub struct Varnish {
    pub port: u16,
    process: Child,
    _folder: tempfile::TempDir,
}

impl Varnish {
    /// Starts one before the origin at a port; nothing if there is none here.
    pub fn start(origin: u16) -> Option<Varnish> {
        let program = Path::new("/usr/sbin/varnishd");
        if !program.exists() {
            netserv_skips::not_run("the part with Varnish", "needs varnish");
            return None;
        }
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let mut command = Command::new(program);
        command.args(["-F", "-a", &format!("127.0.0.1:{port}"), "-b", &format!("127.0.0.1:{origin}")]);
        command.args(["-s", "malloc,256m", "-t", "600", "-T", "none", "-j", "none", "-n"]).arg(folder.path());
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for(port);
        Some(Varnish { port, process, _folder: folder })
    }
}

impl Drop for Varnish {
    fn drop(&mut self) {
        stop(&mut self.process);
    }
}

/// An Apache Traffic Server that keeps on its disk what comes from an origin.
pub struct Ats {
    pub port: u16,
    process: Child,
    _folder: tempfile::TempDir,
}

impl Ats {
    /// Starts one before the origin at a port; nothing if there is none here.
    pub fn start(origin: u16) -> Option<Ats> {
        let program = Path::new("/usr/bin/traffic_server");
        if !program.exists() {
            netserv_skips::not_run("the part with Apache Traffic Server", "needs trafficserver");
            return None;
        }
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let at = folder.path().display();
        for name in ["etc", "run", "log", "cache", "share"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let records = format!(
            "CONFIG proxy.config.http.server_ports STRING {port}:ip-in=127.0.0.1\n\
             CONFIG proxy.config.admin.user_id STRING #-1\n\
             CONFIG proxy.config.log.logging_enabled INT 0\n\
             CONFIG proxy.config.http.cache.required_headers INT 1\n"
        );
        let files = [
            ("etc/records.config", records),
            ("etc/remap.config", format!("map / http://127.0.0.1:{origin}/\n")),
            ("etc/storage.config", format!("{at}/cache 64M\n")),
            (
                "etc/ip_allow.yaml",
                "ip_allow:\n  - { apply: in, ip_addrs: 127.0.0.1, action: allow, methods: ALL }\n".to_owned(),
            ),
            (
                "runroot.yaml",
                format!(
                    "prefix: {at}\nexec_prefix: /usr\nbindir: /usr/bin\nsbindir: /usr/bin\nsysconfdir: {at}/etc\n\
                     datadir: {at}/share\nlibexecdir: /usr/lib/trafficserver/modules\nlocalstatedir: {at}\n\
                     runtimedir: {at}/run\nlogdir: {at}/log\ncachedir: {at}/cache\n"
                ),
            ),
        ];
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let mut command = Command::new(program);
        command.env("TS_RUNROOT", folder.path().join("runroot.yaml"));
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for(port);
        Some(Ats { port, process, _folder: folder })
    }
}

impl Drop for Ats {
    fn drop(&mut self) {
        stop(&mut self.process);
    }
}

/// Waits until a server listens.
pub fn wait_for(port: u16) {
    let begun = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < super::LONG, "nobody listens at {port}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn stop(process: &mut Child) {
    let _ = rustix::process::kill_process(rustix::process::Pid::from_child(process), rustix::process::Signal::TERM);
    let _ = process.wait();
}
