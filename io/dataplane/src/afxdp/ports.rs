// SPDX-License-Identifier: Apache-2.0
//! The devices' sockets, one per queue, all on the same packet memory, so that a packet received by one of them is sent
//! by another from where it lies.
//!
//! Each device registers the memory for itself: one can work without a copy while another cannot, and none of them
//! needs another to be there.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::net::xdp::{XdpDesc, XdpDescOptions};

use super::socket::{Socket, SocketConfig};
use super::sys::memory::{FRAME_BYTES, Frame, Umem};
use crate::{DriverError, limits};

/// All sockets, their memory, and the frames that are neither in a ring nor owed a verdict.
pub(super) struct Ports {
    umem: Umem,
    devices: Vec<Device>,
    free: Vec<Frame>,
    /// The place of the socket that each frame was last given to.
    lent_to: Vec<u16>,
    /// Frames of closed sockets, which the kernel may still be letting go of.
    resting: VecDeque<(Instant, Vec<Frame>)>,
    /// Entries of each ring.
    ring: u32,
    busy_poll: Option<Duration>,
    /// Where the next [`Ports::receive`] begins: the number of a socket.
    next: usize,
    /// Packets that closed sockets lost.
    lost_before: u64,
}

/// A device's sockets.
struct Device {
    index: u32,
    /// The places of its sockets in the program's map: one for each queue that it can have.
    places: Range<usize>,
    /// The sockets of its first queues.
    sockets: Vec<Socket>,
    zero_copy: bool,
    /// Made of software.
    is_virtual: bool,
}

/// One received frame.
pub(super) struct Received {
    pub frame: Frame,
    /// Where in it the Ethernet header starts and the packet ends.
    pub range: Range<usize>,
    pub device: u32,
    pub queue: u16,
    /// Whether that is made of software.
    pub is_virtual: bool,
}

impl Ports {
    /// Takes memory for devices, given with the number of queues that they can have, of at most so many bytes.
    pub fn open(
        devices: &BTreeMap<u32, u32>,
        bytes_max: usize,
        busy_poll: Option<Duration>,
    ) -> Result<Ports, DriverError> {
        let planned = devices.values().map(|queues| usize::try_from(*queues).unwrap_or(1).min(PLANNED_QUEUES_MAX));
        let queues: usize = planned.sum();
        let frames = (bytes_max / FRAME_BYTES).min((queues + SPARE_SOCKETS) * FRAMES_PER_SOCKET).max(FRAMES_MIN);
        // Half of the frames wait to be filled; the others are on their way.
        let ring = frames / 2 / (queues + SPARE_SOCKETS);
        let ring = (1_usize << ring.max(1).ilog2()).clamp(RING_ENTRIES_MIN, RING_ENTRIES_MAX);
        let memory = |error: io::Error| DriverError::system("taking packet memory", error);
        let (umem, free) =
            Umem::new(u32::try_from(frames).map_err(io::Error::other).map_err(memory)?).map_err(memory)?;
        Ok(Ports {
            umem,
            devices: Vec::new(),
            lent_to: vec![0; free.len()],
            free,
            resting: VecDeque::new(),
            ring: u32::try_from(ring).expect("rings are small"),
            busy_poll,
            next: 0,
            lost_before: 0,
        })
    }

    /// Opens the sockets of a device that can have so many queues: without a copy by the kernel if it can do that.
    pub fn add(&mut self, device: u32, queues: u32, is_virtual: bool) -> Result<(), DriverError> {
        let queues = usize::try_from(queues).unwrap_or(1).clamp(1, limits::QUEUES_MAX);
        let failed = |error| DriverError::system("opening an AF_XDP socket", error);
        let taken = self.devices.iter().map(|device| device.places.clone());
        let places =
            free_places(taken.collect(), queues).ok_or_else(|| failed(io::Error::from_raw_os_error(libc::ENOSPC)))?;
        let sockets = self.open_sockets(device, queues, true).map(|sockets| (sockets, true));
        let sockets = sockets.or_else(|error| {
            tracing::debug!(device, %error, "no zero copy here");
            self.open_sockets(device, queues, false).map(|sockets| (sockets, false))
        });
        let (sockets, zero_copy) = sockets.map_err(failed)?;
        self.devices.push(Device { index: device, places, sockets, zero_copy, is_virtual });
        self.refill();
        Ok(())
    }

