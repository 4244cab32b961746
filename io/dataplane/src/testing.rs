// SPDX-License-Identifier: Apache-2.0
//! Packets for this crate's own tests.

use std::net::SocketAddr;

/// Returns a UDP packet with TTL 64, an IPv4 header checksum and no UDP checksum.
pub(crate) fn udp(source: &str, destination: &str, payload: &[u8]) -> Vec<u8> {
    let (source, destination): (SocketAddr, SocketAddr) = (source.parse().unwrap(), destination.parse().unwrap());
    let udp_bytes = u16::try_from(8 + payload.len()).unwrap();
    let mut packet = match (source, destination) {
        (SocketAddr::V4(source), SocketAddr::V4(destination)) => {
            let mut header = vec![0x45, 0];
            header.extend((20 + udp_bytes).to_be_bytes());
            header.extend([0, 1, 0x40, 0, 64, 17, 0, 0]);
            header.extend(source.ip().octets());
            header.extend(destination.ip().octets());
            let sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
            let folded = u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap();
            header[10..12].copy_from_slice(&(!folded).to_be_bytes());
            header
        }
        (SocketAddr::V6(source), SocketAddr::V6(destination)) => {
            let mut header = vec![0x60, 0, 0, 0];
            header.extend(udp_bytes.to_be_bytes());
            header.extend([17, 64]);
            header.extend(source.ip().octets());
            header.extend(destination.ip().octets());
            header
        }
        (SocketAddr::V4(_), SocketAddr::V6(_)) | (SocketAddr::V6(_), SocketAddr::V4(_)) => panic!("mixed versions"),
    };
    packet.extend(source.port().to_be_bytes());
    packet.extend(destination.port().to_be_bytes());
    packet.extend(udp_bytes.to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    packet
}
