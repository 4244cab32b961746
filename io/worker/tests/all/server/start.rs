// SPDX-License-Identifier: Apache-2.0
//! Components that do not come to their beginning.

use std::time::Instant;

use netserv_model::RefusalKind;
use netserv_worker_server::limits::START_TIME_MAX;

use super::{LONG, Spec, Worker, compile, get};
use crate::shared;

/// Goal: a component that computes without end before there is an instance of it is refused in time, whatever it is for,
/// and the modules beside it can be loaded and go on.
#[test]
fn a_component_that_never_starts_is_refused_in_time() {
    let spec = Spec::new();
    let mut worker = Worker::with(&spec);
    for (export, functions) in [
        ("wasi:http/incoming-handler@0.2.0", &["handle"][..]),
        ("wasi:cli/run@0.2.0", &["run"]),
        ("netserv:tcp/handler@1.0.0", &["connect", "data", "end", "closed", "timer"]),
    ] {
        let endless = endless(export, functions).with(|spec| {
            spec.slot = 1;
            spec.name = "example.org/endless@1.0.0".to_owned();
        });
        let begun = Instant::now();
        let (kind, detail) = worker.refused(&endless);
        let took = begun.elapsed();
        assert_eq!(kind, RefusalKind::Stalled, "{export}: {detail}");
        assert!(took >= START_TIME_MAX && took < LONG / 2, "{export}: {took:?}");
        assert_eq!(get(spec.port(), "/seen").0, 200);
        worker.load(&spec);
    }
}

/// Returns a component whose one core module never comes back from its start function.
fn endless(export: &str, functions: &[&str]) -> Spec {
    let lifted = functions.iter().map(|name| format!(r#"(func ${name} (canon lift (core func $core "f")))"#));
    let exports = functions.iter().map(|name| format!(r#"(export "{name}" (func ${name}))"#));
    let text = format!(
        r#"(component
            (core module $module
                (func $start (loop $again (br $again)))
                (func (export "f"))
                (start $start))
            (core instance $core (instantiate $module))
            {}
            (instance $handler {})
            (export "{export}" (instance $handler)))"#,
        lifted.collect::<String>(),
        exports.collect::<String>()
    );
    let name = functions[0];
    let (wasm, code) =
        (shared::folder().join(format!("endless-{name}.wasm")), shared::folder().join(format!("endless-{name}.cwasm")));
    std::fs::write(&wasm, wat::parse_str(&text).unwrap()).unwrap();
    compile(&[&wasm], &code).unwrap();
    Spec::of(code)
}
