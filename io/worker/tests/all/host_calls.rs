// SPDX-License-Identifier: Apache-2.0
//! Each host call, with what it returns for good and for bad arguments.
use crate::support::{Bench, PACKET, Setup, VERDICT, guest, guest_returning, guest_with, repository};
use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_model::{Instant, Now, RefusalKind};
use netserv_worker_base::limits::CHANNEL_TOPICS_MAX;
use netserv_worker_base::shared::channel::{Framing, Start};
use netserv_worker_packet::instance::Instance;

pub const NOT_FOUND: i32 = -1;
pub const BAD_ADDRESS: i32 = -2;
pub const QUOTA: i32 = -3;
pub const TOO_LARGE: i32 = -4;
pub const INVALID: i32 = -5;

/// Runs an expression in a guest whose memory starts with `data`. Returns its value and the first bytes of the memory.
pub fn eval(setup: &Setup, data: &str, expression: &str) -> (i32, Vec<u8>, Instance) {
    let wasm = guest_returning(expression, &format!("(data (i32.const 0) \"{data}\")"));
    let mut chain = setup.chain(&[(0, &wasm)]);
    let mut bench = Bench::new(&[(1, &[0; 64])]);
    bench.run(&mut chain);
    assert!(bench.failed.is_empty(), "{:?}", bench.failed);
    let value = i32::from_le_bytes(bench.packets[0].1[..4].try_into().unwrap());
    let instance = chain.remove(ModuleSlot(0)).unwrap().remove(0);
    let memory = instance.memory_bytes()[..64].to_vec();
    (value, memory, instance)
}

/// Checks what an expression returns in a guest with a fresh node's side.
fn check(data: &str, expression: &str, expected: i32) {
    let mut setup = Setup::new();
    setup.properties = [("key".to_owned(), "value".to_owned())].into();
    setup.limits = ModuleLimits { counters: 1, timers: 1, kv_entries: 1, ..setup.limits };
    setup.kv.lock().set(b"key", b"value", &setup.limits).unwrap();
    assert_eq!(eval(&setup, data, expression).0, expected, "{expression}");
}

#[test]
fn log_takes_lines() {
    let (value, _, mut instance) = eval(
        &Setup::new(),
        "hello\\nworld",
        "(i32.add (call $log (i32.const 1) (i32.const 0) (i32.const 11))
            (call $log (i32.const 3) (i32.const 0) (i32.const 0)))",
    );
    assert_eq!(value, 0);
    let lines: Vec<_> =
        instance.host_mut().log.take().into_iter().map(|line| (line.level.as_str(), line.text)).collect();
    assert_eq!(lines, [("warn", "hello world".to_owned()), ("debug", String::new())]);
    check("", "(call $log (i32.const 4) (i32.const 0) (i32.const 1))", INVALID);
    check("", "(call $log (i32.const -1) (i32.const 0) (i32.const 1))", INVALID);
    check("", "(call $log (i32.const 0) (i32.const -1) (i32.const 1))", BAD_ADDRESS);
    check("", "(call $log (i32.const 0) (i32.const 327679) (i32.const 2))", BAD_ADDRESS);
    check("", "(call $log (i32.const 0) (i32.const 8) (i32.const -1))", BAD_ADDRESS);
    check("", "(call $log (i32.const 0) (i32.const 327680) (i32.const 0))", 0);
}

#[test]
fn clocks_are_read() {
    check("", "(i32.wrap_i64 (call $monotonic_ns))", 1_234);
    check("", "(i32.wrap_i64 (call $wall_ns))", 5_000_000);
}

#[test]
fn random_bytes_are_given() {
    let (value, memory, _) = eval(&Setup::new(), "", "(call $random (i32.const 4) (i32.const 20))");
    assert_eq!((value, &memory[..4], &memory[24..28]), (0, &[0; 4][..], &[0; 4][..]));
    assert!(memory[4..24].iter().filter(|byte| **byte != 0).count() > 10);
    check("", "(call $random (i32.const 0) (i32.const 4096))", 0);
    check("", "(call $random (i32.const 0) (i32.const 4097))", TOO_LARGE);
    check("", "(call $random (i32.const 327679) (i32.const 2))", BAD_ADDRESS);
}

#[test]
fn properties_are_read() {
    let mut setup = Setup::new();
    setup.properties = [("key".to_owned(), "value".to_owned())].into();
    let (value, memory, _) =
        eval(&setup, "key", "(call $property_get (i32.const 0) (i32.const 3) (i32.const 8) (i32.const 6))");
    assert_eq!((value, &memory[8..14]), (5, &b"value\0"[..]));
    let (value, memory, _) =
        eval(&setup, "key", "(call $property_get (i32.const 0) (i32.const 3) (i32.const 8) (i32.const 4))");
    assert_eq!((value, &memory[8..14]), (5, &[0; 6][..]));
    check("key", "(call $property_get (i32.const 0) (i32.const 2) (i32.const 8) (i32.const 9))", NOT_FOUND);
    check("\\ff", "(call $property_get (i32.const 0) (i32.const 1) (i32.const 8) (i32.const 9))", NOT_FOUND);
    check("key", "(call $property_get (i32.const 0) (i32.const 3) (i32.const 327678) (i32.const 5))", BAD_ADDRESS);
    check("key", "(call $property_get (i32.const 327679) (i32.const 3) (i32.const 8) (i32.const 9))", BAD_ADDRESS);
}

