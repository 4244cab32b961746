// SPDX-License-Identifier: Apache-2.0
//! Pages of modules: their files, and events that both parts make. The module is the sample `net-monitor-live`.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use netserv_wire::container::ring::Answer;
use netserv_wire::state::{ModuleState, StatePart};
use serde_json::{Value, json};

use super::channel::Viewer;
use super::{LONG, Spec, Worker, body, compiled, compiled_packets, get, status, talk};

/// Entries that a module may have.
const ENTRIES: u32 = 65_536;

/// The sample with both its parts.
fn monitor() -> Spec {
    Spec::of(compiled("net_monitor_live")).with(|spec| spec.packet = Some(compiled_packets("net_monitor_live")))
}

/// An IPv4 packet of 20 bytes and so many more.
fn packet(source: u8, ttl: u8, more: u8) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 20 + more, 0, 0, 0, 0, ttl, 253, 0, 0, 10, 1, 0, source, 10, 2, 0, 1];
    packet.resize(usize::from(20 + more), 0);
    packet
}

#[test]
fn what_passes_is_told_as_events_and_as_data() {
    let spec = monitor();
    let mut worker = Worker::with(&spec);
    let mut viewer = Viewer::open(spec.port(), None);
    for (source, ttl, more) in [(1, 61, 0), (1, 60, 10), (2, 61, 30)] {
        assert_eq!(worker.round(1, &packet(source, ttl, more)).answer, Answer::Pass);
    }
    // What is behind the packet on the link is none of its bytes.
    let padded = [packet(2, 61, 0), vec![0; 26]].concat();
    assert_eq!(worker.round(1, &padded).answer, Answer::Pass);
    assert_eq!(worker.round(1, &[0x45; 19]).answer, Answer::Pass);
    let tables = loop {
        let event = viewer.next();
        let Some(json) = event.split("event: tables\ndata: ").nth(1) else { continue };
        let json: Value = serde_json::from_str(json).unwrap();
        if json["seen"] == 5 {
            break json;
        }
    };
    assert_eq!(tables["counted"], json!({ "keys": 3, "packets": 4, "bytes": 120 }));
    assert_eq!(tables["not_counted"]["not_ip"], 1);
    assert_eq!(tables["sources"]["rows"][0], json!({ "source": "10.1.0.2", "packets": 2, "bytes": 70 }));
    let (code, data) = get(spec.port(), "/data.json");
    assert_eq!((code, serde_json::from_str::<Value>(&data).unwrap()), (200, tables));
    let (_, csv) = get(spec.port(), "/data.csv");
    let lines = "source,destination,ttl,packets,bytes,estimate\r\n10.1.0.1,10.2.0.1,60,1,30,1\r\n";
    assert!(csv.starts_with(lines) && csv.lines().count() == 4, "{csv}");
    // Each second has rates, also without packets, for all who come within ten minutes.
    while !viewer.next().contains("event: rates\ndata: {\"at\":") {}
    let rates = viewer.last.split_once('\n').unwrap().1.to_owned();
    let mut late = Viewer::open(spec.port(), None);
    while late.next().split_once('\n').unwrap().1 != rates {}
}