    /// Opens sockets of queues that the device has by now; returns whether there are any.
    pub fn grow(&mut self, device: u32) -> bool {
        let Some(at) = self.devices.iter().position(|one| one.index == device) else { return false };
        let Device { places, sockets, zero_copy, .. } = &self.devices[at];
        let (before, most, zero_copy) = (sockets.len(), places.len(), *zero_copy);
        for queue in before..most {
            let config = self.config(device, queue, zero_copy);
            let mut socket = match Socket::open(&self.umem, self.devices[at].sockets.first(), config) {
                Ok(socket) => socket,
                Err(error) => {
                    tracing::debug!(device, queue, %error, "no socket for a further queue");
                    break;
                }
            };
            self.bound(std::slice::from_mut(&mut socket));
            self.devices[at].sockets.push(socket);
        }
        self.refill();
        self.devices[at].sockets.len() > before
    }

    /// Closes a device's sockets and takes back all frames that they had, but for those in `owed`.
    pub fn remove(&mut self, device: u32, owed: impl Iterator<Item = usize>) {
        let Some(at) = self.devices.iter().position(|one| one.index == device) else { return };
        let Device { places, sockets, .. } = self.devices.swap_remove(at);
        self.next = 0;
        self.lost_before += sockets.into_iter().map(|mut socket| socket.lost() + socket.waiting()).sum::<u64>();
        let mut ours = vec![false; self.lent_to.len()];
        let at_rest = self.resting.iter().flat_map(|(_, frames)| frames);
        self.free.iter().chain(at_rest).map(Frame::index).chain(owed).for_each(|index| ours[index] = true);
        let lost = (0..ours.len()).filter(|index| !ours[*index] && places.contains(&usize::from(self.lent_to[*index])));
        // The kernel has no ring any more to give these back by.
        let frames = lost.map(|index| u64::try_from(index * FRAME_BYTES).expect("an offset fits"));
        let frames: Vec<Frame> = frames.map(|address| Frame::from_address(address).0).collect();
        self.resting.push_back((Instant::now() + REST, frames));
    }

    /// Returns whether a device's packets come and go without a copy by the kernel.
    pub fn zero_copy(&self, device: u32) -> bool {
        self.device(device).is_some_and(|device| device.zero_copy)
    }

    /// Returns how many frames there are.
    pub fn frames(&self) -> usize {
        self.lent_to.len()
    }

    /// Returns how many frames are known to be somewhere; all of them, but for those that are owed a verdict.
    pub fn frames_accounted_for(&self) -> usize {
        let lent = self.sockets().map(|socket| socket.filled + socket.sending).sum::<usize>();
        self.free.len() + self.resting.iter().map(|(_, frames)| frames.len()).sum::<usize>() + lent
    }

    /// Returns the place of a device's first socket, and how many it has.
    pub fn of_device(&self, device: u32) -> Option<(usize, usize)> {
        self.device(device).map(|device| (device.places.start, device.sockets.len()))
    }

    /// Returns how many queues of a device are served, and how many it can have at most.
    pub fn queues(&self, device: u32) -> (usize, usize) {
        self.device(device).map_or((0, 0), |device| (device.sockets.len(), device.places.len()))
    }

