// SPDX-License-Identifier: Apache-2.0
//! Packets that a machine sent and got, by tcpdump: what is in them, to the byte.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result, ensure};
use netserv_wire::ip::{Fragment, IpView};

use crate::netns::Lab;

/// Of a capture file, of a packet in it, and of Ethernet.
const FILE_HEAD_BYTES: usize = 24;
const PACKET_HEAD_BYTES: usize = 16;
const ETHERNET_BYTES: usize = 14;
const UDP_HEAD_BYTES: usize = 8;
/// IP's number of TCP.
const TCP: u8 = 6;
const TCP_HEAD_BYTES: usize = 20;
const TCP_SYN: u8 = 0x02;

/// A datagram of UDP, or a fragment of one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Datagram {
    /// Where it came from. A fragment behind the first has no port.
    pub from: SocketAddr,
    /// Where it goes.
    pub to: SocketAddr,
    /// What it carries; of a fragment, what it has of that.
    pub payload: Vec<u8>,
    /// Bytes of IP.
    pub length: usize,
}

/// Packets that were captured.
#[derive(Debug, Default)]
pub struct Captured(Vec<Vec<u8>>);

impl Lab {
    /// Has a machine's first interface note all packets from and to an address, from here on.
    ///
    /// # Errors
    /// tcpdump is missing.
    pub fn capture(&mut self, machine: &str, with: &[IpAddr]) -> Result<()> {
        let interface = self.topology().interfaces_of(machine).remove(0).name;
        let file = self.dir().join(format!("{machine}.pcap"));
        let log = self.log_path(machine, "capture");
        if log.exists() {
            std::fs::remove_file(log)?;
        }
        let hosts = with.iter().map(|address| format!("host {address}")).collect::<Vec<_>>().join(" or ");
        let mut command = self.command(machine, "tcpdump");
        command.args(["-n", "-U", "--immediate-mode", "-B", "16384", "-Z", "root", "-i", &interface, "-w"]);
        command.arg(file).arg(&hosts);
        self.start(machine, "capture", &mut command)?;
        let begins = |lab: &Lab| lab.log(machine, "capture").contains("listening on");
        self.wait_for_start((machine, "capture"), "capture", begins)
    }

    /// Ends a capture and returns what it has.
    ///
    /// # Errors
    /// There is none, or packets were lost to it.
    pub fn captured(&mut self, machine: &str) -> Result<Captured> {
        self.stop(machine, "capture")?;
        let log = self.log(machine, "capture");
        ensure!(log.contains("\n0 packets dropped by kernel"), "packets are missing:\n{log}");
        Captured::read(&std::fs::read(self.dir().join(format!("{machine}.pcap")))?)
    }
}

impl Captured {
    fn read(file: &[u8]) -> Result<Captured> {
        let mut rest = file.get(FILE_HEAD_BYTES..).context("no capture")?;
        let mut packets = Vec::new();
        while let Some((head, after)) = rest.split_at_checked(PACKET_HEAD_BYTES) {
            let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]).try_into()?;
            let (frame, after) = after.split_at_checked(length).context("a capture that was cut off")?;
            packets.extend(frame.get(ETHERNET_BYTES..).map(<[u8]>::to_vec));
            rest = after;
        }
        Ok(Captured(packets))
    }

    /// Returns the datagrams and fragments between two addresses, in one direction.
    pub fn datagrams(&self, from: IpAddr, to: IpAddr) -> Vec<Datagram> {
        let datagrams = self.0.iter().filter_map(|packet| {
            let view = IpView::parse(packet).ok()?;
            if (view.source(), view.destination()) != (from, to) {
                return None;
            }
            let (ports, payload) = match view.fragment() {
                Fragment::Whole => (view.ports()?, view.udp()?.payload),
                Fragment::First => (view.ports()?, view.payload().get(UDP_HEAD_BYTES..)?),
                Fragment::Later => ((0, 0), view.payload()),
            };
            let (from, to) = (SocketAddr::new(from, ports.0), SocketAddr::new(to, ports.1));
            Some(Datagram { from, to, payload: payload.to_vec(), length: view.bytes().len() })
        });
        datagrams.collect()
    }

    /// Returns what went on each connection of TCP between two addresses, in one direction, in the order in which they were opened.
    pub fn streams(&self, from: IpAddr, to: IpAddr) -> Vec<Vec<u8>> {
        let mut streams: Vec<Stream<'_>> = Vec::new();
        for view in self.0.iter().filter_map(|packet| IpView::parse(packet).ok()) {
            let segment = view.payload();
            if (view.source(), view.destination(), view.protocol()) != (from, to, TCP) || segment.len() < TCP_HEAD_BYTES
            {
                continue;
            }
            let port = u16::from_be_bytes([segment[0], segment[1]]);
            let sequence = u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]]);
            // A port may be used again.
            let known = streams.iter_mut().rfind(|stream| stream.port == port);
            if segment[13] & TCP_SYN != 0 {
                let begin = sequence.wrapping_add(1);
                if known.is_none_or(|stream| stream.begin != begin) {
                    streams.push(Stream { port, begin, parts: BTreeMap::new() });
                }
            } else if let (Some(stream), Some(data)) = (known, segment.get(usize::from(segment[12] >> 4) * 4..)) {
                let part = stream.parts.entry(sequence.wrapping_sub(stream.begin)).or_default();
                if data.len() > part.len() {
                    *part = data;
                }
            }
        }
        streams.into_iter().map(Stream::joined).collect()
    }
}

