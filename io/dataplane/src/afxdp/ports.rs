// SPDX-License-Identifier: Apache-2.0
//! The sockets: one per device and queue, all with the same packet memory, so that a packet received by one of them is
//! sent by another from where it lies.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, SocketAddrXdpWithSharedUmem, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use super::sys::memory::{FRAME_BYTES, Frame, Umem};
use super::sys::ring::Ring;
use crate::{DriverError, limits};

/// All sockets, their memory, and the frames that are neither in a ring nor owed a verdict.
pub(super) struct Ports {
    sockets: Vec<Socket>,
    /// Each device's first socket and how many it has.
    devices: BTreeMap<u32, Range<usize>>,
    umem: Umem,
    free: Vec<Frame>,
    /// Where the next [`Ports::receive`] begins.
    next: usize,
    zero_copy: bool,
}

/// One received frame.
pub(super) struct Received {
    pub frame: Frame,
    /// Where in it the Ethernet header starts and the packet ends.
    pub range: Range<usize>,
    pub device: u32,
}

impl Ports {
    /// Opens the sockets of devices, given with the number of their queues, without a copy by the kernel if all of them
    /// can do that.
    pub fn open(devices: &[(u32, u32)], bytes_max: usize) -> Result<Ports, DriverError> {
        let sockets: usize =
            devices.iter().map(|(_, queues)| usize::try_from(*queues).unwrap_or(1).min(limits::QUEUES_MAX)).sum();
        let frames = (bytes_max / FRAME_BYTES).min(sockets * FRAMES_PER_SOCKET).max(FRAMES_MIN);
        // Half of the frames wait to be filled; the others are on their way.
        let ring = (frames / 2 / sockets.max(1)).max(1);
        let ring = (1 << ring.ilog2()).clamp(RING_ENTRIES_MIN, RING_ENTRIES_MAX);
        let open = |mode| Ports::open_in(mode, devices, frames, ring);
        open(SocketAddrXdpFlags::XDP_ZEROCOPY).or_else(|error| {
            tracing::debug!(%error, "no zero copy here");
            open(SocketAddrXdpFlags::XDP_COPY)
        })
    }

    fn open_in(
        mode: SocketAddrXdpFlags,
        devices: &[(u32, u32)],
        frames: usize,
        ring: usize,
    ) -> Result<Ports, DriverError> {
        let failed = |what| move |error: io::Error| DriverError::system(what, error);
        let frames =
            u32::try_from(frames).map_err(|error| DriverError::system("packet memory", io::Error::other(error)))?;
        let ring = u32::try_from(ring).expect("rings are small");
        let (umem, free) = Umem::new(frames).map_err(failed("taking packet memory"))?;
        let zero_copy = mode == SocketAddrXdpFlags::XDP_ZEROCOPY;
        let mut ports = Ports { sockets: Vec::new(), devices: BTreeMap::new(), umem, free, next: 0, zero_copy };
        for (device, queues) in devices {
            let first = ports.sockets.len();
            for queue in 0..(*queues).min(u32::try_from(limits::QUEUES_MAX).expect("a small number")) {
                match Socket::open(&ports.umem, ports.sockets.first(), *device, queue, mode, ring) {
                    Ok(socket) => ports.sockets.push(socket),
                    // A device may have room for more queues than it uses.
                    Err(error) if queue > 0 && error.raw_os_error() == Some(libc::EINVAL) => break,
                    Err(error) => return Err(DriverError::system("opening an AF_XDP socket", error)),
                }
            }
            ports.devices.insert(*device, first..ports.sockets.len());
        }
        ports.refill();
        Ok(ports)
    }

    /// Returns whether packets come and go without a copy by the kernel.
    pub fn zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Returns how many frames there are.
    pub fn frames(&self) -> usize {
        self.free.len() + self.sockets.iter().map(|socket| socket.lent).sum::<usize>()
    }

    /// Returns the places of a device's sockets.
    pub fn of_device(&self, device: u32) -> Option<Range<usize>> {
        self.devices.get(&device).cloned()
    }

