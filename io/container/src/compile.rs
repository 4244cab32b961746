// SPDX-License-Identifier: Apache-2.0
//! Compiling a module, in a container of its own: a compiler is a large program that reads a stranger's bytes.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use netserv_model::{Refusal, RefusalKind};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

use crate::container::{Exit, ExitCause};
use crate::helper::COMPILE_OUTPUT;
use crate::launcher::Launcher;
use crate::limits::CompileLimits;

pub(crate) fn compile(launcher: &Launcher, wasm: &Path, out: &Path, limits: &CompileLimits) -> Result<(), Refusal> {
    let input = File::open(wasm).map_err(node_failed(wasm))?;
    let (mut process, directory) = launcher.start_compile(&input, &limits.container)?;
    let Some(exit) = process.wait(limits.time) else {
        process.kill();
        process.wait(Duration::from_secs(2));
        let detail = format!("the compiler did not end within {} s", limits.time.as_secs());
        return Err(Refusal::new(RefusalKind::Stalled, detail));
    };
    if exit.cause != ExitCause::Code(0) {
        return Err(refusal(exit));
    }
    let code = open_output(&directory)
        .map_err(|error| Refusal::new(RefusalKind::BadCode, format!("the compiler left no output: {error}")))?;
    let partial = partial_path(out);
    let stored = store(code, limits.container.disk_bytes, &partial).and_then(|()| fs::rename(&partial, out));
    stored.map_err(|error| {
        let _ = fs::remove_file(&partial);
        node_failed(out)(error)
    })
}

/// The compiler prints a refusal as its last line; what it cannot say itself is told from how it ended.
fn refusal(exit: &Exit) -> Refusal {
    let said = exit.stderr.lines().last().and_then(|line| serde_json::from_str::<Refusal>(line).ok());
    match (exit.cause, said) {
        (ExitCause::Code(_), Some(said)) => Refusal::new(said.kind, said.detail),
        (ExitCause::OutOfMemory, _) => {
            Refusal::new(RefusalKind::MemoryLimit, "the compiler reached its memory limit on this module")
        }
        (ExitCause::Code(_) | ExitCause::Signal(_), _) => {
            let detail = format!("the compiler failed on this module: {}", exit.refusal().detail);
            Refusal::new(RefusalKind::BadCode, detail)
        }
        (ExitCause::Unknown, _) => exit.refusal(),
    }
}

/// Opens the output, which a compiler that was taken over may have made anything it likes.
fn open_output(directory: &OwnedFd) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let file = File::from(openat2(directory, COMPILE_OUTPUT, flags, Mode::empty(), resolve)?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
}

fn store(code: File, bytes_max: u64, out: &Path) -> io::Result<()> {
    let mut copy = File::create(out)?;
    io::copy(&mut code.take(bytes_max), &mut copy)?;
    copy.sync_all()
}

fn partial_path(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    out.with_file_name(name)
}

fn node_failed(path: &Path) -> impl Fn(io::Error) -> Refusal {
    move |error| Refusal::new(RefusalKind::NodeFailed, format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compilers_end_becomes_a_refusal() {
        let said = r#"{"kind":"abi-mismatch","detail":"no netserv_process"}"#;
        check(ExitCause::Code(1), &format!("a warning\n{said}"), RefusalKind::AbiMismatch);
        check(ExitCause::Code(1), "panicked", RefusalKind::BadCode);
        check(ExitCause::Signal(11), said, RefusalKind::BadCode);
        check(ExitCause::OutOfMemory, said, RefusalKind::MemoryLimit);
        check(ExitCause::Unknown, said, RefusalKind::NodeFailed);
    }

    #[test]
    fn only_a_regular_file_is_taken_for_output() {
        let directory = tempfile::tempdir().unwrap();
        let opened = || OwnedFd::from(File::open(directory.path()).unwrap());
        let output = directory.path().join(COMPILE_OUTPUT);
        assert!(open_output(&opened()).is_err());
        std::os::unix::fs::symlink("/etc/passwd", &output).unwrap();
        assert!(open_output(&opened()).is_err());
        fs::remove_file(&output).unwrap();
        fs::create_dir(&output).unwrap();
        assert!(open_output(&opened()).is_err());
        fs::remove_dir(&output).unwrap();
        rustix::fs::mknodat(opened(), COMPILE_OUTPUT, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0)
            .unwrap();
        assert!(open_output(&opened()).is_err());
        fs::remove_file(&output).unwrap();
        fs::write(&output, "code").unwrap();
        assert!(open_output(&opened()).is_ok());
    }

    fn check(cause: ExitCause, stderr: &str, expected: RefusalKind) {
        let exit = Exit { cause, stderr: stderr.to_owned() };
        assert_eq!(refusal(&exit).kind, expected, "{exit:?}");
    }
}
