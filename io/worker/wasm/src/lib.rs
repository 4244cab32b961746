// SPDX-License-Identifier: Apache-2.0
//! What packet parts and server parts in WebAssembly share: bounds, and in which words their author learns why a call failed.

pub mod limits;

use netserv_model::{Refusal, RefusalKind};
use netserv_worker_base::failure::with_words;
use wasmtime::{FrameInfo, Trap, WasmBacktrace};

/// Returns an error of Wasmtime's with its causes as one line.
pub fn one_line(error: &wasmtime::Error) -> String {
    error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Returns the refusal for a failed call. `said` are lines of the module's, of which one is taken for what it has to say.
pub fn refusal(kind: RefusalKind, error: &wasmtime::Error, said: &[String]) -> Refusal {
    let cause = error.downcast_ref::<Trap>().map_or_else(|| one_line(error), ToString::to_string);
    let functions = error.downcast_ref::<WasmBacktrace>().map(own_functions).unwrap_or_default();
    let within = functions.first().map(|function| format!(" in {function}")).unwrap_or_default();
    let refusal = with_words(kind, &format!("{cause}{within}"), said);
    refusal.with_context(functions.iter().map(|function| format!("in {function}")))
}

/// Returns the functions that a module was in, from the innermost that is its own on. Those of its language's runtime, in
/// which a panic ends, are left out; if there are no others, all are there.
fn own_functions(trace: &WasmBacktrace) -> Vec<String> {
    let frames = trace.frames();
    let own = frames.iter().position(|frame| !is_runtime(frame)).unwrap_or(0);
    frames[own..].iter().map(name).collect()
}

fn is_runtime(frame: &FrameInfo) -> bool {
    frame.module().name().is_some_and(|module| module.starts_with("wit-component:"))
        || frame.func_name().is_some_and(|name| is_runtime_name(&demangled(name)))
}

fn name(frame: &FrameInfo) -> String {
    frame
        .func_name()
        .map_or_else(|| format!("function {}, whose name is not in the code", frame.func_index()), demangled)
}

fn demangled(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

/// Returns whether a function is of what panics, aborts and allocates in Rust, C and C++, and Go.
fn is_runtime_name(name: &str) -> bool {
    const CRATES: [&str; 6] = ["core", "std", "alloc", "__rustc", "panic_abort", "wasip2"];
    const FUNCTIONS: [&str; 9] = [
        "abort",
        "exit",
        "_Exit",
        "raise",
        "rust_panic",
        "rust_begin_unwind",
        "__assert_fail",
        "__wasi_proc_exit",
        "__muloti4",
    ];
    let path = name.trim_start_matches(['<', '&', '*', '[', '(']);
    let of_crate = path.split_once("::").is_some_and(|(first, _)| CRATES.contains(&first));
    of_crate || FUNCTIONS.contains(&name) || name.starts_with("__rust_") || name.starts_with("runtime.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_a_runtime_are_told_from_a_modules_own() {
        for (name, is_runtime) in [
            ("core::panicking::panic_fmt", true),
            ("_ZN4core9panicking9panic_fmt17h0123456789abcdefE", true),
            ("<alloc::string::String as core::fmt::Write>::write_str", true),
            ("<guard::Rules as core::fmt::Display>::fmt", false),
            ("_ZN5guard5rules5parse17h0123456789abcdefE", false),
            ("__rust_start_panic", true),
            ("runtime.gopanic", true),
            ("main.handle", false),
            ("abort", true),
            ("aborted_calls", false),
            ("netserv_process", false),
            ("stdlib::own", false),
        ] {
            assert_eq!(is_runtime_name(&demangled(name)), is_runtime, "{name}");
        }
        assert_eq!(demangled("_ZN5guard5rules5parse17h0123456789abcdefE"), "guard::rules::parse");
    }
}
