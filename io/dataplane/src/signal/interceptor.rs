// SPDX-License-Identifier: Apache-2.0
//! Catching GIST queries that are on their way to somebody else.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use netserv_wire::gist::{MAGIC, UDP_PORT};
use netserv_wire::ip::{IpView, build, checksum};

use crate::nfqueue::queue::{Queue, QueueConfig};
use crate::nfqueue::{Decision, Outcome};
use crate::rules::{Chain, Purpose};
use crate::{Batch, DriverConfig, DriverError, InterfaceId, PacketId, limits};

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

/// What the interceptor did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterceptorCounters {
    /// Messages handed out.
    pub intercepted: u64,
    /// Packets on the signaling port that are none of ours (another content, a fragment, a wrong checksum). They went
    /// on.
    pub foreign: u64,
    /// Messages that were let go because more than [`limits::INTERCEPTED_WAITING_MAX`] waited for a verdict.
    pub overdue: u64,
    /// Verdicts for messages that did not wait.
    pub unknown: u64,
    /// Packets that went on unseen, since more came than were taken.
    pub bypassed: u64,
}

/// Takes signaling messages for others out of the forwarding path.
///
/// It catches UDP packets to port 270 that start with GIST's magic number and are not for the node itself, with or
/// without router alert option. A message that is accepted is forwarded by the kernel like any other packet, TTL
/// included. How many messages it is worth looking at is for the caller to decide; it may drop or accept the rest.
pub struct Interceptor {
    // Rules go first when this is dropped, so that no packet comes to a queue that nobody reads.
    _chain: ChainGuard,
    queue: Queue,
    batch: Batch,
    waiting: BTreeMap<PacketId, Arc<[u8]>>,
    counters: InterceptorCounters,
}

struct ChainGuard(Chain);

impl Drop for ChainGuard {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Interceptor {
    /// Removes what an earlier run of this instance left, takes a queue and makes the rules.
    ///
    /// Of the configuration `queue_packets` and `receive_buffer_bytes` do not matter: signaling has small bounds of its
    /// own. A full queue always lets messages pass: they are somebody else's.
    ///
    /// # Errors
    /// Says what is lacking: rights, `iptables`, or the kernel's support.
    pub fn open(config: &DriverConfig) -> Result<Interceptor, DriverError> {
        let queue = Queue::open(QueueConfig {
            first_number: config.queue,
            packets: QUEUE_PACKETS,
            receive_buffer_bytes: RECEIVE_BUFFER_BYTES,
            fail_open: true,
            tag: 0,
        })?;
        let chain = ChainGuard(Chain::open(Purpose::Signaling, &config.instance, queue.number(), config.mark)?);
        chain.0.intercept(UDP_PORT, MAGIC)?;
        let (batch, counters) = (Batch::new(), InterceptorCounters::default());
        Ok(Interceptor { _chain: chain, queue, batch, waiting: BTreeMap::new(), counters })
    }

    /// Appends the messages that have arrived and returns how many; 0 if there are none for the moment.
    ///
    /// Each has to be accepted or dropped. Call again until it returns 0 where waiting is edge-triggered.
    ///
    /// # Errors
    /// Only when the queue is gone.
    pub fn receive(&mut self, to: &mut Vec<Intercepted>) -> Result<usize, DriverError> {
        let mut taken = 0;
        while taken == 0 && self.queue.receive(&mut self.batch, Some(Duration::ZERO))? > 0 {
            for packet in self.batch.iter() {
                match parse(packet.id, packet.interface, packet.bytes) {
                    Some(intercepted) => {
                        self.waiting.insert(packet.id, Arc::clone(&intercepted.packet));
                        to.push(intercepted);
                        taken += 1;
                    }
                    None => {
                        self.counters.foreign += 1;
                        self.queue.decide(packet.id, Outcome::Decided(Decision::Accept));
                    }
                }
            }
            self.let_go_of_the_oldest();
            self.queue.flush()?;
        }
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
        let Some(packet) = self.waiting.get(&id) else { return self.accept(id) };
        let changed = build::replace_udp_payload(packet, payload)
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
        InterceptorCounters { bypassed: self.queue.counters().bypassed, ..self.counters }
    }

    fn decide(&mut self, id: PacketId, outcome: Outcome<'_>) -> Result<(), DriverError> {
        let known = self.waiting.remove(&id).is_some() && self.queue.decide(id, outcome);
        self.counters.unknown += u64::from(!known);
        self.queue.flush()
    }

    fn let_go_of_the_oldest(&mut self) {
        while self.waiting.len() > limits::INTERCEPTED_WAITING_MAX
            && let Some((id, _)) = self.waiting.pop_first()
        {
            self.counters.overdue += 1;
            self.queue.decide(id, Outcome::Decided(Decision::Accept));
        }
    }
}

impl AsFd for Interceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
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
    use crate::packet::testing;

    const MESSAGE: &[u8] = b"\x4e\x04\xbd\xa5message";

    #[test]
    fn messages_are_told_from_what_only_looks_like_them() {
        check(&testing::udp("10.0.0.1:9", "10.0.0.2:270", MESSAGE), Some("10.0.0.1:9"));
        check(&testing::udp("[fd00::1]:270", "[fd00::2]:270", MESSAGE), Some("[fd00::1]:270"));
        check(&testing::udp("10.0.0.1:270", "10.0.0.2:271", MESSAGE), None);
        check(&testing::udp("10.0.0.1:270", "10.0.0.2:270", &MESSAGE[..3]), None);
        check(&testing::udp("10.0.0.1:270", "10.0.0.2:270", &MESSAGE[1..]), None);
        let mut damaged = testing::udp("10.0.0.1:9", "10.0.0.2:270", MESSAGE);
        damaged[30] ^= 1;
        check(&damaged, None);
        let mut fragment = testing::udp("10.0.0.1:9", "10.0.0.2:270", MESSAGE);
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
}
