// SPDX-License-Identifier: Apache-2.0
//! One lane: the receive queues that are its own, what came by them and has no verdict, and its ways out.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use netserv_plane::{Batch, Counters, DriverError, PacketId, inject::Injector};
use netserv_wire::gist::UDP_PORT;
use netserv_wire::ip::IpView;
use rustix::event::{Timespec, epoll};

use super::beside;
use super::egress::ForwardingCache;
use super::frame::{self, EthernetRepr};
use super::kernel::{Kernel, interface_id};
use super::pacing::{TEND_INTERVAL, once_free};
use super::plane::{Plane, Served};
use super::ports::Ports;
use super::share::Share;
use super::sys::memory::Frame;
use crate::limits;

/// What one packet thread has of the driver.
pub(super) struct Lane {
    pub number: usize,
    pub plane: Arc<Plane>,
    pub ports: Ports,
    pub forwarding: ForwardingCache,
    pub injector: Injector,
    pub owed: Vec<Option<Owed>>,
    /// Packets with the verdict to pass, which are sent once their headers have been fetched, in the order of verdicts; always
    /// fewer than [`limits::BATCH_PACKETS_MAX`].
    passing: Vec<Owed>,
    sequence: u32,
    events: OwnedFd,
    pub looked_at: Instant,
    /// Whether nothing had come the last time.
    pub is_idle: bool,
    /// [`Plane::version`] at the last look.
    followed: u64,
    /// Devices that could not be taken.
    pub troubled: BTreeSet<u32>,
    tried_at: Instant,
    tries: usize,
    pub handed_over: u64,
    pub counters: Counters,
}

/// A received packet without a verdict.
pub(super) struct Owed {
    sequence: u32,
    pub frame: Frame,
    /// Where in the frame the packet is.
    pub start: u16,
    pub end: u16,
    /// Where it came in.
    pub interface: u32,
    /// By which of the lane's queues.
    pub queue: u16,
    /// Why it is for the kernel whatever its way, if so.
    pub why_not_plain: Option<&'static str>,
}

impl Owed {
    pub fn range(&self) -> Range<usize> {
        usize::from(self.start)..usize::from(self.end)
    }
}

impl Lane {
    /// Opens a lane without devices; its memory is made for those that are given with the number of queues that they can have.
    pub fn open(plane: &Arc<Plane>, number: usize, devices: &BTreeMap<u32, u32>) -> Result<Lane, DriverError> {
        let config = &plane.config;
        let share = Share { lane: number, lanes: plane.lanes() };
        let ports = Ports::open(devices, config.receive_buffer_bytes, config.busy_poll, share)?;
        let failed = |error| DriverError::system("watching sockets", error);
        let events = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        let (forwarding, now) = (ForwardingCache::new(Kernel::open()?)?, Instant::now());
        let lane = Lane {
            number,
            plane: Arc::clone(plane),
            owed: std::iter::repeat_with(|| None).take(ports.frames()).collect(),
            ports,
            forwarding,
            passing: Vec::with_capacity(limits::BATCH_PACKETS_MAX),
            injector: Injector::open(config.mark)?,
            sequence: 0,
            events,
            looked_at: now,
            is_idle: false,
            followed: 0,
            troubled: BTreeSet::new(),
            tried_at: now,
            tries: 0,
            handed_over: 0,
            counters: Counters::default(),
        };
        for notices in lane.forwarding.kernel().notices() {
            lane.watch_notices(notices)?;
        }
        lane.watch_notices(plane.bell(number))?;
        if let Some(timer) = lane.ports.timer() {
            lane.watch(timer)?;
        }
        Ok(lane)
    }

    /// Adds a descriptor to those that are waited for.
    pub fn watch(&self, descriptor: BorrowedFd<'_>) -> Result<(), DriverError> {
        self.watch_as(descriptor, PACKETS)
    }

