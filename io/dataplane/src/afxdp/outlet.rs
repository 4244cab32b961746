// SPDX-License-Identifier: Apache-2.0
//! The way out for a lane by devices of which it has no queue: a packet socket, into which the kernel copies the frames as
//! it does with those of AF_XDP sockets that copy.
//!
//! A second AF_XDP socket on a queue is refused unless it has the memory of the first one, and with that its completion
//! ring; a socket that lanes share would have them wait for each other.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::sys::memory::{Frame, Umem};
use crate::{DriverError, limits, sys};

/// A packet socket, and the frames that wait for its next turn.
pub(super) struct Outlet {
    socket: OwnedFd,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    device: u32,
    address: [u8; ADDRESS_BYTES],
    frame: Frame,
    range: Range<usize>,
}

impl Outlet {
    /// Opens the socket, which receives nothing.
    pub fn open() -> Result<Outlet, DriverError> {
        let failed = |error: io::Error| DriverError::system("opening a packet socket", error);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None);
        let socket = socket.map_err(|error| failed(error.into()))?;
        // As with AF_XDP, no queueing discipline is passed.
        sys::set_option(&socket, libc::SOL_PACKET, QDISC_BYPASS, 1).map_err(failed)?;
        sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER_BYTES)
            .or_else(|_| sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES))
            .map_err(|error| failed(error.into()))?;
        Ok(Outlet { socket, waiting: VecDeque::new() })
    }

    /// Queues a frame, whose range is a whole Ethernet frame; gives it back if too many wait.
    pub fn push(&mut self, device: u32, frame: Frame, range: Range<usize>) -> Result<(), Frame> {
        if self.waiting.len() >= limits::OUTLET_WAITING_MAX {
            return Err(frame);
        }
        self.waiting.push_back(Waiting { device, address: address(device), frame, range });
        Ok(())
    }

    /// Returns whether a frame waits that is to leave by a device.
    pub fn has_some_for(&self, device: u32) -> bool {
        self.waiting.iter().any(|waiting| waiting.device == device)
    }

    /// Returns how many frames wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the numbers of the frames that wait.
    pub fn frames(&self) -> impl Iterator<Item = usize> {
        self.waiting.iter().map(|waiting| waiting.frame.index())
    }

    /// Sends what waits, and gives back the frames; returns how many packets the kernel refused. What finds no room in a
    /// device waits for the next call, and so does all that is to leave by that device, in order.
    pub fn flush(&mut self, umem: &Umem, mut release: impl FnMut(Frame)) -> u64 {
        let (mut refused, mut full) = (0, BTreeSet::new());
        let mut kept = VecDeque::new();
        while !self.waiting.is_empty() {
            let batch = self.waiting.iter().take(limits::BATCH_PACKETS_MAX);
            let batch = batch.take_while(|waiting| !full.contains(&waiting.device));
            let outgoing: Vec<_> = batch
                .map(|waiting| sys::Outgoing {
                    address: &waiting.address,
                    control: &[],
                    payload: umem.bytes(&waiting.frame, waiting.range.clone()),
                })
                .collect();
            let sent = match outgoing.is_empty() {
                true => Ok(0),
                false => sys::send_many(&self.socket, &outgoing),
            };
            match sent {
                Ok(0) => kept.extend(self.waiting.pop_front()),
                Ok(sent) => self.waiting.drain(..sent).for_each(|waiting| release(waiting.frame)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_full(&error) => {
                    let first = self.waiting.pop_front();
                    full.extend(first.iter().map(|waiting| waiting.device));
                    kept.extend(first);
                }
                Err(error) => {
                    tracing::trace!(%error, "a frame could not be sent");
                    refused += 1;
                    self.waiting.pop_front().into_iter().for_each(|waiting| release(waiting.frame));
                }
            }
        }
        self.waiting = kept;
        refused
    }

    /// Gives back the frames that were to leave by a device.
    pub fn remove(&mut self, device: u32) -> Vec<Frame> {
        let (gone, kept): (VecDeque<_>, _) =
            std::mem::take(&mut self.waiting).into_iter().partition(|waiting| waiting.device == device);
        self.waiting = kept;
        gone.into_iter().map(|waiting| waiting.frame).collect()
    }
}

/// The device has no room, or the socket has sent as much as it may before that is on its way.
fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Returns a `struct sockaddr_ll` that names a device.
fn address(device: u32) -> [u8; ADDRESS_BYTES] {
    let mut bytes = [0; ADDRESS_BYTES];
    bytes[..2].copy_from_slice(&FAMILY_PACKET.to_ne_bytes());
    bytes[4..8].copy_from_slice(&device.to_ne_bytes());
    bytes
}

const ADDRESS_BYTES: usize = 20;
/// `AF_PACKET`.
const FAMILY_PACKET: u16 = 17;
/// `PACKET_QDISC_BYPASS`.
const QDISC_BYPASS: i32 = 20;
const SEND_BUFFER_BYTES: usize = 4 * 1024 * 1024;
