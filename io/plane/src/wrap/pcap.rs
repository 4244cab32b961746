// SPDX-License-Identifier: Apache-2.0
//! Writes packets and their verdicts to a pcapng file (draft-ietf-opsawg-pcapng), which Wireshark and tcpdump read.
//!
//! A packet is written down when its verdict is known, with the time of its arrival; the verdict is its comment. What
//! goes on in its place and what is injected are packets of their own, marked as outgoing.

use std::collections::{BTreeMap, btree_map};
use std::io::Write;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use netserv_model::api::DeviceInfo;

use super::trace::Named;
use crate::{
    Batch, Counters, DestinationCounters, Driver, DriverError, Egress, FilterTable, Final, InterfaceId, PacketId,
    Passage, limits,
};

/// A driver whose packets are written to a file.
pub struct Pcap<D, W: Write> {
    inner: D,
    file: PcapFile<W>,
    waiting: BTreeMap<PacketId, (SystemTime, InterfaceId, Vec<u8>)>,
}

impl<D: Driver, W: Write + Send> Pcap<D, W> {
    /// Wraps a driver. Writing ends after `bytes_max` bytes, or with the first error; packets go on all the same.
    ///
    /// The writer gets many small pieces; give it a buffer.
    pub fn new(inner: D, writer: W, bytes_max: u64) -> Pcap<D, W> {
        Pcap { inner, file: PcapFile::new(writer, bytes_max), waiting: BTreeMap::new() }
    }

    fn write_waiting(&mut self, id: PacketId, comment: &str) {
        if let Some((time, interface, bytes)) = self.waiting.remove(&id) {
            self.file.packet(time, interface, Direction::In, &bytes, comment);
        }
    }
}

impl<D: Driver, W: Write + Send> Driver for Pcap<D, W> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn intercept(&mut self) -> Result<Option<Passage>, DriverError> {
        self.inner.intercept()
    }

    fn destination_counters(&self) -> Arc<dyn DestinationCounters> {
        self.inner.destination_counters()
    }

    fn filters(&self) -> Arc<dyn FilterTable> {
        self.inner.filters()
    }

    fn receive(&mut self, batch: &mut Batch, timeout: Option<Duration>) -> Result<usize, DriverError> {
        let count = self.inner.receive(batch, timeout)?;
        let now = SystemTime::now();
        for packet in batch.iter() {
            if self.waiting.len() < limits::PCAP_WAITING_MAX {
                self.waiting.insert(packet.id, (now, packet.interface, packet.bytes.to_vec()));
            } else {
                self.file.packet(now, packet.interface, Direction::In, packet.bytes, "verdict not known");
            }
        }
        Ok(count)
    }

    fn finish(&mut self, packet: PacketId, verdict: Final<'_>) {
        self.write_waiting(packet, &Named(verdict).to_string());
        if let Final::Replace(bytes) = verdict {
            let comment = format!("in place of packet {}", packet.0);
            self.file.packet(SystemTime::now(), InterfaceId(0), Direction::Out, bytes, &comment);
        }
        self.inner.finish(packet, verdict);
    }

    fn explain(&mut self, packet: PacketId, verdict: Final<'_>) -> Egress {
        self.inner.explain(packet, verdict)
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), DriverError> {
        self.inner.inject(packet)?;
        self.file.packet(SystemTime::now(), InterfaceId(0), Direction::Out, packet, "injected");
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DriverError> {
        self.file.flush();
        self.inner.flush()
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.poll_fd()
    }

    fn owed_max(&self) -> usize {
        self.inner.owed_max()
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        self.inner.devices()
    }
}

impl<D, W: Write> Drop for Pcap<D, W> {
    fn drop(&mut self) {
        for (_, (time, interface, bytes)) in std::mem::take(&mut self.waiting) {
            self.file.packet(time, interface, Direction::In, &bytes, "no verdict until the end");
        }
        self.file.flush();
    }
}

#[derive(Clone, Copy)]
enum Direction {
    In,
    Out,
}

struct PcapFile<W> {
    /// `None` when writing has ended.
    writer: Option<W>,
    bytes_left: u64,
    /// The numbers of the interfaces in the file, in the order of their first packets.
    interfaces: BTreeMap<InterfaceId, u32>,
}

