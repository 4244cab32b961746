// SPDX-License-Identifier: Apache-2.0
//! Compiling a module, in a container of its own: a compiler is a large program that reads a stranger's bytes. The
//! archive of Java's classes is made in the same way, since it has to be made where it is used.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use netserv_model::policy::ContainerLimits;
use netserv_model::{Flavour, Refusal, RefusalKind};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

use super::launcher::{Launcher, check_limits};
use super::process::{Exit, ExitCause, Process};
use crate::error::ContainerError;
use crate::limits::{BUILD_LOOK_INTERVAL, BuildLimits};
use crate::protocol::Request;
use crate::protocol::names::{ARCHIVE_FILE, COMPILE_OUTPUT};

impl Launcher {
    /// Compiles a Wasm file into code that the worker loads, by `netserv-worker compile` in a container of its own
    /// without control socket and ring. Blocks until that ends: call it off the control loop.
    ///
    /// # Errors
    /// The worker's own refusal, or `compile-limit`, `memory-limit` or `bad-code` if it could not say one.
    pub fn compile(&self, wasm: &Path, out: &Path, limits: &BuildLimits) -> Result<(), Refusal> {
        self.build(&[wasm], out, limits, &mut |_| true)
    }

    /// Compiles a Wasm file as [`Launcher::compile`] does, or composes several components, of which each hands HTTP
    /// requests on to the next, and compiles that. `may_go_on` is asked every [`BUILD_LOOK_INTERVAL`] and at the end.
    ///
    /// # Errors
    /// Those of [`Launcher::compile`]; `quota-exceeded` if it may not go on.
    pub fn build(
        &self,
        parts: &[&Path],
        out: &Path,
        limits: &BuildLimits,
        may_go_on: &mut dyn FnMut(&Progress<'_>) -> bool,
    ) -> Result<(), Refusal> {
        check_limits(Flavour::Wasm, &limits.container)?;
        compile(self, parts, out, limits, may_go_on)
    }

    /// Makes the archive of classes that lets Java workers start faster, by `netserv-jvm archive` in a container of its
    /// own, and puts it at `out`, in one step. Workers find it if `out` is
    /// [`ARCHIVE_FILE`](crate::ARCHIVE_FILE) in the directory that [`JvmFiles::archive`] names. Blocks until that ends:
    /// seconds, so call it off the control loop.
    ///
    /// # Errors
    /// Why there is none. Workers start without it all the same.
    pub fn archive(&self, out: &Path, limits: &BuildLimits) -> Result<(), Refusal> {
        check_limits(Flavour::Osgi, &limits.container)?;
        archive(self, out, limits)
    }
}

/// A build under way.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Processor time that it took so far.
    pub cpu_time: Duration,
    launcher: &'a Launcher,
    pid: i32,
}

impl Progress<'_> {
    /// Holds the build to other limits from here on, and gives it less processor time than the node's other containers.
    ///
    /// # Errors
    /// The kernel does not change them; then it goes on as before.
    pub fn to_background(&self, limits: &ContainerLimits) -> Result<(), ContainerError> {
        self.launcher.to_background(self.pid, limits)
    }
}

