// SPDX-License-Identifier: Apache-2.0
//! What goes into the maps of `bpf/classify.c`, as bytes: the mirror of `bpf/common.h`.

use std::net::IpAddr;

/// An address; IPv4 stands in the first word, and the rest is zero.
pub(super) type AddressBytes = [u8; 16];

/// Bytes of `struct tuple`, and of `struct filter_key`.
pub(super) const KEY_BYTES: usize = 40;
/// Bytes of the head of `struct tuple_set`.
pub(super) const SET_HEAD_BYTES: usize = 8;
/// The counters of wanted packets that passed unseen: `COUNTER_TOO_LONG`, `COUNTER_SILENT`, `COUNTER_NO_SOCKET` and
/// `COUNTER_UNFINISHED`.
pub(super) const COUNTERS_UNSEEN: [u32; 4] = [0, 1, COUNTER_NO_SOCKET, 4];
/// `COUNTER_NO_SOCKET`.
pub(super) const COUNTER_NO_SOCKET: u32 = 2;
/// `COUNTER_FORWARDED`.
pub(super) const COUNTER_FORWARDED: u32 = 3;
/// Bytes of `struct heart`, and where in it `silence_max` is; `beat` comes first.
pub(super) const HEART_BYTES: usize = 16;
pub(super) const HEART_SILENCE_MAX: usize = 8;

/// `enum interface_flag`.
pub(super) const FORWARDS_V4: u16 = 1;
pub(super) const FORWARDS_V6: u16 = 2;
pub(super) const IS_VIRTUAL: u16 = 4;
pub(super) const CHECKS_SOURCE: u16 = 8;
pub(super) const CHECKS_SOURCE_LOOSELY: u16 = 16;

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

/// `struct tuple` and `struct filter_key`, which are laid out alike: a mask, or a value under a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyRepr {
    pub slot: u8,
    pub version: u8,
    /// `with_ports` of a tuple, `protocol` of a key.
    pub third: u8,
    /// `protocol_mask` of a tuple, zero in a key.
    pub fourth: u8,
    pub source_port: u16,
    pub destination_port: u16,
    pub source: AddressBytes,
    pub destination: AddressBytes,
}

impl KeyRepr {
    /// Returns the bytes.
    pub fn emit(&self) -> [u8; KEY_BYTES] {
        let mut bytes = [0; KEY_BYTES];
        bytes[..4].copy_from_slice(&[self.slot, self.version, self.third, self.fourth]);
        bytes[4..6].copy_from_slice(&self.source_port.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.destination_port.to_be_bytes());
        bytes[8..24].copy_from_slice(&self.source);
        bytes[24..40].copy_from_slice(&self.destination);
        bytes
    }
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
