// SPDX-License-Identifier: Apache-2.0
//! A running container as its node sees it.

use std::io;

use netserv_model::UserId;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::control::ControlChannel;
use super::process::Process;
use super::ring::HostRing;
use super::scheduling::{Class, ScheduledThread};

/// A running container. Dropping its [`Process`] kills it.
#[derive(Debug)]
pub struct Container {
    user: UserId,
    landlock: String,
    control: ControlChannel,
    /// By lane.
    rings: Vec<HostRing>,
    process: Process,
}

impl Container {
    pub(crate) fn new(
        user: UserId,
        control: ControlChannel,
        rings: Vec<HostRing>,
        process: Process,
        landlock: String,
    ) -> Container {
        Container { user, landlock, control, rings, process }
    }

    /// Returns whose container it is.
    pub fn user(&self) -> &UserId {
        &self.user
    }

    /// Returns how much of Landlock is enforced in it, in words.
    pub fn landlock(&self) -> &str {
        &self.landlock
    }

    /// Lets the worker's packet thread be in the real-time class, on these cores only. This can take 20 ms.
    ///
    /// It leaves the container's limit of processor time, so this is for a container that may use a whole processor. The
    /// packet thread of a JVM is not its first, and stays in the usual class.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn permit_real_time(&mut self, cores: &[usize]) -> io::Result<()> {
        let thread = ScheduledThread::first_of(self.process.pid())?;
        let mut set = CpuSet::new();
        cores.iter().filter(|core| **core < CpuSet::MAX_CPU).for_each(|core| set.set(*core));
        sched_setaffinity(Pid::from_raw(self.process.pid()), &set)?;
        let class = Class::RealTime(1);
        thread.set_class(class).or_else(|_| thread.join_own_group().and_then(|()| thread.set_class(class)))?;
        thread.set_class(Class::Usual)?;
        self.rings[0].set_thread(thread);
        Ok(())
    }

    /// Returns whether the worker's first packet thread may be in the real-time class. Its other threads never are.
    pub fn may_be_real_time(&self) -> bool {
        self.rings[0].has_thread()
    }

    /// Takes the container apart: the control part for the control loop, and a ring for the packet thread of each lane, that of
    /// lane 0 first.
    pub fn split(self) -> (ControlChannel, Vec<HostRing>, Process) {
        (self.control, self.rings, self.process)
    }
}
