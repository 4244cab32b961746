// SPDX-License-Identifier: Apache-2.0
//! What the two parts of the module tell each other: which ports there are, and what came to them. All numbers are big-endian.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes of a message between the parts (`netserv:messages`).
pub const MESSAGE_BYTES_MAX: usize = 4096;

/// Streams that a port is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// RTP, with RTCP perhaps.
    Rtp,
    /// RTCP.
    Rtcp,
    /// Something else over UDP.
    Other,
}

/// A port of the relay, and what becomes of packets that come to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub port: u16,
    /// The port by which packets leave.
    pub out: u16,
    /// Grows when the description names another peer.
    pub generation: u32,
    /// The address that the peer sends to.
    pub local: IpAddr,
    /// Where the description says that the peer is.
    pub peer: Option<SocketAddr>,
    /// Packets come from one source, which stays.
    pub is_strict: bool,
    /// Packets go where the description says, wherever those of the peer come from.
    pub is_fixed: bool,
    /// The newest description is an offer that nobody has answered: the peer may still be where it was before.
    pub is_offered: bool,
    /// The peer was not told of the port yet.
    pub is_early: bool,
    /// What it carries.
    pub carries: Carries,
}

/// What came to a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that went on.
    pub packets: u64,
    /// Their bytes, without headers of IP and UDP.
    pub octets: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// Where the last came from.
    pub peer: Option<SocketAddr>,
}

/// What the server part tells the packet part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// These ports are so from here on.
    Set(Vec<Entry>),
    /// These ports are free.
    Free(Vec<u16>),
    /// All that was said is to be confirmed.
    Confirm(u32),
}

/// What the packet part tells the server part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It begins.
    Begins,
    /// It has taken all up to this [`Order::Confirm`].
    Confirmed(u32),
    /// What came to ports so far.
    Counted(Vec<(u16, Counts)>),
}

/// Bytes of an entry at most.
pub const ENTRY_BYTES_MAX: usize = 2 + 2 + 4 + 17 + 19 + 1;
/// Entries of one message.
pub const ENTRIES_MAX: usize = (MESSAGE_BYTES_MAX - 1) / ENTRY_BYTES_MAX;
/// Counted ports of one message.
pub const COUNTED_MAX: usize = (MESSAGE_BYTES_MAX - 1) / (2 + 3 * 8 + 19);

impl Order {
    /// Writes it.
    pub fn emit(&self) -> Vec<u8> {
        match self {
            Order::Set(entries) => [&[SET][..], &emit_entries(entries)].concat(),
            Order::Free(ports) => {
                let ports = ports.iter().flat_map(|port| port.to_be_bytes());
                std::iter::once(FREE).chain(ports).collect()
            }
            Order::Confirm(number) => [&[CONFIRM][..], &number.to_be_bytes()].concat(),
        }
    }

    /// Reads it.
    pub fn parse(bytes: &[u8]) -> Option<Order> {
        let (kind, rest) = bytes.split_first()?;
        match *kind {
            SET => parse_entries(rest).map(Order::Set),
            FREE => {
                let (ports, left) = rest.as_chunks::<2>();
                let ports = ports.iter().map(|port| u16::from_be_bytes(*port)).collect();
                left.is_empty().then_some(Order::Free(ports))
            }
            CONFIRM => Some(Order::Confirm(u32::from_be_bytes(rest.try_into().ok()?))),
            _ => None,
        }
    }
}

impl News {
    /// Writes it.
    pub fn emit(&self) -> Vec<u8> {
        match self {
            News::Begins => vec![BEGINS],
            News::Confirmed(number) => [&[CONFIRM][..], &number.to_be_bytes()].concat(),
            News::Counted(counted) => {
                let mut bytes = vec![COUNTED];
                for (port, counts) in counted {
                    bytes.extend_from_slice(&port.to_be_bytes());
                    emit_counts(counts, &mut bytes);
                }
                bytes
            }
        }
    }

    /// Reads it.
    pub fn parse(bytes: &[u8]) -> Option<News> {
        let (kind, mut rest) = bytes.split_first()?;
        match *kind {
            BEGINS => rest.is_empty().then_some(News::Begins),
            CONFIRM => Some(News::Confirmed(u32::from_be_bytes(rest.try_into().ok()?))),
            COUNTED => {
                let mut counted = Vec::new();
                while !rest.is_empty() {
                    counted.push((u16::from_be_bytes(take(&mut rest)?), take_counts(&mut rest)?));
                }
                Some(News::Counted(counted))
            }
            _ => None,
        }
    }
}

/// Writes entries.
pub fn emit_entries(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        bytes.extend_from_slice(&entry.port.to_be_bytes());
        bytes.extend_from_slice(&entry.out.to_be_bytes());
        bytes.extend_from_slice(&entry.generation.to_be_bytes());
        emit_ip(entry.local, &mut bytes);
        emit_end(entry.peer, &mut bytes);
        let carries = match entry.carries {
            Carries::Rtp => 0,
            Carries::Rtcp => 1,
            Carries::Other => 2,
        };
        let offered = [(entry.is_offered, OFFERED), (entry.is_early, EARLY)];
        let flags = [(entry.is_strict, STRICT), (entry.is_fixed, FIXED)].into_iter().chain(offered);
        bytes.push(flags.filter(|(is_so, _)| *is_so).fold(carries, |byte, (_, flag)| byte | flag));
    }
    bytes
}

