// SPDX-License-Identifier: Apache-2.0
//! Catching GIST queries that are on their way to somebody else.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use netserv_plane::{Batch, DriverConfig, DriverError, InterfaceId, PacketId, Passage};
use netserv_plane_nfqueue::{
    Decision, Outcome,
    queue::{Queue, QueueConfig},
    rules::Signaling,
};
use netserv_wire::gist::{MAGIC, UDP_PORT};
use netserv_wire::ip::{IpView, build, checksum};
use rustix::event::epoll;

use crate::limits;

/// A signaling message for somebody else, held until it is accepted or dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intercepted {
    /// Its name for the verdict.
    pub id: PacketId,
    /// Where it came in.
    pub interface: InterfaceId,
    /// Who sent it, and from which port.
    pub source: SocketAddr,
    /// Where it is going.
    pub destination: IpAddr,
    /// What is left of the TTL or hop limit, this hop not yet counted.
    pub ttl: u8,
    /// The value of the router alert option, if there is one.
    pub rao: Option<u16>,
    packet: Arc<[u8]>,
    payload: Range<usize>,
}

impl Intercepted {
    /// Returns the content of the UDP datagram, magic number included.
    pub fn payload(&self) -> &[u8] {
        &self.packet[self.payload.clone()]
    }

    /// Returns the whole packet from its IP header on.
    pub fn packet(&self) -> &[u8] {
        &self.packet
    }
}

netserv_model::counts! {
    /// What the interceptor did since it was opened.
    #[derive(Copy)]
    pub struct InterceptorCounters {
        /// Messages handed out.
        intercepted = "shown",
        /// Packets on the signaling port that are none of ours (another content, a fragment, a wrong checksum). They went
        /// on.
        foreign = "foreign",
        /// Messages that were lost because more than [`limits::INTERCEPTED_WAITING_MAX`] waited for a verdict.
        overdue = "overdue",
        /// Verdicts for messages that did not wait.
        unknown,
        /// Packets that were lost, since more came than were taken.
        lost = "lost",
        /// Messages that went on, but not far: the kernel did not take them back.
        send_failed = "send-failed",
    }
}

/// Takes signaling messages for others out of the forwarding path.
///
/// It catches UDP packets to port 270 that start with GIST's magic number and are not for the node itself, with or
/// without router alert option. A message that is accepted is forwarded by the kernel like any other packet, TTL
/// included. How many messages it is worth looking at is for the caller to decide; it may drop or accept the rest. What
/// comes faster than it looks is lost, and counted: a Query that went on unseen would tell its sender that this node is
/// not there, while one that is lost is sent again.
///
/// They come by the forwarding plane where that takes them off its devices itself, and by rules of the kernel's packet
/// filter, which every packet of the machine pays for, only where there are other devices, or no such plane.
pub struct Interceptor {
    config: DriverConfig,
    passage: Option<Passage>,
    rules: Option<Rules>,
    /// The rules that are needed could not be made.
    is_failing: bool,
    /// Readable when one of them is.
    events: OwnedFd,
    batch: Batch,
    waiting: BTreeMap<PacketId, Held>,
    /// How many packets there were.
    packets: u64,
    counters: InterceptorCounters,
}

/// A message without a verdict.
struct Held {
    packet: Arc<[u8]>,
    /// Its name in the queue; `None` if it came by the plane.
    queued: Option<PacketId>,
}

/// Rules that lead messages to a queue.
struct Rules {
    // They go first when this is dropped, so that no packet comes to a queue that nobody reads.
    _signaling: Signaling,
    queue: Queue,
}

impl Rules {
    /// Takes a queue and makes the rules; `except` is a device whose packets were seen before.
    fn open(config: &DriverConfig, except: Option<&str>) -> Result<Rules, DriverError> {
        let queue = Queue::open(QueueConfig {
            first_number: config.queue,
            packets: QUEUE_PACKETS,
            receive_buffer_bytes: RECEIVE_BUFFER_BYTES,
            fail_open: false,
            tag: 0,
        })?;
        let to = (queue.number(), config.mark);
        let signaling = Signaling::open(&config.instance, to, (UDP_PORT, MAGIC), except)?;
        Ok(Rules { _signaling: signaling, queue })
    }
}

impl Interceptor {
    /// Takes messages from a plane, or takes a queue and makes rules, or both, as is needed.
    ///
    /// Of the configuration `queue_packets` and `receive_buffer_bytes` do not matter: signaling has small bounds of its
    /// own.
    ///
    /// # Errors
    /// Says what is lacking: rights, or the kernel's support.
    pub fn open(config: &DriverConfig, passage: Option<Passage>) -> Result<Interceptor, DriverError> {
        let failed = |error| DriverError::system("watching for signaling", error);
        let events = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        if let Some(passage) = &passage {
            epoll::add(&events, passage, epoll::EventData::new_u64(0), epoll::EventFlags::IN).map_err(failed)?;
        }
        let mut interceptor = Interceptor {
            config: config.clone(),
            passage,
            rules: None,
            is_failing: false,
            events,
            batch: Batch::new(),
            waiting: BTreeMap::new(),
            packets: 0,
            counters: InterceptorCounters::default(),
        };
        if interceptor.needs_rules() {
            interceptor.make_rules()?;
        }
        Ok(interceptor)
    }