    /// Adds a descriptor which a look at what changed empties.
    pub fn watch_notices(&self, descriptor: BorrowedFd<'_>) -> Result<(), DriverError> {
        self.watch_as(descriptor, NOTICES)
    }

    fn watch_as(&self, descriptor: BorrowedFd<'_>, kind: u64) -> Result<(), DriverError> {
        match epoll::add(&self.events, descriptor, epoll::EventData::new_u64(kind), epoll::EventFlags::IN) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
            Err(error) => Err(DriverError::system("watching sockets", error)),
        }
    }

    /// Returns whether something changed that is to be looked at: until it is, nobody can wait.
    pub fn has_notices(&self) -> bool {
        let mut events = [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 8];
        let count = epoll::wait(&self.events, &mut events, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap_or(0);
        events[..count].iter().any(|event| event.data.u64() == NOTICES)
    }

    /// Notes that our bell was rung; what it was rung for is to be looked at after that.
    pub fn hear_bell(&self) {
        // There is nothing to read if nobody rang.
        let _ = rustix::io::read(self.plane.bell(self.number), &mut [0; 8][..]);
    }

    /// Returns what becomes readable when there is something to do.
    pub fn events(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// Opens our sockets of a device, and tries until a moment while it is busy.
    pub fn serve(&mut self, served: &Arc<Served>, busy_until: Instant) -> Result<(), DriverError> {
        once_free(busy_until, || self.ports.add(served))?;
        let connected = self.connect(served.device);
        if connected.is_err() {
            self.close(served.device);
        }
        connected
    }

    /// Closes our sockets of a device.
    pub fn close(&mut self, device: u32) {
        let owed = self.owed.iter().enumerate().filter(|(_, owed)| owed.is_some()).map(|(index, _)| index);
        self.ports.remove(device, owed);
    }

    /// Opens sockets of our queues that a device has by now, if it seems to have more than before.
    pub fn grow(&mut self, device: u32) -> Result<(), DriverError> {
        if self.ports.grow(device) { self.connect(device) } else { Ok(()) }
    }

    /// Says which devices packets can be sent by: those that are served.
    pub fn set_served(&mut self) {
        self.forwarding.set_served(self.ports.devices().map(|served| served.device).collect());
    }

    /// Serves the devices that the first lane serves.
    pub fn follow(&mut self, now: Instant) {
        let version = self.plane.version();
        let is_retried = !self.troubled.is_empty() && now.duration_since(self.tried_at) >= TEND_INTERVAL;
        if version == self.followed && !is_retried {
            return;
        }
        let wanted = self.plane.served();
        let is_wanted = |served: &Arc<Served>| wanted.get(&served.device).is_some_and(|one| Arc::ptr_eq(one, served));
        let gone: Vec<u32> = self.ports.devices().filter(|one| !is_wanted(one)).map(|one| one.device).collect();
        gone.into_iter().for_each(|device| self.close(device));
        self.troubled.retain(|device| wanted.contains_key(device));
        let known: BTreeSet<u32> = self.ports.devices().map(|served| served.device).collect();
        for device in &known {
            if let Err(error) = self.grow(*device) {
                tracing::warn!(device, lane = self.number, %error, "new queues cannot be served");
            }
        }
        let missing = wanted.values().filter(|served| !known.contains(&served.device));
        let (mut late, new): (Vec<_>, Vec<_>) = missing.partition(|served| self.troubled.contains(&served.device));
        if is_retried {
            self.tried_at = now;
            self.tries = self.tries.wrapping_add(1);
            let first = self.tries % late.len().max(1);
            late.rotate_left(first);
        } else {
            late.clear();
        }
        for served in new.iter().chain(&late).take(limits::DEVICES_PER_TURN_MAX) {
            self.serve_or_warn(served, now);
        }
        self.set_served();
        if new.len() <= limits::DEVICES_PER_TURN_MAX {
            self.followed = version;
        } else {
            // Nobody else wakes us for the others.
            self.plane.ring(self.number);
        }
    }

    fn serve_or_warn(&mut self, served: &Arc<Served>, now: Instant) {
        let (device, lane) = (served.device, self.number);
        match self.serve(served, now) {
            Ok(()) => drop(self.troubled.remove(&device)),
            Err(error) if self.troubled.insert(device) => {
                tracing::warn!(device, lane, %error, "a new device cannot be served in this lane");
            }
            Err(_) => {}
        }
    }

    /// Leads the program and our own waiting to a device's sockets.
    fn connect(&self, device: u32) -> Result<(), DriverError> {
        for (place, socket) in self.ports.descriptors(device) {
            self.plane.program.set_socket(u32::try_from(place).expect("there are few sockets"), socket)?;
            self.watch(socket)?;
        }
        Ok(())
    }

    pub fn take_in(&mut self, batch: &mut Batch) {
        let (owed, counters, forwarding) = (&mut self.owed, &mut self.counters, &self.forwarding);
        let (sequence, signaling, tun) = (&mut self.sequence, self.plane.signaling.get(), &self.plane.tun);
        self.ports.receive(limits::BATCH_PACKETS_MAX, |umem, mut received| {
            let bytes = umem.bytes_mut(&mut received.frame, received.range.clone());
            let Some((header_bytes, vlan)) = EthernetRepr::parse(bytes) else {
                counters.unseen += 1;
                return Some(received.frame);
            };
            let packet = &mut bytes[header_bytes..];
            let Ok(mut view) = IpView::parse(packet) else {
                counters.unseen += 1;
                return Some(received.frame);
            };
            if received.is_virtual && frame::lacks_checksum(&view) {
                frame::complete_checksum(packet);
                view = IpView::parse(packet).expect("with its checksum it is a packet as before");
            }
            let interface = vlan.map_or(received.device, |vlan| logical(forwarding, received.device, vlan));
            if signaling.is_some() && is_signaling(&view) {
                if !signaling.is_some_and(|passage| passage.offer(interface_id(interface), view.bytes())) {
                    counters.send_failed += u64::from(!tun.send(view.bytes()));
                }
                return Some(received.frame);
            }
            let start = received.range.start + header_bytes;
            let place = |offset: usize| u16::try_from(offset).expect("a frame is small");
            let (start, end) = (place(start), place(start + view.bytes().len()));
            // The highest bit is for packets that come otherwise.
            *sequence = sequence.wrapping_add(1) & (beside::TAG - 1);
            let index = received.frame.index();
            let id = PacketId(u64::from(*sequence) << 32 | u64::try_from(index).expect("there are few frames"));
            let taken = batch.push(id, interface_id(interface), view.bytes());
            debug_assert!(taken, "no more are received than fit");
            let why_not_plain = frame::why_not_plain(&view);
            let (frame, queue) = (received.frame, received.queue);
            owed[index] = Some(Owed { sequence: *sequence, frame, start, end, interface, queue, why_not_plain });
            None
        });
        self.counters.received += u64::try_from(batch.len()).expect("a batch is small");
    }

    pub fn take_owed(&mut self, id: PacketId) -> Option<Owed> {
        find_owed(&self.owed, id)?;
        self.owed[index_of(id)?].take()
    }

    /// Sends a packet on its way with the next ones.
    pub fn pass(&mut self, owed: Owed) {
        self.ports.prefetch(&owed.frame, owed.start.into());
        self.passing.push(owed);
        if self.passing.len() == limits::BATCH_PACKETS_MAX {
            self.forward_passing();
        }
    }

    /// Queues the packets that pass; before anything is queued that came after them.
    pub fn forward_passing(&mut self) {
        let mut passing = std::mem::take(&mut self.passing);
        passing.drain(..).for_each(|owed| self.forward(owed));
        self.passing = passing;
    }

    /// Returns how many packets have no verdict, or are not sent yet.
    pub fn held(&self) -> usize {
        self.owed.iter().filter(|owed| owed.is_some()).count() + self.passing.len()
    }

    /// Sends what is queued.
    pub fn flush(&mut self) {
        self.forward_passing();
        self.counters.send_failed += self.ports.flush();
        let sent = self.injector.flush();
        self.counters.injected += sent.injected;
        self.counters.redirected += sent.redirected;
        self.counters.send_failed += sent.failed;
    }

    /// Tries again to send what found no room, if it is time for that.
    pub fn retry(&mut self) {
        self.counters.send_failed += self.ports.retry();
    }

    /// Waits until there may be something to do; returns false when the time is over.
    pub fn wait(&self, deadline: Option<Instant>) -> Result<bool, DriverError> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Ok(false);
        }
        // Who waits is alive, and has to say so.
        let timeout = left.map_or(BEAT_INTERVAL, |left| left.min(BEAT_INTERVAL));
        let timeout = Timespec::try_from(timeout).expect("a time to wait is short");
        let mut events = [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 8];
        match epoll::wait(&self.events, &mut events, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(true),
            Err(error) => Err(DriverError::system("waiting for packets", error)),
        }
    }

    /// Looks for packets again and again for a while, if that is wished for.
    pub fn busy_poll(&mut self, batch: &mut Batch, deadline: Option<Instant>) {
        let Some(time) = self.plane.config.busy_poll else { return };
        let end = Instant::now() + time;
        let end = deadline.map_or(end, |deadline| deadline.min(end));
        loop {
            self.ports.poke();
            self.take_in(batch);
            if !batch.is_empty() || Instant::now() >= end {
                return;
            }
        }
    }
}