fn compile(
    launcher: &Launcher,
    wasm: &[&Path],
    out: &Path,
    limits: &BuildLimits,
    may_go_on: &mut dyn FnMut(&Progress<'_>) -> bool,
) -> Result<(), Refusal> {
    let open = |wasm: &&Path| File::open(wasm).map_err(node_failed(wasm));
    let inputs = wasm.iter().map(open).collect::<Result<Vec<File>, Refusal>>()?;
    let request = Request::Compile { limits: limits.container, cpu_seconds: cpu_seconds(limits) };
    let (process, directory) = launcher.start_making(&request, &inputs)?;
    finish(process, limits, &COMPILER, |pid, cpu_time| may_go_on(&Progress { cpu_time, launcher, pid }))?;
    let code = open_output(&directory, COMPILE_OUTPUT)
        .map_err(|error| Refusal::new(RefusalKind::BadCode, format!("the compiler left no output: {error}")))?;
    put_in_place(code, limits.container.disk_bytes, out)
}

fn archive(launcher: &Launcher, out: &Path, limits: &BuildLimits) -> Result<(), Refusal> {
    let request = Request::Archive { limits: limits.container, cpu_seconds: cpu_seconds(limits) };
    let (process, directory) = launcher.start_making(&request, &[])?;
    finish(process, limits, &ARCHIVER, |_, _| true)?;
    let archive = open_output(&directory, ARCHIVE_FILE)
        .map_err(|error| Refusal::new(RefusalKind::NodeFailed, format!("Java left no archive: {error}")))?;
    put_in_place(archive, limits.container.disk_bytes, out)?;
    // Workers have users of their own.
    fs::set_permissions(out, fs::Permissions::from_mode(0o644)).map_err(node_failed(out))
}

/// How the ends of a process are told.
struct Words {
    who: &'static str,
    on_what: &'static str,
    failed: RefusalKind,
    slow: RefusalKind,
}

const COMPILER: Words = Words {
    who: "the compiler",
    on_what: "on this module",
    failed: RefusalKind::BadCode,
    slow: RefusalKind::CompileLimit,
};
const ARCHIVER: Words =
    Words { who: "Java", on_what: "on its archive", failed: RefusalKind::NodeFailed, slow: RefusalKind::NodeFailed };

/// Waits for the end of a process, which is to be a good one.
fn finish(
    mut process: Process,
    limits: &BuildLimits,
    words: &Words,
    mut may_go_on: impl FnMut(i32, Duration) -> bool,
) -> Result<(), Refusal> {
    let until = Instant::now() + limits.time;
    let too_long = loop {
        let left = until.saturating_duration_since(Instant::now());
        let ended = process.wait(left.min(BUILD_LOOK_INTERVAL)).is_some();
        let goes_on = may_go_on(process.pid(), process.cpu_time());
        if ended {
            break None;
        }
        if !goes_on {
            let detail = format!("{} gives way to others", words.who);
            break Some(Refusal::new(RefusalKind::QuotaExceeded, detail));
        }
        if left.is_zero() {
            let detail = format!("{} did not end within {} s", words.who, limits.time.as_secs());
            break Some(Refusal::new(RefusalKind::Timeout, detail));
        }
    };
    if let Some(refusal) = too_long {
        process.kill();
        process.wait(Duration::from_secs(2));
        return Err(refusal);
    }
    let exit = process.exit().expect("it ended");
    if exit.cause == ExitCause::Code(0) { Ok(()) } else { Err(refusal(exit, limits, words)) }
}

/// The kernel counts whole seconds; none would be no limit.
fn cpu_seconds(limits: &BuildLimits) -> u64 {
    limits.cpu_time.as_secs().max(1)
}

fn put_in_place(output: File, bytes_max: u64, out: &Path) -> Result<(), Refusal> {
    let partial = partial_path(out);
    let stored = store(output, bytes_max, &partial).and_then(|()| fs::rename(&partial, out));
    stored.map_err(|error| {
        let _ = fs::remove_file(&partial);
        node_failed(out)(error)
    })
}

/// The process prints a refusal as its last line; what it cannot say itself is told from how it ended.
fn refusal(exit: &Exit, limits: &BuildLimits, words: &Words) -> Refusal {
    let Words { who, on_what, failed, slow } = words;
    let said = exit.stderr.lines().last().and_then(|line| serde_json::from_str::<Refusal>(line).ok());
    match (exit.cause, said) {
        (ExitCause::Code(_), Some(said)) => said.clean(),
        (ExitCause::OutOfMemory, _) => {
            Refusal::new(RefusalKind::MemoryLimit, format!("{who} reached its memory limit {on_what}"))
        }
        (ExitCause::OutOfCpuTime, _) => {
            let seconds = cpu_seconds(limits);
            Refusal::new(*slow, format!("{who} used its {seconds} s of processor time {on_what}"))
        }
        (ExitCause::Code(_) | ExitCause::Signal(_), _) => {
            Refusal::new(*failed, format!("{who} failed {on_what}: {}", exit.refusal().detail))
        }
        (ExitCause::Unknown, _) => exit.refusal(),
    }
}

/// Opens the output, which a compiler that was taken over may have made anything it likes.
fn open_output(directory: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let file = File::from(openat2(directory, name, flags, Mode::empty(), resolve)?);
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
        check(ExitCause::OutOfCpuTime, said, RefusalKind::CompileLimit);
        check(ExitCause::OutOfMemory, said, RefusalKind::MemoryLimit);
        check(ExitCause::Unknown, said, RefusalKind::NodeFailed);
    }

    #[test]
    fn only_a_regular_file_is_taken_for_output() {
        let directory = tempfile::tempdir().unwrap();
        let opened = || OwnedFd::from(File::open(directory.path()).unwrap());
        let output = directory.path().join(COMPILE_OUTPUT);
        assert!(open_output(&opened(), COMPILE_OUTPUT).is_err());
        std::os::unix::fs::symlink("/etc/passwd", &output).unwrap();
        assert!(open_output(&opened(), COMPILE_OUTPUT).is_err());
        fs::remove_file(&output).unwrap();
        fs::create_dir(&output).unwrap();
        assert!(open_output(&opened(), COMPILE_OUTPUT).is_err());
        fs::remove_dir(&output).unwrap();
        rustix::fs::mknodat(opened(), COMPILE_OUTPUT, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0)
            .unwrap();
        assert!(open_output(&opened(), COMPILE_OUTPUT).is_err());
        fs::remove_file(&output).unwrap();
        fs::write(&output, "code").unwrap();
        assert!(open_output(&opened(), COMPILE_OUTPUT).is_ok());
    }

    fn check(cause: ExitCause, stderr: &str, expected: RefusalKind) {
        let exit = Exit { cause, stderr: stderr.to_owned() };
        assert_eq!(refusal(&exit, &BuildLimits::CODE, &COMPILER).kind, expected, "{exit:?}");
    }
}
