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

mod devices;
mod egress;
mod features;
mod forward;
mod frame;
#[doc(hidden)]
pub mod fuzzing;
mod kernel;
mod layout;
mod object;
mod obstacles;
mod ports;
mod probing;
mod program;
mod socket;
mod sys;
mod table;
mod tun;
mod tuples;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use netserv_model::api::DeviceInfo;
use netserv_wire::gist::UDP_PORT;
use netserv_wire::ip::IpView;
use rustix::event::{Timespec, epoll};

use egress::ForwardingCache;
use features::Features;
use frame::EthernetRepr;
use kernel::{Interface, Kernel, interface_id};
use obstacles::{Obstacles, Watcher};
use ports::Ports;
pub use probing::{probe, prospects};
use program::{Link, Program};
pub use sys::bpf::AttachMode;
use sys::memory::{Frame, Heart};
use table::Table;
use tun::Tun;

use crate::XdpForward;
use crate::inject::Injector;
use crate::signal::Passage;
use crate::{Batch, Counters, Driver, DriverConfig, DriverError, Egress, FilterTable, Final, PacketId, limits, packet};

/// The `afxdp` driver.
pub struct Afxdp {
    // The program goes off the devices first, so that no packet comes to a socket that nobody reads.
    links: BTreeMap<u32, Link>,
    table: TableGuard,
    program: Arc<Program>,
    heart: Heart,
    ports: Ports,
    forwarding: ForwardingCache,
    /// `None` where the kernel does not tell.
    features: Option<Features>,
    /// Looks for what is in the way of forwarding in XDP; `None` if that is not wished for or cannot be.
    watcher: Option<Watcher>,
    obstacles: Arc<Obstacles>,
    tun: Tun,
    injector: Injector,
    /// Where signaling messages go; `None` if the kernel keeps them.
    signaling: Option<Passage>,
    config: DriverConfig,
    owed: Vec<Option<Owed>>,
    sequence: u32,
    /// What the program was told: the node's addresses, interfaces, and devices to forward to.
    own: BTreeSet<IpAddr>,
    keys: BTreeSet<[u8; 8]>,
    targets: BTreeSet<u32>,
    /// Devices that could not be taken.
    troubled: BTreeSet<u32>,
    events: OwnedFd,
    looked_at: Instant,
    tended_at: Instant,
    /// The program's counters when they were last looked at.
    without_socket: u64,
    forwarded: u64,
    handed_over: u64,
    counters: Counters,
}

struct TableGuard(Arc<Table>);

