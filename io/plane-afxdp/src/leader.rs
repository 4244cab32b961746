// SPDX-License-Identifier: Apache-2.0
//! Which devices are served, and what the XDP program has to know of them: they come, go and change while packets flow.
//! The first lane sees to that for all.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use netserv_model::api::DeviceInfo;
use netserv_model::container_link::{container_link_group, container_link_prefix};
use netserv_plane::{Driver as _, DriverError, XdpForward};
use netserv_plane_nfqueue::{Nfqueue, rules::Guard};

use super::devices::wanted_devices;
use super::features::{Ability, Features};
use super::kernel::{Interface, SourceCheck};
use super::lane::Lane;
use super::layout::{self, InterfaceRepr};
use super::obstacles::{Obstacles, Watcher};
use super::pacing::{BUSY_MAX, TEND_INTERVAL, once_free};
use super::plane::{Plane, Served};
use super::program::Link;
use super::sys::memory::FRAME_BYTES_RECEIVED;
use crate::limits;

/// What only the first lane does. When this goes, so does the program, and filters can be changed no more.
pub(super) struct Leader {
    // The program goes off the devices first, so that no packet comes to a socket that nobody reads.
    links: BTreeMap<u32, Link>,
    plane: Arc<Plane>,
    /// `None` where the kernel does not tell.
    features: Option<Features>,
    /// Looks for what is in the way of forwarding in XDP; `None` if that is not wished for or cannot be.
    watcher: Watcher,
    obstacles: Arc<Obstacles>,
    /// What the program was told: the node's addresses, interfaces, and devices to forward to.
    own: BTreeSet<IpAddr>,
    keys: BTreeSet<[u8; 8]>,
    targets: BTreeSet<u32>,
    tended_at: Instant,
    /// The program's counters when they were last looked at.
    without_socket: u64,
    forwarded: u64,
    /// Queues that each device had when the program was put on it, where the kernel tells.
    queues: BTreeMap<u32, usize>,
    /// Where packets come that a filter wants of devices without XDP, or of a module that fails closed past the program, once there
    /// was one; and which devices lead there.
    pub beside: Option<Nfqueue>,
    led: BTreeMap<u32, String>,
    /// Whether what came past the program is led there, and whether it cannot be.
    guards: bool,
    cannot_guard: bool,
    /// Those whose packets pass modules unseen, since the kernel does not lead them there.
    unseen: BTreeMap<u32, String>,
}

impl Leader {
    /// Takes devices, with all lanes, the first of which is the leader's own.
    pub fn open(plane: &Arc<Plane>, lanes: &mut [Lane], devices: BTreeMap<u32, u32>) -> Result<Leader, DriverError> {
        let features = Features::open()?;
        let forwards = plane.program.forwards();
        if forwards && features.is_none() {
            tracing::warn!("this kernel does not tell which devices can be forwarded to in XDP; it forwards itself");
        }
        let watcher = Watcher::start(Arc::clone(&plane.program), plane.config.xdp_forward)?;
        if let Some(features) = &features {
            lanes[0].watch_notices(features.notices())?;
        }
        let mut leader = Leader {
            links: BTreeMap::new(),
            plane: Arc::clone(plane),
            features,
            watcher,
            obstacles: Arc::default(),
            own: BTreeSet::new(),
            keys: BTreeSet::new(),
            targets: BTreeSet::new(),
            tended_at: Instant::now(),
            without_socket: 0,
            forwarded: 0,
            queues: BTreeMap::new(),
            beside: None,
            led: BTreeMap::new(),
            guards: false,
            cannot_guard: false,
            unseen: BTreeMap::new(),
        };
        let busy_until = Instant::now() + BUSY_MAX;
        for (device, queues) in devices {
            leader.take(lanes, device, queues, busy_until)?;
        }
        leader.follow_links(&mut lanes[0])?;
        Ok(leader)
    }

    /// Returns how the program is attached to each device.
    pub fn links(&self) -> &BTreeMap<u32, Link> {
        &self.links
    }

