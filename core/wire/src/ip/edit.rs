// SPDX-License-Identifier: Apache-2.0
//! Small changes of a packet in place.

use super::view::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, version};
use super::{IpError, IpVersion};

/// Sets the TTL or hop limit and keeps the IPv4 header checksum as right or wrong as it was.
///
/// # Errors
/// If the bytes are shorter than an IP header.
pub fn set_ttl(packet: &mut [u8], ttl: u8) -> Result<(), IpError> {
    match version(packet)? {
        IpVersion::V4 => {
            let header = packet.first_chunk_mut::<IPV4_HEADER_BYTES>().ok_or(IpError::Truncated)?;
            let old = u16::from_be_bytes([header[8], header[9]]);
            header[8] = ttl;
            let new = u16::from_be_bytes([header[8], header[9]]);
            let checksum = u16::from_be_bytes([header[10], header[11]]);
            header[10..12].copy_from_slice(&updated(checksum, old, new).to_be_bytes());
        }
        IpVersion::V6 => packet.first_chunk_mut::<IPV6_HEADER_BYTES>().ok_or(IpError::Truncated)?[7] = ttl,
    }
    Ok(())
}

/// Takes one from the TTL or hop limit and returns what is left. At 0 the packet has to be dropped; one that came with
/// 0 or 1 is left as it is.
///
/// # Errors
/// If the bytes are shorter than an IP header.
pub fn decrement_ttl(packet: &mut [u8]) -> Result<u8, IpError> {
    let offset = match version(packet)? {
        IpVersion::V4 => 8,
        IpVersion::V6 => 7,
    };
    let left = packet.get(offset).ok_or(IpError::Truncated)?.saturating_sub(1);
    if left > 0 {
        set_ttl(packet, left)?;
    }
    Ok(left)
}

/// RFC 1624 §3: the checksum after one word under it changed.
pub(super) fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    !super::checksum::fold(sum.into())
}