impl Drop for TableGuard {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A received packet without a verdict.
struct Owed {
    sequence: u32,
    frame: Frame,
    /// Where in the frame the packet is.
    start: u16,
    end: u16,
    /// Where it came in.
    interface: u32,
    queue: u16,
    /// Why it is for the kernel whatever its way, if so.
    why_not_plain: Option<&'static str>,
}

impl Owed {
    fn range(&self) -> Range<usize> {
        usize::from(self.start)..usize::from(self.end)
    }
}

impl Afxdp {
    /// Takes the devices: those that the configuration names, or else every Ethernet that is not a port of another, and
    /// later on those that come.
    ///
    /// # Errors
    /// Says what is lacking: rights, or the kernel's support.
    pub fn open(config: &DriverConfig) -> Result<Afxdp, DriverError> {
        let forwarding = ForwardingCache::new(Kernel::open()?)?;
        let devices = choose_devices(config, forwarding.interfaces())?;
        let program = Arc::new(load(config.xdp_forward)?);
        let heart = program.heart()?;
        let ports = Ports::open(&devices, config.receive_buffer_bytes, config.busy_poll)?;
        let features = Features::open()?;
        if program.forwards() && features.is_none() {
            tracing::warn!("this kernel does not tell which devices can be forwarded to in XDP; it forwards itself");
        }
        let watcher = program.forwards().then(|| Watcher::start(Arc::clone(&program), config.xdp_forward));
        let tun = Tun::open(&config.instance, forwarding.kernel())?;
        let failed = |error| DriverError::system("watching sockets", error);
        let events = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        for notices in forwarding.kernel().notices().into_iter().chain(features.as_ref().map(Features::notices)) {
            devices::watch(&events, notices)?;
        }
        let now = Instant::now();
        let mut driver = Afxdp {
            links: BTreeMap::new(),
            table: TableGuard(Arc::new(Table::new(Arc::clone(&program))?)),
            program,
            heart,
            owed: std::iter::repeat_with(|| None).take(ports.frames()).collect(),
            ports,
            forwarding,
            features,
            watcher: watcher.transpose()?,
            obstacles: Arc::default(),
            tun,
            injector: Injector::open(config.mark)?,
            signaling: None,
            config: config.clone(),
            sequence: 0,
            own: BTreeSet::new(),
            keys: BTreeSet::new(),
            targets: BTreeSet::new(),
            troubled: BTreeSet::new(),
            events,
            looked_at: now,
            tended_at: now,
            without_socket: 0,
            forwarded: 0,
            handed_over: 0,
            counters: Counters::default(),
        };
        let silence_max = u64::try_from(limits::HEARTBEAT_MAX.as_nanos()).expect("a short time");
        driver.heart.set_silence_max(if config.fail_open { silence_max } else { 0 });
        driver.heart.beat();
        let busy_until = Instant::now() + BUSY_MAX;
        devices.into_iter().try_for_each(|(device, queues)| driver.take(device, queues, busy_until))?;
        driver.follow_links()?;
        Ok(driver)
    }

    /// Returns how the program is attached to each device, by the device's index.
    pub fn modes(&self) -> impl Iterator<Item = (u32, AttachMode)> + '_ {
        self.links.iter().map(|(device, link)| (*device, link.mode))
    }

    /// Returns how many sockets there are: one for each device and queue.
    pub fn sockets(&self) -> usize {
        self.ports.count()
    }

    /// Returns how many packets were handed to the kernel to be forwarded, answered or refused by it.
    pub fn handed_over(&self) -> u64 {
        self.handed_over
    }

    /// Returns how many combinations of masks the filters come down to, which is what a look-up costs.
    pub fn tuples(&self) -> usize {
        self.table.0.tuples()
    }

    /// Returns whether all that filters left behind when they went is out of the kernel's maps: packets that no filter
    /// matches come no more, unless filters had to be made coarser.
    pub fn is_settled(&self) -> bool {
        self.table.0.is_settled()
    }

    /// Returns how many frames of packet memory there are, and how many are free, lent to the kernel or owed a verdict:
    /// as many, unless something leaks.
    pub fn frames(&self) -> (usize, usize) {
        let owed = self.owed.iter().filter(|owed| owed.is_some()).count();
        (self.ports.frames(), self.ports.frames_accounted_for() + owed)
    }

    /// Returns how long the XDP program takes for a frame, on average over so many runs.
    ///
    /// # Errors
    /// As [`Afxdp::classify`].
    pub fn time(&self, frame: &[u8], device: u32, runs: u32) -> Result<Duration, DriverError> {
        self.heart.beat();
        let run = self.program.run(frame, device, runs);
        let (_, nanoseconds) = run.map_err(|error| DriverError::system("running an XDP program", error))?;
        Ok(Duration::from_nanos(nanoseconds.into()))
    }

    /// Runs the XDP program on a frame as if it had come in by a device; returns whether the driver would get it, or,
    /// if the program forwards, another device.
    ///
    /// # Errors
    /// If the device has no program, or the frame no Ethernet header.
    pub fn classify(&self, frame: &[u8], device: u32) -> Result<bool, DriverError> {
        self.heart.beat();
        let run = self.program.run(frame, device, 1);
        run.map(|(redirected, _)| redirected).map_err(|error| DriverError::system("running an XDP program", error))
    }