/// What was sent on a connection, by its place.
struct Stream<'a> {
    port: u16,
    /// The sequence number of the first byte.
    begin: u32,
    parts: BTreeMap<u32, &'a [u8]>,
}

impl Stream<'_> {
    fn joined(self) -> Vec<u8> {
        let mut stream: Vec<u8> = Vec::new();
        for (place, data) in self.parts {
            let place = usize::try_from(place).unwrap_or(usize::MAX);
            // What came again goes over what was there; behind a gap nothing is known.
            if place <= stream.len() && place.saturating_add(data.len()) > stream.len() {
                stream.truncate(place);
                stream.extend_from_slice(data);
            }
        }
        stream
    }
}

#[cfg(test)]
mod tests {
    use netserv_wire::ip::build;

    use super::*;

    fn file(packets: &[Vec<u8>]) -> Vec<u8> {
        let mut file = vec![0; FILE_HEAD_BYTES];
        for packet in packets {
            let length = u32::try_from(packet.len() + ETHERNET_BYTES).unwrap().to_le_bytes();
            file.extend([&[0; 8][..], &length, &length, &[0; ETHERNET_BYTES], packet].concat());
        }
        file
    }

    #[test]
    fn datagrams_and_streams_are_read() {
        let ends: [SocketAddr; 2] = ["192.0.2.1:5060".parse().unwrap(), "192.0.2.2:5061".parse().unwrap()];
        let [from, to] = ends.map(|end| end.ip());
        let segment = |sequence: u32, flags: u8, data: &[u8]| {
            let head = [&[0x10, 0, 0x13, 0xc4][..], &sequence.to_be_bytes(), &[0; 4], &[0x50, flags], &[0; 6]].concat();
            build::ip(from, to, TCP, 64, &[&head[..], data].concat()).unwrap()
        };
        let packets = [
            build::udp(ends[0], ends[1], 64, b"hello").unwrap(),
            build::udp(ends[1], ends[0], 64, b"other").unwrap(),
            segment(u32::MAX, TCP_SYN, b""),
            segment(3, 0x10, b"def"),
            segment(0, 0x10, b"abc"),
            segment(0, 0x10, b"ab"),
            segment(9, 0x10, b"late"),
            segment(99, TCP_SYN, b""),
            segment(100, 0x10, b"again"),
        ];
        let captured = Captured::read(&file(&packets)).unwrap();
        let datagrams = captured.datagrams(from, to);
        assert_eq!((datagrams.len(), &datagrams[0].payload[..], datagrams[0].length), (1, &b"hello"[..], 33));
        assert_eq!(captured.streams(from, to), [b"abcdef".to_vec(), b"again".to_vec()]);
        let mut cut = file(&packets);
        cut.pop();
        assert!(Captured::read(&cut).is_err() && Captured::read(b"").is_err());
    }
}
