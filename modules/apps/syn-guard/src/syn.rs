// SPDX-License-Identifier: Apache-2.0
//! What a SYN says.

use std::net::IpAddr;

use netserv_sdk::ip;

/// A segment that asks for a connection. One that is sent again is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Syn {
    /// Who asks.
    pub source: IpAddr,
    /// Who is asked.
    pub destination: IpAddr,
    /// Both ports.
    ports: [u8; 4],
    /// The initial sequence number.
    sequence: [u8; 4],
}

const TCP: u8 = 6;
/// Where the flags are, and FIN, SYN, RST and ACK among them (RFC 9293 §3.1).
const FLAGS_AT: usize = 13;
const FLAGS: u8 = 0x17;
const SYN: u8 = 0x02;

impl Syn {
    /// Returns what a packet says, if it is a SYN. It may be the first part of one, of which the others are nothing without it.
    pub fn parse(packet: &[u8]) -> Option<Syn> {
        let ip = ip::parse(packet).filter(|ip| ip.protocol == TCP)?;
        let segment = packet.get(ip.payload)?;
        if segment.get(FLAGS_AT)? & FLAGS != SYN {
            return None;
        }
        let (ports, rest) = segment.split_first_chunk()?;
        let (sequence, _) = rest.split_first_chunk()?;
        Some(Syn { source: ip.source, destination: ip.destination, ports: *ports, sequence: *sequence })
    }
}
