// SPDX-License-Identifier: Apache-2.0
//! Logs the header of each packet bit by bit, as Figure 3 of "NetServ: Early Prototype Experiences" shows it.
//!
//! ```text
//! Version: 0100 Header length: 0101 Diff services: 00000000 Total length: 0000000000100000 … Data: test
//! ```

use std::fmt::Write as _;

use netserv_sdk::ip::{self, Ip, UDP};
use netserv_sdk::{Counter, Packet, PacketModule, StartError, Verdict, log, netserv_module, property};

/// The module.
pub struct HeaderDump {
    every: u64,
    packets: Counter,
    seen: u64,
}

impl PacketModule for HeaderDump {
    fn start() -> Result<HeaderDump, StartError> {
        let every = property::parse_or("every", 1)?;
        if every == 0 {
            return Err("property `every` is 0; write how many packets there are per line".into());
        }
        Ok(HeaderDump { every, packets: Counter::open("packets")?, seen: 0 })
    }

    fn process(&mut self, packet: &mut Packet<'_>) -> Verdict {
        self.packets.add(1);
        if self.seen.is_multiple_of(self.every)
            && let Some(ip) = ip::parse(packet.bytes())
        {
            log::info(&dump(packet.bytes(), &ip));
        }
        self.seen += 1;
        Verdict::Pass
    }
}

netserv_module!(HeaderDump);

/// Returns the fields of a packet's IP header in binary, then its data as text.
fn dump(packet: &[u8], ip: &Ip) -> String {
    let fields = if ip.source.is_ipv4() { IPV4 } else { IPV6 };
    let mut line = String::new();
    let mut bit = 0;
    for (name, bits) in fields {
        let _ = write!(line, "{name}: ");
        for at in bit..bit + bits {
            line.push(if packet[at / 8] >> (7 - at % 8) & 1 == 1 { '1' } else { '0' });
        }
        line.push(' ');
        bit += bits;
    }
    line.push_str("Data: ");
    let header = if ip.protocol == UDP && !ip.is_fragment { 8 } else { 0 };
    let data = packet[ip.payload.clone()].iter().skip(header).take(DATA_BYTES_MAX);
    line.extend(data.map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' }));
    line
}

/// Bytes of data in a line.
const DATA_BYTES_MAX: usize = 64;

/// RFC 791 §3.1: the fields, with their length in bits.
const IPV4: &[(&str, usize)] = &[
    ("Version", 4),
    ("Header length", 4),
    ("Diff services", 8),
    ("Total length", 16),
    ("ID", 16),
    ("Flags", 3),
    ("Fragment offset", 13),
    ("TTL", 8),
    ("Protocol", 8),
    ("Header checksum", 16),
    ("Source addr", 32),
    ("Dest addr", 32),
];

/// RFC 8200 §3: the fields, with their length in bits.
const IPV6: &[(&str, usize)] = &[
    ("Version", 4),
    ("Traffic class", 8),
    ("Flow label", 20),
    ("Payload length", 16),
    ("Next header", 8),
    ("Hop limit", 8),
    ("Source addr", 128),
    ("Dest addr", 128),
];

#[cfg(test)]
mod tests {
    use netserv_sdk::fake;
    use netserv_testing::udp;

    use super::*;

    fn lines(packets: &[Vec<u8>]) -> Vec<String> {
        let mut module = HeaderDump::start().unwrap();
        for packet in packets {
            assert_eq!(fake::process(&mut module, packet), (Verdict::Pass, packet.clone()));
        }
        fake::with(|node| node.log.drain(..).map(|(_, line)| line).collect())
    }

    #[test]
    fn an_ipv4_header_is_shown_as_in_the_paper() {
        fake::reset(&[]);
        let packet = udp("128.59.20.92:50000", "128.59.19.206:44444", 64, b"test");
        let expected = "Version: 0100 Header length: 0101 Diff services: 00000000 Total length: 0000000000100000 \
             ID: 0000000000000000 Flags: 010 Fragment offset: 0000000000000 TTL: 01000000 Protocol: 00010001 \
             Header checksum: 0001001000101101 Source addr: 10000000001110110001010001011100 \
             Dest addr: 10000000001110110001001111001110 Data: test";
        assert_eq!(lines(&[packet]), [expected]);
    }

    #[test]
    fn an_ipv6_header_fits_a_line() {
        fake::reset(&[]);
        let line = &lines(&[udp("[2001:db8::1]:1", "[2001:db8::2]:2", 64, &[b'\n'; 900])])[0];
        assert!(line.starts_with("Version: 0110 Traffic class: 00000000 Flow label: 00000000000000000000 Payload"));
        assert!(
            line.contains(" Next header: 00010001 Hop limit: 01000000 Source addr: 00100000000000010000110110111000")
        );
        assert!(line.ends_with(&format!("Data: {}", ".".repeat(DATA_BYTES_MAX))));
        assert!(line.len() <= 1024);
    }

    #[test]
    fn only_every_nth_packet_is_shown() {
        fake::reset(&[("every", "3")]);
        let packets: Vec<_> = (0..7).map(|n| udp("10.0.0.1:1", "10.0.0.2:2", n, b"")).collect();
        assert_eq!(lines(&packets).len(), 3);
        fake::reset(&[("every", "0")]);
        assert!(HeaderDump::start().is_err());
    }

    #[test]
    fn damaged_packets_are_not_shown() {
        fake::reset(&[]);
        assert!(lines(&[vec![0x45; 19], vec![0; 40], vec![0x6f; 39]]).is_empty());
    }
}