    /// Returns the devices that are served, and how.
    pub fn devices(&self, lane: &Lane) -> Vec<DeviceInfo> {
        let served = self.plane.served();
        let device = |(device, link): (&u32, &Link)| {
            Some(DeviceInfo {
                name: lane.forwarding.interfaces().get(device)?.name.clone(),
                mode: link.mode.as_str().to_owned(),
                zero_copy: lane.ports.zero_copy(*device),
                queues: u32::try_from(served.get(device)?.sockets()).expect("there are few queues"),
                left_to_kernel: self.why_not_forwarded(lane, *device),
            })
        };
        let beside = |mode: &str, name: &String| DeviceInfo {
            name: name.clone(),
            mode: mode.to_owned(),
            zero_copy: false,
            queues: 1,
            left_to_kernel: Some("XDP does not reach it".to_owned()),
        };
        let led = self.led.values().map(|name| beside(NETFILTER, name));
        let unseen = self.unseen.values().map(|name| beside(UNSEEN, name));
        self.links.iter().filter_map(device).chain(led).chain(unseen).collect()
    }

    /// Hears of changes. To be called often; links are looked at if they changed.
    pub fn look(&mut self, lane: &mut Lane, now: Instant, links_changed: Result<bool, DriverError>) {
        let followed = links_changed.and_then(|changed| if changed { self.follow_links(lane) } else { Ok(()) });
        if let Err(error) = followed {
            tracing::warn!(%error, "a change of links could not be followed");
        }
        if self.features.as_ref().is_some_and(|features| features.changed()) {
            self.follow_abilities();
            self.follow_interfaces_or_warn(lane);
        }
        if let Some(found) = self.watcher.changed() {
            self.follow_obstacles(lane, found);
        }
        if self.plane.filters.any_closed() != self.guards && !self.cannot_guard {
            self.follow_beside(lane);
        }
        if now.duration_since(self.tended_at) >= TEND_INTERVAL {
            self.tended_at = now;
            self.tend(lane);
        }
    }

    /// Serves the devices that are to be served, lets go of the others, and tells the program.
    fn follow_links(&mut self, lane: &mut Lane) -> Result<(), DriverError> {
        let wanted = wanted_devices(&self.plane.config.interfaces, lane.forwarding.interfaces());
        let is_gone = |device: &u32| !wanted.contains_key(device) || lane.ports.is_gone(*device);
        let gone: Vec<u32> = self.links.keys().copied().filter(is_gone).collect();
        gone.into_iter().for_each(|device| self.let_go(lane, device));
        lane.troubled.retain(|device| wanted.contains_key(device));
        for (device, queues) in wanted {
            if self.links.contains_key(&device) {
                continue;
            }
            // Packets do not wait for a device that is busy.
            match self.take(std::slice::from_mut(lane), device, queues, Instant::now()) {
                Ok(()) => {
                    lane.troubled.remove(&device);
                }
                Err(error) if lane.troubled.insert(device) => {
                    tracing::warn!(device, %error, "a new device cannot be served");
                }
                Err(_) => {}
            }
        }
        lane.set_served();
        self.follow_beside(lane);
        self.follow_addresses(lane)?;
        self.follow_abilities();
        self.follow_interfaces(lane)
    }

    /// Leads to a netfilter queue what comes in by devices that are to be served and cannot be.
    fn follow_beside(&mut self, lane: &Lane) {
        let names = &self.plane.config.interfaces;
        let mut wanted = self.missed(lane);
        wanted.retain(|_, name| names.is_empty() || names.contains(name));
        let too_many = wanted.keys().nth(limits::DEVICES_BESIDE_MAX).copied();
        let mut unseen = too_many.map_or_else(BTreeMap::new, |first| wanted.split_off(&first));
        let guards = self.plane.filters.any_closed();
        if self.led == wanted && self.unseen == unseen && self.guards == guards {
            return;
        }
        let (mut led, mut are_guarded) = (self.lead(lane, &wanted, guards), guards);
        if let Some(error) = led.as_ref().err().filter(|_| guards) {
            if !std::mem::replace(&mut self.cannot_guard, true) {
                tracing::warn!(%error, "packets may go past a module that fails closed while a device is new or the program is off it");
            }
            // The guard is tried again with the next look.
            are_guarded = false;
            led = self.lead(lane, &wanted, false);
        } else {
            self.cannot_guard = false;
        }
        match led {
            Ok(()) => {
                self.guards = are_guarded;
                for name in wanted.values().filter(|name| !self.led.values().any(|led| led == *name)) {
                    tracing::info!(
                        device = name,
                        "XDP does not reach a device; what modules want of it comes by a netfilter queue"
                    );
                }
                self.led = wanted;
            }
            Err(error) => {
                if self.unseen.is_empty() && !wanted.is_empty() {
                    tracing::warn!(%error, "XDP does not reach some devices, nor does a netfilter queue");
                }
                wanted.retain(|device, _| !self.led.contains_key(device));
                unseen.extend(wanted);
            }
        }
        for name in unseen.values().filter(|name| !self.unseen.values().any(|before| before == *name)) {
            tracing::warn!(device = name, "modules see nothing of what comes in by a device");
        }
        self.unseen = unseen;
    }

