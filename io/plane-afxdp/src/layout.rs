// SPDX-License-Identifier: Apache-2.0
//! What goes into the maps of `bpf/classify.c`, as bytes: the mirror of `bpf/common.h`.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::limits;

/// An address; IPv4 stands in the first word, and the rest is zero.
pub(super) type AddressBytes = [u8; 16];

/// Bytes of `struct filter_key`.
pub(super) const KEY_BYTES: usize = 40;
/// Words of `struct tuple`.
pub(super) const TUPLE_WORDS: usize = 7;
/// Where in `struct tuple_table` the number of places is, the summary, and the tuples, in words of 8 bytes.
pub(super) const COUNT_WORD: usize = 0;
/// Where in `struct tuple_table` it says whether forwarding is withheld.
pub(super) const WITHHELD_WORD: usize = 1;
/// Where in `struct tuple_table` the number of prefixes is whose packets are counted.
pub(super) const COUNTED_PREFIXES_WORD: usize = 2;
pub(super) const SUMMARY_WORD: usize = 8;
pub(super) const TUPLES_WORD: usize = SUMMARY_WORD + SUMMARY_BITS / 64;
/// Words of `struct tuple_table`.
pub const TABLE_WORDS: usize = TUPLES_WORD + limits::TUPLES_MAX * TUPLE_WORDS;
/// Where in `struct tuple` the needs are.
pub(super) const NEEDS_WORD: usize = 6;
/// Bits of the summary.
pub(super) const SUMMARY_BITS: usize = 1 << SUMMARY_BITS_LOG;
const SUMMARY_BITS_LOG: u32 = 17;
/// `enum need`.
pub(super) const NEEDS_V4: u8 = 1;
pub(super) const NEEDS_V6: u8 = 2;
pub(super) const NEEDS_PORTS: u8 = 4;
/// What no packet has.
pub(super) const NEEDS_IMPOSSIBLE: u8 = NEEDS_V4 | NEEDS_V6;
/// `enum wanted`.
pub(super) const WANTED: u8 = 1;
pub(super) const WANTED_CLOSED: u8 = 2;
/// The counters of wanted packets that passed unseen: `COUNTER_TOO_LONG`, `COUNTER_SILENT`, `COUNTER_NO_SOCKET` and
/// `COUNTER_UNFINISHED`.
pub(super) const COUNTERS_UNSEEN: [u32; 4] = [0, 1, COUNTER_NO_SOCKET, 4];
/// `COUNTER_NO_SOCKET`.
pub(super) const COUNTER_NO_SOCKET: u32 = 2;
/// `COUNTER_FORWARDED`.
pub(super) const COUNTER_FORWARDED: u32 = 3;
/// `COUNTER_SIGNALING_LOST`.
pub(super) const COUNTER_SIGNALING_LOST: u32 = 5;
/// `COUNTER_CLOSED_LOST`.
pub(super) const COUNTER_CLOSED_LOST: u32 = 6;
/// Where in `struct heart` the longest silence is, the number of lanes, and their beats, in words of 8 bytes.
pub(super) const SILENCE_MAX_WORD: usize = 0;
pub(super) const LANES_WORD: usize = 1;
pub(super) const BEATS_WORD: usize = 2;
/// Words of `struct heart`.
pub(super) const HEART_WORDS: usize = BEATS_WORD + limits::LANES_MAX;

/// `enum interface_flag`.
pub(super) const FORWARDS_V4: u16 = 1;
pub(super) const FORWARDS_V6: u16 = 2;
pub(super) const IS_VIRTUAL: u16 = 4;
pub(super) const CHECKS_SOURCE: u16 = 8;
pub(super) const CHECKS_SOURCE_LOOSELY: u16 = 16;
pub(super) const INTERCEPTS: u16 = 32;

/// Returns an address as it stands in keys.
pub(super) fn address_bytes(address: IpAddr) -> AddressBytes {
    match address {
        IpAddr::V4(v4) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&v4.octets());
            bytes
        }
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// Bytes of `struct prefix`.
pub(super) const PREFIX_BYTES: usize = 24;

