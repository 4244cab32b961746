// SPDX-License-Identifier: Apache-2.0
//! A lane's sockets, one per queue of its own, all on the same packet memory, so that a packet received by one of them is
//! sent by another from where it lies.
//!
//! Each device registers the memory for itself: one can work without a copy while another cannot, and none of them
//! needs another to be there. The queue q of each device is that of lane q % lanes.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use netserv_plane::DriverError;
use rustix::net::xdp::{XdpDesc, XdpDescOptions};

use super::outlet::Outlet;
use super::plane::Served;
use super::share::Share;
use super::socket::{Socket, SocketConfig};
use super::sys::memory::{FRAME_BYTES, Frame, Umem};
use crate::limits;

/// All sockets, their memory, and the frames that are neither in a ring nor owed a verdict.
pub(super) struct Ports {
    umem: Umem,
    share: Share,
    devices: Vec<Device>,
    /// The way out by devices of which no queue is ours; `None` if there is only one lane.
    outlet: Option<Outlet>,
    free: Vec<Frame>,
    /// The place of the socket that each frame was last given to.
    lent_to: Vec<u16>,
    /// Frames of closed sockets, which the kernel may still be letting go of.
    resting: VecDeque<(Instant, Vec<Frame>)>,
    /// Devices that the memory was made for.
    planned: usize,
    /// Entries of each ring at most.
    ring: u32,
    busy_poll: Option<Duration>,
    /// Where the next [`Ports::receive`] begins: the number of a socket.
    next: usize,
    /// Packets that closed sockets lost.
    lost_before: u64,
}

/// A device's sockets.
struct Device {
    // The places are free when no socket is in them any more.
    /// The sockets of the first of its queues that are ours.
    sockets: Vec<Socket>,
    served: Arc<Served>,
    zero_copy: bool,
    /// What [`Served::grown`] was when we looked for further queues last.
    grown: u64,
}

/// One received frame.
pub(super) struct Received {
    pub frame: Frame,
    /// Where in it the Ethernet header starts and the packet ends.
    pub range: Range<usize>,
    pub device: u32,
    /// The number of the queue among our own ones.
    pub queue: u16,
    /// Whether that is made of software.
    pub is_virtual: bool,
}

impl Ports {
    /// Takes memory for our queues of devices, which are given with the number of queues that they can have. All lanes
    /// together take at most so many bytes.
    pub fn open(
        devices: &BTreeMap<u32, u32>,
        bytes_max: usize,
        busy_poll: Option<Duration>,
        share: Share,
    ) -> Result<Ports, DriverError> {
        let (sockets, of_all) = share.planned_sockets(devices);
        let bytes_max = bytes_max.min(netserv_plane::sys::memory_available().map_or(usize::MAX, share_of_memory));
        let (frames, ring) = frames_and_ring(bytes_max / FRAME_BYTES * sockets / of_all, sockets);
        let memory = |error: io::Error| DriverError::system("taking packet memory", error);
        let (umem, free) =
            Umem::new(u32::try_from(frames).map_err(io::Error::other).map_err(memory)?).map_err(memory)?;
        Ok(Ports {
            umem,
            share,
            planned: devices.len(),
            devices: Vec::new(),
            outlet: (share.lanes > 1).then(|| Outlet::open(free.len())).transpose()?,
            lent_to: vec![0; free.len()],
            free,
            resting: VecDeque::new(),
            ring: u32::try_from(ring).expect("rings are small"),
            busy_poll,
            next: 0,
            lost_before: 0,
        })
    }

    /// Opens the sockets of our queues of a device: without a copy by the kernel if it can do that. There may be none.
    pub fn add(&mut self, served: &Arc<Served>) -> Result<(), DriverError> {
        let grown = served.grown();
        let sockets = self.open_sockets(served, true).map(|sockets| (sockets, true));
        let sockets = sockets.or_else(|error| {
            tracing::debug!(device = served.device, %error, "no zero copy here");
            self.open_sockets(served, false).map(|sockets| (sockets, false))
        });
        let (sockets, zero_copy) = sockets.map_err(|error| DriverError::system("opening an AF_XDP socket", error))?;
        served.opened(sockets.len());
        self.devices.push(Device { sockets, served: Arc::clone(served), zero_copy, grown });
        self.refill();
        Ok(())
    }