    fn lead(&mut self, lane: &Lane, devices: &BTreeMap<u32, String>, guards: bool) -> Result<(), DriverError> {
        if self.beside.is_none() && (guards || !devices.is_empty()) {
            let queue = self.plane.filters.open_queue(&self.plane.config)?;
            queue.poll_fd().map_or(Ok(()), |readable| lane.watch(readable))?;
            self.beside = Some(queue);
        }
        let devices: Vec<u32> = devices.keys().copied().collect();
        let prefix = container_link_prefix(&self.plane.config.instance);
        let containers = container_link_group(&format!("{prefix}0"));
        let guard = Guard { own_device: self.plane.tun.name().to_owned(), containers };
        let guard = Some(&guard).filter(|_| guards);
        self.beside.as_ref().map_or(Ok(()), |queue| queue.rules().set_devices(&devices, guard))
    }

    /// Begins to serve a device in some lanes, and tries until a moment while it is busy; the others are told. The first lane
    /// is the leader's own.
    fn take(&mut self, lanes: &mut [Lane], device: u32, queues: u32, busy_until: Instant) -> Result<(), DriverError> {
        let interface = lanes[0].forwarding.interfaces().get(&device);
        let is_virtual = interface.is_some_and(|interface| interface.is_virtual);
        let full = || DriverError::system("opening an AF_XDP socket", std::io::Error::from_raw_os_error(libc::ENOSPC));
        let served = self.plane.reserve(device, queues, is_virtual).ok_or_else(full)?;
        let opened = lanes.iter_mut().try_for_each(|lane| lane.serve(&served, busy_until));
        let attached = opened.and_then(|()| self.attach(&served, busy_until));
        if let Err(error) = attached {
            lanes.iter_mut().for_each(|lane| lane.close(device));
            return Err(error);
        }
        let (sockets, zero_copy) = (served.sockets(), lanes[0].ports.zero_copy(device));
        tracing::debug!(device, sockets, zero_copy, "a device is served");
        self.plane.publish(served);
        Ok(())
    }

    /// Puts the program on a device, and tries until a moment while it is busy.
    fn attach(&mut self, served: &Served, busy_until: Instant) -> Result<(), DriverError> {
        let device = served.device;
        let queues = self.features.as_ref().map_or(0, |features| features.queues(device));
        let link = once_free(busy_until, || self.plane.program.attach(device))?;
        self.links.insert(device, link);
        self.queues.insert(device, queues);
        Ok(())
    }

    fn let_go(&mut self, lane: &mut Lane, device: u32) {
        // The program first, so that no packet comes to a socket that nobody reads.
        self.links.remove(&device);
        self.queues.remove(&device);
        self.plane.dismiss(device);
        lane.close(device);
        tracing::debug!(device, "a device is served no longer");
    }

    /// Tells the program which addresses are the node's.
    fn follow_addresses(&mut self, lane: &Lane) -> Result<(), DriverError> {
        let own: BTreeSet<IpAddr> = lane.forwarding.kernel().addresses()?.into_iter().collect();
        for address in own.difference(&self.own) {
            self.plane.program.update("own", &layout::address_bytes(*address), &[1])?;
        }
        for address in self.own.difference(&own) {
            self.plane.program.delete("own", &layout::address_bytes(*address))?;
        }
        self.own = own;
        Ok(())
    }

    /// Tells the program which stations are the node's, and what holds for packets that come to them.
    pub fn follow_interfaces(&mut self, lane: &Lane) -> Result<(), DriverError> {
        let (mut keys, served) = (BTreeSet::new(), self.plane.served());
        for (index, interface) in lane.forwarding.interfaces() {
            let (device, vlan) = interface.vlan.map_or((*index, None), |(device, vlan)| (device, Some(vlan)));
            let (Some(served), Some(station)) = (served.get(&device), interface.station) else { continue };
            let key = layout::interface_key(device, vlan);
            let number = |count: usize| u32::try_from(count).expect("there are few sockets");
            let value = InterfaceRepr {
                station,
                flags: flags(interface, lane.forwarding.interfaces().get(&device), self.has_way(device))
                    | if self.plane.signaling.get().is_some() { layout::INTERCEPTS } else { 0 },
                first_socket: number(served.places.start),
                queues: number(served.places.len()),
                frame_bytes_max: FRAME_BYTES_RECEIVED,
            };
            self.plane.program.update("interfaces", &key, &value.emit())?;
            keys.insert(key);
        }
        for key in self.keys.difference(&keys) {
            self.plane.program.delete("interfaces", key)?;
        }
        self.keys = keys;
        Ok(())
    }