/// Goal: what is not in the table is apart, and the page's own limits hold with more rows than it shows.
#[test]
fn what_has_no_room_is_told_apart() {
    let spec = monitor().with(|spec| {
        spec.limits.kv_entries = 121;
        spec.limits.counters = 4;
    });
    let mut worker = Worker::with(&spec);
    for source in 0..=200 {
        assert_eq!(worker.round(1, &packet(source, 61, 0)).answer, Answer::Pass);
    }
    let begun = Instant::now();
    let data = loop {
        let data: Value = serde_json::from_str(&get(spec.port(), "/data.json").1).unwrap();
        if data["seen"] == 201 {
            break data;
        }
        assert!(begun.elapsed() < LONG, "{data}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(data["counted"], json!({ "keys": 120, "packets": 120, "bytes": 2400 }));
    assert_eq!(data["not_counted"]["no_room"], json!({ "packets": 81, "bytes": 1620 }));
    assert_eq!(data["flows"]["rows"].as_array().unwrap().len(), 100);
    assert_eq!(data["flows"]["rest"], json!({ "rows": 20, "packets": 20, "bytes": 400 }));
    assert_eq!(data["destinations"]["rest"]["rows"], 0);
    assert_eq!(get(spec.port(), "/data.csv").1.lines().count(), 121);
}

/// Goal: all entries that a module may have are read within its own limits, and go on, also those of a version without bytes.
#[test]
fn a_full_table_of_a_version_without_bytes_is_shown() {
    let names: Vec<String> = (0..ENTRIES)
        .map(|number| {
            let [_, high, middle, low] = number.to_be_bytes();
            format!("10.{high}.{middle}.{low} 10.2.{middle}.{low} 61")
        })
        .collect();
    let sample = 1_u64.to_be_bytes();
    let entries: BTreeMap<&[u8], &[u8]> = names.iter().map(|name| (name.as_bytes(), b"7".as_slice())).collect();
    let state = ModuleState {
        module: "example.org/tests".parse().unwrap(),
        schema: 1,
        parts: BTreeMap::from([(StatePart::Packet, sample.as_slice())]),
        entries: entries.into_iter().collect(),
    };
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&state.to_bytes().unwrap()).unwrap();
    let spec = monitor().with(|spec| {
        spec.state = Some(Arc::new(file));
        (spec.limits.kv_entries, spec.limits.kv_bytes, spec.limits.memory_bytes) = (ENTRIES, 4 << 20, 8 << 20);
    });
    let mut worker = Worker::with(&spec);
    let data = || serde_json::from_str::<Value>(&get(spec.port(), "/data.json").1).unwrap();
    let before = data();
    assert_eq!(before["counted"], json!({ "keys": ENTRIES, "packets": 7 * ENTRIES, "bytes": 0 }));
    assert_eq!(before["destinations"]["rest"]["rows"], ENTRIES - 100);
    // One of those that are there, and one more, for which there is no room.
    assert_eq!(worker.round(1, &packet(1, 62, 0)).answer, Answer::Pass);
    let known = [&packet(0, 61, 0)[..12], &[10, 0, 0, 9, 10, 2, 0, 9]].concat();
    assert_eq!(worker.round(1, &known).answer, Answer::Pass);
    let begun = Instant::now();
    while data()["counted"] != json!({ "keys": ENTRIES, "packets": 7 * ENTRIES + 1, "bytes": 20 }) {
        assert!(begun.elapsed() < LONG, "{}", data()["counted"]);
    }
    assert_eq!(get(spec.port(), "/data.csv").1.lines().count(), usize::try_from(ENTRIES).unwrap() + 1);
}

#[test]
fn files_are_compressed_kept_by_browsers_and_the_only_ones_that_run() {
    let spec = monitor();
    let _worker = Worker::with(&spec);
    let ask = |method: &str, path: &str, more: &str| {
        let request = format!("{method} {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{more}\r\n");
        let answer = talk_bytes(spec.port(), request.as_bytes());
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        (String::from_utf8(answer[..end].to_vec()).unwrap(), answer[end..].to_vec())
    };
    for path in ["/", "/page.js", "/live.js", "/live.css", "/uplot.js", "/uplot.css", "/uplot-licence.txt"] {
        let (head, plain) = ask("GET", path, "");
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("default-src 'none'"), "{path}: {head}");
        assert!(head.contains("x-content-type-options: nosniff") && !head.contains("content-encoding"), "{head}");
        let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
        let (head, nothing) = ask("GET", path, &format!("if-none-match: {tag}\r\n"));
        assert!(head.starts_with("HTTP/1.1 304") && head.contains(tag) && nothing.is_empty(), "{head}");
        let (head, small) = ask("GET", path, "accept-encoding: br, gzip\r\n");
        assert!(head.contains(tag) && head.contains("vary: accept-encoding"), "{head}");
        if plain.len() >= 1024 {
            assert!(head.contains("content-encoding: gzip") && small.len() < plain.len() * 3 / 4, "{path}: {head}");
            assert_eq!(small[..2], [0x1f, 0x8b]);
        }
        let (head, nothing) = ask("HEAD", path, "");
        assert!(head.starts_with("HTTP/1.1 200") && nothing.is_empty(), "{head}");
        assert_eq!(status(&ask("POST", path, "content-length: 0\r\n").0), 405);
    }
    assert_eq!(get(spec.port(), "/page.js?again").0, 200);
    for missing in ["/page", "//", "/../page.js", "/favicon.ico"] {
        assert_eq!(get(spec.port(), missing).0, 404, "{missing}");
    }
    assert_eq!(status(&ask("POST", "/data.json", "content-length: 0\r\n").0), 405);
}

#[test]
fn without_the_token_nothing_is_shown() {
    let spec = monitor().property("token", "secret");
    let _worker = Worker::with(&spec);
    let ask = |path: &str, shown: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{shown}\r\n");
        talk(spec.port(), request.as_bytes())
    };
    for path in ["/", "/live.js", "/data.json", "/data.csv", "/events", "/none"] {
        let answer = ask(path, "");
        assert_eq!(status(&answer), 401, "{path}");
        assert!(answer.contains("www-authenticate: Basic realm=") && !body(&answer).contains('{'), "{answer}");
        for wrong in ["Bearer other", "Basic bWU6b3RoZXI=", "Basic c2VjcmV0", "secret"] {
            assert_eq!(status(&ask(path, &format!("authorization: {wrong}\r\n"))), 401, "{path} {wrong}");
        }
    }
    // `me:secret`.
    for right in ["Bearer secret", "Basic bWU6c2VjcmV0"] {
        assert_eq!(status(&ask("/data.json", &format!("authorization: {right}\r\n"))), 200);
    }
}

/// As `talk`, for answers that are no text.
fn talk_bytes(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut stream = super::connect(port);
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}
