// SPDX-License-Identifier: Apache-2.0
//! A running container as its node sees it.

use netserv_model::UserId;

use super::control::ControlChannel;
use super::process::Process;
use super::ring::HostRing;

/// A running container. Dropping its [`Process`] kills it.
#[derive(Debug)]
pub struct Container {
    user: UserId,
    landlock: String,
    control: ControlChannel,
    ring: HostRing,
    process: Process,
}

impl Container {
    pub(crate) fn new(
        user: UserId,
        control: ControlChannel,
        ring: HostRing,
        process: Process,
        landlock: String,
    ) -> Container {
        Container { user, landlock, control, ring, process }
    }

    /// Returns whose container it is.
    pub fn user(&self) -> &UserId {
        &self.user
    }

    /// Returns how much of Landlock is enforced in it, in words.
    pub fn landlock(&self) -> &str {
        &self.landlock
    }

    /// Takes the container apart: the control part for the control loop, the ring for a packet thread.
    pub fn split(self) -> (ControlChannel, HostRing, Process) {
        (self.control, self.ring, self.process)
    }
}
