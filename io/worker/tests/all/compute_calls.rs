// SPDX-License-Identifier: Apache-2.0
//! The host calls that only compute, with what they return for good and for bad arguments.

use netserv_model::RefusalKind;
use netserv_worker_base::limits::{HASH_BYTES_MAX, PATTERN_SETS_MAX, SEARCH_BYTES_MAX};

use crate::host_calls::{BAD_ADDRESS, INVALID, NOT_FOUND, QUOTA, TOO_LARGE, eval};
use crate::support::{Setup, guest};

/// Bytes of the guests' memory.
const MEMORY_BYTES: usize = 327_680;

/// Checks what an expression returns in a guest whose memory starts with `data`, and returns its first 64 bytes.
fn check(data: &str, expression: &str, expected: i32) -> Vec<u8> {
    let (value, memory, _) = eval(&Setup::new(), data, expression);
    assert_eq!(value, expected, "{expression}");
    memory
}

fn call(name: &str, arguments: &[usize]) -> String {
    let arguments: String = arguments.iter().map(|argument| format!(" (i32.const {argument})")).collect();
    format!("(call ${name}{arguments})")
}

#[test]
fn bytes_are_found() {
    check("haystack", &call("find", &[0, 8, 3, 5]), 3);
    check("haystack", &call("find", &[0, 7, 3, 5]), NOT_FOUND);
    check("haystack", &call("find", &[0, 8, 3, 0]), INVALID);
    check("haystack", &call("find", &[0, 0, 3, 1]), NOT_FOUND);
    check("haystack", &call("find", &[MEMORY_BYTES, 1, 0, 1]), BAD_ADDRESS);
    check("haystack", &call("find", &[0, 1, MEMORY_BYTES - 1, 2]), BAD_ADDRESS);
}

#[test]
fn more_than_is_searched_in_one_call_is_too_large() {
    let mut setup = Setup::new();
    setup.limits.memory_bytes = 64 << 20;
    let grow =
        |pages: usize, then: String| format!("(block (result i32) (drop (memory.grow (i32.const {pages}))) {then})");
    for (name, arguments, expected) in [
        ("find", vec![0, SEARCH_BYTES_MAX, 0, 1], 0),
        ("find", vec![0, SEARCH_BYTES_MAX + 1, 0, 1], TOO_LARGE),
        ("hash", vec![4, 0, HASH_BYTES_MAX, 0, 0], 4),
        ("hash", vec![4, 0, HASH_BYTES_MAX + 1, 0, 0], TOO_LARGE),
        ("sip_parse", vec![0, 65_536, 0, 64], TOO_LARGE),
        ("patterns_open", vec![0, 140_000, 0], TOO_LARGE),
    ] {
        let expression = grow(HASH_BYTES_MAX / 65_536, call(name, &arguments));
        assert_eq!(eval(&setup, "x", &expression).0, expected, "{expression}");
    }
}