    fn take_in(&mut self, batch: &mut Batch) {
        let (owed, counters, forwarding) = (&mut self.owed, &mut self.counters, &self.forwarding);
        let (sequence, signaling, tun) = (&mut self.sequence, self.signaling.as_ref(), &self.tun);
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
            *sequence = sequence.wrapping_add(1);
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

    fn take_owed(&mut self, id: PacketId) -> Option<Owed> {
        find_owed(&self.owed, id)?;
        self.owed[index_of(id)?].take()
    }

    /// Waits until there may be something to do; returns false when the time is over.
    fn wait(&self, deadline: Option<Instant>) -> Result<bool, DriverError> {
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
    fn busy_poll(&mut self, batch: &mut Batch, deadline: Option<Instant>) {
        let Some(time) = self.config.busy_poll else { return };
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

impl Driver for Afxdp {
    fn name(&self) -> &'static str {
        "afxdp"
    }

    fn filters(&self) -> Arc<dyn FilterTable> {
        Arc::<Table>::clone(&self.table.0)
    }

    fn intercept(&mut self) -> Result<Option<Passage>, DriverError> {
        let passage = Passage::new(self.tun.name(), self.tun.file())?;
        self.signaling = Some(passage.clone());
        self.follow_signaling();
        self.follow_interfaces()?;
        Ok(Some(passage))
    }

    fn receive(&mut self, batch: &mut Batch, timeout: Option<Duration>) -> Result<usize, DriverError> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        batch.clear();
        loop {
            self.look();
            self.take_in(batch);
            if batch.is_empty() {
                self.busy_poll(batch, deadline);
            }
            if !batch.is_empty() || timeout == Some(Duration::ZERO) || !self.wait(deadline)? {
                return Ok(batch.len());
            }
        }
    }

    fn finish(&mut self, packet: PacketId, verdict: Final<'_>) {
        let Some(owed) = self.take_owed(packet) else {
            self.counters.unknown += 1;
            return;
        };
        match verdict {
            Final::Pass => {
                self.counters.passed += 1;
                self.forward(owed);
            }
            Final::Drop => {
                self.counters.dropped += 1;
                self.ports.release(owed.frame);
            }
            Final::Replace(bytes) => self.replace(owed, bytes),
        }
    }

    fn explain(&mut self, packet: PacketId, verdict: Final<'_>) -> Egress {
        self.explain_owed(packet, verdict)
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), DriverError> {
        packet::whole(packet)?;
        if self.send_new(packet, false) {
            self.counters.injected += 1;
        } else if !self.injector.inject(packet)? {
            self.counters.send_failed += 1;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DriverError> {
        self.ports.flush();
        let sent = self.injector.flush();
        self.counters.injected += sent.injected;
        self.counters.redirected += sent.redirected;
        self.counters.send_failed += sent.failed;
        Ok(())
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.events.as_fd())
    }

    fn counters(&self) -> Counters {
        let unseen = layout::COUNTERS_UNSEEN.into_iter().map(|counter| self.program.counter(counter)).sum::<u64>();
        Counters {
            unseen: self.counters.unseen + unseen,
            lost: self.ports.lost(),
            forwarded: self.program.counter(layout::COUNTER_FORWARDED),
            ..self.counters
        }
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        let device = |(device, link): (&u32, &Link)| {
            Some(DeviceInfo {
                name: self.forwarding.interfaces().get(device)?.name.clone(),
                mode: link.mode.as_str().to_owned(),
                zero_copy: self.ports.zero_copy(*device),
                queues: self.queues(*device),
                left_to_kernel: self.why_not_forwarded(*device),
            })
        };
        self.links.iter().filter_map(device).collect()
    }
}

impl Drop for Afxdp {
    /// What was received and has no verdict goes on.
    fn drop(&mut self) {
        self.links.clear();
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
    }
}

/// How long we wait at most without saying that we are alive, well under [`limits::HEARTBEAT_MAX`].
const BEAT_INTERVAL: Duration = Duration::from_millis(250);
/// What the kernel leaves free in front of a received packet, and we in front of a new one.
const ROOM_BYTES: usize = 256;
/// Bytes of the longest frame that fits into a frame of memory behind the room.
const FRAME_BYTES_RECEIVED: u32 = 2048 - 256;

/// How long a start waits for devices that are busy: the kernel closes the AF_XDP sockets of a killed process in the
/// background, after its end.
const BUSY_MAX: Duration = Duration::from_secs(2);
/// How often they are tried meanwhile.
const BUSY_STEP: Duration = Duration::from_millis(10);

/// Tries something once, and as long as it is busy again and again until a moment.
fn once_free<T>(until: Instant, mut attempt: impl FnMut() -> Result<T, DriverError>) -> Result<T, DriverError> {
    loop {
        let result = attempt();
        let busy = matches!(&result, Err(DriverError::System { source, .. }) if is_busy(source));
        if !busy || Instant::now() >= until {
            return result;
        }
        std::thread::sleep(BUSY_STEP);
    }
}

fn is_busy(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(libc::EBUSY)
}

/// Returns what is owed a verdict under this name.
fn find_owed(owed: &[Option<Owed>], id: PacketId) -> Option<&Owed> {
    owed.get(index_of(id)?)?.as_ref().filter(|owed| u64::from(owed.sequence) == id.0 >> 32)
}

fn index_of(id: PacketId) -> Option<usize> {
    usize::try_from(id.0 & u64::from(u32::MAX)).ok()
}

/// Returns the devices to take, with the number of their queues.
fn choose_devices(
    config: &DriverConfig,
    interfaces: &BTreeMap<u32, Interface>,
) -> Result<BTreeMap<u32, u32>, DriverError> {
    let unsupported = |why: String| Err(DriverError::Unsupported { what: "AF_XDP", why });
    for name in &config.interfaces {
        match interfaces.values().find(|interface| interface.name == *name) {
            None => tracing::warn!(name, "there is no such interface yet"),
            Some(interface) if interface.station.is_none() => return unsupported(format!("`{name}` is no Ethernet")),
            Some(_) => {}
        }
    }
    let devices = devices::wanted_devices(&config.interfaces, interfaces);
    match devices.is_empty() {
        true if config.interfaces.is_empty() => unsupported("there is no Ethernet interface here".to_owned()),
        true => unsupported(format!("there is no interface `{}`", config.interfaces.join("`, `"))),
        false => Ok(devices),
    }
}

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

fn is_signaling(view: &IpView<'_>) -> bool {
    view.udp().is_some_and(|udp| udp.destination_port == UDP_PORT)
}

/// Returns the interface of a VLAN on a device; the device if there is none.
fn logical(forwarding: &ForwardingCache, device: u32, vlan: u16) -> u32 {
    let found = forwarding.interfaces().iter().find(|(_, interface)| interface.vlan == Some((device, vlan)));
    found.map_or(device, |(index, _)| *index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_busy_is_tried_until_it_is_free_or_the_time_is_over() {
        let failure = |number| DriverError::system("trying", std::io::Error::from_raw_os_error(number));
        let attempts = |until: Instant, free_after: usize, number: i32| {
            let mut attempts = 0;
            let result = once_free(until, || {
                attempts += 1;
                if attempts > free_after { Ok(()) } else { Err(failure(number)) }
            });
            (attempts, result.is_ok())
        };
        let later = Instant::now() + BUSY_MAX;
        assert_eq!(attempts(later, 3, libc::EBUSY), (4, true));
        assert_eq!(attempts(later, 3, libc::EINVAL), (1, false));
        assert_eq!(attempts(Instant::now(), 3, libc::EBUSY), (1, false));
        let (tried, done) = attempts(Instant::now() + 5 * BUSY_STEP, usize::MAX, libc::EBUSY);
        assert!(!done && (2..=6).contains(&tried), "{tried}");
    }
}
