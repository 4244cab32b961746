// SPDX-License-Identifier: Apache-2.0

use super::*;

fn read(wat: &str) -> Code {
    Code::read(&wat::parse_str(wat).unwrap()).unwrap()
}

const PACKET: &str = r#"(module
    (import "netserv" "kv_get" (func (param i32 i32 i32 i32) (result i32)))
    (import "netserv" "timer_set" (func (param i32 i64 i64) (result i32)))
    (memory (export "memory") 3)
    (func (export "netserv_abi") (result i32) i32.const 1))"#;

/// A component with imports and exports of these names, none of which has anything in it.
fn component(imports: &[&str], export: &str) -> Code {
    let imports: String = imports.iter().map(|name| format!("(import \"{name}\" (instance))")).collect();
    read(&format!("(component {imports} (instance $i) (export \"{export}\" (instance $i)))"))
}

#[test]
fn packet_modules_say_their_abi_their_imports_and_their_memory() {
    let code = read(PACKET);
    assert_eq!((code.kind, code.abi, code.memory_bytes), (Kind::Packet, Some(1), Some(3 * 65_536)));
    assert_eq!(Vec::from_iter(&code.imports), ["netserv.kv_get", "netserv.timer_set"]);
    assert_eq!(Vec::from_iter(&code.blocks), ["kv", "timers"]);
    assert_eq!(code.skew(), None);
    assert_eq!(read("(module)").kind, Kind::Core);
}

#[test]
fn components_are_what_they_export() {
    for (export, kind) in [
        ("wasi:http/incoming-handler@0.2.4", Kind::Http),
        ("netserv:tcp/handler@1.0.0", Kind::Tcp),
        ("wasi:cli/run@0.2.0", Kind::Command),
        ("example:other/thing", Kind::Component),
    ] {
        assert_eq!(component(&[], export).kind, kind, "{export}");
    }
    let code = component(&["netserv:kv/store@1.0.0", "wasi:io/poll@0.2.12"], "wasi:http/incoming-handler@0.2.12");
    assert_eq!((Vec::from_iter(&code.blocks), code.skew()), (vec![&"kv".to_owned()], None));
}

/// Each kind of skew names the side that is to be updated.
#[test]
fn skew_says_which_side_to_update() {
    let other_abi = |abi: u32| read(&PACKET.replace("i32.const 1", &format!("i32.const {abi}"))).skew().unwrap();
    assert_eq!(other_abi(2).cause, "was built for packet ABI 2; nodes of this version speak 1");
    assert!(other_abi(2).fix.starts_with("update netserv and the nodes"));
    assert!(other_abi(0).fix.starts_with("update the module's SDK"));
    let unknown = read(&PACKET.replace("kv_get", "teleport")).skew().unwrap();
    assert_eq!(unknown.cause, "imports netserv.teleport, which packet ABI 1 of this version lacks");
    let wasi = PACKET.replace("\"netserv\" \"kv_get\"", "\"wasi_snapshot_preview1\" \"fd_write\"");
    assert!(read(&wasi).skew().unwrap().fix.contains("wasm32-unknown-unknown"));

    let http = "wasi:http/incoming-handler@0.2.12";
    for (import, cause, fix) in [
        ("netserv:kv/store@2.0.0", "nodes of this version have netserv:kv@1.0.0", "update netserv and the nodes"),
        ("netserv:kv/store@0.9.0", "nodes of this version have netserv:kv@1.0.0", "update the module's SDK"),
        ("netserv:kv/shop@1.0.0", "netserv:kv@1.0.0 has no such interface", "update the module's SDK"),
        ("netserv:gold/mine@1.0.0", "there is no building block netserv:gold", "update netserv"),
        ("wasi:keyvalue/store@0.2.0-draft", "which no node has: of WASI they have wasi:cli", "leave out what needs it"),
        ("acme:wallet/pay", "which no node has", "leave out what needs it"),
        ("wasi:clocks/wall-clock@0.3.0", "nodes of this version have WASI 0.2", "build for WASI 0.2"),
    ] {
        let skew = component(&[import], http).skew().unwrap();
        assert!(skew.cause.contains(import) && skew.cause.contains(cause), "{skew:?}");
        assert!(skew.fix.starts_with(fix), "{skew:?}");
    }
}

#[test]
fn a_component_needs_the_memory_of_its_largest_module() {
    let modules = "(component (core module (memory 3)) (component (core module (memory 70))) (core module (memory 1)))";
    assert_eq!(read(modules).memory_bytes, Some(70 * 65_536));
    assert_eq!(read("(component)").memory_bytes, None);
}

#[test]
fn what_is_no_webassembly_is_said() {
    assert!(Code::read(b"#!/bin/sh").unwrap_err().contains("is not WebAssembly in binary form"));
    let whole = wat::parse_str(PACKET).unwrap();
    for length in 0..whole.len() {
        // Whatever is cut off, nothing panics.
        let _ = Code::read(&whole[..length]);
    }
}

/// The page lists what this version knows; a name that only looks like one is not found.
#[test]
fn the_packet_abi_is_known_by_its_page() {
    for known in ["log", "kv_get", "inject", "timer_cancel"] {
        assert!(is_in_packet_abi(known), "{known}");
    }
    // Whatever our own SDK calls is on the page.
    let sdk = include_str!("../../../../../../modules/sdk/packet/src/sys.rs");
    let imports = sdk.split("extern \"C\" {").nth(1).and_then(|rest| rest.split("\n        }\n").next()).unwrap();
    let names = imports.split(" fn ").skip(1).filter_map(|rest| rest.split('(').next());
    let unknown: Vec<&str> = names.filter(|name| !is_in_packet_abi(name)).collect();
    assert!(imports.contains("kv_get") && unknown.is_empty(), "add to wit/packet-abi.md: {unknown:?}");
    assert!(!is_in_packet_abi("kv") && !is_in_packet_abi("teleport"));
    assert!(PACKET_ABI.starts_with(&format!("# Packet ABI, version {PACKET_ABI_VERSION}\n")));
    assert_eq!(known_packages().get("netserv:kv").map(String::as_str), Some("1.0.0"));
}

/// No function of the page is without its block, and no row is about a function that is not there.
#[test]
fn every_function_of_the_packet_abi_belongs_to_a_block() {
    let rows = PACKET_ABI.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let exported = |name: &&str| *name == "memory" || name.starts_with("netserv_");
    let imported: Vec<&str> = rows.filter(|name| !exported(name)).collect();
    assert!(imported.len() > 20, "{imported:?}");
    for name in &imported {
        assert!(block_of(&format!("netserv.{name}")).is_some(), "{name}");
    }
    for (beginning, block) in FUNCTIONS {
        assert!(imported.iter().any(|name| name.starts_with(beginning)), "{beginning} of {block}");
    }
}
