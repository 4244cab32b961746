// SPDX-License-Identifier: Apache-2.0
//! What is done with a packet that goes on: out by a device, to the kernel, or nowhere.

use std::ops::Range;

use netserv_plane::{
    DriverError, Egress, Final, PacketId,
    destinations::is_beyond_one_link,
    packet::{self, NO_MACHINE, NOT_WHOLE},
};
use netserv_wire::ip::{self, IpVersion, IpView, checksum};

use super::egress::{Forwarding, ForwardingCache, Hop};
use super::frame::{self, EthernetRepr};
use super::kernel::interface_id;
use super::lane::{Lane, Owed, find_owed};
use super::sys::memory::{FRAME_BYTES, Frame, ROOM_BYTES};

impl Lane {
    /// Sends a packet that came in on its way.
    pub(super) fn forward(&mut self, owed: Owed) {
        let bytes = self.ports.umem().bytes(&owed.frame, owed.range());
        let why_not_plain = owed.why_not_plain.or_else(|| self.why_by_kernel());
        match forwarding_of(&mut self.forwarding, bytes, owed.interface, why_not_plain) {
            Forwarding::Out(hop) => {
                if !self.send(owed.frame, usize::from(owed.start)..usize::from(owed.end), owed.queue, &hop, true) {
                    self.counters.send_failed += 1;
                }
            }
            Forwarding::Kernel(_) => {
                let taken = self.plane.tun.send(bytes);
                self.note_handed_over(taken);
                self.ports.release(owed.frame);
            }
            Forwarding::Refused(_) => {
                self.counters.send_failed += 1;
                self.ports.release(owed.frame);
            }
        }
    }

    /// Returns why whatever goes on goes by the kernel, if so.
    fn why_by_kernel(&self) -> Option<&'static str> {
        self.plane.has_rules().then_some(HAS_RULES)
    }

    fn note_handed_over(&mut self, taken: bool) {
        if taken {
            self.handed_over += 1;
        } else {
            self.counters.send_failed += 1;
        }
    }

    /// Queues a packet for its next hop; false if there was no room.
    fn send(&mut self, mut frame: Frame, range: Range<usize>, queue: u16, hop: &Hop, decrement: bool) -> bool {
        let packet = self.ports.umem_mut().bytes_mut(&mut frame, range.clone());
        let version = if packet.first().is_some_and(|first| first >> 4 == 4) { IpVersion::V4 } else { IpVersion::V6 };
        if decrement && ip::decrement_ttl(packet).is_err() {
            self.ports.release(frame);
            return false;
        }
        let header = EthernetRepr { destination: hop.destination, source: hop.source, vlan: hop.vlan, version };
        let start = range.start - header.bytes();
        header.emit(self.ports.umem_mut().bytes_mut(&mut frame, start..range.start));
        let sent = self.ports.send(hop.device, queue, frame, start..range.end);
        sent.map_err(|frame| self.ports.release(frame)).is_ok()
    }

    /// Sends a packet of the node's own, or one with new addresses, from a frame of ours if its next hop is known; false if
    /// it has to go by the kernel.
    pub(super) fn send_new(&mut self, bytes: &[u8], decrement: bool) -> bool {
        if self.plane.has_rules() {
            return false;
        }
        let Forwarding::Out(hop) = forwarding_of_own(&mut self.forwarding, bytes) else { return false };
        let Some(mut frame) = self.ports.take() else { return false };
        let range = ROOM_BYTES..ROOM_BYTES + bytes.len();
        let room = self.ports.umem_mut().bytes_mut(&mut frame, range.clone());
        room.copy_from_slice(bytes);
        fill_header_checksum(room);
        self.send(frame, range, 0, &hop, decrement)
    }

    pub(super) fn replace(&mut self, mut owed: Owed, bytes: &[u8]) {
        let Ok(view) = packet::whole(bytes) else {
            self.counters.bad_verdict += 1;
            return self.ports.release(owed.frame);
        };
        let before = ip::addresses(self.ports.umem().bytes(&owed.frame, owed.range()));
        if before != Some((view.source(), view.destination())) {
            self.ports.release(owed.frame);
            return self.redirect(bytes, view.ttl());
        }
        self.counters.replaced += 1;
        let start = usize::from(owed.start);
        let end = start + bytes.len();
        if end > FRAME_BYTES {
            let taken = self.plane.tun.send(bytes);
            self.note_handed_over(taken);
            return self.ports.release(owed.frame);
        }
        self.ports.umem_mut().bytes_mut(&mut owed.frame, start..end).copy_from_slice(bytes);
        owed.end = u16::try_from(end).expect("a frame is small");
        owed.why_not_plain = frame::why_not_plain(&view);
        self.forward(owed);
    }

    fn redirect(&mut self, bytes: &[u8], ttl: u8) {
        if ttl <= 1 {
            self.counters.bad_verdict += 1;
        } else if self.send_new(bytes, true) {
            self.counters.redirected += 1;
        } else {
            match self.injector.redirect(bytes) {
                Ok(true) => {}
                Ok(false) => self.counters.send_failed += 1,
                Err(DriverError::NoMachine(_)) => self.counters.refused += 1,
                Err(_) => self.counters.bad_verdict += 1,
            }
        }
    }

    /// Tells what would become of a packet with this verdict.
    pub(super) fn explain_owed(&mut self, packet: PacketId, verdict: Final<'_>) -> Egress {
        let Some(owed) = find_owed(&self.owed, packet) else {
            return Egress::Refused { why: "no verdict is owed for it" };
        };
        let received = self.ports.umem().bytes(&owed.frame, owed.range());
        let by_kernel = self.why_by_kernel();
        let forwarding = match verdict {
            Final::Drop => Forwarding::Refused("its verdict is to drop it"),
            Final::Pass => {
                let why_not_plain = owed.why_not_plain.or(by_kernel);
                forwarding_of(&mut self.forwarding, received, owed.interface, why_not_plain)
            }
            Final::Replace(bytes) => match packet::whole(bytes) {
                Err(_) => Forwarding::Refused(NOT_WHOLE),
                Ok(view) if ip::addresses(received) == Some((view.source(), view.destination())) => {
                    let why_not_plain = frame::why_not_plain(&view).or(by_kernel);
                    match forwarding_of(&mut self.forwarding, bytes, owed.interface, why_not_plain) {
                        Forwarding::Out(_) if usize::from(owed.start) + bytes.len() > FRAME_BYTES => {
                            Forwarding::Kernel(NO_ROOM)
                        }
                        other @ (Forwarding::Out(_) | Forwarding::Kernel(_) | Forwarding::Refused(_)) => other,
                    }
                }
                Ok(view) if view.ttl() <= 1 => Forwarding::Refused("its TTL runs out on its new way"),
                Ok(_) if by_kernel.is_some() => Forwarding::Kernel(HAS_RULES),
                Ok(view) => match forwarding_of_own(&mut self.forwarding, bytes) {
                    Forwarding::Kernel(_) if !self.injector.may_send_to(view.destination()) => {
                        Forwarding::Refused(NO_MACHINE)
                    }
                    other @ (Forwarding::Out(_) | Forwarding::Kernel(_) | Forwarding::Refused(_)) => other,
                },
            },
        };
        match forwarding {
            Forwarding::Out(hop) => Egress::Out {
                interface: interface_id(hop.interface),
                name: self.forwarding.interfaces().get(&hop.interface).map(|one| one.name.clone()).unwrap_or_default(),
                next_hop: hop.neighbour,
                station: hop.destination,
                vlan: hop.vlan,
                mtu: hop.mtu,
            },
            Forwarding::Kernel(why) => Egress::Kernel { why },
            Forwarding::Refused(why) => Egress::Refused { why },
        }
    }
}

