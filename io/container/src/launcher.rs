// SPDX-License-Identifier: Apache-2.0
//! The node's side of the launcher.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use netserv_model::UserId;
use netserv_model::policy::ContainerLimits;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FlockOperation;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::container::{Container, Process, Shared};
use crate::error::ContainerError;
use crate::helper::LAUNCHER_NAME;
use crate::limits::{LAUNCHER_ANSWER_TIME_MAX, MEMORY_BYTES_MIN, UID_BASE};
use crate::protocol::{Reply, Request, Setup, receive, send};
use crate::{cgroup, compile};

/// What a launcher works with.
#[derive(Clone, Debug)]
pub struct LauncherConfig {
    /// The `netserv-worker` program. Everybody must be allowed to read and execute it.
    pub worker: PathBuf,
    /// A directory of the node's own; the launcher makes `containers/` and `launcher.lock` in it.
    pub state_dir: PathBuf,
    /// The node's name on this machine, part of cgroup names. No two nodes of a machine share one.
    pub instance: String,
    /// The first of the user ids that containers run as.
    pub uid_base: u32,
    /// The cgroup below which the node's own lies, as a path inside each hierarchy; nothing means the root.
    pub cgroup_parent: Option<PathBuf>,
    /// The program that becomes the launcher: it calls [`run_if_launcher`](crate::run_if_launcher) first.
    pub program: PathBuf,
}

impl LauncherConfig {
    /// Returns a configuration with everything else as usual: this very program becomes the launcher.
    pub fn new(worker: impl Into<PathBuf>, state_dir: impl Into<PathBuf>, instance: &str) -> LauncherConfig {
        LauncherConfig {
            worker: worker.into(),
            state_dir: state_dir.into(),
            instance: instance.to_owned(),
            uid_base: UID_BASE,
            cgroup_parent: None,
            program: PathBuf::from("/proc/self/exe"),
        }
    }
}

/// What the launcher found that it can and cannot enforce here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LauncherReport {
    /// What is enforced, a line each.
    pub enforced: Vec<String>,
    /// What is not, each with the reason.
    pub missing: Vec<String>,
}

/// The process that makes a node's containers. Dropping it ends all of them.
#[derive(Debug)]
pub struct Launcher {
    socket: Mutex<Option<OwnedFd>>,
    child: Child,
    report: LauncherReport,
    /// Held as long as the node uses the directory.
    _lock: File,
}

impl Launcher {
    /// Starts the launcher, after removing what an earlier one of the same instance left behind.
    ///
    /// # Errors
    /// [`ContainerError`] if another node uses the directory, or the machine lacks what containers need.
    pub fn start(config: &LauncherConfig) -> Result<Launcher, ContainerError> {
        check_instance(&config.instance)?;
        fs::create_dir_all(&config.state_dir).map_err(failed("make the state directory"))?;
        let lock = lock(&config.state_dir)?;
        remove_leftovers(&config.state_dir, &config.instance, config.cgroup_parent.as_deref());
        let root = config.state_dir.join(ROOT);
        fs::create_dir_all(&root).map_err(failed("make the root's directory"))?;
        let setup = Setup {
            worker: fs::canonicalize(&config.worker).map_err(failed("find the worker"))?,
            root: fs::canonicalize(&root).map_err(failed("find the root's directory"))?,
            instance: config.instance.clone(),
            uid_base: config.uid_base,
            cgroup_parent: config.cgroup_parent.clone(),
        };
        let (socket, theirs) = seqpacket().map_err(failed("make a socket"))?;
        let patience = Some(LAUNCHER_ANSWER_TIME_MAX);
        set_socket_timeout(&socket, Timeout::Recv, patience).map_err(|error| failed("make a socket")(error.into()))?;
        let mut command = Command::new(&config.program);
        command.arg0(LAUNCHER_NAME).stdin(Stdio::from(theirs)).stdout(Stdio::null()).stderr(Stdio::inherit());
        let child = command.spawn().map_err(failed("start the program"))?;
        // The command keeps the launcher's end of the socket, which would hide the launcher's death.
        drop(command);
        let mut launcher =
            Launcher { socket: Mutex::new(Some(socket)), child, report: LauncherReport::default(), _lock: lock };
        match launcher.ask(&Request::Setup(setup), &[])? {
            (Reply::Ready { enforced, missing }, _) => launcher.report = LauncherReport { enforced, missing },
            (Reply::Failed { step, detail, .. }, _) => {
                return Err(ContainerError::LauncherRefused(format!("{step}: {detail}")));
            }
            (Reply::Started { .. }, _) => return Err(unexpected()),
        }
        Ok(launcher)
    }

    /// Returns what is enforced on this machine and what is not.
    pub fn report(&self) -> &LauncherReport {
        &self.report
    }