impl<W: Write> PcapFile<W> {
    fn new(writer: W, bytes_max: u64) -> PcapFile<W> {
        let mut file = PcapFile { writer: Some(writer), bytes_left: bytes_max, interfaces: BTreeMap::new() };
        let mut section = BYTE_ORDER_MAGIC.to_ne_bytes().to_vec();
        section.extend(VERSION.map(u16::to_ne_bytes).concat());
        section.extend(SECTION_LENGTH_UNKNOWN.to_ne_bytes());
        file.block(BLOCK_SECTION, &section);
        file
    }

    fn packet(&mut self, time: SystemTime, interface: InterfaceId, direction: Direction, bytes: &[u8], comment: &str) {
        if self.writer.is_none() {
            return;
        }
        let number = self.interface(interface);
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let nanos = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        let mut block = number.to_ne_bytes().to_vec();
        block.extend(u32::try_from(nanos >> 32).expect("32 bits are left").to_ne_bytes());
        block.extend(u32::try_from(nanos & 0xffff_ffff).expect("32 bits are left").to_ne_bytes());
        block.extend(length.to_ne_bytes());
        block.extend(length.to_ne_bytes());
        append_padded(&mut block, bytes);
        append_option(&mut block, OPTION_COMMENT, comment.as_bytes());
        let flags: u32 = match direction {
            Direction::In => 1,
            Direction::Out => 2,
        };
        append_option(&mut block, OPTION_PACKET_FLAGS, &flags.to_ne_bytes());
        append_option(&mut block, OPTION_END, &[]);
        self.block(BLOCK_PACKET, &block);
    }

    /// Returns an interface's number in the file, and describes it before its first packet.
    fn interface(&mut self, interface: InterfaceId) -> u32 {
        let next = u32::try_from(self.interfaces.len()).expect("interfaces are few");
        match self.interfaces.entry(interface) {
            btree_map::Entry::Occupied(entry) => return *entry.get(),
            btree_map::Entry::Vacant(entry) => entry.insert(next),
        };
        let mut block = [LINK_RAW_IP.to_ne_bytes(), [0; 2], [0; 2], [0; 2]].concat();
        let name = if interface.0 == 0 { "sent".to_owned() } else { format!("interface {}", interface.0) };
        append_option(&mut block, OPTION_INTERFACE_NAME, name.as_bytes());
        append_option(&mut block, OPTION_TIME_RESOLUTION, &[NANOSECONDS]);
        append_option(&mut block, OPTION_END, &[]);
        self.block(BLOCK_INTERFACE, &block);
        next
    }

    fn block(&mut self, kind: u32, content: &[u8]) {
        let length = u32::try_from(content.len() + 12).expect("a block holds one packet");
        let Some(writer) = &mut self.writer else { return };
        let Some(left) = self.bytes_left.checked_sub(length.into()) else {
            tracing::warn!("the packet file is full; further packets are not written");
            self.flush();
            self.writer = None;
            return;
        };
        self.bytes_left = left;
        let length = length.to_ne_bytes();
        let parts = [&kind.to_ne_bytes(), length.as_slice(), content, &length];
        if let Err(error) = parts.into_iter().try_for_each(|part| writer.write_all(part)) {
            tracing::warn!(%error, "packets cannot be written to the file any further");
            self.writer = None;
        }
    }

    fn flush(&mut self) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.flush()
        {
            tracing::warn!(%error, "packets cannot be written to the file any further");
            self.writer = None;
        }
    }
}

const BLOCK_SECTION: u32 = 0x0A0D_0D0A;
const BLOCK_INTERFACE: u32 = 0x0000_0001;
const BLOCK_PACKET: u32 = 0x0000_0006;
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
const VERSION: [u16; 2] = [1, 0];
const SECTION_LENGTH_UNKNOWN: i64 = -1;
const LINK_RAW_IP: u16 = 101;

const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const OPTION_INTERFACE_NAME: u16 = 2;
const OPTION_PACKET_FLAGS: u16 = 2;
const OPTION_TIME_RESOLUTION: u16 = 9;
const NANOSECONDS: u8 = 9;

fn append_option(block: &mut Vec<u8>, kind: u16, content: &[u8]) {
    block.extend(kind.to_ne_bytes());
    block.extend(u16::try_from(content.len()).expect("options are short").to_ne_bytes());
    append_padded(block, content);
}

