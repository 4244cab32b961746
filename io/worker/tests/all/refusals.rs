// SPDX-License-Identifier: Apache-2.0
//! Modules that are refused, each for its own reason.
use std::process::Command;

use crate::support::{Setup, bad_module, guest, guest_with};
use netserv_model::manifest::ModuleLimits;
use netserv_model::{Refusal, RefusalKind};
use netserv_worker::tools::pcap::Captured;
use netserv_worker::tools::test::case::Case;
use netserv_worker::tools::test::wasm::{Code, run};

fn check(wasm: &[u8], kind: RefusalKind, detail: &str) {
    let refusal = Setup::new().start(wasm).err().expect("a refusal");
    assert_eq!(refusal.kind, kind, "{refusal}");
    assert!(refusal.detail.contains(detail), "{refusal}");
}

#[test]
fn bad_modules_are_refused() {
    check(&bad_module("not-wasm.wasm"), RefusalKind::BadCode, "not a WebAssembly module");
    check(b"\0asm\x0d\0\x01\0", RefusalKind::BadCode, "component");
    check(b"\0asm\x01\0\0\0\xff", RefusalKind::BadCode, "");
    check(&bad_module("wrong-abi.wat"), RefusalKind::AbiMismatch, "packet ABI 2");
    check(&bad_module("missing-export.wat"), RefusalKind::AbiMismatch, "`netserv_process` is missing");
    check(&bad_module("wrong-import.wat"), RefusalKind::AbiMismatch, "wasi_snapshot_preview1");
    check(&bad_module("four-gib.wat"), RefusalKind::MemoryLimit, "4294967296 bytes");
    check(&bad_module("trap-at-start.wat"), RefusalKind::Trapped, "unreachable");
}

#[test]
fn exports_of_other_types_are_refused() {
    let stop = r#"(func (export "netserv_stop") (param i32))"#;
    check(&guest_with("", stop), RefusalKind::AbiMismatch, "`netserv_stop` has another type");
    let text = r#"(module (memory (export "memory") i64 5))"#;
    check(&wat::parse_str(text).unwrap(), RefusalKind::BadCode, "");
    let text = r#"(module (func (export "memory")))"#;
    check(&wat::parse_str(text).unwrap(), RefusalKind::AbiMismatch, "no memory");
}

#[test]
fn areas_that_are_none_are_refused() {
    let with_area = |address: &str| {
        let text = format!(
            r#"(module (memory (export "memory") 5)
                (func (export "netserv_abi") (result i32) (i32.const 1))
                (func (export "netserv_area") (param i32 i32) (result i32) (i32.const {address}))
                (func (export "netserv_start") (result i32) (i32.const 0))
                (func (export "netserv_process") (param i32)))"#
        );
        wat::parse_str(text).unwrap()
    };
    for address in ["0", "65544", "196608", "0xffff0000"] {
        check(&with_area(address), RefusalKind::AbiMismatch, "packet area");
    }
    // The area is 64 KiB and 64 slots of 2 KiB: three pages, so the last place in five pages is 128 KiB.
    assert!(Setup::new().start(&with_area("131072")).is_ok());
}

#[test]
fn a_module_that_is_not_ready_is_refused() {
    let text = r#"(module (memory (export "memory") 5)
        (func (export "netserv_abi") (result i32) (i32.const 1))
        (func (export "netserv_area") (param i32 i32) (result i32) (i32.const 65536))
        (func (export "netserv_start") (result i32) (i32.const 3))
        (func (export "netserv_process") (param i32)))"#;
    check(&wat::parse_str(text).unwrap(), RefusalKind::Trapped, "refused to start, with code 3");
}

#[test]
fn memory_is_held_against_the_limit_of_the_module() {
    let mut setup = Setup::new();
    setup.limits.memory_bytes = 5 * 65_536;
    assert!(setup.start(&guest("")).is_ok());
    setup.limits.memory_bytes -= 1;
    let refusal = setup.start(&guest("")).err().unwrap();
    assert_eq!(refusal.kind, RefusalKind::MemoryLimit);
    assert_eq!(refusal.detail, "the module wants 327680 bytes of memory and may have 327679");
}

#[test]
fn tables_are_capped() {
    let grow = |size: u32| guest_with("", &format!("(table {size} funcref)"));
    assert!(Setup::new().start(&grow(65_536)).is_ok());
    assert!(Setup::new().start(&grow(65_537)).is_err());
}

#[test]
fn an_endless_loop_is_found_by_the_test_command() {
    let case = one_packet(30);
    let started = std::time::Instant::now();
    let report = run(Code::compile(&bad_module("endless-loop.wat")).as_ref(), &case);
    assert!(!report.passed);
    assert_eq!(report.failure.unwrap().kind, RefusalKind::Stalled);
    assert!((30..3000).contains(&started.elapsed().as_millis()));
    assert!(run(Code::compile(&guest("")).as_ref(), &case).passed);
}

/// A test of one packet, which passes.
fn one_packet(call_ms: u32) -> Case {
    let input = vec![Captured { time: std::time::Duration::ZERO, packet: vec![0x45; 20] }];
    let case = Case { input: input.clone(), output: input, ..Case::default() };
    Case { limits: ModuleLimits { call_ms, ..case.limits }, ..case }
}

#[test]
fn kept_code_ends_in_an_endless_loop_as_well_and_that_of_nodes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (wasm, out) = (folder.path().join("in.wasm"), folder.path().join("out.cwasm"));
    let compiled = |module: &[u8], option: Option<&str>| {
        std::fs::write(&wasm, module).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_netserv-worker"));
        assert!(command.arg("compile").args(option).arg(&wasm).arg(&out).status().unwrap().success());
        Code::load(std::fs::File::open(&out).unwrap())
    };
    let looping = compiled(&bad_module("endless-loop.wat"), Some("--for-tests"));
    assert_eq!(run(looping.as_ref(), &one_packet(30)).failure.unwrap().kind, RefusalKind::Stalled);
    assert!(run(compiled(&guest(""), Some("--for-tests")).as_ref(), &one_packet(30)).passed);
    assert_eq!(compiled(&guest(""), None).err().unwrap().kind, RefusalKind::BadCode);
}

#[test]
fn compile_says_why_as_one_line_of_json() {
    let folder = tempfile::tempdir().unwrap();
    let (wasm, out) = (folder.path().join("in.wasm"), folder.path().join("out.cwasm"));
    let compile =
        || Command::new(env!("CARGO_BIN_EXE_netserv-worker")).arg("compile").arg(&wasm).arg(&out).output().unwrap();
    for (name, kind) in [
        ("not-wasm.wasm", RefusalKind::BadCode),
        ("missing-export.wat", RefusalKind::AbiMismatch),
        ("wrong-import.wat", RefusalKind::AbiMismatch),
        ("four-gib.wat", RefusalKind::MemoryLimit),
    ] {
        std::fs::write(&wasm, bad_module(name)).unwrap();
        let output = compile();
        assert!(!output.status.success());
        let refusal: Refusal = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!(refusal.kind, kind, "{name}");
        assert!(!out.exists());
    }
    std::fs::write(&wasm, guest("")).unwrap();
    assert!(compile().status.success());
    assert!(out.exists());
}