    /// Appends the messages that have arrived and returns how many; 0 if there are none for the moment.
    ///
    /// Each has to be accepted or dropped. Call again until it returns 0 where waiting is edge-triggered.
    ///
    /// # Errors
    /// Only when the queue is gone.
    pub fn receive(&mut self, to: &mut Vec<Intercepted>) -> Result<usize, DriverError> {
        self.follow_rules();
        let before = to.len();
        while to.len() == before && (self.take_queued(to)? || self.take_passing(to)) {}
        let taken = to.len() - before;
        self.lose_the_oldest()?;
        self.counters.intercepted += u64::try_from(taken).expect("a batch is small");
        Ok(taken)
    }

    /// Lets a message go on as it came.
    ///
    /// # Errors
    /// Only when the queue is gone.
    pub fn accept(&mut self, id: PacketId) -> Result<(), DriverError> {
        self.decide(id, Outcome::Decided(Decision::Accept))
    }

    /// Lets a message go on with another content; lengths and checksums follow, options stay.
    ///
    /// # Errors
    /// If the content is too long for a packet; the message then waits on. Otherwise only when the queue is gone.
    pub fn accept_modified(&mut self, id: PacketId, payload: &[u8]) -> Result<(), DriverError> {
        let Some(held) = self.waiting.get(&id) else { return self.accept(id) };
        let changed = build::replace_udp_payload(&held.packet, payload)
            .map_err(|error| DriverError::BadPacket { why: error.to_string() })?;
        self.decide(id, Outcome::Replaced(&changed))
    }

    /// Takes a message out for good.
    ///
    /// # Errors
    /// Only when the queue is gone.
    pub fn drop(&mut self, id: PacketId) -> Result<(), DriverError> {
        self.decide(id, Outcome::Decided(Decision::Drop))
    }

    /// Returns what was done so far.
    pub fn counters(&self) -> InterceptorCounters {
        let queue = self.rules.as_ref().map_or(0, |rules| rules.queue.counters().lost);
        let passage = self.passage.as_ref().map_or(0, Passage::lost);
        InterceptorCounters { lost: self.counters.lost + queue + passage, ..self.counters }
    }

    fn needs_rules(&self) -> bool {
        self.passage.as_ref().is_none_or(Passage::is_partial)
    }

    fn make_rules(&mut self) -> Result<(), DriverError> {
        let rules = Rules::open(&self.config, self.passage.as_ref().map(Passage::device))?;
        epoll::add(&self.events, &rules.queue, epoll::EventData::new_u64(1), epoll::EventFlags::IN)
            .map_err(|error| DriverError::system("watching for signaling", error))?;
        self.rules = Some(rules);
        Ok(())
    }

    /// Makes or takes away the rules when devices came or went that the plane does not serve.
    fn follow_rules(&mut self) {
        match (self.needs_rules(), &self.rules) {
            (true, None) if !self.is_failing => {
                if let Err(error) = self.make_rules() {
                    tracing::warn!(%error, "Queries that come in by devices without XDP pass unseen");
                    self.is_failing = true;
                }
            }
            (false, _) => {
                self.is_failing = false;
                if let Some(rules) = self.rules.take() {
                    self.counters.lost += rules.queue.counters().lost;
                    self.waiting.retain(|_, held| held.queued.is_none());
                }
            }
            (true, _) => {}
        }
    }

    /// Takes what the rules led to the queue; returns whether there was anything.
    fn take_queued(&mut self, to: &mut Vec<Intercepted>) -> Result<bool, DriverError> {
        let Some(rules) = &mut self.rules else { return Ok(false) };
        if rules.queue.receive(&mut self.batch)? == 0 {
            return Ok(false);
        }
        for packet in self.batch.iter() {
            self.packets += 1;
            match parse(PacketId(self.packets), packet.interface, packet.bytes) {
                Some(message) => {
                    let held = Held { packet: Arc::clone(&message.packet), queued: Some(packet.id) };
                    self.waiting.insert(message.id, held);
                    to.push(message);
                }
                None => {
                    self.counters.foreign += 1;
                    rules.queue.decide(packet.id, Outcome::Decided(Decision::Accept));
                }
            }
        }
        rules.queue.flush()?;
        Ok(true)
    }

