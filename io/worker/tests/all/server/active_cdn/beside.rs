// SPDX-License-Identifier: Apache-2.0
//! The same requests to an origin, to other caches before it, and to active-cdn before it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use netserv_patience::grown;

use super::super::peer::{Ats, Nginx, Varnish, wait_for};
use super::super::{connect, free_port, status};
use super::{Edge, LONG, header};

/// How long a server may say nothing.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Bytes of the film.
const FILM_BYTES: usize = 205_000;

/// Goal: a request fares before active-cdn as at its origin, or as before at least one other cache. Method: nginx is the origin; nginx with its
/// cache, Varnish and Apache Traffic Server stand before it, each as it comes.
#[test]
fn requests_fare_as_with_other_caches() {
    let origin = Origin::start();
    let (nginx, varnish, ats) = (Nginx::start(origin.port), Varnish::start(origin.port), Ats::start(origin.port));
    let edge = Edge::start(origin.port);
    let mut ports = BTreeMap::from([("origin", origin.port), ("nginx", nginx.port), ("active-cdn", edge.port())]);
    ports.extend(varnish.as_ref().map(|varnish| ("Varnish", varnish.port)));
    ports.extend(ats.as_ref().map(|ats| ("ATS", ats.port)));
    let many = |lines: usize| format!("GET /page HTTP/1.1\r\nHost: a\r\n{}", "x-a: b\r\n".repeat(lines));
    let long = |bytes: usize| format!("GET /page HTTP/1.1\r\nHost: a\r\nX-Long: {}\r\n", "x".repeat(bytes));
    let mut differ = Vec::new();
    for request in [
        "GET /page HTTP/1.1\r\nHost: a\r\n",
        "HEAD /page HTTP/1.1\r\nHost: a\r\n",
        "GET /none HTTP/1.1\r\nHost: a\r\n",
        "GET /page HTTP/1.0\r\n",
        "GET /page HTTP/1.0\r\nConnection: keep-alive\r\n",
        "GET /length-unknown HTTP/1.0\r\nConnection: keep-alive\r\n",
        "GET /length-unknown HTTP/1.1\r\nHost: a\r\n",
        "GET /page?ids=[\"a\",\"b\"] HTTP/1.1\r\nHost: a\r\n",
        "GET /page?a=<b>&c=`d`|{e}^\\ HTTP/1.1\r\nHost: a\r\n",
        "GET /%zz HTTP/1.1\r\nHost: a\r\n",
        "GET /page?\u{e4} HTTP/1.1\r\nHost: a\r\n",
        "GET http://a/page HTTP/1.1\r\nHost: a\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\n",
        "OPTIONS /page HTTP/1.1\r\nHost: a\r\n",
        "GET /page HTTP/1.1\r\n",
        "GET /page HTTP/1.1\r\nHost:\r\n",
        "GET /page HTTP/1.1\r\nHost: a\r\nHost: b\r\n",
        "GET /page HTTP/1.1\r\nHost: a b\r\n",
        "GET /page HTTP/1.1\r\nHost: a\r\nX-Odd : b\r\n",
        "GET /page HTTP/1.1\r\nHost: a\r\nno colon\r\n",
        "GET /page HTTP/1.1\r\nHost: a\r\nx: b\r\n c\r\n",
        "BREW /page HTTP/1.1\r\nHost: a\r\n",
        "POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n",
        "POST /page HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n",
        "POST /page HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        "POST /page HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n",
        "GET /film?1 HTTP/1.1\r\nHost: a\r\nRange: bytes=0-4\r\n",
        "GET /film?2 HTTP/1.1\r\nHost: a\r\nRange: bytes=-5\r\n",
        "GET /film?3 HTTP/1.1\r\nHost: a\r\nRange: bytes=204995-\r\n",
        "GET /film?4 HTTP/1.1\r\nHost: a\r\nRange: bytes=300000-\r\n",
        "GET /film?5 HTTP/1.1\r\nHost: a\r\nRange: bytes=5-1\r\n",
        "GET /film?6 HTTP/1.1\r\nHost: a\r\nRange: lines=1-2\r\n",
        "GET /film?7 HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1,4-5\r\n",
        "GET /film?8 HTTP/1.1\r\nHost: a\r\nRange: bytes=0-4\r\nIf-Range: \"other\"\r\n",
        "GET /film?9 HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n",
        "GET /film?10 HTTP/1.1\r\nHost: a\r\nIf-Match: \"other\"\r\n",
        "GET /film?11 HTTP/1.1\r\nHost: a\r\nIf-Unmodified-Since: Thu, 01 Jan 1970 00:00:01 GMT\r\n",
        &many(99),
        &long(8000),
        &long(70_000),
    ] {
        let fared = |port: u16| {
            // What is stored is asked for as what is not.
            let asked = ask(port, request);
            (status(&asked), header(&asked, "content-range").map(str::to_owned))
        };
        let fared: BTreeMap<&str, _> = ports.iter().map(|(name, port)| (*name, fared(*port))).collect();
        let ours = &fared["active-cdn"];
        println!("{:60.60} {fared:?}", request.replace("\r\n", " "));
        let is_known = DIFFERENT.iter().any(|(begin, status, _)| request.starts_with(begin) && ours.0 == *status);
        if !is_known && !fared.iter().any(|(name, theirs)| *name != "active-cdn" && theirs == ours) {
            differ.push(format!("{:.200}: {fared:?}", request));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}

/// What no other one here does, and why.
const DIFFERENT: [(&str, u16, &str); 4] = [
    (
        "POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
        405,
        "its Transfer-Encoding alone counts (RFC 9112 §6.3), and the origin takes no POST",
    ),
    ("OPTIONS * ", 200, "it asks whether somebody is there (RFC 9110 §9.3.7), and somebody is"),
    ("GET /film?7 ", 200, "several parts get the whole (RFC 9110 §14.2)"),
    ("GET /page HTTP/1.1\r\nHost: a\r\nX-Long: ", 431, "as nginx's 400, by the status that is for it (RFC 6585 §5)"),
];

/// Goal: spellings that mean the same are one thing to fetch, as before others or better. Method: the origin's log.
#[test]
fn spellings_of_a_place_are_fetched_as_seldom_as_by_others() {
    let origin = Origin::start();
    let (varnish, ats) = (Varnish::start(origin.port), Ats::start(origin.port));
    let edge = Edge::start(origin.port);
    let mut ports = vec![("active-cdn", edge.port())];
    ports.extend(varnish.as_ref().map(|varnish| ("Varnish", varnish.port)));
    ports.extend(ats.as_ref().map(|ats| ("ATS", ats.port)));
    let spellings =
        [("a.example", "/page?~"), ("A.EXAMPLE", "/page?~"), ("a.example:80", "/page?~"), ("a.example", "/page?%7e")];
    let mut fetched = BTreeMap::new();
    for (name, port) in ports {
        let before = origin.fetches();
        for (host, path) in spellings {
            let answer = ask(port, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n"));
            assert_eq!(status(&answer), 200, "{name}: {answer}");
        }
        fetched.insert(name, origin.fetches() - before);
    }
    println!("{fetched:?}");
    assert_eq!(fetched["active-cdn"], 1);
    assert!(fetched.values().all(|theirs| *theirs >= 1), "{fetched:?}");
}

/// Sends a request. Returns the head of its answer, nothing if there is none.
fn ask(port: u16, request: &str) -> String {
    let mut client = connect(port);
    client.set_read_timeout(Some(grown(SILENCE_MAX))).unwrap();
    // Who is refused early may be so before all was sent.
    let _ = client.write_all(format!("{request}\r\n").as_bytes());
    loop {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|length| length == 1) {
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).replacen("HTTP/1.0", "HTTP/1.1", 1);
        if !head.starts_with("HTTP/1.1 1") {
            return head;
        }
    }
}

/// An nginx with a page, a film, and something whose length it does not know.
struct Origin {
    port: u16,
    process: Child,
    folder: tempfile::TempDir,
}

impl Origin {
    fn start() -> Origin {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let at = folder.path().display();
        let config = format!(
            "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log;
            events {{ }}
            http {{
                log_format path '$request_uri'; access_log {at}/log path;
                server {{
                    listen 127.0.0.1:{port}; root {at}; add_header cache-control max-age=600;
                    client_max_body_size 1m; large_client_header_buffers 4 128k;
                    location /length-unknown {{ gzip off; ssi on; ssi_types *; }}
                }}
            }}"
        );
        std::fs::write(folder.path().join("nginx.conf"), config).unwrap();
        std::fs::write(folder.path().join("page"), "a page").unwrap();
        std::fs::write(folder.path().join("film"), vec![b'x'; FILM_BYTES]).unwrap();
        std::fs::write(folder.path().join("length-unknown"), "<!--# echo var=\"connection\" -->").unwrap();
        let mut command = Command::new("/usr/sbin/nginx");
        command.args(["-e", &format!("{at}/error.log"), "-c", &format!("{at}/nginx.conf")]);
        let process = command.stderr(Stdio::null()).spawn().unwrap();
        wait_for(port);
        Origin { port, process, folder }
    }

    /// Returns how many requests came, once their lines are there.
    fn fetches(&self) -> usize {
        let lines = || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default().lines().count();
        let (begun, mut before) = (Instant::now(), lines());
        loop {
            thread::sleep(Duration::from_millis(50));
            let now = lines();
            if now == before {
                return now;
            }
            assert!(begun.elapsed() < LONG);
            before = now;
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