    /// Returns whether something may be forwarded in XDP that comes in by a device.
    fn has_way(&self, device: u32) -> bool {
        !self.obstacles.devices.contains_key(&device) && self.targets.iter().any(|target| *target != device)
    }

    /// Tells the program what is in the way of forwarding, and lets it go on where nothing is.
    fn follow_obstacles(&mut self, lane: &Lane, found: Arc<Obstacles>) {
        self.obstacles = found;
        self.plane.set_rules(self.obstacles.rules.is_some());
        self.follow_abilities();
        if self.follow_interfaces_or_warn(lane) {
            self.watcher.allow();
        }
    }

    fn follow_interfaces_or_warn(&mut self, lane: &Lane) -> bool {
        let followed = self.follow_interfaces(lane);
        if let Err(error) = &followed {
            tracing::warn!(%error, "what devices can do could not be followed");
        }
        followed.is_ok()
    }

    /// Returns why nothing that comes in by a device is forwarded in XDP, if so.
    fn why_not_forwarded(&self, lane: &Lane, device: u32) -> Option<String> {
        let interface = lane.forwarding.interfaces().get(&device)?;
        let in_the_way = self.obstacles.everywhere.as_ref().or_else(|| self.obstacles.devices.get(&device));
        let reasons = [
            (self.plane.config.xdp_forward == XdpForward::Off, "dataplane.xdp-forward is off"),
            (!self.plane.program.forwards(), "the kernel takes no program that forwards"),
            (
                self.features.is_none(),
                "the kernel does not tell which devices send what others received (Linux 6.3 does)",
            ),
            (!interface.forwards_v4 && !interface.forwards_v6, "it does not forward"),
            (!self.has_way(device), "no other device sends what it has received"),
        ];
        let reason = reasons.iter().find(|(holds, _)| *holds).map(|(_, why)| (*why).to_owned());
        in_the_way.map(|why| format!("{why} would be passed by")).filter(|_| self.plane.program.forwards()).or(reason)
    }

    /// Tells the program which devices it may forward to.
    fn follow_abilities(&mut self) {
        let Some(features) = self.features.as_ref().filter(|_| self.plane.program.forwards()) else { return };
        let abilities = features.of_devices().unwrap_or_else(|error| {
            tracing::warn!(%error, "no device is forwarded to");
            BTreeMap::new()
        });
        let can = |device: &u32| abilities.get(device).copied().is_some_and(Ability::is_target);
        let is_free = |device: &u32| !self.obstacles.devices.contains_key(device);
        let targets: BTreeSet<u32> = self.links.keys().copied().filter(can).filter(is_free).collect();
        for device in targets.symmetric_difference(&self.targets) {
            if let Err(error) = self.plane.program.set_target(*device, targets.contains(device)) {
                tracing::warn!(device, %error, "a device is not forwarded to as it should be");
            }
        }
        self.targets = targets;
    }

    /// Says whether signaling messages may come in by devices that are not served.
    pub fn follow_signaling(&self, lane: &Lane) {
        let Some(passage) = self.plane.signaling.get() else { return };
        passage.set_partial(!self.missed(lane).is_empty());
    }

    /// Returns the devices by which packets of others may come in, and that are not served, with their names.
    fn missed(&self, lane: &Lane) -> BTreeMap<u32, String> {
        let is_served = |device: &u32| self.links.contains_key(device);
        let is_missed = |(index, interface): &(&u32, &Interface)| {
            let is_seen = is_served(index) || interface.vlan.is_some_and(|(device, _)| is_served(&device));
            interface.name != self.plane.tun.name() && interface.brings_packets() && !is_seen
        };
        let missed = lane.forwarding.interfaces().iter().filter(is_missed);
        missed.map(|(index, interface)| (*index, interface.name.clone())).collect()
    }

    /// Does what has to be done now and then.
    fn tend(&mut self, lane: &mut Lane) {
        self.restore(lane);
        self.grow(lane);
        self.follow_signaling(lane);
        self.follow_beside(lane);
        if !lane.troubled.is_empty()
            && let Err(error) = self.follow_links(lane)
        {
            tracing::warn!(%error, "devices that could not be served were not tried again");
        }
        let forwarded = self.plane.program.counter(layout::COUNTER_FORWARDED);
        if forwarded != self.forwarded {
            self.forwarded = forwarded;
            self.use_neighbours(lane);
        }
    }

