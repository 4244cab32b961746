// SPDX-License-Identifier: Apache-2.0
//! A program may be executed once, by which the new process becomes the worker, and never again.
//!
//! A filter cannot count. This one asks another process each time: the launcher, which says yes to the first question
//! and then closes the descriptor over which questions come, after which the kernel answers `ENOSYS` itself.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use seccompiler::{BpfProgram, Error, SeccompAction, SeccompFilter, TargetArch};

use crate::sys;

/// Returns the filter that asks.
pub(crate) fn filter() -> Result<BpfProgram, Error> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let calls = BTreeMap::from([(libc::SYS_execve, vec![])]);
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, SeccompAction::Trace(PLACEHOLDER), arch)?;
    let mut program: BpfProgram = filter.try_into()?;
    let returns = libc::SECCOMP_RET_TRACE | PLACEHOLDER;
    program.iter_mut().filter(|one| one.k == returns).for_each(|one| one.k = libc::SECCOMP_RET_USER_NOTIF);
    Ok(program)
}

/// Loads the filter into this process. Returns the descriptor over which its questions come; an error if the kernel has
/// no such filters, or if another process answers for this one already, as in some containers.
pub(crate) fn load(filter: &BpfProgram) -> io::Result<OwnedFd> {
    sys::load_filter_with_listener(filter)
}

/// Answers the first question with yes.
pub(crate) fn permit(listener: impl AsFd, at_most: Duration) -> io::Result<()> {
    let timeout = Timespec::try_from(at_most).map_err(io::Error::other)?;
    let mut fds = [PollFd::new(&listener, PollFlags::IN)];
    poll(&mut fds, Some(&timeout))?;
    if !fds[0].revents().contains(PollFlags::IN) {
        return Err(io::Error::other("the new process does not ask to become the worker"));
    }
    sys::permit_call(&listener)
}

/// Marks the place in the filter where the kernel's code for asking goes, which the library does not know.
const PLACEHOLDER: u32 = 0x6e73;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_place_asks() {
        let asks = |one: &&seccompiler::sock_filter| one.k == libc::SECCOMP_RET_USER_NOTIF;
        assert_eq!(filter().unwrap().iter().filter(asks).count(), 1);
    }
}