/// Reads entries.
pub fn parse_entries(mut bytes: &[u8]) -> Option<Vec<Entry>> {
    let rest = &mut bytes;
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let (port, out) = (u16::from_be_bytes(take(rest)?), u16::from_be_bytes(take(rest)?));
        let generation = u32::from_be_bytes(take(rest)?);
        let (local, peer) = (take_ip(rest)??, take_end(rest)?);
        let [flags] = take(rest)?;
        let carries = match flags & !(STRICT | FIXED | OFFERED | EARLY) {
            0 => Carries::Rtp,
            1 => Carries::Rtcp,
            2 => Carries::Other,
            _ => return None,
        };
        let [is_strict, is_fixed, is_offered, is_early] = [STRICT, FIXED, OFFERED, EARLY].map(|flag| flags & flag != 0);
        entries.push(Entry { port, out, generation, local, peer, is_strict, is_fixed, is_offered, is_early, carries });
    }
    Some(entries)
}

/// Writes counts.
pub fn emit_counts(counts: &Counts, bytes: &mut Vec<u8>) {
    for number in [counts.packets, counts.octets, counts.dropped] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    emit_end(counts.peer, bytes);
}

/// Takes counts from the begin of the bytes.
pub fn take_counts(bytes: &mut &[u8]) -> Option<Counts> {
    let mut number = || take(bytes).map(u64::from_be_bytes);
    let (packets, octets, dropped) = (number()?, number()?, number()?);
    Some(Counts { packets, octets, dropped, peer: take_end(bytes)? })
}

/// Writes an address with a port, or that there is none.
pub fn emit_end(end: Option<SocketAddr>, bytes: &mut Vec<u8>) {
    match end {
        Some(end) => {
            emit_ip(end.ip(), bytes);
            bytes.extend_from_slice(&end.port().to_be_bytes());
        }
        None => bytes.push(0),
    }
}

/// Takes what [`emit_end`] wrote from the begin of the bytes.
pub fn take_end(bytes: &mut &[u8]) -> Option<Option<SocketAddr>> {
    Some(match take_ip(bytes)? {
        Some(address) => Some(SocketAddr::new(address, u16::from_be_bytes(take(bytes)?))),
        None => None,
    })
}

/// Takes so many bytes from the begin of the bytes.
pub fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

fn emit_ip(address: IpAddr, bytes: &mut Vec<u8>) {
    match address {
        IpAddr::V4(v4) => {
            bytes.push(4);
            bytes.extend_from_slice(&v4.octets());
        }
        IpAddr::V6(v6) => {
            bytes.push(6);
            bytes.extend_from_slice(&v6.octets());
        }
    }
}

fn take_ip(bytes: &mut &[u8]) -> Option<Option<IpAddr>> {
    match take(bytes)? {
        [0] => Some(None),
        [4] => Some(Some(Ipv4Addr::from(take::<4>(bytes)?).into())),
        [6] => Some(Some(Ipv6Addr::from(take::<16>(bytes)?).into())),
        _ => None,
    }
}

const STRICT: u8 = 0x80;
const FIXED: u8 = 0x40;
const OFFERED: u8 = 0x20;
const EARLY: u8 = 0x10;
const SET: u8 = 1;
const FREE: u8 = 2;
const CONFIRM: u8 = 3;
const BEGINS: u8 = 4;
const COUNTED: u8 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(port: u16, peer: Option<&str>) -> Entry {
        let peer = peer.map(|peer| peer.parse().unwrap());
        let local = if port == 1 { "192.0.2.1" } else { "2001:db8::1" };
        Entry {
            port,
            out: port + 2,
            generation: 7,
            local: local.parse().unwrap(),
            peer,
            is_strict: port == 1,
            is_fixed: port == 2,
            is_offered: port == 3,
            is_early: port == 2,
            carries: Carries::Rtcp,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let counts =
            Counts { packets: 1, octets: u64::MAX, dropped: 3, peer: Some("[2001:db8::2]:5".parse().unwrap()) };
        for order in [
            Order::Set(vec![entry(1, Some("192.0.2.2:4000")), entry(2, None), entry(3, Some("[2001:db8::2]:4000"))]),
            Order::Free(vec![30000, 30002]),
            Order::Confirm(9),
        ] {
            assert_eq!(Order::parse(&order.emit()), Some(order));
        }
        for news in [News::Begins, News::Confirmed(3), News::Counted(vec![(1, counts), (2, Counts::default())])] {
            assert_eq!(News::parse(&news.emit()), Some(news));
        }
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let order = Order::Set(vec![entry(1, Some("192.0.2.2:4000"))]).emit();
        for length in 2..order.len() {
            assert_eq!(Order::parse(&order[..length]), None, "{length} bytes");
        }
        for bad in [&[][..], &[0], &[9, 1], &[FREE, 1], &[CONFIRM, 1], &[SET, 0, 1, 0, 1, 0, 0, 0, 1, 5]] {
            assert_eq!(Order::parse(bad), None, "{bad:?}");
        }
        for bad in [&[][..], &[SET], &[BEGINS, 1], &[COUNTED, 1], &[CONFIRM]] {
            assert_eq!(News::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_message_has_room_for_the_longest_entries() {
        let longest = entry(2, Some("[2001:db8::2]:4000"));
        assert!(Order::Set(vec![longest; ENTRIES_MAX]).emit().len() <= MESSAGE_BYTES_MAX);
        let counts = Counts { peer: longest.peer, ..Counts::default() };
        assert!(News::Counted(vec![(1, counts); COUNTED_MAX]).emit().len() <= MESSAGE_BYTES_MAX);
        // All ports of the largest call.
        const { assert!(4 * crate::limits::STREAMS_MAX <= ENTRIES_MAX) };
    }
}
