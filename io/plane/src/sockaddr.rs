// SPDX-License-Identifier: Apache-2.0
//! Socket addresses as the bytes that the kernel reads and writes.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Bytes of the longer of the two forms, `sockaddr_in6`.
pub const BYTES_MAX: usize = 28;

/// Returns a `sockaddr_in` or `sockaddr_in6`.
pub fn encode(address: SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BYTES_MAX);
    match address {
        SocketAddr::V4(v4) => {
            bytes.extend(FAMILY_V4.to_ne_bytes());
            bytes.extend(v4.port().to_be_bytes());
            bytes.extend(v4.ip().octets());
            bytes.extend([0; 8]);
        }
        SocketAddr::V6(v6) => {
            bytes.extend(FAMILY_V6.to_ne_bytes());
            bytes.extend(v6.port().to_be_bytes());
            bytes.extend(v6.flowinfo().to_be_bytes());
            bytes.extend(v6.ip().octets());
            bytes.extend(v6.scope_id().to_ne_bytes());
        }
    }
    bytes
}

/// Reads a `sockaddr_in` or `sockaddr_in6`; `None` for anything else.
pub fn decode(bytes: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = bytes.split_first_chunk::<2>()?;
    let (port, rest) = rest.split_first_chunk::<2>()?;
    let port = u16::from_be_bytes(*port);
    match u16::from_ne_bytes(*family) {
        FAMILY_V4 => Some(SocketAddr::new(Ipv4Addr::from(*rest.first_chunk::<4>()?).into(), port)),
        FAMILY_V6 => {
            let (flow, rest) = rest.split_first_chunk::<4>()?;
            let (octets, rest) = rest.split_first_chunk::<16>()?;
            let scope = u32::from_ne_bytes(*rest.first_chunk::<4>()?);
            Some(SocketAddrV6::new(Ipv6Addr::from(*octets), port, u32::from_be_bytes(*flow), scope).into())
        }
        _ => None,
    }
}

/// `AF_INET`.
const FAMILY_V4: u16 = 2;
/// `AF_INET6`.
const FAMILY_V6: u16 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip() {
        for text in ["10.0.0.1:270", "[2001:db8::1]:270", "[fe80::1%3]:1"] {
            let address: SocketAddr = text.parse().unwrap();
            let bytes = encode(address);
            assert_eq!(decode(&bytes), Some(address));
            let needed = if address.is_ipv4() { 8 } else { BYTES_MAX };
            assert!((0..needed).all(|length| decode(&bytes[..length]).is_none()));
        }
        assert_eq!(decode(&[1, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