#[test]
fn patterns_are_found() {
    // Two patterns, then the bytes to search at 8.
    let data = "\\02\\00ab\\01\\00c\\ffxCxab";
    let open = call("patterns_open", &[0, 7, 0]);
    check(data, &open, 0);
    let find = |open: &str, length: usize, out: usize, room: usize| {
        format!("(call $patterns_find {open} (i32.const 8) (i32.const {length}) (i32.const {out}) (i32.const {room}))")
    };
    let memory = check(data, &find(&open, 5, 16, 48), 1);
    assert_eq!(memory[16..29], [0, 0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0, 0]);
    let any_case = call("patterns_open", &[0, 7, 1]);
    let memory = check(data, &find(&any_case, 5, 16, 48), 2);
    assert_eq!(memory[16..28], [1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
    let memory = check(data, &find(&any_case, 5, 16, 23), 1);
    assert_eq!(memory[28..40], [0; 12]);
    check(data, &find(&any_case, 5, 16, 11), 1);
    check(data, &find(&any_case, 5, 0, 0), 1);
    check(data, &find(&any_case, 1, 0, 0), 0);
    check(data, &find(&any_case, 1, 16, 48), 0);
    check(data, &find(&any_case, 5, MEMORY_BYTES - 11, 12), BAD_ADDRESS);
    check(data, &find(&any_case, MEMORY_BYTES, 16, 48), BAD_ADDRESS);
    check(data, &find("(i32.const 0)", 5, 16, 48), NOT_FOUND);
    check(data, &find("(i32.const -1)", 5, 16, 48), NOT_FOUND);
}

#[test]
fn sets_of_patterns_are_checked_and_forgotten() {
    let data = "\\01\\00a\\00\\00\\02\\00b";
    check(data, &call("patterns_open", &[0, 0, 0]), INVALID);
    check(data, &call("patterns_open", &[0, 5, 0]), INVALID);
    check(data, &call("patterns_open", &[5, 3, 0]), INVALID);
    check(data, &call("patterns_open", &[0, 3, 2]), INVALID);
    check(data, &call("patterns_open", &[MEMORY_BYTES - 2, 3, 0]), BAD_ADDRESS);
    check(data, &call("patterns_close", &[0]), NOT_FOUND);
    let open = call("patterns_open", &[0, 3, 0]);
    let mut all: Vec<_> = (0..PATTERN_SETS_MAX).map(|_| format!("(drop {open})")).collect();
    check(data, &format!("(block (result i32) {} {open})", all.concat()), QUOTA);
    all.push("(drop (call $patterns_close (i32.const 7)))".to_owned());
    check(data, &format!("(block (result i32) {} {open})", all.concat()), 7);
}

#[test]
fn sip_is_read() {
    let lines = [
        "BYE sip:b SIP/2.0",
        "v: SIP/2.0/UDP h;branch=z",
        "f: <sip:f>;tag=1",
        "t: <sip:t>",
        "i: call",
        "CSeq: 258 BYE",
        "",
        "body",
    ];
    let (data, length) = (lines.join("\\0d\\0a"), lines.join("\r\n").len());
    let (at, room) = (256, 64 + 5 * 12);
    let read = |length, room| call("sip_parse", &[0, length, at, room]);
    check(&data, &read(length, room), 5);
    check(&data, &read(length, 64), 5);
    check(&data, &read(length, 63), INVALID);
    check(&data, &read(length - 10, room), INVALID);
    check("GET / HTTP/1.1\\0d\\0a\\0d\\0a", &read(18, room), NOT_FOUND);
    check(&data, &call("sip_parse", &[0, length, MEMORY_BYTES - 63, 64]), BAD_ADDRESS);
    check(&data, &call("sip_parse", &[MEMORY_BYTES, 1, at, room]), BAD_ADDRESS);
    // What was written is looked at from inside: status 0, BYE, 5 headers, CSeq 258, the Call-ID.
    let load = |offset: usize| {
        let read = read(length, room);
        format!("(block (result i32) (drop {read}) (i32.load (i32.const {})))", at + offset)
    };
    let start = |text: &str| i32::try_from(lines.join("\r\n").find(text).unwrap()).unwrap();
    check(&data, &load(0), 3 << 16);
    check(&data, &load(4), 5);
    check(&data, &load(8), 258);
    check(&data, &load(12), -1);
    check(&data, &load(24), 4 << 16 | start("call"));
    check(&data, &load(56), 4 << 16 | start("body"));
    check(&data, &load(64 + 12), (start("f: ")) << 16 | 2);
}

#[test]
fn a_node_without_a_block_refuses_who_needs_it() {
    let setup = Setup::new();
    let all = ["match", "sip", "hash", "state"];
    let permit = |blocks: &[&str]| {
        let blocks = blocks.iter().map(ToString::to_string).collect();
        setup.runtime.compile(&guest("")).unwrap().permit(&blocks).map(drop)
    };
    assert_eq!(permit(&all), Ok(()));
    for missing in all {
        let others: Vec<_> = all.into_iter().filter(|block| *block != missing).collect();
        let refusal = permit(&others).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::AbiMismatch);
        assert!(refusal.detail.contains(&format!("`{missing}`")), "{refusal}");
    }
}

#[test]
fn bytes_are_hashed() {
    let memory = check("abc", &call("hash", &[4, 0, 3, 8, 4]), 4);
    assert_eq!(memory[8..13], [0x35, 0x24, 0x41, 0xc2, 0]);
    let memory = check("abc", &call("hash", &[1, 0, 3, 8, 40]), 32);
    assert_eq!(memory[8..12], [0xba, 0x78, 0x16, 0xbf]);
    let memory = check("abc", &call("hash", &[1, 0, 3, 8, 31]), 32);
    assert_eq!(memory[8..40], [0; 32]);
    check("abc", &call("hash", &[6, 0, 3, 8, 40]), INVALID);
    check("abc", "(call $hash (i32.const -1) (i32.const 0) (i32.const 3) (i32.const 8) (i32.const 40))", INVALID);
    check("abc", &call("hash", &[1, 0, MEMORY_BYTES + 1, 8, 40]), BAD_ADDRESS);
    check("abc", &call("hash", &[1, 0, 3, MEMORY_BYTES, 32]), BAD_ADDRESS);
}