    /// Has all lanes serve queues that devices have by now; nobody gives notice of them. To try a queue is dear, so devices
    /// are asked.
    fn grow(&mut self, lane: &mut Lane) {
        let without_socket = self.plane.program.counter(layout::COUNTER_NO_SOCKET);
        let missed = without_socket != self.without_socket;
        self.without_socket = without_socket;
        for (device, served) in self.plane.served() {
            if served.sockets() >= served.places.len() {
                continue;
            }
            let queues = self.features.as_ref().map_or(0, |features| features.queues(device));
            if !missed && queues <= served.sockets() {
                continue;
            }
            self.plane.grow(device);
            let grown = lane.grow(device).and_then(|()| self.attach_again(lane, &served, queues));
            if let Err(error) = grown.and_then(|()| self.follow_interfaces(lane)) {
                tracing::warn!(%error, "new queues cannot be served");
            }
        }
    }

    /// Puts the program on a device once more that has more queues than before: veth runs it only on the queues that were
    /// there when it was put on.
    fn attach_again(&mut self, lane: &mut Lane, served: &Served, queues: usize) -> Result<(), DriverError> {
        let device = served.device;
        if !served.is_virtual || self.queues.get(&device).is_none_or(|before| *before >= queues) {
            return Ok(());
        }
        self.reattach(lane, served)
    }

    fn reattach(&mut self, lane: &mut Lane, served: &Served) -> Result<(), DriverError> {
        let device = served.device;
        self.links.remove(&device);
        let attached = self.attach(served, Instant::now());
        if attached.is_err() {
            self.let_go(lane, device);
            lane.troubled.insert(device);
        }
        attached
    }

    /// Puts back what somebody took away: the program off a device, and the driver's own device.
    fn restore(&mut self, lane: &mut Lane) {
        for (device, served) in self.plane.served() {
            if !self.links.get(&device).is_some_and(Link::is_off) || lane.ports.is_gone(device) {
                continue;
            }
            match self.reattach(lane, &served) {
                Ok(()) => tracing::warn!(device, "somebody took the XDP program off a device; it is there again"),
                Err(error) => tracing::warn!(device, %error, "somebody took the XDP program off a device"),
            }
        }
        let forwarding = &lane.forwarding;
        match self.plane.tun.restore(forwarding.kernel(), forwarding.interfaces(), &self.own) {
            Ok(missing) if missing.is_empty() => {}
            Ok(missing) => {
                let (missing, device) = (missing.join(", "), self.plane.tun.name());
                tracing::warn!(device, missing, "somebody changed the way of packets to the kernel; it is as before");
            }
            Err(error) => tracing::warn!(%error, "packets do not get to the kernel"),
        }
    }

    /// Has the kernel ask for neighbours that only the program's packets use, which it does not see.
    fn use_neighbours(&self, lane: &Lane) {
        match lane.forwarding.kernel().stale_neighbours() {
            Ok(stale) => {
                let on_targets = stale.iter().filter(|(interface, _)| self.targets.contains(interface));
                for (interface, neighbour) in on_targets.take(limits::NEIGHBOURS_ASKED_MAX) {
                    lane.forwarding.kernel().use_neighbour(*interface, *neighbour);
                }
            }
            Err(error) => tracing::debug!(%error, "neighbours are not known"),
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.beside = None;
        self.links.clear();
        self.plane.detached();
        self.plane.table.close();
    }
}

/// How devices are served that XDP does not reach.
const NETFILTER: &str = "netfilter queue";
const UNSEEN: &str = "none";

/// Returns what holds for packets of an interface, whose frames come in by a device: itself, or that below a VLAN; and
/// may have a way out in XDP.
fn flags(interface: &Interface, device: Option<&Interface>, has_way: bool) -> u16 {
    let forwards = [(interface.forwards_v4, layout::FORWARDS_V4), (interface.forwards_v6, layout::FORWARDS_V6)];
    let forwards =
        forwards.iter().filter(|(does, _)| *does && has_way && !interface.enslaved).map(|(_, flag)| flag).sum::<u16>();
    let check = match interface.source_check {
        SourceCheck::Off => 0,
        SourceCheck::Strict => layout::CHECKS_SOURCE,
        SourceCheck::Loose => layout::CHECKS_SOURCE_LOOSELY,
    };
    forwards | check | if device.is_some_and(|device| device.is_virtual) { layout::IS_VIRTUAL } else { 0 }
}