    /// Opens sockets of our queues that the device has by now, if it seems to have more than before; returns whether there
    /// are any.
    pub fn grow(&mut self, device: u32) -> bool {
        let Some(at) = self.devices.iter().position(|one| one.served.device == device) else { return false };
        let served = Arc::clone(&self.devices[at].served);
        let grown = served.grown();
        if std::mem::replace(&mut self.devices[at].grown, grown) == grown {
            return false;
        }
        let before = self.devices[at].sockets.len();
        for queue in self.share.queues(served.places.len()).skip(before) {
            let mut socket = match self.open_further(at, queue) {
                Ok(socket) => socket,
                Err(error) => {
                    tracing::debug!(device, queue, %error, "no socket for a further queue");
                    break;
                }
            };
            self.bound(std::slice::from_mut(&mut socket));
            self.devices[at].sockets.push(socket);
            served.opened(1);
        }
        self.refill();
        self.devices[at].sockets.len() > before
    }

    /// Opens the socket of one more queue: as the others are or, if it is our first one, without a copy if the device can.
    fn open_further(&mut self, at: usize, queue: usize) -> io::Result<Socket> {
        let Device { served, sockets, zero_copy, .. } = &self.devices[at];
        let (device, ring) = (served.device, self.ring_of(1));
        let Some(first) = sockets.first() else {
            let open = |zero_copy| Socket::open(&self.umem, None, self.config(device, queue, zero_copy, ring));
            let (socket, zero_copy) =
                open(true).map(|socket| (socket, true)).or_else(|_| open(false).map(|socket| (socket, false)))?;
            self.devices[at].zero_copy = zero_copy;
            return Ok(socket);
        };
        Socket::open(&self.umem, Some(first), self.config(device, queue, *zero_copy, ring))
    }

    /// Closes a device's sockets and takes back all frames that they had, but for those in `owed`.
    pub fn remove(&mut self, device: u32, owed: impl Iterator<Item = usize>) {
        let Some(at) = self.devices.iter().position(|one| one.served.device == device) else { return };
        let Device { served, sockets, .. } = self.devices.swap_remove(at);
        served.closed(sockets.len());
        self.next = 0;
        self.lost_before += sockets.into_iter().map(|mut socket| socket.lost() + socket.waiting()).sum::<u64>();
        let unsent = self.outlet.as_mut().map(|outlet| outlet.remove(device)).unwrap_or_default();
        self.lost_before += u64::try_from(unsent.len()).expect("few frames wait");
        self.free.extend(unsent);
        let mut ours = vec![false; self.lent_to.len()];
        let at_rest = self.resting.iter().flat_map(|(_, frames)| frames);
        let unsent = self.outlet.iter().flat_map(Outlet::frames);
        let ours_now = self.free.iter().chain(at_rest).map(Frame::index).chain(unsent).chain(owed);
        ours_now.for_each(|index| ours[index] = true);
        let was_there = |index: &usize| served.places.contains(&usize::from(self.lent_to[*index]));
        let lost = (0..ours.len()).filter(|index| !ours[*index] && was_there(index));
        // The kernel has no ring any more to give these back by.
        let frames = lost.map(|index| u64::try_from(index * FRAME_BYTES).expect("an offset fits"));
        let frames: Vec<Frame> = frames.map(|address| Frame::from_address(address).0).collect();
        self.resting.push_back((Instant::now() + REST, frames));
    }

    /// Returns whether a device's packets come and go without a copy by the kernel.
    pub fn zero_copy(&self, device: u32) -> bool {
        self.device(device).is_some_and(|device| device.zero_copy)
    }

    /// Returns whether a device is gone that we have sockets of, though there may be another one with its index.
    pub fn is_gone(&self, device: u32) -> bool {
        self.device(device).and_then(|device| device.sockets.first()).is_some_and(Socket::is_unbound)
    }

    /// Returns how many frames there are.
    pub fn frames(&self) -> usize {
        self.lent_to.len()
    }

    /// Returns how many frames are known to be somewhere; all of them, but for those that are owed a verdict.
    pub fn frames_accounted_for(&self) -> usize {
        let lent = self.sockets().map(|socket| socket.filled + socket.sending).sum::<usize>()
            + self.outlet.as_ref().map_or(0, Outlet::len);
        self.free.len() + self.resting.iter().map(|(_, frames)| frames.len()).sum::<usize>() + lent
    }

    /// Returns the devices that packets can be sent by.
    pub fn devices(&self) -> impl Iterator<Item = &Arc<Served>> {
        self.devices.iter().map(|device| &device.served)
    }

