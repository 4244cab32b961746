// SPDX-License-Identifier: Apache-2.0
//! Packets by AF_XDP: taken off the device before the kernel's own forwarding, and sent by us.
//!
//! An XDP program on each device (`bpf/classify.c`) leads the packets that a filter wants to a socket, and lets all
//! others go on through the kernel. What passes is forwarded by the driver itself: route and neighbour come from the
//! kernel's tables, TTL or hop limit goes down by one, and the frame leaves from where it lies in memory. What only
//! the kernel can do (errors, options, fragments to be made, neighbours to be found) is handed to it by a TUN device;
//! `docs/design/0004-afxdp-egress.md` says why.
//!
//! Packets for the node itself and signaling never come here. Packets forwarded here pass no rules of the kernel's
//! packet filter.
//!
//! When the process ends in whatever way, the kernel takes the program off the devices and the TUN device away.

mod egress;
mod forward;
mod frame;
mod kernel;
mod layout;
mod object;
mod ports;
mod program;
mod sys;
mod table;
mod tun;
mod tuples;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use netserv_model::api::DeviceInfo;
use netserv_wire::ip::IpView;
use rustix::event::{Timespec, epoll};

use egress::Ways;
use frame::EthernetRepr;
use kernel::{Interface, Kernel, interface_id};
use ports::Ports;
use program::{Link, Program};
pub use sys::bpf::AttachMode;
use sys::memory::{FRAME_BYTES, Frame};
use table::Table;
use tun::Tun;

use crate::inject::Injector;
use crate::{Batch, Counters, Driver, DriverConfig, DriverError, Egress, FilterTable, Final, PacketId, limits, packet};

/// The `afxdp` driver.
pub struct Afxdp {
    // The program goes off the devices first, so that no packet comes to a socket that nobody reads.
    links: Vec<(u32, Link)>,
    table: TableGuard,
    program: Arc<Program>,
    ports: Ports,
    ways: Ways,
    tun: Tun,
    injector: Injector,
    owed: Vec<Option<Owed>>,
    sequence: u32,
    own: BTreeSet<IpAddr>,
    keys: BTreeSet<[u8; 8]>,
    events: OwnedFd,
    looked_at: Instant,
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
    range: Range<usize>,
    interface: u32,
}

impl Afxdp {
    /// Takes the devices: those that the configuration names, or else every Ethernet that is not a port of another.
    ///
    /// # Errors
    /// Says what is lacking: rights, or the kernel's support.
    pub fn open(config: &DriverConfig) -> Result<Afxdp, DriverError> {
        let ways = Ways::new(Kernel::open()?)?;
        let devices = choose_devices(config, ways.interfaces())?;
        let program = Arc::new(Program::load()?);
        let ports = Ports::open(&devices, config.receive_buffer_bytes)?;
        let tun = Tun::open(&config.instance, ways.kernel())?;
        let events = watch(&ports, ways.kernel())?;
        let owed = std::iter::repeat_with(|| None).take(ports.frames()).collect();
        let mut driver = Afxdp {
            links: Vec::new(),
            table: TableGuard(Arc::new(Table::new(Arc::clone(&program)))),
            program,
            ports,
            ways,
            tun,
            injector: Injector::open(config.mark)?,
            owed,
            sequence: 0,
            own: BTreeSet::new(),
            keys: BTreeSet::new(),
            events,
            looked_at: Instant::now(),
            handed_over: 0,
            counters: Counters::default(),
        };
        for (place, socket) in (0_u32..).zip(driver.ports.descriptors()) {
            driver.program.set_socket(place, socket)?;
        }
        driver.follow_links()?;
        for (device, _) in &devices {
            driver.links.push((*device, driver.program.attach(*device)?));
        }
        tracing::debug!(devices = devices.len(), zero_copy = driver.ports.zero_copy(), "afxdp driver is open");
        Ok(driver)
    }