    /// Returns a device's sockets, each with its place.
    pub fn descriptors(&self, device: u32) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        let device = self.device(device).into_iter();
        device.flat_map(|device| device.places.clone().zip(device.sockets.iter().map(|one| one.descriptor.as_fd())))
    }

    /// Returns how many sockets there are.
    pub fn count(&self) -> usize {
        self.devices.iter().map(|device| device.sockets.len()).sum()
    }

    /// Hands over received frames, at most so many, taking turns between the sockets.
    pub fn receive(&mut self, at_most: usize, mut each: impl FnMut(&mut Umem, Received) -> Option<Frame>) {
        let (mut left, mut next) = (at_most, 0);
        for turn in [self.next..usize::MAX, 0..self.next] {
            let devices = self.devices.iter_mut();
            let sockets = devices.flat_map(|one| {
                let (device, is_virtual) = (one.index, one.is_virtual);
                (0_u16..).zip(&mut one.sockets).map(move |(queue, socket)| (socket, device, queue, is_virtual))
            });
            for (number, (socket, device, queue, is_virtual)) in (0..).zip(sockets) {
                if left > 0 && turn.contains(&number) {
                    let taken = receive_from(socket, left, |frame, range| {
                        let received = Received { frame, range, device, queue, is_virtual };
                        self.free.extend(each(&mut self.umem, received));
                    });
                    left -= taken;
                    // The first to be asked next time.
                    if taken > 0 {
                        next = number + 1;
                    }
                }
            }
        }
        self.next = next;
        self.reap();
        self.refill();
    }

    /// Queues a frame for sending by a device, by the queue that answers to the one it came by; gives it back if there
    /// is no room.
    pub fn send(&mut self, device: u32, queue: u16, frame: Frame, range: Range<usize>) -> Result<(), Frame> {
        let Some(device) = self.devices.iter_mut().find(|one| one.index == device) else { return Err(frame) };
        let count = device.sockets.len();
        let queue = usize::from(queue);
        let queue = if queue < count { queue } else { queue % count };
        let socket = &mut device.sockets[queue];
        let (index, length) = (frame.index(), u32::try_from(range.len()).expect("a frame is short"));
        let descriptor =
            XdpDesc { addr: frame.into_address(range.start), len: length, options: XdpDescOptions::empty() };
        match socket.tx.push(descriptor) {
            Ok(()) => {
                self.lent_to[index] = u16::try_from(device.places.start + queue).expect("there are few sockets");
                socket.sending += 1;
                socket.queued = true;
                Ok(())
            }
            Err(descriptor) => Err(Frame::from_address(descriptor.addr).0),
        }
    }

    /// Has the kernel send what is queued.
    pub fn flush(&mut self) {
        for socket in self.devices.iter_mut().flat_map(|device| &mut device.sockets).filter(|socket| socket.queued) {
            socket.kick();
        }
    }

    /// Has the kernel look for packets on all devices.
    pub fn poke(&self) {
        self.sockets().for_each(Socket::poke);
    }

    /// Takes a frame to be filled by us.
    pub fn take(&mut self) -> Option<Frame> {
        self.free.pop()
    }

    /// Takes back a frame.
    pub fn release(&mut self, frame: Frame) {
        self.free.push(frame);
    }

    /// Returns the packet memory.
    pub fn umem(&self) -> &Umem {
        &self.umem
    }

    /// Returns the packet memory, to write.
    pub fn umem_mut(&mut self) -> &mut Umem {
        &mut self.umem
    }

    /// Returns how many packets the kernel lost for lack of room.
    pub fn lost(&self) -> u64 {
        self.lost_before + self.sockets().map(Socket::lost).sum::<u64>()
    }

    fn device(&self, device: u32) -> Option<&Device> {
        self.devices.iter().find(|one| one.index == device)
    }

    fn sockets(&self) -> impl Iterator<Item = &Socket> {
        self.devices.iter().flat_map(|device| &device.sockets)
    }

    fn config(&self, device: u32, queue: usize, zero_copy: bool) -> SocketConfig {
        let queue = u32::try_from(queue).expect("there are few queues");
        SocketConfig { device, queue, zero_copy, ring: self.ring, busy_poll: self.busy_poll }
    }

    fn open_sockets(&mut self, device: u32, queues: usize, zero_copy: bool) -> io::Result<Vec<Socket>> {
        let mut sockets: Vec<Socket> = Vec::new();
        for queue in 0..queues {
            match Socket::open(&self.umem, sockets.first(), self.config(device, queue, zero_copy)) {
                Ok(socket) => sockets.push(socket),
                // A device may have room for more queues than it uses.
                Err(error) if queue > 0 && error.raw_os_error() == Some(libc::EINVAL) => break,
                Err(error) => return Err(error),
            }
        }
        self.bound(&mut sockets);
        Ok(sockets)
    }

    /// Sees to it that new sockets leave frames for those that come after them.
    fn bound(&self, sockets: &mut [Socket]) {
        let share = self.free.len() / 4 / sockets.len().max(1);
        sockets.iter_mut().for_each(|socket| socket.fill_target = socket.fill_target.min(share).max(1));
    }

    /// Takes back the frames that were sent, and those that have rested.
    fn reap(&mut self) {
        for socket in self.devices.iter_mut().flat_map(|device| &mut device.sockets).filter(|one| one.sending > 0) {
            let before = self.free.len();
            while let Some(address) = socket.completion.pop() {
                self.free.push(Frame::from_address(address).0);
            }
            if self.free.len() > before {
                socket.sending -= self.free.len() - before;
                socket.completion.release();
            }
        }
        if self.resting.front().is_some_and(|(end, _)| *end <= Instant::now()) {
            self.free.extend(self.resting.pop_front().into_iter().flat_map(|(_, frames)| frames));
        }
    }

    /// Gives the kernel frames to fill.
    fn refill(&mut self) {
        for device in &mut self.devices {
            for (place, socket) in device.places.clone().zip(&mut device.sockets) {
                let before = socket.filled;
                while socket.filled < socket.fill_target
                    && let Some(frame) = self.free.pop()
                {
                    let index = frame.index();
                    if let Err(address) = socket.fill.push(frame.into_address(0)) {
                        self.free.push(Frame::from_address(address).0);
                        break;
                    }
                    self.lent_to[index] = u16::try_from(place).expect("there are few sockets");
                    socket.filled += 1;
                }
                if socket.filled > before {
                    socket.fill.publish();
                }
                if socket.fill.wants_wakeup() {
                    socket.poke();
                }
            }
        }
    }
}

