// SPDX-License-Identifier: Apache-2.0
//! Starts a Java virtual machine inside a container.

use std::ffi::CString;
use std::process::ExitCode;

use crate::sys;

const OPTIONS: [&str; 5] =
    ["-Xmx16m", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:-UseContainerSupport", "-XX:+DisplayVMOutputToStderr"];

/// Has Java write an archive of the classes that its start loads.
pub(crate) fn archive(home: &str, out: &str) -> ExitCode {
    match run(home, &[&format!("-XX:ArchiveClassesAtExit={out}")]) {
        Ok((0, 0)) => ExitCode::SUCCESS,
        other => {
            eprintln!("{other:?}");
            ExitCode::FAILURE
        }
    }
}

/// Starts Java and ends it, with one more option for each line of `options`. Returns `done`, or what went wrong.
pub(crate) fn start(home: &str, options: &str) -> String {
    match run(home, &options.lines().collect::<Vec<_>>()) {
        Ok((0, 0)) => "done".to_owned(),
        other => format!("{other:?}"),
    }
}

fn run(home: &str, more: &[&str]) -> Result<(i32, i32), String> {
    let text = |text: &str| CString::new(text).expect("an option without a zero");
    let library = text(&format!("{home}/lib/server/libjvm.so"));
    let options: Vec<CString> = OPTIONS.iter().chain(more).map(|option| text(option)).collect();
    // Java wants to know the bounds of its stack, which a first thread's are not without `/proc`.
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let thread = thread.spawn(move || sys::run_java(&library, &options)).map_err(|error| error.to_string())?;
    thread.join().map_err(|_| "a panic".to_owned())?
}