    /// Returns how the program is attached to each device, by the device's index.
    pub fn modes(&self) -> impl Iterator<Item = (u32, AttachMode)> + '_ {
        self.links.iter().map(|(device, link)| (*device, link.mode))
    }

    /// Returns how many sockets there are: one for each device and queue.
    pub fn sockets(&self) -> usize {
        self.ports.descriptors().count()
    }

    /// Returns how many packets were handed to the kernel to be forwarded, answered or refused by it.
    pub fn handed_over(&self) -> u64 {
        self.handed_over
    }

    /// Returns how many combinations of masks the filters come down to, which is what a look-up costs.
    pub fn tuples(&self) -> usize {
        self.table.0.tuples()
    }

    /// Runs the XDP program on a frame as if it had come in by a device; returns whether the driver would get it.
    ///
    /// # Errors
    /// If the device has no program, or the frame no Ethernet header.
    pub fn classify(&self, frame: &[u8], device: u32) -> Result<bool, DriverError> {
        self.program.redirects(frame, device).map_err(|error| DriverError::system("running an XDP program", error))
    }

    /// Tells the program which addresses and stations are the node's.
    fn follow_links(&mut self) -> Result<(), DriverError> {
        let own: BTreeSet<IpAddr> = self.ways.kernel().addresses()?.into_iter().collect();
        for address in own.difference(&self.own) {
            self.program.update("own", &layout::address_bytes(*address), &[1])?;
        }
        for address in self.own.difference(&own) {
            self.program.delete("own", &layout::address_bytes(*address))?;
        }
        self.own = own;
        let mut keys = BTreeSet::new();
        for (index, interface) in self.ways.interfaces() {
            let (device, vlan) = interface.vlan.map_or((*index, None), |(device, vlan)| (device, Some(vlan)));
            let (Some(sockets), Some(station)) = (self.ports.of_device(device), interface.station) else { continue };
            let key = layout::interface_key(device, vlan);
            let number = |count: usize| u32::try_from(count).expect("there are few sockets");
            let value =
                layout::interface_value(station, number(sockets.start), number(sockets.len()), FRAME_BYTES_RECEIVED);
            self.program.update("interfaces", &key, &value)?;
            keys.insert(key);
        }
        for key in self.keys.difference(&keys) {
            self.program.delete("interfaces", key)?;
        }
        self.keys = keys;
        self.links.retain(|(device, _)| self.ways.interfaces().contains_key(device));
        self.ports.retain(|device| self.ways.interfaces().contains_key(&device));
        Ok(())
    }

    /// Hears of changes, at most so often.
    fn look(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.looked_at) < LOOK_INTERVAL {
            return;
        }
        self.looked_at = now;
        let looked = self.ways.look(now);
        if let Err(error) = looked.and_then(|changed| if changed { self.follow_links() } else { Ok(()) }) {
            tracing::warn!(%error, "a change of links could not be followed");
        }
    }

    fn take_in(&mut self, batch: &mut Batch) {
        let (owed, counters, ways) = (&mut self.owed, &mut self.counters, &self.ways);
        let sequence = &mut self.sequence;
        self.ports.receive(limits::BATCH_PACKETS_MAX, |umem, mut received| {
            let bytes = umem.bytes_mut(&mut received.frame, received.range.clone());
            let Some((header_bytes, vlan)) = EthernetRepr::parse(bytes) else {
                counters.unseen += 1;
                return Some(received.frame);
            };
            let interface = logical(ways, received.device, vlan);
            if ways.interfaces().get(&received.device).is_some_and(|device| device.is_virtual) {
                frame::complete_checksum(&mut bytes[header_bytes..]);
            }
            let Ok(view) = IpView::parse(&bytes[header_bytes..]) else {
                counters.unseen += 1;
                return Some(received.frame);
            };
            let start = received.range.start + header_bytes;
            *sequence = sequence.wrapping_add(1);
            let index = received.frame.index();
            let id = PacketId(u64::from(*sequence) << 32 | u64::try_from(index).expect("there are few frames"));
            let taken = batch.push(id, interface_id(interface), view.bytes());
            debug_assert!(taken, "no more are received than fit");
            let range = start..start + view.bytes().len();
            owed[index] = Some(Owed { sequence: *sequence, frame: received.frame, range, interface });
            None
        });
        self.counters.received += u64::try_from(batch.len()).expect("a batch is small");
    }

    fn take_owed(&mut self, id: PacketId) -> Option<Owed> {
        find_owed(&self.owed, id)?;
        self.owed[index_of(id)?].take()
    }

    fn wait(&self, deadline: Option<Instant>) -> Result<bool, DriverError> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Ok(false);
        }
        let timeout = left.map(|left| Timespec::try_from(left).expect("a time to wait is short"));
        let mut events = [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 8];
        match epoll::wait(&self.events, &mut events, timeout.as_ref()) {
            Ok(0) => Ok(false),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(true),
            Err(error) => Err(DriverError::system("waiting for packets", error)),
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

    fn receive(&mut self, batch: &mut Batch, timeout: Option<Duration>) -> Result<usize, DriverError> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        batch.clear();
        loop {
            self.look();
            self.take_in(batch);
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
                self.forward(owed.frame, owed.range, owed.interface);
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
        let unseen = self.counters.unseen + self.program.counter(layout::COUNTER_TOO_LONG);
        Counters { unseen, overruns: self.ports.lost(), ..self.counters }
    }

    fn owed_max(&self) -> usize {
        // The other half is for the kernel to fill.
        self.ports.frames() / 2
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        let device = |(device, link): &(u32, Link)| {
            let queues = self.ports.of_device(*device)?.len();
            Some(DeviceInfo {
                name: self.ways.interfaces().get(device)?.name.clone(),
                mode: link.mode.as_str().to_owned(),
                zero_copy: self.ports.zero_copy(),
                queues: u32::try_from(queues).expect("there are few queues"),
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
                self.forward(owed.frame, owed.range, owed.interface);
            }
            self.ports.flush();
        }
    }
}

/// Finds out whether the driver works here, without leaving anything behind.
///
/// # Errors
/// Says what is lacking.
pub fn probe() -> Result<(), DriverError> {
    let kernel = Kernel::open()?;
    let interfaces = kernel.interfaces()?;
    let devices = choose_devices(&DriverConfig::new("probe"), &interfaces)?;
    drop(Program::load()?);
    let first = devices.first().map(|(device, _)| (*device, 1));
    drop(Ports::open(first.as_slice(), FRAME_BYTES * limits::BATCH_PACKETS_MAX)?);
    drop(Tun::open(&format!("p{}", std::process::id()), &kernel)?);
    Ok(())
}

/// How often changes of links, routes and neighbours are looked for while packets flow.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);
/// What the kernel leaves free in front of a received packet, and we in front of a new one.
const ROOM_BYTES: usize = 256;
/// Bytes of the longest frame that fits into a frame of memory behind the room.
const FRAME_BYTES_RECEIVED: u32 = 2048 - 256;

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
    interfaces: &std::collections::BTreeMap<u32, Interface>,
) -> Result<Vec<(u32, u32)>, DriverError> {
    let unsupported = |why: String| Err(DriverError::Unsupported { what: "AF_XDP", why });
    for name in &config.interfaces {
        match interfaces.values().find(|interface| interface.name == *name) {
            None => return unsupported(format!("there is no interface `{name}`")),
            Some(interface) if interface.station.is_none() => return unsupported(format!("`{name}` is no Ethernet")),
            Some(_) => {}
        }
    }
    let wanted = |interface: &Interface| match config.interfaces.is_empty() {
        true => interface.station.is_some() && !interface.enslaved && interface.vlan.is_none(),
        false => config.interfaces.contains(&interface.name),
    };
    let devices = interfaces.iter().filter(|(_, interface)| wanted(interface));
    let devices: Vec<(u32, u32)> = devices.map(|(index, interface)| (*index, interface.queues.max(1))).collect();
    if devices.is_empty() { unsupported("there is no Ethernet interface here".to_owned()) } else { Ok(devices) }
}

/// Returns what becomes readable when a packet or a notice comes.
fn watch(ports: &Ports, kernel: &Kernel) -> Result<OwnedFd, DriverError> {
    let failed = |error| DriverError::system("watching sockets", error);
    let events = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
    for descriptor in ports.descriptors().chain(kernel.notices()) {
        epoll::add(&events, descriptor, epoll::EventData::new_u64(0), epoll::EventFlags::IN).map_err(failed)?;
    }
    Ok(events)
}

/// Returns the interface of a frame: the device, or the VLAN on it.
fn logical(ways: &Ways, device: u32, vlan: Option<u16>) -> u32 {
    let Some(vlan) = vlan else { return device };
    let found = ways.interfaces().iter().find(|(_, interface)| interface.vlan == Some((device, vlan)));
    found.map_or(device, |(index, _)| *index)
}