fn append_padded(block: &mut Vec<u8>, content: &[u8]) {
    block.extend(content);
    block.resize(block.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use netserv_model::effect::FilterId;

    use super::*;
    use crate::dummy::{Dummy, Plane};
    use crate::packet::testing;

    #[test]
    fn packets_are_written_with_their_verdicts() {
        let sink = Sink::default();
        let (mut driver, plane) = driver(sink.clone(), u64::MAX);
        let (packet, answer) =
            (testing::udp("10.0.0.1:1", "10.0.0.2:2", b"ask"), testing::udp("10.0.0.2:2", "10.0.0.1:1", b"answer"));
        (0..4).for_each(|_| assert!(plane.push(InterfaceId(9), &packet)));
        driver.receive(&mut Batch::new(), None).unwrap();
        driver.finish(PacketId(2), Final::Drop);
        driver.finish(PacketId(1), Final::Pass);
        driver.finish(PacketId(3), Final::Replace(&answer));
        driver.inject(&answer).unwrap();
        drop(driver);
        let expected = [
            (0, 1, packet.clone(), "drop"),
            (0, 1, packet.clone(), "pass"),
            (0, 1, packet.clone(), "replace by 34 bytes"),
            (1, 2, answer.clone(), "in place of packet 3"),
            (1, 2, answer, "injected"),
            (0, 1, packet, "no verdict until the end"),
        ];
        let expected = expected.map(|(interface, flags, bytes, comment)| (interface, flags, bytes, comment.to_owned()));
        assert_eq!(packets(&sink.0.lock().unwrap()), expected);
    }

    #[test]
    fn a_full_or_broken_file_stops_the_writing_only() {
        for (limit, sink) in [(200, Sink::default()), (u64::MAX, Sink(Arc::default(), Some(200)))] {
            let (mut driver, plane) = driver(sink.clone(), limit);
            for _ in 0..3 {
                assert!(plane.push(InterfaceId(9), &testing::udp("10.0.0.1:1", "10.0.0.2:2", b"ask")));
            }
            driver.receive(&mut Batch::new(), None).unwrap();
            (1..=3).for_each(|id| driver.finish(PacketId(id), Final::Pass));
            driver.flush().unwrap();
            assert_eq!(plane.outcomes().len(), 3);
            let length = sink.0.lock().unwrap().len();
            assert!((100..=200).contains(&length), "{length}");
        }
    }

    #[test]
    fn pcap_waiting_max_packets_wait_for_their_verdict() {
        let sink = Sink::default();
        let (mut driver, plane) = driver(sink.clone(), u64::MAX);
        let packet = testing::udp("10.0.0.1:1", "10.0.0.2:2", b"x");
        (0..limits::PCAP_WAITING_MAX + 2).for_each(|_| assert!(plane.push(InterfaceId(9), &packet)));
        let mut batch = Batch::new();
        while driver.receive(&mut batch, Some(Duration::ZERO)).unwrap() > 0 {}
        let comments: Vec<String> = packets(&sink.0.lock().unwrap()).into_iter().map(|packet| packet.3).collect();
        assert_eq!(comments, ["verdict not known", "verdict not known"]);
    }

    /// A file in memory, which may become full.
    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>, Option<usize>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut file = self.0.lock().unwrap();
            if self.1.is_some_and(|most| file.len() + bytes.len() > most) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            file.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn driver(sink: Sink, bytes_max: u64) -> (Pcap<Dummy, Sink>, Plane) {
        let (mut dummy, plane) = Dummy::new();
        dummy.install(FilterId(1), &"udp".parse().unwrap()).unwrap();
        (Pcap::new(dummy, sink, bytes_max), plane)
    }

    /// Reads the packets of a file back: interface, flags, bytes, comment.
    fn packets(mut file: &[u8]) -> Vec<(u32, u32, Vec<u8>, String)> {
        let number = |bytes: &[u8], at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        let mut packets = Vec::new();
        while !file.is_empty() {
            let length = usize::try_from(number(file, 4)).unwrap();
            let (block, rest) = file.split_at(length);
            assert_eq!(number(block, length - 4), number(block, 4), "a block ends with its length");
            if number(block, 0) == BLOCK_PACKET {
                let captured = usize::try_from(number(block, 20)).unwrap();
                let option = 28 + captured.next_multiple_of(4);
                let text = usize::from(u16::from_ne_bytes([block[option + 2], block[option + 3]]));
                let comment = String::from_utf8(block[option + 4..][..text].to_vec()).unwrap();
                let flags = number(block, option + 4 + text.next_multiple_of(4) + 4);
                packets.push((number(block, 8), flags, block[28..28 + captured].to_vec(), comment));
            }
            file = rest;
        }
        packets
    }
}
