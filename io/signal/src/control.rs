// SPDX-License-Identifier: Apache-2.0
//! Control messages of sockets (`cmsg`), as bytes: what comes with a datagram besides its content.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use netserv_plane::sockaddr;

use super::unreachable::UnreachableKind;

/// What came with a received datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub interface: u32,
    /// Our address on that interface.
    pub local: Option<IpAddr>,
    /// The destination in the packet.
    pub destination: Option<IpAddr>,
    pub ttl: Option<u8>,
}

/// What an ICMP message said of a datagram of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub kind: UnreachableKind,
    /// Who sent the ICMP message.
    pub reporter: Option<IpAddr>,
}

/// Appends one control message.
pub(crate) fn append(to: &mut Vec<u8>, level: i32, kind: i32, content: &[u8]) {
    to.extend((HEADER_BYTES + content.len()).to_ne_bytes());
    to.extend(level.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(content);
    to.resize(to.len().next_multiple_of(ALIGNMENT), 0);
}

/// Appends the source address to send from.
pub(crate) fn append_source(to: &mut Vec<u8>, source: IpAddr) {
    match source {
        IpAddr::V4(v4) => {
            let mut info = [0; 12];
            info[4..8].copy_from_slice(&v4.octets());
            append(to, libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
        }
        IpAddr::V6(v6) => {
            let mut info = [0; 20];
            info[..16].copy_from_slice(&v6.octets());
            append(to, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
        }
    }
}

/// Appends the TTL or hop limit to send with.
pub(crate) fn append_ttl(to: &mut Vec<u8>, v6: bool, ttl: u8) {
    let (level, kind) = if v6 { (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) } else { (libc::IPPROTO_IP, libc::IP_TTL) };
    append(to, level, kind, &i32::from(ttl).to_ne_bytes());
}

/// Appends the DSCP to send with (RFC 2474 §3), without congestion notification.
pub(crate) fn append_dscp(to: &mut Vec<u8>, v6: bool, dscp: u8) {
    let (level, kind) = if v6 { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) } else { (libc::IPPROTO_IP, libc::IP_TOS) };
    append(to, level, kind, &i32::from(dscp << 2).to_ne_bytes());
}

/// Appends the flow label to send with over IPv6 (RFC 6437 §3).
pub(crate) fn append_flow_label(to: &mut Vec<u8>, label: u32) {
    append(to, libc::IPPROTO_IPV6, IPV6_FLOWINFO, &(label & FLOW_LABEL_MASK).to_be_bytes());
}

/// Appends the router alert option to send with (RFC 2113 §2.1, RFC 2711 §2.1).
pub(crate) fn append_router_alert(to: &mut Vec<u8>, v6: bool, value: u16) {
    let [high, low] = value.to_be_bytes();
    if v6 {
        // A hop-by-hop header: next header (the kernel's affair), length, the option, padding.
        append(to, libc::IPPROTO_IPV6, libc::IPV6_HOPOPTS, &[0, 0, 0x05, 2, high, low, 0x01, 0]);
    } else {
        append(to, libc::IPPROTO_IP, libc::IP_RETOPTS, &[0x94, 4, high, low]);
    }
}

/// Reads what came with a datagram.
pub(crate) fn arrival(control: &[u8]) -> Arrival {
    let mut arrival = Arrival::default();
    for (level, kind, content) in messages(control) {
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                if let Some(info) = content.first_chunk::<12>() {
                    arrival.interface = u32::from_ne_bytes([info[0], info[1], info[2], info[3]]);
                    arrival.local = Some(Ipv4Addr::new(info[4], info[5], info[6], info[7]).into());
                    arrival.destination = Some(Ipv4Addr::new(info[8], info[9], info[10], info[11]).into());
                }
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                if let Some((address, rest)) = content.split_first_chunk::<16>()
                    && let Some(interface) = rest.first_chunk()
                {
                    arrival.interface = u32::from_ne_bytes(*interface);
                    arrival.local = Some(Ipv6Addr::from(*address).into());
                    arrival.destination = arrival.local;
                }
            }
            (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                let number = content.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes));
                arrival.ttl = number.and_then(|number| u8::try_from(number).ok());
            }
            _ => {}
        }
    }
    arrival
}

/// Reads what came out of a socket's error queue; `None` if it is not about an ICMP message.
pub(crate) fn failure(control: &[u8]) -> Option<Failure> {
    messages(control).find_map(|(level, kind, content)| {
        let asked =
            matches!((level, kind), (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR));
        let (error, offender) = asked.then(|| content.split_first_chunk::<EXTENDED_ERROR_BYTES>())??;
        let [_, _, _, _, origin, kind, code, _, a, b, c, d, ..] = *error;
        let mtu = u16::try_from(u32::from_ne_bytes([a, b, c, d])).unwrap_or(u16::MAX);
        let kind = match origin {
            ORIGIN_ICMP => kind_v4(kind, code, mtu),
            ORIGIN_ICMP6 => kind_v6(kind, code, mtu),
            _ => return None,
        };
        Some(Failure { kind, reporter: sockaddr::decode(offender).map(|address: SocketAddr| address.ip()) })
    })
}

/// Missing in the `libc` crate; `include/uapi/linux/in6.h`.
const IPV6_FLOWINFO: i32 = 11;
const FLOW_LABEL_MASK: u32 = 0xf_ffff;
const HEADER_BYTES: usize = size_of::<usize>() + 8;
const ALIGNMENT: usize = size_of::<usize>();