    /// Returns a device's sockets, each with its place.
    pub fn descriptors(&self, device: u32) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        let device = self.device(device).into_iter();
        device.flat_map(|device| {
            let sockets = device.sockets.iter().map(|socket| socket.descriptor.as_fd());
            self.share.queues(usize::MAX).map(|queue| device.served.places.start + queue).zip(sockets)
        })
    }

    /// Returns the places of all sockets.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        self.devices.iter().flat_map(|device| self.descriptors(device.served.device)).map(|(place, _)| place)
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
                let (device, is_virtual) = (one.served.device, one.served.is_virtual);
                (0_u16..).zip(&mut one.sockets).map(move |(queue, socket)| (socket, device, queue, is_virtual))
            });
            for (number, (socket, device, queue, is_virtual)) in (0..).zip(sockets) {
                if left > 0 && turn.contains(&number) {
                    let (umem, free) = (&mut self.umem, &mut self.free);
                    let taken = receive_from(socket, umem, left, |umem, frame, range| {
                        free.extend(each(umem, Received { frame, range, device, queue, is_virtual }));
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

    /// Queues a frame for sending by a device, by that of our queues that answers to the one it came by; gives it back if
    /// there is no room.
    pub fn send(&mut self, device: u32, queue: u16, frame: Frame, range: Range<usize>) -> Result<(), Frame> {
        let Some(device) = self.devices.iter_mut().find(|one| one.served.device == device) else { return Err(frame) };
        let count = device.sockets.len();
        if let Some(outlet) = &mut self.outlet
            && (count == 0 || outlet.has_some_for(device.served.device))
        {
            return outlet.push(device.served.device, frame, range);
        }
        let queue = usize::from(queue);
        let queue = if queue < count { queue } else { queue % count };
        let socket = &mut device.sockets[queue];
        let (index, length) = (frame.index(), u32::try_from(range.len()).expect("a frame is short"));
        let descriptor =
            XdpDesc { addr: frame.into_address(range.start), len: length, options: XdpDescOptions::empty() };
        match socket.tx.push(descriptor) {
            Ok(()) => {
                self.lent_to[index] = self.share.place(&device.served, queue);
                socket.sending += 1;
                socket.queued = true;
                Ok(())
            }
            Err(descriptor) => Err(Frame::from_address(descriptor.addr).0),
        }
    }

    /// Has the kernel send what is queued; returns how many packets it refused, or had no room for in time.
    pub fn flush(&mut self) -> u64 {
        for socket in self.devices.iter_mut().flat_map(|device| &mut device.sockets).filter(|socket| socket.queued) {
            socket.kick();
        }
        self.flush_outlet()
    }

    /// Has the kernel send once more what found no room before, if it is time for that; returns how many packets it refused.
    pub fn retry(&mut self) -> u64 {
        if self.outlet.as_ref().is_some_and(Outlet::is_due) { self.flush_outlet() } else { 0 }
    }

    /// Returns what becomes readable when it is time for [`Ports::retry`].
    pub fn timer(&self) -> Option<BorrowedFd<'_>> {
        self.outlet.as_ref().map(Outlet::timer)
    }

    fn flush_outlet(&mut self) -> u64 {
        let outlet = self.outlet.as_mut();
        outlet.map_or(0, |outlet| outlet.flush(&self.umem, |frame| self.free.push(frame)))
    }

    /// Returns whether something waits for the next flush.
    pub fn has_unsent(&self) -> bool {
        self.outlet.as_ref().is_some_and(|outlet| outlet.len() > 0) || self.sockets().any(|socket| socket.queued)
    }

    /// Has the kernel look for packets on all devices.
    pub fn poke(&self) {
        self.sockets().for_each(Socket::poke);
    }

    /// Takes a frame to be filled by us.
    pub fn take(&mut self) -> Option<Frame> {
        self.free.pop()
    }

    /// Has the processor fetch what is at a place of a frame, since that will be read soon.
    pub fn prefetch(&self, frame: &Frame, start: usize) {
        self.umem.prefetch(u64::try_from(frame.index() * FRAME_BYTES + start).expect("an offset fits"));
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
        self.devices.iter().find(|one| one.served.device == device)
    }

    fn sockets(&self) -> impl Iterator<Item = &Socket> {
        self.devices.iter().flat_map(|device| &device.sockets)
    }

    fn config(&self, device: u32, queue: usize, zero_copy: bool, ring: u32) -> SocketConfig {
        let queue = u32::try_from(queue).expect("there are few queues");
        SocketConfig { device, queue, zero_copy, ring, busy_poll: self.busy_poll }
    }

    fn open_sockets(&mut self, served: &Served, zero_copy: bool) -> io::Result<Vec<Socket>> {
        let mut sockets: Vec<Socket> = Vec::new();
        let ring = self.ring_of(self.share.queues(served.places.len()).count());
        for queue in self.share.queues(served.places.len()) {
            match Socket::open(&self.umem, sockets.first(), self.config(served.device, queue, zero_copy, ring)) {
                Ok(socket) => sockets.push(socket),
                // A device may have room for more queues than it uses.
                Err(error) if queue > 0 && error.raw_os_error() == Some(libc::EINVAL) => break,
                Err(error) => return Err(error),
            }
        }
        self.bound(&mut sockets);
        Ok(sockets)
    }

    /// Sees to it that new sockets that nobody counted on leave frames for others.
    fn bound(&self, sockets: &mut [Socket]) {
        let share = self.fill_share(sockets.len());
        sockets.iter_mut().for_each(|socket| socket.fill_target = socket.fill_target.min(share).max(1));
    }

    /// Returns how many frames each of so many new sockets of a device may have at most.
    fn fill_share(&self, sockets: usize) -> usize {
        // Those to come have as much as this one, and so has what is on its way.
        let left = self.planned.saturating_sub(self.devices.len());
        let parts = if left > 0 { left + 1 } else { PARTS_UNPLANNED };
        self.free.len() / parts / sockets.max(1)
    }

    /// Returns the entries of the rings of a device's sockets, if there are so many: not many more than they have frames.
    fn ring_of(&self, sockets: usize) -> u32 {
        let wanted = u32::try_from(self.fill_share(sockets).next_power_of_two()).unwrap_or(u32::MAX);
        wanted.clamp(self.ring.min(RING_ENTRIES_LEAST), self.ring)
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
            for (number, socket) in device.sockets.iter_mut().enumerate() {
                let before = socket.filled;
                while socket.filled < socket.fill_target
                    && let Some(frame) = self.free.pop()
                {
                    let index = frame.index();
                    if let Err(address) = socket.fill.push(frame.into_address(0)) {
                        self.free.push(Frame::from_address(address).0);
                        break;
                    }
                    self.lent_to[index] = self.share.place(&device.served, number);
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

/// Returns how much of so many available bytes packets may take: all of it is resident.
fn share_of_memory(available: usize) -> usize {
    available / limits::PACKET_MEMORY_SHARE
}

/// Returns how many of at most so many frames there are to be for so many sockets, spare ones among them, and the entries of a
/// ring.
fn frames_and_ring(frames_max: usize, sockets: usize) -> (usize, usize) {
    let frames = frames_max.min(sockets * FRAMES_PER_SOCKET).max(FRAMES_MIN);
    let ring = 1_usize << (frames / 2).max(1).ilog2();
    (frames, ring.clamp(RING_ENTRIES_MIN, RING_ENTRIES_MAX))
}

/// Hands over at most so many frames of a socket; returns how many there were.
fn receive_from(
    socket: &mut Socket,
    umem: &mut Umem,
    at_most: usize,
    mut each: impl FnMut(&mut Umem, Frame, Range<usize>),
) -> usize {
    let mut taken = 0;
    while taken < at_most
        && let Some(descriptor) = socket.rx.pop()
    {
        // What comes next is on its way while this one is looked at.
        let coming = if taken == 0 { 0..PREFETCHED } else { PREFETCHED - 1..PREFETCHED };
        coming.filter_map(|ahead| socket.rx.peek(ahead)).for_each(|next| umem.prefetch(next.addr));
        let (frame, offset) = Frame::from_address(descriptor.addr);
        let length = usize::try_from(descriptor.len).expect("32 bits fit in usize");
        each(umem, frame, offset..offset + length);
        taken += 1;
    }
    if taken > 0 {
        socket.filled -= taken;
        socket.rx.release();
    }
    taken
}

/// Received frames that the processor fetches ahead.
const PREFETCHED: u32 = 6;
/// Packets that wait while the node stands still: 10 ms at 800,000 per second.
const FRAMES_PER_SOCKET: usize = 8192;
/// A device that nobody counted on has one part of so many of the frames that are free.
const PARTS_UNPLANNED: usize = 8;
const FRAMES_MIN: usize = 256;
const RING_ENTRIES_MIN: usize = 64;
/// What a socket has where there is memory for that many frames at all: as many packets may be sent in a turn.
const RING_ENTRIES_LEAST: u32 = 1024;
const RING_ENTRIES_MAX: usize = FRAMES_PER_SOCKET;
/// How long frames of a closed socket are left alone: the kernel closes in the background.
const REST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_memory_share_bounds_the_rings() {
        const GIB: usize = 1 << 30;
        let of =
            |available, sockets| frames_and_ring((64 << 20).min(share_of_memory(available)) / FRAME_BYTES, sockets);
        // Two devices of one queue, and two spare sockets.
        assert_eq!(of(16 * GIB, 4), (32_768, 8192));
        assert_eq!(of(4 * GIB, 4), (16_384, 8192));
        assert_eq!(of(GIB, 4), (4096, 2048));
        assert_eq!(of(0, 4), (FRAMES_MIN, 128));
    }
}
