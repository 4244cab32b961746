// SPDX-License-Identifier: Apache-2.0
//! The control socket: frames with descriptors now and then.

use std::collections::{BTreeMap, VecDeque};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use netserv_model::effect::ModuleSlot;
use netserv_model::request::{PacketCounts, ServerCounts};
use netserv_wire::container::frames::{DESCRIPTORS_MAX, FRAME_BYTES_MAX, FrameError, FromWorker, ToWorker};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags};

use crate::limits;
use crate::shared::log::Line;

/// The control socket with the frames that wait to be sent.
pub struct Control {
    socket: OwnedFd,
    waiting: VecDeque<Vec<u8>>,
    lines_lost: u64,
    buffer: Vec<u8>,
}

/// What came in.
#[allow(clippy::large_enum_variant, reason = "there is one at a time, on the stack")]
pub enum Received {
    /// A frame, and the descriptors that came with it, in their order.
    Frame(ToWorker, Vec<OwnedFd>),
    /// Nothing for the moment.
    Nothing,
    /// The node is gone.
    Closed,
    /// Something that is no frame.
    Malformed(FrameError),
}

/// Whether a worker's loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It does.
    Continue,
    /// It was told to end, or its node is gone.
    End,
}

impl Control {
    /// Takes the socket.
    pub fn new(socket: OwnedFd) -> Control {
        Control { socket, waiting: VecDeque::new(), lines_lost: 0, buffer: vec![0; FRAME_BYTES_MAX] }
    }

    /// Queues a frame. Returns false if it is longer than a frame may be.
    pub fn send(&mut self, frame: &FromWorker) -> bool {
        match frame.encode() {
            Ok(bytes) => {
                self.waiting.push_back(bytes);
                true
            }
            Err(_) => false,
        }
    }

    /// Queues log lines. If the node does not read, they are counted instead.
    pub fn send_log(&mut self, slot: Option<ModuleSlot>, lines: Vec<Line>) {
        for Line { level, text } in lines {
            if !self.has_room() {
                self.lines_lost += 1;
                continue;
            }
            if self.lines_lost > 0 {
                let text = format!("{} log lines lost: the node did not read them", self.lines_lost);
                self.lines_lost = 0;
                self.send(&FromWorker::Log { slot: None, level, text });
            }
            self.send(&FromWorker::Log { slot, level, text });
        }
    }

    /// Queues what a module counted.
    pub fn send_stats(
        &mut self,
        slot: ModuleSlot,
        packets: PacketCounts,
        mut counters: BTreeMap<String, u64>,
        server: Option<ServerCounts>,
    ) {
        // Only counters over the usual quota can make a frame too long; then the last names are left out.
        while !self.send(&FromWorker::Stats { slot, packets, counters: counters.clone(), server }) {
            let half = counters.len() / 2;
            counters = counters.into_iter().take(half).collect();
        }
    }

    /// Sends what waits, as far as the node takes it.
    pub fn flush(&mut self) {
        while let Some(frame) = self.waiting.front() {
            match rustix::net::send(&self.socket, frame, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Err(rustix::io::Errno::AGAIN) => return,
                Err(rustix::io::Errno::INTR) => {}
                // A node that is gone is seen when reading.
                Ok(_) | Err(_) => {
                    self.waiting.pop_front();
                }
            }
        }
    }

    /// Returns whether more frames may wait: fewer than [`limits::FRAMES_WAITING_MAX`] do.
    pub fn has_room(&self) -> bool {
        self.waiting.len() < limits::FRAMES_WAITING_MAX
    }

    /// Returns whether frames wait to be sent.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes the next frame.
    pub fn receive(&mut self) -> Received {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut self.buffer)];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let (length, truncated) = match rustix::net::recvmsg(&self.socket, &mut into, &mut ancillary, flags) {
            Ok(message) => (message.bytes, message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Received::Nothing,
            Err(_) => return Received::Closed,
        };
        let mut descriptors = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                descriptors.extend(received);
            }
        }
        if length == 0 {
            return Received::Closed;
        }
        if truncated {
            return Received::Malformed(FrameError::TooLong(length));
        }
        match ToWorker::decode(&self.buffer[..length]) {
            Ok(frame) => Received::Frame(frame, descriptors),
            Err(error) => Received::Malformed(error),
        }
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
