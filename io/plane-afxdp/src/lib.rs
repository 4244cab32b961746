// SPDX-License-Identifier: Apache-2.0
//! Packets by AF_XDP: taken off the device before the kernel's own forwarding, and sent by us.
//!
//! An XDP program on each device (`bpf/classify.c`) leads the packets that a filter wants to a socket, and lets all
//! others go on through the kernel. What passes is forwarded by the driver itself: route and neighbour come from the
//! kernel's tables, TTL or hop limit goes down by one, and the frame leaves from where it lies in memory. What only
//! the kernel can do (errors, options, fragments to be made, neighbours to be found) is handed to it by a TUN device;
//! `docs/design/0004-afxdp-egress.md` says why.
//!
//! Packets for the node itself never come here, and signaling for others only to go to the interceptor. Packets
//! forwarded here pass no rules of the kernel's packet filter.
//!
//! When the process ends in whatever way, the kernel takes the program off the devices and the TUN device away.

mod beside;
mod counted;
mod devices;
mod egress;
mod features;
mod forward;
mod frame;
#[doc(hidden)]
pub mod fuzzing;
mod heart;
mod kernel;
mod lane;
mod layout;
mod leader;
pub mod limits;
mod object;
mod obstacles;
mod outlet;
mod pacing;
mod plane;
mod ports;
mod probing;
mod program;
mod queueing;
mod share;
mod socket;
mod sys;
mod table;
mod tun;
mod tuples;

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use netserv_model::api::DeviceInfo;
use netserv_plane::{
    Batch, Counters, DestinationCounters, Driver, DriverConfig, DriverError, Egress, FilterTable, Final, PacketId,
    Passage, XdpForward, packet,
};
use netserv_plane_nfqueue::Nfqueue;

use beside::is_beside;
use devices::choose_devices;
use kernel::Kernel;
use lane::Lane;
use leader::Leader;
use plane::Plane;
pub use probing::{probe, prospects};
use program::Program;
pub use sys::bpf::AttachMode;
use tun::Tun;

/// A lane of the `afxdp` driver.
pub struct Afxdp {
    // It goes first, and with it the program.
    /// What only the first lane does.
    leader: Option<Leader>,
    lane: Lane,
    /// Whether the queue beside was looked at first in the last turn.
    beside_was_first: bool,
}

impl Afxdp {
    /// Opens the driver in one lane, as [`Afxdp::open_lanes`].
    ///
    /// # Errors
    /// Says what is lacking: rights, or the kernel's support.
    pub fn open(config: &DriverConfig) -> Result<Afxdp, DriverError> {
        Ok(Afxdp::open_lanes(config, 1)?.swap_remove(0))
    }

    /// Takes the devices: those that the configuration names, or else every Ethernet that is not a port of another, and
    /// later on those that come. The first lane sees to that; each has its own share of every device's queues. There are
    /// never more lanes than a device has queues.
    ///
    /// # Errors
    /// Says what is lacking: rights, or the kernel's support.
    pub fn open_lanes(config: &DriverConfig, lanes: usize) -> Result<Vec<Afxdp>, DriverError> {
        let kernel = Kernel::open_silent()?;
        let devices = choose_devices(config, &kernel.interfaces()?)?;
        let lanes = lanes_of(&devices, lanes);
        let (program, tun) = (load(config.xdp_forward)?, Tun::open(&config.instance, &kernel)?);
        let plane = Arc::new(Plane::new(config, program, tun, lanes)?);
        let mut lanes = (0..lanes).map(|lane| Lane::open(&plane, lane, &devices)).collect::<Result<Vec<_>, _>>()?;
        let mut leader = Some(Leader::open(&plane, &mut lanes, devices)?);
        let now = Instant::now();
        lanes.iter_mut().skip(1).for_each(|lane| lane.follow(now));
        Ok(lanes.into_iter().map(|lane| Afxdp { leader: leader.take(), lane, beside_was_first: false }).collect())
    }