#[test]
fn counters_count() {
    let (value, _, instance) = eval(
        &Setup::new(),
        "packets",
        "(i32.add (call $counter_add (call $counter_open (i32.const 0) (i32.const 7)) (i64.const 40))
            (i32.add (call $counter_add (call $counter_open (i32.const 0) (i32.const 7)) (i64.const 2))
                (call $counter_set (call $counter_open (i32.const 0) (i32.const 4)) (i64.const -1))))",
    );
    assert_eq!(value, 0);
    let expected = [("pack".to_owned(), u64::MAX), ("packets".to_owned(), 42)];
    assert_eq!(instance.host().counters.all(), expected.into());
    check("ab", "(call $counter_open (i32.const 0) (i32.const 0))", INVALID);
    check("ab", "(call $counter_open (i32.const 0) (i32.const 65))", TOO_LARGE);
    check("ab", "(call $counter_open (i32.const 327679) (i32.const 2))", BAD_ADDRESS);
    check("ab", "(call $counter_add (i32.const 0) (i64.const 1))", NOT_FOUND);
    check("ab", "(call $counter_set (i32.const -1) (i64.const 1))", NOT_FOUND);
    let second =
        "(i32.add (call $counter_open (i32.const 0) (i32.const 1)) (call $counter_open (i32.const 1) (i32.const 1)))";
    check("ab", second, QUOTA);
}

#[test]
fn kv_state_is_kept() {
    let setup = Setup::new();
    let set = "(call $kv_set (i32.const 0) (i32.const 3) (i32.const 3) (i32.const 5))";
    assert_eq!(eval(&setup, "keyvalue", set).0, 0);
    assert_eq!(setup.kv.lock().value(b"key"), Some(&b"value"[..]));
    let (value, memory, _) =
        eval(&setup, "key", "(call $kv_get (i32.const 0) (i32.const 3) (i32.const 8) (i32.const 8))");
    assert_eq!((value, &memory[8..14]), (5, &b"value\0"[..]));
    let (value, memory, _) =
        eval(&setup, "", "(call $kv_next (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 8))");
    assert_eq!((value, &memory[8..12]), (3, &b"key\0"[..]));
    assert_eq!(eval(&setup, "key", "(call $kv_delete (i32.const 0) (i32.const 3))").0, 0);
    assert!(setup.kv.lock().is_empty());

    check("kez", "(call $kv_get (i32.const 0) (i32.const 3) (i32.const 8) (i32.const 8))", NOT_FOUND);
    check("key", "(call $kv_get (i32.const 0) (i32.const 3) (i32.const 8) (i32.const 0))", 5);
    check("key", "(call $kv_get (i32.const 0) (i32.const 3) (i32.const 327680) (i32.const 1))", BAD_ADDRESS);
    check("kez", "(call $kv_set (i32.const 0) (i32.const 3) (i32.const 0) (i32.const 1))", QUOTA);
    check("key", "(call $kv_set (i32.const 0) (i32.const 3) (i32.const 0) (i32.const 65536))", 0);
    check("key", "(call $kv_set (i32.const 0) (i32.const 3) (i32.const 0) (i32.const 65537))", TOO_LARGE);
    check("key", "(call $kv_set (i32.const 0) (i32.const 257) (i32.const 0) (i32.const 1))", TOO_LARGE);
    check("key", "(call $kv_set (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1))", INVALID);
    check("key", "(call $kv_set (i32.const 0) (i32.const 3) (i32.const 327679) (i32.const 2))", BAD_ADDRESS);
    check("kez", "(call $kv_delete (i32.const 0) (i32.const 3))", NOT_FOUND);
    check("key", "(call $kv_next (i32.const 0) (i32.const 3) (i32.const 8) (i32.const 8))", NOT_FOUND);
    check("key", "(call $kv_next (i32.const 0) (i32.const -1) (i32.const 8) (i32.const 8))", BAD_ADDRESS);
}

