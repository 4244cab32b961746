// SPDX-License-Identifier: Apache-2.0
//! Makes the captures that packet modules are tested with.
//!
//! Each module's `tests/captures.rs` says in Rust what its captures hold, and checks that the files are so. With
//! `NETSERV_WRITE_CAPTURES=1` it writes them. The packets are built here and not by the SDK, so that a wrong checksum
//! of the SDK's is seen.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// A packet, and when it was seen in milliseconds.
pub type Timed = (u64, Vec<u8>);

/// Checks that a capture, named relative to the crate of the test, holds exactly these packets; or writes it.
///
/// # Panics
/// If it holds others.
pub fn check_capture(crate_dir: &str, name: &str, packets: &[Timed]) {
    let path = Path::new(crate_dir).join(name);
    let bytes = capture(packets);
    if std::env::var_os("NETSERV_WRITE_CAPTURES").is_some() {
        std::fs::write(&path, bytes).expect("the capture can be written");
        return;
    }
    let found = std::fs::read(&path).unwrap_or_default();
    assert!(found == bytes, "{} is not what its test says; see NETSERV_WRITE_CAPTURES", path.display());
}

/// Returns a pcap file of raw IP packets, on 2026-11-21.
pub fn capture(packets: &[Timed]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101_u32] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for (millis, packet) in packets {
        let length = u32::try_from(packet.len()).expect("a packet is short");
        let seconds = 1_795_219_200 + u32::try_from(millis / 1000).expect("a test is short");
        let micros = u32::try_from(millis % 1000 * 1000).expect("less than a million");
        for word in [seconds, micros, length, length] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(packet);
    }
    file
}

/// Returns packets that follow each other every ten milliseconds.
pub fn in_turn(packets: impl IntoIterator<Item = Vec<u8>>) -> Vec<Timed> {
    (0..).step_by(10).zip(packets).collect()
}

/// Returns a UDP packet between addresses such as `10.0.0.1:5060` or `[2001:db8::1]:5060`.
///
/// # Panics
/// If the addresses are none, or of two IP versions.
pub fn udp(source: &str, destination: &str, ttl: u8, payload: &[u8]) -> Vec<u8> {
    let source: SocketAddr = source.parse().expect("an address and a port");
    let destination: SocketAddr = destination.parse().expect("an address and a port");
    let length = be16(payload.len() + 8);
    let head = [source.port().to_be_bytes(), destination.port().to_be_bytes(), length].concat();
    let pseudo = [octets(source.ip()), octets(destination.ip()), vec![0, 17], length.to_vec()].concat();
    let sum = internet_checksum(&[&pseudo[..], &head, &[0, 0], payload].concat());
    let sum = if sum == [0, 0] { [0xff, 0xff] } else { sum };
    ip(source.ip(), destination.ip(), 17, ttl, &[&head[..], &sum, payload].concat())
}

/// Returns an IP packet.
///
/// # Panics
/// If the addresses are of two IP versions.
pub fn ip(source: IpAddr, destination: IpAddr, protocol: u8, ttl: u8, payload: &[u8]) -> Vec<u8> {
    assert_eq!(source.is_ipv4(), destination.is_ipv4(), "one IP version");
    let addresses = [octets(source), octets(destination)].concat();
    if source.is_ipv4() {
        let total = be16(payload.len() + 20);
        let head = [&[0x45, 0], &total[..], &[0, 0, 0x40, 0, ttl, protocol]].concat();
        let sum = internet_checksum(&[&head[..], &[0, 0], &addresses].concat());
        [&head[..], &sum, &addresses, payload].concat()
    } else {
        let length = be16(payload.len());
        [&[0x60, 0, 0, 0], &length[..], &[protocol, ttl], &addresses, payload].concat()
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn be16(value: usize) -> [u8; 2] {
    u16::try_from(value).expect("a packet is short").to_be_bytes()
}

fn internet_checksum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.chunks(2).map(|pair| u64::from(pair[0]) * 256 + u64::from(pair.get(1).copied().unwrap_or(0)));
    // One's complement addition is addition modulo 65,535.
    let sum = words.sum::<u64>();
    let folded = if sum > 0 && sum % 65_535 == 0 { 65_535 } else { sum % 65_535 };
    (!u16::try_from(folded).expect("a remainder")).to_be_bytes()
}
