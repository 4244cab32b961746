// SPDX-License-Identifier: Apache-2.0
//! The few things that a driver itself looks at in an IP header.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netserv_model::Flow;

/// What decides about the way of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub ttl: u8,
}

/// Reads the header of a whole IP packet, that is, one whose own length says that it ends where `packet` ends.
pub(crate) fn read(packet: &[u8]) -> Result<Header, &'static str> {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => read_v4(packet),
        Some(6) => read_v6(packet),
        Some(_) => Err("the version is neither 4 nor 6"),
        None => Err("it is empty"),
    }
}

/// Returns what filters look at, for packets without IPv6 extension headers.
pub(crate) fn flow(packet: &[u8]) -> Option<Flow> {
    let Header { source, destination, .. } = read(packet).ok()?;
    let (protocol, l4) = match packet[0] >> 4 {
        4 => (packet[9], packet.get(usize::from(packet[0] & 0x0f) * 4..)?),
        _ => (packet[6], packet.get(40..)?),
    };
    let port = |at: usize| Some(u16::from_be_bytes([*l4.get(at)?, *l4.get(at + 1)?]));
    let (source_port, destination_port) = if matches!(protocol, 6 | 17) { (port(0), port(2)) } else { (None, None) };
    Some(Flow { source, destination, protocol, source_port, destination_port })
}

/// Takes one from the TTL or hop limit of a packet that [`read`] accepts; false if it runs out.
///
/// The IPv4 header checksum is left alone: a raw socket writes a new one.
pub(crate) fn decrement_ttl(packet: &mut [u8]) -> bool {
    let at = if packet.first().is_some_and(|byte| byte >> 4 == 4) { 8 } else { 7 };
    let Some(ttl) = packet.get_mut(at) else { return false };
    *ttl = ttl.saturating_sub(1);
    *ttl > 0
}

fn read_v4(packet: &[u8]) -> Result<Header, &'static str> {
    let Some((header, _)) = packet.split_first_chunk::<20>() else { return Err("shorter than an IPv4 header") };
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    if header_bytes < 20 || header_bytes > packet.len() {
        return Err("the IPv4 header length is wrong");
    }
    if usize::from(u16::from_be_bytes([header[2], header[3]])) != packet.len() {
        return Err("the IPv4 total length is not the packet's length");
    }
    let address = |at: usize| IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]));
    Ok(Header { source: address(12), destination: address(16), ttl: header[8] })
}

fn read_v6(packet: &[u8]) -> Result<Header, &'static str> {
    let Some((header, rest)) = packet.split_first_chunk::<40>() else { return Err("shorter than an IPv6 header") };
    if usize::from(u16::from_be_bytes([header[4], header[5]])) != rest.len() {
        return Err("the IPv6 payload length is not the packet's length");
    }
    let address = |bytes: &[u8]| {
        let bytes: [u8; 16] = bytes.try_into().expect("16 bytes were cut out of the header");
        IpAddr::V6(Ipv6Addr::from(bytes))
    };
    Ok(Header { source: address(&header[8..24]), destination: address(&header[24..40]), ttl: header[7] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn both_versions_are_read() {
        let v4 = testing::udp("10.0.0.1:1", "10.0.0.2:2", b"abc");
        let header = Header { source: "10.0.0.1".parse().unwrap(), destination: "10.0.0.2".parse().unwrap(), ttl: 64 };
        assert_eq!(read(&v4), Ok(header));
        let v6 = testing::udp("[2001:db8::1]:1", "[2001:db8::2]:2", b"abc");
        let (source, destination) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        assert_eq!(read(&v6), Ok(Header { source, destination, ttl: 64 }));
    }

    #[test]
    fn packets_cut_short_or_too_long_are_refused() {
        for packet in [
            testing::udp("10.0.0.1:1", "10.0.0.2:2", b"abc"),
            testing::udp("[2001:db8::1]:1", "[2001:db8::2]:2", b"abc"),
        ] {
            for length in 0..packet.len() {
                assert!(read(&packet[..length]).is_err(), "{length}");
            }
            let mut longer = packet.clone();
            longer.push(0);
            assert!(read(&longer).is_err());
        }
        let mut bad = testing::udp("10.0.0.1:1", "10.0.0.2:2", b"abc");
        bad[0] = 0x44;
        assert!(read(&bad).is_err());
        bad[0] = 0x4f;
        assert!(read(&bad).is_err());
        bad[0] = 0x55;
        assert!(read(&bad).is_err());
    }

    #[test]
    fn a_ttl_runs_out_at_zero() {
        for packet in
            [testing::udp("10.0.0.1:1", "10.0.0.2:2", b""), testing::udp("[2001:db8::1]:1", "[2001:db8::2]:2", b"")]
        {
            let mut packet = packet;
            for left in (1..64).rev() {
                assert!(decrement_ttl(&mut packet));
                assert_eq!(read(&packet).unwrap().ttl, left);
            }
            assert!(!decrement_ttl(&mut packet));
            assert!(!decrement_ttl(&mut packet));
        }
    }
}