#[test]
fn timers_call_the_module() {
    let setup = Setup::new();
    let wasm = guest_with(
        "(drop (call $timer_set (i32.const 7) (i64.const 2000000) (i64.const 0)))",
        r#"(func (export "netserv_timer") (param $id i32)
            (drop (call $inject (i32.const 65536) (i32.add (i32.const 20) (local.get $id)))))"#,
    );
    let mut chain = setup.chain(&[(5, &wasm)]);
    let mut bench = Bench::new(&[(1 << 5, &[1; 20])]);
    bench.run(&mut chain);
    let due = Instant::from_nanos(1_234 + 2_000_000);
    assert_eq!(chain.poll_timeout(), Some(due));
    chain.handle_timeout(Instant::from_nanos(due.as_nanos() - 1), &mut bench);
    assert!(bench.injected.is_empty());
    chain.handle_timeout(due, &mut bench);
    assert_eq!(bench.injected.len(), 1);
    assert_eq!((bench.injected[0].0, bench.injected[0].1.len()), (5, 27));
    assert_eq!((chain.poll_timeout(), bench.running), (None, None));
    assert_eq!(bench.entered, [5, 5]);
}

#[test]
fn timers_are_bounded() {
    let timer = r#"(func (export "netserv_timer") (param i32))"#;
    let set = |id: i32, delay: i64| format!("(call $timer_set (i32.const {id}) (i64.const {delay}) (i64.const 0))");
    let check = |fields: &str, expression: &str, expected: i32| {
        let mut setup = Setup::new();
        setup.limits.timers = 1;
        setup.clock.set(Now::default());
        let mut chain = setup.chain(&[(0, &guest_returning(expression, fields))]);
        let mut bench = Bench::new(&[(1, &[0; 20])]);
        bench.run(&mut chain);
        assert_eq!(i32::from_le_bytes(bench.packets[0].1[..4].try_into().unwrap()), expected, "{expression}");
    };
    check("", &set(0, 0), INVALID);
    check(timer, &set(0, 0), 0);
    check(timer, &set(-1, 0), INVALID);
    check(timer, &set(0, -1), INVALID);
    check(timer, &format!("(i32.add {} {})", set(0, 0), set(0, 5)), 0);
    check(timer, &format!("(i32.add {} {})", set(0, 0), set(1, 0)), QUOTA);
    check(timer, "(call $timer_cancel (i32.const 0))", NOT_FOUND);
    check(timer, &format!("(i32.add {} (call $timer_cancel (i32.const 0)))", set(0, 0)), 0);
}

#[test]
fn packets_are_injected() {
    let wasm = guest("(drop (call $inject (i32.const 131136) (i32.const 24)))");
    let mut chain = Setup::new().chain(&[(2, &wasm)]);
    let mut bench = Bench::new(&[(1 << 2, &[9; 24])]);
    bench.run(&mut chain);
    assert_eq!(bench.injected, [(2, vec![9; 24])]);
    let instance = chain.remove(ModuleSlot(2)).unwrap().remove(0);
    assert_eq!((instance.counts.injected, instance.counts.passed), (1, 1));
    check("", "(call $inject (i32.const 0) (i32.const 19))", INVALID);
    check("", "(call $inject (i32.const 0) (i32.const 1984))", 0);
    check("", "(call $inject (i32.const 0) (i32.const 1985))", TOO_LARGE);
    check("", "(call $inject (i32.const 327679) (i32.const 20))", BAD_ADDRESS);
}

#[test]
fn injection_is_bounded_by_the_call_and_by_the_ring() {
    let many = "(local $n i32) (local $sum i32)
        (loop $again
            (local.set $sum (i32.add (local.get $sum) (call $inject (i32.const 0) (i32.const 20))))
            (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 66))))
        (i32.store (i32.const 131136) (local.get $sum))
        (i32.store (i32.const 65548) (i32.const 2))";
    let mut chain = Setup::new().chain(&[(0, &guest(many))]);
    let mut bench = Bench::new(&[(1, &[0; 20])]);
    bench.run(&mut chain);
    assert_eq!(bench.injected.len(), 64);
    assert_eq!(i32::from_le_bytes(bench.packets[0].1[..4].try_into().unwrap()), 2 * QUOTA);

    bench.room = Some(70);
    bench.run(&mut chain);
    assert_eq!(bench.injected.len(), 70);
    let mut instance = chain.remove(ModuleSlot(0)).unwrap().remove(0);
    assert_eq!(instance.counts.injected, 70);
    assert_eq!(instance.host_mut().log.take()[0].text, "58 injected packets lost: the node has no room for more");
}

