// SPDX-License-Identifier: Apache-2.0
//! Which devices are served, and what the XDP program has to know of them: they come, go and change while packets flow.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use netserv_model::container_link::is_container_link;
use rustix::event::epoll;

use super::features::Ability;
use super::kernel::{Interface, SourceCheck};
use super::layout::{self, InterfaceRepr};
use super::obstacles::{Obstacles, Watcher};
use super::{Afxdp, FRAME_BYTES_RECEIVED, once_free};
use crate::{DriverError, XdpForward, limits};

impl Afxdp {
    /// Hears of changes, at most so often, and says that we are alive.
    pub(super) fn look(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.looked_at) < LOOK_INTERVAL {
            return;
        }
        self.looked_at = now;
        self.heart.beat();
        let looked = self.forwarding.look(now);
        if let Err(error) = looked.and_then(|changed| if changed { self.follow_links() } else { Ok(()) }) {
            tracing::warn!(%error, "a change of links could not be followed");
        }
        if self.features.as_ref().is_some_and(|features| features.changed()) {
            self.follow_abilities();
            self.follow_interfaces_or_warn();
        }
        if let Some(found) = self.watcher.as_ref().and_then(Watcher::changed) {
            self.follow_obstacles(found);
        }
        if now.duration_since(self.tended_at) >= TEND_INTERVAL {
            self.tended_at = now;
            self.tend();
        }
    }

    /// Serves the devices that are to be served, lets go of the others, and tells the program.
    pub(super) fn follow_links(&mut self) -> Result<(), DriverError> {
        let wanted = wanted_devices(&self.config.interfaces, self.forwarding.interfaces());
        let gone: Vec<u32> = self.links.keys().copied().filter(|device| !wanted.contains_key(device)).collect();
        gone.into_iter().for_each(|device| self.let_go(device));
        self.troubled.retain(|device| wanted.contains_key(device));
        for (device, queues) in wanted {
            if self.links.contains_key(&device) {
                continue;
            }
            // Packets do not wait for a device that is busy.
            match self.take(device, queues, Instant::now()) {
                Ok(()) => {
                    self.troubled.remove(&device);
                }
                Err(error) if self.troubled.insert(device) => {
                    tracing::warn!(device, %error, "a new device cannot be served");
                }
                Err(_) => {}
            }
        }
        self.forwarding.set_served(self.links.keys().copied().collect());
        self.follow_addresses()?;
        self.follow_abilities();
        self.follow_interfaces()
    }

    /// Begins to serve a device, and tries until a moment while it is busy.
    pub(super) fn take(&mut self, device: u32, queues: u32, busy_until: Instant) -> Result<(), DriverError> {
        let is_virtual = self.forwarding.interfaces().get(&device).is_some_and(|interface| interface.is_virtual);
        once_free(busy_until, || self.ports.add(device, queues, is_virtual))?;
        let attach = || once_free(busy_until, || self.program.attach(device));
        let taken = self.connect(device).and_then(|()| attach());
        match taken {
            Ok(link) => {
                let (queues, zero_copy) = (self.queues(device), self.ports.zero_copy(device));
                tracing::debug!(device, mode = link.mode.as_str(), queues, zero_copy, "a device is served");
                self.links.insert(device, link);
                Ok(())
            }
            Err(error) => {
                self.close(device);
                Err(error)
            }
        }
    }

    /// Returns how many of a device's queues are served.
    pub(super) fn queues(&self, device: u32) -> u32 {
        let (_, sockets) = self.ports.of_device(device).unwrap_or((0, 0));
        u32::try_from(sockets).expect("there are few queues")
    }

    fn let_go(&mut self, device: u32) {
        // The program first, so that no packet comes to a socket that nobody reads.
        self.links.remove(&device);
        self.close(device);
        tracing::debug!(device, "a device is served no longer");
    }

    fn close(&mut self, device: u32) {
        let owed = self.owed.iter().enumerate().filter(|(_, owed)| owed.is_some()).map(|(index, _)| index);
        self.ports.remove(device, owed);
    }

    /// Leads the program and our own waiting to a device's sockets.
    fn connect(&self, device: u32) -> Result<(), DriverError> {
        for (place, socket) in self.ports.descriptors(device) {
            self.program.set_socket(u32::try_from(place).expect("there are few sockets"), socket)?;
            watch(&self.events, socket)?;
        }
        Ok(())
    }

    /// Tells the program which addresses are the node's.
    fn follow_addresses(&mut self) -> Result<(), DriverError> {
        let own: BTreeSet<IpAddr> = self.forwarding.kernel().addresses()?.into_iter().collect();
        for address in own.difference(&self.own) {
            self.program.update("own", &layout::address_bytes(*address), &[1])?;
        }
        for address in self.own.difference(&own) {
            self.program.delete("own", &layout::address_bytes(*address))?;
        }
        self.own = own;
        Ok(())
    }

    /// Tells the program which stations are the node's, and what holds for packets that come to them.
    pub(super) fn follow_interfaces(&mut self) -> Result<(), DriverError> {
        let mut keys = BTreeSet::new();
        for (index, interface) in self.forwarding.interfaces() {
            let (device, vlan) = interface.vlan.map_or((*index, None), |(device, vlan)| (device, Some(vlan)));
            let (Some((place, sockets)), Some(station)) = (self.ports.of_device(device), interface.station) else {
                continue;
            };
            let key = layout::interface_key(device, vlan);
            let number = |count: usize| u32::try_from(count).expect("there are few sockets");
            let value = InterfaceRepr {
                station,
                flags: flags(interface, self.forwarding.interfaces().get(&device), self.has_way(device))
                    | if self.signaling.is_some() { layout::INTERCEPTS } else { 0 },
                first_socket: number(place),
                queues: number(sockets),
                frame_bytes_max: FRAME_BYTES_RECEIVED,
            };
            self.program.update("interfaces", &key, &value.emit())?;
            keys.insert(key);
        }
        for key in self.keys.difference(&keys) {
            self.program.delete("interfaces", key)?;
        }
        self.keys = keys;
        Ok(())
    }

    /// Returns whether something may be forwarded in XDP that comes in by a device.
    fn has_way(&self, device: u32) -> bool {
        !self.obstacles.devices.contains_key(&device) && self.targets.iter().any(|target| *target != device)
    }

    /// Tells the program what is in the way of forwarding, and lets it go on where nothing is.
    fn follow_obstacles(&mut self, found: Arc<Obstacles>) {
        self.obstacles = found;
        self.follow_abilities();
        if self.follow_interfaces_or_warn()
            && let Some(watcher) = &self.watcher
        {
            watcher.allow();
        }
    }

    fn follow_interfaces_or_warn(&mut self) -> bool {
        let followed = self.follow_interfaces();
        if let Err(error) = &followed {
            tracing::warn!(%error, "what devices can do could not be followed");
        }
        followed.is_ok()
    }

    /// Returns why nothing that comes in by a device is forwarded in XDP, if so.
    pub(super) fn why_not_forwarded(&self, device: u32) -> Option<String> {
        let interface = self.forwarding.interfaces().get(&device)?;
        let in_the_way = self.obstacles.everywhere.as_ref().or_else(|| self.obstacles.devices.get(&device));
        let reasons = [
            (self.config.xdp_forward == XdpForward::Off, "dataplane.xdp-forward is off"),
            (!self.program.forwards(), "the kernel takes no program that forwards"),
            (
                self.features.is_none(),
                "the kernel does not tell which devices send what others received (Linux 6.3 does)",
            ),
            (!interface.forwards_v4 && !interface.forwards_v6, "it does not forward"),
            (!self.has_way(device), "no other device sends what it has received"),
        ];
        let reason = reasons.iter().find(|(holds, _)| *holds).map(|(_, why)| (*why).to_owned());
        in_the_way.map(|why| format!("{why} would be passed by")).filter(|_| self.watcher.is_some()).or(reason)
    }

    /// Tells the program which devices it may forward to.
    fn follow_abilities(&mut self) {
        let Some(features) = self.features.as_ref().filter(|_| self.program.forwards()) else { return };
        let abilities = features.of_devices().unwrap_or_else(|error| {
            tracing::warn!(%error, "no device is forwarded to");
            BTreeMap::new()
        });
        let can = |device: &u32| abilities.get(device).copied().is_some_and(Ability::is_target);
        let is_free = |device: &u32| !self.obstacles.devices.contains_key(device);
        let targets: BTreeSet<u32> = self.links.keys().copied().filter(can).filter(is_free).collect();
        for device in targets.symmetric_difference(&self.targets) {
            if let Err(error) = self.program.set_target(*device, targets.contains(device)) {
                tracing::warn!(device, %error, "a device is not forwarded to as it should be");
            }
        }
        self.targets = targets;
    }

    /// Says whether signaling messages may come in by devices that are not served.
    pub(super) fn follow_signaling(&self) {
        let Some(passage) = &self.signaling else { return };
        let interfaces = self.forwarding.interfaces();
        let is_served = |device: &u32| self.links.contains_key(device);
        let is_missed = |(index, interface): (&u32, &Interface)| {
            let is_seen = is_served(index) || interface.vlan.is_some_and(|(device, _)| is_served(&device));
            interface.name != self.tun.name() && interface.brings_packets() && !is_seen
        };
        passage.set_partial(interfaces.iter().any(is_missed));
    }

    /// Does what has to be done now and then.
    fn tend(&mut self) {
        self.grow();
        self.follow_signaling();
        if !self.troubled.is_empty()
            && let Err(error) = self.follow_links()
        {
            tracing::warn!(%error, "devices that could not be served were not tried again");
        }
        let forwarded = self.program.counter(layout::COUNTER_FORWARDED);
        if forwarded != self.forwarded {
            self.forwarded = forwarded;
            self.use_neighbours();
        }
    }

    /// Serves queues that devices have by now; nobody gives notice of them. To try a queue is dear, so devices are
    /// asked.
    fn grow(&mut self) {
        let without_socket = self.program.counter(layout::COUNTER_NO_SOCKET);
        let missed = without_socket != self.without_socket;
        self.without_socket = without_socket;
        let has_more = |device: &u32| {
            let (served, most) = self.ports.queues(*device);
            let queues = || self.features.as_ref().map_or(0, |features| features.queues(*device));
            served < most && (missed || queues() > served)
        };
        let devices: Vec<u32> = self.links.keys().copied().filter(has_more).collect();
        let grown: Vec<u32> = devices.into_iter().filter(|device| self.ports.grow(*device)).collect();
        if grown.is_empty() {
            return;
        }
        let connected = grown.iter().try_for_each(|device| {
            self.connect(*device)?;
            self.attach_again(*device)
        });
        if let Err(error) = connected.and_then(|()| self.follow_interfaces()) {
            tracing::warn!(%error, "new queues cannot be served");
        }
    }

    /// Puts the program on a device once more: veth runs it only on the queues that were there when it was put on.
    fn attach_again(&mut self, device: u32) -> Result<(), DriverError> {
        if !self.forwarding.interfaces().get(&device).is_some_and(|interface| interface.is_virtual) {
            return Ok(());
        }
        self.links.remove(&device);
        match self.program.attach(device) {
            Ok(link) => {
                self.links.insert(device, link);
                Ok(())
            }
            Err(error) => {
                self.close(device);
                self.troubled.insert(device);
                Err(error)
            }
        }
    }

    /// Has the kernel ask for neighbours that only the program's packets use, which it does not see.
    fn use_neighbours(&self) {
        match self.forwarding.kernel().stale_neighbours() {
            Ok(stale) => {
                let on_targets = stale.iter().filter(|(interface, _)| self.targets.contains(interface));
                for (interface, neighbour) in on_targets.take(limits::NEIGHBOURS_ASKED_MAX) {
                    self.forwarding.kernel().use_neighbour(*interface, *neighbour);
                }
            }
            Err(error) => tracing::debug!(%error, "neighbours are not known"),
        }
    }
}

/// How often changes of links, routes and neighbours are looked for while packets flow.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);
/// How often queues and neighbours are looked after.
const TEND_INTERVAL: Duration = Duration::from_secs(1);

/// Returns the devices to be served, with the number of queues that they can have. Links to containers come and go, and
/// each would take sockets of its own, so they are left to the kernel unless they are named.
pub(super) fn wanted_devices(names: &[String], interfaces: &BTreeMap<u32, Interface>) -> BTreeMap<u32, u32> {
    let wanted = |interface: &Interface| match names.is_empty() {
        true => !interface.enslaved && interface.vlan.is_none() && !is_container_link(&interface.name),
        false => names.contains(&interface.name),
    };
    let devices = interfaces.iter().filter(|(_, interface)| interface.station.is_some() && wanted(interface));
    devices.map(|(index, interface)| (*index, interface.queues.max(1))).collect()
}

/// Adds a descriptor to those that are waited for.
pub(super) fn watch(events: &std::os::fd::OwnedFd, descriptor: BorrowedFd<'_>) -> Result<(), DriverError> {
    match epoll::add(events, descriptor, epoll::EventData::new_u64(0), epoll::EventFlags::IN) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(DriverError::system("watching sockets", error)),
    }
}

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