    /// Returns its process number, for logs.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether the launcher still takes requests. One that does not is of no more use: drop it, and start another.
    pub fn is_up(&self) -> bool {
        // Whoever has the socket finds out for itself.
        let Ok(socket) = self.socket.try_lock() else { return true };
        let Some(socket) = socket.as_ref() else { return false };
        let mut fds = [PollFd::new(socket, PollFlags::empty())];
        let polled = poll(&mut fds, Some(&Timespec::default()));
        polled.is_ok() && !fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }

    /// Ends the launcher and with it all containers and compilations, also while others wait for them. Returns at once;
    /// dropping it waits for its end.
    pub fn end(&self) {
        *self.socket.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Starts a container, and returns when its process is the worker: about 2 ms. The worker says
    /// [`Ready`](netserv_wire::container::frames::FromWorker::Ready) a little later.
    ///
    /// # Errors
    /// [`ContainerError`] with the step that failed.
    pub fn launch(&self, user: &UserId, limits: &ContainerLimits) -> Result<Container, ContainerError> {
        check_limits(limits)?;
        let shared = Shared::new()?;
        let request = Request::Serve { limits: *limits };
        let (exit, their_exit) = exit_pipe()?;
        let mut fds = shared.fds();
        fds.push(their_exit.as_fd());
        let (started, mut fds) = self.started(&request, &fds)?;
        let pidfd = fds.pop().ok_or_else(unexpected)?;
        tracing::debug!(%user, pid = started.pid, uid = started.uid, landlock = started.landlock, "container started");
        Ok(shared.into_container(user.clone(), Process::new(started.pid, pidfd, exit), started.landlock))
    }

    /// Starts a compilation of the Wasm file. Returns its process and the directory with its output.
    pub(crate) fn start_compile(
        &self,
        wasm: &File,
        limits: &ContainerLimits,
    ) -> Result<(Process, OwnedFd), ContainerError> {
        check_limits(limits)?;
        let (exit, their_exit) = exit_pipe()?;
        let request = Request::Compile { limits: *limits };
        let (started, mut fds) = self.started(&request, &[wasm.as_fd(), their_exit.as_fd()])?;
        let output = fds.pop().ok_or_else(unexpected)?;
        let pidfd = fds.pop().ok_or_else(unexpected)?;
        Ok((Process::new(started.pid, pidfd, exit), output))
    }

    /// Compiles a Wasm file into code that the worker loads, by `netserv-worker compile` in a container of its own
    /// without control socket and ring. Blocks until that ends: call it off the control loop.
    ///
    /// # Errors
    /// The worker's own refusal, or `stalled`, `memory-limit` or `bad-code` if it could not say one.
    pub fn compile(
        &self,
        wasm: &Path,
        out: &Path,
        limits: &crate::limits::CompileLimits,
    ) -> Result<(), netserv_model::Refusal> {
        compile::compile(self, wasm, out, limits)
    }

    fn started(
        &self,
        request: &Request,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(StartedProcess, Vec<OwnedFd>), ContainerError> {
        match self.ask(request, fds)? {
            (Reply::Started { pid, uid, landlock }, fds) => Ok((StartedProcess { pid, uid, landlock }, fds)),
            (Reply::Failed { step, detail, quota: false }, _) => Err(ContainerError::Start { step, detail }),
            (Reply::Failed { detail, quota: true, .. }, _) => Err(ContainerError::Quota(detail)),
            (Reply::Ready { .. }, _) => Err(unexpected()),
        }
    }

    fn ask(&self, request: &Request, fds: &[BorrowedFd<'_>]) -> Result<(Reply, Vec<OwnedFd>), ContainerError> {
        let mut guard = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = |reason: &dyn ToString| ContainerError::LauncherGone(reason.to_string());
        let socket = guard.as_ref().ok_or_else(|| gone(&"it was given up"))?;
        let answer = send(socket, request, fds).and_then(|()| receive::<Reply>(socket));
        match answer {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(gone(&"it ended")),
            Err(error) => {
                // An answer that comes late would be taken for that of the next request.
                *guard = None;
                Err(gone(&error))
            }
        }
    }
}

struct StartedProcess {
    pid: i32,
    uid: u32,
    landlock: String,
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // The end of its socket makes the launcher end all containers and then itself.
        *self.socket.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        let until = Instant::now() + Duration::from_secs(3);
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > until {
                tracing::warn!("the launcher does not end; killing it");
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Removes what an earlier run of the instance left on the machine: processes, cgroups, directories. Returns how many
/// cgroups it found. [`Launcher::start`] does it too.
///
/// # Errors
/// [`ContainerError::InUse`] if a node with this state directory runs.
pub fn cleanup_leftovers(state_dir: &Path, instance: &str) -> Result<usize, ContainerError> {
    check_instance(instance)?;
    if !state_dir.exists() {
        return Ok(remove_leftovers(state_dir, instance, None));
    }
    let _lock = lock(state_dir)?;
    Ok(remove_leftovers(state_dir, instance, None))
}

/// The directory, in the state directory, over which the launcher mounts the root for itself.
const ROOT: &str = "containers";
const LOCK: &str = "launcher.lock";

fn remove_leftovers(state_dir: &Path, instance: &str, cgroup_parent: Option<&Path>) -> usize {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let found = cgroup::cleanup(&mounts, instance, cgroup_parent);
    if found > 0 {
        tracing::warn!(found, instance, "removed cgroups that an earlier run left");
    }
    let _ = fs::remove_dir(state_dir.join(ROOT));
    found
}

fn lock(state_dir: &Path) -> Result<File, ContainerError> {
    let path = state_dir.join(LOCK);
    let options = File::options().create(true).truncate(false).write(true).open(&path);
    let file = options.map_err(failed("open the lock file"))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(ContainerError::InUse(state_dir.to_owned())),
        Err(error) => Err(failed("lock the state directory")(error.into())),
    }
}

fn check_instance(instance: &str) -> Result<(), ContainerError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let good = (1..=64).contains(&instance.len()) && instance.bytes().all(allowed);
    if good { Ok(()) } else { Err(ContainerError::BadInstance(instance.chars().take(80).collect())) }
}

fn check_limits(limits: &ContainerLimits) -> Result<(), ContainerError> {
    if limits.memory_bytes < MEMORY_BYTES_MIN {
        let text =
            format!("a container needs at least {MEMORY_BYTES_MIN} bytes of memory, not {}", limits.memory_bytes);
        return Err(ContainerError::Quota(text));
    }
    if limits.pids == 0 || limits.cpu_permille == 0 || limits.disk_bytes == 0 {
        return Err(ContainerError::Quota("a container needs a process, processor time and a directory".to_owned()));
    }
    Ok(())
}

pub(crate) fn seqpacket() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

pub(crate) fn exit_pipe() -> Result<(OwnedFd, OwnedFd), ContainerError> {
    let prepare = |source: rustix::io::Errno| ContainerError::Prepare { step: "make a pipe", source: source.into() };
    let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(prepare)?;
    rustix::fs::fcntl_setfl(&ours, rustix::fs::OFlags::NONBLOCK).map_err(prepare)?;
    Ok((ours, theirs))
}

fn failed(step: &'static str) -> impl Fn(io::Error) -> ContainerError {
    move |source| ContainerError::Launcher { step, source }
}

fn unexpected() -> ContainerError {
    ContainerError::LauncherGone("it answered another question".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_names_cannot_leave_their_directory() {
        for bad in ["", "a/b", "../x", "a b", &"x".repeat(65)] {
            assert!(matches!(check_instance(bad), Err(ContainerError::BadInstance(_))), "{bad}");
        }
        assert!(check_instance("node-1.example").is_ok());
    }

    #[test]
    fn limits_that_cannot_work_are_refused() {
        let good = ContainerLimits::default();
        assert!(check_limits(&good).is_ok());
        for bad in [
            ContainerLimits { memory_bytes: MEMORY_BYTES_MIN - 1, ..good },
            ContainerLimits { cpu_permille: 0, ..good },
            ContainerLimits { pids: 0, ..good },
            ContainerLimits { disk_bytes: 0, ..good },
        ] {
            assert!(matches!(check_limits(&bad), Err(ContainerError::Quota(_))), "{bad:?}");
        }
    }

    #[test]
    fn a_state_directory_has_one_launcher() {
        let directory = tempfile::tempdir().unwrap();
        let held = lock(directory.path()).unwrap();
        assert!(matches!(cleanup_leftovers(directory.path(), "x"), Err(ContainerError::InUse(_))));
        drop(held);
        assert_eq!(cleanup_leftovers(directory.path(), "ns-container-none").unwrap(), 0);
    }

    #[test]
    fn a_launcher_that_does_not_answer_is_given_up() {
        let (socket, _theirs) = seqpacket().unwrap();
        set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_millis(20))).unwrap();
        let launcher = Launcher {
            socket: Mutex::new(Some(socket)),
            child: Command::new("true").spawn().unwrap(),
            report: LauncherReport::default(),
            _lock: tempfile::tempfile().unwrap(),
        };
        let user = "janedoe".parse().unwrap();
        let launch = || launcher.launch(&user, &ContainerLimits::default()).unwrap_err();
        assert!(matches!(launch(), ContainerError::LauncherGone(_)));
        let error = launch();
        assert!(matches!(&error, ContainerError::LauncherGone(text) if text == "it was given up"), "{error}");
    }
}
