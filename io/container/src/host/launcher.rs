// SPDX-License-Identifier: Apache-2.0
//! The node's side of the launcher.

use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use netserv_model::policy::ContainerLimits;
use netserv_model::{Flavour, UserId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FlockOperation;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::error::ContainerError;
use crate::host::build;
use crate::host::container::{Container, Process, Shared};
use crate::host::media::MediaFiles;
use crate::launcher::LAUNCHER_NAME;
use crate::limits::{BuildLimits, JAVA_MEMORY_BYTES_MIN, LAUNCHER_ANSWER_TIME_MAX, MEMORY_BYTES_MIN, UID_BASE};
use crate::network::ContainerNetwork;
use crate::protocol::{JvmSetup, MediaSetup, Reply, Request, Serve, Setup, StorageSetup, receive, send};
use crate::sandbox::cgroup;
use crate::sandbox::storage::Storage;

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
    /// Whom Wasm modules ask for names, as far as their users are permitted to; the first three count.
    pub name_servers: Vec<IpAddr>,
    /// Certificate authorities in PEM that Wasm modules trust beside those of Mozilla's list, at most
    /// [`AUTHORITIES_BYTES_MAX`](netserv_model::limits::AUTHORITIES_BYTES_MAX). The file is read once.
    pub authorities: Option<PathBuf>,
    /// What Java workers are made of; nothing on a node that runs none.
    pub jvm: Option<JvmFiles>,
    /// What media jobs are made of; nothing on a node that takes none.
    pub media: Option<MediaFiles>,
}

/// What Java workers are made of. Everybody must be allowed to read all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JvmFiles {
    /// The `netserv-jvm` program.
    pub worker: PathBuf,
    /// The Java installation, version 17 or later.
    pub java_home: PathBuf,
    /// The directory with our own `host/*.jar` and `blocks/*.jar`.
    pub host: PathBuf,
    /// A directory of the node's own for the archive of classes; made if it is not there.
    pub archive: PathBuf,
    /// Whom modules ask for names, as far as their users are permitted to; the first three count.
    pub name_servers: Vec<IpAddr>,
}

/// A worker that is to be started.
#[derive(Clone, Copy, Debug)]
pub struct LaunchSpec<'a> {
    /// Whose.
    pub user: &'a UserId,
    /// Which kind.
    pub flavour: Flavour,
    /// What the user's container may use, both workers together. One that joins the other finds them set.
    pub limits: &'a ContainerLimits,
    /// The process number of the user's other worker, whose cgroup this one joins; one of its own if that has ended.
    pub beside: Option<i32>,
    /// The container's network, which the worker enters; without one it makes no sockets.
    pub network: Option<&'a ContainerNetwork>,
    /// What it may keep on disk, beyond its own end; without it nothing.
    pub storage: Option<Storage<'a>>,
}

impl<'a> LaunchSpec<'a> {
    /// Returns a worker by itself and without a network.
    pub fn new(user: &'a UserId, flavour: Flavour, limits: &'a ContainerLimits) -> LaunchSpec<'a> {
        LaunchSpec { user, flavour, limits, beside: None, network: None, storage: None }
    }
}

impl JvmFiles {
    fn setup(&self, state_dir: &Path) -> Result<JvmSetup, ContainerError> {
        fs::create_dir_all(&self.archive).map_err(failed("make the archive's directory"))?;
        // Workers have users of their own.
        let readable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&self.archive, readable).map_err(failed("make the archive's directory"))?;
        let find = |path: &Path, step| fs::canonicalize(path).map_err(failed(step));
        Ok(JvmSetup {
            worker: find(&self.worker, "find the Java worker")?,
            java_home: find(&self.java_home, "find Java")?,
            host: find(&self.host, "find the jars of the Java host")?,
            archive: find(&self.archive, "find the archive's directory")?,
            name_servers: self.name_servers.clone(),
            root: root_directory(state_dir, JAVA_ROOT)?,
        })
    }
}

