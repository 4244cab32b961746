// SPDX-License-Identifier: Apache-2.0
//! Captures: reads pcap and pcapng files, writes pcap.
//!
//! Only IP packets are taken out of a capture; frames with anything else in them are skipped.

use std::time::Duration;

/// One IP packet of a capture, without a link header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// When it was seen, since 1970-01-01T00:00:00Z.
    pub time: Duration,
    /// Its bytes.
    pub packet: Vec<u8>,
}

/// Why bytes are not a capture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PcapError {
    /// The file starts like neither pcap nor pcapng.
    #[error("neither a pcap nor a pcapng file")]
    NotACapture,
    /// The file ends inside a record, or a record's length is impossible.
    #[error("the capture is damaged at byte {0}")]
    Damaged(usize),
    /// The capture's link type is not known.
    #[error("link type {0} is not known; capture raw IP, Ethernet, Linux cooked or loopback")]
    LinkType(u32),
    /// A packet was cut when it was captured.
    #[error("packet {0} was cut when it was captured; capture with `-s 0`")]
    Cut(usize),
}

/// Returns the IP packets of a capture.
///
/// # Errors
/// [`PcapError`] if `bytes` are no capture.
pub fn read(bytes: &[u8]) -> Result<Vec<Captured>, PcapError> {
    let magic: [u8; 4] = bytes.get(..4).and_then(|magic| magic.try_into().ok()).ok_or(PcapError::NotACapture)?;
    match magic {
        [0xd4, 0xc3, 0xb2, 0xa1] => read_pcap(Reader { bytes, at: 4, big_endian: false }, 1000),
        [0x4d, 0x3c, 0xb2, 0xa1] => read_pcap(Reader { bytes, at: 4, big_endian: false }, 1),
        [0xa1, 0xb2, 0xc3, 0xd4] => read_pcap(Reader { bytes, at: 4, big_endian: true }, 1000),
        [0xa1, 0xb2, 0x3c, 0x4d] => read_pcap(Reader { bytes, at: 4, big_endian: true }, 1),
        [0x0a, 0x0d, 0x0d, 0x0a] => read_pcapng(bytes),
        _ => Err(PcapError::NotACapture),
    }
}

/// Returns a pcap file of raw IP packets with times in nanoseconds.
pub fn write(packets: &[Captured]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, SNAPLEN, LINK_RAW] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    for Captured { time, packet } in packets {
        let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
        let length = u32::try_from(packet.len()).unwrap_or(SNAPLEN);
        for word in [seconds, time.subsec_nanos(), length, length] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(packet);
    }
    bytes
}

