// SPDX-License-Identifier: Apache-2.0
//! The node's side of the launcher.

use std::fs::{self, File};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use netserv_model::policy::ContainerLimits;
use netserv_model::{Flavour, UserId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::config::{LaunchSpec, LauncherConfig, LauncherReport};
use super::container::Container;
use super::leftovers::{check_instance, lock, remove_leftovers};
use super::process::Process;
use super::shared::Shared;
use crate::error::ContainerError;
use crate::limits::{JAVA_MEMORY_BYTES_MIN, LAUNCHER_ANSWER_TIME_MAX, MEMORY_BYTES_MIN};
use crate::network::ContainerNetwork;
use crate::protocol::names::LAUNCHER_NAME;
use crate::protocol::socket::{exit_pipe, receive, send, seqpacket};
use crate::protocol::{Reply, Request, Serve, StorageSetup};

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
        fs::create_dir_all(&config.state_dir).map_err(ContainerError::launcher("make the state directory"))?;
        let lock = lock(&config.state_dir)?;
        remove_leftovers(&config.state_dir, &config.instance, config.cgroup_parent.as_deref());
        let setup = config.setup()?;
        let (socket, theirs) = seqpacket().map_err(ContainerError::launcher("make a socket"))?;
        let patience = Some(LAUNCHER_ANSWER_TIME_MAX);
        set_socket_timeout(&socket, Timeout::Recv, patience)
            .map_err(|error| ContainerError::launcher("make a socket")(error.into()))?;
        let mut command = Command::new(&config.program);
        command.arg0(LAUNCHER_NAME).stdin(Stdio::from(theirs)).stdout(Stdio::null()).stderr(Stdio::inherit());
        let child = command.spawn().map_err(ContainerError::launcher("start the program"))?;
        // The command keeps the launcher's end of the socket, which would hide the launcher's death.
        drop(command);
        let mut launcher =
            Launcher { socket: Mutex::new(Some(socket)), child, report: LauncherReport::default(), _lock: lock };
        match launcher.ask(&Request::Setup(Box::new(setup)), &[])? {
            (Reply::Ready { enforced, missing }, _) => launcher.report = LauncherReport { enforced, missing },
            (Reply::Failed { step, detail, .. }, _) => {
                return Err(ContainerError::LauncherRefused(format!("{step}: {detail}")));
            }
            (Reply::Started { .. } | Reply::Limited, _) => return Err(unexpected()),
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
        // The request that holds the socket sees for itself if the launcher is gone.
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
        let LaunchSpec { user, flavour, limits, beside, network, storage, lanes } = *spec;
        let shared = Shared::new(lanes)?;
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
        let StartedProcess { pid, uid, landlock, memory } = started;
        tracing::debug!(%user, %flavour, pid, uid, landlock, "worker started");
        shared.into_container(user.clone(), Process::new(pid, pidfd, exit).with_memory(memory), landlock)
    }

    /// Holds a user's workers that run to other limits; their files on disk and what they keep in memory by themselves stay
    /// as they were when they started.
    ///
    /// # Errors
    /// [`ContainerError`] if they hold more memory than they may by that; then all is as it was.
    pub fn limit(&self, user: &UserId, limits: &ContainerLimits) -> Result<(), ContainerError> {
        check_limits(Flavour::Wasm, limits)?;
        match self.ask(&Request::Limit { user: user.clone(), limits: *limits }, &[])? {
            (Reply::Limited, _) => Ok(()),
            (Reply::Failed { step, detail, .. }, _) => Err(ContainerError::Start { step, detail }),
            (Reply::Ready { .. } | Reply::Started { .. }, _) => Err(unexpected()),
        }
    }

    pub(super) fn to_background(&self, pid: i32, limits: &ContainerLimits) -> Result<(), ContainerError> {
        match self.ask(&Request::Background { pid, limits: *limits }, &[])? {
            (Reply::Limited, _) => Ok(()),
            (Reply::Failed { step, detail, .. }, _) => Err(ContainerError::Start { step, detail }),
            (Reply::Ready { .. } | Reply::Started { .. }, _) => Err(unexpected()),
        }
    }

    /// Starts a process that is no worker. Returns its number and descriptor.
    pub(super) fn start_alone(
        &self,
        request: &Request,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(i32, OwnedFd), ContainerError> {
        let (started, mut fds) = self.started(request, fds)?;
        Ok((started.pid, fds.pop().ok_or_else(unexpected)?))
    }

    /// Starts a process that leaves a file in a directory. Returns the process and the directory.
    pub(super) fn start_making(
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

    fn started(
        &self,
        request: &Request,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(StartedProcess, Vec<OwnedFd>), ContainerError> {
        match self.ask(request, fds)? {
            (Reply::Started { pid, uid, landlock, memory }, fds) => {
                Ok((StartedProcess { pid, uid, landlock, memory }, fds))
            }
            (Reply::Failed { step, detail, quota: false }, _) => Err(ContainerError::Start { step, detail }),
            (Reply::Failed { detail, quota: true, .. }, _) => Err(ContainerError::Quota(detail)),
            (Reply::Ready { .. } | Reply::Limited, _) => Err(unexpected()),
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
    memory: Option<PathBuf>,
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

pub(super) fn check_limits(flavour: Flavour, limits: &ContainerLimits) -> Result<(), ContainerError> {
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

fn unexpected() -> ContainerError {
    ContainerError::LauncherGone("it answered another question".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
