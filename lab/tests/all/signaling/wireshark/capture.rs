// SPDX-License-Identifier: Apache-2.0
//! Captures of packets, as files.

use std::net::{IpAddr, SocketAddr};

use netserv_wire::ip::checksum::fill;
use netserv_wire::ip::{IpView, build, protocol};
use tempfile::TempPath;

/// A pcap file of IP packets.
#[derive(Default)]
pub struct Capture {
    records: Vec<u8>,
    packets: u32,
}

/// One direction of a TCP connection to a port of a node.
pub struct Stream {
    number: u16,
    six: bool,
    to: u16,
    sequence: u32,
}

impl Stream {
    /// Returns the beginning of a connection, one of those with a number, over IPv6 or IPv4, to a port.
    pub fn new(number: u16, six: bool, to: u16) -> Stream {
        Stream { number, six, to, sequence: 1 }
    }
}

impl Capture {
    /// Adds a datagram to and from a port, over IPv4 and IPv6 in turns.
    pub fn datagram(&mut self, port: u16, payload: &[u8]) {
        let packet = packet(self.packets % 2 == 1, port, payload);
        self.packet(&packet, packet.len());
    }

    /// Adds what comes next in a connection.
    pub fn segment(&mut self, stream: &mut Stream, payload: &[u8]) {
        let mut segment = Vec::new();
        segment.extend_from_slice(&OTHER_PORT.to_be_bytes());
        segment.extend_from_slice(&stream.to.to_be_bytes());
        segment.extend_from_slice(&stream.sequence.to_be_bytes());
        segment.extend_from_slice(&[0, 0, 0, 1, 0x50, 0x18, 0xFF, 0xFF, 0, 0, 0, 0]);
        segment.extend_from_slice(payload);
        stream.sequence += u32::try_from(payload.len()).unwrap();
        let [source, destination] = ends(stream.number, stream.six);
        let mut packet = build::ip(source, destination, protocol::TCP, 64, &segment).unwrap();
        fill(&mut packet).unwrap();
        self.packet(&packet, packet.len());
    }

    /// Adds a packet of which the first bytes were captured.
    pub fn packet(&mut self, packet: &[u8], kept: usize) {
        assert!(IpView::parse(packet).is_ok());
        for word in [self.packets, 0, u32::try_from(kept).unwrap(), u32::try_from(packet.len()).unwrap()] {
            self.records.extend_from_slice(&word.to_le_bytes());
        }
        self.records.extend_from_slice(&packet[..kept]);
        self.packets += 1;
    }

    /// Writes the file, which goes with what is returned.
    pub fn write(&self) -> TempPath {
        const LINK_TYPE_RAW: u32 = 101;
        let mut bytes = [0xA1B2_C3D4_u32, 0x0004_0002, 0, 0, 0x0004_0000, LINK_TYPE_RAW]
            .into_iter()
            .flat_map(u32::to_le_bytes)
            .collect::<Vec<u8>>();
        bytes.extend_from_slice(&self.records);
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// Returns a datagram between two nodes, from a port to the same one, over IPv6 or IPv4.
pub fn packet(six: bool, port: u16, payload: &[u8]) -> Vec<u8> {
    let [source, destination] = ends(1, six).map(|address| SocketAddr::new(address, port));
    build::udp(source, destination, 64, payload).unwrap()
}

/// Returns the address of one of many nodes, and that of the next one.
fn ends(number: u16, six: bool) -> [IpAddr; 2] {
    let ends = if six {
        [format!("fd77:1::{number:x}"), "fd77:1::254".to_owned()]
    } else {
        let [high, low] = number.to_be_bytes();
        [format!("10.1.{high}.{low}"), "10.1.0.254".to_owned()]
    };
    ends.map(|address| address.parse().unwrap())
}

/// The port of who opens a connection: one that no dissector has.
const OTHER_PORT: u16 = 61_234;