const SNAPLEN: u32 = 65_535;
const LINK_NULL: u32 = 0;
const LINK_ETHERNET: u32 = 1;
const LINK_RAW: u32 = 101;
const LINK_LOOP: u32 = 108;
const LINK_SLL: u32 = 113;
const LINK_IPV4: u32 = 228;
const LINK_IPV6: u32 = 229;
const LINK_SLL2: u32 = 276;
const ETHERTYPE_VLAN: u16 = 0x8100;

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    big_endian: bool,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], PcapError> {
        let damaged = PcapError::Damaged(self.at);
        let end = self.at.checked_add(length).ok_or(damaged.clone())?;
        let taken = self.bytes.get(self.at..end).ok_or(damaged)?;
        self.at = end;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, PcapError> {
        let bytes = self.take(2)?.try_into().expect("two bytes");
        Ok(if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    fn u32(&mut self) -> Result<u32, PcapError> {
        let bytes = self.take(4)?.try_into().expect("four bytes");
        Ok(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }
}

fn read_pcap(mut reader: Reader<'_>, nanos_per_tick: u32) -> Result<Vec<Captured>, PcapError> {
    reader.take(16)?;
    let link_type = reader.u32()? & 0x0fff_ffff;
    let mut packets = Vec::new();
    let mut number = 0;
    while !reader.is_at_end() {
        number += 1;
        let (seconds, ticks) = (reader.u32()?, reader.u32()?);
        let (captured, original) = (reader.u32()?, reader.u32()?);
        let frame = reader.take(captured as usize)?;
        if captured < original {
            return Err(PcapError::Cut(number));
        }
        if let Some(packet) = ip_packet(link_type, frame)? {
            let nanos = u64::from(ticks) * u64::from(nanos_per_tick);
            let time = Duration::from_secs(u64::from(seconds)) + Duration::from_nanos(nanos);
            packets.push(Captured { time, packet });
        }
    }
    Ok(packets)
}

struct Interface {
    link_type: u32,
    ticks_per_second: u64,
}

fn read_pcapng(bytes: &[u8]) -> Result<Vec<Captured>, PcapError> {
    let mut reader = Reader { bytes, at: 0, big_endian: false };
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut packets = Vec::new();
    let mut number = 0;
    while !reader.is_at_end() {
        let start = reader.at;
        let kind = reader.u32()?;
        if kind == 0x0a0d_0d0a {
            reader.big_endian = bytes.get(start + 8..start + 12) == Some(&[0x1a, 0x2b, 0x3c, 0x4d]);
            interfaces.clear();
        }
        let length = reader.u32()? as usize;
        let body = length.checked_sub(12).filter(|_| length.is_multiple_of(4)).ok_or(PcapError::Damaged(start))?;
        let body = reader.take(body)?;
        reader.take(4)?;
        let block = Reader { bytes: body, at: 0, big_endian: reader.big_endian };
        match kind {
            1 => interfaces.push(read_interface(block)?),
            6 => {
                number += 1;
                packets.extend(read_enhanced_packet(block, &interfaces, number)?);
            }
            _ => {}
        }
    }
    Ok(packets)
}

fn read_interface(mut block: Reader<'_>) -> Result<Interface, PcapError> {
    let link_type = u32::from(block.u16()?);
    block.take(6)?;
    let mut ticks_per_second = 1_000_000;
    while !block.is_at_end() {
        let (code, length) = (block.u16()?, usize::from(block.u16()?));
        let value = block.take(length.next_multiple_of(4))?;
        match (code, value.first()) {
            (0, _) => break,
            (9, Some(power)) if power & 0x80 != 0 => {
                ticks_per_second = 1_u64.checked_shl(u32::from(power & 0x7f)).unwrap_or(1);
            }
            (9, Some(power)) => ticks_per_second = 10_u64.checked_pow(u32::from(*power)).unwrap_or(1),
            _ => {}
        }
    }
    Ok(Interface { link_type, ticks_per_second })
}

fn read_enhanced_packet(
    mut block: Reader<'_>,
    interfaces: &[Interface],
    number: usize,
) -> Result<Option<Captured>, PcapError> {
    let interface = interfaces.get(block.u32()? as usize).ok_or(PcapError::Damaged(block.at))?;
    let ticks = u64::from(block.u32()?) << 32 | u64::from(block.u32()?);
    let (captured, original) = (block.u32()?, block.u32()?);
    let frame = block.take(captured as usize)?;
    if captured < original {
        return Err(PcapError::Cut(number));
    }
    let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(interface.ticks_per_second);
    let time = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
    Ok(ip_packet(interface.link_type, frame)?.map(|packet| Captured { time, packet }))
}

/// Returns the IP packet in a frame, if there is one.
fn ip_packet(link_type: u32, frame: &[u8]) -> Result<Option<Vec<u8>>, PcapError> {
    let behind = |offset: usize| frame.get(offset..);
    let packet = match link_type {
        LINK_RAW | LINK_IPV4 | LINK_IPV6 => Some(frame),
        LINK_NULL | LINK_LOOP => behind(4),
        LINK_ETHERNET if ethertype(frame, 12) == Some(ETHERTYPE_VLAN) => behind(18),
        LINK_ETHERNET => behind(14),
        LINK_SLL => behind(16),
        LINK_SLL2 => behind(20),
        unknown => return Err(PcapError::LinkType(unknown)),
    };
    Ok(packet.and_then(without_padding))
}

fn ethertype(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// Returns an IP packet without the bytes that a link adds to short frames.
fn without_padding(bytes: &[u8]) -> Option<Vec<u8>> {
    let length = match bytes.first()? >> 4 {
        4 if bytes.len() >= 20 => usize::from(u16::from_be_bytes([bytes[2], bytes[3]])),
        6 if bytes.len() >= 40 => 40 + usize::from(u16::from_be_bytes([bytes[4], bytes[5]])),
        _ => return None,
    };
    // A wrong length is the module's to see.
    Some(bytes.get(..length).filter(|packet| packet.len() >= 20).unwrap_or(bytes).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(last: u8) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 21, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.push(last);
        packet
    }

    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = u32::try_from(body.len() + 12).unwrap().to_le_bytes();
        [&kind.to_le_bytes()[..], &length, &body, &length].concat()
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let packets: Vec<_> = (0..3)
            .map(|n| Captured { time: Duration::new(1_800_000_000, 999_999_990 + u32::from(n)), packet: packet(n) })
            .collect();
        assert_eq!(read(&write(&packets)), Ok(packets));
        assert_eq!(read(&write(&[])), Ok(vec![]));
    }

    #[test]
    fn ethernet_padding_and_other_protocols_are_left_out() {
        let mut file = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, LINK_ETHERNET]);
        let ip = [&[0; 12][..], &[8, 0], &packet(7), &[0; 25]].concat();
        let vlan = [&[0; 12][..], &[0x81, 0, 0, 5, 8, 0], &packet(8)].concat();
        let arp = [&[0; 12][..], &[8, 6], &[0; 28]].concat();
        for frame in [&ip, &vlan, &arp] {
            let length = u32::try_from(frame.len()).unwrap();
            file.extend(words(&[5, 250_000, length, length]));
            file.extend_from_slice(frame);
        }
        let read = read(&file).unwrap();
        assert_eq!(read.iter().map(|one| one.packet.clone()).collect::<Vec<_>>(), [packet(7), packet(8)]);
        assert_eq!(read[0].time, Duration::from_millis(5250));
    }

    #[test]
    fn pcapng_is_read_with_its_resolution() {
        let mut file = block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
        file.extend(block(1, &words(&[LINK_RAW, 0])));
        file.extend(block(1, &[words(&[LINK_RAW, 0, 9 | 1 << 16]), vec![9]].concat()));
        file.extend(block(5, &[1, 2, 3, 4]));
        for interface in [0, 1] {
            let header = words(&[interface, 1, 0, 21, 21]);
            file.extend(block(6, &[header, packet(1)].concat()));
        }
        let times: Vec<_> = read(&file).unwrap().iter().map(|one| one.time).collect();
        assert_eq!(times, [Duration::from_micros(1 << 32), Duration::from_nanos(1 << 32)]);
    }

    #[test]
    fn damaged_captures_are_errors() {
        let whole = write(&[Captured { time: Duration::ZERO, packet: packet(1) }]);
        for cut in 0..whole.len() {
            assert!(cut == 24 || read(&whole[..cut]).is_err(), "{cut}");
        }
        let mut cut = whole.clone();
        cut[36] = 99;
        assert_eq!(read(&cut), Err(PcapError::Cut(1)));
        let mut other_link = whole;
        other_link[20] = 9;
        assert_eq!(read(&other_link), Err(PcapError::LinkType(9)));
        assert_eq!(read(b"#!/bin/sh"), Err(PcapError::NotACapture));
        assert!(read(&block(0x0a0d_0d0a, &[])[..8]).is_err());
        assert!(read(&words(&[0x0a0d_0d0a, 3])).is_err());
    }
}