    /// Returns how the program is attached to each device, by the device's index; nothing for other lanes than the first.
    pub fn modes(&self) -> impl Iterator<Item = (u32, AttachMode)> + '_ {
        self.leader.iter().flat_map(|leader| leader.links().iter().map(|(device, link)| (*device, link.mode)))
    }

    /// Returns how many sockets the lane has: one for each device and queue of its own.
    pub fn sockets(&self) -> usize {
        self.lane.ports.count()
    }

    /// Returns how many packets were handed to the kernel to be forwarded, answered or refused by it.
    pub fn handed_over(&self) -> u64 {
        self.lane.handed_over
    }

    /// Returns how many combinations of masks the filters come down to, which is what a look-up costs.
    pub fn tuples(&self) -> usize {
        self.lane.plane.table.tuples()
    }

    /// Returns whether all that filters left behind when they went is out of the kernel's maps: packets that no filter
    /// matches come no more, unless filters had to be made coarser.
    pub fn is_settled(&self) -> bool {
        self.lane.plane.table.is_settled()
    }

    /// Returns how many frames of packet memory the lane has, and how many are free, lent to the kernel or owed a verdict:
    /// as many, unless something leaks.
    pub fn frames(&self) -> (usize, usize) {
        (self.lane.ports.frames(), self.lane.ports.frames_accounted_for() + self.lane.held())
    }

    /// Returns how long the XDP program takes for a frame, on average over so many runs.
    ///
    /// # Errors
    /// As [`Afxdp::classify`].
    pub fn time(&self, frame: &[u8], device: u32, runs: u32) -> Result<Duration, DriverError> {
        self.lane.plane.heart.beat(0);
        let run = self.lane.plane.program.run(frame, device, runs);
        let (_, nanoseconds) = run.map_err(|error| DriverError::system("running an XDP program", error))?;
        Ok(Duration::from_nanos(nanoseconds.into()))
    }

    /// Runs the XDP program on a frame as if it had come in by a device; returns whether the driver would get it, or,
    /// if the program forwards, another device.
    ///
    /// # Errors
    /// If the device has no program, or the frame no Ethernet header.
    pub fn classify(&self, frame: &[u8], device: u32) -> Result<bool, DriverError> {
        self.lane.plane.heart.beat(0);
        let run = self.lane.plane.program.run(frame, device, 1);
        run.map(|(redirected, _)| redirected).map_err(|error| DriverError::system("running an XDP program", error))
    }

    fn queue_beside(&mut self) -> Option<&mut Nfqueue> {
        self.leader.as_mut()?.beside.as_mut()
    }

    /// Fills an empty batch from the sockets or the netfilter queue beside them, which are looked at first in turn: neither has
    /// to wait until the other one is empty.
    fn take_in(&mut self, batch: &mut Batch) -> Result<(), DriverError> {
        self.beside_was_first = !self.beside_was_first;
        let beside_first = self.beside_was_first;
        for beside in [beside_first, !beside_first] {
            match self.queue_beside() {
                Some(queue) if beside => drop(queue.receive(batch, Some(Duration::ZERO))?),
                None if beside => {}
                Some(_) | None => self.lane.take_in(batch),
            }
            if !batch.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Hears of changes, at most so often, and says that we are alive.
    fn look(&mut self) {
        let now = Instant::now();
        let is_early = now.duration_since(self.lane.looked_at) < LOOK_INTERVAL;
        // A notice that nobody looks at ends each wait at once: while nothing flows, that would be all that we do.
        if is_early && !(self.lane.is_idle && self.lane.has_notices()) {
            return;
        }
        self.lane.looked_at = now;
        self.lane.hear_bell();
        self.lane.plane.heart.beat(self.lane.number);
        let looked = self.lane.forwarding.look(now);
        if let Some(leader) = &mut self.leader {
            return leader.look(&mut self.lane, now, looked);
        }
        if let Err(error) = looked {
            tracing::warn!(%error, lane = self.lane.number, "a change of links could not be followed");
        }
        self.lane.follow(now);
    }
}

impl Driver for Afxdp {
    fn name(&self) -> &'static str {
        "afxdp"
    }

    fn filters(&self) -> Arc<dyn FilterTable> {
        Arc::<beside::Filters>::clone(&self.lane.plane.filters)
    }

    fn destination_counters(&self) -> Arc<dyn DestinationCounters> {
        Arc::<counted::Counted>::clone(&self.lane.plane.counted)
    }

    fn intercept(&mut self) -> Result<Option<Passage>, DriverError> {
        let plane = &self.lane.plane;
        let passage =
            plane.signaling.get().cloned().map_or_else(|| Passage::new(plane.tun.name(), plane.tun.file()), Ok)?;
        // Every lane has it before the program leads messages to it.
        let passage = plane.signaling.get_or_init(|| passage).clone();
        if let Some(leader) = &mut self.leader {
            leader.follow_signaling(&self.lane);
            leader.follow_interfaces(&self.lane)?;
        }
        Ok(Some(passage))
    }

    fn receive(&mut self, batch: &mut Batch, timeout: Option<Duration>) -> Result<usize, DriverError> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        batch.clear();
        // A device that goes takes all frames along that are not owed a verdict.
        self.lane.forward_passing();
        loop {
            self.look();
            self.lane.retry();
            self.take_in(batch)?;
            if batch.is_empty() {
                self.lane.busy_poll(batch, deadline);
            }
            self.lane.is_idle = batch.is_empty();
            if !batch.is_empty() || timeout == Some(Duration::ZERO) || !self.lane.wait(deadline)? {
                return Ok(batch.len());
            }
        }
    }

    fn finish(&mut self, packet: PacketId, verdict: Final<'_>) {
        if let Some(queue) = self.queue_beside().filter(|_| is_beside(packet)) {
            return queue.finish(packet, verdict);
        }
        let lane = &mut self.lane;
        let Some(owed) = lane.take_owed(packet) else {
            lane.counters.unknown += 1;
            return;
        };
        match verdict {
            Final::Pass => {
                lane.counters.passed += 1;
                lane.pass(owed);
            }
            Final::Drop => {
                lane.counters.dropped += 1;
                lane.ports.release(owed.frame);
            }
            Final::Replace(bytes) => {
                lane.forward_passing();
                lane.replace(owed, bytes);
            }
        }
    }

    fn explain(&mut self, packet: PacketId, verdict: Final<'_>) -> Egress {
        match self.queue_beside().filter(|_| is_beside(packet)) {
            Some(queue) => queue.explain(packet, verdict),
            None => self.lane.explain_owed(packet, verdict),
        }
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), DriverError> {
        packet::whole(packet)?;
        self.lane.forward_passing();
        if self.lane.send_new(packet, false) {
            self.lane.counters.injected += 1;
        } else if !self.lane.injector.inject(packet)? {
            self.lane.counters.send_failed += 1;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DriverError> {
        self.lane.flush();
        self.queue_beside().map_or(Ok(()), Nfqueue::flush)
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.lane.events())
    }

    fn counters(&self) -> Counters {
        let lane = &self.lane;
        let of_plane = |counter: u32| self.leader.as_ref().map_or(0, |_| lane.plane.program.counter(counter));
        let closed_lost = of_plane(layout::COUNTER_CLOSED_LOST);
        // Those that were dropped for a module that fails closed were counted by their reason, too.
        let unseen = layout::COUNTERS_UNSEEN.into_iter().map(of_plane).sum::<u64>().saturating_sub(closed_lost);
        let own = Counters {
            unseen: lane.counters.unseen + unseen,
            lost: lane.ports.lost() + of_plane(layout::COUNTER_SIGNALING_LOST) + closed_lost,
            forwarded: of_plane(layout::COUNTER_FORWARDED),
            ..lane.counters
        };
        let beside = self.leader.as_ref().and_then(|leader| leader.beside.as_ref()).map(Nfqueue::counters);
        own + beside.unwrap_or_default()
    }

    fn owed_max(&self) -> usize {
        // The others wait to be filled.
        self.lane.ports.frames() / 2
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        self.leader.as_ref().map_or_else(Vec::new, |leader| leader.devices(&self.lane))
    }
}

impl Drop for Afxdp {
    fn drop(&mut self) {
        self.leader = None;
    }
}

/// How often changes of links, routes and neighbours are looked for while packets flow.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);
/// Loads the program that is wished for, or, where the operator leaves it to us, one that the kernel takes.
fn load(wish: XdpForward) -> Result<Program, DriverError> {
    match Program::load(wish != XdpForward::Off) {
        Err(error) if wish == XdpForward::Auto => {
            tracing::debug!(%error, "nothing is forwarded in XDP");
            Program::load(false)
        }
        loaded => loaded,
    }
}

/// Returns how many lanes there can be of those that are wanted: each with a queue of its own.
fn lanes_of(devices: &BTreeMap<u32, u32>, wanted: usize) -> usize {
    let queues = devices.values().filter_map(|queues| usize::try_from(*queues).ok()).max().unwrap_or(1);
    let lanes = wanted.clamp(1, limits::LANES_MAX).min(queues.clamp(1, limits::QUEUES_MAX));
    if lanes < wanted {
        tracing::info!(wanted, lanes, queues, "there are fewer lanes, since no device has more queues");
    }
    lanes
}