#[test]
fn messages_are_published() {
    let publish = |arguments: [u32; 6]| {
        let arguments: String = arguments.iter().map(|argument| format!("(i32.const {argument})")).collect();
        let wasm = publisher(&format!("(call $channel_publish {arguments})"));
        let mut chain = Setup::new().chain(&[(0, &wasm)]);
        let mut bench = Bench::new(&[(1, &[0; 64])]);
        bench.run(&mut chain);
        let code = i32::from_le_bytes(bench.packets[0].1[..4].try_into().unwrap());
        (code, chain.remove(ModuleSlot(0)).unwrap().remove(0))
    };
    let (code, instance) = publish([0, 5, 5, 7, 12, 3]);
    let mut reader = instance.host().channel.subscribe("topic", Start::Oldest, Framing::Bytes).unwrap();
    assert_eq!((code, reader.read(99)), (0, Ok(Some("message".into()))));
    for (arguments, expected) in [
        ([0, 5, 0, 65_536, 0, 256], 0),
        ([0, 5, 0, 0, 0, 0], 0),
        ([0, 0, 5, 7, 0, 0], INVALID),
        ([15, 1, 5, 7, 0, 0], INVALID),
        ([0, 65, 5, 7, 0, 0], INVALID),
        ([0, 5, 0, 65_537, 0, 0], TOO_LARGE),
        ([0, 5, 5, 7, 0, 257], TOO_LARGE),
        ([u32::MAX, 5, 5, 7, 0, 0], BAD_ADDRESS),
        ([0, 5, 327_679, 2, 0, 0], BAD_ADDRESS),
        ([0, 5, 5, 7, 327_679, u32::MAX], BAD_ADDRESS),
    ] {
        assert_eq!(publish(arguments).0, expected, "{arguments:?}");
    }
    // A topic of its own for each number, until there is no room for one.
    let wasm = publisher(
        "(block $end (result i32) (loop $more (result i32)
            (i32.store8 (i32.const 4) (i32.add (i32.const 33) (global.get $n)))
            (br_if $end (global.get $n)
                (call $channel_publish (i32.const 0) (i32.const 5) (i32.const 5) (i32.const 1) (i32.const 0) (i32.const 0)))
            (drop)
            (global.set $n (i32.add (global.get $n) (i32.const 1)))
            (br $more)))",
    );
    let mut chain = Setup::new().chain(&[(0, &wasm)]);
    let mut bench = Bench::new(&[(1, &[0; 64])]);
    bench.run(&mut chain);
    let published = u32::from_le_bytes(bench.packets[0].1[..4].try_into().unwrap());
    assert_eq!(usize::try_from(published), Ok(CHANNEL_TOPICS_MAX));
}

/// Returns a guest that puts the result of an expression over the first packet's first four bytes, and may publish.
fn publisher(expression: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
            (import "netserv" "channel_publish" (func $channel_publish (param i32 i32 i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 5)
            (global $n (mut i32) (i32.const 0))
            (data (i32.const 0) "topicmessagekey\ff")
            (func (export "netserv_abi") (result i32) (i32.const 1))
            (func (export "netserv_area") (param i32 i32) (result i32) (i32.const 65536))
            (func (export "netserv_start") (result i32) (i32.const 0))
            (func (export "netserv_process") (param $count i32)
                (i32.store (i32.const {PACKET}) {expression}) (i32.store (i32.const {VERDICT}) (i32.const 2))))"#
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// Goal: what modules import is there with the types that they were built for. Method: one that imports every function which is
/// released, as `vectors/interfaces` has them.
#[test]
fn every_released_function_can_be_imported() {
    let released = std::fs::read_to_string(repository().join("vectors/interfaces/released.txt")).unwrap();
    let functions: Vec<&str> = released.lines().filter_map(|line| line.strip_prefix("abi 1 import ")).collect();
    assert!(functions.len() >= 31, "{functions:?}");
    let text = |functions: &[String]| {
        let imports = functions.join("\n");
        let rest = r#"(memory (export "memory") 5)
            (func (export "netserv_abi") (result i32) (i32.const 1))
            (func (export "netserv_area") (param i32 i32) (result i32) (i32.const 65536))
            (func (export "netserv_start") (result i32) (i32.const 0))
            (func (export "netserv_process") (param i32))"#;
        wat::parse_str(format!("(module {imports} {rest})")).unwrap()
    };
    let mut imports: Vec<String> = functions.iter().map(|function| import(function)).collect();
    Setup::new().start(&text(&imports)).unwrap();
    imports[0] = imports[0].replace("(result i32)", "(result i64)");
    assert_eq!(Setup::new().start(&text(&imports)).err().unwrap().kind, RefusalKind::AbiMismatch);
}

/// Returns the import of a function such as `timer_set (id: i32, delay_ns: i64) -> i32`; what has no type is an address or length.
fn import(function: &str) -> String {
    let (name, rest) = function.split_once(" (").unwrap();
    let (parameters, result) = rest.split_once(") -> ").unwrap();
    let type_of = |parameter: &str| if parameter.ends_with(": i64") { "i64" } else { "i32" };
    let parameters: Vec<&str> = parameters.split(", ").filter(|one| !one.is_empty()).map(type_of).collect();
    format!(r#"(import "netserv" "{name}" (func (param {}) (result {result})))"#, parameters.join(" "))
}
