// SPDX-License-Identifier: Apache-2.0
//! Frames to a worker, of which those that it has no room for wait.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use netserv_container::{ControlChannel, ControlError};
use netserv_model::{Refusal, RefusalKind, WorkerId};
use netserv_wire::container::frames::{FromWorker, ToWorker};

use super::Workers;
use super::watch::remind;
use crate::event::ContainerEvent;
use crate::limits::{FRAMES_UNSENT_MAX, SEND_PAUSE};

/// A worker's control channel, with the frames that wait to be sent.
pub struct Outbox {
    control: ControlChannel,
    waiting: VecDeque<ToWorker>,
}

impl Outbox {
    /// Returns one with which nothing waits.
    pub fn new(control: ControlChannel) -> Outbox {
        Outbox { control, waiting: VecDeque::new() }
    }

    /// Sends a frame at once, after those that wait.
    ///
    /// # Errors
    /// [`ControlError::Full`] if the worker does not read; others mean that it is of no more use.
    pub fn send(&mut self, frame: &ToWorker, descriptors: &[BorrowedFd<'_>]) -> Result<(), ControlError> {
        self.flush()?;
        self.control.send(frame, descriptors)
    }

    /// Sends a frame as soon as the worker has room for it.
    ///
    /// # Errors
    /// [`ControlError::Full`] if [`FRAMES_UNSENT_MAX`] wait already; others as of [`Outbox::send`].
    pub fn post(&mut self, frame: ToWorker) -> Result<(), ControlError> {
        match self.send(&frame, &[]) {
            Err(ControlError::Full) if self.waiting.len() < FRAMES_UNSENT_MAX => {
                self.waiting.push_back(frame);
                Ok(())
            }
            sent => sent,
        }
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// [`ControlError::Full`] if some goes on to wait; others as of [`Outbox::send`].
    pub fn flush(&mut self) -> Result<(), ControlError> {
        while let Some(frame) = self.waiting.front() {
            match self.control.send(frame, &[]) {
                Err(ControlError::Full) => return Err(ControlError::Full),
                sent => {
                    self.waiting.pop_front();
                    sent?;
                }
            }
        }
        Ok(())
    }

    /// Returns whether frames wait.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Receives the worker's next frame, or nothing if none is there.
    ///
    /// # Errors
    /// As of [`ControlChannel::receive`].
    pub fn receive(&self) -> Result<Option<FromWorker>, ControlError> {
        self.control.receive()
    }
}

impl AsFd for Outbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl Workers {
    /// Tells a worker what must not be lost. One that does not read for too long is killed.
    pub(super) fn tell(&mut self, worker: &WorkerId, frame: ToWorker) {
        let Some(running) = self.workers.get_mut(worker).filter(|running| running.dying.is_none()) else { return };
        if let Err(ControlError::Full) = running.control.post(frame) {
            let refusal = Refusal::new(RefusalKind::NodeFailed, "the worker does not take frames");
            return self.kill_worker(worker, refusal, None);
        }
        self.send_waiting(worker);
    }

    /// Sends a worker what waits, and has it looked at again if it has no room.
    pub(super) fn send_waiting(&mut self, worker: &WorkerId) {
        let Some(running) = self.workers.get_mut(worker) else { return };
        // A worker that is gone is seen when reading.
        let _ = running.control.flush();
        let now = Instant::now();
        if !running.control.is_waiting() || running.send_again.is_some_and(|at| at > now) {
            return;
        }
        let at = now + SEND_PAUSE;
        running.send_again = Some(at);
        let event = ContainerEvent { worker: worker.clone(), generation: running.generation, overdue: false };
        tokio::spawn(remind(at, event, self.parts.events.clone()));
    }
}
