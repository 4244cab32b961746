// SPDX-License-Identifier: Apache-2.0
//! The building blocks that compute, as a component sees them: the sample `toolbox` under the node's own HTTP tester.

use std::sync::LazyLock;

use netserv_worker_base::limits;
use netserv_worker_server::testing::code::HostSettings;
use netserv_worker_server::testing::http::{HttpTester, TestRequest};

use crate::samples;

static TOOLBOX: LazyLock<Vec<u8>> = LazyLock::new(|| std::fs::read(samples::wasm("wasm32-wasip2", "toolbox")).unwrap());

fn settings() -> HostSettings {
    let mut settings = HostSettings::new("example.org/toolbox@1.0.0".parse().unwrap());
    settings.properties = [("key".to_owned(), "secret".to_owned())].into();
    settings.limits.memory_bytes = 64 << 20;
    settings
}

fn tester() -> HttpTester {
    HttpTester::new(&TOOLBOX, settings()).unwrap()
}

fn post(tester: &HttpTester, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
    request(tester, "POST", path, &[], body)
}

fn request(tester: &HttpTester, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, Vec<u8>) {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let request = TestRequest { method: method.to_owned(), path: path.to_owned(), headers, body: body.to_vec() };
    let response = tester.respond(&request).unwrap();
    (response.status, response.body)
}

fn check(tester: &HttpTester, path: &str, body: &[u8], expected: &str) {
    let (status, text) = post(tester, path, body);
    assert_eq!((status, String::from_utf8_lossy(&text).as_ref()), (200, expected), "{path}");
}

/// Checks that a request fails, with this word in what the module says of it.
fn refused(tester: &HttpTester, path: &str, body: &[u8], word: &str) {
    let (status, text) = post(tester, path, body);
    let text = String::from_utf8_lossy(&text);
    assert!(status == 400 && text.contains(word), "{path}: {status} {text}");
}

#[test]
fn digests_and_ciphers_work() {
    let tester = tester();
    check(&tester, "/hash/crc32", b"abc", "352441c2\n");
    check(&tester, "/hash/md5", b"abc", "900150983cd24fb0d6963f7d28e17f72\n");
    check(&tester, "/hash/xxh3", b"abc", "78af5f94892f3950\n");
    let (_, mac) = post(&tester, "/hmac", b"message");
    let mac = String::from_utf8(mac).unwrap();
    assert_eq!(request(&tester, "POST", "/hmac/verify", &[("x-mac", mac.trim())], b"message").0, 200);
    assert_eq!(request(&tester, "POST", "/hmac/verify", &[("x-mac", mac.trim())], b"massage").0, 403);

    let (_, mut sealed) = post(&tester, "/seal", b"message");
    assert_eq!(sealed.len(), 12 + 7 + 16);
    assert_ne!(post(&tester, "/seal", b"message").1[..12], sealed[..12], "no nonce comes twice");
    check(&tester, "/open", &sealed, "message");
    sealed[15] ^= 1;
    refused(&tester, "/open", &sealed, "forged");
}

#[test]
fn streams_are_compressed_and_come_back() {
    let tester = tester();
    let text = b"SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 192.0.2.1\r\n".repeat(20_000);
    for encoding in ["gzip", "br", "zstd"] {
        let (status, compressed) = post(&tester, &format!("/compress/{encoding}/6"), &text);
        assert_eq!(status, 200);
        assert!(compressed.len() < text.len() / 50, "{encoding}: {}", compressed.len());
        let (status, back) = post(&tester, &format!("/decompress/{encoding}"), &compressed);
        assert!(status == 200 && back == text, "{encoding}");
        let cut = &compressed[..compressed.len() - 1];
        refused(&tester, &format!("/decompress/{encoding}"), cut, "invalid");
    }
}

#[test]
fn a_bomb_ends_at_what_the_module_allows() {
    let tester = tester();
    let (_, bomb) = post(&tester, "/compress/gzip/9", &vec![0; 4 << 20]);
    assert!(bomb.len() < 5_000);
    assert_eq!(post(&tester, "/decompress/gzip", &bomb).0, 200);
    // A second member makes it more than the module's 4 MiB.
    refused(&tester, "/decompress/gzip", &bomb.repeat(2), "too-large");
    // All memory of coders is back, however many requests had some.
    let budget = &tester.module().coder_memory;
    drop(budget.reserve(limits::COMPRESS_MEMORY_BYTES_MAX).unwrap());
    let _all = budget.reserve(limits::COMPRESS_MEMORY_BYTES_MAX).unwrap();
    refused(&tester, "/decompress/gzip", &bomb, "quota");
}

#[test]
fn words_and_sip_are_read() {
    let tester = tester();
    check(&tester, "/search/needle,hay", b"a Needle in the haystack", "2 8 needle\n16 19 hay\n");
    refused(&tester, "/search/needle,", b"a Needle", "invalid");
    let long = vec![0; limits::SEARCH_BYTES_MAX + 1];
    refused(&tester, "/search/needle", &long, "too-large");
    check(&tester, "/search/needle", &long[1..], "");

    let bye = b"BYE sip:b SIP/2.0\r\nv: SIP/2.0/UDP h\r\nf: <sip:f>\r\nt: <sip:t>\r\ni: 1\r\nOwn: a\r\n b\r\nCSeq: 2 BYE\r\n\r\nbody";
    let described = "request BYE sip:b\nvia: SIP/2.0/UDP h\nfrom: <sip:f>\nto: <sip:t>\ncall-id: 1\nown: a b\n\
                     cseq: 2 BYE\n1 (2, \"BYE\") (94, 4)\n";
    check(&tester, "/sip", bye, described);
    check(&tester, "/sip/BYE", bye, "true\n");
    check(&tester, "/sip/INVITE", bye, "false\n");
    refused(&tester, "/sip", &bye[..80], "Incomplete");
    refused(&tester, "/sip", b"GET / HTTP/1.1\r\n\r\n", "NotSip");
}

#[test]
fn requests_are_counted_and_failures_logged() {
    let tester = tester();
    assert_eq!(post(&tester, "/nothing", b""), (404, b"nothing here\n".to_vec()));
    let count = TestRequest { method: "GET".to_owned(), path: "/count".to_owned(), headers: vec![], body: vec![] };
    let response = tester.respond(&count).unwrap();
    assert_eq!(response.body, b"2\n");
    assert_eq!(tester.module().lock_counters().value("requests"), 2);
}

#[test]
fn a_node_without_a_block_refuses_who_needs_it() {
    for (block, package) in [("match", "netserv:search/search"), ("compress", "netserv:compress/codec")] {
        let mut settings = settings();
        assert!(settings.blocks.remove(block));
        let refusal = HttpTester::new(&TOOLBOX, settings).map(drop).unwrap_err();
        assert!(refusal.to_string().contains(package), "{refusal}");
    }
    let mut settings = settings();
    assert!(settings.blocks.remove("log") && settings.blocks.remove("properties"));
    assert!(HttpTester::new(&TOOLBOX, settings).is_ok(), "these two are everybody's");
}