    /// Returns the sockets by place.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().map(|socket| socket.descriptor.as_fd())
    }

    /// Hands over received frames, at most so many, taking turns between the sockets.
    pub fn receive(&mut self, at_most: usize, mut each: impl FnMut(&mut Umem, Received) -> Option<Frame>) {
        let (mut taken, count) = (0, self.sockets.len());
        for turn in 0..count {
            let at = (self.next + turn) % count;
            let socket = &mut self.sockets[at];
            let before = taken;
            while taken < at_most
                && let Some(descriptor) = socket.rx.pop()
            {
                let (frame, offset) = Frame::from_address(descriptor.addr);
                let length = usize::try_from(descriptor.len).expect("32 bits fit in usize");
                let received = Received { frame, range: offset..offset + length, device: socket.device };
                self.free.extend(each(&mut self.umem, received));
                taken += 1;
            }
            if taken > before {
                socket.lent -= taken - before;
                socket.rx.release();
            }
            if taken == at_most {
                self.next = at;
                break;
            }
        }
        self.reap();
        self.refill();
    }

    /// Queues a frame for sending by a device; gives it back if there is no room.
    pub fn send(&mut self, device: u32, frame: Frame, range: Range<usize>) -> Result<(), Frame> {
        let Some(at) = self.devices.get(&device).map(|sockets| sockets.start) else { return Err(frame) };
        let socket = &mut self.sockets[at];
        let length = u32::try_from(range.len()).expect("a frame is short");
        let descriptor =
            XdpDesc { addr: frame.into_address(range.start), len: length, options: XdpDescOptions::empty() };
        match socket.tx.push(descriptor) {
            Ok(()) => {
                socket.lent += 1;
                socket.queued = true;
                Ok(())
            }
            Err(descriptor) => Err(Frame::from_address(descriptor.addr).0),
        }
    }

    /// Has the kernel send what is queued.
    pub fn flush(&mut self) {
        for socket in self.sockets.iter_mut().filter(|socket| socket.queued) {
            socket.kick();
        }
        self.reap();
        self.refill();
    }

    /// Takes a frame to be filled by us.
    pub fn take(&mut self) -> Option<Frame> {
        self.free.pop()
    }

    /// Takes back a frame.
    pub fn release(&mut self, frame: Frame) {
        self.free.push(frame);
    }

    /// Lets go of devices that are gone; the frames in their rings are lost.
    pub fn retain(&mut self, is_there: impl Fn(u32) -> bool) {
        for socket in self.sockets.iter_mut().filter(|socket| !socket.gone && !is_there(socket.device)) {
            socket.gone = true;
            socket.queued = false;
            self.devices.remove(&socket.device);
        }
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
        let lost = |socket: &Socket| {
            let statistics = sockopt::xdp_statistics(&socket.descriptor).ok()?;
            Some(statistics.rx_dropped + statistics.rx_ring_full? + statistics.rx_fill_ring_empty_descs?)
        };
        self.sockets.iter().filter_map(lost).sum()
    }

    /// Takes back the frames that were sent.
    fn reap(&mut self) {
        for socket in &mut self.sockets {
            let before = self.free.len();
            while let Some(address) = socket.completion.pop() {
                self.free.push(Frame::from_address(address).0);
            }
            if self.free.len() > before {
                socket.lent -= self.free.len() - before;
                socket.completion.release();
            }
        }
    }

    /// Gives the kernel frames to fill.
    fn refill(&mut self) {
        for socket in self.sockets.iter_mut().filter(|socket| !socket.gone) {
            let before = self.free.len();
            while let Some(frame) = self.free.pop() {
                if let Err(address) = socket.fill.push(frame.into_address(0)) {
                    self.free.push(Frame::from_address(address).0);
                    break;
                }
            }
            if self.free.len() < before {
                socket.lent += before - self.free.len();
                socket.fill.publish();
            }
            if socket.fill.wants_wakeup() {
                // It only says that there are frames; an answer in the form of an error changes nothing.
                let _ = rustix::net::recv(&socket.descriptor, &mut [0_u8; 0], RecvFlags::DONTWAIT);
            }
        }
    }
}

struct Socket {
    // The rings go before the descriptor that they belong to.
    rx: Ring<XdpDesc>,
    tx: Ring<XdpDesc>,
    fill: Ring<u64>,
    completion: Ring<u64>,
    descriptor: OwnedFd,
    device: u32,
    /// Frames in its rings.
    lent: usize,
    /// Whether frames were queued since the last time that all were sent.
    queued: bool,
    /// Whether its device is no more.
    gone: bool,
}

impl Socket {
    fn open(
        umem: &Umem,
        owner: Option<&Socket>,
        device: u32,
        queue: u32,
        mode: SocketAddrXdpFlags,
        ring: u32,
    ) -> io::Result<Socket> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let descriptor = rustix::net::socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?;
        if owner.is_none() {
            umem.register(&descriptor)?;
        }
        sockopt::set_xdp_umem_fill_ring_size(&descriptor, ring)?;
        sockopt::set_xdp_umem_completion_ring_size(&descriptor, ring)?;
        sockopt::set_xdp_rx_ring_size(&descriptor, ring)?;
        sockopt::set_xdp_tx_ring_size(&descriptor, ring)?;
        let offsets = sockopt::xdp_mmap_offsets(&descriptor)?;
        let rx = Ring::map(&descriptor, XDP_PGOFF_RX_RING, &offsets.rx, ring)?;
        let tx = Ring::map(&descriptor, XDP_PGOFF_TX_RING, &offsets.tx, ring)?;
        let fill = Ring::map(&descriptor, XDP_UMEM_PGOFF_FILL_RING, &offsets.fr, ring)?;
        let completion = Ring::map(&descriptor, XDP_UMEM_PGOFF_COMPLETION_RING, &offsets.cr, ring)?;
        match owner {
            None => {
                let flags = mode | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
                rustix::net::bind(&descriptor, &SocketAddrXdp::new(flags, device, queue))?;
            }
            Some(owner) => {
                let addr = SocketAddrXdp::new(SocketAddrXdpFlags::XDP_SHARED_UMEM, device, queue);
                let shared_umem_fd = owner.descriptor.as_fd();
                rustix::net::bind(&descriptor, &SocketAddrXdpWithSharedUmem { addr, shared_umem_fd })?;
            }
        }
        Ok(Socket { rx, tx, fill, completion, descriptor, device, lent: 0, queued: false, gone: false })
    }

    /// Has the kernel send; it takes some packets with each call.
    fn kick(&mut self) {
        self.tx.publish();
        for _ in 0..KICKS_MAX {
            if self.tx.waiting() == 0 {
                self.queued = false;
                return;
            }
            if !self.tx.wants_wakeup() {
                return;
            }
            match rustix::net::send(&self.descriptor, &[], SendFlags::DONTWAIT) {
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                // The device is busy, down or gone. What waits goes with the next flush.
                Err(_) => return,
            }
        }
    }
}

const FRAMES_PER_SOCKET: usize = 4096;
const FRAMES_MIN: usize = 256;
const RING_ENTRIES_MIN: usize = 64;
const RING_ENTRIES_MAX: usize = 2048;
/// Calls to send one socket's packets before the others have their turn; the kernel sends at least one each time.
const KICKS_MAX: usize = 128;
