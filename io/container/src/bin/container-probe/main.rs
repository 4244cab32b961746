// SPDX-License-Identifier: Apache-2.0
//! Stands for a worker that was taken over: tries what a container must not allow, and says what came of it.
//!
//! Used by this crate's tests only. `serve` takes an attempt's name from a `Load` frame's module name and answers with
//! a log line; `compile` behaves as its input says; `archive` has Java make an archive of its classes; `hold` is a small
//! node that starts containers and waits.

mod attempts;
mod host;
mod java;
mod sys;
mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = netserv_container::run_if_launcher() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve", ..] => worker::serve(),
        ["archive", "--java-home", home, "--out", out] => java::archive(home, out),
        ["compile", ref inputs @ .., out] => worker::compile(inputs, out),
        ["hold", state_dir, instance, count] => host::hold(state_dir, instance, count),
        _ => ExitCode::FAILURE,
    }
}
