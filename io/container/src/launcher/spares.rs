// SPDX-License-Identifier: Apache-2.0
//! Processes that wait to become workers, and the groups that all are in.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use netserv_model::policy::ContainerLimits;
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use super::kit::Kit;
use super::orders::Orders;
use super::spare::Spare;
use crate::limits::SPARES;
use crate::protocol::step::{Step as _, StepError};
use crate::sandbox::cgroup::{Cgroups, Group};

/// The launcher's spares.
pub(super) struct Spares {
    cgroups: Cgroups,
    waiting: Vec<Spare>,
    /// Counts groups, so that no two have the same name.
    groups: u64,
    /// Groups that a process was still leaving when they were to be removed.
    leaving: Vec<Group>,
}

impl Spares {
    pub(super) fn new(cgroups: Cgroups) -> Spares {
        Spares { cgroups, waiting: vec![], groups: 0, leaving: vec![] }
    }

    /// Makes spares until there are so many. What goes wrong here is told with the next container, which then
    /// makes one for itself.
    pub(super) fn refill(&mut self, kit: &Kit, wanted: usize) {
        while self.waiting.len() < wanted {
            let Ok(spare) = self.fork(kit) else { return };
            self.waiting.push(spare);
        }
    }

    /// Returns whether more are to be made.
    pub(super) fn are_missing(&self) -> bool {
        self.waiting.len() < SPARES
    }

    /// Makes a spare a worker, in its own groups with these limits or in those of another worker. Returns it with how
    /// much of Landlock is enforced.
    pub(super) fn start(
        &mut self,
        kit: &Kit,
        limits: &ContainerLimits,
        orders: &Orders,
        beside: Option<&Group>,
        fds: &[OwnedFd],
    ) -> Result<(Spare, String), StepError> {
        let mut spare = self.living().map_or_else(|| self.fork(kit), Ok)?;
        let limited = match beside {
            Some(_) => Ok(()),
            None => spare.group.limit(limits).step("limit cgroups"),
        };
        match limited.and_then(|()| spare.become_worker(orders, beside, fds)) {
            Ok(landlock) => Ok((spare, landlock)),
            // Another one could not have the file systems that this one may have taken.
            Err(error) => {
                self.discard(spare);
                Err(error)
            }
        }
    }

    /// Returns a spare that is alive: one may have died while it waited.
    fn living(&mut self) -> Option<Spare> {
        while let Some(spare) = self.waiting.pop() {
            if spare.is_alive() {
                return Some(spare);
            }
            self.discard(spare);
        }
        None
    }

    /// Removes groups, at once or as soon as the last process left.
    pub(super) fn leave(&mut self, mut group: Group) {
        if !group.remove() {
            self.leaving.push(group);
        }
    }

    /// Tries again to remove groups that a process was leaving. Returns whether any is left.
    pub(super) fn sweep(&mut self) -> bool {
        self.leaving.retain_mut(|group| !group.remove());
        !self.leaving.is_empty()
    }

    /// Returns whether there are groups to be removed yet.
    pub(super) fn are_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Takes everything along.
    pub(super) fn end(&mut self) {
        for spare in std::mem::take(&mut self.waiting) {
            self.discard(spare);
        }
        for _ in 0..200 {
            if !self.sweep() {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.cgroups.remove_parents();
    }

    fn fork(&mut self, kit: &Kit) -> Result<Spare, StepError> {
        self.groups += 1;
        let group = self.cgroups.create(&format!("c{}", self.groups)).step("make cgroups")?;
        Spare::fork(kit, group).map_err(|(error, group)| {
            self.leaving.push(group);
            error
        })
    }

    fn discard(&mut self, spare: Spare) {
        let _ = pidfd_send_signal(&spare.pidfd, Signal::KILL);
        let _ = waitid(WaitId::PidFd(spare.pidfd.as_fd()), WaitIdOptions::EXITED);
        self.leaving.push(spare.group);
    }
}
