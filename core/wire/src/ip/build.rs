// SPDX-License-Identifier: Apache-2.0
//! New packets.

use std::net::{IpAddr, SocketAddr};

use super::view::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, UDP_HEADER_BYTES};
use super::{IpError, IpVersion, IpView, checksum, protocol};

/// Returns a packet with the given upper-layer bytes, whose checksum is filled in where this crate knows how.
///
/// # Errors
/// [`IpError::Impossible`] if the addresses are of two versions or the packet would be too long.
pub fn ip(source: IpAddr, destination: IpAddr, protocol: u8, ttl: u8, payload: &[u8]) -> Result<Vec<u8>, IpError> {
    let mut packet = Vec::with_capacity(IPV6_HEADER_BYTES + payload.len());
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let total = length_field(IPV4_HEADER_BYTES + payload.len())?;
            packet.extend_from_slice(&[0x45, 0x00, total[0], total[1], 0, 0, 0x40, 0, ttl, protocol, 0, 0]);
            packet.extend_from_slice(&source.octets());
            packet.extend_from_slice(&destination.octets());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let length = length_field(payload.len())?;
            packet.extend_from_slice(&[0x60, 0, 0, 0, length[0], length[1], protocol, ttl]);
            packet.extend_from_slice(&source.octets());
            packet.extend_from_slice(&destination.octets());
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return Err(IpError::Impossible),
    }
    packet.extend_from_slice(payload);
    checksum::fill(&mut packet)?;
    Ok(packet)
}

/// Returns a packet with a UDP datagram.
///
/// # Errors
/// [`IpError::Impossible`] if the addresses are of two versions or the packet would be too long.
pub fn udp(source: SocketAddr, destination: SocketAddr, ttl: u8, payload: &[u8]) -> Result<Vec<u8>, IpError> {
    let length = length_field(UDP_HEADER_BYTES + payload.len())?;
    let mut datagram = Vec::with_capacity(UDP_HEADER_BYTES + payload.len());
    datagram.extend_from_slice(&source.port().to_be_bytes());
    datagram.extend_from_slice(&destination.port().to_be_bytes());
    datagram.extend_from_slice(&length);
    // Anything but zero, which would ask for no checksum; the right one is filled in.
    datagram.extend_from_slice(&[0xFF, 0xFF]);
    datagram.extend_from_slice(payload);
    ip(source.ip(), destination.ip(), protocol::UDP, ttl, &datagram)
}

/// Returns the packet with another UDP payload: all headers and options stay, lengths and checksums follow.
///
/// # Errors
/// If the packet is no whole UDP datagram, or would become too long.
pub fn replace_udp_payload(packet: &[u8], payload: &[u8]) -> Result<Vec<u8>, IpError> {
    let view = IpView::parse(packet)?;
    if view.udp().is_none() {
        return Err(IpError::NotUdp);
    }
    let udp_offset = view.payload_offset();
    let mut changed = view.bytes()[..udp_offset + UDP_HEADER_BYTES].to_vec();
    changed.extend_from_slice(payload);
    let (ip_field, ip_bytes) = match view.version() {
        IpVersion::V4 => (2, changed.len()),
        IpVersion::V6 => (4, changed.len() - IPV6_HEADER_BYTES),
    };
    changed[ip_field..ip_field + 2].copy_from_slice(&length_field(ip_bytes)?);
    let udp_bytes = length_field(UDP_HEADER_BYTES + payload.len())?;
    changed[udp_offset + 4..udp_offset + 6].copy_from_slice(&udp_bytes);
    checksum::fill(&mut changed)?;
    Ok(changed)
}

fn length_field(bytes: usize) -> Result<[u8; 2], IpError> {
    u16::try_from(bytes).map(u16::to_be_bytes).map_err(|_| IpError::Impossible)
}
