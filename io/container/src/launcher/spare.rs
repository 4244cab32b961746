// SPDX-License-Identifier: Apache-2.0
//! One container's birth: a clone into new namespaces, which waits for its orders and becomes what they say.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::child::{Locked, Progress, become_worker};
use super::kit::Kit;
use super::orders::Orders;
use crate::limits::PERMIT_TIME_MAX;
use crate::protocol::socket::{receive, send, seqpacket};
use crate::protocol::step::{Step as _, StepError, step_error};
use crate::sandbox::cgroup::Group;
use crate::sandbox::seccomp::once;
use crate::sys::{self, Cloned};

/// A process in its own namespaces and groups, ready to become a worker.
///
/// The launcher keeps a few of them ([`SPARES`](crate::limits::SPARES)), because entering a cgroup may take 20 ms, of
/// which a container's start then sees nothing. A spare may become a worker of any flavour.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) group: Group,
    pub(super) pid: i32,
    pub(super) pidfd: OwnedFd,
    orders: OwnedFd,
    progress: OwnedFd,
}

impl Spare {
    /// Forks a spare, which goes on by itself.
    pub(super) fn fork(kit: &Kit, group: Group) -> Result<Spare, (StepError, Group)> {
        match Spare::try_fork(kit, &group) {
            Ok((pid, pidfd, orders, progress)) => Ok(Spare { group, pid, pidfd, orders, progress }),
            Err(error) => Err((error, group)),
        }
    }

    fn try_fork(kit: &Kit, group: &Group) -> Result<(i32, OwnedFd, OwnedFd, OwnedFd), StepError> {
        let (progress, report) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).step("pipe")?;
        let (orders, their_orders) = seqpacket().step("socket pair")?;
        match sys::clone_into(NAMESPACES).step("clone3")? {
            Cloned::Child => {
                drop((progress, orders));
                become_worker(kit, group, their_orders, report)
            }
            Cloned::Parent { pid, pidfd } => Ok((pid, pidfd, orders, progress)),
        }
    }

    /// Returns whether the process has not ended.
    pub(super) fn is_alive(&self) -> bool {
        poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&Timespec::default())).is_ok_and(|ended| ended == 0)
    }

    /// Makes the spare a worker, in its own groups or in those of another, and waits until it is. Returns how much of
    /// Landlock is enforced. If it fails, the spare is dead, but not yet collected.
    pub(super) fn become_worker(
        &mut self,
        orders: &Orders,
        beside: Option<&Group>,
        fds: &[OwnedFd],
    ) -> Result<String, StepError> {
        let outcome = self.try_become_worker(orders, beside, fds);
        if outcome.is_err() {
            let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
        outcome
    }

    fn try_become_worker(
        &mut self,
        orders: &Orders,
        beside: Option<&Group>,
        fds: &[OwnedFd],
    ) -> Result<String, StepError> {
        let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
        let sent = send(&self.orders, orders, &fds);
        // Nothing comes if the new process dies, of which the report below tells.
        if let Ok(Some((Locked, mut listener))) = receive(&self.orders) {
            // Earlier the new process might still have been on its way into its own groups.
            beside.map_or(Ok(()), |group| group.admit(self.pid)).step("join cgroups")?;
            if let Some(listener) = listener.pop() {
                once::permit(listener, PERMIT_TIME_MAX).step("permit to exec the worker")?;
            }
        }
        let text = read_to_end(&self.progress, PERMIT_TIME_MAX).step("read progress")?;
        let mut landlock = None;
        for line in text.lines() {
            match serde_json::from_str(line) {
                Ok(Progress::Locked { landlock: status }) => landlock = Some(status),
                Ok(Progress::Failed(error)) => return Err(error),
                Err(error) => return Err(step_error("read progress", &error)),
            }
        }
        sent.step("send orders")?;
        landlock.ok_or_else(|| step_error("lock up", &"the new process died"))
    }
}

/// Reads until the other end is closed, which a process may put off that gets no processor time.
fn read_to_end(progress: &OwnedFd, at_most: Duration) -> io::Result<String> {
    let until = Instant::now() + at_most;
    let (mut text, mut buffer) = (vec![], [0; 4096]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        if poll(&mut [PollFd::new(progress, PollFlags::IN)], Some(&timeout))? == 0 {
            let detail = format!("the new process does not become the worker within {} s", at_most.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, detail));
        }
        match rustix::io::read(progress, &mut buffer)? {
            0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
            length => text.extend_from_slice(&buffer[..length]),
        }
    }
}

const NAMESPACES: libc::c_int =
    libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWNET;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_does_not_become_the_worker_is_not_waited_for() {
        let (progress, report) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&report, b"locked\n").unwrap();
        let error = read_to_end(&progress, Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        rustix::io::write(&report, b"failed\n").unwrap();
        drop(report);
        assert_eq!(read_to_end(&progress, Duration::from_secs(5)).unwrap(), "failed\n");
    }
}