/// Returns so many places in a row that are not among the taken ones.
fn free_places(mut taken: Vec<Range<usize>>, count: usize) -> Option<Range<usize>> {
    taken.sort_unstable_by_key(|places| places.start);
    let mut start = 0;
    for places in taken {
        if start + count <= places.start {
            break;
        }
        start = places.end;
    }
    (start + count <= limits::SOCKETS_MAX).then_some(start..start + count)
}

/// Hands over at most so many frames of a socket; returns how many there were.
fn receive_from(socket: &mut Socket, at_most: usize, mut each: impl FnMut(Frame, Range<usize>)) -> usize {
    let mut taken = 0;
    while taken < at_most
        && let Some(descriptor) = socket.rx.pop()
    {
        let (frame, offset) = Frame::from_address(descriptor.addr);
        let length = usize::try_from(descriptor.len).expect("32 bits fit in usize");
        each(frame, offset..offset + length);
        taken += 1;
    }
    if taken > 0 {
        socket.filled -= taken;
        socket.rx.release();
    }
    taken
}

const FRAMES_PER_SOCKET: usize = 4096;
/// Queues of one device that the memory is made for; with more, each has fewer frames.
const PLANNED_QUEUES_MAX: usize = 4;
/// Queues that may come later without making the rings of the others shorter.
const SPARE_SOCKETS: usize = 2;
const FRAMES_MIN: usize = 256;
const RING_ENTRIES_MIN: usize = 64;
const RING_ENTRIES_MAX: usize = 2048;
/// How long frames of a closed socket are left alone: the kernel closes in the background.
const REST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_max_places_are_given_out_and_used_again() {
        let mut taken = Vec::new();
        while let Some(places) = free_places(taken.clone(), limits::QUEUES_MAX) {
            taken.push(places);
        }
        assert_eq!(taken.iter().map(Range::len).sum::<usize>(), limits::SOCKETS_MAX);
        assert_eq!(free_places(taken.clone(), 1), None);
        let gone = taken.swap_remove(3);
        assert_eq!(free_places(taken.clone(), gone.len() + 1), None);
        assert_eq!(free_places(taken, gone.len()), Some(gone));
    }
}
