// SPDX-License-Identifier: Apache-2.0
//! One AF_XDP socket: a device's queue, and four rings.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use netserv_plane::sys;
use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, SocketAddrXdpWithSharedUmem, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use super::sys::memory::Umem;
use super::sys::ring::Ring;

/// What a socket is to be like.
#[derive(Clone, Copy, Debug)]
pub(super) struct SocketConfig {
    pub device: u32,
    pub queue: u32,
    pub zero_copy: bool,
    /// Entries of each ring, a power of two.
    pub ring: u32,
    pub busy_poll: Option<Duration>,
}

/// A bound socket.
pub(super) struct Socket {
    // The rings go before the descriptor that they belong to.
    pub rx: Ring<XdpDesc>,
    pub tx: Ring<XdpDesc>,
    pub fill: Ring<u64>,
    pub completion: Ring<u64>,
    pub descriptor: OwnedFd,
    /// Frames that the kernel has for receiving: in the fill ring, in its own hands, in the receive ring.
    pub filled: usize,
    /// How many it should have.
    pub fill_target: usize,
    /// Frames that the kernel has for sending, until they come back.
    pub sending: usize,
    /// Whether frames were queued since the last time that all were sent.
    pub queued: bool,
}

impl Socket {
    /// Opens a socket on the memory; the first of a device is given none to share with.
    pub fn open(umem: &Umem, first: Option<&Socket>, config: SocketConfig) -> io::Result<Socket> {
        let SocketConfig { device, queue, ring, .. } = config;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let descriptor = rustix::net::socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?;
        if first.is_none() {
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
        match first {
            None => {
                let mode = match config.zero_copy {
                    true => SocketAddrXdpFlags::XDP_ZEROCOPY,
                    false => SocketAddrXdpFlags::XDP_COPY,
                };
                let flags = mode | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
                rustix::net::bind(&descriptor, &SocketAddrXdp::new(flags, device, queue))?;
            }
            Some(first) => {
                let addr = SocketAddrXdp::new(SocketAddrXdpFlags::XDP_SHARED_UMEM, device, queue);
                let shared_umem_fd = first.descriptor.as_fd();
                rustix::net::bind(&descriptor, &SocketAddrXdpWithSharedUmem { addr, shared_umem_fd })?;
            }
        }
        set_options(&descriptor, config);
        let fill_target = usize::try_from(ring).map_err(io::Error::other)?;
        Ok(Socket { rx, tx, fill, completion, descriptor, filled: 0, fill_target, sending: 0, queued: false })
    }

    /// Has the kernel send; it takes some packets with each call.
    pub fn kick(&mut self) {
        self.tx.publish();
        for _ in 0..KICKS_MAX {
            if !self.tx.wants_wakeup() {
                self.queued = self.tx.waiting() > 0;
                return;
            }
            match rustix::net::send(&self.descriptor, &[], SendFlags::DONTWAIT) {
                // All that waited is on its way, or the kernel has no room for more at the moment.
                Ok(_) => {
                    self.queued = self.tx.waiting() > 0;
                    return;
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                // The device is busy, down or gone. What waits goes with the next flush.
                Err(_) => return,
            }
            if self.tx.waiting() == 0 {
                self.queued = false;
                return;
            }
        }
    }

    /// Has the kernel look for packets, and for frames to fill; an answer in the form of an error changes nothing.
    pub fn poke(&self) {
        let _ = rustix::net::recv(&self.descriptor, &mut [0_u8; 0], RecvFlags::DONTWAIT);
    }

    /// Returns whether the device is gone, also if another one has its index now: the kernel has taken the socket off it.
    pub fn is_unbound(&self) -> bool {
        rustix::net::recv(&self.descriptor, &mut [0_u8; 0], RecvFlags::DONTWAIT) == Err(Errno::NXIO)
    }

    /// Returns how many packets stand in the rings.
    pub fn waiting(&mut self) -> u64 {
        u64::from(self.rx.ready()) + u64::from(self.tx.waiting())
    }

    /// Returns how many packets the kernel lost for lack of room.
    pub fn lost(&self) -> u64 {
        // A packet for which there is no frame counts as dropped; that the fill ring was empty is counted besides.
        sockopt::xdp_statistics(&self.descriptor)
            .map_or(0, |statistics| statistics.rx_dropped + statistics.rx_ring_full.unwrap_or(0))
    }
}

/// Sets what makes a socket faster; a kernel that does not know it goes without.
fn set_options(descriptor: &OwnedFd, config: SocketConfig) {
    let budget = config.ring.min(SEND_BUDGET_MAX).cast_signed();
    let mut options = vec![(libc::SOL_XDP, MAX_TX_SKB_BUDGET, budget)];
    if let Some(time) = config.busy_poll {
        let microseconds = i32::try_from(time.as_micros()).unwrap_or(i32::MAX);
        options.extend([
            (libc::SOL_SOCKET, libc::SO_PREFER_BUSY_POLL, 1),
            (libc::SOL_SOCKET, libc::SO_BUSY_POLL, microseconds),
            (libc::SOL_SOCKET, libc::SO_BUSY_POLL_BUDGET, BUSY_POLL_BUDGET),
        ]);
    }
    for (level, name, value) in options {
        if let Err(error) = sys::set_option(descriptor, level, name, value) {
            tracing::debug!(name, %error, "an option of an AF_XDP socket is not to be had");
        }
    }
}

/// Calls to send one socket's packets before the others have their turn; the kernel sends at least one each time.
const KICKS_MAX: usize = 128;
/// `XDP_MAX_TX_SKB_BUDGET` (Linux 6.17): packets that one call sends at most, 32 without it.
const MAX_TX_SKB_BUDGET: i32 = 9;
const SEND_BUDGET_MAX: u32 = 256;
/// Packets that one round of busy polling takes.
const BUSY_POLL_BUDGET: i32 = 64;