fn media_setup(files: &MediaFiles, state_dir: &Path) -> Result<MediaSetup, ContainerError> {
    let find = |path: &Path, step| fs::canonicalize(path).map_err(failed(step));
    let font = files.font.as_ref().map(|font| find(font, "find the font")).transpose()?;
    let (ffmpeg, ffprobe) = (find(&files.ffmpeg, "find ffmpeg")?, find(&files.ffprobe, "find ffprobe")?);
    Ok(MediaSetup { files: MediaFiles { ffmpeg, ffprobe, font }, root: root_directory(state_dir, MEDIA_ROOT)? })
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
            name_servers: Vec::new(),
            authorities: None,
            jvm: None,
            media: None,
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
        let setup = Setup {
            worker: fs::canonicalize(&config.worker).map_err(failed("find the worker"))?,
            root: root_directory(&config.state_dir, ROOT)?,
            name_servers: config.name_servers.clone(),
            authorities: config
                .authorities
                .as_ref()
                .map(fs::canonicalize)
                .transpose()
                .map_err(failed("find the authorities"))?,
            jvm: config.jvm.as_ref().map(|files| files.setup(&config.state_dir)).transpose()?,
            media: config.media.as_ref().map(|files| media_setup(files, &config.state_dir)).transpose()?,
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
        match launcher.ask(&Request::Setup(Box::new(setup)), &[])? {
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

    /// Starts a worker, and returns when its process is that: about 2 ms, and 20 ms more under cgroup version 1 to join
    /// another's groups. The worker says [`Ready`](netserv_wire::container::frames::FromWorker::Ready) a little later.
    ///
    /// # Errors
    /// [`ContainerError`] with the step that failed.
    pub fn launch(&self, spec: &LaunchSpec<'_>) -> Result<Container, ContainerError> {
        check_limits(spec.flavour, spec.limits)?;
        let LaunchSpec { user, flavour, limits, beside, network, storage } = *spec;
        let shared = Shared::new()?;
        let storage = storage.map(|storage| StorageSetup {
            directory: storage.directory.to_owned(),
            kv_bytes: storage.kv_bytes,
            cache_bytes: storage.cache_bytes,
        });
        let network_given = network.is_some();
        let serve = Serve { user: user.clone(), flavour, limits: *limits, beside, network: network_given, storage };
        let (exit, their_exit) = exit_pipe()?;
        let mut fds = shared.fds();
        fds.push(their_exit.as_fd());
        fds.extend(network.map(ContainerNetwork::netns));
        let (started, mut fds) = self.started(&Request::Serve(serve), &fds)?;
        let pidfd = fds.pop().ok_or_else(unexpected)?;
        let StartedProcess { pid, uid, landlock } = started;
        tracing::debug!(%user, %flavour, pid, uid, landlock, "worker started");
        Ok(shared.into_container(user.clone(), Process::new(pid, pidfd, exit), landlock))
    }

    /// Starts a process that is no worker. Returns its number and descriptor.
    pub(crate) fn start_alone(
        &self,
        request: &Request,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(i32, OwnedFd), ContainerError> {
        let (started, mut fds) = self.started(request, fds)?;
        Ok((started.pid, fds.pop().ok_or_else(unexpected)?))
    }

    /// Starts a process that leaves a file in a directory. Returns the process and the directory.
    pub(crate) fn start_making(
        &self,
        request: &Request,
        inputs: &[File],
    ) -> Result<(Process, OwnedFd), ContainerError> {
        let (exit, their_exit) = exit_pipe()?;
        let mut fds: Vec<BorrowedFd<'_>> = inputs.iter().map(|file| file.as_fd()).collect();
        fds.push(their_exit.as_fd());
        let (started, mut fds) = self.started(request, &fds)?;
        let output = fds.pop().ok_or_else(unexpected)?;
        let pidfd = fds.pop().ok_or_else(unexpected)?;
        Ok((Process::new(started.pid, pidfd, exit), output))
    }

    /// Compiles a Wasm file into code that the worker loads, by `netserv-worker compile` in a container of its own
    /// without control socket and ring. Blocks until that ends: call it off the control loop.
    ///
    /// # Errors
    /// The worker's own refusal, or `stalled`, `memory-limit` or `bad-code` if it could not say one.
    pub fn compile(&self, wasm: &Path, out: &Path, limits: &BuildLimits) -> Result<(), netserv_model::Refusal> {
        check_limits(Flavour::Wasm, &limits.container)?;
        build::compile(self, &[wasm], out, limits)
    }

    /// Composes components, of which each hands HTTP requests on to the next, and compiles that, as
    /// [`Launcher::compile`] does.
    ///
    /// # Errors
    /// Those of [`Launcher::compile`].
    pub fn compose(&self, parts: &[&Path], out: &Path, limits: &BuildLimits) -> Result<(), netserv_model::Refusal> {
        check_limits(Flavour::Wasm, &limits.container)?;
        build::compile(self, parts, out, limits)
    }

    /// Makes the archive of classes that lets Java workers start faster, by `netserv-jvm archive` in a container of its
    /// own, and puts it at `out`, in one step. Workers find it if `out` is
    /// [`ARCHIVE_FILE`](crate::ARCHIVE_FILE) in the directory that [`JvmFiles::archive`] names. Blocks until that ends:
    /// seconds, so call it off the control loop.
    ///
    /// # Errors
    /// Why there is none. Workers start without it all the same.
    pub fn archive(&self, out: &Path, limits: &BuildLimits) -> Result<(), netserv_model::Refusal> {
        check_limits(Flavour::Osgi, &limits.container)?;
        build::archive(self, out, limits)
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
/// Likewise for Java workers.
const JAVA_ROOT: &str = "java-containers";
/// Likewise for media jobs.
const MEDIA_ROOT: &str = "media-jobs";
const LOCK: &str = "launcher.lock";

fn remove_leftovers(state_dir: &Path, instance: &str, cgroup_parent: Option<&Path>) -> usize {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let found = cgroup::cleanup(&mounts, instance, cgroup_parent);
    if found > 0 {
        tracing::warn!(found, instance, "removed cgroups that an earlier run left");
    }
    for root in [ROOT, JAVA_ROOT, MEDIA_ROOT] {
        let _ = fs::remove_dir(state_dir.join(root));
    }
    found
}

fn root_directory(state_dir: &Path, name: &str) -> Result<PathBuf, ContainerError> {
    let root = state_dir.join(name);
    fs::create_dir_all(&root).map_err(failed("make the root's directory"))?;
    fs::canonicalize(&root).map_err(failed("find the root's directory"))
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

pub(crate) fn check_limits(flavour: Flavour, limits: &ContainerLimits) -> Result<(), ContainerError> {
    let least = match flavour {
        Flavour::Wasm => MEMORY_BYTES_MIN,
        Flavour::Osgi => JAVA_MEMORY_BYTES_MIN,
    };
    if limits.memory_bytes < least {
        let memory = limits.memory_bytes;
        let text = format!("a container with {flavour} modules needs at least {least} bytes of memory, not {memory}");
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
        assert!(Flavour::ALL.iter().all(|flavour| check_limits(*flavour, &good).is_ok()));
        for bad in [
            ContainerLimits { memory_bytes: MEMORY_BYTES_MIN - 1, ..good },
            ContainerLimits { cpu_permille: 0, ..good },
            ContainerLimits { pids: 0, ..good },
            ContainerLimits { disk_bytes: 0, ..good },
        ] {
            assert!(matches!(check_limits(Flavour::Wasm, &bad), Err(ContainerError::Quota(_))), "{bad:?}");
        }
        let little = ContainerLimits { memory_bytes: JAVA_MEMORY_BYTES_MIN - 1, ..good };
        assert!(check_limits(Flavour::Wasm, &little).is_ok());
        assert!(matches!(check_limits(Flavour::Osgi, &little), Err(ContainerError::Quota(_))));
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
        let limits = ContainerLimits::default();
        let launch = || launcher.launch(&LaunchSpec::new(&user, Flavour::Wasm, &limits)).unwrap_err();
        assert!(matches!(launch(), ContainerError::LauncherGone(_)));
        let error = launch();
        assert!(matches!(&error, ContainerError::LauncherGone(text) if text == "it was given up"), "{error}");
    }
}