/// `struct sock_extended_err`.
const EXTENDED_ERROR_BYTES: usize = 16;
const ORIGIN_ICMP: u8 = 2;
const ORIGIN_ICMP6: u8 = 3;

fn messages(mut control: &[u8]) -> impl Iterator<Item = (i32, i32, &[u8])> {
    std::iter::from_fn(move || {
        let (length, rest) = control.split_first_chunk::<{ size_of::<usize>() }>()?;
        let (level, rest) = rest.split_first_chunk()?;
        let (kind, _) = rest.split_first_chunk()?;
        let length = usize::from_ne_bytes(*length);
        let content = control.get(HEADER_BYTES..length)?;
        control = length.checked_next_multiple_of(ALIGNMENT).and_then(|next| control.get(next..)).unwrap_or_default();
        Some((i32::from_ne_bytes(*level), i32::from_ne_bytes(*kind), content))
    })
}

/// RFC 792, RFC 1122 §3.2.2.1, RFC 1812 §5.2.7.1.
fn kind_v4(kind: u8, code: u8, mtu: u16) -> UnreachableKind {
    match (kind, code) {
        (3, 0 | 6 | 11) => UnreachableKind::Network,
        (3, 1 | 7 | 12) => UnreachableKind::Host,
        (3, 2) => UnreachableKind::Protocol,
        (3, 3) => UnreachableKind::Port,
        (3, 4) => UnreachableKind::TooBig { mtu },
        (3, 9 | 10 | 13) => UnreachableKind::Prohibited,
        (11, _) => UnreachableKind::TimeExceeded,
        _ => UnreachableKind::Other,
    }
}

/// RFC 4443 §3.
fn kind_v6(kind: u8, code: u8, mtu: u16) -> UnreachableKind {
    match (kind, code) {
        (1, 0) => UnreachableKind::Network,
        (1, 1 | 5 | 6) => UnreachableKind::Prohibited,
        (1, 3) => UnreachableKind::Host,
        (1, 4) => UnreachableKind::Port,
        (2, _) => UnreachableKind::TooBig { mtu },
        (3, _) => UnreachableKind::TimeExceeded,
        _ => UnreachableKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_came_with_a_datagram_is_read() {
        let mut control = Vec::new();
        append(&mut control, libc::SOL_SOCKET, 29, &[1, 2, 3]);
        append(&mut control, libc::IPPROTO_IP, libc::IP_PKTINFO, &[3, 0, 0, 0, 10, 0, 0, 1, 10, 0, 0, 255]);
        append_ttl(&mut control, false, 61);
        let (local, destination) = (Some([10, 0, 0, 1].into()), Some([10, 0, 0, 255].into()));
        let ttl = Some(61);
        assert_eq!(arrival(&control), Arrival { interface: u32::from_ne_bytes([3, 0, 0, 0]), local, destination, ttl });
        let mut control = Vec::new();
        append_source(&mut control, "fd00::1".parse().unwrap());
        append_ttl(&mut control, true, 255);
        let address = Some("fd00::1".parse().unwrap());
        let expected = Arrival { interface: 0, local: address, destination: address, ttl: Some(255) };
        assert_eq!(arrival(&control), expected);
    }

    #[test]
    fn icmp_errors_are_told_apart() {
        let error = |origin, kind, code| {
            let mut content = vec![111, 0, 0, 0, origin, kind, code, 0];
            content.extend(1400_u32.to_ne_bytes());
            content.extend([0; 4]);
            content.extend(sockaddr::encode("10.0.0.9:0".parse().unwrap()));
            let mut control = Vec::new();
            append(&mut control, libc::IPPROTO_IP, libc::IP_RECVERR, &content);
            failure(&control)
        };
        let reporter = Some([10, 0, 0, 9].into());
        for (origin, kind, code, expected) in [
            (ORIGIN_ICMP, 3, 0, UnreachableKind::Network),
            (ORIGIN_ICMP, 3, 1, UnreachableKind::Host),
            (ORIGIN_ICMP, 3, 3, UnreachableKind::Port),
            (ORIGIN_ICMP, 3, 4, UnreachableKind::TooBig { mtu: 1400 }),
            (ORIGIN_ICMP6, 2, 0, UnreachableKind::TooBig { mtu: 1400 }),
            (ORIGIN_ICMP, 3, 13, UnreachableKind::Prohibited),
            (ORIGIN_ICMP, 11, 0, UnreachableKind::TimeExceeded),
            (ORIGIN_ICMP, 12, 0, UnreachableKind::Other),
            (ORIGIN_ICMP6, 1, 4, UnreachableKind::Port),
            (ORIGIN_ICMP6, 1, 3, UnreachableKind::Host),
            (ORIGIN_ICMP6, 1, 1, UnreachableKind::Prohibited),
        ] {
            assert_eq!(error(origin, kind, code), Some(Failure { kind: expected, reporter }), "{kind} {code}");
        }
        assert_eq!(error(1, 3, 3), None, "an error of this machine is no ICMP message");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..120), length: usize) {
            let mut bytes = bytes;
            let start = bytes.len().min(ALIGNMENT);
            bytes[..start].copy_from_slice(&(length % 200).to_ne_bytes()[..start]);
            arrival(&bytes);
            failure(&bytes);
        }
    }
}