const HAS_RULES: &str = "the kernel has rules for packets that go on";
const TOO_LONG: &str = "it is longer than its way allows";
const NO_ROOM: &str = "it has become too long for its place in memory";

/// Returns what becomes of a packet that came in by an interface; it may be known why it is for the kernel in any case.
fn forwarding_of(
    cache: &mut ForwardingCache,
    packet: &[u8],
    came: u32,
    why_not_plain: Option<&'static str>,
) -> Forwarding {
    if let Some(why) = why_not_plain {
        return Forwarding::Kernel(why);
    }
    let Some((source, destination)) = ip::addresses(packet) else {
        return Forwarding::Kernel("its headers are not understood");
    };
    match cache.forwarding(source, destination, Some(came)) {
        Forwarding::Out(hop) if packet.len() > hop.mtu => Forwarding::Kernel(TOO_LONG),
        other @ (Forwarding::Out(_) | Forwarding::Kernel(_) | Forwarding::Refused(_)) => *other,
    }
}

/// Returns what becomes of a packet that the node sends itself. For the kernel are those that go by the raw sockets, if their
/// destination may receive them; a next hop of ours is always of a unicast route.
fn forwarding_of_own(cache: &mut ForwardingCache, packet: &[u8]) -> Forwarding {
    let Ok(view) = IpView::parse(packet) else { return Forwarding::Refused(NOT_WHOLE) };
    if !is_beyond_one_link(view.destination()) {
        return Forwarding::Refused(NO_MACHINE);
    }
    let plain = packet[0] >> 4 == 6 || packet[0] == 0x45;
    if !plain {
        return Forwarding::Kernel("it has options");
    }
    match cache.forwarding(view.source(), view.destination(), None) {
        Forwarding::Out(hop) if packet.len() > hop.mtu => Forwarding::Kernel(TOO_LONG),
        Forwarding::Out(_) if packet.len() > FRAME_BYTES - ROOM_BYTES => Forwarding::Kernel(NO_ROOM),
        other @ (Forwarding::Out(_) | Forwarding::Kernel(_) | Forwarding::Refused(_)) => *other,
    }
}

fn fill_header_checksum(packet: &mut [u8]) {
    if packet[0] >> 4 == 4 {
        packet[10..12].fill(0);
        let sum = !checksum::sum(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}