/// Returns a key of `prefixes`.
pub(super) fn prefix_key(prefix: &IpNet) -> [u8; PREFIX_BYTES] {
    let version: u32 = if prefix.addr().is_ipv4() { 4 } else { 6 };
    let mut bytes = [0; PREFIX_BYTES];
    bytes[..4].copy_from_slice(&(u32::BITS + u32::from(prefix.prefix_len())).to_ne_bytes());
    bytes[4..8].copy_from_slice(&version.to_ne_bytes());
    bytes[8..].copy_from_slice(&address_bytes(prefix.network()));
    bytes
}

/// `struct filter_key`: a value under a mask, or a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyRepr {
    pub slot: u8,
    pub version: u8,
    pub protocol: u8,
    pub source_port: u16,
    pub destination_port: u16,
    pub source: AddressBytes,
    pub destination: AddressBytes,
}

impl KeyRepr {
    /// Returns the bytes.
    pub fn emit(&self) -> [u8; KEY_BYTES] {
        let mut bytes = [0; KEY_BYTES];
        bytes[..3].copy_from_slice(&[self.slot, self.version, self.protocol]);
        bytes[4..6].copy_from_slice(&self.source_port.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.destination_port.to_be_bytes());
        bytes[8..24].copy_from_slice(&self.source);
        bytes[24..40].copy_from_slice(&self.destination);
        bytes
    }
}

/// `struct tuple`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TupleRepr {
    /// Its slot is zero.
    pub mask: KeyRepr,
    pub slot: u8,
    pub needs: u8,
}

impl TupleRepr {
    /// Returns the words.
    pub fn emit(&self) -> [u64; TUPLE_WORDS] {
        let mut words = [0; TUPLE_WORDS];
        words[..5].copy_from_slice(&key_words(&self.mask.emit()));
        words[5] = u64::from_ne_bytes([self.slot, 0, 0, 0, 0, 0, 0, 0]);
        words[NEEDS_WORD] = needs_word(self.needs);
        words
    }
}

/// Returns the needs of a tuple as they stand in it: 32 bits, and 32 that are unused.
pub(super) fn needs_word(needs: u8) -> u64 {
    let needs = u32::from(needs).to_ne_bytes();
    u64::from_ne_bytes([needs[0], needs[1], needs[2], needs[3], 0, 0, 0, 0])
}

/// Returns the bit of a key in the summary: `summary_bit` in `bpf/classify.h`.
pub(super) fn summary_bit(key: &[u8; KEY_BYTES]) -> usize {
    let [head, source, source_end, destination, destination_end] = key_words(key);
    let products = [
        head.wrapping_mul(0x61c8_8647),
        source.wrapping_mul(0x7feb_352d),
        destination.wrapping_mul(0x5bd1_e995),
        source_end.wrapping_mul(0x27d4_eb2f),
        destination_end.wrapping_mul(0x1656_67b1),
    ];
    let sum = products.into_iter().fold(0, u64::wrapping_add);
    let mixed = (sum ^ sum >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::try_from(mixed >> (64 - SUMMARY_BITS_LOG)).expect("a few bits fit in usize")
}

fn key_words(key: &[u8; KEY_BYTES]) -> [u64; 5] {
    let (words, _) = key.as_chunks::<8>();
    std::array::from_fn(|at| u64::from_ne_bytes(words[at]))
}

/// Returns a key of `interfaces`: a device, or a VLAN on it.
pub(super) fn interface_key(device: u32, vlan: Option<u16>) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&device.to_ne_bytes());
    bytes[4..6].copy_from_slice(&vlan.unwrap_or(0).to_be_bytes());
    bytes
}

/// `struct interface`, a value of `interfaces`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InterfaceRepr {
    pub station: [u8; 6],
    pub flags: u16,
    pub first_socket: u32,
    pub queues: u32,
    pub frame_bytes_max: u32,
}

impl InterfaceRepr {
    /// Returns the bytes.
    pub fn emit(&self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..6].copy_from_slice(&self.station);
        bytes[6..8].copy_from_slice(&self.flags.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.first_socket.to_ne_bytes());
        bytes[12..16].copy_from_slice(&self.queues.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.frame_bytes_max.to_ne_bytes());
        bytes
    }
}