impl Drop for Lane {
    /// What was received and has no verdict goes on, and what would come goes by the kernel.
    fn drop(&mut self) {
        self.plane.retire(self.ports.places());
        self.forward_passing();
        let mut batch = Batch::new();
        for _ in 0..=self.owed.len() / limits::BATCH_PACKETS_MAX {
            batch.clear();
            self.take_in(&mut batch);
            let waiting: Vec<Owed> = self.owed.iter_mut().filter_map(Option::take).collect();
            if waiting.is_empty() {
                break;
            }
            for owed in waiting {
                self.forward(owed);
            }
            self.ports.flush();
        }
        for _ in 0..CLOSING_FLUSHES_MAX {
            if !self.ports.has_unsent() {
                break;
            }
            std::thread::sleep(CLOSING_STEP);
            self.ports.flush();
        }
    }
}

/// How long we wait at most without saying that we are alive, well under [`limits::HEARTBEAT_MAX`].
const BEAT_INTERVAL: Duration = Duration::from_millis(250);
/// What a descriptor that is waited for brings.
const PACKETS: u64 = 0;
const NOTICES: u64 = 1;

/// How often a lane that ends tries to send what finds no room in a device, and how long it waits for that.
const CLOSING_FLUSHES_MAX: usize = 10;
const CLOSING_STEP: Duration = Duration::from_millis(1);

/// Returns what is owed a verdict under this name.
pub(super) fn find_owed(owed: &[Option<Owed>], id: PacketId) -> Option<&Owed> {
    owed.get(index_of(id)?)?.as_ref().filter(|owed| u64::from(owed.sequence) == id.0 >> 32)
}

fn index_of(id: PacketId) -> Option<usize> {
    usize::try_from(id.0 & u64::from(u32::MAX)).ok()
}

fn is_signaling(view: &IpView<'_>) -> bool {
    view.udp().is_some_and(|udp| udp.destination_port == UDP_PORT)
}

/// Returns the interface of a VLAN on a device; the device if there is none.
fn logical(forwarding: &ForwardingCache, device: u32, vlan: u16) -> u32 {
    let found = forwarding.interfaces().iter().find(|(_, interface)| interface.vlan == Some((device, vlan)));
    found.map_or(device, |(index, _)| *index)
}