    /// Takes what the plane took off its devices; returns whether there was anything.
    fn take_passing(&mut self, to: &mut Vec<Intercepted>) -> bool {
        let Some(passage) = &self.passage else { return false };
        let taken = passage.take(limits::BATCH_PACKETS_MAX);
        let found = !taken.is_empty();
        for (interface, packet) in taken {
            self.packets += 1;
            match parse(PacketId(self.packets), interface, &packet) {
                Some(message) => {
                    self.waiting.insert(message.id, Held { packet: Arc::clone(&message.packet), queued: None });
                    to.push(message);
                }
                None => {
                    self.counters.foreign += 1;
                    self.counters.send_failed += u64::from(!passage.pass(&packet));
                }
            }
        }
        found
    }

    fn decide(&mut self, id: PacketId, outcome: Outcome<'_>) -> Result<(), DriverError> {
        let Some(held) = self.waiting.remove(&id) else {
            self.counters.unknown += 1;
            return Ok(());
        };
        match (held.queued, &mut self.rules, &self.passage) {
            (Some(id), Some(rules), _) => {
                self.counters.unknown += u64::from(!rules.queue.decide(id, outcome));
                rules.queue.flush()
            }
            (_, _, Some(passage)) => {
                let passed = match outcome {
                    Outcome::Decided(Decision::Accept) => passage.pass(&held.packet),
                    Outcome::Decided(Decision::Drop) => true,
                    Outcome::Replaced(packet) => passage.pass(packet),
                };
                self.counters.send_failed += u64::from(!passed);
                Ok(())
            }
            (_, _, None) => unreachable!("what came by rules goes with them"),
        }
    }

    fn lose_the_oldest(&mut self) -> Result<(), DriverError> {
        while self.waiting.len() > limits::INTERCEPTED_WAITING_MAX
            && let Some((id, _)) = self.waiting.first_key_value()
        {
            self.counters.overdue += 1;
            self.drop(*id)?;
        }
        Ok(())
    }
}

impl Drop for Interceptor {
    /// What came by the plane and has no verdict goes on.
    fn drop(&mut self) {
        let Some(passage) = &self.passage else { return };
        for held in self.waiting.values().filter(|held| held.queued.is_none()) {
            passage.pass(&held.packet);
        }
        passage.close();
    }
}

impl AsFd for Interceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

const QUEUE_PACKETS: u32 = 1024;
const RECEIVE_BUFFER_BYTES: usize = 8 * 1024 * 1024;

/// Takes a packet for a signaling message only if it is one for certain: others must not notice that we are here.
fn parse(id: PacketId, interface: InterfaceId, bytes: &[u8]) -> Option<Intercepted> {
    let view = IpView::parse(bytes).ok()?;
    let udp = view.udp()?;
    let is_message = udp.destination_port == UDP_PORT && udp.payload.starts_with(&MAGIC.to_be_bytes());
    if !is_message || checksum::verify_transport(&view) == checksum::TransportChecksum::Bad {
        return None;
    }
    let start = view.payload_offset() + UDP_HEADER_BYTES;
    Some(Intercepted {
        id,
        interface,
        source: SocketAddr::new(view.source(), udp.source_port),
        destination: view.destination(),
        ttl: view.ttl(),
        rao: view.router_alert(),
        packet: Arc::from(view.bytes()),
        payload: start..start + udp.payload.len(),
    })
}

const UDP_HEADER_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &[u8] = b"\x4e\x04\xbd\xa5message";

    #[test]
    fn messages_are_told_from_what_only_looks_like_them() {
        check(&udp("10.0.0.1:9", "10.0.0.2:270", MESSAGE), Some("10.0.0.1:9"));
        check(&udp("[fd00::1]:270", "[fd00::2]:270", MESSAGE), Some("[fd00::1]:270"));
        check(&udp("10.0.0.1:270", "10.0.0.2:271", MESSAGE), None);
        check(&udp("10.0.0.1:270", "10.0.0.2:270", &MESSAGE[..3]), None);
        check(&udp("10.0.0.1:270", "10.0.0.2:270", &MESSAGE[1..]), None);
        let mut damaged = udp("10.0.0.1:9", "10.0.0.2:270", MESSAGE);
        damaged[30] ^= 1;
        check(&damaged, None);
        let mut fragment = udp("10.0.0.1:9", "10.0.0.2:270", MESSAGE);
        fragment[6] |= 0x20;
        check(&fragment, None);
    }

    fn check(packet: &[u8], source: Option<&str>) {
        let parsed = parse(PacketId(1), InterfaceId(2), packet);
        assert_eq!(parsed.as_ref().map(|parsed| parsed.source.to_string()).as_deref(), source);
        if let Some(parsed) = parsed {
            assert_eq!((parsed.payload(), parsed.packet(), parsed.ttl, parsed.rao), (MESSAGE, packet, 64, None));
        }
    }

    fn udp(source: &str, destination: &str, payload: &[u8]) -> Vec<u8> {
        build::udp(source.parse().unwrap(), destination.parse().unwrap(), 64, payload).unwrap()
    }
}
