// SPDX-License-Identifier: Apache-2.0
//! The way out for a lane by devices of which it has no queue: a packet socket each, into which the kernel copies the
//! frames as it does with those of AF_XDP sockets that copy.
//!
//! A second AF_XDP socket on a queue is refused unless it has the memory of the first one, and with that its completion
//! ring; a socket that lanes share would have them wait for each other, and one for several devices would have these wait
//! for the slowest.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use netserv_plane::{DriverError, sys};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use super::sys::memory::{Frame, Umem};
use crate::limits;

/// The ways out by devices, and the frames that wait for their next turn.
pub(super) struct Outlet {
    ways: BTreeMap<u32, Way>,
    /// How many frames wait.
    waiting: usize,
    /// Frames that may wait over all devices.
    waiting_max: usize,
    /// Readable from `retry_at` on, when what found no room is to be tried again.
    timer: OwnedFd,
    retry_at: Option<Instant>,
}

/// The way out by one device.
struct Way {
    socket: OwnedFd,
    address: [u8; ADDRESS_BYTES],
    waiting: VecDeque<Waiting>,
    /// The device had no room at the last flush.
    is_full: bool,
}

struct Waiting {
    frame: Frame,
    range: Range<usize>,
    /// When it is given up, once it has found no room.
    until: Option<Instant>,
}

impl Outlet {
    /// Returns an outlet without devices for a lane that has so many frames.
    pub fn open(frames: usize) -> Result<Outlet, DriverError> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags);
        let timer = timer.map_err(|error| DriverError::system("making a timer", error))?;
        Ok(Outlet { ways: BTreeMap::new(), waiting: 0, waiting_max: frames / 2, timer, retry_at: None })
    }

    /// Returns what becomes readable when [`Outlet::flush`] is to be called again for what found no room.
    pub fn timer(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// Returns whether it is time for that.
    pub fn is_due(&self) -> bool {
        self.retry_at.is_some_and(|at| at <= Instant::now())
    }

    /// Queues a frame, whose range is a whole Ethernet frame; gives it back if too many wait, or there is no socket.
    pub fn push(&mut self, device: u32, frame: Frame, range: Range<usize>) -> Result<(), Frame> {
        let way = match self.ways.get_mut(&device) {
            Some(way) => way,
            None => match Way::open(device) {
                Ok(way) => self.ways.entry(device).or_insert(way),
                Err(error) => {
                    tracing::debug!(device, %error, "no packet socket");
                    return Err(frame);
                }
            },
        };
        let most = if way.is_full { limits::OUTLET_STUCK_MAX } else { limits::OUTLET_WAITING_MAX };
        if way.waiting.len() >= most || self.waiting >= self.waiting_max {
            return Err(frame);
        }
        self.waiting += 1;
        way.waiting.push_back(Waiting { frame, range, until: None });
        Ok(())
    }

    /// Returns whether a frame waits that is to leave by a device.
    pub fn has_some_for(&self, device: u32) -> bool {
        self.ways.get(&device).is_some_and(|way| !way.waiting.is_empty())
    }

    /// Returns how many frames wait.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Returns the numbers of the frames that wait.
    pub fn frames(&self) -> impl Iterator<Item = usize> {
        self.ways.values().flat_map(|way| &way.waiting).map(|waiting| waiting.frame.index())
    }

    /// Sends what waits, and gives back the frames; returns how many packets the kernel refused, or had no room for within
    /// [`limits::OUTLET_WAIT_MAX`]. What finds no room in a device waits for the next call, and so does all that is to leave
    /// by that device, in order.
    pub fn flush(&mut self, umem: &Umem, mut release: impl FnMut(Frame)) -> u64 {
        let mut release = |frame| {
            self.waiting -= 1;
            release(frame);
        };
        let ways = self.ways.values_mut().filter(|way| !way.waiting.is_empty());
        let lost = ways.map(|way| way.flush(umem, &mut release)).sum();
        self.set_timer();
        lost
    }

    /// Closes the way out by a device, and gives back the frames that were to leave by it.
    pub fn remove(&mut self, device: u32) -> Vec<Frame> {
        let way = self.ways.remove(&device).into_iter();
        let frames: Vec<Frame> = way.flat_map(|way| way.waiting).map(|waiting| waiting.frame).collect();
        self.waiting -= frames.len();
        frames
    }

    fn set_timer(&mut self) {
        let waits = self.waiting > 0;
        if !waits && self.retry_at.is_none() || waits && self.retry_at.is_some_and(|at| at > Instant::now()) {
            return;
        }
        self.retry_at = waits.then(|| Instant::now() + RETRY_INTERVAL);
        let it_value = Timespec::try_from(if waits { RETRY_INTERVAL } else { Duration::ZERO }).expect("it is short");
        let time = Itimerspec { it_interval: Timespec::default(), it_value };
        if let Err(error) = rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &time) {
            tracing::debug!(%error, "what waits for room is tried again late");
        }
    }
}

impl Way {
    /// Opens a socket, which receives nothing.
    fn open(device: u32) -> io::Result<Way> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        // As with AF_XDP, no queueing discipline is passed.
        sys::set_option(&socket, libc::SOL_PACKET, QDISC_BYPASS, 1)?;
        sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER_BYTES)
            .or_else(|_| sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES))?;
        Ok(Way { socket, address: address(device), waiting: VecDeque::new(), is_full: false })
    }

    /// Sends what waits as far as there is room; returns how many packets are lost.
    fn flush(&mut self, umem: &Umem, release: &mut impl FnMut(Frame)) -> u64 {
        let mut lost = 0;
        self.is_full = false;
        while !self.waiting.is_empty() && !self.is_full {
            match self.send(umem) {
                Ok(sent) => self.waiting.drain(..sent).for_each(|waiting| release(waiting.frame)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_full(&error) => self.is_full = true,
                Err(error) => {
                    tracing::trace!(%error, "a frame could not be sent");
                    lost += 1;
                    self.waiting.pop_front().into_iter().for_each(|waiting| release(waiting.frame));
                }
            }
        }
        if self.is_full { lost + self.give_up(release) } else { lost }
    }

    fn send(&self, umem: &Umem) -> io::Result<usize> {
        let outgoing = self.waiting.iter().take(limits::BATCH_PACKETS_MAX).map(|waiting| sys::Outgoing {
            address: &self.address,
            control: &[],
            payload: umem.bytes(&waiting.frame, waiting.range.clone()),
        });
        sys::send_many(&self.socket, &outgoing.collect::<Vec<_>>())
    }

    /// Gives up what has waited for too long; returns how many packets that are.
    fn give_up(&mut self, release: &mut impl FnMut(Frame)) -> u64 {
        let now = Instant::now();
        // The oldest are the first, and those without a time the last.
        let late = self.waiting.iter().take_while(|waiting| waiting.until.is_some_and(|until| until <= now)).count();
        self.waiting.drain(..late).for_each(|waiting| release(waiting.frame));
        let new = self.waiting.iter_mut().rev().take_while(|waiting| waiting.until.is_none());
        new.for_each(|waiting| waiting.until = Some(now + limits::OUTLET_WAIT_MAX));
        u64::try_from(late).expect("few frames wait")
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
/// How soon what found no room is tried again.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);
